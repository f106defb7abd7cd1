//! The real disk: Linux files through `pread`, `pwritev`, `fdatasync` and `fallocate`.
//!
//! Every descriptor is opened with O_CLOEXEC. Interrupted calls are repeated. Nothing is buffered in the process: what
//! `write_at` accepted survives the process, and what was synced survives the machine.
//!
//! - A file system without `fallocate` reserves nothing: `reserve` extends the length, and a later write may meet a full disk.
//!   One without hole punching gives nothing back, and the bytes stay: nobody may count on zeros after `punch_hole`
//!   here, unless the file is known to lie on a file system that punches.
//! - A `reserve` that fails may have taken a part of the range, and extended the file over it.
//! - An empty range is neither reserved nor punched.
//! - The lock is `flock`'s, which belongs to the open file: it ends when the last descriptor of it is closed, children's
//!   copies included, and a second lock in the same process conflicts like any other. It is never released by name: a
//!   forked child that drops its copy must not unlock its parent.

use std::fs::{self, OpenOptions, TryLockError};
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::syscall;
use super::{DirLock, File, FileSystem, LockMode, OpenMode};

/// What `st_blocks` counts in, whatever the file system's block size.
const STAT_BLOCK_BYTES: u64 = 512;
/// Room for a process id in the lock file; fixed, so that it is overwritten in place.
const PID_TEXT_LEN: usize = 20;

/// The operating system's file system.
#[derive(Clone, Copy, Default, Debug)]
pub struct OsFileSystem;

impl FileSystem for OsFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        match mode {
            OpenMode::ReadOnly => options.read(true),
            OpenMode::ReadWrite => options.read(true).write(true),
            OpenMode::CreateNew => options.read(true).write(true).create_new(true),
        };
        Ok(Arc::new(OsFile(options.open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> Result<()> {
        fs::create_dir(path)
    }

    fn list_dir(&self, path: &Path) -> Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| Ok(PathBuf::from(entry?.file_name()))).collect()
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        fs::File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn DirLock>> {
        match mode {
            LockMode::Exclusive => lock_exclusive(path),
            LockMode::Shared => lock_shared(path),
        }
    }
}

/// An open file.
#[derive(Debug)]
pub struct OsFile(fs::File);

impl File for OsFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        loop {
            match self.0.read_at(buf, offset) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                answer => return answer,
            }
        }
    }

    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize> {
        syscall::pwritev(&self.0, bufs, offset)
    }

    fn sync_data(&self) -> Result<()> {
        self.0.sync_data()
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.0.set_len(len)
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        match syscall::fallocate_reserve(&self.0, offset, len) {
            Err(error) if is_unsupported(&error) => {
                let end = offset.checked_add(len).ok_or_else(|| Error::from_raw_os_error(libc::EFBIG))?;
                if self.len()? < end { self.set_len(end) } else { Ok(()) }
            }
            answer => answer,
        }
    }

    fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        match syscall::fallocate_punch(&self.0, offset, len) {
            Err(error) if is_unsupported(&error) => Ok(()),
            answer => answer,
        }
    }

    fn allocated(&self) -> Result<u64> {
        Ok(self.0.metadata()?.blocks() * STAT_BLOCK_BYTES)
    }
}

fn is_unsupported(error: &Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EOPNOTSUPP) | Some(libc::ENOSYS))
}

/// Held through the open file; `None` where a reader needs no lock.
struct OsLock {
    _file: Option<fs::File>,
}

impl DirLock for OsLock {}

fn lock_exclusive(path: &Path) -> Result<Box<dyn DirLock>> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(held(&file, path)),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    write_pid(&file)?;
    Ok(Box::new(OsLock { _file: Some(file) }))
}

fn lock_shared(path: &Path) -> Result<Box<dyn DirLock>> {
    let file = match fs::File::open(path) {
        Ok(file) => file,
        // Without a lock file there has been no writer, and none can come on a read-only file system.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ENOENT) | Some(libc::EROFS)) => {
            return Ok(Box::new(OsLock { _file: None }));
        }
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Box::new(OsLock { _file: Some(file) })),
        Err(TryLockError::WouldBlock) => Err(held(&file, path)),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The text in the lock file is only for people: on a full disk the lock counts without it.
fn write_pid(file: &fs::File) -> Result<()> {
    let text = format!("{:<PID_TEXT_LEN$}\n", std::process::id());
    match file.write_all_at(text.as_bytes(), 0) {
        Err(error) if !matches!(error.raw_os_error(), Some(libc::ENOSPC) | Some(libc::EDQUOT)) => Err(error),
        _ => Ok(()),
    }
}

/// Says who has the lock that `file` was refused. Readers leave no pid, and what the file says then is the last writer's:
/// they are told apart by a shared lock, which is refused beside a writer only.
fn held(file: &fs::File, path: &Path) -> Error {
    let holder = match file.try_lock_shared() {
        Ok(()) => "a process that reads it".to_owned(),
        Err(_) => match read_pid(file) {
            Some(pid) if pid == std::process::id() => format!("this process ({pid})"),
            Some(pid) => format!("process {pid}"),
            None => "another process".to_owned(),
        },
    };
    Error::new(ErrorKind::WouldBlock, format!("{} is held by {holder}", path.display()))
}

fn read_pid(file: &fs::File) -> Option<u32> {
    let mut text = [0; PID_TEXT_LEN];
    let len = file.read_at(&mut text, 0).ok()?;
    std::str::from_utf8(&text[..len]).ok()?.trim().parse().ok()
}
