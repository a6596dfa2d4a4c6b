//! The error of weighted sums beside the cells, and its slope.
//!
//! Most weights are zero where sums are those of blocks, and stay so: what is multiplied by `Θ` or `Θᵀ` goes over the others
//! alone, and `(V Θᵀ) Z` is `(V Θᵀ (I + ΘΘᵀ)^{-1}) Θ`. What is left of a step are the numbers of `V` for every sum and cell.

use crate::linear_algebra::{Matrix, add_to_diagonal, inverse, product, product_of_columns};
use crate::optimize::line::Line;
use std::ops::Range;

/// Numbers of a piece that has a thread of its own.
const PIECE: usize = 1 << 15;

/// Multiplications of products of matrices that take as long as one of its own.
const BLOCKED: usize = 8;

/// The error is a difference of numbers that are at most so many times as large.
const TOLD: f64 = 1e-7;

/// The Gram matrix `W = AᵀA`, written out, or that of ranges, running sums and cells.
pub(super) enum Gram {
    Dense(Matrix),
    Line(Line),
}

impl Gram {
    pub(super) fn cells(&self) -> usize {
        match self {
            Self::Dense(gram) => gram.ncols(),
            Self::Line(line) => line.len,
        }
    }

    pub(super) fn diagonal(&self) -> Vec<f64> {
        match self {
            Self::Dense(gram) => (0..gram.ncols()).map(|j| gram[(j, j)]).collect(),
            Self::Line(line) => line.gram_diagonal(),
        }
    }

    /// Of the product of a row of `V` with `W`, in multiplications.
    fn work_of_a_row(&self) -> usize {
        match self {
            Self::Dense(gram) => gram.ncols() * gram.ncols() / BLOCKED,
            Self::Line(line) => line.work_of_a_row(),
        }
    }

    /// `V W` over `out`, V of so many rows, cell after cell.
    fn times(&self, rows: usize, v: &[f64], out: &mut [f64]) {
        match self {
            Self::Dense(gram) => product_of_columns(out, rows, v, gram),
            Self::Line(line) => line.times_gram(rows, v, out),
        }
    }
}

/// The weights that are not zero, cell after cell.
struct Weights {
    starts: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

impl Weights {
    fn of(count: usize, sums: &[f64]) -> Self {
        let (mut starts, mut entries) = (vec![0], Vec::new());
        for cell in sums.chunks_exact(count) {
            entries.extend((0..).zip(cell).filter(|(_, weight)| **weight != 0.0).map(|(k, weight)| (k, *weight)));
            starts.push(entries.len());
        }
        Self { starts, entries }
    }

    fn at(&self, cell: usize) -> &[(u32, f64)] {
        &self.entries[self.starts[cell]..self.starts[cell + 1]]
    }

    /// `1 + Σ_k θ_kj`.
    fn scales(&self) -> Vec<f64> {
        let sum = |j| self.at(j).iter().map(|(_, weight)| weight).sum::<f64>();
        (0..self.starts.len() - 1).map(|j| 1.0 + sum(j)).collect()
    }

    /// `(I + ΘΘᵀ)^{-1}`.
    fn inner(&self, count: usize) -> Matrix {
        let mut inner = Matrix::zeros(count, count);
        add_to_diagonal(&mut inner, |_| 1.0);
        for j in 0..self.starts.len() - 1 {
            let own = self.at(j);
            for (k, weight) in own {
                let column = inner.col_as_slice_mut(*k as usize);
                for (l, other) in own {
                    column[*l as usize] += weight * other;
                }
            }
        }
        inverse(&inner)
    }

    /// Adds `M Θ` to the numbers of a cell, times a factor.
    fn add_times(&self, matrix: &Matrix, cell: usize, factor: f64, to: &mut [f64]) {
        for (k, weight) in self.at(cell) {
            add(to, factor * weight, matrix.col_as_slice(*k as usize));
        }
    }

    /// Adds what the numbers of a cell give to `V Θᵀ`.
    fn add_products(&self, cell: usize, v: &[f64], to: &mut Matrix) {
        self.at(cell).iter().for_each(|(k, weight)| add(to.col_as_slice_mut(*k as usize), *weight, v));
    }
}

pub(super) fn add(to: &mut [f64], factor: f64, what: &[f64]) {
    to.iter_mut().zip(what).for_each(|(to, what)| *to += factor * what);
}

/// `Θ` cell after cell, half the total squared error and its gradient.
pub(super) struct Point {
    pub(super) sums: Vec<f64>,
    pub(super) value: f64,
    pub(super) gradient: Vec<f64>,
    /// How much it took: multiplications of one number after another.
    pub(super) work: f64,
}

impl Point {
    /// The point of such weights; `None` if they are so large that the digits of its value are lost. Room is taken from `spare`.
    pub(super) fn new(gram: &Gram, sums: Vec<f64>, spare: &mut Spare) -> Option<Self> {
        let (cells, diagonal) = (gram.cells(), gram.diagonal());
        let count = sums.len() / cells;
        let weights = Weights::of(count, &sums);
        let work = (count * (count * count / BLOCKED + 2 * weights.entries.len() + gram.work_of_a_row())) as f64;
        let (scales, inner) = (weights.scales(), weights.inner(count));
        let (mut z, mut v) = (spare.take(sums.len()), spare.take(sums.len()));
        each_cell(count, &mut z, &|j, z| {
            z.fill(0.0);
            weights.add_times(&inner, j, scales[j], z);
        });
        gram.times(count, &z, &mut v);
        spare.give(z);
        let pieces = each_piece(0, count, &mut v, &|cells, v| {
            let (mut shared, mut products) = (Vec::new(), Matrix::zeros(count, count));
            for (j, v) in cells.zip(v.chunks_exact_mut(count)) {
                for v in &mut *v {
                    *v *= scales[j];
                }
                shared.push(weights.at(j).iter().map(|(k, weight)| weight * v[*k as usize]).sum());
                weights.add_products(j, v, &mut products);
            }
            (shared, products)
        });
        let (shared, products): (Vec<Vec<f64>>, Vec<Matrix>) = pieces.into_iter().unzip();
        let shared = shared.concat();
        let products = products.into_iter().reduce(|mut sum, own| {
            (0..count).for_each(|k| add(sum.col_as_slice_mut(k), 1.0, own.col_as_slice(k)));
            sum
        })?;
        let uncorrected: f64 = (0..cells).map(|j| scales[j] * scales[j] * diagonal[j]).sum();
        let value = uncorrected - shared.iter().sum::<f64>();
        if !(value.is_finite() && value > TOLD * uncorrected) {
            return None;
        }
        let turned = product(&products, &inner);
        each_cell(count, &mut v, &|j, v| {
            let own = diagonal[j] * scales[j] - shared[j] / scales[j];
            for v in &mut *v {
                *v = 2.0 * (own - *v);
            }
            weights.add_times(&turned, j, 2.0, v);
        });
        Some(Self { sums, value, gradient: v, work })
    }

    /// The entries that may move: those at zero that want to become negative stay.
    pub(super) fn free(&self) -> Vec<u32> {
        let entries = self.sums.iter().zip(&self.gradient).zip(0..);
        entries.filter(|((sum, gradient), _)| **sum > 0.0 || **gradient < 0.0).map(|(_, k)| k).collect()
    }

    /// Weights so far in a direction of the free entries, none negative.
    pub(super) fn moved(&self, free: &[u32], direction: &[f64], length: f64, spare: &mut Spare) -> Vec<f64> {
        let mut sums = spare.take(self.sums.len());
        sums.copy_from_slice(&self.sums);
        for (k, own) in free.iter().zip(direction) {
            let slot = &mut sums[*k as usize];
            *slot = (*slot + length * own).max(0.0);
        }
        sums
    }

    /// What the gradient makes of a step to weights that differ in free entries.
    pub(super) fn slope_to(&self, free: &[u32], sums: &[f64]) -> f64 {
        let step = |k: usize| self.gradient[k] * (sums[k] - self.sums[k]);
        free.iter().map(|k| step(*k as usize)).sum()
    }
}

/// Arrays that are not needed any more: fresh pages cost as much as what is computed in them.
#[derive(Default)]
pub(super) struct Spare(Vec<Vec<f64>>);

impl Spare {
    /// So many numbers, any.
    fn take(&mut self, len: usize) -> Vec<f64> {
        let mut array = self.0.pop().unwrap_or_default();
        array.resize(len, 0.0);
        array
    }

    pub(super) fn give(&mut self, array: Vec<f64>) {
        self.0.push(array);
    }
}

/// What comes of a piece: numbers of its cells, and a matrix.
type Piece = (Vec<f64>, Matrix);

/// What comes of pieces of the numbers of the cells from this one on, so many a cell.
fn each_piece(
    first: usize,
    count: usize,
    values: &mut [f64],
    of: &(dyn Fn(Range<usize>, &mut [f64]) -> Piece + Sync),
) -> Vec<Piece> {
    let (cells, most) = (values.len() / count, (PIECE / count).max(1));
    if cells <= most {
        return vec![of(first..first + cells, values)]; // no other thread is woken
    }
    let half = cells.div_ceil(most).div_ceil(2) * most;
    let (left, right) = values.split_at_mut(half * count);
    let (mut pieces, others) =
        rayon::join(|| each_piece(first, count, left, of), || each_piece(first + half, count, right, of));
    pieces.extend(others);
    pieces
}

/// Changes the numbers of every cell.
fn each_cell(count: usize, values: &mut [f64], change: &(dyn Fn(usize, &mut [f64]) + Sync)) {
    each_piece(0, count, values, &|cells, values| {
        cells.zip(values.chunks_exact_mut(count)).for_each(|(j, values)| change(j, values));
        (Vec::new(), Matrix::zeros(0, 0))
    });
}
