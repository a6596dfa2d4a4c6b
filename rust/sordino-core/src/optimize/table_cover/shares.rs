//! The best shares of given tables.
//!
//! At the best shares `θ_T Σ_{S⊆T} e_S/g_S² / Π_{i∈T} n_i` is the same for all tables. The update `θ_T ← (θ_T⁴ Σ_{S⊆T}
//! e_S/g_S² / Π_{i∈T} n_i)^{1/3}` rests there; for tables that share no set it is there after one step.

use super::Candidate;
use super::wanted::{Marginal, Problem};
use std::rc::Rc;

/// Shares below this may be nothing.
const NOTHING: f64 = 1e-9;

/// Shares of tables, and half the total weighted squared error.
pub(super) struct Shares {
    pub(super) shares: Vec<f64>,
    pub(super) error: f64,
}

/// The shares after so many updates of equal ones, or when the error falls by no more than this fraction; `None` if
/// there are no tables or they have too many cells.
pub(super) fn shares(problem: &Problem, tables: &[Rc<Marginal>], rounds: usize, tolerance: f64) -> Option<Shares> {
    let cells: f64 = tables.iter().map(|table| table.cells).sum();
    if tables.is_empty() || cells > problem.total_limit {
        return None;
    }
    let mut terms = Terms { problem, tables, slopes: vec![0.0; problem.closure.errors.len()] };
    let mut best = terms.at(vec![1.0 / tables.len() as f64; tables.len()]);
    for _ in 0..rounds {
        let next = terms.updated(&best.shares);
        let next = terms.at(next);
        let before = best.error;
        if next.error < before {
            best = next;
        }
        if best.error >= before * (1.0 - tolerance) {
            break;
        }
    }
    Some(best)
}

/// What the error of tables is a sum of.
struct Terms<'a> {
    problem: &'a Problem,
    tables: &'a [Rc<Marginal>],
    /// First `g_S`, then `e_S/g_S²`.
    slopes: Vec<f64>,
}

impl Terms<'_> {
    /// These shares with their error; their slopes are kept.
    fn at(&mut self, shares: Vec<f64>) -> Shares {
        self.slopes.fill(0.0);
        for (table, share) in self.tables.iter().zip(&shares) {
            let precision = share * share / table.cells;
            table.inside.iter().for_each(|node| self.slopes[*node as usize] += precision);
        }
        let mut error = 0.0;
        for (slope, e) in self.slopes.iter_mut().zip(&self.problem.closure.errors) {
            let term = e / *slope;
            error += term;
            *slope = term / *slope;
        }
        Shares { shares, error }
    }

    /// The shares after those of which the slopes are kept.
    fn updated(&self, shares: &[f64]) -> Vec<f64> {
        let root = |(table, share): (&Rc<Marginal>, &f64)| {
            let slope: f64 = table.inside.iter().map(|node| self.slopes[*node as usize]).sum();
            share * (share * slope / table.cells).cbrt()
        };
        let roots: Vec<f64> = self.tables.iter().zip(shares).map(root).collect();
        let sum: f64 = roots.iter().sum();
        roots.into_iter().map(|root| root / sum).collect()
    }
}

/// The tables that have a share, or are the only ones to answer something, with the error that they then have.
pub(super) fn trimmed(problem: &Problem, found: &Candidate) -> Candidate {
    let mut answered = vec![0u32; problem.wanted.sets.len()];
    found.tables.iter().flat_map(|table| &table.answers).for_each(|k| answered[*k as usize] += 1);
    let mut kept: (Vec<Rc<Marginal>>, Vec<f64>) = (Vec::new(), Vec::new());
    for (table, share) in found.tables.iter().zip(&found.shares) {
        if *share > NOTHING || table.answers.iter().any(|k| answered[*k as usize] == 1) {
            kept.0.push(table.clone());
            kept.1.push(*share);
        } else {
            table.answers.iter().for_each(|k| answered[*k as usize] -= 1);
        }
    }
    let sum: f64 = kept.1.iter().sum();
    let (tables, shares) = (kept.0, kept.1.into_iter().map(|share| share / sum).collect());
    let mut terms = Terms { problem, tables: &tables, slopes: vec![0.0; problem.closure.errors.len()] };
    let Shares { shares, error } = terms.at(shares);
    Candidate { tables, shares, error }
}
