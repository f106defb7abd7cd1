//! A node: a leaf of extents or an internal node of links, with the page it is stored in.
//!
//! A node is *clean* when it has a page, *dirty* when it has none. A clean node's descendants are clean. A node's page
//! is set once while the node is frozen (a checkpoint runs over a clone of the tree), and cleared only by an edit that
//! holds the node alone.

use super::extent::Piece;
use super::internal::Internal;
use super::leaf::Leaf;
use super::link::Link;
use crate::address::PageId;
use crate::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// What a node is.
#[derive(Clone)]
pub(super) enum Body {
    /// Extents.
    Leaf(Leaf),
    /// Links.
    Internal(Internal),
}

/// A node with its state. In this order in memory: all that an edit looks at before the arrays is in one cache line.
#[repr(C)]
pub(super) struct Node {
    /// The page it is stored in; 0 while dirty.
    page: AtomicU64,
    /// The tree's epoch when it was made dirty.
    pub epoch: u32,
    /// What it is.
    pub body: Body,
}

impl Node {
    /// A dirty leaf.
    pub fn leaf(leaf: Leaf, epoch: u32) -> Node {
        Node { page: AtomicU64::new(0), epoch, body: Body::Leaf(leaf) }
    }

    /// A dirty internal node.
    pub fn internal(internal: Internal, epoch: u32) -> Node {
        Node { page: AtomicU64::new(0), epoch, body: Body::Internal(internal) }
    }

    /// A node that was read from `page`.
    pub fn stored(body: Body, page: PageId) -> Node {
        Node { page: AtomicU64::new(page.0), epoch: 0, body }
    }

    /// A dirty copy.
    pub fn copy(&self, epoch: u32) -> Node {
        Node { page: AtomicU64::new(0), epoch, body: self.body.clone() }
    }

    /// The page it is stored in.
    #[inline]
    pub fn page(&self) -> Option<PageId> {
        match self.page.load(Ordering::Acquire) {
            0 => None,
            page => Some(PageId(page)),
        }
    }

    /// Says where it was stored.
    pub fn set_page(&self, page: PageId) {
        self.page.store(page.0, Ordering::Release);
    }

    /// Makes it dirty; the page it had is no longer its own.
    #[inline]
    pub fn make_dirty(&mut self, epoch: u32) -> Option<PageId> {
        let page = *self.page.get_mut();
        if page == 0 {
            return None;
        }
        *self.page.get_mut() = 0;
        self.epoch = epoch;
        Some(PageId(page))
    }

    /// 0 for a leaf.
    #[inline]
    pub fn level(&self) -> u32 {
        match &self.body {
            Body::Leaf(_) => 0,
            Body::Internal(internal) => internal.level(),
        }
    }

    /// Bytes of address space.
    #[inline]
    pub fn span(&self) -> u64 {
        match &self.body {
            Body::Leaf(leaf) => leaf.span(),
            Body::Internal(internal) => internal.span(),
        }
    }

    /// Extents below, holes included.
    #[inline]
    pub fn count(&self) -> u64 {
        match &self.body {
            Body::Leaf(leaf) => leaf.len() as u64,
            Body::Internal(internal) => internal.count(),
        }
    }

    /// Whether there is a tag below.
    #[inline]
    pub fn has_tags(&self) -> bool {
        match &self.body {
            Body::Leaf(leaf) => leaf.has_tags(),
            Body::Internal(internal) => internal.has_tags(),
        }
    }

    /// Whether it has fewer entries than a node should.
    #[inline]
    pub fn is_underfull(&self) -> bool {
        match &self.body {
            Body::Leaf(leaf) => leaf.len() < super::limits::LEAF_MIN,
            Body::Internal(internal) => internal.len() < super::limits::INTERNAL_MIN,
        }
    }
}

/// What a parent knows about a child, and what a stored child must therefore be.
pub(super) struct Expect {
    /// 0 for a leaf.
    pub level: u32,
    /// Bytes of address space.
    pub span: u64,
    /// Extents below.
    pub count: u64,
    /// Whether there is a tag below.
    pub tagged: bool,
}

impl Expect {
    /// Refuses a node that is not what the parent says.
    pub fn check(&self, node: &Node, page: PageId) -> Result<()> {
        let found = (node.level(), node.span(), node.count(), node.has_tags());
        let expected = (self.level, self.span, self.count, self.tagged);
        if found == expected {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "tree page {} holds (level, span, extents, tags) {found:?}, its parent says {expected:?}",
            page.0
        )))
    }
}

/// A child with what its parent keeps about it: the form in which edits off the hot path move children about.
#[derive(Clone)]
pub(super) struct Entry {
    /// The child.
    pub link: Link,
    /// Bytes of address space.
    pub span: u64,
    /// Extents below.
    pub count: u64,
    /// Whether there is a tag below.
    pub tagged: bool,
}

impl Entry {
    /// A hole that is a child of its own.
    pub fn hole(len: u64) -> Entry {
        Entry { link: Link::hole(), span: len, count: 1, tagged: false }
    }

    /// A dirty leaf of its own.
    pub fn leaf(pieces: &[Piece], epoch: u32) -> Entry {
        Entry::node(Node::leaf(Leaf::from_pieces(pieces), epoch))
    }

    /// A node of its own.
    pub fn node(node: Node) -> Entry {
        let (span, count, tagged) = (node.span(), node.count(), node.has_tags());
        Entry { link: Link::new(node), span, count, tagged }
    }

    /// Takes over what the child in memory now says.
    pub fn refresh(&mut self) {
        if let Some(node) = self.link.node() {
            (self.span, self.count, self.tagged) = (node.span(), node.count(), node.has_tags());
        }
    }

    /// Whether the child is in memory and has too few entries.
    pub fn is_underfull(&self) -> bool {
        self.link.node().is_some_and(Node::is_underfull)
    }
}
