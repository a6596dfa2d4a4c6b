//! A matrix of few rows that stands for many queries, where only `Aᵀ A` counts.
//!
//! The least mean squared error of queries `A` with weights `ω` that the strategy `B` can give is
//! `‖diag(√ω) A B⁺‖_F²/Σω = tr((B⁺)ᵀ Aᵀ diag(ω) A B⁺)/Σω` (least squares). So any `R` with `Rᵀ R = Aᵀ diag(ω) A` has the
//! same best strategies, and more rows than cells are never needed.

mod intervals;

use super::linear_algebra::{from_rows, to_rows, upper_factor};
use crate::error::Error;
use crate::parallel::in_pieces;
use crate::workload::Workload;

/// Largest number of entries of the result.
const MAX_ENTRIES: usize = 1 << 26;
/// Largest number of cells where rows are eliminated: a few matrices of three times its square are held at a time.
const MAX_CELLS: usize = 1 << 12;
/// Largest number of eliminated rows times squared cells.
const MAX_WORK: usize = 1 << 38;

/// `R`, k × n row by row, with `Rᵀ R = Aᵀ diag(ω) A` and `k ≤ min(m, n)`, weights 1 unless given; as `(k, n, R)`.
///
/// The weighted rows themselves if there are no more of them than cells. Otherwise orthogonal transformations of blocks
/// of rows, never `Aᵀ A`, so small singular values keep their digits: the error is a small multiple of the unit roundoff
/// relative to `‖diag(√ω) A‖`. Where weights are equal, all ranges have a closed form and a Kronecker product is
/// condensed factor by factor; a union always is part by part. Intervals take the third power of the cells at most, however
/// many there are.
///
/// # Errors
/// [`Error::InvalidParameter`] if a weight is not positive and finite, [`Error::Unsupported`] if the workload is too
/// large.
pub fn condensed(workload: &Workload, weights: Option<&[f64]>) -> Result<(usize, usize, Vec<f64>), Error> {
    let (m, n) = (workload.answers_len(), workload.table_len()?);
    if let Some(weights) = weights {
        Error::check_len("weights", m, weights.len())?;
        if weights.iter().any(|w| !w.is_finite() || *w <= 0.0) {
            return Err(Error::invalid("weights", "must be positive and finite"));
        }
    }
    if m.min(n).saturating_mul(n) > MAX_ENTRIES {
        return Err(too_large());
    }
    let root = root(workload, weights)?;
    Ok((root.len(), n, root.entries))
}

fn too_large() -> Error {
    Error::Unsupported("the workload is too large to be condensed".into())
}

/// `R` of a checked workload.
fn root(workload: &Workload, weights: Option<&[f64]>) -> Result<Rows, Error> {
    if let Some(equal) = weights.and_then(common) {
        let mut rows = root(workload, None)?;
        scale(&mut rows.entries, equal.sqrt());
        return Ok(rows);
    }
    match (workload, weights) {
        (Workload::Ranges { len }, None) => Ok(ranges(*len)),
        (Workload::Kronecker { factors }, None) => {
            let one = Rows { columns: 1, entries: vec![1.0] };
            factors.iter().try_fold(one, |product, factor| Ok(product.kronecker(&root(factor, None)?)))
        }
        (Workload::Union { parts }, _) => union(parts, weights),
        (Workload::Intervals { len, ends, .. }, _) if ends.len() > *len => {
            if *len > MAX_CELLS {
                return Err(too_large());
            }
            Ok(Rows { columns: *len, entries: intervals::root(*len, ends, weights) })
        }
        _ => eliminate(workload, weights),
    }
}

/// The value of all weights, if there is one.
fn common(weights: &[f64]) -> Option<f64> {
    weights.first().copied().filter(|first| weights.iter().all(|w| w == first))
}

fn scale(row: &mut [f64], by: f64) {
    for value in row {
        *value *= by;
    }
}

/// All ranges: `R = S P`, `P` the prefix sums, `S = √(n+1) I + (1 − √(n+1)) 1 1ᵀ/n`.
///
/// With `p_0 = 0` and `p_k` the sum of the first `k` cells, the ranges are the differences `p_k − p_l`, `l < k`, of
/// `n + 1` numbers. Their squares sum to `(n+1) Σ p_k² − (Σ p_k)²`, so `Aᵀ A = Pᵀ ((n+1) I − 1 1ᵀ) P`. The matrix in the
/// middle has the eigenvalue 1 for the vector 1 and `n + 1` across it; `S` has their roots 1 and `√(n+1)`.
fn ranges(n: usize) -> Rows {
    let root = ((n + 1) as f64).sqrt();
    let shared = (1.0 - root) / n as f64;
    // Column j of P has n − j ones, from row j on.
    let entry = |t: usize, j: usize| shared * (n - j) as f64 + if j <= t { root } else { 0.0 };
    Rows { columns: n, entries: (0..n).flat_map(|t| (0..n).map(move |j| entry(t, j))).collect() }
}

fn union(parts: &[Workload], weights: Option<&[f64]>) -> Result<Rows, Error> {
    let mut rest = weights;
    let roots = parts.iter().map(|part| {
        let (own, others) = rest.map(|weights| weights.split_at(part.answers_len())).unzip();
        rest = others;
        root(part, own)
    });
    let roots = roots.collect::<Result<Vec<_>, Error>>()?;
    let mut stack = Stack::new(roots[0].columns, roots.iter().map(Rows::len).sum())?;
    for root in roots {
        stack.push(root.entries);
    }
    Ok(stack.finish())
}

/// The weighted rows one block after the other, eliminated whenever there are three times as many as cells.
fn eliminate(workload: &Workload, weights: Option<&[f64]>) -> Result<Rows, Error> {
    let (m, n) = (workload.answers_len(), workload.table_len()?);
    let mut stack = Stack::new(n, m)?;
    for first in (0..m).step_by(2 * n) {
        let mut block = vec![0.0; (m - first).min(2 * n) * n];
        in_pieces(&mut block, n, &|at, row| {
            let i = at / n;
            workload.write_row(first + i, row);
            if let Some(weights) = weights {
                scale(row, weights[first + i].sqrt());
            }
        });
        stack.push(block);
    }
    Ok(stack.finish())
}

/// A matrix by its rows.
struct Rows {
    columns: usize,
    entries: Vec<f64>,
}

impl Rows {
    fn len(&self) -> usize {
        self.entries.len() / self.columns
    }

    fn kronecker(&self, other: &Self) -> Self {
        let rows = self.entries.chunks_exact(self.columns);
        let entries = rows.flat_map(|a| {
            let rows = other.entries.chunks_exact(other.columns);
            rows.flat_map(move |b| a.iter().flat_map(move |a| b.iter().map(move |b| a * b)))
        });
        Self { columns: self.columns * other.columns, entries: entries.collect() }
    }
}

/// Rows that come one after the other; only the triangular factor of them is kept once there are many.
struct Stack {
    rows: Rows,
}

impl Stack {
    /// For so many rows in all.
    fn new(columns: usize, rows: usize) -> Result<Self, Error> {
        let work = rows.saturating_mul(columns).saturating_mul(columns);
        if rows > columns && (columns > MAX_CELLS || work > MAX_WORK) {
            return Err(too_large());
        }
        Ok(Self { rows: Rows { columns, entries: Vec::new() } })
    }

    fn push(&mut self, mut entries: Vec<f64>) {
        self.rows.entries.append(&mut entries);
        if self.rows.len() >= 3 * self.rows.columns {
            self.eliminate();
        }
    }

    /// `R` of `Q R`: the rows are orthogonal combinations of those before.
    fn eliminate(&mut self) {
        let rows = &mut self.rows;
        rows.entries = to_rows(&upper_factor(&from_rows(rows.len(), rows.columns, &rows.entries)));
    }

    fn finish(mut self) -> Rows {
        if self.rows.len() > self.rows.columns {
            self.eliminate();
        }
        self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Queries, Target, mean_strategy};
    use super::*;
    use crate::workload::tests::{naive, workloads};
    use proptest::prelude::*;
    use std::ops::ControlFlow;

    /// `Aᵀ diag(ω) A` from rows, by definition.
    fn gram(rows: &[Vec<f64>], weights: &[f64]) -> Vec<Vec<f64>> {
        let n = rows[0].len();
        let entry = |i: usize, j: usize| rows.iter().zip(weights).map(|(row, w)| w * row[i] * row[j]).sum();
        (0..n).map(|i| (0..n).map(|j| entry(i, j)).collect()).collect()
    }

    fn check(workload: &Workload, weights: Option<&[f64]>) {
        let rows = naive(workload);
        let (m, n) = (rows.len(), rows[0].len());
        let ones = vec![1.0; m];
        let expected = gram(&rows, weights.unwrap_or(&ones));
        let (k, columns, entries) = condensed(workload, weights).unwrap();
        assert!(k <= m.min(n) && columns == n && entries.len() == k * n, "{workload:?}: {k} × {columns}");
        let condensed: Vec<Vec<f64>> = entries.chunks(n).map(<[f64]>::to_vec).collect();
        let found = gram(&condensed, &ones);
        let size = (0..n).map(|j| expected[j][j]).fold(0.0, f64::max);
        for (a, b) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((a - b).abs() <= 1e-13 * size, "{workload:?}: {a} instead of {b}");
        }
    }

    #[test]
    fn the_oracle_on_a_known_case() {
        assert_eq!(gram(&[vec![1.0, 2.0], vec![0.0, 3.0]], &[1.0, 2.0]), [[1.0, 2.0], [2.0, 22.0]]);
    }

    proptest! {
        #[test]
        fn grams_are_kept(workload in workloads(), weights in prop::collection::vec(0.01..100.0f64, 1..6)) {
            check(&workload, None);
            let m = workload.answers_len();
            check(&workload, Some(&(0..m).map(|t| weights[t % weights.len()]).collect::<Vec<_>>()));
            check(&workload, Some(&vec![weights[0]; m]));
        }
    }

    #[test]
    fn many_intervals_are_nodes_of_a_line() {
        let single: Vec<(u32, u32)> = (0..5).map(|j| (j, j)).chain([(0, 4), (0, 4)]).collect();
        let nested = vec![(1, 2), (1, 2), (3, 3), (1, 3), (3, 3), (1, 2), (1, 3)];
        for ends in [single, nested, vec![(0, 0); 3]] {
            let len = ends.iter().map(|(_, last)| *last as usize + 1).max().unwrap();
            let weights: Vec<f64> = (0..ends.len()).map(|t| [1e-3, 1.0, 70.0][t % 3]).collect();
            let workload = Workload::Intervals { len, ends, weights: Vec::new() };
            check(&workload, None);
            check(&workload, Some(&weights));
        }
        // As many as all ranges, in another order: their closed form.
        let len = 40;
        let ends = (0..40).flat_map(|last| (0..=last).map(move |first| (first, last))).collect();
        let intervals = Workload::Intervals { len, ends, weights: Vec::new() };
        let square = |workload: &Workload| {
            let (_, _, entries) = condensed(workload, None).unwrap();
            gram(&entries.chunks(len).map(<[f64]>::to_vec).collect::<Vec<_>>(), &[1.0; 40])
        };
        for (a, b) in square(&intervals).concat().iter().zip(square(&Workload::Ranges { len }).concat()) {
            assert!((a - b).abs() < 1e-10, "{a} instead of {b}");
        }
    }

    #[test]
    fn ranges_and_their_products_need_no_elimination() {
        for n in 1..30 {
            check(&Workload::Ranges { len: n }, None);
        }
        // More rows than are ever eliminated: factor by factor there are few.
        let ranges = Workload::Ranges { len: 32 };
        let product = Workload::Kronecker { factors: vec![ranges.clone(), ranges.clone()] };
        assert!(eliminate(&product, None).is_err());
        let (k, n, entries) = condensed(&product, None).unwrap();
        let (_, _, root) = condensed(&ranges, None).unwrap();
        assert_eq!((k, n), (1024, 1024));
        assert_eq!(entries[33 * 1024 + 34], root[32 + 1] * root[32 + 2]);
    }

    /// Orthogonal elimination neither squares, nor overflows, nor loses the small singular value.
    #[test]
    fn scales_and_small_singular_values_survive() {
        for size in [1e-149, 1.0, 1e149] {
            for weight in [1e-150, 1.0, 1e150] {
                let entries = [1.0, 1.0, 1.0, 1.0 + 1e-12, 1.0, 1.0 - 1e-12].map(|a| a * size).to_vec();
                let workload = Workload::Matrix { rows: 3, columns: 2, entries }.validated().unwrap();
                let (_, _, root) = condensed(&workload, Some(&[weight, weight * 2.0, weight])).unwrap();
                let unit = size * f64::sqrt(weight);
                // Determinant of RᵀR by Cauchy and Binet, minors of the weighted rows.
                let expected = f64::sqrt(2.0 + 1.0 + 2.0 * 4.0) * 1e-12;
                let found = (root[0] / unit * (root[3] / unit) - root[1] / unit * (root[2] / unit)).abs();
                assert!((found / expected - 1.0).abs() < 1e-3, "{size} {weight}: {found} instead of {expected}");
            }
        }
    }

    #[test]
    fn the_least_mean_error_is_that_of_all_queries() {
        let workload = Workload::Ranges { len: 12 };
        let weights: Vec<f64> = (0..78).map(|t| 1.0 + f64::from(t % 5)).collect();
        let solve = |rows: usize, entries: &[f64], weights: Option<&[f64]>| {
            let queries = Queries::new(rows, 12, entries).unwrap();
            let target = Target { gap: 1e-7, ..Target::default() };
            mean_strategy(queries, weights, target, &mut |_, _| ControlFlow::Continue(())).unwrap()
        };
        let (_, _, all) = workload.dense().unwrap();
        let (k, _, few) = condensed(&workload, Some(&weights)).unwrap();
        let (direct, short) = (solve(78, &all, Some(&weights)), solve(k, &few, None));
        let ratio = direct.upper * weights.iter().sum::<f64>().sqrt() / (short.upper * (k as f64).sqrt());
        assert!((ratio - 1.0).abs() < 1e-6, "{ratio}");
    }

    #[test]
    fn refusals() {
        let ranges = Workload::Ranges { len: 3 };
        assert!(condensed(&ranges, Some(&[1.0; 5])).is_err());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(condensed(&ranges, Some(&[1.0, 1.0, 1.0, 1.0, 1.0, bad])).is_err());
        }
        assert!(condensed(&Workload::Histogram { len: 1 << 14 }, None).is_err());
        let large = Workload::Ranges { len: 900 };
        let mut weights = vec![1.0; large.answers_len()];
        assert!(condensed(&large, Some(&weights)).is_ok());
        weights[0] = 2.0;
        assert!(condensed(&large, Some(&weights)).is_err());
        let domain = Workload::Marginals {
            radices: vec![1 << 16; 2],
            sets: vec![vec![0]],
            weights: vec![1.0],
            total_share: 0.0,
        };
        assert!(condensed(&domain, None).is_err());
    }
}
