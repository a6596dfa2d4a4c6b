//! Sums of cells over boxes of a table, from the cells that were estimated: post-processing, free.

use super::Strategy;
use crate::error::Error;
use crate::interrupt::poll;
use crate::parallel::collected;
use rayon::prelude::*;
use std::ops::Range;

/// Boxes between two looks at signals.
const TOGETHER: usize = 64;

/// Boxes of a table, row by row: first and last cell on every axis, ends included.
#[derive(Debug, Clone, Copy)]
pub struct Boxes<'a> {
    /// Lengths of the axes.
    pub shape: &'a [usize],
    /// First cells.
    pub first: &'a [usize],
    /// Last cells.
    pub last: &'a [usize],
}

impl<'a> Boxes<'a> {
    /// Whether every box lies in the table and none is empty.
    fn check(&self) -> Result<(), Error> {
        let axes = self.shape.len();
        Error::check_len("last", self.first.len(), self.last.len())?;
        let inside = |(k, (first, last)): (usize, (&usize, &usize))| first <= last && *last < self.shape[k % axes];
        if axes == 0 || !self.first.len().is_multiple_of(axes) {
            return Err(Error::Shape { name: "first", expected: axes, got: self.first.len() });
        }
        if !self.first.iter().zip(self.last).enumerate().all(inside) {
            return Err(Error::invalid("boxes", "must lie in the table, first cells before last cells"));
        }
        Ok(())
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.first.len() / self.shape.len()
    }

    /// First and last cells of each.
    pub(super) fn each(self) -> impl Iterator<Item = (&'a [usize], &'a [usize])> {
        let axes = self.shape.len();
        self.first.chunks_exact(axes).zip(self.last.chunks_exact(axes))
    }

    /// The same boxes along some axes alone.
    pub(super) fn of_axes(&self, axes: &Range<usize>) -> Lines<'a> {
        let of =
            |ends: &[usize]| ends.chunks_exact(self.shape.len()).flat_map(|end| &end[axes.clone()]).copied().collect();
        Lines { shape: &self.shape[axes.clone()], first: of(self.first), last: of(self.last) }
    }
}

/// Boxes that own their ends.
pub(super) struct Lines<'a> {
    pub shape: &'a [usize],
    first: Vec<usize>,
    last: Vec<usize>,
}

impl Lines<'_> {
    pub(super) fn boxes(&self) -> Boxes<'_> {
        Boxes { shape: self.shape, first: &self.first, last: &self.last }
    }

    pub(super) fn each(&self) -> impl Iterator<Item = (&[usize], &[usize])> {
        self.boxes().each()
    }
}

/// A number as an unevaluated sum of two, for sums whose differences are read.
#[derive(Debug, Clone, Copy, Default)]
struct Double(f64, f64);

impl Double {
    fn add(self, other: Self) -> Self {
        let sum = self.0 + other.0;
        let part = sum - self.0;
        let error = (self.0 - (sum - part)) + (other.0 - part) + self.1 + other.1;
        let high = sum + error;
        Self(high, error - (high - sum))
    }

    fn negated(self) -> Self {
        Self(-self.0, -self.1)
    }
}

/// The sum of `cells` over every box, by a summed-area table in twice the precision.
///
/// # Errors
/// [`Error::Shape`] if the cells are no table of this shape, [`Error::InvalidParameter`] for a box outside of it.
pub fn box_sums(cells: &[f64], boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
    boxes.check()?;
    Error::check_len("cells", boxes.shape.iter().product(), cells.len())?;
    let mut table: Vec<Double> = cells.iter().map(|cell| Double(*cell, 0.0)).collect();
    let mut inner = 1;
    for len in boxes.shape.iter().rev() {
        for block in table.chunks_exact_mut(len * inner) {
            for at in inner..block.len() {
                block[at] = block[at].add(block[at - inner]);
            }
        }
        inner *= len;
    }
    let axes = boxes.shape.len();
    let sum = |k: usize| {
        let (first, last) = (&boxes.first[k * axes..][..axes], &boxes.last[k * axes..][..axes]);
        let mut total = Double::default();
        // Corners: the last cell of each axis, or the one before the first, if there is one, with the other sign.
        let before: Vec<usize> = (0..boxes.shape.len()).filter(|axis| first[*axis] > 0).collect();
        for corner in 0..1usize << before.len() {
            let mut end = last.to_vec();
            for (bit, axis) in before.iter().enumerate() {
                if corner >> bit & 1 == 1 {
                    end[*axis] = first[*axis] - 1;
                }
            }
            let value = table[boxes.shape.iter().zip(&end).fold(0, |at, (len, place)| at * len + place)];
            total = total.add(if corner.count_ones().is_multiple_of(2) { value } else { value.negated() });
        }
        total.0
    };
    Ok(collected(boxes.count(), &sum))
}

/// The variance of the sum over every box at unit noise.
///
/// # Errors
/// As [`box_sums`]; [`Error::Unsupported`] if a sum is outside the measured row space.
pub fn box_variances(strategy: &dyn Strategy, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
    boxes.check()?;
    strategy.box_variances(boxes)
}

/// Each by itself, in several threads; signals are looked for in between.
pub(super) fn one_by_one<S: Strategy + ?Sized>(strategy: &S, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
    let (axes, mut out) = (boxes.shape.len(), Vec::with_capacity(boxes.count()));
    for (first, last) in boxes.first.chunks(axes * TOGETHER).zip(boxes.last.chunks(axes * TOGETHER)) {
        poll()?;
        let pairs = first.par_chunks_exact(axes).zip(last.par_chunks_exact(axes));
        let some: Result<Vec<f64>, Error> =
            pairs.map(|(first, last)| strategy.box_variance(boxes.shape, first, last)).collect();
        out.extend(some?);
    }
    Ok(out)
}

/// The variance of one, by the weights of its row.
pub(super) fn by_weights<S: Strategy + ?Sized>(
    strategy: &S,
    shape: &[usize],
    first: &[usize],
    last: &[usize],
) -> Result<f64, Error> {
    let weights = strategy.weights(&indicator(shape, first, last))?;
    let own: f64 = weights.iter().zip(strategy.unit_variances()).map(|(w, v)| w * w * v).sum();
    Ok(own + strategy.common_noise() * weights.iter().sum::<f64>().powi(2))
}

/// Cells of a box.
pub(super) fn volume(first: &[usize], last: &[usize]) -> f64 {
    first.iter().zip(last).map(|(first, last)| (last - first + 1) as f64).product()
}

/// Axes of more than one cell.
pub(super) fn long_axes(shape: &[usize]) -> Vec<usize> {
    (0..shape.len()).filter(|axis| shape[*axis] > 1).collect()
}

/// Which axes of a table belong to each factor of a product, by the cells of the factors: several to some, such as cells.
///
/// # Errors
/// [`Error::Shape`] if the table has another shape.
pub(super) fn axes_of(factors: impl Iterator<Item = usize>, shape: &[usize]) -> Result<Vec<Range<usize>>, Error> {
    let mut at = 0;
    factors
        .map(|cells| {
            let (start, mut len) = (at, 1);
            while at < shape.len() && (at == start || len < cells) {
                len *= shape[at];
                at += 1;
            }
            Error::check_len("shape", cells, len).map(|()| start..at)
        })
        .collect()
}

/// The box as a row of queries.
pub(super) fn indicator(shape: &[usize], first: &[usize], last: &[usize]) -> Vec<f64> {
    let inside = |len: usize, first: usize, last: usize| {
        let mut line = vec![0.0; len];
        line[first..=last].fill(1.0);
        line
    };
    let lines: Vec<Vec<f64>> =
        shape.iter().zip(first.iter().zip(last)).map(|(len, (first, last))| inside(*len, *first, *last)).collect();
    crate::workload::outer(&lines)
}

#[cfg(test)]
mod tests {
    use super::{Boxes, box_sums, box_variances, indicator};
    use crate::door::NoiseLaw;
    use crate::strategy::{Mechanism, Recipe};
    use crate::workload::Workload;

    /// All boxes of a small table.
    fn all(shape: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let mut boxes = vec![(vec![], vec![])];
        for len in shape {
            boxes = boxes
                .iter()
                .flat_map(|(first, last): &(Vec<usize>, Vec<usize>)| {
                    (0..*len).flat_map(move |i| {
                        (i..*len).map(move |j| ([first, &[i][..]].concat(), [last, &[j][..]].concat()))
                    })
                })
                .collect();
        }
        boxes.into_iter().fold((vec![], vec![]), |(a, b), (first, last)| ([a, first].concat(), [b, last].concat()))
    }

    #[test]
    fn sums_and_variances_are_those_of_the_rows() {
        let ranges = |len| Workload::Ranges { len };
        let cells = |len| Workload::Histogram { len };
        let cases = [
            (vec![7], ranges(7)),
            (vec![3, 4], Workload::Kronecker { factors: vec![ranges(3), ranges(4)] }),
            (vec![3, 2, 4], Workload::Kronecker { factors: vec![ranges(3), cells(2), ranges(4)] }),
        ];
        for (shape, workload) in cases {
            let n: usize = shape.iter().product();
            let table: Vec<f64> = (0..n).map(|i| 1e15 + (i * i % 11) as f64).collect();
            let (first, last) = all(&shape);
            let boxes = Boxes { shape: &shape, first: &first, last: &last };
            let sums = box_sums(&table, boxes).unwrap();
            let rows: Vec<Vec<f64>> = first
                .chunks(shape.len())
                .zip(last.chunks(shape.len()))
                .map(|(first, last)| indicator(&shape, first, last))
                .collect();
            for (row, sum) in rows.iter().zip(&sums) {
                let exact: i128 = row.iter().zip(&table).map(|(a, x)| *a as i128 * *x as i128).sum();
                assert_eq!(*sum, exact as f64);
            }
            for (mechanism, law) in [
                (Mechanism::Identity, NoiseLaw::Laplace),
                (Mechanism::Balanced, NoiseLaw::Gaussian),
                (Mechanism::WeightedTree, NoiseLaw::Laplace),
            ] {
                let recipe = Recipe { workload: workload.clone(), mechanism, law };
                let strategy = recipe.build().unwrap();
                let found = box_variances(&*strategy, boxes).unwrap();
                let noise = strategy.unit_variances();
                for (row, variance) in rows.iter().zip(&found) {
                    let weights = strategy.weights(row).unwrap();
                    let known: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
                    assert!((variance / known - 1.0).abs() < 1e-9, "{mechanism:?} {variance} {known}");
                }
                let y: Vec<f64> = (0..strategy.measured_len()).map(|i| (i * 7 % 13) as f64).collect();
                let (mut answers, mut expected) =
                    (vec![0.0; workload.answers_len()], vec![0.0; workload.answers_len()]);
                strategy.decode(&y, &mut answers);
                workload.apply(&strategy.cells(&y).unwrap(), &mut expected);
                assert!(answers.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-9 * (1.0 + a.abs())));
                let mut variances = vec![0.0; workload.answers_len()];
                strategy.variances(&mut variances);
                let (mean, largest) = strategy.spread().unwrap();
                let (known_mean, known_largest) = crate::workload::spread(&variances);
                assert!((mean / known_mean - 1.0).abs() < 1e-9, "{mechanism:?} {mean} {known_mean}");
                assert!((largest.unwrap() / known_largest - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn boxes_outside_are_refused() {
        for (first, last) in
            [(vec![0], vec![3]), (vec![2], vec![1]), (vec![0, 1], vec![1]), (vec![usize::MAX], vec![0])]
        {
            assert!(box_sums(&[1.0; 3], Boxes { shape: &[3], first: &first, last: &last }).is_err());
        }
        assert!(box_sums(&[1.0; 4], Boxes { shape: &[3], first: &[0], last: &[0] }).is_err());
        assert!(box_sums(&[1.0; 4], Boxes { shape: &[2, 2], first: &[0], last: &[0] }).is_err());
        assert!(box_sums(&[1.0; 3], Boxes { shape: &[3], first: &[], last: &[] }).unwrap().is_empty());
    }
}
