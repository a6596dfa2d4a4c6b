//! The features of one coordinate.

use super::certificates;
use crate::error::Error;

/// Largest number of Chebyshev polynomials on an axis: the error of their recurrence grows with its square.
pub(crate) const MOST_DEGREES: usize = 1 << 13;
const UNIT_ROUNDOFF: f64 = f64::EPSILON / 2.0;

/// Chebyshev polynomials `T_0, …, T_{t−1}`, or linear combinations of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    degree: usize,
    mixing: Option<Mixing>,
}

#[derive(Debug, Clone, PartialEq)]
struct Mixing {
    features: usize,
    /// `features × degree`, row-major.
    entries: Vec<f64>,
    /// Upper bound of `Σ_a ψ_a(u)²` over the axis.
    squared: f64,
    /// Lower bound of `Σ_a ψ_a(u) ψ_a(v)`.
    least: f64,
}

impl Axis {
    /// The polynomials themselves.
    ///
    /// # Errors
    /// If there are none, or too many for double precision.
    pub fn chebyshev(degree: usize) -> Result<Self, Error> {
        if degree == 0 || degree > MOST_DEGREES {
            return Err(Error::invalid("degree", format!("must be from 1 to {MOST_DEGREES} on every axis")));
        }
        Ok(Self { degree, mixing: None })
    }

    /// Features `ψ = Γ T(u)` of a kernel `k̃(u, v) = ψ(u)ᵀψ(v)`; `mixing` is `Γ`, row-major.
    ///
    /// # Errors
    /// If the matrix is empty, ragged, too large, not finite, or its kernel exceeds 2 somewhere.
    pub fn mixed(degree: usize, mixing: Vec<f64>) -> Result<Self, Error> {
        Self::chebyshev(degree)?;
        if mixing.is_empty() || !mixing.len().is_multiple_of(degree) || mixing.len() > 1 << 20 {
            return Err(Error::invalid("mixing", "must have rows of one coefficient a polynomial"));
        }
        if !mixing.iter().all(|entry| entry.abs() <= 4.0) {
            return Err(Error::invalid("mixing", "must be numbers up to 4"));
        }
        let features = mixing.len() / degree;
        let (squared, least) = certificates::kernel_range(degree, &mixing);
        if squared > 2.0 {
            return Err(Error::invalid("mixing", "must give a kernel of at most 2"));
        }
        Ok(Self { degree, mixing: Some(Mixing { features, entries: mixing, squared, least }) })
    }

    /// Number of polynomials.
    pub fn degree(&self) -> usize {
        self.degree
    }

    /// Number of features.
    pub fn features(&self) -> usize {
        self.mixing.as_ref().map_or(self.degree, |mixing| mixing.features)
    }

    /// Whether features are polynomials themselves.
    pub fn is_plain(&self) -> bool {
        self.mixing.is_none()
    }

    /// Bound of a feature.
    pub(super) fn largest(&self) -> f64 {
        self.mixing.as_ref().map_or(1.0, |mixing| mixing.squared.sqrt().next_up())
    }

    /// Bounds of the kernel, for mixed axes: `(max k̃(u, u), min k̃(u, v))`.
    pub(super) fn kernel_range(&self) -> Option<(f64, f64)> {
        self.mixing.as_ref().map(|mixing| (mixing.squared, mixing.least))
    }

    /// Bound on the error of a computed feature.
    ///
    /// `T_{k+1} = 2u T_k − T_{k−1}` rounds twice: `2u T_k` by at most `2·roundoff·|T_k|`, the difference by
    /// `roundoff·|T_{k+1}|`. An error made `j` steps ago has grown by `|U_{j}(u)| ≤ j + 1`: in all at most
    /// `3·roundoff·k(k + 1)/2·(1 + small) ≤ 2·roundoff·k²` from `k = 4` on, checked below it too (`T_0, T_1` are exact).
    pub(super) fn error(&self) -> f64 {
        let k = (self.degree - 1) as f64;
        let polynomial = if self.degree <= 2 { 0.0 } else { 3.0 * UNIT_ROUNDOFF * k * k };
        let Some(mixing) = &self.mixing else { return polynomial };
        let rows = mixing.entries.chunks_exact(self.degree);
        let most = rows.map(|row| row.iter().map(|entry| entry.abs()).sum::<f64>()).fold(0.0, f64::max);
        most * (polynomial + (self.degree + 2) as f64 * UNIT_ROUNDOFF) * 1.01
    }

    /// Features of coordinates `u`, one row of `out` each; `polynomials` is working space.
    #[inline(always)]
    pub(super) fn fill(&self, u: &[f64], polynomials: &mut Vec<f64>, out: &mut Vec<f64>) {
        let Some(mixing) = &self.mixing else { return chebyshev(self.degree, u, out) };
        chebyshev(self.degree, u, polynomials);
        out.clear();
        out.resize(mixing.features * u.len(), 0.0);
        let rows = out.chunks_exact_mut(u.len()).zip(mixing.entries.chunks_exact(self.degree));
        for (row, coefficients) in rows {
            // One order of summation for every point, and no fused steps: what a point adds depends on it alone.
            for (coefficient, values) in coefficients.iter().zip(polynomials.chunks_exact(u.len())) {
                for (sum, value) in row.iter_mut().zip(values) {
                    *sum += coefficient * value;
                }
            }
        }
    }

    pub(super) fn describe(&self, words: &mut Vec<u64>) {
        words.push(self.degree as u64);
        if let Some(mixing) = &self.mixing {
            words.extend(mixing.entries.iter().map(|entry| entry.to_bits()));
        }
    }
}

/// `T_k(u_i)` in row `k`, column `i`.
#[inline(always)]
fn chebyshev(degree: usize, u: &[f64], out: &mut Vec<f64>) {
    let len = u.len();
    out.clear();
    out.resize(degree * len, 1.0);
    if degree > 1 {
        out[len..2 * len].copy_from_slice(u);
    }
    for k in 2..degree {
        let (before, row) = out.split_at_mut(k * len);
        let (older, last) = before[(k - 2) * len..].split_at(len);
        for (((value, last), older), u) in row[..len].iter_mut().zip(last).zip(older).zip(u) {
            *value = 2.0 * u * last - older;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Axis, chebyshev};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_recurrence_is_within_its_bound(u in -1.0f64..=1.0, degree in 3usize..400) {
            let mut out = Vec::new();
            chebyshev(degree, &[u], &mut out);
            // cos(k·arccos u) is off by k·roundoff·few itself.
            let bound = Axis::chebyshev(degree).unwrap().error() + degree as f64 * 4e-16;
            for (k, value) in out.iter().enumerate() {
                prop_assert!((value - (k as f64 * u.acos()).cos()).abs() <= bound);
            }
        }
    }

    #[test]
    fn the_ends_of_the_axis_are_exact() {
        let mut out = Vec::new();
        chebyshev(100, &[1.0, -1.0], &mut out);
        for (k, pair) in out.chunks(2).enumerate() {
            assert_eq!(pair, [1.0, if k % 2 == 0 { 1.0 } else { -1.0 }]);
        }
    }
}
