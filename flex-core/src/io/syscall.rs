//! The two system calls that the standard library does not offer: `pwritev` and `fallocate`.
//!
//! The only module of `io` with `unsafe` in it. Interrupted calls are repeated; errors are the kernel's.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::{Error, IoSlice, Result};
use std::os::fd::AsRawFd;

/// `UIO_MAXIOV`, the most buffers that one call takes.
const MAX_BUFFERS: usize = 1024;

/// Writes the buffers one behind the other at `offset`; returns how many bytes, perhaps fewer than given.
pub(super) fn pwritev(file: &File, bufs: &[IoSlice<'_>], offset: u64) -> Result<usize> {
    let offset = off_t(offset)?;
    let count = bufs.len().min(MAX_BUFFERS) as libc::c_int;
    let written = repeat(|| {
        // SAFETY: IoSlice is documented to have iovec's layout on Unix; `bufs` and what its elements point to are
        // borrowed for the call, `count` is at most their number, and the kernel only reads them.
        unsafe { libc::pwritev(file.as_raw_fd(), bufs.as_ptr().cast::<libc::iovec>(), count, offset) }
    })?;
    // Not negative: `repeat` made an error of that.
    Ok(written as usize)
}

/// Takes blocks for a range; extends the file where the range ends behind it.
pub(super) fn fallocate_reserve(file: &File, offset: u64, len: u64) -> Result<()> {
    fallocate(file, 0, offset, len)
}

/// Gives the blocks of a range back; the length stays.
pub(super) fn fallocate_punch(file: &File, offset: u64, len: u64) -> Result<()> {
    fallocate(file, libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, offset, len)
}

fn fallocate(file: &File, mode: libc::c_int, offset: u64, len: u64) -> Result<()> {
    let (offset, len) = (off_t(offset)?, off_t(len)?);
    repeat(|| {
        // SAFETY: no memory is passed; the descriptor is open, since `file` is borrowed.
        unsafe { libc::fallocate(file.as_raw_fd(), mode, offset, len) as isize }
    })?;
    Ok(())
}

fn off_t(value: u64) -> Result<libc::off_t> {
    libc::off_t::try_from(value).map_err(|_| Error::from_raw_os_error(libc::EFBIG))
}

fn repeat(mut call: impl FnMut() -> isize) -> Result<isize> {
    loop {
        let answer = call();
        if answer >= 0 {
            return Ok(answer);
        }
        let error = Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINTR) {
            return Err(error);
        }
    }
}
