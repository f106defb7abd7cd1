//! Pages of `TREE`: allocation, and reading and writing of node pages with their checksums.
//!
//! | offset | size | field of a node page |
//! |---|---|---|
//! | 0 | 4 | CRC-32 of the page behind this field |
//! | 4 | 2 | kind: 1 node |
//! | 6 | 2 | level of the node (0: leaf) |
//! | 8 | 8 | number of this page |
//! | 16 | 16 | space id |
//! | 32 | 8 | generation of the superblock that it was written for |
//! | 40 | 4 | length of the node's bytes |
//! | 44 | 20 | zero |
//! | 64 | | the node (`tree::node_codec`), zeros behind it |
//!
//! A page is free, used, dying (the next superblock does not need it, the present one may) or quarantined (only an old
//! snapshot may still load it). Only free pages are written, so that the present superblock's tree stays whole.
//! `PageId`s are byte offsets divided by the page size; pages 0 and 1 are the superblock slots.
//!
//! Reading needs no lock; allocation has its own. Nothing is durable until `TREE` is synced.

use super::snapshots::SnapshotList;
use crate::address::PageId;
use crate::codec::crc::crc32;
use crate::io::fail_stop::FailStopFile;
use crate::limits::{PAGE_BYTES, TREE_CHUNK_PAGES};
use crate::tree::{NodeImage, NodeSource, PageSink, node_codec};
use crate::{Error, Result};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::io::IoSlice;
use std::sync::atomic::{AtomicU64, Ordering};

const KIND_NODE: u16 = 1;
const KIND_AT: usize = 4;
const LEVEL_AT: usize = KIND_AT + 2;
const NUMBER_AT: usize = LEVEL_AT + 2;
const SPACE_ID_AT: usize = NUMBER_AT + 8;
const GENERATION_AT: usize = SPACE_ID_AT + 16;
const LEN_AT: usize = GENERATION_AT + 8;
/// Where a node's bytes begin in its page.
pub const PAYLOAD_AT: usize = 64;
/// The superblock slots.
pub const FIRST_PAGE: u64 = 2;

/// `TREE`.
pub struct PageStore {
    file: FailStopFile,
    space_id: [u8; 16],
    allocator: Mutex<PageAllocator>,
    bytes_written: AtomicU64,
}

impl PageStore {
    /// The pages of a file, of which `used` are in use.
    pub fn new(file: FailStopFile, space_id: [u8; 16], used: PageBitmap) -> PageStore {
        let allocator = Mutex::new(PageAllocator { used, births: HashMap::new(), quarantine: Vec::new(), hint: 0 });
        PageStore { file, space_id, allocator, bytes_written: AtomicU64::new(0) }
    }

    /// The file.
    pub fn file(&self) -> &FailStopFile {
        &self.file
    }

    /// Bytes written.
    pub fn bytes_written(&self) -> u64 {
        self.bytes_written.load(Ordering::Relaxed)
    }

    /// Writes bytes that are no node (superblock, catalog) at a page.
    pub fn write_raw(&self, page: PageId, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(&mut [IoSlice::new(bytes)], page.0 * PAGE_BYTES as u64)?;
        self.bytes_written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Pages in use, and pages in the file.
    pub fn usage(&self) -> (u64, u64) {
        let allocator = self.allocator.lock();
        (allocator.used.count(), allocator.used.len())
    }

    /// Extends the file so that at least `pages` are free. `NoSpace` changes nothing.
    pub fn reserve(&self, pages: u64) -> Result<()> {
        let mut allocator = self.allocator.lock();
        let free = allocator.used.len() - allocator.used.count();
        if free >= pages {
            return Ok(());
        }
        let more = (pages - free).next_multiple_of(TREE_CHUNK_PAGES);
        self.extend(&mut allocator, more)
    }

    fn extend(&self, allocator: &mut PageAllocator, pages: u64) -> Result<()> {
        let len = allocator.used.len();
        self.file.reserve(len * PAGE_BYTES as u64, pages * PAGE_BYTES as u64)?;
        allocator.used.extend(len + pages);
        Ok(())
    }

    /// Takes a run of free pages that lie together.
    pub fn allocate_run(&self, pages: u64, birth: u64) -> Result<PageId> {
        let mut allocator = self.allocator.lock();
        let first = match allocator.used.find_free_run(pages) {
            Some(first) => first,
            None => {
                let tail = allocator.used.free_tail();
                let first = allocator.used.len() - tail;
                self.extend(&mut allocator, (pages - tail).next_multiple_of(TREE_CHUNK_PAGES))?;
                first
            }
        };
        for page in first..first + pages {
            allocator.take(page, birth);
        }
        Ok(PageId(first))
    }

    fn allocate(&self, birth: u64) -> Result<PageId> {
        let mut allocator = self.allocator.lock();
        let hint = allocator.hint;
        let page = match allocator.used.find_free(hint) {
            Some(page) => page,
            None => {
                let page = allocator.used.len();
                self.extend(&mut allocator, TREE_CHUNK_PAGES)?;
                page
            }
        };
        allocator.hint = page + 1;
        allocator.take(page, birth);
        Ok(PageId(page))
    }

    /// Gives back pages that no durable superblock needs, freed by operation `death`; those that a snapshot may still
    /// load wait.
    pub fn free(&self, pages: &[PageId], death: u64, snapshots: &SnapshotList) {
        let mut allocator = self.allocator.lock();
        for page in pages {
            let birth = allocator.births.get(page).copied().unwrap_or(0);
            if snapshots.any_in(birth, death) {
                allocator.quarantine.push(Waiting { page: *page, birth, death });
            } else {
                allocator.release(*page);
            }
        }
    }

    /// Frees the pages that no snapshot needs any more.
    pub fn settle(&self, snapshots: &SnapshotList) {
        let mut allocator = self.allocator.lock();
        if allocator.quarantine.is_empty() {
            return;
        }
        let (free, keep): (Vec<Waiting>, Vec<Waiting>) = std::mem::take(&mut allocator.quarantine)
            .into_iter()
            .partition(|waiting| !snapshots.any_in(waiting.birth, waiting.death));
        allocator.quarantine = keep;
        for waiting in free {
            allocator.release(waiting.page);
        }
    }

    /// Pages that a snapshot alone keeps.
    pub fn quarantined(&self) -> u64 {
        self.allocator.lock().quarantine.len() as u64
    }

    /// The map of used pages as a superblock should have it: without `dying` and without what only snapshots keep.
    pub fn durable_map(&self, dying: &[PageId]) -> PageBitmap {
        let allocator = self.allocator.lock();
        let mut map = allocator.used.clone();
        for page in dying.iter().chain(allocator.quarantine.iter().map(|waiting| &waiting.page)) {
            map.clear(page.0);
        }
        map
    }

    /// Gives free pages at the end of the file back to the file system, but for `keep` of them.
    pub fn trim(&self, keep: u64) -> Result<()> {
        let mut allocator = self.allocator.lock();
        let tail = allocator.used.free_tail();
        if tail <= keep.max(TREE_CHUNK_PAGES) {
            return Ok(());
        }
        let len = allocator.used.len() - (tail - keep);
        self.file.set_len(len * PAGE_BYTES as u64)?;
        allocator.used.shrink(len);
        allocator.hint = 0;
        Ok(())
    }

    /// Starts looking for free pages at the front again.
    pub fn rewind(&self) {
        self.allocator.lock().hint = 0;
    }

    /// The number of pages in the file.
    pub fn page_count(&self) -> u64 {
        self.allocator.lock().used.len()
    }

    /// Whether a page is in use (or waits to be free).
    pub fn is_used(&self, page: PageId) -> bool {
        let allocator = self.allocator.lock();
        page.0 < allocator.used.len() && allocator.used.get(page.0)
    }

    fn damaged(&self, page: PageId, what: &str) -> Error {
        Error::corruption(format!("tree page {}: {what}", page.0))
            .at_path(self.file.path())
            .at_offset(page.0.saturating_mul(PAGE_BYTES as u64))
    }
}

impl NodeSource for PageStore {
    fn load(&self, page: PageId) -> Result<NodeImage> {
        if page.0 < FIRST_PAGE || page.0 >= 1 << 48 {
            return Err(self.damaged(page, "no such page"));
        }
        let mut bytes = [0; PAGE_BYTES];
        self.file.read_exact_at(&mut bytes, page.0 * PAGE_BYTES as u64)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if crc32(&bytes[KIND_AT..]) != word(0) {
            return Err(self.damaged(page, "checksum mismatch"));
        }
        let number = u64::from_le_bytes(bytes[NUMBER_AT..SPACE_ID_AT].try_into().unwrap_or_default());
        if number != page.0 || bytes[SPACE_ID_AT..GENERATION_AT] != self.space_id {
            return Err(self.damaged(page, "it belongs elsewhere"));
        }
        if bytes[KIND_AT..LEVEL_AT] != KIND_NODE.to_le_bytes() {
            return Err(self.damaged(page, "it holds no node"));
        }
        let end = PAYLOAD_AT + word(LEN_AT) as usize;
        let Some(payload) = bytes.get(PAYLOAD_AT..end) else {
            return Err(self.damaged(page, "its length is too large"));
        };
        node_codec::decode(payload).map_err(|e| e.at_path(self.file.path()).at_offset(page.0 * PAGE_BYTES as u64))
    }
}

/// Writes the nodes of one checkpoint; pages that lie together go out in one call.
pub struct NodeWriter<'a> {
    store: &'a PageStore,
    generation: u64,
    birth: u64,
    buffer: Vec<u8>,
    first: PageId,
    pages: u64,
}

const WRITE_BATCH_BYTES: usize = 256 << 10;

impl<'a> NodeWriter<'a> {
    /// A writer for the checkpoint that becomes superblock `generation`, frozen after operation `birth`.
    pub fn new(store: &'a PageStore, generation: u64, birth: u64) -> NodeWriter<'a> {
        NodeWriter { store, generation, birth, buffer: Vec::new(), first: PageId(0), pages: 0 }
    }

    /// Writes what has gathered; returns the number of pages written in all.
    pub fn finish(mut self) -> Result<u64> {
        self.write()?;
        Ok(self.pages)
    }

    fn write(&mut self) -> Result<()> {
        if !self.buffer.is_empty() {
            self.store.write_raw(self.first, &self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

impl PageSink for NodeWriter<'_> {
    fn store(&mut self, level: u8, payload: &[u8]) -> Result<PageId> {
        debug_assert!(PAYLOAD_AT + payload.len() <= PAGE_BYTES);
        let page = self.store.allocate(self.birth)?;
        let buffered = (self.buffer.len() / PAGE_BYTES) as u64;
        if page.0 != self.first.0 + buffered || self.buffer.len() >= WRITE_BATCH_BYTES {
            self.write()?;
            self.first = page;
        }
        let start = self.buffer.len();
        self.buffer.resize(start + PAGE_BYTES, 0);
        let bytes = &mut self.buffer[start..];
        bytes[KIND_AT..LEVEL_AT].copy_from_slice(&KIND_NODE.to_le_bytes());
        bytes[LEVEL_AT..NUMBER_AT].copy_from_slice(&(level as u16).to_le_bytes());
        bytes[NUMBER_AT..SPACE_ID_AT].copy_from_slice(&page.0.to_le_bytes());
        bytes[SPACE_ID_AT..GENERATION_AT].copy_from_slice(&self.store.space_id);
        bytes[GENERATION_AT..LEN_AT].copy_from_slice(&self.generation.to_le_bytes());
        bytes[LEN_AT..LEN_AT + 4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        bytes[PAYLOAD_AT..PAYLOAD_AT + payload.len()].copy_from_slice(payload);
        let crc = crc32(&bytes[KIND_AT..]);
        bytes[..KIND_AT].copy_from_slice(&crc.to_le_bytes());
        self.pages += 1;
        Ok(page)
    }
}

struct PageAllocator {
    used: PageBitmap,
    /// When pages were written in this open; older ones count from 0.
    births: HashMap<PageId, u64>,
    quarantine: Vec<Waiting>,
    hint: u64,
}

struct Waiting {
    page: PageId,
    birth: u64,
    death: u64,
}

impl PageAllocator {
    fn take(&mut self, page: u64, birth: u64) {
        self.used.mark(page);
        self.births.insert(PageId(page), birth);
    }

    fn release(&mut self, page: PageId) {
        debug_assert!(self.used.get(page.0), "page {} is freed twice", page.0);
        self.used.clear(page.0);
        self.births.remove(&page);
    }
}

/// One bit a page: whether it is used.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PageBitmap {
    words: Vec<u64>,
    len: u64,
    count: u64,
}

impl PageBitmap {
    /// A map of `len` pages, of which only the superblock slots are used.
    pub fn new(len: u64) -> PageBitmap {
        let mut map = PageBitmap::default();
        map.extend(len.max(FIRST_PAGE));
        for page in 0..FIRST_PAGE {
            map.mark(page);
        }
        map
    }

    /// The map that `to_bytes` gave.
    pub fn from_bytes(bytes: &[u8], len: u64) -> Result<PageBitmap> {
        if bytes.len() as u64 != len.div_ceil(8) {
            return Err(Error::corruption("catalog: the page map has the wrong length"));
        }
        let mut map = PageBitmap::new(len);
        for (word, chunk) in map.words.iter_mut().zip(bytes.chunks(8)) {
            let mut padded = [0; 8];
            padded[..chunk.len()].copy_from_slice(chunk);
            *word |= u64::from_le_bytes(padded);
        }
        if !map.len.is_multiple_of(64)
            && let Some(last) = map.words.last_mut()
        {
            *last &= (1 << (map.len % 64)) - 1;
        }
        map.count = map.words.iter().map(|word| word.count_ones() as u64).sum();
        Ok(map)
    }

    /// The map, eight pages a byte, lowest bit first.
    pub fn to_bytes(&self) -> Vec<u8> {
        let bytes = self.words.iter().flat_map(|word| word.to_le_bytes());
        bytes.take(self.len.div_ceil(8) as usize).collect()
    }

    /// Pages.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Used pages.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether a page is used.
    pub fn get(&self, page: u64) -> bool {
        self.words[(page / 64) as usize] >> (page % 64) & 1 == 1
    }

    /// Forgets the free pages behind a file of `len` pages, which was cut after the map was written.
    pub fn clip(&mut self, len: u64) {
        let len = len.max(FIRST_PAGE);
        if len < self.len && (len..self.len).all(|page| !self.get(page)) {
            self.extend(len);
        }
    }

    /// Makes a page used.
    pub fn mark(&mut self, page: u64) {
        if !self.get(page) {
            self.words[(page / 64) as usize] |= 1 << (page % 64);
            self.count += 1;
        }
    }

    /// Makes a page free.
    pub fn clear(&mut self, page: u64) {
        if page < self.len && self.get(page) {
            self.words[(page / 64) as usize] &= !(1 << (page % 64));
            self.count -= 1;
        }
    }

    fn extend(&mut self, len: u64) {
        self.len = len;
        self.words.resize(len.div_ceil(64) as usize, 0);
    }

    fn shrink(&mut self, len: u64) {
        debug_assert!((len..self.len).all(|page| !self.get(page)));
        self.extend(len);
    }

    fn find_free(&self, from: u64) -> Option<u64> {
        let mut word = (from / 64) as usize;
        let mut mask = u64::MAX << (from % 64);
        while word < self.words.len() {
            let free = !self.words[word] & mask;
            if free != 0 {
                let page = word as u64 * 64 + free.trailing_zeros() as u64;
                return (page < self.len).then_some(page);
            }
            word += 1;
            mask = u64::MAX;
        }
        None
    }

    fn find_free_run(&self, pages: u64) -> Option<u64> {
        let mut first = self.find_free(FIRST_PAGE)?;
        while first + pages <= self.len {
            match (first..first + pages).find(|page| self.get(*page)) {
                None => return Some(first),
                Some(taken) => first = self.find_free(taken)?,
            }
        }
        None
    }

    fn free_tail(&self) -> u64 {
        (FIRST_PAGE..self.len).rev().take_while(|page| !self.get(*page)).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_and_single_pages_are_found() {
        let mut map = PageBitmap::new(200);
        for page in [2, 3, 7, 70, 130] {
            map.mark(page);
        }
        assert_eq!(map.find_free(0), Some(4));
        assert_eq!(map.find_free(70), Some(71));
        assert_eq!(map.find_free_run(3), Some(4));
        assert_eq!(map.find_free_run(60), Some(8));
        assert_eq!(map.find_free_run(69), Some(131));
        assert_eq!(map.find_free_run(70), None);
        assert_eq!(map.free_tail(), 69);
        assert_eq!(map.count(), 7);
        assert_eq!(PageBitmap::from_bytes(&map.to_bytes(), 200).unwrap(), map);
        assert!(PageBitmap::from_bytes(&[0; 3], 200).is_err());
        map.clip(150);
        assert_eq!((map.len(), map.free_tail()), (150, 19));
        map.clip(100);
        assert_eq!(map.len(), 150, "a used page lies behind");
        map.shrink(131);
        assert_eq!(map.find_free(131), None);
    }
}
