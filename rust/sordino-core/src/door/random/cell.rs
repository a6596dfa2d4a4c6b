//! A real number known to lie in a cell: `x = (base + width·frac) / 2^shift`, `frac` known to
//! finitely many bits.

use super::words::{Purpose, Words};
use num_bigint::BigUint;

/// Bits of the abscissa carried by the first word.
pub(super) const FIRST_BITS: u32 = 55;

/// The bits of a uniform `frac ∈ [0, 1)` drawn so far: some real in `[F, F + 1)·2^-bits`.
#[derive(Debug, Clone)]
pub(super) struct Bits {
    pub first: u64,
    pub first_len: u32,
    pub more: Vec<u64>, // empty, and unallocated, for all but one sample in thousands
}

impl Bits {
    pub(super) fn new(first: u64, first_len: u32) -> Self {
        Self { first, first_len, more: Vec::new() }
    }

    /// Appends 64 uniform bits.
    pub(super) fn refine(&mut self, words: &mut impl Words, purpose: Purpose) {
        self.more.push(words.next(purpose));
    }

    /// Number of known bits.
    pub(super) fn count(&self) -> u64 {
        u64::from(self.first_len) + 64 * self.more.len() as u64
    }

    /// The known bits as the integer `F`.
    pub(super) fn value(&self) -> BigUint {
        self.more.iter().fold(BigUint::from(self.first), |value, word| (value << 64u32) + word)
    }
}

/// An accepted, or still undecided, abscissa.
#[derive(Debug, Clone)]
pub(super) struct Cell {
    pub base: u64,
    pub width: u64,
    pub shift: u32,
    pub frac: Bits,
}

impl Cell {
    /// Both ends of the half-open cell as integers over `2^(shift + bits)`.
    pub(super) fn ends(&self) -> (BigUint, BigUint, u64) {
        let bits = self.frac.count();
        let low = (BigUint::from(self.base) << bits) + self.frac.value() * self.width;
        (low.clone(), low + self.width, u64::from(self.shift) + bits)
    }

    /// Both ends as integers over `2^bits`, rounded outward.
    pub(super) fn ends_at(&self, bits: u64) -> (BigUint, BigUint) {
        let (low, high, shift) = self.ends();
        let scale = |value: BigUint| if shift > bits { value >> (shift - bits) } else { value << (bits - shift) };
        (scale(low), scale(high) + 1u8)
    }

    /// Both ends as doubles, rounded outward; bits beyond the first are not used.
    pub(super) fn ends_f64(&self) -> (f64, f64) {
        let Bits { first, first_len, .. } = self.frac;
        let unit = 2f64.powi(-(first_len as i32)); // exact
        let inverse = 2f64.powi(-(self.shift as i32));
        let end = |frac: u64| (frac as f64 * unit, self.width as f64, self.base as f64);
        let (f, w, b) = end(first);
        let low = (b.next_down() + (w.next_down() * f.next_down()).next_down()).next_down().max(0.0) * inverse;
        let (f, w, b) = end(first + 1);
        let high = (b.next_up() + (w.next_up() * f.next_up()).next_up()).next_up() * inverse;
        (low.max(0.0), high)
    }

    /// `round(quarter_units/4 · x)`, ties up, drawing bits until the whole cell rounds alike.
    pub(super) fn round(self, quarter_units: u64, words: &mut impl Words) -> u64 {
        self.settle(quarter_units, 2, true, words)
    }

    /// `floor(scale/2^shift · x)`, drawing bits until the whole cell agrees.
    pub(super) fn floor(self, scale: u64, shift: u32, words: &mut impl Words) -> u64 {
        self.settle(scale, shift, false, words)
    }

    /// `floor(scale/2^shift · x)`, or rounded. The upper end is open: one unit below it decides.
    fn settle(mut self, scale: u64, extra: u32, rounded: bool, words: &mut impl Words) -> u64 {
        loop {
            let (low, high, shift) = self.ends();
            let shift = shift + u64::from(extra);
            let half = if rounded { BigUint::from(1u8) << (shift - 1) } else { BigUint::ZERO };
            let lowest: BigUint = (low * scale + &half) >> shift;
            let highest: BigUint = (high * scale + half - 1u8) >> shift;
            if lowest == highest {
                return u64::try_from(lowest).unwrap_or(u64::MAX).min(CLIP);
            }
            self.frac.refine(words, Purpose::Rounding);
        }
    }
}

/// Noise is clipped here, in lattice units, far beyond the clamps on values and on sums.
const CLIP: u64 = 3 << 61;
