//! A segment as readers see it: which bytes are still in memory, which blocks were verified, who reads it now.
//!
//! Invariants
//! 1. A `Segment` never moves: `SegmentArray` only grows, and a segment that is used again is reset in place.
//! 2. It is reset only while nobody reads it (`readers` is zero and no tree that can still be read refers to it).
//! 3. While it is open, the bytes from `memory_from` on are in `tail`; what lies before is in `DATA`.
//!    When it is sealed, everything is in `DATA` (at least in the kernel) and `memory_from` is `u32::MAX`.
//! 4. A block's bit in `verified` is set only after its bytes were read from `DATA` and matched their checksum.
//!
//! Any thread may call anything here; the writer (one at a time, under the space's lock) alone calls `append`,
//! `seal` and `reset`.

use super::geometry::{Geometry, SegmentId};
use super::summary;
use crate::codec::crc::crc32;
use crate::io::fail_stop::FailStopFile;
use crate::limits::BLOCK_BYTES;
use crate::{Error, Result};
use parking_lot::RwLock;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const SEALED: u32 = u32::MAX;

/// The run-time state of one segment.
pub struct Segment {
    readers: AtomicU32,
    memory_from: AtomicU32,
    verified: OnceLock<Box<[AtomicU64]>>,
    body: RwLock<Body>,
}

#[derive(Default)]
struct Body {
    /// Bytes from `memory_from` on, while the segment is open.
    tail: Vec<u8>,
    /// Checksums of the blocks that were completed; `None`: they are in the summary on disk.
    checksums: Option<Vec<u32>>,
}

/// What a reader needs beside the segment.
pub struct SegmentSource<'a> {
    /// `DATA`.
    pub data: &'a FailStopFile,
    /// The space's sizes.
    pub geometry: Geometry,
    /// The space's id, which summaries carry.
    pub space_id: [u8; 16],
}

impl Segment {
    fn new() -> Segment {
        Segment {
            readers: AtomicU32::new(0),
            memory_from: AtomicU32::new(SEALED),
            verified: OnceLock::new(),
            body: RwLock::new(Body::default()),
        }
    }

    /// Keeps the segment from being used again until `unpin`. Called while the tree that refers to it is locked.
    pub fn pin(&self) {
        self.readers.fetch_add(1, Ordering::Relaxed);
    }

    /// Ends a `pin`.
    pub fn unpin(&self) {
        self.readers.fetch_sub(1, Ordering::Release);
    }

    /// Whether somebody reads it.
    pub fn is_pinned(&self) -> bool {
        self.readers.load(Ordering::Acquire) != 0
    }

    /// Opens it for writing from `fill` on (a whole number of blocks, whose checksums are given).
    pub fn reset(&self, fill: u32, checksums: Vec<u32>, capacity: u32) {
        debug_assert_eq!(fill as usize, checksums.len() * BLOCK_BYTES);
        let mut body = self.body.write();
        for word in self.verified.get().map_or(&[][..], |bits| bits) {
            word.store(0, Ordering::Relaxed);
        }
        body.tail = Vec::with_capacity((capacity - fill) as usize);
        body.checksums = Some(checksums);
        self.memory_from.store(fill, Ordering::Release);
    }

    /// Appends bytes to an open segment.
    pub fn append(&self, bytes: &[u8]) {
        self.body.write().tail.extend_from_slice(bytes);
    }

    /// Appends zeros up to the next block boundary.
    pub fn pad(&self) {
        let mut body = self.body.write();
        let padded = body.tail.len().next_multiple_of(BLOCK_BYTES);
        body.tail.resize(padded, 0);
    }

    /// Calls `write` with the bytes `[from, to)` of an open segment.
    pub fn with_tail<R>(&self, from: u32, to: u32, write: impl FnOnce(&[u8]) -> R) -> R {
        let body = self.body.read();
        let base = self.memory_from.load(Ordering::Acquire);
        write(&body.tail[(from - base) as usize..(to - base) as usize])
    }

    /// Notes the checksums of further completed blocks.
    pub fn push_checksums(&self, checksums: &[u32]) {
        if let Some(known) = &mut self.body.write().checksums {
            known.extend_from_slice(checksums);
        }
    }

    /// The checksums of an open segment, or of one that was not read from disk.
    pub fn checksums(&self) -> Option<Vec<u32>> {
        self.body.read().checksums.clone()
    }

    /// Drops the bytes from memory: everything was handed to the kernel.
    pub fn seal(&self) {
        let mut body = self.body.write();
        body.tail = Vec::new();
        self.memory_from.store(SEALED, Ordering::Release);
    }

    /// Takes over checksums that the disk does not hold yet (a read-only recovery).
    pub fn adopt_checksums(&self, checksums: Vec<u32>) {
        self.body.write().checksums = Some(checksums);
    }

    /// Reads `buf.len()` bytes at `offset` of this segment, from memory or from disk; blocks are verified once.
    pub fn read(&self, id: SegmentId, offset: u32, buf: &mut [u8], source: &SegmentSource<'_>) -> Result<()> {
        let end = offset as u64 + buf.len() as u64;
        if end > source.geometry.data_bytes() as u64 {
            return Err(Error::corruption(format!("an extent leaves segment {}", id.0)));
        }
        let mut on_disk = buf.len();
        if end > self.memory_from.load(Ordering::Acquire) as u64 {
            let body = self.body.read();
            let base = self.memory_from.load(Ordering::Acquire) as u64;
            if end > base {
                on_disk = base.saturating_sub(offset as u64) as usize;
                let from = (offset as u64 + on_disk as u64 - base) as usize;
                let wanted = buf.len() - on_disk;
                let Some(bytes) = body.tail.get(from..from + wanted) else {
                    return Err(Error::corruption(format!("an extent lies behind the end of open segment {}", id.0)));
                };
                buf[on_disk..].copy_from_slice(bytes);
            }
        }
        if on_disk == 0 { Ok(()) } else { self.read_from_disk(id, offset, &mut buf[..on_disk], source) }
    }

    fn read_from_disk(&self, id: SegmentId, offset: u32, buf: &mut [u8], source: &SegmentSource<'_>) -> Result<()> {
        let start = source.geometry.start_of(id);
        let first = offset as usize / BLOCK_BYTES;
        let last = (offset as usize + buf.len() - 1) / BLOCK_BYTES;
        let verified = self.verified.get_or_init(|| {
            (0..(source.geometry.data_blocks() as usize).div_ceil(64)).map(|_| AtomicU64::new(0)).collect()
        });
        let is_verified = |block: usize| verified[block / 64].load(Ordering::Acquire) >> (block % 64) & 1 == 1;
        if (first..=last).all(is_verified) {
            return source.data.read_exact_at(buf, start + offset as u64);
        }
        let span = (last + 1 - first) * BLOCK_BYTES;
        let mut scratch = Vec::new();
        let whole_blocks = (offset as usize).is_multiple_of(BLOCK_BYTES) && buf.len() == span;
        let blocks = if whole_blocks {
            &mut *buf
        } else {
            scratch.resize(span, 0);
            &mut scratch[..]
        };
        source.data.read_exact_at(blocks, start + (first * BLOCK_BYTES) as u64)?;
        for (index, block) in (first..).zip(blocks.chunks_exact(BLOCK_BYTES)) {
            if !is_verified(index) {
                self.verify(id, index, block, source)?;
                verified[index / 64].fetch_or(1 << (index % 64), Ordering::AcqRel);
            }
        }
        if !whole_blocks {
            let skip = offset as usize - first * BLOCK_BYTES;
            buf.copy_from_slice(&scratch[skip..skip + buf.len()]);
        }
        Ok(())
    }

    /// Reads a block and compares it with its checksum; returns its length, 0 for one that is only in memory.
    pub fn verify_block(&self, id: SegmentId, block: u32, source: &SegmentSource<'_>) -> Result<u64> {
        let offset = block * BLOCK_BYTES as u32;
        let is_open = self.memory_from.load(Ordering::Acquire) != SEALED;
        let completed = self.body.read().checksums.as_ref().map_or(u32::MAX, |known| known.len() as u32);
        if is_open && block >= completed {
            return Ok(0);
        }
        let mut bytes = vec![0; BLOCK_BYTES];
        source.data.read_exact_at(&mut bytes, source.geometry.start_of(id) + offset as u64)?;
        self.verify(id, block as usize, &bytes, source)?;
        Ok(BLOCK_BYTES as u64)
    }

    fn verify(&self, id: SegmentId, index: usize, block: &[u8], source: &SegmentSource<'_>) -> Result<()> {
        let at = source.geometry.start_of(id) + (index * BLOCK_BYTES) as u64;
        let damaged = |text: String| Error::corruption(text).at_path(source.data.path()).at_offset(at);
        let Some(expected) = self.checksum_of(id, index, source)? else {
            return Err(damaged(format!("block {index} of segment {} was never written", id.0)));
        };
        let found = crc32(block);
        if found != expected {
            return Err(damaged(format!(
                "block {index} of segment {}: checksum {found:08x}, expected {expected:08x}",
                id.0
            )));
        }
        Ok(())
    }

    fn checksum_of(&self, id: SegmentId, index: usize, source: &SegmentSource<'_>) -> Result<Option<u32>> {
        if let Some(checksums) = &self.body.read().checksums {
            return Ok(checksums.get(index).copied());
        }
        let at = source.geometry.summary_of(id);
        let mut bytes = vec![0; source.geometry.summary_bytes() as usize];
        source.data.read_exact_at(&mut bytes, at)?;
        let checksums = summary::decode(&source.geometry, &source.space_id, id, &bytes)
            .map_err(|e| e.at_path(source.data.path()).at_offset(at))?;
        let found = checksums.get(index).copied();
        self.body.write().checksums.get_or_insert(checksums);
        Ok(found)
    }
}

const FIRST_CHUNK: usize = 64;
const CHUNKS: usize = 27;

/// All segments of a space: grows by doubling chunks, never moves, and is read without a lock.
pub struct SegmentArray {
    chunks: [OnceLock<Box<[Segment]>>; CHUNKS],
}

impl SegmentArray {
    /// An array that allocates when it is first asked.
    pub fn new() -> SegmentArray {
        SegmentArray { chunks: [const { OnceLock::new() }; CHUNKS] }
    }

    /// The state of a segment.
    pub fn get(&self, id: SegmentId) -> &Segment {
        let shifted = id.0 as usize + FIRST_CHUNK;
        let level = (shifted.ilog2() - FIRST_CHUNK.ilog2()) as usize;
        let size = FIRST_CHUNK << level;
        let chunk = self.chunks[level].get_or_init(|| (0..size).map(|_| Segment::new()).collect());
        &chunk[shifted - size]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_array_gives_each_segment_its_own_place() {
        let array = SegmentArray::new();
        for id in [0, 1, 63, 64, 65, 191, 192, 1000, 100_000] {
            assert!(!array.get(SegmentId(id)).is_pinned());
            array.get(SegmentId(id)).pin();
        }
        for id in [0, 1, 63, 64, 65, 191, 192, 1000, 100_000] {
            assert_eq!(array.get(SegmentId(id)).readers.load(Ordering::Relaxed), 1, "{id}");
        }
    }
}
