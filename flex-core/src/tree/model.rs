//! The oracle: a sorted array of extents with absolute offsets. Inserting or removing shifts everything behind it, O(N).
//!
//! Two uses: model tests compare every answer of [`super::FlexTree`] with it, and it is one of the two baselines of the
//! paper's Table 1. It merges nothing but what a caller inserts in order (appends that continue the last extent), so
//! compare mappings byte by byte: [`ArrayModel::mapping`].

use super::extent::{Piece, address_of, mergeable, pack, tag_of};
use super::{Extent, TreeLimits};
use crate::address::{PhysicalOffset, Tag};

/// A sorted array of extents.
#[derive(Clone, Default, Debug)]
pub struct ArrayModel {
    starts: Vec<u64>,
    packed: Vec<u64>,
    len: u64,
}

impl ArrayModel {
    /// An empty one.
    pub fn new() -> ArrayModel {
        ArrayModel::default()
    }

    /// Bytes of address space.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of extents, which is not the tree's: it merges less.
    pub fn extent_count(&self) -> usize {
        self.starts.len()
    }

    /// Bytes of memory that its arrays hold.
    pub fn memory_bytes(&self) -> usize {
        (self.starts.capacity() + self.packed.capacity()) * size_of::<u64>()
    }

    fn extent(&self, i: usize) -> Extent {
        let end = self.starts.get(i + 1).copied().unwrap_or(self.len);
        let (offset, packed) = (self.starts[i], self.packed[i]);
        Extent { offset, len: end - offset, address: address_of(packed), tag: tag_of(packed) }
    }

    /// The extent that covers `at`.
    pub fn lookup(&self, at: u64) -> Option<Extent> {
        (at < self.len).then(|| self.extent(self.starts.partition_point(|&start| start <= at) - 1))
    }

    /// Makes `at` a border and returns the index of the extent that begins there.
    fn cut(&mut self, at: u64) -> usize {
        let i = self.starts.partition_point(|&start| start < at);
        if at == self.len || self.starts.get(i) == Some(&at) {
            return i;
        }
        let before = self.extent(i - 1);
        self.starts.insert(i, at);
        self.packed.insert(i, pack(before.address.advance(at - before.offset), Tag::NONE));
        i
    }

    /// Inserts; `at` is at most the length.
    pub fn insert(&mut self, at: u64, len: u64, address: PhysicalOffset, tag: Tag) {
        let new = Piece::new(len, address, tag);
        if at == self.len {
            let limits = TreeLimits { max_extent_len: u32::MAX };
            let last = self.starts.len().checked_sub(1).map(|i| self.extent(i));
            if last.is_none_or(|e| !mergeable(e.len, pack(e.address, e.tag), len, new.packed, &limits)) {
                self.starts.push(at);
                self.packed.push(new.packed);
            }
        } else {
            let i = self.cut(at);
            self.starts.insert(i, at);
            self.packed.insert(i, new.packed);
            self.starts[i + 1..].iter_mut().for_each(|start| *start += len);
        }
        self.len += len;
    }

    /// Removes a range and returns the mapped bytes that left, one piece per extent.
    pub fn collapse(&mut self, at: u64, len: u64) -> Vec<(PhysicalOffset, u64)> {
        let (from, to) = (self.cut(at), self.cut(at + len));
        let gone = self.mapped(from, to);
        self.starts.drain(from..to);
        self.packed.drain(from..to);
        self.starts[from..].iter_mut().for_each(|start| *start -= len);
        self.len -= len;
        gone
    }

    /// Maps a range elsewhere; tags stay. Returns the mapped bytes that left.
    pub fn replace(&mut self, at: u64, len: u64, address: PhysicalOffset) -> Vec<(PhysicalOffset, u64)> {
        let (from, to) = (self.cut(at), self.cut(at + len));
        let gone = self.mapped(from, to);
        for i in from..to {
            self.packed[i] = pack(address.advance(self.starts[i] - at), tag_of(self.packed[i]));
        }
        gone
    }

    fn mapped(&self, from: usize, to: usize) -> Vec<(PhysicalOffset, u64)> {
        let extents = (from..to).map(|i| self.extent(i)).filter(|extent| !extent.is_hole());
        extents.map(|extent| (extent.address, extent.len)).collect()
    }

    /// Sets or clears a tag.
    pub fn set_tag(&mut self, at: u64, tag: Tag) {
        let i = self.cut(at);
        self.packed[i] = pack(address_of(self.packed[i]), tag);
    }

    /// The tagged bytes.
    pub fn tags(&self) -> Vec<(u64, Tag)> {
        let tagged = |(&start, &packed): (&u64, &u64)| tag_of(packed).is_some().then(|| (start, tag_of(packed)));
        self.starts.iter().zip(&self.packed).filter_map(tagged).collect()
    }

    /// Cuts everything from `at` on off.
    pub fn split_off(&mut self, at: u64) -> ArrayModel {
        let i = self.cut(at);
        let mut starts = self.starts.split_off(i);
        starts.iter_mut().for_each(|start| *start -= at);
        let right = ArrayModel { starts, packed: self.packed.split_off(i), len: self.len - at };
        self.len = at;
        right
    }

    /// Puts another one behind it.
    pub fn join(&mut self, right: ArrayModel) {
        self.starts.extend(right.starts.iter().map(|start| start + self.len));
        self.packed.extend(right.packed);
        self.len += right.len;
    }

    /// The extents, merged wherever they continue one another without a tag between, whatever their lengths: equal for
    /// equal mappings.
    pub fn mapping(&self) -> Vec<Extent> {
        canonical((0..self.starts.len()).map(|i| self.extent(i)))
    }
}

/// Merges every extent that continues the one before it.
pub fn canonical(extents: impl Iterator<Item = Extent>) -> Vec<Extent> {
    let mut merged: Vec<Extent> = Vec::new();
    for extent in extents {
        if let Some(last) = merged.last_mut()
            && !extent.tag.is_some()
            && last.address.advance(last.len) == extent.address
        {
            last.len += extent.len;
        } else {
            merged.push(extent);
        }
    }
    merged
}
