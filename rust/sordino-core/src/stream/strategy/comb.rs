//! The sliding window: `C = T(z)·G(z^W)`, `T ≈ (1 − z)^{-1/2}` buffered Toeplitz, `G = T^{-1}` on a comb.

use super::buffered::held_error;
use super::correlation::pattern_norm;
use super::{StreamStrategy, cumulative};
use crate::error::Error;
use crate::stream::filter::Filter;
use crate::stream::participation::Participation;
use crate::stream::process::{self, FRACTION, Process};
use crate::stream::state::Writer;
use crate::toeplitz::{BufferedToeplitz, Dyadic};
use crate::upper::Upper;

/// Bits of the comb's parameters.
const BITS: u32 = 16;
/// Share of `‖c‖²` that may be left to the bound of the tail.
const TAIL: f64 = 1e-9;
/// Most coefficients that are summed one by one.
const MOST: usize = 1 << 24;

/// A comb strategy with the coefficients of its kernel.
#[derive(Debug)]
pub(in crate::stream) struct Comb {
    toeplitz: BufferedToeplitz,
    /// `1 − φ_i` and `w_i` of `G = 1 − Σ w_i z/(1 − φ_i z)`.
    decay: Vec<Dyadic>,
    gain: Vec<Dyadic>,
    window: usize,
    kernel: Vec<f64>,
    /// Bound of `‖c‖₂` beyond `kernel`, rounding of the sum included.
    tail: f64,
}

impl Comb {
    /// The comb of a window from a buffered Toeplitz factor of some degree.
    ///
    /// # Errors
    /// If a parameter cannot be represented.
    pub(crate) fn new(toeplitz: BufferedToeplitz, window: usize) -> Result<Self, Error> {
        let rates = toeplitz.noise_rates();
        let mu: Vec<f64> = toeplitz.mu().iter().map(|m| m.value()).collect();
        // G = Π(1 − θ_i z)/Π(1 − θ̂_j z): w_j = Π_i(μ_i − μ̂_j)/Π_{i≠j}(μ̂_i − μ̂_j), positive by interlacing.
        let gains = rates.iter().enumerate().map(|(j, rate)| {
            let above: f64 = mu
                .iter()
                .zip(&rates)
                .enumerate()
                .map(|(i, (m, other))| if i == j { rate - m } else { (m - rate) / (other - rate) })
                .product();
            Dyadic::nearest(above, BITS)
        });
        let gain = gains.collect::<Result<Vec<_>, _>>()?;
        let decay = rates.iter().map(|rate| Dyadic::nearest(*rate, BITS)).collect::<Result<Vec<_>, _>>()?;
        let mut comb = Self { toeplitz, decay, gain, window, kernel: Vec::new(), tail: 0.0 };
        comb.sum_kernel();
        Ok(comb)
    }

    fn values(parameters: &[Dyadic]) -> Vec<f64> {
        parameters.iter().map(|p| p.value()).collect()
    }

    /// `c_t` until the rest is negligible, and a bound of the rest.
    ///
    /// All held sums are positive. With no further input, `T` gives at most `Σ ω_i a_i/√(1 − θ_i²)` in norm, its
    /// input to the comb as much, and each phase of the comb decays by `φ_i` a window.
    fn sum_kernel(&mut self) {
        let (mu, omega) = (Self::values(self.toeplitz.mu()), Self::values(self.toeplitz.omega()));
        let (decay, gain) = (Self::values(&self.decay), Self::values(&self.gain));
        let d = mu.len();
        let mut buffers = vec![0.0; d];
        let mut phases = vec![0.0; d * self.window];
        let (mut square, mut magnitude) = (0.0, 0.0);
        let mut kernel = Vec::new();
        loop {
            let t = kernel.len();
            let v = f64::from(u8::from(t == 0));
            let near: f64 = buffers.iter().zip(&omega).map(|(a, w)| a * w).sum();
            let held = &mut phases[t % self.window * d..][..d];
            let far: f64 = held.iter().zip(&gain).map(|(h, w)| h * w).sum();
            let c = v + near - far;
            square += c * c;
            magnitude += (v + near + far) * (v + near + far);
            kernel.push(c);
            for (a, m) in buffers.iter_mut().zip(&mu) {
                *a += v - *a * m;
            }
            for (h, m) in held.iter_mut().zip(&decay) {
                *h += v + near - *h * m;
            }
            if kernel.len() % self.window == 0 || kernel.len() >= MOST {
                let energy = |rate: f64| (rate * (2.0 - rate)).sqrt();
                let ahead: f64 = buffers.iter().zip(&omega).zip(&mu).map(|((a, w), m)| a * w / energy(*m)).sum();
                let combs: f64 = (0..d)
                    .map(|i| {
                        let held: f64 = phases.iter().skip(i).step_by(d).map(|h| h * h).sum();
                        gain[i] * (held.sqrt() / energy(decay[i]) + ahead / decay[i])
                    })
                    .sum();
                // Recursions of positive numbers err by two roundings a step, relatively.
                let rounding = (4 * kernel.len() + 64) as f64 * f64::EPSILON * magnitude.sqrt();
                let tail = ahead + combs + rounding;
                if tail * tail <= TAIL * square || kernel.len() >= MOST {
                    (self.kernel, self.tail) = (kernel, tail);
                    return;
                }
            }
        }
    }

    /// Standard deviation of the window's sum at noise multiplier 1, for ever.
    pub(crate) fn error(&self) -> Result<f64, Error> {
        let filter = Filter::Window { window: self.window, factor: 1.0 };
        let variance = self.variances(&filter, &[u64::MAX])?[0];
        Ok(variance.sqrt() * self.norm(&Participation::single(), u64::MAX).get())
    }

    /// Impulse response of `v` to unit noise, summed over the window.
    fn response(&self, len: usize) -> Vec<f64> {
        let (mu, omega) = (Self::values(self.toeplitz.mu()), Self::values(self.toeplitz.omega()));
        let (decay, gain) = (Self::values(&self.decay), Self::values(&self.gain));
        let d = mu.len();
        let (mut buffers, mut phases) = (vec![0.0; d], vec![0.0; d * self.window]);
        let (mut colours, mut sum) = (Vec::with_capacity(len), 0.0);
        (0..len)
            .map(|t| {
                let near: f64 = buffers.iter().zip(&omega).map(|(a, w)| a * w).sum();
                let held = &mut phases[t % self.window * d..][..d];
                let far: f64 = held.iter().zip(&gain).map(|(h, w)| h * w).sum();
                let v = f64::from(u8::from(t == 0)) - near + far;
                for (a, m) in buffers.iter_mut().zip(&mu) {
                    *a += v - *a * m;
                }
                for (h, m) in held.iter_mut().zip(&decay) {
                    *h += v + near - *h * m;
                }
                colours.push(v);
                sum += v - if t >= self.window { colours[t - self.window] } else { 0.0 };
                sum
            })
            .collect()
    }
}

impl StreamStrategy for Comb {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        let square: f64 = self.kernel.iter().map(|c| c * c).sum();
        let norm = Upper::rounded((square.sqrt() + self.tail) * (1.0 + 1e-12), 1);
        pattern_norm(&self.kernel, self.tail, norm, pattern, steps)
    }

    fn no_negative_products(&self) -> bool {
        false
    }

    fn rounding(&self, steps: u64) -> Upper {
        let near = held_error(&self.toeplitz);
        let combs = self.gain.iter().zip(&self.decay).map(|(w, m)| w.value() * (near + 1.0) / m.value() + 1.0);
        let error = 1.0 + 2f64.powi(-(FRACTION as i32)) * (near + combs.sum::<f64>()) * (1.0 + 1e-12);
        Upper::integer(steps.into()).sqrt() * Upper::rounded(error, 4)
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        let Filter::Window { window, factor } = filter else {
            return Err(Error::Unsupported("the comb serves sliding windows".into()));
        };
        if *window != self.window {
            return Err(Error::Unsupported("the comb was made for another window".into()));
        }
        let longest = steps.iter().copied().max().unwrap_or(1).min(self.kernel.len() as u64);
        let variances = cumulative(&self.response(longest as usize), steps);
        Ok(variances.into_iter().map(|v| v * factor * factor).collect())
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        let near = (self.toeplitz.mu(), self.toeplitz.omega());
        Box::new(process::Comb::new(near, (&self.decay, &self.gain), self.window, dim, quarter_units))
    }

    fn parameters(&self, out: &mut Writer) {
        let parts = [self.toeplitz.mu(), self.toeplitz.omega(), &self.decay, &self.gain];
        for part in parts {
            out.dyadic(part.iter().copied());
        }
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        16 * (self.decay.len() * (self.window + 1)) as u64
    }

    fn operations(&self, _steps: u64) -> f64 {
        8.0 * self.decay.len() as f64
    }
}
