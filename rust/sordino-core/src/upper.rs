//! Upper bounds in floating point: every operation rounds up, and is exact where the result is.

/// A non-negative number that is known to be an upper bound.
///
/// Each operation computes in round-to-nearest and steps to the next double above if that fell short, so
/// the result is never below the exact result of the operation on the operands.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Upper(f64);

impl Upper {
    /// The bound zero, exact.
    pub const ZERO: Self = Self(0.0);

    /// A value that is exact as it stands (an integer below 2^53, a power of two).
    ///
    /// # Panics
    /// If `value` is negative or not finite: a bug of the caller.
    pub fn exact(value: f64) -> Self {
        assert!(value >= 0.0 && value.is_finite(), "an upper bound must be finite and non-negative");
        Self(value)
    }

    /// A computed value with at most `ulps` units in the last place of error.
    ///
    /// # Panics
    /// If `value` is negative or not finite.
    pub fn rounded(value: f64, ulps: u32) -> Self {
        let mut up = Self::exact(value).0;
        for _ in 0..ulps {
            up = up.next_up();
        }
        Self(up)
    }

    /// The smallest double at or above an integer.
    pub fn integer(value: u128) -> Self {
        let nearest = value as f64;
        // `as u128` is exact here unless it saturates, and then `nearest` is 2^128 > value.
        if nearest >= 2f64.powi(128) || nearest as u128 >= value { Self(nearest) } else { Self(nearest.next_up()) }
    }

    /// The bound as a number.
    pub fn get(self) -> f64 {
        self.0
    }

    /// Square root, rounded up.
    #[must_use]
    pub fn sqrt(self) -> Self {
        let root = self.0.sqrt();
        // The remainder root² − self is exact in one fused step.
        Self(if root.mul_add(root, -self.0) >= 0.0 { root } else { root.next_up() })
    }

    /// The larger of two bounds.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self(self.0.max(other.0))
    }

    /// The smaller of two bounds on the same quantity.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }

    /// Multiplication by an exact power of two; no rounding unless the result is subnormal.
    #[must_use]
    pub fn scaled(self, exponent: i32) -> Self {
        let value = self.0 * 2f64.powi(exponent);
        Self(if value < f64::MIN_POSITIVE && self.0 > 0.0 { value.next_up() } else { value })
    }
}

impl std::ops::Add for Upper {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        // Two-sum: the exact error of the addition (Knuth).
        let part = sum - self.0;
        let lost = (self.0 - (sum - part)) + (other.0 - part);
        Self(if lost <= 0.0 { sum } else { sum.next_up() })
    }
}

impl std::ops::Mul for Upper {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let product = self.0 * other.0;
        // A fused step shows the exact error, unless it underflows: then step up.
        let exact = product == 0.0 && (self.0 == 0.0 || other.0 == 0.0) || product > 1e-250;
        Self(if exact && self.0.mul_add(other.0, -product) <= 0.0 { product } else { product.next_up() })
    }
}

#[cfg(test)]
mod tests {
    use super::Upper;
    use proptest::prelude::*;

    #[test]
    fn integers_round_up() {
        assert_eq!(Upper::integer((1 << 53) + 1).get(), 9_007_199_254_740_994.0);
        assert_eq!(Upper::integer(1 << 100).get(), 2f64.powi(100));
        assert!(Upper::integer(u128::MAX).get() >= 2f64.powi(128));
    }

    /// Numbers of 53 bits at some exponent: exact as doubles, and as integers of 128 bits.
    fn number() -> impl Strategy<Value = u128> {
        (prop_oneof![0u64..1 << 53, Just(1), Just((1 << 53) - 1)], 0u32..20).prop_map(|(a, e)| u128::from(a) << e)
    }

    /// Fails unless a bound is the smallest double that is not below an integer.
    fn is_least(bound: Upper, exact: u128) -> Result<(), TestCaseError> {
        let found = bound.get();
        prop_assert!(found as u128 >= exact && found == found.trunc(), "{found} is below {exact}");
        prop_assert!(found == 0.0 || (found.next_down() as u128) < exact, "{found} is not the least above {exact}");
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn operations_round_up_to_the_next_double(a in number(), b in number(), any in any::<u128>(), bits in 0u32..128) {
            let (x, y) = (Upper::integer(a), Upper::integer(b));
            prop_assert_eq!(x.get() as u128, a);
            is_least(x + y, a + b)?;
            let (c, d) = (a >> 20, b >> 20);
            is_least(Upper::integer(c) * Upper::integer(d), c * d)?;
            is_least(Upper::integer(any >> bits >> 1), any >> bits >> 1)?;
            prop_assert_eq!((x.max(y).get(), x.min(y).get()), (x.get().max(y.get()), x.get().min(y.get())));
        }

        #[test]
        fn roots_round_up_to_the_next_double(a in 1u64..1 << 53) {
            // root = m·2^-s with 53 bits of m: squares are compared in integers.
            let square = |root: f64| {
                let s = 52 - i32::from((root.to_bits() >> 52) as i16 - 1023);
                let m = (root * 2f64.powi(s)) as u128;
                (m * m, u128::from(a) << (2 * s))
            };
            let root = Upper::integer(a.into()).sqrt().get();
            let (above, exact) = square(root);
            prop_assert!(above >= exact);
            let (below, exact) = square(root.next_down());
            prop_assert!(below < exact);
        }
    }

    #[test]
    fn steps_zeros_and_what_is_too_small() {
        let one = Upper::exact(1.0);
        assert_eq!([0, 1, 3].map(|ulps| Upper::rounded(1.0, ulps).get().to_bits() - 1f64.to_bits()), [0, 1, 3]);
        assert_eq!(Upper::integer(u128::MAX).get(), 2f64.powi(128));
        assert_eq!(Upper::integer((1 << 127) + 1).get(), 2f64.powi(127).next_up());
        // A power of two is exact, unless what it makes is subnormal: then a step more.
        assert_eq!((Upper::exact(3.0).scaled(4).get(), Upper::exact(3.0).scaled(-1).get()), (48.0, 1.5));
        assert_eq!(one.scaled(-1022).get(), f64::MIN_POSITIVE);
        let subnormal = 2f64.powi(-1000) * 2f64.powi(-30);
        assert_eq!(Upper::exact(2f64.powi(-10).next_up()).scaled(-1020).get(), subnormal.next_up());
        assert_eq!(Upper::exact(1e-300).scaled(-1000).get(), 5e-324);
        assert_eq!(Upper::ZERO.scaled(-1074), Upper::ZERO);
        // Products of zero are zero; others that underflow are not.
        for (a, b) in [(Upper::ZERO, one), (one, Upper::ZERO), (Upper::ZERO, Upper::ZERO)] {
            assert_eq!(a * b, Upper::ZERO);
        }
        let small = Upper::exact(1e-200);
        assert_eq!((small * small).get(), 5e-324);
        assert_eq!((Upper::exact(2f64.powi(-830)) * one).get(), 2f64.powi(-830));
        assert!((Upper::exact(1e-160) * Upper::exact(1e-160)).get() > 1e-320);
        let tiny = Upper::exact(2f64.powi(-900));
        assert_eq!((tiny * one).get(), 2f64.powi(-900).next_up());
        assert_eq!((Upper::ZERO + one, one + Upper::ZERO), (one, one));
        assert_eq!((one + Upper::exact(2f64.powi(-60))).get(), 1f64.next_up());
        assert_eq!(Upper::ZERO.sqrt(), Upper::ZERO);
    }

    #[test]
    #[should_panic(expected = "non-negative")]
    fn no_bound_is_negative() {
        Upper::exact(-1.0);
    }

    #[test]
    #[should_panic(expected = "finite")]
    fn no_bound_is_infinite() {
        Upper::rounded(f64::INFINITY, 1);
    }
}
