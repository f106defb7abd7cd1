//! Crashes of a space: the machine stops at an I/O operation, the disk keeps some of what was not synced, the space is
//! opened again and holds the state after some operation, not before the last one that was acknowledged as durable.
//!
//! `FLEXFILE_LONG=1` stops at every operation of more workloads, else at a sample of them.
#![cfg(feature = "small_limits")]

mod support;

use flex_core::file::Durability;
use flex_core::io::fault::{Class, FaultFileSystem, Plan};
use flex_core::io::mem::{CrashKind, MemFileSystem};
use std::sync::Arc;
use support::*;

fn over(mem: &MemFileSystem) -> FaultFileSystem {
    FaultFileSystem::new(Arc::new(mem.clone()))
}

/// How many I/O operations a workload takes in all.
fn count_operations(ops: &[Op], states: &[State], durability: Durability) -> u64 {
    let faults = over(&MemFileSystem::new());
    let mut runner = Runner::new(faults.clone(), durability, states);
    runner.run(ops);
    assert!(runner.outcome.error.is_none(), "without faults: {:?}", runner.outcome.error);
    let space = runner.space.take().expect("open");
    assert_eq!(state_of(&space).expect("readable"), *states.last().expect("not empty"));
    sound(&space, "without faults");
    drop(runner);
    space.close().expect("close");
    faults.control().count(Class::All)
}

/// Opens what a crash left; requires a state from the range, soundness, and that writing goes on. Returns the index.
fn reopen(
    image: &MemFileSystem,
    states: &[State],
    range: std::ops::RangeInclusive<usize>,
    context: &str,
) -> (usize, State) {
    let space = open(image, Durability::Manual).unwrap_or_else(|e| panic!("{context}: opening: {e:?}"));
    let found = state_of(&space).unwrap_or_else(|e| panic!("{context}: reading: {e:?}"));
    let Some(index) = find(states, range.clone(), &found) else {
        let other = find(states, 0..=states.len() - 1, &found);
        panic!("{context}: the state is that after operation {other:?}, expected one of {range:?}");
    };
    sound(&space, context);
    let mut state = found.clone();
    let mut rng = Rng(0x5EED_0000_0000 + index as u64);
    for _ in 0..6 {
        let op = state.random_op(&mut rng);
        if !matches!(op, Op::Reopen | Op::Snapshot | Op::DropSnapshot) {
            apply(&space, &op).unwrap_or_else(|e| panic!("{context}: writing more, {op:?}: {e:?}"));
            state.apply(&op);
        }
    }
    space.close().unwrap_or_else(|e| panic!("{context}: closing: {e:?}"));
    for again in ["again", "a third time"] {
        let space = open(image, Durability::Manual).unwrap_or_else(|e| panic!("{context}: opening {again}: {e:?}"));
        let then = state_of(&space).unwrap_or_else(|e| panic!("{context}: reading {again}: {e:?}"));
        assert!(then == state, "{context}: opened {again}, it holds something else");
        sound(&space, context);
    }
    (index, found)
}

/// The recovery of an image is stopped at operations of its own; the next one comes to the same state.
fn crash_in_recovery(image: &MemFileSystem, expected: &State, rng: &mut Rng, stops: u64, context: &str) {
    let faults = over(&image.deep_copy());
    let space = open(&faults, Durability::Manual).unwrap_or_else(|e| panic!("{context}: {e:?}"));
    let operations = faults.control().count(Class::All);
    drop(space);
    for index in 0..operations.min(stops) {
        let nth = if operations <= stops { index } else { rng.next() % operations };
        let mem = image.deep_copy();
        let faults = over(&mem);
        faults.control().set_plan(Plan::Stop { nth });
        drop(open(&faults, Durability::Manual));
        let kind = CrashKind::ALL[rng.below(CrashKind::ALL.len())];
        let again = mem.crash_image(rng.next(), kind);
        let context = format!("{context}, then recovery stopped at {nth} of {operations}, {kind:?}");
        let space = open(&again, Durability::Manual).unwrap_or_else(|e| panic!("{context}: {e:?}"));
        let found = state_of(&space).unwrap_or_else(|e| panic!("{context}: {e:?}"));
        assert!(found == *expected, "{context}: the second recovery comes to another state");
        sound(&space, &context);
        space.close().unwrap_or_else(|e| panic!("{context}: closing: {e:?}"));
    }
}

/// After the recovery the space is written, and the machine stops again, soon: nothing that was there is lost.
fn crash_after_recovery(image: &MemFileSystem, found: &State, rng: &mut Rng, stops: u64, context: &str) {
    let (ops, states) = workload_from(found.clone(), rng.next(), 40);
    for _ in 0..stops {
        let mem = image.deep_copy();
        let faults = over(&mem);
        let nth = 8 + rng.next() % 120;
        faults.control().set_plan(Plan::Stop { nth });
        let mut runner = Runner::new(faults, Durability::Manual, &states);
        runner.run(&ops);
        let (issued, durable) = (runner.outcome.issued, runner.outcome.durable);
        drop(runner);
        for kind in [CrashKind::RandomSectors, CrashKind::RandomSectors, CrashKind::TornLast, CrashKind::SyncedOnly] {
            let seed = rng.next();
            let context = format!("{context}, then stopped at {nth} (operation {issued}), {kind:?} {seed}");
            reopen(&mem.crash_image(seed, kind), &states, durable..=issued, &context);
        }
    }
}

fn stop_at(nth: u64, ops: &[Op], states: &[State], durability: Durability, seed: u64) {
    let mem = MemFileSystem::new();
    let faults = over(&mem);
    faults.control().set_plan(Plan::Stop { nth });
    let mut runner = Runner::new(faults, durability, states);
    runner.run(ops);
    let (issued, durable, flushed) = (runner.outcome.issued, runner.outcome.durable, runner.outcome.flushed);
    drop(runner);
    let mut rng = Rng(seed ^ nth << 20);
    let mut kinds: Vec<(CrashKind, u64)> = CrashKind::ALL.iter().map(|kind| (*kind, rng.next())).collect();
    kinds.extend((0..3).map(|_| (CrashKind::RandomSectors, rng.next())));
    kinds.push((CrashKind::TornLast, rng.next()));
    let chosen = rng.below(kinds.len());
    for (index, (kind, image_seed)) in kinds.into_iter().enumerate() {
        let context =
            format!("seed {seed}, {durability:?}, stopped at {nth} (operation {issued}), {kind:?} {image_seed}");
        let image = mem.crash_image(image_seed, kind);
        let (_, found) = reopen(&image.deep_copy(), states, durable..=issued, &context);
        if index == chosen {
            crash_after_recovery(&image, &found, &mut rng, if long() { 20 } else { 2 }, &context);
            crash_in_recovery(&image, &found, &mut rng, if long() { 40 } else { 3 }, &context);
        }
    }
    let context = format!("seed {seed}, {durability:?}, killed at {nth} (operation {issued})");
    reopen(&mem.deep_copy(), states, flushed..=issued, &context);
}

fn crash_everywhere(seed: u64, count: usize, durability: Durability, samples: u64) {
    let (ops, states) = workload(seed, count);
    let operations = count_operations(&ops, &states, durability);
    let step = if long() { 1 } else { (operations / samples).max(1) };
    let mut nth = seed % step;
    while nth < operations {
        stop_at(nth, &ops, &states, durability, seed);
        nth += step;
    }
}

#[test]
fn every_stop_leaves_a_state_that_was_there() {
    let seeds = if long() { 1..9 } else { 1..4 };
    for seed in seeds {
        crash_everywhere(seed, 150, Durability::Manual, 60);
    }
}

#[test]
fn with_every_commit_nothing_acknowledged_is_lost() {
    let seeds = if long() { 11..15 } else { 11..13 };
    for seed in seeds {
        crash_everywhere(seed, 80, Durability::EveryCommit, 60);
    }
}

/// What one sync made durable was both written and freed in it; its segments were used again before any durable frame
/// said that it is durable. A recovery then compared the freed blocks with their checksums and stopped before them.
#[test]
fn freed_segments_wait_until_frames_say_that_the_freeing_is_durable() {
    let mem = MemFileSystem::new();
    let space = open(&mem, Durability::Manual).unwrap();
    let file = space.create_file(b"f").unwrap();
    space.sync().unwrap();
    for round in 0..4u8 {
        for _ in 0..6 {
            file.insert(0, &[round + 1; 4000]).unwrap();
        }
        file.collapse(0, 20_000).unwrap();
        space.sync().unwrap();
        let size = file.size().unwrap();
        file.insert(0, &[99; 9000]).unwrap();
        for seed in 0..40 {
            let image = mem.crash_image(seed, CrashKind::RandomSectors);
            let again = open(&image, Durability::Manual).unwrap();
            let found = again.open_file(b"f").unwrap().size().unwrap();
            assert!(found == size || found == size + 9000, "round {round}, seed {seed}: {found} of {size} bytes");
            sound(&again, "after the crash");
        }
        file.collapse(0, 9000).unwrap();
    }
}

/// The process that creates a space dies between the naming of `TREE` and the sync of the directory; the next one finds a
/// complete space, and must not count on its names.
#[test]
fn directory_entries_of_a_killed_creation_are_synced_by_the_next_open() {
    let faults = over(&MemFileSystem::new());
    drop(open(&faults, Durability::Manual).unwrap());
    let operations = faults.control().count(Class::All);
    for nth in 0..operations {
        let mem = MemFileSystem::new();
        let faults = over(&mem);
        faults.control().set_plan(Plan::Stop { nth });
        drop(open(&faults, Durability::Manual));
        let after_kill = mem.deep_copy();
        let space = open(&after_kill, Durability::Manual).unwrap_or_else(|e| panic!("stopped at {nth}: {e:?}"));
        space.create_file(b"kept").unwrap().insert(0, b"bytes").unwrap();
        space.sync().unwrap();
        for (seed, kind) in (0..).zip(CrashKind::ALL) {
            let image = after_kill.crash_image(seed, kind);
            let again = open(&image, Durability::Manual).unwrap_or_else(|e| panic!("{kind:?} after {nth}: {e:?}"));
            let file = again.open_file(b"kept").unwrap_or_else(|e| panic!("{kind:?} after {nth}: {e:?}"));
            assert_eq!(file.size().unwrap(), 5, "{kind:?} after {nth}");
        }
    }
}

/// What the replayed log freed must not be overwritten by the next session before a superblock replaces that log: the
/// second recovery would stop before operations that were synced.
#[test]
fn what_a_replay_freed_waits_as_well() {
    let mem = MemFileSystem::new();
    let space = open(&mem, Durability::Manual).unwrap();
    let file = space.create_file(b"f").unwrap();
    space.sync().unwrap();
    file.insert(0, &[1; 14_000]).unwrap();
    file.collapse(0, 13_000).unwrap();
    space.sync().unwrap();
    let image = mem.crash_image(1, CrashKind::SyncedOnly);
    for seed in 0..60 {
        let image = image.deep_copy();
        let space = open(&image, Durability::Manual).unwrap();
        let file = space.open_file(b"f").unwrap();
        assert_eq!(file.size().unwrap(), 1000);
        for _ in 0..seed % 4 {
            file.insert(0, &[2; 5000]).unwrap();
        }
        let again = open(&image.crash_image(seed, CrashKind::RandomSectors), Durability::Manual).unwrap();
        let found = again.open_file(b"f").map(|file| file.size().unwrap());
        assert!(found.as_ref().is_ok_and(|size| size % 5000 == 1000), "seed {seed}: {found:?}");
        sound(&again, "after the second crash");
    }
}
