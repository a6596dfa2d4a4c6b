//! Spherical Laplace noise: density `∝ exp(-‖y‖₂/b)` on a block of coordinates, exactly.
//!
//! With independent standard Gaussian vectors `Z ∈ R^m` and `Z' ∈ R^{m+1}`, `‖Z'‖₂·Z` has density
//! `∝ exp(-‖y‖₂)`: a Gaussian whose variance is Gamma((m+1)/2, rate 1/2) distributed. All variates
//! are drawn as cells; every coordinate is evaluated in outward-rounded intervals, and if the
//! rounding of any is undecided all variates get 64 more bits.

use super::Key;
use super::cell::Cell;
use super::interval::{norm_f64, norm_wide, round_f64};
use super::pieces::add_in_pieces;
use super::slow;
use super::words::{Purpose, Words};
use super::ziggurat::{Gaussian, check_quarter_units};
use crate::error::Error;
use num_bigint::BigUint;

/// Exact spherical Laplace noise of radius scale `quarter_units/4` lattice units.
pub(crate) struct BlockNoise {
    quarter_units: u64,
}

impl BlockNoise {
    /// As [`super::Sampler::new`].
    pub(crate) fn new(quarter_units: u64) -> Result<Self, Error> {
        check_quarter_units(quarter_units)?;
        Ok(Self { quarter_units })
    }

    /// Adds noise to consecutive blocks of the given lengths; block `i` uses `ChaCha` stream `i`.
    pub(crate) fn add(&self, units: &mut [i64], blocks: &[u32], key: &Key) {
        add_in_pieces(units, blocks, key, |len, words| self.draw(len, words));
    }

    /// One block of noise.
    fn draw(&self, len: usize, words: &mut impl Words) -> Vec<i64> {
        let mut cells: Vec<(Cell, bool)> = (0..=2 * len)
            .map(|_| {
                let word = words.next(Purpose::Layer);
                slow::draw::<Gaussian>(word, false, words)
            })
            .collect();
        let rounded = self.round_f64(&cells, len).unwrap_or_else(|| {
            let mut bits = 192;
            loop {
                if let Some(rounded) = self.round_wide(&cells, len, bits) {
                    return rounded;
                }
                for (cell, _) in &mut cells {
                    cell.frac.refine(words, Purpose::Rounding);
                }
                bits += 64;
            }
        });
        rounded
            .into_iter()
            .zip(&cells)
            .map(|(k, (_, negative))| {
                let k = k.min(3 << 61) as i64;
                if *negative { -k } else { k }
            })
            .collect()
    }

    /// Intervals of doubles; `None` if any coordinate is undecided.
    fn round_f64(&self, cells: &[(Cell, bool)], len: usize) -> Option<Vec<u64>> {
        let ends: Vec<(f64, f64)> = cells.iter().map(|(cell, _)| cell.ends_f64()).collect();
        let (low, high) = norm_f64(&ends[len..]);
        let factor = self.quarter_units as f64 / 4.0; // exact: at most 2^48
        let low = (low * factor).next_down().max(0.0);
        let high = (high * factor).next_up();
        ends[..len].iter().map(|(a, b)| round_f64((a * low).next_down().max(0.0), (b * high).next_up())).collect()
    }

    /// The same in integers over `2^bits`.
    fn round_wide(&self, cells: &[(Cell, bool)], len: usize, bits: u64) -> Option<Vec<u64>> {
        let ends: Vec<(BigUint, BigUint)> = cells.iter().map(|(cell, _)| cell.ends_at(bits)).collect();
        let (low, high) = norm_wide(&ends[len..]);
        let shift = 2 * bits + 2;
        let half = BigUint::from(1u8) << (shift - 1);
        ends[..len]
            .iter()
            .map(|(a, b)| {
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
    use super::BlockNoise;
    use crate::door::Key;

    /// `E‖Y‖² = m(m+1)·b²` and `E‖Y‖ = m·b` for a Gamma(m) radius; z-tests at 5 standard errors
    /// (false-alarm rate below 1e-6 a test, fixed key).
    #[test]
    fn radius_is_gamma() {
        for m in [1u32, 2, 3, 8] {
            let blocks = vec![m; 40_000];
            let mut units = vec![0; blocks.len() * m as usize];
            let scale = 4096.0;
            BlockNoise::new(4 * 4096).unwrap().add(&mut units, &blocks, &Key::deterministic([m as u8; 32]));
            let radii: Vec<f64> = units
                .chunks(m as usize)
                .map(|block| block.iter().map(|k| (*k as f64 / scale).powi(2)).sum::<f64>().sqrt())
                .collect();
            let count = radii.len() as f64;
            let mean = radii.iter().sum::<f64>() / count;
            let square = radii.iter().map(|r| r * r).sum::<f64>() / count;
            let m = f64::from(m);
            assert!((mean - m).abs() < 5.0 * (m / count).sqrt(), "mean {mean} for {m}");
            let variance = m * (m + 1.0) * ((m + 2.0) * (m + 3.0) - m * (m + 1.0));
            assert!((square - m * (m + 1.0)).abs() < 5.0 * (variance / count).sqrt(), "square {square} for {m}");
        }
    }

    /// In one dimension the block is Laplace: compare tail frequencies with `exp(-t)` at 5 standard
    /// errors, and the float path with the wide path on the same words.
    #[test]
    fn one_dimension_is_laplace_and_both_paths_agree() {
        let blocks = vec![1u32; 100_000];
        let mut units = vec![0; blocks.len()];
        BlockNoise::new(4 << 20).unwrap().add(&mut units, &blocks, &Key::deterministic([9; 32]));
        let n = units.len() as f64;
        for t in [0.5, 1.0, 2.0, 4.0] {
            let beyond = units.iter().filter(|k| k.abs() as f64 > t * 2f64.powi(20)).count() as f64;
            let p = (-t).exp();
            assert!((beyond - n * p).abs() < 5.0 * (n * p * (1.0 - p)).sqrt());
        }
        let noise = BlockNoise::new(4 << 20).unwrap();
        for seed in 0..200u8 {
            let mut words = ChaChaWords::new(&Key::deterministic([seed; 32]), 1);
            let cells: Vec<_> = (0..7)
                .map(|_| {
                    let word = super::Words::next(&mut words, super::Purpose::Layer);
                    super::slow::draw::<super::Gaussian>(word, false, &mut words)
                })
                .collect();
            if let (Some(a), Some(b)) = (noise.round_f64(&cells, 3), noise.round_wide(&cells, 3, 192)) {
                assert_eq!(a, b);
            }
        }
    }
}
