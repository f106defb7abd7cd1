//! One writer of a file at a time: single operations for their duration, a group for its life.
//!
//! A thread that holds a group and needs a file that a group holds would wait for itself (or for another that may wait
//! for it), so it is answered `Busy` instead. Nobody waits for a group once the space is being closed.

use crate::Result;
use crate::sync::{Condvar, Mutex, MutexGuard, ThreadId, current};
use std::time::Duration;

/// How long a collection waits for an operation to end.
const PATIENCE: Duration = Duration::from_millis(20);

/// The lock of one file.
#[derive(Default)]
pub struct WriterLock {
    group: Mutex<Option<ThreadId>>,
    free: Condvar,
}

/// Held by one operation.
pub type OperationGuard<'a> = MutexGuard<'a, Option<ThreadId>>;

impl WriterLock {
    /// Waits until no group holds the file, and keeps others out until the guard is dropped.
    /// `may_wait` is asked before each wait for a group; its error is the answer.
    pub fn lock(&self, may_wait: impl Fn() -> Result<()>) -> Result<OperationGuard<'_>> {
        let mut group = self.group.lock();
        while group.is_some() {
            may_wait()?;
            self.free.wait(&mut group);
        }
        Ok(group)
    }

    /// Keeps others out, unless a group holds the file or an operation does not end soon. For a collection, which may be
    /// what that operation waits for.
    pub fn lock_between_operations(&self) -> Option<OperationGuard<'_>> {
        self.group.try_lock_for(PATIENCE).filter(|group| group.is_none())
    }

    /// Hands the file to a group of this thread, until `release`.
    pub fn hold(&self, may_wait: impl Fn() -> Result<()>) -> Result<()> {
        *self.lock(may_wait)? = Some(current().id());
        Ok(())
    }

    /// Makes those who wait ask again whether they may.
    pub fn wake(&self) {
        // Whoever asked before the lock was taken here waits by now.
        drop(self.group.lock());
        self.free.notify_all();
    }

    /// Ends what `hold` began.
    pub fn release(&self) {
        *self.group.lock() = None;
        self.free.notify_all();
    }
}
