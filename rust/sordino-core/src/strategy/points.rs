//! Weighted sums of the features of points ([`crate::smooth`]): summaries of smooth queries.
//!
//! Measured is `round(W_m S_m / 2^shift)`, with integer weights `W_m` and the exact integer sums `S_m`; where averages are
//! asked for and the number of points is private, also that number, with a weight of its own. Answers are the estimated
//! sums themselves: queries are made of them by the caller.

use super::{Encoded, Encoding, Geometry, Input, Strategy, integers};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::smooth::{Features, Norms, WEIGHT_BITS, Weights};
use crate::unit::Unit;
use crate::upper::Upper;
use std::sync::Arc;

/// Measured integers stay below this.
const VALUE_BITS: u32 = 58;

/// Sums over points as data.
#[derive(Debug, Clone)]
pub struct PointSummary {
    /// What is summed.
    pub features: Arc<Features>,
    /// Which of them matter more.
    pub weights: Weights,
    /// Gaussian or Laplace noise.
    pub law: NoiseLaw,
    /// Weight of the number of points, at most 1; 0 if it is not measured.
    pub count_weight: f64,
}

impl PointSummary {
    /// Builds the strategy; the same description gives the same strategy.
    ///
    /// # Errors
    /// If weights do not fit the features or the noise.
    pub fn build(&self) -> Result<Box<dyn Strategy>, Error> {
        let geometry = if self.law == NoiseLaw::Gaussian { Geometry::L2 } else { Geometry::L1 };
        if !(0.0..=1.0).contains(&self.count_weight) {
            return Err(Error::invalid("count_weight", "must be from 0 to 1"));
        }
        let map = &self.features.map;
        let weights = self.weights.integers(map.index_set(), map.features())?;
        let norms = map.norms(&self.weights, geometry == Geometry::L1)?;
        let weight_bits = if weights.is_some() { WEIGHT_BITS } else { 0 };
        let magnitude = (self.features.most_points() as f64 * map.largest()).log2().ceil().max(0.0) as u32;
        let shift = (map.bits() + weight_bits + magnitude + 1).saturating_sub(VALUE_BITS);
        let unit_bits = map.bits() + weight_bits - shift;
        let count = (self.count_weight * 2f64.powi(unit_bits as i32)).floor() as i64;
        Ok(Box::new(Points { features: Arc::clone(&self.features), weights, norms, geometry, shift, unit_bits, count }))
    }
}

#[derive(Debug)]
struct Points {
    features: Arc<Features>,
    /// In units of `2^-WEIGHT_BITS`; all 1 if `None`.
    weights: Option<Vec<u64>>,
    norms: Norms,
    geometry: Geometry,
    shift: u32,
    /// Measured are multiples of `2^-unit_bits`.
    unit_bits: u32,
    /// Weight of the number of points in those.
    count: i64,
}

impl Points {
    fn scale(&self, feature: usize) -> f64 {
        let weight = self.weights.as_ref().map_or(1.0, |w| w[feature] as f64 * 2f64.powi(-(WEIGHT_BITS as i32)));
        2f64.powi(-(self.unit_bits as i32)) / weight
    }

    /// From measured units to sums.
    fn scales(&self) -> impl Iterator<Item = f64> {
        let count = (self.count > 0).then(|| (self.count as f64).recip());
        (0..self.features.map.features()).map(|feature| self.scale(feature)).chain(count)
    }
}

impl Strategy for Points {
    fn measured_len(&self) -> usize {
        self.features.map.features() + usize::from(self.count > 0)
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    /// A group of `records` points moves the sums by at most so many times what one does; no cap on cells sharpens that.
    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let rounding = if self.shift == 0 { Upper::ZERO } else { self.geometry.of_ones(self.measured_len()) };
        let count = Upper::integer(self.count.unsigned_abs().into());
        let column = self.norms.column.scaled(self.unit_bits as i32);
        Ok(match unit {
            Unit::AddRemove { records, .. } => {
                let one = match self.geometry {
                    Geometry::L1 => column + count,
                    _ => (column * column + count * count).sqrt(),
                };
                Upper::exact(f64::from(records)) * one + rounding
            }
            Unit::ReplaceOne { records } => {
                Upper::exact(f64::from(records)) * self.norms.pair.scaled(self.unit_bits as i32) + rounding
            }
        })
    }

    fn encoding(&self, _max_abs: u64) -> Result<Encoding, Error> {
        let most = self.features.most_points() as f64 * self.features.map.largest();
        // Doubled for rounding; the number of points has a weight of at most 1.
        Ok(Encoding::Exact { max_abs: (2.0 * most * 2f64.powi(self.unit_bits as i32)).ceil() as u64 })
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let Input::Sums(sums) = x else {
            return Err(Error::Unsupported("this mechanism takes sums over points".into()));
        };
        let features = self.features.map.features();
        Error::check_len("sums", features + 1, sums.len())?;
        let out = integers(out);
        let half = if self.shift == 0 { 0 } else { 1i128 << (self.shift - 1) };
        // More points than were declared: clamping each sum brings no two neighbours further apart.
        let most = i64::try_from(self.features.most_points()).unwrap_or(i64::MAX);
        let largest = self.features.map.largest() * 2f64.powi(self.features.map.bits() as i32);
        let bound = (most as f64 * largest).ceil() as i64;
        for (feature, (slot, sum)) in out.iter_mut().zip(sums.clamped(bound)).take(features).enumerate() {
            let weight = self.weights.as_ref().map_or(1, |w| i128::from(w[feature]));
            *slot = ((weight * i128::from(sum) + half) >> self.shift) as i64;
        }
        if self.count > 0 {
            out[features] = self.count * sums.total(features).clamp(0, most.into()) as i64;
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        for ((out, y), scale) in out.iter_mut().zip(y).zip(self.scales()) {
            *out = y * scale;
        }
    }

    fn variances(&self, out: &mut [f64]) {
        let noise = if self.geometry == Geometry::L1 { 2.0 } else { 1.0 };
        for (out, scale) in out.iter_mut().zip(self.scales()) {
            *out = noise * scale * scale;
        }
    }

    fn weights(&self, _row: &[f64]) -> Result<Vec<f64>, Error> {
        Err(Error::Unsupported("queries of points are answered by the release itself".into()))
    }
}
