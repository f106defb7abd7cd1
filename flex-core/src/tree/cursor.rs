//! A cursor: a position in one version of a tree that moves both ways over a stack of the nodes on its path.
//!
//! It borrows the tree, so nothing shifts under it; to follow edits, take a clone and a new cursor.

use super::internal::Internal;
use super::leaf::Leaf;
use super::link::Link;
use super::node::{Body, Expect};
use super::node_codec::NodeSource;
use super::read::hole_extent;
use super::{Extent, FlexTree};
use crate::Result;

struct Frame<'a> {
    node: &'a Internal,
    base: u64,
    i: usize,
}

/// Where the path ends.
enum Spot<'a> {
    Nowhere,
    Hole(Extent),
    Leaf { leaf: &'a Leaf, base: u64, i: usize },
}

/// A position in a tree, on an extent or nowhere. After an error it is nowhere.
pub struct Cursor<'a> {
    tree: &'a FlexTree,
    src: &'a dyn NodeSource,
    stack: Vec<Frame<'a>>,
    spot: Spot<'a>,
}

/// Which entry of a node to go to.
#[derive(Clone, Copy)]
enum Goal {
    At(u64),
    First,
    Last,
}

impl FlexTree {
    /// A cursor that is nowhere yet.
    pub fn cursor<'a>(&'a self, src: &'a dyn NodeSource) -> Cursor<'a> {
        Cursor { tree: self, src, stack: Vec::with_capacity(8), spot: Spot::Nowhere }
    }
}

impl<'a> Cursor<'a> {
    /// The extent it is on, whole.
    #[inline]
    pub fn current(&self) -> Option<Extent> {
        match &self.spot {
            Spot::Nowhere => None,
            Spot::Hole(extent) => Some(*extent),
            Spot::Leaf { leaf, base, i } => Some(leaf.extent(*i, *base)),
        }
    }

    /// Moves to the extent that covers `at`; nowhere from the end on.
    pub fn seek(&mut self, at: u64) -> Result<()> {
        self.start(if at < self.tree.len() { Some(Goal::At(at)) } else { None })
    }

    /// Moves to the first extent.
    pub fn seek_to_first(&mut self) -> Result<()> {
        self.start((!self.tree.is_empty()).then_some(Goal::First))
    }

    /// Moves to the last extent.
    pub fn seek_to_last(&mut self) -> Result<()> {
        self.start((!self.tree.is_empty()).then_some(Goal::Last))
    }

    /// Moves one extent on; nowhere behind the last one.
    #[inline]
    #[allow(clippy::should_implement_trait)] // Not an iterator: a step may fail and there is a way back.
    pub fn next(&mut self) -> Result<()> {
        if let Spot::Leaf { leaf, i, .. } = &mut self.spot
            && *i + 1 < leaf.len()
        {
            *i += 1;
            return Ok(());
        }
        self.turn(true)
    }

    /// Moves one extent back; nowhere before the first one.
    #[inline]
    pub fn prev(&mut self) -> Result<()> {
        if let Spot::Leaf { i, .. } = &mut self.spot
            && *i > 0
        {
            *i -= 1;
            return Ok(());
        }
        self.turn(false)
    }

    fn start(&mut self, goal: Option<Goal>) -> Result<()> {
        self.stack.clear();
        self.spot = Spot::Nowhere;
        let Some(goal) = goal else { return Ok(()) };
        let tree = self.tree;
        self.descend(&tree.root.link, &|| tree.expect_root(), 0, tree.len(), goal)
    }

    /// Goes on to the next child, or back to the one before.
    fn turn(&mut self, forward: bool) -> Result<()> {
        self.spot = Spot::Nowhere;
        while let Some(frame) = self.stack.last_mut() {
            let next = if forward { frame.i + 1 } else { frame.i.wrapping_sub(1) };
            if next >= frame.node.len() {
                self.stack.pop();
                continue;
            }
            frame.i = next;
            let (node, base) = (frame.node, frame.base + frame.node.offset(next));
            let goal = if forward { Goal::First } else { Goal::Last };
            return self.descend(node.link(next), &|| node.expect(next), base, node.child_span(next), goal);
        }
        Ok(())
    }

    fn descend(
        &mut self,
        link: &'a Link,
        expect: &dyn Fn() -> Expect,
        mut base: u64,
        span: u64,
        goal: Goal,
    ) -> Result<()> {
        let Some(mut node) = link.resolve(self.src, expect)? else {
            self.spot = Spot::Hole(hole_extent(base, span));
            return Ok(());
        };
        loop {
            match &node.body {
                Body::Leaf(leaf) => {
                    let i = pick(goal, base, leaf.len(), |at| leaf.find(at));
                    self.spot = Spot::Leaf { leaf, base, i };
                    return Ok(());
                }
                Body::Internal(internal) => {
                    let i = pick(goal, base, internal.len(), |at| internal.find(at));
                    self.stack.push(Frame { node: internal, base, i });
                    base += internal.offset(i);
                    match internal.link(i).resolve(self.src, || internal.expect(i))? {
                        Some(child) => node = child,
                        None => {
                            self.spot = Spot::Hole(hole_extent(base, internal.child_span(i)));
                            return Ok(());
                        }
                    }
                }
            }
        }
    }
}

#[inline]
fn pick(goal: Goal, base: u64, len: usize, find: impl FnOnce(u64) -> usize) -> usize {
    match goal {
        Goal::At(at) => find(at - base),
        Goal::First => 0,
        Goal::Last => len - 1,
    }
}
