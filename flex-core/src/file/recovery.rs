//! Recovery: from the newest superblock and the logs behind it to the state after the last operation that can be believed.
//!
//! 1. Both superblock slots are read; the newest sound one, g, counts. A log header that names a superblock newer than g
//!    shows that one was lost: corruption, never an older state.
//! 2. The catalog of g gives files (roots only: trees load when they are used), segments and pages.
//! 3. The log that g names is replayed, and the one behind it if g's was read to its end. Replay changes trees and
//!    accounts; it reads `DATA` only to verify what was not known to be durable.
//! 4. Segments that the log wrote get their summaries (again). An `EndOfLog` frame behind the last believed batch ends the
//!    log, and it goes on under the next generation in the other file: nothing that lies behind can be read as its
//!    continuation. A checkpoint of the recovered state follows in the background. Where both log files are in use
//!    already, the checkpoint comes first, because the next generation lies in one of them.
//!
//! A crash at any point of this leaves g and its logs as they were, up to the believed end; a second recovery finds the
//! same state.

use super::catalog::Catalog;
use super::change::apply_all;
use super::geometry::SegmentId;
use super::log_reader::{Batch, LogReader};
use super::log_record::{BlockRun, FileId, Record};
use super::logical_log::{FRAMES_START, LOG_ID, LOG_NAMES, LogHeader};
use super::page_store::PageStore;
use super::segment_table::{SegmentState, SegmentTable};
use super::segment_writer::{DataStore, HEADS, OpenSegment, write_summary};
use super::superblock::{Slot, Superblock};
use crate::address::PageId;
use crate::codec::crc::crc32;
use crate::codec::frame::{self, FrameSalt};
use crate::codec::reader::Reader;
use crate::io::fail_stop::FailStopFile;
use crate::limits::{BLOCK_BYTES, PAGE_BYTES, REAP_SLICE_NODES};
use crate::tree::{FlexTree, Released, Subtree, TreeLimits};
use crate::{Error, ErrorKind, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads the newest sound superblock.
pub fn read_superblock(tree: &FailStopFile) -> Result<Superblock> {
    let mut newest: Option<Superblock> = None;
    let mut damage = None;
    for slot in 0..2 {
        let at = slot * PAGE_BYTES as u64;
        let mut page = vec![0; PAGE_BYTES];
        let len = tree.read_up_to_at(&mut page, at)?;
        match Superblock::decode(&page[..len]) {
            Slot::Valid(found) if found.generation % 2 != slot => {
                damage = Some(Error::corruption("superblock: it lies in the wrong slot"));
            }
            Slot::Valid(found) => match &newest {
                Some(other) if other.space_id != found.space_id => {
                    damage = Some(Error::corruption("superblocks of two spaces"));
                    break;
                }
                Some(other) if other.generation > found.generation => {}
                _ => newest = Some(found),
            },
            Slot::Blank => {}
            Slot::Damaged(error) => damage = damage.or(Some(error.at_offset(at))),
            Slot::Foreign(error) => return Err(error.at_path(tree.path()).at_offset(at)),
        }
    }
    newest.ok_or_else(|| {
        damage.unwrap_or_else(|| Error::corruption("both superblocks are blank")).at_path(tree.path()).at_offset(0)
    })
}

/// Reads the catalog that a superblock points to.
pub fn read_catalog(tree: &FailStopFile, superblock: &Superblock) -> Result<Catalog> {
    let at = superblock.catalog_page.0.saturating_mul(PAGE_BYTES as u64);
    let damaged = |text: &str| Error::corruption(format!("catalog: {text}")).at_path(tree.path()).at_offset(at);
    if superblock.catalog_len > tree.len()?.saturating_sub(at) {
        return Err(damaged("it reaches behind the end of the file"));
    }
    let mut bytes = vec![0; superblock.catalog_len as usize];
    tree.read_exact_at(&mut bytes, at)?;
    if crc32(&bytes) != superblock.catalog_crc {
        return Err(damaged("checksum mismatch"));
    }
    Catalog::decode(&bytes).map_err(|e| e.at_path(tree.path()).at_offset(at))
}

/// The pages that a superblock's catalog occupies (with what was set aside for it).
pub fn catalog_pages(superblock: &Superblock) -> Vec<PageId> {
    let pages = superblock.catalog_len.div_ceil(PAGE_BYTES as u64);
    (superblock.catalog_page.0..superblock.catalog_page.0 + pages).map(PageId).collect()
}

/// A state that is being rebuilt.
pub struct Recovery<'a> {
    data: &'a DataStore,
    pages: &'a PageStore,
    files: BTreeMap<FileId, RecoveredFile>,
    /// The segments.
    table: SegmentTable,
    /// The last operation.
    sequence: u64,
    /// Operations replayed.
    operations: u64,
    /// The last commit word.
    commit_word: u64,
    /// The id of the next new file.
    next_file_id: u64,
    /// Pages that the superblock's trees used and the recovered ones do not.
    released_pages: Vec<PageId>,
    /// Subtrees that left a tree.
    drops: Vec<(Subtree, u64)>,
    /// Checksums of segments that the logs or the catalog name, by segment.
    tails: BTreeMap<SegmentId, Vec<u32>>,
    heads: [Option<SegmentId>; HEADS],
}

/// A file of the recovered state.
pub struct RecoveredFile {
    /// Its name.
    pub name: Vec<u8>,
    /// Its tree.
    pub tree: FlexTree,
}

/// Where the believed part of a log ends.
struct ReplayEnd {
    /// With the frame from where the other file goes on.
    complete: bool,
    offset: u64,
}

impl Default for ReplayEnd {
    fn default() -> ReplayEnd {
        ReplayEnd { complete: false, offset: FRAMES_START }
    }
}

/// What the logs said.
pub struct Replayed {
    /// The generation that the log goes on with.
    pub next_generation: u64,
    /// What has to be written, and when.
    pub checkpoint: CheckpointNeed,
}

/// What a recovery asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckpointNeed {
    /// The logs held nothing.
    None,
    /// A checkpoint of the recovered state, some time soon.
    Soon,
    /// A checkpoint before the log goes on.
    First,
}

impl<'a> Recovery<'a> {
    /// The state of a superblock.
    pub fn new(superblock: &Superblock, catalog: Catalog, data: &'a DataStore, pages: &'a PageStore) -> Recovery<'a> {
        let limits = tree_limits(data);
        let mut heads = [None; HEADS];
        let mut tails = BTreeMap::new();
        for open in catalog.open {
            heads[open.head as usize] = Some(open.segment);
            tails.insert(open.segment, open.checksums);
        }
        let files = catalog.files.into_iter();
        let files = files
            .map(|file| (file.id, RecoveredFile { name: file.name, tree: FlexTree::from_stored(limits, file.root) }))
            .collect();
        Recovery {
            data,
            pages,
            files,
            table: SegmentTable::new(data.geometry, catalog.segments),
            sequence: superblock.sequence,
            operations: 0,
            commit_word: superblock.commit_word,
            next_file_id: superblock.next_file_id,
            released_pages: Vec::new(),
            drops: Vec::new(),
            tails,
            heads,
        }
    }

    /// Replays what the logs hold behind the superblock.
    pub fn replay(
        &mut self,
        superblock: &Superblock,
        files: &[Arc<FailStopFile>; 2],
        read_only: bool,
    ) -> Result<Replayed> {
        let headers = [read_header(&files[0], superblock, 0)?, read_header(&files[1], superblock, 1)?];
        let generation = superblock.log_generation;
        let (this, next) = ((generation % 2) as usize, ((generation + 1) % 2) as usize);
        let has_begun = |file: usize, generation| headers[file].generation == generation;
        let mut newest = generation;
        let first = has_begun(this, generation).then(|| LogReader::open(&files[this], &headers[this])).transpose()?;
        let mut second = None;
        if has_begun(next, generation + 1) {
            newest = generation + 1;
            second = Some(LogReader::open(&files[next], &headers[next])?);
        }
        let second_is_durable = second.as_ref().is_some_and(LogReader::names_durable);
        let mut end = ReplayEnd::default();
        if let Some(log) = &first {
            end = self.replay_log(log, second_is_durable)?;
        }
        let Some(second) = second else {
            let Some(log) = first else {
                return Ok(Replayed { next_generation: generation, checkpoint: CheckpointNeed::None });
            };
            if !end.complete && !read_only {
                self.end_log(&files[this], &headers[this], end.offset, log.durable())?;
            }
            return Ok(Replayed { next_generation: generation + 1, checkpoint: CheckpointNeed::Soon });
        };
        if end.complete {
            self.replay_log(&second, false)?;
        } else if second_is_durable {
            let text = format!("log generation {generation} is incomplete, but generation {newest} follows it");
            return Err(Error::corruption(text).at_path(files[this].path()));
        }
        Ok(Replayed { next_generation: newest + 1, checkpoint: CheckpointNeed::First })
    }

    /// Writes the frame that ends a log behind its last believed batch.
    fn end_log(&mut self, file: &FailStopFile, header: &LogHeader, at: u64, durable: u64) -> Result<()> {
        let salt = FrameSalt::new(header.space_id, LOG_ID, header.generation);
        let mut bytes = Vec::new();
        let start = frame::begin(&mut bytes);
        Record::EndOfLog.encode(&mut bytes);
        frame::finish(&mut bytes, start, &salt, self.sequence + 1, durable)?;
        file.write_at(&bytes, at)?;
        // Before anything is written to `DATA`: what a disbelieved batch lists must not come to match by what follows.
        file.sync_data()?;
        self.sequence += 1;
        Ok(())
    }

    fn replay_log(&mut self, log: &LogReader<'_>, all_durable: bool) -> Result<ReplayEnd> {
        let mut end = ReplayEnd::default();
        match log.first_sequence() {
            None => return Ok(end),
            Some(first) if first != self.sequence + 1 => {
                let text = format!("log begins with operation {first} instead of {}", self.sequence + 1);
                return Err(Error::corruption(text));
            }
            Some(_) => {}
        }
        log.for_each_batch(all_durable, |batch| {
            if !batch.is_durable && !self.verify(&batch.blocks)? {
                return Ok(false);
            }
            end = ReplayEnd { complete: batch.is_last, offset: batch.end };
            self.operations += batch.operations.len() as u64;
            self.apply_batch(batch)?;
            Ok(!end.complete)
        })?;
        Ok(end)
    }

    /// Whether the blocks have their checksums in `DATA`.
    fn verify(&self, runs: &[BlockRun]) -> Result<bool> {
        let mut bytes = Vec::new();
        for run in runs {
            if run.first_block as u64 + run.checksums.len() as u64 > self.data.geometry.data_blocks() as u64 {
                return Ok(false);
            }
            bytes.resize(run.checksums.len() * BLOCK_BYTES, 0);
            let start = self.data.geometry.start_of(SegmentId(run.segment));
            let at = start + run.first_block as u64 * BLOCK_BYTES as u64;
            if self.data.file.read_up_to_at(&mut bytes, at)? < bytes.len() {
                return Ok(false);
            }
            if !bytes.chunks_exact(BLOCK_BYTES).map(crc32).eq(run.checksums.iter().copied()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn apply_batch(&mut self, batch: Batch<'_>) -> Result<()> {
        for (sequence, payload) in batch.operations {
            self.sequence = sequence;
            let mut reader = Reader::new(payload);
            while let Some(record) = Record::decode(&mut reader)? {
                self.apply(record)?;
            }
        }
        self.sequence = batch.sequence;
        batch.blocks.into_iter().try_for_each(|run| self.apply_blocks(run))
    }

    fn apply(&mut self, record: Record<'_>) -> Result<()> {
        match record {
            Record::Change(id, change) => {
                for piece in change.pieces() {
                    self.check_piece(piece.address.0, piece.len)?;
                    self.table.add_live(piece.address, piece.len, self.sequence);
                }
                let pages = self.pages;
                let tree = &mut self.file(id)?.tree;
                let mut released = Released::default();
                apply_all(&[change], tree, pages, &mut released).map_err(contradiction)?;
                self.absorb(released);
            }
            Record::Create(id, name) => {
                let tree = FlexTree::new(tree_limits(self.data));
                let taken = self.files.insert(id, RecoveredFile { name: name.to_vec(), tree }).is_some();
                if taken || id.0 < self.next_file_id {
                    return Err(Error::corruption(format!("log: file {} is created twice", id.0)));
                }
                self.next_file_id = id.0 + 1;
            }
            Record::Rename(id, name) => self.file(id)?.name = name.to_vec(),
            Record::Remove(id) => {
                let pages = self.pages;
                let tree = &mut self.file(id)?.tree;
                let mut released = Released::default();
                let len = tree.len();
                if len > 0 {
                    tree.collapse(pages, 0, len, &mut released).map_err(contradiction)?;
                }
                self.files.remove(&id);
                self.absorb(released);
            }
            Record::CommitWord(word) => self.commit_word = word,
            Record::Annotation(_) => {}
            Record::Blocks(_) | Record::EndOfLog | Record::Batch => {
                return Err(Error::corruption("log: the end of a batch inside an operation"));
            }
        }
        Ok(())
    }

    fn absorb(&mut self, released: Released) {
        for (address, len) in released.extents {
            self.table.release(address, len, self.sequence);
        }
        self.released_pages.extend(released.pages);
        let sequence = self.sequence;
        self.drops.extend(released.subtrees.into_iter().map(|subtree| (subtree, sequence)));
    }

    fn file(&mut self, id: FileId) -> Result<&mut RecoveredFile> {
        self.files.get_mut(&id).ok_or_else(|| Error::corruption(format!("log: there is no file {}", id.0)))
    }

    fn check_piece(&self, address: u64, len: u32) -> Result<()> {
        let geometry = &self.data.geometry;
        let offset = address % geometry.segment_bytes() as u64;
        let fits = offset + len as u64 <= geometry.data_bytes() as u64
            && len <= geometry.max_extent_bytes()
            && address / (geometry.segment_bytes() as u64) < geometry.max_segments() as u64;
        if fits { Ok(()) } else { Err(Error::corruption(format!("log: {len} bytes at data address {address}"))) }
    }

    fn apply_blocks(&mut self, run: BlockRun) -> Result<()> {
        let segment = SegmentId(run.segment);
        let tail = self.tails.entry(segment).or_default();
        if run.first_block == 0 {
            tail.clear();
        }
        let blocks = tail.len() + run.checksums.len();
        let fits = tail.len() == run.first_block as usize && blocks <= self.data.geometry.data_blocks() as usize;
        if !fits || run.head as usize >= HEADS || segment.0 >= self.data.geometry.max_segments() {
            let text =
                format!("log: block {} of segment {} follows block {}", run.first_block, run.segment, tail.len());
            return Err(Error::corruption(text));
        }
        tail.extend(run.checksums);
        self.table.reopen(segment, self.sequence);
        self.heads[run.head as usize] = Some(segment);
        Ok(())
    }

    /// Ends the replay: writes the summaries of full segments (unless `read_only`), and returns those that stay open.
    pub fn finish_segments(&mut self, read_only: bool) -> Result<Vec<OpenSegment>> {
        let full = self.data.geometry.data_blocks() as usize;
        let mut open = Vec::new();
        for (segment, checksums) in std::mem::take(&mut self.tails) {
            let head = self.heads.iter().position(|head| *head == Some(segment));
            if read_only {
                self.data.segment(segment).adopt_checksums(checksums);
                continue;
            }
            match head {
                Some(head) if checksums.len() < full => {
                    self.table.reopen(segment, self.sequence);
                    open.push(OpenSegment { head: head as u8, segment, checksums });
                }
                _ => {
                    if self.table.entry(segment).state == SegmentState::Open {
                        self.table.seal(segment, self.sequence);
                    }
                    if self.is_still_used(segment)? {
                        write_summary(self.data, segment, &checksums)?;
                    }
                }
            }
        }
        // Segments that the log freed wait until a superblock replaces it: a second recovery may verify their blocks.
        Ok(open)
    }

    /// Whether a sealed segment needs its summary, for which the disk has room then. One that was freed since may have given
    /// its blocks back, and the disk may be full: there it counts that dropped subtrees refer to nothing any more.
    fn is_still_used(&mut self, segment: SegmentId) -> Result<bool> {
        if self.table.entry(segment).state != SegmentState::Sealed {
            return Ok(false);
        }
        let geometry = &self.data.geometry;
        match self.data.file.reserve(geometry.summary_of(segment), geometry.summary_bytes() as u64) {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                self.account_for_drops()?;
                if self.table.entry(segment).state == SegmentState::Sealed { Err(error) } else { Ok(false) }
            }
            result => result.map(|()| true),
        }
    }

    fn account_for_drops(&mut self) -> Result<()> {
        while let Some((mut subtree, death)) = self.drops.pop() {
            let mut released = Released::default();
            let result = subtree.take_apart_some(self.pages, REAP_SLICE_NODES, &mut released);
            for (address, len) in released.extents {
                self.table.release(address, len, death);
            }
            self.released_pages.extend(released.pages);
            if !matches!(result, Ok(true)) {
                self.drops.push((subtree, death));
            }
            result?;
        }
        Ok(())
    }

    /// The recovered state. Two files of one name contradict each other.
    pub fn into_state(self) -> Result<RecoveredState> {
        let mut names: Vec<&[u8]> = self.files.values().map(|file| &file.name[..]).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Error::corruption(format!("two files are named \"{}\"", pair[0].escape_ascii())));
        }
        Ok(RecoveredState {
            files: self.files.into_iter().collect(),
            table: self.table,
            sequence: self.sequence,
            operations: self.operations,
            commit_word: self.commit_word,
            next_file_id: self.next_file_id,
            released_pages: self.released_pages,
            drops: self.drops,
        })
    }
}

/// What a recovery leaves.
pub struct RecoveredState {
    /// The files.
    pub files: Vec<(FileId, RecoveredFile)>,
    /// The segments.
    pub table: SegmentTable,
    /// The last operation.
    pub sequence: u64,
    /// Operations replayed.
    pub operations: u64,
    /// The last commit word.
    pub commit_word: u64,
    /// The id of the next new file.
    pub next_file_id: u64,
    /// Pages that the superblock's trees used and the recovered ones do not.
    pub released_pages: Vec<PageId>,
    /// Subtrees that left a tree, not accounted for.
    pub drops: Vec<(Subtree, u64)>,
}

/// The limits of trees over this data.
pub fn tree_limits(data: &DataStore) -> TreeLimits {
    TreeLimits { max_extent_len: data.geometry.max_extent_bytes() }
}

fn contradiction(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Io | ErrorKind::Corruption | ErrorKind::NoSpace => error,
        _ => Error::corruption(format!("log: a record contradicts the tree ({})", error.message())),
    }
}

fn read_header(file: &FailStopFile, superblock: &Superblock, index: u64) -> Result<LogHeader> {
    let mut bytes = vec![0; 512];
    let len = file.read_up_to_at(&mut bytes, 0)?;
    let header = LogHeader::decode(&bytes[..len]).map_err(|e| e.at_path(file.path()))?;
    let damaged =
        |text: String| Error::corruption(format!("{}: {text}", LOG_NAMES[index as usize])).at_path(file.path());
    if header.space_id != superblock.space_id || header.generation % 2 != index {
        return Err(damaged("it belongs elsewhere".into()));
    }
    if header.base > superblock.generation || header.generation > superblock.log_generation + 1 {
        return Err(damaged(format!(
            "it follows superblock {}, but the newest sound one is {}: a superblock is damaged",
            header.base.max(header.generation - 1),
            superblock.generation
        )));
    }
    Ok(header)
}
