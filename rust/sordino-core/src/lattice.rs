//! The lattice `g·Z`, `g = 2^e`: rounding, saturation and the bounds that keep integers exact.
//!
//! Values are clamped to ±2^61 units before noise (1-Lipschitz in each coordinate, so no
//! sensitivity grows), noise is clipped no earlier than ±3·2^61, sums are clamped to ±2^62: the
//! last is post-processing of the noisy sum, and nothing ever wraps.

/// Clamp on an encoded value, in lattice units.
pub(crate) const VALUE_LIMIT: i64 = 1 << 61;
/// Clamp on a published value, in lattice units.
pub(crate) const OUTPUT_LIMIT: i64 = 1 << 62;
/// Plans keep declared magnitudes below this many units, so that no clamp acts on honest data.
pub(crate) const MAGNITUDE_LIMIT: f64 = (1u64 << 60) as f64;

/// The published lattice integer: value plus noise, saturating.
#[inline]
pub(crate) fn add_noise(value: i64, noise: i64) -> i64 {
    value.saturating_add(noise).clamp(-OUTPUT_LIMIT, OUTPUT_LIMIT)
}

/// An exact integer in units of the grid `2^exponent`, rounded half up where the grid is coarser.
#[inline]
pub(crate) fn integer_to_units(value: i64, exponent: i32) -> i64 {
    if exponent <= 0 {
        let shift = exponent.unsigned_abs();
        let limit = if shift < 61 { VALUE_LIMIT >> shift } else { 0 };
        // A value within the limit shifts without overflow; one beyond it is clamped.
        if value > limit {
            VALUE_LIMIT
        } else if value < -limit {
            -VALUE_LIMIT
        } else {
            value << shift.min(61)
        }
    } else {
        let shift = exponent.unsigned_abs().min(63);
        let half = 1i128 << (shift - 1);
        (((i128::from(value) + half) >> shift) as i64).clamp(-VALUE_LIMIT, VALUE_LIMIT)
    }
}

/// A float in units of the grid `2^exponent`, rounded to the nearest.
#[inline]
pub(crate) fn float_to_units(value: f64, exponent: i32) -> i64 {
    // Scaling by a power of two is exact; the cast saturates.
    let limit = VALUE_LIMIT as f64;
    (value * 2f64.powi(-exponent)).round().clamp(-limit, limit) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Integers of 64 bits: any, small, or beside a power of two.
    fn integer() -> impl Strategy<Value = i64> {
        let beside = (0u32..63, -2i64..=2, any::<bool>());
        let beside = beside.prop_map(|(e, off, plus)| if plus { (1 << e) + off } else { off - (1 << e) });
        prop_oneof![any::<i64>(), -9i64..9, beside, Just(i64::MIN), Just(i64::MAX)]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn conversion_is_that_of_wide_integers(value in integer(), e in -70i32..=63) {
            let (wide, limit) = (i128::from(value), i128::from(VALUE_LIMIT));
            let exact = match e {
                ..-62 => wide.signum() << 62,
                -62..=0 => wide << -e,
                _ => (wide + (1 << (e - 1))).div_euclid(1 << e),
            };
            prop_assert_eq!(i128::from(integer_to_units(value, e)), exact.clamp(-limit, limit));
        }
    }

    proptest! {
        #[test]
        fn conversion_is_monotone_and_moves_neighbours_by_at_most_one_cell(
            a in any::<i64>(), d in 0i64..1 << 20, e in -62i32..40,
        ) {
            let b = a.saturating_add(d);
            let (x, y) = (integer_to_units(a, e), integer_to_units(b, e));
            prop_assert!(x <= y && x.abs() <= VALUE_LIMIT && y.abs() <= VALUE_LIMIT);
            let true_gap = (i128::from(b) - i128::from(a)) as f64 * 2f64.powi(-e);
            let gap = (i128::from(y) - i128::from(x)) as f64;
            // On a grid that divides 1 nothing grows; on a coarser one at most one unit.
            let slack = f64::from(u8::from(e > 0));
            prop_assert!(gap <= true_gap + slack);
        }

        #[test]
        fn sums_saturate(a in -VALUE_LIMIT..=VALUE_LIMIT, k in -(3i64 << 61)..=3 << 61) {
            let sum = (i128::from(a) + i128::from(k)).clamp(-(1 << 62), 1 << 62);
            prop_assert_eq!(i128::from(add_noise(a, k)), sum);
        }

        #[test]
        fn floats_round_to_the_nearest(value in -1e9f64..1e9, e in -20i32..5) {
            let units = float_to_units(value, e);
            prop_assert!((units as f64 * 2f64.powi(e) - value).abs() <= 2f64.powi(e - 1));
        }
    }

    #[test]
    fn huge_floats_are_clamped() {
        assert_eq!(float_to_units(1e300, 0), VALUE_LIMIT);
        assert_eq!(float_to_units(-1e300, -30), -VALUE_LIMIT);
        assert_eq!((float_to_units(3.0, -2), float_to_units(-6.0, 2), float_to_units(5.0, 1)), (12, -2, 3));
        let saturated = [add_noise(i64::MAX, i64::MAX), add_noise(i64::MIN, i64::MIN), add_noise(3, -5)];
        assert_eq!(saturated, [OUTPUT_LIMIT, -OUTPUT_LIMIT, -2]);
    }
}
