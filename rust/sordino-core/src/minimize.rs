//! Minimisation of smooth functions: of a few variables by differences, of many by their slopes.

use crate::linear_algebra;
use std::collections::VecDeque;

/// Relative step of the central differences: cube root of the unit roundoff, rounded up.
const STEP: f64 = 1e-5;

/// An improvement that counts for nothing: parameters in 16 bits move the loss by more.
const NEGLIGIBLE: f64 = 1e-12;

/// Moves that are remembered.
const MEMORY: usize = 8;

/// Longest move of a variable in one iteration; the variables are logarithms.
const LONGEST: f64 = 2.0;

/// A minimum near `start` by the method of Broyden, Fletcher, Goldfarb and Shanno with central
/// differences and backtracking (Nocedal & Wright 2006, ch. 6); `f` may be infinite outside its domain.
pub(crate) fn bfgs(f: impl Fn(&[f64]) -> f64, start: Vec<f64>, iterations: usize) -> (Vec<f64>, f64) {
    let n = start.len();
    let mut x = start;
    let mut value = f(&x);
    let mut slope = gradient(&f, &x);
    let mut inverse: Option<Vec<f64>> = None;
    let mut stalled = 0;
    for _ in 0..iterations {
        let mut direction: Vec<f64> = match &inverse {
            Some(h) => h.chunks_exact(n).map(|row| -dot(row, &slope)).collect(),
            None => slope.iter().map(|g| -g).collect(),
        };
        let longest = direction.iter().fold(0.0f64, |most, d| most.max(d.abs()));
        if longest > LONGEST {
            for d in &mut direction {
                *d *= LONGEST / longest;
            }
        }
        let descent = dot(&direction, &slope);
        // Below this the function itself is rounding noise.
        if descent.is_nan() || descent > -1e-16 {
            if inverse.take().is_some() && descent > 0.0 {
                continue;
            }
            break;
        }
        let mut length = 1.0;
        let step = loop {
            let trial: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let reached = f(&trial);
            if reached <= value + 1e-4 * length * descent {
                break Some((trial, reached));
            }
            length *= 0.5;
            if length < 1e-9 {
                break None;
            }
        };
        let Some((trial, reached)) = step else {
            if inverse.take().is_some() {
                continue;
            }
            break;
        };
        stalled = if value - reached < NEGLIGIBLE { stalled + 1 } else { 0 };
        let next = gradient(&f, &trial);
        let moved: Vec<f64> = trial.iter().zip(&x).map(|(a, b)| a - b).collect();
        let turned: Vec<f64> = next.iter().zip(&slope).map(|(a, b)| a - b).collect();
        (x, value, slope) = (trial, reached, next);
        if stalled == 4 {
            break;
        }
        update(&mut inverse, &moved, &turned);
    }
    (x, value)
}

/// A minimum near `start` of a function with its slope, of any number of variables, by the method of limited memory
/// (Nocedal & Wright 2006, ch. 7); as [`bfgs`] otherwise. `curvatures` are those along each variable, about.
pub(crate) fn limited_memory(
    f: impl Fn(&[f64]) -> (f64, Vec<f64>),
    start: Vec<f64>,
    curvatures: &[f64],
    evaluations: usize,
) -> (Vec<f64>, f64) {
    let mut x = start;
    let (mut value, mut slope) = f(&x);
    let mut memory: VecDeque<(Vec<f64>, Vec<f64>)> = VecDeque::new();
    let (mut count, mut stalled) = (1, 0);
    while count < evaluations && stalled < 4 {
        let mut direction = two_loops(&slope, curvatures, &memory);
        let longest = direction.iter().fold(0.0f64, |most, d| most.max(d.abs()));
        if longest > LONGEST {
            scale(&mut direction, LONGEST / longest);
        }
        let descent = linear_algebra::dot(&direction, &slope);
        if descent.is_nan() || descent > -1e-16 {
            break;
        }
        let mut length = 1.0;
        let step = loop {
            let trial: Vec<f64> = x.iter().zip(&direction).map(|(x, d)| x + length * d).collect();
            let (reached, next) = f(&trial);
            count += 1;
            if reached <= value + 1e-4 * length * descent {
                break Some((trial, reached, next));
            }
            length *= 0.3;
            if length < 1e-9 || count >= evaluations {
                break None;
            }
        };
        let Some((trial, reached, next)) = step else {
            if memory.is_empty() {
                break;
            }
            memory.clear();
            continue;
        };
        stalled = if value - reached < NEGLIGIBLE { stalled + 1 } else { 0 };
        let moved: Vec<f64> = trial.iter().zip(&x).map(|(a, b)| a - b).collect();
        let turned: Vec<f64> = next.iter().zip(&slope).map(|(a, b)| a - b).collect();
        (x, value, slope) = (trial, reached, next);
        if linear_algebra::dot(&moved, &turned) > 1e-12 * linear_algebra::dot(&moved, &moved) {
            memory.push_back((moved, turned));
            if memory.len() > MEMORY {
                memory.pop_front();
            }
        }
    }
    (x, value)
}

/// `−H slope` from the last moves and turns.
fn two_loops(slope: &[f64], curvatures: &[f64], memory: &VecDeque<(Vec<f64>, Vec<f64>)>) -> Vec<f64> {
    let mut q = slope.to_vec();
    let add = |q: &mut [f64], factor: f64, what: &[f64]| q.iter_mut().zip(what).for_each(|(q, v)| *q += factor * v);
    let mut alphas = Vec::with_capacity(memory.len());
    for (moved, turned) in memory.iter().rev() {
        let alpha = linear_algebra::dot(moved, &q) / linear_algebra::dot(moved, turned);
        add(&mut q, -alpha, turned);
        alphas.push(alpha);
    }
    let factor = memory.back().map_or(1.0, |(moved, turned)| {
        let flat: f64 = turned.iter().zip(curvatures).map(|(t, c)| t * t / c).sum();
        linear_algebra::dot(moved, turned) / flat
    });
    q.iter_mut().zip(curvatures).for_each(|(q, c)| *q *= factor / c);
    for ((moved, turned), alpha) in memory.iter().zip(alphas.into_iter().rev()) {
        let beta = linear_algebra::dot(turned, &q) / linear_algebra::dot(moved, turned);
        add(&mut q, alpha - beta, moved);
    }
    scale(&mut q, -1.0);
    q
}

/// The rank-two update of the inverse Hessian; skipped where the curvature along the move is not positive.
fn update(inverse: &mut Option<Vec<f64>>, moved: &[f64], turned: &[f64]) {
    let n = moved.len();
    let curvature = dot(moved, turned);
    if curvature.is_nan() || curvature <= 1e-12 * dot(moved, moved) {
        return;
    }
    let scale = curvature / dot(turned, turned);
    let h = inverse.get_or_insert_with(|| (0..n * n).map(|k| if k % (n + 1) == 0 { scale } else { 0.0 }).collect());
    let image: Vec<f64> = h.chunks_exact(n).map(|row| dot(row, turned)).collect();
    let weight = (1.0 + dot(turned, &image) / curvature) / curvature;
    for (i, row) in h.chunks_exact_mut(n).enumerate() {
        for (j, entry) in row.iter_mut().enumerate() {
            *entry += weight * moved[i] * moved[j] - (image[i] * moved[j] + moved[i] * image[j]) / curvature;
        }
    }
}

fn gradient(f: &impl Fn(&[f64]) -> f64, x: &[f64]) -> Vec<f64> {
    let mut point = x.to_vec();
    let mut slope = |i: usize| {
        point[i] = x[i] + STEP;
        let above = f(&point);
        point[i] = x[i] - STEP;
        let below = f(&point);
        point[i] = x[i];
        (above - below) / (2.0 * STEP)
    };
    (0..x.len()).map(&mut slope).collect()
}

fn scale(values: &mut [f64], factor: f64) {
    for value in values {
        *value *= factor;
    }
}

/// In order: plans are found again by what their numbers round to.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_curved_valley() {
        let valley = |x: &[f64]| (1.0 - x[0]).powi(2) + 100.0 * (x[1] - x[0] * x[0]).powi(2);
        let (x, value) = bfgs(valley, vec![-1.2, 1.0], 200);
        assert!(value < 1e-14 && (x[0] - 1.0).abs() < 1e-6 && (x[1] - 1.0).abs() < 1e-6, "{x:?} {value}");
    }

    #[test]
    fn slopes_find_the_bottom_of_many_valleys() {
        let n = 300;
        let valleys = |x: &[f64]| {
            let mut slope = vec![0.0; n];
            let mut value = 0.0;
            for k in 0..n / 2 {
                let (a, b) = (x[2 * k], x[2 * k + 1]);
                value += (1.0 - a).powi(2) + 10.0 * (b - a * a).powi(2);
                slope[2 * k] = -2.0 * (1.0 - a) - 40.0 * a * (b - a * a);
                slope[2 * k + 1] = 20.0 * (b - a * a);
            }
            (value, slope)
        };
        let (x, value) = limited_memory(valleys, (0..n).map(|i| (i % 5) as f64 - 2.0).collect(), &vec![1.0; n], 2000);
        assert!(value < 1e-9 && x.iter().all(|v| (v - 1.0).abs() < 1e-4), "{value}");
    }

    #[test]
    fn keeps_inside_the_domain() {
        let (x, _) = bfgs(|x| if x[0] > 0.0 { x[0] - x[0].ln() } else { f64::INFINITY }, vec![5.0], 100);
        assert!((x[0] - 1.0).abs() < 1e-6);
    }
}
