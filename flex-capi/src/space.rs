//! `flexspace`: a directory with any number of files. Open, close, its files by name, durability, upkeep.

#![allow(unsafe_code)]

use crate::ffi;
use crate::file::flexfile;
use crate::list::flexspace_file_list;
use crate::options::{flexfile_options, options_or_default};
use crate::panic::guarded;
use crate::status::FLEXFILE_OK;
use flex_core::file::FlexSpace;
use std::ffi::c_char;

/// A space: a directory that holds any number of files, which share its log, its room and its sync.
///
/// Threads: any number at once.
pub struct flexspace {
    pub(crate) space: FlexSpace,
    /// Whether this handle's close closes the space: it is the one that opened it.
    owner: bool,
}

impl flexspace {
    /// A handle that leaves the space open when it is closed.
    pub(crate) fn view(space: FlexSpace) -> flexspace {
        flexspace { space, owner: false }
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<flexspace>();
};

/// Opens the space in the directory `path`, which is created when it is missing (not its parents).
///
/// options: NULL for the defaults. out_space: close it with flexspace_close().
/// Errors: FLEXFILE_NOT_FOUND (no space, or no parent directory), FLEXFILE_ALREADY_EXISTS, FLEXFILE_BUSY (another
/// handle or process has it open; the text names the process), FLEXFILE_INVALID_ARGUMENT (a directory with other
/// things in it, a path that is no directory), FLEXFILE_WRONG_VERSION, FLEXFILE_CORRUPTION, FLEXFILE_NO_SPACE,
/// FLEXFILE_IO.
/// Threads: any. Durability: a created space is durable when the call returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_open(
    path: *const c_char,
    options: *const flexfile_options,
    out_space: *mut *mut flexspace,
) -> i32 {
    guarded! {
        let out = ffi::out(out_space, "out_space")?;
        let space = FlexSpace::open(ffi::path(path)?, &options_or_default(options)?)?;
        out.write_handle(flexspace { space, owner: true });
        Ok(FLEXFILE_OK)
    }
}

/// Closes the space: waits for the calls inside, makes everything durable, releases the lock. Frees the handle in any
/// case and sets the variable to NULL; NULL and a variable that is NULL are FLEXFILE_OK.
///
/// Handles of files, snapshots, cursors and groups that are still there stay valid, answer FLEXFILE_CLOSED, and are to
/// be freed as usual, in any order. On a handle from flexfile_space() it frees the handle only; the space stays open.
/// Errors: the common ones, the write ones. After an error, opening again gives everything that was durable before.
/// Threads: any, once; no other thread may use this handle any more. Durability: everything is durable on FLEXFILE_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_close(space: *mut *mut flexspace) -> i32 {
    guarded! {
        match ffi::take(space, "space")? {
            Some(handle) if handle.owner => handle.space.close()?,
            _ => (),
        }
        Ok(FLEXFILE_OK)
    }
}

/// Creates an empty file.
///
/// name: 1 to 255 bytes. out_file: close it with flexfile_close(), which leaves the space open.
/// Errors: the common ones, the write ones, FLEXFILE_ALREADY_EXISTS, FLEXFILE_INVALID_ARGUMENT (the name).
/// Threads: any. Durability: by the space's mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_create_file(
    space: *mut flexspace,
    name: *const c_char,
    out_file: *mut *mut flexfile,
) -> i32 {
    guarded! {
        let out = ffi::out(out_file, "out_file")?;
        let file = ffi::handle(space, "space")?.space.create_file(ffi::name(name)?)?;
        out.write_handle(flexfile::of_space(file));
        Ok(FLEXFILE_OK)
    }
}

/// Opens a file of the space. Any number of handles of one file may be open.
///
/// out_file: close it with flexfile_close(), which leaves the space open.
/// Errors: the common ones, FLEXFILE_NOT_FOUND, FLEXFILE_INVALID_ARGUMENT (the name). Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_open_file(
    space: *mut flexspace,
    name: *const c_char,
    out_file: *mut *mut flexfile,
) -> i32 {
    guarded! {
        let out = ffi::out(out_file, "out_file")?;
        let file = ffi::handle(space, "space")?.space.open_file(ffi::name(name)?)?;
        out.write_handle(flexfile::of_space(file));
        Ok(FLEXFILE_OK)
    }
}

/// Lists the files of the space, all as of one moment.
///
/// out_list: free it with flexspace_file_list_free().
/// Errors: the common ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_list_files(space: *mut flexspace, out_list: *mut *mut flexspace_file_list) -> i32 {
    guarded! {
        let out = ffi::out(out_list, "out_list")?;
        out.write_handle(flexspace_file_list::new(ffi::handle(space, "space")?.space.list_files()?));
        Ok(FLEXFILE_OK)
    }
}

/// Renames a file; open handles of it go on.
///
/// Errors: the common ones, the write ones, FLEXFILE_NOT_FOUND (from), FLEXFILE_ALREADY_EXISTS (to),
/// FLEXFILE_INVALID_ARGUMENT (a name). Threads: any. Durability: by the space's mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_rename_file(space: *mut flexspace, from: *const c_char, to: *const c_char) -> i32 {
    guarded! {
        ffi::handle(space, "space")?.space.rename_file(ffi::name(from)?, ffi::name(to)?)?;
        Ok(FLEXFILE_OK)
    }
}

/// Removes a file. Open handles of it answer FLEXFILE_NOT_FOUND from now on; snapshots still read it.
///
/// Errors: the common ones, the write ones but FLEXFILE_NO_SPACE, FLEXFILE_NOT_FOUND, FLEXFILE_INVALID_ARGUMENT (the
/// name). Threads: any. Durability: by the space's mode; the room comes back after that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_remove_file(space: *mut flexspace, name: *const c_char) -> i32 {
    guarded! {
        ffi::handle(space, "space")?.space.remove_file(ffi::name(name)?)?;
        Ok(FLEXFILE_OK)
    }
}

/// Hands everything written so far to the system: it survives the death of the process.
///
/// Errors: the common ones, the write ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_flush(space: *mut flexspace) -> i32 {
    guarded! {
        ffi::handle(space, "space")?.space.flush()?;
        Ok(FLEXFILE_OK)
    }
}

/// Makes everything written so far, to any file of the space, durable: it survives the death of the machine.
///
/// Errors: the common ones, the write ones. Threads: any; several that wait share one flush of the device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_sync(space: *mut flexspace) -> i32 {
    guarded! {
        ffi::handle(space, "space")?.space.sync()?;
        Ok(FLEXFILE_OK)
    }
}

/// Writes a checkpoint now, so that the next open has nothing to replay. The library does so by itself in time.
///
/// Errors: the common ones, the write ones. Threads: any; neither readers nor writers wait for it.
/// Durability: what the checkpoint holds is durable on FLEXFILE_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_checkpoint(space: *mut flexspace) -> i32 {
    guarded! {
        ffi::handle(space, "space")?.space.checkpoint()?;
        Ok(FLEXFILE_OK)
    }
}

/// Collects garbage now: gathers what is live in half-empty segments and gives their room back. The library does so by
/// itself as room is needed.
///
/// out_segments_freed, out_bytes_copied: what it did; each may be NULL.
/// Errors: the common ones, the write ones. Threads: any; readers and writers go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_gc(
    space: *mut flexspace,
    out_segments_freed: *mut u64,
    out_bytes_copied: *mut u64,
) -> i32 {
    guarded! {
        let handle = ffi::handle(space, "space")?;
        gc(&handle.space, out_segments_freed, out_bytes_copied)
    }
}

/// What `flexspace_gc` and `flexfile_gc` share.
pub(crate) unsafe fn gc(
    space: &FlexSpace,
    out_segments_freed: *mut u64,
    out_bytes_copied: *mut u64,
) -> flex_core::Result<i32> {
    // SAFETY: passed on.
    let (segments, bytes) = unsafe {
        (
            ffi::optional_out(out_segments_freed, "out_segments_freed")?,
            ffi::optional_out(out_bytes_copied, "out_bytes_copied")?,
        )
    };
    let report = space.gc()?;
    if let Some(out) = segments {
        out.write(report.segments_freed);
    }
    if let Some(out) = bytes {
        out.write(report.bytes_copied);
    }
    Ok(FLEXFILE_OK)
}

/// The commit word: the number that the last group with one left (flexspace_group_set_commit_word()); 0 at first. It is
/// as durable as that group, so that a program finds out after a crash how far it had come.
///
/// Errors: the common ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_commit_word(space: *mut flexspace, out_word: *mut u64) -> i32 {
    guarded! {
        let out = ffi::out(out_word, "out_word")?;
        out.write(ffi::handle(space, "space")?.space.commit_word()?);
        Ok(FLEXFILE_OK)
    }
}
