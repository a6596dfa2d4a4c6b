//! What an attribute contributes to columns and variances of residuals.

/// Per-attribute constants of the residual operator.
#[derive(Clone, Copy)]
pub(super) struct Axis(pub(super) f64);

impl Axis {
    pub(super) fn binary(self) -> bool {
        self.0 == 2.0
    }
    /// Squared ℓ2 norm of a column: an integer.
    pub(super) fn column2(self) -> f64 {
        if self.binary() { 1.0 } else { self.0 * (self.0 - 1.0) }
    }
    /// ℓ1 norm of a column: an integer.
    pub(super) fn column1(self) -> f64 {
        if self.binary() { 1.0 } else { 2.0 * (self.0 - 1.0) }
    }
    /// Variance of a recovered cell at unit noise.
    pub(super) fn recovered(self) -> f64 {
        if self.binary() { 0.25 } else { (self.0 - 1.0) / self.0.powi(3) }
    }
    /// Variance of a recovered cell at unit noise, over the share of variance that centring leaves.
    pub(super) fn spread(self) -> f64 {
        self.recovered() * self.0 / (self.0 - 1.0)
    }
    /// Largest entry of a column: an integer.
    pub(super) fn largest(self) -> f64 {
        if self.binary() { 1.0 } else { self.0 - 1.0 }
    }
    /// Rows of the operator.
    pub(super) fn rows(self) -> usize {
        if self.binary() { 1 } else { self.0 as usize }
    }
}
