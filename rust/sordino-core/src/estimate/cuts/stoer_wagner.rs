//! The least cut of weights that are not negative.

use super::graph::Graph;

impl Graph<'_> {
    /// The least cut of `max(w, 0)`: Stoer & Wagner 1997, in `O(n³)`.
    pub(super) fn stoer_wagner(&self) -> Vec<bool> {
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
