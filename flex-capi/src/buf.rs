//! `flexfile_buf`: bytes that grow, owned by the caller, reused between calls.

#![allow(unsafe_code)]

use crate::ffi;
use crate::panic::guarded;
use crate::status::FLEXFILE_OK;
use flex_core::{Error, ErrorKind, Result};
use std::ptr::NonNull;

/// A buffer that the library grows. Start with flexfile_buf b = {0, 0, 0}; pass it to any number of calls, each of
/// which replaces the content; end with flexfile_buf_free(). Never free(3) the data, never change the fields.
///
/// Threads: one at a time.
#[repr(C)]
pub struct flexfile_buf {
    /// The bytes; NULL while capacity is 0. Valid until the next call with this buffer.
    pub data: *mut u8,
    /// How many bytes there are.
    pub len: usize,
    /// How many there is room for.
    pub capacity: usize,
}

impl flexfile_buf {
    /// The buffer as a vector, for the time of one call. The struct is left empty meanwhile, so that a panic between
    /// here and `put` loses memory at worst.
    ///
    /// # Safety
    /// The fields are as the library left them, or zero.
    unsafe fn take(&mut self) -> Result<Vec<u8>> {
        if self.len > self.capacity || self.data.is_null() != (self.capacity == 0) {
            return Err(Error::invalid("a flexfile_buf that is neither zeroed nor as the library left it"));
        }
        let it = match NonNull::new(self.data) {
            // SAFETY: made by `put` from a vector's parts.
            Some(data) => unsafe { Vec::from_raw_parts(data.as_ptr(), self.len, self.capacity) },
            None => Vec::new(),
        };
        *self = flexfile_buf { data: std::ptr::null_mut(), len: 0, capacity: 0 };
        Ok(it)
    }

    fn put(&mut self, bytes: Vec<u8>) {
        if bytes.capacity() == 0 {
            return;
        }
        let mut bytes = std::mem::ManuallyDrop::new(bytes);
        *self = flexfile_buf { data: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() };
    }
}

/// Makes the vector `len` bytes long; its content does not matter.
pub(crate) fn resize(bytes: &mut Vec<u8>, len: u64) -> Result<()> {
    let no_room = || Error::new(ErrorKind::TooBig, format!("no memory for a buffer of {len} bytes"));
    let len = usize::try_from(len).map_err(|_| no_room())?;
    bytes.try_reserve(len.saturating_sub(bytes.len())).map_err(|_| no_room())?;
    bytes.resize(len, 0);
    Ok(())
}

/// Lets `fill` replace the content of the caller's buffer. On an error the buffer keeps its memory and is empty.
pub(crate) unsafe fn fill<T>(buf: *mut flexfile_buf, fill: impl FnOnce(&mut Vec<u8>) -> Result<T>) -> Result<T> {
    // SAFETY: passed on.
    let buf = unsafe { ffi::handle_mut(buf, "buf") }?;
    // SAFETY: the fields are the caller's promise.
    let mut bytes = unsafe { buf.take() }?;
    let result = fill(&mut bytes);
    if result.is_err() {
        bytes.clear();
    }
    buf.put(bytes);
    result
}

/// Makes room for at least `capacity` bytes, and empties the buffer.
///
/// Errors: FLEXFILE_TOO_BIG (no memory), FLEXFILE_INVALID_ARGUMENT. Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_buf_reserve(buf: *mut flexfile_buf, capacity: usize) -> i32 {
    guarded! {
        fill(buf, |bytes| {
            bytes.clear();
            bytes.try_reserve(capacity).map_err(|_| {
                Error::new(ErrorKind::TooBig, format!("no memory for a buffer of {capacity} bytes"))
            })
        })?;
        Ok(FLEXFILE_OK)
    }
}

/// Frees the memory of a buffer and zeroes its fields, so that it can be used or freed again. NULL does nothing.
///
/// Threads: one at a time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flexfile_buf_free(buf: *mut flexfile_buf) {
    if buf.is_null() {
        return;
    }
    guarded! {
        drop(ffi::handle_mut(buf, "buf")?.take()?);
        Ok(FLEXFILE_OK)
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_grows_is_reused_and_freed_twice() {
        let mut buf = flexfile_buf { data: std::ptr::null_mut(), len: 0, capacity: 0 };
        // SAFETY: `buf` is a local, its fields untouched.
        unsafe {
            fill(&mut buf, |bytes| resize(bytes, 3)).unwrap();
            assert_eq!(buf.len, 3);
            assert_eq!(flexfile_buf_reserve(&mut buf, 100), FLEXFILE_OK);
            assert!(buf.capacity >= 100 && buf.len == 0);
            let before = buf.data;
            fill(&mut buf, |bytes| resize(bytes, 100)).unwrap();
            assert_eq!((buf.data, buf.len), (before, 100));
            let refused = fill(&mut buf, |bytes| resize(bytes, u64::MAX)).unwrap_err();
            assert_eq!((refused.kind(), buf.len, buf.data), (ErrorKind::TooBig, 0, before));
            flexfile_buf_free(&mut buf);
            flexfile_buf_free(&mut buf);
            assert!(buf.data.is_null() && buf.capacity == 0);
            buf.len = 1;
            assert_eq!(fill(&mut buf, |_| Ok(())).unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
    }
}
