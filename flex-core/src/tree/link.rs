//! A link to a child: a node in memory, a page in `TREE`, or a hole.
//!
//! One word, so that a node's links take no more room than the pointers they mostly are, and following one costs no
//! indirection, however the child came into memory:
//!
//! | word | meaning |
//! |---|---|
//! | 0 | a hole; its length is the child's span in the parent |
//! | odd | a stored node, `page << 1 | 1` |
//! | else | a node in memory, a counted pointer |
//!
//! A page word is replaced by a pointer when somebody follows it, through `&self` and at most once (the node remembers
//! its page); nothing else changes through `&self`. So a link is a once-cell, and a node in memory stays where it is
//! while a reference to its parent lives.
//!
//! Threads: links are read and filled from any thread; mutation needs `&mut`.
#![allow(unsafe_code)]

use super::node::{Expect, Node};
use super::node_codec::NodeSource;
use crate::Result;
use crate::address::PageId;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use triomphe::Arc;

/// A link to a child.
pub(super) struct Link(AtomicPtr<Node>);

/// What a link is, without loading anything.
pub(super) enum View<'a> {
    /// Nothing is mapped.
    Hole,
    /// A node that was not followed since the tree was opened.
    Page(PageId),
    /// A node in memory.
    Node(&'a Node),
}

fn page_word(page: PageId) -> *mut Node {
    ptr::without_provenance_mut((page.0 as usize) << 1 | 1)
}

fn is_page(word: *mut Node) -> bool {
    word.addr() & 1 == 1
}

impl Link {
    /// A hole.
    pub const fn hole() -> Link {
        Link(AtomicPtr::new(ptr::null_mut()))
    }

    /// A stored node.
    pub fn page(page: PageId) -> Link {
        Link(AtomicPtr::new(page_word(page)))
    }

    /// A node in memory.
    pub fn new(node: Node) -> Link {
        Link::from_arc(Arc::new(node))
    }

    /// A node in memory that others may hold too.
    pub fn from_arc(node: Arc<Node>) -> Link {
        Link(AtomicPtr::new(Arc::into_raw(node).cast_mut()))
    }

    /// What it is now.
    #[inline]
    pub fn view(&self) -> View<'_> {
        let word = self.0.load(Ordering::Acquire);
        if word.is_null() {
            View::Hole
        } else if is_page(word) {
            View::Page(PageId((word.addr() >> 1) as u64))
        } else {
            // SAFETY: a word that is neither null nor odd came from `Arc::into_raw`; the count it stands for is given
            // up through `&mut self` or by drop only, so the node outlives `&self`. Acquire pairs with the release in
            // `fill`, which published it.
            View::Node(unsafe { &*word })
        }
    }

    /// The node, if it is in memory.
    #[inline]
    pub fn node(&self) -> Option<&Node> {
        match self.view() {
            View::Node(node) => Some(node),
            _ => None,
        }
    }

    /// Whether it is a hole.
    #[inline]
    pub fn is_hole(&self) -> bool {
        matches!(self.view(), View::Hole)
    }

    /// The node, loaded if need be; `None` for a hole. `expect` says what the parent knows about it, and is asked only
    /// when something is loaded.
    #[inline]
    pub fn resolve(&self, src: &dyn NodeSource, expect: impl FnOnce() -> Expect) -> Result<Option<&Node>> {
        match self.view() {
            View::Node(node) => Ok(Some(node)),
            View::Hole => Ok(None),
            View::Page(page) => self.fill(src, page, expect()).map(Some),
        }
    }

    #[cold]
    fn fill(&self, src: &dyn NodeSource, page: PageId, expect: Expect) -> Result<&Node> {
        let node = src.load(page)?.into_node(page);
        expect.check(&node, page)?;
        let fresh = Arc::into_raw(Arc::new(node)).cast_mut();
        let old = page_word(page);
        match self.0.compare_exchange(old, fresh, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: `fresh` came from `Arc::into_raw` above and its count belongs to this link now.
            Ok(_) => Ok(unsafe { &*fresh }),
            Err(word) => {
                // SAFETY: another thread was first; `fresh` was not published, its count is ours to give up.
                drop(unsafe { Arc::from_raw(fresh) });
                debug_assert!(!word.is_null() && !is_page(word));
                // SAFETY: as in `view`; a page word changes into nothing but a pointer.
                Ok(unsafe { &*word })
            }
        }
    }

    /// The word, if it is a pointer.
    #[inline]
    pub fn pointer(&mut self) -> Option<*mut Node> {
        let word = *self.0.get_mut();
        if word.is_null() || is_page(word) { None } else { Some(word) }
    }

    /// The node, if it is in memory and nobody else holds it.
    #[inline]
    pub fn get_mut(&mut self) -> Option<&mut Node> {
        let word = self.pointer()?;
        // SAFETY: `word` came from `Arc::into_raw`; `ManuallyDrop` keeps the count with this link.
        let mut arc = ManuallyDrop::new(unsafe { Arc::from_raw(word) });
        let node: *mut Node = Arc::get_mut(&mut arc)?;
        // SAFETY: the count is one and this link, borrowed mutably, is its only holder, so nothing else reaches the
        // node while the returned reference lives.
        Some(unsafe { &mut *node })
    }

    /// The node, held by nobody else: `copy` has to put a copy into the link where somebody does. `None` where the link
    /// leads to no node in memory.
    #[inline]
    pub fn own(&mut self, copy: impl FnOnce(&mut Link)) -> Option<&mut Node> {
        let word = self.pointer()?;
        // SAFETY: as in `get_mut`.
        let arc = ManuallyDrop::new(unsafe { Arc::from_raw(word) });
        if !arc.is_unique() {
            copy(self);
            return self.get_mut();
        }
        // SAFETY: as in `get_mut`; checked here too so that the common case asks once.
        Some(unsafe { &mut *word })
    }

    /// Gives the node up, if it is in memory; the link becomes a hole.
    pub fn take_arc(&mut self) -> Option<Arc<Node>> {
        let word = self.pointer()?;
        *self.0.get_mut() = ptr::null_mut();
        // SAFETY: `word` came from `Arc::into_raw`, and the link no longer holds its count.
        Some(unsafe { Arc::from_raw(word) })
    }

    /// Takes the link out and leaves a hole.
    pub fn take(&mut self) -> Link {
        std::mem::take(self)
    }
}

impl Default for Link {
    fn default() -> Link {
        Link::hole()
    }
}

impl Clone for Link {
    fn clone(&self) -> Link {
        let word = self.0.load(Ordering::Acquire);
        if !word.is_null() && !is_page(word) {
            // SAFETY: `word` came from `Arc::into_raw`; `ManuallyDrop` keeps this link's count, and forgetting the
            // clone makes its count the new link's.
            let arc = ManuallyDrop::new(unsafe { Arc::from_raw(word) });
            std::mem::forget(Arc::clone(&arc));
        }
        Link(AtomicPtr::new(word))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        drop(self.take_arc());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::leaf::Leaf;

    #[test]
    fn counts_follow_clones() {
        let mut link = Link::new(Node::leaf(Leaf::new(), 0));
        assert!(link.get_mut().is_some());
        let other = link.clone();
        assert!(link.get_mut().is_none());
        drop(other);
        assert!(link.get_mut().is_some());
        assert!(link.take_arc().is_some());
        assert!(link.is_hole());
    }

    #[test]
    fn a_page_keeps_its_number() {
        let link = Link::page(PageId(77));
        assert!(matches!(link.view(), View::Page(PageId(77))));
        assert!(matches!(link.clone().view(), View::Page(PageId(77))));
    }
}
