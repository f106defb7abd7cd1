//! Removing a range: at the lowest node that holds both of its ends, the children between go as they are, the two at
//! the ends are cut along one path each, and what is left of them is joined.

use super::edit::{Edit, children_of};
use super::extent::{Piece, coalesce, cut_pieces};
use super::internal::Internal;
use super::link::Link;
use super::node::{Body, Entry};
use super::rebalance::{fix_child, put_fixed, zip};

/// Tells `edit` the mapped bytes of these pieces.
pub(super) fn release_pieces(pieces: impl IntoIterator<Item = Piece>, edit: &mut Edit<'_>) {
    for piece in pieces {
        if !piece.address().is_hole() {
            edit.out.extents.push((piece.address(), piece.len as u32));
        }
    }
}

/// Removes `[at, at + len)` below `link`, which is less than its span. Returns what replaces the link, or nothing where
/// it stays.
pub(super) fn collapse(link: &mut Link, level: u32, span: u64, at: u64, len: u64, edit: &mut Edit<'_>) -> Vec<Entry> {
    if level == 0 {
        return collapse_leaf(link, span, at, len, edit);
    }
    let node = edit.own_internal(link);
    let (i, j) = (node.find(at), node.find(at + len - 1));
    let from = at - node.offset(i);
    if i == j && len < node.child_span(i) {
        let child_span = node.child_span(i);
        let entries = collapse(node.link_mut(i), level - 1, child_span, from, len, edit);
        if !entries.is_empty() {
            return put_fixed(node, i, entries, false, edit);
        }
        node.grown(i, len.wrapping_neg());
        return fix_child(node, i, edit);
    }
    collapse_children(node, (i, j), at, at + len, edit)
}

/// Removes `[at, end)`, which reaches from child `i` into child `j` or is one whole child.
fn collapse_children(
    node: &mut Internal,
    (i, j): (usize, usize),
    at: u64,
    end: u64,
    edit: &mut Edit<'_>,
) -> Vec<Entry> {
    let level = node.level() - 1;
    let head_len = at - node.offset(i);
    let tail_len = node.offset(j) + node.child_span(j) - end;
    let mut gone = node.drain(i, j + 1);
    let tail = if tail_len > 0 { gone.pop() } else { None };
    let head = if head_len > 0 && !gone.is_empty() { Some(gone.remove(0)) } else { None };
    edit.out.entries(gone, level);
    let head = head.map(|entry| keep_head(entry, level, head_len, edit)).unwrap_or_default();
    let tail = tail.map(|entry| keep_tail(entry, level, tail_len, edit)).unwrap_or_default();
    let seam = join_lists(head, tail, level, edit);
    let touched = seam.len();
    let replaced = node.put_before(i, seam, false, edit.epoch);
    if !replaced.is_empty() {
        return replaced;
    }
    // The neighbours of what was removed too: a hole may have excused them.
    for k in (i.saturating_sub(1)..=i + touched).rev() {
        let replaced = fix_child(node, k, edit);
        if !replaced.is_empty() {
            return replaced;
        }
    }
    Vec::new()
}

/// Joins the last of `head` and the first of `tail`.
fn join_lists(mut head: Vec<Entry>, tail: Vec<Entry>, level: u32, edit: &mut Edit<'_>) -> Vec<Entry> {
    let mut tail = tail.into_iter();
    match (head.pop(), tail.next()) {
        (Some(a), Some(b)) => head.extend(zip(a, b, level, edit)),
        (a, b) => head.extend(a.into_iter().chain(b)),
    }
    head.extend(tail);
    head
}

fn collapse_leaf(link: &mut Link, span: u64, at: u64, len: u64, edit: &mut Edit<'_>) -> Vec<Entry> {
    if !link.is_hole() {
        let limits = edit.limits;
        if let Body::Leaf(leaf) = &mut edit.own(link).body
            && leaf.collapse(at, len, &limits, &mut edit.out.extents)
        {
            return Vec::new();
        }
    }
    let mut pieces = edit.take_pieces(link.take(), span);
    let from = cut_pieces(&mut pieces, at);
    let to = cut_pieces(&mut pieces, at + len);
    release_pieces(pieces.drain(from..to), edit);
    coalesce(&mut pieces, &edit.limits);
    children_of(&pieces, false, edit.epoch)
}

/// Cuts a child off behind its first `len` bytes, more than none and less than all. One entry but for what is left of a
/// hole, which may need none of its own.
fn keep_head(mut entry: Entry, level: u32, len: u64, edit: &mut Edit<'_>) -> Vec<Entry> {
    if len == entry.span {
        return vec![entry];
    }
    if level == 0 {
        let mut pieces = edit.take_pieces(entry.link, entry.span);
        let from = cut_pieces(&mut pieces, len);
        release_pieces(pieces.drain(from..), edit);
        coalesce(&mut pieces, &edit.limits);
        return children_of(&pieces, false, edit.epoch);
    }
    let node = edit.own_internal(&mut entry.link);
    let i = node.find(len - 1);
    let rest = len - node.offset(i);
    let gone = node.drain(i + 1, node.len());
    edit.out.entries(gone, level - 1);
    let last = node.remove(i);
    for child in keep_head(last, level - 1, rest, edit) {
        node.push(child);
    }
    fix_edge(node, node.len() - 1, edit);
    entry.refresh();
    vec![entry]
}

/// Helps a child that was cut, which needs no more room than there was.
fn fix_edge(node: &mut Internal, i: usize, edit: &mut Edit<'_>) {
    let replaced = fix_child(node, i, edit);
    debug_assert!(replaced.is_empty());
}

/// Cuts a child off before its last `len` bytes, otherwise as [`keep_head`].
fn keep_tail(mut entry: Entry, level: u32, len: u64, edit: &mut Edit<'_>) -> Vec<Entry> {
    if len == entry.span {
        return vec![entry];
    }
    let at = entry.span - len;
    if level == 0 {
        let mut pieces = edit.take_pieces(entry.link, entry.span);
        let to = cut_pieces(&mut pieces, at);
        release_pieces(pieces.drain(..to), edit);
        coalesce(&mut pieces, &edit.limits);
        return children_of(&pieces, false, edit.epoch);
    }
    let node = edit.own_internal(&mut entry.link);
    let i = node.find(at);
    let rest = node.offset(i) + node.child_span(i) - at;
    let gone = node.drain(0, i);
    edit.out.entries(gone, level - 1);
    let first = node.remove(0);
    for child in keep_tail(first, level - 1, rest, edit).into_iter().rev() {
        node.insert(0, child);
    }
    fix_edge(node, 0, edit);
    entry.refresh();
    vec![entry]
}

/// Cuts a child in two at `at`, inside it.
pub(super) fn split(mut entry: Entry, level: u32, at: u64, edit: &mut Edit<'_>) -> (Entry, Entry) {
    if level == 0 {
        let mut pieces = edit.take_pieces(entry.link, entry.span);
        let from = cut_pieces(&mut pieces, at);
        let behind = pieces.split_off(from);
        return (one_child(pieces, edit), one_child(behind, edit));
    }
    let epoch = edit.epoch;
    let node = edit.own_internal(&mut entry.link);
    let i = node.find(at);
    let rel = at - node.offset(i);
    let mut behind = node.drain(i, node.len());
    if rel > 0 {
        let (head, tail) = split(behind.remove(0), level - 1, rel, edit);
        node.push(head);
        behind.insert(0, tail);
    }
    let right = Internal::from_entries(level, behind.into_iter());
    entry.refresh();
    (entry, Entry::node(super::node::Node::internal(right, epoch)))
}

/// The one child that part of a leaf, or part of a hole, becomes.
fn one_child(mut pieces: Vec<Piece>, edit: &Edit<'_>) -> Entry {
    coalesce(&mut pieces, &edit.limits);
    let mut entries = children_of(&pieces, false, edit.epoch);
    match entries.pop() {
        Some(entry) if entries.is_empty() => entry,
        _ => unreachable!("part of one child needs one child"),
    }
}
