//! What a disk may hold after the power went: images of a file system in memory.
//!
//! Terms: a *sector* is 512 aligned bytes, and the only unit that is written as a whole. A change is *pending* until its
//! file (contents, length, reservations) or directory (names) is synced.
//!
//! What holds in every image, and is tested:
//! 1. What was synced and not changed since is there.
//! 2. A byte that differs from the durable one lies in a sector that a pending change touches, and the whole sector is as it
//!    was after some prefix of the pending writes and punches of it (`TornLast` leaves one out), as far as the length goes.
//! 3. The length is the durable one, or one that the file had since; a cut that counts for it has zeroed what it cut off.
//!    A torn write may have extended the file over a part of what it wrote.
//! 4. A directory's names are as after some prefix of its pending changes; a rename happens whole or not at all.
//!
//! Between files, and between contents, lengths and names, there is no order: the kernel writes back as it likes.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::inode::{Change, FileState, Inode, Pending, Usage};
use super::names::{Dir, Entries, Names, Node, ROOT};
use super::pages::{PAGE, Pages};

/// What the device writes as a whole.
pub const SECTOR: u64 = 512;

/// What survives of the pending changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CrashKind {
    /// Nothing.
    SyncedOnly,
    /// Of every sector some prefix of the changes to it, of every file one of its lengths, of every directory some prefix of
    /// its changes, all chosen at random.
    RandomSectors,
    /// Everything, but of the last write of the whole file system only some sectors.
    TornLast,
    /// Everything but changes of length: every file has its durable length.
    LostLength,
    /// Everything but changes of names: files that were created are gone, renamed ones have their old names.
    LostNames,
    /// Everything. (After a kill without a loss of power the changes are still pending: that is
    /// [`deep_copy`](super::MemFileSystem::deep_copy).)
    AllKept,
}

impl CrashKind {
    /// All kinds, for tests that try every one.
    pub const ALL: [CrashKind; 6] = [
        CrashKind::SyncedOnly,
        CrashKind::RandomSectors,
        CrashKind::TornLast,
        CrashKind::LostLength,
        CrashKind::LostNames,
        CrashKind::AllKept,
    ];
}

/// The image of a whole file system; everything in it is durable. The caller holds off changes meanwhile.
pub(super) fn image(names: &Names, seed: u64, kind: CrashKind, usage: &Arc<Usage>) -> Names {
    let mut chance = Chance(seed);
    let last_write = if kind == CrashKind::TornLast { last_write(names) } else { None };
    let mut chosen: Vec<Entries> = names.dirs.iter().map(|dir| surviving_names(dir, kind, &mut chance)).collect();
    empty_lost_dirs(&mut chosen);
    let mut inodes = Copied::new(usage);
    let dirs = chosen.iter().map(|entries| {
        let copy = |(name, node): (&std::ffi::OsString, &Node)| {
            let make = |state: &FileState| FileState::durable(surviving_bytes(state, kind, last_write, &mut chance));
            (name.clone(), inodes.copy(node, make))
        };
        Dir::durable(entries.iter().map(copy).collect())
    });
    Names { dirs: dirs.collect() }
}

/// Takes the names out of directories whose own name was lost, so that their files occupy nothing.
fn empty_lost_dirs(chosen: &mut [Entries]) {
    let mut found = vec![false; chosen.len()];
    let mut queue = vec![ROOT];
    while let Some(dir) = queue.pop() {
        found[dir] = true;
        queue.extend(chosen[dir].values().filter_map(|node| match node {
            Node::Dir(dir) => Some(*dir),
            Node::File(_) => None,
        }));
    }
    chosen.iter_mut().zip(found).filter(|(_, found)| !found).for_each(|(entries, _)| entries.clear());
}

/// An independent file system in the same state, pending changes included.
pub(super) fn deep_copy(names: &Names, usage: &Arc<Usage>) -> Names {
    let mut inodes = Copied::new(usage);
    let mut copy = |node: &Node| inodes.copy(node, FileState::clone);
    let dirs = names.dirs.iter().map(|dir| {
        let mut copy_all = |entries: &Entries| entries.iter().map(|(name, node)| (name.clone(), copy(node))).collect();
        let (live, durable) = (copy_all(&dir.live), copy_all(&dir.durable));
        let pending = dir.pending.iter().map(|change| change.map_node(&mut copy)).collect();
        Dir { live, durable, pending }
    });
    Names { dirs: dirs.collect() }
}

impl super::names::NameChange {
    fn map_node(&self, copy: &mut impl FnMut(&Node) -> Node) -> Self {
        match self {
            Self::Add(name, node) => Self::Add(name.clone(), copy(node)),
            other => other.clone(),
        }
    }
}

/// Copies each file once, however many names lead to it.
struct Copied<'a> {
    usage: &'a Arc<Usage>,
    done: HashMap<*const Inode, Arc<Inode>>,
}

impl<'a> Copied<'a> {
    fn new(usage: &'a Arc<Usage>) -> Copied<'a> {
        Copied { usage, done: HashMap::new() }
    }

    fn copy(&mut self, node: &Node, make: impl FnOnce(&FileState) -> FileState) -> Node {
        match node {
            Node::Dir(dir) => Node::Dir(*dir),
            Node::File(inode) => {
                let new = || Inode::new(make(&inode.state.lock()), self.usage.clone());
                Node::File(self.done.entry(Arc::as_ptr(inode)).or_insert_with(new).clone())
            }
        }
    }
}

fn surviving_names(dir: &Dir, kind: CrashKind, chance: &mut Chance) -> Entries {
    match kind {
        CrashKind::SyncedOnly | CrashKind::LostNames => dir.durable.clone(),
        CrashKind::TornLast | CrashKind::LostLength | CrashKind::AllKept => dir.live.clone(),
        CrashKind::RandomSectors => {
            let mut entries = dir.durable.clone();
            let kept = chance.up_to(dir.pending.len());
            dir.pending[..kept].iter().for_each(|change| change.apply(&mut entries));
            entries
        }
    }
}

/// The stamp of the last write that is pending in a file that still has a name.
fn last_write(names: &Names) -> Option<u64> {
    let files = names.dirs.iter().flat_map(|dir| dir.live.values());
    let last_of = |node: &Node| match node {
        Node::Dir(_) => None,
        Node::File(inode) => {
            let state = inode.state.lock();
            let is_write = |pending: &&Pending| matches!(pending.change, Change::Write { .. });
            state.pending.iter().rev().find(is_write).map(|pending| pending.stamp)
        }
    };
    files.filter_map(last_of).max()
}

fn surviving_bytes(state: &FileState, kind: CrashKind, last_write: Option<u64>, chance: &mut Chance) -> Pages {
    match kind {
        CrashKind::SyncedOnly => state.durable.clone(),
        CrashKind::LostNames | CrashKind::AllKept => state.live.clone(),
        CrashKind::LostLength => without_length(state),
        CrashKind::TornLast => torn(state, last_write, chance),
        CrashKind::RandomSectors => random_sectors(state, chance),
    }
}

/// All writes and punches within the durable length. A cut that was lost has not zeroed anything either.
fn without_length(state: &FileState) -> Pages {
    let len = state.durable.len();
    if state.live.len() == len {
        return state.live.clone();
    }
    let mut pages = state.durable.clone();
    for Pending { change, .. } in &state.pending {
        if !matches!(change, Change::SetLen(_)) {
            change.apply(&mut pages);
        }
    }
    pages.set_len(len);
    pages
}

/// All changes, but of the write with the stamp `last_write` some sectors only: the first few, or any.
/// The length may or may not have grown over what was lost.
fn torn(state: &FileState, last_write: Option<u64>, chance: &mut Chance) -> Pages {
    let mut pages = state.durable.clone();
    for Pending { stamp, change } in &state.pending {
        match change {
            Change::Write { offset, bytes } if Some(*stamp) == last_write => {
                tear(&mut pages, *offset, bytes, chance);
            }
            _ => change.apply(&mut pages),
        }
    }
    pages
}

fn tear(pages: &mut Pages, offset: u64, bytes: &[u8], chance: &mut Chance) {
    let parts = sector_parts(offset, bytes.len());
    let in_order = chance.coin();
    // At least one sector is lost.
    let limit = chance.up_to(parts.len().saturating_sub(1));
    let lost = chance.up_to(parts.len() - 1);
    for (index, (at, part)) in parts.iter().enumerate() {
        let kept = if in_order { index < limit } else { index != lost && chance.coin() };
        if kept {
            pages.write(&bytes[part.clone()], *at);
        }
    }
    let end = offset + bytes.len() as u64;
    if chance.coin() && pages.len() < end {
        pages.set_len(end);
    }
}

/// Every touched sector after a random prefix of the writes and punches of it; the length after a random prefix of all
/// changes. Cuts and reservations go with the length: the file system's journal commits them together.
fn random_sectors(state: &FileState, chance: &mut Chance) -> Pages {
    let first_lost: BTreeMap<u64, usize> = touched_sectors(state)
        .into_iter()
        .map(|(sector, changes)| {
            let kept = chance.up_to(changes.len());
            (sector, changes.get(kept).copied().unwrap_or(usize::MAX))
        })
        .collect();
    let lengths_kept = chance.up_to(state.pending.len());
    let mut pages = state.durable.clone();
    let mut len = pages.len();
    for (index, Pending { change, .. }) in state.pending.iter().enumerate() {
        if index < lengths_kept {
            len = change.len_after(len);
        }
        let kept = |at: u64| first_lost.get(&(at / SECTOR)).is_some_and(|&first| index < first);
        match change {
            Change::Write { offset, bytes } => {
                let parts = sector_parts(*offset, bytes.len());
                parts.into_iter().filter(|(at, _)| kept(*at)).for_each(|(at, part)| pages.write(&bytes[part], at));
            }
            Change::Punch { offset, len } => {
                let (start, end) = (*offset, offset + len);
                for (&sector, _) in first_lost.range(start / SECTOR..end.div_ceil(SECTOR)) {
                    let from = start.max(sector * SECTOR);
                    if kept(from) {
                        pages.punch(from, end.min((sector + 1) * SECTOR) - from);
                    }
                }
            }
            Change::SetLen(_) | Change::Reserve { .. } if index < lengths_kept => change.apply(&mut pages),
            Change::SetLen(_) | Change::Reserve { .. } => {}
        }
    }
    pages.set_len(len);
    pages
}

/// The sectors that pending writes and punches touch, and the places of those in the list. Punches of nothing are left out,
/// so that a punch of a huge hole costs nothing.
fn touched_sectors(state: &FileState) -> BTreeMap<u64, Vec<usize>> {
    const PER_PAGE: u64 = PAGE / SECTOR;
    let mut touched: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (index, Pending { change, .. }) in state.pending.iter().enumerate() {
        match change {
            Change::Write { offset, bytes } => {
                for sector in sectors(*offset, bytes.len() as u64) {
                    touched.entry(sector).or_default().push(index);
                }
            }
            Change::Punch { offset, len } => {
                let range = sectors(*offset, *len);
                let pages = state.durable.existing(range.start / PER_PAGE..range.end.div_ceil(PER_PAGE));
                let on_disk = pages.flat_map(|page| page * PER_PAGE..(page + 1) * PER_PAGE);
                for sector in on_disk.filter(|sector| range.contains(sector)) {
                    touched.entry(sector).or_default();
                }
                touched.range_mut(range).for_each(|(_, changes)| changes.push(index));
            }
            Change::SetLen(_) | Change::Reserve { .. } => {}
        }
    }
    touched
}

/// The sectors that a range touches.
fn sectors(offset: u64, len: u64) -> Range<u64> {
    offset / SECTOR..(offset + len).div_ceil(SECTOR)
}

/// Cuts `len` bytes at `offset` at the sector borders: where in the file, and where in the buffer.
fn sector_parts(offset: u64, len: usize) -> Vec<(u64, Range<usize>)> {
    let end = offset + len as u64;
    let part = |sector: u64| {
        let (from, to) = (offset.max(sector * SECTOR), end.min((sector + 1) * SECTOR));
        (from, (from - offset) as usize..(to - offset) as usize)
    };
    sectors(offset, len as u64).map(part).collect()
}

/// Random numbers that depend on the seed alone (splitmix64).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    /// 0 to `largest`, both included.
    fn up_to(&mut self, largest: usize) -> usize {
        (self.next() % (largest as u64 + 1)) as usize
    }

    fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }
}
