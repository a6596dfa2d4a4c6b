//! Sums that grow: exact integers, private until they are released.

use super::{Cube, FeatureMap, too_many_points};
use crate::error::Error;
use crate::wide_sums::WideSums;
use std::sync::Arc;
use zeroize::Zeroize;

const MAGIC: &[u8; 8] = b"sordpnts";
const VERSION: u64 = 2;
/// Points that are moved to the cube at a time.
const BATCH: usize = 1 << 16;

/// Bounds and features: what a point adds to the sums.
#[derive(Debug)]
pub struct Features {
    /// The declared bounds.
    pub cube: Cube,
    /// The features of a point of the cube.
    pub map: Box<dyn FeatureMap>,
    most_points: u64,
    mark: u64,
}

impl Features {
    /// Features of at most so many points.
    ///
    /// # Errors
    /// If bounds and features differ in dimension, or the sums of so many points do not fit.
    pub fn new(cube: Cube, map: Box<dyn FeatureMap>, most_points: u64) -> Result<Self, Error> {
        Error::check_len("bounds", map.dimension(), cube.dimension())?;
        let sum = most_points as f64 * map.largest() * 2f64.powi(map.bits() as i32);
        if most_points == 0 || sum >= 2f64.powi(61) {
            return Err(too_many_points());
        }
        let mut words = vec![VERSION];
        words.extend(cube.bounds().iter().flat_map(|(low, high)| [low.to_bits(), high.to_bits()]));
        map.describe(&mut words);
        let mark = words.into_iter().fold(0, mix);
        Ok(Self { cube, map, most_points, mark })
    }

    /// What tells these features from others: of everything that decides what a point adds.
    pub fn mark(&self) -> u64 {
        self.mark
    }

    /// Points up to which sums are released as they are; those of more points are clamped at the door.
    pub fn most_points(&self) -> u64 {
        self.most_points
    }
}

/// Detects accidents, not forgers: the finalizer of `SplitMix64` on a running sum.
fn mix(state: u64, word: u64) -> u64 {
    let mut z = (state ^ word).wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Sums of features over points that arrive in pieces, in any order, at any number of places.
///
/// The sum of the sums of two data sets is that of both, bit for bit. **As private as the points**: they leave through the
/// door. They are wiped when dropped.
#[derive(Clone)]
pub struct PointSums {
    features: Arc<Features>,
    /// One for every feature, then the number of points.
    sums: WideSums,
}

impl PointSums {
    /// The sums of no points.
    pub fn new(features: Arc<Features>) -> Self {
        let sums = WideSums::new(features.map.features() + 1);
        Self { features, sums }
    }

    /// What is summed.
    pub fn features(&self) -> &Arc<Features> {
        &self.features
    }

    /// The sums, and last the number of points: private.
    pub fn sums(&self) -> &WideSums {
        &self.sums
    }

    /// Number of points: private where points may be added or removed.
    pub fn count(&self) -> u64 {
        u64::try_from(self.sums.total(self.features.map.features())).unwrap_or(u64::MAX)
    }

    /// Adds points in the units of the bounds, row-major. A point with a coordinate that is not a number is a null item.
    ///
    /// # Errors
    /// If points are ragged; then nothing was added.
    pub fn add(&mut self, points: &[f64]) -> Result<(), Error> {
        let dimension = self.features.cube.dimension();
        if !points.len().is_multiple_of(dimension) {
            return Err(Error::invalid("points", "must have one number a coordinate"));
        }
        let mut known = Vec::new();
        if points.iter().any(|x| x.is_nan()) {
            let rows = points.chunks_exact(dimension).filter(|point| point.iter().all(|x| !x.is_nan()));
            known.extend(rows.flatten().copied());
        }
        let points = if known.is_empty() && !points.iter().any(|x| x.is_nan()) { points } else { &known };
        let features = self.features.map.features();
        // Of one point each feature is at most `largest`: of a batch all sums fit.
        let largest = (self.features.map.largest() * 2f64.powi(self.features.map.bits() as i32)).ceil() as u64;
        let mut standard = vec![0.0; points.len().min(BATCH * dimension)];
        for batch in points.chunks(BATCH * dimension) {
            let standard = &mut standard[..batch.len()];
            self.features.cube.standardize(batch, standard);
            let count = (batch.len() / dimension) as u64;
            let (sums, counted) = self.sums.grow(count * largest.max(1)).split_at_mut(features);
            self.features.map.add(standard, sums);
            counted[0] += count as i64;
        }
        standard.zeroize();
        known.zeroize();
        Ok(())
    }

    /// Adds the sums of other points.
    ///
    /// # Errors
    /// If other features were summed; then nothing was added.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.features.mark != other.features.mark {
            return Err(Error::invalid("sums", "of other features or bounds cannot be added"));
        }
        self.sums.add(&other.sums, 1);
        Ok(())
    }

    /// The sums as bytes: as private as the points, and not encrypted.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.features.mark.to_le_bytes());
        self.sums.totals().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
        bytes.extend_from_slice(&check(&bytes).to_le_bytes());
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote, for the same features.
    ///
    /// # Errors
    /// If the bytes are no sums, damaged, or of other features.
    pub fn from_bytes(features: Arc<Features>, bytes: &[u8]) -> Result<Self, Error> {
        let damaged = || Error::invalid("bytes", "are no sums of these features, or damaged");
        let len = features.map.features() + 1;
        if bytes.len() != 8 * (2 * len + 3) || !bytes.starts_with(MAGIC) {
            return Err(damaged());
        }
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let pairs = words[2..words.len() - 1].as_chunks::<2>().0;
        let totals: Vec<i128> =
            pairs.iter().map(|[low, high]| (u128::from(*low) | u128::from(*high) << 64) as i128).collect();
        let count = totals.last().copied().unwrap_or(0);
        let bound = count as f64 * features.map.largest() * 2f64.powi(features.map.bits() as i32);
        let fits = count >= 0 && totals[..len - 1].iter().all(|sum| sum.unsigned_abs() as f64 <= bound * (1.0 + 1e-12));
        let sums = WideSums::from_totals(totals).ok_or_else(damaged)?;
        if words.last() != Some(&check(&bytes[..bytes.len() - 8])) || words[1] != features.mark || !fits {
            return Err(damaged());
        }
        Ok(Self { features, sums })
    }
}

fn check(bytes: &[u8]) -> u64 {
    bytes.as_chunks::<8>().0.iter().fold(1, |state, word| mix(state, u64::from_le_bytes(*word)))
}

impl std::fmt::Debug for PointSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PointSums").field("features", &self.features).finish_non_exhaustive()
    }
}
