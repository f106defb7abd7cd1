//! FlexTree: an extent index of a file's address space in which inserting or removing a range shifts everything behind
//! it in O(log N).
//!
//! A path-copied B+-tree. Every node's own coordinates begin at 0, and a child's offset in its parent is both its pivot
//! and what shifts everything below it: an insertion adds its length to the entries behind it on one path, and a
//! subtree does not know its position. Cloning a tree copies one link; edits copy the nodes on their path that another
//! clone holds, and change the others in place.
//!
//! Invariants, each tested by [`FlexTree::check`]:
//!
//! 1. Leaves are at one depth; an internal node's level is its distance to them. Holes that are links are siblings of
//!    leaves, or the root.
//! 2. Extents tile `[0, len)`: offsets ascend strictly from 0 below the node's span, and a child's span in its parent is
//!    the child's own. No extent is empty.
//! 3. Extent counts and has-tag bits in a parent are what the child says.
//! 4. A mapped extent is at most `max_extent_len` long and ends below the largest physical offset; a hole in a leaf is
//!    shorter than `BIG_HOLE`, and one byte long if it has a tag; a hole that is a link is at least as long as
//!    `BIG_HOLE` and has no tag.
//! 5. Neighbours in one leaf that could be one extent are one. Neighbours in two leaves may be left apart.
//! 6. A leaf's span is below 2^32, the tree's at most 2^63 - 1.
//! 7. Unused offsets are padding (the search relies on it).
//! 8. A node has at most its capacity and at least one entry. It has at least the minimum unless it is on an edge of the
//!    tree, could only be filled beyond a leaf's span, or had a hole or a sibling that was not in memory beside it
//!    (nothing is loaded for it): [`TreeReport::underfull`] counts what is left.
//! 9. Below a clean node there is no dirty one. A root that is an internal node has at least two children.
//!
//! Failure: an operation that returns an error has changed nothing. It first loads every stored node that the edit will
//! touch, and the edit itself can't fail.
//!
//! Threads: `&FlexTree` may be read from any number of threads; edits need `&mut`. Nothing here does I/O, takes a lock
//! or reads a clock; nothing is durable.

pub mod btree;
mod collapse;
mod cursor;
mod edit;
mod extent;
mod internal;
mod invariants;
mod leaf;
pub mod limits;
mod link;
pub mod model;
mod node;
pub mod node_codec;
mod ops;
mod read;
mod rebalance;
mod released;
mod search;
mod store;
mod tags;
mod tail;

pub use cursor::Cursor;
pub use extent::Extent;
pub use invariants::TreeReport;
pub use limits::TreeLimits;
pub use node_codec::{NoPages, NodeImage, NodeSource, PageSink};
pub use released::{Released, StoredPart, Subtree, Superseded};
pub use store::{RootRef, StoredRoot};

use crate::address::{PhysicalOffset, Tag};
use crate::{Error, ErrorKind, Result};
use edit::{At, Edit, LeafEdit, append_at, edit_at};
use extent::Piece;
use limits::{MAX_EXTENT_LEN, MAX_LEN};
use node::{Body, Entry};
use ops::{Insert, Replace};
use tail::Tail;

/// An extent index. A clone is a version: O(1), and unmoved by later edits.
#[derive(Clone)]
pub struct FlexTree {
    root: Entry,
    /// Level of the node behind the root link; 0 for a hole.
    level: u32,
    limits: TreeLimits,
    epoch: u32,
    /// Whether some link may lead to a page.
    stored: bool,
    tail: Tail,
}

impl FlexTree {
    /// An empty tree. `max_extent_len` is taken as at least 1 and at most [`MAX_EXTENT_LEN`].
    pub fn new(limits: TreeLimits) -> FlexTree {
        let limits = TreeLimits { max_extent_len: limits.max_extent_len.clamp(1, MAX_EXTENT_LEN) };
        FlexTree {
            root: Entry { count: 0, ..Entry::hole(0) },
            level: 0,
            limits,
            epoch: 0,
            stored: false,
            tail: Tail::new(),
        }
    }

    /// Bytes of address space.
    pub fn len(&self) -> u64 {
        self.root.span
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of extents, holes included.
    pub fn extent_count(&self) -> u64 {
        self.root.count
    }

    /// Whether a byte has a tag.
    pub fn has_tags(&self) -> bool {
        self.root.tagged
    }

    /// Levels of nodes: 0 when there is nothing or one hole.
    pub fn height(&self) -> u32 {
        if self.root.link.is_hole() { 0 } else { self.level + 1 }
    }

    /// What its space fixed.
    pub fn limits(&self) -> TreeLimits {
        self.limits
    }

    /// Whether every node is in memory, so that nothing has to be loaded.
    pub fn is_resident(&self) -> bool {
        !self.stored
    }

    /// Nodes that become dirty from now on carry this number.
    pub fn set_epoch(&mut self, epoch: u32) {
        self.tail.forget();
        self.epoch = epoch;
    }

    /// What [`FlexTree::set_epoch`] said last.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Inserts `len` bytes at `at`, which shifts what is there, a tagged byte included. A mapping is at most
    /// `max_extent_len` long, a hole as long as fits.
    pub fn insert(
        &mut self,
        src: &dyn NodeSource,
        at: u64,
        len: u64,
        address: PhysicalOffset,
        tag: Tag,
        out: &mut Released,
    ) -> Result<()> {
        if at > self.len() {
            return Err(self.out_of_range(at, len));
        }
        if len == 0 {
            return Err(Error::invalid("an insertion of no bytes"));
        }
        self.check_mapping(len, address)?;
        if len > MAX_LEN - self.len() {
            return Err(Error::new(ErrorKind::TooBig, "a file is at most 2^63 - 1 bytes long"));
        }
        self.warm(src, at, 0)?;
        self.insert_warm(at, Piece::new(len, address, tag), out);
        Ok(())
    }

    /// Removes `[at, at + len)` and shifts what is behind it, in O(log N): what was mapped by the leaves at both ends
    /// goes to `out.extents`, what lies between to `out.subtrees`.
    pub fn collapse(&mut self, src: &dyn NodeSource, at: u64, len: u64, out: &mut Released) -> Result<()> {
        self.check_range(at, len)?;
        if len > 0 {
            self.warm(src, at, len)?;
            self.settle(out);
            self.collapse_warm(at, len, out);
        }
        Ok(())
    }

    /// Maps `[at, at + len)` elsewhere (at most `max_extent_len` bytes, or to a hole). Tags stay on their bytes.
    pub fn replace(
        &mut self,
        src: &dyn NodeSource,
        at: u64,
        len: u64,
        address: PhysicalOffset,
        out: &mut Released,
    ) -> Result<()> {
        self.check_range(at, len)?;
        self.check_mapping(len, address)?;
        if len == 0 {
            return Ok(());
        }
        self.warm(src, at, len)?;
        self.settle(out);
        if self.in_one_child(src, at, len)? {
            self.edit(at, &mut Replace { len, address }, out);
            return Ok(());
        }
        let tags = self.tags_in(src, at, len)?;
        self.collapse_warm(at, len, out);
        let mut from = at;
        let mut tag = Tag::NONE;
        for (to, next) in tags.into_iter().chain([(at + len, Tag::NONE)]) {
            if to > from {
                self.insert_warm(from, Piece::new(to - from, address.advance(from - at), tag), out);
            }
            (from, tag) = (to, next);
        }
        Ok(())
    }

    /// Cuts everything from `at` on off and returns it as a tree of its own, in O(log N).
    pub fn split_off(&mut self, src: &dyn NodeSource, at: u64, out: &mut Released) -> Result<FlexTree> {
        if at > self.len() {
            return Err(self.out_of_range(at, 0));
        }
        self.settle(out);
        let mut right = FlexTree { epoch: self.epoch, stored: self.stored, ..FlexTree::new(self.limits) };
        if at == 0 {
            std::mem::swap(self, &mut right);
        } else if at < self.len() {
            self.warm(src, at, 0)?;
            let level = self.level;
            let whole = self.take_root();
            let mut edit = self.edit_context(out);
            let (a, b) = collapse::split(whole, level, at, &mut edit);
            self.set_root(vec![a], level, out);
            right.set_root(vec![b], level, out);
        }
        Ok(right)
    }

    /// Puts another tree of the same space behind this one, in O(log N).
    pub fn join(&mut self, src: &dyn NodeSource, mut right: FlexTree, out: &mut Released) -> Result<()> {
        if right.len() > MAX_LEN - self.len() {
            return Err(Error::new(ErrorKind::TooBig, "a file is at most 2^63 - 1 bytes long"));
        }
        if right.is_empty() {
            return Ok(());
        }
        self.warm(src, self.len(), 0)?;
        right.warm(src, 0, 0)?;
        self.settle(out);
        right.settle(out);
        self.stored |= right.stored;
        if self.is_empty() {
            (self.root, self.level) = (right.take_root(), right.level);
            return Ok(());
        }
        let level = self.level.max(right.level);
        let (a, b) = ((self.take_root(), self.level), (right.take_root(), right.level));
        let entries = rebalance::join(a, b, &mut self.edit_context(out));
        self.set_root(entries, level, out);
        Ok(())
    }

    /// Loads every stored node that an edit of `[at, at + len)` touches: the paths to both ends and to what is before
    /// and behind them.
    #[inline]
    pub fn warm(&self, src: &dyn NodeSource, at: u64, len: u64) -> Result<()> {
        if self.stored { self.warm_paths(src, at, len) } else { Ok(()) }
    }

    #[cold]
    fn warm_paths(&self, src: &dyn NodeSource, at: u64, len: u64) -> Result<()> {
        let end = at.saturating_add(len);
        let before = [at.checked_sub(1), end.checked_sub(1)].into_iter().flatten();
        for position in before.chain([at, end]).filter(|&position| position < self.len()) {
            self.find_child(src, position)?;
        }
        Ok(())
    }

    fn edit_context<'a>(&self, out: &'a mut Released) -> Edit<'a> {
        Edit { limits: self.limits, epoch: self.epoch, out }
    }

    #[inline]
    fn insert_warm(&mut self, at: u64, new: Piece, out: &mut Released) {
        if at == self.len() {
            if let Some(more) = self.tail.append(new, &self.limits) {
                self.root.span += new.len;
                self.root.count += more;
                return;
            }
            let mut edit = self.edit_context(out);
            if let Some(more) = append_at(&mut self.root.link, new, &mut edit) {
                self.root.span += new.len;
                self.root.count += more;
                self.root.tagged |= new.tag().is_some();
                self.remember_tail();
                return;
            }
        }
        self.settle(out);
        self.edit(at, &mut Insert { new }, out);
    }

    /// Applies an edit whose path is warm.
    #[inline]
    fn edit<E: LeafEdit>(&mut self, at: u64, op: &mut E, out: &mut Released) {
        let here = At { level: self.level, span: self.len(), at, append: E::PREFERS_LEFT && at == self.len() };
        let mut edit = self.edit_context(out);
        let entries = edit_at(&mut self.root.link, here, op, &mut edit);
        if entries.is_empty() {
            self.root.refresh();
            self.lower_root(out);
        } else {
            self.set_root(entries, self.level, out);
        }
    }

    fn collapse_warm(&mut self, at: u64, len: u64, out: &mut Released) {
        let (level, span) = (self.level, self.len());
        if len == span {
            let whole = self.take_root();
            let left = if level == 0 && !whole.link.is_hole() {
                let mut edit = self.edit_context(out);
                let pieces = edit.take_pieces(whole.link, span);
                collapse::release_pieces(pieces, &mut edit);
                Vec::new()
            } else {
                vec![whole]
            };
            out.entries(left, level);
            self.level = 0;
            return;
        }
        let mut edit = self.edit_context(out);
        let entries = collapse::collapse(&mut self.root.link, level, span, at, len, &mut edit);
        if entries.is_empty() {
            self.root.refresh();
            self.lower_root(out);
        } else {
            self.set_root(entries, level, out);
        }
    }

    /// Takes the root out and leaves an empty tree of the same level.
    fn take_root(&mut self) -> Entry {
        std::mem::replace(&mut self.root, Entry { count: 0, ..Entry::hole(0) })
    }

    /// Makes `entries` of `level` the tree, with as many levels above them as they need.
    fn set_root(&mut self, mut entries: Vec<Entry>, mut level: u32, out: &mut Released) {
        while entries.len() > 1 {
            level += 1;
            entries = internal::nodes_of(level, entries, false, self.epoch);
        }
        self.level = level;
        if let Some(root) = entries.pop() {
            self.root = root;
        }
        self.lower_root(out);
    }

    /// Drops levels in which there is one child only.
    #[inline]
    fn lower_root(&mut self, out: &mut Released) {
        while let Some(Body::Internal(root)) = self.root.link.node().map(|node| &node.body)
            && root.len() == 1
        {
            let child = self.edit_context(out).own_internal(&mut self.root.link).remove(0);
            self.root = child;
            self.level -= 1;
        }
    }

    fn check_range(&self, at: u64, len: u64) -> Result<()> {
        match at.checked_add(len) {
            Some(end) if end <= self.len() => Ok(()),
            _ => Err(self.out_of_range(at, len)),
        }
    }

    fn check_mapping(&self, len: u64, address: PhysicalOffset) -> Result<()> {
        if address.is_hole() {
            return Ok(());
        }
        if len > u64::from(self.limits.max_extent_len) {
            let max = self.limits.max_extent_len;
            return Err(Error::new(ErrorKind::TooBig, format!("an extent of {len} bytes, the limit is {max}")));
        }
        if address.0 >= PhysicalOffset::HOLE.0 - len {
            return Err(Error::invalid(format!("no extent can be at physical offset {}", address.0)));
        }
        Ok(())
    }

    #[cold]
    fn out_of_range(&self, at: u64, len: u64) -> Error {
        let text = format!("{len} bytes at {at} of a file that is {} bytes long", self.len());
        Error::new(ErrorKind::OutOfRange, text)
    }
}

impl std::fmt::Debug for FlexTree {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FlexTree({} bytes, {} extents, height {})", self.len(), self.extent_count(), self.height())
    }
}
