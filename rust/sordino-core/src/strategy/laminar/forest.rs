//! Groups of cells of which any two are nested or disjoint, as a forest over cells that no group tells apart.

use crate::error::Error;
use crate::order::{by_key, in_order};
use crate::workload::Workload;
use std::collections::HashMap;

/// No parent, or no leaf.
pub(super) const NONE: u32 = u32::MAX;

/// Queries that are multiples of sums over groups: the factor and the cells of each, one after the other.
struct Rows {
    factors: Vec<f64>,
    ends: Vec<usize>,
    cells: Vec<u32>,
}

impl Rows {
    fn of(workload: &Workload) -> Result<Self, Error> {
        let mut rows = Self { factors: Vec::new(), ends: vec![0], cells: Vec::new() };
        rows.add(workload)?;
        Ok(rows)
    }

    fn group(&self, query: usize) -> &[u32] {
        &self.cells[self.ends[query]..self.ends[query + 1]]
    }

    fn add(&mut self, workload: &Workload) -> Result<(), Error> {
        match workload {
            Workload::Histogram { len } => (0..*len as u32).try_for_each(|cell| self.add_row([(cell, 1.0)])),
            Workload::Intervals { .. } => self.add(&workload.sparse()?),
            Workload::Sparse { rows, starts, indices, entries, .. } => (0..*rows).try_for_each(|t| {
                let range = starts[t]..starts[t + 1];
                self.add_row(indices[range.clone()].iter().copied().zip(entries[range].iter().copied()))
            }),
            Workload::Matrix { columns, entries, .. } => {
                entries.chunks_exact(*columns).try_for_each(|row| self.add_row((0..).zip(row.iter().copied())))
            }
            Workload::Union { parts } => parts.iter().try_for_each(|part| self.add(part)),
            _ => Err(unserved()),
        }
    }

    fn add_row(&mut self, entries: impl IntoIterator<Item = (u32, f64)>) -> Result<(), Error> {
        let mut factor = None;
        for (cell, entry) in entries {
            if entry == 0.0 {
                continue;
            }
            if *factor.get_or_insert(entry) != entry {
                return Err(unserved());
            }
            self.cells.push(cell);
        }
        self.factors.push(factor.unwrap_or(0.0));
        self.ends.push(self.cells.len());
        Ok(())
    }
}

/// The groups; parents come before their children. A leaf is a set of cells that every group holds whole or not at all.
#[derive(Debug, Clone)]
pub(super) struct Forest {
    /// Parent of each node.
    pub parent: Vec<u32>,
    /// Whether a node has no children.
    pub is_leaf: Vec<bool>,
    /// Leaf of each cell; cells that are in no group have none.
    pub leaf_of: Vec<u32>,
    /// Cells of each node.
    pub sizes: Vec<usize>,
    /// How many nodes of its parent each stands for: one, but in what [`Self::folded`] makes.
    pub copies: Vec<f64>,
    /// Factor and node of each query.
    pub queries: Vec<(f64, u32)>,
}

/// A forest of one node for all that are alike.
pub(super) struct Folded {
    pub forest: Forest,
    /// What is asked of all nodes that each stands for.
    pub asked: Vec<f64>,
    /// Which one stands for every node.
    pub stands: Vec<usize>,
    /// The first of those that each stands for.
    pub first: Vec<usize>,
}

/// The children of every node.
pub(super) struct Children {
    starts: Vec<usize>,
    nodes: Vec<usize>,
}

impl Children {
    pub(super) fn new(forest: &Forest) -> Self {
        let mut starts = vec![0; forest.len() + 1];
        let below = || (0..forest.len()).filter(|v| forest.parent[*v] != NONE);
        below().for_each(|v| starts[forest.parent[v] as usize + 1] += 1);
        for v in 0..forest.len() {
            starts[v + 1] += starts[v];
        }
        let (mut next, mut nodes) = (starts.clone(), vec![0; starts[forest.len()]]);
        for v in below() {
            let slot = &mut next[forest.parent[v] as usize];
            nodes[*slot] = v;
            *slot += 1;
        }
        Self { starts, nodes }
    }

    pub(super) fn of(&self, v: usize) -> &[usize] {
        &self.nodes[self.starts[v]..self.starts[v + 1]]
    }

    fn of_mut(&mut self, v: usize) -> &mut [usize] {
        &mut self.nodes[self.starts[v]..self.starts[v + 1]]
    }
}

fn unserved() -> Error {
    Error::Unsupported("groups must be nested or disjoint, and a query the multiple of the sum of one".into())
}

impl Forest {
    /// # Errors
    /// [`Error::Unsupported`] if groups cross, or a query is no multiple of a sum.
    pub(super) fn of(workload: &Workload) -> Result<Self, Error> {
        let cells = workload.table_len()?;
        let rows = Rows::of(workload)?;
        // From the largest group on, the smallest so far that holds a cell is the same for all cells of the next.
        let order = in_order(rows.factors.len(), &|t| -(rows.group(t).len() as f64));
        let (mut parent, mut sizes): (Vec<u32>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut innermost = vec![NONE; cells];
        // A query of nothing is none of any node.
        let mut queries = vec![(0.0, 0); rows.factors.len()];
        for t in order {
            let group = rows.group(t);
            if group.is_empty() {
                continue;
            }
            let around = innermost[group[0] as usize];
            if group.iter().any(|cell| innermost[*cell as usize] != around) {
                return Err(unserved());
            }
            let node = if around != NONE && sizes[around as usize] == group.len() {
                around
            } else {
                parent.push(around);
                sizes.push(group.len());
                let node = parent.len() as u32 - 1;
                for cell in group {
                    innermost[*cell as usize] = node;
                }
                node
            };
            queries[t] = (rows.factors[t], node);
        }
        // Cells of a group beside the groups in it are a leaf of their own.
        let groups = parent.len();
        let mut is_leaf = vec![true; groups];
        parent.iter().filter(|p| **p != NONE).for_each(|p| is_leaf[*p as usize] = false);
        let mut rest = vec![NONE; groups];
        let mut leaf_of = innermost;
        for leaf in leaf_of.iter_mut().filter(|leaf| **leaf != NONE) {
            let node = *leaf as usize;
            if !is_leaf[node] {
                if rest[node] == NONE {
                    rest[node] = parent.len() as u32;
                    parent.push(*leaf);
                    sizes.push(0);
                }
                *leaf = rest[node];
                sizes[*leaf as usize] += 1;
            }
        }
        is_leaf.resize(parent.len(), true);
        let copies = vec![1.0; parent.len()];
        Ok(Self { parent, is_leaf, leaf_of, sizes, copies, queries })
    }

    /// The forest with one node for all that are alike: siblings whose groups below are, with all that is asked of them and
    /// what they cost by their sizes. Nodes are in the order of their parents, so that sweeps go through memory once.
    pub(super) fn folded(&self, asked: &[f64], cost: &dyn Fn(usize) -> f64) -> Folded {
        // What each node and those below it are, by a number; children first.
        let mut children = Children::new(self);
        let (mut kinds, mut kind) = (HashMap::<Vec<u64>, usize>::new(), vec![0; self.len()]);
        // Leaves are many, and mostly alike.
        let mut last_leaf = None;
        let mut own = Vec::new();
        for v in (0..self.len()).rev() {
            let alone = [asked[v].to_bits(), cost(self.sizes[v]).to_bits()];
            if let Some((bits, found)) = last_leaf
                && self.is_leaf[v]
                && bits == alone
            {
                kind[v] = found;
                continue;
            }
            let below = children.of_mut(v);
            by_key(below, &|child| kind[child] as f64);
            own.clear();
            own.extend(alone);
            own.extend(below.iter().map(|child| kind[*child] as u64));
            let next = kinds.len();
            kind[v] = *kinds.entry(own.clone()).or_insert(next);
            if self.is_leaf[v] {
                last_leaf = Some((alone, kind[v]));
            }
        }
        let mut roots: Vec<usize> = (0..self.len()).filter(|v| self.parent[*v] == NONE).collect();
        by_key(&mut roots, &|root| kind[root] as f64);
        let mut forest = Self {
            parent: Vec::new(),
            is_leaf: Vec::new(),
            leaf_of: Vec::new(),
            sizes: Vec::new(),
            copies: Vec::new(),
            queries: Vec::new(),
        };
        let mut first = Vec::new();
        let mut add = |parent: u32, siblings: &[usize], first: &mut Vec<usize>| {
            let at = first.len();
            for alike in siblings.chunk_by(|a, b| kind[*a] == kind[*b]) {
                forest.parent.push(parent);
                forest.is_leaf.push(self.is_leaf[alike[0]]);
                forest.sizes.push(self.sizes[alike[0]]);
                forest.copies.push(alike.len() as f64);
                first.push(alike[0]);
            }
            at
        };
        add(NONE, &roots, &mut first);
        let mut of_children = Vec::new();
        while let Some(v) = first.get(of_children.len()) {
            of_children.push(add(of_children.len() as u32, children.of(*v), &mut first));
        }
        let (mut stands, mut total) = (vec![0; self.len()], vec![0.0; first.len()]);
        let mut mark = |siblings: &[usize], mut at: usize, stands: &mut [usize]| {
            for (place, v) in siblings.iter().enumerate() {
                at += usize::from(place > 0 && kind[*v] != kind[siblings[place - 1]]);
                stands[*v] = at;
                total[at] += asked[*v];
            }
        };
        mark(&roots, 0, &mut stands);
        for v in 0..self.len() {
            mark(children.of(v), of_children[stands[v]], &mut stands);
        }
        Folded { forest, asked: total, stands, first }
    }

    /// What is asked of every node: of its queries the squared factors, times the weights of their squared errors.
    pub(super) fn asked(&self, answer_weights: Option<&[f64]>) -> Vec<f64> {
        let mut asked = vec![0.0; self.len()];
        for (t, (factor, node)) in self.queries.iter().enumerate() {
            asked[*node as usize] += factor * factor * answer_weights.map_or(1.0, |weights| weights[t]);
        }
        asked
    }

    pub(super) fn len(&self) -> usize {
        self.parent.len()
    }

    /// Adds what every node has to its parent, children first.
    pub(super) fn add_up<T: Copy + std::ops::AddAssign>(&self, values: &mut [T]) {
        for node in (0..self.len()).rev() {
            if self.parent[node] != NONE {
                let value = values[node];
                values[self.parent[node] as usize] += value;
            }
        }
    }

    /// The same of all copies.
    pub(super) fn add_copies(&self, values: &mut [f64]) {
        for node in (0..self.len()).rev() {
            if self.parent[node] != NONE {
                values[self.parent[node] as usize] += self.copies[node] * values[node];
            }
        }
    }

    /// How many nodes each stands for in all.
    pub(super) fn times(&self) -> Vec<f64> {
        let above = self.pass_down(1.0, |parent, count| count * self.copies[parent]);
        above.iter().zip(&self.copies).map(|(above, copies)| above * copies).collect()
    }

    /// What a node gets from its parent, parents first; roots get `start`.
    pub(super) fn pass_down<T: Copy>(&self, start: T, below: impl Fn(usize, T) -> T) -> Vec<T> {
        let mut values = vec![start; self.len()];
        for node in 0..self.len() {
            if self.parent[node] != NONE {
                let parent = self.parent[node] as usize;
                values[node] = below(parent, values[parent]);
            }
        }
        values
    }
}
