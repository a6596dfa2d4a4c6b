//! The probability measure on a grid whose features are nearest to published ones.

use super::projection::descend;
use super::tensor::{Factor, TensorColumns};
use super::Constraint;
use crate::error::Error;
use crate::optimize::Progress;

/// Gap at which the search stops, relative to the objective there.
const OBJECTIVE_GAP: f64 = 1e-3;

/// Or relative to the objective of no mass at all, `½‖a ∘ y‖²`.
const TARGET_GAP: f64 = 1e-6;

/// The result of [`project_measure`].
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// Probabilities of the grid points.
    pub weights: Vec<f64>,
    /// The objective is within this of the least.
    pub gap: f64,
    /// `½ Σ_m (a_m ((F w)_m − y_m))²`.
    pub objective: f64,
    /// Steps.
    pub iterations: usize,
}

/// Nearest.
///
/// # Errors
/// bad
pub fn project_measure(
    factors: &[Factor<'_>],
    target: &[f64],
    weights: &[f64],
    max_iterations: usize,
    progress: Progress<'_>,
) -> Result<Measure, Error> {
    let columns = TensorColumns::new(factors, weights)?;
    let target = columns.weighted(target);
    let scale = TARGET_GAP * target.iter().map(|t| t * t).sum::<f64>() / 2.0;
    let tolerance = |objective: f64| scale.max(OBJECTIVE_GAP * objective);
    let found = descend(&columns, &target, Constraint::Total(1.0), tolerance, max_iterations, progress)?;
    let mut weights = vec![0.0; super::Columns::count(&columns)];
    for (j, w) in found.weights {
        weights[j] = w;
    }
    let objective = found.image.iter().zip(&target).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / 2.0;
    Ok(Measure { weights, gap: found.gap, objective, iterations: found.iterations })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::MAX_ITERATIONS;
    use std::ops::ControlFlow;
    use std::time::Instant;

    #[test]
    fn timing() {
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / 2f64.powi(52) - 1.0
        };
        for (d, t, g, n, std, decay) in [
            (3usize, 12usize, 21usize, 300, 0.05, 0.0),
            (3, 12, 21, 300, 0.05, 0.5),
            (3, 12, 21, 300, 0.005, 0.0),
            (3, 12, 21, 300, 0.005, 0.5),
            (2, 24, 41, 300, 0.01, 0.0),
            (4, 8, 11, 300, 0.05, 0.0),
            (4, 16, 17, 300, 0.05, 0.3),
            (4, 16, 17, 300, 0.05, 0.0),
        ] {
            let grid: Vec<f64> = (0..g).map(|k| -1.0 + 2.0 * k as f64 / (g - 1) as f64).collect();
            let f: Vec<f64> = (0..t).flat_map(|m| grid.iter().map(move |u| (m as f64 * u.acos()).cos())).collect();
            let features = t.pow(d as u32);
            let mut y = vec![0.0; features];
            for _ in 0..n {
                let mut image = vec![1.0];
                for _ in 0..d {
                    let u = ((draw() + draw()) / 2.0 + 0.3).clamp(-1.0, 1.0);
                    image = image.iter().flat_map(|p| (0..t).map(move |m| p * (m as f64 * u.acos()).cos())).collect();
                }
                y.iter_mut().zip(&image).for_each(|(y, p)| *y += p / n as f64);
            }
            let a: Vec<f64> = (0..features)
                .map(|mut m| {
                    let mut degree = 0;
                    for _ in 0..d {
                        degree += m % t;
                        m /= t;
                    }
                    (-decay * degree as f64).exp()
                })
                .collect();
            for (m, y) in y.iter_mut().enumerate().skip(1) {
                *y += std * (0..12).map(|_| draw() / 2.0).sum::<f64>() / a[m];
            }
            let factor = (t, g, &f[..]);
            let start = Instant::now();
            let mut rounds = 0;
            let found = project_measure(&vec![factor; d], &y, &a, MAX_ITERATIONS, &mut |i, gap| {
                rounds += 1;
                if std::env::var("V").is_ok() { eprintln!("  {i} {gap:.3e} {:?}", start.elapsed()); }
                if start.elapsed().as_secs() < 30 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
            let support = found.weights.iter().filter(|w| **w > 0.0).count();
            eprintln!("d={d} T={t} G={g} std={std} decay={decay}: {:?} rounds {rounds} its {} gap {:.2e} obj {:.3e} support {support}",
                start.elapsed(), found.iterations, found.gap, found.objective);
        }
    }
}
