//! The table within public limits that is nearest to what a strategy measured of it, at any size.
//!
//! Minimises `½ (Bx − y)ᵀ Σ^{-1} (Bx − y)` over `x ∈ X`, Σ the covariance of unit noise, by accelerated projected gradients
//! (`accelerated.rs`): a step takes one product with `B` and one with `Bᵀ`, so that tables of millions of cells take little
//! more than a transform for each. Where columns are few, pairwise steps ([`super::project`]) end sooner.
//!
//! # What the gap promises
//! Let `y = Bz + w`, `z ∈ X`, and `‖w‖° = max_{v ∈ X} |⟨Bv, Σ^{-1}w⟩|`. The distance within a gap g of the least one gives
//! `‖B(x − z)‖² ≤ 4‖w‖° + 2g` in the norm of `Σ^{-1}` (Nikolov, Talwar & Zhang 2013, Lemma 1): for n records about
//! `4n σ √(2 ln 2N)` in place of `Nσ²`.

use super::accelerated::Search;
use super::constraint::Constraint;
use super::recovery::Operator;
use crate::error::Error;
use crate::interrupt::poll;
use crate::strategy::{Encoding, Strategy};

/// The result of [`nearest_cells`].
#[derive(Debug, Clone, PartialEq)]
pub struct NearestCells {
    /// `x`, one number a cell.
    pub cells: Vec<f64>,
    /// The objective is at most this above the least: a certificate.
    pub gap: f64,
    /// Steps of the search.
    pub iterations: usize,
}

/// `Σ^{-1/2} B`.
#[derive(Debug)]
struct Whitened<'a> {
    strategy: &'a dyn Strategy,
    columns: usize,
    /// One over the standard deviations of the independent noise.
    weights: Vec<f64>,
    /// What noise in common takes off every number, times the sum of all.
    common: f64,
    /// At least the largest sum of the magnitudes of a row of `B`.
    fullest: f64,
}

impl<'a> Whitened<'a> {
    fn new(strategy: &'a dyn Strategy) -> Result<Self, Error> {
        let variances = strategy.unit_variances();
        let rows = variances.len();
        let unserved = || Error::Unsupported("what this mechanism measures is no table's product with a matrix".into());
        let columns = strategy.transposed(&vec![0.0; rows]).ok_or_else(unserved)?.len();
        // (aI + sJ)^{-1/2} = (I − (1 − √(a/(a + ds)))/d J)/√a.
        let (own, shared) = (variances.first().copied().unwrap_or(1.0), strategy.common_noise());
        let common = (1.0 - (own / (own + rows as f64 * shared)).sqrt()) / rows as f64;
        let fullest = match strategy.encoding(1)? {
            Encoding::Exact { max_abs } => max_abs as f64,
            Encoding::Float { max_abs, .. } => max_abs,
        };
        let weights = variances.iter().map(|variance| variance.sqrt().recip()).collect();
        Ok(Self { strategy, columns, weights, common, fullest })
    }

    fn whiten(&self, values: &mut [f64]) {
        if self.common > 0.0 {
            let taken = self.common * values.iter().sum::<f64>();
            for value in values.iter_mut() {
                *value -= taken;
            }
        }
        values.iter_mut().zip(&self.weights).for_each(|(value, weight)| *value *= weight);
    }

    /// `‖C‖² ≤ ‖C‖_F²`, by the largest sum of a row.
    fn squared_norm_bound(&self) -> f64 {
        let steepest = self.weights.iter().fold(0.0f64, |most, weight| most.max(*weight));
        self.weights.len() as f64 * (steepest * self.fullest).powi(2) * (1.0 + 1e-6)
    }
}

impl Operator for Whitened<'_> {
    fn rows(&self) -> usize {
        self.weights.len()
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        out.copy_from_slice(&self.strategy.multiplied(x).expect("looked at before"));
        self.whiten(out);
    }

    fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        let mut whitened = y.to_vec();
        self.whiten(&mut whitened);
        out.copy_from_slice(&self.strategy.transposed(&whitened).expect("looked at before"));
    }
}

/// The table nearest to `y`, what `strategy` measured, in the norm of its noise, of all within the constraint.
///
/// Ends when the gap is at most `tolerance`, in squares of unit noise, or after `iterations`; the best so far is returned
/// with its own gap.
///
/// # Errors
/// If `y` has the wrong length or is not finite, n is out of range, or the strategy measures no table;
/// [`Error::Interrupted`].
pub fn nearest_cells(
    strategy: &dyn Strategy,
    y: &[f64],
    constraint: Constraint,
    tolerance: f64,
    iterations: usize,
) -> Result<NearestCells, Error> {
    Error::check_len("measured", strategy.measured_len(), y.len())?;
    constraint.check()?;
    if y.iter().any(|v| !v.is_finite()) {
        return Err(Error::invalid("measured", "every number must be finite"));
    }
    let operator = Whitened::new(strategy)?;
    let cells = operator.columns;
    if constraint.size() == 0.0 {
        return Ok(NearestCells { cells: vec![0.0; cells], gap: 0.0, iterations: 0 });
    }
    let mut target = y.to_vec();
    operator.whiten(&mut target);
    // Where what was measured is itself a table, near to it.
    let uniform = if matches!(constraint, Constraint::Absolute(_)) { 0.0 } else { constraint.size() / cells as f64 };
    let mut start = strategy.cells(y).filter(|cells| cells.iter().all(|cell| cell.is_finite()));
    if let Some(own) = &mut start {
        constraint.nearest(own);
    }
    let start = start.unwrap_or_else(|| vec![uniform; cells]);
    let mut search = Search::new(&operator, operator.squared_norm_bound(), &target, constraint, start);
    let (mut lower, mut step) = (0.0f64, 0);
    loop {
        poll()?;
        lower = lower.max(search.differentiate()?);
        let gap = (search.best.objective - lower).max(0.0);
        if gap <= tolerance || step >= iterations {
            return Ok(NearestCells { cells: search.best.weights, gap, iterations: step });
        }
        search.step();
        step += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::NoiseLaw;
    use crate::estimate::{DenseColumns, project};
    use crate::split_mix::SplitMix;
    use crate::strategy::{Mechanism, Recipe};
    use crate::workload::Workload;
    use std::ops::ControlFlow;

    fn built(workload: Workload, mechanism: Mechanism, law: NoiseLaw) -> Box<dyn Strategy> {
        Recipe { workload, mechanism, law }.build().unwrap()
    }

    fn strategies() -> Vec<Box<dyn Strategy>> {
        let sums = || Workload::Linear { kernel: vec![1.0; 13], len: 13, center: 0 };
        let window = || Workload::Circular { kernel: (0..16).map(|j| if j < 5 { 0.2 } else { 0.0 }).collect() };
        vec![
            built(window(), Mechanism::Fourier, NoiseLaw::Gaussian),
            built(window(), Mechanism::FourierPlanar, NoiseLaw::Laplace),
            built(sums(), Mechanism::Haar, NoiseLaw::Laplace),
            built(sums(), Mechanism::SquareRoot, NoiseLaw::Gaussian),
            built(Workload::Ranges { len: 12 }, Mechanism::Balanced, NoiseLaw::Gaussian),
            built(Workload::Ranges { len: 12 }, Mechanism::WeightedTree, NoiseLaw::Laplace),
        ]
    }

    /// Both methods solve the same program.
    #[test]
    fn the_nearest_table_is_that_of_pairwise_steps() {
        for strategy in strategies() {
            let (m, noise) = (strategy.measured_len(), strategy.unit_variances());
            let operator = Whitened::new(&*strategy).unwrap();
            let cells = operator.columns;
            let product = |x: &[f64]| strategy.multiplied(x).unwrap();
            let column = |j: usize| product(&(0..cells).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>());
            let columns: Vec<Vec<f64>> = (0..cells).map(column).collect();
            let truth: Vec<f64> = (0..cells).map(|j| if j % 4 == 1 { 7.0 } else { 0.0 }).collect();
            let measured = product(&truth);
            let size = measured.iter().fold(0.0f64, |most, v| most.max(v.abs()));
            let mut draws = SplitMix(7);
            let y: Vec<f64> = measured.iter().map(|v| v + 0.4 * size * (draws.uniform() - 0.5)).collect();
            let entries = (0..m).flat_map(|i| columns.iter().map(move |c| (i, c[i]))).map(|(i, b)| b / noise[i].sqrt());
            let dense = DenseColumns::from_rows(m, cells, &entries.collect::<Vec<_>>()).unwrap();
            let target: Vec<f64> = y.iter().zip(&noise).map(|(v, noise)| v / noise.sqrt()).collect();
            let scale: f64 = target.iter().map(|t| t * t).sum();
            for constraint in [Constraint::Total(20.0), Constraint::AtMost(21.0), Constraint::Absolute(9.0)] {
                let tolerance = 1e-9 * scale;
                let known =
                    project(&dense, &target, constraint, tolerance, 20_000, &mut |_, _| ControlFlow::Continue(()));
                let known = known.unwrap();
                let found = nearest_cells(&*strategy, &y, constraint, tolerance, 20_000).unwrap();
                assert!(known.gap <= tolerance && found.gap <= tolerance, "{strategy:?} {found:?}");
                let image = product(&found.cells);
                for ((a, b), noise) in image.iter().zip(&known.image).zip(&noise) {
                    // Both within the root of their gaps of the nearest point.
                    assert!((a / noise.sqrt() - b).abs() <= 3.0 * tolerance.sqrt(), "{constraint:?} {a} {b}");
                }
                let total: f64 = found.cells.iter().map(|v| v.abs()).sum();
                assert!(total <= constraint.size() * (1.0 + 1e-12));
                assert!(matches!(constraint, Constraint::Absolute(_)) || found.cells.iter().all(|v| *v >= 0.0));
            }
        }
    }

    #[test]
    fn nothing_within_a_bound_of_nothing() {
        let strategy = &strategies()[0];
        let y = vec![3.0; strategy.measured_len()];
        let found = nearest_cells(&**strategy, &y, Constraint::AtMost(0.0), 0.0, 10).unwrap();
        assert!(found.cells.iter().all(|v| *v == 0.0) && found.gap == 0.0);
        assert!(nearest_cells(&**strategy, &y[1..], Constraint::AtMost(1.0), 0.0, 10).is_err());
        assert!(nearest_cells(&**strategy, &y, Constraint::AtMost(f64::NAN), 0.0, 10).is_err());
        let odd = vec![f64::INFINITY; y.len()];
        assert!(nearest_cells(&**strategy, &odd, Constraint::AtMost(1.0), 0.0, 10).is_err());
    }
}
