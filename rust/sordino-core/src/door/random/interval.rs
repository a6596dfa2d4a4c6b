//! Ends of what is computed from cells, rounded outward.

use num_bigint::BigUint;

/// The Euclidean norm of a vector of magnitudes.
pub(super) fn norm_f64(ends: &[(f64, f64)]) -> (f64, f64) {
    let (mut low, mut high) = (0.0f64, 0.0f64);
    for (a, b) in ends {
        low = (low + (a * a).next_down()).next_down().max(0.0);
        high = (high + (b * b).next_up()).next_up();
    }
    (low.sqrt().next_down().max(0.0), high.sqrt().next_up())
}

/// The same in integers, in the unit of the ends.
pub(super) fn norm_wide(ends: &[(BigUint, BigUint)]) -> (BigUint, BigUint) {
    let squares =
        |pick: fn(&(BigUint, BigUint)) -> &BigUint| -> BigUint { ends.iter().map(|end| pick(end) * pick(end)).sum() };
    (squares(|end| &end.0).sqrt(), squares(|end| &end.1).sqrt() + 1u8)
}

/// What all of an interval of magnitudes rounds to.
pub(super) fn round_f64(low: f64, high: f64) -> Option<u64> {
    let least = (low + 0.5).next_down().floor();
    let most = (high + 0.5).next_up().floor();
    (least == most && most < 2f64.powi(52)).then_some(least as u64)
}
