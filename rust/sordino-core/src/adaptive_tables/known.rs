//! What measured tables say of all tables.

use super::forest::Forest;
use crate::error::Error;
use crate::estimate::{NearestProblem, NearestTables, Residuals, near_tables, nearest_tables};

/// How well attributes are known that nobody measured together: to so many times a uniform cell, squared, and one record.
/// What is expected of them is nearly consistent already, so that any weak precision does.
const SPREAD: f64 = 25.0;
/// Least share of all records that a value is taken to have where it is multiplied.
const LEAST_SHARE: f64 = 1e-4;

/// Residuals as far as they are known: sums of precisions times values, and of precisions.
#[derive(Debug)]
pub(super) struct Known<'a> {
    residuals: &'a Residuals,
    sums: Vec<f64>,
    precisions: Vec<f64>,
    total: f64,
    total_precision: f64,
    /// The last estimate of all tables, if there is one.
    pub(super) tables: Vec<f64>,
}

/// Residuals and their weights, what they would be if pairs that were measured were expected, and whether that is.
struct Expected {
    total: f64,
    y: Vec<f64>,
    weights: Vec<f64>,
    shares: Vec<Vec<f64>>,
    forest: Option<Forest>,
}

impl<'a> Known<'a> {
    pub(super) fn new(residuals: &'a Residuals) -> Self {
        Self {
            residuals,
            sums: vec![0.0; residuals.len()],
            precisions: vec![0.0; residuals.subsets()],
            total: 0.0,
            total_precision: 0.0,
            tables: Vec::new(),
        }
    }

    /// Takes in a table whose cells have noise of this variance.
    pub(super) fn add(&mut self, table: usize, values: &[f64], variance: f64) {
        let precision = 1.0 / variance.max(1e-200);
        // The margin on T, centred, is that of the means over the other axes times their cells, and so is its variance.
        for (subset, part, outside) in self.residuals.parts_of(table, values) {
            for (sum, value) in self.sums[self.residuals.range(subset)].iter_mut().zip(part) {
                *sum += value * precision;
            }
            self.precisions[subset] += precision / outside;
        }
        self.total += values.iter().sum::<f64>() * precision / values.len() as f64;
        self.total_precision += precision / values.len() as f64;
    }

    /// Precision of each subset's residuals, zero where nothing was measured.
    pub(super) fn precisions(&self) -> &[f64] {
        &self.precisions
    }

    /// Estimates all tables anew: they agree but for what is left of cells below zero, near to what was measured, and to a
    /// model of the measured pairs where nothing was.
    pub(super) fn estimate(&mut self, iterations: usize) -> Result<(), Error> {
        let Expected { total, y, weights, .. } = self.expected(None);
        let problem = NearestProblem { residuals: self.residuals, y: &y, weights: &weights, total, limits: None };
        self.tables = near_tables(&problem, iterations)?;
        Ok(())
    }

    /// The tables that agree, none of whose cells is negative, nearest to what was measured: shrunk towards what is
    /// expected as far as its noise asks for (James and Stein), if that is wanted.
    pub(super) fn nearest(
        &self,
        total: Option<f64>,
        shrink: bool,
        gap: f64,
        iterations: usize,
    ) -> Result<(NearestTables, f64), Error> {
        let Expected { total, mut y, weights, shares, forest } = self.expected(total);
        let mut noise = 0.0;
        for (subset, precision) in self.precisions.iter().enumerate().filter(|(_, precision)| **precision > 0.0) {
            let attributes = self.residuals.attributes(subset);
            let range = self.residuals.range(subset);
            let free: f64 = attributes.iter().map(|i| shares[*i].len() as f64 - 1.0).product();
            noise += 0.5 * free;
            if !shrink || attributes.len() < 2 || free < 3.0 {
                continue;
            }
            // Of a pair that the model is made of, the model says what was measured.
            let independent = forest.as_ref().is_none_or(|forest| forest.has(attributes));
            let target = model(attributes, total, &shares, forest.as_ref().filter(|_| !independent));
            let own = &mut y[range];
            let distance: f64 = own.iter().zip(&target).map(|(y, p)| (y - p).powi(2)).sum();
            let kept = if distance > 0.0 { (1.0 - (free - 2.0) / (precision * distance)).max(0.0) } else { 0.0 };
            own.iter_mut().zip(&target).for_each(|(y, p)| *y = p + kept * (*y - p));
        }
        let problem = NearestProblem { residuals: self.residuals, y: &y, weights: &weights, total, limits: None };
        let found = nearest_tables(&problem, gap * noise, iterations)?;
        let share = found.gap / noise.max(f64::MIN_POSITIVE);
        Ok((found, share))
    }

    /// What residuals are, or are expected to be, with the precisions that they are known by.
    fn expected(&self, total: Option<f64>) -> Expected {
        let total = total.unwrap_or_else(|| (self.total / self.total_precision).max(1.0));
        let mut y = self.sums.clone();
        let mut weights = self.precisions.clone();
        let mut shares: Vec<Vec<f64>> = Vec::new();
        for (subset, precision) in self.precisions.iter().enumerate().filter(|(_, precision)| **precision > 0.0) {
            let own = &mut y[self.residuals.range(subset)];
            for value in own.iter_mut() {
                *value /= precision;
            }
            if let [attribute] = self.residuals.attributes(subset) {
                let uniform = total / own.len() as f64;
                let margin: Vec<f64> = own.iter().map(|f| (f + uniform).max(LEAST_SHARE * total)).collect();
                let sum: f64 = margin.iter().sum();
                shares.resize(shares.len().max(attribute + 1), Vec::new());
                shares[*attribute] = margin.iter().map(|value| value / sum).collect();
            }
        }
        let forest = (!self.tables.is_empty())
            .then(|| Forest::new(self.residuals, &self.precisions, &self.tables, shares.len()));
        for (subset, weight) in weights.iter_mut().enumerate().filter(|(_, weight)| **weight <= 0.0) {
            let target = model(self.residuals.attributes(subset), total, &shares, forest.as_ref());
            *weight = 1.0 / (1.0 + SPREAD * (total / target.len() as f64).powi(2));
            y[self.residuals.range(subset)].copy_from_slice(&target);
        }
        Expected { total, y, weights, shares, forest }
    }
}

/// Residuals of some attributes: of a pair by the forest, if there is one, of others as if they were independent.
fn model(attributes: &[usize], total: f64, shares: &[Vec<f64>], forest: Option<&Forest>) -> Vec<f64> {
    if let ([i, j], Some(forest)) = (attributes, forest)
        && let Some(joint) = forest.joint(*i, *j, shares)
    {
        return centred(&joint, shares[*j].len(), total);
    }
    let mut product = vec![total];
    for attribute in attributes {
        let uniform = 1.0 / shares[*attribute].len() as f64;
        let apart = shares[*attribute].iter().map(|share| share - uniform);
        product = product.iter().flat_map(|value| apart.clone().map(move |share| value * share)).collect();
    }
    product
}

/// A table of two attributes, so many times, less its margins.
fn centred(table: &[f64], columns: usize, times: f64) -> Vec<f64> {
    let rows = table.len() / columns;
    let of_rows: Vec<f64> = table.chunks_exact(columns).map(|row| row.iter().sum::<f64>() / columns as f64).collect();
    let of_columns: Vec<f64> =
        (0..columns).map(|j| table.iter().skip(j).step_by(columns).sum::<f64>() / rows as f64).collect();
    let mean = of_rows.iter().sum::<f64>() / rows as f64;
    let cell = |(at, value): (usize, &f64)| times * (value - of_rows[at / columns] - of_columns[at % columns] + mean);
    table.iter().enumerate().map(cell).collect()
}
