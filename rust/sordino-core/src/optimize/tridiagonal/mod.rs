//! The least error of prefix sums at any length: a certified search, and a strategy of few states that attains it.
//!
//! For prefix sums `A` whose rows have the weights `u`, the inverse of `W = Aᵀ diag(u) A` is tridiagonal: links `1/u_i`
//! between neighbours, and an excess at the last. Among the Gaussian strategies the least mean squared error is
//! `max_v ‖diag(√u) A diag(√v)‖_*²`, v on the simplex, and with `T = V^{-1/2} W^{-1} V^{-1/2}`, `t^{-1/2} ≈ r(t)` by poles,
//!
//! `G = V^{-1/2} r(T) V^{-1/2} = Σ_i w_i (W^{-1} + t_i V)^{-1}`
//!
//! is the Gram matrix of the strategy for v: every term takes two sweeps along the line. `Σ_j v_j G_jj` is the nuclear
//! norm, to the deviation of the poles, and bounds every strategy from below, whatever v.
//!
//! | file | what |
//! |---|---|
//! | `poles.rs` | `t^{-1/2}` by poles |
//! | `decays.rs` | the bound for exponential decays, whose inverse Gram matrix is tridiagonal too |
//! | `search.rs` | v by Anderson acceleration on few knots, and the bound |
//! | `time_varying.rs` | the triangular factor of `G` with as few poles as states |

mod decays;
mod poles;
mod search;
mod time_varying;

pub use decays::decay_bound;
pub use search::{Prefixes, prefix_bound};
pub use time_varying::TimeVarying;

pub(super) use poles::Poles;

/// Poles that are swept at once.
const LANES: usize = 8;

/// A symmetric matrix with `−link_j` between j and j + 1 and rows that sum to `excess_j ≥ 0`.
#[derive(Debug)]
struct Tridiagonal {
    /// As many as rows, the last 0.
    links: Vec<f64>,
    excess: Vec<f64>,
}

impl Tridiagonal {
    /// `(Aᵀ diag(u) A)^{-1}` of prefix sums.
    fn prefix_sums(rows: &[f64]) -> Self {
        let last = rows.len() - 1;
        let mut links: Vec<f64> = rows.iter().map(|u| 1.0 / u).collect();
        let mut excess = vec![0.0; rows.len()];
        std::mem::swap(&mut links[last], &mut excess[last]);
        Self { links, excess }
    }

    /// `n (AᵀA)^{-1} = n (I − decay·S)(I − decay·Sᵀ)` of `y_t = decay·y_{t−1} + x_t`, n steps, `S` the shift by one.
    fn decays(len: usize, decay: f64) -> Self {
        let (scale, rest, last) = (len as f64, 1.0 - decay, len - 1);
        let mut links = vec![scale * decay; len];
        let mut excess = vec![scale * rest * rest; len];
        excess[0] = scale * rest;
        excess[last] += links[last];
        links[last] = 0.0;
        Self { links, excess }
    }

    /// `[low, high]` that holds the spectrum of `V^{-1/2} W^{-1} V^{-1/2}`: `1/tr V W`, and the largest row sum.
    fn range(&self, weights: &[f64]) -> (f64, f64) {
        let n = weights.len();
        // The diagonal of W itself is that of one pole at 0.
        let mut gram = vec![0.0; n];
        self.add_poles(weights, &[0.0], &[1.0], &mut vec![[0.0]; n], &mut gram);
        let trace: f64 = weights.iter().zip(&gram).map(|(v, w)| v * w).sum();
        let row = |j: usize| {
            let across = |link: f64, other: usize| link / (weights[j] * weights[other]).sqrt();
            let (before, after) = (self.link_before(j), self.links[j]);
            (before + after + self.excess[j]) / weights[j]
                + if j > 0 { across(before, j - 1) } else { 0.0 }
                + if j + 1 < n { across(after, j + 1) } else { 0.0 }
        };
        let high = (0..n).map(row).fold(0.0, f64::max);
        ((1.0 - 1e-6) / trace, high * (1.0 + 1e-6))
    }

    fn link_before(&self, j: usize) -> f64 {
        j.checked_sub(1).map_or(0.0, |before| self.links[before])
    }

    /// What the cells before each one leave on its diagonal, of `W^{-1} + shift·V`: without subtraction.
    fn left(&self, weights: &[f64], shift: f64) -> Vec<f64> {
        let mut left = 0.0;
        let step = |((weight, excess), link): ((&f64, &f64), &f64)| {
            let found = left;
            left = passed(shift * weight + excess + left, *link);
            found
        };
        weights.iter().zip(&self.excess).zip(&self.links).map(step).collect()
    }

    /// The diagonal of `Σ_i factor_i (W^{-1} + shift_i V)^{-1}`.
    fn root_diagonal(&self, weights: &[f64], poles: &Poles) -> Vec<f64> {
        let mut diagonal = vec![0.0; weights.len()];
        let mut lefts = vec![[0.0; LANES]; weights.len()];
        for (some, factors) in poles.shifts.chunks(LANES).zip(poles.factors.chunks(LANES)) {
            let (mut shifts, mut scales) = ([1.0; LANES], [0.0; LANES]);
            shifts[..some.len()].copy_from_slice(some);
            scales[..some.len()].copy_from_slice(factors);
            self.add_poles(weights, &shifts, &scales, &mut lefts, &mut diagonal);
        }
        diagonal
    }

    /// Adds the terms of some poles to the diagonal, by a sweep to the right and one back.
    fn add_poles<const N: usize>(
        &self,
        weights: &[f64],
        shifts: &[f64; N],
        factors: &[f64; N],
        lefts: &mut [[f64; N]],
        diagonal: &mut [f64],
    ) {
        let mut left = [0.0; N];
        for (j, slot) in lefts.iter_mut().enumerate() {
            *slot = left;
            for i in 0..N {
                left[i] = passed(shifts[i] * weights[j] + self.excess[j] + left[i], self.links[j]);
            }
        }
        let mut right = [0.0; N];
        for (j, left) in lefts.iter().enumerate().rev() {
            let before = self.link_before(j);
            for i in 0..N {
                let own = shifts[i] * weights[j] + self.excess[j] + right[i];
                diagonal[j] += factors[i] / (own + left[i]);
                right[i] = passed(own, before);
            }
        }
    }
}

/// What a cell of this precision leaves on the diagonal of its neighbour over a link.
#[inline]
fn passed(precision: f64, link: f64) -> f64 {
    // Nothing passes where there is no link, or nothing yet.
    if link == 0.0 { 0.0 } else { precision * (link / (precision + link)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::{from_rows, inverse};

    #[test]
    fn sweeps_are_inverses() {
        let rows = [0.1, 0.3, 0.2, 0.25, 0.15];
        let weights = [0.3, 0.05, 0.25, 0.1, 0.3];
        let matrix = Tridiagonal::prefix_sums(&rows);
        let poles = Poles::new(0.1, 100.0, 11);
        let found = matrix.root_diagonal(&weights, &poles);
        let n = rows.len();
        let mut expected = vec![0.0; n];
        for (shift, factor) in poles.shifts.iter().zip(&poles.factors) {
            let mut dense = vec![0.0; n * n];
            for j in 0..n {
                let off = matrix.link_before(j) + matrix.links[j];
                dense[j * n + j] = off + matrix.excess[j] + shift * weights[j];
                if j + 1 < n {
                    dense[j * n + j + 1] = -matrix.links[j];
                    dense[(j + 1) * n + j] = -matrix.links[j];
                }
            }
            let inverse = inverse(&from_rows(n, n, &dense));
            expected.iter_mut().enumerate().for_each(|(j, slot)| *slot += factor * inverse[(j, j)]);
        }
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found / expected - 1.0).abs() < 1e-12, "{found} {expected}");
        }
        // W itself: sums of the rows from j on.
        let (low, high) = matrix.range(&weights);
        let trace: f64 = (0..n).map(|j| weights[j] * rows[j..].iter().sum::<f64>()).sum();
        assert!((low * trace - 1.0).abs() < 1e-5 && high > low);
    }
}
