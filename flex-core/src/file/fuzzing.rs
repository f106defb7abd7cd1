//! Every decoder of bytes from the disk, for fuzz targets and for a short random test here. Not part of the API.
//!
//! Decoders behind a checksum get their bytes twice: as they are, and with the checksum put right, so that what lies behind
//! it is reached. None may panic, read outside, loop for long, or take more memory than its input accounts for.

use super::catalog::Catalog;
use super::geometry::{Geometry, SegmentId};
use super::log_record::Record;
use super::logical_log::{LOG_ID, LogHeader};
use super::summary;
use super::superblock::Superblock;
use crate::codec::crc::crc32;
use crate::codec::frame::{self, FrameSalt, Parsed};
use crate::codec::reader::Reader;
use crate::codec::varint;
use crate::limits::{MIN_SEGMENT_BYTES, PAGE_BYTES};
use crate::tree::node_codec;

/// Names of the decoders, by the number that `decode` takes.
pub const DECODERS: [&str; 8] =
    ["varint", "frame", "log_record", "superblock", "catalog", "log_header", "summary", "node_codec"];

/// Where superblock, log header and summary have their checksum, and what it begins to cover.
const CRC_AT: usize = 8;
const COVERED_AT: usize = 12;
const LOG_HEADER_BYTES: usize = 512;
const SUMMARY_COUNT_AT: usize = 32;
const SUMMARY_CHECKSUMS_AT: usize = 40;

/// Hands bytes to one decoder. Returns whether it took them for sound.
pub fn decode(decoder: usize, bytes: &[u8]) -> bool {
    match DECODERS[decoder % DECODERS.len()] {
        "varint" => numbers(bytes),
        "frame" => frames(bytes),
        "log_record" => records(bytes),
        "superblock" => {
            let mut page = bytes.to_vec();
            page.resize(PAGE_BYTES, 0);
            let _ = Superblock::decode(bytes);
            seal(&mut page, b"FLEXFILE", PAGE_BYTES);
            matches!(Superblock::decode(&page), super::superblock::Slot::Valid(_))
        }
        "catalog" => Catalog::decode(bytes).is_ok_and(|catalog| {
            let held = catalog.files.len() + catalog.segments.len() + catalog.open.len();
            assert!(held <= bytes.len(), "{held} entries from {} bytes", bytes.len());
            true
        }),
        "log_header" => {
            let mut header = bytes.to_vec();
            header.resize(LOG_HEADER_BYTES, 0);
            let _ = LogHeader::decode(bytes);
            seal(&mut header, b"FLEXLOG1", LOG_HEADER_BYTES);
            LogHeader::decode(&header).is_ok()
        }
        "summary" => summaries(bytes),
        _ => node_codec::decode(bytes).is_ok(),
    }
}

fn seal(bytes: &mut [u8], magic: &[u8; 8], end: usize) {
    bytes[..CRC_AT].copy_from_slice(magic);
    let crc = crc32(&bytes[COVERED_AT..end]);
    bytes[CRC_AT..COVERED_AT].copy_from_slice(&crc.to_le_bytes());
}

fn numbers(bytes: &[u8]) -> bool {
    if let Some((value, len)) = varint::get(bytes) {
        assert!(len <= bytes.len() && varint::encoded_len(value) <= len);
    }
    let mut reader = Reader::new(bytes);
    while reader.varint().is_ok() {}
    assert!(reader.position() <= bytes.len());
    varint::get_signed(bytes).is_some()
}

fn frames(bytes: &[u8]) -> bool {
    let salt = FrameSalt::new([0; 16], LOG_ID, 1);
    let mut at = 0;
    while let Parsed::Frame { end, payload, .. } = frame::parse(bytes, at, &salt) {
        assert!(end > at && end <= bytes.len() && payload.len() < bytes.len());
        at = end;
    }
    let _ = frame::largest_durable(bytes, 0, &salt);
    // A sound frame around the bytes comes back, and its damage is seen.
    let mut log = Vec::new();
    let start = frame::begin(&mut log);
    log.extend_from_slice(bytes);
    let sound = frame::finish(&mut log, start, &salt, 1, 2).is_ok()
        && matches!(frame::parse(&log, 0, &salt), Parsed::Frame { payload, .. } if payload == bytes);
    assert!(sound, "a frame of {} bytes", bytes.len());
    at > 0
}

fn records(bytes: &[u8]) -> bool {
    let mut reader = Reader::new(bytes);
    loop {
        let before = reader.position();
        match Record::decode(&mut reader) {
            Ok(Some(record)) => {
                assert!(reader.position() > before, "a record of no bytes");
                if let Record::Change(_, change) = &record {
                    assert!(change.pieces().len() <= bytes.len());
                }
                // What was taken for sound is written and read as the same.
                let mut again = Vec::new();
                record.encode(&mut again);
                assert_eq!(Record::decode(&mut Reader::new(&again)).ok().flatten().as_ref(), Some(&record));
            }
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn summaries(bytes: &[u8]) -> bool {
    let Ok(geometry) = Geometry::new(MIN_SEGMENT_BYTES) else { return false };
    let _ = summary::decode(&geometry, &[0; 16], SegmentId(0), bytes);
    let mut block = bytes.to_vec();
    block.resize(block.len().max(SUMMARY_CHECKSUMS_AT), 0);
    block[COVERED_AT..SUMMARY_COUNT_AT].fill(0);
    let count = u32::from_le_bytes([block[32], block[33], block[34], block[35]]) as usize;
    let end = count.saturating_mul(4).saturating_add(SUMMARY_CHECKSUMS_AT).min(block.len());
    seal(&mut block, b"FLEXSEG1", end);
    summary::decode(&geometry, &[0; 16], SegmentId(0), &block).is_ok_and(|found| {
        assert!(found.len() * 4 <= block.len());
        true
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes that look like something: small numbers, long runs, and what is random.
    fn input() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..600),
            prop::collection::vec(0..24u8, 0..200),
            prop::collection::vec(prop_oneof![8 => 0..16u8, 1 => Just(0xFF), 1 => Just(0x80)], 0..200),
        ]
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_decoder_panic(bytes in input()) {
            for decoder in 0..DECODERS.len() {
                decode(decoder, &bytes);
            }
        }
    }

    #[test]
    fn sealing_reaches_what_lies_behind_the_checksum() {
        assert!(decode(5, &[]), "a log header of zeros is sound once it is sealed");
        assert!(decode(6, &[]), "a summary of no checksums");
        let mut superblock = vec![0; 200];
        superblock[12] = super::super::superblock::FORMAT_VERSION as u8;
        assert!(!decode(3, &superblock), "no page size");
        assert!(decode(2, &[]) && !decode(2, &[255]));
    }
}
