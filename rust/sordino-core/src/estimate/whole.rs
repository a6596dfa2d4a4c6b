//! A table in whole numbers, with margins that are given, or kept by chance.
//!
//! [`whole_table`] is a transportation problem: entry by entry `|Z − X|` is convex in `Z`, so shortest paths from rows and
//! columns that lack something to those that have too much make the least sum. It can always be solved: no entry has a largest
//! value. [`unbiased_table`] is Cox's rule: along a cycle of entries that are not whole, what one gains its neighbour loses.

use crate::error::Error;
use crate::interrupt::poll;
use crate::split_mix::SplitMix;
use std::collections::VecDeque;

/// Units of costs; coarser in large tables, where there are as many phases as there are costs of paths.
const FINE: f64 = (1_u64 << 20) as f64;
const COARSE: f64 = (1_u64 << 7) as f64;
const LARGE: usize = 10_000;
/// No cost of a path.
const FAR: i64 = i64::MAX / 4;

/// A table with these margins, nearest to `values` in the sum of absolute differences, to a part in 100 where it is large.
///
/// `empty` are cells that stay 0.
///
/// # Errors
/// Other sizes, margins that do not add up to the same, values that are negative; no table with these margins and these empty
/// cells; [`Error::Interrupted`].
pub fn whole_table(values: &[f64], rows: &[i64], columns: &[i64], empty: Option<&[bool]>) -> Result<Vec<i64>, Error> {
    Error::check_len("values", rows.len() * columns.len(), values.len())?;
    if let Some(empty) = empty {
        Error::check_len("empty cells", values.len(), empty.len())?;
    }
    let same = rows.iter().map(|v| i128::from(*v)).sum::<i128>() == columns.iter().map(|v| i128::from(*v)).sum();
    if !same || rows.iter().chain(columns).any(|v| *v < 0) {
        return Err(Error::invalid("margins", "must have the same sum, and none is negative"));
    }
    if !values.iter().all(|v| (0.0..=2f64.powi(40)).contains(v)) {
        return Err(Error::invalid("values", "must not be negative, and at most 2**40"));
    }
    let mut flow = Flow::new(values, rows, columns, empty);
    while flow.lacking() {
        poll()?;
        if !flow.phase() {
            return Err(Error::invalid("empty cells", "leave no table with these margins"));
        }
    }
    Ok(flow.cells)
}

/// Nodes are rows, then columns. An edge from a row to a column adds one to a cell, one back takes one away.
struct Flow<'a> {
    rows: usize,
    columns: usize,
    unit: i64,
    /// Values in units of costs.
    values: Vec<i64>,
    cells: Vec<i64>,
    empty: Option<&'a [bool]>,
    /// What each node lacks: rows as they are, columns negated, so that paths lead from above 0 to below.
    lacks: Vec<i64>,
    potential: Vec<i64>,
}

impl<'a> Flow<'a> {
    fn new(values: &[f64], rows: &[i64], columns: &[i64], empty: Option<&'a [bool]>) -> Self {
        let unit = if values.len() > LARGE { COARSE } else { FINE };
        let allowed = |at: usize| empty.is_none_or(|empty| !empty[at]);
        let cells: Vec<i64> =
            values.iter().enumerate().map(|(at, v)| if allowed(at) { v.round() as i64 } else { 0 }).collect();
        let mut lacks: Vec<i64> = rows.iter().copied().chain(columns.iter().map(|v| -v)).collect();
        for (at, cell) in cells.iter().enumerate() {
            lacks[at / columns.len()] -= cell;
            lacks[rows.len() + at % columns.len()] += cell;
        }
        Self {
            rows: rows.len(),
            columns: columns.len(),
            unit: unit as i64,
            values: values.iter().map(|v| (v * unit).round() as i64).collect(),
            cells,
            empty,
            potential: vec![0; lacks.len()],
            lacks,
        }
    }

    fn lacking(&self) -> bool {
        self.lacks.iter().any(|v| *v > 0)
    }

    fn at(&self, from: usize, to: usize) -> usize {
        from.min(to) * self.columns + from.max(to) - self.rows
    }

    /// What one more, or one less, on the way from a node to another costs.
    fn cost(&self, from: usize, to: usize) -> Option<i64> {
        let at = self.at(from, to);
        let cell = self.cells[at];
        let more = from < self.rows;
        if (!more && cell == 0) || self.empty.is_some_and(|empty| empty[at]) {
            return None;
        }
        let next = if more { cell + 1 } else { cell - 1 };
        Some((next * self.unit - self.values[at]).abs() - (cell * self.unit - self.values[at]).abs())
    }

    fn others(&self, node: usize) -> std::ops::Range<usize> {
        if node < self.rows { self.rows..self.rows + self.columns } else { 0..self.rows }
    }

    fn reduced(&self, from: usize, to: usize) -> Option<i64> {
        self.cost(from, to).map(|cost| cost + self.potential[from] - self.potential[to])
    }

    /// Shortest paths from all that lack, and as many along them as there are; false if nothing can be reached.
    fn phase(&mut self) -> bool {
        let nodes = self.lacks.len();
        let mut distance: Vec<i64> = self.lacks.iter().map(|v| if *v > 0 { 0 } else { FAR }).collect();
        let mut done = vec![false; nodes];
        let mut reached = FAR;
        while let Some(node) = (0..nodes).filter(|v| !done[*v]).min_by_key(|v| distance[*v]) {
            if distance[node] >= reached {
                break;
            }
            done[node] = true;
            if self.lacks[node] < 0 {
                reached = distance[node];
                break;
            }
            for to in self.others(node) {
                if !done[to]
                    && let Some(cost) = self.reduced(node, to)
                {
                    distance[to] = distance[to].min(distance[node] + cost);
                }
            }
        }
        if reached == FAR {
            return false;
        }
        for (potential, distance) in self.potential.iter_mut().zip(&distance) {
            *potential += (*distance).min(reached);
        }
        let mut dead = vec![false; nodes];
        for start in 0..nodes {
            while self.lacks[start] > 0 && !dead[start] && self.augment(start, &mut dead) {}
        }
        true
    }

    /// A path of reduced cost 0 from a node that lacks to one that has too much; nodes that lead nowhere are dead.
    fn augment(&mut self, start: usize, dead: &mut [bool]) -> bool {
        let mut before = vec![usize::MAX; self.lacks.len()];
        before[start] = start;
        let mut queue = VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            if self.lacks[node] < 0 {
                self.lacks[start] -= 1;
                self.lacks[node] += 1;
                let mut to = node;
                while to != start {
                    let from = before[to];
                    let at = self.at(from, to);
                    self.cells[at] += if from < self.rows { 1 } else { -1 };
                    to = from;
                }
                return true;
            }
            for to in self.others(node) {
                if before[to] == usize::MAX && !dead[to] && self.reduced(node, to) == Some(0) {
                    before[to] = node;
                    queue.push_back(to);
                }
            }
        }
        for (dead, before) in dead.iter_mut().zip(before) {
            *dead |= before != usize::MAX;
        }
        false
    }
}

/// A random table each of whose entries, margins and total is one of the two nearest whole numbers, unbiased: the expected
/// table is `values`.
///
/// # Errors
/// No columns, or no full rows; [`Error::Interrupted`].
pub fn unbiased_table(values: &[f64], columns: usize, seed: u64) -> Result<Vec<i64>, Error> {
    if columns == 0 || !values.len().is_multiple_of(columns) {
        return Err(Error::invalid("values", "must have full rows"));
    }
    let rows = values.len() / columns;
    // A row and a column more make all margins whole.
    let (height, width) = (rows + 1, columns + 1);
    let mut cells = vec![0.0; height * width];
    for (at, v) in values.iter().enumerate() {
        cells[at / columns * width + at % columns] = *v;
    }
    let to_whole = |sum: f64| (sum - 1e-9).ceil() - sum;
    for row in 0..rows {
        cells[row * width + columns] = to_whole(cells[row * width..row * width + columns].iter().sum());
    }
    for column in 0..width {
        cells[rows * width + column] = to_whole((0..rows).map(|row| cells[row * width + column]).sum());
    }
    let mut random = SplitMix(seed);
    let mut open: Vec<Vec<usize>> = vec![Vec::new(); height + width];
    for (at, v) in cells.iter_mut().enumerate() {
        if settled(v) {
            continue;
        }
        open[at / width].push(at);
        open[height + at % width].push(at);
    }
    let mut seen = vec![usize::MAX; height + width];
    for first in 0..height + width {
        poll()?;
        let mut path: Vec<usize> = Vec::new(); // entries, from node to node
        let mut nodes = vec![first];
        seen[first] = 0;
        while let Some(node) = nodes.last().copied() {
            let last = path.last().copied();
            // Any entry of this node that is not whole but the one that led here.
            while open[node].last().is_some_and(|at| settled(&mut cells[*at])) {
                open[node].pop();
            }
            let mut next = None;
            for place in (0..open[node].len()).rev() {
                let at = open[node][place];
                if Some(at) != last && !settled(&mut cells[at]) {
                    next = Some(at);
                    break;
                }
            }
            let Some(at) = next else {
                // What rounding left alone at its end.
                seen[node] = usize::MAX;
                nodes.pop();
                if let Some(at) = path.pop() {
                    cells[at] = cells[at].round();
                }
                continue;
            };
            let to = if node < height { height + at % width } else { at / width };
            path.push(at);
            if seen[to] == usize::MAX {
                seen[to] = nodes.len();
                nodes.push(to);
                continue;
            }
            let from = seen[to];
            turn(&mut cells, &path[from..], &mut random);
            for node in nodes.drain(from + 1..) {
                seen[node] = usize::MAX;
            }
            path.truncate(from);
            // What led here may be whole now.
            while let Some(at) = path.last().copied() {
                if !settled(&mut cells[at]) {
                    break;
                }
                path.pop();
                nodes.pop().into_iter().for_each(|node| seen[node] = usize::MAX);
            }
        }
    }
    Ok((0..values.len()).map(|at| cells[at / columns * width + at % columns].round() as i64).collect())
}

/// Whether an entry is whole, which it then is exactly.
fn settled(value: &mut f64) -> bool {
    let whole = value.round();
    let near = (*value - whole).abs() <= 1e-9;
    if near {
        *value = whole;
    }
    near
}

/// Moves the entries of a cycle up and down in turn until one is whole, so that none changes in expectation.
fn turn(cells: &mut [f64], cycle: &[usize], random: &mut SplitMix) {
    let (mut up, mut down) = (f64::INFINITY, f64::INFINITY);
    for (k, at) in cycle.iter().enumerate() {
        let below = cells[*at] - cells[*at].floor();
        let (rise, fall) = if k % 2 == 0 { (1.0 - below, below) } else { (below, 1.0 - below) };
        (up, down) = (up.min(rise), down.min(fall));
    }
    let by = if random.uniform() * (up + down) < down { up } else { -down };
    for (k, at) in cycle.iter().enumerate() {
        cells[*at] += if k % 2 == 0 { by } else { -by };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least cost of any table with these margins: all of them are looked at.
    fn least(values: &[f64], rows: &[i64], columns: &[i64], at: usize, cells: &mut Vec<i64>) -> f64 {
        let n = columns.len();
        if at == values.len() {
            let fits = (0..n).all(|j| (0..rows.len()).map(|i| cells[i * n + j]).sum::<i64>() == columns[j])
                && (0..rows.len()).all(|i| cells[i * n..(i + 1) * n].iter().sum::<i64>() == rows[i]);
            let cost = cells.iter().zip(values).map(|(z, x)| (*z as f64 - x).abs()).sum();
            return if fits { cost } else { f64::INFINITY };
        }
        (0..=rows[at / n])
            .map(|z| {
                cells.push(z);
                let cost = least(values, rows, columns, at + 1, cells);
                cells.pop();
                cost
            })
            .fold(f64::INFINITY, f64::min)
    }

    proptest! {
        #[test]
        fn margins_are_met_at_the_least_cost(
            values in prop::collection::vec(0.0..3.0, 6),
            rows in prop::collection::vec(0_i64..4, 2),
            split in prop::collection::vec(0_i64..7, 2),
        ) {
            let total: i64 = rows.iter().sum();
            let mut cuts: Vec<i64> = split.iter().map(|v| (*v).min(total)).collect();
            cuts.sort_unstable();
            let columns = [cuts[0], cuts[1] - cuts[0], total - cuts[1]];
            let found = whole_table(&values, &rows, &columns, None).unwrap();
            for i in 0..2 {
                prop_assert_eq!(found[3 * i..3 * i + 3].iter().sum::<i64>(), rows[i]);
            }
            for j in 0..3 {
                prop_assert_eq!(found[j] + found[3 + j], columns[j]);
            }
            prop_assert!(found.iter().all(|v| *v >= 0));
            let cost: f64 = found.iter().zip(&values).map(|(z, x)| (*z as f64 - x).abs()).sum();
            prop_assert!(cost <= least(&values, &rows, &columns, 0, &mut Vec::new()) + 1e-5);
        }

        #[test]
        fn by_chance_all_margins_are_one_of_the_nearest(
            values in prop::collection::vec(0.0..5.0, 12), seed in any::<u64>(),
        ) {
            let found = unbiased_table(&values, 4, seed).unwrap();
            let near = |whole: i64, real: f64| (whole as f64 - real).abs() < 1.0 + 1e-6;
            prop_assert!(found.iter().zip(&values).all(|(z, x)| near(*z, *x)));
            for i in 0..3 {
                prop_assert!(near(found[4 * i..4 * i + 4].iter().sum(), values[4 * i..4 * i + 4].iter().sum()));
            }
            for j in 0..4 {
                prop_assert!(near((0..3).map(|i| found[4 * i + j]).sum(), (0..3).map(|i| values[4 * i + j]).sum()));
            }
            prop_assert!(near(found.iter().sum(), values.iter().sum()));
        }
    }

    #[test]
    fn chance_is_unbiased() {
        let values = [0.3, 1.7, 2.25, 0.5, 0.1, 3.9];
        let mut sums = [0.0; 6];
        let draws = 20_000;
        for seed in 0..draws {
            let found = unbiased_table(&values, 3, seed * 7919 + 1).unwrap();
            sums.iter_mut().zip(&found).for_each(|(sum, z)| *sum += *z as f64);
        }
        // Five standard errors at most of a half each: one false alarm in 10^5.
        for (sum, value) in sums.iter().zip(values) {
            assert!((sum / draws as f64 - value).abs() < 5.0 * 0.5 / (draws as f64).sqrt());
        }
    }

    #[test]
    fn empty_cells_stay_empty() {
        let values = [1.2, 0.0, 0.4, 2.0];
        let found = whole_table(&values, &[1, 3], &[2, 2], Some(&[false, true, false, false])).unwrap();
        assert_eq!(found, [1, 0, 1, 2]);
        assert!(whole_table(&values, &[2, 1], &[1, 2], Some(&[false, true, false, false])).is_err());
    }
}
