//! Kronecker products of running sums, all ranges and cells: the balanced root of every factor along its axis.
//!
//! Least errors of products multiply, and so do the errors and the bounds of the factors' strategies. Columns are outer
//! products of columns: their norms multiply, and `b_i·b_j` is the product of those of the factors, so that it is below
//! zero by at most that of one factor times the largest norms of the others.

use super::balanced::{Balanced, Precision};
use super::{Encoded, Encoding, Geometry, Input, Strategy, table};
use crate::error::Error;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{Workload, along, outer};

/// A factor: cells as they are, or a balanced root.
#[derive(Debug)]
enum Axis {
    Cells(usize),
    Root(Box<Balanced>),
}

impl Axis {
    fn len(&self) -> usize {
        match self {
            Self::Cells(len) => *len,
            Self::Root(root) => root.measured_len(),
        }
    }

    /// Largest squared norm of a column, and how far a product of two may fall below zero.
    fn squares(&self) -> (Upper, Upper) {
        match self {
            Self::Cells(_) => (Upper::exact(1.0), Upper::ZERO),
            Self::Root(root) => root.squares(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Product {
    axes: Vec<Axis>,
    /// Answers of each factor.
    answers: Vec<usize>,
}

/// A root, the cells after its axis, and the bound of what it takes in.
struct Stage<'a> {
    root: &'a Balanced,
    inner: usize,
    max_abs: u64,
}

impl Product {
    pub(super) fn new(workload: &Workload) -> Result<Self, Error> {
        let factors = workload.kronecker_factors();
        let cells = |factor: &Workload| matches!(factor, Workload::Histogram { .. });
        let roots = factors.iter().filter(|factor| !cells(factor)).count();
        if roots == 0 {
            return Err(Error::Unsupported("cells need no balanced root: measure them".into()));
        }
        // Bits of the factors add up.
        let precision = if roots == 1 { Precision::Full } else { Precision::Shared };
        let axis = |factor: &Workload| match factor {
            Workload::Histogram { len } => Ok(Axis::Cells(*len)),
            _ => Balanced::new(factor, precision).map(|root| Axis::Root(Box::new(root))),
        };
        let axes = factors.iter().map(axis).collect::<Result<_, _>>()?;
        Ok(Self { axes, answers: factors.iter().map(Workload::answers_len).collect() })
    }

    fn cells_len(&self) -> usize {
        self.axes.iter().map(Axis::len).product()
    }

    /// The roots from the last axis to the first, each with the bound that the one before leaves; the last may leave floats.
    fn stages(&self, max_abs: u64) -> Result<(Vec<Stage<'_>>, Encoding), Error> {
        let (mut inner, mut stages) = (1, Vec::new());
        let mut encoding = Encoding::Exact { max_abs };
        for axis in self.axes.iter().rev() {
            if let Axis::Root(root) = axis {
                let Encoding::Exact { max_abs } = encoding else {
                    return Err(Error::Overflow("the sums of a product overflow; declare a smaller max_value".into()));
                };
                encoding = root.encoding(max_abs)?;
                stages.push(Stage { root, inner, max_abs });
            }
            inner *= axis.len();
        }
        Ok((stages, encoding))
    }

    /// Each axis in turn, of a table that has these lengths before and those after.
    fn each_axis(
        &self,
        table: &[f64],
        after: &[usize],
        map: impl Fn(&Balanced, &[f64], &mut [f64]) + Sync,
    ) -> Vec<f64> {
        let mut values = table.to_vec();
        let mut inner = 1;
        for (axis, len) in self.axes.iter().zip(after).rev() {
            if let Axis::Root(root) = axis {
                values = along((axis.len(), *len), inner, &values, |line, out| map(root, line, out));
            }
            inner *= len;
        }
        values
    }
}

impl Strategy for Product {
    fn measured_len(&self) -> usize {
        self.cells_len()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L2
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let squares: Vec<(Upper, Upper)> = self.axes.iter().map(Axis::squares).collect();
        let all_but = |left_out: usize| {
            let kept = squares.iter().enumerate().filter(|(k, _)| *k != left_out);
            kept.fold(Upper::exact(1.0), |product, (_, (column, _))| product * *column)
        };
        let column = all_but(squares.len());
        let opposed = (0..squares.len()).map(|k| squares[k].1 * all_but(k)).fold(Upper::ZERO, Upper::max);
        Ok(unit.from_columns(column.sqrt(), || {
            let pair = column + opposed;
            (pair + pair).sqrt()
        }))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let (stages, encoding) = self.stages(max_abs)?;
        Ok(match (encoding, stages.last()) {
            (Encoding::Float { error_l2, max_abs }, Some(stage)) => {
                let lines = self.cells_len() / stage.root.measured_len();
                Encoding::Float { error_l2: error_l2 * Upper::integer(lines as u128).sqrt(), max_abs }
            }
            (encoding, _) => encoding,
        })
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let (stages, _) = self.stages(max_abs)?;
        let (last, stages) = stages.split_last().expect("a product has a root");
        let exact = |stage: &Stage<'_>, values: &[i64]| {
            let len = stage.root.measured_len();
            along((len, len), stage.inner, values, |line, out| {
                let encoded = stage.root.encode(Input::Cells(line), stage.max_abs, Encoded::Exact(out));
                encoded.expect("a table is served");
            })
        };
        let mut values = table(x)?.to_vec();
        for stage in stages {
            values = exact(stage, &values);
        }
        match out {
            Encoded::Exact(units) => units.copy_from_slice(&exact(last, &values)),
            Encoded::Float(floats) => {
                let len = last.root.measured_len();
                floats.copy_from_slice(&along((len, len), last.inner, &values, |line, out| {
                    let encoded = last.root.encode(Input::Cells(line), last.max_abs, Encoded::Float(out));
                    encoded.expect("a table is served");
                }));
            }
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        out.copy_from_slice(&self.each_axis(y, &self.answers, Strategy::decode));
    }

    fn variances(&self, out: &mut [f64]) {
        let variances = |(axis, len): (&Axis, &usize)| {
            let mut variances = vec![1.0; *len];
            if let Axis::Root(root) = axis {
                root.variances(&mut variances);
            }
            variances
        };
        out.copy_from_slice(&outer(&self.axes.iter().zip(&self.answers).map(variances).collect::<Vec<_>>()));
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        self.axes.iter().try_fold((1.0, Some(1.0)), |(mean, largest), axis| match axis {
            Axis::Cells(_) => Some((mean, largest)),
            Axis::Root(root) => {
                let (own, most) = root.spread()?;
                Some((mean * own, largest.zip(most).map(|(a, b)| a * b)))
            }
        })
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        let lengths: Vec<usize> = self.axes.iter().map(Axis::len).collect();
        Some(self.each_axis(y, &lengths, |root, line, out| out.copy_from_slice(&root.estimate(line))))
    }

    fn box_variance(&self, shape: &[usize], first: &[usize], last: &[usize]) -> Result<f64, Error> {
        let (mut product, mut at) = (1.0, 0);
        for axis in &self.axes {
            // Cells may have several axes of the table, a root has one.
            let (start, mut len) = (at, 1);
            while at < shape.len() && (at == start || len < axis.len()) {
                len *= shape[at];
                at += 1;
            }
            let (first, last) = (&first[start..at], &last[start..at]);
            Error::check_len("shape", axis.len(), len)?;
            product *= match axis {
                Axis::Cells(_) => first.iter().zip(last).map(|(first, last)| (last - first + 1) as f64).product(),
                Axis::Root(root) => root.box_variance(&shape[start..at], first, last)?,
            };
        }
        Ok(product)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let cells: Vec<usize> = self.axes.iter().map(Axis::len).collect();
        Ok(self.each_axis(row, &cells, |root, line, out| out.copy_from_slice(&root.solve_transposed(line))))
    }
}
