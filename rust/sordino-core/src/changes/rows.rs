//! `vᵀ G v = Σ_i v_i (G v)_i` is at most the sum of the `most` largest `r_i`, where
//! `r_i = G_ii +` the `most − 1` largest of what other cells add in row `i`.

use super::{Changes, Gram};

/// Upper bound of `vᵀ G v` over all changes.
pub(super) fn bound(gram: &Gram, changes: Changes) -> f64 {
    let mut sums: Vec<f64> =
        (0..gram.cells).map(|i| gram.at(i, i) + largest(&mut beside(gram, changes, i), changes.most - 1)).collect();
    largest(&mut sums, changes.most)
}

/// What the other cells add in a row.
pub(super) fn beside(gram: &Gram, changes: Changes, i: usize) -> Vec<f64> {
    let row = gram.row(i);
    (0..gram.cells).filter(|j| *j != i).map(|j| changes.reach(row[j])).collect()
}

/// The sum of the so many largest of numbers, which are reordered.
pub(super) fn largest(values: &mut [f64], count: usize) -> f64 {
    if count > 0 && count < values.len() {
        values.select_nth_unstable_by(count - 1, |a, b| b.total_cmp(a));
    }
    values.iter().take(count).sum()
}
