//! Reading a tree: the extent at an offset, the extents of a range, the next data or hole.

use super::internal::Internal;
use super::leaf::Leaf;
use super::link::Link;
use super::node::{Body, Expect};
use super::node_codec::NodeSource;
use super::{Extent, FlexTree};
use crate::Result;
use crate::address::{PhysicalOffset, Tag};
use std::ops::ControlFlow;

/// A leaf, or a hole that is a link, with its position.
pub(super) enum Child<'a> {
    /// A leaf that begins at an offset.
    Leaf(&'a Leaf, u64),
    /// A hole.
    Hole(Extent),
}

/// The hole `[offset, offset + len)`.
pub(super) fn hole_extent(offset: u64, len: u64) -> Extent {
    Extent { offset, len, address: PhysicalOffset::HOLE, tag: Tag::NONE }
}

impl FlexTree {
    /// What the root must be if it is stored.
    pub(super) fn expect_root(&self) -> Expect {
        Expect { level: self.level, span: self.len(), count: self.extent_count(), tagged: self.has_tags() }
    }

    /// The leaf or hole that covers `at`, which is inside the tree.
    #[inline]
    pub(super) fn find_child<'a>(&'a self, src: &dyn NodeSource, at: u64) -> Result<Child<'a>> {
        let Some(mut node) = self.root.link.resolve(src, || self.expect_root())? else {
            return Ok(Child::Hole(hole_extent(0, self.len())));
        };
        let (mut base, mut rel) = (0, at);
        loop {
            match &node.body {
                Body::Leaf(leaf) => return Ok(Child::Leaf(leaf, base)),
                Body::Internal(internal) => {
                    let i = internal.find(rel);
                    base += internal.offset(i);
                    rel -= internal.offset(i);
                    match internal.link(i).resolve(src, || internal.expect(i))? {
                        Some(child) => node = child,
                        None => return Ok(Child::Hole(hole_extent(base, internal.child_span(i)))),
                    }
                }
            }
        }
    }

    /// The whole extent that covers `at`; `None` from the end on.
    #[inline]
    pub fn lookup(&self, src: &dyn NodeSource, at: u64) -> Result<Option<Extent>> {
        if at >= self.len() {
            return Ok(None);
        }
        Ok(Some(match self.find_child(src, at)? {
            Child::Hole(extent) => extent,
            Child::Leaf(leaf, base) => leaf.extent(leaf.find(at - base), base),
        }))
    }

    /// Whether one leaf, or one hole that is a link, holds all of `[at, at + len)`.
    pub(super) fn in_one_child(&self, src: &dyn NodeSource, at: u64, len: u64) -> Result<bool> {
        Ok(match self.find_child(src, at)? {
            Child::Hole(extent) => at + len <= extent.end(),
            Child::Leaf(leaf, base) => at + len <= base + leaf.span(),
        })
    }

    /// Calls `f` with the extents of `[at, at + len)` in order, clipped to the range, until it breaks. A tag is reported
    /// only where its byte is in the range. What lies behind the end of the tree is left out.
    pub fn for_each_in(
        &self,
        src: &dyn NodeSource,
        at: u64,
        len: u64,
        f: &mut dyn FnMut(Extent) -> ControlFlow<()>,
    ) -> Result<()> {
        let to = at.saturating_add(len).min(self.len());
        if at < to {
            let mut walk = Walk { src, from: at, to, f };
            let _stopped = walk.child(&self.root.link, || self.expect_root(), 0, self.len())?;
        }
        Ok(())
    }

    /// The first mapped byte at or behind `at`. Takes time in proportion to the extents of the hole between.
    pub fn next_mapped(&self, src: &dyn NodeSource, at: u64) -> Result<Option<u64>> {
        self.next_where(src, at, |extent| !extent.is_hole())
    }

    /// The first byte of a hole at or behind `at`; the end of the tree is none. Takes time in proportion to the mapped
    /// extents between.
    pub fn next_hole(&self, src: &dyn NodeSource, at: u64) -> Result<Option<u64>> {
        self.next_where(src, at, Extent::is_hole)
    }

    fn next_where(&self, src: &dyn NodeSource, at: u64, wanted: impl Fn(&Extent) -> bool) -> Result<Option<u64>> {
        let mut found = None;
        self.for_each_in(src, at, u64::MAX, &mut |extent| {
            if wanted(&extent) {
                found = Some(extent.offset);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

struct Walk<'a> {
    src: &'a dyn NodeSource,
    from: u64,
    to: u64,
    f: &'a mut dyn FnMut(Extent) -> ControlFlow<()>,
}

impl Walk<'_> {
    /// Walks the part of a child at `base` that overlaps the range, of which there is some.
    fn child(&mut self, link: &Link, expect: impl FnOnce() -> Expect, base: u64, span: u64) -> Result<ControlFlow<()>> {
        match link.resolve(self.src, expect)?.map(|node| &node.body) {
            None => Ok((self.f)(hole_extent(base, span).clip(self.from, self.to))),
            Some(Body::Leaf(leaf)) => Ok(self.leaf(leaf, base)),
            Some(Body::Internal(internal)) => self.internal(internal, base),
        }
    }

    fn internal(&mut self, node: &Internal, base: u64) -> Result<ControlFlow<()>> {
        let first = node.find(self.from.saturating_sub(base));
        for i in first..node.len() {
            let start = base + node.offset(i);
            if start >= self.to {
                break;
            }
            if self.child(node.link(i), || node.expect(i), start, node.child_span(i))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn leaf(&mut self, leaf: &Leaf, base: u64) -> ControlFlow<()> {
        let first = leaf.find(self.from.saturating_sub(base));
        for i in first..leaf.len() {
            let extent = leaf.extent(i, base);
            if extent.offset >= self.to {
                break;
            }
            (self.f)(extent.clip(self.from, self.to))?;
        }
        ControlFlow::Continue(())
    }
}
