//! One file in memory: what programs see, what is durable, and the changes that lie between.
//!
//! Invariant: `live` is `durable` with all of `pending` applied in order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::pages::Pages;

/// Pages that all files of a file system occupy together.
#[derive(Default)]
pub(super) struct Usage(AtomicU64);

impl Usage {
    pub(super) fn pages(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes pages if that keeps the sum at or below `limit`.
    pub(super) fn take(&self, pages: u64, limit: u64) -> bool {
        let take = |used: u64| used.checked_add(pages).filter(|&sum| pages == 0 || sum <= limit);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    pub(super) fn give_back(&self, pages: u64) {
        self.0.fetch_sub(pages, Ordering::Relaxed);
    }
}

/// A change that is not durable yet.
#[derive(Clone)]
pub(super) enum Change {
    Write { offset: u64, bytes: Arc<[u8]> },
    SetLen(u64),
    Reserve { offset: u64, len: u64 },
    Punch { offset: u64, len: u64 },
}

impl Change {
    pub(super) fn apply(&self, to: &mut Pages) {
        match self {
            Change::Write { offset, bytes } => to.write(bytes, *offset),
            Change::SetLen(len) => to.set_len(*len),
            Change::Reserve { offset, len } => to.reserve(*offset, *len),
            Change::Punch { offset, len } => to.punch(*offset, *len),
        }
    }

    /// The length of the file behind the change, if it was `len` before.
    pub(super) fn len_after(&self, len: u64) -> u64 {
        match self {
            Change::Write { offset, bytes } => len.max(offset + bytes.len() as u64),
            Change::SetLen(new) => *new,
            Change::Reserve { offset, len: reserved } => len.max(offset + reserved),
            Change::Punch { .. } => len,
        }
    }
}

#[derive(Clone)]
pub(super) struct Pending {
    /// When it happened, among all changes of the file system.
    pub(super) stamp: u64,
    pub(super) change: Change,
}

#[derive(Clone, Default)]
pub(super) struct FileState {
    pub(super) live: Pages,
    pub(super) durable: Pages,
    pub(super) pending: Vec<Pending>,
}

impl FileState {
    /// A file all of whose contents are durable.
    pub(super) fn durable(pages: Pages) -> FileState {
        FileState { live: pages.clone(), durable: pages, pending: Vec::new() }
    }

    pub(super) fn sync(&mut self) {
        for Pending { change, .. } in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }
}

/// A file, reached by names and open handles; it occupies space until the last of both is gone.
pub(super) struct Inode {
    pub(super) state: Mutex<FileState>,
    usage: Arc<Usage>,
}

impl Inode {
    pub(super) fn new(state: FileState, usage: Arc<Usage>) -> Arc<Inode> {
        usage.take(state.live.allocated_pages(), u64::MAX);
        Arc::new(Inode { state: Mutex::new(state), usage })
    }
}

impl Drop for Inode {
    fn drop(&mut self) {
        self.usage.give_back(self.state.get_mut().live.allocated_pages());
    }
}
