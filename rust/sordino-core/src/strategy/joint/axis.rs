//! An axis of tables of sets of axes: what is measured along it, and what a total has of that.

use super::NOTHING;
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::linear_algebra::{Matrix, along_axis, dot, from_rows, pseudo_inverse, to_rows};
use crate::optimize;
use crate::strategy::boxes::{Boxes, indicator};
use crate::strategy::factored::squares;
use crate::strategy::fixed::Fixed;
use crate::strategy::p_identity::{PIdentity, Scaled};
use crate::strategy::{Geometry, Strategy};
use crate::workload::Workload;

/// Bits of entries where errors alone are wanted.
const FINE_BITS: i32 = 28;
/// Cells from which on the variances of all their ranges are summed by the Gram matrix, not range by range.
pub(super) const MANY_CELLS: usize = 128;

/// What is measured along an axis: cells and sums of them, under Laplace noise, or rows of reals, under Gaussian noise.
#[derive(Debug, Clone)]
pub(super) enum Along {
    Sums(Box<PIdentity>),
    Rows { asked: Workload, matrix: Matrix, inverse: Matrix },
}

impl Along {
    /// With entries of so many bits.
    pub(super) fn new(law: NoiseLaw, asked: Workload, entries: &[f64], bits: i32) -> Result<Self, Error> {
        asked.listed()?;
        let n = asked.table_len()?;
        if law == NoiseLaw::Laplace {
            let scaled = Scaled::new(n, entries)?;
            let sums = PIdentity::new(asked, &scaled, if scaled.is_cells() { 0 } else { bits })?;
            sums.check_digits()?;
            return Ok(Self::Sums(Box::new(sums)));
        }
        let largest = entries.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        if !(1e-6..=1e6).contains(&largest) {
            return Err(Error::invalid("strategy", "its entries must be near 1"));
        }
        let fixed = Fixed::new(entries.len() / n, n, entries, bits as u32)?;
        let matrix = from_rows(fixed.rows, n, &fixed.to_floats());
        let inverse = pseudo_inverse(&matrix).filter(|_| fixed.rows >= n);
        let inverse = inverse.ok_or_else(|| Error::invalid("strategy", "its columns are dependent"))?;
        Ok(Self::Rows { asked, matrix, inverse })
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Sums(sums) => sums.len(),
            Self::Rows { matrix, .. } => matrix.ncols(),
        }
    }

    pub(super) fn asked(&self) -> &Workload {
        match self {
            Self::Sums(sums) => sums.workload(),
            Self::Rows { asked, .. } => asked,
        }
    }

    /// The largest norm of a column.
    pub(super) fn column(&self) -> f64 {
        match self {
            Self::Sums(sums) => sums.column().get(),
            Self::Rows { matrix, .. } => {
                let squares = (0..matrix.ncols()).map(|j| matrix.col_as_slice(j)).map(|column| dot(column, column));
                squares.fold(0.0, f64::max).sqrt()
            }
        }
    }

    /// How many times rounding is in estimates.
    pub(super) fn unevenness(&self) -> f64 {
        match self {
            Self::Sums(sums) => sums.unevenness().max(1.0),
            Self::Rows { .. } => 1.0,
        }
    }

    /// `G^{-1} v`.
    pub(super) fn solve(&self, v: &[f64]) -> Vec<f64> {
        match self {
            Self::Sums(sums) => sums.solve(v),
            Self::Rows { inverse, .. } => along_axis(inverse, false, &along_axis(inverse, true, v, 1), 1),
        }
    }

    /// Variances of the answers at noise of variance 1.
    pub(super) fn variances(&self) -> Vec<f64> {
        let mut variances = vec![0.0; self.asked().answers_len()];
        match self {
            Self::Sums(sums) => {
                sums.variances(&mut variances);
                for variance in &mut variances {
                    *variance /= Geometry::L1.white();
                }
            }
            Self::Rows { asked, inverse, .. } => squares(asked, inverse, &|_| 1.0, &mut variances),
        }
        variances
    }

    /// The same of boxes of cells.
    pub(super) fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        match self {
            Self::Sums(sums) => {
                Ok(sums.box_variances(boxes)?.into_iter().map(|variance| variance / Geometry::L1.white()).collect())
            }
            Self::Rows { inverse, .. } => {
                let of = |(first, last): (&[usize], &[usize])| {
                    let read = along_axis(inverse, true, &indicator(boxes.shape, first, last), 1);
                    dot(&read, &read)
                };
                Ok(boxes.each().map(of).collect())
            }
        }
    }
}

/// An axis of a [`Joint`]: what is measured along it, and what a total has of that.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub along: Along,
    /// `m`.
    pub mean: Vec<f64>,
    /// `c`.
    pub constant: f64,
}

/// Whether every query is a multiple of the sum of all cells: told from the entries, since what is left out is never known.
pub(super) fn of_totals(asked: &Workload) -> bool {
    let even = |entries: &[f64]| entries.iter().all(|entry| *entry == entries[0]);
    match asked {
        Workload::Matrix { columns, entries, .. } => entries.chunks_exact(*columns).all(even),
        Workload::Sparse { columns, starts, entries, .. } => {
            starts.windows(2).all(|ends| ends[1] - ends[0] == *columns && even(&entries[ends[0]..ends[1]]))
        }
        Workload::Union { parts } => parts.iter().all(of_totals),
        _ => asked.input_len() == Some(1),
    }
}

impl Line {
    pub(super) fn new(along: Along) -> Self {
        let solved = along.solve(&vec![1.0; along.len()]);
        let constant: f64 = solved.iter().sum();
        let size = constant.sqrt();
        Self { mean: solved.into_iter().map(|v| v / size).collect(), along, constant }
    }

    pub(super) fn len(&self) -> usize {
        self.along.len()
    }

    /// Variances of what totals have of every answer, and of the rest, of noise of variance 1.
    pub(super) fn variances(&self) -> [Vec<f64>; 2] {
        self.in_two(self.along.asked(), self.along.variances())
    }

    /// The variances of the answers to a workload in two.
    fn in_two(&self, asked: &Workload, mut rest: Vec<f64>) -> [Vec<f64>; 2] {
        let mut mean = vec![0.0; rest.len()];
        asked.apply(&self.mean, &mut mean);
        for (mean, rest) in mean.iter_mut().zip(&mut rest) {
            *mean *= *mean;
            *rest = (*rest - *mean).max(0.0);
        }
        [mean, rest]
    }

    /// The sums of [`Self::variances`] over the answers of every part of what is asked, each times its weight.
    fn summed_variances(&self, weights: Option<&[f64]>) -> Vec<[f64; 2]> {
        let summed = |variances: &[f64], weights: Option<&[f64]>| match weights {
            Some(weights) => dot(variances, weights),
            None => variances.iter().sum(),
        };
        let parts = self.along.asked().parts();
        let mut first = 0;
        let each = |part: &Workload| {
            let own = first..first + part.answers_len();
            first = own.end;
            (own.clone(), weights.map(|weights| &weights[own]))
        };
        let own = parts.iter().map(each);
        match &self.along {
            Along::Sums(_) => {
                let whole = self.variances();
                own.map(|(own, weights)| whole.each_ref().map(|all| summed(&all[own.clone()], weights))).collect()
            }
            Along::Rows { inverse, .. } => {
                let each = own.zip(parts).map(|((own, weights), part)| {
                    self.by_gram(part, weights, inverse).unwrap_or_else(|| {
                        let mut variances = vec![0.0; own.len()];
                        squares(part, inverse, &|_| 1.0, &mut variances);
                        self.in_two(part, variances).map(|variances| summed(&variances, weights))
                    })
                });
                each.collect()
            }
        }
    }

    /// The same of all ranges of many cells, of equal weight: `mᵀWm` and the rest of `tr(G^{-1}W)`.
    fn by_gram(&self, part: &Workload, weights: Option<&[f64]>, inverse: &Matrix) -> Option<[f64; 2]> {
        if !matches!(part, Workload::Ranges { len } if *len >= MANY_CELLS) || weights.is_some() {
            return None;
        }
        let asked = optimize::Line::of(part, None).ok()?;
        let summed = |rows: usize, v: &[f64]| {
            let mut times = vec![0.0; v.len()];
            asked.times_gram(rows, v, &mut times);
            dot(v, &times)
        };
        let mean = summed(1, &self.mean);
        Some([mean, (summed(inverse.ncols(), &to_rows(inverse)) - mean).max(0.0)])
    }

    /// The cells of a rest and a place along `m`.
    pub(super) fn joined(&self, pieces: &[f64], out: &mut [f64]) {
        let (rest, place) = pieces.split_at(out.len());
        out.iter_mut().zip(rest).zip(&self.mean).for_each(|((slot, rest), m)| *slot = rest + m * place[0]);
    }

    /// `G^{-1} v` in two: what no total has of it, and its place along `m`.
    pub(super) fn solve(&self, v: &[f64], out: &mut [f64]) {
        let (rest, place) = out.split_at_mut(v.len());
        place[0] = dot(&self.mean, v);
        let solved = self.along.solve(v);
        rest.iter_mut().zip(solved).zip(&self.mean).for_each(|((slot, x), m)| *slot = x - m * place[0]);
    }
}

/// What the errors along an axis are where columns have norm 1: `c`, and for each part of `asked` the sums of `weights` times the
/// variances of what a total has of its answers, and of the rest, zero of totals alone. `entries` are rows of what is
/// measured, under Laplace noise beside all cells.
///
/// # Errors
/// As [`super::joint`]; [`Error::InvalidParameter`] if there are not as many weights as answers.
pub fn joint_errors(
    asked: &Workload,
    weights: Option<&[f64]>,
    law: NoiseLaw,
    entries: &[f64],
) -> Result<(f64, Vec<[f64; 2]>), Error> {
    let asked = asked.clone().validated()?;
    if let Some(weights) = weights {
        Error::check_len("weights", asked.answers_len(), weights.len())?;
    }
    let line = Line::new(Along::new(law, asked.clone(), entries, FINE_BITS)?);
    let unit = line.along.column().powi(2);
    let each = line.summed_variances(weights).into_iter().zip(asked.parts()).map(|(sums, part)| {
        let [mean, rest] = sums.map(|sum| unit * sum);
        [mean, if of_totals(part) { 0.0 } else { rest.max(NOTHING * mean).max(f64::MIN_POSITIVE) }]
    });
    let each = each.collect();
    Ok((unit * line.constant, each))
}
