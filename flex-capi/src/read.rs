//! Reading a file: bytes, extents, where data and holes are. Readers never wait for writers.

#![allow(unsafe_code)]

use crate::buf::{self, flexfile_buf};
use crate::ffi;
use crate::file::flexfile;
use crate::panic::guarded;
use crate::status::{FLEXFILE_NOT_FOUND, FLEXFILE_OK, answer};
use flex_core::Result;
use flex_core::file::ExtentInfo;

/// In the flags of a flexfile_extent: a hole, bytes that were never written and read as zeros.
pub const FLEXFILE_EXTENT_HOLE: u32 = 1;

/// One extent of a file: bytes that lie together. Set struct_size before the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct flexfile_extent {
    /// sizeof(flexfile_extent), set by the caller.
    pub struct_size: usize,
    /// Where in the file it begins.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// FLEXFILE_EXTENT_*.
    pub flags: u32,
    /// The tag of its first byte; 0 for none.
    pub tag: u16,
    /// 0.
    pub reserved: u16,
}

/// A checked place for an extent.
pub(crate) struct ExtentOut(std::ptr::NonNull<flexfile_extent>, usize);

impl ExtentOut {
    pub(crate) unsafe fn new(pointer: *mut flexfile_extent, what: &str) -> Result<ExtentOut> {
        // SAFETY: passed on.
        unsafe { ffi::struct_size(pointer, size_of::<flexfile_extent>(), what) }.map(|(it, size)| ExtentOut(it, size))
    }

    pub(crate) fn write(&self, info: &ExtentInfo) {
        let flags = if info.is_hole { FLEXFILE_EXTENT_HOLE } else { 0 };
        let extent = flexfile_extent {
            struct_size: self.1,
            offset: info.offset,
            length: info.len,
            flags,
            tag: info.tag.0,
            reserved: 0,
        };
        // SAFETY: `new` was given a struct of this size.
        unsafe { ffi::write_sized(self.0, self.1, &extent) };
    }
}

/// Writes a found offset, or answers that there is none.
pub(crate) fn found(out: &ffi::Out<u64>, offset: Option<u64>, none: &str) -> i32 {
    match offset {
        Some(offset) => {
            out.write(offset);
            FLEXFILE_OK
        }
        None => answer(FLEXFILE_NOT_FOUND, none),
    }
}

/// Reads up to `len` bytes of a source whose size is known into a vector.
pub(crate) fn read_to_vec(
    bytes: &mut Vec<u8>,
    size: u64,
    offset: u64,
    len: u64,
    read: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<()> {
    buf::resize(bytes, len.min(size.saturating_sub(offset)))?;
    let got = read(bytes)?;
    bytes.truncate(got);
    Ok(())
}

/// Reads a whole extent into a vector; nothing of a hole. `read` answers the extent and how much of it the slice took.
pub(crate) fn extent_to_vec(
    bytes: &mut Vec<u8>,
    mut read: impl FnMut(&mut [u8]) -> Result<(ExtentInfo, usize)>,
) -> Result<ExtentInfo> {
    loop {
        let (info, got) = read(bytes)?;
        if info.is_hole {
            bytes.clear();
            return Ok(info);
        }
        if got as u64 >= info.len {
            bytes.truncate(got);
            return Ok(info);
        }
        // Longer than the vector, or a writer put another extent there meanwhile.
        buf::resize(bytes, info.len)?;
    }
}

/// Reads up to `cap` bytes from `offset` on, all as of one moment.
///
/// dst, cap: where to, and how many at most. out_len: how many there were: fewer than cap only at the end of the file,
/// 0 at or behind it. After an error the content of dst is not defined.
/// Errors: the common ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_read(
    file: *mut flexfile,
    offset: u64,
    dst: *mut std::ffi::c_void,
    cap: usize,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        let dst = ffi::bytes_mut(dst, cap, "dst")?;
        let out = ffi::out(out_len, "out_len")?;
        out.write(file.read(offset, dst)?);
        Ok(FLEXFILE_OK)
    }
}

/// Reads up to `len` bytes from `offset` on, UINT64_MAX for all there are, into a buffer that grows as needed.
///
/// buf: its content is replaced; buf->len says how many there were. After an error it is empty.
/// Errors: the common ones, FLEXFILE_TOO_BIG (no memory for so many). Threads: any; the buffer is for one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_read_buf(file: *mut flexfile, offset: u64, len: u64, buf: *mut flexfile_buf) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        buf::fill(buf, |bytes| read_to_vec(bytes, file.size()?, offset, len, |dst| file.read(offset, dst)))?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_read() into several buffers, one after the other, all as of one moment.
///
/// iov, count: at most 1024 buffers, which don't overlap. out_len: the sum.
/// Errors: the common ones, FLEXFILE_TOO_BIG (count, or the sum of the lengths). Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_readv(
    file: *mut flexfile,
    offset: u64,
    iov: *const libc::iovec,
    count: usize,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        let mut slices = ffi::io_slices_mut(iov, count)?;
        let out = ffi::out(out_len, "out_len")?;
        out.write(file.read_vectored(offset, &mut slices)?);
        Ok(FLEXFILE_OK)
    }
}

/// Finds the extent that covers `offset`, and reads from the extent's own beginning.
///
/// dst, cap: where to, and how many bytes at most. out_extent: the extent; set struct_size first. out_len: how many
/// bytes were read, the smaller of cap and the extent's length (a hole reads as zeros).
/// Errors: the common ones, FLEXFILE_OUT_OF_RANGE at or behind the end of the file. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_read_extent(
    file: *mut flexfile,
    offset: u64,
    dst: *mut std::ffi::c_void,
    cap: usize,
    out_extent: *mut flexfile_extent,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        let dst = ffi::bytes_mut(dst, cap, "dst")?;
        let (extent, out) = (ExtentOut::new(out_extent, "out_extent")?, ffi::out(out_len, "out_len")?);
        let (info, len) = file.read_extent(offset, dst)?;
        extent.write(&info);
        out.write(len);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_read_extent() of the whole extent into a buffer that grows as needed; a hole leaves it empty.
///
/// Errors: the common ones, FLEXFILE_OUT_OF_RANGE, FLEXFILE_TOO_BIG (no memory). Threads: any; the buffer is for one at
/// a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_read_extent_buf(
    file: *mut flexfile,
    offset: u64,
    buf: *mut flexfile_buf,
    out_extent: *mut flexfile_extent,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        let extent = ExtentOut::new(out_extent, "out_extent")?;
        let info = buf::fill(buf, |bytes| extent_to_vec(bytes, |dst| file.read_extent(offset, dst)))?;
        extent.write(&info);
        Ok(FLEXFILE_OK)
    }
}

/// The first offset at or behind `offset` that is not in a hole (as lseek's SEEK_DATA).
///
/// Errors: the common ones, FLEXFILE_NOT_FOUND when only holes follow, or the end. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_next_data(file: *mut flexfile, offset: u64, out_offset: *mut u64) -> i32 {
    guarded! {
        let out = ffi::out(out_offset, "out_offset")?;
        let next = ffi::handle(file, "file")?.file.next_data(offset)?;
        Ok(found(&out, next, "no data at or behind the offset"))
    }
}

/// The first offset at or behind `offset` that is in a hole (as lseek's SEEK_HOLE); the end of the file counts as one.
///
/// Errors: the common ones, FLEXFILE_NOT_FOUND at or behind the end. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_next_hole(file: *mut flexfile, offset: u64, out_offset: *mut u64) -> i32 {
    guarded! {
        let out = ffi::out(out_offset, "out_offset")?;
        let next = ffi::handle(file, "file")?.file.next_hole(offset)?;
        Ok(found(&out, next, "the offset is at or behind the end of the file"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flex_core::address::Tag;

    #[test]
    fn a_whole_extent_is_read_though_it_changes_under_the_reader() {
        let lengths = [10u64, 20, 5];
        let mut call = 0;
        let mut bytes = Vec::new();
        let info = extent_to_vec(&mut bytes, |dst| {
            let len = lengths[call];
            call += 1;
            let got = dst.len().min(len as usize);
            dst[..got].fill(call as u8);
            Ok((ExtentInfo { offset: 7, len, tag: Tag::NONE, is_hole: false }, got))
        });
        assert_eq!(info.unwrap().len, 5);
        assert_eq!(bytes, [3; 5]);
    }

    #[test]
    fn a_hole_is_not_materialised_and_a_read_stops_at_the_size() {
        let mut bytes = vec![1; 4];
        let hole = ExtentInfo { offset: 0, len: 1 << 50, tag: Tag::NONE, is_hole: true };
        extent_to_vec(&mut bytes, |dst| Ok((hole, dst.len()))).unwrap();
        assert!(bytes.is_empty());
        read_to_vec(&mut bytes, 100, 90, u64::MAX, |dst| Ok(dst.len())).unwrap();
        assert_eq!(bytes.len(), 10);
        read_to_vec(&mut bytes, 100, 101, 5, |dst| Ok(dst.len())).unwrap();
        assert!(bytes.is_empty());
    }
}
