//! Waves: a distribution function from one bit of every client.
//!
//! On a circle of `2w` places let `B_k(t) = sign sin(k π (t + 1/2)/w)`, `k` odd, so `B_k(t + w) = −B_k(t)`. A client's value
//! lies at a place `x` in `0..=w` (`w`: it has none), and at the step `j` in `0..w` its distribution function is
//! `F_j(x) = 1/2 + B_1(j − x)/2`. The client draws a frequency `k` with probability `π_k` and a shift `s` of `2w`, both
//! without its value, and tells `±B_k(x − s)`, the sign turned round with probability `p`.
//!
//! **Estimate.** The sum of `±B_k(t − s)` over clients, a row of whole numbers, has the mean `c Σ_x D(t − x)` with `c = 1 − 2p`
//! and the transform `d_m = Σ_k π_k |b_k(m)|²`, `b_k(m)` that of `B_k` over `2w`: at odd `m` alone. Filtered by
//! `b_1(m)/(2 d_m)` and divided by `c`, it is `B_1/2` at every client's place. So the estimate of `F_j` is unbiased, its second
//! moment about 1/2 is `V/c²` for every `x` and `j`, and for n clients `n Var = V/c² − 1/4`, with `V = Σ_m |b_1(m)|²/(4 d_m)`.
//!
//! **Frequencies.** Without aliasing `|b_k(m)|²` is `(2k/πm)²` where `m/k` is an odd integer. `π_k ∝ φ(k)/k²`, Euler's
//! totient, makes `Σ_{k|m} φ(k) = m` of it: `d_m ∝ 1/m`, and `V` grows as the square of a logarithm. By search, `V` is at most
//! 0.4 % less for eight steps and more (2.7 % at three).

use crate::error::Error;
use crate::interrupt::poll;
use crate::transform::fourier::RealFourier;
use num_complex::Complex;
use std::f64::consts::PI;

/// Most steps: what is drawn and added fits into machine words, and a plan takes a tenth of a second.
const MOST_STEPS: usize = 1 << 13;
/// Bits of the probability of a frequency.
const BITS: u32 = 32;

/// The waves of a circle, with the probabilities of their frequencies.
#[derive(Clone, Debug)]
pub struct Waves {
    steps: usize,
    /// Probabilities of at most this frequency, `1, 3, 5, …`, in units of `2^-32`.
    cumulative: Vec<u64>,
    /// `d_m` at `1, 3, 5, …`.
    power: Vec<f64>,
    variance: f64,
    largest: f64,
    transform: RealFourier,
}

/// What a client tells but for its sign: drawn without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// Frequency, odd.
    pub frequency: u64,
    /// Shift of the wave, below `2w`.
    pub shift: u64,
}

impl Waves {
    /// Waves for a distribution function at so many steps.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for no steps, or more than 2^13.
    pub fn new(steps: usize) -> Result<Self, Error> {
        if !(1..=MOST_STEPS).contains(&steps) {
            return Err(Error::invalid("steps", "must be from 1 to 2^13"));
        }
        let cumulative = cumulative(steps);
        let amplitudes: Vec<f64> =
            (0..=2 * steps).map(|u| 1.0 / (steps as f64 * (PI * u as f64 / (2 * steps) as f64).sin())).collect();
        let mut power = vec![0.0; steps.div_ceil(2)];
        let mut below = 0;
        for (index, total) in cumulative.iter().enumerate() {
            poll()?;
            let share = (total - below) as f64 / 2f64.powi(BITS as i32);
            for_amplitudes(steps, 2 * index as u64 + 1, &amplitudes, |place, a| power[place] += share * a * a);
            below = *total;
        }
        // Amplitudes of the filter: its odd frequencies but the middle one occur twice.
        let filter: Vec<f64> =
            (0..power.len()).map(|i| twice(steps, i) * amplitudes[2 * i + 1] / (2.0 * power[i])).collect();
        let variance = filter.iter().zip(amplitudes.iter().skip(1).step_by(2)).map(|(f, a)| f * a / 2.0).sum();
        let mut largest = 0f64;
        for index in 0..cumulative.len() {
            poll()?;
            let mut sum = 0.0;
            for_amplitudes(steps, 2 * index as u64 + 1, &amplitudes, |place, a| sum += a * filter[place]);
            largest = largest.max(sum);
        }
        Ok(Self { steps, cumulative, power, variance, largest, transform: RealFourier::new(2 * steps) })
    }

    /// w, the steps of the distribution function.
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// `V`: variance of an estimate from one client about 1/2, were its sign true.
    pub fn variance(&self) -> f64 {
        self.variance
    }

    /// How far one client moves an estimate from 1/2 at most, were its sign true: the filter's triangle inequality.
    pub fn largest(&self) -> f64 {
        self.largest
    }

    /// Codes of messages are below this.
    pub fn codes(&self) -> u64 {
        4 * (self.cumulative.len() * self.steps) as u64
    }

    /// The question that two uniform words draw.
    pub(crate) fn question(&self, first: u64, second: u64) -> Question {
        let index = self.cumulative.partition_point(|total| *total <= first >> (64 - BITS));
        let shift = (u128::from(second) * (2 * self.steps) as u128) >> 64;
        Question { frequency: 2 * index as u64 + 1, shift: shift as u64 }
    }

    /// Whether the wave of a question is above zero at a place, from 0 to w.
    pub(crate) fn is_above(&self, question: Question, place: u64) -> bool {
        self.phase(question, place) < 2 * self.steps as u64
    }

    /// Of `4w`; the first half is above zero.
    fn phase(&self, question: Question, place: u64) -> u64 {
        let circle = 2 * self.steps as u64;
        question.frequency * (2 * (place + circle - question.shift) + 1) % (2 * circle)
    }

    /// A message: a question and the sign that was told.
    pub(crate) fn code(&self, question: Question, above: bool) -> u64 {
        ((question.frequency / 2) * 2 * self.steps as u64 + question.shift) * 2 + u64::from(above)
    }

    /// Adds the waves of messages, each with its sign, to a row of w whole numbers.
    ///
    /// Together, frequency by frequency: `B_k(t − s)` is above zero where `kt + (k − 1)/2 − ks` modulo 2w is below w. So their
    /// sum at t is that of the messages whose `ks` are the last w up to `kt + (k − 1)/2`, less that of the others.
    ///
    /// # Errors
    /// For a row of another length, or a code that is no message's, or [`Error::Interrupted`]; then nothing was added.
    pub fn add(&self, codes: &[u64], sums: &mut [i64]) -> Result<(), Error> {
        Error::check_len("sums", self.steps, sums.len())?;
        if codes.iter().any(|code| *code >= self.codes()) {
            return Err(Error::invalid("codes", "are no messages"));
        }
        let (steps, circle) = (self.steps, 2 * self.steps);
        let mut sorted: Vec<usize> = codes.iter().map(|code| *code as usize).collect();
        sorted.sort_unstable();
        let mut added = vec![0i64; steps];
        let mut last = vec![0i64; circle];
        for same in sorted.chunk_by(|a, b| a / 2 / circle == b / 2 / circle) {
            poll()?;
            let half = same[0] / 2 / circle;
            let frequency = 2 * half + 1;
            last.fill(0);
            for code in same {
                last[frequency * (code / 2 % circle) % circle] += if code % 2 == 1 { 1 } else { -1 };
            }
            // From single places to all up to each, then to the last w up to each.
            for place in 1..circle {
                last[place] += last[place - 1];
            }
            let total = last[circle - 1];
            for place in 0..steps {
                let (first, second) = (last[place], last[place + steps]);
                (last[place], last[place + steps]) = (first + total - second, second - first);
            }
            let mut place = half;
            for sum in &mut added {
                *sum += 2 * last[place] - total;
                place += frequency;
                place -= if place >= circle { circle } else { 0 };
            }
        }
        sums.iter_mut().zip(added).for_each(|(sum, more)| *sum += more);
        Ok(())
    }

    /// The estimated distribution function at the w steps: of sums of waves over the number of clients and `c`.
    ///
    /// # Errors
    /// For sums of another length.
    pub fn distribution(&self, means: &[f64]) -> Result<Vec<f64>, Error> {
        Error::check_len("sums", self.steps, means.len())?;
        let mut circle: Vec<f64> = means.iter().copied().chain(means.iter().map(|mean| -mean)).collect();
        let steps = self.steps as f64;
        self.transform.filter_in_place(&mut circle, |m| {
            if m % 2 == 0 {
                return Complex::default();
            }
            // b_1(m) = (1 − i cot(πm/2w))/w.
            let (sin, cos) = (PI * m as f64 / (2.0 * steps)).sin_cos();
            Complex::new(1.0, -cos / sin) / (2.0 * steps * self.power[m / 2])
        });
        circle.truncate(self.steps);
        Ok(circle.into_iter().map(|value| value + 0.5).collect())
    }
}

/// How often the `i`-th odd frequency occurs on a circle of `2w` places: `w` itself once.
fn twice(steps: usize, i: usize) -> f64 {
    if 2 * i + 1 == steps { 1.0 } else { 2.0 }
}

/// Calls with the places of odd frequencies m ≤ w at which `b_k` is not zero, and with `|b_k(m)|`.
///
/// `B_k` is `B_1` on a circle of `w/g`, `g` the common divisor of k and w, where each place is multiplied by `k/g`: its
/// transform is that of `B_1`, in another order.
fn for_amplitudes(steps: usize, frequency: u64, amplitudes: &[f64], mut call: impl FnMut(usize, f64)) {
    let divisor = common(frequency, steps as u64);
    let circle = 2 * steps as u64 / divisor;
    let step = inverse(frequency / divisor % circle, circle);
    // m = g, 3g, 5g, …: their places on the smaller circle go on by twice the inverse.
    let mut place = step;
    for m in (divisor..=steps as u64).step_by(2 * divisor as usize) {
        call(m as usize / 2, divisor as f64 * amplitudes[(place * divisor) as usize]);
        place = (place + 2 * step) % circle;
    }
}

/// Cumulative probabilities of odd frequencies up to w, in units of `2^-32`; rounding falls to the first.
fn cumulative(steps: usize) -> Vec<u64> {
    let rates: Vec<f64> = (1..=steps as u64).step_by(2).map(|k| totient(k) as f64 / (k * k) as f64).collect();
    let total: f64 = rates.iter().sum();
    let mut units: Vec<u64> = rates.iter().map(|rate| (rate / total * 2f64.powi(BITS as i32)) as u64).collect();
    units[0] += (1 << BITS) - units.iter().sum::<u64>();
    units.iter_mut().fold(0, |below, unit| {
        *unit += below;
        *unit
    });
    units
}

/// Euler's totient of an odd number.
fn totient(mut number: u64) -> u64 {
    let mut result = number;
    let mut factor = 3;
    while factor * factor <= number {
        if number.is_multiple_of(factor) {
            result -= result / factor;
            while number.is_multiple_of(factor) {
                number /= factor;
            }
        }
        factor += 2;
    }
    if number > 1 { result - result / number } else { result }
}

fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

/// Inverse of a number without a common divisor with `modulus`, by Euclid's algorithm.
fn inverse(number: u64, modulus: u64) -> u64 {
    let (mut a, mut b, mut x, mut y) = (number as i64, modulus as i64, 1i64, 0i64);
    while b != 0 {
        let quotient = a / b;
        (a, b, x, y) = (b, a % b, y, x - quotient * y);
    }
    x.rem_euclid(modulus as i64) as u64
}

#[cfg(test)]
mod tests {
    use super::{Question, Waves, cumulative, totient};
    use num_complex::Complex;
    use std::f64::consts::PI;

    /// `B_k(t)` by its definition.
    fn wave(steps: usize, k: u64, t: i64) -> f64 {
        (k as f64 * PI * (t as f64 + 0.5) / steps as f64).sin().signum()
    }

    fn shares(steps: usize) -> Vec<f64> {
        let totals = cumulative(steps);
        let below = std::iter::once(0).chain(totals.iter().copied());
        below.zip(&totals).map(|(below, total)| (total - below) as f64 / 2f64.powi(32)).collect()
    }

    /// All places, steps, frequencies, shifts and signs of small circles: means, second moments, and the largest reach.
    #[test]
    fn every_message_of_small_circles() {
        for steps in (1..=9).chain([12, 15, 21]) {
            let waves = Waves::new(steps).unwrap();
            // Of each message of a plus: the estimate less 1/2.
            let estimate = |question| {
                let mut sums = vec![0; steps];
                waves.add(&[waves.code(question, true)], &mut sums).unwrap();
                let means: Vec<f64> = sums.iter().map(|s| *s as f64).collect();
                waves.distribution(&means).unwrap().iter().map(|f| f - 0.5).collect::<Vec<f64>>()
            };
            let mut means = vec![0.0; (steps + 1) * steps];
            let mut seconds = vec![0.0; steps];
            for (index, share) in shares(steps).iter().enumerate() {
                for shift in 0..2 * steps as u64 {
                    let question = Question { frequency: 2 * index as u64 + 1, shift };
                    let estimate = estimate(question);
                    let probability = share / (2 * steps) as f64;
                    for (j, e) in estimate.iter().enumerate() {
                        assert!(e.abs() <= waves.largest() * (1.0 + 1e-12));
                        seconds[j] += probability * e * e;
                        for x in 0..=steps {
                            let above = waves.is_above(question, x as u64);
                            let sign = if above { 1.0 } else { -1.0 };
                            assert_eq!(sign, wave(steps, question.frequency, x as i64 - shift as i64));
                            means[x * steps + j] += probability * sign * e;
                        }
                    }
                }
            }
            for (place, mean) in means.iter().enumerate() {
                let (x, j) = (place / steps, place % steps);
                let truth = if j >= x { 0.5 } else { -0.5 };
                assert!((mean - truth).abs() < 1e-12, "{steps} {x} {j}: {mean}");
            }
            for second in seconds {
                assert!((second / waves.variance() - 1.0).abs() < 1e-12, "{steps}: {second} {}", waves.variance());
            }
        }
    }

    /// Every message some times, in no order, against waves by their definition.
    #[test]
    fn many_messages_are_added_as_each_alone() {
        for steps in [1, 2, 3, 8, 9, 15, 21] {
            let waves = Waves::new(steps).unwrap();
            let codes: Vec<u64> = (0..5 * waves.codes()).map(|i| (i * i + 7 * i) % waves.codes()).collect();
            let mut sums = vec![3; steps];
            waves.add(&codes, &mut sums).unwrap();
            for (t, sum) in sums.into_iter().enumerate() {
                let of = |code: &u64| {
                    let (question, sign) = (code / 2, if code % 2 == 1 { 1.0 } else { -1.0 });
                    let (k, s) = (2 * (question / (2 * steps as u64)) + 1, question % (2 * steps as u64));
                    sign * wave(steps, k, t as i64 - s as i64)
                };
                assert_eq!(sum as f64, 3.0 + codes.iter().map(of).sum::<f64>(), "{steps} {t}");
            }
        }
    }

    /// Reference values of V by an independent search, at most 0.4 % below; 1/4 and 1/2 in closed form.
    #[test]
    fn variances() {
        assert!((Waves::new(1).unwrap().variance() - 0.25).abs() < 1e-15);
        assert!((Waves::new(2).unwrap().variance() - 0.5).abs() < 1e-15);
        for (steps, least) in [(16, 1.860_193), (64, 3.258_315), (100, 3.791_334), (317, 5.356_341), (2048, 8.457_936)]
        {
            let waves = Waves::new(steps).unwrap();
            let over = waves.variance() / least;
            assert!((1.0 - 1e-6..1.004).contains(&over), "{steps}: {over}");
            // The first wave reaches furthest: twice V.
            assert!((waves.largest() / (2.0 * waves.variance())) < 1.2, "{}", waves.largest() / waves.variance());
        }
    }

    /// The spectrum against transforms by the definition, where frequencies and steps have divisors in common.
    #[test]
    fn the_spectrum() {
        for steps in [9, 15, 30, 45] {
            let waves = Waves::new(steps).unwrap();
            for m in (1..=steps).step_by(2) {
                let transform = |k: u64| {
                    let at =
                        |t: usize| Complex::from_polar(wave(steps, k, t as i64), -PI * (m * t) as f64 / steps as f64);
                    (0..2 * steps).map(at).sum::<Complex<f64>>().norm_sqr() / (4 * steps * steps) as f64
                };
                let expected: f64 =
                    shares(steps).iter().enumerate().map(|(i, share)| share * transform(2 * i as u64 + 1)).sum();
                assert!((waves.power[m / 2] / expected - 1.0).abs() < 1e-12, "{steps} {m}");
            }
        }
    }

    #[test]
    fn totients() {
        for n in (1..200u64).step_by(2) {
            assert_eq!(totient(n), (1..=n).filter(|i| super::common(*i, n) == 1).count() as u64);
        }
        assert_eq!(cumulative(8192).last(), Some(&(1 << 32)));
        assert!(cumulative(8192).is_sorted_by(|a, b| a < b));
    }

    /// Messages of no client are refused, and nothing is added; words at the ends draw questions that exist.
    #[test]
    fn ends() {
        assert!(Waves::new(0).is_err() && Waves::new(8193).is_err());
        let waves = Waves::new(5).unwrap();
        let mut sums = [0; 5];
        assert!(waves.add(&[1, waves.codes()], &mut sums).is_err() && sums == [0; 5]);
        assert!(waves.add(&[1], &mut [0; 4]).is_err() && waves.distribution(&[0.0; 6]).is_err());
        assert_eq!(waves.question(0, 0), Question { frequency: 1, shift: 0 });
        assert_eq!(waves.question(u64::MAX, u64::MAX), Question { frequency: 5, shift: 9 });
        assert_eq!(waves.code(waves.question(u64::MAX, u64::MAX), true) + 1, waves.codes());
    }
}
