//! Buffered linear Toeplitz strategies: `C = 1 + Σ ω_i z/(1 − θ_i z)` with dyadic parameters.

use super::dyadic::Dyadic;
use super::exponentials::Exponentials;
use super::noise_response::NoiseResponse;
use super::secular::{Root, roots};
use crate::error::Error;
use crate::order::sorted_by_key;
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
        let pairs = sorted_by_key(mu.into_iter().zip(omega).collect(), |pair: &(Dyadic, Dyadic)| pair.0.value());
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
    /// the least distance have the largest norm. Over all orders the
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
        if largest == 0.0 {
            return Upper::ZERO;
        }
        // In units of the largest weight, nothing that underflows matters.
        let relative: Vec<f64> = weights.iter().map(|weight| weight.abs() / largest).collect();
        let square = self.tail().pattern_square(n, &relative, separation);
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dyadic(pairs: &[(u32, u32)]) -> Vec<Dyadic> {
        pairs.iter().map(|(mantissa, shift)| Dyadic::new(*mantissa, *shift)).collect()
    }

    /// The 16-bit optimum of degree 4 for 2^10 steps.
    fn four() -> BufferedToeplitz {
        BufferedToeplitz::from_dyadic(
            dyadic(&[(51721, 26), (46556, 22), (40985, 19), (57308, 17)]),
            dyadic(&[(38962, 20), (36163, 19), (41958, 18), (60438, 18)]),
        )
        .unwrap()
    }

    /// The 16-bit optimum of degree 6 for 2^20 steps.
    fn six() -> BufferedToeplitz {
        BufferedToeplitz::from_dyadic(
            dyadic(&[(64721, 36), (39038, 31), (57878, 28), (42182, 24), (60706, 21), (38104, 17)]),
            dyadic(&[(44820, 25), (57268, 24), (48107, 22), (40965, 20), (33821, 18), (39151, 17)]),
        )
        .unwrap()
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a / b - 1.0).abs() <= tolerance, "{a} {b}");
    }

    #[test]
    fn quantised_fixtures() {
        for (strategy, n, finite, infinite, max) in [
            (four(), 1 << 10, 1.808_795_846, 1.859_241_009, 3.272_943_697),
            (six(), 1 << 20, 2.338_974_07, 2.366_900_892, 5.485_049_985),
        ] {
            close(strategy.column_norm(Some(n)).get(), finite, 3e-10);
            close(strategy.column_norm(None).get(), infinite, 3e-10);
            let response = strategy.response(1.0).unwrap();
            close(strategy.column_norm(Some(n)).get() * response.squared_norm(n).sqrt(), max, 2e-10);
            assert_eq!(response.squared_norm_infinite(), None);
        }
    }

    #[test]
    fn factors_multiply_to_the_workload() {
        let n = 200;
        for decay in [1.0, 0.999, 0.3] {
            let strategy = four();
            let (c, b) = (strategy.coefficients(n), strategy.response(decay).unwrap().coefficients(n));
            for t in 0..n {
                let product: f64 = (0..=t).map(|k| b[k] * c[t - k]).sum();
                assert!((product - decay.powi(t as i32)).abs() <= 1e-12, "{decay} {t}: {product}");
                let column: f64 = c[..n - t].iter().map(|c| c * c).sum();
                assert!(column.sqrt() <= strategy.column_norm(Some(n as u64)).get());
            }
        }
    }

    #[test]
    fn identity_is_degree_zero() {
        let identity = BufferedToeplitz::new(&[], &[]).unwrap();
        assert_eq!(identity.coefficients(3), [1.0, 0.0, 0.0]);
        assert!((1.0..1.0 + 1e-13).contains(&identity.column_norm(None).get()));
        assert_eq!(identity.column_norm(Some(0)), Upper::ZERO);
        close(identity.column_norm_of(Some(10), &[1.0; 7], 2).get(), 5f64.sqrt(), 1e-13);
        assert_eq!(identity.response(1.0).unwrap().squared_norm(7), 7.0);
        assert!(identity.noise_rates().is_empty());
    }

    #[test]
    fn bad_parameters_are_refused() {
        for (mu, omega) in [
            (&[0.5][..], &[][..]),
            (&[0.0], &[0.5]),
            (&[1.1], &[0.5]),
            (&[0.5], &[-0.1]),
            (&[0.5], &[f64::NAN]),
            (&[0.5, 0.500_000_1], &[0.1, 0.1]),
            (&[0.5, 0.25], &[0.6, 0.5]),
            (&[1e-40], &[0.5]),
        ] {
            assert!(BufferedToeplitz::new(mu, omega).is_err(), "{mu:?} {omega:?}");
        }
        assert!(BufferedToeplitz::new(&[0.1; 13], &[0.01; 13]).is_err());
        assert!(BufferedToeplitz::from_dyadic(vec![Dyadic::new(1 << 16, 20)], vec![Dyadic::new(1, 1)]).is_err());
        assert!(four().response(0.0).is_err() && four().response(1.1).is_err());
        // A workload whose pole is one of the noise's.
        assert!(four().response(1.0 - four().noise_rates()[2]).is_err());
    }

    #[test]
    fn extreme_horizons() {
        // One pole at 1 − 2^-43 and 2^44 steps: everything in closed form by hand.
        let (slow, weight, n) = (2f64.powi(-43), 2f64.powi(-23), 1u64 << 44);
        let strategy = BufferedToeplitz::new(&[slow], &[weight]).unwrap();
        let gone = -(2.0 * (n - 1) as f64 * (-slow).ln_1p()).exp_m1();
        close(strategy.column_norm(Some(n)).get().powi(2), 1.0 + weight * weight * gone / (slow * (2.0 - slow)), 1e-13);
        // θ̂ = θ − ω; b_k = μ/μ̂ + (ω/μ̂)θ̂^k.
        let rate = slow + weight;
        assert_eq!(strategy.noise_rates(), [rate]);
        let (constant, mode, log) = (slow / rate, weight / rate, (-rate).ln_1p());
        let sum = |t: f64| {
            let cross = 2.0 * constant * mode * -(t * log).exp_m1() / rate;
            constant * constant * t + cross + mode * mode * -(2.0 * t * log).exp_m1() / (rate * (2.0 - rate))
        };
        let response = strategy.response(1.0).unwrap();
        for t in [1u64, 2, 1000, 1 << 23, 1 << 44] {
            close(response.squared_norm(t), sum(t as f64), 1e-12);
        }
    }

    #[test]
    fn order_of_participations_matters() {
        // Decreasing weights are not the worst order: the middle one meets both neighbours.
        let strategy = four();
        let norm = |weights: &[f64]| strategy.column_norm_of(None, weights, 8).get();
        assert!(norm(&[1.0, 2.0, 1.0]) > norm(&[2.0, 1.0, 1.0]) * 1.001);
    }

    #[test]
    fn a_million_participations() {
        let strategy = six();
        let norm = strategy.column_norm_of(Some(1 << 20), &vec![1.0; 1 << 20], 1).get();
        // All columns: entry t is the sum of the kernel to t.
        let mut sum = 0.0;
        let square: f64 = strategy
            .coefficients(1 << 20)
            .iter()
            .map(|c| {
                sum += c;
                sum * sum
            })
            .sum();
        assert!(norm >= square.sqrt());
        close(norm, square.sqrt(), 1e-8);
    }

    fn any() -> impl Strategy<Value = BufferedToeplitz> {
        let pole = (-12.0f64..0.0, 0.05f64..1.0);
        proptest::collection::vec(pole, 0..6).prop_filter_map("valid", |poles| {
            let total: f64 = poles.iter().map(|p| p.1).sum::<f64>() * 1.01;
            let (mu, omega): (Vec<f64>, Vec<f64>) = poles.iter().map(|(log, w)| (log.exp(), w / total)).unzip();
            BufferedToeplitz::new(&mu, &omega).ok()
        })
    }

    proptest! {
        #[test]
        fn closed_forms_match_brute_force(strategy in any(), n in 1usize..300) {
            let c = strategy.coefficients(n);
            prop_assert!(c.windows(2).all(|pair| pair[0] >= pair[1] * (1.0 - 1e-14) && pair[1] >= 0.0));
            let norm = c.iter().map(|c| c * c).sum::<f64>().sqrt();
            let bound = strategy.column_norm(Some(n as u64)).get();
            prop_assert!(bound >= norm * (1.0 - 1e-15) && bound <= norm * (1.0 + 1e-12));
            prop_assert!(strategy.column_norm(None).get() >= bound);

            // The noise by its recursion: w = z − Σ ω a, a ← θ a + w.
            let mut state = vec![0.0; strategy.degree()];
            let (mut sum, mut square, mut total) = (0.0, 0.0, 0.0);
            let response = strategy.response(1.0).unwrap();
            for (t, b) in response.coefficients(n).into_iter().enumerate() {
                let past: f64 = state.iter().zip(strategy.omega()).map(|(a, w)| a * w.value()).sum();
                let w = f64::from(u8::from(t == 0)) - past;
                for (a, m) in state.iter_mut().zip(strategy.mu()) {
                    *a += w - m.value() * *a;
                }
                sum += w;
                prop_assert!((sum - b).abs() < 1e-12, "{} {}", sum, b);
                square += sum * sum;
                total += square;
                prop_assert!((response.squared_norm(t as u64 + 1) / square - 1.0).abs() < 1e-12);
                prop_assert!((response.total_squared(t as u64 + 1) / total - 1.0).abs() < 1e-12);
            }
        }

        #[test]
        fn participations_match_brute_force(
            strategy in any(),
            n in 1usize..120,
            separation in 1usize..30,
            weights in proptest::collection::vec(-2.0f64..2.0, 1..8),
        ) {
            let c = strategy.coefficients(n);
            let mut column = vec![0.0; n];
            for (j, weight) in weights.iter().enumerate() {
                for t in j * separation..n {
                    column[t] += weight.abs() * c[t - j * separation];
                }
            }
            let norm = column.iter().map(|v| v * v).sum::<f64>().sqrt();
            let bound = strategy.column_norm_of(Some(n as u64), &weights, separation as u64).get();
            prop_assert!(bound >= norm * (1.0 - 1e-15) && bound <= norm * (1.0 + 1e-12), "{} {}", bound, norm);
            prop_assert!(strategy.column_norm_of(None, &weights, separation as u64).get() >= bound * (1.0 - 1e-13));
            // Any other places of the same weights in this order have a smaller norm.
            let mut moved = vec![0.0; n];
            for (j, weight) in weights.iter().enumerate() {
                let place = j * (separation + 1) + 1;
                for t in place..n {
                    moved[t] += weight.abs() * c[t - place];
                }
            }
            prop_assert!(moved.iter().map(|v| v * v).sum::<f64>().sqrt() <= bound);
        }

        #[test]
        fn noise_rates_interlace(strategy in any()) {
            let rates = strategy.noise_rates();
            for (i, rate) in rates.iter().enumerate() {
                prop_assert!(*rate >= strategy.mu()[i].value() && *rate < 2.0);
                if let Some(next) = strategy.mu().get(i + 1) {
                    prop_assert!(*rate <= next.value());
                }
            }
        }
    }
}
