//! A group: operations on several files that happen as one.
//!
//! It holds the files' writer locks and works on private trees, with its bytes written ahead; `commit` logs one frame
//! and swaps the trees in. Readers, snapshots and writers of other files go on meanwhile and see nothing of it before.
//! Dropping it undoes it; after a crash it is there whole or not at all.

use super::change::{Change, Pieces, apply_all};
use super::core::FileState;
use super::edit::{self, Changes, check_growth, check_offset, check_range, out_of_range, plan_write, total_len};
use super::flex_file::FlexFile;
use super::log_record::{Record, put_change};
use super::read::ReadPlan;
use super::segment_writer::Temperature;
use super::shared::SpaceHandle;
use super::view;
use crate::address::Tag;
use crate::codec::frame;
use crate::tree::{FlexTree, Released};
use crate::{Error, ErrorKind, Result};
use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::ThreadId;

/// See the module. One thread at a time; it may move between threads.
pub struct Group {
    space: Arc<SpaceHandle>,
    members: Vec<Member>,
    /// The thread that is known to hold the group; none before it has all its files.
    owner: Option<ThreadId>,
    released: Released,
    records: Vec<u8>,
    staged: Pieces,
    commit_word: Option<u64>,
    user_bytes: u64,
    dirty_nodes: u64,
}

struct Member {
    file: Arc<FileState>,
    tree: FlexTree,
}

impl Group {
    pub(super) fn begin(space: &Arc<SpaceHandle>, files: &[&FlexFile]) -> Result<Group> {
        let _entered = space.enter_to_write()?;
        let mut files: Vec<Arc<FileState>> = files.iter().map(|file| own(space, file)).collect::<Result<_>>()?;
        files.sort_by_key(|file| file.id);
        if files.windows(2).any(|pair| pair[0].id == pair[1].id) {
            return Err(Error::invalid("a group names a file twice"));
        }
        let mut group = Group {
            space: space.clone(),
            members: Vec::with_capacity(files.len()),
            owner: None,
            released: Released::default(),
            records: Vec::new(),
            staged: Pieces::new(),
            commit_word: None,
            user_bytes: 0,
            dirty_nodes: 0,
        };
        for file in files {
            file.writer.hold(|| space.may_wait_for_group())?;
            let tree = private_tree(space, &file);
            let removed = file.removed.load(Ordering::Acquire);
            group.members.push(Member { file, tree });
            if removed {
                return Err(Error::new(ErrorKind::NotFound, "a file of the group was removed"));
            }
        }
        group.note_owner();
        Ok(group)
    }

    /// A group may have been moved: the thread that changes it now is the one that must not wait for it.
    fn note_owner(&mut self) {
        let this = std::thread::current().id();
        if self.owner != Some(this) {
            let mut core = self.space.core.lock();
            core.remove_group_owner(self.owner);
            core.group_owners.push(this);
            self.owner = Some(this);
        }
    }

    /// The file's size, with the group's changes.
    pub fn size(&self, file: &FlexFile) -> Result<u64> {
        let _entered = self.space.enter()?;
        Ok(self.member(file)?.tree.len())
    }

    /// As `FlexFile::read`, with the group's changes.
    pub fn read(&self, file: &FlexFile, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let _entered = self.space.enter()?;
        ReadPlan::new(&self.space, &self.member(file)?.tree, offset, buf.len() as u64)?.read(buf)
    }

    /// As `FlexFile::tag`, with the group's changes.
    pub fn tag(&self, file: &FlexFile, offset: u64) -> Result<Tag> {
        let _entered = self.space.enter()?;
        view::tag_at(&self.space, &self.member(file)?.tree, offset)
    }

    /// As `FlexFile::write`.
    pub fn write(&mut self, file: &FlexFile, offset: u64, data: &[u8]) -> Result<()> {
        check_growth(offset, data.len() as u64)?;
        // An empty write does not extend the file, wherever it is.
        let plan =
            |len, pieces: Pieces| if pieces.is_empty() { Changes::new() } else { plan_write(len, offset, pieces) };
        self.edit(file, data, |len, pieces| Ok(plan(len, pieces)))
    }

    /// As `FlexFile::insert`.
    pub fn insert(&mut self, file: &FlexFile, offset: u64, data: &[u8]) -> Result<()> {
        let len = self.size(file)?;
        check_offset(offset, len)?;
        check_growth(len, data.len() as u64)?;
        let plan = |pieces: Pieces| (!pieces.is_empty()).then_some(Change::Insert { offset, pieces });
        self.edit(file, data, |_, pieces| Ok(plan(pieces).into_iter().collect()))
    }

    /// As `FlexFile::insert_hole`.
    pub fn insert_hole(&mut self, file: &FlexFile, offset: u64, len: u64) -> Result<()> {
        let size = self.size(file)?;
        check_offset(offset, size)?;
        check_growth(size, len)?;
        self.change(file, len, Change::InsertHole { offset, len })
    }

    /// As `FlexFile::collapse`.
    pub fn collapse(&mut self, file: &FlexFile, offset: u64, len: u64) -> Result<()> {
        check_range(offset, len, self.size(file)?)?;
        self.change(file, len, Change::Collapse { offset, len })
    }

    /// As `FlexFile::punch_hole`.
    pub fn punch_hole(&mut self, file: &FlexFile, offset: u64, len: u64) -> Result<()> {
        check_range(offset, len, self.size(file)?)?;
        self.change(file, len, Change::ReplaceHole { offset, len })
    }

    /// As `FlexFile::update`.
    pub fn update(&mut self, file: &FlexFile, offset: u64, old_len: u64, data: &[u8]) -> Result<()> {
        let len = self.size(file)?;
        check_range(offset, old_len, len)?;
        check_growth(len - old_len, data.len() as u64)?;
        let tag = if old_len > 0 { self.tag(file, offset)? } else { Tag::NONE };
        let remove = (old_len > 0).then_some(Change::Collapse { offset, len: old_len });
        let retag = (tag.is_some() && !data.is_empty()).then_some(Change::SetTag { offset, tag });
        self.edit(file, data, |_, pieces| {
            let insert = (!pieces.is_empty()).then_some(Change::Insert { offset, pieces });
            Ok(remove.into_iter().chain(insert).chain(retag).collect())
        })
    }

    /// As `FlexFile::truncate`.
    pub fn truncate(&mut self, file: &FlexFile, size: u64) -> Result<()> {
        let len = self.size(file)?;
        if size <= len {
            return self.collapse(file, size, len - size);
        }
        self.insert_hole(file, len, size - len)
    }

    /// As `FlexFile::set_tag`.
    pub fn set_tag(&mut self, file: &FlexFile, offset: u64, tag: Tag) -> Result<()> {
        check_range(offset, 1, self.size(file)?)?;
        self.change(file, 1, Change::SetTag { offset, tag })
    }

    /// A number that becomes the space's commit word with this commit, and is kept through reopening.
    pub fn set_commit_word(&mut self, word: u64) {
        self.commit_word = Some(word);
    }

    /// Makes the group's changes visible, all at once. On an error nothing of it happened.
    pub fn commit(mut self) -> Result<()> {
        let space = self.space.clone();
        let _entered = space.enter_to_write()?;
        if let Some(word) = self.commit_word.take() {
            Record::CommitWord(word).encode(&mut self.records);
            self.commit_word = Some(word);
        }
        if self.records.is_empty() {
            return Ok(());
        }
        let mut replaced = Vec::with_capacity(self.members.len());
        let due = {
            let mut core = space.core.lock();
            core.ensure_log_room(self.records.len() as u64, self.staged.is_empty())?;
            core.ensure_page_room(&space.pages, self.dirty_nodes, self.staged.is_empty())?;
            let records = &self.records;
            let sequence = core.append_frame(|out| out.extend_from_slice(records))?;
            for member in &mut self.members {
                member.tree.set_epoch(core.epoch);
                let mut tree = member.file.tree.write();
                replaced.push(std::mem::replace(&mut *tree, member.tree.clone()));
            }
            core.dirty_nodes += self.dirty_nodes;
            core.publish(&self.staged);
            self.staged.clear();
            core.absorb(std::mem::take(&mut self.released), sequence);
            core.counters.user_bytes += self.user_bytes;
            core.commit_word = self.commit_word.unwrap_or(core.commit_word);
            if core.log.waiting() >= crate::limits::LOG_HAND_OVER_BYTES {
                core.hand_over(&space.data)?;
            }
            core.due()
        };
        drop(replaced);
        drop(self);
        space.after_commit(due)
    }

    fn member(&self, file: &FlexFile) -> Result<&Member> {
        self.index(file).map(|index| &self.members[index])
    }

    fn index(&self, file: &FlexFile) -> Result<usize> {
        let file = own(&self.space, file)?;
        let found = self.members.binary_search_by_key(&file.id, |member| member.file.id);
        found.map_err(|_| Error::invalid("the file is not one of the group's"))
    }

    fn check_records(&self, more: u64) -> Result<()> {
        if self.records.len() as u64 + more + 64 > frame::MAX_PAYLOAD as u64 {
            return Err(Error::new(ErrorKind::TooBig, "the group has too many changes for one frame of the log"));
        }
        Ok(())
    }

    fn change(&mut self, file: &FlexFile, len: u64, change: Change) -> Result<()> {
        let space = self.space.clone();
        let _entered = space.enter_to_write()?;
        let index = self.index(file)?;
        self.note_owner();
        if len == 0 { Ok(()) } else { self.apply(index, &[change]) }
    }

    fn edit(&mut self, file: &FlexFile, data: &[u8], plan: impl FnOnce(u64, Pieces) -> Result<Changes>) -> Result<()> {
        let bufs = [IoSlice::new(data)];
        let total = total_len(&bufs)?;
        let space = self.space.clone();
        let _entered = space.enter_to_write()?;
        let index = self.index(file)?;
        self.note_owner();
        let mut pieces = Pieces::new();
        edit::stage(&space, &bufs, Temperature::New, None, &mut pieces)?;
        let changes = plan(self.members[index].tree.len(), pieces.clone());
        let result = changes.and_then(|changes| {
            let linked: usize = changes.iter().map(|change| change.pieces().len()).sum();
            if linked == 0 && !pieces.is_empty() {
                return Err(out_of_range("nothing to link".into()));
            }
            if changes.is_empty() { Ok(()) } else { self.apply(index, &changes) }
        });
        match result {
            Ok(()) => {
                self.staged.extend(pieces);
                self.user_bytes += total;
                Ok(())
            }
            Err(error) => {
                space.core.lock().unstage(&pieces);
                Err(error)
            }
        }
    }

    fn apply(&mut self, index: usize, changes: &[Change]) -> Result<()> {
        self.check_records(changes.iter().map(Change::record_bound).sum())?;
        let member = &mut self.members[index];
        apply_all(changes, &mut member.tree, &self.space.pages, &mut self.released)?;
        for change in changes {
            self.dirty_nodes += change.dirty_bound();
            put_change(&mut self.records, member.file.id, change);
        }
        Ok(())
    }
}

/// A clone of the file's tree, for the group that holds the file. Both are settled, so that until the group ends no
/// checkpoint has to change the one that readers see: the group accounts only for nodes that it replaced itself.
fn private_tree(space: &SpaceHandle, file: &FileState) -> FlexTree {
    let mut core = space.core.lock();
    let mut released = Released::default();
    let tree = {
        let mut tree = file.tree.write();
        tree.settle(&mut released);
        tree.clone()
    };
    let sequence = core.log.sequence();
    core.absorb(released, sequence);
    tree
}

/// The file's state, if it is one of this space.
fn own(space: &Arc<SpaceHandle>, file: &FlexFile) -> Result<Arc<FileState>> {
    if Arc::ptr_eq(&space.0, &file.space.0) {
        Ok(file.file.clone())
    } else {
        Err(Error::invalid("the file belongs to another space"))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if self.space.is_forked() {
            return;
        }
        {
            let mut core = self.space.core.lock();
            core.unstage(&self.staged);
            core.remove_group_owner(self.owner);
        }
        for member in &self.members {
            member.file.writer.release();
        }
    }
}
