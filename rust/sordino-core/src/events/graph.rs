//! Functions of a graph under insertion: what a new edge changes.

use super::degree_bound::SimpleGraph;
use super::steps::grouped;
use crate::error::Error;
use zeroize::Zeroize;

/// A function of a simple graph whose increments are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GraphFunction {
    /// Number of edges.
    EdgeCount,
    /// Number of triangles.
    Triangles,
    /// Number of stars with `k` leaves, `Σ_v C(d_v, k)`.
    Stars {
        /// Leaves, at least 2.
        k: u32,
    },
    /// Number of vertices of each degree `0..=D`, less the public start `(n, 0, …, 0)`.
    DegreeHistogram,
}

/// Increments stop here, so that sums of a few of them fit.
const CAP: i64 = i64::MAX / 4;

/// The increments of a [`GraphFunction`], by the kept edges of a [`SimpleGraph`].
#[derive(Clone)]
pub struct GraphEvents {
    function: GraphFunction,
    graph: SimpleGraph,
    width: usize,
    /// `C(d, k − 1)` for the degrees met so far.
    stars: Vec<i64>,
}

impl GraphEvents {
    /// A graph without edges on the vertices `0..vertices`; `max_degree` is enforced by the online rule.
    ///
    /// # Errors
    /// If `vertices` or `max_degree` is 0, a star has fewer than 2 leaves, or a degree histogram has no `max_degree`.
    pub fn new(function: GraphFunction, vertices: u32, max_degree: Option<u32>) -> Result<Self, Error> {
        let graph = SimpleGraph::new(vertices, max_degree)?;
        let width = match (function, max_degree) {
            (GraphFunction::DegreeHistogram, None) => {
                return Err(Error::invalid("max_degree", "a degree histogram needs one"));
            }
            (GraphFunction::DegreeHistogram, Some(max_degree)) => max_degree as usize + 1,
            (GraphFunction::Stars { k: 0 | 1 }, _) => return Err(Error::invalid("k", "must be at least 2")),
            _ => 1,
        };
        Ok(Self { function, graph, width, stars: Vec::new() })
    }

    /// Forgets the graph, and overwrites it.
    pub fn wipe(&mut self) {
        self.graph.wipe();
        self.stars.zeroize();
    }

    /// Numbers an event adds to: 1, or `D + 1` for a degree histogram.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Adds to `row` (of length `width`) what the insertion of an edge changes; stars stop at `i64::MAX / 4`.
    ///
    /// # Panics
    /// If `row` is shorter.
    pub fn push(&mut self, u: i64, v: i64, row: &mut [i64]) {
        let Some((u, v)) = self.graph.insert(u, v) else { return };
        let old = [u, v].map(|w| self.graph.degree(w) as usize - 1);
        match self.function {
            GraphFunction::EdgeCount => row[0] += 1,
            // The new edge joins neither endpoint to a third vertex, so it may be in the graph already.
            GraphFunction::Triangles => row[0] += self.graph.common_neighbours(u, v) as i64,
            GraphFunction::Stars { k } => {
                for degree in self.stars.len()..=old[0].max(old[1]) {
                    self.stars.push(choose(degree as u64, u64::from(k) - 1));
                }
                let more = self.stars[old[0]] + self.stars[old[1]];
                row[0] = row[0].saturating_add(more).min(CAP);
            }
            GraphFunction::DegreeHistogram => {
                for degree in old {
                    row[degree] -= 1;
                    row[degree + 1] += 1;
                }
            }
        }
    }

    /// Insertions `(u[i], v[i])` grouped into steps: zeroes `rows` (steps × `width`) and fills it.
    ///
    /// `ends[t]` is the index after the last event of step `t`.
    ///
    /// # Errors
    /// If lengths do not match, or `ends` decreases or does not end with the number of events. Nothing is inserted then.
    pub fn rows(&mut self, u: &[i64], v: &[i64], ends: &[usize], rows: &mut [i64]) -> Result<(), Error> {
        Error::check_len("v", u.len(), v.len())?;
        grouped(u.len(), ends, self.width, rows, |event, row| self.push(u[event], v[event], row))
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        self.graph.bytes() + self.stars.capacity() * 8
    }
}

impl std::fmt::Debug for GraphEvents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphEvents").field("function", &self.function).finish_non_exhaustive()
    }
}

/// `min(C(n, k), CAP)`.
fn choose(n: u64, k: u64) -> i64 {
    if k > n {
        return 0;
    }
    let k = k.min(n - k);
    let mut product = 1_u128;
    for i in 0..k {
        // C(n, i + 1): grows with i up to n/2, so what is above the cap stays there.
        product = product * u128::from(n - i) / u128::from(i + 1);
        if product >= CAP as u128 {
            return CAP;
        }
    }
    product as i64
}

#[cfg(test)]
mod tests {
    use super::{CAP, choose};

    #[test]
    fn binomials_by_pascals_rule_up_to_the_cap() {
        assert_eq!(choose(5, 2), 10);
        assert_eq!(choose(0, 0), 1);
        assert_eq!(choose(3, 4), 0);
        for n in 1..90 {
            for k in 1..=n {
                assert_eq!(choose(n, k), CAP.min(choose(n - 1, k - 1) + choose(n - 1, k)));
            }
        }
        assert_eq!(choose(u64::from(u32::MAX), u64::from(u32::MAX) / 2), CAP);
    }
}
