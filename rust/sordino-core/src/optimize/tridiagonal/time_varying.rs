//! A triangular strategy of a few states a coordinate whose coefficients change from step to step.
//!
//! With q poles `G` is the covariance of a sum of q Markov chains. Run from the last step to the first, its innovations
//! (Kalman's filter of an exact observation) are a factorization `G = CᵀC` with C lower triangular: with the predicted
//! covariance `P_t` of the chains, `κ_t² = 1ᵀ P_t 1`, `h_t = P_t 1/κ_t²`, and passages `Φ_t` from the step after t,
//!
//! `C_tt = κ_t`, `C_tj = κ_t h_tᵀ Φ_{t−1} ⋯ Φ_j 1` for j < t.
//!
//! A stream runs it as `v_t = σ_t z_t − h_tᵀ a_t`, `a_{t+1} = Φ_t (a_t + v_t 1)`, where passages also divide by the norms of
//! columns. The tables are rounded, and column norms and errors are those of the rounded strategy, whatever came before.

use super::Poles;
use super::search::{Hardest, Prefixes, for_strategy, hardest};
use crate::error::Error;
use crate::objective::Objective;
use crate::toeplitz::Dyadic;
use crate::upper::Upper;

/// Most states of a coordinate.
const MAX_STATES: usize = 12;

/// Significant bits of the noise of a step.
const NOISE_BITS: u32 = 24;
/// `2^32`: the unit of gains and passages.
const UNIT: f64 = 4_294_967_296.0;

type States = [f64; MAX_STATES];

/// The strategy for exactly so many steps.
#[derive(Debug, Clone, PartialEq)]
pub struct TimeVarying {
    states: usize,
    /// `h`, in units of `2^-32`, state by state within a step.
    gains: Vec<u32>,
    /// `Φ`, likewise.
    passages: Vec<u32>,
    noise: Vec<Dyadic>,
    lower: Option<f64>,
}

impl TimeVarying {
    /// The strategy of least mean or largest error for n steps, in so many states, or as many as make no difference.
    ///
    /// For the largest error of averages, that of the first, it is the same as for their mean.
    ///
    /// # Errors
    /// If a number is out of range, or rounding leaves a strategy that cannot be represented.
    pub fn fit(n: usize, prefixes: Prefixes, objective: Objective, states: Option<usize>) -> Result<Self, Error> {
        let states = states.unwrap_or_else(|| usual_states(n));
        if !(1..=MAX_STATES).contains(&states) {
            return Err(Error::invalid("degree", format!("{states} is not in 1..={MAX_STATES}")));
        }
        let served = if prefixes == Prefixes::Averages { Objective::Mean } else { objective };
        let hardest = hardest(n, prefixes, served, for_strategy(served))?;
        let lower = (served == objective).then_some(hardest.lower);
        Ok(Self { lower, ..Self::new(&hardest, states)? })
    }

    fn new(hardest: &Hardest, states: usize) -> Result<Self, Error> {
        let (weights, matrix) = (&hardest.weights, &hardest.matrix);
        let (low, high) = matrix.range(weights);
        let poles = Poles::new(low, high, states);
        let norms: Vec<f64> = matrix.root_diagonal(weights, &poles).into_iter().map(f64::sqrt).collect();
        let lefts: Vec<Vec<f64>> = poles.shifts.iter().map(|shift| matrix.left(weights, *shift)).collect();
        // Precision of a chain at a step, given the next one or not.
        let precision = |i: usize, t: usize| poles.shifts[i] * weights[t] + matrix.excess[t] + lefts[i][t];
        let n = weights.len();
        let mut gains = vec![0; n * states];
        let mut passages = vec![0; n * states];
        let mut noise = vec![Dyadic::new(1, 0); n];
        let mut predicted = [[0.0; MAX_STATES]; MAX_STATES];
        for t in (0..n).rev() {
            let link = matrix.links[t];
            let mut passage: States = [0.0; MAX_STATES];
            for i in 0..states {
                passage[i] = if link == 0.0 { 0.0 } else { link / (precision(i, t) + link) };
                // What the columns' norms change lies in the passages; conversions saturate, so no state grows.
                let scaled = if t + 1 < n { passage[i] * norms[t + 1] / norms[t] } else { 0.0 };
                passages[t * states + i] = (scaled * UNIT).round() as u32;
            }
            for (i, row) in predicted.iter_mut().enumerate().take(states) {
                for (k, value) in row.iter_mut().enumerate() {
                    *value *= passage[i] * passage[k];
                }
                row[i] += poles.factors[i] / (precision(i, t) + link);
            }
            let image: States = std::array::from_fn(|i| predicted[i].iter().sum());
            let innovation: f64 = image.iter().sum();
            // None is negative but by rounding; rounded down, gains of a step are at most 1 together.
            let shares = image.map(|gain| gain.max(0.0));
            let together: f64 = shares.iter().sum();
            for i in 0..states {
                gains[t * states + i] = (shares[i] / together * UNIT) as u32;
            }
            noise[t] = Dyadic::nearest(norms[t] / innovation.sqrt(), NOISE_BITS)?;
            for (row, own) in predicted.iter_mut().zip(image) {
                for (value, other) in row.iter_mut().zip(image) {
                    *value -= own * other / innovation;
                }
            }
        }
        Ok(Self { states, gains, passages, noise, lower: None })
    }

    /// States of a coordinate.
    pub fn states(&self) -> usize {
        self.states
    }

    /// Number of steps; there is no further one.
    pub fn steps(&self) -> usize {
        self.noise.len()
    }

    /// `h_t`, in units of `2^-32`.
    pub fn gains(&self, t: usize) -> &[u32] {
        &self.gains[t * self.states..][..self.states]
    }

    /// `Φ_t`, in units of `2^-32`.
    pub fn passages(&self, t: usize) -> &[u32] {
        &self.passages[t * self.states..][..self.states]
    }

    /// `σ_t`: the standard deviation of step t's noise relative to the multiplier.
    pub fn noise(&self) -> &[Dyadic] {
        &self.noise
    }

    /// No strategy has a smaller error than this, of the kind that was minimised; `None` for the largest error of averages.
    pub fn lower(&self) -> Option<f64> {
        self.lower
    }

    fn step(&self, t: usize) -> (States, States, f64) {
        (spread(self.gains(t)), spread(self.passages(t)), self.noise[t].value())
    }

    /// Upper bound of the largest column norm of C: the sensitivity to one entry of size 1.
    ///
    /// Column j is `σ_j^{−2} + 1ᵀ M_j 1`, `M_{j−1} = Φ_{j−1} (h_j h_jᵀ/σ_j² + M_j) Φ_{j−1}` from `M_{n−1} = 0`: positive
    /// terms only.
    pub fn column_norm(&self) -> Upper {
        let mut later = [[0.0; MAX_STATES]; MAX_STATES];
        let mut largest = 0.0f64;
        let mut after: Option<(States, f64)> = None;
        for t in (0..self.steps()).rev() {
            let (gains, passages, noise) = self.step(t);
            if let Some((gains, precision)) = after {
                for i in 0..MAX_STATES {
                    for k in 0..MAX_STATES {
                        let new = gains[i] * gains[k] * precision + later[i][k];
                        later[i][k] = new * (passages[i] * passages[k]);
                    }
                }
            }
            let precision = 1.0 / (noise * noise);
            largest = largest.max(precision + later.iter().flatten().sum::<f64>());
            after = Some((gains, precision));
        }
        // At most eight roundings a step of the recursion, and those of the last sum.
        let slack = Upper::exact(1.0 + 8.0 * (self.steps() as f64 + 64.0) * f64::EPSILON);
        (Upper::exact(largest) * slack).sqrt()
    }

    /// Variance of the running sum at each step, for noise of scale 1.
    ///
    /// The covariance of the states and the sum, `x ← D_t (x + v_t 1)` with `v_t = σ_t z_t − h_tᵀ x`.
    pub fn running_variances(&self) -> Vec<f64> {
        const SIZE: usize = MAX_STATES + 1;
        let mut covariance = [[0.0; SIZE]; SIZE];
        let step = |t: usize| {
            let (gains, passages, noise) = self.step(t);
            let image: [f64; SIZE] =
                std::array::from_fn(|i| covariance[i].iter().zip(&gains).map(|(p, k)| p * k).sum());
            let fresh = image.iter().zip(&gains).map(|(q, k)| q * k).sum::<f64>() + noise * noise;
            let on: [f64; SIZE] = std::array::from_fn(|i| passages.get(i).copied().unwrap_or(1.0));
            for i in 0..SIZE {
                for k in 0..SIZE {
                    covariance[i][k] = (covariance[i][k] + (fresh - image[i] - image[k])) * (on[i] * on[k]);
                }
            }
            covariance[MAX_STATES][MAX_STATES].max(0.0)
        };
        (0..self.steps()).map(step).collect()
    }

    /// Upper bound of `Σ_t (e_t/σ_t)²`, `e_t` how far two histories' fed back sums are from the ideal difference when every
    /// product is rounded down in units of `2^-fraction` and their sum to an integer.
    pub fn rounding(&self, fraction: u32) -> Upper {
        let unit = 2f64.powi(-(fraction as i32));
        let mut held = [0.0; MAX_STATES];
        let mut square = 0.0;
        for t in 0..self.steps() {
            let (gains, passages, noise) = self.step(t);
            let fed_back: f64 = held.iter().zip(&gains).map(|(e, k)| e * k + 1.0).sum();
            square += ((1.0 + unit * fed_back) / noise).powi(2);
            held.iter_mut().zip(&passages).for_each(|(e, on)| *e = *e * on + 1.0);
        }
        Upper::rounded(square * (1.0 + 1e-9), 1)
    }
}

/// States with which the mean error of sums is within 1e-5 of the least, and other errors within 6e-4.
fn usual_states(n: usize) -> usize {
    match n {
        0..=16 => 6,
        17..=1024 => 8,
        1025..=16_384 => 10,
        _ => 12,
    }
}

fn spread(table: &[u32]) -> States {
    std::array::from_fn(|i| table.get(i).map_or(0.0, |value| f64::from(*value) / UNIT))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(strategy: &TimeVarying) -> (f64, f64) {
        let norm = strategy.column_norm().get();
        let variances = strategy.running_variances();
        let mean = variances.iter().sum::<f64>() / variances.len() as f64;
        (variances.iter().copied().fold(0.0, f64::max).sqrt() * norm, mean.sqrt() * norm)
    }

    /// C of the rounded tables, by columns.
    fn dense(strategy: &TimeVarying) -> Vec<Vec<f64>> {
        let n = strategy.steps();
        let column = |j: usize| {
            let mut column = vec![0.0; n];
            let mut state = [0.0; MAX_STATES];
            for t in j..n {
                let (gains, passages, noise) = strategy.step(t);
                let fed: f64 = state.iter().zip(&gains).map(|(a, k)| a * k).sum();
                column[t] = (f64::from(u8::from(t == j)) + fed) / noise;
                for (a, on) in state.iter_mut().zip(&passages) {
                    *a = (*a + f64::from(u8::from(t == j))) * on;
                }
            }
            column
        };
        (0..n).map(column).collect()
    }

    #[test]
    fn norms_and_variances_are_those_of_the_matrix() {
        for (n, states) in [(1usize, 1), (2, 3), (9, 4), (60, 5)] {
            for objective in [Objective::Mean, Objective::Max] {
                let strategy = TimeVarying::fit(n, Prefixes::Sums, objective, Some(states)).unwrap();
                let columns = dense(&strategy);
                let norms = columns.iter().map(|c| c.iter().map(|x| x * x).sum::<f64>().sqrt());
                let largest = norms.clone().fold(0.0, f64::max);
                let bound = strategy.column_norm().get();
                assert!(largest <= bound && bound < largest * (1.0 + 1e-12), "{largest} {bound}");
                assert!(norms.fold(f64::INFINITY, f64::min) > 1.0 - 1e-6, "columns are normalised");
                // Row t of A C^{-1}: b with bᵀC = (1, …, 1, 0, …, 0), from the last step back.
                for (t, found) in strategy.running_variances().into_iter().enumerate() {
                    let mut b = vec![0.0; n];
                    for j in (0..=t).rev() {
                        let known: f64 = (j + 1..=t).map(|s| b[s] * columns[j][s]).sum();
                        b[j] = (1.0 - known) / columns[j][j];
                    }
                    let variance: f64 = b.iter().map(|x| x * x).sum();
                    assert!((found / variance - 1.0).abs() < 1e-9, "{n} {t} {found} {variance}");
                }
            }
        }
    }

    #[test]
    fn within_little_of_the_bound() {
        for n in [1usize, 2, 3, 5, 8, 17, 50, 100, 256, 700, 1024, 3000, 1 << 16] {
            for (prefixes, objective, most) in
                [(Prefixes::Sums, Objective::Mean, 1e-5), (Prefixes::Sums, Objective::Max, 5e-4)]
            {
                let strategy = TimeVarying::fit(n, prefixes, objective, None).unwrap();
                let (max, mean) = errors(&strategy);
                let ratio = if objective == Objective::Max { max } else { mean } / strategy.lower().unwrap();
                assert!((1.0..1.0 + most).contains(&ratio), "{n} {objective:?} {ratio}");
            }
        }
    }

    #[test]
    fn averages() {
        for n in [1usize, 2, 7, 40, 365, 5000] {
            let strategy = TimeVarying::fit(n, Prefixes::Averages, Objective::Mean, None).unwrap();
            let norm = strategy.column_norm().get();
            let of_average = |(t, v): (usize, f64)| v / ((t + 1) as f64).powi(2);
            let mean = strategy.running_variances().into_iter().enumerate().map(of_average).sum::<f64>() / n as f64;
            let ratio = mean.sqrt() * norm / strategy.lower().unwrap();
            assert!((1.0..1.0001).contains(&ratio), "{n} {ratio}");
        }
    }

    #[test]
    #[ignore = "a million steps: seconds; run by `make test-slow`"]
    fn within_little_of_the_bound_at_a_million() {
        for (objective, most) in [(Objective::Mean, 2e-5), (Objective::Max, 1e-3)] {
            let strategy = TimeVarying::fit(1 << 20, Prefixes::Sums, objective, None).unwrap();
            let (max, mean) = errors(&strategy);
            let ratio = if objective == Objective::Max { max } else { mean } / strategy.lower().unwrap();
            assert!((1.0..1.0 + most).contains(&ratio), "{objective:?} {ratio}");
        }
    }
}
