//! Whole transfers over a [`File`], whose single calls may move fewer bytes than asked for.
//!
//! Errors carry the offset at which the transfer stopped; the caller knows the path. Any thread.

use std::io::{ErrorKind, IoSlice};

use super::File;
use crate::{Error, Result};

/// Fills `buf` from `offset` on. A file that ends before is `Corruption`: nobody asks for bytes that were never written.
pub fn read_exact_at(file: &dyn File, buf: &mut [u8], offset: u64) -> Result<()> {
    let wanted = buf.len();
    let read = read_up_to_at(file, buf, offset)?;
    if read == wanted {
        return Ok(());
    }
    let missing = wanted - read;
    let text = format!("the file ends {missing} bytes before the {wanted} bytes that should be there do");
    Err(Error::corruption(text).at_offset(offset))
}

/// Fills `buf` from `offset` on, or as much of it as there is before the end of the file; returns how much.
pub fn read_up_to_at(file: &dyn File, buf: &mut [u8], offset: u64) -> Result<usize> {
    let mut read = 0;
    while read < buf.len() {
        let at = advance(offset, read)?;
        match file.read_at(&mut buf[read..], at) {
            Ok(0) => break,
            Ok(count) => read += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::from_io("read", &error).at_offset(at)),
        }
    }
    Ok(read)
}

/// Writes all of `bufs`, one behind the other, from `offset` on. On an error any part of it may have been written.
/// The slices are advanced on the way and are of no use afterwards.
pub fn write_all_at(file: &dyn File, bufs: &mut [IoSlice<'_>], offset: u64) -> Result<()> {
    let mut left = bufs;
    let mut written = 0;
    // Empty slices in front would make a write of nothing look like a stuck device.
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        let at = advance(offset, written)?;
        match file.write_at(left, at) {
            Ok(0) => {
                let error = std::io::Error::new(ErrorKind::WriteZero, "the device took no bytes");
                return Err(Error::from_io("write", &error).at_offset(at));
            }
            Ok(count) => {
                written += count;
                IoSlice::advance_slices(&mut left, count);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::from_io("write", &error).at_offset(at)),
        }
    }
    Ok(())
}

fn advance(offset: u64, by: usize) -> Result<u64> {
    offset
        .checked_add(by as u64)
        .ok_or_else(|| Error::invalid(format!("{by} bytes at {offset} pass the largest offset")).at_offset(offset))
}
