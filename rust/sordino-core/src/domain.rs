//! The public domain of the private input: bounds and grid, declared, never read from data.

use crate::error::Error;
use crate::upper::Upper;

/// Every cell is an integer multiple of `2^-fraction_bits`, clamped to `±max_value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Domain {
    max_value: u64,
    fraction_bits: u32,
}

impl Domain {
    /// Integer cells up to `max_value`.
    ///
    /// # Errors
    /// If `max_value` is 0 or above 2^53.
    pub fn integral(max_value: u64) -> Result<Self, Error> {
        Self::real(max_value, 0)
    }

    /// Real cells, rounded to multiples of `2^-fraction_bits` before anything else.
    ///
    /// # Errors
    /// If a cell could exceed 2^53 grid steps.
    pub fn real(max_value: u64, fraction_bits: u32) -> Result<Self, Error> {
        let fits = max_value > 0 && fraction_bits <= 53 && max_value <= (1 << 53) >> fraction_bits;
        if !fits {
            return Err(Error::invalid("max_value", "must be at least 1 and at most 2^53 grid steps"));
        }
        Ok(Self { max_value, fraction_bits })
    }

    /// Largest cell in grid steps.
    pub fn max_steps(self) -> u64 {
        self.max_value << self.fraction_bits
    }

    /// Bits after the binary point.
    pub fn fraction_bits(self) -> u32 {
        self.fraction_bits
    }

    /// Bound on the magnitude of a cell.
    pub fn max_value(self) -> u64 {
        self.max_value
    }

    /// Sensitivity in grid steps of an input whose records change a cell by at most 1.
    ///
    /// Rounding moves the difference of a changed cell by at most one step, so a record changes it by
    /// at most `2^fraction_bits + 1` steps; integer data by exactly 1.
    pub(crate) fn steps_per_record(self) -> Upper {
        if self.fraction_bits == 0 { Upper::exact(1.0) } else { Upper::integer((1u128 << self.fraction_bits) + 1) }
    }

    /// A cell in grid steps, rounded half up and clamped; not-a-number is refused by the caller.
    ///
    /// `⌊v + 1/2⌋`, computed exactly, commutes with integers: cells that differ by at most `k` steps stay
    /// within `⌈k⌉` steps. Rounding half to even, or away from zero, would not.
    pub(crate) fn steps(self, value: f64) -> i64 {
        let limit = self.max_steps() as f64;
        // Arithmetic on subnormal numbers takes many times as long: the time would tell of them.
        let subnormal = value.to_bits() << 1 < 1 << 53;
        let value = if subnormal { 0.0 } else { value };
        let scaled = (value * 2f64.powi(self.fraction_bits as i32)).clamp(-limit, limit);
        let floor = scaled.floor();
        floor as i64 + i64::from(scaled - floor >= 0.5)
    }

    /// An integer cell in grid steps, clamped.
    pub(crate) fn integer_steps(self, value: i64) -> i64 {
        let limit = self.max_value as i64;
        value.clamp(-limit, limit) << self.fraction_bits
    }
}

#[cfg(test)]
mod tests {
    use super::Domain;
    use proptest::prelude::*;

    proptest! {
        /// `⌊v·2^bits + ½⌋` in integers, clamped: of numbers with ten places more than the grid.
        #[test]
        fn cells_are_rounded_half_up_and_clamped(numerator in -(1i64 << 40)..1 << 40, bits in 0u32..20, max in 1u64..1 << 20) {
            let domain = Domain::real(max, bits).unwrap();
            let (places, limit) = (bits + 10, (max << bits) as i64);
            let value = numerator as f64 * 2f64.powi(-(places as i32));
            let exact = (numerator + (1 << 9)).div_euclid(1 << 10);
            prop_assert_eq!(domain.steps(value), exact.clamp(-limit, limit));
            let whole = numerator >> 10;
            prop_assert_eq!(domain.integer_steps(whole), whole.clamp(-(max as i64), max as i64) << bits);
        }

        #[test]
        fn rounding_moves_neighbours_by_no_more_than_a_whole_record(
            halves in -4000i32..4000, change in -1.0f64..=1.0, bits in 0u32..20,
        ) {
            let domain = Domain::real(1 << 20, bits).unwrap();
            let x = f64::from(halves) / 2.0;
            for delta in [change, 1.0, -1.0, 0.5] {
                let moved = domain.steps(x + delta).abs_diff(domain.steps(x));
                // Sums of floats may be rounded themselves; one step is charged for real data.
                prop_assert!(moved <= (1 << bits) + u64::from(bits > 0));
            }
        }
    }

    #[test]
    fn ends_of_domains() {
        assert!(Domain::integral(0).is_err() && Domain::real(0, 60).is_err() && Domain::real(1, 54).is_err());
        assert!(Domain::integral((1 << 53) + 1).is_err() && Domain::real(3, 52).is_err());
        for (max, bits) in [(1 << 53, 0), (1, 53), (2, 52), (1, 0)] {
            let domain = Domain::real(max, bits).unwrap();
            assert_eq!((domain.max_value(), domain.fraction_bits(), domain.max_steps()), (max, bits, max << bits));
            let per_record = if bits == 0 { 1.0 } else { 2f64.powi(bits as i32) + 1.0 };
            assert!(
                domain.steps_per_record().get() >= per_record
                    && domain.steps_per_record().get() <= per_record.next_up()
            );
        }
        assert_eq!(Domain::real(4, 1).unwrap().steps_per_record().get(), 3.0);
        let halves = Domain::integral(9).unwrap();
        assert_eq!([-1.5, -0.5, 0.5, 1.5, 0.49].map(|v| halves.steps(v)), [-1, 0, 1, 2, 0]);
        // What is subnormal is zero, and what is infinite is at its end.
        let values = [5e-324, -5e-324, f64::MIN_POSITIVE, -f64::MIN_POSITIVE, f64::INFINITY, f64::NEG_INFINITY];
        assert_eq!(values.map(|v| halves.steps(v)), [0, 0, 0, 0, 9, -9]);
    }
}
