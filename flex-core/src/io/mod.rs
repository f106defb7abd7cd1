//! The disk, as two traits: a [`FileSystem`] of paths and a [`File`] of bytes.
//!
//! The engine reaches the disk through these alone, so that tests can put a crashable or failing one in
//! its place: `os` is the real one, `mem` keeps crash images, `fault` fails at the n-th operation.
//! All methods may be called from any thread. Nothing is durable until `sync_data` (contents and length of a file)
//! or `sync_dir` (names in a directory) has returned.

pub mod fail_stop;
pub mod fault;
pub mod mem;
pub mod os;
mod syscall;
pub mod transfer;

use std::io::{IoSlice, Result};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How to open a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// An existing file, for reading.
    ReadOnly,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new file, for reading and writing; an error if the name is taken.
    CreateNew,
}

/// Which lock to take on a directory's `LOCK` file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LockMode {
    /// Together with other readers.
    Shared,
    /// Alone.
    Exclusive,
}

/// A lock that is held until it is dropped.
pub trait DirLock: Send + Sync {}

/// A tree of names.
pub trait FileSystem: Send + Sync + 'static {
    /// Opens the file at `path`.
    fn open(&self, path: &Path, mode: OpenMode) -> Result<Arc<dyn File>>;
    /// Creates one directory; an error if the name is taken or the parent is missing.
    fn create_dir(&self, path: &Path) -> Result<()>;
    /// The names in a directory (not whole paths), in no particular order.
    fn list_dir(&self, path: &Path) -> Result<Vec<PathBuf>>;
    /// Renames a file within its directory, replacing what was there.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;
    /// Removes a file.
    fn remove_file(&self, path: &Path) -> Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> Result<()>;
    /// Takes the lock file at `path` (created when missing and `mode` is exclusive) without waiting.
    /// `WouldBlock` when another holds it, with the holder's process id in the text where it is known.
    /// A second lock from the same process is refused like any other.
    fn lock(&self, path: &Path, mode: LockMode) -> Result<Box<dyn DirLock>>;
}

/// A file of bytes.
#[allow(clippy::len_without_is_empty)] // Asking the kernel is no cheaper for emptiness.
pub trait File: Send + Sync {
    /// Reads at `offset`; returns how many bytes, which may be fewer than asked for at any time, and 0 only at the end
    /// (or for an empty buffer).
    fn read_at(&self, buf: &mut [u8], offset: u64) -> Result<usize>;
    /// Writes the buffers one behind the other at `offset`; returns how many bytes, which may be fewer than given.
    fn write_at(&self, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize>;
    /// Makes the contents and the length durable.
    fn sync_data(&self) -> Result<()>;
    /// The length in bytes.
    fn len(&self) -> Result<u64>;
    /// Sets the length; new bytes read as zeros.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Takes blocks for `[offset, offset + len)`, so that writing there can't fail for want of space, and extends the
    /// length where the range ends behind it. Existing bytes stay.
    fn reserve(&self, offset: u64, len: u64) -> Result<()>;
    /// Gives the blocks of `[offset, offset + len)` back; they read as zeros. The length stays.
    fn punch_hole(&self, offset: u64, len: u64) -> Result<()>;
    /// Bytes of disk that the file occupies.
    fn allocated(&self) -> Result<u64>;
}
