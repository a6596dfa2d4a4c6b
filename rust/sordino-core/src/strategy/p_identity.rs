//! Cells and weighted sums of them, Laplace noise: what is measured of many cells.
//!
//! `B = [I; Θ] diag(s)^{-1}`, `s_j = 1 + Σ_k θ_kj`, rounded to integers `d_j` and `b_kj`. Least squares by the identity of
//! Woodbury: with `e_j = (d_j f_j)^{-2}`, f what the noise of a row is smaller by, and `L Lᵀ = F^{-2} + b diag(e) bᵀ` over
//! the sums, `G^{-1} = diag(e) − MᵀM`, `M = L^{-1} b diag(e)`: p numbers for each cell, and no matrix of cells by cells.

use super::boxes::{by_weights, long_axes};
use super::merged::on_merged_cells;
use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, each_row, gcd, integers, table};
use crate::error::Error;
use crate::linear_algebra::{Matrix, add_to_diagonal, cholesky, dot, invert_lower, product, transpose};
use crate::parallel::{each_slice, fill, pieces};
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, each};

/// Bits of the largest entry.
const ENTRY_BITS: i32 = 28;

/// Variance of a weighted sum of the cells, each by its own noise, over that of its measurement, at most.
const MOST_UNEVEN: f64 = 1e10;
/// The same along an axis: cells that no query tells apart would be so.
const MOST_UNEVEN_ALONG_AXES: f64 = 1e6;

#[derive(Debug, Clone)]
pub(super) struct PIdentity {
    workload: Workload,
    /// `d_j`.
    own: Vec<i64>,
    /// `b_kj`, row by row.
    sums: Vec<i64>,
    /// Of [`Strategy::refined`], one a run of rows.
    factors: Vec<f64>,
    /// The square of what the noise of each row is smaller by.
    gains: Vec<f64>,
    /// `e_j`.
    spread: Vec<f64>,
    /// `M`, p × n.
    shared: Matrix,
    /// Variance of a weighted sum of the cells over that of its measurement, at most: so many times rounding is in the answers.
    unevenness: f64,
}

/// The strategy that measures all cells and these weighted sums of them, row by row. Laplace noise.
///
/// # Errors
/// [`Error::Unsupported`] for more than 2^26 answers or no table; [`Error::InvalidParameter`] if sums are no rows of as many weights, none
/// negative, as there are cells, of intervals merged ones.
pub fn p_identity(workload: &Workload, sums: &[f64]) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    if sums.is_empty() {
        return Err(Error::invalid("sums", "must be rows of as many weights, none negative, as there are cells"));
    }
    workload.listed()?;
    on_merged_cells(&workload, |own| Ok(Box::new(PIdentity::beside_cells(own.clone(), sums)?)))
}

/// `[I; Θ] D^{-1}`, real.
pub(super) struct Scaled {
    /// The diagonal of `D^{-1}`.
    own: Vec<f64>,
    /// `Θ D^{-1}`, row by row.
    sums: Vec<f64>,
    largest: f64,
}

impl Scaled {
    /// # Errors
    /// [`Error::InvalidParameter`] if sums are no rows of as many weights, none negative, as there are cells.
    pub(super) fn new(n: usize, sums: &[f64]) -> Result<Self, Error> {
        if !sums.len().is_multiple_of(n) || sums.iter().any(|v| !(0.0..=1e15).contains(v)) {
            return Err(Error::invalid("sums", "must be rows of as many weights, none negative, as there are cells"));
        }
        let own: Vec<f64> = (0..n).map(|j| (1.0 + sums.iter().skip(j).step_by(n).sum::<f64>()).recip()).collect();
        let sums: Vec<f64> = sums.iter().enumerate().map(|(k, weight)| weight * own[k % n]).collect();
        let largest = own.iter().chain(&sums).copied().fold(0.0, f64::max);
        Ok(Self { own, sums, largest })
    }

    /// Whether there are no sums.
    pub(super) fn is_cells(&self) -> bool {
        self.sums.is_empty()
    }

    /// How many bits sums over cells have beyond those of the largest entry.
    pub(super) fn growth(&self) -> f64 {
        let rows = self.sums.chunks_exact(self.own.len()).map(|row| row.iter().sum::<f64>());
        (rows.fold(self.largest, f64::max) / self.largest).log2()
    }
}

impl PIdentity {
    /// With entries of so many bits. What rounding adds to a column its cell leaves, so that all have one norm.
    pub(super) fn new(workload: Workload, scaled: &Scaled, bits: i32) -> Result<Self, Error> {
        let scale = 2f64.powi(bits - scaled.largest.log2().ceil() as i32);
        let sums: Vec<i64> = scaled.sums.iter().map(|b| (b * scale).round() as i64).collect();
        let n = scaled.own.len();
        let left = |j: usize| (scale.round() as i64 - sums.iter().skip(j).step_by(n).sum::<i64>()).max(1);
        let own: Vec<i64> = (0..n).map(left).collect();
        // A sum that rounding leaves empty says nothing.
        let rows = sums.chunks_exact(n).filter(|row| row.iter().any(|b| *b != 0));
        let sums: Vec<i64> = rows.flatten().copied().collect();
        Self::of(workload, own, sums, &[])
            .ok_or_else(|| Error::invalid("sums", "are too ill-conditioned for double precision"))
    }

    /// With entries of as many bits as there are.
    pub(super) fn beside_cells(workload: Workload, sums: &[f64]) -> Result<Self, Error> {
        let scaled = Scaled::new(workload.table_len()?, sums)?;
        Self::new(workload, &scaled, ENTRY_BITS)
    }

    /// The largest ℓ1 norm of a column.
    pub(super) fn column(&self) -> Upper {
        let n = self.len();
        let column =
            |j: usize| self.own[j] as u128 + self.sums.iter().skip(j).step_by(n).map(|b| *b as u128).sum::<u128>();
        Upper::integer((0..n).map(column).max().unwrap_or(0))
    }

    /// The same sums, answered for noise that is smaller by a factor on each run of rows.
    pub(super) fn with_factors(&self, factors: &[f64]) -> Option<Self> {
        Self::of(self.workload.clone(), self.own.clone(), self.sums.clone(), factors)
    }

    fn of(workload: Workload, own: Vec<i64>, sums: Vec<i64>, factors: &[f64]) -> Option<Self> {
        let n = own.len();
        let p = sums.len() / n;
        let mut found = Self {
            workload,
            own,
            sums,
            factors: factors.to_vec(),
            gains: vec![1.0; n + p],
            spread: Vec::new(),
            shared: Matrix::zeros(0, n),
            unevenness: 0.0,
        };
        if !factors.is_empty() {
            found.gains = each_row(&found.steps(), factors).iter().map(|less| less * less).collect();
        }
        found.spread =
            found.own.iter().zip(&found.gains).map(|(d, gain)| (gain * (*d as f64).powi(2)).recip()).collect();
        let scaled = Matrix::from_fn(p, n, |k, j| found.sums[k * n + j] as f64 * found.spread[j]);
        let rows = Matrix::from_fn(p, n, |k, j| found.sums[k * n + j] as f64);
        let mut inner = product(&scaled, &transpose(&rows));
        add_to_diagonal(&mut inner, |k| found.gains[n + k].recip());
        // A sum that is so much more precise than its cells takes away all digits of what they leave.
        found.unevenness = (0..p).map(|k| inner[(k, k)] * found.gains[n + k]).fold(0.0, f64::max);
        if found.unevenness.is_nan() || found.unevenness > MOST_UNEVEN {
            return None;
        }
        found.shared = product(&invert_lower(&cholesky(&inner)?), &scaled);
        Some(found)
    }

    pub(super) fn len(&self) -> usize {
        self.own.len()
    }

    pub(super) fn workload(&self) -> &Workload {
        &self.workload
    }

    pub(super) fn unevenness(&self) -> f64 {
        self.unevenness
    }

    /// Refuses sums along an axis that leave no digits to its cells.
    pub(super) fn check_digits(&self) -> Result<(), Error> {
        if self.unevenness <= MOST_UNEVEN_ALONG_AXES {
            return Ok(());
        }
        Err(Error::Unsupported(
            "sums along an axis count so much more than its cells that estimates lose their digits".into(),
        ))
    }

    /// `G^{-1} v`.
    pub(super) fn solve(&self, v: &[f64]) -> Vec<f64> {
        let p = self.shared.nrows();
        let mut inner = vec![0.0; p];
        for (j, value) in v.iter().enumerate() {
            for (sum, m) in inner.iter_mut().zip(self.shared.col_as_slice(j)) {
                *sum += m * value;
            }
        }
        let each = v.iter().zip(&self.spread).enumerate();
        each.map(|(j, (value, e))| e * value - dot(self.shared.col_as_slice(j), &inner)).collect()
    }

    /// `v' C v` of the first cells' weights `v` and their squares, `C` what [`Self::solve`] multiplies by.
    pub(super) fn form(&self) -> impl Fn(&[f64], &[f64]) -> f64 {
        let rows = transpose(&self.shared);
        move |v, squares| {
            let shared = (0..rows.ncols()).map(|k| dot(&rows.col_as_slice(k)[..v.len()], v).powi(2));
            (dot(&self.spread[..v.len()], squares) - shared.sum::<f64>()).max(0.0)
        }
    }

    /// `Bᵀ` of numbers, each times what its row gives it.
    fn gathered(&self, y: &[f64], gain: impl Fn(usize) -> f64) -> Vec<f64> {
        let n = self.len();
        let mut out: Vec<f64> = (0..n).map(|j| self.own[j] as f64 * gain(j) * y[j]).collect();
        for (k, row) in self.sums.chunks_exact(n).enumerate() {
            let value = gain(n + k) * y[n + k];
            out.iter_mut().zip(row).for_each(|(slot, b)| *slot += *b as f64 * value);
        }
        out
    }

    /// Sums over the cells before each, and before the end.
    pub(super) fn prefixes(&self) -> Prefixes {
        let (p, n) = (self.shared.nrows(), self.len());
        let mut own = vec![0.0; n + 1];
        let mut shared = Matrix::zeros(p, n + 1);
        let mut running = vec![0.0; p];
        for j in 0..n {
            own[j + 1] = own[j] + self.spread[j];
            running.iter_mut().zip(self.shared.col_as_slice(j)).for_each(|(sum, m)| *sum += m);
            shared.col_as_slice_mut(j + 1).copy_from_slice(&running);
        }
        Prefixes { own, shared }
    }
}

/// Prefix sums of `e` and of the columns of `M`.
pub(super) struct Prefixes {
    own: Vec<f64>,
    shared: Matrix,
}

impl Prefixes {
    /// Variance of the sum of the cells from `first` to before `end`.
    pub(super) fn between(&self, first: usize, end: usize) -> f64 {
        let columns = self.shared.col_as_slice(first).iter().zip(self.shared.col_as_slice(end));
        2.0 * (self.own[end] - self.own[first] - columns.map(|(a, b)| (b - a) * (b - a)).sum::<f64>())
    }

    fn write(&self, strategy: &PIdentity, workload: &Workload, out: &mut [f64]) {
        match workload {
            Workload::Histogram { .. } => {
                out.iter_mut().enumerate().for_each(|(j, slot)| *slot = self.between(j, j + 1));
            }
            Workload::Ranges { len } => {
                each_slice(pieces(out, (1..=*len).rev()), &|first, ranges| {
                    ranges.iter_mut().enumerate().for_each(|(k, slot)| *slot = self.between(first, first + k + 1));
                });
            }
            Workload::Intervals { ends, .. } => {
                let own = |(first, last): &(u32, u32)| self.between(*first as usize, *last as usize + 1);
                fill(out, |t| own(&ends[t]));
            }
            Workload::Union { parts } => each(parts, out, |part, piece| self.write(strategy, part, piece)),
            _ => match workload.windows() {
                Some((tap, windows)) => {
                    let own = |(first, last)| tap * tap * self.between(first, last + 1);
                    out.iter_mut().zip(windows).for_each(|(slot, ends)| *slot = own(ends));
                }
                None => fill(out, |t| {
                    let row = workload.row(t).expect("an axis has a table");
                    2.0 * dot(&row, &strategy.solve(&row))
                }),
            },
        }
    }
}

impl Strategy for PIdentity {
    fn measured_len(&self) -> usize {
        self.gains.len()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L1
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let column = self.column();
        Ok(unit.from_columns(column, || column + column))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let rows = self.sums.chunks_exact(self.len()).map(|row| row.iter().map(|b| *b as u128).sum::<u128>());
        let fullest = rows.chain(self.own.iter().map(|d| *d as u128)).max().unwrap_or(1);
        let bound = fullest * u128::from(max_abs);
        if bound >= 1 << 60 {
            return Err(Error::Overflow("the weighted sums overflow; declare a smaller max_value".into()));
        }
        Ok(Encoding::Exact { max_abs: bound as u64 })
    }

    fn steps(&self) -> Vec<Run> {
        let rows = self.sums.chunks_exact(self.len()).map(|row| row.iter().fold(0, |step, b| gcd(step, *b)).max(1));
        Run::merged(self.own.iter().copied().chain(rows).map(|step| step as u64))
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(self.with_factors(factors)?))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, _max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let cells = table(x)?;
        let (own, sums) = integers(out).split_at_mut(self.len());
        own.iter_mut().zip(cells).zip(&self.own).for_each(|((slot, x), d)| *slot = x * d);
        let row = |k: usize| &self.sums[k * cells.len()..][..cells.len()];
        fill(sums, |k| row(k).iter().zip(cells).map(|(b, x)| b * x).sum());
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.workload.apply(&self.cells(y).unwrap_or_default(), out);
    }

    fn variances(&self, out: &mut [f64]) {
        self.prefixes().write(self, &self.workload, out);
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        let mut variances = vec![0.0; self.workload.answers_len()];
        self.variances(&mut variances);
        let (mean, largest) = self.workload.weighted_spread(&variances);
        Some((mean, Some(largest)))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(self.solve(&self.gathered(y, |row| self.gains[row])))
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let own = self.own.iter().zip(x).map(|(d, v)| *d as f64 * v);
        let sums = self.sums.chunks_exact(x.len()).map(|row| row.iter().zip(x).map(|(b, v)| *b as f64 * v).sum());
        Some(own.chain(sums).collect())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        Some(self.gathered(y, |_| 1.0))
    }

    fn box_variance(&self, shape: &[usize], first: &[usize], last: &[usize]) -> Result<f64, Error> {
        let (first, last) = match long_axes(shape).as_slice() {
            [] => (0, 0),
            [axis] => (first[*axis], last[*axis]),
            _ => return by_weights(self, shape, first, last),
        };
        let mut inside = vec![0.0; self.len()];
        inside[first..=last].fill(1.0);
        Ok(2.0 * self.solve(&inside)[first..=last].iter().sum::<f64>())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let inner = self.solve(row);
        let own = self.own.iter().zip(&inner).map(|(d, v)| *d as f64 * v);
        let sums = self.sums.chunks_exact(row.len()).map(|b| b.iter().zip(&inner).map(|(b, v)| *b as f64 * v).sum());
        Ok(own.chain(sums).zip(&self.gains).map(|(v, gain)| gain * v).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(len: usize) -> Workload {
        Workload::Linear { kernel: vec![2.0; len], len, center: 0 }
    }

    fn built(len: usize) -> (Workload, Box<dyn Strategy>) {
        let workload =
            Workload::Union { parts: vec![Workload::Ranges { len }, sums(len), Workload::Histogram { len }] };
        let theta: Vec<f64> =
            (0..3 * len).map(|k| if k % len / 5 == k / len { 0.8 } else { 1e-3 * ((k * 7) % 5) as f64 }).collect();
        let strategy = p_identity(&workload, &theta).unwrap();
        (workload, strategy)
    }

    fn encoded(strategy: &dyn Strategy, x: &[i64]) -> Vec<f64> {
        let mut units = vec![0; strategy.measured_len()];
        strategy.encode(Input::Cells(x), 1000, Encoded::Exact(&mut units)).unwrap();
        units.into_iter().map(|unit| unit as f64).collect()
    }

    #[test]
    fn answers_variances_and_norms() {
        let len = 14;
        let (workload, plain) = built(len);
        let factors: Vec<f64> = (0..plain.steps().len()).map(|k| 1.0 + 0.1 * (k % 3) as f64).collect();
        let refined = plain.refined(&factors).unwrap();
        let x: Vec<i64> = (0..len as i64).map(|j| j * 37 % 101 - 20).collect();
        let columns: Vec<Vec<f64>> =
            (0..len).map(|j| encoded(&*plain, &(0..len).map(|i| i64::from(i == j)).collect::<Vec<_>>())).collect();
        for strategy in [plain, refined] {
            let y = encoded(&*strategy, &x);
            let (mut answers, mut variances) = (vec![0.0; workload.answers_len()], vec![0.0; workload.answers_len()]);
            strategy.decode(&y, &mut answers);
            strategy.variances(&mut variances);
            let noise = strategy.unit_variances();
            for t in 0..answers.len() {
                let row = workload.row(t).unwrap();
                let truth: f64 = row.iter().zip(&x).map(|(a, x)| a * *x as f64).sum();
                assert!((answers[t] - truth).abs() < 1e-8 * (1.0 + truth.abs()), "{t}: {} {truth}", answers[t]);
                let weights = strategy.weights(&row).unwrap();
                let read: f64 = weights.iter().zip(&y).map(|(w, y)| w * y).sum();
                assert!((read - truth).abs() < 1e-8 * (1.0 + truth.abs()));
                let variance: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
                assert!((variances[t] / variance - 1.0).abs() < 1e-9, "{t}: {} {variance}", variances[t]);
            }
            let inside = strategy.box_variance(&[len], &[2], &[6]).unwrap();
            assert!((inside / variances[len + len - 1 + 4] - 1.0).abs() < 1e-9);
            let back = strategy.transposed(&noise).unwrap();
            for (got, column) in back.iter().zip(&columns) {
                let known: f64 = column.iter().zip(&noise).map(|(a, b)| a * b).sum();
                assert!((got / known - 1.0).abs() < 1e-12);
            }
            let one = columns.iter().map(|c| c.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max);
            let declared = |unit: Unit| strategy.sensitivity(unit).unwrap().get();
            assert!(declared(Unit::add_remove(1, None).unwrap()) == one);
            let pairs = columns.iter().flat_map(|a| columns.iter().map(move |b| (a, b)));
            let two = pairs.map(|(a, b)| a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum()).fold(0.0, f64::max);
            assert!(declared(Unit::replace_one(1).unwrap()) >= two);
        }
    }

    /// Sums that rounding leaves empty are not measured: cells alone remain.
    #[test]
    fn cells_alone_may_remain() {
        let strategy = p_identity(&Workload::Ranges { len: 5 }, &[1e-12; 10]).unwrap();
        assert_eq!(strategy.measured_len(), 5);
        let mut variances = vec![0.0; 15];
        strategy.variances(&mut variances);
        let one = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get();
        assert!((variances[4] * one * one / 10.0 - 1.0).abs() < 1e-6, "the sum of five cells");
        let y = encoded(&*strategy, &[1, 2, 3, 4, 5]);
        assert!((strategy.cells(&y).unwrap()[3] - 4.0).abs() < 1e-9);
        assert_eq!(strategy.weights(&[1.0; 5]).unwrap().len(), 5);
    }

    #[test]
    fn what_is_not_served_is_refused() {
        let ranges = Workload::Ranges { len: 4 };
        for wrong in [vec![], vec![1.0; 3], vec![-1.0; 4], vec![f64::NAN; 4]] {
            assert!(p_identity(&ranges, &wrong).is_err());
        }
        assert!(p_identity(&Workload::Ranges { len: 1 << 14 }, &vec![1.0; 1 << 14]).is_err(), "2^27 answers");
        assert!(p_identity(&ranges, &[0.0; 4]).is_ok());
    }
}
