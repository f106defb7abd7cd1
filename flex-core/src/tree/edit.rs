//! Edits on one path: descend, change a leaf in place where it can hold the result, rebuild it where it can't.
//!
//! An edit changes nodes top-down: a node that nobody else holds in place, a shared one after copying it. Every node on
//! the way becomes dirty. Edits never load anything: the operations in [`super`] warm what an edit will touch before
//! they start it, so that an edit can't fail half-way.

use super::extent::{Piece, coalesce};
use super::internal::Internal;
use super::leaf::Leaf;
use super::limits::{BIG_HOLE, LEAF_CAPACITY, LEAF_SPAN_LIMIT, TreeLimits};
use super::link::Link;
use super::node::{Body, Entry, Node};
use super::rebalance::{fix_child, put_fixed};
use super::released::Released;
use crate::address::{PhysicalOffset, Tag};

/// What every step of an edit needs.
pub(super) struct Edit<'a> {
    pub limits: TreeLimits,
    pub epoch: u32,
    pub out: &'a mut Released,
}

impl Edit<'_> {
    /// The node behind a link in memory, dirty and held by nobody else.
    #[inline]
    pub fn own<'l>(&mut self, link: &'l mut Link) -> &'l mut Node {
        match link.own(|link| self.copy(link)) {
            Some(node) => {
                if let Some(page) = node.make_dirty(self.epoch) {
                    self.out.pages.push(page);
                }
                node
            }
            None => unreachable!("an edit reached a node that was not warmed"),
        }
    }

    #[cold]
    fn copy(&mut self, link: &mut Link) {
        if let Some(node) = link.take_arc() {
            *link = Link::new(node.copy(self.epoch));
            self.out.node(node);
        }
    }

    /// [`Edit::own`] for a link that leads to an internal node.
    #[inline]
    pub fn own_internal<'l>(&mut self, link: &'l mut Link) -> &'l mut Internal {
        match &mut self.own(link).body {
            Body::Internal(internal) => internal,
            Body::Leaf(_) => unreachable!("a leaf above the leaves"),
        }
    }

    /// [`Edit::own`] for a link that leads to a leaf.
    #[inline]
    pub fn own_leaf<'l>(&mut self, link: &'l mut Link) -> &'l mut Leaf {
        match &mut self.own(link).body {
            Body::Leaf(leaf) => leaf,
            Body::Internal(_) => unreachable!("an internal node among the leaves"),
        }
    }

    /// The extents behind a link to a leaf or a hole of length `span`; the link is given up.
    pub fn take_pieces(&mut self, mut link: Link, span: u64) -> Vec<Piece> {
        let Some(node) = link.take_arc() else {
            assert!(link.is_hole(), "an edit reached a node that was not warmed");
            return if span == 0 { Vec::new() } else { vec![Piece::new(span, PhysicalOffset::HOLE, Tag::NONE)] };
        };
        let pieces = match &node.body {
            Body::Leaf(leaf) => leaf.to_pieces(),
            Body::Internal(_) => unreachable!("an internal node among the leaves"),
        };
        self.out.node(node);
        pieces
    }
}

/// Leaves and holes that hold these extents, which are coalesced. `append` keeps the first leaf full where two are needed.
pub(super) fn children_of(pieces: &[Piece], append: bool, epoch: u32) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut run: Vec<Piece> = Vec::with_capacity(pieces.len() + 1);
    for &piece in pieces {
        if piece.address().is_hole() && piece.len >= BIG_HOLE {
            push_leaves(&run, append, epoch, &mut entries);
            run.clear();
            entries.push(Entry::hole(piece.len));
        } else {
            run.push(piece);
        }
    }
    push_leaves(&run, append, epoch, &mut entries);
    entries
}

/// Cuts extents into as many leaves as they need.
fn push_leaves(pieces: &[Piece], append: bool, epoch: u32, to: &mut Vec<Entry>) {
    if pieces.is_empty() {
        return;
    }
    let span: u64 = pieces.iter().map(|piece| piece.len).sum();
    let n = pieces.len();
    if n <= LEAF_CAPACITY && span < LEAF_SPAN_LIMIT {
        to.push(Entry::leaf(pieces, epoch));
        return;
    }
    let span_of = |part: &[Piece]| part.iter().map(|piece| piece.len).sum::<u64>();
    let mut at = if append && n == LEAF_CAPACITY + 1 { LEAF_CAPACITY } else { n / 2 };
    if span_of(&pieces[..at]).max(span_of(&pieces[at..])) >= LEAF_SPAN_LIMIT {
        let mut half = 0;
        let past_half = |piece: &Piece| {
            half += piece.len;
            half > span / 2
        };
        at = pieces.iter().position(past_half).unwrap_or(n - 1).clamp(1, n - 1);
    }
    push_leaves(&pieces[..at], append, epoch, to);
    push_leaves(&pieces[at..], append, epoch, to);
}

/// Appends below `link` in place. Returns how many extents there are more, or `None`, and nothing changed but that the
/// path is dirty, where the last leaf can't take it.
pub(super) fn append_at(link: &mut Link, new: Piece, edit: &mut Edit<'_>) -> Option<u64> {
    if link.is_hole() {
        return None;
    }
    match &mut edit.own(link).body {
        Body::Leaf(leaf) => leaf.append(new, &edit.limits),
        Body::Internal(node) => {
            let last = node.len() - 1;
            let more = append_at(node.link_mut(last), new, edit)?;
            node.appended(new.len, more, new.tag().is_some());
            Some(more)
        }
    }
}

/// A change within one leaf, or within one hole that is a child of its own.
pub(super) trait LeafEdit {
    /// At a border of two children: the left one takes the edit.
    const PREFERS_LEFT: bool;
    /// Bytes by which the address space grows.
    fn added(&self) -> u64;
    /// Does it in place; `false`, and nothing changed, where the leaf can't hold the result or extents may coalesce.
    fn in_place(&mut self, leaf: &mut Leaf, at: u64, edit: &mut Edit<'_>) -> bool;
    /// Does it on a list of extents.
    fn on_pieces(&mut self, pieces: &mut Vec<Piece>, at: u64, edit: &mut Edit<'_>);
}

/// Where an edit is on its way down.
#[derive(Clone, Copy)]
pub(super) struct At {
    /// Level of the node behind the link.
    pub level: u32,
    /// Its span.
    pub span: u64,
    /// The position, relative to it.
    pub at: u64,
    /// Whether this is an append to the whole tree: nodes that split stay full.
    pub append: bool,
}

/// Applies `op` below `link`. Returns what replaces the link, or nothing where it stays.
pub(super) fn edit_at<E: LeafEdit>(link: &mut Link, here: At, op: &mut E, edit: &mut Edit<'_>) -> Vec<Entry> {
    if here.level == 0 {
        return edit_leaf(link, here, op, edit);
    }
    let node = edit.own_internal(link);
    let i = node.find(if E::PREFERS_LEFT { here.at.saturating_sub(1) } else { here.at });
    let below = At { level: here.level - 1, span: node.child_span(i), at: here.at - node.offset(i), ..here };
    let entries = edit_at(node.link_mut(i), below, op, edit);
    if !entries.is_empty() {
        return put_fixed(node, i, entries, here.append, edit);
    }
    if node.grown(i, op.added()) && !here.append {
        return fix_child(node, i, edit);
    }
    Vec::new()
}

#[inline]
fn edit_leaf<E: LeafEdit>(link: &mut Link, here: At, op: &mut E, edit: &mut Edit<'_>) -> Vec<Entry> {
    if !link.is_hole() {
        let leaf = edit.own_leaf(link);
        if op.in_place(leaf, here.at, edit) {
            return Vec::new();
        }
    }
    let mut pieces = edit.take_pieces(link.take(), here.span);
    op.on_pieces(&mut pieces, here.at, edit);
    coalesce(&mut pieces, &edit.limits);
    children_of(&pieces, here.append, edit.epoch)
}
