//! Tables that cover all wanted sets, each grown attribute by attribute.
//!
//! A table is worth the weight of the wanted sets that it is the first to cover, to some power, over its cells. It
//! grows from one of them by the attribute after which it is worth most, where sets that still miss a few attributes
//! count for a little, and is cut back to where it was worth most. At the end tables lose what no wanted set needs of
//! them.

use super::TOLERANCE;
use super::wanted::{Marginal, Problem};
use crate::order::sorted_by_key;
use crate::split_mix::SplitMix;
use std::rc::Rc;

/// Growth ends when the logarithm of what a table is worth is so much below the best.
const DROP: f64 = 1.5;
/// Random preference between attributes, in the logarithm of what the table is worth.
const JITTER: f64 = 1e-3;
/// Less than this is what rounding leaves of credits: attributes that bring no more do not join.
const NOTHING: f64 = 1e-12;

/// A cover by `kept` tables and new ones for what they leave open. With random numbers the wanted sets come in random
/// order and nearly equal attributes are told apart by chance. Adds to `work` what it costs.
pub(super) fn cover(
    problem: &Problem,
    kept: Vec<Rc<Marginal>>,
    power: f64,
    mut random: Option<&mut SplitMix>,
    work: &mut usize,
) -> Vec<Rc<Marginal>> {
    let order = match random.as_deref_mut() {
        Some(random) => shuffled(problem.wanted.sets.len(), random),
        None => by_worth(problem, power),
    };
    let mut tables = kept;
    let mut cover = Cover::new(problem, &tables, power, random);
    for start in order {
        if cover.open[start] {
            let table = problem.marginal(cover.grow(start));
            cover.close(&table);
            tables.push(table);
        }
    }
    *work += cover.work;
    pruned(problem, tables)
}

/// Wanted sets in random order.
fn shuffled(len: usize, random: &mut SplitMix) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for left in (2..=len).rev() {
        order.swap(left - 1, random.index(left));
    }
    order
}

/// Wanted sets by what their own tables are worth, rounded, so that those of equal worth stay in order.
fn by_worth(problem: &Problem, power: f64) -> Vec<usize> {
    let wanted = &problem.wanted;
    let worth = |k: &usize| ((power * wanted.weights[*k].ln() - wanted.cells[*k].ln()) / TOLERANCE).round();
    sorted_by_key((0..wanted.sets.len()).collect(), |k| -worth(k))
}

/// A cover that is being made.
struct Cover<'a> {
    problem: &'a Problem,
    power: f64,
    random: Option<&'a mut SplitMix>,
    /// Whether a wanted set is not yet covered.
    open: Vec<bool>,
    /// The open sets that have each attribute, and perhaps some closed ones.
    with: Vec<Vec<u32>>,
    /// How many attributes each wanted set misses in the table that grows.
    missing: Vec<u32>,
    /// What each attribute brings to a table of nothing.
    credits: Vec<f64>,
    /// Steps made.
    work: usize,
}

/// A table that grows.
struct Growing {
    /// Its attributes, as they joined, and whether each is one.
    joined: Vec<u32>,
    has: Vec<bool>,
    cells: f64,
    /// Weight of the open sets within it.
    weight: f64,
    /// What each attribute would bring.
    credits: Vec<f64>,
}

impl<'a> Cover<'a> {
    /// Nothing but the kept tables.
    fn new(problem: &'a Problem, kept: &[Rc<Marginal>], power: f64, random: Option<&'a mut SplitMix>) -> Self {
        let sets = &problem.wanted.sets;
        let mut open = vec![true; sets.len()];
        kept.iter().flat_map(|table| &table.answers).for_each(|k| open[*k as usize] = false);
        let missing: Vec<u32> = sets.iter().map(|set| set.len() as u32).collect();
        let mut credits = vec![0.0; problem.with.len()];
        for (k, set) in sets.iter().enumerate().filter(|(k, _)| open[*k]) {
            let credit = problem.wanted.weights[k] * problem.credits[set.len()];
            for a in set {
                credits[*a as usize] += credit;
            }
        }
        let work = missing.iter().sum::<u32>() as usize + sets.len();
        Self { problem, power, random, open, with: problem.with.clone(), missing, credits, work }
    }

    /// The attributes of a table for an open set and what else pays.
    fn grow(&mut self, start: usize) -> Vec<u32> {
        let problem = self.problem;
        let d = problem.with.len();
        let set = &problem.wanted.sets[start];
        // The empty set is covered before any attribute joins; others are when their last one does.
        let weight = if set.is_empty() { problem.wanted.weights[start] } else { 0.0 };
        let mut table =
            Growing { joined: Vec::new(), has: vec![false; d], cells: 1.0, weight, credits: self.credits.clone() };
        for attribute in set {
            self.join(&mut table, *attribute);
        }
        let (mut best, mut length) = (self.worth(&table), table.joined.len());
        while let Some(attribute) = self.next(&table) {
            self.join(&mut table, attribute);
            let worth = self.worth(&table);
            if worth > best + TOLERANCE {
                (best, length) = (worth, table.joined.len());
            } else if worth < best - DROP {
                break;
            }
        }
        self.forget(&table);
        let mut attributes = table.joined;
        attributes.truncate(length);
        attributes.sort_unstable();
        attributes
    }

    /// Logarithm of what a table is worth.
    fn worth(&self, table: &Growing) -> f64 {
        self.power * table.weight.ln() - table.cells.ln()
    }

    /// The attribute after which a table counts for most. Of attributes with as many levels it is the one that brings
    /// most, so that few logarithms are taken.
    fn next(&mut self, table: &Growing) -> Option<u32> {
        let problem = self.problem;
        let mut classes = vec![(0.0, 0); problem.class_logs.len()];
        for (k, credit) in table.credits.iter().enumerate() {
            if table.has[k] || *credit <= NOTHING || table.cells * problem.wanted.levels[k] > problem.table_limit {
                continue;
            }
            let jitter = self.random.as_mut().map_or(0.0, |random| JITTER / self.power * random.uniform());
            let weight = (table.weight + credit) * (1.0 + jitter);
            let class = &mut classes[problem.classes[k]];
            if weight > class.0 * (1.0 + TOLERANCE) {
                *class = (weight, k as u32);
            }
        }
        self.work += table.has.len() / 4 + classes.len();
        let mut best = (f64::NEG_INFINITY, None);
        let found = classes.into_iter().zip(&problem.class_logs).filter(|((weight, _), _)| *weight > 0.0);
        for ((weight, k), log) in found {
            let worth = self.power * weight.ln() - log;
            if worth > best.0 + TOLERANCE {
                best = (worth, Some(k));
            }
        }
        best.1
    }

    /// An attribute joins a table: sets with it miss one less.
    fn join(&mut self, table: &mut Growing, attribute: u32) {
        let problem = self.problem;
        let open = &self.open;
        let with = &mut self.with[attribute as usize];
        with.retain(|k| open[*k as usize]);
        self.work += with.len();
        for k in with.iter().map(|k| *k as usize) {
            self.missing[k] -= 1;
            let missing = self.missing[k] as usize;
            let weight = problem.wanted.weights[k];
            if missing == 0 {
                table.weight += weight;
                continue; // all its attributes are in the table
            }
            let more = weight * (problem.credits[missing] - problem.credits[missing + 1]);
            let members = problem.members(k);
            for a in members {
                table.credits[*a as usize] += more;
            }
            self.work += members.len();
        }
        table.has[attribute as usize] = true;
        table.joined.push(attribute);
        table.cells *= problem.wanted.levels[attribute as usize];
    }

    /// Sets miss again what they missed before this table.
    fn forget(&mut self, table: &Growing) {
        for attribute in &table.joined {
            self.with[*attribute as usize].iter().for_each(|k| self.missing[*k as usize] += 1);
        }
    }

    /// What is within a table needs no other.
    fn close(&mut self, table: &Marginal) {
        let problem = self.problem;
        for k in table.answers.iter().map(|k| *k as usize) {
            if std::mem::replace(&mut self.open[k], false) {
                let members = problem.members(k);
                let credit = problem.wanted.weights[k] * problem.credits[members.len()];
                for a in members {
                    self.credits[*a as usize] -= credit;
                }
            }
        }
        self.work += table.inside.len();
    }
}

/// Tables without the attributes that only sets have which another table answers too, and without those that then
/// answer nothing. The largest is tried first.
fn pruned(problem: &Problem, mut tables: Vec<Rc<Marginal>>) -> Vec<Rc<Marginal>> {
    let mut answered = vec![0u32; problem.wanted.sets.len()];
    let mut count = |table: &Marginal, up: bool| -> Vec<usize> {
        let answers = table.answers.iter().map(|k| *k as usize);
        answers.clone().for_each(|k| answered[k] = if up { answered[k] + 1 } else { answered[k] - 1 });
        answers.filter(|k| answered[*k] == 0).collect()
    };
    for table in &tables {
        count(table, true);
    }
    tables = sorted_by_key(tables, |table| -table.cells);
    let mut kept = Vec::new();
    for table in tables {
        let only = count(&table, false);
        if only.is_empty() {
            continue;
        }
        let mut needed: Vec<u32> = only.iter().flat_map(|k| &problem.wanted.sets[*k]).copied().collect();
        needed.sort_unstable();
        needed.dedup();
        let table = if needed == table.attributes { table } else { problem.marginal(needed) };
        count(&table, true);
        kept.push(table);
    }
    kept
}
