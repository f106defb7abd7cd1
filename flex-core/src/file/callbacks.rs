//! Which threads are inside a callback of the space now.
//!
//! A callback is the caller's code in the middle of a call, with the space's locks around it: a `close` from there would
//! wait for the call that it is part of, and other calls from the log callback may meet a lock that their own thread
//! holds. They are answered `Busy` instead. Callbacks are rare: everybody else pays one load.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ThreadId;

/// What calls back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Callback {
    /// The progress of a check: no lock is held, and only `close` is refused.
    Progress,
    /// A message: locks may be held, and every call is refused.
    Log,
}

/// See the module.
#[derive(Default)]
pub struct Callbacks {
    count: AtomicUsize,
    inside: Mutex<Vec<(ThreadId, Callback)>>,
}

/// A callback under way.
pub struct Inside<'a> {
    callbacks: &'a Callbacks,
    entry: (ThreadId, Callback),
}

impl Callbacks {
    /// This thread goes into a callback, and leaves it when the guard is dropped.
    pub fn enter(&self, callback: Callback) -> Inside<'_> {
        let entry = (std::thread::current().id(), callback);
        self.inside.lock().push(entry);
        self.count.fetch_add(1, Ordering::Relaxed);
        Inside { callbacks: self, entry }
    }

    /// Whether this thread is in a callback, and for which of two nested ones calls are refused more.
    #[inline]
    pub fn current(&self) -> Option<Callback> {
        // A thread sees its own count, and that is all it asks for.
        if self.count.load(Ordering::Relaxed) == 0 { None } else { self.look_up() }
    }

    #[cold]
    fn look_up(&self) -> Option<Callback> {
        let this = std::thread::current().id();
        let inside = self.inside.lock();
        let mine = inside.iter().filter(|(thread, _)| *thread == this).map(|(_, callback)| *callback);
        mine.reduce(|a, b| if a == Callback::Log { a } else { b })
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut inside = self.callbacks.inside.lock();
        if let Some(at) = inside.iter().position(|entry| *entry == self.entry) {
            inside.swap_remove(at);
        }
        self.callbacks.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_inside_is_seen() {
        let callbacks = Callbacks::default();
        let outer = callbacks.enter(Callback::Progress);
        assert_eq!(callbacks.current(), Some(Callback::Progress));
        {
            let _inner = callbacks.enter(Callback::Log);
            assert_eq!(callbacks.current(), Some(Callback::Log));
            std::thread::scope(|scope| scope.spawn(|| assert_eq!(callbacks.current(), None)).join().unwrap());
        }
        assert_eq!(callbacks.current(), Some(Callback::Progress));
        drop(outer);
        assert_eq!(callbacks.current(), None);
    }
}
