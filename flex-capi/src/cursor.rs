//! `flexfile_cursor`: walks the extents of a file, both ways, as of the moment it was made.

#![allow(unsafe_code)]

use crate::buf::{self, flexfile_buf};
use crate::ffi;
use crate::file::flexfile;
use crate::file_snapshot::flexfile_snapshot;
use crate::panic::guarded;
use crate::read::{ExtentOut, extent_to_vec, flexfile_extent};
use crate::status::{FLEXFILE_NOT_FOUND, FLEXFILE_OK, answer};
use flex_core::file::ExtentCursor;
use flex_core::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};
use std::ffi::c_void;

/// Walks the extents of a file as of the moment the cursor was made. While it lives, what it sees keeps its room.
///
/// Threads: one at a time; a second one inside gets FLEXFILE_BUSY.
pub struct flexfile_cursor {
    cursor: Mutex<ExtentCursor>,
}

impl flexfile_cursor {
    /// The cursor for this call; never waits, so that a child of fork() can't hang on a lock that nobody releases.
    fn lock(&self) -> Result<MutexGuard<'_, ExtentCursor>> {
        self.cursor.try_lock().ok_or_else(|| Error::new(ErrorKind::Busy, "another thread is in this cursor"))
    }
}

const _: () = {
    const fn moved_between_threads<T: Send>() {}
    moved_between_threads::<flexfile_cursor>();
};

/// Makes a cursor on the extent that covers `offset`; at or behind the end it stands past the last extent.
///
/// out_cursor: free it with flexfile_cursor_free().
/// Errors: the common ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_new(
    file: *mut flexfile,
    offset: u64,
    out_cursor: *mut *mut flexfile_cursor,
) -> i32 {
    guarded! {
        let out = ffi::out(out_cursor, "out_cursor")?;
        let cursor = Mutex::new(ffi::handle(file, "file")?.file.cursor(offset)?);
        out.write_handle(flexfile_cursor { cursor });
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_cursor_new() on a snapshot, which may be freed before the cursor.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_cursor_new(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    out_cursor: *mut *mut flexfile_cursor,
) -> i32 {
    guarded! {
        let out = ffi::out(out_cursor, "out_cursor")?;
        let cursor = Mutex::new(ffi::handle(snapshot, "snapshot")?.snapshot.cursor(offset)?);
        out.write_handle(flexfile_cursor { cursor });
        Ok(FLEXFILE_OK)
    }
}

/// Frees a cursor and sets the variable to NULL. NULL does nothing.
///
/// Threads: any, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_free(cursor: *mut *mut flexfile_cursor) {
    guarded! {
        drop(ffi::take(cursor, "cursor")?);
        Ok(FLEXFILE_OK)
    };
}

/// The extent under the cursor.
///
/// out_extent: set struct_size first.
/// Errors: FLEXFILE_NOT_FOUND when the cursor stands past either end, FLEXFILE_BUSY, FLEXFILE_INVALID_ARGUMENT.
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_get(cursor: *mut flexfile_cursor, out_extent: *mut flexfile_extent) -> i32 {
    guarded! {
        let cursor = ffi::handle(cursor, "cursor")?.lock()?;
        let out = ExtentOut::new(out_extent, "out_extent")?;
        match cursor.current() {
            Some(info) => out.write(&info),
            None => return Ok(past_the_end()),
        }
        Ok(FLEXFILE_OK)
    }
}

fn past_the_end() -> i32 {
    answer(FLEXFILE_NOT_FOUND, "the cursor stands past the end")
}

/// Moves the cursor to the extent that covers `offset`; at or behind the end it stands past the last extent.
///
/// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_seek(cursor: *mut flexfile_cursor, offset: u64) -> i32 {
    guarded! {
        ffi::handle(cursor, "cursor")?.lock()?.seek(offset)?;
        Ok(FLEXFILE_OK)
    }
}

/// Moves the cursor to the next extent; from the last one, past the end, which is FLEXFILE_OK too.
///
/// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_next(cursor: *mut flexfile_cursor) -> i32 {
    guarded! {
        ffi::handle(cursor, "cursor")?.lock()?.next()?;
        Ok(FLEXFILE_OK)
    }
}

/// Moves the cursor to the extent before; from the first one, past the beginning, which is FLEXFILE_OK too.
///
/// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_prev(cursor: *mut flexfile_cursor) -> i32 {
    guarded! {
        ffi::handle(cursor, "cursor")?.lock()?.prev()?;
        Ok(FLEXFILE_OK)
    }
}

/// Reads the extent under the cursor from its beginning.
///
/// dst, cap: where to, and how many bytes at most. out_len: how many were read, the smaller of cap and the extent's
/// length (a hole reads as zeros).
/// Errors: the common ones, FLEXFILE_NOT_FOUND when the cursor stands past either end, FLEXFILE_BUSY.
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_read(
    cursor: *mut flexfile_cursor,
    dst: *mut c_void,
    cap: usize,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let cursor = ffi::handle(cursor, "cursor")?.lock()?;
        let dst = ffi::bytes_mut(dst, cap, "dst")?;
        let out = ffi::out(out_len, "out_len")?;
        if cursor.current().is_none() {
            return Ok(past_the_end());
        }
        out.write(cursor.read(dst)?);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_cursor_read() of the whole extent into a buffer that grows as needed; a hole leaves it empty.
///
/// Errors: as flexfile_cursor_read(), FLEXFILE_TOO_BIG (no memory). Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_cursor_read_buf(cursor: *mut flexfile_cursor, buf: *mut flexfile_buf) -> i32 {
    guarded! {
        let cursor = ffi::handle(cursor, "cursor")?.lock()?;
        let Some(info) = cursor.current() else {
            return Ok(past_the_end());
        };
        buf::fill(buf, |bytes| {
            extent_to_vec(bytes, |dst| Ok((info, if info.is_hole { 0 } else { cursor.read(dst)? })))
        })?;
        Ok(FLEXFILE_OK)
    }
}
