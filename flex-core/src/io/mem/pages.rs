//! The bytes of a file in memory: 4 KiB pages that clones share until one of them changes.
//!
//! A missing page is a hole: it reads as zeros and occupies nothing. Reserving puts zero pages in, so that pages are
//! blocks, as on a disk. Invariant: no page lies wholly behind `len`, and bytes of the last page behind `len` are zero.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Bytes per page, the unit of allocation.
pub(super) const PAGE: u64 = 4096;

/// Contents and length of a file. Cloning is cheap.
#[derive(Clone, Default)]
pub(super) struct Pages {
    pages: BTreeMap<u64, Arc<[u8; PAGE as usize]>>,
    len: u64,
}

impl Pages {
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// How many pages the file occupies.
    pub(super) fn allocated_pages(&self) -> u64 {
        self.pages.len() as u64
    }

    /// The numbers of the pages in `range` that exist.
    pub(super) fn existing(&self, range: Range<u64>) -> impl Iterator<Item = u64> {
        self.pages.range(range).map(|(&number, _)| number)
    }

    /// How many pages a write or reservation of a range would add.
    pub(super) fn missing_pages(&self, offset: u64, len: u64) -> u64 {
        let range = covering(offset, len);
        range.end - range.start - self.existing(range).count() as u64
    }

    /// Copies bytes from `offset` on, as far as the length goes; returns how many.
    pub(super) fn read(&self, buf: &mut [u8], offset: u64) -> usize {
        let count = (self.len.saturating_sub(offset)).min(buf.len() as u64) as usize;
        for (number, inside, part) in parts(offset, count) {
            let target = &mut buf[part];
            match self.pages.get(&number) {
                Some(page) => target.copy_from_slice(&page[inside..inside + target.len()]),
                None => target.fill(0),
            }
        }
        count
    }

    /// Writes `bytes` at `offset`, extending the length.
    pub(super) fn write(&mut self, bytes: &[u8], offset: u64) {
        for (number, inside, part) in parts(offset, bytes.len()) {
            let source = &bytes[part];
            Arc::make_mut(self.page(number))[inside..inside + source.len()].copy_from_slice(source);
        }
        if !bytes.is_empty() {
            self.len = self.len.max(offset + bytes.len() as u64);
        }
    }

    /// Puts pages where a range has none, and extends the length over it.
    pub(super) fn reserve(&mut self, offset: u64, len: u64) {
        for number in covering(offset, len) {
            self.page(number);
        }
        self.len = self.len.max(offset + len);
    }

    /// Drops the whole pages of a range and zeros the rest of it; the length stays.
    pub(super) fn punch(&mut self, offset: u64, len: u64) {
        let end = offset + len;
        let whole = offset.div_ceil(PAGE)..end / PAGE;
        if whole.start <= whole.end {
            self.zero(offset..end.min(whole.start * PAGE));
            self.zero(offset.max(whole.end * PAGE)..end);
            self.drop_pages(whole);
        } else {
            self.zero(offset..end);
        }
    }

    /// Sets the length; what was behind it is gone for good.
    pub(super) fn set_len(&mut self, len: u64) {
        if len < self.len {
            let first_gone = len.div_ceil(PAGE);
            self.zero(len..(first_gone * PAGE).min(self.len));
            self.pages.split_off(&first_gone);
        }
        self.len = len;
    }

    fn page(&mut self, number: u64) -> &mut Arc<[u8; PAGE as usize]> {
        self.pages.entry(number).or_insert_with(|| Arc::new([0; PAGE as usize]))
    }

    /// Zeros a range within one page, if that exists.
    fn zero(&mut self, range: Range<u64>) {
        if range.start >= range.end {
            return;
        }
        let number = range.start / PAGE;
        debug_assert!(range.end <= (number + 1) * PAGE, "{range:?} leaves its page");
        if let Some(page) = self.pages.get_mut(&number) {
            let base = number * PAGE;
            Arc::make_mut(page)[(range.start - base) as usize..(range.end - base) as usize].fill(0);
        }
    }

    fn drop_pages(&mut self, range: Range<u64>) {
        let gone: Vec<u64> = self.existing(range).collect();
        for number in gone {
            self.pages.remove(&number);
        }
    }
}

/// The pages that a range touches.
fn covering(offset: u64, len: u64) -> Range<u64> {
    if len == 0 { 0..0 } else { offset / PAGE..(offset + len).div_ceil(PAGE) }
}

/// Cuts `len` bytes at `offset` at the page borders: page number, place in the page, place in the buffer.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = (u64, usize, Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == len {
            return None;
        }
        let at = offset + done as u64;
        let inside = (at % PAGE) as usize;
        let count = (PAGE as usize - inside).min(len - done);
        let part = done..done + count;
        done += count;
        Some((at / PAGE, inside, part))
    })
}
