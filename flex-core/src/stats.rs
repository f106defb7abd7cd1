//! What a space, a collection and a check say of themselves: plain data.

/// Counts and sizes of a space at one moment. Byte counters count from this open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceStats {
    /// Files in the catalog.
    pub files: u64,
    /// Extents in all trees.
    pub extents: u64,
    /// Bytes that a file refers to.
    pub live_bytes: u64,
    /// Bytes of segments in use.
    pub allocated_bytes: u64,
    /// Bytes of segments in use that no file refers to.
    pub dead_bytes: u64,
    /// Bytes of segments that are free but may still be seen by a snapshot, a reader or a recovery.
    pub quarantined_bytes: u64,
    /// Bytes of segments that can be used again.
    pub free_bytes: u64,
    /// Blocks that the files of the directory occupy on disk.
    pub disk_bytes: u64,
    /// Memory of tree nodes.
    pub tree_resident_bytes: u64,
    /// Pages in use in `TREE`.
    pub tree_pages: u64,
    /// Log that a recovery would replay.
    pub log_bytes: u64,
    /// Snapshots held.
    pub snapshots: u64,
    /// Age of the oldest snapshot.
    pub oldest_snapshot_age_ms: u64,
    /// Sequence number that the oldest snapshot shows.
    pub oldest_snapshot_sequence: u64,
    /// Bytes of free segments that only snapshots keep.
    pub snapshot_pinned_bytes: u64,
    /// Bytes that callers handed to write, insert and update.
    pub user_bytes_written: u64,
    /// Bytes written to `DATA`.
    pub data_bytes_written: u64,
    /// Bytes written to `TREE`.
    pub tree_bytes_written: u64,
    /// Bytes written to the logs.
    pub log_bytes_written: u64,
    /// Bytes that collection and defragmentation copied.
    pub gc_bytes_written: u64,
    /// Checkpoints taken.
    pub checkpoints: u64,
    /// Device syncs for durability.
    pub syncs: u64,
    /// Rounds of collection.
    pub gc_rounds: u64,
    /// Number of the last operation.
    pub sequence: u64,
    /// Number of the last operation known to be durable.
    pub durable_sequence: u64,
    /// The word of the last group that set one.
    pub commit_word: u64,
    /// Whether a failed write or sync stopped the space.
    pub poisoned: bool,
}

/// What a collection did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcReport {
    /// Segments that became free.
    pub segments_freed: u64,
    /// Live bytes that were copied.
    pub bytes_copied: u64,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file of the directory that it was found in.
    pub file: String,
    /// The byte offset there.
    pub offset: u64,
    /// What is wrong.
    pub text: String,
}

/// What a check looked at and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Files walked.
    pub files: u64,
    /// Extents walked.
    pub extents: u64,
    /// Bytes whose checksums were compared.
    pub bytes_verified: u64,
    /// Tree pages read.
    pub pages_verified: u64,
    /// What is wrong; empty when all is well.
    pub problems: Vec<Problem>,
}

/// How far a long call has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Bytes done.
    pub done: u64,
    /// Bytes in all, as far as known.
    pub total: u64,
}
