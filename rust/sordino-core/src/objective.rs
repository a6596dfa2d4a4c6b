//! Which error is minimised.

/// A norm of the answers' standard deviations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Objective {
    /// Their root mean square.
    Mean,
    /// The largest.
    Max,
}
