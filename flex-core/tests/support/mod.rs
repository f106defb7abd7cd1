//! What the crash and the fault tests share: a model of a space, operations on both, and a seeded workload.
//!
//! The model keeps a cell (byte and tag) for each byte of each file. [`workload`] makes a list of operations that are
//! valid one after the other, with the state after each; [`run`] makes them on a space and says how far it came.
#![allow(dead_code)] // Each test binary uses a part of it.

use flex_core::address::Tag;
use flex_core::file::{Durability, FlexSpace, SpaceOptions, SpaceSnapshot};
use flex_core::io::FileSystem;
use flex_core::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

/// Where the space lies.
pub const PATH: &str = "/space";

/// Random numbers that depend on the seed alone (splitmix64).
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    /// 0 to `end - 1`; 0 where `end` is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

/// A byte and its tag.
pub type Cell = (u8, u16);

/// A space as it should be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct State {
    pub files: BTreeMap<Vec<u8>, Rc<Vec<Cell>>>,
    pub commit_word: u64,
}

/// A change of one file.
#[derive(Clone, Debug)]
pub enum Edit {
    Insert(usize, Vec<u8>),
    Write(usize, Vec<u8>),
    Update(usize, usize, Vec<u8>),
    Collapse(usize, usize),
    InsertHole(usize, usize),
    Punch(usize, usize),
    Truncate(usize),
    SetTag(usize, u16),
}

/// One call.
#[derive(Clone, Debug)]
pub enum Op {
    Create(Vec<u8>),
    Remove(Vec<u8>),
    Rename(Vec<u8>, Vec<u8>),
    Edit(Vec<u8>, Edit),
    Group(Vec<(Vec<u8>, Edit)>, u64),
    Flush,
    Sync,
    Checkpoint,
    Gc,
    Defrag(Vec<u8>),
    Snapshot,
    DropSnapshot,
    Reopen,
}

impl Edit {
    fn apply_to(&self, cells: &mut Vec<Cell>) {
        let plain = |data: &[u8]| data.iter().map(|byte| (*byte, 0)).collect::<Vec<Cell>>();
        match self {
            Edit::Insert(at, data) => drop(cells.splice(*at..*at, plain(data))),
            Edit::Write(at, data) => {
                if cells.len() < at + data.len() {
                    cells.resize(at + data.len(), (0, 0));
                }
                cells[*at..at + data.len()].iter_mut().zip(data).for_each(|(cell, byte)| cell.0 = *byte);
            }
            Edit::Update(at, len, data) => {
                let mut new = plain(data);
                if let (Some(first), true) = (new.first_mut(), *len > 0) {
                    first.1 = cells[*at].1;
                }
                cells.splice(*at..at + len, new);
            }
            Edit::Collapse(at, len) => drop(cells.drain(*at..at + len)),
            Edit::InsertHole(at, len) => drop(cells.splice(*at..*at, vec![(0, 0); *len])),
            Edit::Punch(at, len) => cells[*at..at + len].iter_mut().for_each(|cell| cell.0 = 0),
            Edit::Truncate(len) => cells.resize(*len, (0, 0)),
            Edit::SetTag(at, tag) => cells[*at].1 = *tag,
        }
    }

    fn on_file(&self, file: &flex_core::file::FlexFile) -> Result<()> {
        match self {
            Edit::Insert(at, data) => file.insert(*at as u64, data),
            Edit::Write(at, data) => file.write(*at as u64, data),
            Edit::Update(at, len, data) => file.update(*at as u64, *len as u64, data),
            Edit::Collapse(at, len) => file.collapse(*at as u64, *len as u64),
            Edit::InsertHole(at, len) => file.insert_hole(*at as u64, *len as u64),
            Edit::Punch(at, len) => file.punch_hole(*at as u64, *len as u64),
            Edit::Truncate(len) => file.truncate(*len as u64),
            Edit::SetTag(at, tag) => file.set_tag(*at as u64, Tag(*tag)),
        }
    }

    fn in_group(&self, group: &mut flex_core::file::Group, file: &flex_core::file::FlexFile) -> Result<()> {
        match self {
            Edit::Insert(at, data) => group.insert(file, *at as u64, data),
            Edit::Write(at, data) => group.write(file, *at as u64, data),
            Edit::Update(at, len, data) => group.update(file, *at as u64, *len as u64, data),
            Edit::Collapse(at, len) => group.collapse(file, *at as u64, *len as u64),
            Edit::InsertHole(at, len) => group.insert_hole(file, *at as u64, *len as u64),
            Edit::Punch(at, len) => group.punch_hole(file, *at as u64, *len as u64),
            Edit::Truncate(len) => group.truncate(file, *len as u64),
            Edit::SetTag(at, tag) => group.set_tag(file, *at as u64, Tag(*tag)),
        }
    }

    fn random(rng: &mut Rng, len: usize) -> Edit {
        let bytes = |rng: &mut Rng| {
            let size = [1, 40, 200, 700, 1500][rng.below(5)];
            let count = 1 + rng.below(size);
            (0..count).map(|_| rng.next() as u8 | 1).collect::<Vec<u8>>()
        };
        let range = |rng: &mut Rng| {
            let at = rng.below(len);
            let most = if rng.below(4) == 0 { len - at } else { (len - at).min(300) };
            (at, rng.below(most + 1))
        };
        if len == 0 {
            return Edit::Insert(0, bytes(rng));
        }
        // What is long shrinks, so that segments come and go.
        if len > 9000 && rng.below(2) == 0 {
            let at = rng.below(len / 2);
            return Edit::Collapse(at, len / 2);
        }
        let (at, count) = range(rng);
        match rng.below(16) {
            0..=5 => Edit::Insert(rng.below(len + 1), bytes(rng)),
            6..=8 => Edit::Write(rng.below(len + 100), bytes(rng)),
            9 => Edit::Update(at, count, if rng.below(5) == 0 { Vec::new() } else { bytes(rng) }),
            10..=11 => Edit::Collapse(at, count),
            12 => Edit::InsertHole(at, count),
            13 => Edit::Punch(at, count),
            14 => Edit::Truncate((len + 50).saturating_sub(rng.below(300))),
            _ => Edit::SetTag(at, rng.below(4) as u16),
        }
    }
}

impl State {
    /// Makes a call on the model.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Create(name) => drop(self.files.insert(name.clone(), Rc::default())),
            Op::Remove(name) => drop(self.files.remove(name)),
            Op::Rename(from, to) => {
                let cells = self.files.remove(from).expect("the model has the file");
                self.files.insert(to.clone(), cells);
            }
            Op::Edit(name, edit) => self.edit(name, edit),
            Op::Group(edits, word) => {
                edits.iter().for_each(|(name, edit)| self.edit(name, edit));
                self.commit_word = *word;
            }
            _ => {}
        }
    }

    fn edit(&mut self, name: &[u8], edit: &Edit) {
        edit.apply_to(Rc::make_mut(self.files.get_mut(name).expect("the model has the file")));
    }

    fn name(&self, rng: &mut Rng) -> Vec<u8> {
        self.files.keys().nth(rng.below(self.files.len())).expect("there is a file").clone()
    }

    /// A valid call.
    pub fn random_op(&self, rng: &mut Rng) -> Op {
        if self.files.is_empty() {
            return Op::Create(b"first".to_vec());
        }
        match rng.below(100) {
            0..=2 if self.files.len() < 5 => Op::Create(format!("file {}", rng.next()).into_bytes()),
            3 if self.files.len() > 1 => Op::Remove(self.name(rng)),
            4 => Op::Rename(self.name(rng), format!("renamed {}", rng.next()).into_bytes()),
            5..=10 => {
                let mut after = self.clone();
                let count = 1 + rng.below(4);
                let mut edits = Vec::new();
                for _ in 0..count {
                    let name = self.name(rng);
                    let edit = Edit::random(rng, after.files[&name].len());
                    after.edit(&name, &edit);
                    edits.push((name, edit));
                }
                Op::Group(edits, rng.next())
            }
            11..=13 => Op::Flush,
            14..=20 => Op::Sync,
            21..=22 => Op::Checkpoint,
            23 => Op::Gc,
            24..=25 => Op::Defrag(self.name(rng)),
            26..=28 => Op::Snapshot,
            29..=30 => Op::DropSnapshot,
            31 => Op::Reopen,
            _ => {
                let name = self.name(rng);
                let len = self.files[&name].len();
                Op::Edit(name, Edit::random(rng, len))
            }
        }
    }
}

/// Operations, and the states before the first and after each of them.
pub fn workload(seed: u64, count: usize) -> (Vec<Op>, Vec<State>) {
    workload_from(State::default(), seed, count)
}

/// A workload on a space that holds something.
pub fn workload_from(state: State, seed: u64, count: usize) -> (Vec<Op>, Vec<State>) {
    let mut rng = Rng(seed);
    let mut states = vec![state];
    let mut ops = Vec::new();
    for _ in 0..count {
        let mut state = states.last().expect("not empty").clone();
        let op = state.random_op(&mut rng);
        state.apply(&op);
        ops.push(op);
        states.push(state);
    }
    (ops, states)
}

/// Options without a background thread, so that runs repeat.
pub fn options(durability: Durability) -> SpaceOptions {
    SpaceOptions { background: false, durability, ..SpaceOptions::default() }
}

/// Opens the space.
pub fn open(fs: &(impl FileSystem + Clone), durability: Durability) -> Result<FlexSpace> {
    FlexSpace::open_with(Arc::new(fs.clone()), Path::new(PATH), &options(durability))
}

/// Makes a call on a space. Not for those that need more than the space.
pub fn apply(space: &FlexSpace, op: &Op) -> Result<()> {
    match op {
        Op::Create(name) => space.create_file(name).map(|_| ()),
        Op::Remove(name) => space.remove_file(name),
        Op::Rename(from, to) => space.rename_file(from, to),
        Op::Edit(name, edit) => edit.on_file(&space.open_file(name)?),
        Op::Group(edits, word) => {
            let mut files = BTreeMap::new();
            for (name, _) in edits {
                files.insert(name.clone(), space.open_file(name)?);
            }
            let mut group = space.group(&files.values().collect::<Vec<_>>())?;
            for (name, edit) in edits {
                edit.in_group(&mut group, &files[name])?;
            }
            group.set_commit_word(*word);
            group.commit()
        }
        Op::Flush => space.flush(),
        Op::Sync => space.sync(),
        Op::Checkpoint => space.checkpoint(),
        Op::Gc => space.gc().map(|_| ()),
        Op::Defrag(name) => space.open_file(name)?.defrag(0, u64::MAX).map(|_| ()),
        Op::Snapshot | Op::DropSnapshot | Op::Reopen => Ok(()),
    }
}

/// How far a run came.
#[derive(Default)]
pub struct Outcome {
    /// Operations that began, by index: the state after one that failed may be there or not.
    pub issued: usize,
    /// Operations that returned.
    pub returned: usize,
    /// Operations that are durable.
    pub durable: usize,
    /// Operations that were handed to the kernel.
    pub flushed: usize,
    /// What ended it.
    pub error: Option<Error>,
}

/// A run of a workload on a file system.
pub struct Runner<'a, F> {
    pub fs: F,
    pub durability: Durability,
    pub states: &'a [State],
    pub snapshots: Vec<(SpaceSnapshot, usize)>,
    pub space: Option<FlexSpace>,
    pub outcome: Outcome,
}

impl<'a, F: FileSystem + Clone> Runner<'a, F> {
    pub fn new(fs: F, durability: Durability, states: &'a [State]) -> Runner<'a, F> {
        Runner { fs, durability, states, snapshots: Vec::new(), space: None, outcome: Outcome::default() }
    }

    /// Makes the operations until one fails.
    pub fn run(&mut self, ops: &[Op]) {
        if let Err(error) = self.try_run(ops) {
            self.outcome.error = Some(error);
        }
    }

    fn try_run(&mut self, ops: &[Op]) -> Result<()> {
        self.space = Some(open(&self.fs, self.durability)?);
        for (index, op) in ops.iter().enumerate() {
            self.outcome.issued = index + 1;
            self.step(op, index)?;
            self.outcome.returned = index + 1;
            if self.durability == Durability::EveryCommit || matches!(op, Op::Sync | Op::Checkpoint | Op::Reopen) {
                self.outcome.durable = index + 1;
            }
            if matches!(op, Op::Flush) || self.outcome.durable == index + 1 {
                self.outcome.flushed = index + 1;
            }
        }
        self.verify_snapshots()
    }

    fn step(&mut self, op: &Op, index: usize) -> Result<()> {
        let space = self.space.clone().expect("open");
        match op {
            Op::Snapshot => self.snapshots.push((space.snapshot()?, index)),
            Op::DropSnapshot => {
                self.verify_snapshots()?;
                if !self.snapshots.is_empty() {
                    self.snapshots.remove(0);
                }
            }
            Op::Reopen => {
                self.verify_snapshots()?;
                self.snapshots.clear();
                self.space = None;
                space.close()?;
                drop(space);
                self.space = Some(open(&self.fs, self.durability)?);
            }
            _ => apply(&space, op)?,
        }
        Ok(())
    }

    /// Held snapshots show what was there when they were taken.
    pub fn verify_snapshots(&self) -> Result<()> {
        for (snapshot, index) in &self.snapshots {
            for (name, cells) in &self.states[*index].files {
                let file = snapshot.open_file(name)?;
                let mut found = vec![0; cells.len() + 1];
                let len = file.read(0, &mut found)?;
                let expected: Vec<u8> = cells.iter().map(|cell| cell.0).collect();
                assert!(found[..len] == expected, "the snapshot after operation {index} changed");
            }
        }
        Ok(())
    }
}

/// What a space holds.
pub fn state_of(space: &FlexSpace) -> Result<State> {
    let mut state = State { commit_word: space.commit_word()?, ..State::default() };
    for entry in space.list_files()? {
        let file = space.open_file(&entry.name)?;
        let mut bytes = vec![0; entry.size as usize + 1];
        let len = file.read(0, &mut bytes)?;
        assert_eq!(len as u64, entry.size, "size of {:?}", entry.name);
        let mut cells: Vec<Cell> = bytes[..len].iter().map(|byte| (*byte, 0)).collect();
        let mut at = 0;
        while let Some((offset, tag)) = file.next_tagged(at)? {
            cells[offset as usize].1 = tag.0;
            at = offset + 1;
        }
        state.files.insert(entry.name, Rc::new(cells));
    }
    Ok(state)
}

/// `check` finds nothing.
pub fn sound(space: &FlexSpace, context: &str) {
    let report = space.check(&mut |_| true).unwrap_or_else(|e| panic!("{context}: check: {e:?}"));
    assert!(report.problems.is_empty(), "{context}: {:?}", report.problems);
}

/// Which of the states from `range` it is.
pub fn find(states: &[State], range: std::ops::RangeInclusive<usize>, found: &State) -> Option<usize> {
    range.rev().find(|index| states[*index] == *found)
}

/// Whether the long runs were asked for.
pub fn long() -> bool {
    std::env::var_os("FLEXFILE_LONG").is_some_and(|value| value != "0")
}
