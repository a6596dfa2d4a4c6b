//! The fast path: one word, one table look-up, one 64×64→128 product.

use super::Key;
use super::cell::{Cell, FIRST_BITS};
use super::slow::{self, split};
use super::tables;
use super::words::{ChaChaWords, Purpose, Words};
use crate::error::Error;
use crate::interrupt::poll;
use crate::lattice::add_noise;
use crate::parallel::in_pieces;
use std::marker::PhantomData;

/// Largest noise in quarter lattice units: `S·X_i` fits a `u64`, `σ' = S/4 ≤ 2^46`.
pub const MAX_QUARTER_UNITS: u64 = 1 << 48;

/// Coordinates that share one `ChaCha` stream.
const CHUNK: usize = 1 << 14;
/// Stream of a single sample besides.
pub(super) const SINGLE: u64 = u64::MAX;
/// Chunks between two questions whether to go on.
const BLOCK: usize = 64;

/// A half density with its ziggurat.
pub(super) trait Law: Sized {
    /// Widths are in units of `2^-FRACTION_BITS`.
    const FRACTION_BITS: u32;
    /// Whether the exponent is `x²/2` (otherwise `x`).
    const SQUARE: bool;
    const WIDTH: &'static [u64; 256];
    const ACCEPT: &'static [u64; 256];
    const HEIGHT: &'static [u64; 256];
    const RISE: &'static [u64; 256];

    /// `floor(2^64·t(x))` for `x = u·X_i` in units of `2^-(55 + FRACTION_BITS)`, within 16 units.
    fn exponent_64(x: u128) -> u128;

    /// One attempt in the tail.
    fn tail(wide_only: bool, words: &mut impl Words) -> Option<Cell>;
}

/// `exp(-x²/2)`.
pub(super) struct Gaussian;
/// `exp(-x)`: with a sign, the Laplace distribution.
pub(super) struct Exponential;

impl Law for Gaussian {
    const FRACTION_BITS: u32 = 10;
    const SQUARE: bool = true;
    const WIDTH: &'static [u64; 256] = &tables::GAUSSIAN_WIDTH;
    const ACCEPT: &'static [u64; 256] = &tables::GAUSSIAN_ACCEPT;
    const HEIGHT: &'static [u64; 256] = &tables::GAUSSIAN_HEIGHT;
    const RISE: &'static [u64; 256] = &tables::GAUSSIAN_RISE;

    #[inline]
    fn exponent_64(x: u128) -> u128 {
        let x = x >> 3; // 2^-62, below 4
        (x * x) >> 61
    }

    fn tail(wide_only: bool, words: &mut impl Words) -> Option<Cell> {
        slow::gaussian_tail(wide_only, words)
    }
}

impl Law for Exponential {
    const FRACTION_BITS: u32 = 12;
    const SQUARE: bool = false;
    const WIDTH: &'static [u64; 256] = &tables::EXPONENTIAL_WIDTH;
    const ACCEPT: &'static [u64; 256] = &tables::EXPONENTIAL_ACCEPT;
    const HEIGHT: &'static [u64; 256] = &tables::EXPONENTIAL_HEIGHT;
    const RISE: &'static [u64; 256] = &tables::EXPONENTIAL_RISE;

    #[inline]
    fn exponent_64(x: u128) -> u128 {
        x >> 3
    }

    fn tail(wide_only: bool, words: &mut impl Words) -> Option<Cell> {
        slow::exponential_tail(wide_only, words)
    }
}

/// The sample that one word decides, `None` if it takes more; `product` is `S·X_i` of a layer.
#[inline]
pub(super) fn fast<L: Law>(word: u64, product: impl FnOnce(usize) -> u64) -> Option<i64> {
    let (layer, negative, u) = split(word);
    let shift = FIRST_BITS + L::FRACTION_BITS + 2;
    let width = product(layer);
    let low = u128::from(u) * u128::from(width) + (1 << (shift - 1));
    let k = (low >> shift) as i64;
    let highest = ((low + u128::from(width - 1)) >> shift) as i64;
    let sign = -i64::from(negative);
    (u < L::ACCEPT[layer] && k == highest).then_some((k ^ sign) - sign)
}

/// The sample that starts with a word which [`fast`] gave up.
#[cold]
#[inline(never)]
pub(super) fn slow<L: Law>(word: u64, quarter_units: u64, wide_only: bool, words: &mut impl Words) -> i64 {
    let (cell, negative) = slow::draw::<L>(word, wide_only, words);
    let k = cell.round(quarter_units, words) as i64;
    if negative { -k } else { k }
}

/// `round(S/4·Z)` for one law, `S` tabulated against the layer widths.
pub(super) struct Scaled<L> {
    products: [u64; 256],
    pub(super) quarter_units: u64,
    pub(super) wide_only: bool,
    law: PhantomData<L>,
}

impl<L: Law> Scaled<L> {
    /// `quarter_units` in `1..=MAX_QUARTER_UNITS`, checked by [`Sampler::new`].
    pub(super) fn new(quarter_units: u64) -> Self {
        let products = std::array::from_fn(|i| quarter_units * L::WIDTH[i]);
        Self { products, quarter_units, wide_only: false, law: PhantomData }
    }

    /// The fast path: `None` sends the word to [`Scaled::slow`].
    #[inline]
    fn fast(&self, word: u64) -> Option<i64> {
        fast::<L>(word, |layer| self.products[layer])
    }

    fn slow(&self, word: u64, words: &mut impl Words) -> i64 {
        slow::<L>(word, self.quarter_units, self.wide_only, words)
    }

    /// One sample that starts with `word` (the replayer's way in).
    #[cfg(test)]
    pub(super) fn sample(&self, word: u64, words: &mut impl Words) -> i64 {
        self.fast(word).unwrap_or_else(|| self.slow(word, words))
    }

    /// Adds one sample to each lattice value.
    fn add(&self, units: &mut [i64], words: &mut ChaChaWords) {
        let mut done = 0;
        while done < units.len() {
            let mut failed = None;
            let mut taken = 0;
            for (unit, word) in units[done..].iter_mut().zip(words.available()) {
                taken += 1;
                if let Some(k) = self.fast(*word) {
                    *unit = add_noise(*unit, k);
                } else {
                    failed = Some(*word);
                    break;
                }
            }
            words.take(taken);
            done += taken;
            if let Some(word) = failed {
                let k = self.slow(word, words);
                units[done - 1] = add_noise(units[done - 1], k);
            }
        }
    }
}

/// Refuses noise that is absent or does not fit the tables.
pub(super) fn check_quarter_units(quarter_units: u64) -> Result<(), Error> {
    if quarter_units == 0 || quarter_units > MAX_QUARTER_UNITS {
        return Err(Error::invalid("noise", "must be from 1/4 to 2^46 lattice units"));
    }
    Ok(())
}

enum Kind {
    Gaussian(Box<Scaled<Gaussian>>),
    Laplace(Box<Scaled<Exponential>>),
}

/// Which noise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoiseLaw {
    /// Standard deviation 1 before scaling.
    Gaussian,
    /// Scale 1 (variance 2) before scaling.
    Laplace,
}

/// Exact integer noise of one law and size.
pub(crate) struct Sampler(Kind);

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sampler(..)")
    }
}

impl Sampler {
    /// Noise `round(quarter_units/4·Z)`.
    ///
    /// # Errors
    /// If `quarter_units` is 0 or above [`MAX_QUARTER_UNITS`].
    pub(crate) fn new(law: NoiseLaw, quarter_units: u64) -> Result<Self, Error> {
        check_quarter_units(quarter_units)?;
        Ok(Self(match law {
            NoiseLaw::Gaussian => Kind::Gaussian(Box::new(Scaled::new(quarter_units))),
            NoiseLaw::Laplace => Kind::Laplace(Box::new(Scaled::new(quarter_units))),
        }))
    }

    /// One more sample under the key, of a stream that no chunk has.
    pub(crate) fn single(&self, key: &Key) -> i64 {
        let mut words = ChaChaWords::new(key, SINGLE);
        let word = words.next(Purpose::Layer);
        match &self.0 {
            Kind::Gaussian(scaled) => scaled.fast(word).unwrap_or_else(|| scaled.slow(word, &mut words)),
            Kind::Laplace(scaled) => scaled.fast(word).unwrap_or_else(|| scaled.slow(word, &mut words)),
        }
    }

    /// Adds independent noise to every lattice value, saturating.
    ///
    /// Chunk `c` of 2^14 coordinates uses `ChaCha` stream `c` under the key, so the result does not
    /// depend on the number of threads.
    ///
    /// # Errors
    /// If it was asked to end early; what was added is then to be thrown away.
    pub(crate) fn add(&self, units: &mut [i64], key: &Key) -> Result<(), Error> {
        in_chunks(units, key, |_, units, words| match &self.0 {
            Kind::Gaussian(scaled) => scaled.add(units, words),
            Kind::Laplace(scaled) => scaled.add(units, words),
        })
    }
}

/// Calls with the start of every chunk, its values and its words, in parallel.
///
/// # Errors
/// If it was asked to end early.
pub(super) fn in_chunks(
    units: &mut [i64],
    key: &Key,
    add: impl Fn(usize, &mut [i64], &mut ChaChaWords) + Sync,
) -> Result<(), Error> {
    for (block, units) in units.chunks_mut(CHUNK * BLOCK).enumerate() {
        poll()?;
        in_pieces(units, CHUNK, &|first, units| {
            let chunk = block * BLOCK + first / CHUNK;
            add(chunk * CHUNK, units, &mut ChaChaWords::new(key, chunk as u64));
        });
    }
    Ok(())
}
