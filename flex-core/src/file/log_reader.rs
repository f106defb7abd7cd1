//! Reading a log file at open: which frames are sound, in which batches, and how far they can be trusted.
//!
//! Frames are written behind the data that they name, but the device may have kept either. Below the largest durable
//! offset that sound frames of the same generation name, everything must be there: a broken frame is corruption. Above
//! it a broken frame is the end, and a batch counts only if the blocks that it lists have their checksums in `DATA`.

use super::log_record::{BlockRun, Record};
use super::logical_log::{FRAMES_START, LOG_ID, LogHeader};
use crate::codec::frame::{self, FrameSalt, Parsed};
use crate::codec::reader::Reader;
use crate::io::fail_stop::FailStopFile;
use crate::{Error, Result};
use std::ops::Range;

/// The bytes of one generation of the log.
pub struct LogReader<'a> {
    file: &'a FailStopFile,
    bytes: Vec<u8>,
    frames: Vec<Frame>,
    durable: u64,
}

struct Frame {
    sequence: u64,
    payload: Range<usize>,
    end: usize,
}

/// Frames that were handed to the kernel together.
pub struct Batch<'a> {
    /// The operations: sequence number and records.
    pub operations: Vec<(u64, &'a [u8])>,
    /// The data blocks that were handed over before.
    pub blocks: Vec<BlockRun>,
    /// Sequence number of the frame that ends it.
    pub sequence: u64,
    /// Whether the other log file goes on.
    pub is_last: bool,
    /// Whether it was known to be durable.
    pub is_durable: bool,
    /// Where it ends in the file.
    pub end: u64,
}

impl<'a> LogReader<'a> {
    /// Reads the frames of a log; the first sound one may have any sequence number.
    pub fn open(file: &'a FailStopFile, header: &LogHeader) -> Result<LogReader<'a>> {
        let mut bytes = vec![0; file.len()?.max(FRAMES_START) as usize];
        let len = file.read_up_to_at(&mut bytes, 0)?;
        bytes.truncate(len);
        let salt = FrameSalt::new(header.space_id, LOG_ID, header.generation);
        let mut reader = LogReader { file, bytes, frames: Vec::new(), durable: 0 };
        let mut at = FRAMES_START as usize;
        while let Parsed::Frame { seq, durable, payload, end } = frame::parse(&reader.bytes, at, &salt) {
            if reader.frames.last().is_some_and(|last| last.sequence + 1 != seq) {
                break;
            }
            // The payload lies in `bytes`; its place there outlives the borrow.
            let start = payload.as_ptr() as usize - reader.bytes.as_ptr() as usize;
            let payload = start..start + payload.len();
            reader.frames.push(Frame { sequence: seq, payload, end });
            reader.durable = reader.durable.max(durable);
            at = end;
        }
        let behind = frame::largest_durable(&reader.bytes, at + 8, &salt).unwrap_or(0);
        if behind.max(reader.durable) > at as u64 {
            let text = format!("log generation {} is damaged before byte {}", header.generation, behind);
            return Err(Error::corruption(text).at_path(file.path()).at_offset(at as u64));
        }
        Ok(reader)
    }

    /// Whether frames say that this log, and so the one before it, was synced.
    pub fn names_durable(&self) -> bool {
        self.durable > 0
    }

    /// The largest durable offset that a frame names.
    pub fn durable(&self) -> u64 {
        self.durable
    }

    /// The sequence number of the first frame.
    pub fn first_sequence(&self) -> Option<u64> {
        self.frames.first().map(|frame| frame.sequence)
    }

    /// Calls `each` with the batches in order, while it returns true. `all_durable`: a later log says so of this one.
    pub fn for_each_batch(&self, all_durable: bool, mut each: impl FnMut(Batch<'_>) -> Result<bool>) -> Result<()> {
        let mut operations = Vec::new();
        for frame in &self.frames {
            let payload = &self.bytes[frame.payload.clone()];
            let at = frame.payload.start as u64;
            let Some((blocks, is_last)) = batch_end(payload).map_err(|e| self.located(e, at))? else {
                operations.push((frame.sequence, payload));
                continue;
            };
            let batch = Batch {
                operations: std::mem::take(&mut operations),
                blocks,
                sequence: frame.sequence,
                is_last,
                is_durable: all_durable || frame.end as u64 <= self.durable,
                end: frame.end as u64,
            };
            if !each(batch).map_err(|e| self.located(e, at))? {
                break;
            }
        }
        Ok(())
    }

    fn located(&self, error: Error, at: u64) -> Error {
        error.at_path(self.file.path()).at_offset(at)
    }
}

/// The blocks of a frame that ends a batch, and whether the log ends with it; `None` for an operation.
fn batch_end(payload: &[u8]) -> Result<Option<(Vec<BlockRun>, bool)>> {
    let mut reader = Reader::new(payload);
    let mut blocks = Vec::new();
    while let Some(record) = Record::decode(&mut reader)? {
        match record {
            Record::Blocks(run) => blocks.push(run),
            Record::Batch => return Ok(Some((blocks, false))),
            Record::EndOfLog => return Ok(Some((blocks, true))),
            _ => return Ok(None),
        }
    }
    Ok(None)
}
