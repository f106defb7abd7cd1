//! The one framing of both logs. A frame is one call's records: replayed whole or not at all.
//!
//! Little endian, frames begin at multiples of 8 bytes:
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | marker: the low half of the salt |
//! | 4 | 4 | payload length, at most [`MAX_PAYLOAD`] |
//! | 8 | 4 | CRC-32 over the salt (8 bytes), the header without this field, and the payload |
//! | 12 | 4 | flags, zero; a frame with others is not valid |
//! | 16 | 8 | sequence number |
//! | 24 | 8 | durable offset: the log was known to be durable up to there when the frame was written |
//! | 32 | n | payload |
//! | | 0-7 | zeros up to the next multiple of 8 |
//!
//! The *salt* is a hash of space, log and generation, and is not stored: what an earlier use of a recycled file left
//! behind does not parse under the next one's salt. A frame does not know its own place; that frames follow each other
//! without a gap is for the reader to check, by sequence number.
//!
//! Pure functions; a decoder reads only the slice it is given, allocates nothing and can't panic.

use super::crc::Crc;
use crate::{Error, ErrorKind, Result};

/// The longest payload.
pub const MAX_PAYLOAD: usize = 64 << 20;
/// Every frame begins and ends at a multiple of this.
pub const ALIGNMENT: usize = 8;
/// The bytes in front of the payload.
pub const HEADER_LEN: usize = DURABLE_AT + 8;

const MARKER_AT: usize = 0;
const LENGTH_AT: usize = MARKER_AT + 4;
const CRC_AT: usize = LENGTH_AT + 4;
const FLAGS_AT: usize = CRC_AT + 4;
const SEQUENCE_AT: usize = FLAGS_AT + 4;
const DURABLE_AT: usize = SEQUENCE_AT + 8;

/// What tells the frames of one use of a log file from all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameSalt(u64);

impl FrameSalt {
    /// The salt of a generation of a log of a space. Part of the format: the function never changes.
    ///
    /// Each step is a bijection of the 64-bit state for a given input word, so two generations of the same log never
    /// share a salt.
    pub fn new(space_id: [u8; 16], log_id: u32, generation: u64) -> FrameSalt {
        let id = u128::from_le_bytes(space_id);
        let words = [id as u64, (id >> 64) as u64, u64::from(log_id), generation];
        FrameSalt(words.into_iter().fold(0x666C_6578_6C6F_6731, |state, word| mix(state ^ word)))
    }

    /// The salt as a number, for checksums beside the frames.
    pub fn value(self) -> u64 {
        self.0
    }

    fn marker(self) -> u32 {
        self.0 as u32
    }
}

/// The finaliser of splitmix64, with its increment in front so that zero does not map to itself.
fn mix(word: u64) -> u64 {
    let mut it = word.wrapping_add(0x9E37_79B9_7F4A_7C15);
    it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    it ^ (it >> 31)
}

/// What lies at an offset of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Parsed<'a> {
    /// A whole frame of this salt.
    Frame {
        /// Its sequence number.
        seq: u64,
        /// The durable offset it names.
        durable: u64,
        /// Its records.
        payload: &'a [u8],
        /// Where the next frame begins.
        end: usize,
    },
    /// Anything else: the end of the log, a torn or damaged frame, another generation's.
    Broken,
}

/// How long a frame with that payload is, header and padding included.
pub fn frame_len(payload_len: usize) -> usize {
    HEADER_LEN + payload_len.next_multiple_of(ALIGNMENT)
}

/// Makes room for a header at the end of `buf`, whose length is a multiple of 8. The caller appends the payload and
/// hands the result to [`finish`].
pub fn begin(buf: &mut Vec<u8>) -> usize {
    debug_assert!(buf.len().is_multiple_of(ALIGNMENT), "a frame begins at {}", buf.len());
    let start = buf.len();
    buf.resize(start + HEADER_LEN, 0);
    start
}

/// Completes the frame that began at `start`: everything behind its header is its payload.
/// A payload above [`MAX_PAYLOAD`] is `TooBig`; `buf` is then as it was before [`begin`].
pub fn finish(buf: &mut Vec<u8>, start: usize, salt: &FrameSalt, seq: u64, durable: u64) -> Result<()> {
    let payload_len = buf.len() - start - HEADER_LEN;
    if payload_len > MAX_PAYLOAD {
        buf.truncate(start);
        let text = format!("a log frame of {payload_len} bytes exceeds the limit of {MAX_PAYLOAD}");
        return Err(Error::new(ErrorKind::TooBig, text));
    }
    let header = &mut buf[start..start + HEADER_LEN];
    header[MARKER_AT..LENGTH_AT].copy_from_slice(&salt.marker().to_le_bytes());
    header[LENGTH_AT..CRC_AT].copy_from_slice(&(payload_len as u32).to_le_bytes());
    header[FLAGS_AT..SEQUENCE_AT].copy_from_slice(&0u32.to_le_bytes());
    header[SEQUENCE_AT..DURABLE_AT].copy_from_slice(&seq.to_le_bytes());
    header[DURABLE_AT..HEADER_LEN].copy_from_slice(&durable.to_le_bytes());
    let crc = checksum(salt, &buf[start..]);
    buf[start + CRC_AT..start + FLAGS_AT].copy_from_slice(&crc.to_le_bytes());
    buf.resize(start + frame_len(payload_len), 0);
    Ok(())
}

/// Reads the frame at `offset`.
pub fn parse<'a>(bytes: &'a [u8], offset: usize, salt: &FrameSalt) -> Parsed<'a> {
    parse_frame(bytes, offset, salt).unwrap_or(Parsed::Broken)
}

/// The largest durable offset that a valid frame at or behind `from` names, at whatever multiple of 8 it begins.
/// `None` if there is no valid frame.
///
/// One comparison per 8 bytes, and one checksum per marker found. A valid frame is skipped as a whole, so the cost
/// grows with the length alone unless somebody who knows the salt fills payloads with false headers.
/// A copy of a frame inside of a broken frame's payload may be found; it says nothing false, since the offset was durable
/// when the copy was made.
pub fn largest_durable(bytes: &[u8], from: usize, salt: &FrameSalt) -> Option<u64> {
    let marker = salt.marker().to_le_bytes();
    let mut largest = None;
    let mut at = from.checked_next_multiple_of(ALIGNMENT)?;
    while let Some(word) = bytes.get(at..).and_then(|rest| rest.first_chunk::<4>()) {
        match parse_if_marked(bytes, at, salt, *word == marker) {
            Parsed::Frame { durable, end, .. } => {
                largest = largest.max(Some(durable));
                at = end;
            }
            Parsed::Broken => at += ALIGNMENT,
        }
    }
    largest
}

#[inline]
fn parse_if_marked<'a>(bytes: &'a [u8], at: usize, salt: &FrameSalt, marked: bool) -> Parsed<'a> {
    if marked { parse(bytes, at, salt) } else { Parsed::Broken }
}

fn parse_frame<'a>(bytes: &'a [u8], offset: usize, salt: &FrameSalt) -> Option<Parsed<'a>> {
    if !offset.is_multiple_of(ALIGNMENT) {
        return None;
    }
    let frame = bytes.get(offset..)?;
    let header = frame.first_chunk::<HEADER_LEN>()?;
    let payload_len = usize::try_from(u32_at(header, LENGTH_AT)).ok()?;
    if u32_at(header, MARKER_AT) != salt.marker() || u32_at(header, FLAGS_AT) != 0 || payload_len > MAX_PAYLOAD {
        return None;
    }
    let len = frame_len(payload_len);
    let (content, padding) = frame.get(..len)?.split_at(HEADER_LEN + payload_len);
    if padding.iter().any(|&byte| byte != 0) || checksum(salt, content) != u32_at(header, CRC_AT) {
        return None;
    }
    let (seq, durable) = (u64_at(header, SEQUENCE_AT), u64_at(header, DURABLE_AT));
    Some(Parsed::Frame { seq, durable, payload: &content[HEADER_LEN..], end: offset + len })
}

/// Over salt, header without its CRC field, and payload; `content` has no padding.
fn checksum(salt: &FrameSalt, content: &[u8]) -> u32 {
    let mut crc = Crc::salted(salt.0);
    crc.update(&content[..CRC_AT]);
    crc.update(&content[FLAGS_AT..]);
    crc.finish()
}

fn u32_at(header: &[u8; HEADER_LEN], at: usize) -> u32 {
    u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
}

fn u64_at(header: &[u8; HEADER_LEN], at: usize) -> u64 {
    u64::from(u32_at(header, at)) | u64::from(u32_at(header, at + 4)) << 32
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
