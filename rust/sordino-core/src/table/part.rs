//! The users whose names hash to one of many parts: rows that wait, and what was made of the others.

use super::amount::Amount;
use super::rule::Rule;
use super::sort::sort_by_bits;
use super::users::Names;

/// Some of a tally's users. A key is a user's number, then a cell.
#[derive(Debug, Clone, Default)]
pub(super) struct Part<A: Amount> {
    pub(super) names: Names,
    /// Rows that wait: in the order in which they came.
    pub(super) waiting: Vec<(u64, A::Row)>,
    /// Of each user at most `L` cells, by user and cell.
    keys: Vec<u64>,
    amounts: Vec<A>,
}

/// Bits of a cell.
pub(super) fn cell_bits(rule: &Rule) -> u32 {
    32 - rule.cells.leading_zeros()
}

impl<A: Amount> Part<A> {
    /// Cells of all users.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bits of a key.
    fn bits(&self, rule: &Rule) -> u32 {
        cell_bits(rule) + usize::BITS - self.names.len().leading_zeros()
    }

    /// Takes in the rows that wait.
    pub(super) fn settle(&mut self, rule: &Rule) {
        let mut rows = std::mem::take(&mut self.waiting);
        if !rows.is_empty() {
            sort_by_bits(&mut rows, self.bits(rule));
            self.merge(&rows, rule, |amount, row| amount.with_row(row, rule));
        }
    }

    /// Takes in cells of another tally, in any order.
    pub(super) fn absorb(&mut self, mut cells: Vec<(u64, A)>, rule: &Rule) {
        sort_by_bits(&mut cells, self.bits(rule));
        self.merge(&cells, rule, |amount, other| amount.with(other, rule));
    }

    /// Adds what is in order of its keys, and keeps of every user the cells that come first.
    fn merge<R: Copy>(&mut self, rows: &[(u64, R)], rule: &Rule, add: impl Fn(A, R) -> A) {
        let (keys, amounts) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.amounts));
        let shift = cell_bits(rule);
        let mask = (1 << shift) - 1;
        let (mut i, mut j) = (0, 0);
        let (old, new) = (keys.len(), rows.len());
        self.keys.reserve(old.max(new / 2));
        self.amounts.reserve(old.max(new / 2));
        let mut cells: Vec<(u32, A)> = Vec::new();
        while i < old || j < new {
            let of_old = if i < old { keys[i] >> shift } else { u64::MAX };
            let user = if j < new { of_old.min(rows[j].0 >> shift) } else { of_old };
            // What is known of this user, and what is new, in order of the cells.
            let (from, first) = (i, j);
            while i < old && keys[i] >> shift == user {
                i += 1;
            }
            while j < new && rows[j].0 >> shift == user {
                j += 1;
            }
            cells.clear();
            let (mut known, mut rest) = (keys[from..i].iter().zip(&amounts[from..i]).peekable(), &rows[first..j]);
            while let Some(&(key, _)) = rest.first() {
                while let Some((before, amount)) = known.next_if(|(before, _)| **before < key) {
                    cells.push(((before & mask) as u32, *amount));
                }
                let mut amount =
                    known.next_if(|(same, _)| **same == key).map_or_else(A::default, |(_, amount)| *amount);
                let same = rest.iter().take_while(|row| row.0 == key).count();
                for row in &rest[..same] {
                    amount = add(amount, row.1);
                }
                rest = &rest[same..];
                cells.push(((key & mask) as u32, amount));
            }
            cells.extend(known.map(|(key, amount)| ((key & mask) as u32, *amount)));
            rule.prune(self.names.name(user as usize), &mut cells);
            for &(cell, amount) in &cells {
                self.keys.push(user << shift | u64::from(cell));
                self.amounts.push(amount);
            }
        }
    }

    /// Calls `f` with every user that has cells, and these; no rows wait.
    pub(super) fn each(&self, rule: &Rule, mut f: impl FnMut(usize, &mut [(u32, A)])) {
        let shift = cell_bits(rule);
        let mut cells: Vec<(u32, A)> = Vec::new();
        let mut at = 0;
        while at < self.keys.len() {
            let user = self.keys[at] >> shift;
            cells.clear();
            while at < self.keys.len() && self.keys[at] >> shift == user {
                cells.push(((self.keys[at] & ((1 << shift) - 1)) as u32, self.amounts[at]));
                at += 1;
            }
            f(user as usize, &mut cells);
        }
    }
}
