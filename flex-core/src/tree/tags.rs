//! Tags: a 16-bit mark on a byte, the first of its extent. Internal nodes know which children hold one, so that the
//! nearest is found in O(log N).

use super::link::Link;
use super::node::{Body, Expect};
use super::node_codec::NodeSource;
use super::ops::SetTag;
use super::{FlexTree, Released};
use crate::Result;
use crate::address::Tag;

impl FlexTree {
    /// Sets the tag of the byte at `at`, which begins an extent from then on, or clears it with [`Tag::NONE`].
    pub fn set_tag(&mut self, src: &dyn NodeSource, at: u64, tag: Tag, out: &mut Released) -> Result<()> {
        self.check_range(at, 1)?;
        self.warm(src, at, 1)?;
        if self.tag(src, at)? != tag {
            self.settle(out);
            self.edit(at, &mut SetTag { tag }, out);
        }
        Ok(())
    }

    /// The tag of the byte at `at`.
    pub fn tag(&self, src: &dyn NodeSource, at: u64) -> Result<Tag> {
        self.check_range(at, 1)?;
        let extent = self.lookup(src, at)?;
        Ok(extent.filter(|extent| extent.offset == at).map_or(Tag::NONE, |extent| extent.tag))
    }

    /// The last tagged byte at or before `at`, which may lie behind the end.
    pub fn tagged_at_or_before(&self, src: &dyn NodeSource, at: u64) -> Result<Option<(u64, Tag)>> {
        if !self.has_tags() {
            return Ok(None);
        }
        last_tagged(&self.root.link, || self.expect_root(), src, at.min(self.len() - 1))
    }

    /// The first tagged byte at or behind `at`.
    pub fn tagged_at_or_after(&self, src: &dyn NodeSource, at: u64) -> Result<Option<(u64, Tag)>> {
        if !self.has_tags() || at >= self.len() {
            return Ok(None);
        }
        first_tagged(&self.root.link, || self.expect_root(), src, at)
    }

    /// The tagged bytes of a range.
    pub(super) fn tags_in(&self, src: &dyn NodeSource, at: u64, len: u64) -> Result<Vec<(u64, Tag)>> {
        let mut tags = Vec::new();
        let mut from = at;
        while let Some((found, tag)) = self.tagged_at_or_after(src, from)?
            && found < at + len
        {
            tags.push((found, tag));
            from = found + 1;
        }
        Ok(tags)
    }
}

/// The last tagged byte at or before `at`, relative to the child.
fn last_tagged(
    link: &Link,
    expect: impl FnOnce() -> Expect,
    src: &dyn NodeSource,
    at: u64,
) -> Result<Option<(u64, Tag)>> {
    match link.resolve(src, expect)?.map(|node| &node.body) {
        None => Ok(None),
        Some(Body::Leaf(leaf)) => {
            let found = (0..=leaf.find(at)).rev().find(|&i| leaf.tag(i).is_some());
            Ok(found.map(|i| (leaf.start(i), leaf.tag(i))))
        }
        Some(Body::Internal(node)) => {
            let mut at = at;
            let mut next = node.tagged_before(node.find(at) + 1);
            while let Some(i) = next {
                let rel = (at - node.offset(i)).min(node.child_span(i) - 1);
                let child: &dyn Fn() -> Expect = &|| node.expect(i);
                if let Some((found, tag)) = last_tagged(node.link(i), child, src, rel)? {
                    return Ok(Some((node.offset(i) + found, tag)));
                }
                next = node.tagged_before(i);
                at = node.offset(i);
            }
            Ok(None)
        }
    }
}

/// The first tagged byte at or behind `at`, relative to the child.
fn first_tagged(
    link: &Link,
    expect: impl FnOnce() -> Expect,
    src: &dyn NodeSource,
    at: u64,
) -> Result<Option<(u64, Tag)>> {
    match link.resolve(src, expect)?.map(|node| &node.body) {
        None => Ok(None),
        Some(Body::Leaf(leaf)) => {
            let i = leaf.find(at);
            let from = if leaf.start(i) < at { i + 1 } else { i };
            let found = (from..leaf.len()).find(|&i| leaf.tag(i).is_some());
            Ok(found.map(|i| (leaf.start(i), leaf.tag(i))))
        }
        Some(Body::Internal(node)) => {
            let mut next = node.tagged_from(node.find(at));
            while let Some(i) = next {
                let child: &dyn Fn() -> Expect = &|| node.expect(i);
                let rel = at.saturating_sub(node.offset(i));
                if let Some((found, tag)) = first_tagged(node.link(i), child, src, rel)? {
                    return Ok(Some((node.offset(i) + found, tag)));
                }
                next = node.tagged_from(i + 1);
            }
            Ok(None)
        }
    }
}
