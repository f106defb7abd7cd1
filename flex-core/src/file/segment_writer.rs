//! The append heads of `DATA`: bytes gather in a segment in memory, whole blocks go to the kernel, full segments are sealed.
//!
//! There is a head for new data and one for what survives a collection, so that data of different ages lie apart.
//! Blocks of disk are reserved before bytes are accepted: only the reservation may answer `NoSpace`, and then nothing
//! was changed. A block that was handed to the kernel is never written again (an incomplete one is padded first).
//!
//! Under the space's lock, one thread at a time. Nothing is durable until `DATA` is synced.

use super::change::{Piece, Pieces};
use super::geometry::{Geometry, SegmentId};
use super::log_record::BlockRun;
use super::segment::{Segment, SegmentArray, SegmentSource};
use super::segment_table::SegmentTable;
use super::summary;
use crate::codec::crc::crc32;
use crate::io::fail_stop::FailStopFile;
use crate::limits::{BLOCK_BYTES, DATA_CHUNK_BYTES, DATA_RESERVE_BYTES, GC_MIN_SEGMENTS};
use crate::{Error, ErrorKind, Result};
use std::io::IoSlice;

/// Which head: data of one temperature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Temperature {
    /// What callers write.
    New = 0,
    /// What a collection copies.
    Survivor = 1,
}

/// Number of append heads.
pub const HEADS: usize = 2;

/// `DATA` and the state of its segments, shared by the writer and all readers.
pub struct DataStore {
    /// The file.
    pub file: FailStopFile,
    /// What readers know of each segment.
    pub segments: SegmentArray,
    /// The space's sizes.
    pub geometry: Geometry,
    /// The space's id.
    pub space_id: [u8; 16],
}

impl DataStore {
    /// The state of a segment.
    pub fn segment(&self, id: SegmentId) -> &Segment {
        self.segments.get(id)
    }

    /// Compares a block with its checksum, whether or not that was done before; returns its length. A block that is only
    /// in memory yet has none to compare.
    pub fn verify_block(&self, id: SegmentId, block: u32) -> Result<u64> {
        let source = SegmentSource { data: &self.file, geometry: self.geometry, space_id: self.space_id };
        self.segments.get(id).verify_block(id, block, &source)
    }

    /// Reads one piece of an extent.
    pub fn read(&self, piece: Piece, buf: &mut [u8]) -> Result<()> {
        let (id, offset) = self.geometry.locate(piece.address);
        let source = SegmentSource { data: &self.file, geometry: self.geometry, space_id: self.space_id };
        self.segments.get(id).read(id, offset, buf, &source)
    }
}

/// An open segment.
#[derive(Clone, Copy, Debug)]
struct Head {
    segment: SegmentId,
    /// Bytes appended.
    fill: u32,
    /// Bytes handed to the kernel: whole blocks.
    handed: u32,
    /// Bytes of the segment that disk blocks are reserved for.
    reserved: u32,
}

/// What a checkpoint keeps of an open segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenSegment {
    /// Which head.
    pub head: u8,
    /// Which segment.
    pub segment: SegmentId,
    /// The checksums of its blocks so far.
    pub checksums: Vec<u32>,
}

/// The heads.
pub struct SegmentWriter {
    heads: [Option<Head>; HEADS],
    unlogged: Vec<BlockRun>,
    bytes_written: u64,
    /// Bytes that a sync had to cover so far: only grows.
    sync_mark: u64,
    /// How much of that one covered.
    synced_mark: u64,
}

impl SegmentWriter {
    /// Heads that open a segment when they are first used.
    pub fn new() -> SegmentWriter {
        SegmentWriter { heads: [None; HEADS], unlogged: Vec::new(), bytes_written: 0, sync_mark: 0, synced_mark: 0 }
    }

    /// Goes on in a segment that a checkpoint or the log left open; it must be `Open` in the table.
    pub fn resume(&mut self, open: OpenSegment, store: &DataStore) {
        let fill = open.checksums.len() as u32 * BLOCK_BYTES as u32;
        store.segment(open.segment).reset(fill, open.checksums, store.geometry.data_bytes());
        let head = Head { segment: open.segment, fill, handed: fill, reserved: fill };
        self.heads[open.head as usize] = Some(head);
    }

    /// Bytes written to `DATA`.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Bytes written to `DATA` that no sync covers.
    pub fn unsynced_bytes(&self) -> u64 {
        self.sync_mark - self.synced_mark
    }

    /// Makes the next sync include `DATA`, whatever is written till then.
    pub fn expect_unsynced(&mut self) {
        self.sync_mark += 1;
    }

    /// What a sync of `DATA` that begins now covers.
    pub fn sync_mark(&self) -> u64 {
        self.sync_mark
    }

    /// A sync that began at `mark` is done. Syncs overlap: they may be noted in any order.
    pub fn note_synced(&mut self, mark: u64) {
        self.synced_mark = self.synced_mark.max(mark);
    }

    /// Appends bytes and counts them as staged. All of them are in, or none are.
    pub fn append(
        &mut self,
        temperature: Temperature,
        mut bytes: &[u8],
        sequence: u64,
        store: &DataStore,
        table: &mut SegmentTable,
        pieces: &mut Pieces,
    ) -> Result<()> {
        let first = pieces.len();
        while !bytes.is_empty() {
            match self.append_some(temperature, bytes, sequence, store, table) {
                Ok(piece) => {
                    bytes = &bytes[piece.len as usize..];
                    match pieces.last_mut() {
                        Some(last) if pieces_join(last, &piece, store.geometry.max_extent_bytes()) => {
                            last.len += piece.len
                        }
                        _ => pieces.push(piece),
                    }
                }
                Err(error) => {
                    for piece in pieces.drain(first..) {
                        table.unstage(piece.address, piece.len, sequence);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn append_some(
        &mut self,
        temperature: Temperature,
        bytes: &[u8],
        sequence: u64,
        store: &DataStore,
        table: &mut SegmentTable,
    ) -> Result<Piece> {
        let geometry = &store.geometry;
        let at = temperature as usize;
        if let Some(head) = &self.heads[at]
            && head.fill == geometry.data_bytes()
        {
            self.seal(at, sequence, store, table)?;
        }
        let mut head = match self.heads[at] {
            Some(head) => head,
            None => Self::open_segment(temperature, sequence, store, table)?,
        };
        self.heads[at] = Some(head);
        let room = (geometry.data_bytes() - head.fill).min(geometry.max_extent_bytes());
        let len = (bytes.len() as u64).min(room as u64) as u32;
        let end = head.fill + len;
        reserve(&mut head, end, store)?;
        store.segment(head.segment).append(&bytes[..len as usize]);
        let address = geometry.address(head.segment, head.fill);
        head.fill += len;
        self.heads[at] = Some(head);
        table.stage(address, len);
        if (head.fill - head.handed) as usize >= DATA_CHUNK_BYTES {
            let whole_blocks = head.fill / BLOCK_BYTES as u32 * BLOCK_BYTES as u32;
            self.write_blocks(at, whole_blocks, store)?;
        }
        Ok(Piece { address, len })
    }

    fn open_segment(
        temperature: Temperature,
        sequence: u64,
        store: &DataStore,
        table: &mut SegmentTable,
    ) -> Result<Head> {
        let keep_reserve = temperature == Temperature::New && table.used() >= GC_MIN_SEGMENTS;
        if keep_reserve && table.reserve().is_none() {
            let reserve = table.beyond();
            let size = store.geometry.segment_bytes() as u64;
            store.file.reserve(store.geometry.start_of(reserve), size)?;
            table.add_reserve(reserve);
        }
        let Some(segment) = table.next_free(keep_reserve) else {
            return Err(Error::new(ErrorKind::NoSpace, "the space's 48-bit data addresses are used up"));
        };
        let mut head = Head { segment, fill: 0, handed: 0, reserved: 0 };
        reserve(&mut head, 1, store)?;
        table.open(segment, sequence);
        store.segment(segment).reset(0, Vec::new(), store.geometry.data_bytes());
        Ok(head)
    }

    /// Hands everything to the kernel, padding incomplete blocks.
    pub fn hand_over(&mut self, store: &DataStore) -> Result<()> {
        for at in 0..HEADS {
            if let Some(head) = &mut self.heads[at]
                && head.fill > head.handed
            {
                store.segment(head.segment).pad();
                head.fill = head.fill.next_multiple_of(BLOCK_BYTES as u32);
                let to = head.fill;
                self.write_blocks(at, to, store)?;
            }
        }
        Ok(())
    }

    /// The blocks handed over since the last call, for the log.
    pub fn take_unlogged(&mut self) -> Vec<BlockRun> {
        std::mem::take(&mut self.unlogged)
    }

    /// An upper bound of the bytes that `take_unlogged` will take in a frame after a hand-over.
    pub fn unlogged_bound(&self) -> u64 {
        let waiting: u64 =
            self.heads.iter().flatten().map(|h| ((h.fill - h.handed) as u64).div_ceil(BLOCK_BYTES as u64)).sum();
        let logged: u64 = self.unlogged.iter().map(|run| run.checksums.len() as u64).sum();
        (self.unlogged.len() + HEADS) as u64 * 20 + (waiting + logged) * 4
    }

    /// The open segments, for a checkpoint. Everything has been handed over.
    pub fn open_segments(&self, store: &DataStore) -> Vec<OpenSegment> {
        let numbered = self.heads.iter().enumerate();
        numbered
            .filter_map(|(at, head)| {
                let head = head.as_ref()?;
                debug_assert_eq!(head.fill, head.handed);
                let checksums = store.segment(head.segment).checksums().unwrap_or_default();
                Some(OpenSegment { head: at as u8, segment: head.segment, checksums })
            })
            .collect()
    }

    fn write_blocks(&mut self, at: usize, to: u32, store: &DataStore) -> Result<()> {
        let Some(head) = &mut self.heads[at] else { return Ok(()) };
        let from = head.handed;
        if to == from {
            return Ok(());
        }
        let segment = store.segment(head.segment);
        let start = store.geometry.start_of(head.segment) + from as u64;
        let checksums: Vec<u32> = segment.with_tail(from, to, |bytes| {
            store.file.write_all_at(&mut [IoSlice::new(bytes)], start)?;
            Ok(bytes.chunks_exact(BLOCK_BYTES).map(crc32).collect())
        })?;
        segment.push_checksums(&checksums);
        head.handed = to;
        let (id, first_block) = (head.segment.0, from / BLOCK_BYTES as u32);
        self.bytes_written += (to - from) as u64;
        self.sync_mark += (to - from) as u64;
        match self.unlogged.last_mut() {
            Some(run)
                if run.segment == id
                    && run.head == at as u8
                    && run.first_block + run.checksums.len() as u32 == first_block =>
            {
                run.checksums.extend_from_slice(&checksums)
            }
            _ => self.unlogged.push(BlockRun { head: at as u8, segment: id, first_block, checksums }),
        }
        Ok(())
    }

    fn seal(&mut self, at: usize, sequence: u64, store: &DataStore, table: &mut SegmentTable) -> Result<()> {
        let Some(head) = self.heads[at] else { return Ok(()) };
        self.write_blocks(at, head.fill, store)?;
        let segment = store.segment(head.segment);
        let checksums = segment.checksums().unwrap_or_default();
        self.bytes_written += write_summary(store, head.segment, &checksums)?;
        segment.seal();
        table.seal(head.segment, sequence);
        self.heads[at] = None;
        Ok(())
    }
}

/// Writes a segment's summary; returns its length.
pub fn write_summary(store: &DataStore, segment: SegmentId, checksums: &[u32]) -> Result<u64> {
    let bytes = summary::encode(&store.geometry, &store.space_id, segment, checksums);
    store.file.write_all_at(&mut [IoSlice::new(&bytes)], store.geometry.summary_of(segment))?;
    Ok(bytes.len() as u64)
}

fn pieces_join(left: &Piece, right: &Piece, max_len: u32) -> bool {
    left.address.0 + left.len as u64 == right.address.0 && left.len as u64 + right.len as u64 <= max_len as u64
}

/// Reserves disk blocks up to `to` bytes of the segment, and the summary's with the last data block.
fn reserve(head: &mut Head, to: u32, store: &DataStore) -> Result<()> {
    if to <= head.reserved {
        return Ok(());
    }
    let wanted = to.next_multiple_of(BLOCK_BYTES as u32).max(head.reserved.saturating_add(DATA_RESERVE_BYTES));
    let wanted = if wanted >= store.geometry.data_bytes() { store.geometry.segment_bytes() } else { wanted };
    let start = store.geometry.start_of(head.segment) + head.reserved as u64;
    store.file.reserve(start, (wanted - head.reserved) as u64)?;
    head.reserved = wanted;
    Ok(())
}
