//! Which products of features are summed, split into two halves of the axes so that sums are matrix products.

use super::MOST_FEATURES;
use super::axis::Axis;
use crate::error::Error;
use std::collections::HashMap;

/// Multi-indices `m`: all with `m_j < sizes[j]`, or a list of some of them.
///
/// The axes are split in two halves; an index is a pair of a left and a right multi-index, `φ_m = L_a R_b`. Features are
/// in the order of the left index, then the right one.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexSet {
    sizes: Vec<usize>,
    pub(super) left: Half,
    pub(super) right: Half,
    /// For a list: where the pairs of every left index start, and their right indices.
    pub(super) pairs: Option<Pairs>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pairs {
    pub starts: Vec<usize>,
    pub columns: Vec<u32>,
}

/// Multi-indices on some of the axes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Half {
    pub first: usize,
    pub last: usize,
    /// The multi-indices of a list; all for `None`.
    listed: Option<Vec<Vec<u32>>>,
    pub len: usize,
}

impl IndexSet {
    /// All indices below `sizes`.
    ///
    /// # Errors
    /// If a size is zero, or there are more than 2^26 indices.
    pub fn tensor(sizes: Vec<usize>) -> Result<Self, Error> {
        let total = sizes.iter().try_fold(1usize, |product, size| product.checked_mul(*size));
        let total = total.filter(|total| !sizes.is_empty() && *total > 0);
        if total.is_none_or(|total| total > MOST_FEATURES) {
            return Err(Error::invalid("degree", "must be positive, with at most 2^26 features in all"));
        }
        let middle = sizes.len().div_ceil(2);
        let half =
            |first: usize, last: usize| Half { first, last, listed: None, len: sizes[first..last].iter().product() };
        let (left, right) = (half(0, middle), half(middle, sizes.len()));
        Ok(Self { sizes, left, right, pairs: None })
    }

    /// The indices given, `count × dimension`, row-major, in any order; the zero index is added.
    ///
    /// # Errors
    /// If the array is ragged, repeats an index or is too large.
    pub fn listed(dimension: usize, indices: &[u32]) -> Result<Self, Error> {
        if dimension == 0 || !indices.len().is_multiple_of(dimension) || indices.len() > MOST_FEATURES {
            return Err(Error::invalid("index_set", "must be an array of one index a row, of at most 2^26 entries"));
        }
        let middle = dimension.div_ceil(2);
        let zero = vec![0; dimension];
        let mut rows: Vec<&[u32]> = indices.chunks_exact(dimension).collect();
        if !rows.contains(&&zero[..]) {
            rows.push(&zero);
        }
        let (left, left_of) = distinct(rows.iter().map(|row| &row[..middle]));
        let (right, right_of) = distinct(rows.iter().map(|row| &row[middle..]));
        // The zero index comes first, as in a tensor set.
        let mut pairs: Vec<(u32, u32)> = left_of.into_iter().zip(right_of).collect();
        pairs.sort_unstable();
        if pairs.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Error::invalid("index_set", "must not repeat an index"));
        }
        let starts = (0..=left.len()).map(|a| pairs.partition_point(|pair| (pair.0 as usize) < a)).collect();
        let columns = pairs.iter().map(|pair| pair.1).collect();
        let sizes =
            (0..dimension).map(|axis| rows.iter().map(|row| row[axis] as usize).max().unwrap_or(0) + 1).collect();
        let half = |first: usize, last: usize, listed: Vec<Vec<u32>>| Half {
            first,
            last,
            len: listed.len(),
            listed: Some(listed),
        };
        Ok(Self {
            left: half(0, middle, left),
            right: half(middle, dimension, right),
            sizes,
            pairs: Some(Pairs { starts, columns }),
        })
    }

    /// Largest index and one, of every axis.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Number of indices.
    pub fn len(&self) -> usize {
        self.pairs.as_ref().map_or(self.left.len * self.right.len, |pairs| pairs.columns.len())
    }

    /// Never: the zero index is always there.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Whether all indices below the sizes are there.
    pub fn is_tensor(&self) -> bool {
        self.pairs.is_none()
    }

    /// The indices in the order of the features, row-major.
    pub fn indices(&self) -> Vec<u32> {
        let mut out = Vec::with_capacity(self.len() * self.sizes.len());
        for a in 0..self.left.len {
            self.for_row(a, |b| {
                self.left.index(a, &self.sizes, &mut out);
                self.right.index(b, &self.sizes, &mut out);
            });
        }
        out
    }

    /// Calls back with every right index of a left one.
    fn for_row(&self, a: usize, mut each: impl FnMut(usize)) {
        match &self.pairs {
            None => (0..self.right.len).for_each(each),
            Some(pairs) => pairs.row(a).iter().for_each(|b| each(*b as usize)),
        }
    }
}

impl Pairs {
    /// Right indices of a left one.
    pub(super) fn row(&self, a: usize) -> &[u32] {
        &self.columns[self.starts[a]..self.starts[a + 1]]
    }
}

/// The nearest integer, ties to even: adding 1.5·2^52 leaves no bits for a fraction.
#[inline(always)]
fn nearest_integer(value: f64) -> f64 {
    const MAGIC: f64 = 6_755_399_441_055_744.0;
    (value + MAGIC) - MAGIC
}

/// The distinct ones, the most frequent first among those of the same degree, and the number of each.
fn distinct<'a>(rows: impl Iterator<Item = &'a [u32]> + Clone) -> (Vec<Vec<u32>>, Vec<u32>) {
    let mut counts: HashMap<&[u32], usize> = HashMap::new();
    for row in rows.clone() {
        *counts.entry(row).or_default() += 1;
    }
    let degree = |row: &[u32]| row.iter().map(|m| u64::from(*m)).sum::<u64>();
    let mut order: Vec<(&[u32], usize)> = counts.into_iter().collect();
    // Zero first; then by degree: in a set of bounded degree the right indices of a left one are then the first ones.
    order.sort_unstable_by(|(x, nx), (y, ny)| (degree(x), ny, y).cmp(&(degree(y), nx, x)));
    let number: HashMap<&[u32], u32> = order.iter().enumerate().map(|(i, (row, _))| (*row, i as u32)).collect();
    let of = rows.map(|row| number[row]).collect();
    (order.into_iter().map(|(row, _)| row.to_vec()).collect(), of)
}

impl Half {
    /// Appends a multi-index.
    fn index(&self, number: usize, sizes: &[usize], out: &mut Vec<u32>) {
        if let Some(listed) = &self.listed {
            out.extend_from_slice(&listed[number]);
            return;
        }
        let start = out.len();
        let mut rest = number;
        for size in sizes[self.first..self.last].iter().rev() {
            out.push((rest % size) as u32);
            rest /= size;
        }
        out[start..].reverse();
    }

    /// Products of the features of the axes, in units of `2^-bits`: `values[j]` has one row of `points` entries for
    /// every feature of axis `j`, the first of them 1 if `rounded`: then products are rounded to integers.
    #[inline(always)]
    pub(super) fn fill(&self, values: &[Vec<f64>], points: usize, bits: u32, rounded: bool, out: &mut Vec<f64>) {
        let scale = 2f64.powi(bits as i32);
        out.clear();
        if let Some(listed) = &self.listed {
            for index in listed {
                let start = out.len();
                out.resize(start + points, scale);
                // T_0 = 1 needs no product, but the coefficient of a query does.
                for (axis, m) in (self.first..).zip(index).filter(|(_, m)| **m > 0 || !rounded) {
                    let row = &values[axis][*m as usize * points..][..points];
                    out[start..].iter_mut().zip(row).for_each(|(product, value)| *product *= value);
                }
                if rounded {
                    out[start..].iter_mut().for_each(|product| *product = nearest_integer(*product));
                }
            }
            return;
        }
        out.resize(points, scale);
        let mut next = Vec::new();
        for axis in self.first..self.last {
            next.clear();
            next.resize(out.len() / points * values[axis].len(), 0.0);
            let finish = rounded && axis + 1 == self.last;
            let mut rows = next.chunks_exact_mut(points);
            for product in out.chunks_exact(points) {
                // The values come first: a pair that lacks one must not use up a row.
                for (value, row) in values[axis].chunks_exact(points).zip(rows.by_ref()) {
                    let entries = row.iter_mut().zip(product).zip(value);
                    if finish {
                        entries.for_each(|((entry, product), value)| *entry = nearest_integer(product * value));
                    } else {
                        entries.for_each(|((entry, product), value)| *entry = product * value);
                    }
                }
            }
            std::mem::swap(out, &mut next);
        }
    }

    /// Bounds: of the error of a computed product before rounding, and of a product.
    pub(super) fn error(&self, axes: &[Axis]) -> (f64, f64) {
        let (mut error, mut largest) = (0.0, 1.0);
        for axis in &axes[self.first..self.last] {
            let (e, m) = (axis.error(), axis.largest());
            error = error * (m + e) + largest * e;
            largest *= m;
            error += (largest + error) * f64::EPSILON;
        }
        (error * 1.01, largest * 1.01)
    }
}
