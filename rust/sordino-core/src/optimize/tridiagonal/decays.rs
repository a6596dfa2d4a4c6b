//! A bound on the errors of exponential decays of any length.

use super::search::{MOST, PROVED, SEARCHED, margin};
use super::{Poles, Tridiagonal};
use crate::error::Error;
use crate::interrupt::poll;

/// Lines of so many steps take no time.
const SHORT: usize = 1 << 16;

/// A lower bound on the root mean squared error of every Gaussian strategy for `y_t = decay·y_{t−1} + x_t` at noise
/// multiplier 1: `‖A diag(√v)‖_*/√n`, at first of equal weights v of the cells, then of those of what is found.
///
/// The second of them is never below the diagonal bound, of which weights are the squares of the diagonal of the root.
///
/// # Errors
/// [`Error::InvalidParameter`] if n is zero or above 2^20, or the decay is not in (0, 1]; or it is interrupted.
pub fn decay_bound(n: usize, decay: f64) -> Result<f64, Error> {
    if !(1..=MOST).contains(&n) {
        return Err(Error::invalid("steps", format!("{n} is not in 1..={MOST}")));
    }
    if !(decay > 0.0 && decay <= 1.0) {
        return Err(Error::invalid("decay", "must be in (0, 1]"));
    }
    let (evaluations, deviation) = if n <= SHORT { (8, PROVED) } else { (2, SEARCHED) };
    let matrix = Tridiagonal::decays(n, decay);
    let mut weights = vec![1.0 / n as f64; n];
    let mut most = 0.0f64;
    for _ in 0..evaluations {
        poll()?;
        let (low, high) = matrix.range(&weights);
        let poles = Poles::within(low, high, deviation);
        let gains = matrix.root_diagonal(&weights, &poles);
        let value: f64 = weights.iter().zip(&gains).map(|(v, gain)| v * gain).sum();
        most = most.max(value / (1.0 + poles.deviation) * (1.0 - margin(n)));
        weights.iter_mut().zip(&gains).for_each(|(v, gain)| *v *= (gain / value).powi(2));
        let total: f64 = weights.iter().sum();
        for v in &mut weights {
            *v /= total;
        }
    }
    Ok(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimize::{Queries, Target, mean_strategy};
    use std::ops::ControlFlow;

    #[test]
    fn bounds_are_near_the_least_error_and_not_above() {
        for n in [1, 2, 3, 20, 100] {
            for decay in [1e-9, 0.3, 0.9, 0.999, 1.0] {
                let entry = |t: usize, j: usize| if j <= t { f64::powi(decay, (t - j) as i32) } else { 0.0 };
                let entries: Vec<f64> = (0..n).flat_map(|t| (0..n).map(move |j| entry(t, j))).collect();
                let queries = Queries::new(n, n, &entries).unwrap();
                let target = Target { gap: 1e-7, iterations: 500, start: None };
                let found = mean_strategy(queries, None, target, &mut |_, _| ControlFlow::Continue(())).unwrap();
                let bound = decay_bound(n, decay).unwrap();
                assert!(bound <= found.upper && bound >= found.lower * 0.9995, "{n} {decay}: {bound} {}", found.lower);
            }
        }
    }

    #[test]
    fn what_is_no_decay_is_refused() {
        for (n, decay) in [(0, 0.5), (MOST + 1, 0.5), (4, 0.0), (4, 1.5), (4, f64::NAN)] {
            assert!(decay_bound(n, decay).is_err());
        }
    }
}
