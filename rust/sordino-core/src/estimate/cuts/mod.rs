//! Cuts read from a weighted graph that was released.
//!
//! `w(S) = Σ_{i ∈ S, j ∉ S} w_ij`, for a symmetric matrix of weights that may be negative, as noise makes them: then the
//! least cut is as hard as the greatest. Candidates are single vertices, sweeps along the extreme eigenvectors of the Laplacian, for the least cut that of the positive
//! weights (Stoer & Wagner 1997), and public pseudo-random halves; each is improved by passes of single moves (Fiduccia
//! & Mattheyses 1982) and by swaps (Kernighan & Lin 1970). A search of all cuts
//! with bounds then finds a better one, or that there is none, within a fixed amount of work. The same matrix always gives
//! the same cut.
//!
//! | file | what |
//! |---|---|
//! | `graph.rs` | symmetric weights, and the weight of a cut |
//! | `branch_and_bound.rs` | whether a cut is the best of all |
//! | `local_search.rs` | passes and swaps from all starts |
//! | `sweeps.rs` | eigenvectors of the Laplacian, swept |
//! | `stoer_wagner.rs` | the least cut of the positive weights |

mod branch_and_bound;
mod graph;
mod local_search;
mod stoer_wagner;
mod sweeps;
#[cfg(test)]
mod tests;

use crate::error::Error;
use graph::Graph;

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
/// If it was asked to end early, `n < 2`, the matrix is not `n × n`, symmetric and zero on its diagonal, or the sum of its absolute values is not
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
    let (mut side, exact) = graph.certify(goal, graph.improve(goal))?;
    let size = side.iter().filter(|inside| **inside).count();
    if 2 * size > n || (2 * size == n && !side[0]) {
        for inside in &mut side {
            *inside = !*inside;
        }
    }
    Ok(FoundCut { weight: graph.cut(&side), side, exact })
}

fn inside(signs: &[f64]) -> Vec<bool> {
    signs.iter().map(|s| *s < 0.0).collect()
}
