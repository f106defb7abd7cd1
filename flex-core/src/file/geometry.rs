//! Where a physical offset lies: which segment, which block, and where a segment's summary is.
//!
//! A segment of S bytes is S / B blocks of B bytes. Its last blocks hold the summary (see `summary`), the others data,
//! written front to back. An extent lies in one segment and is at most S / 32 bytes long.

use crate::address::PhysicalOffset;
use crate::limits::{BLOCK_BYTES, EXTENTS_PER_SEGMENT_MIN, MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES};
use crate::{Error, Result};

/// Bytes of a summary before its checksums.
pub const SUMMARY_HEADER_BYTES: usize = 40;

/// The number of a segment; it begins at this many segment sizes in `DATA`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SegmentId(pub u32);

/// The sizes that follow from a space's segment size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Geometry {
    segment_bytes: u32,
    data_blocks: u32,
}

impl Geometry {
    /// Checks the size: a power of two within the limits.
    pub fn new(segment_bytes: u32) -> Result<Geometry> {
        if !segment_bytes.is_power_of_two() || !(MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&segment_bytes) {
            return Err(Error::invalid(format!(
                "segment size {segment_bytes} is not a power of two from {MIN_SEGMENT_BYTES} to {MAX_SEGMENT_BYTES} bytes"
            )));
        }
        let blocks = segment_bytes as usize / BLOCK_BYTES;
        let mut summary_blocks = 1;
        while SUMMARY_HEADER_BYTES + 4 * (blocks - summary_blocks) > summary_blocks * BLOCK_BYTES {
            summary_blocks += 1;
        }
        Ok(Geometry { segment_bytes, data_blocks: (blocks - summary_blocks) as u32 })
    }

    /// Bytes of a segment.
    pub fn segment_bytes(&self) -> u32 {
        self.segment_bytes
    }

    /// Blocks of a segment that hold data.
    pub fn data_blocks(&self) -> u32 {
        self.data_blocks
    }

    /// Bytes of a segment that hold data.
    pub fn data_bytes(&self) -> u32 {
        self.data_blocks * BLOCK_BYTES as u32
    }

    /// Bytes of a segment's summary blocks.
    pub fn summary_bytes(&self) -> u32 {
        self.segment_bytes - self.data_bytes()
    }

    /// Longest extent.
    pub fn max_extent_bytes(&self) -> u32 {
        self.segment_bytes / EXTENTS_PER_SEGMENT_MIN
    }

    /// Where a segment begins in `DATA`.
    pub fn start_of(&self, segment: SegmentId) -> u64 {
        segment.0 as u64 * self.segment_bytes as u64
    }

    /// Where a segment's summary begins in `DATA`.
    pub fn summary_of(&self, segment: SegmentId) -> u64 {
        self.start_of(segment) + self.data_bytes() as u64
    }

    /// The segment that an address lies in, and the offset inside it. The address is no hole.
    pub fn locate(&self, address: PhysicalOffset) -> (SegmentId, u32) {
        debug_assert!(!address.is_hole());
        let size = self.segment_bytes as u64;
        (SegmentId((address.0 / size) as u32), (address.0 % size) as u32)
    }

    /// The address of an offset inside a segment.
    pub fn address(&self, segment: SegmentId, offset: u32) -> PhysicalOffset {
        PhysicalOffset(self.start_of(segment) + offset as u64)
    }

    /// How many segments fit below the largest physical offset.
    pub fn max_segments(&self) -> u32 {
        ((PhysicalOffset::HOLE.0 / self.segment_bytes as u64).min(u32::MAX as u64)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_fit_and_waste_no_block() {
        let mut size = MIN_SEGMENT_BYTES;
        while size <= MAX_SEGMENT_BYTES {
            let g = Geometry::new(size).unwrap();
            assert!(SUMMARY_HEADER_BYTES + 4 * g.data_blocks() as usize <= g.summary_bytes() as usize, "{size}");
            assert!(g.summary_bytes() <= size / 8, "{size}: {g:?}");
            let (segment, offset) = g.locate(g.address(SegmentId(7), 5));
            assert_eq!((segment, offset), (SegmentId(7), 5));
            size *= 2;
        }
    }

    #[test]
    fn odd_sizes_are_refused() {
        for size in [0, 1, MIN_SEGMENT_BYTES - 1, MIN_SEGMENT_BYTES + 512, MAX_SEGMENT_BYTES * 2] {
            assert!(Geometry::new(size).is_err(), "{size}");
        }
    }
}
