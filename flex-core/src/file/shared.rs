//! What all handles of a space share, and the way in for every call.
//!
//! `enter` refuses calls in a forked child, from the log callback and after `close` began, and keeps `close` waiting while a
//! call is inside. Calls that wait for a group meanwhile give up, since the group may be the closing thread's own.
//! The last handle that goes closes the space, as `close` does, without a place for the error but the log callback.

use super::callbacks::{Callback, Callbacks};
use super::checkpoint::Frozen;
use super::core::{Core, Due, FileState};
use super::page_store::PageStore;
use super::process::ForkGuard;
use super::segment_writer::DataStore;
use super::upkeep::Upkeep;
use crate::address::PageId;
use crate::io::DirLock;
use crate::io::fail_stop::Latch;
use crate::options::{Durability, LogLevel, SpaceOptions};
use crate::{Error, ErrorKind, Result};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// See the module.
pub struct Shared {
    /// The directory.
    pub path: PathBuf,
    /// How it was opened.
    pub options: SpaceOptions,
    /// The first failed write or sync.
    pub latch: Latch,
    /// `DATA`.
    pub data: DataStore,
    /// `TREE`.
    pub pages: PageStore,
    /// Everything that one lock guards.
    pub core: Mutex<Core>,
    /// Held by the thread that syncs for all that wait.
    pub sync_lock: Mutex<()>,
    /// Held by the thread that checkpoints; a frozen state that could not be written yet.
    pub checkpoint_lock: Mutex<Option<Frozen>>,
    /// The pages of the catalog that the newest superblock points to.
    pub catalog_run: Mutex<Vec<PageId>>,
    /// Seed of the key hash, kept for the database.
    pub hash_seed: u64,
    /// Held by the thread that collects.
    pub gc_lock: Mutex<()>,
    /// What the background thread waits for.
    pub upkeep: Upkeep,
    /// Threads that are in a callback.
    pub callbacks: Callbacks,
    /// `close` has begun.
    closed: AtomicBool,
    gate: RwLock<Gate>,
    fork: ForkGuard,
}

/// What calls hold while they are inside.
pub struct Gate {
    /// Held while the space is open.
    lock: Option<Box<dyn DirLock>>,
}

/// A call is inside.
pub type Entered<'a> = RwLockReadGuard<'a, Gate>;

/// Parts that `open` puts together.
pub struct Parts {
    /// The directory.
    pub path: PathBuf,
    /// How it was opened.
    pub options: SpaceOptions,
    /// The latch that the files share.
    pub latch: Latch,
    /// `DATA`.
    pub data: DataStore,
    /// `TREE`.
    pub pages: PageStore,
    /// The recovered state.
    pub core: Core,
    /// The pages of the catalog.
    pub catalog_run: Vec<PageId>,
    /// Seed of the key hash.
    pub hash_seed: u64,
    /// The directory's lock.
    pub lock: Box<dyn DirLock>,
}

impl Shared {
    /// An open space without its background thread.
    pub fn new(parts: Parts) -> Shared {
        Shared {
            path: parts.path,
            options: parts.options,
            latch: parts.latch,
            data: parts.data,
            pages: parts.pages,
            core: Mutex::new(parts.core),
            sync_lock: Mutex::new(()),
            checkpoint_lock: Mutex::new(None),
            catalog_run: Mutex::new(parts.catalog_run),
            hash_seed: parts.hash_seed,
            gc_lock: Mutex::new(()),
            upkeep: Upkeep::new(),
            callbacks: Callbacks::default(),
            closed: AtomicBool::new(false),
            gate: RwLock::new(Gate { lock: Some(parts.lock) }),
            fork: ForkGuard::new(),
        }
    }

    /// The way in for calls that read.
    #[inline]
    pub fn enter(&self) -> Result<Entered<'_>> {
        if self.fork.is_forked() {
            return Err(forked());
        }
        if self.callbacks.current() == Some(Callback::Log) {
            return Err(Error::new(ErrorKind::Busy, "the log callback must not call into its own space"));
        }
        // Before the lock, too: a close that waits for it must not be held up by calls that come in one after the other.
        self.check_open()?;
        // Recursive, because a callback may call back while a close waits.
        let gate = self.gate.read_recursive();
        self.check_open()?;
        Ok(gate)
    }

    #[inline]
    fn check_open(&self) -> Result<()> {
        if self.closed.load(Ordering::Acquire) { Err(closed()) } else { Ok(()) }
    }

    /// Whether a call that is inside may wait until a group gives a file back.
    pub fn may_wait_for_group(&self) -> Result<()> {
        self.check_open()?;
        if self.core.lock().in_group() {
            return Err(Error::new(ErrorKind::Busy, "the file is held by a group, and this thread holds one too"));
        }
        Ok(())
    }

    /// The way in for calls that write.
    #[inline]
    pub fn enter_to_write(&self) -> Result<Entered<'_>> {
        let entered = self.enter()?;
        if self.options.read_only {
            return Err(Error::new(ErrorKind::ReadOnly, "the space was opened for reading only").at_path(&self.path));
        }
        self.latch.check()?;
        Ok(entered)
    }

    /// Whether handles may still touch the space's locks: not in a forked child.
    pub fn is_forked(&self) -> bool {
        self.fork.is_forked()
    }

    /// Hands a message to the log callback.
    pub fn say(&self, level: LogLevel, text: &str) {
        if let Some(log) = &self.options.log {
            let _inside = self.callbacks.enter(Callback::Log);
            log(level, text);
        }
    }

    /// Looks up a file.
    pub fn find(&self, name: &[u8]) -> Result<Arc<FileState>> {
        self.core.lock().files.get(name).cloned().ok_or_else(|| no_such_file(name))
    }

    /// All files, in id order.
    pub fn all_files(&self) -> Vec<Arc<FileState>> {
        let mut files: Vec<_> = self.core.lock().files.values().cloned().collect();
        files.sort_by_key(|file| file.id);
        files
    }

    /// Hands everything to the kernel.
    pub fn flush(&self) -> Result<()> {
        self.core.lock().hand_over(&self.data)
    }

    /// Makes every operation so far durable.
    pub fn sync(&self) -> Result<()> {
        let target = {
            let mut core = self.core.lock();
            core.hand_over(&self.data)?;
            core.log.handed_sequence()
        };
        self.sync_to(target)
    }

    /// `sync`, and again where segments wait for the log to say that the operations that freed them are durable.
    pub fn sync_recorded(&self) -> Result<()> {
        self.sync()?;
        // At most twice: in a log that has just begun, the first frame can't name anything yet.
        for _ in 0..2 {
            let target = {
                let mut core = self.core.lock();
                if !core.record_durable(&self.data)? {
                    return Ok(());
                }
                core.log.handed_sequence()
            };
            self.sync_to(target)?;
        }
        Ok(())
    }

    /// Waits until operation `target`, which was handed over, is durable: by one sync for all that wait.
    pub fn sync_to(&self, target: u64) -> Result<()> {
        if self.core.lock().durable_sequence >= target {
            return Ok(());
        }
        let _leader = self.sync_lock.lock();
        self.latch.check()?;
        let (point, data_mark, data_waits) = {
            let core = self.core.lock();
            if core.durable_sequence >= target {
                return Ok(());
            }
            (core.log.sync_point(), core.writer.sync_mark(), core.writer.unsynced_bytes() > 0)
        };
        if data_waits {
            self.data.file.sync_data()?;
        }
        for file in &point.files {
            file.sync_data()?;
        }
        let mut core = self.core.lock();
        core.writer.note_synced(data_mark);
        core.log.note_durable(&point);
        core.durable_sequence = core.durable_sequence.max(point.sequence);
        core.counters.syncs += 1;
        core.settle(&self.data);
        Ok(())
    }

    /// After an operation: makes it durable where the options say so, and sees to the upkeep that it made due.
    #[inline]
    pub fn after_commit(self: &Arc<Self>, due: Due) -> Result<()> {
        if self.options.durability == Durability::EveryCommit {
            self.sync()?;
        }
        if self.options.background {
            self.upkeep.note(due);
        } else if due.any() {
            self.run_upkeep();
        }
        Ok(())
    }

    /// Ends the space; see `FlexSpace::close`.
    pub fn close(self: &Arc<Self>) -> Result<()> {
        if self.fork.is_forked() {
            return Err(forked());
        }
        if self.callbacks.current().is_some() {
            return Err(Error::new(ErrorKind::Busy, "a callback can't close the space whose call it is part of"));
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            return Err(closed());
        }
        for file in self.all_files() {
            file.writer.wake();
        }
        // Waits for the calls inside.
        drop(self.gate.write());
        self.upkeep.stop();
        let result = if self.options.read_only { Ok(()) } else { self.write_everything() };
        self.gate.write().lock = None;
        result
    }

    fn write_everything(&self) -> Result<()> {
        self.latch.check()?;
        let unchanged = {
            let pending = self.checkpoint_lock.lock();
            let core = self.core.lock();
            core.log.len() == 0 && core.drops.is_empty() && pending.is_none()
        };
        if unchanged {
            return Ok(());
        }
        match self.final_checkpoint() {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                // The log holds everything: the next open replays it.
                self.say(LogLevel::Warning, &format!("closing without a checkpoint: {error}"));
                self.sync()
            }
            result => result,
        }
    }

    fn final_checkpoint(&self) -> Result<()> {
        self.checkpoint()?;
        if self.core.lock().log.len() > 0 {
            // That was a frozen state from before, which could not be written then.
            self.checkpoint()?;
        }
        self.finish_log()
    }
}

fn closed() -> Error {
    Error::new(ErrorKind::Closed, "the space is closed")
}

fn forked() -> Error {
    Error::new(ErrorKind::Forked, "the space was opened by the parent of this process; open it again here")
}

/// The error for a name that the catalog lacks.
pub fn no_such_file(name: &[u8]) -> Error {
    Error::new(ErrorKind::NotFound, format!("no file named \"{}\"", name.escape_ascii()))
}

/// The shared state as handles hold it: the last one that goes closes the space.
pub struct SpaceHandle(pub Arc<Shared>);

impl Drop for SpaceHandle {
    fn drop(&mut self) {
        if !self.0.is_forked() && self.0.callbacks.current().is_some() {
            // In a callback of the background thread, which has to end it first.
            let shared = self.0.clone();
            let thread = std::thread::Builder::new().name("flexfile-close".into());
            if let Err(error) = thread.spawn(move || close_last(&shared)) {
                self.0.say(LogLevel::Error, &format!("the space stays open, no thread to close it: {error}"));
            }
            return;
        }
        close_last(&self.0);
    }
}

fn close_last(shared: &Arc<Shared>) {
    if let Err(error) = shared.close()
        && !matches!(error.kind(), ErrorKind::Closed | ErrorKind::Forked)
    {
        shared.say(LogLevel::Error, &format!("closing with the last handle failed: {error}"));
    }
}

impl std::ops::Deref for SpaceHandle {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Arc<Shared> {
        &self.0
    }
}
