//! Discrete Laplace noise: `P(Y = k) ∝ exp(−e|k|)` on all integers, exactly.
//!
//! `⌊c·E⌋` of a standard exponential `E` has the geometric law with `e = 1/c`. With a sign, and *minus zero drawn again*,
//! every integer has accepted mass `½(1 − q)q^|k|`, `q = exp(−e)`: fewer than two draws. No exponential is evaluated.

use super::Key;
use super::cell::FIRST_BITS;
use super::slow::{self, split};
use super::words::{ChaChaWords, Purpose, Words};
use super::ziggurat::{Exponential, Law, SINGLE, in_chunks};
use crate::error::Error;
use crate::lattice::add_noise;

/// Bits of `S`: the relative loss of rounding `c` up is at most `2^-45`.
const SCALE_BITS: u32 = 47;
/// `c ≥ 2^-14`: `e` is never above this power of two, and no noise is left there.
const LEAST_SCALE: u64 = 1 << (SCALE_BITS - 1);
const MOST_SHIFT: u32 = 60;

/// The size of discrete Laplace noise: `c = scale/2^shift`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::door) struct Geometric {
    scale: u64,
    shift: u32,
}

impl Geometric {
    /// The least size that is at least `numerator·2^exponent/step`; `None` if that is above `2^46`.
    pub(in crate::door) fn at_least(numerator: u64, exponent: i32, step: u64) -> Option<Self> {
        let at = |shift: u32| -> Option<u64> {
            let exponent = exponent + shift as i32;
            let (top, bottom) = if exponent >= 0 {
                let top = u128::from(numerator);
                (top.checked_shl(exponent.unsigned_abs()).filter(|v| v >> exponent == top)?, u128::from(step))
            } else {
                let bottom = u128::from(step);
                let shifted = bottom.checked_shl(exponent.unsigned_abs()).filter(|v| v >> -exponent == bottom);
                (u128::from(numerator), shifted.unwrap_or(u128::MAX))
            };
            u64::try_from(top.div_ceil(bottom)).ok().filter(|scale| *scale <= 1 << SCALE_BITS)
        };
        let (scale, shift) = (0..=MOST_SHIFT).rev().find_map(|shift| Some((at(shift)?, shift)))?;
        let scale = if shift == MOST_SHIFT { scale.max(LEAST_SCALE) } else { scale };
        (shift > 0 || scale <= 1 << (SCALE_BITS - 1)).then_some(Self { scale, shift })
    }

    /// `e`.
    pub(in crate::door) fn rate(self) -> f64 {
        2f64.powi(self.shift as i32) / self.scale as f64
    }

    /// `(scale, shift)`.
    #[cfg(test)]
    pub(super) fn parts(self) -> (u64, u32) {
        (self.scale, self.shift)
    }

    /// The sample that one word decides, `None` if it takes more.
    #[inline]
    pub(super) fn fast(self, word: u64) -> Option<i64> {
        self.decided(word).and_then(|(k, again)| (!again).then_some(k))
    }

    /// What one word decides: a sample, or zero and that it is to be drawn again; `None` if it takes more.
    #[inline]
    fn decided(self, word: u64) -> Option<(i64, bool)> {
        let (layer, negative, u) = split(word);
        let shift = FIRST_BITS + Exponential::FRACTION_BITS + self.shift;
        let width = self.scale * Exponential::WIDTH[layer];
        let low = u128::from(u) * u128::from(width);
        let k = (low >> shift) as i64;
        let highest = ((low + u128::from(width - 1)) >> shift) as i64;
        let sign = -i64::from(negative);
        let decided = u < Exponential::ACCEPT[layer] && k == highest;
        decided.then_some(((k ^ sign) - sign, negative && k == 0))
    }

    /// The sample that starts with a word which [`Self::fast`] gave up.
    #[cold]
    #[inline(never)]
    pub(super) fn slow(self, mut word: u64, wide_only: bool, words: &mut impl Words) -> i64 {
        loop {
            if !wide_only {
                match self.decided(word) {
                    Some((_, true)) => {
                        word = words.next(Purpose::Layer);
                        continue;
                    }
                    Some((k, false)) => return k,
                    None => {}
                }
            }
            let (cell, negative) = slow::draw::<Exponential>(word, wide_only, words);
            let k = cell.floor(self.scale, self.shift, words) as i64;
            if !negative {
                return k;
            }
            if k > 0 {
                return -k;
            }
            word = words.next(Purpose::Layer);
        }
    }

    /// `⌊cE⌋`, and a sign that does not depend on it.
    pub(super) fn magnitude(self, words: &mut impl Words) -> (u64, bool) {
        let word = words.next(Purpose::Layer);
        let (cell, negative) = slow::draw::<Exponential>(word, false, words);
        (cell.floor(self.scale, self.shift, words), negative)
    }

    /// Adds `step` times a sample to each value.
    fn add(self, step: i64, units: &mut [i64], words: &mut ChaChaWords) {
        if step == 1 {
            self.add_each(units, words, |k| k);
        } else {
            self.add_each(units, words, |k| step.saturating_mul(k));
        }
    }

    #[inline]
    fn add_each(self, units: &mut [i64], words: &mut ChaChaWords, stepped: impl Fn(i64) -> i64) {
        let mut done = 0;
        while done < units.len() {
            let mut failed = None;
            let mut taken = 0;
            for word in words.available() {
                let Some(unit) = units.get_mut(done) else { break };
                taken += 1;
                if let Some((k, again)) = self.decided(*word) {
                    // A minus zero changes nothing, and the next word is for the same value.
                    *unit = add_noise(*unit, stepped(k));
                    done += usize::from(!again);
                } else {
                    failed = Some(*word);
                    break;
                }
            }
            words.take(taken);
            if let Some(word) = failed {
                let k = self.slow(word, false, words);
                units[done] = add_noise(units[done], stepped(k));
                done += 1;
            }
        }
    }
}

/// Coordinates in a row whose noise is `step·Y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::door) struct Steps {
    pub step: i64,
    pub len: usize,
    pub size: Geometric,
}

/// Half of the largest rate for which a variance is said: what is beyond is no noise at all.
const MOST_HALF: f64 = 250.0;

impl Steps {
    /// One more sample under the key, of a stream that no chunk has.
    pub(in crate::door) fn single(&self, key: &Key) -> i64 {
        let mut words = ChaChaWords::new(key, SINGLE);
        let word = words.next(Purpose::Layer);
        self.step.saturating_mul(self.size.fast(word).unwrap_or_else(|| self.size.slow(word, false, &mut words)))
    }

    /// How much smaller the noise is than Laplace noise of the same privacy: `sinh(e/2)/(e/2)`, in standard deviations.
    pub(in crate::door) fn gain(&self) -> f64 {
        let half = (0.5 * self.size.rate()).min(MOST_HALF);
        if half < 1e-4 { 1.0 + half * half / 6.0 } else { half.sinh() / half }
    }
}

/// Adds independent noise to every lattice value, saturating; chunks as of [`super::Sampler`].
///
/// # Errors
/// If it was asked to end early; what was added is then to be thrown away.
pub(in crate::door) fn add_steps(runs: &[Steps], units: &mut [i64], key: &Key) -> Result<(), Error> {
    let ends: Vec<usize> = runs
        .iter()
        .scan(0, |end, run| {
            *end += run.len;
            Some(*end)
        })
        .collect();
    in_chunks(units, key, |start, units, words| {
        let (mut at, mut done) = (ends.partition_point(|end| *end <= start), 0);
        while done < units.len() {
            let len = (ends[at] - start - done).min(units.len() - done);
            runs[at].size.add(runs[at].step, &mut units[done..done + len], words);
            (at, done) = (at + 1, done + len);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(c: f64) -> Geometric {
        // c as an exact fraction over 2^40.
        Geometric::at_least((c * 2f64.powi(40)) as u64, -40, 1).unwrap()
    }

    #[test]
    fn sizes_are_never_below_what_was_asked() {
        for (numerator, exponent, step) in
            [(1u64, 0, 1u64), (3, -1, 1), (1 << 48, -30, 7), (1 << 48, -2, 1), (5, -50, 1 << 20), (1, -20, 1)]
        {
            let size = Geometric::at_least(numerator, exponent, step).unwrap();
            let wanted = numerator as f64 * 2f64.powi(exponent) / step as f64;
            let c = size.scale as f64 / 2f64.powi(size.shift as i32);
            assert!(c >= wanted && (c <= wanted * (1.0 + 2f64.powi(-45)) || size.scale == LEAST_SCALE), "{c} {wanted}");
            assert!((size.rate() * c - 1.0).abs() < 1e-15 && size.scale <= 1 << SCALE_BITS);
        }
        assert_eq!(Geometric::at_least(1 << 48, -1, 1), None);
        assert!(Geometric::at_least(1 << 48, -2, 1).is_some());
        // Next to no noise: e = 2^14.
        assert_eq!(Geometric::at_least(1, -90, 1 << 40).unwrap().rate(), 16384.0);
    }

    /// Chi-square of every integer with at least ten expected, at 5.5 standard deviations (false alarms below 1e-7).
    #[test]
    fn integers_have_their_exact_probabilities() {
        let count = 1_000_000;
        for (seed, e) in [0.05, 0.3, 1.0, 3.0, 8.0].into_iter().enumerate() {
            let size = of(1.0 / e);
            let mut units = vec![0i64; count];
            let runs = [Steps { step: 1, len: count, size }];
            add_steps(&runs, &mut units, &Key::deterministic([seed as u8 + 40; 32])).unwrap();
            let mut seen = std::collections::HashMap::new();
            for k in units {
                *seen.entry(k).or_insert(0.0) += 1.0;
            }
            let e = size.rate();
            let (mut statistic, mut cells, mut rest) = (0.0f64, 0.0f64, (count as f64, count as f64));
            for k in -2000i64..=2000 {
                let expected = count as f64 * (e / 2.0).tanh() * (-e * k.abs() as f64).exp();
                if expected >= 10.0 {
                    let got = seen.get(&k).copied().unwrap_or(0.0);
                    statistic += (got - expected) * (got - expected) / expected;
                    cells += 1.0;
                    rest = (rest.0 - got, rest.1 - expected);
                }
            }
            if rest.1 > 1.0 {
                statistic += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1;
                cells += 1.0;
            }
            let freedom = cells - 1.0;
            let spread = (2.0 / (9.0 * freedom)).sqrt();
            let z = ((statistic / freedom).cbrt() - (1.0 - spread * spread)) / spread;
            assert!(z.abs() < 5.5, "e = {e}: {statistic} with {freedom} degrees of freedom");
        }
    }

    #[test]
    fn runs_are_multiples_of_their_steps_whatever_the_chunks() {
        let runs: Vec<Steps> = (0..3000)
            .map(|i| Steps { step: i % 7 + 1, len: (i % 23) as usize, size: of(1.5 + (i % 5) as f64) })
            .collect();
        let total: usize = runs.iter().map(|run| run.len).sum();
        let draw = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut units = vec![0i64; total];
            pool.install(|| add_steps(&runs, &mut units, &Key::deterministic([3; 32]))).unwrap();
            units
        };
        let units = draw(1);
        assert_eq!(units, draw(3));
        let mut rest = units.as_slice();
        for run in &runs {
            let (own, tail) = rest.split_at(run.len);
            assert!(own.iter().all(|k| k % run.step == 0));
            rest = tail;
        }
        assert!(units.iter().filter(|k| **k != 0).count() > total / 2);
    }

    /// A minus zero takes the next word, and a plus zero does not.
    #[test]
    fn minus_zero_is_drawn_again() {
        struct Script(Vec<u64>);
        impl Words for Script {
            fn next(&mut self, _: Purpose) -> u64 {
                self.0.remove(0)
            }
        }
        let size = of(1.0);
        let word = |sign: u64, u: u64| 0xc8 | sign << 8 | u << 9;
        assert_eq!(size.fast(word(0, 1 << 40)), Some(0));
        assert_eq!(size.fast(word(1, 1 << 40)), None);
        let mut words = Script(vec![word(1, 1 << 41), word(0, 1 << 41), 7]);
        assert_eq!(size.slow(word(1, 1 << 40), false, &mut words), 0);
        assert_eq!(words.0, vec![7]);
    }
}
