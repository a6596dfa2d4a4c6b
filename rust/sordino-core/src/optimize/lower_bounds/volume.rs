//! The volume bound for pure privacy (Hardt & Talwar 2010; Bhaskara, Dadush, Krishnaswamy & Talwar 2012; Nikolov,
//! Talwar & Zhang 2013, section 3.3), bracketed.
//!
//! Let `K` be the convex hull of the columns `±a_j`, `vrad(K) = (vol K/vol B)^{1/k}` in dimension `k`, and
//!
//! `volLB = max_k max_Π k²·vrad(Π K)²` over projections `Π` on `k` dimensions (`ε = 1`; divide by `ε²`).
//!
//! **Any mechanism** with `P(M(x) ∈ T) ≤ e^{ε|x − x'|₁} P(M(x') ∈ T)` for all real `x, x'` has total squared error at
//! least `k²·vrad(Π K)²/(e²ε²·(1 + 2/k)(1 + k/2)^{2/k})`. Proof. Let `σ²` bound `E|M(x) − A x|²`, and
//! `r² = (1 + 2/k)σ²`. Every `y` in `Π(tK)` is `Π A x` with `|x|₁ ≤ t`, so by Markov's inequality the ball of radius
//! `r` around `y` holds `Π M(0)` with probability at least `e^{−εt}(1 − σ²/r²)`. Integrated over `y` this is at most
//! the volume of one ball: `t^k vrad(Π K)^k e^{−εt}(1 + k/2)^{−1} ≤ r^k`. Put `t = k/ε`.
//!
//! **Below.** For weights `w` of the cells that sum to 1 and `M = A diag(w) Aᵀ`, `K` contains the ellipsoid
//! `M^{1/2}B`: the support function of `K` is `max_j |⟨a_j, θ⟩| ≥ (Σ_j w_j⟨a_j, θ⟩²)^{1/2}`. Its projection on
//! the `k` longest axes has `vrad = (s_1 ⋯ s_k)^{1/k}`, `s` the semi-axes. (With the weights of the minimum ellipsoid
//! this is John's theorem.) `K` contains the cross-polytope of any `k` columns as well, of volume
//! `2^k det(A_SᵀA_S)^{1/2}/k!`.
//!
//! **Above.** `K` lies in `h·M^{1/2}B` with `h = max_j ν_j`, `ν_j² = a_jᵀM^{-1}a_j`, and no projection of an
//! ellipsoid on `k` dimensions is larger than that on its longest axes. A polytope of few vertices is smaller than
//! its ellipsoid by `O(√(log(N/k)/k))` (Bárány & Füredi 1988; Gluskin 2007), here with a constant. Write
//! `Π M^{1/2} = G W`, `G` k × k, `W` with orthonormal rows, and `C = {y : |⟨W M^{-1/2}a_j, y⟩| ≤ 1}`. In the standard
//! Gaussian measure `γ(tC) ≥ Π_j P(|Z| ≤ t/ν_j)` (Šidák 1967), so `vol C ≥ t^{-k}(2π)^{k/2}γ(tC)`, and
//! `vol C · vol C° ≤ (vol B)²` (Santaló 1949) for `C°`, the hull of the `±W M^{-1/2}a_j`. Hence for every `t > 0`
//!
//! `vrad(Π K) ≤ (s_1 ⋯ s_k)^{1/k}·(vol B)^{1/k}·t/√(2π)·Π_j P(|Z| ≤ t/ν_j)^{−1/k}`.

use super::super::factorization::{SLACK, not_converged};
use super::super::linear_algebra::{
    Matrix, Precision, left_singular, pivoted_columns, scale_columns, scale_rows, select_columns, squared_columns,
    transposed_product,
};
use super::super::normal::log_centre;
use super::super::queries::Queries;
use super::super::range::Range;
use super::{first_largest, geometric_mean_below, normalised};
use crate::error::Error;
use crate::transform::fourier::UNIT_ROUNDOFF;
use std::f64::consts::{E, LN_2, PI};

/// Least accepted ratio of two semi-axes.
const FLAT: f64 = 1e-10;

/// Values of `t` that are tried, between these multiples of the largest `ν_j`.
const GRID: (usize, f64, f64) = (240, 0.02, 12.0);

/// A bracket of the volume bound, and what it proves; divide by `ε`.
#[derive(Debug, Clone, PartialEq)]
pub struct VolumeBound {
    /// `√(volLB/m)` is at least this, by a projection on `size` dimensions.
    pub lower: f64,
    /// Dimensions behind `lower`.
    pub size: usize,
    /// `√(volLB/m)` is at most this.
    pub upper: f64,
    /// Every `ε`-private mechanism for real data has a root mean squared error of at least this over `ε`.
    pub error: f64,
}

/// The bracket from any weights of the cells, uniform unless given; tight ones are those of the minimum ellipsoid that
/// contains the columns (D-optimal weights).
///
/// # Errors
/// If a weight is negative, the weights leave a direction of the queries flat, or singular values do not converge.
pub fn volume_bound(queries: Queries<'_>, cell_weights: Option<&[f64]>) -> Result<VolumeBound, Error> {
    let n = queries.columns();
    let weights = cell_weights.map_or_else(|| Ok(vec![1.0 / n as f64; n]), |w| normalised("cell_weights", n, w))?;
    let (a, scale) = queries.scaled();
    let range = Range::new(&a)?;
    let ellipsoid = Ellipsoid::new(&range, &weights)?;
    let polytope = CrossPolytopes::new(&range.reduced);
    let balls = log_balls(ellipsoid.axes.len());

    let sizes = || 1..=ellipsoid.axes.len();
    let ellipsoids: Vec<f64> = sizes().map(|k| ellipsoid.inside(k)).collect();
    let hulls: Vec<f64> = sizes().map(|k| polytope.inside(k, &balls)).collect();
    let inside = |k: usize| ellipsoids[k - 1].max(hulls[k - 1]);
    let proven = |k: usize| {
        if ellipsoids[k - 1] >= hulls[k - 1] { Ok(ellipsoids[k - 1]) } else { polytope.proven(k, &balls) }
    };
    let size = 1 + first_largest(sizes().map(|k| k as f64 * inside(k)));
    let strongest = 1 + first_largest(sizes().map(|k| constant(k) * k as f64 * inside(k)));
    let longest = squared_columns(&range.reduced).into_iter().fold(0.0, f64::max).sqrt();
    let above = sizes().map(|k| k as f64 * ellipsoid.outside(k, &balls).min(longest)).fold(0.0, f64::max);

    let unit = scale / (a.nrows() as f64).sqrt();
    Ok(VolumeBound {
        lower: size as f64 * proven(size)? * unit,
        size,
        upper: above * (1.0 + SLACK) * unit,
        error: constant(strongest) * strongest as f64 * proven(strongest)? * unit,
    })
}

/// `1/(e·√((1 + 2/k)(1 + k/2)^{2/k}))`.
fn constant(k: usize) -> f64 {
    let k = k as f64;
    1.0 / (E * ((1.0 + 2.0 / k) * (1.0 + k / 2.0).powf(2.0 / k)).sqrt())
}

/// `ln vol(B^k)/k` for `k = 0, …, most`: `vol B^k = vol B^{k−2}·2π/k`.
fn log_balls(most: usize) -> Vec<f64> {
    let mut logs = vec![0.0, LN_2];
    for k in 2..=most {
        logs.push(logs[k - 2] + (2.0 * PI / k as f64).ln());
    }
    logs.iter().enumerate().map(|(k, log)| log / k.max(1) as f64).collect()
}

/// The ellipsoid `M^{1/2}B`.
struct Ellipsoid {
    /// Semi-axes, falling.
    axes: Vec<f64>,
    /// `max ν_j`, rounded up.
    reach: f64,
    /// `ln t` and `Σ_j ln P(|Z| ≤ t/ν_j)` for the values of `t` tried.
    slabs: Vec<(f64, f64)>,
}

impl Ellipsoid {
    fn new(range: &Range, weights: &[f64]) -> Result<Self, Error> {
        let mut weighted = range.coordinates.clone();
        scale_columns(&mut weighted, |j| weights[j].sqrt());
        let (vectors, axes) = left_singular(&weighted, Precision::Careful).ok_or_else(not_converged)?;
        let (most, least) = (axes[0], axes[axes.len() - 1]);
        if least.is_nan() || least <= FLAT * most {
            return Err(Error::invalid("cell_weights", "leave a direction of the queries without weight"));
        }
        let mut white = transposed_product(&vectors, &range.reduced);
        scale_rows(&mut white, |i| 1.0 / axes[i]);
        let rounding = 1.0 + UNIT_ROUNDOFF * 8.0 * axes.len() as f64 * most / least;
        let norms: Vec<f64> = squared_columns(&white).into_iter().map(|square| square.sqrt() * rounding).collect();
        let reach = norms.iter().copied().fold(0.0, f64::max);
        let (steps, from, to) = GRID;
        let slabs = (0..=steps).map(|step| {
            let t = reach * from * f64::powf(to / from, step as f64 / steps as f64);
            (t.ln(), norms.iter().map(|norm| log_centre(t / norm)).sum())
        });
        Ok(Self { slabs: slabs.collect(), axes, reach })
    }

    /// Volume radius of the projection on the `k` longest axes, rounded down.
    fn inside(&self, k: usize) -> f64 {
        self.mean(k, -SLACK * self.axes[0]) * (1.0 - SLACK)
    }

    /// An upper bound on the volume radius of every projection of `K` on `k` dimensions.
    fn outside(&self, k: usize, balls: &[f64]) -> f64 {
        let ellipsoid = self.mean(k, SLACK * self.axes[0]);
        let few = self.slabs.iter().map(|(log, slabs)| log - slabs / k as f64).fold(f64::INFINITY, f64::min);
        ellipsoid * self.reach.min((few + balls[k] - 0.5 * (2.0 * PI).ln()).exp())
    }

    /// Geometric mean of the `k` longest semi-axes, each changed by `slack`.
    fn mean(&self, k: usize, slack: f64) -> f64 {
        (self.axes[..k].iter().map(|s| (s + slack).max(0.0).ln()).sum::<f64>() / k as f64).exp()
    }
}

/// Hulls of `±` the first `k` columns in the order of pivoted orthogonalisation.
struct CrossPolytopes<'a> {
    columns: &'a Matrix,
    order: Vec<usize>,
    /// `ln det(A_SᵀA_S)^{1/(2k)}` for `k = 1, 2, …`, not rounded.
    logs: Vec<f64>,
}

impl<'a> CrossPolytopes<'a> {
    fn new(columns: &'a Matrix) -> Self {
        let (order, upper) = pivoted_columns(columns);
        let mut sum = 0.0;
        let logs = (0..columns.nrows()).map(|k| {
            sum += upper[(k, k)].abs().ln();
            sum / (k as f64 + 1.0)
        });
        Self { columns, logs: logs.collect(), order }
    }

    /// Volume radius of the hull of `k` columns.
    fn inside(&self, k: usize, balls: &[f64]) -> f64 {
        (self.logs[k - 1] + Self::shape(k, balls)).exp()
    }

    /// The same, rounded down.
    fn proven(&self, k: usize, balls: &[f64]) -> Result<f64, Error> {
        let mean = geometric_mean_below(&select_columns(self.columns, &self.order[..k]))?;
        Ok(mean * Self::shape(k, balls).exp() * (1.0 - SLACK))
    }

    /// `ln vrad` of the standard cross-polytope, `(2^k/(k! vol B^k))^{1/k}`.
    fn shape(k: usize, balls: &[f64]) -> f64 {
        let factorial: f64 = (1..=k).map(|i| (i as f64).ln()).sum();
        LN_2 - factorial / k as f64 - balls[k]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balls_and_constants() {
        let balls = log_balls(4);
        for (k, volume) in [(1, 2.0), (2, PI), (3, 4.0 * PI / 3.0), (4, PI * PI / 2.0)] {
            assert!((balls[k] * k as f64 - f64::ln(volume)).abs() < 1e-15, "{k}");
        }
        // A segment is its own ball, and a square of diagonal 2 has area 2.
        assert!(CrossPolytopes::shape(1, &balls).abs() < 1e-15);
        assert!((CrossPolytopes::shape(2, &balls) - 0.5 * (2.0 / PI).ln()).abs() < 1e-15);
        assert!((constant(1) - 1.0 / (E * 6.75f64.sqrt())).abs() < 1e-15);
        assert!((1..2000).all(|k| constant(k) < constant(k + 1) && constant(k) < 1.0 / E));
    }
}
