//! An extent: a run of the address space that is mapped to physical bytes, or a hole.
//!
//! In a leaf an extent is a 32-bit start and one 64-bit word: 48-bit physical offset below, 16-bit tag above. Its
//! length is the distance to the next start. [`Piece`] is the form in which edits off the hot path move extents about.

use super::limits::TreeLimits;
use crate::address::{PHYSICAL_OFFSET_BITS, PhysicalOffset, Tag};

/// A run of the address space, as the tree reports it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Where it begins in the address space.
    pub offset: u64,
    /// Bytes; never 0.
    pub len: u64,
    /// Where the bytes are, or [`PhysicalOffset::HOLE`].
    pub address: PhysicalOffset,
    /// The tag of its first byte.
    pub tag: Tag,
}

impl Extent {
    /// Whether nothing is mapped here.
    pub fn is_hole(&self) -> bool {
        self.address.is_hole()
    }

    /// One past its last byte.
    pub fn end(&self) -> u64 {
        self.offset + self.len
    }

    /// The part of it inside `[from, to)`, which it must overlap. The tag stays only with the first byte.
    pub(super) fn clip(self, from: u64, to: u64) -> Extent {
        let start = self.offset.max(from);
        let tag = if start == self.offset { self.tag } else { Tag::NONE };
        let address = self.address.advance(start - self.offset);
        Extent { offset: start, len: self.end().min(to) - start, address, tag }
    }
}

/// Address and tag in one word.
#[inline]
pub(super) fn pack(address: PhysicalOffset, tag: Tag) -> u64 {
    debug_assert!(address.0 <= PhysicalOffset::HOLE.0);
    address.0 | u64::from(tag.0) << PHYSICAL_OFFSET_BITS
}

/// The address in a packed word.
#[inline]
pub(super) fn address_of(packed: u64) -> PhysicalOffset {
    PhysicalOffset(packed & PhysicalOffset::HOLE.0)
}

/// The tag in a packed word.
#[inline]
pub(super) fn tag_of(packed: u64) -> Tag {
    Tag((packed >> PHYSICAL_OFFSET_BITS) as u16)
}

/// Whether `right` continues `left` and the two may be one extent.
#[inline]
pub(super) fn mergeable(left_len: u64, left: u64, right_len: u64, right: u64, limits: &TreeLimits) -> bool {
    if tag_of(right).is_some() {
        return false;
    }
    let (from, to) = (address_of(left), address_of(right));
    if from.is_hole() {
        return to.is_hole() && !tag_of(left).is_some();
    }
    from.0 + left_len == to.0 && left_len + right_len <= u64::from(limits.max_extent_len)
}

/// An extent without its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    /// Bytes.
    pub len: u64,
    /// Address and tag.
    pub packed: u64,
}

impl Piece {
    /// A piece of `len` bytes at `address`.
    pub fn new(len: u64, address: PhysicalOffset, tag: Tag) -> Piece {
        Piece { len, packed: pack(address, tag) }
    }

    /// Where its bytes are.
    pub fn address(&self) -> PhysicalOffset {
        address_of(self.packed)
    }

    /// The tag of its first byte.
    pub fn tag(&self) -> Tag {
        tag_of(self.packed)
    }

    /// Cuts everything from `at` on off and returns it; the tag stays with the first byte.
    pub fn cut(&mut self, at: u64) -> Piece {
        debug_assert!(at > 0 && at < self.len);
        let rest = Piece::new(self.len - at, self.address().advance(at), Tag::NONE);
        self.len = at;
        rest
    }
}

/// Makes `at` a boundary between pieces and returns the index of the piece that begins there.
pub(super) fn cut_pieces(pieces: &mut Vec<Piece>, at: u64) -> usize {
    let mut start = 0;
    for i in 0..pieces.len() {
        if start == at {
            return i;
        }
        let end = start + pieces[i].len;
        if at < end {
            let rest = pieces[i].cut(at - start);
            pieces.insert(i + 1, rest);
            return i + 1;
        }
        start = end;
    }
    debug_assert!(start == at);
    pieces.len()
}

/// Merges every pair of neighbours that may be one extent, and cuts a hole with a tag behind its first byte: so every
/// other hole can become a link, and no cut through a hole leaves a piece that could merge with something.
pub(super) fn coalesce(pieces: &mut Vec<Piece>, limits: &TreeLimits) {
    for i in (0..pieces.len()).rev() {
        if pieces[i].tag().is_some() && pieces[i].address().is_hole() && pieces[i].len > 1 {
            let rest = pieces[i].cut(1);
            pieces.insert(i + 1, rest);
        }
    }
    pieces.dedup_by(|right, left| {
        let merge = mergeable(left.len, left.packed, right.len, right.packed, limits);
        if merge {
            left.len += right.len;
        }
        merge
    });
}
