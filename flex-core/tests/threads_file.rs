//! Everything at once, with real threads: writers, readers beside them, snapshots, groups, checkpoints, collection,
//! defragmentation, syncs, names that come and go, checks; then a close while all are inside, or none at all.
//!
//! Each plain file has one writer, which puts each state on a list before it makes it. A reader notes which state was
//! there before it began and which may be there when it is done: what it read must be one of those in between, whole.
//! The two files of a pair change in groups, and any snapshot of the space must show both in the same state.
//! A few seconds; a minute each with FLEXFILE_LONG=1.

mod threads_support;

use flex_core::address::Tag;
use flex_core::file::{FileSnapshot, FlexFile, FlexSpace, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::mem::MemFileSystem;
use flex_core::io::os::OsFileSystem;
use flex_core::{Error, ErrorKind, Result};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use threads_support::{Chance, long_run, options, sound, within};

const FILES: usize = 3;
const MAX_LEN: usize = 24_000;

/// The states of one file: those that may still be seen.
#[derive(Default)]
struct History {
    states: VecDeque<Arc<Vec<u8>>>,
    /// Number of the first one.
    base: u64,
    /// Number of the last one whose operation returned.
    done: u64,
}

#[derive(Default)]
struct Tracked(Mutex<History>);

impl Tracked {
    fn new() -> Tracked {
        let history = History { states: VecDeque::from([Arc::default()]), base: 0, done: 0 };
        Tracked(Mutex::new(history))
    }

    fn latest(&self) -> Arc<Vec<u8>> {
        self.0.lock().unwrap().states.back().unwrap().clone()
    }

    fn done(&self) -> u64 {
        self.0.lock().unwrap().done
    }

    fn begin(&self, state: Vec<u8>) {
        let mut history = self.0.lock().unwrap();
        history.states.push_back(Arc::new(state));
        if history.states.len() > 4000 {
            history.states.pop_front();
            history.base += 1;
        }
    }

    fn end<T>(&self, result: &Result<T>) {
        let mut history = self.0.lock().unwrap();
        match result {
            Ok(_) => history.done = history.base + history.states.len() as u64 - 1,
            Err(_) => drop(history.states.pop_back()),
        }
    }

    /// Whether `found` is one of the states from number `from` on.
    fn knows(&self, from: u64, found: &[u8]) -> bool {
        let history = self.0.lock().unwrap();
        let skip = from.saturating_sub(history.base) as usize;
        from < history.base || history.states.iter().skip(skip).any(|state| state[..] == *found)
    }
}

struct World {
    space: FlexSpace,
    files: Vec<FlexFile>,
    tracked: Vec<Tracked>,
    pair: [FlexFile; 2],
    stop: AtomicBool,
    operations: AtomicU64,
    reads: AtomicU64,
}

/// What a thread does over and over, until it is told to stop or the space is closed.
type Step = fn(&World, &mut Chance, &mut Vec<Kept>) -> Result<()>;

/// A snapshot and what it showed when it was taken.
struct Kept {
    snapshot: FileSnapshot,
    bytes: Vec<u8>,
}

fn read_all(read: impl Fn(u64, &mut [u8]) -> Result<usize>, room: usize) -> Result<Vec<u8>> {
    let mut bytes = vec![0; room];
    let len = read(0, &mut bytes)?;
    bytes.truncate(len);
    Ok(bytes)
}

fn write_step(world: &World, which: usize, chance: &mut Chance) -> Result<()> {
    let (file, tracked) = (&world.files[which], &world.tracked[which]);
    let mut state = tracked.latest().to_vec();
    let len = state.len();
    let at = chance.below(len as u64 + 1) as usize;
    let data = vec![chance.below(256) as u8; 1 + chance.below(3000) as usize];
    let cut = (chance.below(3000) as usize).min(len - at);
    let kind = if len > MAX_LEN { 2 + chance.below(2) } else { chance.below(7) };
    match kind {
        0 => drop(state.splice(at..at, data.iter().copied())),
        1 => {
            state.resize(len.max(at + data.len()), 0);
            state[at..at + data.len()].copy_from_slice(&data);
        }
        2 => drop(state.drain(at..at + cut)),
        3 => state.truncate(at),
        4 => drop(state.splice(at..at + cut, data.iter().copied())),
        5 => state[at..at + cut].fill(0),
        _ => state.extend_from_slice(&data),
    }
    tracked.begin(state);
    let result = match kind {
        0 => file.insert(at as u64, &data),
        1 => file.write(at as u64, &data),
        2 => file.collapse(at as u64, cut as u64),
        3 => file.truncate(at as u64),
        4 => file.update(at as u64, cut as u64, &data),
        5 => file.punch_hole(at as u64, cut as u64),
        _ => file.append(&data).map(|_| ()),
    };
    tracked.end(&result);
    world.operations.fetch_add(1, Ordering::Relaxed);
    result
}

fn read_step(world: &World, chance: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    let which = chance.below(FILES as u64) as usize;
    let from = world.tracked[which].done();
    let found = read_all(|at, buf| world.files[which].read(at, buf), 3 * MAX_LEN)?;
    assert!(world.tracked[which].knows(from, &found), "a read of {} bytes shows no state of file {which}", found.len());
    world.reads.fetch_add(1, Ordering::Relaxed);
    Ok(())
}

fn snapshot_step(world: &World, chance: &mut Chance, kept: &mut Vec<Kept>) -> Result<()> {
    if kept.len() < 8 {
        let which = chance.below(FILES as u64) as usize;
        let from = world.tracked[which].done();
        let snapshot = if chance.below(2) == 0 {
            world.files[which].snapshot()?
        } else {
            world.space.snapshot()?.open_file(format!("w{which}").as_bytes())?
        };
        let bytes = read_all(|at, buf| snapshot.read(at, buf), snapshot.size() as usize + 10)?;
        assert!(world.tracked[which].knows(from, &bytes), "a snapshot of {} bytes is no state", bytes.len());
        kept.push(Kept { snapshot, bytes });
    }
    let index = chance.below(kept.len() as u64) as usize;
    let again = read_all(|at, buf| kept[index].snapshot.read(at, buf), kept[index].bytes.len() + 10)?;
    assert!(again == kept[index].bytes, "a snapshot changed");
    if chance.below(20) == 0 {
        kept.swap_remove(index);
    }
    Ok(())
}

fn group_step(world: &World, chance: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    let [a, b] = &world.pair;
    let fill = vec![chance.below(256) as u8; chance.below(9000) as usize];
    let mut group = world.space.group(&[a, b])?;
    for file in [b, a] {
        let len = group.size(file)?;
        group.update(file, 0, len, &fill)?;
    }
    match chance.below(4) {
        0 => drop(group),
        1 => {
            group.set_commit_word(fill.len() as u64);
            group.commit()?;
        }
        _ => group.commit()?,
    }
    Ok(())
}

fn pair_step(world: &World, _: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    let snapshot = world.space.snapshot()?;
    let [a, b] = [b"pair.a", b"pair.b"].map(|name| snapshot.open_file(name));
    let (a, b) = (a?, b?);
    let (left, right) = (read_all(|at, buf| a.read(at, buf), MAX_LEN)?, read_all(|at, buf| b.read(at, buf), MAX_LEN)?);
    assert!(left == right, "a snapshot shows half a group: {} and {} bytes", left.len(), right.len());
    Ok(())
}

fn names_step(world: &World, chance: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    let name = |n| format!("t{n}").into_bytes();
    let (from, to) = (name(chance.below(6)), name(chance.below(6)));
    let allowed = |error: Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::AlreadyExists => Ok(()),
        _ => Err(error),
    };
    match chance.below(5) {
        0 => world.space.remove_file(&from).or_else(allowed),
        1 => world.space.rename_file(&from, &to).or_else(allowed),
        2 => world.space.list_files().map(|_| ()),
        3 => world.space.create_file(&from).map(|_| ()).or_else(allowed),
        _ => world
            .space
            .open_file(&from)
            .and_then(|file| file.append(&[7; 5000]).and_then(|_| file.set_tag(0, Tag::NONE)))
            .or_else(allowed),
    }
}

fn upkeep_step(world: &World, chance: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    std::thread::sleep(Duration::from_millis(chance.below(10)));
    match chance.below(3) {
        0 => world.space.gc().map(|_| ()),
        1 => world.files[chance.below(FILES as u64) as usize].defrag(chance.below(1000), 1 << 20).map(|_| ()),
        _ => world.pair[0].defrag(0, 1 << 20).map(|_| ()),
    }
}

fn checkpoint_step(world: &World, chance: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    std::thread::sleep(Duration::from_millis(chance.below(10)));
    world.space.checkpoint()
}

fn sync_step(world: &World, chance: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    std::thread::sleep(Duration::from_millis(chance.below(5)));
    if chance.below(3) == 0 { world.space.flush() } else { world.space.sync() }
}

fn look_step(world: &World, chance: &mut Chance, _: &mut Vec<Kept>) -> Result<()> {
    std::thread::sleep(Duration::from_millis(chance.below(10)));
    let stats = world.space.stats()?;
    assert!(stats.durable_sequence <= stats.sequence && !stats.poisoned);
    let mut cursor = world.files[0].cursor(0)?;
    let mut at = 0;
    while let Some(extent) = cursor.current() {
        assert_eq!(extent.offset, at, "extents tile the file");
        at += extent.len;
        cursor.next()?;
    }
    assert_eq!(at, cursor.snapshot().size());
    let report = world.space.check(&mut |_| true)?;
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    Ok(())
}

const STEPS: [Step; 11] = [
    |world, chance, _| write_step(world, 0, chance),
    |world, chance, _| write_step(world, 1, chance),
    |world, chance, _| write_step(world, 2, chance),
    read_step,
    snapshot_step,
    group_step,
    pair_step,
    names_step,
    upkeep_step,
    checkpoint_step,
    |world, chance, kept| {
        if chance.below(2) == 0 { sync_step(world, chance, kept) } else { look_step(world, chance, kept) }
    },
];

fn open_world(fs: &Arc<dyn FileSystem>, path: &Path, options: &SpaceOptions) -> World {
    let space = FlexSpace::open_with(fs.clone(), path, options).unwrap();
    let create = |name: String| space.create_file(name.as_bytes()).unwrap();
    World {
        files: (0..FILES).map(|which| create(format!("w{which}"))).collect(),
        tracked: (0..FILES).map(|_| Tracked::new()).collect(),
        pair: ["pair.a", "pair.b"].map(|name| create(name.into())),
        stop: AtomicBool::new(false),
        operations: AtomicU64::new(0),
        reads: AtomicU64::new(0),
        space,
    }
}

/// Runs all threads for a while, ends them as `by_close` says, reopens, and compares.
fn everything_at_once(fs: Arc<dyn FileSystem>, path: &Path, options: &SpaceOptions, by_close: bool, seed: u64) {
    let time = Duration::from_millis(if long_run() { 30_000 } else { 1_500 });
    let world = open_world(&fs, path, options);
    std::thread::scope(|scope| {
        for (number, step) in STEPS.iter().enumerate() {
            let world = &world;
            scope.spawn(move || {
                let (mut chance, mut kept) = (Chance::new(seed * 100 + number as u64), Vec::new());
                while !world.stop.load(Ordering::Relaxed) {
                    if let Err(error) = step(world, &mut chance, &mut kept) {
                        assert!(by_close && error.kind() == ErrorKind::Closed, "thread {number}: {error:?}");
                        break;
                    }
                }
            });
        }
        std::thread::sleep(time);
        if by_close {
            world.space.close().unwrap();
        } else {
            world.stop.store(true, Ordering::Relaxed);
        }
    });
    println!("{} operations, {} reads", world.operations.load(Ordering::Relaxed), world.reads.load(Ordering::Relaxed));
    let World { space, files, tracked, pair, .. } = world;
    drop((space, files, pair));
    let space = FlexSpace::open_with(fs, path, options).unwrap();
    assert_eq!(space.stats().unwrap().log_bytes, 0, "it was closed with a checkpoint");
    for (which, tracked) in tracked.iter().enumerate() {
        let file = space.open_file(format!("w{which}").as_bytes()).unwrap();
        let found = read_all(|at, buf| file.read(at, buf), 3 * MAX_LEN).unwrap();
        assert!(found == *tracked.latest(), "file {which} came back other than it was");
    }
    sound(&space);
    space.close().unwrap();
}

fn limit_seconds() -> u64 {
    if long_run() { 300 } else { 60 }
}

#[test]
fn close_while_everything_goes_on_in_memory() {
    let fs = Arc::new(MemFileSystem::new());
    within(limit_seconds(), || everything_at_once(fs, Path::new("/space"), &options(), true, 1));
}

#[test]
fn the_last_handle_goes_without_a_close_in_memory() {
    let fs = Arc::new(MemFileSystem::new());
    within(limit_seconds(), || everything_at_once(fs, Path::new("/space"), &options(), false, 2));
}

#[test]
fn everything_goes_on_without_a_background_thread() {
    let fs = Arc::new(MemFileSystem::new());
    let options = SpaceOptions { background: false, ..options() };
    within(limit_seconds(), || everything_at_once(fs, Path::new("/space"), &options, true, 3));
}

#[test]
fn close_while_everything_goes_on_on_disk() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("threads-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    within(limit_seconds(), || everything_at_once(Arc::new(OsFileSystem), &path, &options(), true, 4));
    std::fs::remove_dir_all(path).unwrap();
}
