//! Shapes of the row scaling of [`super::TwoDiagonals`], fitted once and interpolated in `log n`.

use super::diagonal::PIECE;
use crate::objective::Objective;
use rayon::prelude::*;
use std::ops::Range;

/// The row scaling `d₁(t) = (t + αn)^p (n − 1 − t + b)^q`, up to a factor.
///
/// Early answers, and after column normalisation late ones too, are more accurate than those in the middle.
/// Both powers make the rows at their end small, so that these steps draw more noise and the middle less.
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

    /// `ln d₁(t)` for `n` steps, up to a constant.
    fn log(&self, n: usize, t: usize) -> f64 {
        let (length, t) = (n as f64, t as f64);
        self.p * (t + self.alpha * length).ln() + self.q * (length - 1.0 - t + self.b).ln()
    }

    /// The largest [`log`](Self::log) of a step, as computed.
    pub(super) fn top(&self, n: usize) -> f64 {
        let (length, sum) = (n as f64, self.p + self.q);
        let mut steps = 0..n;
        // A concave function: away from its top by more than this it has fallen by more than its rounding.
        if self.p >= 0.0 && self.q >= 0.0 && sum > 0.0 {
            let whole = length * (1.0 + self.alpha) + self.b;
            let place = (self.p * whole / sum - self.alpha * length).clamp(0.0, length - 1.0);
            let near = 2.0 + 2f64.powi(-20) * whole;
            steps = (place - near).max(0.0) as usize..n.min((place + near) as usize + 1);
        }
        steps.map(|t| self.log(n, t)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// `d₁` at some of `n` steps, scaled to a largest entry of 1 where `top` is that [of all](Self::top).
    pub(super) fn rows(&self, n: usize, top: f64, steps: Range<usize>) -> Vec<f64> {
        steps.into_par_iter().with_min_len(PIECE).map(|t| (self.log(n, t) - top).exp()).collect()
    }
}

/// `[α, p, b, q]` at `n = 2^1, …, 2^20` for the least largest error.
const MAX: [[f64; 4]; 20] = [
    [0.16688, 0.22453, 0.81653, 0.20911],
    [0.13712, 0.25901, 0.72109, 0.18144],
    [0.08619, 0.27767, 0.92635, 0.2299],
    [0.06057, 0.28292, 1.04955, 0.25012],
    [0.0446, 0.27841, 1.14348, 0.26006],
    [0.04152, 0.27988, 1.20168, 0.26678],
    [0.0432, 0.28413, 1.49062, 0.27808],
    [0.0441, 0.28503, 2.00704, 0.28688],
    [0.04656, 0.28665, 2.85821, 0.2941],
    [0.04729, 0.28557, 3.85789, 0.29856],
    [0.04851, 0.28541, 5.99799, 0.30352],
    [0.04809, 0.28285, 8.34375, 0.3064],
    [0.05146, 0.28472, 14.5, 0.31067],
    [0.05575, 0.28809, 31.69, 0.31568],
    [0.06327, 0.29473, 55.61, 0.31932],
    [0.06476, 0.296, 125.93, 0.32335],
    [0.05595, 0.2846, 133.52, 0.32091],
    [0.05581, 0.28303, 217.26, 0.32235],
    [0.0557, 0.28141, 325.65, 0.32331],
    [0.0588, 0.2833, 506.1, 0.3246],
];

/// `[α, p, b, q]` at `n = 2^1, …, 2^20` for the least mean square error.
const MEAN: [[f64; 4]; 20] = [
    [0.17043, 0.2013, 0.73027, 0.5406],
    [0.16006, 0.21558, 0.54902, 0.39893],
    [0.1239, 0.25973, 0.60061, 0.43128],
    [0.08388, 0.25922, 0.5979, 0.42723],
    [0.06045, 0.25321, 0.57862, 0.4178],
    [0.04779, 0.24971, 0.55984, 0.41046],
    [0.04152, 0.24761, 0.52239, 0.40392],
    [0.03885, 0.2461, 0.47925, 0.39705],
    [0.0385, 0.24808, 0.46481, 0.39381],
    [0.0393, 0.24964, 0.42934, 0.38946],
    [0.03962, 0.24976, 0.39792, 0.38589],
    [0.04183, 0.25386, 0.39642, 0.38509],
    [0.04242, 0.25439, 0.37181, 0.38243],
    [0.04376, 0.2556, 0.36771, 0.37995],
    [0.04495, 0.25756, 0.38926, 0.37871],
    [0.04577, 0.25681, 0.4006, 0.37541],
    [0.04715, 0.26005, 0.42439, 0.37465],
    [0.04894, 0.26213, 0.35823, 0.37429],
    [0.04977, 0.26278, 0.35539, 0.37287],
    [0.05006, 0.26251, 0.321, 0.37078],
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_top_is_that_of_all_steps(
            n in 1usize..70_000,
            (log_alpha, p, log_b, q) in (-8.0f64..3.0, 0.0f64..2.0, -4.0f64..9.0, 0.0f64..2.0),
            kept in 0..4,
        ) {
            // Without one power the top is at an end, and without both it is everywhere.
            let shape = Shape {
                alpha: log_alpha.exp(),
                p: if kept & 1 == 0 { p } else { 0.0 },
                b: log_b.exp(),
                q: if kept & 2 == 0 { q } else { 0.0 },
            };
            let all = (0..n).map(|t| shape.log(n, t)).fold(f64::NEG_INFINITY, f64::max);
            prop_assert_eq!(shape.top(n), all);
        }
    }

    #[test]
    fn the_top_of_long_streams() {
        for n in [(1 << 20) + 7, 1 << 24] {
            for objective in [Objective::Max, Objective::Mean] {
                let shape = Shape::at(n, objective);
                let all = (0..n).map(|t| shape.log(n, t)).fold(f64::NEG_INFINITY, f64::max);
                assert_eq!(shape.top(n), all);
            }
        }
    }
}
