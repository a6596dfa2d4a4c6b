//! The optimal factorisation of prefix sums, the query of continual release.
//!
//! `A = D C`, `A` the lower triangular matrix of ones: `D` and `C` lower triangular, as a stream needs them (Denisov
//! et al. 2022). Both least errors grow as `ln(n)/π` (Mathias 1993).

use super::mean_strategy::mean_strategy;
use super::queries::Queries;
use super::triangular::triangular;
use super::worst_strategy::worst_strategy;
use super::{Progress, Target};
use crate::error::Error;
use crate::objective::Objective;

/// Largest stream that is factorised densely.
pub const MAX_LENGTH: usize = 1024;

/// A lower triangular strategy `C` for prefix sums and its certificate, at noise multiplier 1.
#[derive(Debug, Clone, PartialEq)]
pub struct TriangularFactorization {
    /// Length of the stream, n.
    pub size: usize,
    /// `C`, n × n, row by row: positive diagonal, zeros above it, column norms at most 1.
    pub strategy: Vec<f64>,
    /// No strategy has a smaller error than this.
    pub lower: f64,
    /// The error of this strategy.
    pub upper: f64,
    /// `upper/lower − 1`.
    pub gap: f64,
    /// Standard deviation of each prefix sum: the row norms of `A C^{-1}`.
    pub stderrs: Vec<f64>,
    /// Evaluations of the program.
    pub iterations: usize,
}

/// The optimal factorisation of the prefix sums of `n ≤ 1024` inputs.
///
/// # Errors
/// If `n` is zero or too large, or the target is out of range.
pub fn prefix_sums(
    n: usize,
    objective: Objective,
    target: Target,
    progress: Progress<'_>,
) -> Result<TriangularFactorization, Error> {
    if n == 0 || n > MAX_LENGTH {
        return Err(Error::invalid("n", format!("must be 1 to {MAX_LENGTH}, got {n}")));
    }
    let ones: Vec<f64> = (0..n * n).map(|k| f64::from(u8::from(k % n <= k / n))).collect();
    let queries = Queries::new(n, n, &ones)?;
    let optimum = match objective {
        Objective::Mean => mean_strategy(queries, None, target, progress)?,
        Objective::Max => worst_strategy(queries, target, progress)?,
    };
    let rotated = triangular(n, &optimum.strategy, &ones)?;
    let upper = match objective {
        Objective::Mean => (rotated.stderrs.iter().map(|s| s * s).sum::<f64>() / n as f64).sqrt(),
        Objective::Max => rotated.stderrs.iter().copied().fold(0.0, f64::max),
    };
    Ok(TriangularFactorization {
        size: n,
        strategy: rotated.strategy,
        lower: optimum.lower,
        upper,
        gap: upper / optimum.lower - 1.0,
        stderrs: rotated.stderrs,
        iterations: optimum.iterations,
    })
}
