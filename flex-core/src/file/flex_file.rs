//! FlexFile: one file of a space, whose bytes can be inserted and removed anywhere.
//!
//! A handle may be used from any thread, by several at once. Every call happens as a whole, at one moment; readers never
//! wait for a writer's I/O. When a call fails, the file is as before, unless the error is `Poisoned` or came from a
//! sync that `EveryCommit` asked for. What survives which death: `Durability`, and `FlexSpace::{flush, sync}`.

use super::change::Change;
use super::core::FileState;
use super::cursor::ExtentCursor;
use super::edit::{Changes, Edit, check_growth, check_offset, check_range, plan_write, total_len};
use super::read::ReadPlan;
use super::segment_writer::Temperature;
use super::shared::SpaceHandle;
use super::snapshot::FileSnapshot;
use super::space::FlexSpace;
use super::view::{self, ExtentInfo};
use crate::address::Tag;
use crate::tree::FlexTree;
use crate::{Error, ErrorKind, Result};
use parking_lot::RwLockReadGuard;
use std::io::{IoSlice, IoSliceMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A handle to one file of a space. Clones are handles to the same file.
#[derive(Clone)]
pub struct FlexFile {
    pub(super) space: Arc<SpaceHandle>,
    pub(super) file: Arc<FileState>,
}

impl FlexFile {
    /// The file's number in its space, never used again.
    pub fn id(&self) -> u64 {
        self.file.id.0
    }

    /// The space that it belongs to.
    pub fn space(&self) -> FlexSpace {
        FlexSpace::from_handle(self.space.clone())
    }

    fn tree(&self) -> Result<RwLockReadGuard<'_, FlexTree>> {
        let tree = self.file.tree.read();
        // Under the lock, under which a removal empties the tree.
        if self.file.removed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::NotFound, "the file was removed"));
        }
        Ok(tree)
    }

    /// Size in bytes.
    pub fn size(&self) -> Result<u64> {
        let _entered = self.space.enter()?;
        Ok(self.tree()?.len())
    }

    /// Number of extents.
    pub fn extent_count(&self) -> Result<u64> {
        let _entered = self.space.enter()?;
        Ok(self.tree()?.extent_count())
    }

    /// Reads into `buf` from `offset` on; returns how many bytes, fewer than asked for at the end of the file only.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let _entered = self.space.enter()?;
        let plan = ReadPlan::new(&self.space, &*self.tree()?, offset, buf.len() as u64)?;
        plan.read(buf)
    }

    /// Reads into several buffers, one behind the other, as one call.
    pub fn read_vectored(&self, offset: u64, bufs: &mut [IoSliceMut<'_>]) -> Result<usize> {
        let _entered = self.space.enter()?;
        let total = bufs.iter().map(|buf| buf.len() as u64).sum();
        let plan = ReadPlan::new(&self.space, &*self.tree()?, offset, total)?;
        plan.read_vectored(bufs)
    }

    /// Overwrites bytes from `offset` on, and extends the file where they end behind it; a gap reads as zeros.
    pub fn write(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.write_vectored(offset, &[IoSlice::new(data)])
    }

    /// `write` of several buffers, one behind the other.
    pub fn write_vectored(&self, offset: u64, bufs: &[IoSlice<'_>]) -> Result<()> {
        let total = total_len(bufs)?;
        check_growth(offset, total)?;
        let mut edit = Edit::begin(&self.space, &self.file)?;
        if total == 0 {
            return Ok(());
        }
        let pieces = edit.stage(bufs, Temperature::New)?;
        let changes = plan_write(edit.len(), offset, pieces);
        edit.commit(&changes, total)
    }

    /// Inserts bytes at `offset`, which is at most the size; everything from there on moves up.
    pub fn insert(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.insert_vectored(offset, &[IoSlice::new(data)])
    }

    /// `insert` of several buffers, one behind the other.
    pub fn insert_vectored(&self, offset: u64, bufs: &[IoSlice<'_>]) -> Result<()> {
        self.insert_at(Some(offset), bufs).map(|_| ())
    }

    /// Appends bytes; returns the offset that they got.
    pub fn append(&self, data: &[u8]) -> Result<u64> {
        self.insert_at(None, &[IoSlice::new(data)])
    }

    fn insert_at(&self, offset: Option<u64>, bufs: &[IoSlice<'_>]) -> Result<u64> {
        let total = total_len(bufs)?;
        let mut edit = Edit::begin(&self.space, &self.file)?;
        let len = edit.len();
        let offset = offset.unwrap_or(len);
        check_offset(offset, len)?;
        check_growth(len, total)?;
        if total > 0 {
            let pieces = edit.stage(bufs, Temperature::New)?;
            edit.commit(&[Change::Insert { offset, pieces }], total)?;
        }
        Ok(offset)
    }

    /// Inserts `len` zeros at `offset` without writing them.
    pub fn insert_hole(&self, offset: u64, len: u64) -> Result<()> {
        let edit = Edit::begin(&self.space, &self.file)?;
        check_offset(offset, edit.len())?;
        check_growth(edit.len(), len)?;
        if len == 0 { Ok(()) } else { edit.commit(&[Change::InsertHole { offset, len }], 0) }
    }

    /// Removes `len` bytes at `offset`; everything behind them moves down. The range lies in the file.
    pub fn collapse(&self, offset: u64, len: u64) -> Result<()> {
        let edit = Edit::begin(&self.space, &self.file)?;
        check_range(offset, len, edit.len())?;
        if len == 0 { Ok(()) } else { edit.commit(&[Change::Collapse { offset, len }], 0) }
    }

    /// Replaces `old_len` bytes at `offset` by `data`, of whatever length. The tag of the first byte stays,
    /// unless `data` is empty.
    pub fn update(&self, offset: u64, old_len: u64, data: &[u8]) -> Result<()> {
        let bufs = [IoSlice::new(data)];
        let total = total_len(&bufs)?;
        let mut edit = Edit::begin(&self.space, &self.file)?;
        let len = edit.len();
        check_range(offset, old_len, len)?;
        check_growth(len - old_len, total)?;
        let mut changes = Changes::new();
        if old_len > 0 {
            let tag = self.file.tree.read().tag(&self.space.pages, offset)?;
            changes.push(Change::Collapse { offset, len: old_len });
            if total > 0 {
                changes.push(Change::Insert { offset, pieces: edit.stage(&bufs, Temperature::New)? });
            }
            if tag.is_some() && total > 0 {
                changes.push(Change::SetTag { offset, tag });
            }
        } else if total > 0 {
            changes.push(Change::Insert { offset, pieces: edit.stage(&bufs, Temperature::New)? });
        }
        if changes.is_empty() { Ok(()) } else { edit.commit(&changes, total) }
    }

    /// Sets the size: cuts the end off, or extends the file by zeros without writing them.
    pub fn truncate(&self, size: u64) -> Result<()> {
        check_growth(size, 0)?;
        let edit = Edit::begin(&self.space, &self.file)?;
        let len = edit.len();
        match size.cmp(&len) {
            std::cmp::Ordering::Less => edit.commit(&[Change::Collapse { offset: size, len: len - size }], 0),
            std::cmp::Ordering::Equal => Ok(()),
            std::cmp::Ordering::Greater => edit.commit(&[Change::InsertHole { offset: len, len: size - len }], 0),
        }
    }

    /// Makes sure that `[offset, offset + len)` exists: extends the file by zeros where it ends before. Existing bytes stay.
    ///
    /// Data is never overwritten in place, so that no disk space can be set aside for a range: a later write may
    /// still answer `NoSpace`.
    pub fn fallocate(&self, offset: u64, len: u64) -> Result<()> {
        check_growth(offset, len)?;
        let edit = Edit::begin(&self.space, &self.file)?;
        let (size, end) = (edit.len(), offset + len);
        if end <= size {
            return Ok(());
        }
        edit.commit(&[Change::InsertHole { offset: size, len: end - size }], 0)
    }

    /// Makes a range read as zeros and gives its bytes back. The size stays; tags stay. The range lies in the file.
    pub fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        let edit = Edit::begin(&self.space, &self.file)?;
        check_range(offset, len, edit.len())?;
        if len == 0 { Ok(()) } else { edit.commit(&[Change::ReplaceHole { offset, len }], 0) }
    }

    /// Tags the byte at `offset`, which is inside the file; `Tag::NONE` takes the tag away.
    pub fn set_tag(&self, offset: u64, tag: Tag) -> Result<()> {
        let edit = Edit::begin(&self.space, &self.file)?;
        check_range(offset, 1, edit.len())?;
        edit.commit(&[Change::SetTag { offset, tag }], 0)
    }

    /// The tag of the byte at `offset`, which is inside the file.
    pub fn tag(&self, offset: u64) -> Result<Tag> {
        let _entered = self.space.enter()?;
        view::tag_at(&self.space, &*self.tree()?, offset)
    }

    /// The first tagged byte at or after `offset`.
    pub fn next_tagged(&self, offset: u64) -> Result<Option<(u64, Tag)>> {
        let _entered = self.space.enter()?;
        self.tree()?.tagged_at_or_after(&self.space.pages, offset)
    }

    /// The last tagged byte at or before `offset`.
    pub fn prev_tagged(&self, offset: u64) -> Result<Option<(u64, Tag)>> {
        let _entered = self.space.enter()?;
        self.tree()?.tagged_at_or_before(&self.space.pages, offset)
    }

    /// Finds the extent that covers `offset` and reads from *its* beginning: what it is, and how many bytes were read.
    pub fn read_extent(&self, offset: u64, buf: &mut [u8]) -> Result<(ExtentInfo, usize)> {
        let _entered = self.space.enter()?;
        let (extent, plan) = view::plan_extent(&self.space, &*self.tree()?, offset, buf.len())?;
        Ok((extent, plan.read(buf)?))
    }

    /// The first byte at or after `offset` that is not in a hole.
    pub fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        let _entered = self.space.enter()?;
        self.tree()?.next_mapped(&self.space.pages, offset)
    }

    /// The first byte at or after `offset` that is in a hole; the end of the file counts as one. `None` behind the end.
    pub fn next_hole(&self, offset: u64) -> Result<Option<u64>> {
        let _entered = self.space.enter()?;
        view::next_hole(&self.space, &*self.tree()?, offset)
    }

    /// The file as it is now, for as long as the snapshot is held.
    pub fn snapshot(&self) -> Result<FileSnapshot> {
        let _entered = self.space.enter()?;
        let mut core = self.space.core.lock();
        let tree = self.tree()?.clone();
        Ok(FileSnapshot::new(&self.space, &mut core, tree))
    }

    /// A cursor over the extents of the file as it is now, on the one that covers `offset`.
    pub fn cursor(&self, offset: u64) -> Result<ExtentCursor> {
        self.snapshot()?.cursor(offset)
    }
}
