//! Unsigned integers in 1 to 10 bytes (LEB128): seven bits a byte, lowest first, the top bit says that more follow.
//!
//! Each number has one encoding only: a decoder refuses a needless zero byte at the end as it refuses what does not fit
//! into 64 bits. Signed numbers are zigzagged first (0, -1, 1, -2, ... become 0, 1, 2, 3, ...), so that small ones stay short.

/// The most bytes one number takes.
pub const MAX_LEN: usize = 10;

/// How many bytes [`put`] will use.
pub fn encoded_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends `value`.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reads a number from the front of `bytes`: its value, and how many bytes it took.
/// `None` if it is cut short, does not fit into 64 bits, or is longer than it has to be.
pub fn get(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    if first < 0x80 {
        return Some((u64::from(first), 1));
    }
    let mut value = u64::from(first & 0x7F);
    for (index, &byte) in bytes.iter().enumerate().take(MAX_LEN).skip(1) {
        // The tenth byte holds bit 63 alone.
        if index == MAX_LEN - 1 && byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7F) << (7 * index);
        if byte < 0x80 {
            return (byte != 0).then_some((value, index + 1));
        }
    }
    None
}

/// Appends a signed number.
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, zigzag(value));
}

/// Reads what [`put_signed`] wrote, as [`get`] does.
pub fn get_signed(bytes: &[u8]) -> Option<(i64, usize)> {
    get(bytes).map(|(value, len)| (unzigzag(value), len))
}

/// The unsigned number that stands for `value`.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The signed number that `value` stands for.
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(value: u64) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, value);
        out
    }

    #[test]
    fn golden() {
        assert_eq!(encoded(0), [0]);
        assert_eq!(encoded(127), [0x7F]);
        assert_eq!(encoded(128), [0x80, 0x01]);
        assert_eq!(encoded(300), [0xAC, 0x02]);
        assert_eq!(encoded(u64::MAX), [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]);
    }

    #[test]
    fn refuses_what_is_not_a_number() {
        let too_big = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        let bad: [&[u8]; 7] = [
            &[],
            &[0x80],
            &[0x80, 0x80],
            &[0x80; 11],
            &too_big,
            &[0x80, 0x00],       // zero in two bytes
            &[0xFF, 0x80, 0x00], // 127 in three
        ];
        for bytes in bad {
            assert_eq!(get(bytes), None, "{bytes:02x?}");
        }
    }

    #[test]
    fn zigzag_orders_by_size() {
        for (signed, unsigned) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (i64::MAX, u64::MAX - 1), (i64::MIN, u64::MAX)] {
            assert_eq!(zigzag(signed), unsigned);
            assert_eq!(unzigzag(unsigned), signed);
        }
    }

    proptest! {
        #[test]
        fn round_trip(value: u64, shift in 0u32..64, tail: Vec<u8>) {
            let value = value >> shift;
            let mut bytes = encoded(value);
            let len = bytes.len();
            prop_assert_eq!(len, encoded_len(value));
            for cut in 0..len {
                prop_assert_eq!(get(&bytes[..cut]), None);
            }
            bytes.extend_from_slice(&tail);
            prop_assert_eq!(get(&bytes), Some((value, len)));
        }

        #[test]
        fn signed_round_trip(value: i64, shift in 0u32..64) {
            let mut out = Vec::new();
            put_signed(&mut out, value >> shift);
            prop_assert_eq!(get_signed(&out), Some((value >> shift, out.len())));
        }

        #[test]
        fn whatever_is_read_is_written_the_same(bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            if let Some((value, len)) = get(&bytes) {
                prop_assert_eq!(encoded(value), &bytes[..len]);
            }
        }
    }
}
