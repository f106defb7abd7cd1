//! The checker: every numbered invariant of [`super`], over the whole tree, which it loads.

use super::extent::{address_of, mergeable, tag_of};
use super::internal::Internal;
use super::leaf::Leaf;
use super::limits::{BIG_HOLE, INTERNAL_CAPACITY, LEAF_CAPACITY, LEAF_SPAN_LIMIT, MAX_LEN};
use super::link::{Link, View};
use super::node::{Body, Node};
use super::node_codec::NodeSource;
use super::{FlexTree, Released, TreeLimits};
use crate::address::PhysicalOffset;
use crate::{Error, Result};

/// What a check counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TreeReport {
    /// Leaves.
    pub leaves: u64,
    /// Internal nodes.
    pub internals: u64,
    /// Extents, holes included.
    pub extents: u64,
    /// Holes, those that are links included.
    pub holes: u64,
    /// Holes that are links.
    pub hole_links: u64,
    /// Bytes that are mapped.
    pub mapped_bytes: u64,
    /// Tagged bytes.
    pub tagged: u64,
    /// Nodes with fewer entries than they should have (invariant 8), which is allowed where a hole or a sibling that was
    /// not in memory stood beside them when they lost the others.
    pub underfull: u64,
}

impl FlexTree {
    /// Checks every invariant; what does not hold is an error of kind `Corruption`.
    pub fn check(&self, src: &dyn NodeSource) -> Result<TreeReport> {
        if self.tail.lags() {
            let mut settled = self.clone();
            settled.settle(&mut Released::default());
            return settled.check(src);
        }
        let mut check = Check { src, limits: self.limits, report: TreeReport::default() };
        let report = &mut check.report;
        match self.root.link.resolve(src, || self.expect_root())? {
            None if self.is_empty() => demand(self.extent_count() == 0, 3, "an empty tree counts extents")?,
            None => {
                demand(self.len() >= BIG_HOLE, 4, "a short hole is the root")?;
                (report.extents, report.holes, report.hole_links) = (1, 1, 1);
            }
            Some(root) => {
                demand(!matches!(&root.body, Body::Internal(node) if node.len() < 2), 9, "the root has one child")?;
                self.expect_root().check(root, root.page().unwrap_or(crate::address::PageId(0)))?;
                check.node(root, Place { left_edge: true, right_edge: true, excused: true, clean: false })?;
            }
        }
        demand(self.len() <= MAX_LEN, 6, "the tree is too long")?;
        let sums = (check.report.extents, check.report.tagged > 0);
        demand(sums == (self.extent_count(), self.has_tags()), 3, "the root's sums are wrong")?;
        Ok(check.report)
    }
}

fn demand(holds: bool, invariant: u32, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Error::corruption(format!("tree invariant {invariant}: {what}"))) }
}

/// What a node's surroundings say about it.
#[derive(Clone, Copy)]
struct Place {
    left_edge: bool,
    right_edge: bool,
    excused: bool,
    clean: bool,
}

struct Check<'a> {
    src: &'a dyn NodeSource,
    limits: TreeLimits,
    report: TreeReport,
}

impl Check<'_> {
    fn node(&mut self, node: &Node, place: Place) -> Result<()> {
        demand(!place.clean || node.page().is_some(), 9, "a dirty node below a clean one")?;
        let excused = place.left_edge || place.right_edge || place.excused;
        self.report.underfull += u64::from(node.is_underfull() && !excused);
        match &node.body {
            Body::Leaf(leaf) => self.leaf(leaf),
            Body::Internal(internal) => {
                self.internal(internal, Place { clean: place.clean || node.page().is_some(), ..place })
            }
        }
    }

    fn internal(&mut self, node: &Internal, place: Place) -> Result<()> {
        self.report.internals += 1;
        let n = node.len();
        demand((1..=INTERNAL_CAPACITY).contains(&n), 8, "an internal node's number of children")?;
        demand(node.padded(), 7, "offsets behind the last child")?;
        demand(node.offset(0) == 0, 2, "the first child is not at 0")?;
        let mut count = 0;
        for i in 0..n {
            demand(node.offset(i) < if i + 1 < n { node.offset(i + 1) } else { node.span() }, 2, "children overlap")?;
            count += node.child_count(i);
            let expect = node.expect(i);
            let Some(child) = node.link(i).resolve(self.src, || node.expect(i))? else {
                self.hole(node, i)?;
                continue;
            };
            expect.check(child, child.page().unwrap_or(crate::address::PageId(0)))?;
            let below = Place {
                left_edge: place.left_edge && i == 0,
                right_edge: place.right_edge && i + 1 == n,
                excused: excused(node, i, child),
                clean: place.clean,
            };
            self.node(child, below)?;
        }
        demand(count == node.count(), 3, "an internal node's count")
    }

    fn hole(&mut self, node: &Internal, i: usize) -> Result<()> {
        demand(node.level() == 1, 1, "a hole link above the leaves")?;
        demand(node.child_span(i) >= BIG_HOLE && !node.child_has_tags(i), 4, "a hole link is short or tagged")?;
        demand(node.child_count(i) == 1, 3, "a hole link counts more than itself")?;
        self.report.extents += 1;
        self.report.holes += 1;
        self.report.hole_links += 1;
        Ok(())
    }

    fn leaf(&mut self, leaf: &Leaf) -> Result<()> {
        self.report.leaves += 1;
        let n = leaf.len();
        demand((1..=LEAF_CAPACITY).contains(&n), 8, "a leaf's number of extents")?;
        demand(leaf.padded(), 7, "starts behind the last extent")?;
        demand(leaf.start(0) == 0 && leaf.span() < LEAF_SPAN_LIMIT, 6, "a leaf's span")?;
        let mut tagged = 0;
        for i in 0..n {
            demand(leaf.start(i) < leaf.end(i), 2, "extents overlap")?;
            let (len, packed) = (leaf.extent_len(i), leaf.packed(i));
            let address = address_of(packed);
            if address.is_hole() {
                self.report.holes += 1;
                demand(len < BIG_HOLE, 4, "a long hole in a leaf")?;
                demand(len == 1 || !tag_of(packed).is_some(), 4, "a tagged hole of more than its byte")?;
            } else {
                self.report.mapped_bytes += len;
                let fits = address.0 + len <= PhysicalOffset::HOLE.0;
                demand(fits && len <= u64::from(self.limits.max_extent_len), 4, "an extent is too long")?;
            }
            if i + 1 < n {
                let merge = mergeable(len, packed, leaf.extent_len(i + 1), leaf.packed(i + 1), &self.limits);
                demand(!merge, 5, "two extents that are one")?;
            }
            tagged += u64::from(tag_of(packed).is_some());
        }
        demand(leaf.has_tags() == (tagged > 0), 3, "a leaf's number of tags")?;
        self.report.tagged += tagged;
        self.report.extents += n as u64;
        Ok(())
    }
}

/// Whether child `i` may be underfull because no sibling could have helped.
fn excused(node: &Internal, i: usize, child: &Node) -> bool {
    let helps = |k: usize| match node.link(k).view() {
        View::Node(sibling) => child.level() > 0 || sibling.span() + child.span() < LEAF_SPAN_LIMIT,
        View::Hole | View::Page(_) => false,
    };
    let sibling_is_hole = |k: usize| Link::is_hole(node.link(k));
    let before = i.checked_sub(1);
    let behind = (i + 1 < node.len()).then_some(i + 1);
    let mut siblings = before.into_iter().chain(behind);
    siblings.clone().any(sibling_is_hole) || !siblings.any(helps)
}
