//! Lower triangular Toeplitz matrices, for streams: strategies, power series, exact online products.
//!
//! A causal filter with taps `h_0, h_1, …` is the power series `H(z) = Σ h_j z^j`; products of matrices are products
//! of series (`series.rs`), and any causal filter has an outer factor (`outer.rs`).
//!
//! A stream of prefix (or decaying) sums is answered as `B(C x + z)`, `BC = A`, `z` white. Its error at
//! step `t` is the norm of row `t` of `B` times the largest column norm of `C`, at noise multiplier 1.
//!
//! | type | `C` | privacy holds |
//! |---|---|---|
//! | [`BufferedToeplitz`] | `1 + Σ ω_i z/(1 − θ_i z)`, a buffered linear Toeplitz operator | to a horizon, or for ever |
//! | [`unbounded()`] | the same, fitted to all horizons from 2^4 to 2^40 | for ever |
//! | [`TwoDiagonals`] | `D₁ T D₂`, `T` as above | to a hard horizon |
//!
//! The yardstick is the square root `(1 − z)^{−1/2}` of counting ([`square_root_norm_squared`]). Every
//! sensitivity is computed from the dyadic parameters that the stream itself uses.
//!
//! `inverse.rs` has the inverse of a symmetric Toeplitz matrix, for least squares on a circle.
//!
//! Sources: Fichtenberger, Henzinger & Upadhyay, ICML 2023 (square root); Dvijotham, `McMahan`, Pillutla,
//! Steinke & Thakurta, FOCS 2024 (buffered operators).

mod buffered;
mod buffered_optimizer;
mod diagonal;
mod dyadic;
mod exponentials;
mod inverse;
mod lanes;
mod noise_response;
mod online;
pub(crate) mod outer;
mod propagation;
mod secular;
pub mod series;
mod shapes;
mod square_root;
mod tails;
mod two_diagonals;
mod unbounded;

pub use buffered::{BufferedToeplitz, MAX_DEGREE, PARAMETER_BITS};
pub use buffered_optimizer::{BufferedProblem, optimize};
pub use diagonal::{DIAGONAL_BITS, Diagonal};
pub use dyadic::Dyadic;
pub(crate) use inverse::ToeplitzInverse;
pub use noise_response::NoiseResponse;
pub use online::{OnlineConvolution, OnlineKernel, OnlineState};
pub use shapes::Shape;
pub use square_root::{square_root_coefficients, square_root_norm_squared};
pub use two_diagonals::TwoDiagonals;
pub use unbounded::unbounded;
