//! Every limit and threshold in one place, with its unit in its name.
//!
//! The feature `small_limits` shrinks those that decide when structures split, wrap or fill, so that a test of
//! twenty operations reaches every one of them. A space written under one set can't be opened under the other:
//! its block size is in the superblock.

const SMALL: bool = cfg!(feature = "small_limits");

/// Largest size of a file: offsets are signed 64-bit in C.
pub const MAX_FILE_SIZE_BYTES: u64 = i64::MAX as u64;
/// Longest name of a file.
pub const MAX_NAME_BYTES: usize = 255;
/// Largest number of bytes that one call writes or inserts.
pub const MAX_WRITE_BYTES: u64 = 16 << 30;

/// The unit of checksums and of padding in `DATA`.
pub const BLOCK_BYTES: usize = if SMALL { 512 } else { 4096 };
/// The unit of `TREE`.
pub const PAGE_BYTES: usize = 4096;
/// Smallest segment.
pub const MIN_SEGMENT_BYTES: u32 = if SMALL { 4 << 10 } else { 64 << 10 };
/// Largest segment.
pub const MAX_SEGMENT_BYTES: u32 = 64 << 20;
/// Segment size of a space that names none.
pub const DEFAULT_SEGMENT_BYTES: u32 = if SMALL { 4 << 10 } else { 4 << 20 };
/// An extent is at most this fraction of a segment, so that GC can always place one.
pub const EXTENTS_PER_SEGMENT_MIN: u32 = 32;

/// Bytes of a segment that are written to the kernel in one go once they have gathered.
pub const DATA_CHUNK_BYTES: usize = if SMALL { 1 << 10 } else { 1 << 20 };
/// Blocks of `DATA` are reserved in steps of this.
pub const DATA_RESERVE_BYTES: u32 = if SMALL { 2 << 10 } else { 1 << 20 };
/// Frames that wait in memory before they are handed to the kernel.
pub const LOG_HAND_OVER_BYTES: usize = if SMALL { 2 << 10 } else { 1 << 20 };
/// Frames that wait for a sync before the space syncs by itself.
pub const LOG_UNSYNCED_BYTES: u64 = if SMALL { 8 << 10 } else { 8 << 20 };
/// Data that waits for a sync before the space syncs by itself.
pub const DATA_UNSYNCED_BYTES: u64 = if SMALL { 64 << 10 } else { 256 << 20 };
/// Log files grow by this.
pub const LOG_CHUNK_BYTES: u64 = if SMALL { 8 << 10 } else { 256 << 10 };
/// Room in the log that only operations that free space may use.
pub const LOG_SPARE_BYTES: u64 = if SMALL { 2 << 10 } else { 64 << 10 };
/// A checkpoint is due when the log passes `live / CHECKPOINT_LOG_FRACTION`, kept between the next two.
pub const CHECKPOINT_LOG_FRACTION: u64 = 16;
/// Least log that makes a checkpoint due.
pub const MIN_CHECKPOINT_LOG_BYTES: u64 = if SMALL { 6 << 10 } else { 128 << 10 };
/// Log that always makes a checkpoint due.
pub const MAX_CHECKPOINT_LOG_BYTES: u64 = 64 << 20;
/// Operations whose replay is estimated to take 0.3 s (about 1 us each).
pub const MAX_REPLAY_OPERATIONS: u64 = 300_000;
/// Log files are cut to this at a clean close.
pub const CLOSED_LOG_BYTES: u64 = LOG_CHUNK_BYTES;
/// `TREE` grows by this many pages.
pub const TREE_CHUNK_PAGES: u64 = if SMALL { 4 } else { 64 };
/// Free segments that keep their blocks.
pub const RESERVE_SEGMENTS: usize = 2;
/// Collection starts when less than this share (in percent) of the used segments is live.
pub const GC_UTILISATION_PERCENT: u64 = 70;
/// Used segments below which collection never starts by itself.
pub const GC_MIN_SEGMENTS: u64 = 6;
/// Live bytes that one slice of a collection moves.
pub const GC_SLICE_BYTES: u64 = if SMALL { 1 << 10 } else { 1 << 20 };
/// Extents that one slice of a collection looks at.
pub const GC_SLICE_EXTENTS: usize = 4000;
/// Nodes that one slice of accounting for dropped subtrees takes apart.
pub const REAP_SLICE_NODES: usize = if SMALL { 4 } else { 256 };
