//! Independent noise on every cell and one common noise on all of them: for units of which no record lowers a count.
//!
//! A unit that is in `m` of `d` cells moves `m` of them up. With noise `σ₁Z_i + σ₀W`, `W` the same in every cell, and
//! `c = σ₀²/(σ₁² + dσ₀²)` its squared distance is `(m − cm²)/σ₁²`: what moves together hides in the common noise. For a
//! histogram the best `c` is the least error of all unbiased linear Gaussian mechanisms; sums over many cells get worse.
//!
//! Pure: discrete Laplace noise of rate `e` on every cell and of rate `κe` in common, on whole numbers. Shifting the common
//! noise by 0 or 1 bounds the loss by `max_m min(m, d − m + κ)·e`.
//!
//! Source: Lebeda, "Better Gaussian mechanism using correlated noise" (arXiv:2408.06853), for units that are in all cells.

use super::boxes::volume;
use super::identity::Identity;
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy};
use crate::error::Error;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;

/// How large the common noise is beside that of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CommonNoise {
    /// Gaussian: `σ₀/σ₁`, positive.
    Gaussian(f64),
    /// Discrete Laplace: `κ`, the rate of the common noise over that of a cell.
    Laplace(u32),
}

#[derive(Debug, Clone)]
struct Common {
    cells: Identity,
    workload: Workload,
    noise: CommonNoise,
    len: usize,
    /// Of [`Strategy::refined`], for the cells and the common noise.
    factors: Vec<f64>,
}

/// The strategy that measures all cells of a table with such noise.
///
/// # Errors
/// If the workload has no table of its cells, or the common noise is out of range.
pub fn common(workload: &Workload, noise: CommonNoise) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    let fits = match noise {
        CommonNoise::Gaussian(ratio) => ratio.is_finite() && ratio > 0.0,
        CommonNoise::Laplace(ratio) => ratio > 0,
    };
    if !fits {
        return Err(Error::invalid("common noise", "must be positive"));
    }
    let cells = Identity::new(&workload, Geometry::Common(noise))?;
    let len = cells.measured_len();
    Ok(Box::new(Common { cells, workload, noise, len, factors: Vec::new() }))
}

impl Common {
    /// Variance of the common noise where that of a cell is [`Geometry::white`].
    fn common_variance(&self) -> f64 {
        match self.noise {
            CommonNoise::Gaussian(ratio) => ratio * ratio,
            CommonNoise::Laplace(ratio) => 2.0 / (f64::from(ratio) * self.factors.last().unwrap_or(&1.0)).powi(2),
        }
    }

    /// Sums of the weights of the cells in every answer.
    fn row_sums(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.workload.answers_len()];
        self.workload.apply(&vec![1.0; self.len], &mut sums);
        sums
    }
}

/// Upper bound of `‖v‖² − c(Σv)²` over the vertices of `{0 ≤ v ≤ cap, Σv ≤ k}` in `d` cells, `c = ρ²/(1 + dρ²)`.
pub(crate) fn largest_square(ratio: f64, d: u64, k: u64, cap: u64) -> Upper {
    let least_c = ratio * ratio / (1.0 + d as f64 * ratio * ratio) * (1.0 - 16.0 * UNIT_ROUNDOFF);
    let value = |squares: f64, sum: f64| {
        let own = least_c * sum * sum;
        (squares - own) + 8.0 * UNIT_ROUNDOFF * (squares + own)
    };
    let cap_f = cap as f64;
    let full = |m: u64| value(m as f64 * cap_f * cap_f, m as f64 * cap_f);
    let most = (k / cap).min(d);
    // A parabola in m: largest next to its top, or at the end.
    let top = (0.5 / least_c).min(most as f64) as u64;
    let mut largest = [1, most, top.saturating_sub(1).max(1), top.max(1), (top + 1).min(most)]
        .into_iter()
        .filter(|m| *m <= most)
        .map(full)
        .fold(0.0, f64::max);
    let rest = (k - most * cap).min(cap) as f64;
    if most < d && rest > 0.0 {
        let m = most as f64;
        largest = largest.max(value(m * cap_f * cap_f + rest * rest, m * cap_f + rest));
    }
    Upper::rounded(largest, 4)
}

impl Strategy for Common {
    fn measured_len(&self) -> usize {
        self.len
    }

    fn geometry(&self) -> Geometry {
        Geometry::Common(self.noise)
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let Unit::AddRemove { records, per_cell, one_signed: true } = unit else {
            return Err(Error::Unsupported("common noise hides units of which no record lowers a cell".into()));
        };
        let (d, k, cap) = (self.len as u64, u64::from(records), u64::from(per_cell.unwrap_or(records)));
        match self.noise {
            CommonNoise::Gaussian(ratio) => Ok(largest_square(ratio, d, k, cap).sqrt()),
            CommonNoise::Laplace(ratio) if cap == 1 => {
                let loss = |m: u64| m.min(d - m + u64::from(ratio));
                // Rising, then falling.
                let most = k.min(d);
                let turn = (d + u64::from(ratio)).div_ceil(2).min(most);
                Ok(Upper::integer(loss(turn).max(loss(turn.saturating_sub(1))).max(loss(most)).into()))
            }
            CommonNoise::Laplace(_) => {
                Err(Error::Unsupported("common discrete noise hides units of one record a cell".into()))
            }
        }
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        self.cells.encoding(max_abs)
    }

    /// Of the cells, then of the common noise.
    fn steps(&self) -> Vec<Run> {
        vec![Run { step: 1, len: self.len }, Run { step: 1, len: 1 }]
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(Self { factors: factors.to_vec(), ..self.clone() }))
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        self.cells.encode(x, max_abs, out)
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.cells.decode(y, out);
    }

    fn variances(&self, out: &mut [f64]) {
        self.workload.row_squares(out);
        let (white, common) = (self.geometry().white(), self.common_variance());
        for (slot, sum) in out.iter_mut().zip(self.row_sums()) {
            *slot = white * *slot + common * sum * sum;
        }
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.cells.cells(y)
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        self.cells.multiplied(x)
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.cells.transposed(y)
    }

    fn box_variance(&self, _shape: &[usize], first: &[usize], last: &[usize]) -> Result<f64, Error> {
        let cells = volume(first, last);
        Ok(self.geometry().white() * cells + self.common_variance() * cells * cells)
    }

    fn common_noise(&self) -> f64 {
        self.common_variance()
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        self.cells.weights(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `max_v vᵀΣ^{-1}v` over all integer points of the polytope, by the inverse of `Σ = I + ρ²J`.
    fn by_enumeration(ratio: f64, d: usize, k: u64, cap: u64) -> f64 {
        let c = ratio * ratio / (1.0 + d as f64 * ratio * ratio);
        let mut largest = 0.0f64;
        let mut v = vec![0u64; d];
        loop {
            let (sum, squares) = (v.iter().sum::<u64>(), v.iter().map(|x| x * x).sum::<u64>());
            if sum <= k {
                largest = largest.max(squares as f64 - c * (sum as f64).powi(2));
            }
            let Some(place) = v.iter().position(|x| *x < cap) else { return largest };
            v[place] += 1;
            v[..place].fill(0);
        }
    }

    proptest! {
        #[test]
        fn distances_are_the_largest(ratio in 0.01f64..3.0, d in 1usize..6, k in 1u64..7, cap in 1u64..4) {
            let cap = cap.min(k);
            let bound = largest_square(ratio, d as u64, k, cap).get();
            let known = by_enumeration(ratio, d, k, cap);
            prop_assert!(bound >= known && bound <= known * (1.0 + 1e-12) + 1e-12, "{bound} {known}");
        }
    }

    #[test]
    fn losses_are_the_largest() {
        for d in 1..12u64 {
            for k in 1..=d + 2 {
                for ratio in 1..6u32 {
                    let strategy =
                        common(&Workload::Histogram { len: d as usize }, CommonNoise::Laplace(ratio)).unwrap();
                    let unit = Unit::add_remove(k as u32, Some(1)).unwrap().one_signed().unwrap();
                    let known = (0..=k.min(d)).map(|m| m.min(d - m + u64::from(ratio))).max().unwrap();
                    let found = strategy.sensitivity(unit);
                    assert_eq!(found.unwrap().get(), known as f64, "{d} {k} {ratio}");
                    assert!(strategy.sensitivity(Unit::add_remove(k as u32, Some(1)).unwrap()).is_err());
                }
            }
        }
    }
}
