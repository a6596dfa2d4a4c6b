//! Cuts read from a weighted graph that was released.
//!
//! `w(S) = Σ_{i ∈ S, j ∉ S} w_ij`, for a symmetric matrix of weights that may be negative, as noise makes them: then the
//! least cut is as hard as the greatest. Up to [`EXACT_VERTICES`] vertices every cut is looked at. Beyond, candidates
//! are single vertices, sweeps along the extreme eigenvectors of the Laplacian, for the least cut that of the positive
//! weights (Stoer & Wagner 1997), and public pseudo-random halves; each is improved by passes of single moves (Fiduccia
//! & Mattheyses 1982) and by swaps (Kernighan & Lin 1970). The same matrix always gives the same cut.

use crate::error::Error;
use crate::linear_algebra::{Matrix, dot, inner, symmetric_eigen};

/// The largest graph of which every cut is looked at.
pub const EXACT_VERTICES: usize = 20;

/// Stoer and Wagner's algorithm takes the cube of this many steps.
const STOER_WAGNER_VERTICES: usize = 600;
/// Steps of Lanczos' recurrence, each of one product with the Laplacian.
const KRYLOV_STEPS: usize = 48;
/// Eigenvectors at the end of the spectrum that are swept.
const SWEPT_VECTORS: usize = 3;
/// Rounds of passes and swaps on one start.
const ROUNDS: usize = 60;
/// Local searches cost some tens of `n²` each: as many starts as fit, within limits.
const STARTS: (usize, usize) = (8, 64);
const START_WORK: usize = 100_000_000;
/// Flips after which the running weight of an enumeration is computed anew.
const FRESH: usize = 1024;
/// Gains below this, relative to the sum of all absolute weights, are rounding.
const ROUNDING: f64 = 1e-13;

/// What a cut should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CutGoal {
    /// The least `w(S)`.
    Minimum,
    /// The greatest `w(S)`.
    Maximum,
    /// The least `w(S) / (|S| (n − |S|))`.
    Sparsest,
}

impl CutGoal {
    /// What is minimised.
    fn score(self, weight: f64, size: usize, n: usize) -> f64 {
        match self {
            Self::Minimum => weight,
            Self::Maximum => -weight,
            Self::Sparsest => weight / (size * (n - size)) as f64,
        }
    }
}

/// A cut.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundCut {
    /// The vertices on the smaller side; of equal sides, the one with vertex 0. Neither side is empty.
    pub side: Vec<bool>,
    /// `w(S)`.
    pub weight: f64,
    /// Whether no cut is better, but for rounding; else it is the best that was found.
    pub exact: bool,
}

/// The best cut that is found in a graph of `n` vertices with the symmetric `weights`, `n × n`, zero on the diagonal.
///
/// Post-processing, if the weights were released: it costs no privacy. Of noisy weights the best cut is chosen for its
/// noise too, so that its weight is biased towards the goal.
///
/// # Errors
///
/// If `n < 2`, the matrix is not `n × n`, symmetric and zero on its diagonal, or the sum of its absolute values is not
/// finite.
///
/// ```
/// use sordino_core::estimate::cuts::{CutGoal, search};
///
/// // The path 0 – 1 – 2 with weights 5 and 1.
/// let found = search(&[0.0, 5.0, 0.0, 5.0, 0.0, 1.0, 0.0, 1.0, 0.0], 3, CutGoal::Minimum)?;
/// assert_eq!((found.side, found.weight, found.exact), (vec![false, false, true], 1.0, true));
/// # Ok::<(), sordino_core::error::Error>(())
/// ```
pub fn search(weights: &[f64], n: usize, goal: CutGoal) -> Result<FoundCut, Error> {
    let graph = Graph::new(weights, n)?;
    let exact = n <= EXACT_VERTICES;
    let mut side = if exact { graph.enumerate(goal) } else { graph.improve(goal) };
    let size = side.iter().filter(|inside| **inside).count();
    if 2 * size > n || (2 * size == n && !side[0]) {
        for inside in &mut side {
            *inside = !*inside;
        }
    }
    Ok(FoundCut { weight: graph.cut(&side), side, exact })
}

/// Symmetric weights of `n ≥ 2` vertices.
struct Graph<'a> {
    weights: &'a [f64],
    n: usize,
    /// Smaller differences of cuts are rounding.
    rounding: f64,
}

impl<'a> Graph<'a> {
    fn new(weights: &'a [f64], n: usize) -> Result<Self, Error> {
        if n < 2 {
            return Err(Error::invalid("n", format!("a cut needs two vertices, not {n}")));
        }
        let entries = n.checked_mul(n).ok_or_else(|| Error::invalid("n", "too many vertices"))?;
        Error::check_len("weights", entries, weights.len())?;
        let total: f64 = weights.iter().map(|w| w.abs()).sum();
        if !(4.0 * total).is_finite() {
            return Err(Error::invalid("weights", "expected finite numbers with a finite sum"));
        }
        let graph = Self { weights, n, rounding: ROUNDING * total };
        let symmetric = |i: usize| (0..i).all(|j| weights[i * n + j] == weights[j * n + i]);
        if !(0..n).all(|i| weights[i * n + i] == 0.0 && symmetric(i)) {
            return Err(Error::invalid("weights", "expected a symmetric matrix with a zero diagonal"));
        }
        Ok(graph)
    }

    fn row(&self, v: usize) -> &'a [f64] {
        &self.weights[v * self.n..(v + 1) * self.n]
    }

    /// `w(S)`, by the definition.
    fn cut(&self, side: &[bool]) -> f64 {
        let out = |v: usize| -> f64 { self.row(v).iter().zip(side).filter(|(_, s)| !**s).map(|(w, _)| w).sum() };
        (0..self.n).filter(|v| side[*v]).map(out).sum()
    }

    /// The best of all cuts, in the order of the reflected Gray code: each differs from the one before by one vertex.
    fn enumerate(&self, goal: CutGoal) -> Vec<bool> {
        let n = self.n;
        // Vertex 0 stays outside; the code visits every set of the others but the empty one.
        let (mut signs, mut size, mut weight) = (vec![1.0; n], 0, 0.0);
        let (mut best, mut side) = (f64::INFINITY, Vec::new());
        for step in 1usize..1 << (n - 1) {
            let v = step.trailing_zeros() as usize + 1;
            weight += signs[v] * inner(self.row(v), &signs);
            size = if signs[v] > 0.0 { size + 1 } else { size - 1 };
            signs[v] = -signs[v];
            if step % FRESH == 0 {
                weight = self.cut(&inside(&signs));
            }
            let score = goal.score(weight, size, n);
            if score < best {
                best = score;
                side = inside(&signs);
            }
        }
        side
    }

    /// The best cut that local search reaches from all starts.
    fn improve(&self, goal: CutGoal) -> Vec<bool> {
        let n = self.n;
        let mut words = Words(1);
        let mut best = Best { graph: self, goal, score: f64::INFINITY, side: Vec::new() };
        for v in 0..n {
            best.offer(&(0..n).map(|u| u == v).collect::<Vec<_>>());
        }
        best.climb(&best.side.clone());
        if goal == CutGoal::Minimum && n <= STOER_WAGNER_VERTICES {
            best.climb(&self.stoer_wagner());
        }
        for vector in self.extreme_vectors(goal, &mut words) {
            best.climb(&self.sweep(goal, &vector));
        }
        let starts = (START_WORK / (n * n)).clamp(STARTS.0, STARTS.1);
        for k in 0..starts {
            // Anywhere, or near the best one: every vertex changes sides with this probability.
            let (from, change) = if k % 2 == 0 { (vec![false; n], 0.5) } else { (best.side.clone(), 0.15) };
            let start: Vec<bool> = from.iter().map(|inside| inside ^ (words.uniform() < change)).collect();
            if start.contains(&true) && start.contains(&false) {
                best.climb(&start);
            }
        }
        best.side
    }

    /// Ritz vectors of the Laplacian at the end that the goal asks for, orthogonal to constants: Lanczos' method with
    /// full orthogonalisation. None if the weights vanish.
    fn extreme_vectors(&self, goal: CutGoal, words: &mut Words) -> Vec<Vec<f64>> {
        let n = self.n;
        let degrees: Vec<f64> = (0..n).map(|v| self.row(v).iter().sum()).collect();
        let laplacian = |x: &[f64]| -> Vec<f64> { (0..n).map(|v| degrees[v] * x[v] - dot(self.row(v), x)).collect() };
        let mut basis = vec![vec![1.0 / (n as f64).sqrt(); n]];
        let mut images: Vec<Vec<f64>> = Vec::new();
        let mut next: Vec<f64> = (0..n).map(|_| words.uniform() - 0.5).collect();
        for _ in 0..KRYLOV_STEPS.min(n - 1) {
            let before = inner(&next, &next).sqrt();
            for _ in 0..2 {
                for q in &basis {
                    let along = inner(q, &next);
                    next.iter_mut().zip(q).for_each(|(x, q)| *x -= along * q);
                }
            }
            let norm = inner(&next, &next).sqrt();
            if norm <= 1e-10 * before {
                break;
            }
            for x in &mut next {
                *x /= norm;
            }
            let image = laplacian(&next);
            basis.push(std::mem::replace(&mut next, image.clone()));
            images.push(image);
        }
        let basis = &basis[1..];
        let projected = Matrix::from_fn(basis.len(), basis.len(), |i, j| inner(&basis[i.max(j)], &images[i.min(j)]));
        let Some((vectors, _)) = symmetric_eigen(&projected) else { return Vec::new() };
        let combine = |k: usize| -> Vec<f64> {
            (0..n).map(|v| basis.iter().enumerate().map(|(i, q)| vectors[(i, k)] * q[v]).sum()).collect()
        };
        let k = basis.len();
        let ends = 0..SWEPT_VECTORS.min(k);
        ends.map(|e| combine(if goal == CutGoal::Maximum { e } else { k - 1 - e })).collect()
    }

    /// The best of the cuts `{v : x_v ≤ t}`.
    fn sweep(&self, goal: CutGoal, x: &[f64]) -> Vec<bool> {
        let mut order: Vec<usize> = (0..self.n).collect();
        order.sort_by(|u, v| x[*u].total_cmp(&x[*v]));
        let mut cut = Cut::new(self, &vec![false; self.n]);
        let (mut best, mut length) = (f64::INFINITY, 1);
        for (k, v) in order[..self.n - 1].iter().enumerate() {
            cut.flip(*v);
            let score = goal.score(cut.weight, cut.size, self.n);
            if score < best {
                (best, length) = (score, k + 1);
            }
        }
        let mut side = vec![false; self.n];
        for v in &order[..length] {
            side[*v] = true;
        }
        side
    }

    /// The least cut of `max(w, 0)`: Stoer & Wagner 1997, in `O(n³)`.
    fn stoer_wagner(&self) -> Vec<bool> {
        let n = self.n;
        let mut w: Vec<f64> = self.weights.iter().map(|w| w.max(0.0)).collect();
        let mut groups: Vec<Vec<usize>> = (0..n).map(|v| vec![v]).collect();
        let mut left: Vec<usize> = (0..n).collect();
        let (mut least, mut side) = (f64::INFINITY, vec![0]);
        while left.len() > 1 {
            // The last vertex of a maximum adjacency order is cut from all others; it then joins the one before it.
            let mut waiting = left.clone();
            let mut pull = vec![0.0; n];
            let (mut last, mut before) = (left[0], left[0]);
            while !waiting.is_empty() {
                let strongest = |a: usize, b: usize| if pull[waiting[b]] > pull[waiting[a]] { b } else { a };
                let v = waiting.swap_remove((0..waiting.len()).fold(0, strongest));
                (before, last) = (last, v);
                for u in &waiting {
                    pull[*u] += w[v * n + u];
                }
            }
            if pull[last] < least {
                least = pull[last];
                side.clone_from(&groups[last]);
            }
            for u in &left {
                let sum = w[before * n + u] + w[last * n + u];
                w[before * n + u] = sum;
                w[u * n + before] = sum;
            }
            let joined = std::mem::take(&mut groups[last]);
            groups[before].extend(joined);
            left.retain(|v| *v != last);
        }
        let mut inside = vec![false; n];
        for v in side {
            inside[v] = true;
        }
        inside
    }
}

/// The best cut so far.
struct Best<'a> {
    graph: &'a Graph<'a>,
    goal: CutGoal,
    score: f64,
    side: Vec<bool>,
}

impl Best<'_> {
    fn offer(&mut self, side: &[bool]) {
        let size = side.iter().filter(|inside| **inside).count();
        let score = self.goal.score(self.graph.cut(side), size, self.graph.n);
        if score < self.score {
            self.score = score;
            self.side = side.to_vec();
        }
    }

    /// Local search from `start`.
    fn climb(&mut self, start: &[bool]) {
        let mut cut = Cut::new(self.graph, start);
        for _ in 0..ROUNDS {
            if !cut.pass(self.goal) && !cut.swap(self.goal) {
                break;
            }
        }
        self.offer(&inside(&cut.signs));
    }
}

fn inside(signs: &[f64]) -> Vec<bool> {
    signs.iter().map(|s| *s < 0.0).collect()
}

/// A cut that changes vertex by vertex.
struct Cut<'a> {
    graph: &'a Graph<'a>,
    /// −1 inside, +1 outside.
    signs: Vec<f64>,
    /// `Σ_u w_vu s_u`: moving `v` changes the weight by `s_v` times this.
    pulls: Vec<f64>,
    weight: f64,
    size: usize,
}

impl<'a> Cut<'a> {
    fn new(graph: &'a Graph<'a>, side: &[bool]) -> Self {
        let signs: Vec<f64> = side.iter().map(|inside| if *inside { -1.0 } else { 1.0 }).collect();
        let pulls = (0..graph.n).map(|v| dot(graph.row(v), &signs)).collect();
        let size = side.iter().filter(|inside| **inside).count();
        Self { graph, signs, pulls, weight: graph.cut(side), size }
    }

    fn flip(&mut self, v: usize) {
        self.weight += self.signs[v] * self.pulls[v];
        self.size = self.size_after(v);
        self.signs[v] = -self.signs[v];
        let twice = 2.0 * self.signs[v];
        self.pulls.iter_mut().zip(self.graph.row(v)).for_each(|(pull, w)| *pull += twice * w);
    }

    fn size_after(&self, v: usize) -> usize {
        if self.signs[v] > 0.0 { self.size + 1 } else { self.size - 1 }
    }

    fn score(&self, goal: CutGoal) -> f64 {
        goal.score(self.weight, self.size, self.graph.n)
    }

    /// Whether `score` is below `before` by more than rounding.
    fn better(&self, goal: CutGoal, score: f64, before: f64) -> bool {
        score < before - goal.score(self.graph.rounding, self.size, self.graph.n).abs()
    }

    /// Moves each vertex at most once, the best first, even where it harms; keeps the best prefix. Whether it helped.
    fn pass(&mut self, goal: CutGoal) -> bool {
        let n = self.graph.n;
        let before = self.score(goal);
        let mut free: Vec<usize> = (0..n).collect();
        let mut moved = Vec::new();
        let (mut best, mut length) = (before, 0);
        // Moving a set is moving its complement: half of the vertices are enough.
        for _ in 0..n.div_ceil(2) {
            let after = |v: usize| {
                let size = self.size_after(v);
                if size == 0 || size == n {
                    return f64::INFINITY;
                }
                goal.score(self.weight + self.signs[v] * self.pulls[v], size, n)
            };
            let least = |best: (f64, usize), k: usize| {
                let score = after(free[k]);
                if score < best.0 { (score, k) } else { best }
            };
            let (score, k) = (0..free.len()).fold((f64::INFINITY, 0), least);
            if score == f64::INFINITY {
                break;
            }
            let v = free.swap_remove(k);
            self.flip(v);
            moved.push(v);
            if self.better(goal, score, best) {
                (best, length) = (score, moved.len());
            }
        }
        for v in moved.drain(length..).rev() {
            self.flip(v);
        }
        length > 0
    }

    /// Exchanges the best pair, if that helps. Swaps keep the sizes, so that the weight alone decides.
    fn swap(&mut self, goal: CutGoal) -> bool {
        let (within, without): (Vec<usize>, Vec<usize>) = (0..self.graph.n).partition(|v| self.signs[*v] < 0.0);
        let sign = if goal == CutGoal::Maximum { -1.0 } else { 1.0 };
        let mut best = (-self.graph.rounding, None);
        for u in within {
            let row = self.graph.row(u);
            for v in &without {
                // The edge between the two stays in the cut.
                let change = sign * (2.0 * row[*v] + self.pulls[*v] - self.pulls[u]);
                if change < best.0 {
                    best = (change, Some((u, *v)));
                }
            }
        }
        let Some((u, v)) = best.1 else { return false };
        self.flip(v);
        self.flip(u);
        true
    }
}

/// Public pseudo-random numbers, the same everywhere: `SplitMix64` (Steele, Lea & Flood 2014).
struct Words(u64);

impl Words {
    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const GOALS: [CutGoal; 3] = [CutGoal::Minimum, CutGoal::Maximum, CutGoal::Sparsest];

    fn matrix(n: usize, mut weight: impl FnMut(usize, usize) -> f64) -> Vec<f64> {
        let mut weights = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..i {
                let w = weight(i, j);
                weights[i * n + j] = w;
                weights[j * n + i] = w;
            }
        }
        weights
    }

    fn weight(weights: &[f64], side: &[bool]) -> f64 {
        let n = side.len();
        let pairs = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.filter(|(i, j)| side[*i] != side[*j]).map(|(i, j)| weights[i * n + j]).sum()
    }

    fn score(weights: &[f64], side: &[bool], goal: CutGoal) -> f64 {
        let (a, n) = (side.iter().filter(|s| **s).count() as f64, side.len() as f64);
        match goal {
            CutGoal::Minimum => weight(weights, side),
            CutGoal::Maximum => -weight(weights, side),
            CutGoal::Sparsest => weight(weights, side) / (a * (n - a)),
        }
    }

    fn brute_force(weights: &[f64], n: usize, goal: CutGoal) -> f64 {
        let sides = (1u32..(1 << n) - 1).map(|bits| (0..n).map(|v| bits >> v & 1 == 1).collect::<Vec<_>>());
        sides.map(|side| score(weights, &side, goal)).fold(f64::INFINITY, f64::min)
    }

    /// What holds for every answer.
    fn checked(weights: &[f64], n: usize, goal: CutGoal) -> FoundCut {
        let found = search(weights, n, goal).unwrap();
        let size = found.side.iter().filter(|s| **s).count();
        assert!(size > 0 && (2 * size < n || (2 * size == n && found.side[0])));
        let total: f64 = weights.iter().map(|w| w.abs()).sum();
        assert!((found.weight - weight(weights, &found.side)).abs() <= 1e-12 * total);
        assert_eq!(found.exact, n <= EXACT_VERTICES);
        assert_eq!(found, search(weights, n, goal).unwrap());
        found
    }

    #[test]
    fn known_answers() {
        // Two triangles joined by one edge.
        let edges = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3)];
        let weights = matrix(6, |i, j| f64::from(u8::from(edges.contains(&(j, i)))));
        let left = vec![true, true, true, false, false, false];
        for goal in [CutGoal::Minimum, CutGoal::Sparsest] {
            let found = checked(&weights, 6, goal);
            assert_eq!((found.side, found.weight), (left.clone(), 1.0));
        }
        assert_eq!(checked(&weights, 6, CutGoal::Maximum).weight, 5.0);
        // A negative edge makes a cut smaller than none.
        let found = checked(&matrix(3, |i, j| if (i, j) == (2, 1) { -2.0 } else { 1.0 }), 3, CutGoal::Minimum);
        assert_eq!((found.side, found.weight), (vec![false, true, false], -1.0));
        let pair = checked(&[0.0, 3.0, 3.0, 0.0], 2, CutGoal::Sparsest);
        assert_eq!((pair.side, pair.weight), (vec![true, false], 3.0));
    }

    #[test]
    fn an_empty_graph_has_cuts() {
        for n in [2, 5, 25] {
            for goal in GOALS {
                assert_eq!(checked(&vec![0.0; n * n], n, goal).weight, 0.0);
            }
        }
    }

    #[test]
    fn malformed_calls() {
        let path = [0.0, 1.0, 1.0, 0.0];
        let is_invalid = |weights: &[f64], n| search(weights, n, CutGoal::Minimum).is_err();
        assert!(!is_invalid(&path, 2));
        assert!(is_invalid(&[], 0) && is_invalid(&[0.0], 1) && is_invalid(&path, usize::MAX));
        assert!(is_invalid(&path[..3], 2) && is_invalid(&path, 3));
        assert!(is_invalid(&[0.0, 1.0, 2.0, 0.0], 2) && is_invalid(&[1.0, 1.0, 1.0, 0.0], 2));
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX] {
            assert!(is_invalid(&[0.0, bad, bad, 0.0], 2));
        }
    }

    proptest! {
            #[test]
            fn small_graphs_exactly(
                n in 2usize..=9,
                entries in prop_oneof![
                    prop::collection::vec((-3i8..=3).prop_map(f64::from), 36),
                    prop::collection::vec(-1e3f64..1e3, 36),
                ],
            ) {
                let weights = matrix(n, |i, j| entries[i * (i - 1) / 2 + j]);
                for goal in GOALS {
                    let found = checked(&weights, n, goal);
                    let least = brute_force(&weights, n, goal);
                    prop_assert!((score(&weights, &found.side, goal) - least).abs() <= 1e-9, "{goal:?}: {least}");
                }
            }

            /// Local search alone, where all cuts can be looked at. Not a theorem: a property of these seeds' graphs.
            #[test]
            fn local_search_against_enumeration(n in 4usize..=12, seed in any::<u64>()) {
                let mut words = Words(seed);
                let weights = matrix(n, |_, _| words.uniform() - 0.5);
                let graph = Graph::new(&weights, n).unwrap();
                for goal in GOALS {
                    let (found, best) = (graph.improve(goal), graph.enumerate(goal));
                    prop_assert!((score(&weights, &found, goal) - score(&weights, &best, goal)).abs() <= 1e-9, "{goal:?}");
                }
            }

            /// Running weights and pulls are those of the definition; a swap is the best of all, or none helps.
            #[test]
            fn moves_by_the_definition(n in 3usize..=9, seed in any::<u64>(), turned in any::<bool>()) {
                let mut words = Words(seed);
                let weights = matrix(n, |_, _| words.uniform() - 0.5);
                let graph = Graph::new(&weights, n).unwrap();
                let goal = if turned { CutGoal::Maximum } else { CutGoal::Minimum };
                let mut cut = Cut::new(&graph, &(0..n).map(|v| v == 0 || (v > 1 && words.uniform() < 0.5)).collect::<Vec<_>>());
                for _ in 0..4 {
                    let side = inside(&cut.signs);
                    let swapped = |u: usize, v: usize| {
                        let mut side = side.clone();
                        side.swap(u, v);
                        score(&weights, &side, goal)
                    };
                    let least = (0..n).flat_map(|u| (0..n).map(move |v| (u, v))).map(|(u, v)| swapped(u, v));
                    let least = least.fold(f64::INFINITY, f64::min);
                    let before = cut.score(goal);
                    prop_assert_eq!(cut.swap(goal), least < before - 1e-12);
                    prop_assert!((cut.score(goal) - least).abs() <= 1e-12);
                    let improved = cut.pass(goal);
                    let after = cut.score(goal);
    prop_assert!((improved && after < least) || (!improved && (after - least).abs() <= 1e-12));
                    let fresh = Cut::new(&graph, &inside(&cut.signs));
                    prop_assert!((cut.weight - weight(&weights, &inside(&cut.signs))).abs() <= 1e-12);
                    prop_assert!(cut.size == fresh.size && cut.size > 0 && cut.size < n);
                    prop_assert!(cut.pulls.iter().zip(&fresh.pulls).all(|(a, b)| (a - b).abs() <= 1e-12));
                }
            }

            /// Heavy within two blocks, light between them, noise everywhere.
            #[test]
            fn planted_cuts(n in 21usize..60, share in 0.2f64..0.5, seed in any::<u64>()) {
                let mut words = Words(seed);
                let inside: Vec<bool> = {
                    let size = ((share * n as f64) as usize).max(5);
                    let mut order: Vec<(f64, usize)> = (0..n).map(|v| (words.uniform(), v)).collect();
                    order.sort_by(|a, b| a.0.total_cmp(&b.0));
                    let chosen: Vec<usize> = order[..size].iter().map(|(_, v)| *v).collect();
                    (0..n).map(|v| chosen.contains(&v)).collect()
                };
                let weights = matrix(n, |i, j| {
                    let base = if inside[i] == inside[j] { 4.0 } else { 0.0 };
                    base + words.uniform() - 0.5
                });
                let planted = checked(&weights, n, CutGoal::Sparsest);
                prop_assert!(planted.side.iter().zip(&inside).all(|(a, b)| a == b)
                    || planted.side.iter().zip(&inside).all(|(a, b)| a != b));
                let least = checked(&weights, n, CutGoal::Minimum);
                prop_assert!(least.weight <= weight(&weights, &inside) + 1e-9);
                // Turned around, the planted cut is the greatest.
                let turned: Vec<f64> = weights.iter().map(|w| -w).collect();
                let greatest = checked(&turned, n, CutGoal::Maximum);
                prop_assert!(greatest.weight >= -least.weight - 1e-9);
            }

            /// All positive edges of a bipartite graph can be cut at once.
            #[test]
            fn greatest_cuts_of_bipartite_graphs(n in 21usize..60, density in 0.1f64..1.0, seed in any::<u64>()) {
                let mut words = Words(seed);
                let left: Vec<bool> = (0..n).map(|_| words.uniform() < 0.5).collect();
                let weights = matrix(n, |i, j| {
                    let present = words.uniform() < density;
                    if present && left[i] != left[j] { 0.1 + words.uniform() } else { 0.0 }
                });
                let all = weights.iter().sum::<f64>() / 2.0;
                prop_assert!((checked(&weights, n, CutGoal::Maximum).weight - all).abs() <= 1e-9);
            }

            /// Graphs of weights that are not negative: Stoer and Wagner's algorithm is exact, and local search keeps it.
            #[test]
            fn least_cuts_of_positive_weights(n in 2usize..=12, density in 0.2f64..1.0, seed in any::<u64>()) {
                let mut words = Words(seed);
                let weights = matrix(n, |_, _| if words.uniform() < density { words.uniform() } else { 0.0 });
                let side = Graph::new(&weights, n).unwrap().stoer_wagner();
                prop_assert!(side.contains(&true) && side.contains(&false));
                prop_assert!((weight(&weights, &side) - brute_force(&weights, n, CutGoal::Minimum)).abs() <= 1e-9);
            }
        }
}
