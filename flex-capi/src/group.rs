//! `flexspace_group`: changes of several files that are committed together, or not at all.

#![allow(unsafe_code)]

use crate::ffi;
use crate::file::flexfile;
use crate::panic::guarded;
use crate::space::flexspace;
use crate::status::FLEXFILE_OK;
use flex_core::address::Tag;
use flex_core::file::{FlexFile, Group};
use flex_core::{Error, ErrorKind, Result};
use parking_lot::{Mutex, MutexGuard};
use std::ffi::c_void;

/// Changes of several files that are committed together, in one atomic step, or not at all. The group sees its own
/// changes; nobody else does before the commit. It locks its files for other writers, not for readers.
///
/// Threads: one at a time; a second one inside gets FLEXFILE_BUSY.
pub struct flexspace_group {
    group: Mutex<Group>,
}

impl flexspace_group {
    /// The group for this call; never waits, so that a child of fork() can't hang on a lock that nobody releases.
    fn lock(&self) -> Result<MutexGuard<'_, Group>> {
        self.group.try_lock().ok_or_else(|| Error::new(ErrorKind::Busy, "another thread is in this group"))
    }
}

const _: () = {
    const fn moved_between_threads<T: Send>() {}
    moved_between_threads::<flexspace_group>();
};

/// Begins a group over `count` files of the space: waits until no other group or writer is in them, and keeps other
/// writers out until it is committed or freed.
///
/// A thread that holds a group must change its files through the group only: a plain write to one of them would wait
/// for the group, for ever. Groups that overlap may be begun in any order; none waits in a circle.
/// files: each once. out_group: end it with flexspace_group_commit() or flexspace_group_free().
/// Errors: the common ones, FLEXFILE_READ_ONLY, FLEXFILE_NOT_FOUND (a removed file), FLEXFILE_INVALID_ARGUMENT (a file
/// named twice or of another space). Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_begin(
    space: *mut flexspace,
    files: *const *mut flexfile,
    count: usize,
    out_group: *mut *mut flexspace_group,
) -> i32 {
    guarded! {
        let space = &ffi::handle(space, "space")?.space;
        let out = ffi::out(out_group, "out_group")?;
        let files = ffi::array(files, count, "files")?
            .iter()
            .map(|file| Ok(&ffi::handle(*file, "files[]")?.file))
            .collect::<Result<Vec<&FlexFile>>>()?;
        out.write_handle(flexspace_group { group: Mutex::new(space.group(&files)?) });
        Ok(FLEXFILE_OK)
    }
}

/// Commits the group's changes in one atomic step. Frees the group in any case and sets the variable to NULL; NULL and
/// a variable that is NULL are FLEXFILE_OK.
///
/// Errors: the common ones, the write ones; nothing is changed then.
/// Threads: one, once. Durability: by the space's mode, as of one call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_commit(group: *mut *mut flexspace_group) -> i32 {
    guarded! {
        if let Some(handle) = ffi::take(group, "group")? {
            handle.group.into_inner().commit()?;
        }
        Ok(FLEXFILE_OK)
    }
}

/// Undoes the group's changes, frees it, and sets the variable to NULL. NULL does nothing.
///
/// Threads: one, once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_free(group: *mut *mut flexspace_group) {
    guarded! {
        drop(ffi::take(group, "group")?);
        Ok(FLEXFILE_OK)
    };
}

/// Sets the number that becomes the space's commit word with this commit (flexspace_commit_word()).
///
/// Errors: FLEXFILE_BUSY, FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_set_commit_word(group: *mut flexspace_group, word: u64) -> i32 {
    guarded! {
        ffi::handle(group, "group")?.lock()?.set_commit_word(word);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_size() as the group sees it.
///
/// file: one of the group's; any other is FLEXFILE_INVALID_ARGUMENT, here and in the following functions.
/// Errors: the common ones, FLEXFILE_BUSY. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_size(
    group: *mut flexspace_group,
    file: *mut flexfile,
    out_size: *mut u64,
) -> i32 {
    guarded! {
        let group = ffi::handle(group, "group")?.lock()?;
        let out = ffi::out(out_size, "out_size")?;
        out.write(group.size(&ffi::handle(file, "file")?.file)?);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_read() as the group sees it, its own changes included.
///
/// Errors: as flexfile_read(), FLEXFILE_BUSY. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_read(
    group: *mut flexspace_group,
    file: *mut flexfile,
    offset: u64,
    dst: *mut c_void,
    cap: usize,
    out_len: *mut usize,
) -> i32 {
    guarded! {
        let group = ffi::handle(group, "group")?.lock()?;
        let file = &ffi::handle(file, "file")?.file;
        let dst = ffi::bytes_mut(dst, cap, "dst")?;
        let out = ffi::out(out_len, "out_len")?;
        out.write(group.read(file, offset, dst)?);
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_write() within the group.
///
/// Errors: as flexfile_write(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
/// Durability: with the commit; so for all that follow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_write(
    group: *mut flexspace_group,
    file: *mut flexfile,
    offset: u64,
    data: *const c_void,
    len: usize,
) -> i32 {
    guarded! {
        let mut group = ffi::handle(group, "group")?.lock()?;
        let file = &ffi::handle(file, "file")?.file;
        group.write(file, offset, ffi::bytes(data, len, "data")?)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_insert() within the group.
///
/// Errors: as flexfile_insert(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_insert(
    group: *mut flexspace_group,
    file: *mut flexfile,
    offset: u64,
    data: *const c_void,
    len: usize,
) -> i32 {
    guarded! {
        let mut group = ffi::handle(group, "group")?.lock()?;
        let file = &ffi::handle(file, "file")?.file;
        group.insert(file, offset, ffi::bytes(data, len, "data")?)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_insert_hole() within the group.
///
/// Errors: as flexfile_insert_hole(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_insert_hole(
    group: *mut flexspace_group,
    file: *mut flexfile,
    offset: u64,
    len: u64,
) -> i32 {
    guarded! {
        let mut group = ffi::handle(group, "group")?.lock()?;
        group.insert_hole(&ffi::handle(file, "file")?.file, offset, len)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_collapse() within the group.
///
/// Errors: as flexfile_collapse(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_collapse(
    group: *mut flexspace_group,
    file: *mut flexfile,
    offset: u64,
    len: u64,
) -> i32 {
    guarded! {
        let mut group = ffi::handle(group, "group")?.lock()?;
        group.collapse(&ffi::handle(file, "file")?.file, offset, len)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_update() within the group.
///
/// Errors: as flexfile_update(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_update(
    group: *mut flexspace_group,
    file: *mut flexfile,
    offset: u64,
    old_len: u64,
    data: *const c_void,
    len: usize,
) -> i32 {
    guarded! {
        let mut group = ffi::handle(group, "group")?.lock()?;
        let file = &ffi::handle(file, "file")?.file;
        group.update(file, offset, old_len, ffi::bytes(data, len, "data")?)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_truncate() within the group.
///
/// Errors: as flexfile_truncate(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_truncate(group: *mut flexspace_group, file: *mut flexfile, size: u64) -> i32 {
    guarded! {
        let mut group = ffi::handle(group, "group")?.lock()?;
        group.truncate(&ffi::handle(file, "file")?.file, size)?;
        Ok(FLEXFILE_OK)
    }
}

/// flexfile_set_tag() within the group.
///
/// Errors: as flexfile_set_tag(), FLEXFILE_BUSY; the group goes on without this change. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_group_set_tag(
    group: *mut flexspace_group,
    file: *mut flexfile,
    offset: u64,
    tag: u16,
) -> i32 {
    guarded! {
        let mut group = ffi::handle(group, "group")?.lock()?;
        group.set_tag(&ffi::handle(file, "file")?.file, offset, Tag(tag))?;
        Ok(FLEXFILE_OK)
    }
}
