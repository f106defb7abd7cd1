//! Scenarios of a few threads for the state machines of flex-core, in as many orders as shuttle is told to try.
//! `cargo test` here; FLEXFILE_LONG=1 tries a hundred times as many. A deadlock or a lost wake-up fails the test.
#![allow(dead_code)]

pub use flex_core::{Error, ErrorKind, Result};

mod sync;
#[path = "../../../flex-core/src/file/wake.rs"]
mod wake;
#[path = "../../../flex-core/src/file/writer_lock.rs"]
mod writer_lock;

#[cfg(test)]
mod tests {
    use crate::sync::Mutex;
    use crate::wake::Wake;
    use crate::writer_lock::WriterLock;
    use crate::{Error, ErrorKind, Result};
    use shuttle::sync::Arc;
    use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use shuttle::thread;
    use std::time::Duration;

    fn explore(scenario: impl Fn() + Send + Sync + 'static) {
        let orders = if std::env::var_os("FLEXFILE_LONG").is_some() { 200_000 } else { 2_000 };
        let scenario = std::sync::Arc::new(scenario);
        let again = scenario.clone();
        shuttle::check_random(move || scenario(), orders);
        shuttle::check_pct(move || again(), orders, 3);
    }

    const FOREVER: Duration = Duration::from_secs(1 << 40);

    #[test]
    fn writers_and_groups_exclude_each_other_and_none_is_forgotten() {
        explore(|| {
            let lock = Arc::new(WriterLock::default());
            let (inside, sum) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
            let threads: Vec<_> = (0..4)
                .map(|number| {
                    let (lock, inside, sum) = (lock.clone(), inside.clone(), sum.clone());
                    thread::spawn(move || {
                        let work = || {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two writers at once");
                            thread::yield_now();
                            sum.fetch_add(1, Ordering::SeqCst);
                            inside.fetch_sub(1, Ordering::SeqCst);
                        };
                        match number {
                            0 | 1 => {
                                lock.hold(|| Ok(())).unwrap();
                                work();
                                lock.release();
                            }
                            2 => {
                                let _guard = lock.lock(|| Ok(())).unwrap();
                                work();
                            }
                            _ => {
                                if let Some(_guard) = lock.lock_between_operations() {
                                    work();
                                } else {
                                    sum.fetch_add(1, Ordering::SeqCst);
                                }
                            }
                        }
                    })
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            assert_eq!(sum.load(Ordering::SeqCst), 4);
        });
    }

    /// What `Shared::close` does: it marks the space closed, wakes the files' locks, and waits for the calls inside, while
    /// the closing thread holds a group itself.
    #[test]
    fn a_close_ends_those_who_wait_for_its_own_group() {
        explore(|| {
            let (lock, closed) = (Arc::new(WriterLock::default()), Arc::new(AtomicBool::new(false)));
            lock.hold(|| Ok(())).unwrap();
            let waiting: Vec<_> = (0..2)
                .map(|_| {
                    let (lock, closed) = (lock.clone(), closed.clone());
                    thread::spawn(move || {
                        let may_wait = || -> Result<()> {
                            if closed.load(Ordering::SeqCst) {
                                return Err(Error::new(ErrorKind::Closed, "closed"));
                            }
                            Ok(())
                        };
                        lock.lock(may_wait).map(|_| ()).unwrap_err().kind()
                    })
                })
                .collect();
            closed.store(true, Ordering::SeqCst);
            lock.wake();
            for thread in waiting {
                assert_eq!(thread.join().unwrap(), ErrorKind::Closed);
            }
        });
    }

    /// Operations count themselves under one lock, as in `core`, and note that they are due; the thread does what is
    /// there after each wake. All must be done before it sleeps for good, without a timer.
    #[test]
    fn what_is_due_is_done_without_a_timer() {
        explore(|| {
            let (wake, due) = (Arc::new(Wake::new()), Arc::new(Mutex::new(0)));
            let done = Arc::new(AtomicU64::new(0));
            let upkeep = {
                let (wake, due, done) = (wake.clone(), due.clone(), done.clone());
                thread::spawn(move || {
                    let mut since = None;
                    while wake.wait(FOREVER, &mut since).is_some() {
                        loop {
                            let mut left = due.lock();
                            if *left == 0 {
                                break;
                            }
                            *left -= 1;
                            drop(left);
                            done.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                })
            };
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let (wake, due) = (wake.clone(), due.clone());
                    thread::spawn(move || {
                        for _ in 0..2 {
                            *due.lock() += 1;
                            wake.note(true);
                        }
                    })
                })
                .collect();
            writers.into_iter().for_each(|thread| thread.join().unwrap());
            while done.load(Ordering::SeqCst) < 4 {
                thread::yield_now();
            }
            wake.stop();
            upkeep.join().unwrap();
            assert!(wake.is_stopping() && wake.wait(FOREVER, &mut None).is_none());
        });
    }

    #[test]
    fn a_stop_ends_the_thread_whenever_it_comes() {
        explore(|| {
            let wake = Arc::new(Wake::new());
            let upkeep = {
                let wake = wake.clone();
                thread::spawn(move || while wake.wait(FOREVER, &mut None).is_some() {})
            };
            let writer = {
                let wake = wake.clone();
                thread::spawn(move || {
                    wake.note(false);
                    wake.note(true);
                })
            };
            wake.stop();
            writer.join().unwrap();
            upkeep.join().unwrap();
        });
    }
}
