//! Sensitivity of a matrix from its columns, in any of the norms.

use super::Geometry;
use crate::linear_algebra::{Matrix, squared_columns, transposed_product};
use crate::parallel::largest_of;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;

/// Up to this many subtractions the replacement sensitivity is the exact maximum over pairs of columns.
pub(super) const EXACT_PAIRS: usize = 1 << 31;
/// Multiplications up to which products of pairs are looked at.
const MOST_PRODUCTS: usize = 1 << 37;

/// Whether all pairs of columns are looked at, entry by entry, of which there are so many in a column.
pub(super) fn are_few(columns: usize, entries: usize) -> bool {
    columns.saturating_mul(columns).saturating_mul(entries) / 2 <= EXACT_PAIRS
}

/// How far two columns are apart at most: products of columns without a negative entry are not below zero.
pub(super) fn apart(column: Upper, l1: bool, negative: bool) -> Upper {
    if l1 || negative { column + column } else { Upper::exact(2.0).sqrt() * column }
}

/// Largest `|b_j|²` of a matrix, and how far `b_j·b_k` may fall below zero: upper bounds.
pub(super) fn extremes(matrix: &Matrix) -> (Upper, Upper) {
    // Sums of so many products, in whatever order, and the entries themselves: a few units each, of two norms.
    let lost = 4.0 * UNIT_ROUNDOFF * (matrix.nrows() as f64 + 4.0);
    let square = Upper::rounded(squared_columns(matrix).into_iter().fold(0.0, f64::max) * (1.0 + lost), 2);
    let n = matrix.ncols();
    if n.saturating_mul(n).saturating_mul(matrix.nrows()) > MOST_PRODUCTS {
        return (square, square);
    }
    let gram = transposed_product(matrix, matrix);
    let least = (0..n).flat_map(|j| gram.col_as_slice(j)).fold(0.0f64, |least, product| least.min(*product));
    (square, (Upper::rounded(-least, 2) + Upper::rounded(lost * square.get(), 2)).min(square))
}

/// The same of a product of factors with these, and the largest squared distance of two of its columns: outer products of
/// columns, whose squares and products multiply; one below zero is so along one axis.
pub(super) fn pair_of_product(factors: &[(Upper, Upper)]) -> (Upper, Upper) {
    let all_but = |left_out: usize| {
        let kept = factors.iter().enumerate().filter(|(k, _)| *k != left_out);
        kept.fold(Upper::exact(1.0), |product, (_, (square, _))| product * *square)
    };
    let square = all_but(factors.len());
    let opposed = (0..factors.len()).map(|k| factors[k].1 * all_but(k)).fold(Upper::ZERO, Upper::max);
    let pair = square + opposed;
    (square, pair + pair)
}

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
    let most = |of: &(dyn Fn(usize) -> f64 + Sync)| bound(largest_of(columns, of));
    let single = most(&|j| norm(geometry, column(j).iter().copied()));
    let pair = || {
        if !are_few(columns, rows) {
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

#[cfg(test)]
mod tests {
    use super::{apart, extremes, pair_of_product};
    use crate::linear_algebra::from_rows;
    use crate::upper::Upper;
    use proptest::prelude::*;

    /// Squared distances of all columns of the Kronecker product of small integer matrices, two rows each: exact.
    fn farthest(factors: &[Vec<i64>]) -> (i64, i64) {
        let mut columns = vec![vec![1i64]];
        for factor in factors {
            let n = factor.len() / 2;
            let times = |column: &[i64], j: usize| {
                column.iter().flat_map(|entry| [entry * factor[j], entry * factor[n + j]]).collect::<Vec<i64>>()
            };
            columns = columns.iter().flat_map(|column| (0..n).map(|j| times(column, j)).collect::<Vec<_>>()).collect();
        }
        let square = |a: &[i64], b: &[i64]| a.iter().zip(b).map(|(a, b)| (a - b).pow(2)).sum::<i64>();
        let none = vec![0; columns[0].len()];
        let norm = columns.iter().map(|column| square(column, &none)).max().unwrap_or(0);
        let pairs = columns.iter().flat_map(|a| columns.iter().map(|b| square(a, b)));
        (norm, pairs.max().unwrap_or(0))
    }

    proptest! {
        #[test]
        fn pairs_of_a_product_are_no_farther_apart(
            factors in prop::collection::vec((1usize..4).prop_flat_map(|n| prop::collection::vec(-4i64..5, 2 * n)), 1..4),
        ) {
            prop_assume!(factors.iter().all(|factor| factor.iter().any(|entry| *entry != 0)));
            let each: Vec<(Upper, Upper)> = factors
                .iter()
                .map(|factor| {
                    let entries: Vec<f64> = factor.iter().map(|entry| *entry as f64).collect();
                    extremes(&from_rows(2, factor.len() / 2, &entries))
                })
                .collect();
            let (norm, pair) = farthest(&factors);
            let (square, bound) = pair_of_product(&each);
            prop_assert!(square.get() >= norm as f64 && bound.get() >= pair as f64);
            prop_assert!(square.get() <= norm as f64 * (1.0 + 1e-12) && bound.get() <= 4.0 * square.get() * (1.0 + 1e-12));
            if factors.iter().flatten().all(|entry| *entry >= 0) {
                prop_assert!(bound.get() <= 2.0 * norm as f64 * (1.0 + 1e-12));
                prop_assert!(apart(square.sqrt(), false, false).get().powi(2) >= pair as f64);
            }
        }
    }

    /// With one opposed pair along one axis the bound is attained.
    #[test]
    fn opposed_columns() {
        let each = [extremes(&from_rows(2, 2, &[1.0, -1.0, 2.0, -2.0])), extremes(&from_rows(1, 2, &[3.0, 0.0]))];
        let (square, pair) = pair_of_product(&each);
        assert!((square.get() - 45.0).abs() < 1e-9 && (pair.get() - 180.0).abs() < 1e-9);
        assert_eq!(apart(Upper::exact(3.0), true, false).get(), 6.0);
        assert_eq!(apart(Upper::exact(3.0), false, true).get(), 6.0);
    }
}
