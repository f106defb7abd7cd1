//! Where things are: physical bytes in `DATA`, pages in `TREE`, tags on bytes.
//!
//! Newtypes, so that two integers of different meaning never stand side by side in a signature.

/// Number of bits of a physical offset in an extent.
pub const PHYSICAL_OFFSET_BITS: u32 = 48;

/// A byte offset in `DATA`, below 2^48 - 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PhysicalOffset(pub u64);

impl PhysicalOffset {
    /// The largest physical offset: it means "no bytes", a hole.
    pub const HOLE: PhysicalOffset = PhysicalOffset((1 << PHYSICAL_OFFSET_BITS) - 1);

    /// Whether this stands for a hole.
    pub fn is_hole(self) -> bool {
        self == Self::HOLE
    }

    /// The offset `delta` bytes on; a hole stays a hole.
    pub fn advance(self, delta: u64) -> PhysicalOffset {
        if self.is_hole() { self } else { PhysicalOffset(self.0 + delta) }
    }
}

/// The number of a page in `TREE`. Page 0 and 1 are the superblock slots, so that 0 never names a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageId(pub u64);

/// A 16-bit mark on a byte, the first of its extent. Zero means "no tag".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Tag(pub u16);

impl Tag {
    /// No tag.
    pub const NONE: Tag = Tag(0);

    /// Whether there is a tag.
    pub fn is_some(self) -> bool {
        self.0 != 0
    }
}
