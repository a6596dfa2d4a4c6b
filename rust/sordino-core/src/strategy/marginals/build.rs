//! From wanted marginals to weighted residuals.

use super::axis::Axis;
use super::boxed::Boxed;
use super::{Marginals, Piece, Shares};
use crate::error::Error;
use crate::order::sorted_by_key;
use crate::strategy::Geometry;
use crate::strategy::sets::{sources, subsets};
use crate::workload::{Workload, cells};
use std::collections::BTreeMap;

/// Bits of the largest weight, where the numbers of levels allow.
const WEIGHT_BITS: f64 = 18.0;
/// Bits of the largest weighted residual of one record.
const WEIGHTED_BITS: f64 = 24.0;
/// Sets below the wanted ones.
const MOST_SETS: usize = 1 << 22;

/// Numbers of levels, and what products over attributes are made of.
struct Levels<'a>(&'a [usize]);

impl Levels<'_> {
    fn product(&self, set: &[usize], f: fn(Axis) -> f64) -> f64 {
        set.iter().map(|i| f(Axis(self.0[*i] as f64))).product()
    }

    fn rows(&self, set: &[usize]) -> usize {
        set.iter().map(|i| Axis(self.0[*i] as f64).rows()).product()
    }

    /// How much the variance of a residual at unit noise adds to the squared error: of every set below a wanted one
    /// `Σ_{S ⊇ T} ω_S·(cells of S)·Π_T recovered·Π_{S∖T} n^-2`; of the wanted tables themselves their cells.
    fn gains(&self, sets: &[Vec<usize>], weights: &[f64], shares: Shares) -> Result<BTreeMap<Vec<usize>, f64>, Error> {
        let mut gains: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        for (set, weight) in sets.iter().zip(weights) {
            if shares == Shares::Direct {
                *gains.entry(set.clone()).or_default() += weight * self.product(set, |a| a.0);
                continue;
            }
            if set.len() > 30 {
                return Err(Error::invalid("sets", "at most 30 attributes in one marginal"));
            }
            for inside in subsets(set) {
                let outside: Vec<usize> = set.iter().filter(|i| !inside.contains(i)).copied().collect();
                let gain = weight
                    * self.product(set, |a| a.0)
                    * self.product(&inside, Axis::recovered)
                    * self.product(&outside, |a| a.0.powi(-2));
                *gains.entry(inside).or_default() += gain;
            }
            if gains.len() > MOST_SETS {
                return Err(Error::invalid("sets", "too many attribute sets below the wanted marginals"));
            }
        }
        Ok(gains)
    }

    /// Weight of a residual, to a factor that all have in common.
    fn weight(&self, set: &[usize], gain: f64, shares: Shares, geometry: &Geometry, boxed: Option<&Boxed>) -> f64 {
        match (shares, geometry) {
            // The largest entry of a column is that of its box.
            (Shares::Boxes, _) => boxed.map_or(1.0, |boxed| boxed.size(set.len())) / self.product(set, Axis::largest),
            (Shares::Direct, _) => 1.0,
            (Shares::Uniform, _) => self.product(set, |a| if a.binary() { 1.0 } else { 1.0 / a.0 }),
            (Shares::Optimal, Geometry::L2) => (gain / self.product(set, Axis::column2)).powf(0.25),
            (Shares::Optimal, _) => (gain / self.product(set, Axis::column1)).cbrt(),
        }
    }

    /// Raises the weight of the empty set until it has its share of the budget.
    fn with_total(&self, weights: &mut [(Vec<usize>, f64)], share: f64, geometry: &Geometry) {
        let squared = *geometry == Geometry::L2;
        let spent = |(set, w): &(Vec<usize>, f64)| {
            if squared { w * w * self.product(set, Axis::column2) } else { w * self.product(set, Axis::column1) }
        };
        let others: f64 = weights.iter().filter(|(set, _)| !set.is_empty()).map(spent).sum();
        let least = share / (1.0 - share) * others;
        for (_, weight) in weights.iter_mut().filter(|(set, _)| set.is_empty()) {
            *weight = weight.max(if squared { least.sqrt() } else { least });
        }
    }
}

impl Marginals {
    pub(in crate::strategy) fn new(workload: &Workload, geometry: Geometry, shares: Shares) -> Result<Self, Error> {
        let Workload::Marginals { radices, sets, weights, total_share } = workload else {
            return Err(Error::Unsupported("this mechanism serves marginals".into()));
        };
        if shares == Shares::Boxes && *total_share > 0.0 {
            return Err(Error::Unsupported("the noise of boxes has no share for the total".into()));
        }
        let (levels, direct) = (Levels(radices), shares == Shares::Direct);
        let gains = levels.gains(sets, weights, shares)?;
        let boxed = (shares == Shares::Boxes).then(|| {
            Boxed::best(
                gains
                    .iter()
                    .map(|(set, gain)| (set.len(), *gain, levels.product(set, Axis::largest), levels.rows(set))),
            )
        });
        let mut raw: Vec<(Vec<usize>, f64)> = gains
            .into_iter()
            .map(|(set, gain)| {
                let weight = levels.weight(&set, gain, shares, &geometry, boxed.as_ref());
                (set, weight)
            })
            .collect();
        if *total_share > 0.0 && !direct {
            levels.with_total(&mut raw, *total_share, &geometry);
        }
        let largest = raw.iter().fold(0.0f64, |m, (_, w)| m.max(*w));
        let growth = raw.iter().fold(0.0f64, |m, (set, w)| m.max(w / largest * levels.product(set, Axis::column1)));
        let bits = WEIGHT_BITS.min((WEIGHTED_BITS - growth.log2()).floor());
        if !direct && bits < 4.0 {
            return Err(Error::Overflow("the residuals of these marginals overflow: too many levels".into()));
        }
        let sources = sources(radices, sets, direct);
        if boxed.is_some() {
            raw = sorted_by_key(raw, |(set, _)| set.len() as f64); // sets of one order stay in theirs
        }
        let mut offset = 0;
        let pieces: Vec<Piece> = raw
            .into_iter()
            .map(|(set, weight)| {
                let len = if direct { cells(radices, &set) } else { levels.rows(&set) };
                let weight = if direct { 1 } else { ((weight / largest * bits.exp2()).round() as u64).max(1) };
                let source = sources[&set];
                let piece = Piece { set, weight, offset, len, source };
                offset += len;
                piece
            })
            .collect();
        let geometry = boxed.map_or(geometry, |boxed| Geometry::Boxes(boxed.lens()));
        Ok(Self {
            radices: radices.clone(),
            sets: sets.clone(),
            direct,
            pieces,
            geometry,
            measured_len: offset,
            workload: workload.clone(),
            factors: Vec::new(),
        })
    }
}
