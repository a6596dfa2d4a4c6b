//! Known sparse vectors, with and without noise; an oracle that knows the support; selection by sorting.

use super::largest::Largest;
use super::*;
use proptest::prelude::*;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

const ALL: [Algorithm; 3] = [Algorithm::Cosamp, Algorithm::HardThresholding, Algorithm::BasisPursuit];

/// `SplitMix64` (Steele, Lea & Flood 2014).
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self) -> f64 {
        ((self.bits() >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    fn sign(&mut self) -> f64 {
        if self.bits() >> 63 == 1 { 1.0 } else { -1.0 }
    }

    fn gaussian(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// A matrix stored by columns.
struct Dense {
    rows: usize,
    entries: Vec<f64>,
}

impl Dense {
    fn bernoulli(rows: usize, columns: usize, random: &mut Random) -> Self {
        let size = 1.0 / (rows as f64).sqrt();
        Self { rows, entries: (0..rows * columns).map(|_| size * random.sign()).collect() }
    }

    /// Times random reflections, an orthonormal basis: `A H₁ H₂ H₃`, `H = I − 2 v vᵀ`.
    fn turned(mut self, random: &mut Random) -> Self {
        for _ in 0..3 {
            let mut v: Vec<f64> = (0..self.columns()).map(|_| random.gaussian()).collect();
            let length = v.iter().map(|v| v * v).sum::<f64>().sqrt();
            for v in &mut v {
                *v /= length;
            }
            let mut image = vec![0.0; self.rows];
            self.apply(&v, &mut image);
            for (column, v) in self.entries.chunks_exact_mut(self.rows).zip(&v) {
                column.iter_mut().zip(&image).for_each(|(c, image)| *c -= 2.0 * image * v);
            }
        }
        self
    }
}

impl Operator for Dense {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.entries.len() / self.rows
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (column, x) in self.entries.chunks_exact(self.rows).zip(x).filter(|(_, x)| **x != 0.0) {
            out.iter_mut().zip(column).for_each(|(out, c)| *out += c * x);
        }
    }

    fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        for (out, column) in out.iter_mut().zip(self.entries.chunks_exact(self.rows)) {
            *out = vectors::dot(column, y);
        }
    }
}

/// `±1/√s` at s places of each column, one in each block of `k/s` rows.
struct Sparse {
    rows: usize,
    columns: usize,
    products: AtomicUsize,
    /// Rows and entries, column by column.
    entries: Vec<(u32, f64)>,
}

impl Sparse {
    fn new(rows: usize, columns: usize, per_column: usize, random: &mut Random) -> Self {
        let block = rows / per_column;
        let size = 1.0 / (per_column as f64).sqrt();
        let entry = |i: usize, random: &mut Random| ((i * block + random.below(block)) as u32, size * random.sign());
        let entries = (0..columns * per_column).map(|j| entry(j % per_column, random)).collect();
        Self { rows, columns, products: AtomicUsize::new(0), entries }
    }
}

impl Operator for Sparse {
    fn rows(&self) -> usize {
        self.rows
    }

    fn columns(&self) -> usize {
        self.columns
    }

    fn apply(&self, x: &[f64], out: &mut [f64]) {
        self.products.fetch_add(1, Ordering::Relaxed);
        out.fill(0.0);
        let per_column = self.entries.len() / self.columns;
        for (column, x) in self.entries.chunks_exact(per_column).zip(x).filter(|(_, x)| **x != 0.0) {
            for (row, c) in column {
                out[*row as usize] += c * x;
            }
        }
    }

    fn adjoint(&self, y: &[f64], out: &mut [f64]) {
        self.products.fetch_add(1, Ordering::Relaxed);
        let per_column = self.entries.len() / self.columns;
        for (out, column) in out.iter_mut().zip(self.entries.chunks_exact(per_column)) {
            *out = column.iter().map(|(row, c)| c * y[*row as usize]).sum();
        }
    }
}

/// The smallest k that theory asks for here: `4 S log₂(n/S)`.
fn measurements(n: usize, sparsity: usize) -> usize {
    (4.0 * sparsity as f64 * (n as f64 / sparsity as f64).log2()).ceil() as usize
}

/// S places, each with a value.
fn sparse_vector(n: usize, sparsity: usize, random: &mut Random, value: fn(&mut Random) -> f64) -> Vec<f64> {
    let mut theta = vec![0.0; n];
    let mut left = sparsity;
    while left > 0 {
        let j = random.below(n);
        if theta[j] == 0.0 {
            theta[j] = value(random);
            left -= 1;
        }
    }
    theta
}

fn image(a: &dyn Operator, theta: &[f64]) -> Vec<f64> {
    let mut y = vec![0.0; a.rows()];
    a.apply(theta, &mut y);
    y
}

fn target(sparsity: Option<usize>, noise: f64) -> Target {
    Target { sparsity, noise, iterations: 3000, threshold: None }
}

fn run(a: &dyn Operator, y: &[f64], algorithm: Algorithm, target: Target) -> Recovery {
    let found = recover(a, y, algorithm, target, &mut |_, _| ControlFlow::Continue(())).unwrap();
    verify(a, y, target, &found);
    found
}

fn dense(found: &Recovery, n: usize) -> Vec<f64> {
    let mut theta = vec![0.0; n];
    found.support.iter().zip(&found.values).for_each(|(j, value)| theta[*j] = *value);
    theta
}

/// What every result promises.
fn verify(a: &dyn Operator, y: &[f64], target: Target, found: &Recovery) {
    assert!(found.support.is_sorted_by(|a, b| a < b) && found.support.len() == found.values.len());
    assert!(found.values.iter().all(|value| *value != 0.0) && found.iterations <= target.iterations);
    assert!(target.sparsity.is_none_or(|sparsity| found.support.len() <= sparsity));
    let residual = distance(y, &image(a, &dense(found, a.columns())));
    let scale = y.iter().map(|y| y * y).sum::<f64>().sqrt();
    assert!((residual - found.residual).abs() <= 1e-12 * scale, "{residual}, reported {}", found.residual);
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn length(a: &[f64]) -> f64 {
    distance(a, &vec![0.0; a.len()])
}

#[test]
fn sparse_vectors_are_recovered_exactly() {
    let random = &mut Random(1);
    for (n, sparsity) in [(64, 1), (256, 3), (512, 8), (1024, 16)] {
        let k = measurements(n, sparsity);
        for turned in [false, true] {
            let a = Dense::bernoulli(k, n, random);
            let a = if turned { a.turned(random) } else { a };
            for value in [Random::sign, Random::gaussian] {
                let theta = sparse_vector(n, sparsity, random, value);
                let y = image(&a, &theta);
                for algorithm in ALL {
                    let found = run(&a, &y, algorithm, target(Some(sparsity), 0.0));
                    let error = distance(&dense(&found, n), &theta) / length(&theta);
                    assert!(error <= 1e-10, "{algorithm:?}, n {n}, S {sparsity}: {error}");
                    assert!(found.converged);
                }
                let found = run(&a, &y, Algorithm::BasisPursuit, target(None, 0.0));
                let error = distance(&dense(&found, n), &theta) / length(&theta);
                assert!(error <= 1e-10 && found.converged, "any sparsity, n {n}: {error}");
            }
        }
    }
}

#[test]
fn noise_costs_little_more_than_with_a_known_support() {
    let random = &mut Random(2);
    let (n, sparsity, sigma) = (1024, 12, 0.05);
    let k = measurements(n, sparsity);
    for _ in 0..4 {
        let a = Dense::bernoulli(k, n, random);
        let theta = sparse_vector(n, sparsity, random, |random| random.sign() * (1.0 + random.uniform()));
        let y: Vec<f64> = image(&a, &theta).iter().map(|y| y + sigma * random.gaussian()).collect();
        for algorithm in ALL {
            let found = run(&a, &y, algorithm, target(Some(sparsity), sigma));
            assert!(found.converged);
            assert_eq!(found.support, run(&a, &image(&a, &theta), algorithm, target(Some(sparsity), 0.0)).support);
            // Expected: σ √(S / (1 - S/k)); the square deviates by √(2/S) of itself.
            let error = distance(&dense(&found, n), &theta) / (sigma * (sparsity as f64).sqrt());
            assert!(error <= 1.8, "{algorithm:?}: {error} times the oracle's");
            let mut slopes = vec![0.0; n];
            let fit = image(&a, &dense(&found, n));
            a.adjoint(&y.iter().zip(&fit).map(|(y, fit)| y - fit).collect::<Vec<_>>(), &mut slopes);
            assert!(found.support.iter().all(|j| slopes[*j].abs() <= 1e-4 * sigma), "not least squares");
        }
        let found = run(&a, &y, Algorithm::BasisPursuit, target(None, sigma));
        let error = distance(&dense(&found, n), &theta) / (sigma * (sparsity as f64).sqrt());
        assert!(error <= 2.5 && found.support.len() < 2 * sparsity, "any sparsity: {error} times the oracle's");
    }
}

#[test]
fn ends_where_only_noise_is_left() {
    let random = &mut Random(3);
    let (n, k, sigma) = (512, 256, 1.0);
    let a = Dense::bernoulli(k, n, random);
    let noise: Vec<f64> = (0..k).map(|_| sigma * random.gaussian()).collect();
    for algorithm in ALL {
        // Nothing but noise: a level above it explains all, one far below it does not.
        let found = run(&a, &noise, algorithm, target(Some(8), 1.2 * sigma));
        assert!(found.converged && found.iterations == 0 && found.support.is_empty());
        assert!(run(&a, &noise, algorithm, target(Some(8), 0.1 * sigma)).support.len() == 8);
    }
    // The second, smaller value is within the norm of the noise but not within its correlations.
    let mut theta = vec![0.0; n];
    (theta[7], theta[300]) = (200.0, -9.0);
    let y: Vec<f64> = image(&a, &theta).iter().zip(&noise).map(|(y, w)| y + w).collect();
    for algorithm in ALL {
        let found = run(&a, &y, algorithm, target(Some(2), 1.3 * sigma));
        assert_eq!(found.support, [7, 300], "{algorithm:?}");
        assert!(found.converged && found.residual <= 1.3 * sigma * (k as f64).sqrt());
    }
    // An ample sparsity: without a level the greedy searches go on.
    for algorithm in [Algorithm::Cosamp, Algorithm::HardThresholding] {
        let early = run(&a, &y, algorithm, target(Some(20), 1.05 * sigma));
        let late = run(&a, &y, algorithm, target(Some(20), 0.0));
        assert!(early.iterations < late.iterations, "{algorithm:?}: {}, {}", early.iterations, late.iterations);
    }
}

#[test]
fn hard_thresholding_never_climbs_and_ends_at_a_fixed_point() {
    let random = &mut Random(4);
    for (n, k, sparsity) in [(256, 64, 16), (256, 40, 30), (128, 100, 10), (256, 128, 20)].repeat(5) {
        let a = Dense::bernoulli(k, n, random);
        let y: Vec<f64> = (0..k).map(|_| random.gaussian()).collect();
        let mut last = length(&y);
        let progress = &mut |_, residual: f64| {
            assert!(residual <= last * (1.0 + 1e-9), "{residual} after {last}");
            last = residual;
            ControlFlow::Continue(())
        };
        let found = recover(&a, &y, Algorithm::HardThresholding, target(Some(sparsity), 0.0), progress).unwrap();
        assert!(found.converged);
        // Steps fit the few columns of the support: they are at least 2/‖A‖². Such a step moves no other entry above
        // the least of the support.
        let fit = image(&a, &dense(&found, n));
        let mut slopes = vec![0.0; n];
        a.adjoint(&y.iter().zip(&fit).map(|(y, fit)| y - fit).collect::<Vec<_>>(), &mut slopes);
        let least = found.values.iter().fold(f64::INFINITY, |least, value| least.min(value.abs()));
        let step = 2.0 / (1.0 + (n as f64 / k as f64).sqrt()).powi(2);
        assert!(step * vectors::largest_magnitude(&slopes) <= least, "n {n}, k {k}");
    }
}

/// `½‖A θ − y‖² + λ‖θ‖₁`.
fn objective(a: &Dense, y: &[f64], lambda: f64, theta: &[f64]) -> f64 {
    0.5 * distance(&image(a, theta), y).powi(2) + lambda * theta.iter().map(|t| t.abs()).sum::<f64>()
}

/// The least objective: coordinate by coordinate (Friedman, Hastie, Höfling & Tibshirani 2007).
fn coordinate_descent(a: &Dense, y: &[f64], lambda: f64) -> f64 {
    let mut theta = vec![0.0; a.columns()];
    let mut residual = y.to_vec();
    for _ in 0..3000 {
        for (theta, column) in theta.iter_mut().zip(a.entries.chunks_exact(a.rows)) {
            let curvature: f64 = column.iter().map(|c| c * c).sum();
            let slope = column.iter().zip(&residual).map(|(c, r)| c * r).sum::<f64>() + curvature * *theta;
            let best = (slope - slope.clamp(-lambda, lambda)) / curvature;
            residual.iter_mut().zip(column).for_each(|(r, c)| *r -= c * (best - *theta));
            *theta = best;
        }
    }
    objective(a, y, lambda, &theta)
}

#[test]
fn coordinate_descent_knows_one_coordinate() {
    // ½(2x − 3)² + x: 2(2x − 3) + 1 = 0 at x = 1.25.
    let a = Dense { rows: 1, entries: vec![2.0] };
    assert!((coordinate_descent(&a, &[3.0], 1.0) - (0.125 + 1.25)).abs() < 1e-12);
    assert_eq!(coordinate_descent(&a, &[3.0], 6.0), 4.5);
}

#[test]
fn basis_pursuit_is_optimal_to_its_gap() {
    let random = &mut Random(5);
    for (n, k) in [(80, 30), (60, 60), (30, 40)] {
        let a = Dense::bernoulli(k, n, random);
        let y: Vec<f64> = (0..k).map(|_| random.gaussian()).collect();
        for lambda in [0.5, 0.05] {
            let least = coordinate_descent(&a, &y, lambda);
            for gap in [1e-2, 1e-6] {
                let theta = basis_pursuit::minimum(&a, &y, lambda, gap);
                let value = objective(&a, &y, lambda, &theta);
                assert!(value - least <= gap * value, "n {n}, λ {lambda}: {value}, {least}");
            }
        }
    }
}

#[test]
fn repeated_columns_share_their_coefficient() {
    let random = &mut Random(6);
    let (n, sparsity) = (256, 4);
    let k = measurements(n, sparsity);
    let mut a = Dense::bernoulli(k, n, random);
    // Column j + 128 repeats column j, and two columns vanish.
    let (first, second) = a.entries.split_at_mut(k * n / 2);
    second.copy_from_slice(first);
    second[..2 * k].fill(0.0);
    let mut theta = sparse_vector(n / 2, sparsity, random, Random::sign);
    theta.resize(n, 0.0);
    for sigma in [0.0, 0.01] {
        let y: Vec<f64> = image(&a, &theta).iter().map(|y| y + sigma * random.gaussian()).collect();
        for algorithm in ALL {
            let found = run(&a, &y, algorithm, target(Some(2 * sparsity), sigma));
            let found = dense(&found, n);
            assert!(found.iter().all(|value| value.abs() < 1.1), "{algorithm:?}");
            let sums: Vec<f64> = (0..n / 2).map(|j| found[j] + found[j + n / 2]).collect();
            let error = distance(&sums, &theta[..n / 2]);
            assert!(error <= 1e-9 + 5.0 * sigma * (sparsity as f64).sqrt(), "{algorithm:?}, noise {sigma}: {error}");
        }
    }
}

#[test]
fn small_and_empty_problems() {
    let a = Dense::bernoulli(8, 16, &mut Random(7));
    for algorithm in ALL {
        let found = run(&a, &[0.0; 8], algorithm, target(Some(3), 0.0));
        let nothing = Recovery { support: vec![], values: vec![], residual: 0.0, iterations: 0, converged: true };
        assert_eq!(found, nothing);
        // As many as there are rows, and more than there are columns.
        run(&a, &[1.0; 8], algorithm, target(Some(8), 0.0));
        let tall = Dense { rows: 3, entries: vec![0.6, 0.8, 0.0, 0.0, 0.0, 1.0] };
        let found = run(&tall, &[3.0, 4.0, -2.0], algorithm, target(Some(3), 0.0));
        // Basis pursuit ends with at most half as many columns as there are rows.
        let expected: &[f64] = if algorithm == Algorithm::BasisPursuit { &[5.0] } else { &[5.0, -2.0] };
        assert!(found.values.len() == expected.len() && distance(&found.values, expected) < 1e-11, "{algorithm:?}");
        // Orthogonal to every column.
        let flat = Dense { rows: 2, entries: vec![1.0, 0.0] };
        assert_eq!(run(&flat, &[0.0, 7.0], algorithm, target(Some(1), 0.0)).residual, 7.0);
    }
    let none = Dense { rows: 2, entries: vec![] };
    assert_eq!(run(&none, &[3.0, 4.0], Algorithm::BasisPursuit, target(None, 0.0)).residual, 5.0);
}

#[test]
fn a_break_returns_the_best_so_far() {
    let random = &mut Random(8);
    let a = Dense::bernoulli(100, 400, random);
    let y: Vec<f64> = (0..100).map(|_| random.gaussian()).collect();
    for algorithm in ALL {
        for stop in [1, 3] {
            let mut calls = 0;
            let progress = &mut |iteration, residual: f64| {
                calls += 1;
                assert!(iteration == calls && residual.is_finite());
                if iteration == stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            };
            let limit = target(Some(10), 0.0);
            let found = recover(&a, &y, algorithm, limit, progress).unwrap();
            assert!(calls == stop && found.iterations == stop && !found.converged, "{algorithm:?}");
            verify(&a, &y, limit, &found);
            assert!(!found.support.is_empty() && found.residual < length(&y));
            // The limit does the same.
            assert_eq!(found, run(&a, &y, algorithm, Target { iterations: stop, ..limit }));
        }
    }
}

#[test]
fn bad_arguments_are_refused() {
    let a = Dense::bernoulli(4, 8, &mut Random(10));
    let good = target(Some(2), 0.0);
    let refused = |y: &[f64], algorithm, target| {
        recover(&a, y, algorithm, target, &mut |_, _| ControlFlow::Continue(())).unwrap_err().to_string()
    };
    for algorithm in ALL {
        let reasons = [
            (refused(&[1.0; 3], algorithm, good), "y has length 3, expected 4"),
            (refused(&[1.0, 1.0, f64::NAN, 1.0], algorithm, good), "y: every number must be finite"),
            (refused(&[1e300; 4], algorithm, good), "y: too large: its square overflows"),
            (refused(&[1.0; 4], algorithm, target(Some(0), 0.0)), "sparsity: must be from 1 to 4, got 0"),
            (refused(&[1.0; 4], algorithm, target(Some(5), 0.0)), "sparsity: must be from 1 to 4, got 5"),
            (refused(&[1.0; 4], algorithm, target(Some(2), -1.0)), "noise: must be finite and not negative, got -1"),
            (refused(&[1.0; 4], algorithm, Target { iterations: 0, ..good }), "iterations: must be at least 1"),
        ];
        for (found, expected) in reasons {
            assert_eq!(found, expected);
        }
    }
    for algorithm in [Algorithm::Cosamp, Algorithm::HardThresholding] {
        assert_eq!(refused(&[1.0; 4], algorithm, target(None, 0.0)), "sparsity: this algorithm needs it");
    }
}

proptest! {
    #[test]
    fn the_largest_are_those_of_a_sort(values in prop::collection::vec(prop_oneof![-3i8..=3], 0..40), count in 0usize..45) {
        // Few different values: many ties, and both zeros.
        let mut values: Vec<f64> = values.iter().map(|v| -0.5 * f64::from(*v)).collect();
        let mut expected: Vec<usize> = (0..values.len()).filter(|j| values[*j] != 0.0).collect();
        expected.sort_by(|a, b| values[*b].abs().total_cmp(&values[*a].abs()));
        expected.truncate(count);
        expected.sort_unstable();
        let mut largest = Largest::default();
        let mut found = vec![99];
        largest.select(&[4.0, -5.0], 1, &mut found);
        largest.select(&values, count, &mut found);
        prop_assert_eq!(&found, &expected);
        let kept: Vec<f64> = expected.iter().map(|j| values[*j]).collect();
        let mut support: Vec<usize> = (0..values.len()).map(|j| 3 * j).collect();
        largest.prune(&mut support, &mut values, count, &mut found);
        prop_assert_eq!(support, expected.iter().map(|j| 3 * j).collect::<Vec<_>>());
        prop_assert_eq!(values, kept);
    }

    #[test]
    fn promises_hold_for_any_matrix(
        (rows, entries, y) in (1usize..6, 1usize..12).prop_flat_map(|(rows, columns)| (
            Just(rows),
            prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), -1.5f64..1.5], rows * columns),
            prop::collection::vec(-10.0f64..10.0, rows),
        )),
        noise in prop_oneof![Just(0.0), 0.01f64..5.0],
        share in 0.0f64..1.0,
    ) {
        let a = Dense { rows, entries };
        let sparsity = 1 + (share * rows as f64) as usize;
        for algorithm in ALL {
            let limit = Target { sparsity: Some(sparsity), noise, iterations: 60, threshold: None };
            let found = run(&a, &y, algorithm, limit);
            prop_assert!(found.residual <= length(&y) * (1.0 + 1e-9));
        }
    }
}

#[test]
#[ignore = "prints times and counts"]
fn speed() {
    let random = &mut Random(9);
    let (n, k, sparsity) = (1 << 16, 4096, 64);
    let a = Sparse::new(k, n, 8, random);
    let theta = sparse_vector(n, sparsity, random, |random| 100.0 * random.gaussian());
    let mut out = vec![0.0; n];
    let y = image(&a, &theta);
    let start = std::time::Instant::now();
    for _ in 0..100 {
        a.adjoint(&y, &mut out);
    }
    eprintln!("adjoint {:?}", start.elapsed() / 100);
    for noise in [0.0, 1.0, 10.0] {
        let y: Vec<f64> = y.iter().map(|y| y + noise * random.gaussian()).collect();
        for algorithm in ALL {
            for given in [Some(sparsity), None] {
                if given.is_none() && algorithm != Algorithm::BasisPursuit {
                    continue;
                }
                a.products.store(0, Ordering::Relaxed);
                let start = std::time::Instant::now();
                let found = run(&a, &y, algorithm, target(given, noise));
                eprintln!(
                    "noise {noise}, {algorithm:?} {given:?}: {:.3} s, {} products, {} iterations, {} entries, error {:.3e}",
                    start.elapsed().as_secs_f64(),
                    a.products.load(Ordering::Relaxed),
                    found.iterations,
                    found.support.len(),
                    distance(&dense(&found, n), &theta),
                );
                assert!(found.converged);
            }
        }
    }
}

/// What noise reaches is dropped, and the others are least squares on their own columns, whatever was fitted beside them.
#[test]
fn what_stays_is_fitted_again() {
    let mut random = Random(5);
    let (n, rows, noise) = (400, 160, 1.0);
    let a = Dense::bernoulli(rows, n, &mut random);
    let theta = sparse_vector(n, 4, &mut random, |random| 40.0 * random.sign());
    let mut y = vec![0.0; rows];
    a.apply(&theta, &mut y);
    for y in &mut y {
        *y += noise * random.gaussian();
    }
    let above = 2.0 * (2.0 * (n as f64).ln()).sqrt();
    for algorithm in ALL {
        for keep_first in [false, true] {
            let threshold = Some(Threshold { above, keep_first });
            let wanted = Target { threshold, ..target(Some(30), noise) };
            let found = recover(&a, &y, algorithm, wanted, &mut |_, _| ControlFlow::Continue(())).unwrap();
            let truth: Vec<usize> = (0..n).filter(|j| theta[*j] != 0.0).collect();
            let others: Vec<usize> = found.support.iter().copied().filter(|j| *j > 0 || theta[0] != 0.0).collect();
            assert_eq!(others, truth, "{algorithm:?}");
            // Nothing is left in the direction of a column that stays.
            let (mut image, mut back) = (y.clone(), vec![0.0; n]);
            for (j, value) in found.support.iter().zip(&found.values) {
                image.iter_mut().zip(&a.entries[j * rows..]).for_each(|(y, entry)| *y -= value * entry);
            }
            a.adjoint(&image, &mut back);
            assert!(found.support.iter().all(|j| back[*j].abs() < 1e-3), "{algorithm:?}");
            assert!((image.iter().map(|y| y * y).sum::<f64>().sqrt() / found.residual - 1.0).abs() < 1e-9);
        }
    }
}
