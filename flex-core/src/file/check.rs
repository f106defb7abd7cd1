//! Checking a space: every invariant that can be read off the disk and the trees.
//!
//! 1. Each tree holds the invariants of `tree`, and its pages have sound checksums, are used, and belong to one tree only.
//! 2. Each extent lies in the data blocks of one segment in use, and is at most a 1/32 segment long.
//! 3. The live bytes of each segment are the sum of the extents in it.
//! 4. Each block that an extent touches has its checksum on disk.
//! 5. Used pages are those of trees and catalog, and those that wait to become free: none is lost.
//!
//! It looks at a snapshot while others go on, but checkpoints wait while it walks the trees; 3 and 5 are compared only when
//! nothing changed meanwhile.

use super::callbacks::Callback;
use super::geometry::SegmentId;
use super::page_store::FIRST_PAGE;
use super::segment_table::{SegmentEntry, SegmentState};
use super::shared::SpaceHandle;
use super::snapshot::SpaceSnapshot;
use crate::address::PageId;
use crate::limits::{BLOCK_BYTES, PAGE_BYTES};
use crate::stats::{CheckReport, Problem, Progress};
use crate::tree::{Extent, FlexTree};
use crate::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

struct Check<'a> {
    space: &'a Arc<SpaceHandle>,
    snapshot: SpaceSnapshot,
    entries: Vec<SegmentEntry>,
    /// Nothing waits to be accounted for.
    settled: bool,
    sequence: u64,
    /// Live bytes and touched blocks by segment.
    segments: BTreeMap<SegmentId, Touched>,
    pages: HashSet<PageId>,
    report: CheckReport,
}

struct Touched {
    live: u64,
    blocks: Vec<u64>,
}

/// Checks a space. `progress` returns false to stop.
pub fn check(space: &Arc<SpaceHandle>, progress: &mut dyn FnMut(Progress) -> bool) -> Result<CheckReport> {
    if !space.options.read_only {
        space.flush()?;
        while space.reap()? {}
    }
    // A checkpoint or accounting under way has parts of the state in its hands, and moves pages that the snapshot's nodes
    // name without being read from them: neither goes on until the trees are walked.
    let quiet = space.checkpoint_lock.lock();
    let mut check = {
        let mut core = space.core.lock();
        Check {
            space,
            snapshot: SpaceSnapshot::new(space, &mut core),
            entries: core.table.entries().to_vec(),
            settled: core.drops.is_empty() && !core.checkpoint_running,
            sequence: core.log.sequence(),
            segments: BTreeMap::new(),
            pages: HashSet::new(),
            report: CheckReport::default(),
        }
    };
    let snapshot = check.snapshot.clone();
    for (name, tree) in snapshot.trees() {
        check.tree(name, tree)?;
    }
    check.live_bytes();
    check.used_pages();
    drop(quiet);
    check.blocks(progress)?;
    Ok(check.report)
}

impl Check<'_> {
    fn problem(&mut self, file: &str, offset: u64, text: String) {
        self.report.problems.push(Problem { file: file.into(), offset, text });
    }

    /// Notes damage as a problem; other errors end the check.
    fn note(&mut self, error: Error) -> Result<()> {
        if error.kind() != ErrorKind::Corruption {
            return Err(error);
        }
        let file = error.path().and_then(|path| path.file_name()).map(|name| name.to_string_lossy().into_owned());
        self.problem(&file.unwrap_or_else(|| "TREE".into()), error.offset().unwrap_or(0), error.message().into());
        Ok(())
    }

    fn tree(&mut self, name: &[u8], tree: &FlexTree) -> Result<()> {
        let space = self.space;
        self.report.files += 1;
        let source = &space.pages;
        if let Err(error) = tree.check(source) {
            let named = Error::new(error.kind(), format!("file \"{}\": {}", name.escape_ascii(), error.message()));
            let named = error.path().map_or(named.clone(), |path| named.clone().at_path(path));
            return self.note(named.at_offset(error.offset().unwrap_or(0)));
        }
        let mut pages = Vec::new();
        if let Err(error) = tree.visit_pages(source, &mut |page| pages.push(page)) {
            self.note(error)?;
        }
        for page in pages {
            self.report.pages_verified += 1;
            let at = page.0 * PAGE_BYTES as u64;
            if !self.pages.insert(page) {
                self.problem("TREE", at, format!("page {} belongs to two trees", page.0));
            }
            if !source.is_used(page) {
                self.problem("TREE", at, format!("page {} is used, but marked free", page.0));
            }
        }
        let mut extents = Vec::new();
        let walked = tree.for_each_in(source, 0, tree.len(), &mut |extent| {
            extents.push(extent);
            ControlFlow::Continue(())
        });
        for extent in extents {
            self.extent(&extent);
        }
        walked.or_else(|error| self.note(error))
    }

    fn extent(&mut self, extent: &Extent) {
        self.report.extents += 1;
        if extent.is_hole() {
            return;
        }
        let geometry = self.space.data.geometry;
        let (segment, offset) = geometry.locate(extent.address);
        let end = offset as u64 + extent.len;
        let used = self
            .entries
            .get(segment.0 as usize)
            .is_some_and(|entry| matches!(entry.state, SegmentState::Open | SegmentState::Sealed));
        if !used || end > geometry.data_bytes() as u64 || extent.len > geometry.max_extent_bytes() as u64 {
            let text = format!("{} bytes of a file lie outside the data of a segment in use", extent.len);
            return self.problem("DATA", extent.address.0, text);
        }
        let words = (geometry.data_blocks() as usize).div_ceil(64);
        let touched = self.segments.entry(segment).or_insert_with(|| Touched { live: 0, blocks: vec![0; words] });
        touched.live += extent.len;
        for block in offset as usize / BLOCK_BYTES..=(end as usize - 1) / BLOCK_BYTES {
            touched.blocks[block / 64] |= 1 << (block % 64);
        }
    }

    fn live_bytes(&mut self) {
        if !self.settled {
            return;
        }
        for index in 0..self.entries.len() {
            let (segment, entry) = (SegmentId(index as u32), self.entries[index]);
            let found = self.segments.get(&segment).map_or(0, |touched| touched.live);
            if found != entry.live as u64 {
                let text = format!("segment {index} has {found} live bytes, but {} are recorded", entry.live);
                self.problem("DATA", self.space.data.geometry.start_of(segment), text);
            }
        }
    }

    fn used_pages(&mut self) {
        let space = self.space;
        let (known, waiting) = {
            let core = space.core.lock();
            let unchanged = core.log.sequence() == self.sequence && !core.checkpoint_running && self.settled;
            if !unchanged || core.snapshots.count() != 1 {
                return;
            }
            (space.pages.usage().0, core.released_pages.clone())
        };
        let catalog = space.catalog_run.lock().clone();
        let pages = self.pages.iter().chain(&waiting).chain(&catalog).collect::<HashSet<_>>();
        let expected = pages.len() as u64 + FIRST_PAGE + space.pages.quarantined();
        if known != expected {
            let text = format!("{known} pages are marked used, {expected} are");
            self.problem("TREE", 0, text);
        }
    }

    fn blocks(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<()> {
        let space = self.space;
        let total = self.segments.values().map(|touched| touched.live).sum();
        let mut done = 0;
        for (segment, touched) in std::mem::take(&mut self.segments) {
            if !tell(space, progress, Progress { done, total }) {
                return Err(Error::invalid("the check was cancelled"));
            }
            for block in 0..space.data.geometry.data_blocks() {
                if touched.blocks[block as usize / 64] >> (block % 64) & 1 == 0 {
                    continue;
                }
                match space.data.verify_block(segment, block) {
                    Ok(bytes) => self.report.bytes_verified += bytes,
                    Err(error) => self.note(error)?,
                }
            }
            done += touched.live;
        }
        tell(space, progress, Progress { done, total });
        Ok(())
    }
}

fn tell(space: &Arc<SpaceHandle>, progress: &mut dyn FnMut(Progress) -> bool, at: Progress) -> bool {
    let _inside = space.callbacks.enter(Callback::Progress);
    progress(at)
}
