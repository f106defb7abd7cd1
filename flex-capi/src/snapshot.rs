//! `flexspace_snapshot`: all files of a space as of one moment.

#![allow(unsafe_code)]

use crate::ffi;
use crate::file_snapshot::flexfile_snapshot;
use crate::list::flexspace_file_list;
use crate::panic::guarded;
use crate::space::flexspace;
use crate::status::FLEXFILE_OK;
use flex_core::file::SpaceSnapshot;
use std::ffi::c_char;

/// All files of a space as of one moment. It costs nothing to take; while it lives, what it sees keeps its room.
///
/// Threads: any number at once.
pub struct flexspace_snapshot {
    snapshot: SpaceSnapshot,
}

const _: () = {
    const fn shared_between_threads<T: Send + Sync>() {}
    shared_between_threads::<flexspace_snapshot>();
};

/// Takes a snapshot of the space. It is gone when the space is closed or the process ends.
///
/// out_snapshot: free it with flexspace_snapshot_free().
/// Errors: the common ones. Threads: any; nobody waits for it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_snapshot_new(
    space: *mut flexspace,
    out_snapshot: *mut *mut flexspace_snapshot,
) -> i32 {
    guarded! {
        let out = ffi::out(out_snapshot, "out_snapshot")?;
        out.write_handle(flexspace_snapshot { snapshot: ffi::handle(space, "space")?.space.snapshot()? });
        Ok(FLEXFILE_OK)
    }
}

/// The sequence number of the last change that the snapshot sees (as in flexspace_stats).
///
/// Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_snapshot_sequence(snapshot: *mut flexspace_snapshot, out_sequence: *mut u64) -> i32 {
    guarded! {
        ffi::out(out_sequence, "out_sequence")?.write(ffi::handle(snapshot, "snapshot")?.snapshot.sequence());
        Ok(FLEXFILE_OK)
    }
}

/// Lists the files that the snapshot sees.
///
/// out_list: free it with flexspace_file_list_free(). Errors: FLEXFILE_INVALID_ARGUMENT. Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_snapshot_list_files(
    snapshot: *mut flexspace_snapshot,
    out_list: *mut *mut flexspace_file_list,
) -> i32 {
    guarded! {
        let out = ffi::out(out_list, "out_list")?;
        out.write_handle(flexspace_file_list::new(ffi::handle(snapshot, "snapshot")?.snapshot.list_files()));
        Ok(FLEXFILE_OK)
    }
}

/// Opens a file as the snapshot sees it, removed or renamed since or not.
///
/// out_file: free it with flexfile_snapshot_free(), before or after the snapshot of the space.
/// Errors: the common ones, FLEXFILE_NOT_FOUND, FLEXFILE_INVALID_ARGUMENT (the name). Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_snapshot_open_file(
    snapshot: *mut flexspace_snapshot,
    name: *const c_char,
    out_file: *mut *mut flexfile_snapshot,
) -> i32 {
    guarded! {
        let out = ffi::out(out_file, "out_file")?;
        let file = ffi::handle(snapshot, "snapshot")?.snapshot.open_file(ffi::name(name)?)?;
        out.write_handle(flexfile_snapshot::new(file));
        Ok(FLEXFILE_OK)
    }
}

/// Frees a snapshot and sets the variable to NULL. NULL does nothing.
///
/// Threads: any, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_snapshot_free(snapshot: *mut *mut flexspace_snapshot) {
    guarded! {
        drop(ffi::take(snapshot, "snapshot")?);
        Ok(FLEXFILE_OK)
    };
}
