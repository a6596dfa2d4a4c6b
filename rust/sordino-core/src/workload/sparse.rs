//! Matrices of few entries, in compressed sparse rows: row `t` has `entries[k]` in column `indices[k]` for
//! `starts[t] ≤ k < starts[t + 1]`.

use super::fill;
use crate::error::Error;

/// Whether the three arrays describe a matrix: columns rising within a row and inside the matrix.
pub(super) fn check(
    rows: usize,
    columns: usize,
    starts: &[usize],
    indices: &[u32],
    entries: &[f64],
) -> Result<(), Error> {
    let sound = rows > 0
        && columns > 0
        && starts.len() == rows.saturating_add(1)
        && starts[0] == 0
        && starts[rows] == entries.len()
        && indices.len() == entries.len()
        && starts.windows(2).all(|pair| pair[0] <= pair[1])
        && starts.windows(2).all(|pair| {
            let row = &indices[pair[0]..pair[1]];
            row.windows(2).all(|pair| pair[0] < pair[1]) && row.last().is_none_or(|last| (*last as usize) < columns)
        });
    if sound { Ok(()) } else { Err(Error::invalid("matrix", "must have sorted columns, each once, in every row")) }
}

/// Columns and entries of row `t`.
fn row<'a>(
    starts: &[usize],
    indices: &'a [u32],
    entries: &'a [f64],
    t: usize,
) -> impl Iterator<Item = (usize, f64)> + 'a {
    let range = starts[t]..starts[t + 1];
    indices[range.clone()].iter().map(|j| *j as usize).zip(entries[range].iter().copied())
}

/// `out_t = Σ_j a_tj x_j`.
pub(super) fn apply(starts: &[usize], indices: &[u32], entries: &[f64], x: &[f64], out: &mut [f64]) {
    fill(out, 1, entries.len(), |t, slot| {
        // Not `sum`, which is -0 for a row without entries.
        slot[0] = row(starts, indices, entries, t).fold(0.0, |sum, (j, a)| sum + a * x[j]);
    });
}

/// Row `t`; `out` comes as zeros.
pub(super) fn write_row(starts: &[usize], indices: &[u32], entries: &[f64], t: usize, out: &mut [f64]) {
    for (j, a) in row(starts, indices, entries, t) {
        out[j] = a;
    }
}

/// Squared norms of the rows.
pub(super) fn row_squares(starts: &[usize], entries: &[f64], out: &mut [f64]) {
    for (slot, pair) in out.iter_mut().zip(starts.windows(2)) {
        *slot = entries[pair[0]..pair[1]].iter().fold(0.0, |sum, a| sum + a * a);
    }
}
