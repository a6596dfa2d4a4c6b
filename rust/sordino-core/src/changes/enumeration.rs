//! Branch and bound over all changes: a partial change is left where rows bound what may follow.

use super::rows::{beside, largest};
use super::{Changes, Gram};
use crate::error::Error;
use crate::interrupt::poll;
use crate::order::{falling, in_order};

/// Additions that are made at most; a change takes as many as there are cells.
const WORK: usize = 1 << 28;
/// Additions between two looks whether to go on.
const POLLED: usize = 1 << 22;
/// What is not looked at exceeds what was found by this share at most.
const LOOSE: f64 = 1e-9;

/// Upper bound of `vᵀ G v` over all changes, of which one attains `attained`; none if there are too many to look at.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn bound(gram: &Gram, changes: Changes, attained: f64) -> Result<Option<f64>, Error> {
    // Rows with the largest bounds first: what follows is small.
    let sides: Vec<Vec<f64>> = (0..gram.cells)
        .map(|i| {
            let mut sides = beside(gram, changes, i);
            falling(&mut sides);
            let own = gram.at(i, i);
            let sums = sides.iter().take(changes.most - 1).scan(own, |sum, side| {
                *sum += side;
                Some(*sum)
            });
            std::iter::once(own).chain(sums).collect()
        })
        .collect();
    let most = |i: usize| sides[i].last().copied().unwrap_or(0.0);
    let order = in_order(gram.cells, &|i| -most(i));
    let mut search = Search {
        gram,
        changes,
        order: &order,
        sides: &sides,
        best: attained,
        left: WORK,
        gains: vec![0.0; gram.cells],
    };
    let ended = search.visit(0, 0, 0.0, &vec![0.0; gram.cells])?;
    Ok(ended.then_some(search.best * (1.0 + LOOSE)))
}

struct Search<'a> {
    gram: &'a Gram,
    changes: Changes,
    order: &'a [usize],
    /// For every cell and count, what it adds at most with so many others: `r_i`.
    sides: &'a [Vec<f64>],
    best: f64,
    left: usize,
    gains: Vec<f64>,
}

impl Search<'_> {
    /// Looks at all changes that add cells from a place on to one of `count` cells, of this value and `G v`; says
    /// whether there was time.
    fn visit(&mut self, count: usize, from: usize, value: f64, slopes: &[f64]) -> Result<bool, Error> {
        self.best = self.best.max(value);
        let cells = self.gram.cells;
        let Some(left) = self.left.checked_sub(2 * cells) else { return Ok(false) };
        if left / POLLED < self.left / POLLED {
            poll()?;
        }
        self.left = left;
        let more = (self.changes.most - count).min(cells - from);
        if more == 0 {
            return Ok(true);
        }
        for (gain, cell) in self.gains.iter_mut().zip(&self.order[from..]) {
            let slope = slopes[*cell];
            let toward = if self.changes.signed { slope.abs() } else { slope };
            *gain = (2.0 * toward + self.sides[*cell][more - 1]).max(0.0);
        }
        if value + largest(&mut self.gains[..cells - from], more) <= self.best * (1.0 + LOOSE) {
            return Ok(true);
        }
        for place in from..cells {
            let cell = self.order[place];
            // Of a change and its opposite one is enough.
            let signs: &[f64] = if self.changes.signed && count > 0 { &[1.0, -1.0] } else { &[1.0] };
            for sign in signs {
                let next: Vec<f64> = slopes.iter().zip(self.gram.row(cell)).map(|(s, g)| s + sign * g).collect();
                let grown = value + 2.0 * sign * slopes[cell] + self.gram.at(cell, cell);
                if !self.visit(count + 1, place + 1, grown, &next)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
