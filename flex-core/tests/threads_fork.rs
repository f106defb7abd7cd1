//! A forked child: every call answers `Forked`, nothing hangs whatever the parent's threads held at the fork, handles may be
//! dropped, and the parent and its lock are as before.
//!
//! A test program of its own, with one test at a time in it: the child has only the thread that forked.
#![allow(unsafe_code)]

mod threads_support;

use flex_core::ErrorKind;
use flex_core::file::{FlexSpace, SpaceOptions};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use threads_support::{options, sound, within};

/// Runs `body` in a forked child, which is killed when it hangs; fails unless it returns true.
fn in_child(body: impl FnOnce() -> bool) {
    // SAFETY: the child touches what its copy of the memory holds, and leaves by `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        // A panic must not run on into the test harness's copy.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        let code = match result {
            Ok(true) => 0,
            Ok(false) => 1,
            Err(_) => 2,
        };
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(code) };
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut status = 0;
    loop {
        // SAFETY: waits for the child above without blocking.
        match unsafe { libc::waitpid(child, &mut status, libc::WNOHANG) } {
            0 if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
            0 => {
                // SAFETY: the child of this test alone.
                unsafe { libc::kill(child, libc::SIGKILL) };
                panic!("the child hangs");
            }
            _ => break,
        }
    }
    assert!(libc::WIFEXITED(status), "the child died of a signal: {status:#x}");
    assert_eq!(libc::WEXITSTATUS(status), 0);
}

fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("fork-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn forked<T>(result: flex_core::Result<T>) -> bool {
    result.is_err_and(|error| error.kind() == ErrorKind::Forked)
}

fn a_child_is_refused_and_the_parent_goes_on(background: bool) {
    let path = directory(if background { "background" } else { "plain" });
    let options = SpaceOptions { background, ..options() };
    let space = FlexSpace::open(&path, &options).unwrap();
    let file = space.create_file(b"a").unwrap();
    file.append(&[1; 10_000]).unwrap();
    let (snapshot, whole) = (file.snapshot().unwrap(), space.snapshot().unwrap());
    let cursor = file.cursor(0).unwrap();
    let mut group = space.group(&[&file]).unwrap();
    group.write(&file, 0, b"grouped").unwrap();
    // The child takes copies of the handles apart; the parent's stay.
    let mut handles = Some((space, file, snapshot, whole, cursor, group));
    in_child(|| {
        let Some((space, file, snapshot, whole, mut cursor, mut group)) = handles.take() else { return false };
        let refused = [
            forked(space.sync()),
            forked(space.flush()),
            forked(space.checkpoint()),
            forked(space.gc()),
            forked(space.stats()),
            forked(space.check(&mut |_| true)),
            forked(space.snapshot()),
            forked(space.create_file(b"b")),
            forked(space.open_file(b"a")),
            forked(space.remove_file(b"a")),
            forked(space.rename_file(b"a", b"b")),
            forked(space.list_files()),
            forked(space.group(&[&file])),
            forked(space.commit_word()),
            forked(file.read(0, &mut [0; 8])),
            forked(file.size()),
            forked(file.append(b"x")),
            forked(file.collapse(0, 1)),
            forked(file.defrag(0, 10)),
            forked(file.snapshot()),
            forked(snapshot.read(0, &mut [0; 8])),
            forked(whole.open_file(b"a")),
            forked(cursor.next()),
            forked(group.write(&file, 0, b"x")),
            forked(space.close()),
            forked(group.commit()),
        ];
        // Another handle of the directory: the parent has its lock.
        let busy = FlexSpace::open(&path, &options).is_err_and(|error| error.kind() == ErrorKind::Busy);
        drop((cursor, snapshot, whole, file, space));
        refused.iter().all(|refused| *refused) && busy
    });
    let (space, file, snapshot, whole, cursor, group) = handles.take().unwrap();
    assert_eq!(FlexSpace::open(&path, &options).err().unwrap().kind(), ErrorKind::Busy, "the lock is still ours");
    group.commit().unwrap();
    file.append(b"after").unwrap();
    assert_eq!(snapshot.read(0, &mut [0; 8]).unwrap(), 8);
    drop((cursor, whole, snapshot));
    sound(&space);
    space.close().unwrap();
    let again = FlexSpace::open(&path, &options).unwrap();
    assert_eq!(again.open_file(b"a").unwrap().size().unwrap(), 10_005);
    drop(again);
    std::fs::remove_dir_all(path).unwrap();
}

/// The locks are held by busy threads at the fork, more often than not.
fn a_child_does_not_hang_whatever_was_held() {
    let path = directory("busy");
    let space = FlexSpace::open(&path, &options()).unwrap();
    let file = space.create_file(b"a").unwrap();
    file.append(&[1; 10_000]).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for number in 0..3u64 {
            let (space, file, stop) = (&space, &file, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    file.write(number * 1000, &[number as u8; 3000]).unwrap();
                    match number {
                        0 => space.sync().unwrap(),
                        1 => drop(file.snapshot().unwrap()),
                        _ => drop(space.stats().unwrap()),
                    }
                }
            });
        }
        for _ in 0..if threads_support::long_run() { 500 } else { 40 } {
            let snapshot = file.snapshot().unwrap();
            let handle = space.clone();
            in_child(move || {
                let refused = [
                    forked(handle.sync()),
                    forked(handle.stats()),
                    forked(snapshot.read(0, &mut [0; 8])),
                    forked(handle.close()),
                ];
                drop((snapshot, handle));
                refused.iter().all(|refused| *refused)
            });
        }
        stop.store(true, Ordering::Relaxed);
    });
    sound(&space);
    space.close().unwrap();
    std::fs::remove_dir_all(path).unwrap();
}

#[test]
fn forked_children() {
    within(200, || {
        a_child_is_refused_and_the_parent_goes_on(false);
        a_child_is_refused_and_the_parent_goes_on(true);
        a_child_does_not_hang_whatever_was_held();
    });
}
