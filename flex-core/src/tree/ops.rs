//! The edits of one leaf: insert, change a mapping, set a tag.

use super::edit::{Edit, LeafEdit};
use super::extent::{Piece, cut_pieces, pack};
use super::leaf::Leaf;
use super::limits::BIG_HOLE;
use crate::address::{PhysicalOffset, Tag};

/// Inserts one extent, or a hole of any length.
pub(super) struct Insert {
    pub new: Piece,
}

impl LeafEdit for Insert {
    const PREFERS_LEFT: bool = true;

    #[inline]
    fn added(&self) -> u64 {
        self.new.len
    }

    #[inline]
    fn in_place(&mut self, leaf: &mut Leaf, at: u64, edit: &mut Edit<'_>) -> bool {
        leaf.insert(at, self.new, &edit.limits)
    }

    fn on_pieces(&mut self, pieces: &mut Vec<Piece>, at: u64, _: &mut Edit<'_>) {
        let i = cut_pieces(pieces, at);
        pieces.insert(i, self.new);
    }
}

/// Maps `len` bytes elsewhere; tags stay on their bytes.
pub(super) struct Replace {
    pub len: u64,
    pub address: PhysicalOffset,
}

impl LeafEdit for Replace {
    const PREFERS_LEFT: bool = false;

    fn added(&self) -> u64 {
        0
    }

    fn in_place(&mut self, leaf: &mut Leaf, at: u64, edit: &mut Edit<'_>) -> bool {
        let i = leaf.find(at);
        let old = leaf.extent(i, 0);
        // A hole may have to become a link, or be cut behind its tag.
        let hole_moves = self.address.is_hole() && (self.len >= BIG_HOLE || (old.tag.is_some() && self.len > 1));
        if old.offset != at || old.len != self.len || hole_moves {
            return false;
        }
        leaf.set_address(i, self.address);
        if (i > 0 && leaf.can_merge(i - 1, &edit.limits)) || leaf.can_merge(i, &edit.limits) {
            leaf.set_address(i, old.address);
            return false;
        }
        if !old.is_hole() {
            edit.out.extents.push((old.address, old.len as u32));
        }
        true
    }

    fn on_pieces(&mut self, pieces: &mut Vec<Piece>, at: u64, edit: &mut Edit<'_>) {
        let from = cut_pieces(pieces, at);
        let to = cut_pieces(pieces, at + self.len);
        let mut done = 0;
        for piece in &mut pieces[from..to] {
            if !piece.address().is_hole() {
                edit.out.extents.push((piece.address(), piece.len as u32));
            }
            piece.packed = pack(self.address.advance(done), piece.tag());
            done += piece.len;
        }
    }
}

/// Sets or clears the tag of one byte.
pub(super) struct SetTag {
    pub tag: Tag,
}

impl LeafEdit for SetTag {
    const PREFERS_LEFT: bool = false;

    fn added(&self) -> u64 {
        0
    }

    fn in_place(&mut self, leaf: &mut Leaf, at: u64, edit: &mut Edit<'_>) -> bool {
        let i = leaf.find(at);
        let extent = leaf.extent(i, 0);
        if extent.offset != at || (extent.is_hole() && extent.len > 1) {
            return false;
        }
        let old = leaf.tag(i);
        leaf.set_tag(i, self.tag);
        let merges = (i > 0 && leaf.can_merge(i - 1, &edit.limits)) || leaf.can_merge(i, &edit.limits);
        if merges {
            leaf.set_tag(i, old);
        }
        !merges
    }

    fn on_pieces(&mut self, pieces: &mut Vec<Piece>, at: u64, _: &mut Edit<'_>) {
        let i = cut_pieces(pieces, at);
        pieces[i].packed = pack(pieces[i].address(), self.tag);
    }
}
