//! Faults of FlexSpace that were found once, each as the shortest story that shows it.
//!
//! A kill without a loss of power is `MemFileSystem::deep_copy`: what the next process finds.

use flex_core::ErrorKind;
use flex_core::file::{FlexFile, FlexSpace, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::mem::{CrashKind, MemFileSystem};
use flex_core::limits::DEFAULT_SEGMENT_BYTES;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

const PATH: &str = "/space";

fn open(fs: &MemFileSystem) -> FlexSpace {
    let options = SpaceOptions { background: false, ..SpaceOptions::default() };
    FlexSpace::open_with(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new(PATH), &options).unwrap()
}

fn content(file: &FlexFile) -> Vec<u8> {
    let mut bytes = vec![0; file.size().unwrap() as usize];
    assert_eq!(file.read(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

fn sound(space: &FlexSpace) {
    let report = space.check(&mut |_| true).unwrap();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
}

fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Blocks of segments that were freed and given back failed their verification in the next recovery, which then took
/// the batch that wrote them, and everything behind it, for the torn end of the log: synced operations were lost.
#[test]
fn what_was_synced_survives_although_its_segments_were_given_back() {
    for kind in [CrashKind::AllKept, CrashKind::SyncedOnly] {
        let fs = MemFileSystem::new();
        let space = open(&fs);
        let file = space.create_file(b"a").unwrap();
        file.write(0, &noise(1, 6 * DEFAULT_SEGMENT_BYTES as usize)).unwrap();
        file.truncate(0).unwrap();
        file.write(0, b"kept").unwrap();
        space.sync().unwrap();
        space.gc().unwrap();
        let after = open(&fs.crash_image(1, kind));
        assert_eq!(content(&after.open_file(b"a").unwrap()), b"kept", "{kind:?}");
        sound(&after);
    }
}

/// The same, with the freed segments written again instead of given back.
#[test]
fn what_was_synced_survives_although_its_segments_were_written_again() {
    for kind in [CrashKind::AllKept, CrashKind::SyncedOnly, CrashKind::RandomSectors] {
        let fs = MemFileSystem::new();
        let space = open(&fs);
        let (file, other) = (space.create_file(b"a").unwrap(), space.create_file(b"b").unwrap());
        file.write(0, &noise(1, 6 * DEFAULT_SEGMENT_BYTES as usize)).unwrap();
        file.truncate(0).unwrap();
        file.write(0, b"kept").unwrap();
        space.sync().unwrap();
        // Staged, not committed: bytes go to the disk ahead of any frame.
        let mut group = space.group(&[&other]).unwrap();
        group.write(&other, 0, &noise(2, 3 * DEFAULT_SEGMENT_BYTES as usize)).unwrap();
        let after = open(&fs.crash_image(1, kind));
        assert_eq!(content(&after.open_file(b"a").unwrap()), b"kept", "{kind:?}");
        sound(&after);
        drop(group);
    }
}

/// Segments of bytes that were staged and given up were free before the log had named their blocks: the batch that named
/// them then failed its verification, and what was flushed with it was lost.
#[test]
fn what_was_flushed_survives_beside_a_group_that_was_dropped() {
    let first = MemFileSystem::new();
    let space = open(&first);
    space.create_file(b"a").unwrap();
    space.flush().unwrap();
    // After a kill a checkpoint of the recovered state waits; the next operation writes it and gives free segments back.
    let fs = first.deep_copy();
    let space = open(&fs);
    let file = space.open_file(b"a").unwrap();
    let mut group = space.group(&[&file]).unwrap();
    group.write(&file, 0, &noise(1, 6 * DEFAULT_SEGMENT_BYTES as usize)).unwrap();
    drop(group);
    file.write(0, b"kept").unwrap();
    space.flush().unwrap();
    let after = open(&fs.deep_copy());
    assert_eq!(content(&after.open_file(b"a").unwrap()), b"kept");
    sound(&after);
}

/// After a kill, `checkpoint` wrote the recovered state that waited and not the present one, so that what had been done
/// since was not durable when it returned.
#[test]
fn a_checkpoint_after_a_kill_makes_the_present_state_durable() {
    let first = MemFileSystem::new();
    let space = open(&first);
    space.create_file(b"a").unwrap();
    space.flush().unwrap();
    let fs = first.deep_copy();
    let options = SpaceOptions::default();
    let space = FlexSpace::open_with(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new(PATH), &options).unwrap();
    space.open_file(b"a").unwrap().write(0, b"kept").unwrap();
    space.checkpoint().unwrap();
    let after = open(&fs.crash_image(1, CrashKind::SyncedOnly));
    assert_eq!(content(&after.open_file(b"a").unwrap()), b"kept");
}

/// An empty write of a group behind the end extended the file; one of a file does not.
#[test]
fn an_empty_write_in_a_group_changes_nothing() {
    let fs = MemFileSystem::new();
    let space = open(&fs);
    let file = space.create_file(b"a").unwrap();
    let mut group = space.group(&[&file]).unwrap();
    group.write(&file, 100, b"").unwrap();
    assert_eq!(group.size(&file).unwrap(), 0);
    group.commit().unwrap();
    assert_eq!(file.size().unwrap(), 0);
}

/// A group that could not begin took its thread off the list of group holders, so that the thread's next call for a
/// file of its first group waited for itself.
#[test]
fn a_group_that_failed_to_begin_leaves_the_first_one_known() {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        let fs = MemFileSystem::new();
        let space = open(&fs);
        let file = space.create_file(b"a").unwrap();
        let group = space.group(&[&file]).unwrap();
        let second = space.group(&[&file]).map(|_| ()).unwrap_err().kind();
        let third = file.write(0, b"x").unwrap_err().kind();
        drop(group);
        done.send((second, third)).unwrap();
    });
    let kinds = wait.recv_timeout(Duration::from_secs(20)).expect("the thread waits for itself");
    assert_eq!(kinds, (ErrorKind::Busy, ErrorKind::Busy));
}

/// A catalog that ended just below a page's end took a page more than it needed, which the next open did not know of:
/// it stayed marked as used for good.
#[test]
fn a_catalog_gives_back_the_page_that_it_took_for_nothing() {
    for n in 0..80usize {
        let fs = MemFileSystem::new();
        let space = open(&fs);
        for i in 0..15 + n / 20 {
            let len = if i == 0 { 1 + 12 * (n % 20) } else { 250 };
            space.create_file(format!("{i:0>len$}").as_bytes()).unwrap();
        }
        space.close().unwrap();
        sound(&open(&fs));
    }
}

/// Appends let the nodes above the last leaf lag behind. A checkpoint brought them up to date while a group held the file,
/// in copies that the group's commit threw away with the pages that they had just got.
#[test]
fn a_checkpoint_while_a_group_holds_the_file_loses_no_page() {
    let fs = MemFileSystem::new();
    let space = open(&fs);
    let file = space.create_file(b"a").unwrap();
    for round in 0..20u64 {
        for _ in 0..400 {
            file.append(b"x").unwrap();
            file.insert(0, b"y").unwrap();
        }
        for i in 0..3 {
            // Not contiguous in DATA: each is an extent of its own.
            file.append(&noise(round * 3 + i, 7)).unwrap();
            space.flush().unwrap();
        }
        let mut group = space.group(&[&file]).unwrap();
        group.insert(&file, 5, b"in between").unwrap();
        space.checkpoint().unwrap();
        group.commit().unwrap();
    }
    space.checkpoint().unwrap();
    sound(&space);
}
