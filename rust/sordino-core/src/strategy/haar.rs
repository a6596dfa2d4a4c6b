//! The Haar wavelet with the level weights of least error for the workload.

use super::tree::prefix_or_cells;
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, integers, table};
use crate::error::Error;
use crate::parallel::{collected, fill};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::Workload;

/// Bits of the largest weight.
const WEIGHT_BITS: i32 = 20;

/// Total and half-differences of dyadic blocks, unnormalised, times integer level weights.
///
/// Coefficient 0 is the total; coefficient `2^{l−1} + i` the difference of the halves of block `i`
/// of size `N/2^{l−1}`, `N` the length rounded up to a power of two.
#[derive(Debug, Clone)]
pub(super) struct Haar {
    len: usize,
    padded: usize,
    prefix: bool,
    tap: f64,
    /// Weight of the total, then of each level.
    weights: Vec<u64>,
    /// Squared coefficients of the workload's rows, summed, for the total and each level.
    energy: Vec<f64>,
    geometry: Geometry,
    /// Of [`Strategy::refined`], for the total and each level.
    factors: Vec<f64>,
}

impl Haar {
    pub(super) fn new(workload: &Workload, geometry: Geometry) -> Result<Self, Error> {
        let (len, prefix) = prefix_or_cells(workload)?;
        let tap = if let Workload::Linear { kernel, .. } = workload { kernel[0] } else { 1.0 };
        let padded = len.next_power_of_two();
        let levels = padded.trailing_zeros() as usize;
        let mut haar =
            Self { len, padded, prefix, tap, weights: Vec::new(), energy: Vec::new(), geometry, factors: Vec::new() };
        let energy = |level| (0..len).map(|t| haar.coefficient(t, level).powi(2)).sum();
        haar.energy = collected(levels + 1, &energy);
        // Gaussian: w² ∝ √s. Laplace: w ∝ s^{1/3}.
        let power = if haar.geometry == Geometry::L2 { 0.25 } else { 1.0 / 3.0 };
        let raw: Vec<f64> = haar.energy.iter().map(|s| s.powf(power)).collect();
        let largest = raw.iter().fold(0.0f64, |m, w| m.max(*w));
        haar.weights = raw.iter().map(|w| ((w / largest * 2f64.powi(WEIGHT_BITS)).round() as u64).max(1)).collect();
        Ok(haar)
    }

    /// The non-zero coefficient of answer `t` on a level, if there is one: `⟨row, haar⟩/‖haar‖²`.
    fn coefficient(&self, t: usize, level: usize) -> f64 {
        let bits = self.padded.trailing_zeros() as usize - level.saturating_sub(1);
        let size = 1usize << bits;
        let inside = if !self.prefix {
            1
        } else if level == 0 {
            t + 1
        } else {
            let inside = (t + 1) & (size - 1);
            inside.min(size - inside)
        };
        inside as f64 / size as f64
    }

    fn level_of(index: usize) -> usize {
        if index == 0 { 0 } else { index.ilog2() as usize + 1 }
    }

    /// Unnormalised coefficients of a padded vector.
    fn analyse<T: Copy + Default + std::ops::Add<Output = T> + std::ops::Sub<Output = T>>(&self, x: &[T]) -> Vec<T> {
        let mut sums = x.to_vec();
        sums.resize(self.padded, T::default());
        let mut out = vec![T::default(); self.padded];
        let mut half = self.padded / 2;
        while half > 0 {
            for i in 0..half {
                let (a, b) = (sums[2 * i], sums[2 * i + 1]);
                out[half + i] = a - b;
                sums[i] = a + b;
            }
            half /= 2;
        }
        out[0] = sums[0];
        out
    }

    /// From the total downwards, each block handing `share` of its number and of the difference to its halves: a half
    /// inverts [`Self::analyse`], all of it transposes.
    fn synthesise(&self, coefficients: &[f64], share: f64) -> Vec<f64> {
        let mut values = vec![coefficients[0]];
        let mut half = 1;
        while half < self.padded {
            values = values
                .iter()
                .zip(&coefficients[half..2 * half])
                .flat_map(|(sum, difference)| [(sum + difference) * share, (sum - difference) * share])
                .collect();
            half *= 2;
        }
        values
    }

    fn noise(&self) -> f64 {
        if self.geometry == Geometry::L1 { 2.0 } else { 1.0 }
    }
}

impl Strategy for Haar {
    fn measured_len(&self) -> usize {
        self.padded
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        // Two records share the total and the levels above the block that separates them, where they
        // have opposite signs; below they are in different blocks.
        let details = &self.weights[1..];
        if self.geometry == Geometry::L1 {
            let column: u128 = self.weights.iter().map(|w| u128::from(*w)).sum();
            let pair = 2 * details.iter().map(|w| u128::from(*w)).sum::<u128>();
            return Ok(unit.from_columns(Upper::integer(column), || Upper::integer(pair)));
        }
        let squares: Vec<u128> = details.iter().map(|w| u128::from(*w).pow(2)).collect();
        let column = squares.iter().sum::<u128>() + u128::from(self.weights[0]).pow(2);
        let pair = (0..squares.len()).map(|s| 4 * squares[s] + 2 * squares[s + 1..].iter().sum::<u128>()).max();
        Ok(unit.from_columns(Upper::integer(column).sqrt(), || Upper::integer(pair.unwrap_or(0)).sqrt()))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let bound = (u128::from(max_abs) * self.len as u128) << WEIGHT_BITS;
        if bound >= 1 << 60 {
            return Err(Error::Overflow("the wavelet coefficients overflow; declare a smaller max_value".into()));
        }
        Ok(Encoding::Exact { max_abs: bound as u64 })
    }

    fn steps(&self) -> Vec<Run> {
        let len = |level: usize| if level == 0 { 1 } else { 1 << (level - 1) };
        self.weights.iter().enumerate().map(|(level, step)| Run { step: *step, len: len(level) }).collect()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(Self { factors: factors.to_vec(), ..self.clone() }))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        for (i, (slot, value)) in integers(out).iter_mut().zip(self.analyse(table(x)?)).enumerate() {
            *slot = value * self.weights[Self::level_of(i)] as i64;
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let coefficients: Vec<f64> =
            y.iter().enumerate().map(|(i, v)| v / self.weights[Self::level_of(i)] as f64).collect();
        let mut sum = 0.0;
        for (slot, value) in out.iter_mut().zip(self.synthesise(&coefficients, 0.5)) {
            sum = if self.prefix { sum + value } else { value };
            *slot = sum * self.tap;
        }
    }

    fn variances(&self, out: &mut [f64]) {
        let precision = |level: usize| self.weights[level] as f64 * self.factors.get(level).unwrap_or(&1.0);
        fill(out, |t| {
            let sum: f64 = (0..self.energy.len()).map(|l| (self.coefficient(t, l) / precision(l)).powi(2)).sum();
            self.noise() * sum * self.tap * self.tap
        });
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let weighted = |(i, v): (usize, f64)| v * self.weights[Self::level_of(i)] as f64;
        Some(self.analyse(x).into_iter().enumerate().map(weighted).collect())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let weighted: Vec<f64> =
            y.iter().enumerate().map(|(i, v)| v * self.weights[Self::level_of(i)] as f64).collect();
        let mut cells = self.synthesise(&weighted, 1.0);
        cells.truncate(self.len);
        Some(cells)
    }

    fn ideal_mean_square(&self) -> Option<f64> {
        let (n, tap) = (self.len as f64, self.tap * self.tap);
        Some(if self.geometry == Geometry::L2 {
            tap * self.energy.iter().map(|s| s.sqrt()).sum::<f64>().powi(2) / n
        } else {
            2.0 * tap * self.energy.iter().map(|s| s.cbrt()).sum::<f64>().powi(3) / n
        })
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let size = |i: usize| if i == 0 { self.padded } else { self.padded >> (Self::level_of(i) - 1) };
        Ok(self
            .analyse(row)
            .into_iter()
            .enumerate()
            .map(|(i, c)| c / (size(i) as f64 * self.weights[Self::level_of(i)] as f64))
            .collect())
    }
}
