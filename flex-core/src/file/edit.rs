//! One operation on one file: stage its bytes, change the tree, append the frame, all or nothing.
//!
//! Bytes are staged in slices, so that a long write does not keep other files' writers out; the tree changes and the
//! frame is appended in one critical section.

use super::change::{Change, Piece, Pieces, apply_all};
use super::core::{Counters, Due, FileState};
use super::log_record::{FileId, put_change};
use super::segment_writer::Temperature;
use super::shared::{Entered, Shared};
use super::writer_lock::OperationGuard;
use crate::codec::frame::MAX_PAYLOAD;
use crate::limits::{BLOCK_BYTES, LOG_HAND_OVER_BYTES, MAX_FILE_SIZE_BYTES, MAX_WRITE_BYTES};
use crate::tree::Released;
use crate::{Error, ErrorKind, Result};
use smallvec::SmallVec;
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const STAGE_SLICE_BYTES: usize = 1 << 20;

/// The changes of one operation.
pub type Changes = SmallVec<[Change; 2]>;

/// An operation under way. Dropping it gives up what was staged.
pub struct Edit<'a> {
    shared: &'a Arc<Shared>,
    file: &'a FileState,
    staged: Pieces,
    _writer: OperationGuard<'a>,
    _entered: Entered<'a>,
}

impl<'a> Edit<'a> {
    /// Enters the space and locks the file.
    pub fn begin(shared: &'a Arc<Shared>, file: &'a FileState) -> Result<Edit<'a>> {
        let entered = shared.enter_to_write()?;
        let writer = file.writer.lock(|| shared.may_wait_for_group())?;
        if file.removed.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::NotFound, "the file was removed"));
        }
        Ok(Edit { shared, file, staged: Pieces::new(), _writer: writer, _entered: entered })
    }

    /// The file's size.
    pub fn len(&self) -> u64 {
        self.file.tree.read().len()
    }

    /// Writes bytes ahead of the change that links them.
    pub fn stage(&mut self, bufs: &[IoSlice<'_>], temperature: Temperature) -> Result<Pieces> {
        let first = self.staged.len();
        stage(self.shared, bufs, temperature, Some(self.file.id), &mut self.staged)?;
        Ok(self.staged[first..].into())
    }

    /// Makes the changes, and logs them as one frame.
    pub fn commit(mut self, changes: &[Change], user_bytes: u64) -> Result<()> {
        let frees_space = self.staged.is_empty();
        let (shared, file) = (self.shared, self.file);
        let count = |counters: &mut Counters| counters.user_bytes += user_bytes;
        let mut result = commit_changes(shared, file, changes, &mut self.staged, frees_space, count);
        if matches!(&result, Err(e) if e.kind() == ErrorKind::NoSpace) {
            if frees_space {
                // The log can't grow: a checkpoint makes it short again.
                shared.checkpoint_in_need(file.id)?;
            } else if !shared.make_room(Some(file.id))? {
                return result.map(|_| ());
            }
            result = commit_changes(shared, file, changes, &mut self.staged, frees_space, count);
        }
        let due = result?;
        drop(self);
        shared.after_commit(due)
    }
}

impl Drop for Edit<'_> {
    fn drop(&mut self) {
        if !self.staged.is_empty() {
            self.shared.core.lock().unstage(&self.staged);
        }
    }
}

/// Changes a file whose writer lock the caller holds, links what was staged, and logs one frame.
/// `frees_space`: may use the room that is kept for operations that give space back.
pub fn commit_changes(
    shared: &Shared,
    file: &FileState,
    changes: &[Change],
    staged: &mut Pieces,
    frees_space: bool,
    count: impl FnOnce(&mut Counters),
) -> Result<Due> {
    warm(shared, file, changes)?;
    let records: u64 = changes.iter().map(Change::record_bound).sum();
    check_frame(records, file, changes)?;
    let mut core = shared.core.lock();
    core.ensure_log_room(records, frees_space)?;
    let dirty = changes.iter().map(Change::dirty_bound).sum();
    core.ensure_page_room(&shared.pages, dirty, frees_space)?;
    let mut released = Released::default();
    apply_all(changes, &mut file.tree.write(), &shared.pages, &mut released)?;
    let sequence = core.append_frame(|out| changes.iter().for_each(|change| put_change(out, file.id, change)))?;
    core.dirty_nodes += dirty;
    core.publish(staged);
    staged.clear();
    core.absorb(released, sequence);
    count(&mut core.counters);
    if core.log.waiting() >= LOG_HAND_OVER_BYTES {
        core.hand_over(&shared.data)?;
    }
    Ok(core.due())
}

/// Checks that the changes fit a frame of the log, before any of them is made.
fn check_frame(bound: u64, file: &FileState, changes: &[Change]) -> Result<()> {
    if bound <= MAX_PAYLOAD as u64 {
        return Ok(());
    }
    let mut records = Vec::new();
    changes.iter().for_each(|change| put_change(&mut records, file.id, change));
    if records.len() > MAX_PAYLOAD {
        return Err(too_big("the operation has too many pieces for one frame of the log; use several calls".into()));
    }
    Ok(())
}

/// Loads the nodes that the changes will touch, outside the space's lock.
pub fn warm(shared: &Shared, file: &FileState, changes: &[Change]) -> Result<()> {
    let tree = file.tree.read();
    if tree.is_resident() {
        return Ok(());
    }
    let end = tree.len();
    for (offset, len) in changes.iter().map(Change::range) {
        let offset = offset.min(end);
        tree.warm(&shared.pages, offset, len.min(end - offset))?;
    }
    Ok(())
}

/// Appends bytes to `DATA` and counts them as staged; when room is short, once more after making room.
/// `held`: the file whose writer lock this thread holds, which a collection may change all the same.
pub fn stage(
    shared: &Arc<Shared>,
    bufs: &[IoSlice<'_>],
    temperature: Temperature,
    held: Option<FileId>,
    pieces: &mut Pieces,
) -> Result<()> {
    let result = stage_once(shared, bufs, temperature, pieces);
    let full = matches!(&result, Err(e) if e.kind() == ErrorKind::NoSpace);
    if full && temperature == Temperature::New && shared.make_room(held)? {
        return stage_once(shared, bufs, temperature, pieces);
    }
    result
}

fn stage_once(shared: &Shared, bufs: &[IoSlice<'_>], temperature: Temperature, pieces: &mut Pieces) -> Result<()> {
    let first = pieces.len();
    let result = stage_slices(shared, bufs, temperature, pieces);
    if result.is_err() {
        let given_up: Pieces = pieces.drain(first..).collect();
        shared.core.lock().unstage(&given_up);
    }
    result
}

fn stage_slices(shared: &Shared, bufs: &[IoSlice<'_>], temperature: Temperature, pieces: &mut Pieces) -> Result<()> {
    for slice in bufs.iter().flat_map(|buf| buf.chunks(STAGE_SLICE_BYTES)) {
        let mut guard = shared.core.lock();
        let core = &mut *guard;
        // The frame that will list these blocks goes behind data that can't be taken back: it must have its room.
        core.ensure_log_room(slice.len() as u64 / (BLOCK_BYTES as u64 / 4) + 8, temperature == Temperature::Survivor)?;
        let sequence = core.log.sequence();
        core.writer.append(temperature, slice, sequence, &shared.data, &mut core.table, pieces)?;
    }
    Ok(())
}

/// The bytes of several buffers, within the limit of one call.
pub fn total_len(bufs: &[IoSlice<'_>]) -> Result<u64> {
    let total: u64 = bufs.iter().map(|buf| buf.len() as u64).sum();
    if total > MAX_WRITE_BYTES {
        return Err(too_big(format!("{total} bytes in one call; the limit is {MAX_WRITE_BYTES}")));
    }
    Ok(total)
}

/// Checks that a file of `len` bytes may grow by `added`.
pub fn check_growth(len: u64, added: u64) -> Result<()> {
    match len.checked_add(added) {
        Some(sum) if sum <= MAX_FILE_SIZE_BYTES => Ok(()),
        _ => Err(too_big(format!("{len} + {added} bytes; the largest file has {MAX_FILE_SIZE_BYTES}"))),
    }
}

/// Checks that an offset is not behind the end.
pub fn check_offset(offset: u64, len: u64) -> Result<()> {
    if offset > len {
        return Err(out_of_range(format!("offset {offset} lies behind the end, {len}")));
    }
    Ok(())
}

/// Checks that a range lies in the file.
pub fn check_range(offset: u64, range_len: u64, len: u64) -> Result<()> {
    match offset.checked_add(range_len) {
        Some(end) if end <= len => Ok(()),
        _ => Err(out_of_range(format!("{range_len} bytes from {offset} on; the file has {len}"))),
    }
}

/// The changes of a write at `offset`: what lies inside the file is replaced, a gap becomes a hole, the rest is appended.
pub fn plan_write(len: u64, offset: u64, mut pieces: Pieces) -> Changes {
    let mut changes = Changes::new();
    let total: u64 = pieces.iter().map(|p| p.len as u64).sum();
    let inside = len.saturating_sub(offset).min(total);
    let outside = split_pieces(&mut pieces, inside);
    if !pieces.is_empty() {
        changes.push(Change::Replace { offset, pieces });
    }
    if offset > len {
        changes.push(Change::InsertHole { offset: len, len: offset - len });
    }
    if !outside.is_empty() {
        changes.push(Change::Insert { offset: offset + inside, pieces: outside });
    }
    changes
}

/// Cuts the pieces behind their first `at` bytes; returns the rest.
fn split_pieces(pieces: &mut Pieces, at: u64) -> Pieces {
    let mut left = at;
    for index in 0..pieces.len() {
        let piece = pieces[index];
        if left >= piece.len as u64 {
            left -= piece.len as u64;
            continue;
        }
        let mut rest: Pieces = pieces[index..].into();
        let cut = left as u32;
        rest[0] = Piece { address: piece.address.advance(left), len: piece.len - cut };
        pieces.truncate(index);
        if cut > 0 {
            pieces.push(Piece { address: piece.address, len: cut });
        }
        return rest;
    }
    Pieces::new()
}

fn too_big(text: String) -> Error {
    Error::new(ErrorKind::TooBig, text)
}

/// An offset or range outside the file.
pub fn out_of_range(text: String) -> Error {
    Error::new(ErrorKind::OutOfRange, text)
}
