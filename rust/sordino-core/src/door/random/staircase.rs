//! Staircase noise for one whole number that a neighbour moves by up to `Δ` steps, exactly.
//!
//! `P(Y = k)` is proportional to 1 for `|k| < r` and to `q^j` for `r + (j − 1)Δ ≤ |k| < r + jΔ`, `q = exp(−1/c)`: from `k`
//! to any `k ± Δ` it falls by at most `q`. With `G = ⌊cE⌋` of a standard exponential and `U` uniform on `0, …, Δ − 1`,
//! `|Y| = GΔ + U` is kept with probability `q` where `U ≥ r`, and minus zero is drawn again.
//!
//! Source: Q. Geng and P. Viswanath, "The optimal noise-adding mechanism in differential privacy" (IEEE Trans. Inf.
//! Theory 62, 2016), for integers.

use super::Key;
use super::geometric::Geometric;
use super::words::{ChaChaWords, Purpose, Words};
use super::ziggurat::SINGLE;

/// Wider changes are beyond the range of the noise anyway.
const MOST_WIDTH: u64 = 1 << 46;
/// `Δ/r` is at most this: so many attempts a sample takes where `q` is next to nothing.
const MOST_ATTEMPTS: u64 = 1 << 20;
/// Of larger privacy losses nothing is left to say.
const MOST_RATE: f64 = 500.0;

/// Staircase noise: `step` times integers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::door) struct Staircase {
    step: i64,
    size: Geometric,
    width: u64,
    first: u64,
}

impl Staircase {
    /// The noise with the least variance for changes of at most `width` steps, `size.rate()` being the privacy loss.
    /// `None` where discrete Laplace noise is no worse.
    pub(in crate::door) fn of(step: i64, size: Geometric, width: u64) -> Option<Self> {
        if !(2..=MOST_WIDTH).contains(&width) {
            return None;
        }
        let with = |first| Self { step, size, width, first };
        let variance = |first| with(first).variance();
        // It falls, then rises: bisected by its differences.
        let (mut low, mut high) = (width.div_ceil(MOST_ATTEMPTS), width);
        while low < high {
            let middle = low + (high - low) / 2;
            (low, high) = if variance(middle + 1) < variance(middle) { (middle + 1, high) } else { (low, middle) };
        }
        let best = with(low);
        // Of discrete Laplace noise with the rate of one step.
        let half = 0.5 * size.rate().min(MOST_RATE) / width as f64;
        (best.variance() < 0.5 / half.sinh().powi(2)).then_some(best)
    }

    /// Step, privacy loss `1/c`, width `Δ` and first step `r`.
    pub(in crate::door) fn parts(&self) -> (i64, f64, u64, u64) {
        (self.step, self.size.rate(), self.width, self.first)
    }

    /// Variance of the integers.
    ///
    /// With `A_p = Σ_{u<r} u^p + q Σ_{r≤u<Δ} u^p`, over `2A_0/(1 − q) − 1` it is
    /// `2(Δ²A_0 q(1 + q)/(1 − q)³ + 2ΔA_1 q/(1 − q)² + A_2/(1 − q))`.
    pub(in crate::door) fn variance(&self) -> f64 {
        let rate = self.size.rate().min(MOST_RATE);
        let (q, rest) = ((-rate).exp(), -(-rate).exp_m1());
        let (width, first) = (self.width as f64, self.first as f64);
        let sums = |n: f64| [n, n * (n - 1.0) / 2.0, n * (n - 1.0) * (2.0 * n - 1.0) / 6.0];
        let (inner, all) = (sums(first), sums(width));
        let [a0, a1, a2] = [0, 1, 2].map(|p| inner[p] + q * (all[p] - inner[p]));
        let squares =
            width * width * a0 * q * (1.0 + q) / rest.powi(3) + 2.0 * width * a1 * q / (rest * rest) + a2 / rest;
        2.0 * squares / (2.0 * a0 / rest - 1.0)
    }

    /// One sample under the key.
    pub(in crate::door) fn sample(&self, key: &Key) -> i64 {
        self.step.saturating_mul(self.draw(&mut ChaChaWords::new(key, SINGLE)))
    }

    fn draw(&self, words: &mut impl Words) -> i64 {
        loop {
            let (steps, negative) = self.size.magnitude(words);
            let place = uniform(self.width, words);
            if place >= self.first && self.size.magnitude(words).0 == 0 {
                continue;
            }
            let k = steps.saturating_mul(self.width).saturating_add(place);
            if negative && k == 0 {
                continue;
            }
            let k = i64::try_from(k).unwrap_or(i64::MAX);
            return if negative { -k } else { k };
        }
    }
}

/// Uniform on `0, …, below − 1`.
fn uniform(below: u64, words: &mut impl Words) -> u64 {
    let mask = below.next_power_of_two() - 1;
    loop {
        let found = words.next(Purpose::Layer) & mask;
        if found < below {
            return found;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(epsilon: f64, width: u64) -> Option<Staircase> {
        let size = Geometric::at_least((2f64.powi(40) / epsilon).ceil() as u64, -40, 1).unwrap();
        Staircase::of(1, size, width)
    }

    fn weight(noise: &Staircase, k: i64) -> f64 {
        let (_, rate, width, first) = noise.parts();
        let k = k.unsigned_abs();
        if k < first { 1.0 } else { (-rate * (1 + (k - first) / width) as f64).exp() }
    }

    /// References of the integer programme: root mean squares and first steps.
    #[test]
    fn the_least_errors_are_those_of_the_table() {
        for (width, epsilon, rmse, first) in [
            (5, 1.0, 6.9306, 3),
            (5, 3.0, 1.9418, 2),
            (5, 5.0, 0.8501, 1),
            (10, 1.0, 13.850, 5),
            (10, 3.0, 3.8980, 3),
            (10, 5.0, 1.7002, 2),
            (1_000_000, 30.0, 36.04, 37),
        ] {
            let noise = of(epsilon, width).unwrap();
            assert!(
                (noise.variance().sqrt() / rmse - 1.0).abs() < 2e-4,
                "{width} {epsilon} {}",
                noise.variance().sqrt()
            );
            assert_eq!(noise.parts().3, first);
        }
        assert_eq!(of(1.0, 1), None);
    }

    #[test]
    fn no_change_of_at_most_the_width_is_seen_by_more_than_the_rate() {
        for (epsilon, width) in [(0.3, 2), (1.0, 5), (3.0, 7), (6.0, 10), (2.0, 40)] {
            let noise = of(epsilon, width).unwrap();
            let most = 6 * width as i64;
            for k in -most..=most {
                for shift in 1..=width as i64 {
                    let loss = (weight(&noise, k) / weight(&noise, k + shift)).ln();
                    assert!(loss.abs() <= noise.size.rate() * (1.0 + 1e-12));
                }
            }
            let sum = |p: i32| (-400 * most..=400 * most).map(|k| weight(&noise, k) * (k as f64).powi(p)).sum::<f64>();
            assert!((sum(2) / sum(0) / noise.variance() - 1.0).abs() < 1e-9);
        }
    }

    /// Chi-square of every integer with at least ten expected, at 5.5 standard deviations (false alarms below 1e-7).
    #[test]
    fn integers_have_their_exact_probabilities() {
        let count = 400_000;
        for (seed, (epsilon, width)) in [(0.5, 3), (1.0, 5), (3.0, 10)].into_iter().enumerate() {
            let noise = of(epsilon, width).unwrap();
            let mut words = ChaChaWords::new(&Key::deterministic([seed as u8 + 90; 32]), 0);
            let mut seen = std::collections::HashMap::new();
            for _ in 0..count {
                *seen.entry(noise.draw(&mut words)).or_insert(0.0) += 1.0;
            }
            let total: f64 = (-10_000..=10_000).map(|k| weight(&noise, k)).sum();
            let (mut statistic, mut cells) = (0.0f64, 0.0f64);
            let mut rest = (f64::from(count), f64::from(count));
            for k in -10_000i64..=10_000 {
                let expected = f64::from(count) * weight(&noise, k) / total;
                if expected >= 10.0 {
                    let got = seen.get(&k).copied().unwrap_or(0.0);
                    statistic += (got - expected) * (got - expected) / expected;
                    cells += 1.0;
                    rest = (rest.0 - got, rest.1 - expected);
                }
            }
            statistic += (rest.0 - rest.1) * (rest.0 - rest.1) / rest.1.max(1.0);
            let spread = (2.0 / (9.0 * cells)).sqrt();
            let z = ((statistic / cells).cbrt() - (1.0 - spread * spread)) / spread;
            assert!(z.abs() < 5.5, "epsilon = {epsilon}: {statistic} with {cells} degrees of freedom");
        }
    }
}
