//! FlexFile beside plain files on the file system that the workspace lies on: 1 GiB in blocks of 4 KiB.
//!
//! Random insert (FlexFile at any offset, ext4 by `FALLOC_FL_INSERT_RANGE` at block offsets, until a time limit), random
//! write, sequential write, each with a sync at its end; the reads behind each; opening after a clean close and after a
//! kill. Prints a table and writes `target/bench/file.jsonl`. Figures are medians of `FLEX_BENCH_RUNS` (3) runs.
//! Other variables: `FLEX_BENCH_MIB` (1024), `FLEX_BENCH_EXTENTS` (10000000), `FLEX_BENCH_ONLY=writes|open`.
//!
//! Write amplification is what the process had written to the device (`write_bytes` of `/proc/self/io`, which counts
//! pages as they become dirty) over what was handed to the engine. Cold reads come after the page cache was dropped
//! (as root; otherwise the files' own pages) and, for FlexFile, after reopening.

#[path = "support/mod.rs"]
mod support;

use flex_core::file::{FlexFile, FlexSpace, SpaceOptions};
use std::fs::File;
use std::io::{Error, Result};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use support::{Random, Report, number, target_dir};

const BLOCK: usize = 4096;
const INSERT_RANGE_LIMIT: Duration = Duration::from_secs(10);
/// Just below what makes a checkpoint due, so that all of it has to be replayed.
const KILLED_AFTER: u64 = 290_000;
const COLD_RANDOM_READS: u64 = 10_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    RandomInsert,
    RandomWrite,
    SequentialWrite,
}

impl Pattern {
    const ALL: [Pattern; 3] = [Pattern::RandomInsert, Pattern::RandomWrite, Pattern::SequentialWrite];

    fn name(self) -> &'static str {
        match self {
            Pattern::RandomInsert => "random_insert",
            Pattern::RandomWrite => "random_write",
            Pattern::SequentialWrite => "sequential_write",
        }
    }
}

/// One file of blocks.
trait Engine {
    const NAME: &'static str;
    fn insert(&mut self, offset: u64, block: &[u8]) -> Result<()>;
    fn write(&mut self, offset: u64, block: &[u8]) -> Result<()>;
    fn read(&mut self, offset: u64, block: &mut [u8]) -> Result<()>;
    fn sync(&mut self) -> Result<()>;
    /// Closes and opens again, so that nothing of the file is in memory but what the page cache keeps.
    fn reopen(self) -> Result<Self>
    where
        Self: Sized;
}

struct Flex {
    path: PathBuf,
    space: FlexSpace,
    file: FlexFile,
}

fn other(error: flex_core::Error) -> Error {
    Error::other(error.to_string())
}

impl Flex {
    fn create(path: &Path) -> Result<Flex> {
        let _ = std::fs::remove_dir_all(path);
        let space = FlexSpace::open(path, &SpaceOptions::default()).map_err(other)?;
        let file = space.create_file(b"data").map_err(other)?;
        Ok(Flex { path: path.into(), space, file })
    }

    fn open(path: &Path) -> Result<Flex> {
        let space = FlexSpace::open(path, &SpaceOptions::default()).map_err(other)?;
        let file = space.open_file(b"data").map_err(other)?;
        Ok(Flex { path: path.into(), space, file })
    }
}

impl Engine for Flex {
    const NAME: &'static str = "flexfile";

    fn insert(&mut self, offset: u64, block: &[u8]) -> Result<()> {
        self.file.insert(offset, block).map_err(other)
    }

    fn write(&mut self, offset: u64, block: &[u8]) -> Result<()> {
        self.file.write(offset, block).map_err(other)
    }

    fn read(&mut self, offset: u64, block: &mut [u8]) -> Result<()> {
        self.file.read(offset, block).map(|_| ()).map_err(other)
    }

    fn sync(&mut self) -> Result<()> {
        self.space.sync().map_err(other)
    }

    fn reopen(self) -> Result<Flex> {
        self.space.close().map_err(other)?;
        Flex::open(&self.path)
    }
}

struct Plain {
    file: File,
}

impl Plain {
    fn create(path: &Path) -> Result<Plain> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Plain { file })
    }
}

impl Engine for Plain {
    const NAME: &'static str = "ext4";

    fn insert(&mut self, offset: u64, block: &[u8]) -> Result<()> {
        if offset < self.file.metadata()?.len() {
            insert_range(&self.file, offset, block.len() as u64)?;
        }
        self.file.write_all_at(block, offset)
    }

    fn write(&mut self, offset: u64, block: &[u8]) -> Result<()> {
        self.file.write_all_at(block, offset)
    }

    fn read(&mut self, offset: u64, block: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(block, offset)
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data()
    }

    fn reopen(self) -> Result<Plain> {
        Ok(self)
    }
}

#[allow(unsafe_code)]
fn insert_range(file: &File, offset: u64, len: u64) -> Result<()> {
    // SAFETY: a system call on an open descriptor, with integers only.
    let result = unsafe {
        libc::fallocate(file.as_raw_fd(), libc::FALLOC_FL_INSERT_RANGE, offset as libc::off_t, len as libc::off_t)
    };
    if result == 0 { Ok(()) } else { Err(Error::last_os_error()) }
}

/// Bytes that this process had written to devices.
fn device_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    text.lines().find_map(|line| line.strip_prefix("write_bytes: ")?.parse().ok()).unwrap_or(0)
}

/// Drops the page cache, or what it holds of our files where we may not.
fn drop_caches(dir: &Path) -> Result<()> {
    if std::fs::write("/proc/sys/vm/drop_caches", "3").is_ok() {
        return Ok(());
    }
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            drop_caches(&path)?;
        } else {
            drop_file(&File::open(path)?);
        }
    }
    Ok(())
}

#[allow(unsafe_code)]
fn drop_file(file: &File) {
    // SAFETY: a system call on an open descriptor, with integers only.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// Waits until the device has what came before, so that one case does not pay for another.
#[allow(unsafe_code)]
fn settle() {
    // SAFETY: takes nothing and touches no memory of ours.
    unsafe { libc::sync() };
}

fn fill(block: &mut [u8], number: u64) {
    for (word, i) in block.chunks_exact_mut(8).zip(0..) {
        word.copy_from_slice(&(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ i).to_le_bytes());
    }
}

fn write_pattern<E: Engine>(engine: &mut E, pattern: Pattern, blocks: u64, report: &mut Report) -> Result<u64> {
    let mut random = Random(88_172_645_463_325_252);
    let order = shuffled(blocks);
    let mut block = vec![0; BLOCK];
    let bytes_before = device_bytes();
    let limit = (E::NAME == "ext4" && pattern == Pattern::RandomInsert).then_some(INSERT_RANGE_LIMIT);
    let (start, mut tenth_start, mut done) = (Instant::now(), Instant::now(), 0);
    let mut tenths = Vec::new();
    for i in 0..blocks {
        fill(&mut block, i);
        match pattern {
            Pattern::RandomInsert => engine.insert(random.below(i + 1) * BLOCK as u64, &block)?,
            Pattern::RandomWrite => engine.write(order[i as usize] as u64 * BLOCK as u64, &block)?,
            Pattern::SequentialWrite => engine.write(i * BLOCK as u64, &block)?,
        }
        done = i + 1;
        if done % (blocks / 10).max(1) == 0 {
            tenths.push(tenth_start.elapsed());
            tenth_start = Instant::now();
        }
        if limit.is_some_and(|limit| start.elapsed() > limit) {
            break;
        }
    }
    engine.sync()?;
    let seconds = start.elapsed().as_secs_f64();
    let (case, name) = (pattern.name(), E::NAME);
    report.add(case, name, "kops_per_s", "kops/s", done as f64 / seconds / 1000.0);
    let tenth = |time: &Duration| blocks as f64 / 10.0 / time.as_secs_f64() / 1000.0;
    if let (Some(first), Some(last), true) = (tenths.first(), tenths.get(9), done == blocks) {
        report.add(case, name, "kops_per_s_first_tenth", "kops/s", tenth(first));
        report.add(case, name, "kops_per_s_last_tenth", "kops/s", tenth(last));
    }
    let written = (device_bytes() - bytes_before) as f64;
    report.add(case, name, "write_amplification", "ratio", written / (done * BLOCK as u64) as f64);
    if done < blocks {
        report.add(case, name, "mib_reached", "MiB", (done * BLOCK as u64) as f64 / 1048576.0);
    }
    Ok(done)
}

fn shuffled(n: u64) -> Vec<u32> {
    let mut random = Random(2_463_534_242);
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        order.swap(i as usize, random.below(i + 1) as usize);
    }
    order
}

fn read_pass<E: Engine>(engine: &mut E, order: impl Iterator<Item = u64>) -> Result<f64> {
    let mut block = vec![0; BLOCK];
    let (start, mut count) = (Instant::now(), 0u64);
    for index in order {
        engine.read(index * BLOCK as u64, &mut block)?;
        count += 1;
    }
    Ok(count as f64 / start.elapsed().as_secs_f64() / 1000.0)
}

fn read_patterns<E: Engine>(mut engine: E, after: Pattern, blocks: u64, dir: &Path, report: &mut Report) -> Result<()> {
    let order = shuffled(blocks);
    let random = || order.iter().map(|i| *i as u64);
    let case = |what: &str| format!("after_{}/read_{what}", after.name());
    engine = engine.reopen()?;
    drop_caches(dir)?;
    let cold = read_pass(&mut engine, 0..blocks)?;
    report.add(&case("sequential_cold"), E::NAME, "kops_per_s", "kops/s", cold);
    let warm = read_pass(&mut engine, 0..blocks)?;
    report.add(&case("sequential_warm"), E::NAME, "kops_per_s", "kops/s", warm);
    let warm_random = read_pass(&mut engine, random())?;
    report.add(&case("random_warm"), E::NAME, "kops_per_s", "kops/s", warm_random);
    engine = engine.reopen()?;
    drop_caches(dir)?;
    let cold_random = read_pass(&mut engine, random().take(COLD_RANDOM_READS as usize))?;
    report.add(&case("random_cold"), E::NAME, "kops_per_s", "kops/s", cold_random);
    if after == Pattern::SequentialWrite {
        for (what, value) in [("sequential_cold", cold), ("sequential_warm", warm)] {
            report.add(&format!("read_{what}"), E::NAME, "kops_per_s", "kops/s", value);
        }
        for (what, value) in [("random_cold", cold_random), ("random_warm", warm_random)] {
            report.add(&format!("read_{what}"), E::NAME, "kops_per_s", "kops/s", value);
        }
    }
    Ok(())
}

fn writes_and_reads(dir: &Path, blocks: u64, runs: u64, report: &mut Report) -> Result<()> {
    for _ in 0..runs {
        for pattern in Pattern::ALL {
            settle();
            let mut flex = Flex::create(&dir.join("space"))?;
            write_pattern(&mut flex, pattern, blocks, report)?;
            read_patterns(flex, pattern, blocks, dir, report)?;
            std::fs::remove_dir_all(dir.join("space"))?;
            settle();
            let mut plain = Plain::create(&dir.join("plain"))?;
            let done = write_pattern(&mut plain, pattern, blocks, report)?;
            if done == blocks {
                read_patterns(plain, pattern, blocks, dir, report)?;
            }
            std::fs::remove_file(dir.join("plain"))?;
        }
    }
    Ok(())
}

/// A space of one file with so many extents of one byte, closed.
fn build_extents(path: &Path, extents: u64) -> Result<()> {
    let flex = Flex::create(path)?;
    for i in 0..extents {
        // At the head: what comes later in DATA comes earlier in the file, so that nothing merges.
        flex.file.insert(0, &[i as u8]).map_err(other)?;
    }
    flex.space.close().map_err(other)
}

/// Adds 1 GiB to the space, so that its log may grow to its largest size before a checkpoint is due.
fn add_ballast(path: &Path) -> Result<()> {
    let flex = Flex::open(path)?;
    let ballast = flex.space.create_file(b"ballast").map_err(other)?;
    for _ in 0..1024 {
        ballast.append(&vec![7; 1 << 20]).map_err(other)?;
    }
    flex.space.close().map_err(other)
}

fn time_open(path: &Path) -> Result<f64> {
    let start = Instant::now();
    let flex = Flex::open(path)?;
    let ms = start.elapsed().as_secs_f64() * 1000.0;
    flex.space.close().map_err(other)?;
    Ok(ms)
}

/// The child of `open_killed`: random inserts into the space, then death without a word.
fn die(path: &Path) -> Result<()> {
    let flex = Flex::open(path)?;
    let (mut random, size) = (Random(7), flex.file.size().map_err(other)?);
    for i in 0..KILLED_AFTER {
        flex.file.insert(random.below(size + i), b"x").map_err(other)?;
    }
    flex.space.flush().map_err(other)?;
    std::process::abort()
}

fn opening(dir: &Path, extents: u64, runs: u64, report: &mut Report) -> Result<()> {
    let (small, large) = (dir.join("small"), dir.join("large"));
    build_extents(&small, extents / 100)?;
    build_extents(&large, extents)?;
    add_ballast(&large)?;
    for _ in 0..runs.max(3) {
        report.add("open_clean_100k", "flexfile", "ms", "ms", time_open(&small)?);
        report.add("open_clean_10m", "flexfile", "ms", "ms", time_open(&large)?);
    }
    for _ in 0..runs {
        let child = || -> Result<()> {
            let status = std::process::Command::new(std::env::current_exe()?).arg("--die").arg(&large).status()?;
            if status.success() { Err(Error::other("the child survived")) } else { Ok(()) }
        };
        child()?;
        report.add("open_killed", "flexfile", "ms", "ms", time_open(&large)?);
        child()?;
        drop_caches(dir)?;
        report.add("open_killed_cold", "flexfile", "ms", "ms", time_open(&large)?);
        drop_caches(dir)?;
        report.add("open_clean_10m_cold", "flexfile", "ms", "ms", time_open(&large)?);
    }
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, flag, path] = &arguments[..]
        && flag == "--die"
    {
        return die(Path::new(path));
    }
    let (mib, runs) = (number("FLEX_BENCH_MIB", 1024), number("FLEX_BENCH_RUNS", 3));
    let extents = number("FLEX_BENCH_EXTENTS", 10_000_000);
    let only = std::env::var("FLEX_BENCH_ONLY").unwrap_or_default();
    let dir = target_dir().join("bench").join("file");
    std::fs::create_dir_all(&dir)?;
    let parameters = format!(",\"mib\":{mib},\"block_bytes\":{BLOCK},\"runs\":{runs},\"extents\":{extents}");
    let mut report = Report::new("file", parameters);
    if only != "open" {
        writes_and_reads(&dir, mib * 1048576 / BLOCK as u64, runs, &mut report)?;
    }
    if only != "writes" {
        opening(&dir, extents, runs, &mut report)?;
    }
    std::fs::remove_dir_all(&dir)?;
    report.finish()?;
    let figure = |case: &str, engine: &str| report.median(case, engine, "kops_per_s").unwrap_or(0.0);
    if only != "open" {
        let own = figure("random_insert", "flexfile") / figure("sequential_write", "flexfile");
        println!("random insert / own sequential write: {own:.3}");
        let ext4 = figure("random_insert", "flexfile") / figure("random_insert", "ext4");
        println!("random insert / ext4 insert range (which stopped after {INSERT_RANGE_LIMIT:?}): {ext4:.1}");
    }
    Ok(())
}
