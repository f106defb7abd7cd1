//! A file system that fails on purpose: at the n-th operation, from it on, or for good. For tests.
//!
//! [`FaultFileSystem`] wraps another file system; a [`FaultControl`], shared by it and all files opened through it, counts the
//! operations and carries the plan, and can be changed while files are open. Operations are numbered from 0 in the order
//! in which they begin; those that fail are counted too. `list_dir`, `lock`, `len` and `allocated` are neither counted nor
//! failed.
//!
//! An operation that is made to fail does not reach the file system below. Any thread.

use std::fmt;
use std::io::{Error, IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::{DirLock, File, FileSystem, LockMode, OpenMode};

/// What is counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Opening an existing file.
    Open,
    /// Creating a file or a directory.
    Create,
    /// One `read_at`.
    Read,
    /// One `write_at`.
    Write,
    /// One `sync_data`.
    Sync,
    /// One `set_len`.
    SetLen,
    /// One `reserve`.
    Reserve,
    /// One `punch_hole`.
    Punch,
    /// One `rename`.
    Rename,
    /// One `remove_file`.
    Remove,
    /// One `sync_dir`.
    SyncDir,
}

/// Which operations a plan is about, and counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// All of them.
    All,
    /// `Read`.
    Reads,
    /// What changes bytes, lengths or blocks: `Write`, `SetLen`, `Reserve`, `Punch`.
    Writes,
    /// `Sync` and `SyncDir`.
    Syncs,
    /// One kind alone.
    Only(Operation),
}

impl Class {
    fn contains(self, operation: Operation) -> bool {
        use Operation::*;
        match self {
            Class::All => true,
            Class::Reads => operation == Read,
            Class::Writes => matches!(operation, Write | SetLen | Reserve | Punch),
            Class::Syncs => matches!(operation, Sync | SyncDir),
            Class::Only(only) => operation == only,
        }
    }
}

/// When to fail. `nth` counts the operations of `class` from 0, beginning when the plan is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Plan {
    /// Never.
    None,
    /// The `nth` operation of `class`, and no other.
    Once {
        /// What it counts and fails.
        class: Class,
        /// How many of them pass before.
        nth: u64,
        /// The error, such as `libc::EIO` or `libc::ENOSPC`.
        errno: i32,
    },
    /// The `nth` operation of `class` and all of that class behind it.
    From {
        /// What it counts and fails.
        class: Class,
        /// How many of them pass before.
        nth: u64,
        /// The error.
        errno: i32,
    },
    /// The machine stops: the `nth` operation and every one behind it fail with [`is_stopped`]'s error.
    Stop {
        /// How many operations pass before.
        nth: u64,
    },
}

/// An operation that took place, or was made to fail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Logged {
    /// Its number since the counts were reset.
    pub number: u64,
    /// What it was.
    pub operation: Operation,
    /// On which path (the source of a rename).
    pub path: PathBuf,
    /// Where in the file, or the new length.
    pub offset: u64,
    /// How many bytes were asked for.
    pub len: u64,
    /// Whether the plan made it fail.
    pub failed: bool,
}

impl fmt::Display for Logged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Logged { number, operation, path, offset, len, failed } = self;
        let mark = if *failed { " FAILED" } else { "" };
        write!(f, "{number}: {operation:?} {} {offset}+{len}{mark}", path.display())
    }
}

/// The text of the error that a stopped machine answers with.
const STOPPED: &str = "the machine has stopped";

/// Whether `error` comes from [`Plan::Stop`]. It has kind `Other` and no errno.
pub fn is_stopped(error: &Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.to_string() == STOPPED)
}

struct State {
    plan: Plan,
    /// Operations of the plan's class since it was set.
    seen: u64,
    /// Operations since the counts were reset, by kind.
    counts: [u64; Operation::SyncDir as usize + 1],
    total: u64,
    max_transfer: usize,
    log: Option<Vec<Logged>>,
    faults: u64,
}

/// The handle that steers a [`FaultFileSystem`]. Clones share it.
#[derive(Clone)]
pub struct FaultControl(Arc<Mutex<State>>);

impl Default for FaultControl {
    fn default() -> FaultControl {
        FaultControl(Arc::new(Mutex::new(State {
            plan: Plan::None,
            seen: 0,
            counts: [0; Operation::SyncDir as usize + 1],
            total: 0,
            max_transfer: usize::MAX,
            log: None,
            faults: 0,
        })))
    }
}

impl FaultControl {
    /// Sets the plan; its count begins at 0.
    pub fn set_plan(&self, plan: Plan) {
        let mut state = self.0.lock();
        state.plan = plan;
        state.seen = 0;
    }

    /// No reads and writes of more than `bytes` at once; 1 is the hardest case, `usize::MAX` the normal one.
    /// Zero is taken as 1, since a transfer of nothing means something else.
    pub fn set_max_transfer(&self, bytes: usize) {
        self.0.lock().max_transfer = bytes.max(1);
    }

    /// How many operations of a class began since the last [`reset_counts`](FaultControl::reset_counts).
    pub fn count(&self, class: Class) -> u64 {
        let state = self.0.lock();
        ALL.iter()
            .filter(|&&operation| class.contains(operation))
            .map(|&operation| state.counts[operation as usize])
            .sum()
    }

    /// How many operations were made to fail since then.
    pub fn faults(&self) -> u64 {
        self.0.lock().faults
    }

    /// Counts from 0 again, also in the log. The plan's own count goes on.
    pub fn reset_counts(&self) {
        let mut state = self.0.lock();
        state.counts = [0; ALL.len()];
        state.total = 0;
        state.faults = 0;
    }

    /// Begins to log operations, or ends it. Beginning empties the log.
    pub fn set_logging(&self, on: bool) {
        self.0.lock().log = on.then(Vec::new);
    }

    /// The operations logged so far.
    pub fn log(&self) -> Vec<Logged> {
        self.0.lock().log.clone().unwrap_or_default()
    }

    fn max_transfer(&self) -> usize {
        self.0.lock().max_transfer
    }

    /// Counts an operation; an error if the plan says so.
    fn enter(&self, operation: Operation, path: &Path, offset: u64, len: u64) -> Result<()> {
        let state = &mut *self.0.lock();
        let error = state.planned(operation);
        if let Some(log) = &mut state.log {
            let (number, path, failed) = (state.total, path.to_path_buf(), error.is_some());
            log.push(Logged { number, operation, path, offset, len, failed });
        }
        state.counts[operation as usize] += 1;
        state.total += 1;
        state.faults += u64::from(error.is_some());
        error.map_or(Ok(()), Err)
    }
}

impl State {
    fn planned(&mut self, operation: Operation) -> Option<Error> {
        let (class, first, last, errno) = match self.plan {
            Plan::None => return None,
            Plan::Once { class, nth, errno } => (class, nth, nth, Some(errno)),
            Plan::From { class, nth, errno } => (class, nth, u64::MAX, Some(errno)),
            Plan::Stop { nth } => (Class::All, nth, u64::MAX, None),
        };
        if !class.contains(operation) {
            return None;
        }
        let number = self.seen;
        self.seen += 1;
        if !(first..=last).contains(&number) {
            return None;
        }
        Some(errno.map_or_else(|| Error::other(STOPPED), Error::from_raw_os_error))
    }
}

const ALL: [Operation; Operation::SyncDir as usize + 1] = {
    use Operation::*;
    [Open, Create, Read, Write, Sync, SetLen, Reserve, Punch, Rename, Remove, SyncDir]
};

/// A file system under a [`FaultControl`].
#[derive(Clone)]
pub struct FaultFileSystem {
    below: Arc<dyn FileSystem>,
    control: FaultControl,
}

impl FaultFileSystem {
    /// Over `below`, with no plan yet.
    pub fn new(below: Arc<dyn FileSystem>) -> FaultFileSystem {
        FaultFileSystem { below, control: FaultControl::default() }
    }

    /// Its control.
    pub fn control(&self) -> FaultControl {
        self.control.clone()
    }
}

impl FileSystem for FaultFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let operation = if mode == OpenMode::CreateNew { Operation::Create } else { Operation::Open };
        self.control.enter(operation, path, 0, 0)?;
        let file = self.below.open(path, mode)?;
        Ok(Arc::new(FaultFile { below: file, path: path.to_path_buf(), control: self.control.clone() }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.control.enter(Operation::Create, path, 0, 0)?;
        self.below.create_dir(path)
    }

    fn list_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        self.below.list_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.control.enter(Operation::Rename, from, 0, 0)?;
        self.below.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.control.enter(Operation::Remove, path, 0, 0)?;
        self.below.remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.control.enter(Operation::SyncDir, path, 0, 0)?;
        self.below.sync_dir(path)
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        self.below.lock(path, mode)
    }
}

struct FaultFile {
    below: Arc<dyn File>,
    path: PathBuf,
    control: FaultControl,
}

impl File for FaultFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        self.control.enter(Operation::Read, &self.path, offset, buf.len() as u64)?;
        let len = buf.len().min(self.control.max_transfer());
        self.below.read_at(&mut buf[..len], offset)
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        let total: usize = bufs.iter().map(|buf| buf.len()).sum();
        self.control.enter(Operation::Write, &self.path, offset, total as u64)?;
        let max = self.control.max_transfer();
        if total <= max {
            return self.below.write_at(bufs, offset);
        }
        self.below.write_at(&front(bufs, max), offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.control.enter(Operation::Sync, &self.path, 0, 0)?;
        self.below.sync_data()
    }

    fn len(&self) -> Result<u64> {
        self.below.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.control.enter(Operation::SetLen, &self.path, len, 0)?;
        self.below.set_len(len)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.control.enter(Operation::Reserve, &self.path, offset, len)?;
        self.below.reserve(offset, len)
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.control.enter(Operation::Punch, &self.path, offset, len)?;
        self.below.punch_hole(offset, len)
    }

    fn allocated(&self) -> Result<u64> {
        self.below.allocated()
    }
}

/// The first `len` bytes of `bufs`.
fn front<'a>(bufs: &'a [IoSlice<'_>], len: usize) -> Vec<IoSlice<'a>> {
    let mut left = len;
    let mut taken = Vec::new();
    for buf in bufs {
        let part = &buf[..buf.len().min(left)];
        left -= part.len();
        taken.push(IoSlice::new(part));
        if left == 0 {
            break;
        }
    }
    taken
}
