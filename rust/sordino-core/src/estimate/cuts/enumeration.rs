//! The best of all cuts of a small graph.

use super::graph::Graph;
use super::{CutGoal, inside};
use crate::linear_algebra::inner;

/// Flips after which the running weight of an enumeration is computed anew.
const FRESH: usize = 1024;

impl Graph<'_> {
    /// The best of all cuts, in the order of the reflected Gray code: each differs from the one before by one vertex.
    pub(super) fn enumerate(&self, goal: CutGoal) -> Vec<bool> {
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
}
