//! Search in a node's array of offsets.
//!
//! The arrays have a fixed size and are padded with the type's maximum, so that the search needs no length and has no
//! branch that depends on the data: one pass over the first entry of each cache line, one over the line found. The
//! loads of a pass don't wait for each other.

/// The index of the last entry that is at most `x`, for entries in ascending order that begin with one at most `x`, and
/// padding above `x`. `STRIDE` entries fill a cache line.
#[inline(always)]
pub(super) fn last_at_most<T: Copy + PartialOrd, const N: usize, const STRIDE: usize>(entries: &[T; N], x: T) -> usize {
    if N <= STRIDE {
        return entries.iter().map(|&e| usize::from(e <= x)).sum::<usize>().wrapping_sub(1);
    }
    let mut line = 0;
    for k in 1..N / STRIDE {
        line += usize::from(entries[k * STRIDE] <= x);
    }
    let from = line * STRIDE;
    let within: u32 = entries[from..from + STRIDE].iter().map(|&e| u32::from(e <= x)).sum();
    (from + within as usize).wrapping_sub(1)
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
                assert_eq!(last_at_most::<u32, 64, 16>(&entries, x), expected, "len {len}, x {x}");
                assert_eq!(last_at_most::<u32, 64, 64>(&entries, x), expected, "len {len}, x {x}");
            }
        }
    }
}
