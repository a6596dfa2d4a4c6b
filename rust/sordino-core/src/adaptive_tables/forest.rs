//! The model of largest entropy on a forest of measured pairs.

use crate::estimate::Residuals;
use crate::order::sorted_by_key;

/// A forest over attributes: pairs that say most of each other, each with the rows of its table as chances.
#[derive(Debug)]
pub(super) struct Forest {
    /// Of each attribute its neighbours, with the chances of their values, row by row of its own.
    edges: Vec<Vec<(usize, Vec<f64>)>>,
}

impl Forest {
    /// Of the estimates of pairs that were measured.
    pub(super) fn new(residuals: &Residuals, precisions: &[f64], tables: &[f64], attributes: usize) -> Self {
        let mut pairs: Vec<(f64, usize, usize, &[f64])> = Vec::new();
        for (subset, range) in residuals.tables_of_subsets() {
            if let [i, j] = residuals.attributes(subset)
                && precisions[subset] > 0.0
            {
                let table = &tables[range];
                pairs.push((information(table, residuals.levels(*j)), *i, *j, table));
            }
        }
        pairs.retain(|pair| pair.0 > 0.0);
        let pairs = sorted_by_key(pairs, |pair| -pair.0);
        let mut roots: Vec<usize> = (0..attributes).collect();
        let mut edges = vec![Vec::new(); attributes];
        for (_, i, j, table) in pairs {
            let (a, b) = (root(&roots, i), root(&roots, j));
            if a != b {
                roots[a] = b;
                let columns = residuals.levels(j);
                let turned: Vec<f64> =
                    (0..columns).flat_map(|c| table.iter().skip(c).step_by(columns)).copied().collect();
                edges[i].push((j, chances(table, columns)));
                edges[j].push((i, chances(&turned, table.len() / columns)));
            }
        }
        Self { edges }
    }

    /// Whether these are two that the forest joins.
    pub(super) fn has(&self, attributes: &[usize]) -> bool {
        matches!(attributes, [i, j] if self.edges[*i].iter().any(|(other, _)| other == j))
    }

    /// Shares of all pairs of values of two attributes, along the path between them; none if there is no path.
    pub(super) fn joint(&self, i: usize, j: usize, shares: &[Vec<f64>]) -> Option<Vec<f64>> {
        let n = shares[i].len();
        let mut own = vec![0.0; n * n];
        shares[i].iter().enumerate().for_each(|(value, share)| own[value * (n + 1)] = *share);
        let mut waiting = vec![(i, usize::MAX, own)];
        while let Some((at, from, joint)) = waiting.pop() {
            if at == j {
                return Some(joint);
            }
            for (next, rows) in self.edges[at].iter().filter(|(next, _)| *next != from) {
                let (inner, columns) = (shares[at].len(), shares[*next].len());
                let mut further = vec![0.0; n * columns];
                for (row, out) in joint.chunks_exact(inner).zip(further.chunks_exact_mut(columns)) {
                    for (share, chances) in row.iter().zip(rows.chunks_exact(columns)) {
                        out.iter_mut().zip(chances).for_each(|(out, chance)| *out += share * chance);
                    }
                }
                waiting.push((*next, at, further));
            }
        }
        None
    }
}

fn root(roots: &[usize], mut at: usize) -> usize {
    while roots[at] != at {
        at = roots[at];
    }
    at
}

/// Rows as chances; an empty one is even.
fn chances(table: &[f64], columns: usize) -> Vec<f64> {
    let row = |row: &[f64]| -> Vec<f64> {
        let sum: f64 = row.iter().sum();
        row.iter().map(|value| if sum > 0.0 { value / sum } else { 1.0 / columns as f64 }).collect()
    };
    table.chunks_exact(columns).flat_map(row).collect()
}

/// Mutual information of a table.
fn information(table: &[f64], columns: usize) -> f64 {
    let total: f64 = table.iter().sum();
    if total <= 0.0 {
        return 0.0;
    }
    let of_rows: Vec<f64> = table.chunks_exact(columns).map(|row| row.iter().sum()).collect();
    let of_columns: Vec<f64> = (0..columns).map(|j| table.iter().skip(j).step_by(columns).sum()).collect();
    let cell = |(at, value): (usize, &f64)| {
        let alone = of_rows[at / columns] * of_columns[at % columns];
        if *value > 0.0 && alone > 0.0 { value / total * (value * total / alone).ln() } else { 0.0 }
    };
    table.iter().enumerate().map(cell).sum()
}
