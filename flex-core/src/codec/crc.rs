//! The checksum of every format: CRC-32 with the IEEE polynomial (the one of zlib and PNG), as `crc32fast` computes it.
//!
//! A *salted* checksum begins with a 64-bit number that is not stored beside the bytes. Bytes left over from an earlier
//! use of the same place, whose salt was another, then fail the check although nothing is wrong with them.

use crc32fast::Hasher;

/// The CRC-32 of `bytes`.
pub fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The CRC-32 of `salt` (8 bytes, little endian) followed by `bytes`.
pub fn crc32_salted(salt: u64, bytes: &[u8]) -> u32 {
    let mut crc = Crc::salted(salt);
    crc.update(bytes);
    crc.finish()
}

/// A CRC-32 over bytes that lie in several places.
#[derive(Clone, Default, Debug)]
pub struct Crc(Hasher);

impl Crc {
    /// Of nothing yet.
    pub fn new() -> Crc {
        Crc(Hasher::new())
    }

    /// Of the salt's 8 bytes.
    pub fn salted(salt: u64) -> Crc {
        let mut crc = Crc::new();
        crc.update(&salt.to_le_bytes());
        crc
    }

    /// Goes on with `bytes`.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The checksum of everything so far.
    pub fn finish(self) -> u32 {
        self.0.finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_the_ieee_polynomial() {
        // The check value that catalogues of CRCs print for CRC-32/ISO-HDLC.
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn chained_equals_whole() {
        let bytes: Vec<u8> = (0..200u8).collect();
        for cut in 0..bytes.len() {
            let mut crc = Crc::new();
            crc.update(&bytes[..cut]);
            crc.update(&bytes[cut..]);
            assert_eq!(crc.finish(), crc32(&bytes), "cut at {cut}");
        }
    }

    #[test]
    fn salt_is_eight_bytes_in_front() {
        let salt = 0x0102_0304_0506_0708;
        let mut whole = vec![8, 7, 6, 5, 4, 3, 2, 1];
        whole.extend_from_slice(b"payload");
        assert_eq!(crc32_salted(salt, b"payload"), crc32(&whole));
        assert_ne!(crc32_salted(salt, b"payload"), crc32_salted(salt + 1, b"payload"));
    }
}
