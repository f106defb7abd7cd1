//! An internal node: children at ascending offsets, as arrays.
//!
//! A child's offset is relative to the node and is both its pivot and what shifts everything below it; the first is 0.
//! A child's span is the distance to the next offset or to the node's span. In memory the offsets are kept above a
//! `base` of the node's own, so that a shift can move the fewer children: those behind it up, or those before it and the
//! base down. They are padded with the maximum, as [`super::search`] wants it. Beside the links lie, per child, the
//! number of extents below and one bit that says whether there is a tag.

use super::limits::INTERNAL_CAPACITY;
use super::link::Link;
use super::node::{Entry, Expect, Node};
use super::search::last_at_most;

const WIDE: usize = if INTERNAL_CAPACITY < 32 { INTERNAL_CAPACITY } else { 32 };
const NARROW: usize = if INTERNAL_CAPACITY < 32 { INTERNAL_CAPACITY } else { 8 };

/// An internal node.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Internal {
    len: u16,
    level: u8,
    /// What is subtracted from `offsets`; the first of them is equal to it.
    base: u64,
    span: u64,
    count: u64,
    tags: u128,
    offsets: [u64; INTERNAL_CAPACITY],
    links: [Link; INTERNAL_CAPACITY],
    counts: [u64; INTERNAL_CAPACITY],
}

/// The base of a node whose front was shifted; far from both ends of the numbers.
const BASE: u64 = 1 << 61;

/// Inserts a bit at `i`.
fn open_bit(bits: u128, i: usize, bit: bool) -> u128 {
    let below = bits & low_bits(i);
    let above = if i + 1 < 128 { (bits >> i) << (i + 1) } else { 0 };
    below | u128::from(bit) << i | above
}

/// The lowest `n` bits.
fn low_bits(n: usize) -> u128 {
    if n >= 128 { u128::MAX } else { (1 << n) - 1 }
}

impl Internal {
    /// A node without children, which no tree holds.
    pub fn new(level: u32) -> Internal {
        Internal {
            len: 0,
            level: level as u8,
            base: 0,
            span: 0,
            count: 0,
            tags: 0,
            offsets: [u64::MAX; INTERNAL_CAPACITY],
            links: [const { Link::hole() }; INTERNAL_CAPACITY],
            counts: [0; INTERNAL_CAPACITY],
        }
    }

    /// A node of these children, which must fit.
    pub fn from_entries(level: u32, entries: impl Iterator<Item = Entry>) -> Internal {
        let mut node = Internal::new(level);
        for entry in entries {
            node.push(entry);
        }
        node
    }

    /// Puts a child at the end.
    pub fn push(&mut self, entry: Entry) {
        let i = self.len();
        self.offsets[i] = self.base + self.span;
        self.links[i] = entry.link;
        self.counts[i] = entry.count;
        self.tags |= u128::from(entry.tagged) << i;
        self.span += entry.span;
        self.count += entry.count;
        self.len += 1;
    }

    /// Number of children.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Distance to the leaves, at least 1.
    #[inline]
    pub fn level(&self) -> u32 {
        u32::from(self.level)
    }

    /// Bytes of address space.
    #[inline]
    pub fn span(&self) -> u64 {
        self.span
    }

    /// Extents below.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether there is a tag below.
    #[inline]
    pub fn has_tags(&self) -> bool {
        self.tags != 0
    }

    /// Whether there is a tag below child `i`.
    #[inline]
    pub fn child_has_tags(&self, i: usize) -> bool {
        self.tags != 0 && self.tags >> i & 1 == 1
    }

    /// The last child before `before` that has a tag.
    pub fn tagged_before(&self, before: usize) -> Option<usize> {
        let bits = self.tags & low_bits(before);
        (bits != 0).then(|| 127 - bits.leading_zeros() as usize)
    }

    /// The first child from `from` on that has a tag.
    pub fn tagged_from(&self, from: usize) -> Option<usize> {
        let bits = self.tags & !low_bits(from);
        (bits != 0).then(|| bits.trailing_zeros() as usize)
    }

    /// Where child `i` begins.
    #[inline]
    pub fn offset(&self, i: usize) -> u64 {
        self.offsets[i] - self.base
    }

    /// Bytes of address space of child `i`.
    #[inline]
    pub fn child_span(&self, i: usize) -> u64 {
        let end = if i + 1 < self.len() { self.offsets[i + 1] } else { self.base + self.span };
        end - self.offsets[i]
    }

    /// Extents below child `i`.
    #[inline]
    pub fn child_count(&self, i: usize) -> u64 {
        self.counts[i]
    }

    /// The link of child `i`.
    #[inline]
    pub fn link(&self, i: usize) -> &Link {
        &self.links[i]
    }

    /// The link of child `i`, for an edit that then calls [`Internal::grown`] or [`Internal::put`].
    #[inline]
    pub fn link_mut(&mut self, i: usize) -> &mut Link {
        &mut self.links[i]
    }

    /// What child `i` must be if it is stored.
    pub fn expect(&self, i: usize) -> Expect {
        Expect {
            level: self.level() - 1,
            span: self.child_span(i),
            count: self.counts[i],
            tagged: self.child_has_tags(i),
        }
    }

    /// The child that covers `at`, which is inside the span, or behind what a node on the right edge knows of it
    /// ([`super::tail`]): then it is in the last child.
    #[inline]
    pub fn find(&self, at: u64) -> usize {
        last_at_most::<u64, INTERNAL_CAPACITY, WIDE, NARROW>(&self.offsets, self.base + at)
    }

    /// Takes note that child `i`, edited in place, is longer by `added` (a wrapping difference); `true` if it is
    /// underfull.
    #[inline]
    pub fn grown(&mut self, i: usize, added: u64) -> bool {
        self.shift(i + 1, added);
        let Some(child) = self.links[i].node() else { return false };
        let (count, tagged) = (child.count(), child.has_tags());
        let underfull = child.is_underfull();
        self.count = self.count.wrapping_add(count.wrapping_sub(self.counts[i]));
        self.counts[i] = count;
        if tagged != self.child_has_tags(i) {
            self.tags ^= 1 << i;
        }
        underfull
    }

    /// Takes note of an append below the last child.
    #[inline]
    pub fn appended(&mut self, len: u64, more: u64, tagged: bool) {
        let last = self.len() - 1;
        self.span += len;
        self.count += more;
        self.counts[last] += more;
        if tagged {
            self.tags |= 1 << last;
        }
    }

    /// Moves the children from `i` on by `added` (a wrapping difference), and the end.
    #[inline]
    fn shift(&mut self, i: usize, added: u64) {
        let n = self.len();
        self.span = self.span.wrapping_add(added);
        if i <= n / 2 && self.lower_base(added) {
            for offset in &mut self.offsets[..i] {
                *offset = offset.wrapping_sub(added);
            }
        } else if i < n {
            for offset in &mut self.offsets[i..n] {
                *offset = offset.wrapping_add(added);
            }
        }
    }

    /// Lowers the base by `added` (a wrapping difference), if it stays far enough from both ends of the numbers.
    #[inline]
    fn lower_base(&mut self, added: u64) -> bool {
        let lower = self.base.wrapping_sub(added);
        if lower <= 2 * BASE {
            self.base = lower;
            return true;
        }
        self.recentre() && {
            self.base = self.base.wrapping_sub(added);
            self.base <= 2 * BASE || {
                self.base = self.base.wrapping_add(added);
                false
            }
        }
    }

    /// Moves the base to the middle. Returns whether it was elsewhere.
    #[cold]
    fn recentre(&mut self) -> bool {
        let (n, by) = (self.len(), BASE.wrapping_sub(self.base));
        self.base = BASE;
        self.offsets[..n].iter_mut().for_each(|offset| *offset = offset.wrapping_add(by));
        by != 0
    }

    /// Takes child `i` out.
    pub fn remove(&mut self, i: usize) -> Entry {
        let n = self.len();
        let (span, tagged) = (self.child_span(i), self.child_has_tags(i));
        let entry = Entry { link: self.links[i].take(), span, count: self.counts[i], tagged };
        self.links[i..n].rotate_left(1);
        self.offsets.copy_within(i + 1..n, i);
        self.offsets[n - 1] = u64::MAX;
        self.counts.copy_within(i + 1..n, i);
        let above = if i + 1 < 128 { self.tags >> (i + 1) << i } else { 0 };
        self.tags = self.tags & low_bits(i) | above;
        self.len -= 1;
        self.count -= entry.count;
        self.shift(i, entry.span.wrapping_neg());
        entry
    }

    /// Puts a child before child `i`; there must be room.
    pub fn insert(&mut self, i: usize, entry: Entry) {
        let n = self.len();
        let offset = if i < n { self.offset(i) } else { self.span };
        self.links[i..=n].rotate_right(1);
        self.offsets.copy_within(i..n, i + 1);
        self.counts.copy_within(i..n, i + 1);
        self.tags = open_bit(self.tags, i, entry.tagged);
        self.len += 1;
        self.shift(i + 1, entry.span);
        self.offsets[i] = self.base + offset;
        self.links[i] = entry.link;
        self.counts[i] = entry.count;
        self.count += entry.count;
    }

    /// Takes children `from..to` out, in order.
    pub fn drain(&mut self, from: usize, to: usize) -> Vec<Entry> {
        if to - from <= 2 {
            let mut entries: Vec<Entry> = (from..to).rev().map(|i| self.remove(i)).collect();
            entries.reverse();
            return entries;
        }
        let mut entries = self.take_all();
        let tail = entries.split_off(to);
        let middle = entries.split_off(from);
        entries.into_iter().chain(tail).for_each(|entry| self.push(entry));
        middle
    }

    /// Takes every child out.
    pub fn take_all(&mut self) -> Vec<Entry> {
        let n = self.len();
        let mut entries = Vec::with_capacity(n + 4);
        for i in 0..n {
            let (span, tagged) = (self.child_span(i), self.child_has_tags(i));
            entries.push(Entry { link: self.links[i].take(), span, count: self.counts[i], tagged });
        }
        self.offsets[..n].fill(u64::MAX);
        (self.len, self.base, self.span, self.count, self.tags) = (0, 0, 0, 0, 0);
        entries
    }

    /// Replaces child `i`, whose link was taken or is void, by `entries`. Returns the nodes that replace this one where
    /// it had to be split (it is empty then); `append` keeps the first of them full.
    pub fn put(&mut self, i: usize, entries: Vec<Entry>, append: bool, epoch: u32) -> Vec<Entry> {
        drop(self.remove(i));
        self.put_before(i, entries, append, epoch)
    }

    /// Puts `entries` before child `i`, otherwise as [`Internal::put`].
    pub fn put_before(&mut self, i: usize, entries: Vec<Entry>, append: bool, epoch: u32) -> Vec<Entry> {
        if self.len() + entries.len() <= INTERNAL_CAPACITY {
            for (k, entry) in entries.into_iter().enumerate() {
                self.insert(i + k, entry);
            }
            return Vec::new();
        }
        let level = self.level();
        let mut all = self.take_all();
        all.splice(i..i, entries);
        nodes_of(level, all, append, epoch)
    }

    /// Whether every unused offset is padding.
    pub fn padded(&self) -> bool {
        self.offsets[self.len()..].iter().all(|&offset| offset == u64::MAX)
    }

    /// The links.
    pub fn links(&self) -> &[Link] {
        &self.links[..self.len()]
    }

    /// What is stored beside offsets and links: counts and tag bits.
    pub fn counts_and_tags(&self) -> (&[u64], u128) {
        (&self.counts[..self.len()], self.tags)
    }
}

/// Nodes of `level` that hold these children: as few as can be, evenly filled, or all but the last full.
pub(super) fn nodes_of(level: u32, entries: Vec<Entry>, append: bool, epoch: u32) -> Vec<Entry> {
    let mut left = entries.len();
    let mut nodes_left = left.div_ceil(INTERNAL_CAPACITY);
    let mut nodes = Vec::with_capacity(nodes_left);
    let mut entries = entries.into_iter();
    while left > 0 {
        let n = if append { left.min(INTERNAL_CAPACITY) } else { left.div_ceil(nodes_left) };
        nodes.push(Entry::node(Node::internal(Internal::from_entries(level, entries.by_ref().take(n)), epoch)));
        left -= n;
        nodes_left -= 1;
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(node: &Internal) -> Vec<(u64, bool)> {
        (0..node.len()).map(|i| (node.child_span(i), node.child_has_tags(i))).collect()
    }

    fn hole(len: u64, tagged: bool) -> Entry {
        Entry { tagged, ..Entry::hole(len) }
    }

    #[test]
    fn insert_and_remove_keep_offsets_counts_and_bits() {
        let mut node = Internal::from_entries(1, [hole(10, false), hole(20, true)].into_iter());
        node.insert(1, hole(5, true));
        assert_eq!(spans(&node), [(10, false), (5, true), (20, true)]);
        assert_eq!((node.span(), node.count()), (35, 3));
        assert_eq!((node.find(9), node.find(10), node.find(34)), (0, 1, 2));
        assert_eq!((node.tagged_before(1), node.tagged_before(2), node.tagged_from(2)), (None, Some(1), Some(2)));
        let entry = node.remove(1);
        assert_eq!((entry.span, entry.tagged), (5, true));
        assert_eq!(spans(&node), [(10, false), (20, true)]);
        assert_eq!((node.span(), node.count()), (30, 2));
    }

    #[test]
    fn a_full_node_splits_evenly_or_keeps_the_left_one_full() {
        for append in [false, true] {
            let full = (0..INTERNAL_CAPACITY).map(|_| hole(1, false));
            let mut node = Internal::from_entries(1, full);
            let parts = node.put_before(INTERNAL_CAPACITY, vec![hole(1, false)], append, 0);
            let counts: Vec<u64> = parts.iter().map(|entry| entry.count).collect();
            let left = if append { INTERNAL_CAPACITY } else { (INTERNAL_CAPACITY + 1).div_ceil(2) } as u64;
            assert_eq!(counts, [left, INTERNAL_CAPACITY as u64 + 1 - left]);
            assert_eq!(node.len(), 0);
        }
    }
}
