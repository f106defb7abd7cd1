//! Faults of the device under a space: an error at each single I/O operation, short transfers, a full disk.
//!
//! The contract (docs/design.md): a call that fails changed nothing, or the space is poisoned: then writes answer
//! `Poisoned`, reads go on, closing returns, and reopening gives everything acknowledged as durable, in the state after some
//! operation. `FLEXFILE_LONG=1` fails every operation, else a sample of them.
#![cfg(feature = "small_limits")]

mod support;

use flex_core::ErrorKind;
use flex_core::file::{Durability, FlexFile, FlexSpace, SpaceOptions};
use flex_core::io::fault::{Class, FaultFileSystem, Operation, Plan};
use flex_core::io::mem::MemFileSystem;
use std::sync::Arc;
use support::*;

fn over(mem: &MemFileSystem) -> FaultFileSystem {
    FaultFileSystem::new(Arc::new(mem.clone()))
}

/// Where a run stands: the state that the space shows, as far as known.
struct Run<'a> {
    ops: &'a [Op],
    states: &'a [State],
    context: String,
}

impl Run<'_> {
    /// Makes the operations with one fault planned; then what the contract says.
    fn go(&self, mem: &MemFileSystem, faults: &FaultFileSystem, durability: Durability, plan: Plan) {
        let control = faults.control();
        control.set_plan(plan);
        let context = &self.context;
        let mut at = 0;
        let mut durable = 0;
        let mut space = self.open_at(faults, durability, 0..=0);
        while at < self.ops.len() {
            let op = &self.ops[at];
            if matches!(op, Op::Reopen) {
                let result = space.close();
                drop(space);
                space = self.open_at(faults, durability, if result.is_ok() { at..=at } else { durable..=at });
                let found = state_of_retrying(&space, context);
                at =
                    find(self.states, durable..=at, &found).unwrap_or_else(|| panic!("{context}: reopened {result:?}"));
                durable = durable.max(if result.is_ok() { at } else { durable });
                if !matches!(self.ops[at], Op::Reopen) {
                    continue;
                }
                at += 1;
                continue;
            }
            match apply(&space, op) {
                Ok(()) => {
                    at += 1;
                    if durability == Durability::EveryCommit || matches!(op, Op::Sync | Op::Checkpoint) {
                        durable = at;
                    }
                }
                Err(error) => {
                    let poisoned = space.stats().is_ok_and(|stats| stats.poisoned);
                    let found = state_of_retrying(&space, context);
                    if !poisoned {
                        let changed = found != self.states[at];
                        assert!(!changed, "{context}: {op:?} answered {error:?} and changed something");
                        assert_ne!(error.kind(), ErrorKind::Corruption, "{context}: {op:?}: {error:?}");
                        // It works when it is tried again: the fault was there once.
                        continue;
                    }
                    // The call may have taken effect before it failed.
                    let index = find(self.states, at..=at + 1, &found);
                    assert!(
                        index.is_some(),
                        "{context}: poisoned, {op:?} answered {error:?}, and reads give something else"
                    );
                    self.poisoned(&space);
                    drop(space);
                    self.after_poison(mem, durable..=at + 1);
                    return;
                }
            }
        }
        let found = state_of_retrying(&space, context);
        assert!(found == self.states[self.ops.len()], "{context}: the end is another");
        if space.stats().is_ok_and(|stats| stats.poisoned) {
            // By upkeep after the last operation.
            drop(space);
            return self.after_poison(mem, durable..=at);
        }
        control.set_plan(Plan::None);
        sound(&space, context);
        space.close().unwrap_or_else(|e| panic!("{context}: closing: {e:?}"));
        drop(space);
        self.after_poison(mem, at..=at);
    }

    /// Opens; the one fault may hit the first attempt.
    fn open_at(
        &self,
        faults: &FaultFileSystem,
        durability: Durability,
        range: std::ops::RangeInclusive<usize>,
    ) -> FlexSpace {
        let space = match open(faults, durability) {
            Ok(space) => space,
            Err(first) => open(faults, durability)
                .unwrap_or_else(|e| panic!("{}: opening at {range:?}: first {first:?}, then {e:?}", self.context)),
        };
        let found = state_of_retrying(&space, &self.context);
        assert!(find(self.states, range.clone(), &found).is_some(), "{}: opened, not one of {range:?}", self.context);
        space
    }

    fn poisoned(&self, space: &FlexSpace) {
        let context = &self.context;
        let kind = |result: flex_core::Result<()>| result.expect_err("poisoned").kind();
        assert_eq!(kind(space.sync()), ErrorKind::Poisoned, "{context}");
        assert_eq!(kind(space.flush()), ErrorKind::Poisoned, "{context}");
        assert_eq!(kind(space.create_file(b"too late").map(|_| ())), ErrorKind::Poisoned, "{context}");
        assert!(space.close().is_err(), "{context}: closing a poisoned space reports it");
    }

    /// The directory as the process left it, and as a crash of the machine leaves it.
    fn after_poison(&self, mem: &MemFileSystem, range: std::ops::RangeInclusive<usize>) {
        let images = flex_core::io::mem::CrashKind::ALL.map(|kind| (format!("{kind:?}"), mem.crash_image(1, kind)));
        for (name, image) in images.into_iter().chain([("as it was".into(), mem.deep_copy())]) {
            let context = format!("{}, reopened {name}", self.context);
            for _ in 0..2 {
                let space = open(&image, Durability::Manual).unwrap_or_else(|e| panic!("{context}: {e:?}"));
                let found = state_of(&space).unwrap_or_else(|e| panic!("{context}: {e:?}"));
                assert!(find(self.states, range.clone(), &found).is_some(), "{context}: not one of {range:?}");
                sound(&space, &context);
                space.close().unwrap_or_else(|e| panic!("{context}: {e:?}"));
            }
        }
    }
}

/// A fault may hit a read; the next one gives the bytes.
fn state_of_retrying(space: &FlexSpace, context: &str) -> State {
    state_of(space).or_else(|_| state_of(space)).unwrap_or_else(|e| panic!("{context}: reading: {e:?}"))
}

fn fail_everywhere(seed: u64, count: usize, durability: Durability, class: Class, errno: i32, samples: u64) {
    let (mut ops, _) = workload(seed, count);
    ops.retain(|op| !matches!(op, Op::Snapshot | Op::DropSnapshot));
    let states = replay(&ops);
    let mem = MemFileSystem::new();
    let faults = over(&mem);
    let run = |context: String| Run { ops: &ops, states: &states, context };
    run("without a fault".into()).go(&mem, &faults, durability, Plan::None);
    let operations = faults.control().count(class);
    let step = if long() { 1 } else { (operations / samples).max(1) };
    let mut nth = seed % step;
    while nth < operations {
        let mem = MemFileSystem::new();
        let context = format!("seed {seed}, {durability:?}, errno {errno} at {class:?} {nth} of {operations}");
        run(context).go(&mem, &over(&mem), durability, Plan::Once { class, nth, errno });
        nth += step;
    }
}

fn replay(ops: &[Op]) -> Vec<State> {
    let mut states = vec![State::default()];
    for op in ops {
        let mut state = states[states.len() - 1].clone();
        state.apply(op);
        states.push(state);
    }
    states
}

#[test]
fn an_error_at_any_operation_changes_nothing_or_poisons() {
    for seed in 1..3 {
        fail_everywhere(seed, 120, Durability::Manual, Class::All, libc_eio(), 120);
    }
    fail_everywhere(3, 80, Durability::EveryCommit, Class::All, libc_eio(), 100);
}

#[test]
fn an_error_at_any_write_or_sync() {
    fail_everywhere(4, 120, Durability::Manual, Class::Writes, libc_eio(), 150);
    fail_everywhere(5, 120, Durability::Manual, Class::Syncs, libc_eio(), 150);
}

#[test]
fn an_error_at_any_read() {
    fail_everywhere(6, 150, Durability::Manual, Class::Reads, libc_eio(), 200);
}

#[test]
fn a_full_disk_at_any_operation() {
    fail_everywhere(7, 120, Durability::Manual, Class::Writes, libc_enospc(), 150);
    fail_everywhere(8, 120, Durability::Manual, Class::Only(Operation::Reserve), libc_enospc(), 300);
}

fn libc_eio() -> i32 {
    5
}

fn libc_enospc() -> i32 {
    28
}

#[test]
fn short_transfers_change_nothing() {
    for max in [1, 3, 511, 4096] {
        let (ops, states) = workload(20, 60);
        let mem = MemFileSystem::new();
        let faults = over(&mem);
        faults.control().set_max_transfer(max);
        let mut runner = Runner::new(faults, Durability::Manual, &states);
        runner.run(&ops);
        assert!(runner.outcome.error.is_none(), "{max} bytes at once: {:?}", runner.outcome.error);
        let space = runner.space.take().expect("open");
        assert!(state_of(&space).unwrap() == states[ops.len()], "{max} bytes at once");
        sound(&space, "short transfers");
        drop(runner);
        space.close().unwrap();
        assert!(state_of(&open(&mem, Durability::Manual).unwrap()).unwrap() == states[ops.len()]);
    }
}

/// Inserts pieces at the end until the disk is full; returns how many bytes went in.
fn fill(file: &FlexFile, model: &mut Vec<u8>, piece: usize, rng: &mut Rng) -> usize {
    let before = model.len();
    loop {
        let data: Vec<u8> = (0..piece).map(|_| rng.next() as u8).collect();
        match file.append(&data) {
            Ok(_) => model.extend_from_slice(&data),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}");
                assert_eq!(file.size().unwrap(), model.len() as u64, "NoSpace changes nothing");
                return model.len() - before;
            }
        }
        assert!(model.len() < 10 << 20, "the disk never fills");
    }
}

fn same(file: &FlexFile, model: &[u8], context: &str) {
    let mut found = vec![0; model.len() + 1];
    let len = file.read(0, &mut found).unwrap_or_else(|e| panic!("{context}: {e:?}"));
    assert!(found[..len] == *model, "{context}: {len} of {} bytes, or others", model.len());
}

/// With segments of 64 KiB, so that the nodes of four entries, in pages of 4 KiB, take less room than the data.
fn open_large(mem: &MemFileSystem) -> FlexSpace {
    let options = SpaceOptions { segment_size_bytes: 64 << 10, ..options(Durability::Manual) };
    FlexSpace::open_with(Arc::new(mem.clone()), std::path::Path::new(PATH), &options).unwrap()
}

#[test]
fn a_full_disk_empties_and_fills_again() {
    let mem = MemFileSystem::new();
    mem.set_capacity(4 << 20);
    let mut rng = Rng(1);
    let space = open_large(&mem);
    let file = space.create_file(b"f").unwrap();
    let mut model = Vec::new();
    let first = fill(&file, &mut model, 5000, &mut rng);
    assert!(first > 1 << 20, "{first} bytes fit on 4 MiB");
    for round in 0..20 {
        let context = format!("round {round}");
        let half = model.len() / 2;
        let at = rng.below(model.len() - half);
        file.collapse(at as u64, half as u64).unwrap_or_else(|e| panic!("{context}: collapse: {e:?}"));
        model.drain(at..at + half);
        let filled = fill(&file, &mut model, 5000, &mut rng);
        assert!(filled > first / 4, "{context}: only {filled} bytes fit, {half} were removed");
        same(&file, &model, &context);
        space.gc().unwrap_or_else(|e| panic!("{context}: gc: {e:?}"));
        assert!(!space.stats().unwrap().poisoned);
    }
    sound(&space, "after 20 rounds");
    let left = mem.deep_copy();
    space.close().unwrap();
    for mem in [left, mem] {
        let space = open_large(&mem);
        same(&space.open_file(b"f").unwrap(), &model, "reopened");
        sound(&space, "reopened");
    }
}

#[test]
fn a_full_disk_of_half_live_segments_fills_again() {
    let mem = MemFileSystem::new();
    mem.set_capacity(4 << 20);
    let mut rng = Rng(2);
    let space = open_large(&mem);
    let file = space.create_file(b"f").unwrap();
    let mut model = Vec::new();
    let first = fill(&file, &mut model, 2048, &mut rng);
    for round in 0..6 {
        let context = format!("round {round}");
        let before = model.len();
        let mut at = 0;
        while at + 4096 <= model.len() {
            file.collapse(at as u64, 2048).unwrap_or_else(|e| panic!("{context}: collapse at {at}: {e:?}"));
            model.drain(at..at + 2048);
            at += 2048;
        }
        let removed = before - model.len();
        let filled = fill(&file, &mut model, 2048, &mut rng);
        assert!(
            filled > removed / 3,
            "{context}: only {filled} bytes fit, {removed} were removed, {first} fit at first"
        );
        same(&file, &model, &context);
    }
    space.close().unwrap();
    let space = open_large(&mem);
    same(&space.open_file(b"f").unwrap(), &model, "reopened");
    sound(&space, "reopened");
}

/// A full disk, and the power goes: the space opens, reads, gives space back and writes again.
#[test]
fn a_space_that_crashed_on_a_full_disk_opens_and_goes_on() {
    for kind in flex_core::io::mem::CrashKind::ALL {
        let mem = MemFileSystem::new();
        mem.set_capacity(1 << 20);
        let mut rng = Rng(3);
        let space = open(&mem, Durability::Manual).unwrap();
        let file = space.create_file(b"f").unwrap();
        let mut model = Vec::new();
        fill(&file, &mut model, 700, &mut rng);
        space.sync().unwrap();
        let image = mem.crash_image(5, kind);
        let space = open(&image, Durability::Manual).unwrap_or_else(|e| panic!("{kind:?}: {e:?}"));
        let file = space.open_file(b"f").unwrap();
        same(&file, &model, "after the crash");
        file.collapse(0, model.len() as u64 / 2).unwrap_or_else(|e| panic!("{kind:?}: collapse: {e:?}"));
        model.drain(..model.len() / 2);
        space.gc().unwrap_or_else(|e| panic!("{kind:?}: gc: {e:?}"));
        file.append(&[7; 500]).unwrap_or_else(|e| panic!("{kind:?}: append: {e:?}"));
        model.extend_from_slice(&[7; 500]);
        same(&file, &model, "after writing on");
        space.close().unwrap_or_else(|e| panic!("{kind:?}: close: {e:?}"));
        let space = open(&image, Durability::Manual).unwrap();
        same(&space.open_file(b"f").unwrap(), &model, "reopened");
        sound(&space, "reopened");
    }
}

/// The recovery wrote a summary for each full segment that the log names, also for one that was freed and punched since: on a
/// full disk that failed, and the space could not be opened.
#[test]
fn a_recovery_needs_no_room_for_segments_that_were_freed() {
    let mem = MemFileSystem::new();
    let space = open(&mem, Durability::Manual).unwrap();
    let file = space.create_file(b"f").unwrap();
    file.append(b"kept").unwrap();
    space.checkpoint().unwrap();
    file.append(&[1; 30_000]).unwrap();
    space.sync().unwrap();
    file.collapse(4, 30_000).unwrap();
    space.sync().unwrap();
    let before = mem.used();
    space.gc().unwrap();
    assert!(mem.used() + 20_000 < before, "segments are punched: {} of {before} bytes", mem.used());
    let image = mem.deep_copy();
    image.set_capacity(image.used());
    let space = open(&image, Durability::Manual).unwrap();
    same(&space.open_file(b"f").unwrap(), b"kept", "reopened");
    sound(&space, "reopened");
}
