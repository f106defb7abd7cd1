//! flex-core's `sync`, over shuttle: the same names and calls, and every step of them a place where threads may change.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

pub use shuttle::sync::atomic::{AtomicBool, Ordering};
pub use shuttle::thread::{ThreadId, current};

/// As `parking_lot`'s.
#[derive(Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// As `parking_lot`'s. Empty only while a condition variable has it.
pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

/// As `parking_lot`'s.
#[derive(Default)]
pub struct Condvar(shuttle::sync::Condvar);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap()))
    }

    /// Time does not pass here: waits not at all.
    pub fn try_lock_for(&self, _: Duration) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok().map(|guard| MutexGuard(Some(guard)))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().unwrap()
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().unwrap()
    }
}

impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.0.take().unwrap();
        guard.0 = Some(self.0.wait(inner).unwrap());
    }

    /// Time does not pass here: only a notification ends it.
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _: Duration) {
        self.wait(guard);
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
