//! When the background thread wakes: something is due, the space has been dirty for a while, or it is to end.
//!
//! `note` is called behind every operation and costs two loads while nothing is new. A note is never lost: what is due is
//! looked up anew after each wake, and a mark that was set before the sleep began keeps the thread awake.

use crate::sync::{AtomicBool, Condvar, Mutex, Ordering};
use std::time::{Duration, Instant};

/// See the module.
pub struct Wake {
    /// Something was written since the last timed sync.
    dirty: AtomicBool,
    /// Something is due.
    due: AtomicBool,
    stop: Mutex<bool>,
    wake: Condvar,
}

impl Wake {
    /// Nothing to do.
    pub fn new() -> Wake {
        Wake {
            dirty: AtomicBool::new(false),
            due: AtomicBool::new(false),
            stop: Mutex::new(false),
            wake: Condvar::new(),
        }
    }

    /// An operation was made; `due`: and found something to do.
    #[inline]
    pub fn note(&self, due: bool) {
        let newly_due = due && !self.due.load(Ordering::Relaxed) && !self.due.swap(true, Ordering::AcqRel);
        let newly_dirty = !self.dirty.load(Ordering::Relaxed) && !self.dirty.swap(true, Ordering::AcqRel);
        if newly_due || newly_dirty {
            let _stop = self.stop.lock();
            self.wake.notify_one();
        }
    }

    /// The thread left something undone: its next `wait` does not sleep.
    pub fn leave_due(&self) {
        self.due.store(true, Ordering::Release);
    }

    /// What is dirty is about to be synced.
    pub fn clean(&self) {
        self.dirty.store(false, Ordering::Release);
    }

    /// Ends the thread's waiting, now and from now on.
    pub fn stop(&self) {
        *self.stop.lock() = true;
        self.wake.notify_all();
    }

    /// Whether `stop` was called.
    pub fn is_stopping(&self) -> bool {
        *self.stop.lock()
    }

    /// Sleeps until there is something to do. Returns `None` to end, else whether `time` has passed since `since`,
    /// which notes when this thread first found the space dirty: what is due in between does not put that off.
    pub fn wait(&self, time: Duration, since: &mut Option<Instant>) -> Option<bool> {
        let mut stop = self.stop.lock();
        if *stop {
            return None;
        }
        let mut timed_out = false;
        if !self.due.load(Ordering::Acquire) {
            if self.dirty.load(Ordering::Acquire) {
                let left = time.saturating_sub(since.get_or_insert_with(Instant::now).elapsed());
                self.wake.wait_for(&mut stop, left);
            } else {
                self.wake.wait(&mut stop);
            }
        }
        if self.dirty.load(Ordering::Acquire) && since.get_or_insert_with(Instant::now).elapsed() >= time {
            timed_out = true;
            *since = None;
        }
        self.due.store(false, Ordering::Release);
        (!*stop).then_some(timed_out)
    }
}
