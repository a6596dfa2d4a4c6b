//! Groups of cells of which any two are nested or disjoint, as a forest over cells that no group tells apart.

use crate::error::Error;
use crate::order::by_key;
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
    pub stands: Vec<u32>,
    /// The first of those that each stands for.
    pub first: Vec<u32>,
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
        let mut order: Vec<usize> = (0..rows.factors.len()).collect();
        by_key(&mut order, &|t| -(rows.group(t).len() as f64));
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

    /// The forest with one node for all that are alike: siblings whose groups below are, with all that is asked of them.
    pub(super) fn folded(&self, asked: &[f64]) -> Folded {
        // What is below each node, by a number; children first.
        let mut kinds: HashMap<(u64, Vec<u32>), u32> = HashMap::new();
        // Leaves are many, and mostly alike.
        let mut last_leaf = None;
        let mut below: Vec<Vec<u32>> = vec![Vec::new(); self.len()];
        let mut kind = vec![0; self.len()];
        for v in (0..self.len()).rev() {
            let (mut children, own) = (std::mem::take(&mut below[v]), asked[v].to_bits());
            let is_leaf = children.is_empty();
            kind[v] = match last_leaf {
                Some((asked, found)) if is_leaf && asked == own => found,
                _ => {
                    children.sort_unstable();
                    let next = kinds.len() as u32;
                    *kinds.entry((own, children)).or_insert(next)
                }
            };
            if is_leaf {
                last_leaf = Some((own, kind[v]));
            }
            if let Some(siblings) = below.get_mut(self.parent[v] as usize) {
                siblings.push(kind[v]);
            }
        }
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut last = None;
        let (mut stands, mut first) = (vec![0; self.len()], Vec::new());
        let mut folded = Self {
            parent: Vec::new(),
            is_leaf: Vec::new(),
            leaf_of: Vec::new(),
            sizes: Vec::new(),
            copies: Vec::new(),
            queries: Vec::new(),
        };
        let mut total = Vec::new();
        for v in 0..self.len() {
            let parent = if self.parent[v] == NONE { NONE } else { stands[self.parent[v] as usize] };
            let next = folded.len() as u32;
            let key = (parent, kind[v]);
            let at = match last {
                Some((before, at)) if before == key => at,
                _ => *known.entry(key).or_insert(next),
            };
            last = Some((key, at));
            if at == next {
                first.push(v as u32);
                folded.parent.push(parent);
                folded.is_leaf.push(self.is_leaf[v]);
                folded.sizes.push(self.sizes[v]);
                folded.copies.push(0.0);
                total.push(0.0);
            }
            stands[v] = at;
            total[at as usize] += asked[v];
            // Counted under the first of the parents.
            if parent == NONE || first[parent as usize] == self.parent[v] {
                folded.copies[at as usize] += 1.0;
            }
        }
        Folded { forest: folded, asked: total, stands, first }
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
