//! Product kernels: positive semi-definite, 1 on the diagonal, falling with the distance on every axis.

use crate::error::Error;

/// The kernel of one axis, as a function of `a = |u − v|/scale`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// `exp(−a²/2)`.
    Gaussian,
    /// `exp(−a)`.
    Laplace,
    /// `(1 + √3 a) exp(−√3 a)`.
    Matern32,
    /// `(1 + √5 a + 5a²/3) exp(−√5 a)`.
    Matern52,
}

/// A product of kernels of the axes, in units of the cube `[-1, 1]^d`.
#[derive(Debug, Clone, PartialEq)]
pub struct Kernel {
    profile: Profile,
    scales: Vec<f64>,
}

impl Kernel {
    /// # Errors
    /// If there are no scales, or some are not positive.
    pub fn new(profile: Profile, scales: Vec<f64>) -> Result<Self, Error> {
        if scales.is_empty() || scales.iter().any(|scale| !(*scale >= 1e-6 && *scale <= 1e6)) {
            return Err(Error::invalid("bandwidth", "must be from 1e-6 to 1e6 half-widths of the bounds"));
        }
        Ok(Self { profile, scales })
    }

    /// Number of axes.
    pub fn dimension(&self) -> usize {
        self.scales.len()
    }

    /// `k(u, v)`, with an error of at most [`Self::error`].
    pub fn value(&self, u: &[f64], v: &[f64]) -> f64 {
        let apart = u.iter().zip(v).zip(&self.scales).map(|((u, v), scale)| (u - v).abs() / scale);
        match self.profile {
            Profile::Gaussian => (-0.5 * apart.map(|a| a * a).sum::<f64>()).exp(),
            Profile::Laplace => (-apart.sum::<f64>()).exp(),
            Profile::Matern32 => {
                let (factor, sum) = apart.fold((1.0, 0.0), |(factor, sum), a| {
                    let a = 3f64.sqrt() * a;
                    (factor * (1.0 + a), sum + a)
                });
                if sum > 700.0 { 0.0 } else { factor * (-sum).exp() }
            }
            Profile::Matern52 => {
                let (factor, sum) = apart.fold((1.0, 0.0), |(factor, sum), a| {
                    let a = 5f64.sqrt() * a;
                    (factor * (1.0 + a + a * a / 3.0), sum + a)
                });
                if sum > 700.0 { 0.0 } else { factor * (-sum).exp() }
            }
        }
    }

    /// Bound on the error of a value: the exponent `s` is off by at most `(d + 6)` roundings, `s·exp(−s) ≤ 1/e`, and the
    /// factors of the Matérn kernels by as many again (the whole value is at most 1; beyond an exponent of 700 it is
    /// below 1e-200 in any dimension up to 2^10).
    pub fn error(&self) -> f64 {
        16.0 * (self.scales.len() as f64 + 8.0) * f64::EPSILON
    }

    /// Lower bound of the kernel on the cube.
    pub fn least(&self) -> f64 {
        let far = vec![1.0; self.scales.len()];
        let near = vec![-1.0; self.scales.len()];
        (self.value(&near, &far) - self.error()).max(0.0)
    }

    /// Everything that decides its values, as words.
    pub(super) fn describe(&self, words: &mut Vec<u64>) {
        words.push(self.profile as u64);
        words.extend(self.scales.iter().map(|scale| scale.to_bits()));
    }
}
