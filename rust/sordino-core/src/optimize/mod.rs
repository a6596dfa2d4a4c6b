//! Optimal strategies for dense queries, each with a certified bound below every strategy.
//!
//! | file | program | value at noise multiplier 1 |
//! |---|---|---|
//! | `mean_strategy.rs` | `min ‖L‖_F max_j‖b_j‖/√m` over `L B = A` | root mean squared error |
//! | `worst_strategy.rs` | `min max_i‖l_i‖ max_j‖b_j‖` over `L B = A` | largest standard deviation, `γ₂(A)` |
//! | `prefix_sums.rs` | either, for prefix sums, rotated lower triangular | the same |
//!
//! All run on one driver, `accelerated.rs`: Anderson acceleration of a multiplicative fixed point on the dual
//! weights. Weak duality makes every iterate a certificate: `lower` holds for all strategies, `upper` is what the returned
//! strategy does. Nothing here sees private data, and privacy never depends on convergence: the columns of a returned
//! strategy are measured, not assumed.
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
mod factorization;
pub(crate) mod linear_algebra;
mod mean_strategy;
mod prefix_sums;
mod queries;
mod range;
#[cfg(test)]
mod tests;
mod triangular;
mod worst_strategy;

pub use factorization::Optimized;
pub use mean_strategy::mean_strategy;
pub use prefix_sums::{MAX_LENGTH, TriangularFactorization, prefix_sums};
pub use queries::Queries;
pub use triangular::{Triangular, triangular};
pub use worst_strategy::worst_strategy;

use crate::error::Error;
use std::ops::ControlFlow;

/// Called after every evaluation with its number and the certified gap; `Break` ends the search, and the best so far
/// is returned with its own gap.
pub type Progress<'a> = &'a mut dyn FnMut(usize, f64) -> ControlFlow<()>;

/// When to stop.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Target {
    /// Largest `upper/lower − 1` wanted; from 1e-9 to 1.
    pub gap: f64,
    /// Evaluations after which the best so far is returned with its own gap.
    pub iterations: usize,
}

impl Default for Target {
    fn default() -> Self {
        Self { gap: 1e-4, iterations: 3000 }
    }
}

impl Target {
    fn check(self) -> Result<(), Error> {
        if !(1e-9..=1.0).contains(&self.gap) {
            return Err(Error::invalid("gap", format!("must be from 1e-9 to 1, got {}", self.gap)));
        }
        if self.iterations == 0 {
            return Err(Error::invalid("iterations", "must be at least 1"));
        }
        Ok(())
    }
}
