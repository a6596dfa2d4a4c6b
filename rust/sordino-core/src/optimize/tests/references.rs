//! Optima certified by an independent implementation, and closed forms.

use super::super::{Queries, mean_strategy, prefix_sums, several_strategy, triangular, worst_strategy};
use super::*;
use crate::changes::{Changes, largest_norm};
use crate::linear_algebra::from_rows;
use crate::objective::Objective;

fn mean(m: usize, n: usize, a: &[f64], gap: f64) -> Optimized {
    let found = run(|progress| mean_strategy(Queries::new(m, n, a).unwrap(), None, target(gap), progress)).unwrap();
    near(verify(a, &found).mean, found.upper, 1e-12);
    assert!(found.gap <= gap, "gap {}", found.gap);
    found
}

fn worst(m: usize, n: usize, a: &[f64], gap: f64) -> Optimized {
    let found = run(|progress| worst_strategy(Queries::new(m, n, a).unwrap(), target(gap), progress)).unwrap();
    near(verify(a, &found).worst, found.upper, 1e-12);
    assert!(found.gap <= gap, "gap {}", found.gap);
    found
}

/// The certified interval of the total squared error meets the reference interval.
fn total(found: &Optimized, reference: [f64; 2]) {
    let m = found.rows as f64;
    let interval = [m * found.lower.powi(2), m * found.upper.powi(2)];
    assert!(interval[0] <= reference[1] && reference[0] <= interval[1], "{interval:?} misses {reference:?}");
}

#[test]
fn mean_of_prefix_sums_and_ranges() {
    let found = mean(64, 64, &prefix(64), 1e-6);
    total(&found, [282.2014, 282.2016]);
    assert!(found.iterations <= 25, "{}", found.iterations);
    total(&mean(256, 256, &prefix(256), 1e-6), [1631.4030, 1631.4042]);
    let (m, a) = ranges(64);
    let found = mean(m, 64, &a, 1e-6);
    assert_eq!((m, found.rank), (2080, 64));
    total(&found, [11024.3815, 11024.3922]);
    assert!(found.iterations <= 12, "{}", found.iterations);
}

#[test]
fn symmetric_workloads_are_optimal_at_once() {
    // Marginals of eight bits: every pair (28 tables of 4), every triple (56 tables of 8).
    for (order, rank, expected) in [(2u32, 37, 741.4052), (3, 93, 3558.7111)] {
        let sets: Vec<usize> = (0usize..256).filter(|s| s.count_ones() == order).collect();
        let tables: Vec<(usize, usize)> =
            sets.iter().flat_map(|s| (0..256).filter(move |c| c & !s == 0).map(move |c| (*s, c))).collect();
        let a = rows(tables.len(), 256, |i, j| f64::from(u8::from(j & tables[i].0 == tables[i].1)));
        let found = mean(tables.len(), 256, &a, 1e-6);
        assert_eq!((found.rank, found.iterations), (rank, 1));
        near(found.rows as f64 * found.upper.powi(2), expected, 1e-7);
        if order == 2 {
            let found = worst(tables.len(), 256, &a, 1e-6);
            assert_eq!(found.iterations, 1);
            near(found.upper, 2.572_876, 1e-6);
        }
    }
}

#[test]
fn worst_query() {
    let found = worst(16, 16, &prefix(16), 1e-7);
    near(found.upper, 1.704_480, 4e-7);
    let found = worst(64, 64, &prefix(64), 1e-6);
    near(found.upper, 2.111_367, 2e-6);
    assert!(found.iterations <= 30, "{}", found.iterations);
    let (m, a) = ranges(32);
    near(worst(m, 32, &a, 1e-6).upper, 2.194_548, 2e-6);
    // Half of a Hadamard matrix: γ₂ = √16.
    let a = rows(16, 32, |i, j| if (i & j).count_ones() % 2 == 0 { 1.0 } else { -1.0 });
    let found = worst(16, 32, &a, 1e-6);
    near(found.upper, 4.0, 1e-9);
    assert_eq!(found.iterations, 1);
    // Legendre symbols modulo 521.
    let squares: Vec<usize> = (0..521).map(|k| k * k % 521).collect();
    let a = rows(16, 32, |i, j| if squares.contains(&((32 * i + j + 1) % 521)) { 1.0 } else { -1.0 });
    near(worst(16, 32, &a, 1e-6).upper, 3.760_183, 2e-6);
}

#[test]
fn random_signs() {
    let found = mean(64, 256, &signs(64, 256), 5e-7);
    total(&found, [3849.3477, 3849.3509]);
    assert!(found.iterations <= 60, "{}", found.iterations);
    near(worst(64, 256, &signs(64, 256), 1e-6).upper, 7.7555, 1e-5);
    near(worst(16, 32, &signs(16, 32), 1e-6).upper, 3.809_442, 2e-6);
    // A tight frame, barely: half as many constraints as columns.
    let found = mean(64, 4096, &signs(64, 4096), 5e-7);
    total(&found, [4096.0, 4096.0037]);
    assert!(found.iterations <= 250, "{}", found.iterations);
}

fn optimum(n: usize, max: f64, mean: f64) {
    for (objective, expected) in [(Objective::Max, max), (Objective::Mean, mean)] {
        let found = run(|progress| prefix_sums(n, objective, target(1e-5), progress)).unwrap();
        assert!((found.upper - expected).abs() < 1e-4 && found.gap <= 1e-5, "{n} {objective:?} {}", found.upper);
        let c = DMatrix::from_row_slice(n, n, &found.strategy);
        for i in 0..n {
            assert!(c[(i, i)] > 0.0 && (i + 1..n).all(|j| c[(i, j)] == 0.0));
            assert!(c.column(i).norm() <= 1.0 + 1e-15);
        }
        // The variances from the strategy alone: D C = A.
        let a = DMatrix::from_row_slice(n, n, &prefix(n));
        let d = c.transpose().solve_upper_triangular(&a.transpose()).unwrap().transpose();
        assert!((&d * &c - a).amax() <= 1e-12);
        for (row, stderr) in d.row_iter().zip(&found.stderrs) {
            near(row.norm(), *stderr, 1e-12);
        }
    }
}

#[test]
fn optima_of_prefix_sums() {
    optimum(64, 2.1114, 2.0999);
    optimum(128, 2.3208, 2.3110);
    optimum(256, 2.5327, 2.5244);
}

#[test]
#[ignore = "a quarter of a minute"]
fn optima_of_long_prefix_sums() {
    optimum(512, 2.7464, 2.7394);
    optimum(1024, 2.9615, 2.9555);
}

#[test]
fn weights_replace_repetition() {
    // A query of weight 2 is that query asked twice.
    let a = [1.0, 0.5, 0.0, 0.0, 1.0, 1.0, 2.0, 0.0, -1.0];
    let queries = Queries::new(3, 3, &a).unwrap();
    let found = run(|progress| mean_strategy(queries, Some(&[2.0, 1.0, 1.0]), target(1e-6), progress)).unwrap();
    let repeated = mean(4, 3, &[&a[..3], &a].concat(), 1e-6);
    near(found.upper, repeated.upper, 2e-6);
    verify(&a, &found);
    assert!(run(|progress| mean_strategy(queries, Some(&[1.0, 0.0, 1.0]), target(1e-6), progress)).is_err());
    assert!(run(|progress| mean_strategy(queries, Some(&[1.0]), target(1e-6), progress)).is_err());
}

#[test]
fn rotation_refuses_singular_strategies() {
    assert!(triangular(2, &[1.0, 1.0, 1.0, 1.0], &prefix(2)).is_err());
    assert!(triangular(2, &[1.0; 3], &prefix(2)).is_err());
    assert!(run(|progress| prefix_sums(1025, Objective::Mean, target(1e-3), progress)).is_err());
    let one = run(|progress| prefix_sums(1, Objective::Max, target(1e-3), progress)).unwrap();
    near(one.strategy[0] * one.stderrs[0], 1.0, 1e-15);
    assert!(run(|progress| prefix_sums(4, Objective::Max, target(0.0), progress)).is_err());
}

/// The closed form of a histogram of which a unit raises `k` of `d` cells, and what these strategies do to every change.
#[test]
fn cells_that_rise_together() {
    for (d, k, closed) in [(3, 3, 1.341_641), (5, 5, 1.603_567), (10, 10, 2.075_498), (16, 16, 2.5), (12, 4, 0.0)] {
        let a = rows(d, d, |i, j| f64::from(u8::from(i == j)));
        let changes = Changes { most: k, signed: false };
        let queries = Queries::new(d, d, &a).unwrap();
        let found = run(|progress| several_strategy(queries, changes, target(1e-5), progress)).unwrap();
        // Up to (d + √d)/2 of the cells the variance is (k + √(k(d − 1)(d − k)))²/d².
        let (dd, kk) = (d as f64, k as f64);
        let closed = if closed > 0.0 { closed } else { (kk + (kk * (dd - 1.0) * (dd - kk)).sqrt()) / dd };
        assert!(
            found.lower <= closed + 1e-6 && closed - 1e-6 <= found.upper,
            "{d} {k}: {} {}",
            found.lower,
            found.upper
        );
        assert!(found.upper <= found.lower * (1.0 + 3e-5), "{d} {k}: {} {}", found.lower, found.upper);
        // What is charged: all changes, one by one.
        let moved = |set: usize| {
            let image = (0..found.rank)
                .map(|i| (0..d).filter(|j| set >> j & 1 == 1).map(|j| found.strategy[i * d + j]).sum::<f64>().powi(2));
            image.sum::<f64>().sqrt()
        };
        let most = (1usize..1 << d).filter(|set| set.count_ones() as usize <= k).map(moved).fold(0.0, f64::max);
        let matrix = from_rows(found.rank, d, &found.strategy);
        let charged = largest_norm(&matrix, changes).unwrap().unwrap().get();
        assert!(most <= charged && charged <= most * (1.0 + 1e-6));
    }
}
