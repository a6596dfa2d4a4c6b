//! Sums of tensor Chebyshev polynomials, or of the features of a product kernel in them.
//!
//! Source: Wang et al. 2013, Algorithm 1 (its monomials `Π cos(m_j arccos u_j)`), with the exact sensitivities: for weights
//! `w ≥ 0` the largest `ℓ1` change by a replaced point is `max_u Σ_m w_m (1 − φ_m(u))`, since by the product formula
//! `|φ_m(u) − φ_m(v)| ≤ 1 − (φ_m(θ + θ') + φ_m(θ − θ'))/2` after averaging over the signs, attained at `v = (1, …, 1)`. The
//! noise that is printed there, `ℓ1` sensitivity `t^d`, is too small by up to 21.7 % for the full tensor set and by up
//! to a factor 2 for sets of low degree.
//!
//! `ℓ2` over a product of axes: with `p_j = k_j(u, u)`, `q_j = k_j(v, v)`, `r_j = k_j(u, v)` the squared change is
//! `Πp + Πq − 2Πr`. If `Πr ≥ 0` it is at most `2Πc − 2Πr`, `c_j = max p_j`; else some `r_j < 0`, and as
//! `|r_i| ≤ √(p_i q_i)` it is at most `(p_j + q_j + 2|r_j|) Π_{i≠j} c_i = ‖ψ_j(u) − ψ_j(v)‖² Π_{i≠j} c_i`.
//! Mixed axes are the finite form of Hall, Rinaldo & Wasserman 2013, Section 4 (noise in a reproducing-kernel space).

use super::axis::Axis;
use super::certificates::{cosine_range, lower_bound};
use super::index_set::Half;
use super::{FeatureMap, IndexSet, Norms, Weights, add_in_parts, fitting_bits, too_many_points};
use crate::error::Error;
use crate::linear_algebra as la;
use crate::upper::Upper;
use pulp::Arch;
use rayon::prelude::*;

/// Points whose features are in memory at once: few where sums fit the cache, more where reading them takes time. With at
/// most 42 bits (`fitting_bits`) and features of at most 2 the products of 2^10 points add up to less than 2^53: the matrix products of
/// floats are exact.
const CHUNK: usize = 256;
const LONG_CHUNK: usize = 1024;
/// Products are accumulated in so many floats at a time.
const BLOCK: usize = 1 << 16;
/// But for at least so many left rows: the right features are packed anew for every product.
const LEAST_ROWS: usize = 128;
/// With more features than this, threads share the sums instead of the points.
const SHARED: usize = 1 << 18;
/// Points of a thread's own sums.
const OWN: usize = 1 << 14;

/// Sums of products of features of the axes.
#[derive(Debug)]
pub struct Chebyshev {
    axes: Vec<Axis>,
    set: IndexSet,
    bits: (u32, u32),
    largest: f64,
}

impl Chebyshev {
    /// Features for at most `points` points.
    ///
    /// # Errors
    /// If axes and set differ in size, mixed axes come with a list of indices, or so many points do not fit.
    pub fn new(axes: Vec<Axis>, set: IndexSet, points: u64) -> Result<Self, Error> {
        let plain = axes.iter().all(Axis::is_plain);
        if axes.len() != set.sizes().len() || axes.iter().zip(set.sizes()).any(|(axis, size)| axis.features() != *size)
        {
            return Err(Error::invalid("axes", "must have as many features as the index set"));
        }
        if !plain && (axes.iter().any(Axis::is_plain) || !set.is_tensor()) {
            return Err(Error::invalid("axes", "must all be mixed, with a tensor set, or none"));
        }
        let largest = set.left.error(&axes).1 * set.right.error(&axes).1;
        if largest > 2.0 {
            return Err(too_many_points());
        }
        let bits = fitting_bits(points, largest * 1.01)?;
        let left = if set.right.first == set.right.last { bits } else { bits.div_ceil(2) };
        Ok(Self { axes, set, bits: (left, bits - left), largest })
    }

    /// Bound on the error of a feature as computed, rounding to its grid included.
    fn error(&self) -> f64 {
        let ((el, ml), (er, mr)) =
            (self.half_error(&self.set.left, self.bits.0), self.half_error(&self.set.right, self.bits.1));
        (el * (mr + er) + ml * er) * 1.01
    }

    fn half_error(&self, half: &Half, bits: u32) -> (f64, f64) {
        if half.first == half.last {
            return (0.0, 1.0);
        }
        let (error, largest) = half.error(&self.axes);
        (error + 0.5 * 2f64.powi(-(bits as i32)), largest)
    }

    /// Features of both halves for some points, one row each.
    fn halves(&self, points: &[f64], work: &mut Work) {
        let dimension = self.axes.len();
        let len = points.len() / dimension;
        Arch::new().dispatch(
            #[inline(always)]
            || {
                for (j, axis) in self.axes.iter().enumerate() {
                    work.coordinate.clear();
                    work.coordinate.extend(points.chunks_exact(dimension).map(|point| point[j]));
                    axis.fill(&work.coordinate, &mut work.polynomials, &mut work.values[j]);
                }
                self.set.left.fill(&work.values, len, self.bits.0, true, &mut work.left);
                self.set.right.fill(&work.values, len, self.bits.1, true, &mut work.right);
            },
        );
    }

    /// Adds the products of left rows `rows` with the right ones to the sums, of which `sums` are those of these rows.
    fn add_rows(
        &self,
        len: usize,
        rows: std::ops::Range<usize>,
        work: &Work,
        sums: &mut [i64],
        products: &mut Vec<f64>,
    ) {
        let columns = match &self.set.pairs {
            None => self.set.right.len,
            Some(pairs) => rows.clone().filter_map(|a| pairs.row(a).last()).map(|b| *b as usize + 1).max().unwrap_or(0),
        };
        products.resize(rows.len() * columns, 0.0);
        let left = &work.left[rows.start * len..rows.end * len];
        la::transposed_product_into(products, len, &work.right[..columns * len], left);
        match &self.set.pairs {
            None => sums.iter_mut().zip(&*products).for_each(|(sum, product)| *sum += *product as i64),
            Some(pairs) => {
                let start = pairs.starts[rows.start];
                for (i, a) in rows.enumerate() {
                    let sums = &mut sums[pairs.starts[a] - start..pairs.starts[a + 1] - start];
                    for (sum, b) in sums.iter_mut().zip(pairs.row(a)) {
                        *sum += products[i * columns + *b as usize] as i64;
                    }
                }
            }
        }
    }

    /// Points whose features are in memory at once.
    fn chunk(&self) -> usize {
        if self.set.len() > SHARED { LONG_CHUNK } else { CHUNK }
    }

    /// Left rows that are multiplied together.
    fn block(&self) -> usize {
        let most = (BLOCK / self.set.right.len).max(LEAST_ROWS);
        // Rows of a list have right indices of different number: few at a time waste little.
        if self.set.is_tensor() { most } else { most.min(16) }
    }

    /// Where the sums of a left row start.
    fn start(&self, a: usize) -> usize {
        self.set.pairs.as_ref().map_or(a * self.set.right.len, |pairs| pairs.starts[a])
    }

    pub(super) fn add_alone(&self, points: &[f64], sums: &mut [i64]) {
        let (mut work, mut products) = (Work::new(self.axes.len()), Vec::new());
        for chunk in points.chunks(self.chunk() * self.axes.len()) {
            let len = chunk.len() / self.axes.len();
            self.halves(chunk, &mut work);
            for first in (0..self.set.left.len).step_by(self.block()) {
                let rows = first..(first + self.block()).min(self.set.left.len);
                let own = &mut sums[self.start(rows.start)..self.start(rows.end)];
                self.add_rows(len, rows, &work, own, &mut products);
            }
        }
    }

    fn add_shared(&self, points: &[f64], sums: &mut [i64]) {
        let mut work = Work::new(self.axes.len());
        for chunk in points.chunks(self.chunk() * self.axes.len()) {
            let len = chunk.len() / self.axes.len();
            self.halves(chunk, &mut work);
            let mut parts = Vec::new();
            let mut rest = &mut *sums;
            for first in (0..self.set.left.len).step_by(self.block()) {
                let rows = first..(first + self.block()).min(self.set.left.len);
                let (own, others) = rest.split_at_mut(self.start(rows.end) - self.start(rows.start));
                parts.push((rows, own));
                rest = others;
            }
            parts.into_par_iter().for_each_init(Vec::new, |products, (rows, own)| {
                self.add_rows(len, rows, &work, own, products);
            });
        }
    }

    /// `(column, pair)` for mixed axes: `√Π c_j` and the larger of the two cases above.
    fn kernel_norms(&self) -> (f64, f64) {
        let ranges: Vec<(f64, f64)> = self.axes.iter().filter_map(Axis::kernel_range).collect();
        let all: f64 = ranges.iter().map(|(c, _)| c).product();
        let least: f64 = ranges.iter().map(|(_, low)| low.max(0.0)).product();
        let positive = 2.0 * (all - least);
        let negative = ranges.iter().filter(|(_, low)| *low < 0.0).map(|(c, low)| 2.0 * (c - low) * all / c);
        (all.sqrt(), negative.fold(positive, f64::max).sqrt())
    }

    /// `(column, pair)` for any weights: by a grid, or else by the triangle inequality.
    fn listed_norms(&self, weights: &[f64], l1: bool) -> (f64, f64) {
        let power = |w: &f64| if l1 { *w } else { w * w };
        let all: f64 = weights.iter().map(power).sum();
        let moving = all - power(&weights[0]);
        let finish = |column: f64, pair: f64| if l1 { (column, pair) } else { (column.sqrt(), pair.sqrt()) };
        if let ([_], false, true) = (self.set.sizes(), l1, self.set.is_tensor()) {
            return finish(all, axis_pair(weights));
        }
        let crude = if l1 { 2.0 * moving } else { 4.0 * moving };
        let factor = if l1 { 1.0 } else { 2.0 };
        // The grid is one of all indices below the sizes, of which a list may be few.
        let hull = self.set.sizes().iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let Some(hull) = hull.filter(|hull| *hull <= 1 << 22) else { return finish(all, crude) };
        let mut coefficients = vec![0.0; hull];
        let indices = self.set.indices();
        for (weight, index) in weights.iter().zip(indices.chunks_exact(self.axes.len())) {
            let at = index.iter().zip(self.set.sizes()).fold(0, |at, (m, size)| at * size + *m as usize);
            coefficients[at] = power(weight);
        }
        coefficients[0] = 0.0;
        let pair = lower_bound(self.set.sizes(), &coefficients).map_or(crude, |low| factor * (moving - low));
        finish(all, pair.min(crude))
    }
}

/// `(column, pair)` for weights that are products over the axes.
fn product_norms(axes: &[Vec<f64>], l1: bool) -> (f64, f64) {
    if l1 {
        let column: f64 = axes.iter().map(|axis| axis.iter().sum::<f64>()).product();
        return (column, column - least_product(axes));
    }
    let weights: Vec<Vec<f64>> = axes.iter().map(|axis| axis.iter().map(|w| w * w).collect()).collect();
    let squares: Vec<f64> = weights.iter().map(|axis| axis.iter().sum()).collect();
    let all: f64 = squares.iter().product();
    let single = |j: usize| all / squares[j] * axis_pair(&axes[j]);
    let moving: Vec<usize> = (0..axes.len()).filter(|j| axes[*j].len() > 1).collect();
    let apart = match moving[..] {
        [] => 0.0,
        [j] => single(j),
        _ => moving.iter().map(|j| single(*j)).fold(2.0 * all, f64::max),
    };
    // Also (φ_m(u) − φ_m(v))² ≤ 2 |φ_m(u) − φ_m(v)|.
    (all.sqrt(), apart.min(2.0 * (all - least_product(&weights))).sqrt())
}

/// Lower bound of `min_u Σ_m w_m φ_m(u) = Π_j min…max` for weights that are products: the least product of numbers from
/// the ranges of the axes, which are independent.
fn least_product(axes: &[Vec<f64>]) -> f64 {
    let range = axes.iter().fold((1.0, 1.0), |(low, high), axis| {
        let (a, b) = (cosine_range(axis).0, axis.iter().sum::<f64>());
        let ends = [low * a, low * b, high * a, high * b];
        let least = ends.iter().copied().fold(f64::INFINITY, f64::min);
        (least, ends.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    });
    range.0
}

/// `max_{u,v} Σ w² (T_m(u) − T_m(v))²` on one axis: by the Cauchy-Schwarz inequality `max_θ Σ w² (1 − cos mθ)²`.
fn axis_pair(weights: &[f64]) -> f64 {
    let mut coefficients = vec![0.0; 2 * weights.len() - 1];
    for (m, w) in weights.iter().enumerate().skip(1) {
        coefficients[0] += 1.5 * w * w;
        coefficients[m] -= 2.0 * w * w;
        coefficients[2 * m] += 0.5 * w * w;
    }
    cosine_range(&coefficients).1
}

/// Working space of a thread.
struct Work {
    coordinate: Vec<f64>,
    polynomials: Vec<f64>,
    values: Vec<Vec<f64>>,
    left: Vec<f64>,
    right: Vec<f64>,
}

impl Work {
    fn new(dimension: usize) -> Self {
        Self {
            coordinate: Vec::new(),
            polynomials: Vec::new(),
            values: vec![Vec::new(); dimension],
            left: Vec::new(),
            right: Vec::new(),
        }
    }
}

impl FeatureMap for Chebyshev {
    fn dimension(&self) -> usize {
        self.axes.len()
    }

    fn features(&self) -> usize {
        self.set.len()
    }

    fn bits(&self) -> u32 {
        self.bits.0 + self.bits.1
    }

    fn largest(&self) -> f64 {
        self.largest
    }

    fn add(&self, points: &[f64], sums: &mut [i64]) {
        let own = OWN * self.axes.len();
        if rayon::current_num_threads() == 1 || points.len() <= own {
            self.add_alone(points, sums);
        } else if sums.len() > SHARED {
            self.add_shared(points, sums);
        } else {
            add_in_parts(points, own, sums, |points, sums| self.add_alone(points, sums));
        }
    }

    fn norms(&self, weights: &Weights, l1: bool) -> Result<Norms, Error> {
        let features = self.features();
        let ones = || self.set.sizes().iter().map(|size| vec![1.0; *size]).collect::<Vec<_>>();
        let mixed = !self.axes.iter().all(Axis::is_plain);
        let (sum, square_sum) = match weights {
            Weights::Uniform => (features as f64, features as f64),
            Weights::Listed(w) => (w.iter().sum(), w.iter().map(|w| w * w).sum()),
            Weights::Product(axes) => (
                axes.iter().map(|axis| axis.iter().sum::<f64>()).product(),
                axes.iter().map(|axis| axis.iter().map(|w| w * w).sum::<f64>()).product(),
            ),
        };
        let (column, pair) = match weights {
            _ if mixed && (l1 || *weights != Weights::Uniform) => {
                return Err(Error::Unsupported("the features of a kernel go with Gaussian noise, unweighted".into()));
            }
            Weights::Uniform if mixed => self.kernel_norms(),
            Weights::Uniform if self.set.is_tensor() => product_norms(&ones(), l1),
            Weights::Uniform => self.listed_norms(&vec![1.0; features], l1),
            Weights::Product(axes) if self.set.is_tensor() => product_norms(axes, l1),
            Weights::Product(_) => return Err(Error::invalid("weights", "of the axes need a tensor set")),
            Weights::Listed(w) => self.listed_norms(w, l1),
        };
        // Features differ from the exact ones by at most `error` each; sums of so many floats are off by a little.
        let slack = 1.0 + (features as f64 + 64.0) * f64::EPSILON;
        let mut moved = self.error() * if l1 { sum } else { square_sum.sqrt() };
        if mixed {
            let ((el, _), (er, _)) =
                (self.half_error(&self.set.left, self.bits.0), self.half_error(&self.set.right, self.bits.1));
            let (el, er) = (el * (self.set.left.len as f64).sqrt(), er * (self.set.right.len as f64).sqrt());
            moved = moved.min((el * (2.0 + er) + 2.0 * er) * 1.01);
        }
        let up = |norm: f64, times: f64| Upper::rounded((norm * slack + times * moved) * slack, 1);
        Ok(Norms { column: up(column, 1.0), pair: up(pair, 2.0) })
    }

    fn index_set(&self) -> Option<&IndexSet> {
        Some(&self.set)
    }

    fn describe(&self, words: &mut Vec<u64>) {
        words.extend([1, u64::from(self.bits.0), u64::from(self.bits.1), u64::from(self.set.is_tensor())]);
        self.axes.iter().for_each(|axis| axis.describe(words));
        if !self.set.is_tensor() {
            words.extend(self.set.indices().into_iter().map(u64::from));
        }
    }
}
