//! Box noise: density `∝ exp(-‖z‖_∞/b)` on a block of coordinates, exactly.
//!
//! `z = b·ρ·U` with U uniform in the cube `[-1, 1]^m` and `ρ ~ Gamma(m + 1)`, the sum of `m + 1` exponentials: the density
//! at `‖z‖_∞ = t` (`b = 1`) is `∝ ∫_t^∞ ρ^{-m}·ρ^m e^{-ρ} dρ = e^{-t}`. All variates are cells; every coordinate is
//! evaluated in outward-rounded intervals, and if the rounding of any is undecided all of them get 64 more bits.

use super::Key;
use super::cell::{Bits, Cell, FIRST_BITS};
use super::interval::round_f64;
use super::pieces::add_in_pieces;
use super::slow::{self, split};
use super::words::{Purpose, Words};
use super::ziggurat::{Exponential, check_quarter_units};
use crate::error::Error;
use num_bigint::BigUint;

/// Bits after the binary point, at first, in wide arithmetic.
const WIDE_BITS: u64 = 192;

/// Exact box noise of scale `quarter_units/4` lattice units.
pub(crate) struct BoxNoise {
    quarter_units: u64,
}

/// The variates of one box: exponentials, and a magnitude below 1 with its sign for every coordinate.
struct Variates {
    exponentials: Vec<Cell>,
    uniforms: Vec<(Cell, bool)>,
}

impl Variates {
    fn draw(len: usize, words: &mut impl Words) -> Self {
        let exponentials = (0..=len).map(|_| {
            let word = words.next(Purpose::Layer);
            slow::draw::<Exponential>(word, false, words).0
        });
        let exponentials = exponentials.collect();
        let uniforms = (0..len).map(|_| {
            let (_, negative, u) = split(words.next(Purpose::Abscissa));
            (Cell { base: 0, width: 1, shift: 0, frac: Bits::new(u, FIRST_BITS) }, negative)
        });
        Self { exponentials, uniforms: uniforms.collect() }
    }

    fn refine(&mut self, words: &mut impl Words) {
        let all = self.exponentials.iter_mut().chain(self.uniforms.iter_mut().map(|(cell, _)| cell));
        all.for_each(|cell| cell.frac.refine(words, Purpose::Rounding));
    }
}

impl BoxNoise {
    /// As [`super::Sampler::new`].
    pub(crate) fn new(quarter_units: u64) -> Result<Self, Error> {
        check_quarter_units(quarter_units)?;
        Ok(Self { quarter_units })
    }

    /// Adds noise to consecutive boxes of the given lengths; box `i` uses `ChaCha` stream `i`.
    pub(crate) fn add(&self, units: &mut [i64], boxes: &[u32], key: &Key) {
        add_in_pieces(units, boxes, key, |len, words| self.draw(len, words));
    }

    /// The noise of one box.
    fn draw(&self, len: usize, words: &mut impl Words) -> Vec<i64> {
        let mut variates = Variates::draw(len, words);
        let mut bits = WIDE_BITS;
        let mut rounded = self.round_f64(&variates);
        while rounded.is_none() {
            rounded = self.round_wide(&variates, bits);
            if rounded.is_none() {
                variates.refine(words);
                bits += 64;
            }
        }
        let signed = |(k, (_, negative)): (u64, &(Cell, bool))| {
            let k = k.min(3 << 61) as i64;
            if *negative { -k } else { k }
        };
        rounded.into_iter().flatten().zip(&variates.uniforms).map(signed).collect()
    }

    /// Intervals of doubles; `None` if any coordinate is undecided.
    fn round_f64(&self, variates: &Variates) -> Option<Vec<u64>> {
        let (mut low, mut high) = (0.0f64, 0.0f64);
        for (a, b) in variates.exponentials.iter().map(Cell::ends_f64) {
            (low, high) = ((low + a).next_down().max(0.0), (high + b).next_up());
        }
        let factor = self.quarter_units as f64 / 4.0; // exact: at most 2^48
        let (low, high) = ((low * factor).next_down().max(0.0), (high * factor).next_up());
        let ends = variates.uniforms.iter().map(|(cell, _)| cell.ends_f64());
        ends.map(|(a, b)| round_f64((a * low).next_down().max(0.0), (b * high).next_up())).collect()
    }

    /// The same in integers over `2^bits`.
    fn round_wide(&self, variates: &Variates, bits: u64) -> Option<Vec<u64>> {
        let (mut low, mut high) = (BigUint::ZERO, BigUint::ZERO);
        for (a, b) in variates.exponentials.iter().map(|cell| cell.ends_at(bits)) {
            low += a;
            high += b;
        }
        let shift = 2 * bits + 2;
        let half = BigUint::from(1u8) << (shift - 1);
        let ends = variates.uniforms.iter().map(|(cell, _)| cell.ends_at(bits));
        ends.map(|(a, b)| {
            let least: BigUint = (a * &low * self.quarter_units + &half) >> shift;
            let most: BigUint = (b * &high * self.quarter_units + &half) >> shift;
            (least == most).then(|| u64::try_from(least).unwrap_or(u64::MAX))
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::ChaChaWords;
    use super::*;

    const SCALE: f64 = 4096.0;

    fn drawn(m: u32, boxes: usize, seed: u8) -> Vec<i64> {
        let mut units = vec![0; boxes * m as usize];
        BoxNoise::new(4 * 4096).unwrap().add(&mut units, &vec![m; boxes], &Key::deterministic([seed; 32]));
        units
    }

    /// `‖z‖_∞ ~ Gamma(m)`: mean and mean square; coordinates of variance `(m + 1)(m + 2)/3`, not correlated. z-tests at 5
    /// standard errors (false-alarm rate below 1e-6 a test, fixed key).
    #[test]
    fn radius_is_gamma_and_coordinates_are_uncorrelated() {
        for m in [1u32, 2, 3, 8, 40] {
            let units = drawn(m, 40_000, m as u8);
            let boxes: Vec<Vec<f64>> =
                units.chunks(m as usize).map(|part| part.iter().map(|k| *k as f64 / SCALE).collect()).collect();
            let (n, d) = (boxes.len() as f64, f64::from(m));
            let radii: Vec<f64> = boxes.iter().map(|z| z.iter().fold(0.0f64, |most, v| most.max(v.abs()))).collect();
            let mean = radii.iter().sum::<f64>() / n;
            let square = radii.iter().map(|r| r * r).sum::<f64>() / n;
            assert!((mean - d).abs() < 5.0 * (d / n).sqrt(), "mean {mean} for {m}");
            let spread = d * (d + 1.0) * ((d + 2.0) * (d + 3.0) - d * (d + 1.0));
            assert!((square - d * (d + 1.0)).abs() < 5.0 * (spread / n).sqrt(), "square {square} for {m}");
            let variance = (d + 1.0) * (d + 2.0) / 3.0;
            // Fourth moment: E ρ⁴ E U⁴.
            let fourth = (1..=4).map(|i| d + f64::from(i)).product::<f64>() / 5.0;
            let of = |i: usize, j: usize| boxes.iter().map(|z| z[i] * z[j]).sum::<f64>() / n;
            assert!((of(0, 0) - variance).abs() < 5.0 * ((fourth - variance * variance) / n).sqrt(), "{m}");
            if m > 1 {
                let cross = fourth * 5.0 / 9.0;
                assert!(of(0, 1).abs() < 5.0 * (cross / n).sqrt(), "{m}");
            }
        }
    }

    /// In one dimension it is Laplace: tail frequencies at 5 standard errors. Given the radius a coordinate is uniform.
    #[test]
    fn tails() {
        let units = drawn(1, 100_000, 9);
        let n = units.len() as f64;
        for t in [0.5, 1.0, 2.0, 4.0] {
            let beyond = units.iter().filter(|k| k.abs() as f64 > t * SCALE).count() as f64;
            let p = (-t).exp();
            assert!((beyond - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt());
        }
        let pairs = drawn(2, 60_000, 10);
        let n = pairs.len() as f64 / 2.0;
        // The smaller of two magnitudes over the larger is uniform.
        let below = |share: f64| {
            let small = |z: &&[i64]| {
                let (a, b) = (z[0].abs() as f64, z[1].abs() as f64);
                a.min(b) < share * a.max(b)
            };
            pairs.chunks(2).filter(small).count() as f64
        };
        for share in [0.1, 0.5, 0.9] {
            assert!((below(share) - n * share).abs() < 5.0 * (n * share * (1.0 - share)).sqrt() + 0.002 * n);
        }
    }

    #[test]
    fn both_paths_agree_and_bits_follow() {
        let noise = BoxNoise::new(4 << 20).unwrap();
        let mut decided = 0;
        for seed in 0..200u8 {
            let mut words = ChaChaWords::new(&Key::deterministic([seed; 32]), 1);
            let mut variates = Variates::draw(7, &mut words);
            let wide = noise.round_wide(&variates, WIDE_BITS).unwrap();
            if let Some(quick) = noise.round_f64(&variates) {
                assert_eq!(quick, wide);
                decided += 1;
            }
            variates.refine(&mut words);
            assert_eq!(noise.round_wide(&variates, WIDE_BITS + 64).unwrap(), wide);
        }
        assert!(decided > 190);
        // So large that doubles decide nothing: whole numbers do.
        let large = BoxNoise::new(1 << 48).unwrap().draw(3, &mut ChaChaWords::new(&Key::deterministic([1; 32]), 0));
        assert!(large.iter().any(|k| k.unsigned_abs() > 1 << 44));
    }
}
