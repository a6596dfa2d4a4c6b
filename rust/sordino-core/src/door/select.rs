//! `select`: the index of a noisy maximum, nothing else.
//!
//! **Privacy.** Report-noisy-maximum with exponential noise of scale `2Δ/ε` on each score, for scores that each
//! move by at most `Δ` between neighbours: given the noise of all others, "i wins" means that the noise of score
//! `i` is at least some `r`, which moves by at most `2Δ`, and `P(noise ≥ r + 2Δ) ≥ e^{−ε} P(noise ≥ r)`. On the
//! lattice as well; rounding the scores adds one grid step to `Δ`, which is charged. Ties go to the lower index.
//!
//! This is the permute-and-flip mechanism (Ding, Kifer & others 2021, `arXiv:2105.07260`), whose expected score is
//! nowhere below that of the exponential mechanism.

use super::random::{Key, MAX_QUARTER_UNITS, NoiseLaw, Sampler};
use crate::error::Error;
use crate::lattice::float_to_units;
use crate::upper::Upper;

/// Index of the noisy maximum, `epsilon`-differentially private.
///
/// # Errors
/// For empty scores, a bad sensitivity or epsilon, or if the operating system gives no randomness.
pub fn select(scores: &[f64], sensitivity: f64, epsilon: f64, key: Option<&Key>) -> Result<usize, Error> {
    if scores.is_empty() || scores.iter().any(|s| !s.is_finite()) {
        return Err(Error::invalid("scores", "must be finite and not empty"));
    }
    if !(sensitivity.is_finite() && sensitivity > 0.0 && epsilon.is_finite() && epsilon > 0.0) {
        return Err(Error::invalid("sensitivity", "sensitivity and epsilon must be positive and finite"));
    }
    // 2^-24 of the sensitivity is lost to rounding, 2^26 units of noise at ε = 1/2.
    let grid = sensitivity.log2().floor() as i32 - 24;
    let total = Upper::exact(sensitivity) + Upper::exact(1.0).scaled(grid);
    let scale = Upper::rounded(2.0 * total.get() / epsilon, 2).scaled(2 - grid);
    let quarters = scale.get().ceil();
    if quarters > MAX_QUARTER_UNITS as f64 {
        return Err(Error::invalid("epsilon", "too small"));
    }
    let mut units: Vec<i64> = scores.iter().map(|s| float_to_units(*s, grid)).collect();
    let sampler = Sampler::new(NoiseLaw::Laplace, quarters as u64)?;
    let mut noise = vec![0i64; units.len()];
    match key {
        Some(key) => sampler.add(&mut noise, key)?,
        None => sampler.add(&mut noise, &Key::from_entropy()?)?,
    }
    Ok(noisy_maximum(&mut units, &noise))
}

/// Index of the maximum of scores behind exponential noise, the magnitude of this Laplace noise; ties to the lower index.
pub(super) fn noisy_maximum(scores: &mut [i64], noise: &[i64]) -> usize {
    for (score, noise) in scores.iter_mut().zip(noise) {
        *score = score.saturating_add(noise.saturating_abs());
    }
    let best = scores.iter().max().copied();
    scores.iter().position(|score| Some(*score) == best).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::select;
    use crate::door::Key;

    /// Frequencies of the winner against the closed form for two scores at distance `d = 2b`:
    /// `P(first wins) = 1 − e^{−d/b}/2`. 5 standard errors, fixed keys.
    #[test]
    fn two_scores() {
        let rounds = 20_000u32;
        let wins = (0..rounds)
            .filter(|i| {
                let mut bytes = [3; 32];
                bytes[..4].copy_from_slice(&i.to_le_bytes());
                select(&[4.0, 0.0], 1.0, 1.0, Some(&Key::deterministic(bytes))).unwrap() == 0
            })
            .count() as f64;
        let p = 1.0 - (-2.0f64).exp() / 2.0;
        let n = f64::from(rounds);
        assert!((wins - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt(), "{wins} of {n}, expected {}", n * p);
    }

    #[test]
    fn bad_calls_are_refused() {
        assert!(select(&[], 1.0, 1.0, None).is_err());
        assert!(select(&[f64::NAN], 1.0, 1.0, None).is_err());
        assert!(select(&[1.0], 0.0, 1.0, None).is_err());
        assert!(select(&[1.0], 1.0, 1e-30, None).is_err());
        assert_eq!(select(&[1.0], 1.0, 1.0, None).unwrap(), 0);
    }
}
