//! Crash images against their definition (rules 1 to 4 in `io/mem/crash.rs`), by a model that shares no code with them.

use std::collections::BTreeSet;
use std::io::{ErrorKind, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use flex_core::io::mem::{CrashKind, MemFileSystem};
use flex_core::io::{File, FileSystem, LockMode, OpenMode, transfer};
use proptest::prelude::*;

const SECTOR: usize = 512;
const SEEDS: u64 = 12;

#[derive(Clone, Debug)]
enum Op {
    Write(usize, usize),
    Punch(usize, usize),
    SetLen(usize),
    Reserve(usize, usize),
    Sync,
}

fn ops(with_lengths: bool) -> impl Strategy<Value = Vec<Op>> {
    let range = || (0usize..9000, prop_oneof![1usize..40, 1usize..1500, Just(512)]);
    let rare = u32::from(with_lengths);
    let op = prop_oneof![
        6 => range().prop_map(|(offset, len)| Op::Write(offset, len)),
        2 => (0usize..18).prop_map(|sector| Op::Write(sector * SECTOR, SECTOR)),
        1 => range().prop_map(|(offset, len)| Op::Punch(offset, len)),
        rare => (0usize..10_000).prop_map(Op::SetLen),
        rare => range().prop_map(|(offset, len)| Op::Reserve(offset, len)),
        1 => Just(Op::Sync),
    ];
    prop::collection::vec(op, 1..24)
}

/// A file as bytes that never end (zeros), and a length; all states since the last sync, the durable one first.
struct Model {
    states: Vec<State>,
}

#[derive(Clone)]
struct State {
    bytes: Vec<u8>,
    len: usize,
    /// What the change that led here wrote or punched; nothing for changes of length.
    wrote: std::ops::Range<usize>,
    is_write: bool,
}

const ROOM: usize = 12_000;

impl Model {
    fn new() -> Model {
        Model { states: vec![State { bytes: vec![0; ROOM], len: 0, wrote: 0..0, is_write: false }] }
    }

    fn apply(&mut self, op: &Op, fill: u8) {
        let mut state = self.live().clone();
        state.wrote = 0..0;
        state.is_write = false;
        match *op {
            Op::Write(offset, len) => {
                state.bytes[offset..offset + len].fill(fill);
                state.len = state.len.max(offset + len);
                state.wrote = offset..offset + len;
                state.is_write = true;
            }
            Op::Punch(offset, len) => {
                state.bytes[offset..offset + len].fill(0);
                state.wrote = offset..offset + len;
            }
            Op::SetLen(len) => {
                state.bytes[len..].fill(0);
                state.len = len;
            }
            Op::Reserve(offset, len) => state.len = state.len.max(offset + len),
            Op::Sync => {
                state.wrote = 0..0;
                self.states.clear();
            }
        }
        self.states.push(state);
    }

    fn live(&self) -> &State {
        self.states.last().unwrap()
    }

    fn durable(&self) -> &State {
        &self.states[0]
    }
}

fn apply(file: &dyn File, op: &Op, fill: u8) {
    match *op {
        Op::Write(offset, len) => {
            let written = file.write_at(&[IoSlice::new(&vec![fill; len])], offset as u64).unwrap();
            assert_eq!(written, len);
        }
        Op::Punch(offset, len) => file.punch_hole(offset as u64, len as u64).unwrap(),
        Op::SetLen(len) => file.set_len(len as u64).unwrap(),
        Op::Reserve(offset, len) => file.reserve(offset as u64, len as u64).unwrap(),
        Op::Sync => file.sync_data().unwrap(),
    }
}

fn name() -> &'static Path {
    Path::new("/file")
}

/// Runs `ops`; every write has a byte of its own, so that its traces can be told apart.
fn run(ops: &[Op]) -> (MemFileSystem, Model) {
    let (fs, mut model) = (MemFileSystem::new(), Model::new());
    let file = fs.open(name(), OpenMode::CreateNew).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    for (number, op) in ops.iter().enumerate() {
        apply(&*file, op, number as u8 + 1);
        model.apply(op, number as u8 + 1);
    }
    (fs, model)
}

fn contents(fs: &MemFileSystem, path: &Path) -> Vec<u8> {
    let file = fs.open(path, OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    transfer::read_exact_at(&*file, &mut bytes, 0).unwrap();
    bytes
}

fn image(fs: &MemFileSystem, seed: u64, kind: CrashKind) -> Vec<u8> {
    contents(&fs.crash_image(seed, kind), name())
}

/// Every state that a sector may have: after each prefix of the writes and punches that touch it.
fn sector_states(model: &Model, sector: usize) -> BTreeSet<Vec<u8>> {
    let range = sector * SECTOR..(sector + 1) * SECTOR;
    let touches = |state: &&State| state.wrote.start < range.end && range.start < state.wrote.end;
    let mut states: BTreeSet<Vec<u8>> =
        model.states.iter().skip(1).filter(touches).map(|state| state.bytes[range.clone()].to_vec()).collect();
    states.insert(model.durable().bytes[range.clone()].to_vec());
    states
}

proptest! {
    #[test]
    fn fixed_kinds(ops in ops(true)) {
        let (fs, model) = run(&ops);
        let (durable, live) = (model.durable(), model.live());
        prop_assert!(image(&fs, 1, CrashKind::SyncedOnly) == durable.bytes[..durable.len]);
        prop_assert!(image(&fs, 1, CrashKind::AllKept) == live.bytes[..live.len]);
        prop_assert!(image(&fs, 1, CrashKind::LostNames) == live.bytes[..live.len]);
        let without_length = image(&fs, 1, CrashKind::LostLength);
        prop_assert_eq!(without_length.len(), durable.len);
    }

    #[test]
    fn lost_length_keeps_the_bytes(ops in ops(false)) {
        let (fs, model) = run(&ops);
        let image = image(&fs, 1, CrashKind::LostLength);
        prop_assert!(image == model.live().bytes[..model.durable().len]);
    }

    /// Rules 2 and 3, exactly.
    #[test]
    fn random_sectors_are_prefixes(ops in ops(false)) {
        let (fs, model) = run(&ops);
        for seed in 0..SEEDS {
            let image = image(&fs, seed, CrashKind::RandomSectors);
            prop_assert!(model.states.iter().any(|state| state.len == image.len()), "length {}", image.len());
            for (sector, bytes) in image.chunks(SECTOR).enumerate() {
                let known = sector_states(&model, sector).iter().any(|state| state[..bytes.len()] == *bytes);
                prop_assert!(known, "seed {seed}, sector {sector}");
            }
        }
    }

    /// With cuts between: bytes come from some state, and untouched sectors are as they were.
    #[test]
    fn random_sectors_with_cuts(ops in ops(true)) {
        let (fs, model) = run(&ops);
        let first_cut = model.states.iter().map(|state| state.len).min().unwrap();
        for seed in 0..SEEDS {
            let image = image(&fs, seed, CrashKind::RandomSectors);
            prop_assert!(model.states.iter().any(|state| state.len == image.len()), "length {}", image.len());
            for (at, byte) in image.iter().enumerate() {
                let once = model.states.iter().any(|state| state.bytes[at] == *byte);
                prop_assert!(*byte == 0 || once, "seed {seed}, byte {at} is {byte}");
                let sector = at / SECTOR * SECTOR..(at / SECTOR + 1) * SECTOR;
                let touched = |state: &State| state.wrote.start < sector.end && sector.start < state.wrote.end;
                if at < first_cut && !model.states[1..].iter().any(touched) {
                    prop_assert_eq!(*byte, model.durable().bytes[at], "seed {}, byte {}", seed, at);
                }
            }
        }
    }

    /// Everything but the last write, of which at least one sector and at most all others are missing.
    #[test]
    fn torn_last(ops in ops(false)) {
        let (fs, model) = run(&ops);
        let Some(last) = model.states.iter().skip(1).rposition(|state| state.is_write).map(|index| index + 1) else {
            prop_assert!(image(&fs, 1, CrashKind::TornLast) == model.live().bytes[..model.live().len]);
            return Ok(());
        };
        let torn = model.states[last].wrote.clone();
        // The states with and without it; punches behind it apply to both.
        let (with, mut without) = (model.live(), model.states[last - 1].clone());
        for state in &model.states[last + 1..] {
            without.bytes[state.wrote.clone()].fill(0);
        }
        for seed in 0..SEEDS {
            let image = image(&fs, seed, CrashKind::TornLast);
            prop_assert!(image.len() >= without.len && image.len() <= with.len, "length {}", image.len());
            let mut lost = image.len() < with.len;
            for (sector, bytes) in image.chunks(SECTOR).enumerate() {
                let range = sector * SECTOR..sector * SECTOR + bytes.len();
                let old = *bytes == without.bytes[range.clone()];
                prop_assert!(old || *bytes == with.bytes[range.clone()], "seed {seed}, sector {sector}");
                lost |= old && range.start < torn.end && torn.start < range.end;
            }
            prop_assert!(lost, "seed {seed}: nothing is missing");
        }
    }

    /// An image is a file system of its own, all durable, and the same for the same seed.
    #[test]
    fn images_are_durable_and_repeatable(ops in ops(true), seed: u64) {
        let (fs, model) = run(&ops);
        let live = model.live();
        for kind in CrashKind::ALL {
            let crashed = fs.crash_image(seed, kind);
            let bytes = contents(&crashed, name());
            prop_assert!(bytes == image(&fs, seed, kind));
            for again in CrashKind::ALL {
                prop_assert!(bytes == image(&crashed, seed ^ 1, again), "{kind:?}, {again:?}");
            }
            let file = crashed.open(name(), OpenMode::ReadWrite).unwrap();
            file.write_at(&[IoSlice::new(&[0xFF; 9000])], 0).unwrap();
        }
        prop_assert!(contents(&fs, name()) == live.bytes[..live.len]);
    }

    /// A copy goes on as the original would: what is pending stays pending.
    #[test]
    fn deep_copies_keep_what_is_pending(ops in ops(true), more in ops(true), seed: u64) {
        let (fs, mut model) = run(&ops);
        let copy = fs.deep_copy();
        for kind in CrashKind::ALL {
            prop_assert!(image(&fs, seed, kind) == image(&copy, seed, kind), "{kind:?}");
        }
        let before = contents(&fs, name());
        let file = copy.open(name(), OpenMode::ReadWrite).unwrap();
        for op in &more {
            apply(&*file, op, 0xFF);
            model.apply(op, 0xFF);
        }
        let (durable, live) = (model.durable(), model.live());
        prop_assert!(image(&copy, seed, CrashKind::SyncedOnly) == durable.bytes[..durable.len]);
        prop_assert!(image(&copy, seed, CrashKind::AllKept) == live.bytes[..live.len]);
        prop_assert!(contents(&fs, name()) == before);
    }
}

/// The random kind reaches all four outcomes of two unsynced sectors, and both lengths.
#[test]
fn random_sectors_reach_every_outcome() {
    let (fs, _) = run(&[Op::Write(0, 1024), Op::Sync, Op::Write(0, 1024), Op::SetLen(2000)]);
    let outcomes: BTreeSet<(u8, u8, usize)> = (0..200)
        .map(|seed| image(&fs, seed, CrashKind::RandomSectors))
        .map(|image| (image[0], image[512], image.len()))
        .collect();
    assert_eq!(outcomes.len(), 8, "{outcomes:?}");
}

/// Punches are lost or kept by the sector as writes are, and one behind a write is never kept without it.
#[test]
fn random_punches_reach_every_outcome() {
    let (fs, _) = run(&[Op::Write(0, 1536), Op::Sync, Op::Write(0, 1024), Op::Punch(100, 1400)]);
    let outcomes: BTreeSet<(u8, u8, u8, u8, u8)> = (0..400)
        .map(|seed| image(&fs, seed, CrashKind::RandomSectors))
        .map(|image| (image[99], image[100], image[512], image[1499], image[1500]))
        .collect();
    let heads = [(1, 1), (3, 3), (3, 0)];
    let expected = heads.into_iter().flat_map(|(a, b)| [1, 3, 0].map(|c| [1, 0].map(|d| (a, b, c, d, 1)))).flatten();
    assert_eq!(outcomes, expected.collect());
}

/// Of two files, the last write of all is torn, not the last of each.
#[test]
fn torn_last_is_one_write_of_the_file_system() {
    let fs = MemFileSystem::new();
    let files = ["a", "b"].map(|name| fs.open(Path::new(name), OpenMode::CreateNew).unwrap());
    files[1].write_at(&[IoSlice::new(&[1; 2048])], 0).unwrap();
    files[0].write_at(&[IoSlice::new(&[2; 2048])], 0).unwrap();
    for seed in 0..SEEDS {
        let image = fs.crash_image(seed, CrashKind::TornLast);
        assert_eq!(contents(&image, Path::new("b")), [1; 2048]);
        assert_ne!(contents(&image, Path::new("a")), [2; 2048]);
    }
}

/// Bytes of a cut that was lost come back; of one that was kept they don't, though the file grows again.
#[test]
fn a_cut_happens_with_its_length() {
    let (fs, _) = run(&[Op::Write(0, 1000), Op::Sync, Op::SetLen(100)]);
    assert_eq!(image(&fs, 1, CrashKind::LostLength), [1; 1000]);
    for seed in 0..SEEDS {
        let image = image(&fs, seed, CrashKind::RandomSectors);
        assert!(image == [1; 1000] || image == [1; 100], "seed {seed}");
    }
    let (fs, _) = run(&[Op::Write(0, 1000), Op::Sync, Op::SetLen(100), Op::SetLen(1000)]);
    let mut regrown = [1; 1000];
    regrown[100..].fill(0);
    for seed in 0..SEEDS {
        let image = image(&fs, seed, CrashKind::RandomSectors);
        assert!(image == [1; 1000] || image == [1; 100] || image == regrown, "seed {seed}");
    }
}

/// Capacity and use carry over; what a lost file occupied is free.
#[test]
fn images_count_their_own_space() {
    let fs = MemFileSystem::new();
    fs.set_capacity(16384);
    fs.create_dir(Path::new("lost")).unwrap();
    for path in ["kept", "lost/file"] {
        let file = fs.open(Path::new(path), OpenMode::CreateNew).unwrap();
        file.reserve(0, 8192).unwrap();
        file.sync_data().unwrap();
        if path == "kept" {
            // Also makes `lost` durable, but not what will be in it.
            fs.sync_dir(Path::new("/")).unwrap();
        }
    }
    let image = fs.crash_image(1, CrashKind::SyncedOnly);
    assert_eq!((fs.used(), image.used()), (16384, 8192));
    let file = image.open(Path::new("kept"), OpenMode::ReadWrite).unwrap();
    file.reserve(0, 16384).unwrap();
    assert_eq!(file.reserve(0, 16385).unwrap_err().raw_os_error(), Some(libc::ENOSPC));
}

fn names(fs: &MemFileSystem, dir: &str) -> Vec<String> {
    let mut names: Vec<String> =
        fs.list_dir(Path::new(dir)).unwrap().iter().map(|path| path.display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_directory_is_lost_without_its_parents_sync() {
    let fs = MemFileSystem::new();
    fs.create_dir(Path::new("dir")).unwrap();
    let file = fs.open(Path::new("dir/file"), OpenMode::CreateNew).unwrap();
    file.reserve(0, 4096).unwrap();
    file.sync_data().unwrap();
    fs.sync_dir(Path::new("dir")).unwrap();
    let image = fs.crash_image(1, CrashKind::SyncedOnly);
    assert_eq!((names(&image, "/"), image.used()), (vec![], 0));
    assert_eq!(image.open(Path::new("dir/file"), OpenMode::ReadOnly).err().unwrap().kind(), ErrorKind::NotFound);
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(names(&fs.crash_image(1, CrashKind::LostNames), "dir"), ["file"]);
}

/// Rule 4: prefixes of the changes, a rename whole or not at all, and a removed file's durable name still leads to it.
#[test]
fn names_are_prefixes() {
    let fs = MemFileSystem::new();
    let create = |name: &str, byte: u8| -> Arc<dyn File> {
        let file = fs.open(Path::new(name), OpenMode::CreateNew).unwrap();
        file.write_at(&[IoSlice::new(&[byte])], 0).unwrap();
        file.sync_data().unwrap();
        file
    };
    create("current", 1);
    fs.sync_dir(Path::new("/")).unwrap();
    create("new", 2);
    fs.rename(Path::new("new"), Path::new("current")).unwrap();
    fs.remove_file(Path::new("current")).unwrap();
    let seen: BTreeSet<Vec<(String, u8)>> = (0..100)
        .map(|seed| fs.crash_image(seed, CrashKind::RandomSectors))
        .map(|image| {
            names(&image, "/")
                .into_iter()
                .map(|name| (name.clone(), contents(&image, &PathBuf::from(name))[0]))
                .collect()
        })
        .collect();
    let entry = |name: &str, byte| (name.to_owned(), byte);
    let expected =
        [vec![], vec![entry("current", 1)], vec![entry("current", 1), entry("new", 2)], vec![entry("current", 2)]];
    assert_eq!(seen, BTreeSet::from(expected));
    assert_eq!(names(&fs.crash_image(1, CrashKind::LostNames), "/"), ["current"]);
    assert_eq!(names(&fs.crash_image(1, CrashKind::LostLength), "/"), Vec::<String>::new());
}

#[test]
fn locks_exclude_and_do_not_survive() {
    let fs = MemFileSystem::new();
    let path = Path::new("/LOCK");
    drop(fs.lock(path, LockMode::Shared).unwrap());
    assert_eq!(names(&fs, "/"), Vec::<String>::new());
    let writer = fs.lock(path, LockMode::Exclusive).unwrap();
    assert_eq!(names(&fs, "/"), ["LOCK"]);
    for (path, mode) in [(path, LockMode::Exclusive), (Path::new("LOCK"), LockMode::Shared)] {
        let error = fs.lock(path, mode).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(error.to_string().contains(&std::process::id().to_string()));
    }
    for copy in [fs.deep_copy(), fs.crash_image(1, CrashKind::AllKept)] {
        drop(copy.lock(path, LockMode::Exclusive).unwrap());
    }
    drop(writer);
    let readers = [LockMode::Shared; 2].map(|mode| fs.lock(path, mode).unwrap());
    assert!(fs.lock(path, LockMode::Exclusive).is_err());
    drop(readers);
    drop(fs.lock(path, LockMode::Exclusive).unwrap());
}
