//! Dyadic parameters: what a stream computes with in integers is what its sensitivity is computed from.

use crate::error::Error;

/// Largest shift: `2^-shift` and its square stay far from the subnormal range.
pub(super) const MAX_SHIFT: u32 = 256;

/// `2^exponent` of a normal double: a stream has millions of parameters, and `powi` multiplies.
fn power_of_two(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The number `mantissa·2^-shift`, exact in integers and as a double.
///
/// Equality compares representations; [`Dyadic::nearest`] gives each value and width one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dyadic {
    mantissa: u32,
    shift: u32,
}

impl Dyadic {
    /// The number with this mantissa and shift.
    ///
    /// # Panics
    /// If the mantissa is zero or the shift above 256: a bug of the caller (in a constant, of its author).
    pub const fn new(mantissa: u32, shift: u32) -> Self {
        assert!(mantissa > 0 && shift <= MAX_SHIFT, "a dyadic parameter is positive and has a shift of at most 256");
        Self { mantissa, shift }
    }

    /// The nearest number with exactly `bits` significant bits, ties to the even mantissa.
    ///
    /// # Errors
    /// If `value` is not positive, is `2^bits` or more, or too small for a shift of 256; or if `bits` is
    /// not in `1..=32`.
    pub fn nearest(value: f64, bits: u32) -> Result<Self, Error> {
        if !(1..=32).contains(&bits) {
            return Err(Error::invalid("bits", format!("{bits} is not in 1..=32")));
        }
        let least = power_of_two(bits as i32 - 1 - MAX_SHIFT as i32);
        let end = power_of_two(bits as i32);
        if !(value >= least && value < end) {
            return Err(Error::invalid("value", format!("{value} is not in [{least:e}, {end})")));
        }
        // Exponent of a normal double: 2^exponent <= value < 2^(exponent + 1).
        let exponent = (value.to_bits() >> 52) as i32 - 1023;
        let mut shift = bits as i32 - 1 - exponent;
        let mut mantissa = (value * power_of_two(shift)).round_ties_even();
        if mantissa >= end {
            mantissa /= 2.0;
            shift -= 1;
        }
        if shift < 0 {
            return Err(Error::invalid("value", format!("{value} rounds to {end}")));
        }
        Ok(Self { mantissa: mantissa as u32, shift: shift as u32 })
    }

    /// The integer `mantissa`, positive.
    pub fn mantissa(self) -> u32 {
        self.mantissa
    }

    /// The binary digits after the point.
    pub fn shift(self) -> u32 {
        self.shift
    }

    /// The number itself; no rounding.
    pub fn value(self) -> f64 {
        f64::from(self.mantissa) * power_of_two(-(self.shift as i32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn powers_of_two() {
        for exponent in -1022..=1023 {
            assert_eq!(power_of_two(exponent), 2f64.powi(exponent));
        }
    }

    #[test]
    fn known_values() {
        assert_eq!(Dyadic::nearest(1.0, 16).unwrap(), Dyadic::new(1 << 15, 15));
        assert_eq!(Dyadic::nearest(0.3, 4).unwrap(), Dyadic::new(10, 5));
        // Rounding up into the next binade, and ties to even.
        assert_eq!(Dyadic::nearest(1.0 - 2f64.powi(-20), 16).unwrap(), Dyadic::new(1 << 15, 15));
        assert_eq!(Dyadic::nearest(8.5, 4).unwrap(), Dyadic::new(8, 0));
        assert_eq!(Dyadic::nearest(9.5, 4).unwrap(), Dyadic::new(10, 0));
        for (value, bits) in
            [(0.0, 16), (-1.0, 16), (f64::NAN, 16), (65536.0, 16), (65535.5, 16), (1e-80, 16), (1.0, 0), (1.0, 33)]
        {
            assert!(Dyadic::nearest(value, bits).is_err(), "{value} {bits}");
        }
    }

    proptest! {
        #[test]
        fn nearest_is_nearest(log in -150.0f64..0.0, bits in 2u32..=32) {
            let value = log.exp();
            let near = Dyadic::nearest(value, bits).unwrap();
            prop_assert_eq!(32 - near.mantissa().leading_zeros(), bits);
            let half_step = 2f64.powi(-(near.shift() as i32) - 1);
            prop_assert!((near.value() - value).abs() <= half_step);
        }
    }
}
