//! Trees: integer combinations of measured nodes.

use super::{StreamStrategy, averaged, processed, sums_only};
use crate::error::Error;
use crate::stream::filter::Filter;
use crate::stream::keyed::KeyedNoise;
use crate::stream::participation::Participation;
use crate::stream::process::{self, Process, own_weight};
use crate::stream::state::Writer;
use crate::upper::Upper;

/// Norm of a pattern on a tree whose levels have nodes of these widths, each item in one node of a level.
///
/// `m` participations at least `s` apart: at most `⌈width/s⌉` meet in one node, so the squared counts of a level sum
/// to at most `m·min(m, ⌈width/s⌉)`.
fn level_norm(pattern: &Participation, steps: u64, l1: bool, widths: impl Iterator<Item = u64>) -> Upper {
    let count = pattern.count(steps);
    let together = |width: u64| if l1 { 1 } else { count.min(width.div_ceil(pattern.separation())) };
    let sum: u128 = widths.map(|width| u128::from(count) * u128::from(together(width))).sum();
    if l1 { Upper::integer(sum) } else { Upper::integer(sum).sqrt() }
}

fn laplace_factor(l1: bool) -> f64 {
    if l1 { 2.0 } else { 1.0 }
}

/// The binary tree, plain or averaged from below.
#[derive(Debug)]
pub(in crate::stream) struct BinaryTree {
    pub steps: u64,
    pub averaged: bool,
    pub l1: bool,
}

impl BinaryTree {
    fn levels(&self) -> u32 {
        self.steps.ilog2() + 1
    }
}

impl StreamStrategy for BinaryTree {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        level_norm(pattern, steps, self.l1, (0..self.levels()).map(|height| 1 << height))
    }

    fn exchange_norm(&self, steps: u64, l1: bool) -> Upper {
        // Of two items that share no other node, both are in the root if the tree has one.
        let own = u128::from(self.levels() - u32::from(steps.is_power_of_two()));
        let nodes = Upper::integer((2 * own).max(self.levels().into()));
        if l1 { nodes } else { nodes.sqrt() }
    }

    fn falling_products(&self) -> bool {
        true // the number of nodes that hold both
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        sums_only(filter)?;
        let mut node = vec![laplace_factor(self.l1)];
        for height in 1..64 {
            let own = own_weight(height) as f64 * 2f64.powi(-32);
            let last = node[node.len() - 1];
            let averaged = own * own * node[0] + (1.0 - own) * (1.0 - own) * 2.0 * last;
            node.push(if self.averaged { averaged } else { node[0] });
        }
        let sum = |t: u64| (0..64).filter(|height| t >> height & 1 == 1).map(|height| node[height]).sum();
        Ok(averaged(filter, steps, steps.iter().map(|t| sum(*t)).collect()))
    }

    fn worst_steps(&self, steps: u64) -> Vec<u64> {
        // A one of the last step made zero, and ones below it.
        (0..64).filter(|bit| steps >> bit & 1 == 1).map(|bit| (steps ^ (1 << bit)) | ((1 << bit) - 1)).collect()
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::BinaryTree::new(self.levels(), self.averaged, dim, quarter_units))
    }

    fn summed_noise(&self, noise: &mut KeyedNoise<'_>, first: u64, quarter_units: u64, steps: u64) -> i128 {
        if self.averaged {
            return processed(self.process(1, quarter_units), noise, first, steps);
        }
        // The node that closes with step t has the noise of that step.
        let mut sum = 0;
        let mut rest = steps;
        while rest > 0 {
            sum += i128::from(noise.after(rest - 1).single(first + rest - 1, quarter_units));
            rest &= rest - 1;
        }
        sum
    }

    fn samples(&self, steps: u64) -> u64 {
        if self.averaged { 2 * steps } else { steps }
    }

    fn summed_operations(&self, steps: u64) -> f64 {
        let each = self.operations(steps) + 10.0;
        if self.averaged { steps as f64 * each } else { 100.0 * f64::from(steps.count_ones()) }
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        8 * (u64::from(self.levels()) + 1)
    }

    fn operations(&self, _steps: u64) -> f64 {
        f64::from(self.levels()) / 2.0 + if self.averaged { 4.0 } else { 0.0 }
    }
}

/// Binomial coefficient, saturating.
fn binomial(n: u32, k: u32) -> u128 {
    (0..k).fold(1u128, |product, i| product.saturating_mul(u128::from(n - i)) / u128::from(i + 1))
}

/// The smooth binary tree.
#[derive(Debug)]
pub(in crate::stream) struct SmoothTree {
    height: u32,
    ones: u32,
    l1: bool,
}

impl SmoothTree {
    /// The height and number of ones with the least error that have a leaf for every prefix.
    pub(crate) fn new(steps: u64, l1: bool) -> Self {
        let fits = |height: u32, ones: u32| binomial(height, ones) > u128::from(steps);
        let cost = |(height, ones): &(u32, u32)| {
            let zeros = u64::from(height - ones);
            (u64::from(*ones) * if l1 { zeros * zeros } else { zeros }, *height)
        };
        let candidates = (1..63).flat_map(|height| (1..=height / 2 + 1).map(move |ones| (height, ones)));
        let best = candidates.filter(|(height, ones)| ones < height && fits(*height, *ones)).min_by_key(cost);
        let (height, ones) = best.unwrap_or((62, 31));
        Self { height, ones, l1 }
    }
}

impl StreamStrategy for SmoothTree {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        if pattern.count(steps) > 1 {
            // Nodes have no simple widths in steps: the triangle inequality.
            let one = self.norm(&Participation::single(), steps);
            return one * Upper::integer(pattern.count(steps).into());
        }
        let zeros = Upper::integer(u128::from(self.height - self.ones));
        if self.l1 { zeros } else { zeros.sqrt() }
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        sums_only(filter)?;
        let sums = vec![f64::from(self.ones) * laplace_factor(self.l1); steps.len()];
        Ok(averaged(filter, steps, sums))
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::SmoothTree::new(self.height, self.ones, dim, quarter_units))
    }

    fn samples(&self, steps: u64) -> u64 {
        steps.saturating_mul(self.height.into())
    }

    fn parameters(&self, out: &mut Writer) {
        out.u64(self.height.into());
        out.u64(self.ones.into());
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        8 * (u64::from(self.height) + 1)
    }

    fn operations(&self, _steps: u64) -> f64 {
        f64::from(self.ones)
    }
}

/// The `k`-ary tree with subtraction, Laplace noise.
#[derive(Debug)]
pub(in crate::stream) struct SubtractionTree {
    branching: u32,
    levels: u32,
}

impl SubtractionTree {
    /// The odd branching with the least mean squared error, `levels³ (k² − 1)/(2k)`, or the one given.
    ///
    /// # Errors
    /// If `branching` is even or below 3.
    pub(crate) fn new(steps: u64, branching: Option<u32>) -> Result<Self, Error> {
        let levels = |k: u32| {
            let needed = 2 * u128::from(steps) + 1; // (k^levels − 1)/2 steps
            (1..128).find(|levels| u128::from(k).saturating_pow(*levels) >= needed).unwrap_or(128)
        };
        if branching.is_some_and(|k| k < 3 || k % 2 == 0) {
            return Err(Error::invalid("branching", "of a tree with subtraction must be odd and at least 3"));
        }
        let cost = |k: u32| f64::from(levels(k)).powi(3) * (f64::from(k) - 1.0 / f64::from(k));
        let best = (3..=201).step_by(2).min_by(|a, b| cost(*a).total_cmp(&cost(*b))).unwrap_or(3);
        let branching = branching.unwrap_or(best);
        Ok(Self { branching, levels: levels(branching) })
    }
}

impl StreamStrategy for SubtractionTree {
    fn norm(&self, pattern: &Participation, steps: u64) -> Upper {
        level_norm(pattern, steps, true, (0..self.levels).map(|_| 1))
    }

    fn variances(&self, filter: &Filter, steps: &[u64]) -> Result<Vec<f64>, Error> {
        sums_only(filter)?;
        let k = u64::from(self.branching);
        let nodes = |t: u64| {
            let mut rest = t;
            let mut nodes = 0;
            while rest > 0 {
                let digit = rest % k;
                nodes += digit.min(k - digit);
                rest = rest / k + u64::from(digit > k / 2);
            }
            nodes as f64
        };
        Ok(averaged(filter, steps, steps.iter().map(|t| 2.0 * nodes(*t)).collect()))
    }

    fn worst_steps(&self, steps: u64) -> Vec<u64> {
        // All low digits (k − 1)/2, and every digit above them.
        let k = u128::from(self.branching);
        let steps = u128::from(steps);
        let candidates = (0..self.levels).flat_map(|level| {
            let width = k.pow(level);
            let low = (width - 1) / 2;
            let top = steps.saturating_sub(low) / width;
            (0..k.min(top + 1)).map(move |less| (top - less) * width + low)
        });
        candidates.filter(|t| (1..=steps).contains(t)).map(|t| t as u64).collect()
    }

    fn process(&self, dim: usize, quarter_units: u64) -> Box<dyn Process> {
        Box::new(process::SubtractionTree::new(self.branching, self.levels, dim, quarter_units))
    }

    fn samples(&self, steps: u64) -> u64 {
        steps.saturating_mul(u64::from(self.levels) * u64::from(self.branching).div_ceil(2))
    }

    fn parameters(&self, out: &mut Writer) {
        out.u64(self.branching.into());
    }

    fn state_bytes(&self, _steps: u64) -> u64 {
        8 * (u64::from(self.levels) * u64::from(self.branching).div_ceil(2) + 1)
    }

    fn operations(&self, _steps: u64) -> f64 {
        f64::from(self.levels) + 2.0
    }
}
