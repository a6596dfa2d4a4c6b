//! Linear transforms: real and multi-dimensional Fourier, Walsh-Hadamard, exact integer convolution, and the
//! orthonormal bases in which data may be sparse.

mod basis;
mod cosine;
pub(crate) mod exact;
pub(crate) mod fourier;
mod given;
pub(crate) mod group;
mod haar;
pub(crate) mod hadamard;
pub(crate) mod wide;

pub use basis::{Basis, BasisName, NamedBasis};
pub use cosine::Cosine;
pub use given::{BasisFunction, GivenBasis};
