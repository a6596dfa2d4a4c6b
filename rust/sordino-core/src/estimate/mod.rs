//! Estimates from what was published: the nearest answers that some data could have.
//!
//! | file | concept |
//! |---|---|
//! | `projection.rs` | [`project`]: the point of `{C x : x ∈ X}` nearest to a published one, with a certificate |
//! | `nearest_cells.rs` | [`nearest_cells`]: the table nearest to what a strategy measured of it, at any size |
//! | `accelerated.rs` | accelerated projected gradients, what these two and [`project_measure`] go by |
//! | `simplex.rs` | the nearest vector of a given sum without negative entries |
//! | `constraint.rs` | [`Constraint`]: what is publicly known of the data, `X` |
//! | `columns.rs` | [`Columns`]: the matrix `C`, dense or an operator |
//! | `working_set.rs` | the same problem on the few columns that matter |
//! | `probability/` | [`project_measure`]: the probability measure on a grid whose features are nearest to published ones |
//! | `tables.rs`, `residuals.rs` | [`nearest_tables`]: the nearest tables that agree and are within limits, with a certificate |
//! | `top_down.rs` | [`top_down`]: counts of a hierarchy; in whole numbers too |
//! | `whole.rs` | [`whole_table`], [`unbiased_table`]: a table in whole numbers, with its margins |
//! | `exchange.rs` | [`exchange`]: records whose tables come near to published ones |
//! | `isotonic.rs` | [`isotonic`]: the nearest non-decreasing sequence |
//! | `cuts/` | [`cuts::search`]: the least, greatest or sparsest cut of a published graph |
//! | `recovery/` | [`recovery::recover`]: a sparse vector from few linear measurements of it |
//!
//! Post-processing: everything here is a function of published numbers and costs no privacy. It trades variance for
//! bias, so confidence intervals belong to the numbers as they were published.
//!
//! ```
//! use sordino_core::estimate::{Constraint, DenseColumns, project};
//! use std::ops::ControlFlow;
//!
//! // Three cells that hold ten records between them, measured with noise.
//! let columns = DenseColumns::new(3, 3, vec![1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])?;
//! let progress = &mut |_, _| ControlFlow::Continue(());
//! let found = project(&columns, &[8.0, 5.0, -2.0], Constraint::Total(10.0), 1e-9, 1000, progress)?;
//! assert!((found.image[0] - 6.5).abs() < 1e-9 && (found.image[1] - 3.5).abs() < 1e-9 && found.image[2] == 0.0);
//! # Ok::<(), sordino_core::error::Error>(())
//! ```

mod accelerated;
mod columns;
mod constraint;
pub mod cuts;
mod exchange;
mod isotonic;
mod nearest_cells;
mod probability;
mod projection;
pub mod recovery;
mod residuals;
mod simplex;
mod tables;
#[cfg(test)]
mod tests;
mod top_down;
mod whole;
mod working_set;

pub use columns::{Columns, DenseColumns};
pub use constraint::Constraint;
pub use exchange::{Pairs, exchange};
pub use isotonic::isotonic;
pub use nearest_cells::{NearestCells, nearest_cells};
pub use probability::{Factor, Measure, project_measure};
pub use projection::{MAX_ITERATIONS, Projection, project};
pub use residuals::Residuals;
pub(crate) use tables::near_tables;
pub use tables::{NearestProblem, NearestTables, nearest_tables};
pub use top_down::{Tree, largest_remainders, top_down, whole_top_down};
pub use whole::{unbiased_table, whole_table};
