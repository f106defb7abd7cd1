//! A file system in memory that knows what would be left after a crash. For tests of this crate and others.
//!
//! It keeps, for each file, the durable contents and the list of changes since (writes, lengths, reservations, punches), and
//! the same for the names in each directory. [`MemFileSystem::crash_image`] makes an independent file system of what a
//! disk may hold when the power goes now; see [`CrashKind`] and the rules in `crash`. It is stricter than ext4: a file
//! created and synced is lost unless its directory was synced too, and so is a directory unless its parent was.
//!
//! - A capacity can be set: writes and reservations that need more blocks (4 KiB) than are free fail with ENOSPC and change
//!   nothing. A file gives its blocks back when neither a name (also a removed one whose directory was not synced) nor a
//!   handle leads to it.
//! - `/a/b` and `a/b` are the same path. The root exists.
//! - Clones are handles to the same file system. Any thread; an image is a consistent cut of all files.

mod crash;
mod inode;
mod names;
mod pages;

pub use crash::{CrashKind, SECTOR};

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use self::inode::{Change, FileState, Inode, Pending, Usage};
use self::names::{Names, errno};
use self::pages::PAGE;
use super::{DirLock, File, FileSystem, LockMode, OpenMode};

/// Where the kernel's offsets end.
const MAX_OFFSET: u64 = i64::MAX as u64;

/// A file system in memory.
#[derive(Clone)]
pub struct MemFileSystem(Arc<Shared>);

struct Shared {
    /// Also the gate: file operations hold it shared, so that an image, which holds it alone, sees no half of one.
    names: RwLock<Names>,
    usage: Arc<Usage>,
    capacity_pages: AtomicU64,
    next_stamp: AtomicU64,
    locks: Arc<Mutex<BTreeMap<PathBuf, Holders>>>,
}

impl Default for MemFileSystem {
    fn default() -> MemFileSystem {
        MemFileSystem::new()
    }
}

impl MemFileSystem {
    /// An empty one, of unlimited capacity.
    pub fn new() -> MemFileSystem {
        MemFileSystem::with_names(Names::new(), Arc::default(), u64::MAX)
    }

    /// Sets how many bytes all files may occupy together, rounded down to blocks of 4 KiB. What is there stays.
    pub fn set_capacity(&self, bytes: u64) {
        self.0.capacity_pages.store(bytes / PAGE, Ordering::Relaxed);
    }

    /// How many bytes all files occupy together.
    pub fn used(&self) -> u64 {
        self.0.usage.pages() * PAGE
    }

    /// What may be left after a crash now, as an independent file system in which all is durable and nothing is locked.
    /// The same seed, kind and history give the same image.
    pub fn crash_image(&self, seed: u64, kind: CrashKind) -> MemFileSystem {
        self.copy(|names, usage| crash::image(names, seed, kind, usage))
    }

    /// An independent file system in the same state, pending changes included, with nothing locked: what the next
    /// process finds when this one is killed.
    pub fn deep_copy(&self) -> MemFileSystem {
        self.copy(crash::deep_copy)
    }

    fn copy(&self, make: impl FnOnce(&Names, &Arc<Usage>) -> Names) -> MemFileSystem {
        let usage = Arc::default();
        // Alone, so that no file changes meanwhile.
        let names = make(&self.0.names.write(), &usage);
        let copy = MemFileSystem::with_names(names, usage, self.0.capacity_pages.load(Ordering::Relaxed));
        copy.0.next_stamp.store(self.0.next_stamp.load(Ordering::Relaxed), Ordering::Relaxed);
        copy
    }

    fn with_names(names: Names, usage: Arc<Usage>, capacity_pages: u64) -> MemFileSystem {
        MemFileSystem(Arc::new(Shared {
            names: RwLock::new(names),
            usage,
            capacity_pages: AtomicU64::new(capacity_pages),
            next_stamp: AtomicU64::new(0),
            locks: Arc::default(),
        }))
    }
}

impl FileSystem for MemFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut names = self.0.names.write();
        let inode = if mode == OpenMode::CreateNew {
            let inode = Inode::new(FileState::default(), self.0.usage.clone());
            names.add_file(path, inode.clone())?;
            inode
        } else {
            names.file(path)?
        };
        Ok(Arc::new(MemFile { shared: self.0.clone(), inode, writable: mode != OpenMode::ReadOnly }))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        self.0.names.write().add_dir(path)
    }

    fn list_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        let names = self.0.names.read();
        let dir = names.dir(path)?;
        Ok(names.dirs[dir].live.keys().map(PathBuf::from).collect())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.names.write().rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.0.names.write().remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut names = self.0.names.write();
        let dir = names.dir(path)?;
        names.dirs[dir].sync();
        Ok(())
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        let mut names = self.0.names.write();
        match names.file(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && mode == LockMode::Exclusive => {
                names.add_file(path, Inode::new(FileState::default(), self.0.usage.clone()))?;
            }
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let key: PathBuf = path.components().filter(|part| !matches!(part, std::path::Component::RootDir)).collect();
        Holders::take(&self.0.locks, key, mode)
    }
}

/// Who holds a lock.
#[derive(Default)]
struct Holders {
    readers: usize,
    writer: bool,
}

impl Holders {
    fn take(all: &Arc<Mutex<BTreeMap<PathBuf, Holders>>>, path: PathBuf, mode: LockMode) -> Result<Box<dyn DirLock>> {
        let mut locks = all.lock();
        let holders = locks.entry(path.clone()).or_default();
        let free = !holders.writer && (mode == LockMode::Shared || holders.readers == 0);
        if !free {
            let text = format!("{} is held by this process ({})", path.display(), std::process::id());
            return Err(Error::new(ErrorKind::WouldBlock, text));
        }
        match mode {
            LockMode::Shared => holders.readers += 1,
            LockMode::Exclusive => holders.writer = true,
        }
        Ok(Box::new(MemLock { locks: all.clone(), path, mode }))
    }
}

struct MemLock {
    locks: Arc<Mutex<BTreeMap<PathBuf, Holders>>>,
    path: PathBuf,
    mode: LockMode,
}

impl DirLock for MemLock {}

impl Drop for MemLock {
    fn drop(&mut self) {
        if let Some(holders) = self.locks.lock().get_mut(&self.path) {
            match self.mode {
                LockMode::Shared => holders.readers -= 1,
                LockMode::Exclusive => holders.writer = false,
            }
        }
    }
}

struct MemFile {
    shared: Arc<Shared>,
    inode: Arc<Inode>,
    writable: bool,
}

impl MemFile {
    /// Makes a change that touches `[offset, offset + len)`, of which it will fill every page if `fills`.
    fn change(&self, offset: u64, len: u64, fills: bool, change: impl FnOnce() -> Change) -> Result<()> {
        if !self.writable {
            return Err(errno(libc::EBADF));
        }
        if offset.checked_add(len).is_none_or(|end| end > MAX_OFFSET) {
            return Err(errno(libc::EFBIG));
        }
        let _gate = self.shared.names.read();
        let mut state = self.inode.state.lock();
        if fills {
            let missing = state.live.missing_pages(offset, len);
            if !self.shared.usage.take(missing, self.shared.capacity_pages.load(Ordering::Relaxed)) {
                return Err(errno(libc::ENOSPC));
            }
        }
        let before = state.live.allocated_pages();
        let change = change();
        change.apply(&mut state.live);
        self.shared.usage.give_back(before.saturating_sub(state.live.allocated_pages()));
        let stamp = self.shared.next_stamp.fetch_add(1, Ordering::Relaxed);
        state.pending.push(Pending { stamp, change });
        Ok(())
    }
}

impl File for MemFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        Ok(self.inode.state.lock().live.read(buf, offset))
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        let len: usize = bufs.iter().map(|buf| buf.len()).sum();
        if len > 0 {
            let joined = || {
                let mut bytes = Vec::with_capacity(len);
                bufs.iter().for_each(|buf| bytes.extend_from_slice(buf));
                Change::Write { offset, bytes: bytes.into() }
            };
            self.change(offset, len as u64, true, joined)?;
        }
        Ok(len)
    }

    fn sync_data(&self) -> Result<()> {
        let _gate = self.shared.names.read();
        self.inode.state.lock().sync();
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.inode.state.lock().live.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.change(len, 0, false, || Change::SetLen(len))
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.change(offset, len, true, || Change::Reserve { offset, len })
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.change(offset, len, false, || Change::Punch { offset, len })
    }

    fn allocated(&self) -> Result<u64> {
        Ok(self.inode.state.lock().live.allocated_pages() * PAGE)
    }
}
