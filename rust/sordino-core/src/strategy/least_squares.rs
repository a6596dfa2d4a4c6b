//! Weighted least squares for filters with ends, measured on a circle.
//!
//! `B` is a convolution on the circle of `2N`, restricted to the `N` inputs, and `V` the diagonal of the variances of
//! its coordinates, equal on each frequency: `G = Bᵀ V⁻¹ B` is a symmetric Toeplitz matrix. The estimate
//! `x̂ = G⁻¹ Bᵀ V⁻¹ y` has the least variance of all unbiased linear ones (Gauss and Markov), in every answer.

use super::fourier::Circle;
use super::{not_in_row_space, probe};
use crate::error::Error;
use crate::toeplitz::ToeplitzInverse;
use crate::workload::tail::rest;
use crate::workload::{Workload, each};

/// Steps of iterative refinement.
const REFINEMENTS: usize = 2;

/// The two maps of a measured circle.
pub(super) trait OnCircle {
    /// `B x` for the inputs `x`.
    fn multiply(&self, x: &[f64]) -> Vec<f64>;

    /// `Bᵀ V⁻¹ y`, one number an input.
    fn project(&self, y: &[f64]) -> Vec<f64>;
}

/// `G⁻¹`, and the filters that are answered.
#[derive(Debug)]
pub(super) struct LeastSquares {
    inverse: ToeplitzInverse,
    inputs: usize,
    workload: Workload,
}

impl LeastSquares {
    /// `None` for a circular filter, where decoding on the ring is the only way, and where `G`, whose first row has
    /// the half spectrum `symbol`, is too ill-conditioned to answer in double precision.
    pub(super) fn new(circle: &Circle, symbol: impl Fn(usize) -> f64, measured: &impl OnCircle) -> Option<Self> {
        let workload = circle.linear.clone()?;
        let inputs = circle.inputs;
        let symbol: Vec<f64> = (0..circle.spectrum.len()).map(symbol).collect();
        let inverse = ToeplitzInverse::new(&circle.lags(|k| symbol[k])[..inputs], &symbol, &circle.transform)?;
        let found = Self { inverse, inputs, workload };
        // What answers without refinements does so with them; they take two thirds of the time.
        let answers = |refinements| {
            probe::answers(&found.workload, inputs, &|x| found.refined(&measured.multiply(x), measured, refinements))
        };
        (answers(0) || answers(REFINEMENTS)).then_some(found)
    }

    /// `x̂`.
    fn estimate(&self, y: &[f64], measured: &impl OnCircle) -> Vec<f64> {
        self.refined(y, measured, REFINEMENTS)
    }

    fn refined(&self, y: &[f64], measured: &impl OnCircle, refinements: usize) -> Vec<f64> {
        let mut estimate = self.inverse.apply(&measured.project(y));
        for _ in 0..refinements {
            // The inverse is accurate to its own precision, the residual to that of y.
            let mut residual = measured.multiply(&estimate);
            residual.iter_mut().zip(y).for_each(|(r, v)| *r = v - *r);
            add(&mut estimate, &self.inverse.apply(&measured.project(&residual)));
        }
        estimate
    }

    /// `A x̂`.
    pub(super) fn decode(&self, y: &[f64], measured: &impl OnCircle, out: &mut [f64]) {
        self.workload.apply(&self.estimate(y, measured), out);
    }

    /// `B G⁻¹ row`, which times `V⁻¹` are the weights of `y` in the estimate of `row·x`.
    pub(super) fn combination(&self, row: &[f64], measured: &impl OnCircle) -> Result<Vec<f64>, Error> {
        let mut inner = self.inverse.apply(row);
        let missing = |inner: &[f64]| -> Vec<f64> {
            let reached = measured.project(&measured.multiply(inner));
            row.iter().zip(reached).map(|(wanted, got)| wanted - got).collect()
        };
        for _ in 0..REFINEMENTS {
            let correction = self.inverse.apply(&missing(&inner));
            add(&mut inner, &correction);
        }
        let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
        // A sum that is not a number has missed as well.
        let reached = norm(&missing(&inner)) <= probe::ANSWERED * norm(row);
        if reached { Ok(measured.multiply(&inner)) } else { Err(not_in_row_space()) }
    }

    /// Diagonal of `A G⁻¹ Aᵀ`.
    pub(super) fn variances(&self, out: &mut [f64]) {
        each(self.workload.parts(), out, |part, piece| {
            let (first, filter) = part.whole();
            rest(first, piece, |all| self.filter_variances(filter, all));
        });
    }

    fn filter_variances(&self, filter: &Workload, out: &mut [f64]) {
        let (taps, center): (&[f64], usize) = match filter {
            Workload::Linear { kernel, center, .. } => (kernel, *center),
            _ => (&[1.0], 0), // cells
        };
        // Rows that do not run over the end are causal filters of shifted outputs; those that do are
        // so for the reversed filter (a symmetric Toeplitz matrix is its own reversal).
        let n = self.inputs;
        let forward = self.inverse.causal_variances(taps);
        let reversed: Vec<f64> = taps.iter().rev().copied().collect();
        let far = taps.len() - 1 - center;
        let backward = if center > 0 { self.inverse.causal_variances(&reversed) } else { Vec::new() };
        for (t, slot) in out.iter_mut().enumerate() {
            // Answer t reads input t + center − j with tap j; one that reads nothing is 0, whatever rounding left.
            let read = (t + center + 1).saturating_sub(n)..taps.len().min(t + center + 1);
            *slot = if taps[read].iter().all(|h| *h == 0.0) {
                0.0
            } else if t + center < n {
                forward[t + center]
            } else if n - 1 - t + far < n {
                backward[n - 1 - t + far]
            } else {
                let row = filter.row(t).expect("a filter has rows");
                self.inverse.apply(&row).iter().zip(&row).map(|(a, b)| a * b).sum::<f64>().max(0.0)
            };
        }
    }
}

fn add(sum: &mut [f64], more: &[f64]) {
    sum.iter_mut().zip(more).for_each(|(s, m)| *s += m);
}
