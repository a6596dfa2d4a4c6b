//! Known sparse vectors, with and without noise; an oracle that knows the support; selection by sorting.

use super::*;
use std::ops::ControlFlow;

const ALL: [Algorithm; 3] = [Algorithm::Cosamp, Algorithm::HardThresholding, Algorithm::BasisPursuit];

/// SplitMix64 (Steele, Lea & Flood 2014).
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
            v.iter_mut().for_each(|v| *v /= length);
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
            *out = least_squares::dot(column, y);
        }
    }
}

/// `±1/√s` at s places of each column, one in each block of `k/s` rows.
struct Sparse {
    rows: usize,
    columns: usize,
    /// Rows and entries, column by column.
    entries: Vec<(u32, f64)>,
}

impl Sparse {
    fn new(rows: usize, columns: usize, per_column: usize, random: &mut Random) -> Self {
        let block = rows / per_column;
        let size = 1.0 / (per_column as f64).sqrt();
        let entry = |i: usize, random: &mut Random| ((i * block + random.below(block)) as u32, size * random.sign());
        let entries = (0..columns * per_column).map(|j| entry(j % per_column, random)).collect();
        Self { rows, columns, entries }
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
        out.fill(0.0);
        let per_column = self.entries.len() / self.columns;
        for (column, x) in self.entries.chunks_exact(per_column).zip(x).filter(|(_, x)| **x != 0.0) {
            column.iter().for_each(|(row, c)| out[*row as usize] += c * x);
        }
    }

    fn adjoint(&self, y: &[f64], out: &mut [f64]) {
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
    Target { sparsity, noise, iterations: 3000 }
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
#[ignore = "prints times"]
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
    for noise in [0.0, 0.1, 1.0] {
        let y: Vec<f64> = y.iter().map(|y| y + noise * random.gaussian()).collect();
        for algorithm in ALL {
            for given in [Some(sparsity), None] {
                if given.is_none() && algorithm != Algorithm::BasisPursuit {
                    continue;
                }
                let start = std::time::Instant::now();
                let found = run(&a, &y, algorithm, target(given, noise));
                let time = start.elapsed();
                eprintln!(
                    "noise {noise}, {algorithm:?} {given:?}: {time:?}, {} iterations, {:?} each, {} entries, error {}, {}",
                    found.iterations,
                    time / found.iterations as u32,
                    found.support.len(),
                    distance(&dense(&found, n), &theta),
                    found.converged,
                );
            }
        }
    }
}
