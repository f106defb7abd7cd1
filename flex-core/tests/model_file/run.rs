//! Running a list of operations on a space in memory and on its model, side by side.
//!
//! All states since the last sync are kept: after a kill the space must be in one of those since the last flush, after
//! a crash in one of those since the last sync. Of several equal ones any will do.

use crate::bad;
use crate::compare;
use crate::model::{Action, Bytes, Model};
use crate::ops::{Edit, Op, crash_kind, name};
use flex_core::ErrorKind;
use flex_core::address::Tag;
use flex_core::file::{Durability, FileSnapshot, FlexFile, FlexSpace, Group, SpaceOptions, SpaceSnapshot};
use flex_core::io::FileSystem;
use flex_core::io::mem::MemFileSystem;
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

/// How the space is set up.
#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub segment: u32,
    pub durability: Durability,
    pub background: bool,
}

enum Held {
    File(FileSnapshot, Arc<Bytes>),
    Space(SpaceSnapshot, Model),
}

/// A run under way.
pub struct Run {
    setup: Setup,
    fs: MemFileSystem,
    space: FlexSpace,
    /// The states since the last sync; the last one is the present.
    states: Vec<Model>,
    /// The first of them that a kill may leave.
    flushed: usize,
    held: Vec<Held>,
    removed: Option<FlexFile>,
}

fn open(fs: &MemFileSystem, setup: &Setup, read_only: bool) -> FlexSpace {
    let options = SpaceOptions {
        segment_size_bytes: setup.segment,
        durability: setup.durability,
        background: setup.background,
        read_only,
        ..SpaceOptions::default()
    };
    FlexSpace::open_with(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new("/space"), &options).unwrap()
}

/// Runs the list, comparing all the way, and once more after a last reopening.
pub fn run(setup: Setup, ops: &[Op]) {
    let fs = MemFileSystem::new();
    let space = open(&fs, &setup, false);
    let states = vec![Model::default()];
    let mut run = Run { setup, fs, space, states, flushed: 0, held: Vec::new(), removed: None };
    for (index, op) in ops.iter().enumerate() {
        run.step(op);
        if index % 8 == 7 {
            compare::space(&run.space, run.model());
            compare::sound(&run.space);
        }
    }
    compare::space(&run.space, run.model());
    run.drop_snapshots();
    compare::sound(&run.space);
    run.close_and_reopen();
    run.space.close().unwrap();
}

impl Run {
    fn model(&self) -> &Model {
        &self.states[self.states.len() - 1]
    }

    /// An operation was made.
    fn advance(&mut self, change: impl FnOnce(&mut Model)) {
        let mut next = self.model().clone();
        change(&mut next);
        self.states.push(next);
        if self.setup.durability == Durability::EveryCommit {
            self.note_synced();
        }
    }

    fn note_flushed(&mut self) {
        self.flushed = self.states.len() - 1;
    }

    fn note_synced(&mut self) {
        self.states.drain(..self.states.len() - 1);
        self.flushed = 0;
    }

    /// One of the files that there are.
    fn pick(&self, index: u8) -> Option<(Vec<u8>, FlexFile)> {
        let names: Vec<&Vec<u8>> = self.model().files.keys().collect();
        let name = names.get(index as usize % names.len().max(1))?.to_vec();
        let file = self.space.open_file(&name).unwrap();
        Some((name, file))
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Create(index) => self.create(&name(*index)),
            Op::Rename(from, to) => self.rename(&name(*from), &name(*to)),
            Op::Remove(index) => self.remove(*index),
            Op::Edit(index, edit) => self.edit(*index, edit),
            Op::Group { files, edits, word, commit } => self.group(files, edits, *word, *commit),
            Op::Query(index, at, len) => {
                if let Some((name, file)) = self.pick(*index) {
                    let bytes = &self.model().files[&name];
                    compare::place(&file, bytes, *at as usize % (bytes.len() + 3), *len as usize);
                }
            }
            Op::Bad(index) => bad::arguments(&self.space, self.model(), self.pick(*index), self.removed.as_ref()),
            Op::SnapshotFile(_) | Op::SnapshotSpace | Op::DropSnapshot(_) => self.snapshot(op),
            Op::Flush => {
                self.space.flush().unwrap();
                self.note_flushed();
            }
            Op::Sync => {
                self.space.sync().unwrap();
                self.note_synced();
            }
            Op::Checkpoint => {
                self.space.checkpoint().unwrap();
                self.note_synced();
            }
            Op::Gc => drop(self.space.gc().unwrap()),
            Op::Defrag(index, at, len) => {
                if let Some((name, file)) = self.pick(*index) {
                    let size = self.model().files[&name].len();
                    file.defrag(*at as u64 % (size as u64 + 5), *len as u64).unwrap();
                }
            }
            Op::Close => self.close_and_reopen(),
            Op::Kill { flush } => {
                if *flush {
                    self.space.flush().unwrap();
                    self.note_flushed();
                }
                let found = self.die(self.fs.deep_copy(), self.flushed);
                // In the kernel, not on the disk: a crash after this may still go back to any state since the last sync.
                self.states.truncate(found + 1);
                self.flushed = found;
            }
            Op::Crash(seed, kind) => {
                let found = self.die(self.fs.crash_image(*seed, crash_kind(*kind)), 0);
                self.states = vec![self.states[found].clone()];
                self.flushed = 0;
            }
            Op::ReadOnly => self.read_only(),
        }
    }

    fn create(&mut self, name: &[u8]) {
        let exists = self.model().files.contains_key(name);
        match self.space.create_file(name) {
            Ok(file) => {
                assert!(!exists && file.size().unwrap() == 0);
                self.advance(|model| drop(model.files.insert(name.to_vec(), Arc::default())));
            }
            Err(error) => assert!(exists && error.kind() == ErrorKind::AlreadyExists, "{error:?}"),
        }
    }

    fn rename(&mut self, from: &[u8], to: &[u8]) {
        let (has_from, has_to) = (self.model().files.contains_key(from), self.model().files.contains_key(to));
        let result = self.space.rename_file(from, to).map_err(|e| e.kind());
        let expected = match (has_from, has_to) {
            (false, _) => Err(ErrorKind::NotFound),
            (true, true) if from != to => Err(ErrorKind::AlreadyExists),
            _ => Ok(()),
        };
        assert_eq!(result, expected);
        if result.is_ok() && from != to {
            self.advance(|model| {
                if let Some(bytes) = model.files.remove(from) {
                    model.files.insert(to.to_vec(), bytes);
                }
            });
        }
    }

    fn remove(&mut self, index: u8) {
        let Some((name, file)) = self.pick(index) else { return };
        self.space.remove_file(&name).unwrap();
        self.removed = Some(file);
        self.advance(|model| drop(model.files.remove(&name)));
    }

    fn edit(&mut self, index: u8, edit: &Edit) {
        let Some((name, file)) = self.pick(index) else { return self.create(&name(index)) };
        let action = edit.resolve(&self.model().files[&name]);
        apply_to_file(&file, &action, matches!(edit, Edit::Append { .. }));
        self.advance(|model| model.apply(&name, &action));
        assert_eq!(file.size().unwrap(), self.model().files[&name].len() as u64, "size after {action:?}");
    }

    fn group(&mut self, files: &[u8], edits: &[(u8, Edit)], word: Option<u64>, commit: bool) {
        let mut members: Vec<(Vec<u8>, FlexFile)> = files.iter().filter_map(|index| self.pick(*index)).collect();
        members.sort_by(|a, b| a.0.cmp(&b.0));
        members.dedup_by(|a, b| a.0 == b.0);
        if members.is_empty() {
            return;
        }
        let before = self.model().clone();
        let mut after = before.clone();
        let mut group = self.space.group(&members.iter().map(|(_, file)| file).collect::<Vec<_>>()).unwrap();
        for (index, edit) in edits {
            let (name, file) = &members[*index as usize % members.len()];
            let action = edit.resolve(&after.files[name]);
            apply_to_group(&mut group, file, &action);
            after.apply(name, &action);
            compare_group(&group, file, &after.files[name]);
            compare::place(file, &before.files[name], *index as usize % (before.files[name].len() + 1), 50);
        }
        let (_, held) = &members[0];
        assert_eq!(held.write(0, b"x").map_err(|e| e.kind()), Err(ErrorKind::Busy), "a held file is written");
        if let Some(word) = word {
            group.set_commit_word(word);
            after.commit_word = word;
        }
        if commit {
            group.commit().unwrap();
            self.advance(|model| *model = after);
        } else {
            drop(group);
        }
        for (name, file) in &members {
            compare::whole(file, &self.model().files[name]);
        }
    }

    fn snapshot(&mut self, op: &Op) {
        match op {
            Op::SnapshotFile(index) => {
                if let Some((name, file)) = self.pick(*index) {
                    self.held.push(Held::File(file.snapshot().unwrap(), self.model().files[&name].clone()));
                }
            }
            Op::SnapshotSpace => self.held.push(Held::Space(self.space.snapshot().unwrap(), self.model().clone())),
            Op::DropSnapshot(index) if !self.held.is_empty() => {
                let held = self.held.swap_remove(*index as usize % self.held.len());
                held.compare();
            }
            _ => {}
        }
    }

    fn drop_snapshots(&mut self) {
        for held in self.held.drain(..) {
            held.compare();
        }
    }

    fn close_and_reopen(&mut self) {
        for held in &self.held {
            held.compare();
        }
        self.space.close().unwrap();
        assert_eq!(self.space.close().map_err(|e| e.kind()), Err(ErrorKind::Closed));
        for held in self.held.drain(..) {
            held.answers_closed();
        }
        self.removed = None;
        self.note_synced();
        self.space = open(&self.fs, &self.setup, false);
        compare::space(&self.space, self.model());
        compare::sound(&self.space);
    }

    /// Goes on with what a death left, which must be one of the states from `first` on; returns which.
    fn die(&mut self, fs: MemFileSystem, first: usize) -> usize {
        for held in self.held.drain(..) {
            held.compare();
        }
        self.removed = None;
        let read_only = open(&fs.deep_copy(), &self.setup, true);
        let space = open(&fs, &self.setup, false);
        let found = (first..self.states.len()).rev().find(|index| compare::matches(&space, &self.states[*index]));
        let Some(found) = found else {
            let files: Vec<_> = space.list_files().unwrap().into_iter().map(|e| (e.name.len(), e.size)).collect();
            panic!("none of the {} states is left after the death: {files:?}", self.states.len() - first);
        };
        compare::space(&space, &self.states[found]);
        compare::space(&read_only, &self.states[found]);
        compare::sound(&read_only);
        (self.fs, self.space) = (fs, space);
        compare::sound(&self.space);
        found
    }

    fn read_only(&mut self) {
        self.space.flush().unwrap();
        self.note_flushed();
        let space = open(&self.fs.deep_copy(), &self.setup, true);
        compare::space(&space, self.model());
        compare::sound(&space);
        assert_eq!(space.create_file(b"new").map(|_| ()).map_err(|e| e.kind()), Err(ErrorKind::ReadOnly));
        assert_eq!(space.sync().map_err(|e| e.kind()), Err(ErrorKind::ReadOnly));
        space.close().unwrap();
    }
}

impl Held {
    fn compare(&self) {
        match self {
            Held::File(snapshot, bytes) => compare::whole(snapshot, bytes),
            Held::Space(snapshot, model) => {
                let entries = snapshot.list_files();
                assert_eq!(entries.len(), model.files.len());
                for (name, bytes) in &model.files {
                    compare::whole(&snapshot.open_file(name).unwrap(), bytes);
                }
            }
        }
    }

    fn answers_closed(&self) {
        let kind = match self {
            Held::File(snapshot, _) => snapshot.read(0, &mut [0]).map(|_| ()).map_err(|e| e.kind()),
            Held::Space(snapshot, _) => snapshot.open_file(b"a").map(|_| ()).map_err(|e| e.kind()),
        };
        assert_eq!(kind, Err(ErrorKind::Closed));
    }
}

fn apply_to_file(file: &FlexFile, action: &Action, append: bool) {
    match action {
        Action::Write(at, bytes) => {
            let (a, b) = bytes.split_at(bytes.len() / 2);
            file.write_vectored(*at as u64, &[IoSlice::new(a), IoSlice::new(b)]).unwrap();
        }
        Action::Insert(at, bytes) if append => assert_eq!(file.append(bytes).unwrap(), *at as u64),
        Action::Insert(at, bytes) => file.insert(*at as u64, bytes).unwrap(),
        Action::InsertHole(at, len) => file.insert_hole(*at as u64, *len as u64).unwrap(),
        Action::Collapse(at, len) => file.collapse(*at as u64, *len as u64).unwrap(),
        Action::Update(at, old, bytes) => file.update(*at as u64, *old as u64, bytes).unwrap(),
        Action::Truncate(size) => file.truncate(*size as u64).unwrap(),
        Action::Fallocate(at, len) => file.fallocate(*at as u64, *len as u64).unwrap(),
        Action::Punch(at, len) => file.punch_hole(*at as u64, *len as u64).unwrap(),
        Action::SetTag(at, tag) => file.set_tag(*at as u64, Tag(*tag)).unwrap(),
    }
}

fn apply_to_group(group: &mut Group, file: &FlexFile, action: &Action) {
    match action {
        Action::Write(at, bytes) => group.write(file, *at as u64, bytes).unwrap(),
        Action::Insert(at, bytes) => group.insert(file, *at as u64, bytes).unwrap(),
        Action::InsertHole(at, len) => group.insert_hole(file, *at as u64, *len as u64).unwrap(),
        Action::Collapse(at, len) => group.collapse(file, *at as u64, *len as u64).unwrap(),
        Action::Update(at, old, bytes) => group.update(file, *at as u64, *old as u64, bytes).unwrap(),
        Action::Truncate(size) => group.truncate(file, *size as u64).unwrap(),
        Action::Fallocate(at, len) => {
            // A group has no such call; the same by truncation.
            let size = group.size(file).unwrap().max((at + len) as u64);
            group.truncate(file, size).unwrap();
        }
        Action::Punch(at, len) => group.punch_hole(file, *at as u64, *len as u64).unwrap(),
        Action::SetTag(at, tag) => group.set_tag(file, *at as u64, Tag(*tag)).unwrap(),
    }
}

fn compare_group(group: &Group, file: &FlexFile, model: &Bytes) {
    assert_eq!(group.size(file).unwrap(), model.len() as u64);
    let mut found = vec![0; model.len()];
    assert_eq!(group.read(file, 0, &mut found).unwrap(), model.len());
    assert!(found == crate::model::values(model), "a group reads other bytes than it wrote");
    for at in [0, model.len() / 2, model.len().saturating_sub(1)] {
        if at < model.len() {
            assert_eq!(group.tag(file, at as u64).unwrap().0, model[at].tag);
        }
    }
}
