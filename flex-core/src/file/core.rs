//! The state of a space that its one lock guards: catalog, log, append heads, segment table, versions.
//!
//! Lock order, outermost first: a file's writer lock, `Shared::core`, a file's tree. The sync, checkpoint and
//! collection locks come before `core` and are never taken while it is held. No device sync happens under `core`.
//!
//! Every operation changes trees and appends its frame in one critical section, so that trees and log agree whenever
//! the lock is free: a checkpoint that freezes under it freezes at a frame boundary.

use super::change::Piece;
use super::log_record::{FileId, Record};
use super::logical_log::{LogicalLog, encode_batch_end};
use super::page_store::PageStore;
use super::segment_table::SegmentTable;
use super::segment_writer::{DataStore, SegmentWriter};
use super::snapshots::SnapshotList;
use super::writer_lock::WriterLock;
use crate::address::PageId;
use crate::limits;
use crate::tree::limits::LEAF_MIN;
use crate::tree::{FlexTree, Released, Subtree, Superseded};
use crate::{ErrorKind, Result};
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::ThreadId;

/// One file, shared by its handles and the catalog.
pub struct FileState {
    /// Its id.
    pub id: FileId,
    /// Its tree as readers see it.
    pub tree: RwLock<FlexTree>,
    /// Who may change it.
    pub writer: WriterLock,
    /// Set when it was removed.
    pub removed: AtomicBool,
}

/// Upkeep that an operation found due.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// Much waits for a sync.
    pub sync: bool,
    /// The log is long.
    pub checkpoint: bool,
    /// Dropped subtrees wait to be accounted for.
    pub reap: bool,
    /// Much of the used space is dead.
    pub gc: bool,
}

impl Due {
    /// Whether anything is.
    pub fn any(&self) -> bool {
        *self != Due::default()
    }
}

/// See the module.
pub struct Core {
    /// The logical log.
    pub log: LogicalLog,
    /// The append heads.
    pub writer: SegmentWriter,
    /// The segments.
    pub table: SegmentTable,
    /// The files by name.
    pub files: BTreeMap<Vec<u8>, Arc<FileState>>,
    /// The id of the next new file.
    pub next_file_id: u64,
    /// The last commit word.
    pub commit_word: u64,
    /// The snapshots that are held.
    pub snapshots: SnapshotList,
    /// Pages that the next checkpoint does without.
    pub released_pages: Vec<PageId>,
    /// Nodes of the frozen trees that were replaced since: their pages are known when the checkpoint is done.
    pub superseded: Vec<Superseded>,
    /// Subtrees that left a tree, each with the operation that dropped it; not accounted for yet.
    pub drops: Vec<(Subtree, u64)>,
    /// Number of checkpoints begun in this open; trees stamp nodes with it.
    pub epoch: u32,
    /// Whether a frozen state is being written.
    pub checkpoint_running: bool,
    /// Whether a frozen state waits that `open` recovered.
    pub checkpoint_pending: bool,
    /// The last operation known to be durable.
    pub durable_sequence: u64,
    /// The superblock that is durable.
    pub superblock_generation: u64,
    /// Operations since the last freeze.
    pub operations: u64,
    /// Threads that hold a group.
    pub group_owners: Vec<ThreadId>,
    /// Used segments after the last collection that freed nothing: no use in trying again before this changes.
    pub gc_futile_at: u64,
    /// Tree nodes that operations since the last freeze made dirty, at most.
    pub dirty_nodes: u64,
    /// As far as `dirty_nodes` may grow before `TREE` has to be looked at again.
    pub dirty_nodes_covered: u64,
    /// Pages that a frozen state will take which is not written yet, at most.
    pub frozen_pages: u64,
    /// Pages that a checkpoint takes for the catalog, about.
    pub catalog_pages: u64,
    /// Counters for the statistics.
    pub counters: Counters,
}

/// Counters for the statistics.
#[derive(Clone, Copy, Default)]
pub struct Counters {
    /// Bytes that callers handed over.
    pub user_bytes: u64,
    /// Bytes that collection and defragmentation copied.
    pub gc_bytes: u64,
    /// Checkpoints.
    pub checkpoints: u64,
    /// Device syncs.
    pub syncs: u64,
    /// Rounds of collection.
    pub gc_rounds: u64,
}

/// Bytes of a frame beside its records, and of the records that end a batch.
const FRAME_OVERHEAD_BYTES: u64 = 256;
/// Dirty nodes between two looks at the room in `TREE`.
const PAGE_STEP: u64 = if cfg!(feature = "small_limits") { 32 } else { 256 };
/// Pages kept for what operations that free space make dirty.
const SPARE_PAGES: u64 = 64;

impl Core {
    /// Makes room in the log for a frame with `records` bytes of records. `NoSpace` changes nothing.
    pub fn ensure_log_room(&mut self, records: u64, frees_space: bool) -> Result<()> {
        let bytes = records + self.writer.unlogged_bound() + FRAME_OVERHEAD_BYTES;
        self.log.ensure_room(bytes, frees_space)
    }

    /// Appends a frame. Returns its sequence number.
    pub fn append_frame(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<u64> {
        self.operations += 1;
        self.log.append(fill)
    }

    /// Hands data and then frames to the kernel, as one batch.
    pub fn hand_over(&mut self, data: &DataStore) -> Result<()> {
        self.writer.hand_over(data)?;
        let runs = self.writer.take_unlogged();
        if !runs.is_empty() || self.log.waiting() > 0 {
            self.log.append(|out| encode_batch_end(out, runs, Record::Batch))?;
        }
        self.log.hand_over()
    }

    /// Appends and hands over a frame that says only how much of the log is durable, if that is what keeps freed
    /// segments waiting. Returns whether it did; the next sync records it.
    pub fn record_durable(&mut self, data: &DataStore) -> Result<bool> {
        if !self.table.waits_for(self.log.recorded()) {
            return Ok(false);
        }
        self.ensure_log_room(0, true)?;
        self.writer.hand_over(data)?;
        let runs = self.writer.take_unlogged();
        self.log.append(|out| encode_batch_end(out, runs, Record::Batch))?;
        self.log.hand_over()?;
        Ok(true)
    }

    /// Hands everything over and goes on in the other log file.
    pub fn switch_log(&mut self, data: &DataStore) -> Result<()> {
        self.writer.hand_over(data)?;
        let runs = self.writer.take_unlogged();
        self.log.append(|out| encode_batch_end(out, runs, Record::EndOfLog))?;
        self.log.hand_over()?;
        self.log.switch();
        self.operations = 0;
        Ok(())
    }

    /// Staged pieces were linked.
    pub fn publish(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            self.table.publish(piece.address, piece.len);
        }
    }

    /// Staged pieces will not be linked.
    pub fn unstage(&mut self, pieces: &[Piece]) {
        let sequence = self.log.sequence();
        for piece in pieces {
            self.table.unstage(piece.address, piece.len, sequence);
        }
    }

    /// Accounts for what operation `sequence` took out of a tree.
    pub fn absorb(&mut self, released: Released, sequence: u64) {
        for (address, len) in released.extents {
            self.table.release(address, len, sequence);
        }
        self.released_pages.extend(released.pages);
        self.drops.extend(released.subtrees.into_iter().map(|subtree| (subtree, sequence)));
        self.absorb_superseded(released.superseded);
    }

    fn absorb_superseded(&mut self, superseded: Vec<Superseded>) {
        // Only nodes from before the freeze can be among those that the checkpoint gives pages.
        for node in superseded.into_iter().filter(|node| node.epoch() < self.epoch) {
            if self.checkpoint_running {
                self.superseded.push(node);
            } else {
                self.released_pages.extend(node.page());
            }
        }
    }

    /// The checkpoint is done: frozen nodes that were replaced meanwhile have their pages now.
    pub fn resolve_superseded(&mut self) {
        self.checkpoint_running = false;
        let superseded = std::mem::take(&mut self.superseded);
        self.absorb_superseded(superseded);
    }

    /// What should be done soon, after an operation.
    pub fn due(&self) -> Due {
        let log_limit = (self.table.live_bytes() / limits::CHECKPOINT_LOG_FRACTION)
            .clamp(limits::MIN_CHECKPOINT_LOG_BYTES, limits::MAX_CHECKPOINT_LOG_BYTES);
        Due {
            sync: self.log.unsynced() >= limits::LOG_UNSYNCED_BYTES
                || self.writer.unsynced_bytes() >= limits::DATA_UNSYNCED_BYTES,
            checkpoint: self.checkpoint_pending
                || self.log.len() >= log_limit
                || self.operations >= limits::MAX_REPLAY_OPERATIONS,
            reap: !self.drops.is_empty() && !self.checkpoint_running,
            gc: self.collection_is_due(),
        }
    }

    fn collection_is_due(&self) -> bool {
        let used = self.table.used();
        let geometry_bytes = used * self.table.geometry().data_bytes() as u64;
        used >= limits::GC_MIN_SEGMENTS
            && used != self.gc_futile_at
            && self.table.live_bytes() * 100 < geometry_bytes * limits::GC_UTILISATION_PERCENT
    }

    /// Frees segments that wait no longer. Returns how many. An operation that freed one must be recorded, not only durable:
    /// else a recovery would look for the segment's blocks, and take the operations behind them for the torn end of the log.
    pub fn settle(&mut self, data: &DataStore) -> u64 {
        self.table.settle(self.log.recorded(), &self.snapshots, |id| data.segment(id).is_pinned())
    }

    /// Upper bound of the pages that a checkpoint would write now, but for the catalog's.
    pub fn dirty_pages_bound(&self) -> u64 {
        self.pages_for(self.dirty_nodes)
    }

    fn pages_for(&self, dirty_nodes: u64) -> u64 {
        let nodes = |file: &Arc<FileState>| 8 + 2 * (file.tree.read().extent_count() / LEAF_MIN as u64);
        self.frozen_pages + dirty_nodes.min(self.files.values().map(nodes).sum())
    }

    /// Makes sure that `TREE` has room for a checkpoint when `added` more nodes are dirty. Operations that free space go
    /// on without: pages are kept for them, and what they free is room for more.
    pub fn ensure_page_room(&mut self, pages: &PageStore, added: u64, frees_space: bool) -> Result<()> {
        if self.dirty_nodes + added <= self.dirty_nodes_covered {
            return Ok(());
        }
        let cover = self.dirty_nodes + added + PAGE_STEP;
        match pages.reserve(self.pages_for(cover) + self.catalog_pages + SPARE_PAGES) {
            Ok(()) => self.dirty_nodes_covered = cover,
            Err(error) if !frees_space || error.kind() != ErrorKind::NoSpace => return Err(error),
            Err(_) => {}
        }
        Ok(())
    }

    /// A group of this thread is over, or belongs to another now.
    pub fn remove_group_owner(&mut self, owner: Option<ThreadId>) {
        if let Some(at) = self.group_owners.iter().position(|other| Some(*other) == owner) {
            self.group_owners.swap_remove(at);
        }
    }

    /// Whether this thread holds a group.
    pub fn in_group(&self) -> bool {
        self.group_owners.contains(&std::thread::current().id())
    }
}
