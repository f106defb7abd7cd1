//! `flexfile_snapshot`: one file as of one moment, with the reading half of `flexfile`'s functions.

#![allow(unsafe_code)]

use crate::buf::{self, flexfile_buf};
use crate::ffi;
use crate::file::flexfile;
use crate::panic::guarded;
use crate::read::{ExtentOut, extent_to_vec, flexfile_extent, found, read_to_vec};
use crate::status::FLEXFILE_OK;
use crate::tag;
use flex_core::file::FileSnapshot;
use std::ffi::c_void;

/// A file as of one moment. It costs nothing to take; while it lives, what it sees keeps its room.
///
/// Threads: any number at once.
pub struct flexfile_snapshot {
    pub(crate) snapshot: FileSnapshot,
}

impl flexfile_snapshot {
    pub(crate) fn new(snapshot: FileSnapshot) -> flexfile_snapshot {
        flexfile_snapshot { snapshot }
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<flexfile_snapshot>();
};

/// Takes a snapshot of the file. It is gone when the space is closed or the process ends.
///
/// out_snapshot: free it with flexfile_snapshot_free().
/// Errors: the common ones. Threads: any; nobody waits for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_new(file: *mut flexfile, out_snapshot: *mut *mut flexfile_snapshot) -> i32 {
    guarded! {
        let out = ffi::out(out_snapshot, "out_snapshot")?;
        out.write_handle(flexfile_snapshot::new(ffi::handle(file, "file")?.file.snapshot()?));
        Ok(FLEXFILE_OK)
    }
}

/// Frees a snapshot and sets the variable to NULL. NULL does nothing.
///
/// Threads: any, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_free(snapshot: *mut *mut flexfile_snapshot) {
    guarded! {
        drop(ffi::take(snapshot, "snapshot")?);
        Ok(FLEXFILE_OK)
    };
}

/// The sequence number of the last change that the snapshot sees (as in flexspace_stats).
///
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_sequence(snapshot: *mut flexfile_snapshot, out_sequence: *mut u64) -> i32 {
    guarded! {
        ffi::out(out_sequence, "out_sequence")?.write(ffi::handle(snapshot, "snapshot")?.snapshot.sequence());
        Ok(FLEXFILE_OK)
    }
}

/// The file's size in the snapshot.
///
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_size(snapshot: *mut flexfile_snapshot, out_size: *mut u64) -> i32 {
    guarded! {
        ffi::out(out_size, "out_size")?.write(ffi::handle(snapshot, "snapshot")?.snapshot.size());
        Ok(FLEXFILE_OK)
    }
}

/// The file's number of extents in the snapshot.
///
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_extent_count(snapshot: *mut flexfile_snapshot, out_count: *mut u64) -> i32 {
    guarded! {
        ffi::out(out_count, "out_count")?.write(ffi::handle(snapshot, "snapshot")?.snapshot.extent_count());
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_read() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_read(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    dst: *mut c_void,
    cap: usize,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let snapshot = &ffi::handle(snapshot, "snapshot")?.snapshot;
        let dst = ffi::bytes_mut(dst, cap, "dst")?;
        let out = ffi::out(out_len, "out_len")?;
        out.write(snapshot.read(offset, dst)?);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_read_buf() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_read_buf(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    len: u64,
    buf: *mut flexfile_buf,
) -> i32 {
    guarded! {
        let snapshot = &ffi::handle(snapshot, "snapshot")?.snapshot;
        buf::fill(buf, |bytes| {
            read_to_vec(bytes, snapshot.size(), offset, len, |dst| snapshot.read(offset, dst))
        })?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_readv() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_readv(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    iov: *const libc::iovec,
    count: usize,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let snapshot = &ffi::handle(snapshot, "snapshot")?.snapshot;
        let mut slices = ffi::io_slices_mut(iov, count)?;
        let out = ffi::out(out_len, "out_len")?;
        out.write(snapshot.read_vectored(offset, &mut slices)?);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_read_extent() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_read_extent(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    dst: *mut c_void,
    cap: usize,
    out_extent: *mut flexfile_extent,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let snapshot = &ffi::handle(snapshot, "snapshot")?.snapshot;
        let dst = ffi::bytes_mut(dst, cap, "dst")?;
        let (extent, out) = (ExtentOut::new(out_extent, "out_extent")?, ffi::out(out_len, "out_len")?);
        let (info, len) = snapshot.read_extent(offset, dst)?;
        extent.write(&info);
        out.write(len);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_read_extent_buf() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_read_extent_buf(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    buf: *mut flexfile_buf,
    out_extent: *mut flexfile_extent,
) -> i32 {
    guarded! {
        let snapshot = &ffi::handle(snapshot, "snapshot")?.snapshot;
        let extent = ExtentOut::new(out_extent, "out_extent")?;
        let info = buf::fill(buf, |bytes| extent_to_vec(bytes, |dst| snapshot.read_extent(offset, dst)))?;
        extent.write(&info);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_next_data() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_next_data(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    out_offset: *mut u64,
) -> i32 {
    guarded! {
        let out = ffi::out(out_offset, "out_offset")?;
        let next = ffi::handle(snapshot, "snapshot")?.snapshot.next_data(offset)?;
        Ok(found(&out, next, "no data at or behind the offset"))
    }
}

/// flexfile_next_hole() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_next_hole(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    out_offset: *mut u64,
) -> i32 {
    guarded! {
        let out = ffi::out(out_offset, "out_offset")?;
        let next = ffi::handle(snapshot, "snapshot")?.snapshot.next_hole(offset)?;
        Ok(found(&out, next, "the offset is at or behind the end of the file"))
    }
}

/// flexfile_get_tag() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_get_tag(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    out_tag: *mut u16,
) -> i32 {
    guarded! {
        let out = ffi::out(out_tag, "out_tag")?;
        out.write(ffi::handle(snapshot, "snapshot")?.snapshot.tag(offset)?.0);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_next_tagged() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_next_tagged(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    out_offset: *mut u64,
    out_tag: *mut u16,
) -> i32 {
    guarded! {
        let snapshot = &ffi::handle(snapshot, "snapshot")?.snapshot;
        tag::found(out_offset, out_tag, || snapshot.next_tagged(offset))
    }
}

/// flexfile_prev_tagged() of a snapshot.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_snapshot_prev_tagged(
    snapshot: *mut flexfile_snapshot,
    offset: u64,
    out_offset: *mut u64,
    out_tag: *mut u16,
) -> i32 {
    guarded! {
        let snapshot = &ffi::handle(snapshot, "snapshot")?.snapshot;
        tag::found(out_offset, out_tag, || snapshot.prev_tagged(offset))
    }
}
