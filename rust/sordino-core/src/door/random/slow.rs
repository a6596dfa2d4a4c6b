//! The slow paths of one sample: wedges, tails, refinement. About 2 % of the samples.

use super::cell::{Bits, Cell, FIRST_BITS};
use super::exponential::{exp_neg, high};
use super::wide;
use super::words::{Purpose, Words};
use super::ziggurat::{Exponential, Gaussian, Law};
use num_bigint::BigUint;

/// Error budget of a 64-bit decision besides the cell: table, product and argument rounding.
const MARGIN: u64 = 256;

/// Layer, sign and abscissa of one word.
#[inline]
pub(super) fn split(word: u64) -> (usize, bool, u64) {
    ((word & 0xff) as usize, word & 0x100 != 0, word >> 9)
}

/// Draws `|x|` from the half density, given the first word of the first attempt, and the sign.
///
/// With `wide_only` every slow decision is made in wide integers (tests).
#[cold]
#[inline(never)]
pub(super) fn draw<L: Law>(mut word: u64, wide_only: bool, words: &mut impl Words) -> (Cell, bool) {
    loop {
        let (layer, negative, u) = split(word);
        if let Some(cell) = attempt::<L>(layer, u, wide_only, words) {
            return (cell, negative);
        }
        word = words.next(Purpose::Layer);
    }
}

/// One attempt: an accepted cell, or a rejection.
fn attempt<L: Law>(layer: usize, u: u64, wide_only: bool, words: &mut impl Words) -> Option<Cell> {
    let mut cell = Cell { base: 0, width: L::WIDTH[layer], shift: L::FRACTION_BITS, frac: Bits::new(u, FIRST_BITS) };
    if u < L::ACCEPT[layer] {
        return Some(cell);
    }
    if layer == 0 && beyond_base::<L>(&mut cell, words) {
        return L::tail(wide_only, words);
    }
    let mut height = Bits::new(words.next(Purpose::Height), 64);
    let decided = if wide_only { None } else { under_density_64::<L>(layer, u, height.first) };
    let accept = decided.unwrap_or_else(|| wide::under_density::<L>(layer, &mut cell, &mut height, words));
    accept.then_some(cell)
}

/// Whether the abscissa of the base layer is beyond `X_1`: exact, drawing bits while the cell
/// straddles it.
fn beyond_base<L: Law>(cell: &mut Cell, words: &mut impl Words) -> bool {
    let edge = u128::from(L::WIDTH[1]) << FIRST_BITS;
    let low = u128::from(cell.frac.first) * u128::from(cell.width);
    if low >= edge {
        return true;
    }
    if low + u128::from(cell.width) <= edge {
        return false;
    }
    loop {
        cell.frac.refine(words, Purpose::Abscissa);
        let (low, high, _) = cell.ends();
        let edge = BigUint::from(L::WIDTH[1]) << cell.frac.count();
        if low >= edge {
            return true;
        }
        if high <= edge {
            return false;
        }
    }
}

/// The 64-bit decision on the whole box of the first 55 bits and of `W`; `None` if too close.
fn under_density_64<L: Law>(layer: usize, u: u64, w: u64) -> Option<bool> {
    let x = u128::from(u) * u128::from(L::WIDTH[layer]);
    let density = exp_neg(L::exponent_64(x))?;
    let y = u128::from(L::HEIGHT[layer]) + u128::from(high(w, L::RISE[layer]));
    // The cell is X·2^(64−55−s) units wide and the density falls at slope at most 1.
    let margin = u128::from(MARGIN + (L::WIDTH[layer] << 9 >> L::FRACTION_BITS));
    decide(y, u128::from(density), margin)
}

fn decide(y: u128, density: u128, margin: u128) -> Option<bool> {
    if y + margin <= density {
        Some(true)
    } else if y >= density + margin {
        Some(false)
    } else {
        None
    }
}

/// Exponential tail: `x = r + Exp(1)`, accepted with probability `exp(-r)/y_1`.
pub(super) fn exponential_tail(wide_only: bool, words: &mut impl Words) -> Option<Cell> {
    let mut height = Bits::new(words.next(Purpose::Height), 64);
    let first = Exponential::HEIGHT[1];
    // 2^64·exp(-r) lies in [Y_1 − 2, Y_1 − 1); the box of W·y_1 in [h, h + 2).
    let h = high(height.first, first);
    let accept = if !wide_only && h <= first - 4 {
        true
    } else if !wide_only && h >= first - 1 {
        false
    } else {
        wide::below_tail::<Exponential>(&mut height, words)
    };
    if !accept {
        return None;
    }
    words.enter();
    let word = words.next(Purpose::Layer);
    let (mut cell, _) = draw::<Exponential>(word, wide_only, words);
    cell.base += Exponential::WIDTH[1];
    Some(cell)
}

/// Gaussian tail: `x = r + tw·E`, `E ~ Exp(1)` exact, accepted iff `W·y_1 < exp(-T(E))`.
pub(super) fn gaussian_tail(wide_only: bool, words: &mut impl Words) -> Option<Cell> {
    words.enter();
    let word = words.next(Purpose::Layer);
    let (mut excess, _) = draw::<Exponential>(word, wide_only, words);
    let mut height = Bits::new(words.next(Purpose::Height), 64);
    let decided = if wide_only { None } else { gaussian_tail_64(&excess, height.first) };
    if !decided.unwrap_or_else(|| wide::gaussian_tail(&mut excess, &mut height, words)) {
        return None;
    }
    let tail_width = Gaussian::WIDTH[0] - Gaussian::WIDTH[1];
    Some(Cell {
        base: (Gaussian::WIDTH[1] << excess.shift) + tail_width * excess.base,
        width: tail_width * excess.width,
        shift: Gaussian::FRACTION_BITS + excess.shift,
        frac: excess.frac,
    })
}

/// `T(E)` at the lower end of the cell in 60-bit fixed point, decided with a margin.
fn gaussian_tail_64(excess: &Cell, w: u64) -> Option<bool> {
    let (r, tw) = (u128::from(Gaussian::WIDTH[1]), u128::from(Gaussian::WIDTH[0] - Gaussian::WIDTH[1]));
    let low = (u128::from(excess.base) << FIRST_BITS) + u128::from(excess.width) * u128::from(excess.frac.first);
    let e = low >> (u64::from(excess.shift + FIRST_BITS) - 60);
    if e >= 16 << 60 {
        return None;
    }
    let t = ((r * r) << 39) + (((r * tw - (1 << 20)) * e) >> 20) + ((tw * tw * ((e * e) >> 60)) >> 21);
    let density = exp_neg(t << 4)?;
    // Cell: width/8 units at slope below 2 (T' < .003 + .076·16, density below 1); 2^4 units for each
    // of the few roundings of `t`, inside MARGIN.
    let margin = u128::from(MARGIN + excess.width / 4);
    decide(u128::from(high(w, Gaussian::HEIGHT[1])), u128::from(density), margin)
}
