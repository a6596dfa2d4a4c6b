//! Sensitivity of a matrix from its columns, in any of the norms.

use super::Geometry;
use super::entries::EXACT_PAIRS;
use crate::linear_algebra::Matrix;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;
use rayon::prelude::*;

/// Upper bound of the norm of `B(x − x')` over neighbours.
pub(super) fn sensitivity(matrix: &Matrix, geometry: &Geometry, unit: Unit) -> Upper {
    if matches!(geometry, Geometry::Body(_)) {
        // The columns are its vertices.
        return unit.from_columns(Upper::exact(1.0), || Upper::exact(2.0));
    }
    let (rows, columns) = (matrix.nrows(), matrix.ncols());
    // Sums of `rows` terms, a root, and the entries themselves: a few units each.
    let slack = 1.0 + 4.0 * UNIT_ROUNDOFF * (rows as f64 + 4.0);
    let bound = |largest: f64| Upper::rounded(largest * slack, 2);
    let column = |j: usize| matrix.col_as_slice(j);
    let most =
        |of: &(dyn Fn(usize) -> f64 + Sync)| bound((0..columns).into_par_iter().map(of).reduce(|| 0.0, f64::max));
    let single = most(&|j| norm(geometry, column(j).iter().copied()));
    let pair = || {
        if columns.saturating_mul(columns).saturating_mul(rows) / 2 > EXACT_PAIRS {
            return single + single;
        }
        let distance = |a: &[f64], b: &[f64]| norm(geometry, a.iter().zip(b).map(|(a, b)| a - b));
        most(&|j| (0..j).map(|k| distance(column(k), column(j))).fold(0.0, f64::max))
    };
    unit.from_columns(single, pair)
}

fn norm(geometry: &Geometry, mut values: impl Iterator<Item = f64>) -> f64 {
    match geometry {
        Geometry::L2 => values.map(|v| v * v).sum::<f64>().sqrt(),
        Geometry::L1 => values.map(f64::abs).sum(),
        Geometry::Body(_) | Geometry::Common(_) => f64::INFINITY, // never asked
        Geometry::Boxes(boxes) => boxes
            .iter()
            .map(|len| values.by_ref().take(*len as usize).fold(0.0, |most: f64, v| most.max(v.abs())))
            .sum(),
        Geometry::Blocks(blocks) => {
            blocks.iter().map(|len| values.by_ref().take(*len as usize).map(|v| v * v).sum::<f64>().sqrt()).sum()
        }
    }
}
