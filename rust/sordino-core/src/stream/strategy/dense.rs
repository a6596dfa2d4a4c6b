//! Lower triangular strategies given entry by entry: the optimal factorization of prefix sums.

use super::{StreamStrategy, averaged, largest, sums_only};
use crate::error::Error;
use crate::optimize::TriangularFactorization;
use crate::order::falling;
use crate::stream::filter::Filter;
use crate::stream::participation::Participation;
use crate::stream::process::{self, ENTRY_BITS, Process, Rows};
use crate::stream::state::Writer;
use crate::toeplitz::Dyadic;
use crate::upper::Upper;
use std::sync::Arc;

/// Bits of the noise of a step.
const BITS: u32 = 24;

/// `C = diag(1/r)·C̃`, `C̃` with a unit diagonal, rounded.
#[derive(Debug)]
pub(in crate::stream) struct Dense {
    rows: Arc<Rows>,
    /// Columns of `diag(1/r)·C̃` as rounded, one after the other: `n − j` entries of column `j`.
    columns: Vec<Vec<f64>>,
    stderrs: Vec<f64>,
}

impl Dense {
    /// Rounds a factorization; sensitivity and errors are those of what is left.
    ///
    /// # Errors
    /// If a diagonal entry cannot be represented.
    pub(crate) fn new(factorization: &TriangularFactorization) -> Result<Self, Error> {
        let n = factorization.size;
        let row = |t: usize| &factorization.strategy[t * n..][..=t];
        let noise = (0..n).map(|t| Dyadic::nearest(1.0 / row(t)[t], BITS)).collect::<Result<Vec<_>, _>>()?;
        let unit = 2f64.powi(ENTRY_BITS as i32);
        let entries: Vec<i64> =
            (0..n).flat_map(|t| row(t)[..t].iter().map(move |c| (c / row(t)[t] * unit).round() as i64)).collect();
        let rows = Rows { entries, noise };
        let scaled = |t: usize, j: usize| rows.row(t)[j] as f64 / unit / rows.noise[t].value();
        let columns = (0..n)
            .map(|j| std::iter::once(1.0 / rows.noise[j].value()).chain((j + 1..n).map(|t| scaled(t, j))).collect())
            .collect();
        let stderrs = stderrs(&rows);
        Ok(Self { rows: Arc::new(rows), columns, stderrs })
    }
}

/// Row norms of `A C̃^{-1} diag(r)`: row `t` solves `b C̃ = (1, …, 1)`.
fn stderrs(rows: &Rows) -> Vec<f64> {
    let unit = 2f64.powi(-(ENTRY_BITS as i32));
    (0..rows.noise.len())
        .map(|t| {
            let mut rest = vec![1.0; t + 1];
            let mut square = 0.0;
            for s in (0..=t).rev() {
                let b = rest[s];
                square += (b * rows.noise[s].value()).powi(2);
                for (rest, c) in rest.iter_mut().zip(rows.row(s)) {
                    *rest -= b * *c as f64 * unit;
                }
            }
            square.sqrt()
        })
        .collect()
}

impl StreamStrategy for Dense {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        let n = self.columns.len();
        let slack = 1.0 + 8.0 * f64::EPSILON * (n as f64 + 8.0);
        let square = |column: &[f64]| column.iter().map(|c| c * c).sum::<f64>();
        let largest = self.columns.iter().map(|column| square(column)).fold(0.0, f64::max);
        let single = Upper::rounded(largest * slack, 1).sqrt();
        let count = pattern.count(steps);
        let triangle = single * Upper::integer(count.into());
        if count == 1 {
            return triangle;
        }
        // ‖Σ_j c_{t_j}‖² ≤ m·max_i Σ_j |⟨c_i, c_j⟩| over the m largest, one in each stretch of `separation` steps.
        let separation = pattern.separation() as usize;
        let worst = (0..n)
            .map(|i| {
                let product = |j: usize| {
                    let (first, last) = (i.min(j), i.max(j));
                    let early = &self.columns[first][last - first..];
                    early.iter().zip(&self.columns[last]).map(|(a, b)| a * b).sum::<f64>().abs()
                };
                let mut best: Vec<f64> = (0..n.div_ceil(separation))
                    .map(|part| {
                        let stretch = part * separation..((part + 1) * separation).min(n);
                        stretch.filter(|j| *j != i).map(product).fold(0.0, f64::max)
                    })
                    .collect();
                falling(&mut best);
                square(&self.columns[i]) + best.iter().take(count as usize - 1).sum::<f64>()
            })
            .fold(0.0, f64::max);
        triangle.min((Upper::integer(count.into()) * Upper::rounded(worst * slack, 1)).sqrt())
    }

    fn exchange_norm(&self, _steps: u64, _l1: bool) -> Upper {
        let n = self.columns.len();
        let slack = 1.0 + 8.0 * f64::EPSILON * (n as f64 + 8.0);
        // Columns begin at the diagonal.
        let square = |a: usize, b: usize| -> f64 {
            let (early, late) = (&self.columns[a], &self.columns[b]);
            let (before, beside) = early.split_at(b - a);
            let differences = beside.iter().zip(late).map(|(x, y)| (x - y) * (x - y));
            before.iter().map(|x| x * x).sum::<f64>() + differences.sum::<f64>()
        };
        let pairs = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b)));
        let single = self.columns.iter().map(|column| column.iter().map(|x| x * x).sum::<f64>());
        let worst = single.chain(pairs.map(|(a, b)| square(a, b))).fold(0.0, f64::max);
        Upper::rounded(worst * slack, 1).sqrt()
    }

    fn no_negative_products(&self) -> bool {
        self.rows.entries.iter().all(|c| *c >= 0)
    }

    fn rounding(&self, _steps: u64) -> Upper {
        let square: f64 = self.rows.noise.iter().map(|r| r.value().powi(-2)).sum();
        Upper::rounded(square * (1.0 + 1e-12), 1).sqrt()
    }

    fn largest_scale(&self) -> f64 {
        largest(&self.rows.noise)
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        sums_only(filter)?;
        Ok(averaged(filter, steps, steps.iter().map(|t| self.stderrs[*t as usize - 1].powi(2)).collect()))
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::Dense::new(Arc::clone(&self.rows), dim, quarter_units))
    }

    fn parameters(&self, out: &mut Writer) {
        out.integers(&self.rows.entries);
        out.dyadic(self.rows.noise.iter().copied());
    }

    fn state_bytes(&self, steps: u64) -> u64 {
        16 * steps
    }

    fn operations(&self, steps: u64) -> f64 {
        steps as f64
    }
}
