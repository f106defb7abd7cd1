//! Collection: live extents of mostly dead segments move together, so that whole segments become free.
//!
//! A round picks many victims by cost and benefit, `(1 - u) * age / (1 + u)` for utilisation u (Rosenblum and Ousterhout,
//! *The Design and Implementation of a Log-Structured File System*, 1991), and walks all trees once. It works in slices,
//! between which writers get in; a slice holds the writer lock of one file. Files that a group holds are left out.
//! A slice is one frame of the log, so that a crash leaves each extent at its old place or at its new one, both intact;
//! the old segment is used again only when that frame is durable.

use super::change::{Change, Piece, Pieces};
use super::core::{Counters, FileState};
use super::edit::{commit_changes, stage};
use super::geometry::SegmentId;
use super::log_record::FileId;
use super::read::ReadPlan;
use super::segment_table::SegmentState;
use super::segment_writer::Temperature;
use super::shared::Shared;
use crate::limits::{GC_SLICE_BYTES, GC_SLICE_EXTENTS};
use crate::options::LogLevel;
use crate::stats::GcReport;
use crate::{ErrorKind, Result};
use std::collections::HashSet;
use std::io::IoSlice;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most victims of one round.
const VICTIMS: usize = 32;
/// Most live data of one round's victims, in segments.
const VICTIM_SEGMENTS_LIVE: u64 = 8;

/// Live extents of victims in a stretch of one file, and where to go on.
struct Slice {
    found: Vec<(u64, Piece)>,
    next: Option<u64>,
}

impl Shared {
    /// One round; `thorough` takes victims of which only a tenth is dead. Ends in a sync where it moved something.
    pub fn collect(self: &Arc<Self>, thorough: bool) -> Result<GcReport> {
        self.collect_holding(None, thorough)
    }

    /// Rounds until nothing more comes of it.
    pub fn collect_all(self: &Arc<Self>) -> Result<GcReport> {
        let mut sum = GcReport::default();
        while self.reap()? {}
        loop {
            let round = self.collect(true)?;
            sum.bytes_copied += round.bytes_copied;
            sum.segments_freed += round.segments_freed;
            if round.segments_freed == 0 {
                break;
            }
        }
        self.sync_recorded()?;
        self.give_back()?;
        Ok(sum)
    }

    /// Frees room after `NoSpace`. Returns whether trying again is worthwhile.
    pub fn make_room(self: &Arc<Self>, held: Option<FileId>) -> Result<bool> {
        while self.reap()? {}
        self.sync_recorded()?;
        let ready = self.core.lock().table.next_is_ready();
        let report = if ready { GcReport::default() } else { self.collect_holding(held, true)? };
        self.sync_recorded()?;
        // All but the reserve: the open segment, `TREE` and the log want their blocks as well.
        self.give_back_but(1)?;
        Ok(ready || report.segments_freed > 0)
    }

    fn collect_holding(self: &Arc<Self>, held: Option<FileId>, thorough: bool) -> Result<GcReport> {
        // May be called with a file held: a collection never waits long for a file, so that this ends.
        let _alone = self.gc_lock.lock();
        let used_before = self.core.lock().table.used();
        let mut report = GcReport::default();
        // On a full disk there is room for the live bytes of one segment's worth of victims, which then make room for more.
        for most_live in [VICTIM_SEGMENTS_LIVE, 1] {
            match self.collect_round(held, thorough, most_live, &mut report) {
                Err(error) if error.kind() == ErrorKind::NoSpace => {
                    self.sync_recorded()?;
                    self.give_back_but(1)?;
                }
                result => {
                    result?;
                    break;
                }
            }
        }
        let mut core = self.core.lock();
        core.settle(&self.data);
        core.counters.gc_rounds += 1;
        let used = core.table.used();
        report.segments_freed = used_before.saturating_sub(used);
        core.gc_futile_at = if report.segments_freed == 0 { used } else { 0 };
        Ok(report)
    }

    fn collect_round(
        self: &Arc<Self>,
        held: Option<FileId>,
        thorough: bool,
        most_segments_live: u64,
        report: &mut GcReport,
    ) -> Result<()> {
        let victims = self.choose_victims(thorough, most_segments_live);
        if victims.is_empty() {
            return Ok(());
        }
        for file in self.all_files() {
            report.bytes_copied += self.collect_file(&file, &victims, held)?;
        }
        self.sync()
    }

    fn choose_victims(&self, thorough: bool, most_segments_live: u64) -> HashSet<SegmentId> {
        let core = self.core.lock();
        let (now, capacity) = (core.log.sequence(), self.data.geometry.data_bytes() as u64);
        let most_live = if thorough { capacity * 9 / 10 } else { capacity * 8 / 10 };
        let entries = core.table.entries().iter().enumerate();
        let mut candidates: Vec<(f64, SegmentId, u64)> = entries
            .filter(|(_, entry)| {
                entry.state == SegmentState::Sealed
                    && entry.staged == 0
                    && (entry.live as u64) < most_live
                    && !core.snapshots.any_in(entry.birth, now + 1)
            })
            .map(|(index, entry)| {
                let utilisation = entry.live as f64 / capacity as f64;
                let age = (now - entry.written.min(now) + 1) as f64;
                ((1.0 - utilisation) * age / (1.0 + utilisation), SegmentId(index as u32), entry.live as u64)
            })
            .collect();
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut live = 0;
        let victims = candidates.into_iter().take(VICTIMS).take_while(|(_, _, victim_live)| {
            live += victim_live;
            live <= most_segments_live * capacity
        });
        victims.map(|(_, id, _)| id).collect()
    }

    fn collect_file(
        self: &Arc<Self>,
        file: &FileState,
        victims: &HashSet<SegmentId>,
        held: Option<FileId>,
    ) -> Result<u64> {
        let (mut at, mut copied) = (0, 0);
        loop {
            let guard = if held == Some(file.id) { None } else { file.writer.lock_between_operations() };
            if (guard.is_none() && held != Some(file.id)) || file.removed.load(Ordering::Acquire) {
                return Ok(copied);
            }
            let slice = self.find_slice(file, at, victims)?;
            copied += self.move_slice(file, slice.found)?;
            match slice.next {
                Some(next) => at = next,
                None => return Ok(copied),
            }
        }
    }

    fn find_slice(&self, file: &FileState, at: u64, victims: &HashSet<SegmentId>) -> Result<Slice> {
        let tree = file.tree.read();
        let (mut found, mut seen, mut bytes, mut next) = (Vec::new(), 0, 0, None);
        let len = tree.len();
        if at >= len {
            return Ok(Slice { found, next });
        }
        tree.for_each_in(&self.pages, at, len - at, &mut |extent| {
            seen += 1;
            if !extent.is_hole() && victims.contains(&self.data.geometry.locate(extent.address).0) {
                bytes += extent.len;
                found.push((extent.offset, Piece { address: extent.address, len: extent.len as u32 }));
            }
            if seen >= GC_SLICE_EXTENTS || bytes >= GC_SLICE_BYTES {
                next = Some(extent.offset + extent.len);
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        Ok(Slice { found, next: next.filter(|next| *next < len) })
    }

    /// Copies extents and links the copies, as one frame. The caller holds the file's writer lock.
    fn move_slice(self: &Arc<Self>, file: &FileState, found: Vec<(u64, Piece)>) -> Result<u64> {
        let mut staged = Pieces::new();
        let mut changes = Vec::with_capacity(found.len());
        let mut buf = Vec::new();
        let mut result = Ok(());
        for (offset, piece) in found {
            buf.resize(piece.len as usize, 0);
            match self.data.read(piece, &mut buf) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    self.say(LogLevel::Error, &format!("collection leaves a damaged extent where it is: {error}"));
                    continue;
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
            let mut pieces = Pieces::new();
            result = stage(self, &[IoSlice::new(&buf)], Temperature::Survivor, None, &mut pieces);
            if result.is_err() {
                break;
            }
            staged.extend(pieces.iter().copied());
            changes.push(Change::Replace { offset, pieces });
        }
        let copied = staged.iter().map(|piece| piece.len as u64).sum();
        let committed = if changes.is_empty() {
            Ok(())
        } else {
            let count = |counters: &mut Counters| counters.gc_bytes += copied;
            commit_changes(self, file, &changes, &mut staged, true, count).map(|_| ())
        };
        if !staged.is_empty() {
            self.core.lock().unstage(&staged);
        }
        result.and(committed).map(|()| copied)
    }

    /// Rewrites a range of a file in as few extents as possible; returns the bytes rewritten.
    pub fn defrag(self: &Arc<Self>, file: &FileState, offset: u64, len: u64) -> Result<u64> {
        let (mut at, mut rewritten) = (offset, 0);
        let end = offset.saturating_add(len);
        loop {
            let guard = file.writer.lock(|| self.may_wait_for_group())?;
            let size = file.tree.read().len().min(end);
            if at >= size || file.removed.load(Ordering::Acquire) {
                return Ok(rewritten);
            }
            let step = DEFRAG_SLICE_BYTES.min(size - at);
            rewritten += self.defrag_slice(file, at, step)?;
            at += step;
            drop(guard);
        }
    }

    fn defrag_slice(self: &Arc<Self>, file: &FileState, at: u64, len: u64) -> Result<u64> {
        let mut runs: Vec<(u64, u64, u64)> = Vec::new();
        let max_extent = self.data.geometry.max_extent_bytes() as u64;
        file.tree.read().for_each_in(&self.pages, at, len, &mut |extent| {
            if !extent.is_hole() {
                match runs.last_mut() {
                    Some((start, run_len, extents)) if *start + *run_len == extent.offset => {
                        *run_len += extent.len;
                        *extents += 1;
                    }
                    _ => runs.push((extent.offset, extent.len, 1)),
                }
            }
            ControlFlow::Continue(())
        })?;
        let mut rewritten = 0;
        // A run that could lie in one extent more than it has to is left alone: the cut at a segment's end costs one.
        for (start, run_len, _) in runs.into_iter().filter(|(_, len, extents)| *extents > len.div_ceil(max_extent) + 1)
        {
            let mut buf = vec![0; run_len as usize];
            ReadPlan::new(self, &file.tree.read(), start, run_len)?.read(&mut buf)?;
            let mut pieces = Pieces::new();
            stage(self, &[IoSlice::new(&buf)], Temperature::Survivor, Some(file.id), &mut pieces)?;
            let mut staged = pieces.clone();
            let count = |counters: &mut Counters| counters.gc_bytes += run_len;
            let change = Change::Replace { offset: start, pieces };
            let result = commit_changes(self, file, &[change], &mut staged, false, count);
            if !staged.is_empty() {
                self.core.lock().unstage(&staged);
            }
            result?;
            rewritten += run_len;
        }
        Ok(rewritten)
    }
}

/// Bytes that one slice of a defragmentation rewrites.
const DEFRAG_SLICE_BYTES: u64 = 4 << 20;
