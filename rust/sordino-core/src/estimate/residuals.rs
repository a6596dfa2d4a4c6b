//! Residuals of tables, and the tables that are made of them.
//!
//! `f_T` is the margin on `T` centred along every axis, and `μ_S = Σ_{T⊆S} f_T ⊗ 1/n_{S∖T}`. Tables made of one family of
//! residuals agree on every common margin; the total `f_∅` is given.

use crate::error::Error;
use crate::parallel::{collected, each_slice, pieces};
use std::collections::HashMap;

/// Sets that are worked on at a time.
const TOGETHER: usize = 256;
/// Most attributes of a set.
const MOST_AXES: usize = 20;

/// One wanted table.
#[derive(Debug)]
pub(super) struct Table {
    dims: Vec<usize>,
    /// Where it begins among the tables.
    start: usize,
    pub(super) len: usize,
    /// Of every subset of its attributes, by bits, the number of its residual; of none what it is not.
    pub(super) residuals: Vec<usize>,
}

/// Residuals, and the tables that are made of them.
#[derive(Debug)]
pub struct Residuals {
    pub(super) tables: Vec<Table>,
    /// Where the residuals of each subset begin, and the end.
    pub(super) starts: Vec<usize>,
    pub(super) cells: usize,
    attributes: Vec<Vec<usize>>,
    levels: Vec<usize>,
}

impl Residuals {
    /// Tables of sets of attributes with these levels, of residuals of these subsets: all that are not empty.
    ///
    /// # Errors
    /// Attributes that there are not or out of order, a subset that is missing, or tables that are too large.
    pub fn new(levels: &[usize], sets: &[Vec<usize>], subsets: &[Vec<usize>]) -> Result<Self, Error> {
        let size = |set: &[usize]| {
            set.iter().try_fold(1_usize, |size, i| size.checked_mul(*levels.get(*i)?)).filter(|size| *size < 1 << 40)
        };
        let wrong = || Error::invalid("sets", "attributes in rising order, with all of their subsets");
        let mut starts = vec![0];
        for subset in subsets {
            starts.push(starts[starts.len() - 1] + size(subset).ok_or_else(wrong)?);
        }
        let numbers: HashMap<&[usize], usize> =
            subsets.iter().enumerate().map(|(k, set)| (set.as_slice(), k)).collect();
        let mut tables = Vec::with_capacity(sets.len());
        let mut cells = 0_usize;
        for set in sets {
            if set.len() > MOST_AXES || !set.is_sorted_by(|a, b| a < b) {
                return Err(wrong());
            }
            let len = size(set).ok_or_else(wrong)?;
            let of_bits = |bits: usize| -> Vec<usize> {
                set.iter().enumerate().filter(|(axis, _)| bits >> axis & 1 == 1).map(|(_, i)| *i).collect()
            };
            let residuals = (0..1_usize << set.len())
                .map(|bits| if bits == 0 { Some(usize::MAX) } else { numbers.get(of_bits(bits).as_slice()).copied() })
                .collect::<Option<Vec<usize>>>()
                .ok_or_else(wrong)?;
            tables.push(Table { dims: set.iter().map(|i| levels[*i]).collect(), start: cells, len, residuals });
            cells = cells.checked_add(len).filter(|cells| *cells < 1 << 31).ok_or_else(wrong)?;
        }
        Ok(Self { tables, starts, cells, attributes: subsets.to_vec(), levels: levels.to_vec() })
    }

    pub(crate) fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    /// Number of subsets.
    pub(crate) fn subsets(&self) -> usize {
        self.starts.len() - 1
    }

    /// Where the residuals of a subset are.
    pub(crate) fn range(&self, subset: usize) -> std::ops::Range<usize> {
        self.starts[subset]..self.starts[subset + 1]
    }

    /// A subset's attributes.
    pub(crate) fn attributes(&self, subset: usize) -> &[usize] {
        &self.attributes[subset]
    }

    /// Levels of an attribute.
    pub(crate) fn levels(&self, attribute: usize) -> usize {
        self.levels[attribute]
    }

    /// The subset that each table is of, and where its cells are among all.
    pub(crate) fn tables_of_subsets(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> + '_ {
        self.tables.iter().filter_map(|table| Some((*table.residuals.last()?, table.cells())))
    }

    /// Of a table its subsets, its centred means over the other axes, and how many cells those have.
    pub(crate) fn parts_of(&self, table: usize, values: &[f64]) -> Vec<(usize, Vec<f64>, f64)> {
        let table = &self.tables[table];
        let of = |(number, part): (&usize, Vec<f64>)| {
            let outside = table.len as f64 / part.len() as f64;
            (*number, part, outside)
        };
        table.residuals.iter().zip(table.parted(values)).skip(1).map(of).collect()
    }

    fn of<'a>(&self, residuals: &'a [f64], number: usize) -> &'a [f64] {
        &residuals[self.starts[number]..self.starts[number + 1]]
    }

    /// The tables of residuals, with this total.
    pub(super) fn tables(&self, residuals: &[f64], total: f64, out: &mut [f64]) {
        each_slice(pieces(out, self.tables.iter().map(|table| table.len)), &|k, slot| {
            slot.copy_from_slice(&self.tables[k].merged(|number| self.of(residuals, number), total));
        });
    }

    /// Adds what the adjoint makes of tables.
    pub(super) fn adjoint(&self, tables: &[f64], out: &mut [f64]) {
        for some in self.tables.chunks(TOGETHER) {
            let parts = collected(some.len(), &|k| some[k].parted(some[k].own(tables)));
            // One after the other, so that the sums are the same with any number of threads.
            for (table, parts) in some.iter().zip(parts) {
                for (number, part) in table.residuals.iter().zip(parts).skip(1) {
                    let slot = &mut out[self.starts[*number]..self.starts[*number + 1]];
                    slot.iter_mut().zip(part).for_each(|(slot, value)| *slot += value);
                }
            }
        }
    }

    /// `Σ_{S⊇T} ω_S/n_{S∖T}` of every subset.
    pub(crate) fn over_outside(&self, weights: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.subsets()];
        for (at, table) in self.tables.iter().enumerate() {
            for (bits, number) in table.residuals.iter().enumerate().skip(1) {
                let outside = table.dims.iter().enumerate().filter(|(axis, _)| bits >> axis & 1 == 0);
                sums[*number] += weights(at) * outside.map(|(_, n)| 1.0 / *n as f64).product::<f64>();
            }
        }
        sums
    }

    /// Of every table the largest `(Σ_{S⊇T} 1/n_{S∖T})/w_T` among its subsets.
    pub(super) fn steepness(&self, weights: &[f64]) -> Vec<f64> {
        let sums = self.over_outside(|_| 1.0);
        let of = |number: &usize| sums[*number] / weights[*number];
        self.tables.iter().map(|table| table.residuals.iter().skip(1).map(of).fold(0.0, f64::max)).collect()
    }
}

/// Adds to every line of `n` lines of `inner` numbers what a block has on average.
fn spread(array: &mut [f64], means: &[f64], n: usize, inner: usize) {
    if inner == 1 {
        for (block, mean) in array.chunks_exact_mut(n).zip(means) {
            let share = mean / n as f64;
            for slot in block {
                *slot += share;
            }
        }
        return;
    }
    let mut share = vec![0.0; inner];
    for (block, mean) in array.chunks_exact_mut(n * inner).zip(means.chunks_exact(inner)) {
        share.iter_mut().zip(mean).for_each(|(share, mean)| *share = mean / n as f64);
        for line in block.chunks_exact_mut(inner) {
            line.iter_mut().zip(&share).for_each(|(slot, share)| *slot += share);
        }
    }
}

/// Centres blocks of `n` lines of `inner` numbers, and returns the means.
fn centred(array: &mut [f64], n: usize, inner: usize) -> Vec<f64> {
    let mut means = vec![0.0; array.len() / n];
    if inner == 1 {
        for (block, mean) in array.chunks_exact_mut(n).zip(&mut means) {
            *mean = block.iter().fold(0.0, |sum, value| sum + value) / n as f64;
            for value in block {
                *value -= *mean;
            }
        }
        return means;
    }
    for (block, mean) in array.chunks_exact_mut(n * inner).zip(means.chunks_exact_mut(inner)) {
        for line in block.chunks_exact(inner) {
            mean.iter_mut().zip(line).for_each(|(mean, value)| *mean += value);
        }
        for mean in mean.iter_mut() {
            *mean /= n as f64;
        }
        for line in block.chunks_exact_mut(inner) {
            line.iter_mut().zip(&*mean).for_each(|(value, mean)| *value -= mean);
        }
    }
    means
}

impl Table {
    pub(super) fn own<'a>(&self, tables: &'a [f64]) -> &'a [f64] {
        &tables[self.cells()]
    }

    /// Where its cells are among those of all tables.
    pub(super) fn cells(&self) -> std::ops::Range<usize> {
        self.start..self.start + self.len
    }

    /// The table: axis after axis, from the last, what has it and what has not become one.
    fn merged<'a>(&self, residual: impl Fn(usize) -> &'a [f64], total: f64) -> Vec<f64> {
        let mut arrays: Vec<Vec<f64>> = Vec::with_capacity(self.residuals.len());
        arrays.push(vec![total]);
        arrays.extend(self.residuals[1..].iter().map(|number| residual(*number).to_vec()));
        let mut inner = 1;
        for axis in (0..self.dims.len()).rev() {
            let n = self.dims[axis];
            let with = arrays.split_off(1 << axis);
            arrays = arrays
                .iter()
                .zip(with)
                .map(|(without, mut with)| {
                    spread(&mut with, without, n, inner);
                    with
                })
                .collect();
            inner *= n;
        }
        arrays.swap_remove(0)
    }

    /// The parts of a table on all subsets, by bits: the transposed of [`Self::merged`].
    pub(super) fn parted(&self, table: &[f64]) -> Vec<Vec<f64>> {
        let mut arrays = vec![table.to_vec()];
        let mut inner = self.len;
        for n in &self.dims {
            inner /= n;
            let mut with = Vec::with_capacity(arrays.len());
            for array in &mut arrays {
                let means = centred(array, *n, inner);
                with.push(std::mem::replace(array, means));
            }
            arrays.extend(with);
        }
        arrays
    }
}
