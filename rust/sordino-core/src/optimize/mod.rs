//! Optimal strategies for dense queries, each with a certified bound below every strategy.
//!
//! | file | program | value at noise multiplier 1 |
//! |---|---|---|
//! | `mean_strategy.rs` | `min ‖L‖_F max_j‖b_j‖/√m` over `L B = A` | root mean squared error |
//! | `several_strategy.rs` | the same with `max_v‖B v‖` over changes of several cells | root mean squared error |
//! | `balanced_root.rs` | nearly the same, from one decomposition | root mean squared error |
//! | `worst_strategy.rs` | `min max_i‖l_i‖ max_j‖b_j‖` over `L B = A` | largest standard deviation, `γ₂(A)` |
//! | `minimum_ellipsoid.rs` | least `det F` with all `‖F^{-1} a_j‖ ≤ 1` | volume, to `(1 + gap)^{r/2}` |
//! | `base_decomposition.rs` | orthogonal subspaces from the shortest axes of such ellipsoids | – |
//! | `dense_strategy.rs` | noise on these subspaces, of the best levels | root mean squared error |
//! | `p_identity/` | `min tr (BᵀB)^{-1} AᵀA`, unit ℓ1 columns, `B = [I; Θ] D^{-1}` | root mean squared error, ε = 1 |
//! | `table_cover/` | marginal tables to measure, and their shares of the ℓ1 sensitivity | root mean squared error, ε = 1 |
//! | `prefix_sums.rs` | either, for prefix sums, rotated lower triangular | the same |
//!
//! `condense.rs` makes few rows of many queries first, where the mean error is wanted, and `working_set.rs` looks at some of many
//! cells.
//!
//! What no mechanism can do, matrix mechanism or not, is in `lower_bounds/`; the discrepancy of the queries, which
//! measures the same thing, in `discrepancy/`.
//!
//! The programs run on one driver, `accelerated.rs`: Anderson acceleration of a multiplicative fixed point on the
//! dual weights. Weak duality makes every iterate a certificate: `lower` holds for all strategies, `upper` is what
//! the returned strategy does. Nothing here sees private data, and privacy never depends on convergence: the columns
//! of a returned strategy are measured, not assumed.
//!
//! ```
//! use sordino_core::optimize::{Queries, Target, mean_strategy};
//! use std::ops::ControlFlow;
//!
//! // Both cells and their sum.
//! let queries = Queries::new(3, 2, &[1.0, 0.0, 0.0, 1.0, 1.0, 1.0])?;
//! let best = mean_strategy(queries, None, Target::default(), &mut |_, _| ControlFlow::Continue(()))?;
//! assert!(best.lower <= best.upper && best.gap < 1e-4);
//! // Total squared error: the square of the nuclear norm over n, (1 + √3)²/2.
//! assert!((3.0 * best.upper.powi(2) - (1.0 + 3f64.sqrt()).powi(2) / 2.0).abs() < 1e-3);
//! # Ok::<(), sordino_core::error::Error>(())
//! ```

mod accelerated;
mod anderson;
mod balanced_root;
mod base_decomposition;
mod condense;
mod dense_strategy;
mod discrepancy;
mod factorization;
mod in_phase;
mod interior_point;
mod joined_prefixes;
mod line;
mod lower_bounds;
mod mean_strategy;
mod minimum_ellipsoid;
mod noise_levels;
mod normal;
mod p_identity;
mod prefix_sums;
mod queries;
mod range;
mod several_strategy;
mod stages;
mod table_cover;
#[cfg(test)]
mod tests;
mod triangular;
mod tridiagonal;
mod volume;
mod working_set;
mod worst_strategy;

pub use balanced_root::{balanced_root, balanced_rows};
pub use base_decomposition::{BaseDecomposition, base_decomposition};
pub use condense::condensed;
pub use dense_strategy::{Coefficients, DenseStrategy, Noise, dense_strategy};
pub use discrepancy::{Coloring, DiscrepancyBounds, coloring, hereditary_discrepancy};
pub use factorization::Optimized;
pub use in_phase::{InPhase, in_phase};
pub use joined_prefixes::joined_prefixes;
pub use line::root_diagonal;
pub(crate) use line::{Line, Symmetry};
pub use lower_bounds::{DeterminantBound, SpectralBound, VolumeBound, determinant_bound, spectral_bound, volume_bound};
pub use mean_strategy::mean_strategy;
pub use minimum_ellipsoid::{Ellipsoid, minimum_ellipsoid};
pub use p_identity::{PIdentity, p_identity, p_identity_of_line};
pub use prefix_sums::{MAX_LENGTH, TriangularFactorization, prefix_sums};
pub use queries::Queries;
pub use several_strategy::{SeveralStrategy, several_strategy};
pub(crate) use table_cover::table_cover;
pub use triangular::{Triangular, triangular};
pub use tridiagonal::{Prefixes, TimeVarying, decay_bound, prefix_bound};
pub use worst_strategy::worst_strategy;

use crate::error::Error;
use crate::linear_algebra;
use std::ops::ControlFlow;

/// Called after every evaluation with its number and the certified gap; `Break` ends the search, and the best so far
/// is returned with its own gap.
pub type Progress<'a> = &'a mut dyn FnMut(usize, f64) -> ControlFlow<()>;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target<'a> {
    /// Largest `upper/lower − 1` wanted; from 1e-9 to 1.
    pub gap: f64,
    /// Evaluations after which the best so far is returned with its own gap.
    pub iterations: usize,
    /// Weights to start from, those of an earlier result: of the cells, for the worst query of the queries and then
    /// the cells. Uniform if `None`.
    pub start: Option<&'a [f64]>,
}

impl Default for Target<'_> {
    fn default() -> Self {
        Self { gap: 1e-4, iterations: 3000, start: None }
    }
}

impl Target<'_> {
    fn check(self) -> Result<(), Error> {
        if !(1e-9..=1.0).contains(&self.gap) {
            return Err(Error::invalid("gap", format!("must be from 1e-9 to 1, got {}", self.gap)));
        }
        if self.iterations == 0 {
            return Err(Error::invalid("iterations", "must be at least 1"));
        }
        if self.start.is_some_and(|start| start.iter().any(|w| w.is_nan() || *w < 0.0)) {
            return Err(Error::invalid("start", "weights must not be negative"));
        }
        Ok(())
    }
}
