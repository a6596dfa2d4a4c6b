//! What is measured next, from what was published so far.

use super::region::Region;
use crate::door::NoiseLaw;

/// The budget of a path, in shares: of epsilon for Laplace noise, of squares of the noise multiplier for Gaussian noise.
pub(crate) const WHOLE: u64 = 1 << 40;
/// No share is smaller.
pub(crate) const LEAST_SHARE: u64 = WHOLE >> 20;

/// Share of the top of a line, and of a plane.
const TOP: [f64; 2] = [0.05, 0.02];
/// What the parts of a node get of what is left, on a line and on a plane, if they are divided further.
const BELOW: [f64; 2] = [0.3, 0.15];
/// Records in a part, in units of its noise, from which it is worth dividing.
const WORTH: f64 = 3.0;
/// Most parts of a stretch.
const MOST_PARTS: u32 = 8;

/// How a tree grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Growth {
    /// Where records are: nodes are divided into about as many parts as can be told from noise.
    Adaptive,
    /// Down to the cells everywhere, sixteen parts at a time, of the top perhaps four; budgets grow from level to level.
    Full,
}

/// How a tree grows under noise of one size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rule {
    pub growth: Growth,
    pub shape: [u32; 2],
    pub law: NoiseLaw,
    /// Laplace scale, or standard deviation, of a node that gets the whole budget.
    pub noise: f64,
}

/// What becomes of a node that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Nothing is left.
    Leaf,
    /// It is measured once more with all that is left.
    Again,
    /// It is divided; each part is measured with `share`.
    Divide { fan: [u32; 2], share: u64 },
}

impl Rule {
    /// Variance of a measurement with a share of the budget.
    pub(crate) fn variance(&self, share: u64) -> f64 {
        let part = share as f64 / WHOLE as f64;
        match self.law {
            NoiseLaw::Gaussian => self.noise * self.noise / part,
            NoiseLaw::Laplace => {
                let half = (0.5 * part / self.noise).min(250.0);
                0.5 / half.sinh().powi(2)
            }
        }
    }

    /// What a node that gets so much spends of epsilon; of Gaussian noise that of Laplace noise of the same variance.
    fn rate(&self, share: u64) -> f64 {
        let part = share as f64 / WHOLE as f64;
        match self.law {
            NoiseLaw::Gaussian => (2.0 * part).sqrt() / self.noise,
            NoiseLaw::Laplace => part / self.noise,
        }
    }

    /// Share of the top, zero if it is not measured.
    pub(crate) fn top(&self) -> u64 {
        match self.growth {
            Growth::Adaptive => (TOP[usize::from(self.shape[0].min(self.shape[1]) > 1)] * WHOLE as f64) as u64,
            Growth::Full => 0,
        }
    }

    /// What is done with a node behind its measurement, `depth` below the top, with `left` of its budget.
    pub(crate) fn next(&self, region: &Region, depth: u32, estimate: f64, left: u64) -> Next {
        if left < LEAST_SHARE {
            return Next::Leaf;
        }
        match self.growth {
            Growth::Full => self.full(region, depth, left),
            Growth::Adaptive => self.adaptive(region, estimate, left),
        }
    }

    fn adaptive(&self, region: &Region, estimate: f64, left: u64) -> Next {
        let sides = [region.side(0), region.side(1)];
        let worth = estimate.max(0.0) * self.rate(left) / WORTH;
        let plane = sides[0] > 1 && sides[1] > 1;
        // Parts on each axis that is not used up.
        let parts = if plane { worth.sqrt() } else { worth };
        if region.cells() == 1 || parts < 1.5 {
            return Next::Again;
        }
        let most = if plane {
            if parts >= 3.0 && sides[0].max(sides[1]) >= 4 { 4 } else { 2 }
        } else {
            (2..=MOST_PARTS.ilog2()).rev().map(|bits| 1 << bits).find(|f| f64::from(*f) <= 1.5 * parts).unwrap_or(2)
        };
        let fan = sides.map(|side| side.min(most));
        let last = parts < 1.5 * f64::from(most) || fan == sides;
        let share = if last { 1.0 } else { BELOW[usize::from(plane)] };
        Next::Divide { fan, share: part(left, share) }
    }

    /// Least error of boxes: epsilon grows by the cube root of 4 from level to level.
    fn full(&self, region: &Region, depth: u32, left: u64) -> Next {
        let bits = u32::BITS - (self.shape[0].max(self.shape[1]) - 1).leading_zeros();
        let below = bits.div_ceil(2).saturating_sub(depth + 1);
        if region.cells() == 1 {
            return Next::Again;
        }
        let most = if depth == 0 && bits % 2 == 1 { 2 } else { 4 };
        let weight: f64 = (0..=below).map(|level| 4f64.cbrt().powi(level as i32)).sum();
        Next::Divide {
            fan: [region.side(0).min(most), region.side(1).min(most)],
            share: if below == 0 { left } else { part(left, 1.0 / weight) },
        }
    }
}

fn part(left: u64, share: f64) -> u64 {
    ((left as f64 * share) as u64).clamp(LEAST_SHARE, left)
}
