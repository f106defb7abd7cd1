//! The last leaf, remembered between appends.
//!
//! An append changes the last leaf, and the spans and counts of every node above it. While nothing but appends happens,
//! the tree keeps a pointer to that leaf and lets the nodes above lag behind by what was appended; whatever else comes
//! [settles](super::FlexTree::settle) first. Nothing that reads minds the lag: a search needs the offsets, and those of
//! last children don't depend on what is behind them; the root entry is always up to date.
#![allow(unsafe_code)]

use super::FlexTree;
use super::extent::Piece;
use super::limits::TreeLimits;
use super::link::Link;
use super::node::{Body, Node};
use super::released::Released;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// See the module.
pub(super) struct Tail {
    /// The last leaf, while this tree is its only holder and it is dirty; else null.
    leaf: AtomicPtr<Node>,
    /// Bytes and extents that the nodes above the leaf do not know of yet.
    len: u64,
    count: u64,
}

impl Tail {
    /// No leaf is known.
    pub const fn new() -> Tail {
        Tail { leaf: AtomicPtr::new(ptr::null_mut()), len: 0, count: 0 }
    }

    /// Forgets the leaf: it may be shared, stored or moved from now on.
    pub fn forget(&self) {
        self.leaf.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// Whether nodes lag behind.
    pub fn lags(&self) -> bool {
        self.len != 0 || self.count != 0
    }

    /// Appends to the leaf that is known; returns by how many extents there are more, or `None` and nothing changed.
    #[inline]
    pub fn append(&mut self, new: Piece, limits: &TreeLimits) -> Option<u64> {
        let leaf = *self.leaf.get_mut();
        if leaf.is_null() || new.tag().is_some() {
            return None;
        }
        // SAFETY: `remember` took the pointer from a link of this tree whose node nobody else held. Since then there were
        // only appends: every other edit and every clone forgets it first, through `&mut` or before another holder exists,
        // and `&mut self` keeps readers out. So the node is alive, ours alone, and not referred to while we use it.
        let Body::Leaf(leaf) = (unsafe { &mut (*leaf).body }) else { return None };
        let more = leaf.append(new, limits)?;
        self.len += new.len;
        self.count += more;
        Some(more)
    }
}

impl Clone for Tail {
    /// The clone shares the leaf, so that neither tree may change it in place.
    fn clone(&self) -> Tail {
        self.forget();
        Tail { leaf: AtomicPtr::new(ptr::null_mut()), ..*self }
    }
}

impl FlexTree {
    /// Remembers the last leaf after an append, if this tree alone holds the path to it.
    pub(super) fn remember_tail(&mut self) {
        *self.tail.leaf.get_mut() = last_leaf(&mut self.root.link);
    }

    /// Tells the nodes above the last leaf what was appended to it. Edits do it by themselves; before a tree is stored,
    /// the caller does.
    pub fn settle(&mut self, out: &mut Released) {
        self.tail.forget();
        if self.tail.lags() {
            self.settle_spine(out);
        }
    }

    #[cold]
    fn settle_spine(&mut self, out: &mut Released) {
        let (len, count) = (std::mem::take(&mut self.tail.len), std::mem::take(&mut self.tail.count));
        let mut edit = super::edit::Edit { limits: self.limits, epoch: self.epoch, out };
        let mut link = &mut self.root.link;
        while let Body::Internal(node) = &mut edit.own(link).body {
            node.appended(len, count, false);
            let last = node.len() - 1;
            link = node.link_mut(last);
        }
    }
}

fn last_leaf(link: &mut Link) -> *mut Node {
    let pointer = link.pointer().unwrap_or(ptr::null_mut());
    match link.get_mut().map(|node| &mut node.body) {
        Some(Body::Leaf(_)) => pointer,
        Some(Body::Internal(node)) => {
            let last = node.len() - 1;
            last_leaf(node.link_mut(last))
        }
        None => ptr::null_mut(),
    }
}
