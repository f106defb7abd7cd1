//! The bytes of a whole tiny space, pinned: superblock, catalog, log header, and a frame of every record kind.
//!
//! What depends on the random space id (the id itself, salts, checksums over it) is left out; `docs/format.md` has the
//! tables. A change that breaks this test changes the format: it needs a new format version.
#![cfg(not(feature = "small_limits"))]

use flex_core::address::Tag;
use flex_core::file::{FORMAT_VERSION, FlexSpace, SpaceOptions};
use flex_core::io::mem::MemFileSystem;
use flex_core::io::{FileSystem, OpenMode};
use flex_core::limits::MIN_SEGMENT_BYTES;
use std::path::Path;
use std::sync::Arc;

fn open(fs: &MemFileSystem) -> FlexSpace {
    let options = SpaceOptions { background: false, segment_size_bytes: MIN_SEGMENT_BYTES, ..SpaceOptions::default() };
    FlexSpace::open_with(Arc::new(fs.clone()) as Arc<dyn FileSystem>, Path::new("/space"), &options).unwrap()
}

fn bytes_of(fs: &MemFileSystem, name: &str) -> Vec<u8> {
    let file = fs.open(&Path::new("/space").join(name), OpenMode::ReadOnly).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    let mut done = 0;
    while done < bytes.len() {
        done += file.read_at(&mut bytes[done..], done as u64).unwrap();
    }
    bytes
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// Sequence number, durable offset and payload of each frame.
fn frames(log: &[u8]) -> Vec<String> {
    let marker = &log[4096..4100];
    let mut found = Vec::new();
    let mut at = 4096;
    while &log[at..at + 4] == marker {
        let len = u32_at(log, at + 4) as usize;
        assert_eq!(u32_at(log, at + 12), 0, "flags");
        let (sequence, durable) = (u64_at(log, at + 16), u64_at(log, at + 24));
        found.push(format!("{sequence} {durable} {}", hex(&log[at + 32..at + 32 + len])));
        at += 32 + len.next_multiple_of(8);
    }
    found
}

/// One operation of every kind that the log knows.
fn fill(space: &FlexSpace) {
    let file = space.create_file(b"a").unwrap();
    file.insert(0, b"hello").unwrap();
    file.insert_hole(2, 300).unwrap();
    file.collapse(1, 2).unwrap();
    file.write(0, b"J").unwrap();
    file.punch_hole(10, 5).unwrap();
    file.set_tag(3, Tag(7)).unwrap();
    space.rename_file(b"a", b"bc").unwrap();
    space.create_file(b"x").unwrap();
    space.remove_file(b"x").unwrap();
    let mut group = space.group(&[&file]).unwrap();
    group.truncate(&file, 20).unwrap();
    group.set_commit_word(300);
    group.commit().unwrap();
}

#[test]
fn frames_of_every_kind() {
    let fs = MemFileSystem::new();
    let space = open(&fs);
    fill(&space);
    space.sync().unwrap();
    space.open_file(b"bc").unwrap().set_tag(3, Tag(0)).unwrap();
    space.flush().unwrap();
    let log = bytes_of(&fs, "LOG.0");
    assert_eq!(&log[..8], b"FLEXLOG1");
    assert_eq!((u64_at(&log, 32), u64_at(&log, 40)), (2, 1), "generation and base");
    let data = bytes_of(&fs, "DATA");
    assert_eq!(&data[..7], b"helloJ\0");
    assert_eq!(frames(&log), FRAMES);
    space.checkpoint().unwrap();
    let log = bytes_of(&fs, "LOG.0");
    assert_eq!(frames(&log)[FRAMES.len()..], ["15 4584 0d"], "the end of the log");
    assert_eq!(u64_at(&log, 40), 2, "base");
}

#[test]
fn superblock_and_catalog() {
    let fs = MemFileSystem::new();
    let space = open(&fs);
    fill(&space);
    space.close().unwrap();
    let tree = bytes_of(&fs, "TREE");
    let at = |generation: usize| generation % 2 * 4096;
    let block = &tree[at(2)..at(2) + 4096];
    assert_eq!((&block[..8], u32_at(block, 12)), (&b"FLEXFILE"[..], FORMAT_VERSION));
    assert_eq!(FORMAT_VERSION, 1);
    assert!(block[32..56].iter().all(|byte| *byte == 0), "flag words");
    let words: Vec<u64> = [56, 64, 72, 80, 120].map(|at| u64_at(block, at)).to_vec();
    assert_eq!(words, [2, 3, 12, 300, 3], "generation, log generation, sequence, commit word, next file id");
    assert_eq!([88, 92, 96].map(|at| u32_at(block, at)), [4096, 4096, MIN_SEGMENT_BYTES]);
    let catalog = u64_at(block, 104) as usize * 4096;
    let len = u64_at(block, 112) as usize;
    let (fixed, map) = tree[catalog..catalog + len].split_at(CATALOG.len() / 2);
    assert_eq!(hex(fixed), CATALOG);
    // How many pages the file has is no matter of the format; a varint, then a bit for each.
    let varint = map.iter().take_while(|byte| **byte >= 128).count() + 1;
    assert_eq!(map[varint], 0x1b, "superblocks, catalog and node are used");
    assert!(map[varint + 1..].iter().all(|byte| *byte == 0));
    let root = &tree[catalog + 5..];
    assert_eq!(root[0], 1, "the root is a page");
    let page = &tree[root[1] as usize * 4096..][..4096];
    assert_eq!((page[4], u64_at(page, 8), u64_at(page, 32)), (1, root[1] as u64, 2), "kind, number, generation");
    assert_eq!(hex(&page[64..64 + u32_at(page, 40) as usize]), NODE);
}

/// Create, Insert, InsertHole, Collapse, Replace, ReplaceHole, SetTag, Rename, Create, Remove, Collapse and CommitWord as one
/// group, Blocks and Batch, SetTag, Batch.
const FRAMES: [&str; 14] = [
    "1 0 07010161",
    "2 0 010100010005",
    "3 0 020102ac02",
    "4 0 03010102",
    "5 0 040100010501",
    "6 0 05010a05",
    "7 0 06010307",
    "8 0 0801026263",
    "9 0 07020178",
    "10 0 0902",
    "11 0 0301149b020aac02",
    "12 0 0c00000001c5cd03aa0e",
    "13 4584 06010300",
    "14 4584 0e",
];
/// One file, one open segment with one live byte, its block's checksum; the page map follows.
const CATALOG: &str = "0101026263010314040101010101010101000001c5cd03aa";
/// One leaf: its level, number of extents and columns.
const NODE: &str = "00000400000000001400000000000000000000000100000003000000040000000500000000000000ffffffffffff0000ffffffffffff0700ffffffffffff0000";
