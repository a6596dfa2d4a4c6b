//! Sums that grow: exact integers, private until they are released.

use super::{Cube, FeatureMap, too_many_points};
use crate::error::Error;
use std::sync::Arc;
use zeroize::Zeroize;

const MAGIC: &[u8; 8] = b"sordpnts";
const VERSION: u64 = 1;
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

    /// Most points whose sums fit.
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
    sums: Vec<i64>,
}

impl PointSums {
    /// The sums of no points.
    pub fn new(features: Arc<Features>) -> Self {
        let sums = vec![0; features.map.features() + 1];
        Self { features, sums }
    }

    /// What is summed.
    pub fn features(&self) -> &Arc<Features> {
        &self.features
    }

    /// The sums, and last the number of points: private.
    pub fn sums(&self) -> &[i64] {
        &self.sums
    }

    /// Number of points: private where points may be added or removed.
    pub fn count(&self) -> u64 {
        self.sums.last().map_or(0, |count| *count as u64)
    }

    /// Adds points in the units of the bounds, row-major.
    ///
    /// # Errors
    /// If points are not finite, ragged, or more than were declared; then nothing was added.
    pub fn add(&mut self, points: &[f64]) -> Result<(), Error> {
        let dimension = self.features.cube.dimension();
        if !points.len().is_multiple_of(dimension) {
            return Err(Error::invalid("points", "must have one number a coordinate"));
        }
        if !points.iter().all(|x| x.is_finite()) {
            return Err(Error::invalid("points", "must be finite; fill or drop missing values first"));
        }
        let added = (points.len() / dimension) as u64;
        self.grow(added)?;
        let (sums, _) = self.sums.split_at_mut(self.features.map.features());
        let mut standard = vec![0.0; points.len().min(BATCH * dimension)];
        for batch in points.chunks(BATCH * dimension) {
            let standard = &mut standard[..batch.len()];
            self.features.cube.standardize(batch, standard);
            self.features.map.add(standard, sums);
        }
        standard.zeroize();
        Ok(())
    }

    /// Adds the sums of other points.
    ///
    /// # Errors
    /// If other features were summed, or there are more points than were declared; then nothing was added.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.features.mark != other.features.mark {
            return Err(Error::invalid("sums", "of other features or bounds cannot be added"));
        }
        self.grow(other.count())?;
        let features = self.features.map.features();
        for (sum, more) in self.sums.iter_mut().zip(&other.sums[..features]) {
            *sum += more;
        }
        Ok(())
    }

    fn grow(&mut self, added: u64) -> Result<(), Error> {
        let count = self.count().checked_add(added).filter(|count| *count <= self.features.most_points);
        let count = count.ok_or_else(|| Error::invalid("points", "are more than were declared; nothing was added"))?;
        if let Some(last) = self.sums.last_mut() {
            *last = count as i64;
        }
        Ok(())
    }

    /// The sums as bytes: as private as the points, and not encrypted.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.features.mark.to_le_bytes());
        self.sums.iter().for_each(|sum| bytes.extend_from_slice(&sum.to_le_bytes()));
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
        if bytes.len() != 8 * (len + 3) || !bytes.starts_with(MAGIC) {
            return Err(damaged());
        }
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let sums: Vec<i64> = words[2..=len + 1].iter().map(|word| *word as i64).collect();
        let count = sums.last().map_or(0, |count| *count as u64);
        let bound = count as f64 * features.map.largest() * 2f64.powi(features.map.bits() as i32);
        let fits = sums[..len - 1].iter().all(|sum| sum.unsigned_abs() as f64 <= bound);
        if words.last() != Some(&check(&bytes[..bytes.len() - 8]))
            || words[1] != features.mark
            || count > features.most_points
            || !fits
        {
            return Err(damaged());
        }
        Ok(Self { features, sums })
    }
}

fn check(bytes: &[u8]) -> u64 {
    bytes.as_chunks::<8>().0.iter().fold(1, |state, word| mix(state, u64::from_le_bytes(*word)))
}

impl Drop for PointSums {
    fn drop(&mut self) {
        self.sums.zeroize();
    }
}

impl std::fmt::Debug for PointSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PointSums").field("features", &self.features).finish_non_exhaustive()
    }
}
