//! What a workload filter makes of the coloured noise of a buffered strategy.

use super::exponentials::Exponentials;
use super::secular::Root;
use crate::error::Error;

/// Least relative distance of the workload's pole from a pole of the noise: two poles that meet have
/// residues that cancel.
const SEPARATION: f64 = 1e-6;

/// Impulse response `b_k = Σ_j r_j p_j^k` of `B = C^{-1}(z)/(1 − γz)`, a Toeplitz factor of the workload.
///
/// `C^{-1} = Π(1 − θ_i z)/Π(1 − θ̂_j z)`, so the poles are `γ` and the `θ̂_j`, and the residue at `p` is
/// `Π_i (p − θ_i)/Π_{q≠p} (p − q)`: a product, without cancellation. All are positive if `γ` is above
/// every pole of `C`.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseResponse(Exponentials);

impl NoiseResponse {
    /// From the rates `μ` of the poles of `C`, the roots of its secular equation, and `γ`.
    pub(super) fn new(mu: &[f64], roots: &[Root], decay: f64) -> Result<Self, Error> {
        if !(decay > 0.0 && decay <= 1.0) {
            return Err(Error::invalid("decay", format!("{decay} is not in (0, 1]")));
        }
        let rate = 1.0 - decay;
        let mut terms = Vec::with_capacity(roots.len() + 1);
        let first: f64 = mu.iter().zip(roots).map(|(m, root)| (m - rate) / -root.below(rate)).product();
        terms.push((first, rate));
        for (j, root) in roots.iter().enumerate() {
            let distance = root.below(rate);
            if distance.abs() <= SEPARATION * rate.max(root.value()) {
                return Err(Error::Unsupported(format!("decay {decay} meets a pole of the noise of this strategy")));
            }
            // As many factors above as below; pairing them keeps the product in range.
            let others = roots.iter().enumerate().filter(|(l, _)| *l != j).map(|(_, other)| root.to(other));
            let denominators = std::iter::once(distance).chain(others);
            terms.push((mu.iter().zip(denominators).map(|(m, q)| root.below(*m) / q).product(), root.value()));
        }
        Ok(Self(Exponentials::new(terms)))
    }

    /// `b_0, …, b_{n−1}`.
    pub fn coefficients(&self, n: usize) -> Vec<f64> {
        self.0.coefficients(n)
    }

    /// `Σ_{k<t} b_k²`: the variance of the answer at step `t` (counted from 1) at unit noise.
    pub fn squared_norm(&self, t: u64) -> f64 {
        self.0.squared_sum(Some(t))
    }

    /// The limit of [`Self::squared_norm`], or `None` if there is none (a running sum).
    pub fn squared_norm_infinite(&self) -> Option<f64> {
        let limit = self.0.squared_sum(None);
        limit.is_finite().then_some(limit)
    }

    /// `Σ_{t=1}^{n}` of [`Self::squared_norm`]: `n` times the mean variance.
    pub fn total_squared(&self, n: u64) -> f64 {
        self.0.squared_total(n)
    }
}
