//! Checkpoints: the trees' dirty nodes and the catalog go to free pages, then one superblock slot is written.
//!
//! A checkpoint freezes at a frame boundary, where the log goes on in its other file: O(files) under the space's lock.
//! Then it works on the frozen roots, and neither readers nor writers wait for it.
//!
//! Order, with the reason for each step:
//! 1. Data and the log before the switch become durable: the new superblock will replace that log.
//! 2. Subtrees that were dropped before the freeze are accounted for, so that no space is lost with the old log.
//! 3. Nodes and catalog are written to pages that the present superblock does not use; `TREE` is synced.
//! 4. The superblock is written to the other slot; `TREE` is synced. From here on a recovery starts with it.
//! 5. The log's header learns the new superblock, and is synced. Then pages that only the old one needed become free.
//!
//! A failure before step 4 leaves the old superblock and both logs, which a recovery replays one after the other. When the
//! disk is full, the frozen state is kept and written by the next attempt.

use super::catalog::{Catalog, CatalogFile};
use super::core::Core;
use super::log_record::FileId;
use super::page_store::NodeWriter;
use super::segment_table::SegmentEntry;
use super::segment_writer::OpenSegment;
use super::shared::Shared;
use super::superblock::Superblock;
use crate::address::PageId;
use crate::codec::crc::crc32;
use crate::codec::varint;
use crate::limits::{CLOSED_LOG_BYTES, PAGE_BYTES, REAP_SLICE_NODES, TREE_CHUNK_PAGES};
use crate::options::LogLevel;
use crate::tree::{FlexTree, Released, Subtree};
use crate::{Error, ErrorKind, Result};
use std::sync::Arc;

/// A state that is being written.
pub struct Frozen {
    superblock: Superblock,
    files: Vec<(FileId, Vec<u8>, FlexTree)>,
    segments: Vec<SegmentEntry>,
    open: Vec<OpenSegment>,
    /// Pages that the new superblock does without.
    dying: Vec<PageId>,
    /// Subtrees dropped before the freeze.
    drops: Vec<(Subtree, u64)>,
}

impl Core {
    /// Freezes the state; the log has been switched to generation `log_generation`.
    pub fn freeze(&mut self, shared_superblock: Superblock) -> Frozen {
        let sequence = self.log.sequence();
        let mut released = Released::default();
        self.files.values().for_each(|file| file.tree.write().settle(&mut released));
        self.absorb(released, sequence);
        let superblock = Superblock {
            generation: self.superblock_generation + 1,
            log_generation: self.log.generation(),
            sequence,
            commit_word: self.commit_word,
            next_file_id: self.next_file_id,
            ..shared_superblock
        };
        self.epoch += 1;
        self.checkpoint_running = true;
        self.counters.checkpoints += 1;
        self.frozen_pages = self.dirty_pages_bound() + self.catalog_pages;
        (self.dirty_nodes, self.dirty_nodes_covered) = (0, 0);
        let mut files = Vec::with_capacity(self.files.len());
        for (name, file) in &self.files {
            let mut tree = file.tree.write();
            files.push((file.id, name.clone(), tree.clone()));
            tree.set_epoch(self.epoch);
        }
        Frozen {
            superblock,
            files,
            segments: self.table.entries().to_vec(),
            open: Vec::new(),
            dying: std::mem::take(&mut self.released_pages),
            drops: std::mem::take(&mut self.drops),
        }
    }
}

impl Frozen {
    /// Notes the segments that were open at the freeze.
    pub fn with_open(mut self, open: Vec<OpenSegment>) -> Frozen {
        self.open = open;
        self
    }
}

impl Shared {
    /// A checkpoint on a full disk: once more with the room that removed bytes leave. `held`: the file that the caller holds.
    pub fn checkpoint_in_need(self: &Arc<Self>, held: FileId) -> Result<()> {
        match self.checkpoint_now() {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                self.make_room(Some(held))?;
                self.checkpoint_now()
            }
            result => result,
        }
    }

    /// Writes a checkpoint of the state as it is now: where a frozen one waits, that one first.
    pub fn checkpoint_now(&self) -> Result<()> {
        let waits = self.checkpoint_lock.lock().is_some();
        self.checkpoint()?;
        if waits { self.checkpoint() } else { Ok(()) }
    }

    /// Writes the frozen state that waits, else a checkpoint of the state as it is now. Waits for one that is under way.
    pub fn checkpoint(&self) -> Result<()> {
        self.latch.check()?;
        let mut slot = self.checkpoint_lock.lock();
        let frozen = match slot.take() {
            Some(frozen) => slot.insert(frozen),
            None => {
                let mut core = self.core.lock();
                core.catalog_pages = self.catalog_pages_bound(&core);
                self.pages.reserve(core.dirty_pages_bound() + core.catalog_pages)?;
                core.switch_log(&self.data)?;
                let open = core.writer.open_segments(&self.data);
                let frozen = core.freeze(self.static_superblock()).with_open(open);
                slot.insert(frozen)
            }
        };
        self.write_frozen(frozen)?;
        *slot = None;
        Ok(())
    }

    /// Freezes a state that `open` recovered, for the next checkpoint to write: the log goes on behind it already.
    pub fn freeze_recovered(&self, open: Vec<OpenSegment>) {
        let mut slot = self.checkpoint_lock.lock();
        let mut core = self.core.lock();
        core.checkpoint_pending = true;
        // What the replay made dirty.
        core.dirty_nodes = core.files.values().map(|file| file.tree.read().dirty_nodes()).sum();
        core.catalog_pages = self.catalog_pages_bound(&core);
        *slot = Some(core.freeze(self.static_superblock()).with_open(open));
    }

    fn static_superblock(&self) -> Superblock {
        Superblock {
            space_id: self.data.space_id,
            unknown_read_flags: 0,
            generation: 0,
            log_generation: 0,
            sequence: 0,
            commit_word: 0,
            segment_bytes: self.data.geometry.segment_bytes(),
            catalog_crc: 0,
            catalog_page: PageId(0),
            catalog_len: 0,
            next_file_id: 0,
            page_count: 0,
            hash_seed: self.hash_seed,
        }
    }

    fn catalog_pages_bound(&self, core: &Core) -> u64 {
        let files: u64 = core.files.keys().map(|name| name.len() as u64 + 64).sum();
        let open = 2 * 4 * self.data.geometry.data_blocks() as u64;
        let bytes = files + core.table.entries().len() as u64 * 24 + open + self.pages.page_count() / 8 + 64;
        bytes.div_ceil(PAGE_BYTES as u64) + 2
    }

    fn write_frozen(&self, frozen: &mut Frozen) -> Result<()> {
        self.make_frozen_log_durable(frozen.superblock.sequence)?;
        self.account_for_drops(frozen);
        self.pages.rewind();
        let files = self.write_nodes(frozen)?;
        let catalog =
            Catalog { files, segments: frozen.segments.clone(), open: frozen.open.clone(), ..Catalog::default() };
        let previous_catalog = self.write_catalog(frozen, &catalog)?;
        self.pages.file().sync_data()?;
        let generation = frozen.superblock.generation;
        let page = PageId(Superblock::slot_offset(generation) / PAGE_BYTES as u64);
        self.pages.write_raw(page, &frozen.superblock.encode())?;
        self.pages.file().sync_data()?;
        self.take_effect(frozen, previous_catalog)
    }

    fn make_frozen_log_durable(&self, sequence: u64) -> Result<()> {
        let (point, data_mark) = {
            let core = self.core.lock();
            (core.log.sync_point(), core.writer.sync_mark())
        };
        self.data.file.sync_data()?;
        for file in &point.files {
            file.sync_data()?;
        }
        let mut core = self.core.lock();
        core.writer.note_synced(data_mark);
        core.log.note_durable(&point);
        core.durable_sequence = core.durable_sequence.max(point.sequence).max(sequence);
        Ok(())
    }

    fn account_for_drops(&self, frozen: &mut Frozen) {
        let size = self.data.geometry.segment_bytes() as u64;
        while let Some((mut subtree, death)) = frozen.drops.pop() {
            let mut released = Released::default();
            match subtree.take_apart_some(&self.pages, REAP_SLICE_NODES, &mut released) {
                Ok(true) => {}
                Ok(false) => frozen.drops.push((subtree, death)),
                Err(error) => {
                    let text = format!("the space of a removed range can't be accounted for: {error}");
                    self.say(LogLevel::Warning, &text);
                    if error.kind() != ErrorKind::Corruption {
                        // It may be readable by the next checkpoint; this one is worth more than the room.
                        self.core.lock().drops.push((subtree, death));
                    }
                }
            }
            let mut core = self.core.lock();
            for (address, len) in released.extents {
                core.table.release(address, len, death);
                if let Some(entry) = frozen.segments.get_mut((address.0 / size) as usize) {
                    entry.live = entry.live.saturating_sub(len);
                }
            }
            frozen.dying.extend(released.pages);
        }
    }

    fn write_nodes(&self, frozen: &Frozen) -> Result<Vec<CatalogFile>> {
        let mut writer = NodeWriter::new(&self.pages, frozen.superblock.generation, frozen.superblock.sequence);
        let mut files = Vec::with_capacity(frozen.files.len());
        let mut result = Ok(());
        for (id, name, tree) in &frozen.files {
            match tree.store(&mut writer) {
                Ok(root) => files.push(CatalogFile { id: *id, name: name.clone(), root }),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        // Also after an error: nodes that have a page by now must be in it when the next attempt skips them.
        writer.finish()?;
        result.map(|()| files)
    }

    /// Writes the catalog to pages of its own; returns those of the one before it.
    fn write_catalog(&self, frozen: &mut Frozen, catalog: &Catalog) -> Result<Vec<PageId>> {
        let previous = self.catalog_run.lock().clone();
        let mut bytes = catalog.encode_without_pages();
        // Room for the page map, which may grow by the pages that this takes.
        let map_bytes = self.pages.page_count() / 8 + TREE_CHUNK_PAGES + 64;
        let pages = (bytes.len() as u64 + map_bytes).div_ceil(PAGE_BYTES as u64);
        let first = self.pages.allocate_run(pages, frozen.superblock.sequence)?;
        let gone: Vec<PageId> = frozen.dying.iter().chain(&previous).copied().collect();
        let mut map = self.pages.durable_map(&gone);
        // What was taken for nothing is given back with the rest: a later open would not know of it.
        let needed = bytes.len() as u64 + varint::encoded_len(map.len()) as u64 + map.len().div_ceil(8);
        let end = first.0 + needed.div_ceil(PAGE_BYTES as u64).min(pages);
        for surplus in end..first.0 + pages {
            map.clear(surplus);
            frozen.dying.push(PageId(surplus));
        }
        Catalog::encode_pages(&map, &mut bytes);
        if bytes.len() as u64 > pages * PAGE_BYTES as u64 {
            return Err(Error::corruption("the catalog outgrew its pages"));
        }
        self.pages.write_raw(first, &bytes)?;
        frozen.superblock.catalog_crc = crc32(&bytes);
        frozen.superblock.catalog_page = first;
        frozen.superblock.catalog_len = bytes.len() as u64;
        frozen.superblock.page_count = map.len();
        *self.catalog_run.lock() = (first.0..end).map(PageId).collect();
        Ok(previous)
    }

    fn take_effect(&self, frozen: &mut Frozen, previous_catalog: Vec<PageId>) -> Result<()> {
        let header = {
            let mut core = self.core.lock();
            core.superblock_generation = frozen.superblock.generation;
            core.checkpoint_pending = false;
            core.frozen_pages = 0;
            core.resolve_superseded();
            core.log.confirm_base(frozen.superblock.generation)?
        };
        // Before anything that the old superblock needed is written again: if the new one is lost, that must show.
        header.sync_data()?;
        {
            let mut core = self.core.lock();
            let death = frozen.superblock.sequence;
            self.pages.free(&frozen.dying, death, &core.snapshots);
            self.pages.free(&previous_catalog, 0, &core.snapshots);
            self.pages.settle(&core.snapshots);
            core.log.note_superblock(death);
            core.settle(&self.data);
        }
        self.pages.trim(TREE_CHUNK_PAGES)
    }

    /// At a clean close, after the last checkpoint: cuts the logs, which nothing needs any more.
    pub fn finish_log(&self) -> Result<()> {
        let files = {
            let mut core = self.core.lock();
            core.log.cut(CLOSED_LOG_BYTES)?;
            core.log.files()
        };
        files.iter().try_for_each(|file| file.sync_data())
    }
}
