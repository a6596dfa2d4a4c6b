//! A simple graph under insertion, and the online rule that bounds its degrees.

use super::neighbours::Neighbours;
use crate::error::Error;

/// Simple undirected graph on the public vertices `0..n`, optionally of degree at most `D`.
///
/// **Online rule.** An edge is kept iff it is among the first `D` distinct edges of the stream at both endpoints; dropped
/// edges count too. So one more edge in the stream changes at most three kept ones (itself, and one pushed out at each
/// endpoint), whereas the greedy rule "both degrees are below `D`" can change all that follow.
///
/// A repeated insertion is a null item, also of a dropped edge. Each vertex remembers its first `D` distinct neighbours:
/// an edge in neither memory meets two full ones, and is dropped whether or not it is a repeat.
#[derive(Clone)]
pub struct SimpleGraph {
    max_degree: u32,
    vertices: Vec<Vertex>,
}

#[derive(Clone)]
struct Vertex {
    kept: Neighbours,
    /// Neighbours by dropped edges among the first `D`.
    dropped: Neighbours,
    degree: u32,
    /// Size of both together, at most `D`.
    remembered: u32,
}

impl SimpleGraph {
    /// No edges yet; without `max_degree` all are kept.
    ///
    /// # Errors
    /// If `vertices` or `max_degree` is 0.
    pub fn new(vertices: u32, max_degree: Option<u32>) -> Result<Self, Error> {
        if vertices == 0 {
            return Err(Error::invalid("vertices", "must be at least 1"));
        }
        if max_degree == Some(0) {
            return Err(Error::invalid("max_degree", "must be at least 1"));
        }
        let vertex = Vertex { kept: Neighbours::new(), dropped: Neighbours::new(), degree: 0, remembered: 0 };
        Ok(Self { max_degree: max_degree.unwrap_or(u32::MAX), vertices: vec![vertex; vertices as usize] })
    }

    /// Forgets all edges, and overwrites them.
    pub fn wipe(&mut self) {
        for vertex in &mut self.vertices {
            vertex.kept.wipe();
            vertex.dropped.wipe();
            (vertex.degree, vertex.remembered) = (0, 0);
        }
    }

    /// Number of vertices.
    pub fn vertices(&self) -> u32 {
        self.vertices.len() as u32
    }

    /// Kept edges at a vertex.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn degree(&self, vertex: u32) -> u32 {
        self.vertices[vertex as usize].degree
    }

    /// Number of vertices that both have kept edges to.
    ///
    /// # Panics
    /// If there is no such vertex.
    pub fn common_neighbours(&self, u: u32, v: u32) -> usize {
        self.vertices[u as usize].kept.common(&self.vertices[v as usize].kept)
    }

    /// Inserts an edge; its endpoints if it is new and kept, `None` if it is a null item.
    pub fn insert(&mut self, u: i64, v: i64) -> Option<(u32, u32)> {
        let n = self.vertices();
        let [u, v] = [u, v].map(|w| u32::try_from(w).ok().filter(|w| *w < n));
        let (u, v) = u.zip(v).filter(|(u, v)| u != v)?;
        let [a, b] = self.vertices.get_disjoint_mut([u as usize, v as usize]).ok()?;
        // Kept edges are in both memories: look where there are fewer.
        let known = if a.degree <= b.degree { a.kept.contains(v) } else { b.kept.contains(u) };
        if known || a.dropped.contains(v) || b.dropped.contains(u) {
            return None;
        }
        let keeps = a.remembered < self.max_degree && b.remembered < self.max_degree;
        for (vertex, other) in [(a, v), (b, u)] {
            if keeps {
                vertex.kept.insert(other, n);
                vertex.degree += 1;
            } else if vertex.remembered < self.max_degree {
                vertex.dropped.insert(other, n);
            } else {
                continue;
            }
            vertex.remembered += 1;
        }
        keeps.then_some((u, v))
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        let lists: usize = self.vertices.iter().map(|v| v.kept.bytes() + v.dropped.bytes()).sum();
        size_of::<Self>() + self.vertices.capacity() * size_of::<Vertex>() + lists
    }
}

impl std::fmt::Debug for SimpleGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimpleGraph").field("vertices", &self.vertices.len()).finish_non_exhaustive()
    }
}
