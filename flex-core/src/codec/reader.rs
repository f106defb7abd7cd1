//! A cursor over bytes from the disk. Every read is checked against the end and answers `Corruption` behind it;
//! nothing is allocated, so a damaged length costs nothing.
//!
//! Positions in error texts count from the beginning of the slice; the caller adds path and offset of the slice.

use super::varint;
use crate::{Error, Result};

/// Reads little-endian values off the front of a slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// At the beginning of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0 }
    }

    /// How many bytes were read.
    pub fn position(&self) -> usize {
        self.at
    }

    /// How many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// The next `len` bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8]> {
        match self.bytes[self.at..].split_at_checked(len) {
            Some((bytes, _)) => {
                self.at += len;
                Ok(bytes)
            }
            None => Err(self.short(len as u64)),
        }
    }

    /// The next bytes, as many as a length from the disk says. For lengths read as varint or u64, which may exceed `usize`.
    pub fn bytes_u64(&mut self, len: u64) -> Result<&'a [u8]> {
        match usize::try_from(len) {
            Ok(len) => self.bytes(len),
            Err(_) => Err(self.short(len)),
        }
    }

    /// The next `N` bytes, copied.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.bytes[self.at..].first_chunk::<N>() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(self.short(N as u64)),
        }
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    /// Two bytes, little endian.
    #[inline]
    pub fn u16(&mut self) -> Result<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// Four bytes, little endian.
    #[inline]
    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Eight bytes, little endian.
    #[inline]
    pub fn u64(&mut self) -> Result<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number as [`varint::put`] wrote it.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        match varint::get(&self.bytes[self.at..]) {
            Some((value, len)) => {
                self.at += len;
                Ok(value)
            }
            None => Err(Error::corruption(format!("no valid varint at byte {} of {}", self.at, self.bytes.len()))),
        }
    }

    /// Everything that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.at..];
        self.at = self.bytes.len();
        rest
    }

    /// An error unless everything was read.
    pub fn expect_end(&self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => {
                Err(Error::corruption(format!("{left} bytes left over at byte {} of {}", self.at, self.bytes.len())))
            }
        }
    }

    #[cold]
    fn short(&self, wanted: u64) -> Error {
        let (at, left) = (self.at, self.remaining());
        Error::corruption(format!("{wanted} bytes expected at byte {at} of {}, {left} found", self.bytes.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;
    use proptest::prelude::*;

    #[test]
    fn reads_in_order() {
        let bytes = [1, 2, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0xAC, 0x02, 9, 9, 7];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8().unwrap(), 1);
        assert_eq!(reader.u16().unwrap(), 2);
        assert_eq!(reader.u32().unwrap(), 3);
        assert_eq!(reader.u64().unwrap(), 4);
        assert_eq!(reader.varint().unwrap(), 300);
        assert_eq!(reader.bytes(2).unwrap(), [9, 9]);
        assert_eq!(reader.expect_end().unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(reader.rest(), [7]);
        assert!(reader.is_empty());
        reader.expect_end().unwrap();
        assert_eq!(reader.bytes(0).unwrap(), [0u8; 0]);
    }

    #[test]
    fn a_short_read_is_corruption_and_moves_nothing() {
        let mut reader = Reader::new(&[0x80, 1, 2]);
        reader.u8().unwrap();
        for error in [
            reader.u32().unwrap_err(),
            reader.u64().unwrap_err(),
            reader.bytes(3).unwrap_err(),
            reader.bytes(usize::MAX).unwrap_err(),
            reader.bytes_u64(u64::MAX).unwrap_err(),
            reader.array::<5>().unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::Corruption);
            assert!(error.message().contains("at byte 1 of 3, 2 found"), "{error}");
        }
        assert_eq!(reader.position(), 1);
        assert_eq!(reader.u16().unwrap(), 0x0201);
        assert_eq!(reader.u8().unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(reader.varint().unwrap_err().kind(), ErrorKind::Corruption);
    }

    proptest! {
        #[test]
        fn never_passes_the_end(bytes: Vec<u8>, steps in prop::collection::vec((0u8..7, any::<usize>()), 0..40)) {
            let mut reader = Reader::new(&bytes);
            for (what, len) in steps {
                let before = reader.position();
                let read = match what {
                    0 => reader.u8().map(|_| 1),
                    1 => reader.u16().map(|_| 2),
                    2 => reader.u32().map(|_| 4),
                    3 => reader.u64().map(|_| 8),
                    4 => reader.varint().map(varint::encoded_len),
                    5 => reader.bytes(len).map(<[u8]>::len),
                    _ => reader.bytes(len % 16).map(<[u8]>::len),
                };
                prop_assert_eq!(reader.position(), before + read.unwrap_or(0));
                prop_assert_eq!(reader.position() + reader.remaining(), bytes.len());
            }
        }
    }
}
