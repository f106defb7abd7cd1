//! A segment's summary: the checksums of its blocks, in the segment's last block(s).
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `FLEXSEG1` |
//! | 8 | 4 | CRC-32 of everything behind this field |
//! | 12 | 4 | segment number |
//! | 16 | 16 | space id |
//! | 32 | 4 | number of checksums n (the blocks that hold data) |
//! | 36 | 4 | zero |
//! | 40 | 4 n | CRC-32 of each block, front to back |
//!
//! Zeros fill the last block. Written once, when the segment is sealed; written again with the same bytes by a recovery.

use super::geometry::{Geometry, SUMMARY_HEADER_BYTES, SegmentId};
use crate::codec::crc::crc32;
use crate::limits::BLOCK_BYTES;
use crate::{Error, Result};

const MAGIC: &[u8; 8] = b"FLEXSEG1";
const CRC_AT: usize = 8;
const SEGMENT_AT: usize = CRC_AT + 4;
const SPACE_ID_AT: usize = SEGMENT_AT + 4;
const COUNT_AT: usize = SPACE_ID_AT + 16;
const CHECKSUMS_AT: usize = COUNT_AT + 8;
const _: () = assert!(CHECKSUMS_AT == SUMMARY_HEADER_BYTES);

/// The blocks of a summary.
pub fn encode(geometry: &Geometry, space_id: &[u8; 16], segment: SegmentId, checksums: &[u32]) -> Vec<u8> {
    debug_assert!(checksums.len() <= geometry.data_blocks() as usize);
    let used = CHECKSUMS_AT + 4 * checksums.len();
    let mut bytes = vec![0; used.next_multiple_of(BLOCK_BYTES)];
    bytes[..CRC_AT].copy_from_slice(MAGIC);
    bytes[SEGMENT_AT..SPACE_ID_AT].copy_from_slice(&segment.0.to_le_bytes());
    bytes[SPACE_ID_AT..COUNT_AT].copy_from_slice(space_id);
    bytes[COUNT_AT..COUNT_AT + 4].copy_from_slice(&(checksums.len() as u32).to_le_bytes());
    for (slot, checksum) in bytes[CHECKSUMS_AT..].chunks_exact_mut(4).zip(checksums) {
        slot.copy_from_slice(&checksum.to_le_bytes());
    }
    let crc = crc32(&bytes[SEGMENT_AT..used]);
    bytes[CRC_AT..SEGMENT_AT].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The checksums in a summary, which must be this segment's.
pub fn decode(geometry: &Geometry, space_id: &[u8; 16], segment: SegmentId, bytes: &[u8]) -> Result<Vec<u32>> {
    let word = |at: usize| -> Option<u32> { Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?)) };
    let damaged = |what: &str| Error::corruption(format!("summary of segment {}: {what}", segment.0));
    let (Some(crc), Some(number), Some(count)) = (word(CRC_AT), word(SEGMENT_AT), word(COUNT_AT)) else {
        return Err(damaged("too short"));
    };
    if &bytes[..CRC_AT] != MAGIC {
        return Err(damaged("no magic number"));
    }
    let used = CHECKSUMS_AT as u64 + 4 * count as u64;
    if count > geometry.data_blocks() || used > bytes.len() as u64 {
        return Err(damaged("too many checksums"));
    }
    if crc32(&bytes[SEGMENT_AT..used as usize]) != crc {
        return Err(damaged("checksum mismatch"));
    }
    if number != segment.0 || &bytes[SPACE_ID_AT..COUNT_AT] != space_id {
        return Err(damaged("it belongs to another segment or space"));
    }
    let checksums = bytes[CHECKSUMS_AT..used as usize].chunks_exact(4);
    Ok(checksums.map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MIN_SEGMENT_BYTES;

    #[test]
    fn every_flipped_bit_is_found() {
        let geometry = Geometry::new(MIN_SEGMENT_BYTES).unwrap();
        let id = [7; 16];
        let checksums = [1, 2, 3, u32::MAX];
        let mut bytes = encode(&geometry, &id, SegmentId(9), &checksums);
        assert_eq!(decode(&geometry, &id, SegmentId(9), &bytes).unwrap(), checksums);
        for bit in 0..(CHECKSUMS_AT + 16) * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&geometry, &id, SegmentId(9), &bytes).is_err(), "bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(decode(&geometry, &id, SegmentId(8), &bytes).is_err());
        assert!(decode(&geometry, &[8; 16], SegmentId(9), &bytes).is_err());
        for len in 0..CHECKSUMS_AT + 16 {
            assert!(decode(&geometry, &id, SegmentId(9), &bytes[..len]).is_err(), "length {len}");
        }
    }
}
