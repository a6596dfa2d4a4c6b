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

    proptest! {
        #[test]
        fn operations_never_fall_below(a in 0u64..1 << 52, b in 0u64..1 << 52) {
            let (x, y) = (Upper::integer(a.into()), Upper::integer(b.into()));
            let product = u128::from(a) * u128::from(b);
            prop_assert!((x * y).get() as u128 >= product);
            prop_assert!((x + y).get() as u128 >= u128::from(a) + u128::from(b));
            let root = x.sqrt().get();
            // root^2 >= a, checked exactly: root has 53 bits, so compare in scaled integers.
            let scaled = (root * 2f64.powi(26)).floor() as u128 + 1;
            prop_assert!(scaled * scaled >= u128::from(a) << 52);
        }
    }
}
