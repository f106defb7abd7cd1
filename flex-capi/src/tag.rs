//! Tags: 16-bit marks on bytes, which move with them.

#![allow(unsafe_code)]

use crate::ffi;
use crate::file::flexfile;
use crate::panic::guarded;
use crate::status::{FLEXFILE_NOT_FOUND, FLEXFILE_OK, answer};
use flex_core::Result;
use flex_core::address::Tag;

/// Writes a found tag and its place, or answers that there is none.
pub(crate) unsafe fn found(
    out_offset: *mut u64,
    out_tag: *mut u16,
    find: impl FnOnce() -> Result<Option<(u64, Tag)>>,
) -> Result<i32> {
    // SAFETY: passed on.
    let (offset, tag) = unsafe { (ffi::out(out_offset, "out_offset")?, ffi::optional_out(out_tag, "out_tag")?) };
    Ok(match find()? {
        Some((place, found)) => {
            offset.write(place);
            if let Some(tag) = tag {
                tag.write(found.0);
            }
            FLEXFILE_OK
        }
        None => answer(FLEXFILE_NOT_FOUND, "no tagged byte on that side of the offset"),
    })
}

/// Tags the byte at `offset`; 0 takes the tag away. The tag moves with its byte, and goes when the byte is removed.
///
/// Errors: the common ones, the write ones, FLEXFILE_OUT_OF_RANGE at or behind the end.
/// Threads: any. Durability: by the space's mode; atomic.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_set_tag(file: *mut flexfile, offset: u64, tag: u16) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.set_tag(offset, Tag(tag))?;
        Ok(FLEXFILE_OK)
    }
}

/// The tag of the byte at `offset`; 0 when it has none.
///
/// Errors: the common ones, FLEXFILE_OUT_OF_RANGE at or behind the end. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_get_tag(file: *mut flexfile, offset: u64, out_tag: *mut u16) -> i32 {
    guarded! {
        let out = ffi::out(out_tag, "out_tag")?;
        out.write(ffi::handle(file, "file")?.file.tag(offset)?.0);
        Ok(FLEXFILE_OK)
    }
}

/// The first tagged byte at or behind `offset`.
///
/// out_offset: where it is. out_tag: its tag; may be NULL.
/// Errors: the common ones, FLEXFILE_NOT_FOUND when there is none. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_next_tagged(
    file: *mut flexfile,
    offset: u64,
    out_offset: *mut u64,
    out_tag: *mut u16,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        found(out_offset, out_tag, || file.next_tagged(offset))
    }
}

/// The last tagged byte at or before `offset`.
///
/// out_offset: where it is. out_tag: its tag; may be NULL.
/// Errors: the common ones, FLEXFILE_NOT_FOUND when there is none. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_prev_tagged(
    file: *mut flexfile,
    offset: u64,
    out_offset: *mut u64,
    out_tag: *mut u16,
) -> i32 {
    guarded! {
        let file = &ffi::handle(file, "file")?.file;
        found(out_offset, out_tag, || file.prev_tagged(offset))
    }
}
