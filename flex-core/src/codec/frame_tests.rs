//! Tests of the framing: golden bytes, bit flips, foreign bytes, the scan for the durable offset.

use super::*;
use proptest::prelude::*;

const SPACE: [u8; 16] = *b"0123456789abcdef";

fn salt() -> FrameSalt {
    FrameSalt::new(SPACE, 1, 7)
}

fn append(buf: &mut Vec<u8>, salt: &FrameSalt, seq: u64, durable: u64, payload: &[u8]) -> usize {
    let start = begin(buf);
    buf.extend_from_slice(payload);
    finish(buf, start, salt, seq, durable).unwrap();
    start
}

#[test]
fn golden_bytes() {
    let mut buf = Vec::new();
    append(&mut buf, &salt(), 0x0102_0304_0506_0708, 0x1000, b"hello");
    let hex: String = buf.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, GOLDEN);
    assert_eq!(salt().value(), GOLDEN_SALT);
}

#[test]
fn frames_follow_each_other() {
    let (salt, mut buf) = (salt(), Vec::new());
    let payloads: Vec<Vec<u8>> = (0..40u8).map(|len| vec![len; usize::from(len)]).collect();
    for (seq, payload) in payloads.iter().enumerate() {
        let start = append(&mut buf, &salt, seq as u64, 8 * seq as u64, payload);
        assert_eq!(buf.len() - start, frame_len(payload.len()));
    }
    let mut at = 0;
    for (number, expected) in payloads.iter().enumerate() {
        let Parsed::Frame { seq, durable, payload, end } = parse(&buf, at, &salt) else { panic!("frame {number}") };
        assert_eq!((seq, durable, payload), (number as u64, 8 * number as u64, &expected[..]));
        assert_eq!(end % ALIGNMENT, 0);
        at = end;
    }
    assert_eq!(at, buf.len());
    assert_eq!(parse(&buf, at, &salt), Parsed::Broken);
}

#[test]
fn every_bit_flip_is_detected() {
    for payload_len in [0, 1, 7, 8, 61] {
        let (salt, mut buf) = (salt(), Vec::new());
        append(&mut buf, &salt, 3, 64, &vec![0x5A; payload_len]);
        // Bytes behind, so that a length that grew finds something.
        append(&mut buf, &salt, 4, 64, b"the next frame, of thirty bytes");
        for bit in 0..frame_len(payload_len) * 8 {
            buf[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(parse(&buf, 0, &salt), Parsed::Broken, "payload {payload_len}, bit {bit}");
            buf[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(matches!(parse(&buf, 0, &salt), Parsed::Frame { .. }));
    }
}

#[test]
fn every_cut_is_detected() {
    let (salt, mut buf) = (salt(), Vec::new());
    append(&mut buf, &salt, 3, 64, b"eleven byte");
    for cut in 0..buf.len() {
        assert_eq!(parse(&buf[..cut], 0, &salt), Parsed::Broken, "cut at {cut}");
        assert_eq!(largest_durable(&buf[..cut], 0, &salt), None, "cut at {cut}");
    }
}

#[test]
fn another_salt_finds_nothing() {
    let mut buf = Vec::new();
    append(&mut buf, &salt(), 3, 64, b"payload");
    let mut other_space = SPACE;
    other_space[15] ^= 1;
    let others = [FrameSalt::new(SPACE, 1, 8), FrameSalt::new(SPACE, 0, 7), FrameSalt::new(other_space, 1, 7)];
    for other in others {
        assert_ne!(other, salt());
        assert_eq!(parse(&buf, 0, &other), Parsed::Broken);
        assert_eq!(largest_durable(&buf, 0, &other), None);
        // Even where the marker happens to be the same, the checksum is not.
        let mut forged = buf.clone();
        forged[..4].copy_from_slice(&other.marker().to_le_bytes());
        assert_eq!(parse(&forged, 0, &other), Parsed::Broken);
    }
}

#[test]
fn unknown_flags_are_not_valid() {
    let (salt, mut buf) = (salt(), Vec::new());
    append(&mut buf, &salt, 3, 64, b"payload");
    buf[FLAGS_AT] = 1;
    let crc = checksum(&salt, &buf[..HEADER_LEN + 7]);
    buf[CRC_AT..FLAGS_AT].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(parse(&buf, 0, &salt), Parsed::Broken);
}

#[test]
fn a_payload_above_the_limit_is_refused() {
    let (salt, mut buf) = (salt(), Vec::new());
    append(&mut buf, &salt, 1, 0, b"before");
    let before = buf.clone();
    let start = begin(&mut buf);
    buf.resize(start + HEADER_LEN + MAX_PAYLOAD + 1, 0);
    let error = finish(&mut buf, start, &salt, 2, 0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooBig);
    assert_eq!(buf, before);
    // The largest is read, and one byte more is not, though all else is right.
    let mut large = Vec::new();
    append(&mut large, &salt, 2, 0, &vec![0; MAX_PAYLOAD]);
    assert!(matches!(parse(&large, 0, &salt), Parsed::Frame { payload, .. } if payload.len() == MAX_PAYLOAD));
    large.resize(frame_len(MAX_PAYLOAD + 1), 0);
    large[LENGTH_AT..CRC_AT].copy_from_slice(&(MAX_PAYLOAD as u32 + 1).to_le_bytes());
    let crc = checksum(&salt, &large[..HEADER_LEN + MAX_PAYLOAD + 1]);
    large[CRC_AT..FLAGS_AT].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(parse(&large, 0, &salt), Parsed::Broken);
}

#[test]
fn odd_offsets_are_broken_not_a_panic() {
    let (salt, mut buf) = (salt(), vec![0; 8]);
    append(&mut buf, &salt, 1, 0, b"x");
    for offset in [0, 1, 4, 7, 9, buf.len(), buf.len() + 8, usize::MAX, usize::MAX - 7] {
        assert_eq!(parse(&buf, offset, &salt), Parsed::Broken, "offset {offset}");
    }
    assert_eq!(largest_durable(&buf, usize::MAX, &salt), None);
    assert!(matches!(parse(&buf, 8, &salt), Parsed::Frame { seq: 1, .. }));
}

#[test]
fn scan_finds_frames_behind_damage() {
    let (salt, mut buf) = (salt(), Vec::new());
    append(&mut buf, &salt, 1, 10, b"first");
    let second = append(&mut buf, &salt, 2, 99, b"second");
    let third = append(&mut buf, &salt, 3, 50, b"third");
    assert_eq!(largest_durable(&buf, 0, &salt), Some(99));
    assert_eq!(largest_durable(&buf, second, &salt), Some(99));
    // From inside of the second frame on, also at an odd place.
    assert_eq!(largest_durable(&buf, second + 1, &salt), Some(50));
    assert_eq!(largest_durable(&buf, third, &salt), Some(50));
    assert_eq!(largest_durable(&buf, third + 8, &salt), None);
    buf[second + LENGTH_AT + 3] ^= 0x80;
    assert_eq!(largest_durable(&buf, 0, &salt), Some(50));
}

#[test]
fn scan_skips_what_a_valid_payload_contains() {
    let salt = salt();
    let mut inner = Vec::new();
    append(&mut inner, &salt, 9, 1 << 40, b"a frame as user data");
    let mut outer = Vec::new();
    append(&mut outer, &salt, 1, 5, &inner);
    assert_eq!(largest_durable(&outer, 0, &salt), Some(5));
}

proptest! {
    #[test]
    fn random_bytes_never_parse(bytes in prop::collection::vec(any::<u8>(), 0..300), offset in 0usize..320) {
        prop_assert_eq!(parse(&bytes, offset, &salt()), Parsed::Broken);
        prop_assert_eq!(largest_durable(&bytes, offset, &salt()), None);
    }

    #[test]
    fn bytes_behind_a_true_marker_never_parse(mut bytes in prop::collection::vec(any::<u8>(), 32..300), len in 0u32..300) {
        let salt = salt();
        bytes[MARKER_AT..LENGTH_AT].copy_from_slice(&salt.marker().to_le_bytes());
        bytes[LENGTH_AT..CRC_AT].copy_from_slice(&len.to_le_bytes());
        bytes[FLAGS_AT..SEQUENCE_AT].fill(0);
        prop_assert_eq!(parse(&bytes, 0, &salt), Parsed::Broken);
    }

    #[test]
    fn round_trip(space: [u8; 16], log: u32, generation: u64, seq: u64, durable: u64, payload: Vec<u8>, ahead in 0usize..5) {
        let salt = FrameSalt::new(space, log, generation);
        let mut buf = vec![0; ahead * 8];
        let start = append(&mut buf, &salt, seq, durable, &payload);
        prop_assert_eq!(parse(&buf, start, &salt), Parsed::Frame { seq, durable, payload: &payload, end: buf.len() });
        prop_assert_eq!(largest_durable(&buf, 0, &salt), Some(durable));
    }
}

/// Computed apart from this code, with Python's zlib.
const GOLDEN_SALT: u64 = 0xf967d965cb6c4aa8;
const GOLDEN: &str = "a84a6ccb05000000fd615536000000000807060504030201001000000000000068656c6c6f000000";
