//! Named regressions of defects between threads: each forces the one order of events that showed the defect.
//!
//! `Gated` holds back syncs of chosen files until the test lets them go, so that the order needs no luck and no sleeping.

mod threads_support;

use flex_core::ErrorKind;
use flex_core::file::{Durability, FlexSpace, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::mem::MemFileSystem;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use threads_support::{Gated, options, sound, within};

fn gated() -> (Arc<Gated>, FlexSpace) {
    let fs = Arc::new(Gated::new(Arc::new(MemFileSystem::new())));
    let options = SpaceOptions { background: false, ..options() };
    let space = FlexSpace::open_with(fs.clone() as Arc<dyn FileSystem>, Path::new("/space"), &options).unwrap();
    (fs, space)
}

/// A checkpoint and a sync that waited for `DATA` at the same time both took the same bytes off the count of what waits,
/// so that bytes written meanwhile were taken for synced: the next sync left `DATA` out.
#[test]
fn overlapping_syncs_do_not_hide_bytes_written_meanwhile() {
    let (fs, space) = gated();
    let file = space.create_file(b"a").unwrap();
    file.append(&[1; 10_000]).unwrap();
    within(20, || {
        std::thread::scope(|scope| {
            fs.hold("DATA");
            scope.spawn(|| space.checkpoint().unwrap());
            fs.wait_for_held(1);
            scope.spawn(|| space.sync().unwrap());
            fs.wait_for_held(2);
            file.append(&[2; 9_000]).unwrap();
            space.flush().unwrap();
            fs.release();
        });
    });
    let before = fs.syncs("DATA");
    space.sync().unwrap();
    assert!(fs.syncs("DATA") > before, "a sync with data waiting syncs DATA");
    sound(&space);
    space.close().unwrap();
}

/// A group over several files that failed half-way took the owner's note of the thread's other group with it: the thread
/// then waited for itself.
#[test]
fn a_group_that_fails_leaves_the_other_one_of_its_thread_alone() {
    let (_fs, space) = gated();
    let (a, b) = (space.create_file(b"a").unwrap(), space.create_file(b"b").unwrap());
    within(20, || {
        let group = space.group(&[&b]).unwrap();
        assert_eq!(space.group(&[&a, &b]).err().unwrap().kind(), ErrorKind::Busy);
        assert_eq!(b.append(b"x").unwrap_err().kind(), ErrorKind::Busy);
        a.append(b"x").unwrap();
        drop(group);
        b.append(b"x").unwrap();
    });
    space.close().unwrap();
}

/// A group that was moved to another thread still counted as the first one's: the new holder waited for itself.
#[test]
fn a_group_belongs_to_the_thread_that_changes_it() {
    let (_fs, space) = gated();
    let a = space.create_file(b"a").unwrap();
    within(20, || {
        let mut group = space.group(&[&a]).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                group.write(&a, 0, b"moved").unwrap();
                assert_eq!(a.append(b"x").unwrap_err().kind(), ErrorKind::Busy);
                group.commit().unwrap();
                a.append(b"!").unwrap();
            });
        });
    });
    let mut text = [0; 10];
    let len = a.read(0, &mut text).unwrap();
    assert_eq!(&text[..len], b"moved!");
    space.close().unwrap();
}

/// `close` waited for a writer that waited for a group of the closing thread.
#[test]
fn close_does_not_wait_for_those_who_wait_for_its_own_group() {
    let (_fs, space) = gated();
    let file = space.create_file(b"a").unwrap();
    within(20, || {
        let mut group = space.group(&[&file]).unwrap();
        group.write(&file, 0, b"never seen").unwrap();
        std::thread::scope(|scope| {
            let waiting = [
                scope.spawn(|| file.append(b"x").map(|_| ())),
                scope.spawn(|| space.remove_file(b"a")),
                scope.spawn(|| space.group(&[&file]).map(|_| ())),
                scope.spawn(|| file.defrag(0, 10).map(|_| ())),
            ];
            std::thread::sleep(std::time::Duration::from_millis(100));
            space.close().unwrap();
            for thread in waiting {
                assert_eq!(thread.join().unwrap().unwrap_err().kind(), ErrorKind::Closed);
            }
        });
        assert_eq!(group.write(&file, 0, b"x").unwrap_err().kind(), ErrorKind::Closed);
        assert_eq!(group.commit().unwrap_err().kind(), ErrorKind::Closed);
    });
}

/// Readers that came in one after the other kept a waiting `close` out for good.
#[test]
fn close_is_not_held_up_by_calls_that_keep_coming() {
    let (_fs, space) = gated();
    let file = space.create_file(b"a").unwrap();
    file.append(&[7; 4000]).unwrap();
    within(20, || {
        std::thread::scope(|scope| {
            let readers: Vec<_> = (0..6)
                .map(|_| {
                    scope.spawn(|| {
                        loop {
                            match file.read(0, &mut [0; 4000]) {
                                Ok(len) => assert_eq!(len, 4000),
                                Err(error) => return error.kind(),
                            }
                        }
                    })
                })
                .collect();
            std::thread::sleep(std::time::Duration::from_millis(20));
            let begun = std::time::Instant::now();
            space.close().unwrap();
            assert!(begun.elapsed().as_secs() < 5, "close took {:?}", begun.elapsed());
            for reader in readers {
                assert_eq!(reader.join().unwrap(), ErrorKind::Closed);
            }
        });
    });
}

/// A reader that had looked whether the file was removed, and then waited for its removal, read an empty file.
#[test]
fn a_read_beside_a_removal_gives_the_bytes_or_not_found() {
    let (_fs, space) = gated();
    within(60, || {
        for round in 0..300 {
            let file = space.create_file(b"a").unwrap();
            file.append(&[7; 100]).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..2 {
                    scope.spawn(|| {
                        loop {
                            match file.read(0, &mut [0; 100]) {
                                Ok(len) => assert_eq!(len, 100, "round {round}"),
                                Err(error) => return assert_eq!(error.kind(), ErrorKind::NotFound),
                            }
                        }
                    });
                }
                space.remove_file(b"a").unwrap();
            });
        }
    });
    space.close().unwrap();
}

/// The sleep of the background thread began anew whenever something was due, and it did what was due for as long as anything
/// was: under steady work an interval never ran out.
#[test]
fn an_interval_runs_out_while_other_upkeep_goes_on() {
    let fs = Arc::new(Gated::new(Arc::new(MemFileSystem::new())));
    let options = SpaceOptions { durability: Durability::Interval(Duration::from_millis(200)), ..options() };
    let space = FlexSpace::open_with(fs as Arc<dyn FileSystem>, Path::new("/space"), &options).unwrap();
    let file = space.create_file(b"a").unwrap();
    within(30, || {
        let begun = std::time::Instant::now();
        let mut noted = VecDeque::new();
        // Each round drops a subtree, which wakes the background thread more often than the interval.
        while begun.elapsed() < Duration::from_secs(3) {
            for at in 0..400u64 {
                file.insert(at / 2, b"x").unwrap();
            }
            file.truncate(0).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            let stats = space.stats().unwrap();
            noted.push_back((begun.elapsed(), stats.sequence));
            while noted.front().is_some_and(|(_, sequence)| *sequence <= stats.durable_sequence) {
                noted.pop_front();
            }
            let oldest = noted.front().map_or(Duration::ZERO, |(noted, _)| begun.elapsed() - *noted);
            assert!(oldest < Duration::from_millis(1200), "an operation waits for {oldest:?}, not for 200 ms");
        }
        // With small limits one checkpoint follows the other, and the timed sync finds everything durable.
        let syncs = space.stats().unwrap().syncs;
        assert!(syncs >= 3 || cfg!(feature = "small_limits"), "{syncs} syncs, where fifteen would fit");
    });
    space.close().unwrap();
}
