//! Operations on the files of a space in memory, against one `Vec` per file: with syncs, checkpoints, collection, groups and
//! snapshots, ends of every kind (close, the death of the process, a crash of the machine) and opening again.
#![no_main]

use arbitrary::Arbitrary;
use flex_core::ErrorKind;
use flex_core::file::{FileSnapshot, FlexFile, FlexSpace, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::mem::{CrashKind, MemFileSystem};
use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Arc;

const FILES: usize = 2;
const MAX_LEN: usize = 1 << 16;

#[derive(Arbitrary, Debug)]
enum Op {
    Write { file: bool, at: u16, len: u16, byte: u8 },
    Insert { file: bool, at: u16, len: u16, byte: u8 },
    Update { file: bool, at: u16, old: u16, len: u16, byte: u8 },
    Collapse { file: bool, at: u16, len: u16 },
    Punch { file: bool, at: u16, len: u16 },
    Truncate { file: bool, size: u16 },
    Group { at: u16, len: u16, byte: u8, commits: bool },
    Defrag { file: bool, at: u16, len: u16 },
    Recreate { file: bool },
    Snapshot { file: bool },
    Compare,
    Flush,
    Sync,
    Checkpoint,
    Gc,
    Check,
    Close,
    Kill,
    Crash { seed: u8, kind: u8 },
}

type Model = [Vec<u8>; FILES];

struct World {
    fs: MemFileSystem,
    space: FlexSpace,
    files: Vec<FlexFile>,
    model: Model,
    /// The states since the last sync, which a crash may bring back; the first one is durable.
    past: Vec<Model>,
    kept: Vec<(FileSnapshot, Vec<u8>)>,
}

fn name(file: usize) -> [u8; 1] {
    [b'a' + file as u8]
}

fn open(fs: &MemFileSystem) -> FlexSpace {
    let options = SpaceOptions { background: false, ..SpaceOptions::default() };
    let fs: Arc<dyn FileSystem> = Arc::new(fs.clone());
    FlexSpace::open_with(fs, Path::new("/space"), &options).unwrap()
}

fn bytes_of(file: &FlexFile) -> Vec<u8> {
    let mut bytes = vec![0; 2 * MAX_LEN];
    let len = file.read(0, &mut bytes).unwrap();
    bytes.truncate(len);
    bytes
}

impl World {
    fn new() -> World {
        let fs = MemFileSystem::new();
        let space = open(&fs);
        let files = (0..FILES).map(|file| space.create_file(&name(file)).unwrap()).collect();
        space.sync().unwrap();
        World { fs, space, files, model: Model::default(), past: vec![Model::default()], kept: Vec::new() }
    }

    /// Where in the model: anywhere up to its end.
    fn place(&self, file: usize, at: u16, len: u16) -> (usize, usize) {
        let at = at as usize % (self.model[file].len() + 1);
        (at, (len as usize).min(self.model[file].len() - at))
    }

    fn reopen(&mut self, fs: MemFileSystem) {
        self.kept.clear();
        self.files.clear();
        self.space = open(&fs);
        self.files = (0..FILES).map(|file| self.space.open_file(&name(file)).unwrap()).collect();
        self.fs = fs;
    }

    fn edit(&mut self, file: usize, change: impl FnOnce(&FlexFile, &mut Vec<u8>)) {
        change(&self.files[file], &mut self.model[file]);
        self.past.push(self.model.clone());
    }

    fn durable(&mut self) {
        self.past = vec![self.model.clone()];
    }

    fn compare(&self) {
        for (file, model) in self.files.iter().zip(&self.model) {
            assert!(bytes_of(file) == *model);
        }
        for (snapshot, model) in &self.kept {
            let mut bytes = vec![0; model.len() + 1];
            assert_eq!(snapshot.read(0, &mut bytes).unwrap(), model.len());
            assert!(bytes[..model.len()] == model[..], "a snapshot changed");
        }
    }

    fn edits(&mut self, op: &Op) {
        match *op {
            Op::Write { file, at, len, byte } => {
                let data = vec![byte; len as usize % 5000];
                self.edit(file.into(), |file, model| {
                    file.write(at.into(), &data).unwrap();
                    if !data.is_empty() {
                        model.resize(model.len().max(at as usize + data.len()), 0);
                        model[at as usize..][..data.len()].copy_from_slice(&data);
                    }
                });
            }
            Op::Insert { file, at, len, byte } | Op::Update { file, at, len, byte, old: 0 } => {
                let ((at, _), data) = (self.place(file.into(), at, 0), vec![byte; len as usize % 5000]);
                if self.model[usize::from(file)].len() < MAX_LEN {
                    self.edit(file.into(), |file, model| {
                        file.insert(at as u64, &data).unwrap();
                        model.splice(at..at, data);
                    });
                }
            }
            Op::Update { file, at, old, len, byte } => {
                let ((at, old), data) = (self.place(file.into(), at, old), vec![byte; len as usize % 5000]);
                if self.model[usize::from(file)].len() < MAX_LEN {
                    self.edit(file.into(), |file, model| {
                        file.update(at as u64, old as u64, &data).unwrap();
                        model.splice(at..at + old, data);
                    });
                }
            }
            Op::Collapse { file, at, len } => {
                let (at, len) = self.place(file.into(), at, len);
                self.edit(file.into(), |file, model| {
                    file.collapse(at as u64, len as u64).unwrap();
                    model.drain(at..at + len);
                });
            }
            Op::Punch { file, at, len } => {
                let (at, len) = self.place(file.into(), at, len);
                self.edit(file.into(), |file, model| {
                    file.punch_hole(at as u64, len as u64).unwrap();
                    model[at..at + len].fill(0);
                });
            }
            Op::Truncate { file, size } => self.edit(file.into(), |file, model| {
                file.truncate(size.into()).unwrap();
                model.resize(size.into(), 0);
            }),
            Op::Group { at, len, byte, commits } => self.group(at, len, byte, commits),
            _ => self.ends(op),
        }
    }

    fn group(&mut self, at: u16, len: u16, byte: u8, commits: bool) {
        let data = vec![byte; len as usize % 3000];
        let mut next = self.model.clone();
        let mut group = self.space.group(&self.files.iter().collect::<Vec<_>>()).unwrap();
        for (file, model) in self.files.iter().zip(&mut next) {
            let at = at as usize % (model.len() + 1);
            if model.len() < MAX_LEN {
                group.insert(file, at as u64, &data).unwrap();
                model.splice(at..at, data.iter().copied());
            }
            let half = model.len() / 2;
            group.collapse(file, 0, half as u64).unwrap();
            model.drain(..half);
            assert_eq!(group.size(file).unwrap(), model.len() as u64);
        }
        if commits {
            group.commit().unwrap();
            self.model = next;
            self.past.push(self.model.clone());
        }
    }

    fn ends(&mut self, op: &Op) {
        match *op {
            Op::Recreate { file } => {
                let file = usize::from(file);
                // One operation each: a crash may come between, and then the file is missing. So both are made durable.
                self.space.remove_file(&name(file)).unwrap();
                assert_eq!(self.files[file].size().unwrap_err().kind(), ErrorKind::NotFound);
                self.files[file] = self.space.create_file(&name(file)).unwrap();
                self.model[file].clear();
                self.space.sync().unwrap();
                self.durable();
            }
            Op::Defrag { file, at, len } => drop(self.files[usize::from(file)].defrag(at.into(), len.into()).unwrap()),
            Op::Snapshot { file } if self.kept.len() < 4 => {
                let file = usize::from(file);
                self.kept.push((self.files[file].snapshot().unwrap(), self.model[file].clone()));
            }
            Op::Snapshot { .. } => self.kept.truncate(1),
            Op::Flush => self.space.flush().unwrap(),
            Op::Sync => self.space.sync().unwrap(),
            Op::Checkpoint => self.space.checkpoint().unwrap(),
            Op::Gc => drop(self.space.gc().unwrap()),
            Op::Check => {
                let report = self.space.check(&mut |_| true).unwrap();
                assert!(report.problems.is_empty(), "{:?}", report.problems);
            }
            Op::Close => {
                self.space.close().unwrap();
                self.durable();
                self.reopen(self.fs.clone());
            }
            Op::Kill => {
                self.space.flush().unwrap();
                let fs = self.fs.deep_copy();
                self.reopen(fs);
            }
            Op::Crash { seed, kind } => {
                let kind = CrashKind::ALL[kind as usize % CrashKind::ALL.len()];
                let fs = self.fs.crash_image(seed.into(), kind);
                self.reopen(fs);
                let found = [bytes_of(&self.files[0]), bytes_of(&self.files[1])];
                assert!(
                    self.past.contains(&found),
                    "a crash brought back a state that never was, or lost a synced one"
                );
                self.model = found;
                self.space.sync().unwrap();
                self.durable();
            }
            _ => self.compare(),
        }
        if matches!(op, Op::Sync | Op::Checkpoint) {
            self.durable();
        }
    }
}

fuzz_target!(|ops: Vec<Op>| {
    let mut world = World::new();
    for op in ops.iter().take(150) {
        world.edits(op);
    }
    world.compare();
    let report = world.space.check(&mut |_| true).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
});
