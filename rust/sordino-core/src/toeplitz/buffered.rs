//! Buffered linear Toeplitz strategies: `C = 1 + Σ ω_i z/(1 − θ_i z)` with dyadic parameters.

use super::dyadic::Dyadic;
use super::exponentials::Exponentials;
use super::noise_response::NoiseResponse;
use super::secular::{Root, roots};
use crate::error::Error;
use crate::upper::Upper;

/// Most buffers of a strategy.
pub const MAX_DEGREE: usize = 12;

/// Significant bits of a parameter: a stream multiplies by it in integers.
pub const PARAMETER_BITS: u32 = 16;

/// Largest shift of a parameter: rates and weights are at least 2^-96, and their products ordinary.
const MAX_SHIFT: u32 = 96;

/// Relative error of a closed form, generously: 256 roundings of sums of positive terms.
const SLACK: f64 = 1.0 + 1.0 / (1u64 << 45) as f64;

/// The lower triangular Toeplitz matrix of `C = 1 + Σ ω_i z/(1 − θ_i z)`, `μ_i = 1 − θ_i`.
///
/// A stream runs `C^{-1}` with one number of state a term. The parameters are dyadic with 16-bit
/// mantissas, used as they are by the stream's integers and by every formula here: `C` is quantised,
/// `C^{-1}` only ever solved for.
///
/// Invariants: `0 < μ_1 < μ_2 < … ≤ 1`, `ω_i > 0`, `Σω_i ≤ 1`. So the kernel `c_0 = 1`,
/// `c_k = Σ ω_i θ_i^{k−1}` is non-negative and non-increasing. Degree 0 is the identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BufferedToeplitz {
    mu: Vec<Dyadic>,
    omega: Vec<Dyadic>,
}

impl BufferedToeplitz {
    /// The strategy with these rates `μ = 1 − θ` and weights `ω`, in any common order, each rounded to 16
    /// significant bits.
    ///
    /// # Errors
    /// If there are more than twelve, `μ` is not in (0, 1], `ω` is not positive, or after rounding two
    /// poles coincide or `Σω > 1`.
    pub fn new(mu: &[f64], omega: &[f64]) -> Result<Self, Error> {
        let nearest = |name: &'static str, values: &[f64]| -> Result<Vec<Dyadic>, Error> {
            let rounded = values.iter().map(|v| Dyadic::nearest(*v, PARAMETER_BITS));
            rounded.collect::<Result<_, _>>().map_err(|e| Error::invalid(name, e.to_string()))
        };
        Self::from_dyadic(nearest("mu", mu)?, nearest("omega", omega)?)
    }

    /// The strategy with exactly these parameters.
    ///
    /// # Errors
    /// As [`Self::new`]; also if a mantissa has more than 16 bits.
    pub fn from_dyadic(mu: Vec<Dyadic>, omega: Vec<Dyadic>) -> Result<Self, Error> {
        Error::check_len("omega", mu.len(), omega.len())?;
        if mu.len() > MAX_DEGREE {
            return Err(Error::invalid("mu", format!("{} poles, at most {MAX_DEGREE}", mu.len())));
        }
        for (name, values) in [("mu", &mu), ("omega", &omega)] {
            if values.iter().any(|v| v.mantissa() >> PARAMETER_BITS != 0 || v.shift() > MAX_SHIFT) {
                return Err(Error::invalid(name, "parameters have 16 bits and a shift of at most 96"));
            }
        }
        let mut pairs: Vec<(Dyadic, Dyadic)> = mu.into_iter().zip(omega).collect();
        pairs.sort_by(|a, b| a.0.value().total_cmp(&b.0.value()));
        if pairs.windows(2).any(|pair| pair[0].0.value() >= pair[1].0.value()) {
            return Err(Error::invalid("mu", "poles must be distinct"));
        }
        if pairs.last().is_some_and(|(largest, _)| largest.value() > 1.0) {
            return Err(Error::invalid("mu", "rates must be in (0, 1]"));
        }
        // Upwards: a sum of 1 passes only if it is exact.
        if pairs.iter().fold(Upper::ZERO, |sum, (_, w)| sum + Upper::exact(w.value())).get() > 1.0 {
            return Err(Error::invalid("omega", "weights must sum to at most 1, or the kernel is not monotone"));
        }
        let (mu, omega) = pairs.into_iter().unzip();
        Ok(Self { mu, omega })
    }

    /// The rates `μ_i = 1 − θ_i`, increasing.
    pub fn mu(&self) -> &[Dyadic] {
        &self.mu
    }

    /// The weights `ω_i`.
    pub fn omega(&self) -> &[Dyadic] {
        &self.omega
    }

    /// Number of buffers.
    pub fn degree(&self) -> usize {
        self.mu.len()
    }

    /// The kernel `c_0, …, c_{n−1}`.
    pub fn coefficients(&self, n: usize) -> Vec<f64> {
        let mut out = vec![1.0; n.min(1)];
        out.extend(self.tail().coefficients(n.saturating_sub(1)));
        out
    }

    /// Norm of a column of `n` entries, or of infinitely many: the sensitivity to one entry of size 1.
    ///
    /// `‖c‖² = 1 + Σ_ij ω_i ω_j (1 − (θ_i θ_j)^{n−1})/(μ_i + μ_j − μ_i μ_j)`, every term positive.
    pub fn column_norm(&self, n: Option<u64>) -> Upper {
        if n == Some(0) {
            return Upper::ZERO;
        }
        let square = 1.0 + self.tail().squared_sum(n.map(|n| n - 1));
        (Upper::exact(square) * Upper::exact(SLACK)).sqrt()
    }

    /// Norm of the combination `Σ_j |w_j| C e_{j·separation}` over `n` rows, or infinitely many.
    ///
    /// The sensitivity to a unit that takes part several times, at least `separation` steps apart, with
    /// these weights *in this order*: the kernel is non-negative and non-increasing, so the inner product of
    /// two columns falls with the position of the later and with their distance, and the first columns at
    /// the least distance have the largest norm (Kalinin & Lampert, NeurIPS 2024). Over all orders the
    /// decreasing one need not be the worst: weights 1, 2, 1 exceed 2, 1, 1 on a long stream.
    ///
    /// Columns beyond `n` are dropped. The state behind the kernel is carried from one participation to
    /// the next, with one geometric sum in between: O(degree²) each.
    ///
    /// # Panics
    /// If `separation` is zero or a weight is not finite: a bug of the caller.
    pub fn column_norm_of(&self, n: Option<u64>, weights: &[f64], separation: u64) -> Upper {
        assert!(separation > 0, "participations are at least one step apart");
        let count = n.map_or(weights.len(), |n| weights.len().min(n.div_ceil(separation) as usize));
        let weights = &weights[..count];
        let largest = weights.iter().fold(0.0f64, |most, w| most.max(w.abs()));
        let Some(last) = count.checked_sub(1).filter(|_| largest > 0.0) else {
            return Upper::ZERO;
        };
        let tail = self.tail();
        let between = tail.gram(Some(separation - 1));
        let after = tail.gram(n.map(|n| n - 1 - last as u64 * separation));
        let powers = tail.powers_above(separation - 1);
        let (poles, omega): (Vec<f64>, Vec<f64>) =
            self.mu.iter().zip(&self.omega).map(|(m, w)| (1.0 - m.value(), w.value())).unzip();

        let mut state = vec![0.0; self.degree()];
        let mut square = 0.0;
        for (j, weight) in weights.iter().enumerate() {
            // In units of the largest weight, nothing that underflows matters.
            let weight = weight.abs() / largest;
            let output: f64 = weight + state.iter().zip(&omega).map(|(a, w)| a * w).sum::<f64>();
            square += output * output;
            for (a, pole) in state.iter_mut().zip(&poles) {
                *a = *a * pole + weight;
            }
            square += form(if j == last { &after } else { &between }, &state);
            for (a, power) in state.iter_mut().zip(&powers) {
                *a *= power;
            }
        }
        // All terms are positive: four roundings a participation in the state, one in the sum.
        let slack = SLACK + 16.0 * f64::EPSILON * count as f64;
        (Upper::exact(square) * Upper::exact(slack)).sqrt() * Upper::exact(largest)
    }

    /// The rates `1 − θ̂_j` of the poles of `C^{-1} = Π(1 − θ_i z)/Π(1 − θ̂_j z)`, increasing, in (0, 2).
    ///
    /// They interlace with `μ`; the last pole may be negative (rate above 1), hence no logarithms.
    pub fn noise_rates(&self) -> Vec<f64> {
        self.roots().iter().map(Root::value).collect()
    }

    /// What is left of unit noise in the answers of the workload `1/(1 − γz)`, `γ = decay`; 1 is the
    /// running sum.
    ///
    /// # Errors
    /// If `decay` is not in (0, 1], or within 1e-6 (relative) of a pole of `C^{-1}`.
    pub fn response(&self, decay: f64) -> Result<NoiseResponse, Error> {
        NoiseResponse::new(&values(&self.mu), &self.roots(), decay)
    }

    fn roots(&self) -> Vec<Root> {
        roots(&values(&self.mu), &values(&self.omega))
    }

    /// `c_{k+1} = Σ ω_i θ_i^k`.
    fn tail(&self) -> Exponentials {
        Exponentials::new(self.omega.iter().zip(&self.mu).map(|(w, m)| (w.value(), m.value())))
    }
}

fn values(parameters: &[Dyadic]) -> Vec<f64> {
    parameters.iter().map(|p| p.value()).collect()
}

/// `vᵀ G v`.
fn form(gram: &[f64], v: &[f64]) -> f64 {
    gram.chunks_exact(v.len().max(1)).zip(v).map(|(row, a)| a * row.iter().zip(v).map(|(g, b)| g * b).sum::<f64>()).sum()
}
