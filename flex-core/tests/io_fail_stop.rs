//! Whole transfers over hostile files, and the latch that stops a space at its first failed write or sync.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind as IoKind, IoSlice};
use std::path::Path;
use std::sync::{Arc, Mutex};

use flex_core::ErrorKind;
use flex_core::io::fail_stop::{FailStopFile, Latch};
use flex_core::io::fault::{Class, FaultControl, FaultFileSystem, Operation, Plan};
use flex_core::io::mem::MemFileSystem;
use flex_core::io::{File, FileSystem, OpenMode, transfer};

/// A file whose reads and writes answer from a list, and otherwise move what they are asked to.
#[derive(Default)]
struct Scripted {
    answers: Mutex<VecDeque<std::io::Result<usize>>>,
    calls: Mutex<Vec<(u64, usize)>>,
    /// What another writer's failure latches while `sync_data` runs.
    poisoned_by_sync: Option<Latch>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = std::io::Result<usize>>) -> Scripted {
        Scripted { answers: Mutex::new(answers.into_iter().collect()), ..Scripted::default() }
    }

    fn answer(&self, offset: u64, len: usize) -> std::io::Result<usize> {
        self.calls.lock().unwrap().push((offset, len));
        self.answers.lock().unwrap().pop_front().unwrap_or(Ok(len))
    }

    fn calls(&self) -> Vec<(u64, usize)> {
        self.calls.lock().unwrap().clone()
    }
}

impl File for Scripted {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> std::io::Result<usize> {
        let len = self.answer(offset, buf.len())?;
        buf[..len].fill(7);
        Ok(len)
    }
    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> std::io::Result<usize> {
        self.answer(offset, bufs.iter().map(|buf| buf.len()).sum())
    }
    fn sync_data(&self) -> std::io::Result<()> {
        if let Some(latch) = &self.poisoned_by_sync {
            let _another_writer = latch.poison(flex_core::Error::invalid("another writer's failure"));
        }
        Ok(())
    }
    fn len(&self) -> std::io::Result<u64> {
        Ok(0)
    }
    fn set_len(&self, _: u64) -> std::io::Result<()> {
        Ok(())
    }
    fn reserve(&self, _: u64, _: u64) -> std::io::Result<()> {
        Ok(())
    }
    fn punch_hole(&self, _: u64, _: u64) -> std::io::Result<()> {
        Ok(())
    }
    fn allocated(&self) -> std::io::Result<u64> {
        Ok(0)
    }
}

fn interrupted() -> std::io::Result<usize> {
    Err(Error::from(IoKind::Interrupted))
}

#[test]
fn reads_go_on_after_short_and_interrupted_ones() {
    let file = Scripted::new([Ok(3), interrupted(), Ok(1)]);
    let mut buf = [0; 10];
    transfer::read_exact_at(&file, &mut buf, 100).unwrap();
    assert_eq!(buf, [7; 10]);
    assert_eq!(file.calls(), [(100, 10), (103, 7), (103, 7), (104, 6)]);
}

#[test]
fn a_file_that_ends_early_is_corruption_with_a_count() {
    let file = Scripted::new([Ok(3), Ok(0)]);
    let error = transfer::read_exact_at(&file, &mut [0; 10], 100).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(100)));
    assert!(error.message().contains("7 bytes before"), "{error}");
    let file = Scripted::new([Ok(3), Ok(0)]);
    assert_eq!(transfer::read_up_to_at(&file, &mut [0; 10], 100).unwrap(), 3);
}

#[test]
fn a_failed_transfer_names_the_offset_it_reached() {
    let file = Scripted::new([Ok(3), Err(Error::from_raw_os_error(libc::EIO))]);
    let error = transfer::read_up_to_at(&file, &mut [0; 10], 100).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.errno()), (ErrorKind::Io, Some(103), Some(libc::EIO)));
    let file = Scripted::new([Ok(4), Err(Error::from_raw_os_error(libc::EIO))]);
    let error = transfer::write_all_at(&file, &mut [IoSlice::new(&[0; 10])], 100).unwrap_err();
    assert_eq!((error.kind(), error.offset(), error.errno()), (ErrorKind::Io, Some(104), Some(libc::EIO)));
}

#[test]
fn writes_go_on_and_a_write_of_nothing_is_an_error() {
    let (a, b) = ([1; 4], [2; 6]);
    let file = Scripted::new([Ok(3), interrupted(), Ok(2)]);
    transfer::write_all_at(&file, &mut [&a[..], &[], &b].map(IoSlice::new), 50).unwrap();
    assert_eq!(file.calls(), [(50, 10), (53, 7), (53, 7), (55, 5)]);
    let file = Scripted::new([Ok(3), Ok(0)]);
    let error = transfer::write_all_at(&file, &mut [&a[..], &b].map(IoSlice::new), 50).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Io, Some(53)));
    // Nothing to write is no such error, and no call.
    let file = Scripted::new([Ok(0)]);
    transfer::write_all_at(&file, &mut [], 50).unwrap();
    transfer::write_all_at(&file, &mut [&[][..], &[]].map(IoSlice::new), 50).unwrap();
    assert_eq!(file.calls(), []);
}

#[test]
fn offsets_that_overflow_are_errors() {
    let file = Scripted::new([Ok(1), Ok(1)]);
    let error = transfer::read_exact_at(&file, &mut [0; 2], u64::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = transfer::write_all_at(&file, &mut [IoSlice::new(&[0; 2])], u64::MAX).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// Two files of one space.
struct Space {
    data: FailStopFile,
    log: FailStopFile,
    latch: Latch,
    control: FaultControl,
}

impl Space {
    fn new() -> Space {
        let fs = FaultFileSystem::new(Arc::new(MemFileSystem::new()));
        let (latch, control) = (Latch::new(), fs.control());
        let open = |name: &str| {
            let file = fs.open(Path::new(name), OpenMode::CreateNew).unwrap();
            FailStopFile::new(file, name, latch.clone())
        };
        let (data, log) = (open("DATA"), open("LOG.0"));
        data.write_at(b"content", 0).unwrap();
        Space { data, log, latch, control }
    }

    fn fail_next(&self, operation: Operation, errno: i32) {
        self.control.set_plan(Plan::Once { class: Class::Only(operation), nth: 0, errno });
    }

    /// Reads work and nothing else does, on both files, without the disk being touched.
    fn assert_poisoned(&self, cause: &str) {
        let writes = self.control.count(Class::Writes) + self.control.count(Class::Syncs);
        for file in [&self.data, &self.log] {
            for result in [
                file.write_at(b"more", 0),
                file.sync_data(),
                file.set_len(3),
                file.reserve(0, 10),
                file.punch_hole(0, 10),
                self.latch.check(),
            ] {
                let error = result.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Poisoned);
                assert!(error.message().contains(cause), "{error}");
            }
        }
        assert_eq!(self.control.count(Class::Writes) + self.control.count(Class::Syncs), writes);
        let mut buf = [0; 7];
        self.data.read_exact_at(&mut buf, 0).unwrap();
        assert_eq!(&buf, b"content");
        assert_eq!((self.data.len().unwrap(), self.data.allocated().unwrap()), (7, 4096));
        assert!(self.log.is_empty().unwrap());
    }
}

#[test]
fn a_failed_write_sync_or_length_stops_the_whole_space() {
    type Call = fn(&FailStopFile) -> flex_core::Result<()>;
    let calls: [(Operation, Call); 3] = [
        (Operation::Write, |file| file.write_at(b"x", 0)),
        (Operation::Sync, FailStopFile::sync_data),
        (Operation::SetLen, |file| file.set_len(0)),
    ];
    for (operation, call) in calls {
        for errno in [libc::EIO, libc::ENOSPC] {
            let space = Space::new();
            space.fail_next(operation, errno);
            let error = call(&space.log).unwrap_err();
            // Also for ENOSPC: only a reservation may say that nothing happened.
            assert_eq!((error.kind(), error.errno()), (ErrorKind::Io, Some(errno)), "{operation:?}");
            assert_eq!(error.path(), Some(Path::new("LOG.0")));
            assert!(space.latch.is_poisoned());
            assert_eq!(space.latch.cause().unwrap().to_string(), error.to_string());
            space.assert_poisoned(&error.to_string());
        }
    }
}

#[test]
fn a_transfer_that_fails_half_way_stops_it_too() {
    let space = Space::new();
    space.control.set_max_transfer(2);
    space.control.set_plan(Plan::Once { class: Class::Writes, nth: 2, errno: libc::EIO });
    let error = space.data.write_all_at(&mut [IoSlice::new(b"con"), IoSlice::new(b"tent")], 0).unwrap_err();
    assert_eq!(error.offset(), Some(4));
    space.assert_poisoned("at byte 4");
}

#[test]
fn reservations_punches_and_reads_don_t_latch() {
    let space = Space::new();
    let mut buf = [0; 7];
    space.fail_next(Operation::Reserve, libc::ENOSPC);
    let error = space.data.reserve(4096, 10).unwrap_err();
    assert_eq!((error.kind(), error.path(), error.offset()), (ErrorKind::NoSpace, Some(Path::new("DATA")), Some(4096)));
    space.fail_next(Operation::Reserve, libc::EIO);
    assert_eq!(space.data.reserve(4096, 10).unwrap_err().kind(), ErrorKind::Io);
    space.fail_next(Operation::Punch, libc::EIO);
    assert_eq!(space.data.punch_hole(0, 10).unwrap_err().kind(), ErrorKind::Io);
    space.fail_next(Operation::Read, libc::EIO);
    let error = space.data.read_exact_at(&mut buf, 0).unwrap_err();
    assert_eq!((error.kind(), error.path(), error.errno()), (ErrorKind::Io, Some(Path::new("DATA")), Some(libc::EIO)));
    let error = space.data.read_exact_at(&mut [0; 10], 0).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(Path::new("DATA"))));
    assert_eq!(space.data.read_up_to_at(&mut [0; 10], 2).unwrap(), 5);
    space.latch.check().unwrap();
    assert!(space.latch.cause().is_none());
    space.data.write_at(b"content", 0).unwrap();
    space.data.sync_data().unwrap();
}

#[test]
fn the_first_cause_stays() {
    let latch = Latch::new();
    let first = latch.poison(flex_core::Error::invalid("first"));
    let second = latch.poison(flex_core::Error::invalid("second"));
    assert_eq!((first.message(), second.message()), ("first", "second"));
    assert_eq!(latch.cause().unwrap().message(), "first");
    assert!(latch.check().unwrap_err().message().contains("first"));
}

#[test]
fn a_sync_does_not_hide_a_failure_beside_it() {
    let latch = Latch::new();
    let file = Scripted { poisoned_by_sync: Some(latch.clone()), ..Scripted::default() };
    let file = FailStopFile::new(Arc::new(file), "DATA", latch);
    let error = file.sync_data().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Poisoned);
    assert!(error.message().contains("another writer's failure"), "{error}");
}
