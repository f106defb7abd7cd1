//! Checking a space: every byte read, every checksum and cross-reference compared.

#![allow(unsafe_code)]

use crate::ffi;
use crate::file::flexfile;
use crate::options::c_text;
use crate::panic::guarded;
use crate::space::flexspace;
use crate::status::{FLEXFILE_CANCELLED, FLEXFILE_OK, FLEXFILE_PROBLEMS_FOUND, answer};
use flex_core::Result;
use flex_core::file::{CheckReport, FlexSpace};
use std::ffi::{c_char, c_void};

/// Hears how far a check is: `done` of `total` steps. 0 goes on, anything else stops the check.
///
/// It is called on the checking thread and must not throw or longjmp.
pub type flexspace_progress_callback = Option<unsafe extern "C" fn(ctx: *mut c_void, done: u64, total: u64) -> i32>;

/// Hears of a problem that a check found: in which file of the directory, at which byte of it, what. The texts are
/// valid during the call only.
///
/// It is called on the checking thread and must not throw or longjmp.
pub type flexspace_problem_callback =
    Option<unsafe extern "C" fn(ctx: *mut c_void, file: *const c_char, offset: u64, text: *const c_char)>;

/// What a check went through. Set struct_size before the call. New fields are added at the end only.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct flexspace_check_report {
    /// sizeof(flexspace_check_report), set by the caller.
    pub struct_size: usize,
    /// Files walked.
    pub files: u64,
    /// Extents walked.
    pub extents: u64,
    /// Bytes of data whose checksum was compared.
    pub bytes_verified: u64,
    /// Pages of the extent trees whose checksum was compared.
    pub pages_verified: u64,
    /// Problems found.
    pub problems: u64,
}

/// The caller's callbacks and their context.
struct Listener {
    progress: flexspace_progress_callback,
    problem: flexspace_problem_callback,
    ctx: *mut c_void,
}

unsafe fn check(space: &FlexSpace, listener: &Listener, out_report: *mut flexspace_check_report) -> Result<i32> {
    let out = match out_report.is_null() {
        true => None,
        // SAFETY: passed on.
        false => Some(unsafe { ffi::struct_size(out_report, size_of::<flexspace_check_report>(), "out_report") }?),
    };
    let mut cancelled = false;
    let result = space.check(&mut |progress| {
        if let Some(callback) = listener.progress {
            // SAFETY: the caller's function with the caller's context.
            cancelled = unsafe { callback(listener.ctx, progress.done, progress.total) } != 0;
        }
        !cancelled
    });
    if cancelled && result.is_err() {
        return Ok(answer(FLEXFILE_CANCELLED, "the progress callback stopped the check"));
    }
    let report = result?;
    if let Some((out, struct_size)) = out {
        // SAFETY: `struct_size` read this size.
        unsafe { ffi::write_sized(out, struct_size, &to_c(struct_size, &report)) };
    }
    if let Some(callback) = listener.problem {
        for problem in &report.problems {
            let (file, text) = (c_text(&problem.file), c_text(&problem.text));
            // SAFETY: the caller's function with the caller's context; the texts outlive the call.
            unsafe { callback(listener.ctx, file.as_ptr(), problem.offset, text.as_ptr()) };
        }
    }
    match report.problems.first() {
        None => Ok(FLEXFILE_OK),
        Some(first) => {
            let count = report.problems.len();
            let text = format!("{count} problems; the first: {} at byte {}: {}", first.file, first.offset, first.text);
            Ok(answer(FLEXFILE_PROBLEMS_FOUND, &text))
        }
    }
}

fn to_c(struct_size: usize, report: &CheckReport) -> flexspace_check_report {
    flexspace_check_report {
        struct_size,
        files: report.files,
        extents: report.extents,
        bytes_verified: report.bytes_verified,
        pages_verified: report.pages_verified,
        problems: report.problems.len() as u64,
    }
}

/// Reads and compares everything in the space.
///
/// progress, problem: either may be NULL; both get ctx. out_report: set struct_size first; may be NULL; written with
/// FLEXFILE_OK (all is sound) and FLEXFILE_PROBLEMS_FOUND (the last error text names the first).
/// Errors: the common ones, FLEXFILE_PROBLEMS_FOUND, FLEXFILE_CANCELLED. Threads: any; others go on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexspace_check(
    space: *mut flexspace,
    progress: flexspace_progress_callback,
    problem: flexspace_problem_callback,
    ctx: *mut c_void,
    out_report: *mut flexspace_check_report,
) -> i32 {
    guarded! {
        // A handle of its own: a callback may close, and so free, the caller's.
        let space = ffi::handle(space, "space")?.space.clone();
        check(&space, &Listener { progress, problem, ctx }, out_report)
    }
}

/// flexspace_check() of the file's space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_check(
    file: *mut flexfile,
    progress: flexspace_progress_callback,
    problem: flexspace_problem_callback,
    ctx: *mut c_void,
    out_report: *mut flexspace_check_report,
) -> i32 {
    guarded! { check(&ffi::handle(file, "file")?.file.space(), &Listener { progress, problem, ctx }, out_report) }
}
