//! FlexSpace: a directory of files with flexible address spaces, over one pool of segments, one log and one checkpoint.
//!
//! The directory holds `DATA` (segments), `TREE` (superblocks, catalog, tree nodes), `LOG.0` and `LOG.1` (the logical log)
//! and `LOCK`. One process has it open for writing, or several for reading. Handles are clones of one open space, and
//! may be used from any thread; every call happens as a whole.
//!
//! | what returned | survives the process | survives the machine |
//! |---|---|---|
//! | an operation, `Manual` or `Interval` | when it was handed over: `flush`, much waits, an idle second | after the next sync |
//! | an operation, `EveryCommit` | yes | yes |
//! | `flush` | yes | no |
//! | `sync`, `checkpoint`, `close` | yes | yes |
//!
//! In every case the state after reopening is that after some operation, with all before it and none behind it.

use super::check;
use super::core::{Core, FileState};
use super::flex_file::FlexFile;
use super::group::Group;
use super::log_record::{FileId, Record};
use super::open;
use super::shared::{Shared, SpaceHandle, no_such_file};
use super::snapshot::{FileEntry, SpaceSnapshot};
use super::writer_lock::WriterLock;
use crate::io::FileSystem;
use crate::io::os::OsFileSystem;
use crate::limits::MAX_NAME_BYTES;
use crate::options::SpaceOptions;
use crate::stats::{CheckReport, GcReport, Progress, SpaceStats};
use crate::tree::{FlexTree, Released};
use crate::{Error, ErrorKind, Result};
use parking_lot::RwLock;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A handle to an open space. Clones are handles to the same one; the last that goes closes it.
#[derive(Clone)]
pub struct FlexSpace {
    handle: Arc<SpaceHandle>,
}

impl FlexSpace {
    /// Opens the space in the directory `path`, which is created when it is missing (unless the options say otherwise).
    ///
    /// After a crash this replays the log. Errors: `NotFound`, `AlreadyExists` (exclusive), `Busy` (another process or
    /// handle has it), `Version`, `Corruption`, `InvalidArgument` (not a directory, not a space), `Io`, `NoSpace`.
    pub fn open(path: &Path, options: &SpaceOptions) -> Result<FlexSpace> {
        FlexSpace::open_with(Arc::new(OsFileSystem), path, options)
    }

    /// `open` on another file system.
    pub fn open_with(fs: Arc<dyn FileSystem>, path: &Path, options: &SpaceOptions) -> Result<FlexSpace> {
        let shared = Arc::new(open::open(fs, path, options)?);
        let handle = Arc::new(SpaceHandle(shared));
        if options.background && !options.read_only {
            handle.upkeep.start(handle.0.clone())?;
            handle.upkeep.note(handle.core.lock().due());
        }
        Ok(FlexSpace { handle })
    }

    pub(super) fn from_handle(handle: Arc<SpaceHandle>) -> FlexSpace {
        FlexSpace { handle }
    }

    /// Ends the space: waits for the calls inside, makes everything durable, writes a checkpoint, stops the background
    /// thread and releases the lock. Handles that remain answer `Closed`, and so do calls that wait for a group. From a
    /// callback of the space it answers `Busy`, and nothing is closed. After an error the space is closed all the
    /// same, and what was durable before is there when it is opened again.
    pub fn close(&self) -> Result<()> {
        self.handle.close()
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.handle.path
    }

    /// Creates an empty file. A name has 1 to 255 bytes, none of them zero.
    pub fn create_file(&self, name: &[u8]) -> Result<FlexFile> {
        let _entered = self.handle.enter_to_write()?;
        check_name(name)?;
        let (file, due) = {
            let mut core = self.handle.core.lock();
            check_free(&core, name)?;
            core.ensure_log_room(name.len() as u64 + 32, false)?;
            let id = FileId(core.next_file_id);
            core.append_frame(|out| Record::Create(id, name).encode(out))?;
            core.next_file_id += 1;
            let mut tree = FlexTree::new(super::recovery::tree_limits(&self.handle.data));
            tree.set_epoch(core.epoch);
            let file = Arc::new(file_state(id, tree));
            core.files.insert(name.to_vec(), file.clone());
            (file, core.due())
        };
        self.handle.after_commit(due)?;
        Ok(FlexFile { space: self.handle.clone(), file })
    }

    /// A handle to a file.
    pub fn open_file(&self, name: &[u8]) -> Result<FlexFile> {
        let _entered = self.handle.enter()?;
        let file = self.handle.find(name)?;
        Ok(FlexFile { space: self.handle.clone(), file })
    }

    /// The files, by name.
    pub fn list_files(&self) -> Result<Vec<FileEntry>> {
        let _entered = self.handle.enter()?;
        let core = self.handle.core.lock();
        let entry = |(name, file): (&Vec<u8>, &Arc<FileState>)| {
            let tree = file.tree.read();
            FileEntry { name: name.clone(), id: file.id.0, size: tree.len(), extents: tree.extent_count() }
        };
        Ok(core.files.iter().map(entry).collect())
    }

    /// Gives a file another name, which is free.
    pub fn rename_file(&self, from: &[u8], to: &[u8]) -> Result<()> {
        let _entered = self.handle.enter_to_write()?;
        check_name(to)?;
        let due = {
            let mut core = self.handle.core.lock();
            let id = core.files.get(from).ok_or_else(|| no_such_file(from))?.id;
            if from == to {
                return Ok(());
            }
            check_free(&core, to)?;
            core.ensure_log_room(to.len() as u64 + 32, false)?;
            core.append_frame(|out| Record::Rename(id, to).encode(out))?;
            if let Some(file) = core.files.remove(from) {
                core.files.insert(to.to_vec(), file);
            }
            core.due()
        };
        self.handle.after_commit(due)
    }

    /// Removes a file and gives its space back. Handles to it answer `NotFound` from now on; snapshots still read it.
    pub fn remove_file(&self, name: &[u8]) -> Result<()> {
        let _entered = self.handle.enter_to_write()?;
        let file = self.handle.find(name)?;
        let _writer = file.writer.lock(|| self.handle.may_wait_for_group())?;
        let due = {
            let mut core = self.handle.core.lock();
            if !core.files.get(name).is_some_and(|found| Arc::ptr_eq(found, &file)) {
                return Err(no_such_file(name));
            }
            core.ensure_log_room(32, true)?;
            let mut released = Released::default();
            let mut tree = file.tree.write();
            let len = tree.len();
            if len > 0 {
                tree.collapse(&self.handle.pages, 0, len, &mut released)?;
            }
            let sequence = core.append_frame(|out| Record::Remove(file.id).encode(out))?;
            file.removed.store(true, Ordering::Release);
            core.files.remove(name);
            core.absorb(released, sequence);
            core.due()
        };
        self.handle.after_commit(due)
    }

    /// Hands everything to the kernel, so that it survives the death of this process.
    pub fn flush(&self) -> Result<()> {
        let _entered = self.handle.enter_to_write()?;
        self.handle.flush()
    }

    /// Makes every operation that returned so far durable, so that it survives the death of the machine.
    pub fn sync(&self) -> Result<()> {
        let _entered = self.handle.enter_to_write()?;
        self.handle.sync()
    }

    /// Writes a checkpoint, so that opening has nothing to replay of what came before. The space writes them by itself.
    pub fn checkpoint(&self) -> Result<()> {
        let _entered = self.handle.enter_to_write()?;
        self.handle.checkpoint_now()
    }

    /// Collects mostly dead segments until nothing more comes of it. The space collects by itself.
    pub fn gc(&self) -> Result<GcReport> {
        let _entered = self.handle.enter_to_write()?;
        self.handle.collect_all()
    }

    /// Checks every invariant, reading all live data; `progress` returns false to stop.
    pub fn check(&self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<CheckReport> {
        let _entered = self.handle.enter()?;
        check::check(&self.handle, progress)
    }

    /// Counts and sizes at this moment.
    pub fn stats(&self) -> Result<SpaceStats> {
        let _entered = self.handle.enter()?;
        self.handle.stats()
    }

    /// All files as they are now, for as long as the snapshot is held.
    pub fn snapshot(&self) -> Result<SpaceSnapshot> {
        let _entered = self.handle.enter()?;
        let mut core = self.handle.core.lock();
        Ok(SpaceSnapshot::new(&self.handle, &mut core))
    }

    /// Begins a group over files of this space, and waits until no other writer is at them. A thread that holds a group
    /// already is answered `Busy` where it would have to wait for one.
    pub fn group(&self, files: &[&FlexFile]) -> Result<Group> {
        Group::begin(&self.handle, files)
    }

    /// The word of the last group that set one; 0 in a new space.
    pub fn commit_word(&self) -> Result<u64> {
        let _entered = self.handle.enter()?;
        Ok(self.handle.core.lock().commit_word)
    }
}

impl FlexFile {
    /// Rewrites a range so that it lies in as few extents as possible; returns the bytes rewritten. What lies behind the
    /// end of the file is left out.
    pub fn defrag(&self, offset: u64, len: u64) -> Result<u64> {
        let _entered = self.space.enter_to_write()?;
        let rewritten = self.space.defrag(&self.file, offset, len)?;
        let due = self.space.core.lock().due();
        self.space.after_commit(due)?;
        Ok(rewritten)
    }
}

impl Shared {
    fn stats(&self) -> Result<SpaceStats> {
        let core = self.core.lock();
        let segment = self.data.geometry.segment_bytes() as u64;
        let trees = || core.files.values().map(|file| file.tree.read());
        let live = core.table.live_bytes();
        let allocated = core.table.used() * segment;
        let oldest = core.snapshots.oldest();
        let mut disk = self.data.file.allocated()? + self.pages.file().allocated()?;
        for file in core.log.files() {
            disk += file.allocated()?;
        }
        Ok(SpaceStats {
            files: core.files.len() as u64,
            extents: trees().map(|tree| tree.extent_count()).sum(),
            live_bytes: live,
            allocated_bytes: allocated,
            dead_bytes: allocated.saturating_sub(live),
            quarantined_bytes: core.table.quarantined() * segment,
            free_bytes: core.table.free() * segment,
            disk_bytes: disk,
            tree_resident_bytes: trees().map(|tree| tree.resident_bytes()).sum(),
            tree_pages: self.pages.usage().0,
            log_bytes: core.log.len(),
            snapshots: core.snapshots.count(),
            oldest_snapshot_age_ms: oldest.map_or(0, |(_, since)| since.elapsed().as_millis() as u64),
            oldest_snapshot_sequence: oldest.map_or(0, |(sequence, _)| sequence),
            snapshot_pinned_bytes: core.table.pinned_by(&core.snapshots) * segment,
            user_bytes_written: core.counters.user_bytes,
            data_bytes_written: core.writer.bytes_written(),
            tree_bytes_written: self.pages.bytes_written(),
            log_bytes_written: core.log.bytes_written(),
            gc_bytes_written: core.counters.gc_bytes,
            checkpoints: core.counters.checkpoints,
            syncs: core.counters.syncs,
            gc_rounds: core.counters.gc_rounds,
            sequence: core.log.sequence(),
            durable_sequence: core.durable_sequence,
            commit_word: core.commit_word,
            poisoned: self.latch.is_poisoned(),
        })
    }
}

/// The state of a file that nobody uses yet.
pub fn file_state(id: FileId, tree: FlexTree) -> FileState {
    FileState { id, tree: RwLock::new(tree), writer: WriterLock::default(), removed: AtomicBool::new(false) }
}

fn check_name(name: &[u8]) -> Result<()> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES || name.contains(&0) {
        let text = format!("a name has 1 to {MAX_NAME_BYTES} bytes, none of them zero; this one has {}", name.len());
        return Err(Error::invalid(text));
    }
    Ok(())
}

fn check_free(core: &Core, name: &[u8]) -> Result<()> {
    if core.files.contains_key(name) {
        let text = format!("there is a file named \"{}\" already", name.escape_ascii());
        return Err(Error::new(ErrorKind::AlreadyExists, text));
    }
    Ok(())
}
