//! Column weights that are alike for many cells in a row, so that the variance of any interval takes few lookups.
//!
//! `Σ κ(i − j)` over the cells `i` before `a` and `j` before `b` is a sum of values of `ψ`, of which `−κ` is the second
//! difference, at `a`, `b` and `a − b`; that of `κ(i + j)` at `a`, `b` and `a + b`. Weights that change at few cells add the
//! same at those cells.

use super::Balanced;
use crate::optimize::Symmetry;
use crate::parallel::fill;
use std::f64::consts::PI;

/// Each weight lowered to the least of its step, of about so many: no column gets longer. Where weights rise by much from
/// cell to cell steps are short: their number for a rise is the root of it.
///
/// Weights of lines that are the same backwards stay so: else their noise would be in modes that no query has, and that are
/// hardly measured.
pub(super) fn in_steps(weights: &mut [f64], steps: usize, symmetry: Symmetry) {
    if symmetry == Symmetry::Cosine {
        return lower(weights, steps);
    }
    let half = weights.len() / 2;
    lower(&mut weights[half..], steps / 2);
    for j in 0..half {
        weights[j] = weights[weights.len() - 1 - j];
    }
}

fn lower(weights: &mut [f64], steps: usize) {
    let rises = weights.windows(2).map(|pair| (pair[1] / pair[0]).ln().abs().sqrt());
    let mut walked: Vec<f64> = vec![0.0];
    walked.extend(rises.scan(0.0, |sum, rise| {
        *sum += rise;
        Some(*sum)
    }));
    let scale = steps as f64 / walked[walked.len() - 1].max(1e-300);
    let mut rest = weights;
    for step in walked.chunk_by(|a, b| (a * scale).floor() == (b * scale).floor()) {
        let (own, later) = rest.split_at_mut(step.len());
        own.fill(own.iter().copied().fold(f64::INFINITY, f64::min));
        rest = later;
    }
}

/// Sums of the covariance of cells of weight 1 before two places.
struct Corners {
    sine: bool,
    /// `ψ`, from 0 to beyond twice the cells.
    psi: Vec<f64>,
    /// What a constant adds to the covariance of any two cells.
    constant: f64,
}

impl Corners {
    fn of(root: &Balanced) -> Self {
        let period = root.ring.len();
        let scale = root.symmetry.meetings() / period as f64;
        let value = |(k, v): (usize, &f64)| match k {
            0 => 0.0,
            _ => scale / (2.0 * v * (PI * k as f64 / period as f64).sin()).powi(2),
        };
        let half = root.ring.even(&root.spectrum.iter().enumerate().map(value).collect::<Vec<_>>());
        let psi = (0..2 * root.len() + 2).map(|lag| half[lag.min(period.abs_diff(lag))]).collect();
        Self { sine: root.symmetry == Symmetry::Sine, psi, constant: 2.0 * scale / root.spectrum[0].powi(2) }
    }

    fn at(&self, a: usize, b: usize) -> f64 {
        let psi = &self.psi;
        if self.sine {
            let single = |e: usize| psi[e] + psi[e + 1];
            return psi[a.abs_diff(b)] + psi[a + b + 1] + psi[0] + psi[1] - single(a) - single(b);
        }
        psi[a.abs_diff(b)] - psi[a + b] + self.constant * a as f64 * b as f64
    }
}

impl Balanced {
    /// Variances of intervals where weights have few steps: `F(a, a) + F(b, b) − 2 F(a, b)`, `F` the sum of the covariance
    /// before two places. With `u` the inverse weights, `c_p` how much they fall at the end `e_p` of a step, and `g` what
    /// [`Corners`] has, `F(a, b)` is `u_a u_b g(a, b) + u_a Σ_q c_q g(a, e_q) + u_b Σ_p c_p g(e_p, b) + Σ_pq c_p c_q g(e_p, e_q)`
    /// over the steps that end before `b` and before `a`.
    pub(super) fn variances_by_steps(&self, ends: &[(u32, u32)], out: &mut [f64]) {
        let corners = Corners::of(self);
        // The step of the cell before each place, and of each step its inverse weight and its end.
        let (mut of, mut inverse, mut last) = (vec![0], Vec::new(), Vec::new());
        for step in self.weights.chunk_by(|a, b| a == b) {
            of.resize(of.len() + step.len(), inverse.len());
            inverse.push((step[0] as f64).recip());
            last.push(of.len() - 1);
        }
        let falls: Vec<(f64, usize)> = inverse.windows(2).zip(&last).map(|(pair, e)| (pair[0] - pair[1], *e)).collect();
        // Of two steps, what is added at the ends before both.
        let steps = inverse.len();
        let mut both = vec![0.0; steps * steps];
        for (p, (fall, end)) in falls.iter().enumerate() {
            let mut row = 0.0;
            for (q, (other, e)) in falls.iter().enumerate() {
                row += fall * other * corners.at(*end, *e);
                both[(p + 1) * steps + q + 1] = both[p * steps + q + 1] + row;
            }
        }
        let variance = |(first, last): &(u32, u32)| {
            let (a, b) = (*first as usize, *last as usize + 1);
            let ((p, q), (u, v)) = ((of[a], of[b]), (inverse[of[a]], inverse[of[b]]));
            let own = u * u * corners.at(a, a) + v * v * corners.at(b, b) - 2.0 * u * v * corners.at(a, b);
            let between = falls[p..q].iter().map(|(fall, e)| fall * (v * corners.at(b, *e) - u * corners.at(a, *e)));
            own + 2.0 * between.sum::<f64>() + both[p * steps + p] + both[q * steps + q] - 2.0 * both[p * steps + q]
        };
        fill(out, |t| variance(&ends[t]));
    }
}
