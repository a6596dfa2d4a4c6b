//! Sums over all ranges of cells: `x_i + … + x_j` for `i ≤ j`, ordered by `i`, then `j`.

use crate::parallel::pieces;

/// Number of ranges, `n(n + 1)/2`.
pub(super) fn count(len: usize) -> usize {
    len.saturating_mul(len.saturating_add(1)) / 2
}

/// First and last cell of range `t`.
fn ends(len: usize, t: usize) -> (usize, usize) {
    // Counted from the end, the ranges of the last `k` first cells are `k(k + 1)/2`.
    let back = count(len) - 1 - t;
    let k = ((8 * back + 1).isqrt() - 1) / 2;
    (len - 1 - k, len - 1 - (back - count(k)))
}

/// All sums, each from the one before: no differences of large prefix sums.
pub(super) fn apply(x: &[f64], out: &mut [f64]) {
    for (first, sums) in pieces(out, (1..=x.len()).rev()).into_iter().enumerate() {
        let mut sum = 0.0;
        for (slot, value) in sums.iter_mut().zip(&x[first..]) {
            sum += value;
            *slot = sum;
        }
    }
}

/// Row `t`; `row` comes as zeros.
pub(super) fn write_row(t: usize, row: &mut [f64]) {
    let (first, last) = ends(row.len(), t);
    row[first..=last].fill(1.0);
}

/// Squared norms of the rows: the lengths of the ranges.
pub(super) fn row_squares(len: usize, out: &mut [f64]) {
    for squares in pieces(out, (1..=len).rev()) {
        for (k, slot) in squares.iter_mut().enumerate() {
            *slot = (k + 1) as f64;
        }
    }
}

/// Mean and largest of the lengths of the ranges.
pub(super) fn row_squares_spread(len: usize) -> (f64, f64) {
    ((len + 2) as f64 / 3.0, len as f64)
}

#[cfg(test)]
mod tests {
    use super::{count, ends};

    #[test]
    fn ranges_are_ordered_by_first_then_last_cell() {
        for len in 1..20 {
            let all: Vec<(usize, usize)> = (0..len).flat_map(|i| (i..len).map(move |j| (i, j))).collect();
            assert_eq!((0..count(len)).map(|t| ends(len, t)).collect::<Vec<_>>(), all);
        }
        // The longest that is served.
        let len = 11_584;
        assert_eq!((ends(len, 0), ends(len, len - 1), ends(len, len)), ((0, 0), (0, len - 1), (1, 1)));
        assert_eq!(ends(len, count(len) - 1), (len - 1, len - 1));
    }
}
