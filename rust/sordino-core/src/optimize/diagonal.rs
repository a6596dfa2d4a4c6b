//! The diagonal of `S = (AᵀA)^{1/2}`: it balances a strategy, and bounds all of them.
//!
//! **Bound.** For Gaussian noise and one changed cell the least total squared error at noise multiplier 1 is
//! `max_Z Σ_j ⟨z_j, a_j⟩²` over the matrices of spectral norm at most 1, so any of them bounds it. The polar factor of
//! `A` has `⟨z_j, a_j⟩ = s_j`: **no strategy has less than `Σ_j s_j²`**, which is never below `(Σ_j s_j)²/n`, the bound
//! of the singular values.
//!
//! For all ranges and for running sums `AᵀA` is a multiple of the inverse of a second difference, so the modes are
//! sines and cosines, and the diagonal is one Fourier transform.

use crate::error::Error;
use crate::transform::fourier::RealFourier;
use crate::workload::Workload;
use std::f64::consts::PI;

/// Eigenvalue `1/(2 sin θ)` of the root of the inverse of a second difference.
fn root_value(angle: f64) -> f64 {
    0.5 / angle.sin()
}

/// Eigenvalues of `L^{−1/2}`, `L = tridiag(−1, 2, −1)`, at the modes `sin(jkπ/(n + 1))`, `k = 1 … n`.
pub(crate) fn sine_values(len: usize) -> impl Iterator<Item = f64> {
    (1..=len).map(move |k| root_value(k as f64 * PI / (2 * (len + 1)) as f64))
}

/// The same of running sums, with first entry 1, at the modes `cos((2k − 1)(2j − 1)π/(2(2n + 1)))`.
pub(crate) fn cosine_values(len: usize) -> impl Iterator<Item = f64> {
    (1..=len).map(move |k| root_value((2 * k - 1) as f64 * PI / (4 * len + 2) as f64))
}

/// `s_j = (n + 1)^{−1/2} Σ_k l_k (1 − cos(2πjk/(n + 1)))` of all ranges, `j = 1 … n`.
fn ranges_diagonal(len: usize) -> Vec<f64> {
    let ring = RealFourier::new(len + 1);
    let values: Vec<f64> = std::iter::once(0.0).chain(sine_values(len)).collect();
    let cosines = ring.spectrum(&values);
    let scale = ((len + 1) as f64).sqrt().recip();
    (1..=len).map(|j| scale * (cosines[0].re - cosines[j.min(len + 1 - j)].re)).collect()
}

/// `s_j = 2/(2n + 1) Σ_k l_k (1 + cos((2k − 1)(2j − 1)π/(2n + 1)))` of running sums, `j = 1 … n`.
fn sums_diagonal(len: usize) -> Vec<f64> {
    let period = 4 * len + 2;
    let ring = RealFourier::new(period);
    let mut values = vec![0.0; period];
    values.iter_mut().skip(1).step_by(2).zip(cosine_values(len)).for_each(|(slot, value)| *slot = value);
    let cosines = ring.forward(&mut values);
    let total: f64 = cosines[0].re;
    (1..=len).map(|j| 2.0 / (2 * len + 1) as f64 * (total + cosines[2 * j - 1].re)).collect()
}

/// The diagonal of `(AᵀA)^{1/2}` in closed form, for all ranges and for running sums.
///
/// # Errors
/// [`Error::Unsupported`] for other workloads.
pub fn root_diagonal(workload: &Workload) -> Result<Vec<f64>, Error> {
    match (workload, workload.running_sum()) {
        (Workload::Ranges { len }, _) => Ok(ranges_diagonal(*len)),
        (_, Some((len, tap))) => Ok(sums_diagonal(len).into_iter().map(|s| tap.abs() * s).collect()),
        _ => Err(Error::Unsupported("the root has a diagonal in closed form for ranges and running sums".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::{from_rows, symmetric_eigen, transposed_product};

    fn dense_diagonal(workload: &Workload) -> Vec<f64> {
        let (rows, columns, entries) = workload.dense().unwrap();
        let queries = from_rows(rows, columns, &entries);
        let (vectors, values) = symmetric_eigen(&transposed_product(&queries, &queries)).unwrap();
        let square = |j: usize| (0..columns).map(|k| vectors[(j, k)].powi(2) * values[k].max(0.0).sqrt()).sum();
        (0..columns).map(square).collect()
    }

    #[test]
    fn the_diagonal_is_that_of_the_root() {
        for len in [1, 2, 3, 4, 7, 16, 33, 60] {
            let sums = Workload::Linear { kernel: vec![1.0; len], len, center: 0 };
            for workload in [Workload::Ranges { len }, sums] {
                let (found, known) = (root_diagonal(&workload).unwrap(), dense_diagonal(&workload));
                for (a, b) in found.iter().zip(&known) {
                    assert!((a - b).abs() <= 1e-11 * b, "{len}: {a} {b}");
                }
            }
        }
    }

    /// Total squared errors at unit noise: the bounds of two, three, eight and 32 cells.
    #[test]
    fn known_bounds() {
        for (len, bound) in [(2, 3.732_050_8), (3, 8.734_446_3), (8, 80.366_907), (32, 2_141.754_55)] {
            let total: f64 = ranges_diagonal(len).iter().map(|s| s * s).sum();
            assert!((total / bound - 1.0).abs() < 1e-7, "{len}: {total}");
        }
    }
}
