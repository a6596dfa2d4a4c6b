//! A lower bound on the error of nested groups of any number and size, in two sweeps over their forest.
//!
//! `Σ_j ⟨z_j, a_j⟩²` is a bound for any matrix Z of spectral norm at most 1 (see [`crate::optimize`]). Here Z is a sum over the
//! nodes of isometries between spaces that are orthogonal to each other. With weights ω of the leaves, `Ω_v` their sums, and
//! `a_v` the root of what is asked of a node, `A diag(√ω)` maps `√ω` on the leaves of `v` to `u_v`, with entries `a_w Ω_w` at the
//! nodes `w` in `v`. A node has its children's `√ω/√Ω_c`, less the combination that is its own, on one side; on the other its own
//! row and its children's `u_c/‖u_c‖`, less its own `u_v/‖u_v‖`. The isometry is the least rotation that takes the one combination
//! to the other, without both: where all children are alike it is the polar factor, and the bound is attained. Of a few children
//! that are not alike the polar factor itself is taken once, at the best weights.

use super::forest::{Children, Forest};
use crate::linear_algebra::{Matrix, thin_singular};
use rayon::prelude::*;

/// Choices of the weights of the leaves, each from the bound before.
const STEPS: usize = 8;
/// Least share of a weight, and the rise of the bound below which no more are made.
const FLOOR: f64 = 1e-12;
const RISE: f64 = 1e-6;
/// Children up to which the polar factor of a node is taken, unless they are alike up to this factor; and the least of its
/// singular values, relatively to the largest image of a child, that is told from rounding.
const FEW: f64 = 16.0;
const ALIKE: f64 = 1.0 - 1e-6;
const TRUSTED: f64 = 1e-5;
/// What sums may lose to rounding, relatively to those of magnitudes; and the bound to that of its norms.
const LOST: f64 = 1e-12;
const SAFE: f64 = 1.0 - 1e-9;

/// The bound for what is asked of every node.
pub(super) fn least_error(forest: &Forest, mut asked: Vec<f64>) -> f64 {
    let largest = asked.iter().copied().fold(0.0, f64::max);
    if !(f64::MIN_POSITIVE..f64::MAX).contains(&largest) {
        return 0.0;
    }
    for own in &mut asked {
        *own /= largest;
    }
    // Leaves that are alike have the same weight, and the same gain.
    let folded = forest.folded(&asked, &|_| 1.0);
    let asked: Vec<f64> = folded.first.iter().map(|v| asked[*v]).collect();
    of_forest(&folded.forest, &asked) * largest * SAFE
}

/// The bound for what is asked of each node, as it is computed.
pub(super) fn of_forest(forest: &Forest, asked: &[f64]) -> f64 {
    let leaves: Vec<usize> = (0..forest.len()).filter(|v| forest.is_leaf[*v]).collect();
    let children = Children::new(forest);
    let times = forest.times();
    let total = |gains: &[f64]| leaves.iter().zip(gains).map(|(leaf, gain)| times[*leaf] * gain).sum::<f64>();
    let even = vec![leaves.iter().map(|leaf| times[*leaf]).sum::<f64>().recip(); leaves.len()];
    let (mut best, mut weights, mut next) = (0.0f64, even.clone(), even);
    for _ in 0..STEPS {
        let gains = Images::new(forest, asked, &leaves, &next).gains(&leaves, &children, false);
        let total = total(&gains);
        if !total.is_finite() || total <= best * (1.0 + RISE) {
            break;
        }
        (best, weights) = (total, next);
        next = gains.iter().map(|gain| (gain / total).max(FLOOR)).collect();
    }
    let careful = total(&Images::new(forest, asked, &leaves, &weights).gains(&leaves, &children, true));
    if careful.is_finite() { best.max(careful) } else { best }
}

/// What is known of the nodes at some weights of the leaves.
struct Images<'a> {
    forest: &'a Forest,
    asked: &'a [f64],
    /// `Ω_v`.
    omega: Vec<f64>,
    /// `‖u_v‖²`.
    squares: Vec<f64>,
}

/// What the isometry of a node takes of a child's combination to that of the child, and to the node's own row.
type Turn = (f64, f64);

impl<'a> Images<'a> {
    fn new(forest: &'a Forest, asked: &'a [f64], leaves: &[usize], shares: &[f64]) -> Self {
        let mut omega = vec![0.0; forest.len()];
        leaves.iter().zip(shares).for_each(|(leaf, share)| omega[*leaf] = *share);
        forest.add_copies(&mut omega);
        let mut squares: Vec<f64> = asked.iter().zip(&omega).map(|(asked, omega)| asked * omega * omega).collect();
        forest.add_copies(&mut squares);
        Self { forest, asked, omega, squares }
    }

    /// The isometry of a node: the least rotation, or the polar factor where there are few children that are not alike.
    fn turns(&self, v: usize, children: &[usize], careful: bool) -> Vec<Turn> {
        let root = |part: f64, whole: f64| (part / whole).sqrt();
        let from: Vec<f64> = children.iter().map(|c| root(self.omega[*c], self.omega[v])).collect();
        let to: Vec<f64> = children.iter().map(|c| root(self.squares[*c], self.squares[v])).collect();
        let own = self.asked[v].sqrt() * self.omega[v] / self.squares[v].sqrt();
        let copies: Vec<f64> = children.iter().map(|c| self.forest.copies[*c]).collect();
        let count = copies.iter().sum::<f64>();
        if careful && (2.0..=FEW).contains(&count) {
            let lengths: Vec<f64> = from.iter().zip(&to).map(|(q, l)| l / q).collect();
            let (least, most) = lengths.iter().fold((f64::MAX, 0.0f64), |(a, b), d| (a.min(*d), b.max(*d)));
            if least < most * ALIKE
                && let Some(turns) = polar(&repeated(&from, &copies), &repeated(&to, &copies), own)
            {
                let firsts =
                    copies.iter().scan(0, |next, copies| Some(std::mem::replace(next, *next + *copies as usize)));
                return firsts.map(|first| turns[first]).collect();
            }
        }
        rotated(&from, to, &copies, own)
    }

    /// `⟨z_j, a_j⟩²` of every leaf, rounded down.
    fn gains(&self, leaves: &[usize], children: &Children, careful: bool) -> Vec<f64> {
        let n = self.forest.len();
        let inner: Vec<usize> = (0..n).filter(|v| !self.forest.is_leaf[*v]).collect();
        let found: Vec<Vec<Turn>> = inner.par_iter().map(|v| self.turns(*v, children.of(*v), careful)).collect();
        let mut turns = vec![(1.0, 0.0); n];
        for (v, found) in inner.iter().zip(found) {
            children.of(*v).iter().zip(found).for_each(|(child, turn)| turns[*child] = turn);
        }
        // What a leaf gets from the rows of the nodes that hold it, by all isometries above; and what that is of magnitudes.
        let (mut factors, mut sums) = (vec![(0.0, 0.0); n], vec![(0.0, 0.0); n]);
        for v in 0..n {
            let (root, parent) = (self.omega[v].sqrt(), self.forest.parent[v] as usize);
            let mut own = 0.0;
            if parent < n {
                (factors[v], sums[v]) = (factors[parent], sums[parent]);
                own = turns[v].1 * self.asked[parent].sqrt() / root;
            }
            if self.squares[v] > 0.0 {
                let turned = turns[v].0 / (self.squares[v].sqrt() * root);
                factors[v] = (factors[v].0 + turned, factors[v].1 + turned.abs());
            }
            let row = self.asked[v] * self.omega[v];
            sums[v] = (sums[v].0 + row * factors[v].0 + own, sums[v].1 + row * factors[v].1 + own.abs());
        }
        let below = |leaf: &usize| {
            let (sum, magnitudes) = sums[*leaf];
            self.omega[*leaf] * (sum.abs() - LOST * magnitudes).max(0.0).powi(2)
        };
        leaves.iter().map(below).collect()
    }
}

/// The values, each as often as it is there.
fn repeated(values: &[f64], copies: &[f64]) -> Vec<f64> {
    values.iter().zip(copies).flat_map(|(value, copies)| std::iter::repeat_n(*value, *copies as usize)).collect()
}

/// The least rotation that takes one combination of the children to the other, without both. A child of which nothing is asked
/// has the place of the node's own row; without one that has a place for itself.
fn rotated(from: &[f64], mut to: Vec<f64>, copies: &[f64], own: f64) -> Vec<Turn> {
    let rest = to.iter().zip(copies).position(|(l, copies)| *l == 0.0 && *copies == 1.0);
    if let Some(rest) = rest {
        to[rest] = own;
    }
    let met = 1.0 + from.iter().zip(&to).zip(copies).map(|((q, l), copies)| copies * q * l).sum::<f64>();
    let (q_row, l_row) = rest.map_or((0.0, own), |rest| (from[rest], own));
    let turn = |(k, (q, l)): (usize, (&f64, &f64))| {
        let same = f64::from(u8::from(rest == Some(k)));
        (1.0 - (l + q) * (l + q) / met + l * q, same - (l_row + q_row) * (l + q) / met + l_row * q)
    };
    from.iter().zip(&to).enumerate().map(turn).collect()
}

/// The polar factor of what the node's children and its own row are, without both combinations; None if it is not found, or is
/// not told from rounding.
fn polar(from: &[f64], to: &[f64], own: f64) -> Option<Vec<Turn>> {
    let k = from.len();
    let to = |i: usize| if i < k { to[i] } else { own };
    let image = |i: usize, j: usize| match (i == j, i == k) {
        (true, _) => to(j) / from[j],
        (_, true) => own * from[j],
        _ => 0.0,
    };
    // `(I − l lᵀ) M (I − q qᵀ)`, where `M q = l` and `Mᵀ l` are known.
    let backwards: Vec<f64> = (0..k).map(|j| to(j) * image(j, j) + own * image(k, j)).collect();
    let met: f64 = backwards.iter().zip(from).map(|(b, q)| b * q).sum();
    let mut matrix = Matrix::zeros(k + 1, k);
    for j in 0..k {
        for i in 0..=k {
            matrix[(i, j)] = image(i, j) - to(i) * from[j] - to(i) * backwards[j] + to(i) * met * from[j];
        }
    }
    // What is taken off would come back from rounding, as large as that of the whole.
    let whole = (0..k).map(|j| image(j, j)).fold(own, f64::max);
    if let [first, second] = *from {
        // One direction is left, and its image.
        let turned = [0, 1, 2].map(|i| matrix[(i, 1)] * first - matrix[(i, 0)] * second);
        let length = turned.iter().map(|v| v * v).sum::<f64>().sqrt();
        let kept = length > TRUSTED * whole;
        return kept.then(|| {
            [-second, first].iter().zip(turned).map(|(d, t)| (t * d / length, turned[2] * d / length)).collect()
        });
    }
    let (left, values, right) = thin_singular(&matrix)?;
    if values[k - 2].is_nan() || values[k - 2] <= TRUSTED * whole {
        return None;
    }
    let entry = |i: usize, j: usize| (0..k - 1).map(|t| left[(i, t)] * right[(j, t)]).sum::<f64>();
    Some((0..k).map(|j| (entry(j, j), entry(k, j))).collect())
}
