//! A leaf: extents that tile its span, as two arrays.
//!
//! `starts` are relative to the leaf, ascending from 0, and padded with the maximum, as [`super::search`] wants it; a
//! length is the distance to the next start or to the span's end. `packed` holds address and tag. An insertion adds its
//! length to the starts behind it: one vectorised pass.

use super::extent::{Extent, Piece, address_of, mergeable, pack, tag_of};
use super::limits::{BIG_HOLE, LEAF_CAPACITY, LEAF_SPAN_LIMIT, TreeLimits};
use super::search::last_at_most;
use crate::address::{PhysicalOffset, Tag};

const WIDE: usize = if LEAF_CAPACITY < 16 { LEAF_CAPACITY } else { 16 };
const NARROW: usize = if LEAF_CAPACITY < 16 { LEAF_CAPACITY } else { 4 };

/// A leaf.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Leaf {
    span: u32,
    len: u16,
    /// How many extents have a tag.
    tagged: u16,
    starts: [u32; LEAF_CAPACITY],
    packed: [u64; LEAF_CAPACITY],
}

impl Leaf {
    /// A leaf without extents, which no tree holds.
    pub fn new() -> Leaf {
        Leaf { span: 0, len: 0, tagged: 0, starts: [u32::MAX; LEAF_CAPACITY], packed: [0; LEAF_CAPACITY] }
    }

    /// A leaf of these extents, which must fit.
    pub fn from_pieces(pieces: &[Piece]) -> Leaf {
        let mut leaf = Leaf::new();
        let mut start = 0;
        for (i, piece) in pieces.iter().enumerate() {
            leaf.starts[i] = start as u32;
            leaf.packed[i] = piece.packed;
            leaf.tagged += u16::from(piece.tag().is_some());
            start += piece.len;
        }
        debug_assert!(start < LEAF_SPAN_LIMIT);
        leaf.span = start as u32;
        leaf.len = pieces.len() as u16;
        leaf
    }

    /// Its extents in the form for edits.
    pub fn to_pieces(&self) -> Vec<Piece> {
        let mut pieces = Vec::with_capacity(self.len() + 4);
        pieces.extend((0..self.len()).map(|i| Piece { len: self.extent_len(i), packed: self.packed[i] }));
        pieces
    }

    /// Number of extents.
    #[inline]
    pub fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Bytes of address space.
    #[inline]
    pub fn span(&self) -> u64 {
        u64::from(self.span)
    }

    /// Whether an extent has a tag.
    #[inline]
    pub fn has_tags(&self) -> bool {
        self.tagged != 0
    }

    /// Where extent `i` begins.
    #[inline]
    pub fn start(&self, i: usize) -> u64 {
        u64::from(self.starts[i])
    }

    /// Where extent `i` ends.
    #[inline]
    pub fn end(&self, i: usize) -> u64 {
        u64::from(if i + 1 < self.len() { self.starts[i + 1] } else { self.span })
    }

    /// The length of extent `i`.
    #[inline]
    pub fn extent_len(&self, i: usize) -> u64 {
        self.end(i) - self.start(i)
    }

    /// Address and tag of extent `i`.
    #[inline]
    pub fn packed(&self, i: usize) -> u64 {
        self.packed[i]
    }

    /// The tag of extent `i`.
    #[inline]
    pub fn tag(&self, i: usize) -> Tag {
        tag_of(self.packed[i])
    }

    /// Extent `i` of a leaf that begins at `base`.
    #[inline]
    pub fn extent(&self, i: usize, base: u64) -> Extent {
        let packed = self.packed[i];
        Extent {
            offset: base + self.start(i),
            len: self.extent_len(i),
            address: address_of(packed),
            tag: tag_of(packed),
        }
    }

    /// The extent that covers `at`, which is inside the span.
    #[inline]
    pub fn find(&self, at: u64) -> usize {
        debug_assert!(at < self.span());
        last_at_most::<u32, LEAF_CAPACITY, WIDE, NARROW>(&self.starts, at as u32)
    }

    /// Whether extents `i` and `i + 1` may be one.
    pub fn can_merge(&self, i: usize, limits: &TreeLimits) -> bool {
        i + 1 < self.len() && {
            let (left, right) = (self.extent_len(i), self.extent_len(i + 1));
            mergeable(left, self.packed[i], right, self.packed[i + 1], limits)
        }
    }

    /// Sets the tag of extent `i`.
    pub fn set_tag(&mut self, i: usize, tag: Tag) {
        self.tagged -= u16::from(self.tag(i).is_some());
        self.tagged += u16::from(tag.is_some());
        self.packed[i] = pack(address_of(self.packed[i]), tag);
    }

    /// Sets the address of extent `i`.
    pub fn set_address(&mut self, i: usize, address: PhysicalOffset) {
        self.packed[i] = pack(address, self.tag(i));
    }

    /// Adds `len` to the starts from extent `i` on, and to the span.
    #[inline]
    fn shift(&mut self, i: usize, len: u32) {
        let n = self.len();
        for start in &mut self.starts[i..n] {
            *start += len;
        }
        self.span += len;
    }

    /// Makes room for `more` extents before extent `i`.
    #[inline]
    fn open(&mut self, i: usize, more: usize) {
        let n = self.len();
        self.starts.copy_within(i..n, i + more);
        self.packed.copy_within(i..n, i + more);
        self.len += more as u16;
    }

    /// Inserts in place where one leaf can hold the result; `false`, and nothing changed, where it can't.
    #[inline]
    pub fn insert(&mut self, at: u64, new: Piece, limits: &TreeLimits) -> bool {
        if self.span() + new.len >= LEAF_SPAN_LIMIT || (new.address().is_hole() && !self.takes_hole(at, new)) {
            return false;
        }
        let (at, len) = (at as u32, new.len as u32);
        let n = self.len();
        let (next, boundary) = if at == self.span {
            (n, true)
        } else {
            let i = self.find(u64::from(at));
            if self.starts[i] == at { (i, true) } else { (i + 1, false) }
        };
        if boundary {
            if next > 0 && self.continues(next - 1, at, new, limits) {
                self.shift(next, len);
                if next < n && self.can_merge(next - 1, limits) {
                    self.remove(next, 1);
                }
                return true;
            }
            if next < n && mergeable(new.len, new.packed, self.extent_len(next), self.packed[next], limits) {
                self.packed[next] = new.packed;
                self.tagged += u16::from(new.tag().is_some());
                self.shift(next + 1, len);
                return true;
            }
            if n == LEAF_CAPACITY {
                return false;
            }
            self.open(next, 1);
            self.shift(next + 1, len);
        } else {
            if n + 2 > LEAF_CAPACITY {
                return false;
            }
            let (head_len, head) = (u64::from(at - self.starts[next - 1]), self.packed[next - 1]);
            let tail = pack(address_of(head).advance(head_len), Tag::NONE);
            let tail_len = self.end(next - 1) - u64::from(at);
            if mergeable(head_len, head, new.len, new.packed, limits)
                || mergeable(new.len, new.packed, tail_len, tail, limits)
                || self.merges_with_previous(next - 1, head_len, head, limits)
                || self.merges_with_next(next - 1, tail_len, tail, limits)
            {
                return false;
            }
            self.open(next, 2);
            self.starts[next + 1] = at;
            self.packed[next + 1] = tail;
            self.shift(next + 1, len);
        }
        self.starts[next] = at;
        self.packed[next] = new.packed;
        self.tagged += u16::from(new.tag().is_some());
        true
    }

    /// Appends in place and returns by how many extents there are more; `None`, and nothing changed, where it can't.
    #[inline]
    pub fn append(&mut self, new: Piece, limits: &TreeLimits) -> Option<u64> {
        let (n, span) = (self.len(), self.span());
        if span + new.len >= LEAF_SPAN_LIMIT || n == 0 || new.address().is_hole() {
            return None;
        }
        if self.continues(n - 1, self.span, new, limits) {
            self.span += new.len as u32;
            return Some(0);
        }
        if n == LEAF_CAPACITY {
            return None;
        }
        self.starts[n] = self.span;
        self.packed[n] = new.packed;
        self.tagged += u16::from(new.tag().is_some());
        self.span += new.len as u32;
        self.len += 1;
        Some(1)
    }

    /// Whether `new`, inserted at `at`, continues the extent `i` that ends there.
    #[inline]
    fn continues(&self, i: usize, at: u32, new: Piece, limits: &TreeLimits) -> bool {
        mergeable(u64::from(at - self.starts[i]), self.packed[i], new.len, new.packed, limits)
    }

    /// Whether what is left of extent `i` may be one with the extent before it.
    #[inline]
    fn merges_with_previous(&self, i: usize, len: u64, packed: u64, limits: &TreeLimits) -> bool {
        i > 0 && mergeable(self.extent_len(i - 1), self.packed[i - 1], len, packed, limits)
    }

    /// Whether what is left of extent `i` may be one with the extent behind it.
    #[inline]
    fn merges_with_next(&self, i: usize, len: u64, packed: u64, limits: &TreeLimits) -> bool {
        i + 1 < self.len() && mergeable(len, packed, self.extent_len(i + 1), self.packed[i + 1], limits)
    }

    /// Whether a hole may be inserted in place: not where a hole could grow into a link of its own, and not one that has
    /// to be cut behind its tag.
    fn takes_hole(&self, at: u64, new: Piece) -> bool {
        if new.tag().is_some() && new.len > 1 {
            return false;
        }
        let near = if at < self.span() { self.extent_len(self.find(at)) } else { 0 };
        let before = if at > 0 { self.extent_len(self.find(at - 1)) } else { 0 };
        new.len + near + before < BIG_HOLE
    }

    /// Removes extents `i..i + n` from the arrays; starts and span stay.
    fn remove(&mut self, i: usize, n: usize) {
        let len = self.len();
        let gone = self.packed[i..i + n].iter().filter(|&&p| tag_of(p).is_some()).count();
        self.tagged -= gone as u16;
        self.starts.copy_within(i + n..len, i);
        self.packed.copy_within(i + n..len, i);
        self.starts[len - n..len].fill(u32::MAX);
        self.len -= n as u16;
    }

    /// Removes `[at, at + len)`, less than the whole span, in place, and tells `gone` the mapped bytes; `false`, and
    /// nothing changed, where the result does not fit or could coalesce.
    pub fn collapse(&mut self, at: u64, len: u64, limits: &TreeLimits, gone: &mut Vec<(PhysicalOffset, u32)>) -> bool {
        let end = at + len;
        let (i, j) = (self.find(at), self.find(end - 1));
        let keeps_head = self.start(i) < at;
        let keeps_tail = end < self.end(j);
        if keeps_head && keeps_tail && i == j && self.len() == LEAF_CAPACITY {
            return false;
        }
        let tail_skip = end - self.start(j);
        let tail = Piece::new(1, address_of(self.packed[j]).advance(tail_skip), Tag::NONE);
        if self.collapse_coalesces(i, j, at, end, tail, limits) {
            return false;
        }
        for k in i..=j {
            let extent = self.extent(k, 0).clip(at, end);
            if !extent.is_hole() {
                gone.push((extent.address, extent.len as u32));
            }
        }
        self.cut_out(i, j, keeps_head, keeps_tail, end, tail.packed);
        let from = i + usize::from(keeps_head);
        let n = self.len();
        for start in &mut self.starts[from..n] {
            *start -= len as u32;
        }
        self.span -= len as u32;
        true
    }

    /// Whether neighbours could be one extent after a collapse: left to the slow path. A shorter head or tail may have
    /// become mergeable with its old neighbour, too.
    fn collapse_coalesces(&self, i: usize, j: usize, at: u64, end: u64, tail: Piece, limits: &TreeLimits) -> bool {
        let head_len = at - self.start(i);
        let tail_len = self.end(j) - end;
        let next = |len, packed| self.merges_with_next(j, len, packed, limits);
        let previous = |len, packed| self.merges_with_previous(i, len, packed, limits);
        match (head_len > 0, tail_len > 0) {
            (true, true) => {
                previous(head_len, self.packed[i])
                    || mergeable(head_len, self.packed[i], tail_len, tail.packed, limits)
                    || next(tail_len, tail.packed)
            }
            (true, false) => previous(head_len, self.packed[i]) || next(head_len, self.packed[i]),
            (false, true) => previous(tail_len, tail.packed) || next(tail_len, tail.packed),
            (false, false) => i > 0 && next(self.extent_len(i - 1), self.packed[i - 1]),
        }
    }

    /// Takes extents `i..=j` out of the arrays but for the head of `i` and the tail of `j` where they are kept.
    fn cut_out(&mut self, i: usize, j: usize, keeps_head: bool, keeps_tail: bool, end: u64, tail: u64) {
        match (keeps_head, keeps_tail) {
            (true, true) if i == j => {
                self.open(i + 1, 1);
                self.starts[i + 1] = end as u32;
                self.packed[i + 1] = tail;
            }
            (head, kept) => {
                if kept {
                    self.tagged -= u16::from(self.tag(j).is_some());
                    self.starts[j] = end as u32;
                    self.packed[j] = tail;
                }
                let from = i + usize::from(head);
                let to = if kept { j } else { j + 1 };
                self.remove(from, to - from);
            }
        }
    }

    /// Whether every unused start is padding.
    pub fn padded(&self) -> bool {
        self.starts[self.len()..].iter().all(|&start| start == u32::MAX)
    }

    /// The arrays as they are stored.
    pub fn raw(&self) -> (&[u32], &[u64]) {
        (&self.starts[..self.len()], &self.packed[..self.len()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: TreeLimits = TreeLimits { max_extent_len: 1000 };

    fn piece(len: u64, address: u64, tag: u16) -> Piece {
        Piece::new(len, PhysicalOffset(address), Tag(tag))
    }

    #[test]
    fn insert_coalesces_on_both_sides() {
        let mut leaf = Leaf::from_pieces(&[piece(10, 100, 1), piece(10, 120, 0)]);
        assert!(leaf.insert(10, piece(10, 110, 0), &LIMITS));
        assert_eq!(leaf.to_pieces(), [piece(30, 100, 1)]);
        assert!(leaf.insert(0, piece(5, 95, 0), &LIMITS));
        assert_eq!(leaf.to_pieces(), [piece(5, 95, 0), piece(30, 100, 1)]);
    }

    #[test]
    fn collapse_keeps_head_and_tail() {
        let mut leaf = Leaf::from_pieces(&[piece(10, 100, 1), piece(10, 300, 2)]);
        let mut gone = Vec::new();
        assert!(leaf.collapse(5, 10, &LIMITS, &mut gone));
        assert_eq!(leaf.to_pieces(), [piece(5, 100, 1), piece(5, 305, 0)]);
        assert_eq!(gone, [(PhysicalOffset(105), 5), (PhysicalOffset(300), 5)]);
    }
}
