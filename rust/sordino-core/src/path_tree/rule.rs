//! What is measured next, from what was published so far.

use super::region::Region;
use crate::door::{LEAST_SHARE, NoiseLaw, WHOLE, variance};

/// Share of the top.
const TOP: f64 = 0.02;
/// Records in a part, in units of its noise, from which it is worth dividing.
const WORTH: f64 = 3.0;
/// `4^(1/3)`, as a number: trees grow again alike on any machine.
const CUBE_ROOT_OF_4: f64 = 1.587_401_051_968_199_4;
/// Most parts of a stretch.
const MOST_PARTS: u32 = 8;
/// Cells of a stretch that is divided into them at once, if they can be told apart.
const FINISH: u32 = 16;

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
        variance(self.law, self.noise, share)
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
            Growth::Adaptive => (TOP * WHOLE as f64) as u64,
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
        let side = sides[0].max(sides[1]);
        let most = if plane {
            if parts >= 3.0 && side >= 4 { 4 } else { 2 }
        } else if side <= FINISH && f64::from(side) <= 1.5 * parts {
            side
        } else {
            (2..=MOST_PARTS.ilog2()).rev().map(|bits| 1 << bits).find(|f| f64::from(*f) <= 1.5 * parts).unwrap_or(2)
        };
        let fan = sides.map(|side| side.min(most));
        let last = parts < 1.5 * f64::from(most) || fan == sides;
        let share = if last {
            1.0
        } else if plane {
            // As many levels below as parts can be told apart.
            let reach = parts.min(f64::from(side));
            self.growing((1..=i32::from(u8::MAX)).find(|levels| f64::from(most).powi(*levels) >= reach).unwrap_or(1))
        } else {
            self.line()
        };
        Next::Divide { fan, share: part(left, share) }
    }

    /// Of what is left on a line, for the parts of a node, if they are divided further: running sums need all levels alike.
    fn line(&self) -> f64 {
        match self.law {
            NoiseLaw::Laplace => 0.4,
            NoiseLaw::Gaussian => 0.3,
        }
    }

    /// The first of so many shares that grow from level to level. Least error of boxes: the more the deeper, epsilon by the
    /// cube root of 4, squares by its square root.
    fn growing(&self, levels: i32) -> f64 {
        let growth = match self.law {
            NoiseLaw::Laplace => CUBE_ROOT_OF_4,
            NoiseLaw::Gaussian => 2.0,
        };
        1.0 / (0..levels).map(|level| growth.powi(level)).sum::<f64>()
    }

    fn full(&self, region: &Region, depth: u32, left: u64) -> Next {
        let bits = u32::BITS - (self.shape[0].max(self.shape[1]) - 1).leading_zeros();
        let below = bits.div_ceil(2).saturating_sub(depth + 1);
        if region.cells() == 1 {
            return Next::Again;
        }
        let most = if depth == 0 && bits % 2 == 1 { 2 } else { 4 };
        Next::Divide {
            fan: [region.side(0).min(most), region.side(1).min(most)],
            share: part(left, self.growing(below as i32 + 1)),
        }
    }
}

fn part(left: u64, share: f64) -> u64 {
    ((left as f64 * share) as u64).clamp(LEAST_SHARE, left)
}
