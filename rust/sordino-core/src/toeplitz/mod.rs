//! Lower triangular Toeplitz matrices: power series, factors of causal filters, exact online products.
//!
//! A causal filter with taps `h_0, h_1, …` is the power series `H(z) = Σ h_j z^j`; the first `n` answers
//! need its first `n` coefficients only, and products of matrices are products of series.

pub mod online;
pub mod outer;
pub mod series;
