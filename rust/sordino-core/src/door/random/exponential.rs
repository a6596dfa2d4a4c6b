//! `exp(-t)` in 64-bit fixed point with a proved error: the first level of every slow decision.

use super::tables::{EXP_COARSE, EXP_FINE};

/// Error bound of [`exp_neg`] in units of `2^-64`.
///
/// Two table entries (below 1 unit each), two products and four series terms rounded down (below 1
/// each), the series cut (below `2^-63·2^64/5040 < 1`), the saturated entry for 0 (1): below 12.
#[cfg(test)]
pub(super) const EXP_ERROR: u64 = 12;

/// `2^64·exp(-t/2^64)` within 12 units (proved in `EXP_ERROR`), for `t < 16·2^64`; `None` above.
pub(super) fn exp_neg(t: u128) -> Option<u64> {
    let coarse = *EXP_COARSE.get(usize::try_from(t >> 60).ok()?)?;
    let fine = EXP_FINE[((t >> 55) & 31) as usize];
    let r = (t & ((1 << 55) - 1)) as u64; // below 2^-9
    let r2 = high(r, r);
    let r3 = high(r2, r);
    let r4 = high(r3, r);
    // 1 - exp(-r), alternating series to r^6.
    let loss = (r - r2 / 2) + (r3 / 6 - r4 / 24) + high(r4, r) / 120 - high(r4, r2) / 720;
    let table = high(coarse, fine);
    Some(table - high(table, loss))
}

/// High word of a product: `floor(a·b / 2^64)`.
#[inline]
pub(super) fn high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::{EXP_ERROR, exp_neg};
    use crate::door::random::wide::exp_neg_bounds;
    use num_bigint::BigUint;
    use proptest::prelude::*;

    fn check(t: u128) {
        let (low, high) = exp_neg_bounds(&(BigUint::from(t) << 64u32), 128);
        let value = BigUint::from(exp_neg(t).unwrap());
        let error = BigUint::from(EXP_ERROR);
        assert!((&value + &error) << 64u32 >= low, "too low at {t}");
        assert!(value << 64u32 <= high + (error << 64u32), "too high at {t}");
    }

    #[test]
    fn edges() {
        for j in 0..256u128 {
            for d in [0, 1, (1 << 55) - 1, 1 << 55, (1 << 60) - 1] {
                check((j << 60) + d);
            }
        }
        assert_eq!(exp_neg(16 << 64), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn within_its_bound(t in 0u128..16 << 64) { check(t); }
    }
}
