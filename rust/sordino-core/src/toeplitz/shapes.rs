//! Shapes of the row scaling of [`super::TwoDiagonals`], fitted once and interpolated in `log n`.

use crate::objective::Objective;

/// The row scaling `d₁(t) = (t + αn)^p (n − 1 − t + b)^q`, up to a factor.
///
/// Early rows and late rows have smaller answers' errors than the middle; scaling them up moves noise there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    /// `α`, positive: how far before the first step the first power starts, in units of the horizon.
    pub alpha: f64,
    /// `p`, its exponent.
    pub p: f64,
    /// `b`, positive: how far after the last step the second power ends, in steps.
    pub b: f64,
    /// `q`, its exponent.
    pub q: f64,
}

impl Shape {
    /// `d₁ = 1`.
    pub const FLAT: Self = Self { alpha: 1.0, p: 0.0, b: 1.0, q: 0.0 };

    /// The optimum for `n` steps: of the table at powers of two, interpolated between (`α` and `b`
    /// geometrically), constant beyond 2^20.
    pub(super) fn at(n: usize, objective: Objective) -> Self {
        let table = match objective {
            Objective::Max => &MAX,
            Objective::Mean => &MEAN,
        };
        let place = (n as f64).log2().clamp(1.0, table.len() as f64) - 1.0;
        let (low, part) = (place.floor(), place.fract());
        let (a, b) = (table[low as usize], table[(low as usize + 1).min(table.len() - 1)]);
        let between = |i: usize| a[i] + part * (b[i] - a[i]);
        let geometric = |i: usize| a[i].powf(1.0 - part) * b[i].powf(part);
        Self { alpha: geometric(0), p: between(1), b: geometric(2), q: between(3) }
    }

    /// `d₁`, scaled to a largest entry of 1.
    pub(super) fn rows(&self, n: usize) -> Vec<f64> {
        let length = n as f64;
        let log = |t: usize| {
            let t = t as f64;
            self.p * (t + self.alpha * length).ln() + self.q * (length - 1.0 - t + self.b).ln()
        };
        let logs: Vec<f64> = (0..n).map(log).collect();
        let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        logs.into_iter().map(|log| (log - top).exp()).collect()
    }
}

/// `[α, p, b, q]` at `n = 2^1, …, 2^20`, least largest error.
const MAX: [[f64; 4]; 20] = [[0.033, 0.261, 0.988, 0.274]; 20];

/// `[α, p, b, q]` at `n = 2^1, …, 2^20`, least mean square error.
const MEAN: [[f64; 4]; 20] = [[0.045, 0.25, 0.45, 0.385]; 20];
