//! `publish_keys` and `keep_keys`: which keys leave of those that somebody has.
//!
//! **Privacy of `publish_keys`.** Let the weights of neighbouring data differ, on the keys that both have, by at most `Δ` in
//! ℓ2, and let the greater data have `t ≤ L` keys of their own, each of a weight at most `w_t`. On common keys this is
//! Gaussian noise, rounded to integers, and a threshold: `Δ/σ'`-GDP. A key that only the greater data have leaves with
//! probability at most `d/t` where the threshold is at least `w_t + ⌈σ'·z⌉` with `P(Z > z) ≤ d/t`: then `round(σ'Z)` is above
//! `⌈σ'z⌉`, so `σ'Z` is. Both sides are `(1−d)`·(a `Δ/σ'`-GDP pair) + `d`·(anything).
//!
//! **Privacy of `keep_keys`.** A key of `n` users stays if a uniform word of 96 bits is below `T_n`, with `T_0 = 0`. Its caller
//! has checked `T_{n+1} ≤ e^ε T_n + δ2^96` and `2^96 − T_n ≤ e^ε(2^96 − T_{n+1}) + δ2^96`, which is (ε, δ) for each key.

use super::random::{Key, NoiseLaw, Sampler, WordsOfKey};
use crate::error::Error;

/// Indices of the keys whose weight with Gaussian noise of `quarter_units/4` is above a threshold, in order.
///
/// # Errors
/// For noise out of range, or if the operating system gives no randomness.
pub fn publish_keys(
    weights: &[i64],
    quarter_units: u64,
    threshold: i64,
    key: Option<&Key>,
) -> Result<Vec<usize>, Error> {
    let mut noisy = weights.to_vec();
    let sampler = Sampler::new(NoiseLaw::Gaussian, quarter_units)?;
    match key {
        Some(key) => sampler.add(&mut noisy, key)?,
        None => sampler.add(&mut noisy, &Key::from_entropy()?)?,
    }
    Ok(noisy.iter().enumerate().filter(|(_, weight)| **weight > threshold).map(|(index, _)| index).collect())
}

/// Indices of the keys that stay, in order: a key of `n` users if a word of 96 bits is below `thresholds[n]`, the last of
/// them for more users.
///
/// # Errors
/// For no thresholds, or a first one that is not 0, or if the operating system gives no randomness.
pub fn keep_keys(users: &[u64], thresholds: &[u128], key: Option<&Key>) -> Result<Vec<usize>, Error> {
    let Some((&0, _)) = thresholds.split_first() else {
        return Err(Error::invalid("thresholds", "what nobody has never stays"));
    };
    let fresh;
    let key = if let Some(key) = key {
        key
    } else {
        fresh = Key::from_entropy()?;
        &fresh
    };
    let mut words = WordsOfKey::new(key);
    let mut stays = |users: u64| {
        let word = u128::from(words.next()) << 32 | u128::from(words.next() >> 32);
        word < thresholds[usize::try_from(users).unwrap_or(usize::MAX).min(thresholds.len() - 1)]
    };
    Ok(users.iter().enumerate().filter(|(_, users)| stays(**users)).map(|(index, _)| index).collect())
}

#[cfg(test)]
mod tests {
    use super::{keep_keys, publish_keys};
    use crate::door::Key;
    use crate::door::random::WordsOfKey;

    /// Next to no noise: what is above leaves, what is below or at the threshold stays, but for a few of those.
    #[test]
    fn weights_beside_the_threshold() {
        let key = Key::deterministic([5; 32]);
        assert_eq!(publish_keys(&[0, 2000, 900, 1100], 4, 1000, Some(&key)).unwrap(), [1, 3]);
        // P(round(Z/4) > 0) = P(Z > 2) = 0.0228: 228 of 10,000, 5 standard errors are 75.
        let leave = publish_keys(&vec![1000; 10_000], 1, 1000, Some(&key)).unwrap().len();
        assert!(leave.abs_diff(228) < 75, "{leave}");
    }

    /// A key stays if its word of 96 bits is below the threshold: not if it is the threshold.
    #[test]
    fn words_of_96_bits_decide() {
        let key = Key::deterministic([6; 32]);
        let mut words = WordsOfKey::new(&key);
        let word = u128::from(words.next()) << 32 | u128::from(words.next()) >> 32;
        for (threshold, kept) in [(word, 0), (word + 1, 1)] {
            assert_eq!(keep_keys(&[1], &[0, threshold], Some(&key)).unwrap().len(), kept);
        }
    }

    /// Half of the keys on the threshold leave, less those that fall on it: 5 standard errors, a fixed key.
    #[test]
    fn weights_at_the_threshold() {
        let count = 100_000;
        let key = Key::deterministic([5; 32]);
        let found = publish_keys(&vec![1000; count], 4 * 500, 1000, Some(&key)).unwrap();
        // P(round(500 Z) > 0) = 1/2 − P(round(500 Z) = 0)/2.
        let expected = count as f64 * (0.5 - 0.5 * 0.3989 / 500.0);
        assert!((found.len() as f64 - expected).abs() < 5.0 * (count as f64).sqrt() / 2.0);
        assert!(found.is_sorted());
        assert!(publish_keys(&[1], 0, 0, None).is_err());
        assert!(publish_keys(&[], 4, 0, None).unwrap().is_empty());
    }

    #[test]
    fn kept_as_often_as_said() {
        let quarter = 1_u128 << 94;
        let thresholds = [0, quarter, 3 * quarter, 4 * quarter];
        let key = Key::deterministic([6; 32]);
        for (users, share) in [(0, 0.0), (1, 0.25), (2, 0.75), (3, 1.0), (9, 1.0)] {
            let count = 40_000;
            let kept = keep_keys(&vec![users; count], &thresholds, Some(&key)).unwrap().len() as f64;
            let error = 5.0 * (count as f64 * share * (1.0 - share)).sqrt();
            assert!((kept - count as f64 * share).abs() <= error, "{users}: {kept}");
        }
        assert!(keep_keys(&[1], &[], None).is_err() && keep_keys(&[1], &[1], None).is_err());
    }
}
