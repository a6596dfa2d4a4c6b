//! Geometric lower bounds on the error of private mechanisms (Nikolov, Talwar & Zhang 2013, section 3.3), each with
//! what it proves and its constant.
//!
//! | file | bound on the root mean squared error over the queries | constant |
//! |---|---|---|
//! | `determinant.rs` | `√(k/m)·det^{1/k}` of `k` cells | unspecified, and a factor `log m` |
//! | `spectral.rs` | `√(k/m)·σ_min` of `k` cells | `√((1 − δ)eᵋ)/(1 + eᵋ)` for every `(ε, δ)`-private mechanism |
//! | `volume.rs` | `k/√m·vrad` of a projection | from `1/(7.1 ε)` to `1/(2.72 ε)` for every `ε`-private mechanism |
//!
//! The paper states squares summed over the `m` queries: `m` times the square of the values here. The first two also
//! bound the hereditary discrepancy, with no unspecified constant (`discrepancy/`). All look at the queries alone, so
//! nothing here is private. Maxima over submatrices are taken greedily: every value is a bound, rarely the best one.

mod determinant;
mod spectral;
mod volume;

pub use determinant::{DeterminantBound, determinant_bound};
pub use spectral::{SpectralBound, spectral_bound};
pub use volume::{VolumeBound, volume_bound};

use super::factorization::{SLACK, not_converged};
use super::linear_algebra::{Matrix, singular_values};
use crate::error::Error;

/// Relative difference below which the smaller submatrix is preferred.
const TIE: f64 = 1e-9;

/// Largest number of cells of a submatrix.
fn check_most(most: usize) -> Result<(), Error> {
    if most == 0 { Err(Error::invalid("most", "must be at least 1")) } else { Ok(()) }
}

/// Weights that sum to 1.
fn normalised(name: &'static str, len: usize, weights: &[f64]) -> Result<Vec<f64>, Error> {
    Error::check_len(name, len, weights.len())?;
    let total: f64 = weights.iter().sum();
    if weights.iter().any(|w| w.is_nan() || *w < 0.0) || total <= 0.0 || !total.is_finite() {
        return Err(Error::invalid(name, "must not be negative, with a positive and finite sum"));
    }
    Ok(weights.iter().map(|w| w / total).collect())
}

/// Geometric mean of the singular values, for at least as many rows as columns: `det(MᵀM)^{1/(2k)}`, rounded down.
fn geometric_mean_below(matrix: &Matrix) -> Result<f64, Error> {
    let values = singular_values(matrix).ok_or_else(not_converged)?;
    let logs: f64 = values.iter().map(|s| (s - SLACK * values[0]).max(0.0).ln()).sum();
    Ok((logs / values.len() as f64).exp() * (1.0 - SLACK))
}

/// The first index whose value no later one exceeds by more than a tie.
fn first_largest(values: impl IntoIterator<Item = f64>) -> usize {
    let mut best = (0, 0.0);
    for (k, value) in values.into_iter().enumerate() {
        if value > best.1 * (1.0 + TIE) {
            best = (k, value);
        }
    }
    best.0
}
