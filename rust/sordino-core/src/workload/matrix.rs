//! Any matrix, by all its entries.

use super::fill;

/// `out_t = Σ_j a_tj x_j`.
pub(super) fn apply(columns: usize, entries: &[f64], x: &[f64], out: &mut [f64]) {
    fill(out, 1, entries.len(), |t, slot| {
        slot[0] = entries[t * columns..(t + 1) * columns].iter().zip(x).map(|(a, x)| a * x).sum();
    });
}

/// Squared norms of the rows.
pub(super) fn row_squares(columns: usize, entries: &[f64], out: &mut [f64]) {
    for (slot, row) in out.iter_mut().zip(entries.chunks_exact(columns)) {
        *slot = row.iter().map(|a| a * a).sum();
    }
}
