//! Snapshots: the state after one operation, held for as long as somebody reads it.
//!
//! A snapshot holds roots, not locks: writers, checkpoints and collections go on, and copy what it still sees. It costs
//! O(1) to take of a file and O(files) of a space. Segments and pages that it sees are not used again until it is
//! dropped; the statistics show how much that is. After the space is closed it answers `Closed`.

use super::core::Core;
use super::cursor::ExtentCursor;
use super::read::ReadPlan;
use super::shared::{SpaceHandle, no_such_file};
use super::view::{self, ExtentInfo};
use crate::Result;
use crate::address::Tag;
use crate::tree::FlexTree;
use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::sync::Arc;

/// A name in the catalog and what it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileEntry {
    /// The name.
    pub name: Vec<u8>,
    /// The file's number.
    pub id: u64,
    /// Size in bytes.
    pub size: u64,
    /// Number of extents.
    pub extents: u64,
}

/// Keeps a sequence number in the list of held snapshots.
pub(super) struct Hold {
    space: Arc<SpaceHandle>,
    sequence: u64,
}

impl Hold {
    fn new(space: &Arc<SpaceHandle>, core: &mut Core) -> Arc<Hold> {
        let sequence = core.log.sequence();
        core.snapshots.add(sequence);
        Arc::new(Hold { space: space.clone(), sequence })
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        if !self.space.is_forked() {
            self.space.core.lock().snapshots.remove(self.sequence);
        }
    }
}

/// One file as it was. Clones share it; any thread may use them.
#[derive(Clone)]
pub struct FileSnapshot {
    hold: Arc<Hold>,
    tree: FlexTree,
}

impl FileSnapshot {
    pub(super) fn new(space: &Arc<SpaceHandle>, core: &mut Core, tree: FlexTree) -> FileSnapshot {
        FileSnapshot { hold: Hold::new(space, core), tree }
    }

    pub(super) fn space(&self) -> &Arc<SpaceHandle> {
        &self.hold.space
    }

    pub(super) fn tree(&self) -> &FlexTree {
        &self.tree
    }

    /// The number of the last operation that it shows.
    pub fn sequence(&self) -> u64 {
        self.hold.sequence
    }

    /// Size in bytes.
    pub fn size(&self) -> u64 {
        self.tree.len()
    }

    /// Number of extents.
    pub fn extent_count(&self) -> u64 {
        self.tree.extent_count()
    }

    /// As `FlexFile::read`.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let space = self.space();
        let _entered = space.enter()?;
        ReadPlan::new(space, &self.tree, offset, buf.len() as u64)?.read(buf)
    }

    /// As `FlexFile::read_vectored`.
    pub fn read_vectored(&self, offset: u64, bufs: &mut [IoSliceMut<'_>]) -> Result<usize> {
        let space = self.space();
        let _entered = space.enter()?;
        let total = bufs.iter().map(|buf| buf.len() as u64).sum();
        ReadPlan::new(space, &self.tree, offset, total)?.read_vectored(bufs)
    }

    /// As `FlexFile::tag`.
    pub fn tag(&self, offset: u64) -> Result<Tag> {
        let _entered = self.space().enter()?;
        view::tag_at(self.space(), &self.tree, offset)
    }

    /// As `FlexFile::next_tagged`.
    pub fn next_tagged(&self, offset: u64) -> Result<Option<(u64, Tag)>> {
        let _entered = self.space().enter()?;
        self.tree.tagged_at_or_after(&self.space().pages, offset)
    }

    /// As `FlexFile::prev_tagged`.
    pub fn prev_tagged(&self, offset: u64) -> Result<Option<(u64, Tag)>> {
        let _entered = self.space().enter()?;
        self.tree.tagged_at_or_before(&self.space().pages, offset)
    }

    /// As `FlexFile::read_extent`.
    pub fn read_extent(&self, offset: u64, buf: &mut [u8]) -> Result<(ExtentInfo, usize)> {
        let space = self.space();
        let _entered = space.enter()?;
        let (extent, plan) = view::plan_extent(space, &self.tree, offset, buf.len())?;
        Ok((extent, plan.read(buf)?))
    }

    /// As `FlexFile::next_data`.
    pub fn next_data(&self, offset: u64) -> Result<Option<u64>> {
        let _entered = self.space().enter()?;
        self.tree.next_mapped(&self.space().pages, offset)
    }

    /// As `FlexFile::next_hole`.
    pub fn next_hole(&self, offset: u64) -> Result<Option<u64>> {
        let _entered = self.space().enter()?;
        view::next_hole(self.space(), &self.tree, offset)
    }

    /// A cursor over the extents, on the one that covers `offset`.
    pub fn cursor(&self, offset: u64) -> Result<ExtentCursor> {
        ExtentCursor::new(self.clone(), offset)
    }
}

/// All files of a space as they were. Clones share it; any thread may use them.
#[derive(Clone)]
pub struct SpaceSnapshot {
    hold: Arc<Hold>,
    files: Arc<BTreeMap<Vec<u8>, (u64, FlexTree)>>,
}

impl SpaceSnapshot {
    pub(super) fn new(space: &Arc<SpaceHandle>, core: &mut Core) -> SpaceSnapshot {
        let files = core.files.iter();
        let files = files.map(|(name, file)| (name.clone(), (file.id.0, file.tree.read().clone()))).collect();
        SpaceSnapshot { hold: Hold::new(space, core), files: Arc::new(files) }
    }

    pub(super) fn trees(&self) -> impl Iterator<Item = (&Vec<u8>, &FlexTree)> {
        self.files.iter().map(|(name, (_, tree))| (name, tree))
    }

    /// The number of the last operation that it shows.
    pub fn sequence(&self) -> u64 {
        self.hold.sequence
    }

    /// The files, by name.
    pub fn list_files(&self) -> Vec<FileEntry> {
        let files = self.files.iter();
        files
            .map(|(name, (id, tree))| FileEntry {
                name: name.clone(),
                id: *id,
                size: tree.len(),
                extents: tree.extent_count(),
            })
            .collect()
    }

    /// One of its files.
    pub fn open_file(&self, name: &[u8]) -> Result<FileSnapshot> {
        let _entered = self.hold.space.enter()?;
        let (_, tree) = self.files.get(name).ok_or_else(|| no_such_file(name))?;
        Ok(FileSnapshot { hold: self.hold.clone(), tree: tree.clone() })
    }
}
