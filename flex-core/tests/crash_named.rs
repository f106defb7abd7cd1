//! Faults that earlier implementations had (see "faults" in docs/design.md), each a test of its own.
#![cfg(feature = "small_limits")]

mod support;

use flex_core::file::{Durability, FlexFile, FlexSpace};
use flex_core::io::fault::{Class, FaultFileSystem, Plan};
use flex_core::io::mem::{CrashKind, MemFileSystem};
use flex_core::io::{FileSystem, OpenMode};
use flex_core::{Error, ErrorKind};
use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;
use support::*;

fn opened(mem: &MemFileSystem) -> FlexSpace {
    open(mem, Durability::Manual).unwrap()
}

fn bytes(file: &FlexFile) -> Vec<u8> {
    let mut found = vec![0; file.size().unwrap() as usize + 1];
    let len = file.read(0, &mut found).unwrap();
    found.truncate(len);
    found
}

/// A file of many small extents in a deep tree, and what it holds.
fn deep(space: &FlexSpace, pieces: usize) -> (FlexFile, Vec<u8>) {
    let file = space.create_file(b"f").unwrap();
    let (mut model, mut rng) = (Vec::new(), Rng(7));
    for _ in 0..pieces {
        let at = rng.below(model.len() + 1);
        let data: Vec<u8> = (0..1 + rng.below(60)).map(|_| rng.next() as u8).collect();
        file.insert(at as u64, &data).unwrap();
        model.splice(at..at, data);
    }
    (file, model)
}

/// Fault 1: the checkpoint skipped a dirty child whose parent was clean.
#[test]
fn a_dirty_child_under_a_clean_parent_is_checkpointed() {
    let mem = MemFileSystem::new();
    let space = opened(&mem);
    let (_, mut model) = deep(&space, 300);
    space.close().unwrap();
    for round in 0..30u8 {
        let space = opened(&mem);
        let file = space.open_file(b"f").unwrap();
        // In turn: above all others, below all others, in place in the middle, a tag alone.
        match round % 4 {
            0 => {
                file.append(&[round; 3]).unwrap();
                model.extend([round; 3]);
            }
            1 => {
                file.insert(0, &[round; 3]).unwrap();
                model.splice(0..0, [round; 3]);
            }
            2 => {
                let at = model.len() / 2;
                file.write(at as u64, &[round; 3]).unwrap();
                model[at..at + 3].fill(round);
            }
            _ => file.set_tag(model.len() as u64 / 3, flex_core::address::Tag(round as u16)).unwrap(),
        }
        if round % 3 == 0 {
            space.checkpoint().unwrap();
        }
        space.close().unwrap();
        let space = opened(&mem);
        let file = space.open_file(b"f").unwrap();
        assert!(bytes(&file) == model, "round {round}");
        if round % 4 == 3 {
            assert_eq!(file.tag(model.len() as u64 / 3).unwrap().0, round as u16);
        }
        sound(&space, "reopened");
        space.close().unwrap();
    }
}

/// Fault 2: pages of the superblock that still counts were overwritten by the next checkpoint.
#[test]
fn a_checkpoint_stopped_anywhere_leaves_the_one_before() {
    let base = MemFileSystem::new();
    let space = opened(&base);
    let (file, mut model) = deep(&space, 200);
    for round in 0..3u8 {
        file.write(round as u64 * 500, &[round; 700]).unwrap();
        model[round as usize * 500..][..700].fill(round);
        space.checkpoint().unwrap();
    }
    space.close().unwrap();
    let run = |mem: &MemFileSystem, plan: Plan| {
        let faults = FaultFileSystem::new(Arc::new(mem.clone()));
        let control = faults.control();
        let Ok(space) = open(&faults, Durability::Manual) else { return 0 };
        control.reset_counts();
        control.set_plan(plan);
        let attempt = || -> Result<(), Error> {
            let file = space.open_file(b"f")?;
            for round in 0..3u64 {
                // Nothing changes but where it lies: every state shows the same bytes.
                let mut part = vec![0; 900];
                file.read(round * 600, &mut part)?;
                file.write(round * 600, &part)?;
                space.checkpoint()?;
            }
            Ok(())
        };
        let _stopped = attempt().is_err();
        control.count(Class::All)
    };
    let operations = run(&base.deep_copy(), Plan::None);
    assert!(operations > 30);
    for nth in 0..operations {
        let mem = base.deep_copy();
        run(&mem, Plan::Stop { nth });
        for (seed, kind) in (nth..).zip(CrashKind::ALL) {
            let image = mem.crash_image(seed, kind);
            for _ in 0..2 {
                let space = open(&image, Durability::Manual).unwrap_or_else(|e| panic!("{nth} {kind:?}: {e:?}"));
                assert!(bytes(&space.open_file(b"f").unwrap()) == model, "stopped at {nth}, {kind:?}");
                sound(&space, "after the stop");
                space.close().unwrap();
            }
        }
    }
}

/// Fault 3: the replay of a relocation did not make its leaf dirty: right at the first reopening, lost at the second.
#[test]
fn a_replayed_relocation_is_there_at_the_second_reopening_too() {
    let mem = MemFileSystem::new();
    let space = opened(&mem);
    let (file, mut model) = deep(&space, 400);
    space.checkpoint().unwrap();
    // Holes everywhere, so that the collection has to move what is left.
    let mut at = 0;
    while at + 200 < model.len() {
        file.collapse(at as u64, 120).unwrap();
        model.drain(at..at + 120);
        at += 80;
    }
    space.checkpoint().unwrap();
    let report = space.gc().unwrap();
    assert!(report.bytes_copied > 0 && report.segments_freed > 0, "{report:?}");
    space.sync().unwrap();
    for kind in CrashKind::ALL {
        let image = mem.crash_image(3, kind);
        for turn in 0..4 {
            let space = opened(&image);
            let file = space.open_file(b"f").unwrap();
            assert!(bytes(&file) == model, "{kind:?}, reopening {turn}");
            sound(&space, "reopened");
            // What the relocation freed is written anew.
            let scratch = space.create_file(format!("scratch {turn}").as_bytes()).unwrap();
            scratch.append(&[turn; 20_000]).unwrap();
            space.close().unwrap();
        }
    }
}

/// Fault 4: zeros in the log were an operation; what lies behind a gap was replayed.
#[test]
fn zeros_in_the_log_are_no_operation() {
    let (ops, states) = workload(31, 60);
    let mem = MemFileSystem::new();
    let mut runner = Runner::new(mem.clone(), Durability::Manual, &states);
    runner.run(&ops);
    let space = runner.space.take().unwrap();
    space.flush().unwrap();
    let (mut opened_again, mut refused) = (0, 0);
    for log in ["LOG.0", "LOG.1"] {
        let path = Path::new(PATH).join(log);
        let len = mem.open(&path, OpenMode::ReadOnly).unwrap().len().unwrap();
        for from in (4096..len).step_by(97) {
            for count in [40, 512, len - from] {
                let image = mem.deep_copy();
                let file = image.open(&path, OpenMode::ReadWrite).unwrap();
                let zeros = vec![0; count.min(len - from) as usize];
                file.write_at(&[IoSlice::new(&zeros)], from).unwrap();
                match open(&image, Durability::Manual) {
                    Ok(space) => {
                        let found = state_of(&space).unwrap();
                        assert!(find(&states, 0..=ops.len(), &found).is_some(), "zeros at {from} of {log}");
                        sound(&space, "after zeros");
                        opened_again += 1;
                    }
                    Err(error) => {
                        assert_eq!(error.kind(), ErrorKind::Corruption, "zeros at {from} of {log}: {error:?}");
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(opened_again > 0 && refused > 0, "{opened_again} opened, {refused} refused");
}

/// Fault 17: freed segments were never used again, `DATA` was never punched, nobody collected.
#[test]
fn overwriting_does_not_grow_the_space_for_ever() {
    let mem = MemFileSystem::new();
    let space = opened(&mem);
    let file = space.create_file(b"f").unwrap();
    file.append(&[1; 30_000]).unwrap();
    let mut rng = Rng(5);
    let mut settled = 0;
    for round in 0..6000 {
        let at = rng.below(29_000) as u64;
        file.write(at, &[round as u8; 300]).unwrap();
        if round == 1500 {
            settled = mem.used();
        }
    }
    assert!(mem.used() <= settled * 3 / 2, "{} bytes after 6000 overwrites, {settled} after 1500", mem.used());
    let data = mem.open(&Path::new(PATH).join("DATA"), OpenMode::ReadOnly).unwrap().len().unwrap();
    assert!(data < 200_000, "DATA is {data} bytes long for 30000 live ones");
    sound(&space, "after overwriting");
}

/// Fault 17: what a mass free gave back stayed allocated.
#[test]
fn disk_usage_falls_after_a_mass_free() {
    let mem = MemFileSystem::new();
    let space = opened(&mem);
    let file = space.create_file(b"f").unwrap();
    for _ in 0..50 {
        file.append(&[1; 8000]).unwrap();
    }
    space.checkpoint().unwrap();
    let data = mem.open(&Path::new(PATH).join("DATA"), OpenMode::ReadOnly).unwrap();
    let before = data.allocated().unwrap();
    assert!(before > 400_000);
    file.truncate(100).unwrap();
    space.gc().unwrap();
    let after = data.allocated().unwrap();
    assert!(after < 40_000, "{after} of {before} bytes are still allocated");
    assert_eq!(bytes(&file), [1; 100]);
    sound(&space, "after the free");
}

/// Fault 17, for pages: every reopening lost some.
#[test]
fn reopening_does_not_grow_the_tree_file() {
    let mem = MemFileSystem::new();
    let space = opened(&mem);
    deep(&space, 100);
    space.close().unwrap();
    let mut pages = Vec::new();
    for round in 0..60u8 {
        let space = opened(&mem);
        space.open_file(b"f").unwrap().write(10, &[round; 20]).unwrap();
        if round % 2 == 0 {
            space.close().unwrap();
        } else {
            space.flush().unwrap();
            drop(space);
        }
        let space = opened(&mem);
        pages.push(space.stats().unwrap().tree_pages);
        sound(&space, "reopened");
    }
    assert!(pages[59] <= pages[9] + 2, "pages in use: {pages:?}");
}

/// Bytes and pages that a snapshot sees are not used again, whatever goes on; when it goes, its room comes back.
#[test]
fn a_snapshot_keeps_its_bytes_through_everything() {
    let mem = MemFileSystem::new();
    let space = opened(&mem);
    let (file, model) = deep(&space, 300);
    space.close().unwrap();
    drop((file, space));
    // Reopened, so that the snapshot's nodes are not in memory.
    let space = opened(&mem);
    let file = space.open_file(b"f").unwrap();
    let snapshot = space.snapshot().unwrap();
    let mut rng = Rng(9);
    for round in 0..400u32 {
        let len = file.size().unwrap() as usize;
        match rng.below(8) {
            0 if len > 2000 => file.collapse(rng.below(len - 1500) as u64, 1500).unwrap(),
            1 => drop(space.gc().unwrap()),
            2 => space.checkpoint().unwrap(),
            3 => space.sync().unwrap(),
            4 => drop(file.defrag(0, u64::MAX).unwrap()),
            _ => file.write(rng.below(len) as u64, &[round as u8; 500]).unwrap(),
        }
        if round % 40 == 0 {
            let old = snapshot.open_file(b"f").unwrap();
            let at = rng.below(model.len() - 100);
            let mut found = [0; 100];
            old.read(at as u64, &mut found).unwrap();
            assert_eq!(found[..], model[at..at + 100], "round {round}");
        }
    }
    let mut found = vec![0; model.len()];
    snapshot.open_file(b"f").unwrap().read(0, &mut found).unwrap();
    assert!(found == model, "the snapshot changed");
    file.truncate(0).unwrap();
    space.gc().unwrap();
    let held = space.stats().unwrap();
    drop(snapshot);
    space.checkpoint().unwrap();
    space.gc().unwrap();
    let free = space.stats().unwrap();
    assert!(held.quarantined_bytes > 0 && free.quarantined_bytes == 0, "{held:?} {free:?}");
    assert!(free.tree_pages < held.tree_pages, "{held:?} {free:?}");
    sound(&space, "without the snapshot");
}

/// An edit of a space and its file.
type ColdEdit<'a> = &'a dyn Fn(&FlexSpace, &FlexFile) -> Result<(), Error>;

/// Errors while pages of a cold tree are read: the edit fails and changes nothing, and works when it is tried again.
#[test]
fn edits_of_a_cold_tree_that_cannot_be_read_change_nothing() {
    let mem = MemFileSystem::new();
    let space = opened(&mem);
    let (_, model) = deep(&space, 300);
    space.close().unwrap();
    let middle = model.len() as u64 / 2;
    let edits: [(&str, ColdEdit); 7] = [
        ("insert", &|_, file| file.insert(middle, &[1; 300])),
        ("write", &|_, file| file.write(middle, &[1; 900])),
        ("update", &|_, file| file.update(middle / 2, 700, &[1; 300])),
        ("collapse", &|_, file| file.collapse(middle / 2, middle)),
        ("tag", &|_, file| file.set_tag(middle, flex_core::address::Tag(3))),
        ("remove", &|space, _| space.remove_file(b"f")),
        ("group", &|space, file| {
            let mut group = space.group(&[file])?;
            group.collapse(file, 100, middle)?;
            group.insert(file, 50, &[1; 400])?;
            group.commit()
        }),
    ];
    for (name, edit) in edits {
        let (mut nth, mut failures) = (0, 0);
        loop {
            let mem = mem.deep_copy();
            let faults = FaultFileSystem::new(Arc::new(mem.clone()));
            let space = open(&faults, Durability::Manual).unwrap();
            let file = space.open_file(b"f").unwrap();
            faults.control().set_plan(Plan::Once { class: Class::Reads, nth, errno: 5 });
            let result = edit(&space, &file);
            let was_hit = faults.control().faults() > 0;
            faults.control().set_plan(Plan::None);
            if let Err(error) = &result {
                failures += 1;
                assert_eq!(error.kind(), ErrorKind::Io, "{name}, read {nth}: {error:?}");
                assert!(bytes(&file) == model, "{name}, read {nth}: {error:?}, and something changed");
                sound(&space, name);
                edit(&space, &file).unwrap_or_else(|e| panic!("{name} again after read {nth}: {e:?}"));
            }
            sound(&space, name);
            space.close().unwrap();
            sound(&opened(&mem), name);
            if !was_hit {
                break;
            }
            nth += 1;
        }
        assert!(failures > 0, "{name}: no read was made");
    }
}
