//! `flexfile`: a handle of one file. Open, close, size, durability; upkeep of its space.
//!
//! A handle from `flexfile_open` owns its space (one file, named "data", in a directory of its own) and closes it; one
//! from `flexspace_open_file` and `flexspace_create_file` only leaves it. Reading is in `read`, changing in `edit`.

#![allow(unsafe_code)]

use crate::ffi;
use crate::options::{flexfile_options, options_or_default};
use crate::panic::guarded;
use crate::space::{self, flexspace};
use crate::status::FLEXFILE_OK;
use flex_core::file::{FlexFile, FlexSpace, SpaceOptions};
use flex_core::{ErrorKind, Result};
use std::ffi::c_char;
use std::path::Path;

/// The name of the file in a space that `flexfile_open` made.
const ONLY_FILE: &[u8] = b"data";

/// A file: bytes that can be read, overwritten, inserted and removed anywhere.
///
/// Threads: any number at once. Readers never wait for writers, and see each call's change whole or not at all.
pub struct flexfile {
    pub(crate) file: FlexFile,
    /// The space to close with this handle.
    owned: Option<FlexSpace>,
}

impl flexfile {
    /// A handle that leaves its space open.
    pub(crate) fn of_space(file: FlexFile) -> flexfile {
        flexfile { file, owned: None }
    }
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<flexfile>();
};

/// Opens the one file kept in the directory `path`: a space with a file named "data" in it, both created when they are
/// missing (the directory's parents are not).
///
/// options: NULL for the defaults. out_file: close it with flexfile_close(), which closes the space too.
/// Errors: those of flexspace_open(); FLEXFILE_NOT_FOUND also for a space without such a file that may not be created.
/// Threads: any. Durability: a created space is durable when the call returns, its empty file by the space's mode.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_open(
    path: *const c_char,
    options: *const flexfile_options,
    out_file: *mut *mut flexfile,
) -> i32 {
    guarded! {
        let out = ffi::out(out_file, "out_file")?;
        out.write_handle(open_only_file(ffi::path(path)?, &options_or_default(options)?)?);
        Ok(FLEXFILE_OK)
    }
}

fn open_only_file(path: &Path, options: &SpaceOptions) -> Result<flexfile> {
    let space = FlexSpace::open(path, options)?;
    let file = match space.open_file(ONLY_FILE) {
        Err(error) if error.kind() == ErrorKind::NotFound && options.create && !options.read_only => {
            space.create_file(ONLY_FILE)
        }
        opened => opened,
    };
    match file {
        Ok(file) => Ok(flexfile { file, owned: Some(space) }),
        Err(error) => {
            // Closed for its lock; what it answers matters less than why the file can't be opened.
            let _ = space.close();
            Err(error.at_path(path))
        }
    }
}

/// Closes the handle, frees it in any case, and sets the variable to NULL; NULL and a variable that is NULL are
/// FLEXFILE_OK.
///
/// A handle from flexfile_open() closes its space as flexspace_close() does: it waits for the calls inside and makes
/// everything durable. Any other leaves the space and other handles as they are, and makes nothing durable.
/// Errors: for a handle from flexfile_open() the common ones, the write ones; else none.
/// Threads: any, once; no other thread may use this handle any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_close(file: *mut *mut flexfile) -> i32 {
    guarded! {
        if let Some(space) = ffi::take(file, "file")?.and_then(|handle| handle.owned) {
            space.close()?;
        }
        Ok(FLEXFILE_OK)
    }
}

/// A handle of the space that the file is in, for all that flexspace_* offers beside it.
///
/// out_space: give it back with flexspace_close(), which leaves the space open: who opened it closes it.
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_space(file: *mut flexfile, out_space: *mut *mut flexspace) -> i32 {
    guarded! {
        let out = ffi::out(out_space, "out_space")?;
        out.write_handle(flexspace::view(ffi::handle(file, "file")?.file.space()));
        Ok(FLEXFILE_OK)
    }
}

/// The file's number: no other file of the space has it or will have it, and renaming keeps it.
///
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_id(file: *mut flexfile, out_id: *mut u64) -> i32 {
    guarded! {
        ffi::out(out_id, "out_id")?.write(ffi::handle(file, "file")?.file.id());
        Ok(FLEXFILE_OK)
    }
}

/// The size in bytes.
///
/// Errors: the common ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_size(file: *mut flexfile, out_size: *mut u64) -> i32 {
    guarded! {
        let out = ffi::out(out_size, "out_size")?;
        out.write(ffi::handle(file, "file")?.file.size()?);
        Ok(FLEXFILE_OK)
    }
}

/// The number of extents, the pieces that the file's bytes lie in on disk; holes count.
///
/// Errors: the common ones. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_extent_count(file: *mut flexfile, out_count: *mut u64) -> i32 {
    guarded! {
        let out = ffi::out(out_count, "out_count")?;
        out.write(ffi::handle(file, "file")?.file.extent_count()?);
        Ok(FLEXFILE_OK)
    }
}

/// flexspace_flush() of the file's space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_flush(file: *mut flexfile) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.space().flush()?;
        Ok(FLEXFILE_OK)
    }
}

/// flexspace_sync() of the file's space: everything written so far is durable on FLEXFILE_OK.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_sync(file: *mut flexfile) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.space().sync()?;
        Ok(FLEXFILE_OK)
    }
}

/// flexspace_checkpoint() of the file's space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_checkpoint(file: *mut flexfile) -> i32 {
    guarded! {
        ffi::handle(file, "file")?.file.space().checkpoint()?;
        Ok(FLEXFILE_OK)
    }
}

/// flexspace_gc() of the file's space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_gc(
    file: *mut flexfile,
    out_segments_freed: *mut u64,
    out_bytes_copied: *mut u64,
) -> i32 {
    guarded! {
        space::gc(&ffi::handle(file, "file")?.file.space(), out_segments_freed, out_bytes_copied)
    }
}
