//! The superblock: where a checkpoint's state begins. Two slots, the first two pages of `TREE`, used in turn.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `FLEXFILE` |
//! | 8 | 4 | CRC-32 of the page behind this field |
//! | 12 | 4 | format version |
//! | 16 | 16 | space id |
//! | 32 | 8 | compatible flags: unknown ones may be ignored |
//! | 40 | 8 | read-only-compatible flags: unknown ones forbid writing |
//! | 48 | 8 | incompatible flags: unknown ones forbid opening |
//! | 56 | 8 | generation n; it lies in slot n mod 2 |
//! | 64 | 8 | generation of the log that follows it |
//! | 72 | 8 | sequence number of the last operation in it |
//! | 80 | 8 | commit word |
//! | 88 | 4 | page size |
//! | 92 | 4 | block size |
//! | 96 | 4 | segment size |
//! | 100 | 4 | CRC-32 of the catalog's bytes |
//! | 104 | 8 | first page of the catalog (`catalog`) |
//! | 112 | 8 | length of the catalog in bytes |
//! | 120 | 8 | next file id |
//! | 128 | 8 | number of pages in `TREE` |
//! | 136 | 8 | seed of the key hash (used by the database) |
//! | 144 | 16 | reserved: list of detached roots (zero) |
//! | 160 | | zeros up to the page size |
//!
//! The magic, the CRC and the version keep their places in every version of the format.

use super::geometry::Geometry;
use crate::address::PageId;
use crate::codec::crc::crc32;
use crate::limits::{BLOCK_BYTES, PAGE_BYTES};
use crate::{Error, ErrorKind};

/// The version of the format that this library writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"FLEXFILE";
const CRC_AT: usize = 8;
const VERSION_AT: usize = CRC_AT + 4;
const SPACE_ID_AT: usize = VERSION_AT + 4;
const COMPATIBLE_AT: usize = SPACE_ID_AT + 16;
const READ_COMPATIBLE_AT: usize = COMPATIBLE_AT + 8;
const INCOMPATIBLE_AT: usize = READ_COMPATIBLE_AT + 8;
const GENERATION_AT: usize = INCOMPATIBLE_AT + 8;
const LOG_GENERATION_AT: usize = GENERATION_AT + 8;
const SEQUENCE_AT: usize = LOG_GENERATION_AT + 8;
const COMMIT_WORD_AT: usize = SEQUENCE_AT + 8;
const PAGE_SIZE_AT: usize = COMMIT_WORD_AT + 8;
const BLOCK_SIZE_AT: usize = PAGE_SIZE_AT + 4;
const SEGMENT_SIZE_AT: usize = BLOCK_SIZE_AT + 4;
const CATALOG_CRC_AT: usize = SEGMENT_SIZE_AT + 4;
const CATALOG_PAGE_AT: usize = CATALOG_CRC_AT + 4;
const CATALOG_LEN_AT: usize = CATALOG_PAGE_AT + 8;
const NEXT_FILE_ID_AT: usize = CATALOG_LEN_AT + 8;
const PAGE_COUNT_AT: usize = NEXT_FILE_ID_AT + 8;
const HASH_SEED_AT: usize = PAGE_COUNT_AT + 8;

/// A superblock's fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Superblock {
    /// The space's id.
    pub space_id: [u8; 16],
    /// Read-only-compatible flags that this version does not know: the space can't be written.
    pub unknown_read_flags: u64,
    /// Which one.
    pub generation: u64,
    /// The log that follows it.
    pub log_generation: u64,
    /// The last operation in it.
    pub sequence: u64,
    /// The last commit word.
    pub commit_word: u64,
    /// Segment size in bytes.
    pub segment_bytes: u32,
    /// Checksum of the catalog.
    pub catalog_crc: u32,
    /// Where the catalog begins.
    pub catalog_page: PageId,
    /// Length of the catalog in bytes.
    pub catalog_len: u64,
    /// The id of the next new file.
    pub next_file_id: u64,
    /// Pages in `TREE`.
    pub page_count: u64,
    /// Seed of the key hash.
    pub hash_seed: u64,
}

/// What a slot holds.
#[derive(Debug)]
pub enum Slot {
    /// A sound superblock.
    Valid(Superblock),
    /// Only zeros: never written.
    Blank,
    /// Something else; the error says what.
    Damaged(Error),
    /// A sound superblock that this version can't read; the error says why.
    Foreign(Error),
}

impl Superblock {
    /// The byte offset in `TREE` of the slot of this generation.
    pub fn slot_offset(generation: u64) -> u64 {
        generation % 2 * PAGE_BYTES as u64
    }

    /// The page.
    pub fn encode(&self) -> Vec<u8> {
        let mut page = vec![0; PAGE_BYTES];
        let mut put = |at: usize, bytes: &[u8]| page[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, MAGIC);
        put(VERSION_AT, &FORMAT_VERSION.to_le_bytes());
        put(SPACE_ID_AT, &self.space_id);
        put(READ_COMPATIBLE_AT, &self.unknown_read_flags.to_le_bytes());
        put(GENERATION_AT, &self.generation.to_le_bytes());
        put(LOG_GENERATION_AT, &self.log_generation.to_le_bytes());
        put(SEQUENCE_AT, &self.sequence.to_le_bytes());
        put(COMMIT_WORD_AT, &self.commit_word.to_le_bytes());
        put(PAGE_SIZE_AT, &(PAGE_BYTES as u32).to_le_bytes());
        put(BLOCK_SIZE_AT, &(BLOCK_BYTES as u32).to_le_bytes());
        put(SEGMENT_SIZE_AT, &self.segment_bytes.to_le_bytes());
        put(CATALOG_CRC_AT, &self.catalog_crc.to_le_bytes());
        put(CATALOG_PAGE_AT, &self.catalog_page.0.to_le_bytes());
        put(CATALOG_LEN_AT, &self.catalog_len.to_le_bytes());
        put(NEXT_FILE_ID_AT, &self.next_file_id.to_le_bytes());
        put(PAGE_COUNT_AT, &self.page_count.to_le_bytes());
        put(HASH_SEED_AT, &self.hash_seed.to_le_bytes());
        let crc = crc32(&page[VERSION_AT..]);
        page[CRC_AT..VERSION_AT].copy_from_slice(&crc.to_le_bytes());
        page
    }

    /// Reads a slot, which must be of `PAGE_BYTES`.
    pub fn decode(page: &[u8]) -> Slot {
        let damaged = |what: &str| Slot::Damaged(Error::corruption(format!("superblock: {what}")));
        let foreign = |what: String| Slot::Foreign(Error::new(ErrorKind::Version, what));
        if page.len() != PAGE_BYTES {
            return damaged("the file is too short");
        }
        if page.iter().all(|byte| *byte == 0) {
            return Slot::Blank;
        }
        let u32_at = |at: usize| u32::from_le_bytes(page[at..at + 4].try_into().unwrap_or_default());
        let u64_at = |at: usize| u64::from_le_bytes(page[at..at + 8].try_into().unwrap_or_default());
        if &page[..CRC_AT] != MAGIC {
            return damaged("no magic number");
        }
        if crc32(&page[VERSION_AT..]) != u32_at(CRC_AT) {
            return damaged("checksum mismatch");
        }
        let version = u32_at(VERSION_AT);
        if version != FORMAT_VERSION {
            return foreign(format!("format version {version}; this library reads version {FORMAT_VERSION}"));
        }
        if u64_at(INCOMPATIBLE_AT) != 0 {
            return foreign(format!("needs features {:#x}, which this version lacks", u64_at(INCOMPATIBLE_AT)));
        }
        let sizes = (u32_at(PAGE_SIZE_AT) as usize, u32_at(BLOCK_SIZE_AT) as usize);
        if sizes != (PAGE_BYTES, BLOCK_BYTES) {
            return foreign(format!("page and block sizes {sizes:?} are not this build's"));
        }
        if let Err(error) = Geometry::new(u32_at(SEGMENT_SIZE_AT)) {
            return Slot::Foreign(error.with_kind(ErrorKind::Version));
        }
        Slot::Valid(Superblock {
            space_id: page[SPACE_ID_AT..COMPATIBLE_AT].try_into().unwrap_or_default(),
            unknown_read_flags: u64_at(READ_COMPATIBLE_AT),
            generation: u64_at(GENERATION_AT),
            log_generation: u64_at(LOG_GENERATION_AT),
            sequence: u64_at(SEQUENCE_AT),
            commit_word: u64_at(COMMIT_WORD_AT),
            segment_bytes: u32_at(SEGMENT_SIZE_AT),
            catalog_crc: u32_at(CATALOG_CRC_AT),
            catalog_page: PageId(u64_at(CATALOG_PAGE_AT)),
            catalog_len: u64_at(CATALOG_LEN_AT),
            next_file_id: u64_at(NEXT_FILE_ID_AT),
            page_count: u64_at(PAGE_COUNT_AT),
            hash_seed: u64_at(HASH_SEED_AT),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Superblock {
        Superblock {
            space_id: *b"0123456789abcdef",
            unknown_read_flags: 0,
            generation: 7,
            log_generation: 8,
            sequence: 9,
            commit_word: 10,
            segment_bytes: crate::limits::DEFAULT_SEGMENT_BYTES,
            catalog_crc: 11,
            catalog_page: PageId(12),
            catalog_len: 13,
            next_file_id: 14,
            page_count: 15,
            hash_seed: 16,
        }
    }

    fn resealed(mut page: Vec<u8>) -> Vec<u8> {
        let crc = crc32(&page[VERSION_AT..]);
        page[CRC_AT..VERSION_AT].copy_from_slice(&crc.to_le_bytes());
        page
    }

    #[test]
    fn fields_survive_and_lie_where_the_table_says() {
        let page = sample().encode();
        assert!(matches!(Superblock::decode(&page), Slot::Valid(found) if found == sample()));
        assert_eq!(HASH_SEED_AT, 136);
        assert_eq!(page[56..64], 7u64.to_le_bytes());
        assert_eq!(page[112..120], 13u64.to_le_bytes());
    }

    #[test]
    fn damage_newer_versions_and_blank_slots_are_told_apart() {
        let page = sample().encode();
        for byte in 0..PAGE_BYTES {
            let mut flipped = page.clone();
            flipped[byte] ^= 0x10;
            assert!(matches!(Superblock::decode(&flipped), Slot::Damaged(_)), "byte {byte}");
        }
        assert!(matches!(Superblock::decode(&vec![0; PAGE_BYTES]), Slot::Blank));
        assert!(matches!(Superblock::decode(&page[..100]), Slot::Damaged(_)));
        let mut newer = page.clone();
        newer[VERSION_AT] = 2;
        assert!(matches!(Superblock::decode(&resealed(newer)), Slot::Foreign(e) if e.kind() == ErrorKind::Version));
        let mut feature = page.clone();
        feature[INCOMPATIBLE_AT] = 1;
        assert!(matches!(Superblock::decode(&resealed(feature)), Slot::Foreign(e) if e.kind() == ErrorKind::Version));
    }
}
