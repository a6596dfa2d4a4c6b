//! The projection restricted to a few vertices, in terms of their Gram matrix.
//!
//! With the vertices `W` of the set, weights `x ≥ 0`, `Σ x = n`, and slopes `h = Wᵀ(W x − t)`, a step `δ` with
//! `Σ δ = 0` changes `½‖W x − t‖²` by `⟨h, δ⟩ + ½ δᵀQδ`, `Q = WᵀW`, and the slopes by `Q δ`: nothing as long as a column
//! is touched. Slopes drift by rounding until they are read again.

use super::Columns;
use super::constraint::Vertex;
use crate::linear_algebra::{Matrix, solve_definite_columns, transposed_product_of_columns};
use crate::order::sorted_by_key;

/// Ridge of the corrective step, relative to the mean diagonal entry: columns may be dependent.
const RIDGE: f64 = 1e-12;

/// A corrective step follows so many pairwise steps, as a multiple of the vertices with weight; sooner and sooner, down
/// to the second number, as long as corrective steps are cut short.
const PATIENCE: (f64, f64) = (0.5, 0.1);

/// Weights that a corrective step leaves below this share of n are zero.
const NOTHING: f64 = 1e-15;

/// Vertices, their Gram matrix and their weights.
pub(super) struct WorkingSet<'a> {
    columns: &'a dyn Columns,
    target: &'a [f64],
    /// n, the sum of the weights.
    total: f64,
    vertices: Vec<Vertex>,
    /// Whether column `j` is in the set, and its opposite.
    members: Vec<[bool; 2]>,
    /// `W`, one vertex after another.
    entries: Vec<f64>,
    /// `Q`, in rows of `stride`.
    gram: Vec<f64>,
    stride: usize,
    weights: Vec<f64>,
    slopes: Vec<f64>,
}

/// How a corrective step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Correction {
    /// At the least squares solution.
    Full,
    /// At the boundary of the face.
    Cut,
    /// Where it began: rounding has the last word.
    None,
}

/// A step on a face that lowers the distance.
struct Descent {
    step: Vec<f64>,
    /// `Q` times the step, for the whole set.
    change: Vec<f64>,
    gain: f64,
}

impl<'a> WorkingSet<'a> {
    /// The empty set: at the origin.
    pub(super) fn new(columns: &'a dyn Columns, target: &'a [f64], total: f64) -> Self {
        Self {
            columns,
            target,
            total,
            vertices: Vec::new(),
            members: vec![[false; 2]; columns.count()],
            entries: Vec::new(),
            gram: Vec::new(),
            stride: 0,
            weights: Vec::new(),
            slopes: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.vertices.len()
    }

    pub(super) fn contains(&self, vertex: Vertex) -> bool {
        vertex.signed().is_some_and(|(j, sign)| self.members[j][usize::from(sign < 0.0)])
    }

    /// Number of vertices with weight.
    pub(super) fn support(&self) -> usize {
        self.weights.iter().filter(|x| **x > 0.0).count()
    }

    /// Adds vertices of weight zero. Their slopes are still to be read.
    pub(super) fn insert(&mut self, vertices: &[Vertex]) {
        let (rows, before) = (self.target.len(), self.len());
        for vertex in vertices {
            let begin = self.entries.len();
            self.entries.resize(begin + rows, 0.0);
            if let Some((j, sign)) = vertex.signed() {
                let column = &mut self.entries[begin..];
                self.columns.column(j, column);
                for c in column {
                    *c *= sign;
                }
                self.members[j][usize::from(sign < 0.0)] = true;
            }
        }
        self.vertices.extend_from_slice(vertices);
        let len = self.len();
        self.weights.resize(len, 0.0);
        self.slopes.resize(len, 0.0);
        self.reserve(len);
        let products = transposed_product_of_columns(rows, &self.entries, &self.entries[before * rows..]);
        for j in before..len {
            for i in 0..len {
                let product = products[(i, j - before)];
                self.gram[i * self.stride + j] = product;
                self.gram[j * self.stride + i] = product;
            }
        }
    }

    /// Makes room for a Gram matrix of this size.
    fn reserve(&mut self, len: usize) {
        if len <= self.stride {
            return;
        }
        let stride = len.max(2 * self.stride);
        let mut gram = vec![0.0; stride * stride];
        if self.stride > 0 {
            for (old, new) in self.gram.chunks_exact(self.stride).zip(gram.chunks_exact_mut(stride)) {
                new[..self.stride].copy_from_slice(old);
            }
        }
        (self.gram, self.stride) = (gram, stride);
    }

    /// Removes vertices of weight zero.
    pub(super) fn drop_weightless(&mut self) {
        let kept: Vec<usize> = (0..self.len()).filter(|k| self.weights[*k] > 0.0).collect();
        let rows = self.target.len();
        for vertex in (0..self.len()).filter(|k| self.weights[*k] <= 0.0).map(|k| self.vertices[k]) {
            if let Some((j, sign)) = vertex.signed() {
                self.members[j][usize::from(sign < 0.0)] = false;
            }
        }
        for (to, from) in kept.iter().copied().enumerate() {
            self.vertices[to] = self.vertices[from];
            self.weights[to] = self.weights[from];
            self.slopes[to] = self.slopes[from];
            self.entries.copy_within(from * rows..(from + 1) * rows, to * rows);
            for (i, k) in kept.iter().enumerate() {
                self.gram[to * self.stride + i] = self.gram[from * self.stride + k];
            }
        }
        self.vertices.truncate(kept.len());
        self.weights.truncate(kept.len());
        self.slopes.truncate(kept.len());
        self.entries.truncate(kept.len() * rows);
    }

    /// Puts all weight on the best vertex, given the slopes at the origin.
    pub(super) fn start(&mut self) {
        let value = |k: usize| self.slopes[k] + self.total * self.gram[k * self.stride + k] / 2.0;
        let best = (0..self.len()).fold(0, |best, k| if value(k) < value(best) { k } else { best });
        self.weights[best] = self.total;
    }

    /// Takes the slopes from those of all columns.
    pub(super) fn read_slopes(&mut self, slopes: &[f64]) {
        self.slopes = self.vertices.iter().map(|vertex| vertex.slope(slopes)).collect();
    }

    /// `⟨h, x⟩/n`.
    pub(super) fn mean_slope(&self) -> f64 {
        dot(&self.slopes, &self.weights) / self.total
    }

    /// `C x`.
    pub(super) fn image(&self) -> Vec<f64> {
        let mut image = vec![0.0; self.target.len()];
        for (weight, column) in self.weights.iter().zip(self.entries.chunks_exact(self.target.len())) {
            if *weight > 0.0 {
                add(&mut image, *weight, column);
            }
        }
        image
    }

    /// `C x − t`.
    pub(super) fn residual(&self) -> Vec<f64> {
        let mut residual = self.image();
        add(&mut residual, -1.0, self.target);
        residual
    }

    /// `x`, by column.
    pub(super) fn weights(&self) -> Vec<(usize, f64)> {
        let signed = |(vertex, x): (&Vertex, &f64)| vertex.signed().map(|(j, sign)| (j, sign * x));
        let pairs = self.vertices.iter().zip(&self.weights).filter_map(signed).collect();
        let mut pairs: Vec<(usize, f64)> = sorted_by_key(pairs, |(j, _)| *j as f64);
        pairs.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        pairs.retain(|(_, x)| *x != 0.0);
        pairs
    }

    /// Steps until the gap within the set is at most `tolerance`, but at most `budget`; the number of steps.
    pub(super) fn solve(&mut self, tolerance: f64, budget: usize) -> usize {
        let mut since = 0usize;
        let mut patience = Some(PATIENCE.0);
        let mut steps = 0;
        while steps < budget {
            let (toward, away) = self.extremes();
            let gap = self.total * (self.mean_slope() - self.slopes[toward]);
            if gap <= tolerance || self.slopes[away] <= self.slopes[toward] {
                break;
            }
            steps += 1;
            let due = |patience: f64| since as f64 >= patience * self.support() as f64;
            if patience.is_some_and(due) {
                since = 0;
                patience = match self.correct() {
                    Correction::Full => Some(PATIENCE.0),
                    Correction::Cut => patience.map(|p| (p / 2.0).max(PATIENCE.1)),
                    Correction::None => None,
                };
            } else {
                since += 1;
                self.exchange(toward, away);
            }
        }
        // Rounding moved the sum a little.
        let drift = self.total / self.weights.iter().sum::<f64>();
        self.weights.iter_mut().for_each(|x| *x *= drift);
        steps
    }

    /// The vertex of least slope, and among those with weight the one of largest; of equal ones the first.
    fn extremes(&self) -> (usize, usize) {
        let (mut toward, mut away) = (0, None);
        for (k, (slope, weight)) in self.slopes.iter().zip(&self.weights).enumerate() {
            if *slope < self.slopes[toward] {
                toward = k;
            }
            if *weight > 0.0 && away.is_none_or(|a: usize| *slope > self.slopes[a]) {
                away = Some(k);
            }
        }
        (toward, away.unwrap_or(toward))
    }

    /// The pairwise step: moves weight from one vertex to another, as much as lowers the distance most.
    fn exchange(&mut self, toward: usize, away: usize) {
        let (len, stride) = (self.len(), self.stride);
        let to = &self.gram[toward * stride..toward * stride + len];
        let from = &self.gram[away * stride..away * stride + len];
        let curvature = to[toward] + from[away] - 2.0 * to[away];
        let slope = self.slopes[away] - self.slopes[toward];
        let all = self.weights[away];
        let step = if curvature * all > slope { slope / curvature } else { all };
        self.weights[toward] += step;
        self.weights[away] = all - step;
        for ((h, a), b) in self.slopes.iter_mut().zip(to).zip(from) {
            *h += step * (a - b);
        }
    }

    /// The corrective step: toward the least squares solution on the face of the vertices with weight.
    fn correct(&mut self) -> Correction {
        let face: Vec<usize> = (0..self.len()).filter(|k| self.weights[*k] > 0.0).collect();
        let Some(newton) = self.newton(&face) else { return Correction::None };
        let weights: Vec<f64> = face.iter().map(|k| self.weights[*k]).collect();
        // Straight until a weight is zero, or all the way with negative weights cut off: what lowers more.
        let room = |(d, x): (&f64, &f64)| if *d < 0.0 { x / -d } else { f64::INFINITY };
        let reach = newton.iter().zip(&weights).map(room).fold(1.0, f64::min);
        let straight = newton.iter().map(|d| reach * d).collect();
        let end: Vec<f64> = newton.iter().zip(&weights).map(|(d, x)| (x + d).max(0.0)).collect();
        let scale = self.total / end.iter().sum::<f64>();
        let clipped = end.iter().zip(&weights).map(|(z, x)| scale * z - x).collect();
        let best = [straight, clipped]
            .into_iter()
            .filter_map(|step| self.descent(&face, step))
            .reduce(|a, b| if b.gain > a.gain { b } else { a });
        let Some(best) = best else { return Correction::None };
        for (k, d) in face.iter().zip(&best.step) {
            let moved = self.weights[*k] + d;
            self.weights[*k] = if moved > NOTHING * self.total { moved } else { 0.0 };
        }
        add(&mut self.slopes, 1.0, &best.change);
        if reach < 1.0 { Correction::Cut } else { Correction::Full }
    }

    /// The step to the least squares solution on a face, weights of any sign: `Q^{-1}(λ1 − h)` with sum 0.
    fn newton(&self, face: &[usize]) -> Option<Vec<f64>> {
        let size = face.len();
        let mut normal = Matrix::from_fn(size, size, |i, j| self.gram[face[i] * self.stride + face[j]]);
        let ridge = RIDGE * (0..size).map(|i| normal[(i, i)]).sum::<f64>() / size as f64;
        for i in 0..size {
            normal[(i, i)] += ridge;
        }
        let right = Matrix::from_fn(size, 2, |i, j| if j == 0 { self.slopes[face[i]] } else { 1.0 });
        let solution = solve_definite_columns(&normal, right)?;
        let (by_slopes, by_ones) = (solution.col_as_slice(0), solution.col_as_slice(1));
        let multiplier = by_slopes.iter().sum::<f64>() / by_ones.iter().sum::<f64>();
        Some(by_slopes.iter().zip(by_ones).map(|(u, v)| multiplier * v - u).collect())
    }

    /// As much of a step as lowers the distance most; `None` if it does not.
    fn descent(&self, face: &[usize], mut step: Vec<f64>) -> Option<Descent> {
        let mut change = vec![0.0; self.len()];
        for (k, d) in face.iter().zip(&step) {
            add(&mut change, *d, &self.gram[k * self.stride..k * self.stride + self.len()]);
        }
        let slope: f64 = face.iter().zip(&step).map(|(k, d)| self.slopes[*k] * d).sum();
        if slope.is_nan() || slope >= 0.0 {
            return None;
        }
        let curvature: f64 = face.iter().zip(&step).map(|(k, d)| change[*k] * d).sum();
        let part = if curvature > -slope { -slope / curvature } else { 1.0 };
        let gain = -part * (slope + part * curvature / 2.0);
        step.iter_mut().chain(&mut change).for_each(|value| *value *= part);
        (gain > 0.0).then_some(Descent { step, change, gain })
    }
}

/// `y ← y + a x`.
fn add(y: &mut [f64], a: f64, x: &[f64]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y += a * x);
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
