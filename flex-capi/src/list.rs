//! `flexspace_file_list`: the files of a space or of a snapshot, as of one moment.

#![allow(unsafe_code)]

use crate::ffi;
use crate::panic::guarded;
use crate::status::{FLEXFILE_NOT_FOUND, FLEXFILE_OK, answer};
use flex_core::file::FileEntry;
use std::ffi::{CString, c_char};

/// A list of files. It belongs to the caller and stays valid after the space is closed.
///
/// Threads: any number at once.
pub struct flexspace_file_list {
    /// Each with its name for C.
    entries: Vec<(CString, FileEntry)>,
}

impl flexspace_file_list {
    pub(crate) fn new(entries: Vec<FileEntry>) -> flexspace_file_list {
        // Names have no NUL by the core's rule; one that had would show as "".
        let with_name = |it: FileEntry| (CString::new(it.name.clone()).unwrap_or_default(), it);
        flexspace_file_list { entries: entries.into_iter().map(with_name).collect() }
    }
}

/// One file of a list. Set struct_size before the call.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct flexspace_file_entry {
    /// sizeof(flexspace_file_entry), set by the caller.
    pub struct_size: usize,
    /// The name, NUL-terminated; it belongs to the list.
    pub name: *const c_char,
    /// The length of the name in bytes.
    pub name_len: usize,
    /// A number that no other file of this space has or will have.
    pub id: u64,
    /// The size in bytes.
    pub size: u64,
    /// The number of extents.
    pub extents: u64,
}

/// The number of files in a list; 0 for NULL.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_file_list_count(list: *const flexspace_file_list) -> usize {
    let mut count = 0;
    guarded! {
        count = ffi::handle(list, "list")?.entries.len();
        Ok(FLEXFILE_OK)
    };
    count
}

/// The file at a place of the list, from 0.
///
/// out_entry: set struct_size first; the name in it is valid until the list is freed.
/// Errors: FLEXFILE_NOT_FOUND behind the last, FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_file_list_get(
    list: *const flexspace_file_list,
    index: usize,
    out_entry: *mut flexspace_file_entry,
) -> i32 {
    guarded! {
        let list = ffi::handle(list, "list")?;
        let (out, struct_size) = ffi::struct_size(out_entry, size_of::<flexspace_file_entry>(), "out_entry")?;
        let Some((name, entry)) = list.entries.get(index) else {
            return Ok(answer(FLEXFILE_NOT_FOUND, "no such place in the list"));
        };
        let entry = flexspace_file_entry {
            struct_size,
            name: name.as_ptr(),
            name_len: name.as_bytes().len(),
            id: entry.id,
            size: entry.size,
            extents: entry.extents,
        };
        ffi::write_sized(out, struct_size, &entry);
        Ok(FLEXFILE_OK)
    }
}

/// Frees a list and sets the variable to NULL. NULL does nothing.
///
/// Threads: any, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_file_list_free(list: *mut *mut flexspace_file_list) {
    guarded! {
        drop(ffi::take(list, "list")?);
        Ok(FLEXFILE_OK)
    };
}
