//! Linear transforms: real and multi-dimensional Fourier, Walsh-Hadamard, exact integer convolution.

pub(crate) mod exact;
pub(crate) mod fourier;
pub(crate) mod group;
pub(crate) mod hadamard;
pub(crate) mod wide;
