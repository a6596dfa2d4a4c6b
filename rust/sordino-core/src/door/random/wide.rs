//! Decisions in wide integers: the last resort, rare, exact to any precision.

use super::cell::{Bits, Cell};
use super::words::{Purpose, Words};
use super::ziggurat::{Gaussian, Law};
use num_bigint::BigUint;

/// Bounds `low ≤ 2^bits·exp(-t/2^bits) ≤ high`.
///
/// `exp(-t) = exp(-t/2^s)^(2^s)` with `t/2^s < 2^-8`, 64 guard bits. The series loses below one
/// unit a term and each squaring doubles the error and adds one; `2^s·(terms + 2) < 2^32` units in
/// all, since `t < 2^16` and the terms are fewer than `2^8` below 2000 bits.
pub(super) fn exp_neg_bounds(t: &BigUint, bits: u64) -> (BigUint, BigUint) {
    let working = bits + 64;
    let integer_bits = t.bits().saturating_sub(bits);
    assert!(integer_bits <= 16 && bits < 2000, "argument within the proof");
    let squarings = integer_bits + 8;
    let r = (t << 64u32) >> squarings;
    let one = BigUint::from(1u8) << working;
    let (mut positive, mut negative) = (one.clone(), BigUint::ZERO);
    let mut term = one.clone();
    for k in 1u32.. {
        term = ((term * &r) >> working) / k;
        if term == BigUint::ZERO {
            break;
        }
        if k % 2 == 1 { negative += &term } else { positive += &term }
    }
    let mut value = positive - negative;
    for _ in 0..squarings {
        value = (&value * &value) >> working;
    }
    let error = BigUint::from(1u64 << 32);
    let low = if value > error { (&value - &error) >> 64u32 } else { BigUint::ZERO };
    let high = ((value + error).min(one) >> 64u32) + 1u8;
    (low, high)
}

fn floor_shift(value: &BigUint, shift: u64, bits: u64) -> BigUint {
    if shift >= bits { value >> (shift - bits) } else { value << (bits - shift) }
}

fn ceil_shift(value: &BigUint, shift: u64, bits: u64) -> BigUint {
    let floor = floor_shift(value, shift, bits);
    if shift > bits { floor + 1u8 } else { floor }
}

/// `2^bits·sum` rounded down and, three units above, a bound from above, for
/// `2^64·y_i/Y_1 = 1 + X_0 Σ_{1≤j<i} 1/X_j`. Each of at most 254 divisions loses below 2^-64 units.
fn height_factor<L: Law>(layer: usize, bits: u64) -> BigUint {
    let guard = bits + 64;
    let one = BigUint::from(1u8) << guard;
    let sum = L::WIDTH[1..layer].iter().fold(one.clone(), |sum, width| sum + (&one * L::WIDTH[0]) / *width);
    sum >> 64u32
}

/// Bounds of `2^bits·(y_i + W·(y_{i+1} − y_i))` over the whole box of `W`.
fn height_bounds<L: Law>(layer: usize, height: &Bits, bits: u64) -> (BigUint, BigUint) {
    let first = L::HEIGHT[1];
    let (w, w_bits) = (height.value(), height.count());
    if layer == 0 {
        let (low, high) = (&w * first, (w + 1u8) * first);
        return (floor_shift(&low, w_bits + 64, bits), ceil_shift(&high, w_bits + 64, bits));
    }
    let base = height_factor::<L>(layer, bits);
    let rise = |w: BigUint| ((w << bits) * L::WIDTH[0] / L::WIDTH[layer]) >> w_bits;
    let low = (&base + rise(w.clone())) * first;
    let high = (base + rise(w + 1u8) + 4u8) * first;
    (low >> 64u32, (high >> 64u32) + 1u8)
}

/// Exponent `t(x)` of the half density `exp(-t)`, in `2^-bits`, rounded down or up.
fn exponent<L: Law>(x: &BigUint, shift: u64, bits: u64, up: bool) -> BigUint {
    let (value, shift) = if L::SQUARE { (x * x, 2 * shift + 1) } else { (x.clone(), shift) };
    if up { ceil_shift(&value, shift, bits) } else { floor_shift(&value, shift, bits) }
}

/// Accepts iff `y < exp(-t(x))` for the height `y` in `layer`, `t` increasing in `x`; draws bits of both until
/// the whole box says so. `exponent(x, shift, bits, up)` is `t(x/2^shift)` in `2^-bits`, rounded down or up.
fn settle<L: Law>(
    layer: usize,
    cell: &mut Cell,
    height: &mut Bits,
    words: &mut impl Words,
    exponent: impl Fn(&BigUint, u64, u64, bool) -> BigUint,
) -> bool {
    loop {
        let bits = 128 + cell.frac.count().max(height.count());
        let (low, high, shift) = cell.ends();
        let least = exp_neg_bounds(&exponent(&high, shift, bits, true), bits).0;
        let most = exp_neg_bounds(&exponent(&low, shift, bits, false), bits).1;
        let (y_low, y_high) = height_bounds::<L>(layer, height, bits);
        if y_high <= least {
            return true;
        }
        if y_low >= most {
            return false;
        }
        cell.frac.refine(words, Purpose::Abscissa);
        height.refine(words, Purpose::Height);
    }
}

/// Accepts iff the point `(x, y)` lies under the density.
#[cold]
pub(super) fn under_density<L: Law>(layer: usize, cell: &mut Cell, height: &mut Bits, words: &mut impl Words) -> bool {
    settle::<L>(layer, cell, height, words, exponent::<L>)
}

/// Exponential tail: accepts iff `W·y_1 < exp(-r)`; the abscissa does not matter.
#[cold]
pub(super) fn below_tail<L: Law>(height: &mut Bits, words: &mut impl Words) -> bool {
    loop {
        let bits = 128 + height.count();
        let r = BigUint::from(L::WIDTH[1]) << (bits - u64::from(L::FRACTION_BITS));
        let (least, most) = exp_neg_bounds(&r, bits);
        let (y_low, y_high) = height_bounds::<L>(0, height, bits);
        if y_high <= least {
            return true;
        }
        if y_low >= most {
            return false;
        }
        height.refine(words, Purpose::Height);
    }
}

/// Gaussian tail: accepts iff `W·y_1 < exp(-T(E))`,
/// `T = r²/2 + (r·tw − 1)·E + tw²·E²/2`, increasing in `E`.
#[cold]
pub(super) fn gaussian_tail(excess: &mut Cell, height: &mut Bits, words: &mut impl Words) -> bool {
    let (r, tw) = (Gaussian::WIDTH[1], Gaussian::WIDTH[0] - Gaussian::WIDTH[1]);
    let s = u64::from(Gaussian::FRACTION_BITS);
    settle::<Gaussian>(0, excess, height, words, |e, shift, bits, up| {
        // T·2^(2s+1)·2^(2·shift) in integers.
        let value = (BigUint::from(r * r) << (2 * shift))
            + ((e * (2 * (r * tw - (1 << (2 * s))))) << shift)
            + e * e * (tw * tw);
        let shift = 2 * s + 1 + 2 * shift;
        if up { ceil_shift(&value, shift, bits) } else { floor_shift(&value, shift, bits) }
    })
}
