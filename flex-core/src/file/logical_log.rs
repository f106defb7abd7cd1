//! The logical log: two files used in turn, each a header and frames (`codec::frame`, records in `log_record`).
//!
//! Header, the first 512 bytes of a file (frames begin at 4096):
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `FLEXLOG1` |
//! | 8 | 4 | CRC-32 of the bytes behind this field, up to 512 |
//! | 12 | 4 | zero |
//! | 16 | 16 | space id |
//! | 32 | 8 | generation of this log |
//! | 40 | 8 | generation of a superblock that was durable when this header was written |
//!
//! Log generation n lies in file n mod 2. A file whose header names an older generation than the superblock asks for
//! has not begun: that log is empty. The header is written with the first batch, and goes to disk with it.
//!
//! A sync makes frames durable, but only a frame that names their durable offset tells a recovery so, and only when it is
//! durable itself. What is durable but not *recorded* is verified against `DATA` by a recovery: so a segment that such
//! an operation freed keeps its bytes until the operation is recorded.
//!
//! Frames gather in memory until `hand_over` writes them behind the data that they name, with a last frame that lists
//! the checksums of that data. Under the space's lock.

use super::log_record::Record;
use crate::codec::crc::crc32;
use crate::codec::frame::{self, FrameSalt};
use crate::io::fail_stop::FailStopFile;
use crate::limits::{LOG_CHUNK_BYTES, LOG_SPARE_BYTES};
use crate::{Error, Result};
use std::io::IoSlice;
use std::sync::Arc;

/// Where frames begin.
pub const FRAMES_START: u64 = 4096;
/// Names of the log files, by generation mod 2.
pub const LOG_NAMES: [&str; 2] = ["LOG.0", "LOG.1"];
/// The `log_id` that salts frames of this log (the write-ahead log of the database has another).
pub const LOG_ID: u32 = 1;

const HEADER_BYTES: usize = 512;
const MAGIC: &[u8; 8] = b"FLEXLOG1";
const CRC_AT: usize = 8;
const BODY_AT: usize = 12;
const SPACE_ID_AT: usize = 16;
const GENERATION_AT: usize = SPACE_ID_AT + 16;
const BASE_AT: usize = GENERATION_AT + 8;
const HEADER_USED: usize = BASE_AT + 8;

/// What a log file's first bytes say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogHeader {
    /// The space that it belongs to.
    pub space_id: [u8; 16],
    /// The log's generation.
    pub generation: u64,
    /// A superblock generation that was durable when this was written.
    pub base: u64,
}

impl LogHeader {
    /// The header's sector.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..CRC_AT].copy_from_slice(MAGIC);
        bytes[SPACE_ID_AT..GENERATION_AT].copy_from_slice(&self.space_id);
        bytes[GENERATION_AT..BASE_AT].copy_from_slice(&self.generation.to_le_bytes());
        bytes[BASE_AT..HEADER_USED].copy_from_slice(&self.base.to_le_bytes());
        let crc = crc32(&bytes[BODY_AT..]);
        bytes[CRC_AT..BODY_AT].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads a header; damage is an error.
    pub fn decode(bytes: &[u8]) -> Result<LogHeader> {
        let damaged = |what| Error::corruption(format!("log header: {what}")).at_offset(0);
        let Some(bytes) = bytes.get(..HEADER_BYTES) else { return Err(damaged("the file is too short")) };
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        if &bytes[..CRC_AT] != MAGIC {
            return Err(damaged("no magic number"));
        }
        if crc32(&bytes[BODY_AT..]).to_le_bytes() != bytes[CRC_AT..BODY_AT] {
            return Err(damaged("checksum mismatch"));
        }
        let space_id = bytes[SPACE_ID_AT..GENERATION_AT].try_into().unwrap_or_default();
        Ok(LogHeader { space_id, generation: word(GENERATION_AT), base: word(BASE_AT) })
    }
}

/// A point in the log that a sync makes durable.
#[derive(Clone)]
pub struct SyncPoint {
    /// The last operation handed over.
    pub sequence: u64,
    generation: u64,
    offset: u64,
    /// The last operation that the frames handed over name as durable.
    named: u64,
    /// The log files to sync.
    pub files: Vec<Arc<FailStopFile>>,
}

/// The writer's side of the log.
pub struct LogicalLog {
    files: [Arc<FailStopFile>; 2],
    reserved: [u64; 2],
    space_id: [u8; 16],
    generation: u64,
    base: u64,
    begun: bool,
    salt: FrameSalt,
    buffer: Vec<u8>,
    handed: u64,
    durable: u64,
    /// The last operation before `durable`.
    durable_sequence: u64,
    /// The last operation that a frame names as durable; that a frame handed over does; that a durable frame does.
    named: u64,
    handed_named: u64,
    recorded: u64,
    previous_unsynced: bool,
    sequence: u64,
    handed_sequence: u64,
    bytes_written: u64,
}

impl LogicalLog {
    /// The log `generation`, not begun, after operation `sequence`; superblock `base` is durable. `follows_log`: the log
    /// before it holds operations that the superblock lacks. `recorded`: the last operation in the superblock.
    pub fn new(
        files: [Arc<FailStopFile>; 2],
        space_id: [u8; 16],
        generation: u64,
        base: u64,
        sequence: u64,
        recorded: u64,
        follows_log: bool,
    ) -> Result<LogicalLog> {
        let reserved = [files[0].len()?, files[1].len()?];
        Ok(LogicalLog {
            files,
            reserved,
            space_id,
            generation,
            base,
            begun: false,
            salt: FrameSalt::new(space_id, LOG_ID, generation),
            buffer: Vec::new(),
            handed: FRAMES_START,
            durable: 0,
            durable_sequence: recorded,
            named: recorded,
            handed_named: recorded,
            recorded,
            previous_unsynced: follows_log,
            sequence,
            handed_sequence: sequence,
            bytes_written: 0,
        })
    }

    /// The generation being written.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The last operation.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The last operation handed to the kernel.
    pub fn handed_sequence(&self) -> u64 {
        self.handed_sequence
    }

    /// The last operation that a recovery will take for durable, whatever `DATA` holds.
    pub fn recorded(&self) -> u64 {
        self.recorded
    }

    /// Operations up to `sequence` are in a durable superblock.
    pub fn note_superblock(&mut self, sequence: u64) {
        self.recorded = self.recorded.max(sequence);
    }

    /// Bytes of frames in this generation.
    pub fn len(&self) -> u64 {
        self.handed - FRAMES_START + self.buffer.len() as u64
    }

    /// Bytes of frames that wait in memory.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }

    /// Bytes of frames not known to be durable.
    pub fn unsynced(&self) -> u64 {
        self.handed.saturating_sub(self.durable.max(FRAMES_START)) + self.buffer.len() as u64
    }

    /// Bytes written to both files.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written
    }

    /// Makes room for frames of `bytes` in all; operations that free space may use the spare.
    pub fn ensure_room(&mut self, bytes: u64, frees_space: bool) -> Result<()> {
        let spare = if frees_space { 0 } else { LOG_SPARE_BYTES };
        let end = self.handed + self.buffer.len() as u64 + bytes + spare;
        let file = (self.generation % 2) as usize;
        if end <= self.reserved[file] {
            return Ok(());
        }
        let wanted = end.next_multiple_of(LOG_CHUNK_BYTES);
        self.files[file].reserve(self.reserved[file], wanted - self.reserved[file])?;
        self.reserved[file] = wanted;
        Ok(())
    }

    /// Appends one frame, whose records `fill` writes. Returns the operation's sequence number.
    pub fn append(&mut self, fill: impl FnOnce(&mut Vec<u8>)) -> Result<u64> {
        let start = frame::begin(&mut self.buffer);
        fill(&mut self.buffer);
        if let Err(error) = frame::finish(&mut self.buffer, start, &self.salt, self.sequence + 1, self.durable) {
            self.buffer.truncate(start);
            return Err(error);
        }
        if self.durable > 0 {
            self.named = self.durable_sequence;
        }
        self.sequence += 1;
        Ok(self.sequence)
    }

    /// Writes the waiting frames to the kernel. The caller has appended the batch's last frame.
    pub fn hand_over(&mut self) -> Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let file = &self.files[(self.generation % 2) as usize];
        if !self.begun {
            let header = self.header().encode();
            file.write_all_at(&mut [IoSlice::new(&header)], 0)?;
            self.begun = true;
            self.bytes_written += header.len() as u64;
        }
        file.write_all_at(&mut [IoSlice::new(&self.buffer)], self.handed)?;
        self.handed += self.buffer.len() as u64;
        self.bytes_written += self.buffer.len() as u64;
        self.handed_sequence = self.sequence;
        self.handed_named = self.named;
        self.buffer.clear();
        self.buffer.shrink_to(4 << 20);
        Ok(())
    }

    /// Goes on in the other file. Everything was handed over, and ends in `EndOfLog`.
    pub fn switch(&mut self) {
        debug_assert!(self.buffer.is_empty());
        self.previous_unsynced = self.durable < self.handed;
        self.generation += 1;
        self.salt = FrameSalt::new(self.space_id, LOG_ID, self.generation);
        self.begun = false;
        self.handed = FRAMES_START;
        self.durable = 0;
    }

    /// What a sync has to do for everything handed over so far.
    pub fn sync_point(&self) -> SyncPoint {
        let current = (self.generation % 2) as usize;
        let mut files = Vec::with_capacity(2);
        if self.previous_unsynced {
            files.push(self.files[1 - current].clone());
        }
        if self.begun && self.durable < self.handed {
            files.push(self.files[current].clone());
        }
        let (sequence, named) = (self.handed_sequence, self.handed_named);
        SyncPoint { sequence, generation: self.generation, offset: self.handed, named, files }
    }

    /// The files of a sync point, and the data before it, are durable.
    pub fn note_durable(&mut self, point: &SyncPoint) {
        self.recorded = self.recorded.max(point.named);
        if point.generation == self.generation {
            self.previous_unsynced = false;
            if self.begun {
                self.durable = self.durable.max(point.offset);
                self.durable_sequence = self.durable_sequence.max(point.sequence);
            }
        }
    }

    /// Superblock `base` is durable; the header that is on disk learns it, so that the loss of that superblock shows.
    pub fn confirm_base(&mut self, base: u64) -> Result<Arc<FailStopFile>> {
        self.base = base;
        let generation = if self.begun { self.generation } else { self.generation - 1 };
        let header = LogHeader { space_id: self.space_id, generation, base };
        let file = self.files[(generation % 2) as usize].clone();
        file.write_all_at(&mut [IoSlice::new(&header.encode())], 0)?;
        self.bytes_written += HEADER_BYTES as u64;
        Ok(file)
    }

    /// Both files.
    pub fn files(&self) -> [Arc<FailStopFile>; 2] {
        self.files.clone()
    }

    /// Cuts both files at a clean close, where nothing in them is needed any more.
    pub fn cut(&mut self, bytes: u64) -> Result<()> {
        for (file, reserved) in self.files.iter().zip(&mut self.reserved) {
            if *reserved > bytes {
                file.set_len(bytes)?;
                *reserved = bytes;
            }
        }
        Ok(())
    }

    fn header(&self) -> LogHeader {
        LogHeader { space_id: self.space_id, generation: self.generation, base: self.base }
    }
}

/// The batch's last frame: the blocks that went before it, and its end.
pub fn encode_batch_end(out: &mut Vec<u8>, runs: Vec<super::log_record::BlockRun>, end: Record<'_>) {
    for run in runs {
        Record::Blocks(run).encode(out);
    }
    end.encode(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_and_every_flipped_bit_is_found() {
        let header = LogHeader { space_id: [3; 16], generation: 5, base: 4 };
        let mut bytes = header.encode();
        assert_eq!(LogHeader::decode(&bytes).unwrap(), header);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(LogHeader::decode(&bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(LogHeader::decode(&bytes[..511]).is_err());
    }
}
