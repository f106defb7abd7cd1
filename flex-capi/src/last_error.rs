//! The text of the last failure, one per thread.
//!
//! Set by every call whose status is not OK, kept by calls that succeed. Callers branch on the status only.

#![allow(unsafe_code)]

use crate::ffi;
use crate::panic::guarded;
use crate::status::{FLEXFILE_BUFFER_TOO_SMALL, FLEXFILE_OK};
use flex_core::Error;
use std::cell::RefCell;
use std::ffi::c_char;
use std::fmt::Write;

struct LastError {
    /// Always ends with the only NUL in it.
    text: String,
    errno: i32,
}

thread_local! {
    static LAST: RefCell<LastError> = RefCell::new(LastError { text: String::from("\0"), errno: 0 });
}

/// Keeps `text` for this thread. A thread that is past its thread-local destructors keeps nothing.
pub(crate) fn set(text: &str, errno: i32) {
    let _gone_with_the_thread = LAST.try_with(|last| {
        // Not borrowed by anyone: no function of this module calls out while it holds it.
        if let Ok(mut last) = last.try_borrow_mut() {
            last.text.clear();
            last.text.extend(text.chars().filter(|c| *c != '\0'));
            last.text.push('\0');
            last.errno = errno;
        }
    });
}

/// Keeps the text of an error of the core: what happened, path, byte offset, errno.
pub(crate) fn set_error(error: &Error) {
    let mut text = error.to_string();
    if let Some(errno) = error.errno()
        && !text.contains("os error")
    {
        // Writing to a String can't fail.
        let _ = write!(text, " (os error {errno})");
    }
    set(&text, error.errno().unwrap_or(0));
}

/// The text of the last call of this thread whose status was not FLEXFILE_OK: what happened, with path, byte offset
/// and the system's errno where there are any. UTF-8. Never NULL; "" when nothing failed yet.
///
/// The pointer is valid until this thread's next call of the library. It is for people: branch on the status.
/// Threads: each has its own text.
#[unsafe(no_mangle)]
pub extern "C" fn flexfile_last_error_message() -> *const c_char {
    LAST.try_with(|last| last.try_borrow().map_or(c"".as_ptr(), |last| last.text.as_ptr().cast()))
        .unwrap_or(c"".as_ptr())
}

/// The errno of the last call of this thread whose status was not FLEXFILE_OK; 0 where the system had no part in it.
///
/// Threads: each has its own.
#[unsafe(no_mangle)]
pub extern "C" fn flexfile_last_error_errno() -> i32 {
    LAST.try_with(|last| last.try_borrow().map_or(0, |last| last.errno)).unwrap_or(0)
}

/// Copies the text of flexfile_last_error_message() with its NUL, for those who keep it longer.
///
/// dst, cap: where to, and its size. out_len: the length without the NUL; written with FLEXFILE_BUFFER_TOO_SMALL too
/// (nothing is copied then; cap must be at least *out_len + 1). Does not change the text it copies unless it fails
/// with FLEXFILE_INVALID_ARGUMENT.
/// Threads: any.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_last_error_into(dst: *mut c_char, cap: usize, out_len: *mut usize) -> i32 {
    guarded! {
        let dst = ffi::bytes_mut(dst.cast(), cap, "dst")?;
        let out = ffi::out(out_len, "out_len")?;
        let status = LAST.try_with(|last| {
            let Ok(last) = last.try_borrow() else { return FLEXFILE_BUFFER_TOO_SMALL };
            let text = last.text.as_bytes();
            out.write(text.len() - 1);
            match dst.get_mut(..text.len()) {
                Some(dst) => dst.copy_from_slice(text),
                None => return FLEXFILE_BUFFER_TOO_SMALL,
            }
            FLEXFILE_OK
        });
        Ok(status.unwrap_or(FLEXFILE_BUFFER_TOO_SMALL))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flex_core::ErrorKind;
    use std::ffi::CStr;
    use std::path::Path;

    fn message() -> String {
        // SAFETY: the pointer is a NUL-terminated text of this thread, read before the next call.
        unsafe { CStr::from_ptr(flexfile_last_error_message()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn the_text_has_path_offset_and_errno_and_belongs_to_the_thread() {
        assert_eq!((message().as_str(), flexfile_last_error_errno()), ("", 0));
        let system = std::io::Error::from_raw_os_error(5);
        set_error(&Error::from_io("read", &system).at_path(Path::new("/x/DATA")).at_offset(4096));
        assert!(message().contains("/x/DATA at byte 4096") && message().contains("os error 5"), "{}", message());
        assert_eq!(flexfile_last_error_errno(), 5);
        std::thread::spawn(|| assert_eq!(message(), "")).join().unwrap();
        set_error(&Error::new(ErrorKind::Busy, "a\0b"));
        assert_eq!((message().as_str(), flexfile_last_error_errno()), ("ab", 0));
    }

    #[test]
    fn into_copies_all_or_nothing() {
        set("seven77", 0);
        let (mut dst, mut len) = ([1u8; 8], 0);
        // SAFETY: both pointers are to locals of the stated size.
        let call = |dst: &mut [u8], len: &mut usize| unsafe {
            flexfile_last_error_into(dst.as_mut_ptr().cast(), dst.len(), len)
        };
        assert_eq!(call(&mut dst[..7], &mut len), FLEXFILE_BUFFER_TOO_SMALL);
        assert_eq!((len, dst), (7, [1; 8]));
        assert_eq!(call(&mut dst, &mut len), FLEXFILE_OK);
        assert_eq!(&dst, b"seven77\0");
    }
}
