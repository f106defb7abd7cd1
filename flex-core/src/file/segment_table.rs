//! Which segments are in use, how much of each is live, and when a free one may be used again.
//!
//! A segment is free, open, sealed or quarantined. It becomes quarantined when its last live byte goes, and free when
//! (a) the frame that freed it is durable, and recorded as such (see `logical_log`), (b) no snapshot from its life
//! `[birth, death)` is held, and
//! (c) no reader has it pinned. `birth` and `death` are sequence numbers, so that one old snapshot does not hold
//! what came and went after it.
//!
//! Live bytes are those that a published tree refers to. Staged bytes are written but not linked yet: they keep the
//! segment in use in memory, but are not persisted, so that a crash frees them.
//!
//! Plain data under the space's lock; no I/O.

use super::geometry::{Geometry, SegmentId};
use super::snapshots::SnapshotList;
use crate::address::PhysicalOffset;
use std::collections::BTreeSet;

/// What a segment is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentState {
    /// Can be written.
    Free,
    /// Is being written.
    Open,
    /// Is full, or at least not written any more.
    Sealed,
    /// Has no live byte, but may still be seen.
    Quarantined,
}

/// What is known of one segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentEntry {
    /// What it is doing.
    pub state: SegmentState,
    /// Bytes that published trees refer to.
    pub live: u32,
    /// Bytes written but not linked yet.
    pub staged: u32,
    /// Sequence number when it was opened.
    pub birth: u64,
    /// Sequence number when it was last appended to: its age.
    pub written: u64,
    /// Sequence number of the latest operation that it was needed before: one that took bytes of it out of a tree, or the
    /// one behind its sealing or the giving up of staged bytes. Dropped subtrees are accounted for late and out of order,
    /// so that the last release need not be the latest.
    pub needed: u64,
    /// Whether its blocks are given back to the file system (of a free one).
    pub punched: bool,
}

const FREE: SegmentEntry =
    SegmentEntry { state: SegmentState::Free, live: 0, staged: 0, birth: 0, written: 0, needed: 0, punched: true };

struct Quarantined {
    segment: SegmentId,
    birth: u64,
    death: u64,
}

/// All segments of a space.
pub struct SegmentTable {
    geometry: Geometry,
    entries: Vec<SegmentEntry>,
    free: BTreeSet<SegmentId>,
    quarantine: Vec<Quarantined>,
    live_bytes: u64,
    used: u64,
}

impl SegmentTable {
    /// A table over what a checkpoint recorded (empty for a new space).
    pub fn new(geometry: Geometry, mut entries: Vec<SegmentEntry>) -> SegmentTable {
        for entry in entries.iter_mut().filter(|e| e.state == SegmentState::Sealed && e.live == 0) {
            *entry = SegmentEntry { punched: false, ..FREE };
        }
        let numbered = || entries.iter().enumerate().map(|(i, e)| (SegmentId(i as u32), e));
        let free = numbered().filter(|(_, e)| e.state == SegmentState::Free).map(|(id, _)| id).collect();
        let live_bytes = entries.iter().map(|e| e.live as u64).sum();
        let used = entries.iter().filter(|e| matches!(e.state, SegmentState::Open | SegmentState::Sealed)).count();
        SegmentTable { geometry, entries, free, quarantine: Vec::new(), live_bytes, used: used as u64 }
    }

    /// The space's sizes.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// The entries, for a checkpoint or a walk.
    pub fn entries(&self) -> &[SegmentEntry] {
        &self.entries
    }

    /// One entry; a segment never used is free.
    pub fn entry(&self, segment: SegmentId) -> SegmentEntry {
        self.entries.get(segment.0 as usize).copied().unwrap_or(FREE)
    }

    /// Bytes that published trees refer to.
    pub fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// Segments open or sealed.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Segments that wait to become free.
    pub fn quarantined(&self) -> u64 {
        self.quarantine.len() as u64
    }

    /// Whether a segment waits for an operation behind `recorded` to be recorded.
    pub fn waits_for(&self, recorded: u64) -> bool {
        self.quarantine.iter().any(|q| q.death > recorded)
    }

    /// Segments that can be used again.
    pub fn free(&self) -> u64 {
        self.free.len() as u64
    }

    /// The segment that `open` should take; `None` when the address space is used up. With `keep_reserve` the last free
    /// segment that has its blocks is left for a collection.
    pub fn next_free(&self, keep_reserve: bool) -> Option<SegmentId> {
        let free = if keep_reserve {
            let reserve = self.reserve();
            self.free.iter().copied().find(|segment| Some(*segment) != reserve)
        } else {
            // A collection on a full disk has only what has its blocks.
            let ready = self.free.iter().find(|segment| !self.entries[segment.0 as usize].punched);
            ready.or(self.free.first()).copied()
        };
        let next = free.unwrap_or(self.beyond());
        (next.0 < self.geometry.max_segments()).then_some(next)
    }

    /// The last free segment that has its blocks.
    pub fn reserve(&self) -> Option<SegmentId> {
        self.free.iter().rev().copied().find(|segment| !self.entries[segment.0 as usize].punched)
    }

    /// Whether a segment that has its blocks is free beside the reserve.
    pub fn next_is_ready(&self) -> bool {
        self.free.iter().filter(|segment| !self.entries[segment.0 as usize].punched).count() > 1
    }

    /// The first segment behind all others.
    pub fn beyond(&self) -> SegmentId {
        SegmentId(self.entries.len() as u32)
    }

    /// Adds a free segment that has its blocks.
    pub fn add_reserve(&mut self, segment: SegmentId) {
        self.grow_to(segment);
        self.entries[segment.0 as usize].punched = false;
    }

    /// Takes a segment for writing.
    pub fn open(&mut self, segment: SegmentId, sequence: u64) {
        self.grow_to(segment);
        self.free.remove(&segment);
        let entry = &mut self.entries[segment.0 as usize];
        debug_assert!(entry.state == SegmentState::Free, "segment {} is {:?}", segment.0, entry.state);
        *entry = SegmentEntry { state: SegmentState::Open, birth: sequence, written: sequence, punched: false, ..FREE };
        self.used += 1;
    }

    /// Replay: the log says that this segment was written. What an earlier life left is gone by then.
    pub fn reopen(&mut self, segment: SegmentId, sequence: u64) {
        self.resurrect(segment, sequence);
        self.entries[segment.0 as usize].state = SegmentState::Open;
    }

    /// Replay: puts a free or waiting segment to use again, sealed.
    fn resurrect(&mut self, segment: SegmentId, sequence: u64) {
        self.grow_to(segment);
        let entry = &mut self.entries[segment.0 as usize];
        match entry.state {
            SegmentState::Open | SegmentState::Sealed => return,
            SegmentState::Free => drop(self.free.remove(&segment)),
            SegmentState::Quarantined => self.quarantine.retain(|q| q.segment != segment),
        }
        let (birth, written) = (sequence, sequence);
        *entry = SegmentEntry { state: SegmentState::Sealed, birth, written, punched: false, ..FREE };
        self.used += 1;
    }

    /// Ends the writing; a segment in which nothing is live or staged is quarantined at once. Its last blocks may not be in
    /// the log yet: it waits for the next frame, behind which they are.
    pub fn seal(&mut self, segment: SegmentId, sequence: u64) {
        let entry = &mut self.entries[segment.0 as usize];
        debug_assert!(entry.state == SegmentState::Open);
        entry.state = SegmentState::Sealed;
        entry.written = sequence;
        self.quarantine_if_empty(segment, sequence + 1);
    }

    /// Bytes were written and wait to be linked.
    pub fn stage(&mut self, address: PhysicalOffset, len: u32) {
        if let Some(entry) = self.entry_mut(address) {
            entry.staged += len;
        }
    }

    /// Staged bytes were linked by a published operation.
    pub fn publish(&mut self, address: PhysicalOffset, len: u32) {
        let Some(entry) = self.entry_mut(address) else { return };
        debug_assert!(entry.staged >= len, "{address:?}: {} staged, {len} published", entry.staged);
        entry.staged = entry.staged.saturating_sub(len);
        entry.live += len;
        self.live_bytes += len as u64;
    }

    /// Replay: bytes were linked.
    pub fn add_live(&mut self, address: PhysicalOffset, len: u32, sequence: u64) {
        let (segment, _) = self.geometry.locate(address);
        self.resurrect(segment, sequence);
        let entry = &mut self.entries[segment.0 as usize];
        entry.live = entry.live.saturating_add(len);
        self.live_bytes += len as u64;
    }

    /// Staged bytes will not be linked. As in `seal`, the next frame may be the one that names their blocks.
    pub fn unstage(&mut self, address: PhysicalOffset, len: u32, sequence: u64) {
        let Some(entry) = self.entry_mut(address) else { return };
        debug_assert!(entry.staged >= len, "{address:?}: {} staged, {len} given up", entry.staged);
        entry.staged = entry.staged.saturating_sub(len);
        self.quarantine_if_empty(self.geometry.locate(address).0, sequence + 1);
    }

    /// No published tree refers to these bytes any more, since operation `sequence`.
    pub fn release(&mut self, address: PhysicalOffset, len: u32, sequence: u64) {
        let Some(entry) = self.entry_mut(address) else { return };
        debug_assert!(entry.live >= len, "{address:?}: {} live, {len} released", entry.live);
        entry.live = entry.live.saturating_sub(len);
        self.live_bytes = self.live_bytes.saturating_sub(len as u64);
        self.quarantine_if_empty(self.geometry.locate(address).0, sequence);
    }

    /// Frees what waits no longer. Returns how many segments that were.
    pub fn settle(&mut self, recorded: u64, snapshots: &SnapshotList, pinned: impl Fn(SegmentId) -> bool) -> u64 {
        let before = self.quarantine.len();
        let (entries, free) = (&mut self.entries, &mut self.free);
        self.quarantine.retain(|q| {
            let waits = q.death > recorded || snapshots.any_in(q.birth, q.death) || pinned(q.segment);
            if !waits {
                let punched = entries[q.segment.0 as usize].punched;
                entries[q.segment.0 as usize] = SegmentEntry { punched, ..FREE };
                free.insert(q.segment);
            }
            waits
        });
        (before - self.quarantine.len()) as u64
    }

    /// Quarantined segments that a snapshot alone may still hold.
    pub fn pinned_by(&self, snapshots: &SnapshotList) -> u64 {
        self.quarantine.iter().filter(|q| snapshots.any_in(q.birth, q.death)).count() as u64
    }

    /// Free segments whose blocks are still allocated, beyond `keep` of them (the lowest stay).
    pub fn to_punch(&self, keep: usize) -> Vec<SegmentId> {
        self.free.iter().copied().filter(|s| !self.entries[s.0 as usize].punched).skip(keep).collect()
    }

    /// A segment's blocks were given back.
    pub fn note_punched(&mut self, segment: SegmentId) {
        if let Some(entry) = self.entries.get_mut(segment.0 as usize) {
            entry.punched = true;
        }
    }

    /// Forgets the free segments at the end, beyond `keep` free ones in all, and `keep` that have their blocks; returns how
    /// many segments remain.
    pub fn trim(&mut self, keep: usize) -> u32 {
        let mut with_blocks = self.free.iter().filter(|segment| !self.entries[segment.0 as usize].punched).count();
        while self.free.len() > keep
            && let Some(last) = self.entries.last()
            && last.state == SegmentState::Free
            && (last.punched || with_blocks > keep)
        {
            with_blocks -= usize::from(!last.punched);
            self.entries.pop();
            self.free.remove(&SegmentId(self.entries.len() as u32));
        }
        self.entries.len() as u32
    }

    fn entry_mut(&mut self, address: PhysicalOffset) -> Option<&mut SegmentEntry> {
        self.entries.get_mut(self.geometry.locate(address).0.0 as usize)
    }

    fn grow_to(&mut self, segment: SegmentId) {
        while self.entries.len() <= segment.0 as usize {
            self.free.insert(SegmentId(self.entries.len() as u32));
            self.entries.push(FREE);
        }
    }

    fn quarantine_if_empty(&mut self, segment: SegmentId, sequence: u64) {
        let entry = &mut self.entries[segment.0 as usize];
        entry.needed = entry.needed.max(sequence);
        if entry.state == SegmentState::Sealed && entry.live == 0 && entry.staged == 0 {
            entry.state = SegmentState::Quarantined;
            let death = entry.needed;
            self.quarantine.push(Quarantined { segment, birth: entry.birth, death });
            self.used -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MIN_SEGMENT_BYTES;

    fn table() -> (Geometry, SegmentTable) {
        let geometry = Geometry::new(MIN_SEGMENT_BYTES).unwrap();
        (geometry, SegmentTable::new(geometry, Vec::new()))
    }

    #[test]
    fn a_segment_waits_for_durability_snapshots_and_readers() {
        let (geometry, mut table) = table();
        let segment = table.next_free(false).unwrap();
        table.open(segment, 10);
        let address = geometry.address(segment, 0);
        table.stage(address, 100);
        table.publish(address, 100);
        table.seal(segment, 11);
        let mut snapshots = SnapshotList::default();
        snapshots.add(12);
        table.release(address, 100, 15);
        assert_eq!((table.used(), table.quarantined(), table.live_bytes()), (0, 1, 0));
        assert_eq!(table.settle(14, &snapshots, |_| false), 0, "the frame that freed it is not durable");
        assert_eq!(table.settle(15, &snapshots, |_| false), 0, "a snapshot sees it");
        snapshots.remove(12);
        snapshots.add(15);
        snapshots.add(9);
        assert_eq!(table.settle(15, &snapshots, |_| true), 0, "a reader has it pinned");
        assert_eq!(table.settle(15, &snapshots, |_| false), 1, "snapshots from before and after do not hold it");
        assert_eq!(table.next_free(false), Some(segment));
    }

    #[test]
    fn a_segment_lives_until_its_newest_release_in_whatever_order_they_are_accounted_for() {
        let (geometry, mut table) = table();
        let segment = SegmentId(0);
        table.open(segment, 1);
        let (first, second) = (geometry.address(segment, 0), geometry.address(segment, 100));
        for address in [first, second] {
            table.stage(address, 100);
            table.publish(address, 100);
        }
        table.seal(segment, 2);
        // Operation 10 dropped a subtree; before it was accounted for, operation 20 took the rest.
        table.release(second, 100, 20);
        table.release(first, 100, 10);
        let mut snapshots = SnapshotList::default();
        assert_eq!(
            table.settle(15, &snapshots, |_| false),
            0,
            "operation 20 is not durable: a recovery needs its bytes"
        );
        snapshots.add(15);
        assert_eq!(table.settle(20, &snapshots, |_| false), 0, "the snapshot sees what operation 20 took");
        snapshots.remove(15);
        assert_eq!(table.settle(20, &snapshots, |_| false), 1);
    }

    #[test]
    fn staged_bytes_keep_a_segment() {
        let (geometry, mut table) = table();
        table.open(SegmentId(0), 1);
        table.stage(geometry.address(SegmentId(0), 0), 10);
        table.seal(SegmentId(0), 1);
        assert_eq!(table.used(), 1);
        table.unstage(geometry.address(SegmentId(0), 0), 10, 2);
        assert_eq!((table.used(), table.quarantined()), (0, 1));
    }

    #[test]
    fn a_release_out_of_order_does_not_shorten_a_life() {
        let (geometry, mut table) = table();
        table.open(SegmentId(0), 1);
        table.stage(geometry.address(SegmentId(0), 0), 20);
        table.publish(geometry.address(SegmentId(0), 0), 20);
        table.seal(SegmentId(0), 2);
        // Operation 20 is accounted for at once, what operation 10 dropped only now.
        table.release(geometry.address(SegmentId(0), 10), 10, 20);
        table.release(geometry.address(SegmentId(0), 0), 10, 10);
        let mut snapshots = SnapshotList::default();
        assert_eq!(table.settle(19, &snapshots, |_| false), 0, "operation 20 is not durable");
        snapshots.add(15);
        assert_eq!(table.settle(20, &snapshots, |_| false), 0, "a snapshot sees what operation 20 took away");
        snapshots.remove(15);
        assert_eq!(table.settle(20, &snapshots, |_| false), 1);
    }

    #[test]
    fn trimming_keeps_a_reserve_and_the_middle() {
        let (_, mut table) = table();
        for id in 0..6 {
            table.open(SegmentId(id), 1);
        }
        for id in [0, 1, 4, 5] {
            table.seal(SegmentId(id), 2);
        }
        table.settle(3, &SnapshotList::default(), |_| false);
        assert_eq!(table.to_punch(1), [SegmentId(1), SegmentId(4), SegmentId(5)]);
        assert_eq!(table.trim(3), 5);
        assert_eq!(table.trim(0), 4);
        assert_eq!(table.free(), 2);
    }
}
