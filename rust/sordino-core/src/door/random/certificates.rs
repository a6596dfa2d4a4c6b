//! The certificates that make the ziggurat exact, verified in exact integer arithmetic.

use super::wide::exp_neg_bounds;
use super::ziggurat::{Exponential, Gaussian, Law};
use num_bigint::BigUint;

const BITS: u64 = 320;

/// `2^BITS·y_i` rounded down and up, from the definition `y_{i+1} = y_i + v/X_i`, `v = X_0·y_1`.
fn heights<L: Law>() -> Vec<(BigUint, BigUint)> {
    let first = BigUint::from(L::HEIGHT[1]) << (BITS - 64);
    let mut heights = vec![(BigUint::ZERO, BigUint::ZERO), (first.clone(), first.clone())];
    for i in 1..256 {
        let rise = &first * L::WIDTH[0] / L::WIDTH[i];
        let (low, high) = heights[i].clone();
        heights.push((low + &rise, high + rise + 1u8));
    }
    heights
}

/// Bounds of the half density at `x = numerator / 2^shift`.
fn density<L: Law>(numerator: &BigUint, shift: u64) -> (BigUint, BigUint) {
    let t = if L::SQUARE { (numerator * numerator) << (BITS - 2 * shift - 1) } else { numerator << (BITS - shift) };
    exp_neg_bounds(&t, BITS)
}

fn check<L: Law>() {
    let s = u64::from(L::FRACTION_BITS);
    let heights = heights::<L>();
    let one = BigUint::from(1u8) << BITS;
    assert!(heights[256].0 >= one && heights[255].1 < one, "256 layers cover the density, 255 do not");
    for i in 0..256 {
        assert_eq!(BigUint::from(L::HEIGHT[i]), &heights[i].0 >> (BITS - 64), "height {i}");
        let top = (&heights[i + 1].0 >> (BITS - 64)) - L::HEIGHT[i];
        assert_eq!(BigUint::from(L::RISE[i]), top, "rise {i}");
        if i >= 1 {
            // Beyond the width of layer i nothing of the density lies above its lower edge ...
            let (_, at_width) = density::<L>(&BigUint::from(L::WIDTH[i]), s);
            assert!(at_width <= heights[i].0, "layer {i} covers");
            // ... and the width is the smallest such integer.
            if i >= 2 {
                let (before, _) = density::<L>(&BigUint::from(L::WIDTH[i] - 1), s);
                assert!(before > heights[i].1, "layer {i} is minimal");
            }
        }
        if i < 255 {
            let edge = BigUint::from(L::ACCEPT[i]) * L::WIDTH[i];
            let (below, _) = density::<L>(&edge, s + 55);
            assert!(below >= heights[i + 1].1, "threshold {i} is on the safe side");
            let next = BigUint::from(L::ACCEPT[i] + 1) * L::WIDTH[i];
            let (_, above) = density::<L>(&next, s + 55);
            assert!(above < heights[i + 1].0, "threshold {i} is the largest");
        }
    }
    assert_eq!(L::ACCEPT[255], 0);
    // The tail box: Y_1 = floor(2^64 f(r)) + 2.
    let (low, high) = density::<L>(&BigUint::from(L::WIDTH[1]), s);
    assert_eq!((low >> (BITS - 64)) + 2u8, BigUint::from(L::HEIGHT[1]));
    assert_eq!((high >> (BITS - 64)) + 2u8, BigUint::from(L::HEIGHT[1]));
}

#[test]
fn gaussian() {
    check::<Gaussian>();
    // r·tw >= 1: the exponential proposal of the tail dominates.
    let (r, tw) = (Gaussian::WIDTH[1], Gaussian::WIDTH[0] - Gaussian::WIDTH[1]);
    assert!(r * tw >= 1 << 20);
    assert_eq!((r, Gaussian::HEIGHT[1], Gaussian::WIDTH[0]), (3743, 23_153_158_545_577_562, 4024));
    assert_eq!(Gaussian::ACCEPT[0], 33_512_869_592_937_905);
}

#[test]
fn exponential() {
    check::<Exponential>();
    assert_eq!(Exponential::WIDTH[0] - Exponential::WIDTH[1], 1 << 12, "tail width exactly 1");
    assert_eq!(
        (Exponential::WIDTH[1], Exponential::HEIGHT[1], Exponential::ACCEPT[0]),
        (31_526, 8_380_150_025_816_605, 31_886_021_414_290_551)
    );
}
