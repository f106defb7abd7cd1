//! Misuse that must be answered, never waited for: handles after close, closes from everywhere, calls from callbacks.

mod threads_support;

use flex_core::ErrorKind;
use flex_core::file::{FlexSpace, LogCallback, SpaceOptions};
use flex_core::io::FileSystem;
use flex_core::io::fault::{Class, FaultFileSystem, Operation, Plan};
use flex_core::io::mem::MemFileSystem;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use threads_support::{options, sound, within};

fn open(fs: &Arc<dyn FileSystem>, options: &SpaceOptions) -> FlexSpace {
    FlexSpace::open_with(fs.clone(), Path::new("/space"), options).unwrap()
}

fn memory() -> Arc<dyn FileSystem> {
    Arc::new(MemFileSystem::new())
}

#[test]
fn a_thread_with_a_group_is_told_that_it_would_wait_for_itself() {
    within(20, || {
        let space = open(&memory(), &options());
        let (a, b) = (space.create_file(b"a").unwrap(), space.create_file(b"b").unwrap());
        let mut group = space.group(&[&a]).unwrap();
        group.write(&a, 0, b"one").unwrap();
        let busy = |result: flex_core::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Busy);
        busy(a.write(0, b"x"));
        busy(a.append(b"x").map(|_| ()));
        busy(a.insert(0, b"x"));
        busy(a.collapse(0, 0));
        busy(a.truncate(5));
        busy(a.set_tag(0, flex_core::address::Tag::NONE));
        busy(a.defrag(0, 10).map(|_| ()));
        busy(space.remove_file(b"a"));
        busy(space.group(&[&a]).map(|_| ()));
        busy(space.group(&[&b, &a]).map(|_| ()));
        // What does not need the file goes on.
        b.append(b"free").unwrap();
        let other = space.group(&[&b]).unwrap();
        busy(b.append(b"x").map(|_| ()));
        drop(other);
        space.rename_file(b"a", b"c").unwrap();
        space.checkpoint().unwrap();
        space.gc().unwrap();
        sound(&space);
        group.commit().unwrap();
        a.append(b"!").unwrap();
        let mut text = [0; 8];
        assert_eq!((a.read(0, &mut text).unwrap(), &text[..4]), (4, &b"one!"[..]));
        space.close().unwrap();
    });
}

#[test]
fn a_file_twice_in_a_group_and_a_file_of_another_space_are_refused() {
    let (one, two) = (open(&memory(), &options()), open(&memory(), &options()));
    let (a, b) = (one.create_file(b"a").unwrap(), two.create_file(b"b").unwrap());
    within(20, || {
        assert_eq!(one.group(&[&a, &a]).err().unwrap().kind(), ErrorKind::InvalidArgument);
        assert_eq!(one.group(&[&a, &b]).err().unwrap().kind(), ErrorKind::InvalidArgument);
        let mut group = one.group(&[&a]).unwrap();
        assert_eq!(group.write(&b, 0, b"x").unwrap_err().kind(), ErrorKind::InvalidArgument);
        drop(group);
        a.append(b"x").unwrap();
        b.append(b"x").unwrap();
    });
}

#[test]
fn handles_outlive_the_space_and_answer_closed() {
    within(20, || {
        for order in 0..4 {
            let space = open(&memory(), &SpaceOptions { background: order % 2 == 0, ..options() });
            let file = space.create_file(b"a").unwrap();
            file.append(&[1; 5000]).unwrap();
            let (snapshot, whole) = (file.snapshot().unwrap(), space.snapshot().unwrap());
            let mut cursor = file.cursor(0).unwrap();
            let mut group = space.group(&[&file]).unwrap();
            group.write(&file, 0, b"lost").unwrap();
            space.close().unwrap();
            let closed = |result: flex_core::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::Closed);
            closed(space.close());
            closed(space.sync());
            closed(space.stats().map(|_| ()));
            closed(space.snapshot().map(|_| ()));
            closed(space.check(&mut |_| true).map(|_| ()));
            closed(space.create_file(b"b").map(|_| ()));
            closed(file.append(b"x").map(|_| ()));
            closed(file.read(0, &mut [0; 4]).map(|_| ()));
            closed(snapshot.read(0, &mut [0; 4]).map(|_| ()));
            closed(whole.open_file(b"a").map(|_| ()));
            closed(cursor.next());
            closed(group.insert(&file, 0, b"x"));
            assert_eq!((snapshot.size(), cursor.current().map(|extent| extent.offset)), (5000, Some(0)));
            if order < 2 {
                drop((cursor, snapshot, whole, file));
                drop(group);
                drop(space);
            } else {
                drop(space);
                closed(group.commit());
                drop((file, whole, snapshot, cursor));
            }
        }
    });
}

#[test]
fn of_many_closes_one_closes() {
    within(30, || {
        for round in 0..20 {
            let fs = memory();
            let space = open(&fs, &options());
            let file = space.create_file(b"a").unwrap();
            file.append(&[round; 100_000]).unwrap();
            let closed = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| match space.close() {
                        Ok(()) => drop(closed.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Closed),
                    });
                }
            });
            assert_eq!(closed.load(Ordering::Relaxed), 1);
            let again = open(&fs, &options());
            assert_eq!(again.open_file(b"a").unwrap().size().unwrap(), 100_000);
            again.close().unwrap();
        }
    });
}

#[test]
fn the_last_handle_closes_whatever_it_is() {
    within(30, || {
        for last in 0..5 {
            let fs = memory();
            let space = open(&fs, &options());
            let file = space.create_file(b"a").unwrap();
            file.append(b"kept").unwrap();
            let last: Box<dyn Send> = match last {
                0 => Box::new(space.clone()),
                1 => Box::new(file.clone()),
                2 => Box::new(file.snapshot().unwrap()),
                3 => Box::new(space.snapshot().unwrap()),
                _ => Box::new(space.group(&[&file]).unwrap()),
            };
            drop((space, file));
            std::thread::spawn(move || drop(last)).join().unwrap();
            let again = open(&fs, &options());
            let stats = again.stats().unwrap();
            assert_eq!((stats.files, stats.live_bytes, stats.log_bytes), (1, 4, 0), "closed with a checkpoint");
        }
    });
}

#[test]
fn the_progress_of_a_check_may_call_but_not_close() {
    within(20, || {
        let space = open(&memory(), &options());
        let file = space.create_file(b"a").unwrap();
        file.append(&[3; 200_000]).unwrap();
        space.checkpoint().unwrap();
        let mut calls = 0;
        let report = space.check(&mut |_| {
            calls += 1;
            assert_eq!(space.close().unwrap_err().kind(), ErrorKind::Busy);
            file.append(b"from the callback").unwrap();
            assert_eq!(file.read(0, &mut [0; 4]).unwrap(), 4);
            space.snapshot().unwrap();
            space.checkpoint().unwrap();
            true
        });
        assert!(calls > 0 && report.unwrap().problems.is_empty());
        assert_eq!(space.check(&mut |_| false).unwrap_err().kind(), ErrorKind::InvalidArgument);
        space.close().unwrap();
    });
}

/// What the log callback does once it is called: set by the test after the space is open.
type Action = Arc<Mutex<Option<Box<dyn FnMut() + Send>>>>;

/// A space on which every reservation fails once `trouble` is called, so that upkeep has something to say.
fn troubled(background: bool) -> (FaultFileSystem, FlexSpace, Action, Arc<AtomicUsize>) {
    let fs = FaultFileSystem::new(memory());
    let action: Action = Arc::default();
    let calls = Arc::new(AtomicUsize::new(0));
    let (seen, count) = (action.clone(), calls.clone());
    let log: LogCallback = Arc::new(move |_, _| {
        let taken = seen.lock().unwrap().take();
        if let Some(mut act) = taken {
            act();
            count.fetch_add(1, Ordering::Release);
        }
    });
    let options = SpaceOptions { background, log: Some(log), ..options() };
    let space = FlexSpace::open_with(Arc::new(fs.clone()), Path::new("/space"), &options).unwrap();
    (fs, space, action, calls)
}

/// Works until the callback has acted.
fn work_until_said(fs: &FaultFileSystem, space: &FlexSpace, calls: &AtomicUsize) {
    let file = space.create_file(b"a").unwrap();
    file.append(&[1; 60_000]).unwrap();
    fs.control().set_plan(Plan::From { class: Class::Only(Operation::Punch), nth: 0, errno: libc::EIO });
    while calls.load(Ordering::Acquire) == 0 {
        // Fills segments and frees them: giving their blocks back fails, and is reported.
        if let Err(error) = file.write(0, &[2; 60_000]) {
            assert!(matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::Closed), "{error:?}");
        }
    }
    fs.control().set_plan(Plan::None);
}

#[test]
fn the_log_callback_is_answered_busy() {
    within(60, || {
        for background in [false, true] {
            let (fs, space, action, calls) = troubled(background);
            let inner = space.clone();
            *action.lock().unwrap() = Some(Box::new(move || {
                assert_eq!(inner.close().unwrap_err().kind(), ErrorKind::Busy);
                assert_eq!(inner.stats().unwrap_err().kind(), ErrorKind::Busy);
                assert_eq!(inner.sync().unwrap_err().kind(), ErrorKind::Busy);
                assert_eq!(inner.open_file(b"a").err().unwrap().kind(), ErrorKind::Busy);
            }));
            work_until_said(&fs, &space, &calls);
            sound(&space);
            space.close().unwrap();
        }
    });
}

#[test]
fn the_last_handle_may_go_in_the_log_callback() {
    within(60, || {
        let (fs, space, action, calls) = troubled(true);
        let only = Arc::new(Mutex::new(Some(space.clone())));
        let taken = only.clone();
        let ready = Arc::new((Mutex::new(false), std::sync::Condvar::new()));
        let wait = ready.clone();
        *action.lock().unwrap() = Some(Box::new(move || {
            let guard = wait.0.lock().unwrap();
            drop(wait.1.wait_while(guard, |ready| !*ready).unwrap());
            drop(taken.lock().unwrap().take());
        }));
        let file = space.create_file(b"a").unwrap();
        fs.control().set_plan(Plan::From { class: Class::Only(Operation::Punch), nth: 0, errno: libc::EIO });
        for _ in 0..40 {
            file.write(0, &[2; 60_000]).unwrap();
        }
        space.sync().unwrap();
        drop((space, file));
        *ready.0.lock().unwrap() = true;
        ready.1.notify_all();
        while calls.load(Ordering::Acquire) == 0 {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        fs.control().set_plan(Plan::None);
        // Another thread closes it as soon as the background thread has left the callback.
        let again = loop {
            match FlexSpace::open_with(Arc::new(fs.clone()), Path::new("/space"), &options()) {
                Ok(again) => break again,
                Err(error) => assert_eq!(error.kind(), ErrorKind::Busy),
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        assert_eq!(again.open_file(b"a").unwrap().size().unwrap(), 60_000);
        sound(&again);
    });
}
