//! Search in a node's array of offsets.
//!
//! The arrays have a fixed size and are padded with the type's maximum, so that the search needs no length and has no
//! branch that depends on the data. It narrows the array in passes of a few probes each; the loads of a pass don't wait
//! for each other. An internal node is in a near cache, where fewer probes count; a leaf is not, where fewer passes do.

use std::hint::select_unpredictable;

/// The last of `n` probes, `stride` entries apart and beginning at `from`, that is at most `x`; the first is.
#[inline(always)]
fn narrow<T: Copy + PartialOrd>(entries: &[T], from: usize, stride: usize, n: usize, x: T) -> usize {
    let mut last = from;
    for k in 1..n {
        let probe = from + k * stride;
        // A chain of conditional moves: a sum of comparisons is turned into slow vector code.
        last = select_unpredictable(entries[probe] <= x, probe, last);
    }
    last
}

/// The index of the last entry that is at most `x`, for entries in ascending order that begin with one at most `x`, and
/// padding above `x`. `WIDE` and `NARROW` are the distances between the probes of the first and the second pass.
#[inline(always)]
pub(super) fn last_at_most<T: Copy + PartialOrd, const N: usize, const WIDE: usize, const NARROW: usize>(
    entries: &[T; N],
    x: T,
) -> usize {
    let mut from = 0;
    if WIDE < N {
        from = narrow(entries, from, WIDE, N / WIDE, x);
    }
    if NARROW < WIDE {
        from = narrow(entries, from, NARROW, WIDE.min(N) / NARROW, x);
    }
    narrow(&entries[from..from + NARROW], 0, 1, NARROW, x) + from
}

#[cfg(test)]
mod tests {
    use super::last_at_most;

    #[test]
    fn finds_what_a_scan_finds() {
        for len in 1..=64usize {
            let mut entries = [u32::MAX; 64];
            for (i, entry) in entries.iter_mut().enumerate().take(len) {
                *entry = 3 * i as u32;
            }
            for x in 0..200 {
                let expected = entries.iter().rposition(|&e| e <= x).unwrap();
                assert_eq!(last_at_most::<u32, 64, 16, 4>(&entries, x), expected, "len {len}, x {x}");
                assert_eq!(last_at_most::<u32, 64, 64, 64>(&entries, x), expected, "len {len}, x {x}");
            }
        }
    }
}
