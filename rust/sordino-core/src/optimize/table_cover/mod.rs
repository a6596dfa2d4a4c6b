//! Which marginal tables to measure, and with which shares of the sensitivity, so that wanted marginal tables come out
//! best.
//!
//! A record is in one cell of every table, so shares `θ_T` that sum to 1, with Laplace noise of scale `1/θ_T` on table
//! `T`, cost what one table costs. Of `N` cells in all, the Gram matrix of what is measured has on the contrasts of the
//! attributes `S` (sums to zero along each of them, constant along the others) the eigenvalue `N g_S`,
//!
//! `g_S = Σ_{T ⊇ S} θ_T² / Π_{i∈T} n_i`,
//!
//! `n_i` the levels of an attribute. Least squares then has, at `ε = 1`, the total weighted squared error
//!
//! `2 Σ_S e_S / g_S`, `e_S = Σ_{W ⊇ S} w_W Π_{i∈S} (n_i − 1) / Π_{i∈W} n_i`,
//!
//! over the sets `S` within wanted ones `W`, each of whose answers counts with `w_W`.
//!
//! Larger tables answer several wanted ones at once, but each answer then sums more noise. Which tables are best is a
//! covering problem that is not solved but searched: covers that grow table by table (`cover.rs`), finite planes for
//! pairs (`planes.rs`), and of few tables some thrown out at random and covered anew, many times. All wanted tables and
//! the one table of all attributes are candidates, so what a search finds is never worse than either. The shares of given
//! tables are a fixed point (`shares.rs`). Only where far too many tables are wanted nothing is searched.
//!
//! The search is the same on every machine: it is bounded by counted work, its random numbers are fixed, and where
//! candidates differ by rounding alone the earlier one is kept.

mod closure;
mod cover;
mod planes;
mod shares;
#[cfg(test)]
mod tests;
mod wanted;

use crate::error::Error;
use crate::interrupt::poll;
use crate::split_mix::SplitMix;
use cover::cover;
use shares::{Shares, shares};
use std::rc::Rc;
use wanted::{Marginal, Problem, Wanted};

/// What two numbers must differ by, relatively, to be told apart: logarithms differ between platforms in the last bit.
const TOLERANCE: f64 = 1e-9;
/// A table is worth the weight that it covers to such a power, over its cells.
const POWERS: [f64; 7] = [1.6, 1.8, 2.0, 2.2, 2.4, 2.6, 2.8];
/// The powers for many wanted tables.
const FEW_POWERS: [f64; 2] = [1.8, 2.4];
/// Wanted tables, and their attributes together, above which they are many.
const MANY_WANTED: (usize, usize) = (20_000, 60_000);
/// Wanted tables, and sets within each of them together, above which nothing is searched.
const MOST_WANTED: (usize, usize) = (40_000, 1 << 22);
/// Rounds of throwing tables out, most tables for which this is done, and counted steps after which it ends.
const ROUNDS: usize = 2000;
const FEW_TABLES: usize = 64;
const WORK: usize = 100_000_000;
/// Updates of the shares: of a candidate, and of the last ones, which counted steps bound too.
const BRIEF: usize = 10;
const THOROUGH: usize = 300;
const SHARES_WORK: usize = 200_000_000;

/// A marginal table to measure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    /// Its attributes, rising.
    pub(crate) attributes: Vec<usize>,
    /// Its share of the ℓ1 sensitivity.
    pub(crate) share: f64,
}

/// Marginal tables to measure, and their shares, for the wanted `sets` of attributes with these numbers of `levels`,
/// each of whose answers counts with a weight.
///
/// Every wanted set is within a table. The tables come in the order of their attributes; the shares are positive and
/// sum to 1.
///
/// # Errors
/// If it is interrupted.
pub(crate) fn table_cover(levels: &[usize], sets: &[Vec<usize>], weights: &[f64]) -> Result<Vec<Table>, Error> {
    let wanted = Wanted::new(levels, sets, weights);
    if wanted.sets.len() > MOST_WANTED.0 || wanted.subsets() > MOST_WANTED.1 {
        return Ok(unsearched(&wanted));
    }
    let problem = Problem::new(wanted);
    let every = problem.every_wanted();
    let Some(output) = problem.evaluated(every.clone()) else {
        return Ok(Vec::new()); // nothing is wanted
    };
    let mut search = Search { problem: &problem, best: output, improved: false, work: 0 };
    search.start()?;
    search.ruin()?;
    let output = refined(&problem, every);
    let best = if search.improved { refined(&problem, search.best.tables) } else { None };
    let better = |a: Candidate, b: Candidate| if b.error < a.error * (1.0 - TOLERANCE) { b } else { a };
    Ok(output.into_iter().chain(best).reduce(better).map_or_else(Vec::new, |found| written(&problem, found)))
}

/// Tables with their shares and error.
struct Candidate {
    tables: Vec<Rc<Marginal>>,
    shares: Vec<f64>,
    /// Half the total weighted squared error.
    error: f64,
}

impl Problem {
    /// Tables with shares that are all but the best for them; `None` if they are none or have too many cells.
    fn evaluated(&self, tables: Vec<Rc<Marginal>>) -> Option<Candidate> {
        let Shares { shares, error } = shares(self, &tables, BRIEF, 0.0)?;
        Some(Candidate { tables, shares, error })
    }
}

/// A search for better tables.
struct Search<'a> {
    /// What is asked for.
    problem: &'a Problem,
    /// The best tables so far.
    best: Candidate,
    /// Whether they are others than the wanted ones.
    improved: bool,
    /// Steps counted so far.
    work: usize,
}

impl Search<'_> {
    /// Takes other tables if their error is below so much.
    fn consider(&mut self, tables: Vec<Rc<Marginal>>, limit: f64) {
        if let Some(found) = self.problem.evaluated(tables).filter(|found| found.error < limit) {
            self.best = found;
            self.improved = true;
        }
    }

    /// The error below which tables are better.
    fn better(&self) -> f64 {
        self.best.error * (1.0 - TOLERANCE)
    }

    /// One table of everything, covers of all powers, and planes.
    fn start(&mut self) -> Result<(), Error> {
        let problem = self.problem;
        if let Some(union) = problem.union() {
            self.consider(vec![union], self.better());
        }
        let powers: &[f64] = if problem.wanted.many() { &FEW_POWERS } else { &POWERS };
        for power in powers {
            poll()?;
            if self.work > WORK {
                break;
            }
            let tables = cover(problem, Vec::new(), *power, None, &mut self.work);
            self.consider(tables, self.better());
        }
        // Where no table of more than a wanted set pays, planes do not.
        if self.improved && problem.wanted.are_pairs() {
            for plane in planes::planes(problem) {
                poll()?;
                if self.work > WORK {
                    break;
                }
                let tables = cover(problem, plane, planes::POWER, None, &mut self.work);
                self.consider(tables, self.better());
            }
        }
        Ok(())
    }

    /// Throws some tables out and covers what they did anew, as long as work is left.
    fn ruin(&mut self) -> Result<(), Error> {
        if self.problem.wanted.many() || self.best.tables.len() > FEW_TABLES {
            return Ok(());
        }
        let mut random = SplitMix(0);
        let mut least = self.best.error;
        for _ in 0..ROUNDS {
            poll()?;
            if self.work > WORK {
                break;
            }
            let kept = self.survivors(&mut random);
            let power = POWERS[random.index(POWERS.len())];
            let tables = cover(self.problem, kept, power, Some(&mut random), &mut self.work);
            self.work += 4 * BRIEF * tables.iter().map(|table| table.inside.len() + 4).sum::<usize>();
            // What is as good replaces too: the search then moves on.
            self.consider(tables, least * (1.0 + TOLERANCE));
            least = least.min(self.best.error);
        }
        Ok(())
    }

    /// The tables that stay when at least two of them, or about half at most, are thrown out.
    fn survivors(&self, random: &mut SplitMix) -> Vec<Rc<Marginal>> {
        let mut kept = self.best.tables.clone();
        let ruined = kept.len().min(2 + (random.uniform() * kept.len() as f64 / 2.0) as usize);
        for _ in 0..ruined {
            kept.remove(random.index(kept.len()));
        }
        kept
    }
}

/// The same tables with their best shares, less those that came out as nothing.
fn refined(problem: &Problem, tables: Vec<Rc<Marginal>>) -> Option<Candidate> {
    let length: usize = tables.iter().map(|table| table.inside.len()).sum();
    let rounds = (SHARES_WORK / (2 * length).max(1)).clamp(BRIEF, THOROUGH);
    let Shares { shares, error } = shares(problem, &tables, rounds, TOLERANCE)?;
    let found = Candidate { tables, shares, error };
    let trimmed = shares::trimmed(problem, &found);
    Some(if trimmed.error <= found.error * (1.0 + TOLERANCE) { trimmed } else { found })
}

/// The tables as the caller numbers the attributes.
fn written(problem: &Problem, found: Candidate) -> Vec<Table> {
    let attributes = |table: &Marginal| problem.wanted.original(&table.attributes);
    let tables = found.tables.iter().zip(found.shares);
    in_order(tables.map(|(table, share)| Table { attributes: attributes(table), share }).collect())
}

/// Tables in the order of their attributes.
fn in_order(mut tables: Vec<Table>) -> Vec<Table> {
    tables.sort_by(|a, b| a.attributes.cmp(&b.attributes));
    tables
}

/// The wanted tables themselves, or the one table of all attributes, whichever is better by what is known without a
/// search: noise on each wanted table alone has, with the best shares, the error `(Σ (w_W Π_{i∈W} n_i)^{1/3})³`.
fn unsearched(wanted: &Wanted) -> Vec<Table> {
    let roots: Vec<f64> = wanted.weights.iter().zip(&wanted.cells).map(|(w, cells)| (w * cells).cbrt()).collect();
    let sum: f64 = roots.iter().sum();
    let apart = sum * sum * sum;
    let together = wanted.union_cells() * wanted.weights.iter().sum::<f64>();
    if wanted.union_cells() <= wanted.table_limit() && together < apart * (1.0 - TOLERANCE) {
        return vec![Table { attributes: wanted.attributes.clone(), share: 1.0 }];
    }
    let tables = wanted.sets.iter().zip(roots);
    in_order(tables.map(|(set, root)| Table { attributes: wanted.original(set), share: root / sum }).collect())
}
