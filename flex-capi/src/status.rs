//! The status numbers of the C ABI, and how the core's errors become them.
//!
//! A number is never reused and never changes its meaning. 0 is OK, above 0 is an answer, below 0 an error.

#![allow(unsafe_code)] // `no_mangle`

use crate::last_error;
use flex_core::{Error, ErrorKind};
use std::ffi::{CStr, c_char};

/// The call did what it says.
pub const FLEXFILE_OK: i32 = 0;
/// Answer: there is no such name, tag, extent, data or hole.
pub const FLEXFILE_NOT_FOUND: i32 = 1;
/// Answer of the functions ending in _into: the destination is too small, nothing was copied.
pub const FLEXFILE_BUFFER_TOO_SMALL: i32 = 2;
/// Answer of a check: it went to the end and found problems.
pub const FLEXFILE_PROBLEMS_FOUND: i32 = 3;
/// Answer of a check: the progress callback stopped it.
pub const FLEXFILE_CANCELLED: i32 = 4;
/// The operating system refused a read, write or sync; see flexfile_last_error_errno().
pub const FLEXFILE_IO: i32 = -1;
/// Bytes on disk fail their checksum or contradict each other.
pub const FLEXFILE_CORRUPTION: i32 = -2;
/// An argument has no meaning: NULL, an unknown flag or enum value, a bad name. Nothing was changed.
pub const FLEXFILE_INVALID_ARGUMENT: i32 = -3;
/// The disk is full. Nothing was changed; removing bytes and reading go on.
pub const FLEXFILE_NO_SPACE: i32 = -4;
/// Another process, handle or thread holds what is asked for.
pub const FLEXFILE_BUSY: i32 = -5;
/// An earlier write or sync failed: only reads go on until the space is closed and opened again.
pub const FLEXFILE_POISONED: i32 = -6;
/// The space was closed.
pub const FLEXFILE_CLOSED: i32 = -7;
/// The handle came through fork().
pub const FLEXFILE_FORKED: i32 = -8;
/// The directory was written in a format that this version can't read.
pub const FLEXFILE_WRONG_VERSION: i32 = -9;
/// A length or count is above its limit.
pub const FLEXFILE_TOO_BIG: i32 = -10;
/// The space was opened for reading only.
pub const FLEXFILE_READ_ONLY: i32 = -11;
/// A defect of the library, caught at its border. Close what you have open, and please report the text.
pub const FLEXFILE_PANIC: i32 = -12;
/// An offset or range lies outside the file.
pub const FLEXFILE_OUT_OF_RANGE: i32 = -13;
/// There is a space, or a file of this name, already.
pub const FLEXFILE_ALREADY_EXISTS: i32 = -14;

/// A short English text for a status, never NULL, never to be freed. Unknown numbers get "unknown status".
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn flexfile_status_string(status: i32) -> *const c_char {
    text_of(status).as_ptr()
}

fn text_of(status: i32) -> &'static CStr {
    match status {
        FLEXFILE_OK => c"ok",
        FLEXFILE_NOT_FOUND => c"not found",
        FLEXFILE_BUFFER_TOO_SMALL => c"buffer too small",
        FLEXFILE_PROBLEMS_FOUND => c"the check found problems",
        FLEXFILE_CANCELLED => c"cancelled",
        FLEXFILE_IO => c"input/output error",
        FLEXFILE_CORRUPTION => c"corruption",
        FLEXFILE_INVALID_ARGUMENT => c"invalid argument",
        FLEXFILE_NO_SPACE => c"no space left",
        FLEXFILE_BUSY => c"busy",
        FLEXFILE_POISONED => c"an earlier write or sync failed",
        FLEXFILE_CLOSED => c"closed",
        FLEXFILE_FORKED => c"handle of another process",
        FLEXFILE_WRONG_VERSION => c"format of another version",
        FLEXFILE_TOO_BIG => c"too big",
        FLEXFILE_READ_ONLY => c"opened for reading only",
        FLEXFILE_PANIC => c"defect of the library",
        FLEXFILE_OUT_OF_RANGE => c"outside the file",
        FLEXFILE_ALREADY_EXISTS => c"exists already",
        _ => c"unknown status",
    }
}

/// The status of an error of the core.
pub(crate) fn of(error: &Error) -> i32 {
    match error.kind() {
        ErrorKind::NotFound => FLEXFILE_NOT_FOUND,
        ErrorKind::AlreadyExists => FLEXFILE_ALREADY_EXISTS,
        ErrorKind::OutOfRange => FLEXFILE_OUT_OF_RANGE,
        ErrorKind::Io => FLEXFILE_IO,
        ErrorKind::Corruption => FLEXFILE_CORRUPTION,
        ErrorKind::InvalidArgument => FLEXFILE_INVALID_ARGUMENT,
        ErrorKind::NoSpace => FLEXFILE_NO_SPACE,
        ErrorKind::Busy => FLEXFILE_BUSY,
        ErrorKind::Poisoned => FLEXFILE_POISONED,
        ErrorKind::Closed => FLEXFILE_CLOSED,
        ErrorKind::Forked => FLEXFILE_FORKED,
        ErrorKind::Version => FLEXFILE_WRONG_VERSION,
        ErrorKind::TooBig => FLEXFILE_TOO_BIG,
        ErrorKind::ReadOnly => FLEXFILE_READ_ONLY,
        // The core's enum may grow; its new kinds are added above together with a number of their own.
        _ => FLEXFILE_IO,
    }
}

/// An answer above 0 with its text.
pub(crate) fn answer(status: i32, text: &str) -> i32 {
    last_error::set(text, 0);
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: [ErrorKind; 14] = [
        ErrorKind::NotFound,
        ErrorKind::AlreadyExists,
        ErrorKind::OutOfRange,
        ErrorKind::Io,
        ErrorKind::Corruption,
        ErrorKind::InvalidArgument,
        ErrorKind::NoSpace,
        ErrorKind::Busy,
        ErrorKind::Poisoned,
        ErrorKind::Closed,
        ErrorKind::Forked,
        ErrorKind::Version,
        ErrorKind::TooBig,
        ErrorKind::ReadOnly,
    ];

    #[test]
    fn every_kind_has_a_number_and_a_text_of_its_own() {
        let mut numbers: Vec<i32> = KINDS.iter().map(|kind| of(&Error::new(*kind, "x"))).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), KINDS.len());
        assert!(!numbers.contains(&FLEXFILE_OK) && !numbers.contains(&FLEXFILE_PANIC));

        let mut texts: Vec<&CStr> = (FLEXFILE_ALREADY_EXISTS..=FLEXFILE_CANCELLED).map(text_of).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 19);
        assert!(!texts.contains(&c"unknown status"));
        assert_eq!(text_of(5), c"unknown status");
        assert_eq!(text_of(-15), c"unknown status");
    }
}
