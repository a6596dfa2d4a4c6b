//! The error of a tree before there is data: where it grows down to every cell.

use super::axis::Axis;
use super::region::Region;
use super::rule::{Next, Rule};
use crate::door::WHOLE;
use crate::error::Error;
use crate::interrupt::poll;

/// More records than any noise hides.
const MANY: f64 = 1e154;

/// Mean squared error of queries by noise alone, as least squares leaves it, if there are so many records that the tree
/// grows down to every cell: exact where all parts of a level are of one size.
///
/// Measuring a node with variance `V` adds `s/V` to the precision of what is constant on its `s` cells. So differences
/// between the parts of a node have the precision `λ`, that of a part and of all below it. No node is kept.
///
/// # Errors
/// If it was asked to end early.
pub(crate) fn noise_square(rule: &Rule, axes: [Axis; 2]) -> Result<f64, Error> {
    let (mut walk, top) = (Walk { rule, axes, error: 0.0, seen: 0 }, rule.top());
    let whole = Region::whole(rule.shape);
    let precision = walk.precision(&whole, 0, top, WHOLE - top)?;
    Ok(walk.error + walk.form(&whole) / precision)
}

struct Walk<'a> {
    rule: &'a Rule,
    axes: [Axis; 2],
    /// That of differences between the parts of the nodes that were left behind.
    error: f64,
    seen: usize,
}

/// Nodes between two looks at signals.
const PAUSE: usize = 1 << 14;

impl Walk<'_> {
    /// Mean over the queries of the square of what is constant on a region.
    fn form(&self, region: &Region) -> f64 {
        let of = |a: usize| self.axes[a].mean_square(region.first[a], region.end[a], self.rule.shape[a]);
        of(0) * of(1) / region.cells() as f64
    }

    /// The precision of what is constant on a node, `depth` below the top, that is measured with `share` at first and has
    /// `left` then.
    fn precision(&mut self, region: &Region, depth: u32, share: u64, left: u64) -> Result<f64, Error> {
        self.seen += 1;
        if self.seen.is_multiple_of(PAUSE) {
            poll()?;
        }
        let cells = region.cells() as f64;
        // A variance may be so small that it is zero.
        let gained = |share: u64| if share == 0 { 0.0 } else { cells / self.rule.variance(share).max(1e-200) };
        let own = gained(share);
        Ok(own
            + match self.rule.next(region, depth, MANY, left) {
                Next::Leaf => 0.0,
                Next::Again => gained(left),
                Next::Divide { fan, share } => {
                    let (mut below, mut apart, mut parts) = (0.0, 0.0, 0.0);
                    for part in region.parts(fan) {
                        below += self.precision(&part, depth + 1, share, left - share)?;
                        apart += self.form(&part);
                        parts += 1.0;
                    }
                    below /= parts;
                    self.error += (apart - self.form(region)) / below;
                    below
                }
            })
    }
}
