//! Sensitivity of a matrix from its columns, in any of the norms.

use super::Geometry;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;
use rayon::prelude::*;

/// Up to this many multiplications the replacement sensitivity is the exact maximum over pairs.
const MAX_WORK: usize = 1 << 31;

/// Upper bound of the norm of `B(x − x')` over neighbours, for `columns[j]` the columns of `B`, each of `rows` entries.
pub(super) fn sensitivity(columns: &[Vec<f64>], geometry: &Geometry, unit: Unit) -> Upper {
    if matches!(geometry, Geometry::Body(_)) {
        // The columns are its vertices.
        return unit.from_columns(Upper::exact(1.0), || Upper::exact(2.0));
    }
    let rows = columns.first().map_or(0, Vec::len);
    // Sums of `rows` terms, a root, and the entries themselves: a few units each.
    let slack = 1.0 + 4.0 * UNIT_ROUNDOFF * (rows as f64 + 4.0);
    let bound = |largest: f64| Upper::rounded(largest * slack, 2);
    let single = bound(columns.par_iter().map(|c| norm(geometry, c.iter().copied())).reduce(|| 0.0, f64::max));
    let pair = || {
        if columns.len().saturating_mul(columns.len()).saturating_mul(rows) / 2 > MAX_WORK {
            return single + single;
        }
        let difference = |a: &[f64], b: &[f64]| norm(geometry, a.iter().zip(b).map(|(a, b)| a - b));
        let farthest = |j: usize| columns[..j].iter().map(|c| difference(c, &columns[j])).fold(0.0, f64::max);
        bound((0..columns.len()).into_par_iter().map(farthest).reduce(|| 0.0, f64::max))
    };
    unit.from_columns(single, pair)
}

fn norm(geometry: &Geometry, mut values: impl Iterator<Item = f64>) -> f64 {
    match geometry {
        Geometry::L2 => values.map(|v| v * v).sum::<f64>().sqrt(),
        Geometry::L1 => values.map(f64::abs).sum(),
        Geometry::Body(_) => f64::INFINITY, // never asked: see above
        Geometry::Blocks(blocks) => {
            blocks.iter().map(|len| values.by_ref().take(*len as usize).map(|v| v * v).sum::<f64>().sqrt()).sum()
        }
    }
}
