//! `flexspace_stats`: what a space holds, costs and did.

#![allow(unsafe_code)]

use crate::ffi;
use crate::file::flexfile;
use crate::panic::guarded;
use crate::space::flexspace;
use crate::status::FLEXFILE_OK;
use flex_core::Result;
use flex_core::file::{FlexSpace, SpaceStats};

/// What a space holds, costs and did. Set struct_size before the call. New fields are added at the end only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct flexspace_stats {
    /// sizeof(flexspace_stats), set by the caller.
    pub struct_size: usize,
    /// Files in the space.
    pub files: u64,
    /// Extents of all files, holes included.
    pub extents: u64,
    /// Bytes that files refer to, holes not counted.
    pub live_bytes: u64,
    /// Bytes of segments in use.
    pub allocated_bytes: u64,
    /// Bytes in those segments that no file refers to any more: what GC can win.
    pub dead_bytes: u64,
    /// Bytes freed but not reusable yet: their freeing is not durable, or a snapshot sees them.
    pub quarantined_bytes: u64,
    /// Bytes of free segments kept for reuse.
    pub free_bytes: u64,
    /// What the directory's files occupy on disk.
    pub disk_bytes: u64,
    /// Memory of the extent trees.
    pub tree_resident_bytes: u64,
    /// Pages of the extent trees on disk.
    pub tree_pages: u64,
    /// Bytes of log that an open after a crash would replay.
    pub log_bytes: u64,
    /// Snapshots that are held, cursors included.
    pub snapshots: u64,
    /// The age of the oldest of them in milliseconds.
    pub oldest_snapshot_age_ms: u64,
    /// The sequence number of the oldest of them.
    pub oldest_snapshot_sequence: u64,
    /// Bytes that only snapshots keep from being reused.
    pub snapshot_pinned_bytes: u64,
    /// Bytes that callers wrote since the space was opened.
    pub user_bytes_written: u64,
    /// Bytes of data written since then, GC not counted.
    pub data_bytes_written: u64,
    /// Bytes of tree pages written since then.
    pub tree_bytes_written: u64,
    /// Bytes of log written since then.
    pub log_bytes_written: u64,
    /// Bytes that GC and defragmentation wrote since then.
    pub gc_bytes_written: u64,
    /// Checkpoints since then.
    pub checkpoints: u64,
    /// Syncs of the device since then.
    pub syncs: u64,
    /// Rounds of GC since then.
    pub gc_rounds: u64,
    /// The number of the last change.
    pub sequence: u64,
    /// The number of the last change that is durable.
    pub durable_sequence: u64,
    /// The commit word (flexspace_commit_word()).
    pub commit_word: u64,
    /// 1 when an earlier write or sync failed, so that only reads go on; else 0.
    pub poisoned: u64,
}

impl flexspace_stats {
    fn new(struct_size: usize, stats: &SpaceStats) -> flexspace_stats {
        flexspace_stats {
            struct_size,
            files: stats.files,
            extents: stats.extents,
            live_bytes: stats.live_bytes,
            allocated_bytes: stats.allocated_bytes,
            dead_bytes: stats.dead_bytes,
            quarantined_bytes: stats.quarantined_bytes,
            free_bytes: stats.free_bytes,
            disk_bytes: stats.disk_bytes,
            tree_resident_bytes: stats.tree_resident_bytes,
            tree_pages: stats.tree_pages,
            log_bytes: stats.log_bytes,
            snapshots: stats.snapshots,
            oldest_snapshot_age_ms: stats.oldest_snapshot_age_ms,
            oldest_snapshot_sequence: stats.oldest_snapshot_sequence,
            snapshot_pinned_bytes: stats.snapshot_pinned_bytes,
            user_bytes_written: stats.user_bytes_written,
            data_bytes_written: stats.data_bytes_written,
            tree_bytes_written: stats.tree_bytes_written,
            log_bytes_written: stats.log_bytes_written,
            gc_bytes_written: stats.gc_bytes_written,
            checkpoints: stats.checkpoints,
            syncs: stats.syncs,
            gc_rounds: stats.gc_rounds,
            sequence: stats.sequence,
            durable_sequence: stats.durable_sequence,
            commit_word: stats.commit_word,
            poisoned: stats.poisoned.into(),
        }
    }
}

unsafe fn get(space: &FlexSpace, out_stats: *mut flexspace_stats) -> Result<i32> {
    // SAFETY: passed on; `write_sized` gets the size that `struct_size` read.
    unsafe {
        let (out, struct_size) = ffi::struct_size(out_stats, size_of::<flexspace_stats>(), "out_stats")?;
        ffi::write_sized(out, struct_size, &flexspace_stats::new(struct_size, &space.stats()?));
    }
    Ok(FLEXFILE_OK)
}

/// The space's statistics.
///
/// out_stats: set struct_size first. Errors: the common ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_get_stats(space: *mut flexspace, out_stats: *mut flexspace_stats) -> i32 {
    guarded! { get(&ffi::handle(space, "space")?.space, out_stats) }
}

/// flexspace_get_stats() of the file's space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_get_stats(file: *mut flexfile, out_stats: *mut flexspace_stats) -> i32 {
    guarded! { get(&ffi::handle(file, "file")?.file.space(), out_stats) }
}
