//! The version: macros of the header, and what the library says at run time.

#![allow(unsafe_code)] // `no_mangle`

use std::ffi::c_char;

/// The version of this header: incompatible changes (while 0: of the minor number).
pub const FLEXFILE_VERSION_MAJOR: u32 = 0;
/// The version of this header: additions.
pub const FLEXFILE_VERSION_MINOR: u32 = 1;
/// The version of this header: corrections.
pub const FLEXFILE_VERSION_PATCH: u32 = 0;
/// MAJOR * 1000000 + MINOR * 1000 + PATCH, for #if.
pub const FLEXFILE_VERSION_NUMBER: u32 = 1000;
/// The on-disk format that this version writes. A directory of another format answers FLEXFILE_WRONG_VERSION.
pub const FLEXFILE_FORMAT_VERSION: u32 = 1;

const _: () = assert!(FLEXFILE_FORMAT_VERSION == flex_core::file::FORMAT_VERSION);

/// FLEXFILE_VERSION_NUMBER of the library that is loaded, which may be newer than the header.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn flexfile_version_number() -> u32 {
    FLEXFILE_VERSION_NUMBER
}

/// The version of the library that is loaded, as "0.1.0". Never to be freed.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn flexfile_version_string() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// FLEXFILE_FORMAT_VERSION of the library that is loaded.
///
/// Threads: any.
#[unsafe(no_mangle)]
pub extern "C" fn flexfile_format_version() -> u32 {
    FLEXFILE_FORMAT_VERSION
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_literal_macros_are_the_crates_version() {
        let literal = format!("{FLEXFILE_VERSION_MAJOR}.{FLEXFILE_VERSION_MINOR}.{FLEXFILE_VERSION_PATCH}");
        assert_eq!(literal, env!("CARGO_PKG_VERSION"));
        let number = FLEXFILE_VERSION_MAJOR * 1_000_000 + FLEXFILE_VERSION_MINOR * 1_000 + FLEXFILE_VERSION_PATCH;
        assert_eq!(FLEXFILE_VERSION_NUMBER, number);
        assert_eq!(flexfile_version_number(), number);
    }
}
