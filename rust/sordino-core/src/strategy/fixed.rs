//! A real matrix in fixed point: products with integers are exact, whatever the order of summation.

use crate::error::Error;
use crate::parallel::{fill, in_pieces};

/// `B = entries·2^-bits`, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fixed {
    pub rows: usize,
    pub columns: usize,
    pub entries: Vec<i64>,
    pub bits: i32,
}

impl Fixed {
    /// The nearest matrix whose largest entry has so many bits.
    ///
    /// # Errors
    /// If the shape does not match, an entry is not finite, or all are zero.
    pub(super) fn new(rows: usize, columns: usize, entries: &[f64], entry_bits: u32) -> Result<Self, Error> {
        Error::check_len("strategy", rows.saturating_mul(columns), entries.len())?;
        let largest = entries.iter().fold(0.0f64, |m, v| if v.is_finite() { m.max(v.abs()) } else { f64::INFINITY });
        if largest == 0.0 || !(1e-150..=1e150).contains(&largest) {
            return Err(Error::invalid("strategy", "entries must be finite and not all zero"));
        }
        let bits = entry_bits as i32 - largest.log2().ceil() as i32;
        // Two steps: the scale of tiny matrices is out of the range of powers.
        let (half, rest) = (2f64.powi(bits / 2), 2f64.powi(bits - bits / 2));
        let entries = entries.iter().map(|v| (v * half * rest).round() as i64).collect();
        Ok(Self { rows, columns, entries, bits })
    }

    /// The matrix in floating point; entries beyond 53 bits are rounded once more.
    pub(super) fn to_floats(&self) -> Vec<f64> {
        let (half, rest) = (2f64.powi(-self.bits / 2), 2f64.powi(-(self.bits - self.bits / 2)));
        self.entries.iter().map(|k| *k as f64 * half * rest).collect()
    }

    fn row(&self, i: usize) -> &[i64] {
        &self.entries[i * self.columns..(i + 1) * self.columns]
    }

    /// `max_i Σ_j |b_ij|` in units of `2^-bits`, an upper bound.
    pub(super) fn fullest_row(&self) -> f64 {
        let sum = |row: &[i64]| row.iter().map(|k| k.unsigned_abs() as f64).sum::<f64>();
        self.entries.chunks_exact(self.columns).map(sum).fold(0.0, f64::max) * (1.0 + 1e-9)
    }

    /// `out = B x` for `x` that is zero outside of the given columns.
    pub(super) fn apply_sparse(&self, x: &[i64], nonzero: &[usize], out: &mut [i128]) {
        fill(out, |i| nonzero.iter().map(|j| i128::from(self.row(i)[*j]) * i128::from(x[*j])).sum());
    }

    /// The same as [`Self::apply`], newly allocated.
    pub(super) fn along<T: Copy + Into<i128> + Sync>(&self, x: &[T], inner: usize) -> Vec<i128> {
        let mut out = vec![0; x.len() / self.columns * self.rows];
        self.apply(x, inner, &mut out);
        out
    }

    /// `out = B x` along the last axis but `inner`: `x` is `outer × columns × inner`, `out` is `outer × rows × inner`,
    /// in units of `2^-bits`.
    pub(super) fn apply<T: Copy + Into<i128> + Sync>(&self, x: &[T], inner: usize, out: &mut [i128]) {
        if inner == 1 {
            // The usual case: a sum that stays in registers.
            for (out, block) in out.chunks_exact_mut(self.rows).zip(x.chunks_exact(self.columns)) {
                fill(out, |i| self.row(i).iter().zip(block).map(|(b, x)| i128::from(*b) * (*x).into()).sum());
            }
            return;
        }
        let outer_rows = self.rows * inner;
        in_pieces(out, inner, &|at, slot| {
            let (outer, row) = (at / outer_rows, self.row(at / inner % self.rows));
            let block = &x[outer * self.columns * inner..(outer + 1) * self.columns * inner];
            slot.fill(0);
            for (b, x) in row.iter().zip(block.chunks_exact(inner)) {
                for (sum, x) in slot.iter_mut().zip(x) {
                    *sum += i128::from(*b) * (*x).into();
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::Fixed;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn products_are_exact_along_any_axis(
            entries in prop::collection::vec(-1e3f64..1e3, 6), x in prop::collection::vec(-(1i64 << 50)..1 << 50, 18),
        ) {
            prop_assume!(entries.iter().any(|v| v.abs() > 1e-6));
            let fixed = Fixed::new(2, 3, &entries, 58).unwrap();
            for (approximate, exact) in entries.iter().zip(fixed.to_floats()) {
                prop_assert!((approximate - exact).abs() <= 1e3 * 2f64.powi(-57));
            }
            for inner in [1, 2, 3, 6] {
                let outer = 18 / 3 / inner;
                let mut out = vec![0; outer * 2 * inner];
                fixed.apply(&x, inner, &mut out);
                for (at, value) in out.iter().enumerate() {
                    let (o, i, k) = (at / (2 * inner), at / inner % 2, at % inner);
                    let sum: i128 = (0..3)
                        .map(|j| i128::from(fixed.entries[i * 3 + j]) * i128::from(x[(o * 3 + j) * inner + k]))
                        .sum();
                    prop_assert_eq!(*value, sum);
                }
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Fixed::new(2, 2, &[1.0; 3], 58).is_err());
        assert!(Fixed::new(1, 2, &[0.0; 2], 58).is_err());
        assert!(Fixed::new(1, 2, &[f64::NAN, 1.0], 58).is_err());
        assert_eq!(Fixed::new(1, 1, &[1.0], 58).unwrap().entries[0], 1 << 58);
    }
}
