//! Orthonormal bases `Ψ` in which data may be sparse, as operators with their adjoint.

use crate::error::Error;
use crate::transform::cosine::Cosine;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::transform::haar;
use crate::upper::Upper;

/// An orthonormal basis of `R^n`: `x = Ψ c`, `c = Ψᵀ x`, both in place.
///
/// The adjoint is the inverse; an implementation for which it is not makes recoveries wrong, never less private.
/// [`Self::column_l1`] alone enters a sensitivity.
pub trait Basis: Send + Sync + std::fmt::Debug {
    /// Dimension `n`.
    fn len(&self) -> usize;

    /// Whether the dimension is zero; it never is.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `x ← Ψᵀ x`: coefficients of a signal.
    fn analyze(&self, x: &mut [f64]);

    /// `c ← Ψ c`: the signal of these coefficients.
    fn synthesize(&self, c: &mut [f64]);

    /// Upper bound of `max_j ‖Ψᵀ e_j‖₁`: what one record changes in all coefficients together.
    fn column_l1(&self) -> Upper;

    /// Bound of `‖fl(Ψᵀx) − Ψᵀx‖₂/‖x‖₂` and of the rounding of sums of its entries.
    fn relative_error(&self) -> f64;
}

/// The bases that are built in; kinds are never removed or re-meant.
#[derive(Debug, Clone)]
pub enum NamedBasis {
    /// The cells themselves.
    Standard(usize),
    /// Haar wavelets, a power of two of them, coarse to fine.
    Haar(usize),
    /// Cosines of rising frequency, any number.
    Cosine(Cosine),
}

/// The name of a basis that is built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasisName {
    /// [`NamedBasis::Standard`].
    Standard,
    /// [`NamedBasis::Haar`].
    Haar,
    /// [`NamedBasis::Cosine`].
    Cosine,
}

impl NamedBasis {
    /// The basis of this name with this many elements.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for a number of elements that the basis does not have.
    pub fn new(name: BasisName, len: usize) -> Result<Self, Error> {
        if len == 0 {
            return Err(Error::invalid("cells", "must be at least 1"));
        }
        match name {
            BasisName::Standard => Ok(Self::Standard(len)),
            BasisName::Haar if len.is_power_of_two() => Ok(Self::Haar(len)),
            BasisName::Haar => Err(Error::invalid("cells", "Haar wavelets come in powers of two")),
            BasisName::Cosine => Ok(Self::Cosine(Cosine::new(len))),
        }
    }
}

impl Basis for NamedBasis {
    fn len(&self) -> usize {
        match self {
            Self::Standard(len) | Self::Haar(len) => *len,
            Self::Cosine(cosine) => cosine.len(),
        }
    }

    fn analyze(&self, x: &mut [f64]) {
        match self {
            Self::Standard(_) => {}
            Self::Haar(_) => haar::analyze(x),
            Self::Cosine(cosine) => cosine.analyze(x),
        }
    }

    fn synthesize(&self, c: &mut [f64]) {
        match self {
            Self::Standard(_) => {}
            Self::Haar(_) => haar::synthesize(c),
            Self::Cosine(cosine) => cosine.synthesize(c),
        }
    }

    fn column_l1(&self) -> Upper {
        match self {
            Self::Standard(_) => Upper::exact(1.0),
            Self::Haar(len) => haar::column_l1(*len),
            Self::Cosine(cosine) => cosine.column_l1(),
        }
    }

    /// Haar: three roundings a level. Cosine: those of the Fourier transform, and a product.
    fn relative_error(&self) -> f64 {
        let levels = self.len().next_power_of_two().trailing_zeros() + 1;
        match self {
            Self::Standard(_) => 8.0 * UNIT_ROUNDOFF,
            Self::Haar(_) => 4.0 * f64::from(levels + 2) * UNIT_ROUNDOFF,
            Self::Cosine(_) => 64.0 * f64::from(levels + 2) * UNIT_ROUNDOFF,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Basis, BasisName, NamedBasis};
    use proptest::prelude::*;

    /// Dense matrices of the definitions, row `i` the `i`-th element of the basis.
    fn dense(name: BasisName, n: usize) -> Vec<Vec<f64>> {
        let norm = |k: usize| if k == 0 { (1.0 / n as f64).sqrt() } else { (2.0 / n as f64).sqrt() };
        match name {
            BasisName::Haar => {
                let mut rows = vec![vec![(1.0 / n as f64).sqrt(); n]];
                let mut width = n;
                while width > 1 {
                    for start in (0..n).step_by(width) {
                        let mut row = vec![0.0; n];
                        let height = (1.0 / width as f64).sqrt();
                        row[start..start + width / 2].fill(height);
                        row[start + width / 2..start + width].fill(-height);
                        rows.push(row);
                    }
                    width /= 2;
                }
                rows
            }
            BasisName::Cosine => (0..n)
                .map(|k| {
                    let angle = |j: usize| std::f64::consts::PI * k as f64 * (2 * j + 1) as f64 / (2 * n) as f64;
                    (0..n).map(|j| norm(k) * angle(j).cos()).collect()
                })
                .collect(),
            BasisName::Standard => (0..n).map(|k| (0..n).map(|j| f64::from(u8::from(j == k))).collect()).collect(),
        }
    }

    #[test]
    fn transforms_are_their_definitions() {
        for (name, n) in [
            (BasisName::Haar, 1),
            (BasisName::Haar, 2),
            (BasisName::Haar, 64),
            (BasisName::Cosine, 1),
            (BasisName::Cosine, 2),
            (BasisName::Cosine, 7),
        ]
        .into_iter()
        .chain([(BasisName::Cosine, 60), (BasisName::Cosine, 64), (BasisName::Standard, 5)])
        {
            let basis = NamedBasis::new(name, n).unwrap();
            let matrix = dense(name, n);
            let mut most = 0.0f64;
            for j in 0..n {
                let mut x = vec![0.0; n];
                x[j] = 1.0;
                basis.analyze(&mut x);
                for (k, c) in x.iter().enumerate() {
                    assert!((c - matrix[k][j]).abs() < 1e-14, "{name:?} {n}: {c} for {}", matrix[k][j]);
                }
                most = most.max(x.iter().map(|c| c.abs()).sum());
            }
            let bound = basis.column_l1().get();
            assert!(bound >= most && bound < most * (1.0 + 1e-9), "{name:?} {n}: {bound} for {most}");
        }
    }

    /// Published values: 2.3921 and 2.4087 for Haar, 57.6 and 230.5 for cosines.
    #[test]
    fn column_bounds_at_large_sizes() {
        let bound = |name, n| NamedBasis::new(name, n).unwrap().column_l1().get();
        assert!((bound(BasisName::Haar, 1 << 12) - 2.3921).abs() < 1e-4);
        assert!((bound(BasisName::Haar, 1 << 16) - 2.4087).abs() < 1e-4);
        assert!((bound(BasisName::Cosine, 1 << 12) - 57.6).abs() < 0.05);
        assert!((bound(BasisName::Cosine, 1 << 16) - 230.5).abs() < 0.05);
    }

    #[test]
    #[ignore = "seconds; run by `make test-slow`"]
    fn large_transforms_invert_to_1e_13() {
        for (name, n) in [
            (BasisName::Haar, 1usize << 20),
            (BasisName::Cosine, 1 << 20),
            (BasisName::Cosine, 1_000_003),
            (BasisName::Cosine, 999_999),
        ] {
            let basis = NamedBasis::new(name, n).unwrap();
            let x: Vec<f64> = (0..n).map(|i| ((i * 7919) % 1009) as f64 / 500.0 - 1.0).collect();
            let mut c = x.clone();
            basis.analyze(&mut c);
            let energy = |v: &[f64]| v.iter().map(|a| a * a).sum::<f64>();
            assert!((energy(&c) / energy(&x) - 1.0).abs() < 1e-10, "{name:?} {n}");
            basis.synthesize(&mut c);
            let error = c.iter().zip(&x).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(error < 1e-13, "{name:?} {n}: {error}");
        }
    }

    #[test]
    fn bad_sizes_are_refused() {
        for (name, n) in [(BasisName::Haar, 12), (BasisName::Haar, 0), (BasisName::Cosine, 0)] {
            assert!(NamedBasis::new(name, n).is_err());
        }
    }

    proptest! {
        #[test]
        fn adjoint_is_inverse(x in prop::collection::vec(-1e3f64..1e3, 1..200), haar in any::<bool>()) {
            let mut x = x;
            if haar {
                x.resize(x.len().next_power_of_two(), 0.0);
            }
            let basis = NamedBasis::new(if haar { BasisName::Haar } else { BasisName::Cosine }, x.len()).unwrap();
            let mut c = x.clone();
            basis.synthesize(&mut c);
            let dot: f64 = {
                let mut a = x.clone();
                basis.analyze(&mut a);
                a.iter().zip(&x).map(|(a, b)| a * b).sum()
            };
            let other: f64 = c.iter().zip(&x).map(|(a, b)| a * b).sum();
            prop_assert!((dot - other).abs() < 1e-7);
            basis.analyze(&mut c);
            for (a, b) in c.iter().zip(&x) {
                prop_assert!((a - b).abs() < 1e-10);
            }
        }
    }
}
