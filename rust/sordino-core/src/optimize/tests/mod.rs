//! Reference values, an independent verifier, and properties on random matrices.

mod geometry;
mod properties;
mod references;

use super::{Optimized, Progress, Target};
use nalgebra::DMatrix;
use std::ops::ControlFlow;

fn target(gap: f64) -> Target {
    Target { gap, ..Target::default() }
}

/// Runs without a limit.
fn run<T>(solve: impl FnOnce(Progress<'_>) -> T) -> T {
    solve(&mut |_, _| ControlFlow::Continue(()))
}

fn rows(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Vec<f64> {
    (0..rows * columns).map(|k| entry(k / columns, k % columns)).collect()
}

fn prefix(n: usize) -> Vec<f64> {
    rows(n, n, |i, j| f64::from(u8::from(j <= i)))
}

/// All intervals of `n` cells.
fn ranges(n: usize) -> (usize, Vec<f64>) {
    let intervals: Vec<(usize, usize)> = (0..n).flat_map(|a| (a..n).map(move |b| (a, b))).collect();
    (
        intervals.len(),
        rows(intervals.len(), n, |i, j| f64::from(u8::from((intervals[i].0..=intervals[i].1).contains(&j)))),
    )
}

/// Signs as `numpy.random.default_rng(0).choice([-1., 1.], size=(m, n))` draws them: PCG64 (O'Neill 2014), seed 0.
fn signs(m: usize, n: usize) -> Vec<f64> {
    let mut state = 35_399_562_948_360_463_058_890_781_895_381_311_971_u128;
    let words = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(47_026_247_687_942_121_848_144_207_491_837_523_525)
            .wrapping_add(87_136_372_517_582_989_555_478_159_403_783_844_777);
        (((state >> 64) ^ state) as u64).rotate_right((state >> 122) as u32)
    });
    // The top bit of each half, low half first.
    let bits = words.flat_map(|word| [word >> 31 & 1, word >> 63]);
    bits.take(m * n).map(|bit| 2.0 * bit as f64 - 1.0).collect()
}

/// Shares nothing with the solver: `L B = A`, column norms, and both errors from the entries, by another library.
struct Verified {
    mean: f64,
    worst: f64,
}

fn verify(a: &[f64], found: &Optimized) -> Verified {
    let (m, n, r) = (found.rows, found.columns, found.rank);
    let a = DMatrix::from_row_slice(m, n, a);
    let b = DMatrix::from_row_slice(r, n, &found.strategy);
    let l = DMatrix::from_row_slice(m, r, &found.decode);
    assert!((&l * &b - &a).amax() <= 1e-10 * a.amax(), "L B differs from A");
    for column in b.column_iter() {
        // At most 1 in exact arithmetic; this sum rounds as well.
        assert!(column.norm() <= 1.0 + 2e-16 * r as f64, "column norm {}", column.norm());
    }
    // Weak duality: the bound is a nuclear norm at weights that sum to 1.
    let (u, v) = (&found.query_weights, &found.cell_weights);
    assert!(u.iter().chain(v).all(|w| *w >= 0.0));
    near(u.iter().sum(), 1.0, 1e-12);
    near(v.iter().sum(), 1.0, 1e-12);
    let bound = nuclear(a.as_slice(), u, v);
    assert!(found.lower <= bound, "{} is above {bound}", found.lower);
    near(found.lower, bound, 3e-12);
    let variances: Vec<f64> = l.row_iter().map(|row| row.norm_squared()).collect();
    assert!(found.lower <= found.upper && (found.upper / found.lower - 1.0 - found.gap).abs() < 1e-13);
    Verified {
        mean: (variances.iter().sum::<f64>() / m as f64).sqrt(),
        worst: variances.iter().copied().fold(0.0, f64::max).sqrt(),
    }
}

/// `‖diag(√u) A diag(√v)‖_*`, entries of `A` by columns.
fn nuclear(a: &[f64], u: &[f64], v: &[f64]) -> f64 {
    let m = u.len();
    DMatrix::from_fn(m, v.len(), |i, j| u[i].sqrt() * a[j * m + i] * v[j].sqrt()).singular_values().sum()
}

fn near(value: f64, expected: f64, relative: f64) {
    assert!((value / expected - 1.0).abs() <= relative, "{value} is not {expected} within {relative}");
}
