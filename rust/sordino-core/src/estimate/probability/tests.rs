//! Dense oracles, an enumeration of all supports, and properties.

use super::*;
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;
use std::ops::ControlFlow;

const ENOUGH: usize = 100_000;

/// Factors by rows, and what `project_measure` takes.
fn borrowed(factors: &[DMatrix<f64>]) -> Vec<(usize, usize, Vec<f64>)> {
    factors.iter().map(|f| (f.nrows(), f.ncols(), f.transpose().as_slice().to_vec())).collect()
}

fn limited(factors: &[DMatrix<f64>], y: &[f64], a: &[f64], limit: usize) -> Result<Measure, Error> {
    let owned = borrowed(factors);
    let factors: Vec<Factor<'_>> = owned.iter().map(|(t, g, f)| (*t, *g, &f[..])).collect();
    project_measure(&factors, y, a, limit, &mut |_, _| ControlFlow::Continue(()))
}

fn run(factors: &[DMatrix<f64>], y: &[f64], a: &[f64]) -> Measure {
    limited(factors, y, a, ENOUGH).unwrap()
}

/// `diag(a) (F_1 ⊗ … ⊗ F_d)`.
fn dense(factors: &[DMatrix<f64>], a: &[f64]) -> DMatrix<f64> {
    let kronecker = factors.iter().fold(DMatrix::identity(1, 1), |all: DMatrix<f64>, f| all.kronecker(f));
    DMatrix::from_diagonal(&DVector::from_column_slice(a)) * kronecker
}

/// `a ∘ y`.
fn weighted(y: &[f64], a: &[f64]) -> DVector<f64> {
    DVector::from_iterator(y.len(), y.iter().zip(a).map(|(y, a)| y * a))
}

/// Half the squared distance of `t` from the convex hull of the columns: the least over affine hulls of some of them
/// where no weight is negative.
fn least_objective(c: &DMatrix<f64>, t: &DVector<f64>) -> f64 {
    let mut best = f64::INFINITY;
    for subset in 1u32..1 << c.ncols() {
        let chosen: Vec<usize> = (0..c.ncols()).filter(|g| subset >> g & 1 == 1).collect();
        let origin = c.column(chosen[0]);
        let edges = DMatrix::from_fn(t.len(), chosen.len() - 1, |i, j| c[(i, chosen[j + 1])] - origin[i]);
        let largest = if edges.is_empty() { 0.0 } else { edges.amax() };
        let weights = if largest == 0.0 {
            DVector::zeros(edges.ncols())
        } else {
            edges.clone().svd(true, true).solve(&(t - origin), 1e-9 * largest).unwrap()
        };
        if weights.iter().all(|w| *w >= -1e-9) && weights.sum() <= 1.0 + 1e-9 {
            best = best.min((edges * weights + origin - t).norm_squared() / 2.0);
        }
    }
    best
}

/// Shares nothing with the search: a probability vector, the objective from its definition, the Frank-Wolfe gap.
fn verify(factors: &[DMatrix<f64>], y: &[f64], a: &[f64], found: &Measure) -> f64 {
    let w = DVector::from_column_slice(&found.weights);
    assert!(w.iter().all(|w| *w >= 0.0) && (w.sum() - 1.0).abs() < 1e-12, "sum {}", w.sum());
    let (c, t) = (dense(factors, a), weighted(y, a));
    let residual = &c * &w - &t;
    let objective = residual.norm_squared() / 2.0;
    let scale = t.norm_squared() + c.norm_squared();
    assert!((objective - found.objective).abs() <= 1e-12 * scale, "{objective}, {}", found.objective);
    let slopes = c.transpose() * residual;
    slopes.dot(&w) - slopes.min()
}

fn converged(y: &[f64], a: &[f64], found: &Measure) -> bool {
    found.gap <= (EXACT_GAP * weighted(y, a).norm_squared() / 2.0).max(GAP * found.objective)
}

/// Numbers in [−1, 1) from a linear congruence (Knuth's constants).
fn noise(len: usize) -> Vec<f64> {
    let mut state = 1u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / 2f64.powi(52) - 1.0
    };
    (0..len).map(|_| draw()).collect()
}

/// Chebyshev polynomials of degree below `t` on a uniform grid of [−1, 1].
fn chebyshev(t: usize, g: usize) -> DMatrix<f64> {
    DMatrix::from_fn(t, g, |m, k| (m as f64 * (2.0 * k as f64 / (g - 1) as f64 - 1.0).acos()).cos())
}

/// Chebyshev moments of so many points somewhere in the cube, and the uniform noise added to all but the first.
fn moments(dims: usize, t: usize, points: usize, std: f64) -> Vec<f64> {
    let draws = noise(points * dims + t.pow(dims as u32));
    let (places, noise) = draws.split_at(points * dims);
    let mut y = vec![0.0; noise.len()];
    for place in places.chunks_exact(dims) {
        let image = place.iter().fold(vec![1.0], |image, u| {
            let angle = (0.5 * u + 0.3).acos();
            image.iter().flat_map(|p| (0..t).map(move |m| p * (m as f64 * angle).cos())).collect()
        });
        y.iter_mut().zip(&image).for_each(|(y, p)| *y += p / points as f64);
    }
    y.iter_mut().zip(noise).skip(1).for_each(|(y, w)| *y += 3f64.sqrt() * std * w);
    y
}

    #[test]
    fn timing() {
        use std::time::Instant;
        for (d, t, g, n, std, decay) in [
            (3usize, 12usize, 21usize, 300, 0.05, 0.0),
            (3, 12, 21, 300, 0.05, 0.5),
            (3, 12, 21, 300, 0.005, 0.0),
            (3, 12, 21, 300, 0.005, 0.5),
            (2, 24, 41, 300, 0.01, 0.0),
            (2, 24, 41, 300, 0.0, 0.0),
            (4, 8, 11, 300, 0.05, 0.0),
            (4, 16, 17, 300, 0.05, 0.3),
            (4, 16, 17, 300, 0.05, 0.0),
            (4, 16, 17, 300, 0.005, 0.0),
        ] {
            let y = moments(d, t, n, std);
            let a: Vec<f64> = (0..y.len())
                .map(|mut m| {
                    let mut degree = 0;
                    for _ in 0..d {
                        degree += m % t;
                        m /= t;
                    }
                    (-decay * degree as f64).exp()
                })
                .collect();
            let start = Instant::now();
            let owned = borrowed(&vec![chebyshev(t, g); d]);
            let factors: Vec<Factor<'_>> = owned.iter().map(|(t, g, f)| (*t, *g, &f[..])).collect();
            let found = project_measure(&factors, &y, &a, 8000, &mut |i, gap| {
                if std::env::var("V").is_ok() && i%100==0 { eprintln!("  {i} {gap:.3e} {:?}", start.elapsed()); }
                if start.elapsed().as_secs() < 10 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .unwrap();
            let support = found.weights.iter().filter(|w| **w > 0.0).count();
            eprintln!("d={d} T={t} G={g} std={std} decay={decay}: {:?} its {} gap {:.2e} obj {:.3e} support {support}",
                start.elapsed(), found.iterations, found.gap, found.objective);
        }
    }
