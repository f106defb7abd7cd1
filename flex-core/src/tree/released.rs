//! What leaves a tree: extents, pages, whole subtrees and nodes that a running checkpoint may still store.
//!
//! An edit tells its caller everything that the tree no longer holds, so that segments and pages can be freed when no
//! version sees them any more. Whole subtrees are handed over as they are, so that a collapse costs O(log N); taking
//! them apart is the reaper's work, in slices.

use super::link::{Link, View};
use super::node::{Body, Entry, Expect, Node};
use super::node_codec::NodeSource;
use crate::Result;
use crate::address::{PageId, PhysicalOffset};
use std::fmt;
use triomphe::Arc;

/// What left a tree.
#[derive(Default, Debug)]
pub struct Released {
    /// Mapped bytes: where, and how many. Holes are omitted.
    pub extents: Vec<(PhysicalOffset, u32)>,
    /// Whole subtrees, neither whose extents nor whose pages are among the rest.
    pub subtrees: Vec<Subtree>,
    /// Pages whose node was rewritten or dropped.
    pub pages: Vec<PageId>,
    /// Nodes that were rewritten or dropped and had no page, but that somebody else holds: a running checkpoint may be
    /// about to give them one.
    pub superseded: Vec<Superseded>,
}

impl Released {
    /// Forgets everything, and keeps the room.
    pub fn clear(&mut self) {
        self.extents.clear();
        self.subtrees.clear();
        self.pages.clear();
        self.superseded.clear();
    }

    /// Adds what another edit released.
    pub fn absorb(&mut self, other: Released) {
        self.extents.extend(other.extents);
        self.subtrees.extend(other.subtrees);
        self.pages.extend(other.pages);
        self.superseded.extend(other.superseded);
    }

    /// Takes note that the tree no longer holds this node.
    pub(super) fn node(&mut self, node: Arc<Node>) {
        match node.page() {
            Some(page) => self.pages.push(page),
            None if node.is_unique() => {}
            None => self.superseded.push(Superseded(node)),
        }
    }

    /// Takes note that the tree no longer holds what is behind these links.
    pub(super) fn entries(&mut self, entries: Vec<Entry>, level: u32) {
        if entries.iter().any(|entry| !entry.link.is_hole()) {
            let pending = entries.into_iter().map(|entry| (entry, level)).collect();
            self.subtrees.push(Subtree { pending });
        }
    }

    fn leaf_extents(&mut self, node: &Node) {
        if let Body::Leaf(leaf) = &node.body {
            let mapped = (0..leaf.len()).map(|i| leaf.extent(i, 0)).filter(|extent| !extent.is_hole());
            self.extents.extend(mapped.map(|extent| (extent.address, extent.len as u32)));
        }
    }
}

/// A node that a tree no longer holds and that had no page when it left.
pub struct Superseded(Arc<Node>);

impl Superseded {
    /// The tree's epoch when the node was made dirty.
    pub fn epoch(&self) -> u32 {
        self.0.epoch
    }

    /// The page that a checkpoint has given it since.
    pub fn page(&self) -> Option<PageId> {
        self.0.page()
    }
}

impl fmt::Debug for Superseded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Superseded(epoch {}, page {:?})", self.epoch(), self.page())
    }
}

/// A stored root among what is left of a [`Subtree`], for a list that survives a crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredPart {
    /// Its page.
    pub page: PageId,
    /// Distance to the leaves.
    pub level: u32,
    /// Bytes of address space.
    pub span: u64,
    /// Extents, holes included.
    pub extent_count: u64,
    /// Whether a byte has a tag.
    pub has_tags: bool,
}

/// Whole subtrees that left a tree, not yet accounted for. A clone is cheap and holds the same nodes.
#[derive(Clone)]
pub struct Subtree {
    /// Links still to be taken apart, with the level of what they lead to; the last comes first.
    pending: Vec<(Entry, u32)>,
}

impl Subtree {
    /// Bytes of address space not yet taken apart.
    pub fn span(&self) -> u64 {
        self.pending.iter().map(|(entry, _)| entry.span).sum()
    }

    /// Extents not yet taken apart, holes included.
    pub fn extent_count(&self) -> u64 {
        self.pending.iter().map(|(entry, _)| entry.count).sum()
    }

    /// The stored roots of what is left; `None` where a part of it has no page.
    pub fn stored_parts(&self) -> Option<Vec<StoredPart>> {
        let mut parts = Vec::new();
        for (entry, level) in &self.pending {
            let page = match entry.link.view() {
                View::Hole => continue,
                View::Page(page) => page,
                View::Node(node) => node.page()?,
            };
            let (span, extent_count, has_tags) = (entry.span, entry.count, entry.tagged);
            parts.push(StoredPart { page, level: *level, span, extent_count, has_tags });
        }
        Some(parts)
    }

    /// A subtree of stored parts, as [`Subtree::stored_parts`] gave them.
    pub fn from_stored_parts(parts: &[StoredPart]) -> Subtree {
        let entry = |part: &StoredPart| {
            let link = Link::page(part.page);
            (Entry { link, span: part.span, count: part.extent_count, tagged: part.has_tags }, part.level)
        };
        Subtree { pending: parts.iter().map(entry).collect() }
    }

    /// Accounts for about `budget` nodes, their extents and pages going to `out`, and returns what is left. What could
    /// not be loaded is lost with an error; [`Subtree::take_apart_some`] keeps it.
    pub fn take_apart(mut self, src: &dyn NodeSource, budget: usize, out: &mut Released) -> Result<Option<Subtree>> {
        let done = self.take_apart_some(src, budget, out)?;
        Ok((!done).then_some(self))
    }

    /// Accounts for about `budget` nodes in place; `true` when nothing is left. After an error everything not yet
    /// accounted for is still there.
    pub fn take_apart_some(&mut self, src: &dyn NodeSource, budget: usize, out: &mut Released) -> Result<bool> {
        for _ in 0..budget.max(1) {
            let Some((mut entry, level)) = self.pending.pop() else { return Ok(true) };
            let expect = || Expect { level, span: entry.span, count: entry.count, tagged: entry.tagged };
            if let Err(error) = entry.link.resolve(src, expect).map(|_| ()) {
                self.pending.push((entry, level));
                return Err(error);
            }
            let Some(mut node) = entry.link.take_arc() else { continue };
            if level == 0 {
                out.leaf_extents(&node);
            } else {
                self.descend(&mut node, level - 1);
            }
            out.node(node);
        }
        Ok(self.pending.is_empty())
    }

    /// Adds the children of `node`: its own links where nobody else holds it, else copies of them.
    fn descend(&mut self, node: &mut Arc<Node>, level: u32) {
        let mut copy;
        let body = match Arc::get_mut(node) {
            Some(node) => &mut node.body,
            None => {
                copy = node.body.clone();
                &mut copy
            }
        };
        if let Body::Internal(internal) = body {
            self.pending.extend(internal.take_all().into_iter().rev().map(|entry| (entry, level)));
        }
    }
}

impl fmt::Debug for Subtree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Subtree(span {}, {} extents)", self.span(), self.extent_count())
    }
}
