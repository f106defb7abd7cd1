//! Fan-out and lengths that shape the tree.
//!
//! A node has to fit one page of `TREE` (see [`super::node_codec`]): that bounds the fan-out from above. The values
//! below were chosen by measurement (`cargo bench --bench tree`). Under the feature `small_limits` twenty operations
//! build a deep tree.

/// Extents in a leaf.
#[cfg(not(feature = "small_limits"))]
pub const LEAF_CAPACITY: usize = 256;
/// Children of an internal node.
#[cfg(not(feature = "small_limits"))]
pub const INTERNAL_CAPACITY: usize = 128;
/// A leaf with fewer extents is underfull.
#[cfg(not(feature = "small_limits"))]
pub const LEAF_MIN: usize = LEAF_CAPACITY / 4;
/// An internal node with fewer children is underfull.
#[cfg(not(feature = "small_limits"))]
pub const INTERNAL_MIN: usize = INTERNAL_CAPACITY / 4;
/// An untagged hole of at least this length is a child link of its own.
#[cfg(not(feature = "small_limits"))]
pub const BIG_HOLE: u64 = 1 << 30;

/// Extents in a leaf.
#[cfg(feature = "small_limits")]
pub const LEAF_CAPACITY: usize = 4;
/// Children of an internal node.
#[cfg(feature = "small_limits")]
pub const INTERNAL_CAPACITY: usize = 4;
/// A leaf with fewer extents is underfull.
#[cfg(feature = "small_limits")]
pub const LEAF_MIN: usize = 2;
/// An internal node with fewer children is underfull.
#[cfg(feature = "small_limits")]
pub const INTERNAL_MIN: usize = 2;
/// An untagged hole of at least this length is a child link of its own.
#[cfg(feature = "small_limits")]
pub const BIG_HOLE: u64 = 4096;

/// A leaf's span stays below this, so that 32 bits hold its offsets.
pub const LEAF_SPAN_LIMIT: u64 = 1 << 32;
/// No mapped extent is longer: three of them and a hole still fit one leaf, so that a leaf can always be cut in two.
pub const MAX_EXTENT_LEN: u32 = 1 << 30;
/// The largest address space.
pub const MAX_LEN: u64 = i64::MAX as u64;
/// More levels than any tree can have; deeper stored trees are damage.
pub const MAX_HEIGHT: u32 = 64;

/// What a space fixes for its trees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TreeLimits {
    /// The largest length of a mapped extent, at most [`MAX_EXTENT_LEN`].
    pub max_extent_len: u32,
}
