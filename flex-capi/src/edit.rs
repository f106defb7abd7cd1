//! Changing a file: write, insert, collapse, update and their like. Each call is atomic.

#![allow(unsafe_code)]

use crate::ffi;
use crate::file::flexfile;
use crate::panic::guarded;
use crate::status::FLEXFILE_OK;
use std::ffi::c_void;

/// Writes bytes over what is at `offset`; the file grows as needed, and a gap between its end and `offset` becomes a
/// hole that reads as zeros.
///
/// Errors: the common ones, the write ones, FLEXFILE_TOO_BIG (the file would pass 2^63 - 1 bytes).
/// Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_write(file: *mut flexfile, offset: u64, data: *const c_void, len: usize) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        file.write(offset, ffi::bytes(data, len, "data")?)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_write() from several buffers, one after the other, as one atomic change.
///
/// iov, count: at most 1024 buffers. Errors: as flexfile_write(), FLEXFILE_TOO_BIG also for count and the sum of the
/// lengths. Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_writev(
    file: *mut flexfile,
    offset: u64,
    iov: *const libc::iovec,
    count: usize,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        file.write_vectored(offset, &ffi::io_slices(iov, count)?)?;
        Ok(FLEXFILE_OK)
    }
}

/// Inserts bytes at `offset`: what is there and behind moves up by `len`. Takes O(log N), whatever the file's size.
///
/// offset: at most the file's size; there it appends.
/// Errors: the common ones, the write ones, FLEXFILE_OUT_OF_RANGE behind the end, FLEXFILE_TOO_BIG (the file would pass
/// 2^63 - 1 bytes). Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_insert(file: *mut flexfile, offset: u64, data: *const c_void, len: usize) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        file.insert(offset, ffi::bytes(data, len, "data")?)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_insert() from several buffers, one after the other, as one atomic change.
///
/// iov, count: at most 1024 buffers. Errors: as flexfile_insert(), FLEXFILE_TOO_BIG also for count and the sum of the
/// lengths. Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_insertv(
    file: *mut flexfile,
    offset: u64,
    iov: *const libc::iovec,
    count: usize,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        file.insert_vectored(offset, &ffi::io_slices(iov, count)?)?;
        Ok(FLEXFILE_OK)
    }
}

/// Inserts a hole at `offset`: `len` bytes that read as zeros and take no room on disk.
///
/// Errors: as flexfile_insert(). Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_insert_hole(file: *mut flexfile, offset: u64, len: u64) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.insert_hole(offset, len)?;
        Ok(FLEXFILE_OK)
    }
}

/// Removes `len` bytes at `offset`: what is behind moves down. Takes O(log N), whatever the file's size and `len`.
///
/// Errors: the common ones, the write ones but FLEXFILE_NO_SPACE, FLEXFILE_OUT_OF_RANGE when the range passes the end.
/// Threads: any. Durability: by the space's mode; atomic; the room comes back after that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_collapse(file: *mut flexfile, offset: u64, len: u64) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.collapse(offset, len)?;
        Ok(FLEXFILE_OK)
    }
}

/// Replaces `old_len` bytes at `offset` by `len` others, as one atomic change. The tag of the first byte stays if the
/// new content is not empty.
///
/// Errors: the common ones, the write ones, FLEXFILE_OUT_OF_RANGE when the old range passes the end, FLEXFILE_TOO_BIG.
/// Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_update(
    file: *mut flexfile,
    offset: u64,
    old_len: u64,
    data: *const c_void,
    len: usize,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        file.update(offset, old_len, ffi::bytes(data, len, "data")?)?;
        Ok(FLEXFILE_OK)
    }
}

/// Writes bytes at the end, wherever that is by then.
///
/// out_offset: where they were put; may be NULL.
/// Errors: as flexfile_write(). Threads: any; appends of several threads follow one another. Durability: by the space's
/// mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_append(
    file: *mut flexfile,
    data: *const c_void,
    len: usize,
    out_offset: *mut u64,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        let out = ffi::optional_out(out_offset, "out_offset")?;
        let offset = file.append(ffi::bytes(data, len, "data")?)?;
        if let Some(out) = out {
            out.write(offset);
        }
        Ok(FLEXFILE_OK)
    }
}

/// Makes the file `size` bytes long: cuts its end off, or lets it grow by a hole.
///
/// Errors: the common ones, the write ones, FLEXFILE_TOO_BIG. Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_truncate(file: *mut flexfile, size: u64) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.truncate(size)?;
        Ok(FLEXFILE_OK)
    }
}

/// Makes sure that the range is inside the file, as fallocate(2): a shorter file grows, by bytes that read as zeros.
/// Bytes that are there stay.
///
/// Errors: the common ones, the write ones, FLEXFILE_TOO_BIG. Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_fallocate(file: *mut flexfile, offset: u64, len: u64) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.fallocate(offset, len)?;
        Ok(FLEXFILE_OK)
    }
}

/// Makes a hole of the range: it reads as zeros and takes no room; offsets and the size stay.
///
/// Errors: the common ones, the write ones but FLEXFILE_NO_SPACE, FLEXFILE_OUT_OF_RANGE. Threads: any. Durability: by
/// the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_punch_hole(file: *mut flexfile, offset: u64, len: u64) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.punch_hole(offset, len)?;
        Ok(FLEXFILE_OK)
    }
}

/// Rewrites the range so that it lies in as few extents as possible; what it reads as stays the same. The library does
/// so by itself where small writes left too many.
///
/// out_bytes: how many bytes were rewritten; may be NULL.
/// Errors: the common ones, the write ones. Threads: any; readers go on. Durability: by the space's mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_defrag(file: *mut flexfile, offset: u64, len: u64, out_bytes: *mut u64) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        let out = ffi::optional_out(out_bytes, "out_bytes")?;
        let bytes = file.defrag(offset, len)?;
        if let Some(out) = out {
            out.write(bytes);
        }
        Ok(FLEXFILE_OK)
    }
}
