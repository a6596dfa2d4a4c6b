//! Sorting by a few bits.

/// Bits of a digit: its counts stay in the first cache.
const DIGIT: u32 = 11;

/// Sorts by the lower `bits` of the first number, which has no others: digit after digit, from the last.
pub(super) fn sort_by_bits<R: Copy + Default>(rows: &mut Vec<(u64, R)>, bits: u32) {
    if rows.len() < 256 {
        return rows.sort_unstable_by_key(|row| row.0);
    }
    let mut other = vec![(0, R::default()); rows.len()];
    for shift in (0..bits).step_by(DIGIT as usize) {
        let digit = |key: u64| (key >> shift) as usize & ((1 << DIGIT) - 1);
        let mut starts = [0_usize; 1 << DIGIT];
        for row in rows.iter() {
            starts[digit(row.0)] += 1;
        }
        let mut before = 0;
        for start in &mut starts {
            before += std::mem::replace(start, before);
        }
        for &row in rows.iter() {
            let start = &mut starts[digit(row.0)];
            other[*start] = row;
            *start += 1;
        }
        std::mem::swap(rows, &mut other);
    }
}
