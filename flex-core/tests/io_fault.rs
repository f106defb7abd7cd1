//! The failing file system: it counts and fails exactly what the plan says, and nothing reaches the disk that failed.

use std::io::{Error, IoSlice, Result};
use std::path::Path;
use std::sync::Arc;

use flex_core::io::fault::{Class, FaultControl, FaultFileSystem, Operation, Plan, is_stopped};
use flex_core::io::mem::{CrashKind, MemFileSystem};
use flex_core::io::{File, FileSystem, LockMode, OpenMode};

fn wrapped() -> (MemFileSystem, FaultFileSystem, FaultControl) {
    let mem = MemFileSystem::new();
    let fs = FaultFileSystem::new(Arc::new(mem.clone()));
    let control = fs.control();
    (mem, fs, control)
}

/// One operation of each kind, and each of the uncounted ones; the answers in order.
fn all_operations(fs: &dyn FileSystem) -> Vec<(Operation, Result<()>)> {
    let mut answers = Vec::new();
    let mut note = |operation, result: Result<()>| answers.push((operation, result));
    let (dir, one, two) = (Path::new("dir"), Path::new("dir/one"), Path::new("dir/two"));
    note(Operation::Create, fs.create_dir(dir));
    let file = fs.open(one, OpenMode::CreateNew);
    note(Operation::Create, file.as_ref().map(|_| ()).map_err(copied));
    let opened = fs.open(one, OpenMode::ReadWrite);
    note(Operation::Open, opened.as_ref().map(|_| ()).map_err(copied));
    if let Ok(file) = file.or(opened) {
        note(Operation::Write, file.write_at(&[IoSlice::new(b"bytes")], 3).map(|_| ()));
        note(Operation::Read, file.read_at(&mut [0; 4], 2).map(|_| ()));
        note(Operation::SetLen, file.set_len(100));
        note(Operation::Reserve, file.reserve(0, 200));
        note(Operation::Punch, file.punch_hole(0, 50));
        note(Operation::Sync, file.sync_data());
        file.len().unwrap();
        file.allocated().unwrap();
    }
    note(Operation::Rename, fs.rename(one, two));
    note(Operation::SyncDir, fs.sync_dir(Path::new("/")));
    note(Operation::Remove, fs.remove_file(two));
    fs.list_dir(Path::new("/")).unwrap();
    fs.lock(Path::new("LOCK"), LockMode::Exclusive).unwrap();
    answers
}

fn copied(error: &Error) -> Error {
    if is_stopped(error) {
        Error::other(error.to_string())
    } else {
        Error::from_raw_os_error(error.raw_os_error().unwrap())
    }
}

fn is_errno(result: &Result<()>, errno: i32) -> bool {
    result.as_ref().is_err_and(|error| error.raw_os_error() == Some(errno))
}

#[test]
fn every_kind_is_counted_once() {
    let (_, fs, control) = wrapped();
    control.set_logging(true);
    let answers = all_operations(&fs);
    assert!(answers.iter().all(|(_, result)| result.is_ok()));
    assert_eq!(control.count(Class::All), 12);
    assert_eq!(control.count(Class::Reads), 1);
    assert_eq!(control.count(Class::Writes), 4);
    assert_eq!(control.count(Class::Syncs), 2);
    assert_eq!(control.count(Class::Only(Operation::Create)), 2);
    assert_eq!(control.count(Class::Only(Operation::Rename)), 1);
    let log = control.log();
    let kinds: Vec<Operation> = log.iter().map(|entry| entry.operation).collect();
    assert_eq!(kinds, answers.iter().map(|(operation, _)| *operation).collect::<Vec<_>>());
    assert_eq!(log[3].to_string(), "3: Write dir/one 3+5");
    assert!(log.iter().enumerate().all(|(number, entry)| entry.number == number as u64 && !entry.failed));
    control.reset_counts();
    assert_eq!((control.count(Class::All), control.faults()), (0, 0));
}

#[test]
fn the_nth_operation_fails_and_no_other() {
    for nth in 0..14 {
        let (_, fs, control) = wrapped();
        // A create that fails takes others with it, so only the number of faults is looked at there.
        control.set_plan(Plan::Once { class: Class::All, nth, errno: libc::EIO });
        let answers = all_operations(&fs);
        let injected = answers.iter().filter(|(_, result)| is_errno(result, libc::EIO)).count();
        assert_eq!((injected as u64, control.faults()), if nth < 12 { (1, 1) } else { (0, 0) }, "operation {nth}");
        if nth < 12 {
            assert!(is_errno(&answers[nth as usize].1, libc::EIO), "operation {nth}");
        }
    }
}

#[test]
fn classes_fail_alone() {
    for (class, expected) in [
        (Class::Reads, vec![Operation::Read]),
        (Class::Writes, vec![Operation::Write, Operation::SetLen, Operation::Reserve, Operation::Punch]),
        (Class::Syncs, vec![Operation::Sync, Operation::SyncDir]),
        (Class::Only(Operation::Reserve), vec![Operation::Reserve]),
    ] {
        let (_, fs, control) = wrapped();
        control.set_plan(Plan::From { class, nth: 0, errno: libc::ENOSPC });
        let answers = all_operations(&fs);
        let failed: Vec<Operation> = answers
            .iter()
            .filter(|(_, result)| is_errno(result, libc::ENOSPC))
            .map(|(operation, _)| *operation)
            .collect();
        assert_eq!(failed, expected, "{class:?}");
        assert!(answers.iter().all(|(operation, result)| result.is_ok() != expected.contains(operation)));
        assert_eq!((control.count(Class::All), control.faults()), (12, expected.len() as u64));
    }
}

#[test]
fn the_count_of_a_plan_is_its_own() {
    let (mem, fs, control) = wrapped();
    let file = fs.open(Path::new("file"), OpenMode::CreateNew).unwrap();
    let write = |byte: u8| file.write_at(&[IoSlice::new(&[byte])], u64::from(byte)).map(|_| ());
    write(0).unwrap();
    control.set_plan(Plan::Once { class: Class::Writes, nth: 1, errno: libc::EIO });
    write(1).unwrap();
    file.sync_data().unwrap();
    assert!(is_errno(&write(2), libc::EIO));
    write(3).unwrap();
    control.set_plan(Plan::From { class: Class::Writes, nth: 1, errno: libc::ENOSPC });
    write(4).unwrap();
    assert!(is_errno(&write(5), libc::ENOSPC) && is_errno(&write(6), libc::ENOSPC));
    file.sync_data().unwrap();
    control.set_plan(Plan::None);
    write(7).unwrap();
    // What failed left no trace.
    let mut bytes = [0xEE; 9];
    let below = mem.open(Path::new("file"), OpenMode::ReadOnly).unwrap();
    assert_eq!(below.read_at(&mut bytes, 0).unwrap(), 8);
    assert_eq!(bytes[..8], [0, 1, 0, 3, 4, 0, 0, 7]);
}

#[test]
fn after_a_stop_nothing_passes() {
    for nth in 0..12 {
        let (_, fs, control) = wrapped();
        control.set_plan(Plan::Stop { nth });
        for (number, (operation, result)) in all_operations(&fs).into_iter().enumerate() {
            let stopped = result.as_ref().is_err_and(is_stopped);
            assert_eq!(stopped, number as u64 >= nth, "{operation:?} as {number}, stop at {nth}");
        }
        assert!(!is_stopped(&Error::from_raw_os_error(libc::EIO)));
    }
}

#[test]
fn a_stop_leaves_what_came_before() {
    let (mem, fs, control) = wrapped();
    let file = fs.open(Path::new("file"), OpenMode::CreateNew).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    control.set_plan(Plan::Stop { nth: 3 });
    for byte in 1..=4 {
        let _stopped = file.write_at(&[IoSlice::new(&[byte])], u64::from(byte) - 1).and_then(|_| file.sync_data());
    }
    // Write, sync, write passed; the second sync did not.
    for (kind, expected) in [(CrashKind::SyncedOnly, &[1][..]), (CrashKind::AllKept, &[1, 2])] {
        let image = mem.crash_image(1, kind).open(Path::new("file"), OpenMode::ReadOnly).unwrap();
        let mut bytes = vec![0; 8];
        let len = image.read_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes[..len], expected);
    }
    assert_eq!(control.faults(), 3, "the second sync and two writes");
}

#[test]
fn transfers_are_cut_short() {
    let (_, fs, control) = wrapped();
    let file = fs.open(Path::new("file"), OpenMode::CreateNew).unwrap();
    let parts: [&[u8]; 5] = [b"", b"ab", b"", b"cdef", b"gh"];
    let bufs = parts.map(IoSlice::new);
    for (max, expected) in [(0, 1), (1, 1), (2, 2), (3, 3), (7, 7), (8, 8), (9, 8)] {
        control.set_max_transfer(max);
        file.set_len(0).unwrap();
        assert_eq!(file.write_at(&bufs, 0).unwrap(), expected, "at most {max}");
        let mut read = [0; 20];
        control.set_max_transfer(usize::MAX);
        assert_eq!(file.read_at(&mut read, 0).unwrap(), expected);
        assert_eq!(read[..expected], b"abcdefgh"[..expected]);
        control.set_max_transfer(max);
        assert_eq!(file.read_at(&mut read, 0).unwrap(), expected);
        assert_eq!(file.read_at(&mut [], 0).unwrap(), 0);
        assert_eq!(file.write_at(&[], 0).unwrap(), 0);
    }
}

#[test]
fn threads_count_together() {
    let (_, fs, control) = wrapped();
    let file: Arc<dyn File> = fs.open(Path::new("file"), OpenMode::CreateNew).unwrap();
    control.reset_counts();
    control.set_plan(Plan::Once { class: Class::Writes, nth: 250, errno: libc::EIO });
    let write =
        |thread: u64| (0..100).filter(|at| file.write_at(&[IoSlice::new(b"x")], thread * 100 + at).is_err()).count();
    let failed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || write(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((failed, control.count(Class::Writes), control.faults()), (1, 400, 1));
}
