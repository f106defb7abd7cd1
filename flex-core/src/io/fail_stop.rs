//! The lowest writer of a space, which stops at its first failure.
//!
//! After a failed write or sync nobody knows what is on the disk (the kernel may have dropped the pages, and answers the
//! next sync with success). So the first such failure is kept in a [`Latch`] that all files of the space share, and every
//! later write, sync, change of length, reservation or punch is refused with `Poisoned`, without touching the disk.
//! Reads go on.
//!
//! | call | on failure |
//! |---|---|
//! | `write_all_at`, `sync_data`, `set_len` | latches; this call returns the cause itself, as `Io` |
//! | `reserve` | does not latch: nothing was written; a full disk is `NoSpace` |
//! | `punch_hole` | does not latch: the blocks are dead either way |
//! | `read_*`, `len`, `allocated` | does not latch |
//!
//! Any thread. Two writers that fail at once both return their own cause; one of them is kept.

use std::io::IoSlice;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::{File, transfer};
use crate::{Error, ErrorKind, Result};

/// The first failed write or sync of a space. Clones share it.
#[derive(Clone, Default, Debug)]
pub struct Latch(Arc<OnceLock<Error>>);

impl Latch {
    /// Open: nothing has failed.
    pub fn new() -> Latch {
        Latch::default()
    }

    /// `Poisoned`, with the first cause in the text, once something has failed.
    #[inline]
    pub fn check(&self) -> Result<()> {
        match self.0.get() {
            None => Ok(()),
            Some(cause) => Err(poisoned(cause)),
        }
    }

    /// Whether something has failed.
    pub fn is_poisoned(&self) -> bool {
        self.0.get().is_some()
    }

    /// What failed first.
    pub fn cause(&self) -> Option<Error> {
        self.0.get().cloned()
    }

    /// Keeps `cause` if it is the first, and hands it back. Also for failures that only the layers above can see.
    pub fn poison(&self, cause: Error) -> Error {
        self.0.get_or_init(|| cause.clone());
        cause
    }
}

#[cold]
fn poisoned(cause: &Error) -> Error {
    let text = format!("an earlier write failed ({cause}); reopen to go on from what is durable");
    let mut error = Error::new(ErrorKind::Poisoned, text);
    if let Some(path) = cause.path() {
        error = error.at_path(path);
    }
    error
}

/// A file of a space: whole transfers, errors with path and offset, and the space's latch.
pub struct FailStopFile {
    file: Arc<dyn File>,
    path: PathBuf,
    latch: Latch,
}

impl FailStopFile {
    /// Wraps `file`, which lies at `path`.
    pub fn new(file: Arc<dyn File>, path: impl Into<PathBuf>, latch: Latch) -> FailStopFile {
        FailStopFile { file, path: path.into(), latch }
    }

    /// Where the file lies.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The latch it shares.
    pub fn latch(&self) -> &Latch {
        &self.latch
    }

    /// Fills `buf`; `Corruption` if the file ends before.
    pub fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> Result<()> {
        transfer::read_exact_at(&*self.file, buf, offset).map_err(|error| error.at_path(&self.path))
    }

    /// Fills `buf` or what there is before the end of the file; returns how much.
    pub fn read_up_to_at(&self, buf: &mut [u8], offset: u64) -> Result<usize> {
        transfer::read_up_to_at(&*self.file, buf, offset).map_err(|error| error.at_path(&self.path))
    }

    /// Writes all of `bufs`, which are advanced on the way.
    pub fn write_all_at(&self, bufs: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
        self.latch.check()?;
        transfer::write_all_at(&*self.file, bufs, offset).map_err(|error| self.fail(error))
    }

    /// Writes one buffer.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<()> {
        self.write_all_at(&mut [IoSlice::new(bytes)], offset)
    }

    /// Makes contents and length durable.
    ///
    /// Checked again afterwards: where another writer of the space failed meanwhile, success here must not be taken for
    /// the durability of what was written through both.
    pub fn sync_data(&self) -> Result<()> {
        self.latch.check()?;
        self.file.sync_data().map_err(|error| self.fail(Error::from_io("sync", &error)))?;
        self.latch.check()
    }

    /// Sets the length.
    pub fn set_len(&self, len: u64) -> Result<()> {
        self.latch.check()?;
        self.file.set_len(len).map_err(|error| self.fail(Error::from_io("set the length", &error).at_offset(len)))
    }

    /// Takes blocks for a range, so that writing there can't meet a full disk. `NoSpace` changes nothing that counts.
    pub fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.latch.check()?;
        self.file.reserve(offset, len).map_err(|error| self.place("reserve", &error, offset))
    }

    /// Gives the blocks of a range back.
    pub fn punch_hole(&self, offset: u64, len: u64) -> Result<()> {
        self.latch.check()?;
        self.file.punch_hole(offset, len).map_err(|error| self.place("punch a hole", &error, offset))
    }

    /// The length in bytes.
    pub fn len(&self) -> Result<u64> {
        self.file.len().map_err(|error| Error::from_io("get the length", &error).at_path(&self.path))
    }

    /// Whether the length is zero.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of disk that the file occupies.
    pub fn allocated(&self) -> Result<u64> {
        self.file.allocated().map_err(|error| Error::from_io("get the allocated size", &error).at_path(&self.path))
    }

    fn place(&self, doing: &str, error: &std::io::Error, offset: u64) -> Error {
        Error::from_io(doing, error).at_path(&self.path).at_offset(offset)
    }

    /// `Io` whatever the number: only a reservation may answer `NoSpace`, since only it leaves everything as it was.
    #[cold]
    fn fail(&self, error: Error) -> Error {
        self.latch.poison(error.with_kind(ErrorKind::Io).at_path(&self.path))
    }
}
