//! Cells that no query tells apart, measured as one.
//!
//! A record in one of them is a record in their sum, so neighbours stay neighbours, and those that differ inside of one are
//! the same.

use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, not_in_row_space, table};
use crate::error::Error;
use crate::scratch::INTEGERS;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Runs, Workload};
use std::sync::Arc;

/// The strategy of a workload, of intervals and of products with some that of their merged cells.
///
/// # Errors
/// As `build`.
pub(super) fn on_merged_cells(
    workload: &Workload,
    build: impl FnOnce(&Workload) -> Result<Box<dyn Strategy>, Error>,
) -> Result<Box<dyn Strategy>, Error> {
    match Merging::of(workload) {
        None => build(workload),
        Some((merging, own)) => Ok(merging.around(Arc::from(build(&own)?))),
    }
}

/// The strategy of all cells of a workload, by one of its merged cells.
///
/// # Errors
/// [`Error::InvalidParameter`] if it tells all cells apart; [`Error::Shape`] if the strategy is of other cells.
pub fn of_merged_cells(workload: &Workload, inner: Arc<dyn Strategy>) -> Result<Box<dyn Strategy>, Error> {
    let merged = Merging::of(workload).ok_or_else(|| Error::invalid("workload", "tells all of its cells apart"))?;
    let cells = inner.transposed(&vec![0.0; inner.measured_len()]).map_or(0, |cells| cells.len());
    Error::check_len("cells", merged.0.sizes.len(), cells)?;
    Ok(merged.0.around(inner))
}

/// Which cells are one.
#[derive(Debug, Clone)]
pub(super) struct Merging {
    /// Which merged cell each cell is in; `None` of cells that are in no query.
    places: Vec<Option<u32>>,
    /// How many cells each merged one has.
    sizes: Vec<u32>,
}

impl Merging {
    fn new(places: Vec<Option<u32>>, count: usize) -> Self {
        let mut sizes = vec![0; count];
        for place in places.iter().flatten() {
            sizes[*place as usize] += 1;
        }
        Self { places, sizes }
    }

    /// Of intervals that do not tell all cells apart, of products with such along an axis, and of unions of them and of
    /// matrices, together; and they on the cells that they do.
    pub(super) fn of(workload: &Workload) -> Option<(Self, Workload)> {
        match workload {
            Workload::Kronecker { factors } => {
                let (all, factors) = Self::of_axes(factors)?;
                Some((all, Workload::Kronecker { factors }))
            }
            Workload::Union { parts } if parts.iter().any(|part| !part.kronecker_factors().is_empty()) => {
                let (all, axes) = Self::of_axes(&asked_along(parts)?)?;
                let factors = |k: usize| axes.iter().map(|asked| asked.parts()[k].clone()).collect();
                let parts = (0..parts.len()).map(|k| Workload::Kronecker { factors: factors(k) }).collect();
                Some((all, Workload::Union { parts }))
            }
            Workload::Intervals { .. } | Workload::Union { .. } => {
                let runs = Self::runs(workload)?;
                let own = runs.picked(workload);
                Some((Self::new(runs.places, runs.firsts.len()), own))
            }
            _ => None,
        }
    }

    /// Of queries of one line, unless they tell all cells apart, or are totals, which are measured as they are.
    fn runs(workload: &Workload) -> Option<Runs> {
        let is_total = |part: &Workload| matches!(part, Workload::Sparse { rows: 1, .. });
        if workload.parts().iter().all(is_total) {
            return None;
        }
        Runs::of(workload).filter(|runs| runs.firsts.len() < runs.places.len())
    }

    /// Of a table, where cells are merged along any axis; and what is asked along all.
    fn of_axes(axes: &[Workload]) -> Option<(Self, Vec<Workload>)> {
        let each: Vec<_> = axes.iter().map(Self::of).collect();
        if each.iter().all(Option::is_none) {
            return None;
        }
        let (mut all, mut own) = (Self::new(vec![Some(0)], 1), Vec::new());
        for (asked, merged) in axes.iter().zip(each) {
            let (axis, workload) = merged.unwrap_or_else(|| (Self::none(asked), asked.clone()));
            all = all.times(&axis);
            own.push(workload);
        }
        Some((all, own))
    }

    /// Every cell by itself.
    fn none(workload: &Workload) -> Self {
        let count = workload.input_len().unwrap_or(0);
        Self::new((0..count as u32).map(Some).collect(), count)
    }

    /// Of a table, by those of its axes.
    fn times(&self, inner: &Self) -> Self {
        let count = inner.sizes.len();
        let place = |outer: Option<u32>| move |own: &Option<u32>| Some(outer? * count as u32 + (*own)?);
        let places = self.places.iter().flat_map(|outer| inner.places.iter().map(place(*outer))).collect();
        Self::new(places, self.sizes.len() * count)
    }

    /// The strategy of all cells, by that of the merged ones.
    pub(super) fn around(self, inner: Arc<dyn Strategy>) -> Box<dyn Strategy> {
        Box::new(Merged { merging: self, inner })
    }

    pub(super) fn cells(&self) -> usize {
        self.places.len()
    }

    /// How many cells the largest merged one has.
    pub(super) fn largest(&self) -> u32 {
        self.sizes.iter().max().copied().unwrap_or(1)
    }
}

/// What products along the same axes ask along each, together.
fn asked_along(parts: &[Workload]) -> Option<Vec<Workload>> {
    let lens = |part: &Workload| part.kronecker_factors().iter().map(Workload::input_len).collect::<Vec<_>>();
    let count = parts[0].kronecker_factors().len();
    let along = |k: usize| parts.iter().map(|part| part.kronecker_factors()[k].clone()).collect();
    parts
        .iter()
        .all(|part| lens(part) == lens(&parts[0]))
        .then(|| (0..count).map(|k| Workload::Union { parts: along(k) }).collect())
}

/// The first of each set of cells that are measured as one, and the first that no query counts; none where all are told apart.
#[must_use]
pub fn distinct_cells(workload: &Workload) -> Option<(Vec<usize>, Option<usize>)> {
    let (merging, _) = Merging::of(workload)?;
    let mut firsts = vec![None; merging.sizes.len()];
    let mut left_out = None;
    for (cell, place) in merging.places.iter().enumerate() {
        place.map_or(&mut left_out, |place| &mut firsts[place as usize]).get_or_insert(cell);
    }
    Some((firsts.into_iter().flatten().collect(), left_out))
}

/// The strategy of windows that all hold the cells in the middle, with these merged; none of others.
///
/// # Errors
/// As `build`.
pub(super) fn on_merged_windows(
    workload: &Workload,
    build: impl FnOnce(&Workload) -> Result<Box<dyn Strategy>, Error>,
) -> Result<Option<Box<dyn Strategy>>, Error> {
    let (Workload::Tail { first, of }, Some((tap, _))) = (workload, workload.windows()) else { return Ok(None) };
    let Workload::Linear { kernel, len, center: 0 } = &**of else { return Ok(None) };
    // Cells before the last window, as many as behind the first one.
    let outside = len.saturating_sub(kernel.len());
    if kernel.len() != first + 1 || 2 * outside + 2 > *len {
        return Ok(None);
    }
    let count = 2 * outside + 1;
    let kernel = vec![tap; outside + 1];
    let inner = Workload::Tail { first: outside, of: Box::new(Workload::Linear { kernel, len: count, center: 0 }) };
    let place = |j: usize| Some(j.min(outside).max((j + count).saturating_sub(*len)) as u32);
    let merging = Merging::new((0..*len).map(place).collect(), count);
    Ok(Some(merging.around(Arc::from(build(&inner)?))))
}

/// The strategy of the merged cells.
#[derive(Debug)]
struct Merged {
    merging: Merging,
    inner: Arc<dyn Strategy>,
}

impl Merged {
    fn sums<T: Copy + std::ops::AddAssign>(&self, cells: &[T], out: &mut [T]) {
        for (place, value) in self.merging.places.iter().zip(cells) {
            if let Some(place) = place {
                out[*place as usize] += *value;
            }
        }
    }

    fn largest_sum(&self, max_abs: u64) -> Result<u64, Error> {
        let overflow = || Error::Overflow("the merged cells overflow; declare a smaller max_value".into());
        let most = self.merging.largest();
        max_abs.checked_mul(u64::from(most)).filter(|sum| *sum < 1 << 62).ok_or_else(overflow)
    }

    /// The row of the merged cells, of one that is constant on each of them.
    fn merged_row(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let mut own = vec![f64::NAN; self.merging.sizes.len()];
        for (place, value) in self.merging.places.iter().zip(row) {
            match place.map(|place| &mut own[place as usize]) {
                None if *value == 0.0 => {}
                Some(slot) if slot.is_nan() || *slot == *value => *slot = *value,
                _ => return Err(not_in_row_space()),
            }
        }
        Ok(own)
    }
}

impl Strategy for Merged {
    fn measured_len(&self) -> usize {
        self.inner.measured_len()
    }

    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        // A merged cell changes by what its cells do together.
        let most = self.merging.largest();
        let of_sums = match unit {
            Unit::AddRemove { records, per_cell: Some(cap), one_signed } => {
                let per_cell = Some(cap.saturating_mul(most)).filter(|cap| *cap < records);
                Unit::AddRemove { records, per_cell, one_signed }
            }
            _ => unit,
        };
        self.inner.sensitivity(of_sums)
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        self.inner.encoding(self.largest_sum(max_abs)?)
    }

    fn wide(&self, max_abs: u64) -> Option<f64> {
        self.inner.wide(self.largest_sum(max_abs).ok()?)
    }

    fn steps(&self) -> Vec<Run> {
        self.inner.steps()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        let inner = Arc::from(self.inner.refined(factors)?);
        Some(Box::new(Self { merging: self.merging.clone(), inner }))
    }

    fn factors(&self) -> &[f64] {
        self.inner.factors()
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let mut sums = INTEGERS.take(self.merging.sizes.len());
        sums.fill(0);
        self.sums(table(x)?, &mut sums);
        self.inner.encode(Input::Cells(&sums), self.largest_sum(max_abs)?, out)
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        self.inner.decode(y, out);
    }

    fn variances(&self, out: &mut [f64]) {
        self.inner.variances(out);
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        self.inner.spread()
    }

    fn merged_cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        let mut own = self.inner.merged_cells(y)?;
        let first = |place: &Option<u32>| place.map_or(0.0, |place| std::mem::take(&mut own[place as usize]));
        Some(self.merging.places.iter().map(first).collect())
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let mut sums = vec![0.0; self.merging.sizes.len()];
        self.sums(x, &mut sums);
        self.inner.multiplied(&sums)
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let own = self.inner.transposed(y)?;
        Some(self.merging.places.iter().map(|place| place.map_or(0.0, |place| own[place as usize])).collect())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        self.inner.weights(&self.merged_row(row)?)
    }

    fn answer_weights(&self, answer: usize, row: &[f64]) -> Result<Vec<f64>, Error> {
        self.inner.answer_weights(answer, &self.merged_row(row)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::fourier_filters;

    /// Long windows as one circle of few cells: answers, variances, and what neighbours are apart.
    #[test]
    fn cells_in_all_windows_are_one() {
        for (window, len) in [(9, 10), (6, 10), (5, 10), (10, 10), (7, 11), (1, 1), (2, 3)] {
            let whole = Workload::Linear { kernel: vec![0.5; window], len, center: 0 };
            let workload = Workload::Tail { first: window - 1, of: Box::new(whole) };
            let strategy = fourier_filters(&workload, &[1.0], Unit::add_remove(1, None).unwrap()).unwrap();
            let encode = |x: &[i64]| {
                let mut units = vec![0; strategy.measured_len()];
                strategy.encode(Input::Cells(x), 1000, Encoded::Exact(&mut units)).unwrap();
                units.into_iter().map(|unit| unit as f64).collect::<Vec<f64>>()
            };
            let columns: Vec<Vec<f64>> =
                (0..len).map(|j| encode(&(0..len).map(|i| i64::from(i == j)).collect::<Vec<_>>())).collect();
            let outside = len - window;
            let alike = |j: usize| (outside..window).contains(&j);
            for i in 0..len {
                let same = |j: usize| i == j || (alike(i) && alike(j));
                assert!((0..len).all(|j| (columns[i] == columns[j]) == same(j)), "{window} {len} {i}");
            }
            let x: Vec<i64> = (0..len as i64).map(|j| j * 37 % 101 - 20).collect();
            let answers_len = workload.answers_len();
            let (mut answers, mut variances) = (vec![0.0; answers_len], vec![0.0; answers_len]);
            strategy.decode(&encode(&x), &mut answers);
            strategy.variances(&mut variances);
            for t in 0..answers_len {
                let truth = 0.5 * x[t..t + window].iter().sum::<i64>() as f64;
                assert!((answers[t] - truth).abs() < 1e-9 * (1.0 + truth.abs()), "{window} {len} {t}");
                let weights = strategy.weights(&workload.row(t).unwrap()).unwrap();
                let variance: f64 = weights.iter().map(|w| w * w).sum();
                assert!((variance / variances[t] - 1.0).abs() < 1e-9);
            }
            let norm = |v: &[f64]| v.iter().map(|v| v * v).sum::<f64>().sqrt();
            let apart = |a: &[f64], b: &[f64]| norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>());
            let declared = |unit: Unit| strategy.sensitivity(unit).unwrap().get() * (1.0 + 1e-12);
            for a in &columns {
                assert!(declared(Unit::add_remove(1, None).unwrap()) >= norm(a));
                assert!(columns.iter().all(|b| declared(Unit::replace_one(1).unwrap()) >= apart(a, b)));
            }
        }
    }
}
