//! Merging and borrowing: neighbours of which one has too few entries become one node, or two of even fill.
//!
//! Nothing is loaded for it: a sibling that is not in memory is left alone, and the node stays underfull. So are the
//! nodes on both edges of a tree (an append leaves one entry in the last leaf) and leaves beside a hole.

use super::edit::{Edit, children_of};
use super::extent::coalesce;
use super::internal::{Internal, nodes_of};
use super::limits::{INTERNAL_CAPACITY, LEAF_CAPACITY, LEAF_SPAN_LIMIT};
use super::node::{Body, Entry, Node};

/// Merges two neighbours of one level where the result fits one node, evens them out where one is underfull, and
/// leaves them otherwise. A neighbour that is not in memory, or a hole beside a leaf, is left alone.
pub(super) fn combine(left: Entry, right: Entry, level: u32, edit: &mut Edit<'_>) -> Vec<Entry> {
    if level == 0 && left.link.is_hole() && right.link.is_hole() {
        return vec![Entry::hole(left.span + right.span)];
    }
    let (Some(a), Some(b)) = (left.link.node(), right.link.node()) else { return vec![left, right] };
    let (fits, uneven) = (fit(a, b), a.is_underfull() || b.is_underfull());
    if !fits && !uneven {
        return vec![left, right];
    }
    if level == 0 { combine_leaves(left, right, edit) } else { combine_internals(left, right, level, edit) }
}

fn fit(a: &Node, b: &Node) -> bool {
    match (&a.body, &b.body) {
        (Body::Leaf(a), Body::Leaf(b)) => a.len() + b.len() <= LEAF_CAPACITY && a.span() + b.span() < LEAF_SPAN_LIMIT,
        (Body::Internal(a), Body::Internal(b)) => a.len() + b.len() <= INTERNAL_CAPACITY,
        _ => false,
    }
}

fn combine_leaves(left: Entry, right: Entry, edit: &mut Edit<'_>) -> Vec<Entry> {
    let (Some(Body::Leaf(a)), Some(Body::Leaf(b))) =
        (left.link.node().map(|node| &node.body), right.link.node().map(|node| &node.body))
    else {
        return vec![left, right];
    };
    let mut pieces = a.to_pieces();
    pieces.extend(b.to_pieces());
    coalesce(&mut pieces, &edit.limits);
    let entries = children_of(&pieces, false, edit.epoch);
    if entries.len() > 2 {
        // Spans near the limit: the two that there are hold it better.
        return vec![left, right];
    }
    for mut entry in [left, right] {
        if let Some(node) = entry.link.take_arc() {
            edit.out.node(node);
        }
    }
    entries
}

fn combine_internals(mut left: Entry, mut right: Entry, level: u32, edit: &mut Edit<'_>) -> Vec<Entry> {
    let mut children = edit.own_internal(&mut left.link).take_all();
    let seam = children.len();
    children.extend(edit.own_internal(&mut right.link).take_all());
    // A child that was underfull for want of siblings has some now.
    fix_entries(&mut children, seam, level - 1, edit);
    nodes_of(level, children, false, edit.epoch)
}

/// The left one of the two neighbours that are to be combined to help entry `i` of `n`.
fn partner(i: usize, n: usize, in_memory: impl Fn(usize) -> bool) -> Option<usize> {
    if i > 0 && in_memory(i - 1) {
        Some(i - 1)
    } else if i + 1 < n && in_memory(i + 1) {
        Some(i)
    } else {
        None
    }
}

/// Helps child `i` of `node` if it is underfull. Returns what replaces the node where it had to be split.
pub(super) fn fix_child(node: &mut Internal, i: usize, edit: &mut Edit<'_>) -> Vec<Entry> {
    let mut i = i;
    // Again, if two that were merged are still too few.
    while i < node.len() && node.link(i).node().is_some_and(Node::is_underfull) {
        let Some(first) = partner(i, node.len(), |k| node.link(k).node().is_some()) else { break };
        let level = node.level() - 1;
        let (left, right) = (node.remove(first), node.remove(first));
        let entries = combine(left, right, level, edit);
        let merged = entries.len() == 1;
        let replaced = node.put_before(first, entries, false, edit.epoch);
        if !merged || !replaced.is_empty() {
            return replaced;
        }
        i = first;
    }
    Vec::new()
}

/// Replaces child `i` of `node` by `entries` and helps those that are underfull. Returns what replaces the node where it
/// had to be split.
pub(super) fn put_fixed(
    node: &mut Internal,
    i: usize,
    entries: Vec<Entry>,
    append: bool,
    edit: &mut Edit<'_>,
) -> Vec<Entry> {
    let n = entries.len();
    let mut replaced = node.put(i, entries, append, edit.epoch);
    for k in (i..i + n).rev() {
        if append || !replaced.is_empty() {
            break;
        }
        replaced = fix_child(node, k, edit);
    }
    replaced
}

/// Helps the entries of a list around `at` (children of `level`) that are underfull.
fn fix_entries(entries: &mut Vec<Entry>, at: usize, level: u32, edit: &mut Edit<'_>) {
    for i in (at.saturating_sub(1)..at + 2).rev() {
        let mut i = i;
        while i < entries.len() && entries[i].is_underfull() {
            let Some(first) = partner(i, entries.len(), |k| entries[k].link.node().is_some()) else { break };
            let (left, right) = (entries.remove(first), entries.remove(first));
            let combined = combine(left, right, level, edit);
            let merged = combined.len() == 1;
            entries.splice(first..first, combined);
            if !merged {
                break;
            }
            i = first;
        }
    }
}

/// Joins two neighbours of one level whose edges that meet may be underfull all the way down: both edges are in memory.
pub(super) fn zip(mut left: Entry, mut right: Entry, level: u32, edit: &mut Edit<'_>) -> Vec<Entry> {
    if level == 0 {
        return combine(left, right, 0, edit);
    }
    let mut children = edit.own_internal(&mut left.link).take_all();
    let left_len = children.len();
    let mut behind = edit.own_internal(&mut right.link).take_all().into_iter();
    let seam = match (children.pop(), behind.next()) {
        (Some(a), Some(b)) => zip(a, b, level - 1, edit),
        (a, b) => a.into_iter().chain(b).collect(),
    };
    let at = children.len();
    children.extend(seam);
    children.extend(behind);
    fix_entries(&mut children, at, level - 1, edit);
    if children.len() <= INTERNAL_CAPACITY || left_len.min(children.len() - left_len) < super::limits::INTERNAL_MIN {
        return nodes_of(level, children, false, edit.epoch);
    }
    // Both are well filled: keep the border where it was.
    let from_left = left_len.min(INTERNAL_CAPACITY).max(children.len() - INTERNAL_CAPACITY.min(children.len()));
    let rest = children.split_off(from_left);
    let mut nodes = nodes_of(level, children, false, edit.epoch);
    nodes.extend(nodes_of(level, rest, false, edit.epoch));
    nodes
}

/// Joins neighbours of any levels, whose edges that meet are in memory; what results has the larger level.
pub(super) fn join(left: (Entry, u32), right: (Entry, u32), edit: &mut Edit<'_>) -> Vec<Entry> {
    let ((mut a, a_level), (mut b, b_level)) = (left, right);
    if a_level == b_level {
        return zip(a, b, a_level, edit);
    }
    let taller_left = a_level > b_level;
    let level = a_level.max(b_level);
    let link = if taller_left { &mut a.link } else { &mut b.link };
    let mut children = edit.own_internal(link).take_all();
    let at = if taller_left { children.len() - 1 } else { 0 };
    let edge = children.remove(at);
    let joined = if taller_left {
        join((edge, level - 1), (b, b_level), edit)
    } else {
        join((a, a_level), (edge, level - 1), edit)
    };
    children.splice(at..at, joined);
    fix_entries(&mut children, at, level - 1, edit);
    nodes_of(level, children, false, edit.epoch)
}
