//! Long diagonals of dyadic numbers, in four bytes a number.

use super::dyadic::{Dyadic, MAX_SHIFT};
use crate::error::Error;
use rayon::prelude::*;

/// Significant bits of each number.
pub const DIAGONAL_BITS: u32 = 24;
/// Those that are kept: the first is 1.
const KEPT: u32 = DIAGONAL_BITS - 1;
/// Bits that a double has behind them.
const BEHIND: u32 = f64::MANTISSA_DIGITS - DIAGONAL_BITS;
/// The exponent field of a double whose shift is 0.
const UNSHIFTED: u32 = 1023 + KEPT;
/// Numbers that are worth a thread of their own.
pub(super) const PIECE: usize = 1 << 12;

/// Numbers `mantissa·2^-shift` with exactly 24 significant bits and shifts of at most 256.
///
/// Each is its shift above the 23 bits behind its first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagonal(Vec<u32>);

/// The nearest number, ties to the even mantissa.
fn nearest(value: f64) -> Result<u32, Error> {
    let bits = value.to_bits();
    // Exponent and 23 bits: a carry out of these raises the exponent.
    let rounded = bits.wrapping_add((1 << (BEHIND - 1)) - 1 + (bits >> BEHIND & 1)) >> BEHIND;
    let shift = UNSHIFTED.wrapping_sub((rounded >> KEPT) as u32);
    if shift > MAX_SHIFT {
        // Out of range: that says how.
        return Dyadic::nearest(value, DIAGONAL_BITS).map(packed);
    }
    Ok(shift << KEPT | rounded as u32 & ((1 << KEPT) - 1))
}

fn packed(value: Dyadic) -> u32 {
    value.shift() << KEPT | value.mantissa() & ((1 << KEPT) - 1)
}

fn dyadic(packed: u32) -> Dyadic {
    Dyadic::new(1 << KEPT | packed & ((1 << KEPT) - 1), packed >> KEPT)
}

fn value(packed: u32) -> f64 {
    f64::from_bits(u64::from(UNSHIFTED - (packed >> KEPT)) << 52 | u64::from(packed & ((1 << KEPT) - 1)) << BEHIND)
}

impl Diagonal {
    /// So many numbers that are to be [rounded](Self::round).
    pub(super) fn unset(len: usize) -> Self {
        Self(vec![0; len])
    }

    /// Its pieces of this length.
    pub(super) fn pieces(&mut self, len: usize) -> impl Iterator<Item = &mut [u32]> {
        self.0.chunks_mut(len)
    }

    /// Sets a piece to the nearest numbers.
    ///
    /// # Errors
    /// As [`Dyadic::nearest`].
    pub(super) fn round(piece: &mut [u32], of: impl Fn(usize) -> f64 + Sync) -> Result<(), Error> {
        let slots = piece.par_iter_mut().with_min_len(PIECE).enumerate();
        slots.try_for_each(|(t, slot)| nearest(of(t)).map(|packed| *slot = packed))
    }

    /// How many numbers there are.
    #[expect(clippy::len_without_is_empty, reason = "a stream has a step")]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The number at a step.
    ///
    /// # Panics
    /// If there is no such step.
    pub fn get(&self, step: usize) -> Dyadic {
        dyadic(self.0[step])
    }

    /// All of them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Dyadic> {
        self.0.iter().map(|packed| dyadic(*packed))
    }

    /// All of them, as doubles, which are exact.
    pub fn values(&self) -> impl ExactSizeIterator<Item = f64> + DoubleEndedIterator {
        self.0.iter().map(|packed| value(*packed))
    }

    /// The value at a step.
    pub(super) fn value(&self, step: usize) -> f64 {
        value(self.0[step])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn limits() {
        for number in [0.0, -1.0, f64::NAN, f64::INFINITY, 2f64.powi(24), 2f64.powi(24) - 0.5, 2f64.powi(-234), 1e-310]
        {
            assert!(nearest(number).is_err() && Dyadic::nearest(number, DIAGONAL_BITS).is_err(), "{number}");
        }
        for number in [2f64.powi(-233), 2f64.powi(24) - 1.0, 1.0, 1.0 + 2f64.powi(-24), 1.0 + 3.0 * 2f64.powi(-24)] {
            let expected = Dyadic::nearest(number, DIAGONAL_BITS).unwrap();
            assert_eq!(dyadic(nearest(number).unwrap()), expected, "{number}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_dyadic(log in -150.0f64..16.0, low in 0u64..8) {
            // Doubles of few bits have ties.
            let short = f64::from_bits(log.exp().to_bits() >> 27 << 27 | low << 26);
            let mut diagonal = Diagonal::unset(2);
            Diagonal::round(diagonal.pieces(2).next().unwrap(), |t| [log.exp(), short][t]).unwrap();
            for (t, exact) in [log.exp(), short].into_iter().enumerate() {
                let expected = Dyadic::nearest(exact, DIAGONAL_BITS).unwrap();
                prop_assert_eq!(diagonal.get(t), expected);
                prop_assert_eq!(diagonal.value(t), expected.value());
            }
            prop_assert!(diagonal.iter().map(Dyadic::value).eq(diagonal.values()));
        }
    }
}
