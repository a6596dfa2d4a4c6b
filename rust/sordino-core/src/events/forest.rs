//! Cost of the minimum spanning forest of a weighted multigraph under insertion, by a link-cut tree.

use super::steps::grouped;
use crate::error::Error;

/// The minimum spanning forest of the edges so far, on the public vertices `0..n`.
///
/// A new edge joins two trees, or replaces the heaviest edge on the path between its endpoints if that is heavier.
/// Link-cut trees (Sleator & Tarjan 1985) find it in `O(log n)`, amortised. Edges of the forest are nodes too, so there
/// are at most `2n − 1` nodes; which vertices are connected, a union–find knows.
#[derive(Clone)]
pub struct SpanningForest {
    vertices: u32,
    max_weight: i64,
    /// Vertices, then edges.
    nodes: Vec<Node>,
    /// Union–find on the vertices.
    leaders: Vec<u32>,
}

/// A node of a splay tree, which holds a path in order of depth.
#[derive(Clone, Copy)]
struct Node {
    child: [u32; 2],
    /// Of the splay tree; at its root, the vertex or edge above the path.
    parent: u32,
    /// Of the heaviest node in the splay subtree.
    heaviest: u32,
    weight: i64,
    max: i64,
    /// The subtree is to be read backwards.
    reversed: bool,
}

const NONE: u32 = u32::MAX;

impl Node {
    fn new(id: u32, weight: i64) -> Self {
        Self { child: [NONE; 2], parent: NONE, heaviest: id, weight, max: weight, reversed: false }
    }
}

impl SpanningForest {
    /// A forest without edges; weights are `0..=max_weight`.
    ///
    /// # Errors
    /// If `vertices` is 0 or above 2^30, or costs up to `max_weight · (vertices − 1)` exceed `i64::MAX / 4`.
    pub fn new(vertices: u32, max_weight: u64) -> Result<Self, Error> {
        if vertices == 0 || vertices > 1 << 30 {
            return Err(Error::invalid("vertices", "must be at least 1 and at most 2^30"));
        }
        let most = u64::try_from(i64::MAX / 4).unwrap_or_default() / u64::from(vertices - 1).max(1);
        if max_weight > most {
            return Err(Error::Overflow(format!("max_weight must be at most {most} for {vertices} vertices")));
        }
        // Below every edge.
        let nodes = (0..vertices).map(|id| Node::new(id, -1)).collect();
        let leaders = (0..vertices).collect();
        Ok(Self { vertices, max_weight: max_weight as i64, nodes, leaders })
    }

    /// Forgets all edges, and overwrites them.
    pub fn wipe(&mut self) {
        for (id, node) in self.nodes.iter_mut().enumerate() {
            *node = std::hint::black_box(Node::new(id as u32, -1));
        }
        self.nodes.truncate(self.vertices as usize);
        self.leaders = std::mem::take(&mut self.leaders).into_iter().enumerate().map(|(id, _)| id as u32).collect();
    }

    /// Inserts an edge; how much the cost of the minimum spanning forest changes.
    #[must_use = "the change is what is counted"]
    pub fn push(&mut self, u: i64, v: i64, weight: i64) -> i64 {
        let [u, v] = [u, v].map(|w| u32::try_from(w).ok().filter(|w| *w < self.vertices));
        let Some((u, v)) = u.zip(v).filter(|(u, v)| u != v && (0..=self.max_weight).contains(&weight)) else {
            return 0;
        };
        let (left, right) = (self.leader(u), self.leader(v));
        if left != right {
            self.leaders[left as usize] = right;
            let edge = self.nodes.len() as u32;
            self.nodes.push(Node::new(edge, weight));
            self.join(edge, u, v);
            return weight;
        }
        self.evert(u);
        self.expose(v);
        let Node { heaviest: edge, max, .. } = self.nodes[v as usize];
        if weight >= max {
            return 0;
        }
        // The edge between the two parts of the path: with its neighbours on it, it has lost all it was linked to.
        self.splay(edge);
        for part in self.nodes[edge as usize].child {
            self.nodes[part as usize].parent = NONE;
        }
        self.nodes[edge as usize] = Node::new(edge, weight);
        self.join(edge, u, v);
        weight - max
    }

    /// Insertions `(u[i], v[i])` of weight `w[i]` grouped into steps: zeroes `rows` (one a step) and fills it.
    ///
    /// `ends[t]` is the index after the last event of step `t`.
    ///
    /// # Errors
    /// If lengths do not match, or `ends` decreases or does not end with the number of events. Nothing is inserted then.
    pub fn rows(&mut self, u: &[i64], v: &[i64], w: &[i64], ends: &[usize], rows: &mut [i64]) -> Result<(), Error> {
        Error::check_len("v", u.len(), v.len())?;
        Error::check_len("w", u.len(), w.len())?;
        grouped(u.len(), ends, 1, rows, |event, row| row[0] += self.push(u[event], v[event], w[event]))
    }

    /// Memory in use, about.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.nodes.capacity() * size_of::<Node>() + self.leaders.capacity() * 4
    }

    /// Path halving; without ranks still `O(log n)` amortised.
    fn leader(&mut self, mut vertex: u32) -> u32 {
        while self.leaders[vertex as usize] != vertex {
            let above = self.leaders[self.leaders[vertex as usize] as usize];
            self.leaders[vertex as usize] = above;
            vertex = above;
        }
        vertex
    }

    /// `u – edge – v`, for `u` and `v` in different trees and `edge` alone.
    fn join(&mut self, edge: u32, u: u32, v: u32) {
        self.evert(u);
        self.nodes[u as usize].parent = edge;
        self.nodes[edge as usize].parent = v;
    }

    /// Makes `x` the root of its tree.
    fn evert(&mut self, x: u32) {
        self.expose(x);
        self.nodes[x as usize].reversed ^= true;
    }

    /// Makes the path from the root of the tree to `x` one splay tree, rooted at `x`.
    fn expose(&mut self, x: u32) {
        let (mut below, mut node) = (NONE, x);
        while node != NONE {
            self.splay(node);
            self.nodes[node as usize].child[1] = below;
            self.update(node);
            below = node;
            node = self.nodes[node as usize].parent;
        }
        self.splay(x);
    }

    /// Which child of its splay parent a node is; `None` at the root of a splay tree.
    fn side(&self, x: u32) -> Option<usize> {
        let parent = self.nodes[x as usize].parent;
        if parent == NONE {
            return None;
        }
        self.nodes[parent as usize].child.iter().position(|child| *child == x)
    }

    fn splay(&mut self, x: u32) {
        self.push_down(x);
        while self.side(x).is_some() {
            let parent = self.nodes[x as usize].parent;
            let above = self.side(parent).map(|_| self.nodes[parent as usize].parent);
            if let Some(above) = above {
                self.push_down(above);
            }
            self.push_down(parent);
            self.push_down(x);
            if above.is_some() {
                self.rotate(if self.side(parent) == self.side(x) { parent } else { x });
            }
            self.rotate(x);
        }
    }

    /// Lifts a node above its splay parent.
    fn rotate(&mut self, x: u32) {
        let Some(side) = self.side(x) else { return };
        let parent = self.nodes[x as usize].parent;
        let inner = self.nodes[x as usize].child[1 - side];
        let above = self.nodes[parent as usize].parent;
        if let Some(place) = self.side(parent) {
            self.nodes[above as usize].child[place] = x;
        }
        self.nodes[parent as usize].child[side] = inner;
        if inner != NONE {
            self.nodes[inner as usize].parent = parent;
        }
        self.nodes[x as usize].child[1 - side] = parent;
        self.nodes[parent as usize].parent = x;
        self.nodes[x as usize].parent = above;
        self.update(parent);
        self.update(x);
    }

    fn push_down(&mut self, x: u32) {
        let Node { child, reversed, .. } = self.nodes[x as usize];
        if reversed {
            for c in child.into_iter().filter(|c| *c != NONE) {
                self.nodes[c as usize].reversed ^= true;
            }
            let node = &mut self.nodes[x as usize];
            node.child.swap(0, 1);
            node.reversed = false;
        }
    }

    fn update(&mut self, x: u32) {
        let Node { child, weight, .. } = self.nodes[x as usize];
        let (mut heaviest, mut max) = (x, weight);
        for c in child.into_iter().filter(|c| *c != NONE) {
            let below = &self.nodes[c as usize];
            if below.max > max {
                (heaviest, max) = (below.heaviest, below.max);
            }
        }
        let node = &mut self.nodes[x as usize];
        (node.heaviest, node.max) = (heaviest, max);
    }
}

impl std::fmt::Debug for SpanningForest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SpanningForest").field("vertices", &self.vertices).finish_non_exhaustive()
    }
}
