//! Kernel queries declared beforehand, in any dimension: whitened, so that white noise has the covariance of the queries.
//!
//! Queries are `f_i = Σ_c a_ic k(·, y_ic)` in the reproducing-kernel space of `k`, with Gram matrix `G_ij = ⟨f_i, f_j⟩`. With
//! `G = V Λ Vᵀ` a point has the features `ψ(x) = Λ^{-1/2} Vᵀ (f_1(x), …, f_m(x))`, the coordinates of the projection of
//! `k(·, x)` on the span of the queries. A projection brings no two points further apart than
//! `‖k(·, x) − k(·, x')‖² = 2 − 2k(x, x')`, whatever the number of queries; noise on `Σψ` gives query `i` the standard
//! deviation `σ Δ ‖f_i‖`: that of Hall, Rinaldo & Wasserman 2013, Section 4, for queries at finitely many points.
//!
//! **Certificate.** The matrix `M ≈ Λ^{-1/2} Vᵀ` as computed is taken as it is: `‖Mf(x) − Mf(x')‖² ≤ λ_max(M G Mᵀ) (2 − 2k)`,
//! and `λ_max ≤ 1 + ‖fl(M G Mᵀ) − I‖_F + error`. Directions of small eigenvalues, for which the error would be large, are left
//! out; what that costs each query is reported.

use super::kernel::Kernel;
use super::{FeatureMap, Norms, Weights, add_in_parts, fitting_bits};
use crate::error::Error;
use crate::linear_algebra as la;
use crate::parallel::in_pieces;
use crate::upper::Upper;

/// What the error bound of the certificate may add to the squared sensitivity.
const MOST_ERROR: f64 = 5e-3;
/// Bound of a feature: their squares add up to at most `growth`.
const LARGEST: f64 = 2.0;
/// Most declared queries: their Gram matrix is dense.
const MOST_QUERIES: usize = 1 << 13;

/// Whitened declared queries.
#[derive(Debug)]
pub struct Declared {
    kernel: Kernel,
    centres: Vec<f64>,
    weights: Vec<f64>,
    queries: usize,
    /// `M`, features × queries, row-major.
    whitening: Vec<f64>,
    /// `V Λ^{1/2}`, queries × features, row-major.
    decoding: Vec<f64>,
    /// `‖f_i‖²` lost by leaving directions out.
    lost: Vec<f64>,
    /// Upper bound of `λ_max(M G Mᵀ)`.
    growth: f64,
    /// Bound of the error of `ψ` in the `ℓ2` norm.
    error: f64,
    bits: u32,
}

impl Declared {
    /// Queries with `weights.len()/queries` centres each, in units of the cube; directions are left out as long as the mean
    /// of the squared norms lost stays below `tolerance²`.
    ///
    /// # Errors
    /// If shapes do not fit, numbers are not finite, queries are zero or too many, or so many points do not fit.
    pub fn new(
        kernel: Kernel,
        centres: Vec<f64>,
        weights: Vec<f64>,
        queries: usize,
        tolerance: f64,
        points: u64,
    ) -> Result<Self, Error> {
        let absolute = check(&kernel, &centres, &weights, queries)?;
        let gram = gram(&kernel, &centres, &weights, queries);
        let failed =
            || Error::Unsupported("the Gram matrix of these queries has no eigenvalues in floating point".into());
        let (vectors, values) = la::symmetric_eigen(&la::from_rows(queries, queries, &gram)).ok_or_else(failed)?;
        let total: f64 = values.iter().filter(|value| **value > 0.0).sum();
        if total.is_nan() || total <= 0.0 {
            return Err(Error::invalid("queries", "must not all be zero"));
        }
        let unit = entry_error(&kernel, weights.len() / queries) + rounding(queries);
        let (mut rows, mut spread, mut left) = (Vec::new(), 0.0, total);
        for (k, value) in values.iter().enumerate() {
            if *value <= 0.0 || left <= tolerance * tolerance * queries as f64 {
                break;
            }
            let row: Vec<f64> = (0..queries).map(|i| vectors[(i, k)] / value.sqrt()).collect();
            spread += reach(&row, &absolute).powi(2);
            if spread * unit > MOST_ERROR && !rows.is_empty() {
                break;
            }
            rows.extend(row);
            left -= value;
        }
        Self::certified(kernel, centres, weights, queries, rows, &gram, points)
    }

    /// The same queries with a whitening that was made elsewhere: eigenvectors differ in their last bits between machines,
    /// and sums add up only where points add the same numbers. Whatever the matrix, its sensitivity is certified.
    ///
    /// # Errors
    /// As [`Self::new`], or if the matrix has other columns, is not finite, or is no whitening of these queries.
    pub fn with_whitening(
        kernel: Kernel,
        centres: Vec<f64>,
        weights: Vec<f64>,
        queries: usize,
        whitening: Vec<f64>,
        points: u64,
    ) -> Result<Self, Error> {
        check(&kernel, &centres, &weights, queries)?;
        let rows = whitening.len() / queries;
        if rows == 0 || rows > queries || whitening.len() != rows * queries || !whitening.iter().all(|m| m.is_finite())
        {
            return Err(Error::invalid("whitening", "must have one finite column a query, and at most as many rows"));
        }
        let gram = gram(&kernel, &centres, &weights, queries);
        Self::certified(kernel, centres, weights, queries, whitening, &gram, points)
    }

    fn certified(
        kernel: Kernel,
        centres: Vec<f64>,
        weights: Vec<f64>,
        queries: usize,
        whitening: Vec<f64>,
        gram: &[f64],
        points: u64,
    ) -> Result<Self, Error> {
        let bits = fitting_bits(points, LARGEST)?;
        let absolute = check(&kernel, &centres, &weights, queries)?;
        let unit = entry_error(&kernel, weights.len() / queries) + rounding(queries);
        let kept = whitening.len() / queries;
        let spread: f64 = whitening.chunks_exact(queries).map(|row| reach(row, &absolute).powi(2)).sum();
        let matrix = la::from_rows(kept, queries, &whitening);
        let whitened = la::product(&matrix, &la::from_rows(queries, queries, gram));
        let product = la::product(&whitened, &la::transpose(&matrix));
        let identity = la::identity(kept);
        let apart: f64 = la::to_rows(&product).iter().zip(la::to_rows(&identity)).map(|(x, y)| (x - y) * (x - y)).sum();
        let growth = (1.0 + apart.sqrt() * 1.001 + spread * unit) * (1.0 + 1e-12);
        if growth.is_nan() || growth > 2.0 {
            return Err(Error::invalid(
                "whitening",
                "must be one of these queries: their features are not orthonormal",
            ));
        }
        let norm = whitening.iter().map(|m| m * m).sum::<f64>().sqrt();
        let largest = absolute.iter().copied().fold(0.0, f64::max);
        let error = norm * (queries as f64).sqrt() * largest * unit;
        // G Mᵀ = V Λ^{1/2}.
        let decoding = la::to_rows(&la::transpose(&whitened));
        let size = |i: usize| la::inner(&decoding[i * kept..][..kept], &decoding[i * kept..][..kept]);
        let lost = (0..queries).map(|i| (gram[i * queries + i] - size(i)).max(0.0)).collect();
        Ok(Self { kernel, centres, weights, queries, whitening, decoding, lost, growth, error, bits })
    }

    /// `M`, features × queries, row-major: what the same sums elsewhere must be made with.
    pub fn whitening(&self) -> &[f64] {
        &self.whitening
    }

    /// `V Λ^{1/2}`: sums of the queries from sums of the features, row-major.
    pub fn decoding(&self) -> &[f64] {
        &self.decoding
    }

    /// For every query `‖f_i − P f_i‖²`: no point's value is off by more than its root.
    pub fn lost(&self) -> &[f64] {
        &self.lost
    }

    fn each(&self) -> usize {
        self.weights.len() / self.queries
    }

    /// Values of the queries at a point.
    fn values(&self, point: &[f64], out: &mut [f64]) {
        let (each, d) = (self.each(), self.kernel.dimension());
        let queries = self.centres.chunks_exact(each * d).zip(self.weights.chunks_exact(each));
        for (value, (centres, weights)) in out.iter_mut().zip(queries) {
            *value = centres.chunks_exact(d).zip(weights).map(|(y, a)| a * self.kernel.value(point, y)).sum();
        }
    }

    fn add_alone(&self, points: &[f64], sums: &mut [i64]) {
        let scale = 2f64.powi(self.bits as i32);
        let mut values = vec![0.0; self.queries];
        for point in points.chunks_exact(self.kernel.dimension()) {
            self.values(point, &mut values);
            for (sum, row) in sums.iter_mut().zip(self.whitening.chunks_exact(self.queries)) {
                *sum += (dot(row, &values) * scale).round_ties_even() as i64;
            }
        }
    }
}

/// Checks shapes and entries; returns the summed magnitudes of the weights of every query.
fn check(kernel: &Kernel, centres: &[f64], weights: &[f64], queries: usize) -> Result<Vec<f64>, Error> {
    let each = weights.len().checked_div(queries).unwrap_or(0);
    let fits = each > 0 && weights.len() == each * queries && centres.len() == weights.len() * kernel.dimension();
    if !fits || queries > MOST_QUERIES {
        return Err(Error::invalid("queries", format!("must be from 1 to {MOST_QUERIES}, each with its centres")));
    }
    if !centres.iter().chain(weights).all(|value| value.abs() <= 1e6) {
        return Err(Error::invalid("queries", "must have finite centres and weights up to 1e6"));
    }
    Ok(weights.chunks_exact(each).map(|row| row.iter().map(|w| w.abs()).sum()).collect())
}

/// Error of an entry of G over the product of the weights: kernels, and sums of `each²` products.
fn entry_error(kernel: &Kernel, each: usize) -> f64 {
    kernel.error() + 2.0 * (each as f64 + 2.0) * f64::EPSILON
}

/// Error of products with M over those of magnitudes: `queries` terms, twice.
fn rounding(queries: usize) -> f64 {
    4.0 * (queries as f64 + 4.0) * f64::EPSILON
}

/// `Σ_i |m_i| a_i`: what a feature can be, term by term.
fn reach(row: &[f64], absolute: &[f64]) -> f64 {
    row.iter().zip(absolute).map(|(m, a)| m.abs() * a).sum()
}

/// `⟨x, y⟩` in one order whatever the machine: eight partial sums.
fn dot(x: &[f64], y: &[f64]) -> f64 {
    let (x_body, x_rest) = x.as_chunks::<8>();
    let (y_body, y_rest) = y.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in x_body.iter().zip(y_body) {
        for i in 0..8 {
            sums[i] += x[i] * y[i];
        }
    }
    sums.iter().sum::<f64>() + la::inner(x_rest, y_rest)
}

/// `⟨f_i, f_j⟩ = Σ a_ic a_jc' k(y_ic, y_jc')`, row-major.
fn gram(kernel: &Kernel, centres: &[f64], weights: &[f64], queries: usize) -> Vec<f64> {
    let (each, d) = (weights.len() / queries, kernel.dimension());
    let mut gram = vec![0.0; queries * queries];
    in_pieces(&mut gram, queries, &|first, row| {
        let i = first / queries;
        for (j, slot) in row.iter_mut().enumerate().take(i + 1) {
            for c in i * each..(i + 1) * each {
                let own = &centres[c * d..][..d];
                let others = centres[j * each * d..][..each * d].chunks_exact(d).zip(&weights[j * each..]);
                *slot += weights[c] * others.map(|(y, a)| a * kernel.value(own, y)).sum::<f64>();
            }
        }
    });
    for i in 0..queries {
        for j in i + 1..queries {
            gram[i * queries + j] = gram[j * queries + i];
        }
    }
    gram
}

impl FeatureMap for Declared {
    fn dimension(&self) -> usize {
        self.kernel.dimension()
    }

    fn features(&self) -> usize {
        self.whitening.len() / self.queries
    }

    fn bits(&self) -> u32 {
        self.bits
    }

    fn largest(&self) -> f64 {
        LARGEST
    }

    fn add(&self, points: &[f64], sums: &mut [i64]) {
        let part = 64 * self.kernel.dimension();
        if rayon::current_num_threads() == 1 || points.len() <= part {
            return self.add_alone(points, sums);
        }
        add_in_parts(points, part, sums, |points, sums| self.add_alone(points, sums));
    }

    fn norms(&self, weights: &Weights, l1: bool) -> Result<Norms, Error> {
        if l1 || *weights != Weights::Uniform {
            return Err(Error::Unsupported("the features of a kernel go with Gaussian noise, unweighted".into()));
        }
        let rounding = 0.5 * 2f64.powi(-(self.bits as i32)) * (self.features() as f64).sqrt();
        let moved = (self.error + rounding) * 1.01;
        let up = |norm: f64, times: f64| Upper::rounded((norm + times * moved) * (1.0 + 1e-12), 1);
        let pair = (self.growth * 2.0 * (1.0 - self.kernel.least())).sqrt();
        Ok(Norms { column: up(self.growth.sqrt(), 1.0), pair: up(pair, 2.0) })
    }

    fn describe(&self, words: &mut Vec<u64>) {
        words.extend([3, u64::from(self.bits), self.queries as u64]);
        self.kernel.describe(words);
        // The whitening is what a point adds; on another machine it may have other last bits.
        words.extend(self.centres.iter().chain(&self.weights).chain(&self.whitening).map(|value| value.to_bits()));
    }
}
