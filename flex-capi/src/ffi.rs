//! Checked conversions between C arguments and Rust values. All raw pointers are read and written here.
//!
//! Each answers InvalidArgument for what can be seen to be wrong: NULL where something must be, NULL with a length,
//! a misaligned pointer, a length beyond the address space. What can't be seen (a dangling pointer, a wrong length) is
//! the caller's promise; that is why the functions are unsafe.

#![allow(unsafe_code)]

use flex_core::{Error, ErrorKind, Result};
use std::ffi::{CStr, OsStr, c_char, c_void};
use std::io::{IoSlice, IoSliceMut};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Most entries of an iovec array; the system's own limit for readv and writev.
pub(crate) const MAX_IOVECS: usize = 1024;

fn checked<T>(pointer: *const T, what: &str) -> Result<NonNull<T>> {
    match NonNull::new(pointer.cast_mut()) {
        None => Err(Error::invalid(format!("{what} is NULL"))),
        Some(it) if !it.is_aligned() => Err(Error::invalid(format!("{what} is misaligned"))),
        Some(it) => Ok(it),
    }
}

/// A handle that only shared access is needed to.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: not NULL, aligned, and a live handle by the caller's promise.
    Ok(unsafe { checked(pointer, what)?.as_ref() })
}

/// A handle or struct that the caller lends to one thread at a time.
pub(crate) unsafe fn handle_mut<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: as `handle`, and no other thread is in it by the caller's promise.
    Ok(unsafe { checked(pointer, what)?.as_mut() })
}

/// A place for a result, written only on success.
pub(crate) struct Out<T>(NonNull<T>);

impl<T> Out<T> {
    /// Writes the result; what was there is not dropped (C put it there).
    pub(crate) fn write(&self, value: T) {
        // SAFETY: `out` was given a pointer that may be written.
        unsafe { self.0.write(value) }
    }
}

impl<T> Out<*mut T> {
    /// Hands a new handle to C, which gives it back to `take`.
    pub(crate) fn write_handle(&self, value: T) {
        self.write(Box::into_raw(Box::new(value)));
    }
}

/// An out-parameter that must be there.
pub(crate) unsafe fn out<T>(pointer: *mut T, what: &str) -> Result<Out<T>> {
    checked(pointer, what).map(Out)
}

/// An out-parameter that may be NULL when the caller does not want the result.
pub(crate) unsafe fn optional_out<T>(pointer: *mut T, what: &str) -> Result<Option<Out<T>>> {
    if pointer.is_null() { Ok(None) } else { checked(pointer, what).map(|it| Some(Out(it))) }
}

/// Takes a handle out of the caller's variable and sets that to NULL, in one step, so that a second close of the same
/// variable (by another thread, too) finds nothing. NULL and pointer to NULL are nothing to take.
pub(crate) unsafe fn take<T>(variable: *mut *mut T, what: &str) -> Result<Option<Box<T>>> {
    if variable.is_null() {
        return Ok(None);
    }
    let variable = checked(variable, what)?;
    // SAFETY: the caller's variable, aligned; every access by this library is this atomic one.
    let pointer = unsafe { AtomicPtr::from_ptr(variable.as_ptr()) }.swap(std::ptr::null_mut(), Ordering::AcqRel);
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: made by `Out::write_handle`, and nobody else can have taken it from this variable.
    Ok(Some(unsafe { Box::from_raw(checked(pointer, what)?.as_ptr()) }))
}

fn check_length(len: usize, what: &str) -> Result<()> {
    if len > isize::MAX as usize {
        return Err(Error::new(ErrorKind::TooBig, format!("{what}: a length of {len} bytes is beyond memory")));
    }
    Ok(())
}

/// Bytes to read: (NULL, 0) is empty.
pub(crate) unsafe fn bytes<'a>(pointer: *const c_void, len: usize, what: &str) -> Result<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    check_length(len, what)?;
    let pointer = checked(pointer.cast::<u8>(), what)?;
    // SAFETY: not NULL, a possible length, and readable for it by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer.as_ptr(), len) })
}

/// Bytes to fill: (NULL, 0) is empty. The core only writes to them, so that C need not have initialised them.
pub(crate) unsafe fn bytes_mut<'a>(pointer: *mut c_void, len: usize, what: &str) -> Result<&'a mut [u8]> {
    if len == 0 {
        return Ok(&mut []);
    }
    check_length(len, what)?;
    let pointer = checked(pointer.cast::<u8>(), what)?;
    // SAFETY: not NULL, a possible length, and writable for it, by nobody else meanwhile, by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts_mut(pointer.as_ptr(), len) })
}

/// An array of `count` elements: (NULL, 0) is empty.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, count: usize, what: &str) -> Result<&'a [T]> {
    if count == 0 {
        return Ok(&[]);
    }
    check_length(count.saturating_mul(size_of::<T>()), what)?;
    let pointer = checked(pointer, what)?;
    // SAFETY: not NULL, aligned, a possible length, and readable for it by the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(pointer.as_ptr(), count) })
}

/// A NUL-terminated text that must be there.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a CStr> {
    let pointer = checked(pointer, what)?;
    // SAFETY: not NULL, and NUL-terminated by the caller's promise.
    Ok(unsafe { CStr::from_ptr(pointer.as_ptr()) })
}

/// The name of a file in a space.
pub(crate) unsafe fn name<'a>(pointer: *const c_char) -> Result<&'a [u8]> {
    // SAFETY: passed on.
    Ok(unsafe { text(pointer, "name") }?.to_bytes())
}

/// A path of the file system: any bytes, not empty.
pub(crate) unsafe fn path<'a>(pointer: *const c_char) -> Result<&'a Path> {
    // SAFETY: passed on.
    let bytes = unsafe { text(pointer, "path") }?.to_bytes();
    if bytes.is_empty() {
        return Err(Error::invalid("path is empty"));
    }
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

unsafe fn iovecs<'a>(iov: *const libc::iovec, count: usize) -> Result<&'a [libc::iovec]> {
    if count > MAX_IOVECS {
        return Err(Error::new(ErrorKind::TooBig, format!("{count} iovecs; at most {MAX_IOVECS} are allowed")));
    }
    // SAFETY: passed on.
    let iovecs = unsafe { array(iov, count, "iov") }?;
    let sum = iovecs.iter().try_fold(0usize, |sum, it| sum.checked_add(it.iov_len)).unwrap_or(usize::MAX);
    check_length(sum, "iov")?;
    Ok(iovecs)
}

/// Buffers to read from, in order.
pub(crate) unsafe fn io_slices<'a>(iov: *const libc::iovec, count: usize) -> Result<Vec<IoSlice<'a>>> {
    // SAFETY: passed on.
    let iovecs = unsafe { iovecs(iov, count) }?;
    // SAFETY: passed on, for each buffer.
    iovecs.iter().map(|it| Ok(IoSlice::new(unsafe { bytes(it.iov_base, it.iov_len, "iov_base") }?))).collect()
}

/// Buffers to fill, in order. Overlapping ones are refused: two mutable slices may not share bytes.
pub(crate) unsafe fn io_slices_mut<'a>(iov: *const libc::iovec, count: usize) -> Result<Vec<IoSliceMut<'a>>> {
    // SAFETY: passed on.
    let iovecs = unsafe { iovecs(iov, count) }?;
    if count > 1 {
        let mut ranges: Vec<(usize, usize)> =
            iovecs.iter().filter(|it| it.iov_len > 0).map(|it| (it.iov_base as usize, it.iov_len)).collect();
        ranges.sort_unstable();
        if ranges.windows(2).any(|pair| pair[1].0 - pair[0].0 < pair[0].1) {
            return Err(Error::invalid("two iovecs to read into overlap"));
        }
    }
    // SAFETY: passed on, for each buffer; they are disjoint.
    iovecs.iter().map(|it| Ok(IoSliceMut::new(unsafe { bytes_mut(it.iov_base, it.iov_len, "iov_base") }?))).collect()
}

/// Writes an output struct that begins with `struct_size`: at most as many bytes as the caller's version of it has.
/// What a newer caller has beyond this version's fields is zeroed.
///
/// `value.struct_size` must hold the caller's number, so that the caller finds it unchanged.
pub(crate) unsafe fn write_sized<T: Copy>(target: NonNull<T>, caller_size: usize, value: &T) {
    let known = size_of::<T>().min(caller_size);
    let target = target.cast::<u8>();
    // SAFETY: the caller's struct has `caller_size` bytes by its own word; `value` has `known` bytes or more.
    unsafe {
        std::ptr::copy_nonoverlapping(std::ptr::from_ref(value).cast::<u8>(), target.as_ptr(), known);
        target.add(known).write_bytes(0, caller_size - known);
    }
}

/// The `struct_size` of an output struct, checked: from `least` (its first version) to 4 KiB (no version is so large,
/// but a number that was never set easily is).
pub(crate) unsafe fn struct_size<T>(pointer: *mut T, least: usize, what: &str) -> Result<(NonNull<T>, usize)> {
    let pointer = checked(pointer, what)?;
    // SAFETY: every output struct begins with a `size_t`.
    let size = unsafe { pointer.cast::<usize>().read() };
    if size < least || size > 4096 {
        return Err(Error::invalid(format!("{what}->struct_size is {size}; set it to sizeof the struct")));
    }
    Ok((pointer, size))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::{null, null_mut};

    fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
        result.err().map(|error| error.kind())
    }

    #[test]
    fn what_can_be_seen_to_be_wrong_is_refused() {
        // SAFETY: pointers are NULL, misaligned (never read), or to locals.
        unsafe {
            assert_eq!(bytes(null(), 0, "x").unwrap(), b"");
            assert_eq!(kind(bytes(null(), 1, "x")), Some(ErrorKind::InvalidArgument));
            assert_eq!(kind(bytes(c"a".as_ptr().cast(), usize::MAX, "x")), Some(ErrorKind::TooBig));
            assert_eq!(kind(handle::<u64>(null(), "x")), Some(ErrorKind::InvalidArgument));
            assert_eq!(kind(handle(std::ptr::without_provenance::<u64>(9), "x")), Some(ErrorKind::InvalidArgument));
            assert_eq!(kind(array::<u64>(null(), usize::MAX, "x")), Some(ErrorKind::TooBig));
            assert_eq!(kind(path(c"".as_ptr())), Some(ErrorKind::InvalidArgument));
            assert!(take::<u8>(null_mut(), "x").unwrap().is_none());
        }
    }

    #[test]
    fn a_handle_is_taken_once() {
        let mut variable: *mut String = null_mut();
        // SAFETY: pointers are to locals.
        unsafe {
            out(&mut variable, "x").unwrap().write_handle(String::from("it"));
            assert_eq!(take(&mut variable, "x").unwrap().as_deref(), Some(&String::from("it")));
            assert!(variable.is_null());
            assert!(take(&mut variable, "x").unwrap().is_none());
        }
    }

    #[test]
    fn iovecs_that_overlap_or_overflow_are_refused() {
        let mut buffer = [0u8; 8];
        let base: *mut c_void = buffer.as_mut_ptr().cast();
        let iov = |from: usize, len| libc::iovec { iov_base: base.wrapping_byte_add(from), iov_len: len };
        // SAFETY: the buffers lie in `buffer`; the overflowing ones are refused before they are read.
        unsafe {
            assert_eq!(io_slices_mut([iov(4, 4), iov(0, 4), iov(2, 0)].as_ptr(), 3).unwrap().len(), 3);
            assert_eq!(kind(io_slices_mut([iov(3, 4), iov(0, 4)].as_ptr(), 2)), Some(ErrorKind::InvalidArgument));
            assert_eq!(io_slices([iov(3, 4), iov(0, 4)].as_ptr(), 2).unwrap().len(), 2);
            assert_eq!(kind(io_slices([iov(0, usize::MAX), iov(0, 2)].as_ptr(), 2)), Some(ErrorKind::TooBig));
            assert_eq!(kind(io_slices(null(), MAX_IOVECS + 1)), Some(ErrorKind::TooBig));
        }
    }

    #[test]
    fn sized_structs_are_cut_to_the_callers_version_and_zeroed_beyond_this_one() {
        let mut target = [7u64; 4];
        let pointer = NonNull::from(&mut target);
        // SAFETY: within `target`.
        unsafe { write_sized(pointer.cast::<[u64; 3]>(), 16, &[16, 1, 2]) };
        assert_eq!(target, [16, 1, 7, 7]);
        // SAFETY: within `target`.
        unsafe { write_sized(pointer.cast::<[u64; 3]>(), 32, &[32, 1, 2]) };
        assert_eq!(target, [32, 1, 2, 0]);
        target[0] = 4097;
        // SAFETY: a pointer to a local.
        assert_eq!(kind(unsafe { struct_size(&mut target, 8, "x") }), Some(ErrorKind::InvalidArgument));
    }
}
