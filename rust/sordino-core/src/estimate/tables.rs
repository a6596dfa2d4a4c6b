//! Tables that agree on what they have in common, and have no negative cells.
//!
//! Tables of several sets `S` of attributes are made of residuals: `f_T` is the margin on `T` centred along every axis, and
//! `μ_S = Σ_{T⊆S} f_T ⊗ 1/n_{S∖T}`. Tables made of one family of residuals agree on every common margin; the total `f_∅` is
//! given. [`nearest_tables`] is the family nearest to a published one, `½ Σ_T w_T ‖f_T − y_T‖²`, whose tables are not negative.
//!
//! The dual is maximised over tables `λ_S ≥ 0` by accelerated projected gradients with an exact step: with
//! `(E*λ)_T = Σ_{S⊇T} Π_T(Σ_{S∖T} λ_S)/n_{S∖T}` the residuals are `y_T + (E*λ)_T/w_T`, and the gradient changes by at most
//! `L = max_T (Σ_{S⊇T} 1/n_{S∖T})/w_T` times what `λ` does, since parts on different `T` are orthogonal. What comes out is
//! mixed with uniform tables until no cell is negative, so that it is feasible, and the duality gap says how far from the
//! nearest it can be.

use crate::error::Error;
use crate::interrupt::poll;
use rayon::prelude::*;
use std::collections::HashMap;

/// Iterations between two looks at the gap.
const LOOK: usize = 5;
/// Sets that are worked on at a time.
const TOGETHER: usize = 256;
/// Most attributes of a set.
const MOST_AXES: usize = 20;

/// Tables, and how near they are to the nearest.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestTables {
    /// The tables, one after the other, row by row.
    pub tables: Vec<f64>,
    /// At most so much is half the squared distance above the least.
    pub gap: f64,
    /// The share of uniform tables that was mixed in.
    pub mixed: f64,
    /// Iterations.
    pub iterations: usize,
}

/// One wanted table.
#[derive(Debug)]
struct Table {
    dims: Vec<usize>,
    /// Where it begins among the tables.
    start: usize,
    len: usize,
    /// Of every subset of its attributes, by bits, the number of its residual; of none what it is not.
    residuals: Vec<usize>,
}

/// Residuals, and the tables that are made of them.
#[derive(Debug)]
pub struct Residuals {
    tables: Vec<Table>,
    /// Where the residuals of each subset begin, and the end.
    starts: Vec<usize>,
    cells: usize,
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
        Ok(Self { tables, starts, cells })
    }

    fn len(&self) -> usize {
        self.starts[self.starts.len() - 1]
    }

    fn of<'a>(&self, residuals: &'a [f64], number: usize) -> &'a [f64] {
        &residuals[self.starts[number]..self.starts[number + 1]]
    }

    /// The tables of residuals, with this total.
    fn tables(&self, residuals: &[f64], total: f64, out: &mut [f64]) {
        let mut rest = out;
        let mut slots = Vec::with_capacity(self.tables.len());
        for table in &self.tables {
            let (slot, after) = rest.split_at_mut(table.len);
            slots.push((table, slot));
            rest = after;
        }
        slots.into_par_iter().with_min_len(16).for_each(|(table, slot)| {
            slot.copy_from_slice(&table.merged(|number| self.of(residuals, number), total));
        });
    }

    /// Adds what the adjoint makes of tables.
    fn adjoint(&self, tables: &[f64], out: &mut [f64]) {
        for some in self.tables.chunks(TOGETHER) {
            let parts: Vec<Vec<Vec<f64>>> =
                some.par_iter().with_min_len(16).map(|table| table.parted(table.own(tables))).collect();
            // One after the other, so that the sums are the same with any number of threads.
            for (table, parts) in some.iter().zip(parts) {
                for (number, part) in table.residuals.iter().zip(parts).skip(1) {
                    let slot = &mut out[self.starts[*number]..self.starts[*number + 1]];
                    slot.iter_mut().zip(part).for_each(|(slot, value)| *slot += value);
                }
            }
        }
    }

    /// `max_T (Σ_{S⊇T} 1/n_{S∖T})/w_T`.
    fn steepness(&self, weights: &[f64]) -> f64 {
        let mut sums = vec![0.0; weights.len()];
        for table in &self.tables {
            for (bits, number) in table.residuals.iter().enumerate().skip(1) {
                let outside = table.dims.iter().enumerate().filter(|(axis, _)| bits >> axis & 1 == 0);
                sums[*number] += outside.map(|(_, n)| 1.0 / *n as f64).product::<f64>();
            }
        }
        sums.iter().zip(weights).map(|(sum, weight)| sum / weight).fold(0.0, f64::max)
    }
}

impl Table {
    fn own<'a>(&self, tables: &'a [f64]) -> &'a [f64] {
        &tables[self.start..self.start + self.len]
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
                    for (block, mean) in with.chunks_exact_mut(n * inner).zip(without.chunks_exact(inner)) {
                        for line in block.chunks_exact_mut(inner) {
                            for (slot, value) in line.iter_mut().zip(mean) {
                                *slot += value / n as f64;
                            }
                        }
                    }
                    with
                })
                .collect();
            inner *= n;
        }
        arrays.swap_remove(0)
    }

    /// The parts of a table on all subsets, by bits: the transposed of [`Self::merged`].
    fn parted(&self, table: &[f64]) -> Vec<Vec<f64>> {
        let mut arrays = vec![table.to_vec()];
        let mut inner = self.len;
        for n in &self.dims {
            inner /= n;
            let mut with = Vec::with_capacity(arrays.len());
            for array in &mut arrays {
                let mut means = Vec::with_capacity(array.len() / n);
                for block in array.chunks_exact_mut(n * inner) {
                    let mut mean = vec![0.0; inner];
                    for line in block.chunks_exact(inner) {
                        mean.iter_mut().zip(line).for_each(|(mean, value)| *mean += value);
                    }
                    for mean in &mut mean {
                        *mean /= *n as f64;
                    }
                    for line in block.chunks_exact_mut(inner) {
                        line.iter_mut().zip(&mean).for_each(|(value, mean)| *value -= mean);
                    }
                    means.extend(mean);
                }
                with.push(std::mem::replace(array, means));
            }
            arrays.extend(with);
        }
        arrays
    }
}

/// The tables that are not negative, agree, and are nearest to those of published residuals `y`, one after the other.
///
/// `weights` are those of squared distances, one a subset; `total` is kept. It ends where the gap is at most `tolerance`, or
/// after so many iterations, with the best that was found: always feasible.
///
/// # Errors
/// Other numbers of residuals or weights, weights that are not positive, a total that is negative or not finite;
/// [`Error::Interrupted`].
pub fn nearest_tables(
    residuals: &Residuals,
    y: &[f64],
    weights: &[f64],
    total: f64,
    tolerance: f64,
    iterations: usize,
) -> Result<NearestTables, Error> {
    Error::check_len("residuals", residuals.len(), y.len())?;
    Error::check_len("weights", residuals.starts.len() - 1, weights.len())?;
    let positive = weights.iter().all(|w| *w > 0.0 && w.is_finite());
    if !positive || !y.iter().all(|v| v.is_finite()) || !total.is_finite() || total < 0.0 {
        return Err(Error::invalid("residuals", "finite, with positive weights and a total that is not negative"));
    }
    let mut tables = vec![0.0; residuals.cells];
    if total == 0.0 || residuals.len() == 0 {
        // Nobody is in any cell; or all there is is the total.
        residuals.tables(&vec![0.0; y.len()], total, &mut tables);
        return Ok(NearestTables { tables, gap: 0.0, mixed: f64::from(total == 0.0), iterations: 0 });
    }
    let each: Vec<f64> = weights
        .iter()
        .zip(residuals.starts.windows(2))
        .flat_map(|(weight, ends)| std::iter::repeat_n(*weight, ends[1] - ends[0]))
        .collect();
    let step = 1.0 / residuals.steepness(weights);
    let family = |dual: &[f64], f: &mut Vec<f64>| {
        f.clear();
        f.resize(y.len(), 0.0);
        residuals.adjoint(dual, f);
        for ((slot, weight), y) in f.iter_mut().zip(&each).zip(y) {
            *slot = y + *slot / weight;
        }
    };
    let distance = |f: &[f64], shrunk: f64| {
        f.iter().zip(y).zip(&each).map(|((f, y), w)| w * (shrunk * f - y).powi(2)).sum::<f64>() / 2.0
    };
    let (mut f, mut best) = (Vec::new(), (f64::INFINITY, 0.0, Vec::new()));
    let (mut dual, mut ahead) = (vec![0.0; residuals.cells], vec![0.0; residuals.cells]);
    let (mut lower, mut momentum, mut done) = (f64::NEG_INFINITY, 1.0_f64, 0);
    loop {
        if done % LOOK == 0 || done >= iterations {
            poll()?;
            family(&dual, &mut f);
            residuals.tables(&f, total, &mut tables);
            let charged: f64 = dual.iter().zip(&tables).map(|(dual, cell)| dual * cell).sum();
            lower = lower.max(distance(&f, 1.0) - charged);
            let mixed = residuals.mixed(&tables, total);
            let upper = distance(&f, 1.0 - mixed);
            if upper < best.0 {
                best = (upper, mixed, f.clone());
            }
            if best.0 - lower <= tolerance || done >= iterations {
                break;
            }
        }
        family(&ahead, &mut f);
        residuals.tables(&f, total, &mut tables);
        let next = f64::midpoint(1.0, (1.0 + 4.0 * momentum * momentum).sqrt());
        let mut rising = 0.0;
        for ((dual, ahead), cell) in dual.iter_mut().zip(&mut ahead).zip(&tables) {
            let after = (*ahead - step * cell).max(0.0);
            let change = after - *dual;
            rising += (*ahead - after) * change;
            (*dual, *ahead) = (after, after + (momentum - 1.0) / next * change);
        }
        momentum = next;
        if rising > 0.0 {
            momentum = 1.0;
            ahead.copy_from_slice(&dual);
        }
        done += 1;
    }
    let (upper, mixed, mut f) = best;
    for value in &mut f {
        *value *= 1.0 - mixed;
    }
    residuals.tables(&f, total, &mut tables);
    // What is left of rounding.
    for cell in &mut tables {
        *cell = cell.max(0.0);
    }
    Ok(NearestTables { tables, gap: (upper - lower).max(8.0 * f64::EPSILON * upper), mixed, iterations: done })
}

impl Residuals {
    /// How much of uniform tables leaves no cell negative.
    fn mixed(&self, tables: &[f64], total: f64) -> f64 {
        let of_table = |table: &Table| {
            let least = table.own(tables).iter().copied().fold(0.0, f64::min);
            let uniform = total / table.len as f64;
            -least / (uniform - least)
        };
        self.tables.iter().map(of_table).fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs() -> Residuals {
        let sets = [vec![0, 1], vec![0, 2], vec![1, 2]];
        let subsets: Vec<Vec<usize>> = vec![vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2]];
        Residuals::new(&[2, 2, 2], &sets, &subsets).unwrap()
    }

    #[test]
    fn the_fixture_of_three_pairs() {
        let signs = [1.0, -1.0, -1.0, 1.0];
        let mut y = vec![1.0, -1.0, 0.5, -0.5, 2.0, -2.0];
        for factor in [3.0, -3.5, 3.2] {
            y.extend(signs.map(|sign| factor * sign));
        }
        let found = nearest_tables(&pairs(), &y, &[1.0; 6], 10.0, 1e-13, 100_000).unwrap();
        let expected = [
            [21.0 / 4.0, 0.0, 1.0 / 12.0, 14.0 / 3.0],
            [7.0 / 12.0, 14.0 / 3.0, 19.0 / 4.0, 0.0],
            [16.0 / 3.0, 0.0, 0.0, 14.0 / 3.0],
        ];
        for (cell, expected) in found.tables.iter().zip(expected.iter().flatten()) {
            assert!((cell - expected).abs() < 1e-6, "{cell}, {expected}");
        }
        // Half the squared distance: of what the tables say, again.
        let back = |table: usize| pairs().tables[table].parted(pairs().tables[table].own(&found.tables));
        let f: Vec<f64> = [&back(0)[1], &back(0)[2], &back(1)[2], &back(0)[3], &back(1)[3], &back(2)[3]]
            .iter()
            .zip([2.0, 2.0, 2.0, 1.0, 1.0, 1.0])
            .flat_map(|(part, outside)| part.iter().map(move |v| v * outside))
            .collect();
        let objective: f64 = f.iter().zip(&y).map(|(f, y)| (f - y).powi(2)).sum::<f64>() / 2.0;
        assert!((objective - 8.271_667).abs() < 1e-5, "{objective}");
    }

    proptest! {
        #[test]
        fn maps_are_transposed_and_centred(
            values in prop::collection::vec(-1.0..1.0, 24 + 50),
        ) {
            let subsets: Vec<Vec<usize>> =
                vec![vec![0], vec![1], vec![2], vec![0, 1], vec![0, 2], vec![1, 2], vec![0, 1, 2]];
            let residuals = Residuals::new(&[2, 3, 4], &[vec![0, 1, 2]], &subsets).unwrap();
            let tables = &values[..24];
            let mut back = vec![0.0; residuals.len()];
            residuals.adjoint(tables, &mut back);
            // Of random centred residuals: those that another table has.
            let mut f = vec![0.0; residuals.len()];
            residuals.adjoint(&values[24..48], &mut f);
            let mut made = vec![0.0; 24];
            residuals.tables(&f, 0.0, &mut made);
            let one: f64 = made.iter().zip(tables).map(|(a, b)| a * b).sum();
            let other: f64 = f.iter().zip(&back).map(|(a, b)| a * b).sum();
            prop_assert!((one - other).abs() < 1e-12);
            prop_assert!(back[..2].iter().sum::<f64>().abs() < 1e-12);
        }

        #[test]
        fn nothing_is_negative_tables_agree_and_the_truth_is_not_further(
            counts in prop::collection::vec(0_u8..20, 8),
            noise in prop::collection::vec(-9.0..9.0, 18),
        ) {
            let total: f64 = counts.iter().map(|c| f64::from(*c)).sum();
            let cell = |i: usize, j: usize, k: usize| f64::from(counts[4 * i + 2 * j + k]);
            let pair = |which: usize| -> Vec<f64> {
                (0..4).map(|at| {
                    let (a, b) = (at / 2, at % 2);
                    (0..2).map(|c| match which { 0 => cell(a, b, c), 1 => cell(a, c, b), _ => cell(c, a, b) }).sum()
                }).collect()
            };
            let residuals = pairs();
            let mut truth = vec![0.0; residuals.len()];
            for which in 0..3 {
                let parts = residuals.tables[which].parted(&pair(which));
                for (bits, scale) in [(1, 2.0), (2, 2.0), (3, 1.0)] {
                    let number = residuals.tables[which].residuals[bits];
                    let slot = &mut truth[residuals.starts[number]..residuals.starts[number + 1]];
                    slot.iter_mut().zip(&parts[bits]).for_each(|(slot, value)| *slot = scale * value);
                }
            }
            // Centred noise.
            let mut y = truth.clone();
            for number in 0..6 {
                let (begin, end) = (residuals.starts[number], residuals.starts[number + 1]);
                let v = noise[number];
                let signs: &[f64] = if end - begin == 2 { &[1.0, -1.0] } else { &[1.0, -1.0, -1.0, 1.0] };
                y[begin..end].iter_mut().zip(signs).for_each(|(slot, sign)| *slot += v * sign);
            }
            let weights = [1.0, 2.0, 0.5, 1.0, 1.0, 3.0];
            let found = nearest_tables(&residuals, &y, &weights, total, 1e-9, 20_000).unwrap();
            prop_assert!(found.gap <= 1e-9 && found.tables.iter().all(|cell| *cell >= 0.0));
            let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + total);
            for which in 0..3 {
                prop_assert!(near(found.tables[4 * which..4 * which + 4].iter().sum::<f64>(), total));
            }
            prop_assert!(near(found.tables[0] + found.tables[1], found.tables[4] + found.tables[5]));
            prop_assert!(near(found.tables[0] + found.tables[2], found.tables[8] + found.tables[9]));
            prop_assert!(near(found.tables[4] + found.tables[6], found.tables[8] + found.tables[10]));
            // Theorem 1 of projections, up to the gap.
            let mut f = vec![0.0; residuals.len()];
            for which in 0..3 {
                let parts = residuals.tables[which].parted(residuals.tables[which].own(&found.tables));
                for (bits, scale) in [(1, 2.0), (2, 2.0), (3, 1.0)] {
                    let number = residuals.tables[which].residuals[bits];
                    let slot = &mut f[residuals.starts[number]..residuals.starts[number + 1]];
                    slot.iter_mut().zip(&parts[bits]).for_each(|(slot, value)| *slot = scale * value);
                }
            }
            let norm = |a: &[f64]| -> f64 {
                (0..6).map(|t| {
                    let (begin, end) = (residuals.starts[t], residuals.starts[t + 1]);
                    weights[t] * (begin..end).map(|i| (a[i] - truth[i]).powi(2)).sum::<f64>()
                }).sum::<f64>().sqrt()
            };
            prop_assert!(norm(&f) <= norm(&y) + (2.0 * found.gap).sqrt() + 1e-7);
        }
    }
}
