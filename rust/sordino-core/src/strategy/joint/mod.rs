//! One measurement for several products along the same axes: tables of sets of axes, each with its share.
//!
//! Table T is `w_T ⊗_{i∈T} B_i ⊗_{i∉T} 1ᵀ`, `B_i` rows that know all cells along axis i, the same in all tables. With
//! `G_i = B_iᵀB_i` and `c_i = 1ᵀG_i^{-1}1` the only direction that a total has along an axis is `m_i = G_i^{-1}1/√c_i`, of
//! which `B_i` has norm 1. So with S the axes along which a query is what no total has of it,
//!
//! `(Σ_T w_T² ⊗_{i∈T} G_i ⊗_{i∉T} 11ᵀ)^{-1} = Σ_S λ_S^{-1} ⊗_{i∈S} (G_i^{-1} − m_i m_iᵀ) ⊗_{i∉S} m_i m_iᵀ`,
//! `λ_S = Σ_{T⊇S} w_T² Π_{i∉T} c_i`: least squares over all tables, axis by axis. Of cells `c_i` is their number, and this is
//! what Miklau, Hay and others 2018 (§6.3) have of weighted marginals.

mod axis;
#[cfg(test)]
mod tests;

pub use axis::joint_errors;

use super::boxes::{Boxes, axes_of, indicator, one_by_one};
use super::factored::{Factor, Factorization, INPUT_BITS, Pieces, product_bits};
use super::merged::on_merged_cells;
use super::p_identity::Scaled;
use super::product::{Product, all, entry_bits, total_weight};
use super::split::Split;
use super::{Encoded, Encoding, Geometry, Input, Strategy, not_in_row_space};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::linear_algebra::{dot, to_rows};
use crate::order::{by_key, in_order};
use crate::parallel::pieces;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{MAX_LEN, Workload, along};
use axis::{Along, Line, of_totals};
use std::ops::Range;
use std::sync::Arc;

/// Axes: errors are sums over all sets of them.
const MOST_AXES: usize = 8;
/// Bits of entries at most: tables have multiples besides.
const MOST_BITS: i32 = 18;
/// How much more precise sums may be than cells, all axes together.
const MOST_UNEVEN: f64 = 1e6;
/// What is nothing of a query, beside the whole.
const NOTHING: f64 = 1e-9;

#[derive(Debug, Clone)]
struct Part {
    /// A Kronecker product.
    workload: Workload,
    /// Which of the answers along each axis are its own.
    places: Vec<Range<usize>>,
    /// How much its squared errors count in the mean.
    weight: f64,
}

/// What is measured along the axes of a set, and totals along the others.
#[derive(Debug, Clone)]
struct Table {
    strategy: Arc<dyn Strategy>,
    /// Bit k of a set, from the highest: axis k.
    set: usize,
    /// What it is measured times, and what totals along the other axes are.
    scale: f64,
    total: f64,
}

#[derive(Debug, Clone)]
struct Joint {
    axes: Vec<Line>,
    tables: Vec<Table>,
    measured: Arc<Split>,
    /// `1/λ_S`, none of sets that no table is above.
    inverse: Vec<f64>,
    parts: Vec<Part>,
}

/// The parts of a union of products along the same axes, whose squared errors count with `weights`, from tables of sets of axes:
/// `along` are rows of what is measured along each axis, of the cells that the parts tell apart there (under Laplace noise beside all such cells, as those of
/// [`super::p_identity`]), and `shares` how precise the table of each set of axes is, the first axis the highest bit, zero of
/// those that are not measured.
///
/// # Errors
/// [`Error::Unsupported`] unless all parts are products along the same axes, or all cells, and the tables determine them;
/// [`Error::InvalidParameter`] if numbers or shapes do not fit.
pub fn joint(
    workload: &Workload,
    weights: &[f64],
    law: NoiseLaw,
    along: &[Vec<f64>],
    shares: &[f64],
) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    on_merged_cells(&workload, |own| Ok(Box::new(Joint::new(own, weights, law, along, shares)?)))
}

/// Whether a set of so many axes has an axis: the first is its highest bit.
fn has(axes: usize, set: usize, k: usize) -> bool {
    set >> (axes - 1 - k) & 1 == 1
}

/// Bits of the entries of sums beside the cells along each axis, of tables of sets of axes.
fn bits_beside(
    asked: &[Workload],
    along: &[Vec<f64>],
    sets: impl Iterator<Item = impl Fn(usize) -> bool>,
) -> Result<i32, Error> {
    let scaled = asked.iter().zip(along).map(|(asked, sums)| Scaled::new(asked.table_len()?, sums));
    let scaled: Vec<Scaled> = scaled.collect::<Result<_, Error>>()?;
    let bits = sets.map(|own| {
        let sums = scaled.iter().enumerate().filter(|(k, sums)| own(*k) && !sums.is_cells());
        let totals = asked.iter().enumerate().filter(|(k, _)| !own(*k));
        let totals = totals.map(|(_, asked)| 1.0 + (asked.table_len().unwrap_or(1) as f64).log2());
        entry_bits(sums.map(|(_, sums)| sums.growth()), totals.sum())
    });
    Ok(bits.fold(i32::MAX, i32::min))
}

/// What is measured along some axes, and totals along the others.
fn table_of(axes: &[Line], own: impl Fn(usize) -> bool) -> Result<Arc<dyn Strategy>, Error> {
    let (mut sums, mut rows) = (Vec::new(), (Vec::new(), Vec::new()));
    for (k, line) in axes.iter().enumerate() {
        let n = line.len();
        match &line.along {
            Along::Sums(along) => sums.push(if own(k) { Ok(&**along) } else { Err(n) }),
            Along::Rows { matrix, .. } => {
                let entries = if own(k) { to_rows(matrix) } else { vec![1.0; n] };
                let len = entries.len() / n;
                rows.0.push(if own(k) { Workload::Histogram { len: n } } else { all(n) });
                rows.1.push(Factor { rows: len, columns: n, entries });
            }
        }
    }
    if !sums.is_empty() {
        return Ok(Arc::new(Product::of_table(sums.into_iter())?));
    }
    let (workload, pieces) = (Workload::Kronecker { factors: rows.0 }, Pieces::Coordinates(NoiseLaw::Gaussian));
    Ok(Arc::from(Factorization { workload, factors: rows.1, pieces, whole: false }.build()?))
}

/// The parts as products, and all that is asked along each axis, once.
fn by_axis(parts: &[Workload], weights: &[f64]) -> Result<(Vec<Part>, Vec<Workload>), Error> {
    Error::check_len("weights", parts.len(), weights.len())?;
    let unlike = || Error::Unsupported("the parts are no products along the same axes".into());
    let lens = |part: &Workload| part.kronecker_factors().iter().map(Workload::input_len).collect::<Vec<_>>();
    let shape = parts.iter().map(lens).find(|shape| !shape.is_empty()).ok_or_else(unlike)?;
    let cells = || shape.iter().flatten().map(|len| Workload::Histogram { len: *len });
    let mut asked: Vec<Vec<Workload>> = vec![Vec::new(); shape.len()];
    let mut products = Vec::new();
    for (part, weight) in parts.iter().zip(weights) {
        let factors: Vec<Workload> = match part {
            Workload::Histogram { .. } => cells().collect(),
            _ if lens(part) == shape => part.kronecker_factors().to_vec(),
            _ => return Err(unlike()),
        };
        let place = |(factor, asked): (&Workload, &mut Vec<Workload>)| {
            let k = asked.iter().position(|known| known == factor).unwrap_or(asked.len());
            if k == asked.len() {
                asked.push(factor.clone());
            }
            let first = asked[..k].iter().map(Workload::answers_len).sum();
            first..first + factor.answers_len()
        };
        let places = factors.iter().zip(&mut asked).map(place).collect();
        products.push(Part { workload: Workload::Kronecker { factors }, places, weight: *weight });
    }
    Ok((products, asked.into_iter().map(|parts| Workload::Union { parts }).collect()))
}

impl Joint {
    /// On cells that are told apart.
    fn new(
        workload: &Workload,
        weights: &[f64],
        law: NoiseLaw,
        along: &[Vec<f64>],
        shares: &[f64],
    ) -> Result<Self, Error> {
        let (parts, asked) = by_axis(workload.parts(), weights)?;
        let count = asked.len();
        Error::check_len("along", count, along.len())?;
        if count > MOST_AXES {
            return Err(Error::Unsupported(format!("one measurement serves products of at most {MOST_AXES} axes")));
        }
        Error::check_len("shares", 1 << count, shares.len())?;
        if shares.iter().any(|share| !(0.0..=1e6).contains(share)) || shares.iter().all(|share| *share == 0.0) {
            return Err(Error::invalid("shares", "must be from 0 to 1e6, and not all 0"));
        }
        let own = |set: usize, k: usize| has(count, set, k);
        let sets: Vec<usize> = (0..shares.len()).filter(|set| shares[*set] > 0.0).collect();
        let bits = match law {
            NoiseLaw::Laplace => bits_beside(&asked, along, sets.iter().map(|set| move |k| own(*set, k)))?,
            NoiseLaw::Gaussian => product_bits(INPUT_BITS, workload.table_len()?, count) as i32,
        };
        let axes = asked
            .into_iter()
            .zip(along)
            .map(|(asked, entries)| Ok(Line::new(Along::new(law, asked, entries, bits.min(MOST_BITS))?)));
        let axes: Vec<Line> = axes.collect::<Result<_, Error>>()?;
        if let Some(uneven) = axes.iter().map(|line| line.along.unevenness()).reduce(|a, b| a * b)
            && uneven > MOST_UNEVEN
        {
            return Err(Error::Unsupported(
                "sums count so much more than cells that estimates lose their digits".into(),
            ));
        }
        let mut sized = Vec::new();
        for set in &sets {
            let strategy = table_of(&axes, |k| own(*set, k))?;
            let size = strategy.sensitivity(Unit::add_remove(1, None)?)?;
            sized.push((strategy, shares[*set] / size.get()));
        }
        let measured = Split::of_tables(&sized)?;
        let tables = sets.iter().zip(sized).zip(measured.scales()).map(|((set, (strategy, _)), scale)| {
            let outside = (0..count).filter(|k| !own(*set, *k)).count() as i32;
            Table { strategy, set: *set, scale, total: total_weight(law).powi(outside) }
        });
        let tables: Vec<Table> = tables.collect();
        let precision = |s: usize| {
            let above = tables.iter().filter(|table| table.set & s == s);
            above
                .map(|table| {
                    let outside = (0..count).filter(|k| !own(table.set, *k)).map(|k| axes[k].constant);
                    (table.scale * table.total).powi(2) * outside.product::<f64>()
                })
                .sum::<f64>()
        };
        let inverse: Vec<f64> =
            (0..shares.len()).map(precision).map(|own| if own > 0.0 { own.recip() } else { 0.0 }).collect();
        let joint = Self { axes, tables, measured: Arc::new(measured), inverse, parts };
        joint.check_determined()?;
        Ok(joint)
    }

    /// Sums over all sets of axes of what each has: `means[k]` or `rests[k]` of every axis, and of the set itself.
    fn contracted(&self, pieces: &[[&[f64]; 2]]) -> Vec<f64> {
        let mut values = self.inverse.clone();
        let mut len = 1;
        for [means, rests] in pieces.iter().rev() {
            let pairs = values.chunks_exact(2 * len);
            let next = pairs.flat_map(|pair| {
                let (of_mean, of_rest) = pair.split_at(len);
                means
                    .iter()
                    .zip(*rests)
                    .flat_map(move |(mean, rest)| of_mean.iter().zip(of_rest).map(move |(a, b)| mean * a + rest * b))
            });
            values = next.collect();
            len *= means.len();
        }
        values
    }

    fn white(&self) -> f64 {
        self.measured.geometry().white()
    }

    /// Refuses tables that leave out what a part asks for.
    fn check_determined(&self) -> Result<(), Error> {
        for part in &self.parts {
            let asked =
                part.workload.kronecker_factors().iter().fold(0, |set, own| set << 1 | usize::from(!of_totals(own)));
            if self.inverse[asked] == 0.0 {
                return Err(Error::Unsupported("the tables do not determine the answers".into()));
            }
        }
        Ok(())
    }

    fn is_determined(&self) -> bool {
        self.inverse.iter().all(|inverse| *inverse > 0.0)
    }

    fn has(&self, set: usize, k: usize) -> bool {
        has(self.axes.len(), set, k)
    }

    /// All axes.
    fn all(&self) -> usize {
        (1 << self.axes.len()) - 1
    }

    /// Along the axes of a set the rest and the place of a total, one after the other, of cells; or back.
    fn turned(&self, set: usize, mut values: Vec<f64>, back: bool) -> Vec<f64> {
        let mut inner = 1;
        for (_, line) in self.axes.iter().enumerate().rev().filter(|(k, _)| self.has(set, *k)) {
            let n = line.len();
            if back {
                values = along((n + 1, n), inner, &values, |pieces, out| line.joined(pieces, out));
            } else {
                values = along((n, n + 1), inner, &values, |cells, out| line.solve(cells, out));
            }
            inner *= if back { n } else { n + 1 };
        }
        values
    }

    /// Where the numbers of a set are among those of all axes, of cells, or of rests and totals: along the others at the first
    /// cell, or at the total.
    fn places(&self, set: usize, turned: bool) -> Vec<usize> {
        let mut places = vec![0];
        for (k, line) in self.axes.iter().enumerate() {
            let n = line.len();
            let (len, elsewhere) = if turned { (n + 1, n) } else { (n, 0) };
            let range = if self.has(set, k) { 0..len } else { elsewhere..elsewhere + 1 };
            places = places.into_iter().flat_map(|at| range.clone().map(move |j| at * len + j)).collect();
        }
        places
    }

    /// The numbers of a set among those of all axes.
    fn taken(&self, set: usize, turned: bool, values: &[f64]) -> Vec<f64> {
        if set == self.all() {
            return values.to_vec();
        }
        self.places(set, turned).into_iter().map(|at| values[at]).collect()
    }

    /// Adds so many times the numbers of a set to those of all axes.
    fn add(&self, set: usize, turned: bool, factor: f64, values: &[f64], to: &mut [f64]) {
        if set == self.all() {
            return to.iter_mut().zip(values).for_each(|(slot, value)| *slot += factor * value);
        }
        for (at, value) in self.places(set, turned).into_iter().zip(values) {
            to[at] += factor * value;
        }
    }

    /// What the totals along the other axes count in a table.
    fn outside(&self, table: &Table) -> f64 {
        let outside = self.axes.iter().enumerate().filter(|(k, _)| !self.has(table.set, *k));
        table.scale * outside.map(|(_, line)| line.constant.sqrt()).product::<f64>()
    }

    /// The set of axes along which a place among all rests and totals is a rest.
    fn set_at(&self, place: usize) -> usize {
        let (mut set, mut rest) = (0, place);
        for (bit, line) in self.axes.iter().rev().enumerate() {
            let n = line.len();
            set |= usize::from(rest % (n + 1) < n) << bit;
            rest /= n + 1;
        }
        set
    }

    /// `1/λ_S` times what is known of every set S.
    fn divide(&self, known: &mut [f64]) {
        for (place, value) in known.iter_mut().enumerate() {
            *value *= self.inverse[self.set_at(place)];
        }
    }

    /// Whether the tables know a query: it has nothing of the sets that none is above, in its own scale.
    fn knows(&self, row: &[f64]) -> bool {
        if self.is_determined() {
            return true;
        }
        let (mut pieces, mut inner) = (row.to_vec(), 1);
        for line in self.axes.iter().rev() {
            let n = line.len();
            pieces = along((n, n + 1), inner, &pieces, |cells, out| {
                // A total is what all cells have.
                let each = dot(&line.mean, cells) / line.constant.sqrt();
                out[..n].iter_mut().zip(cells).for_each(|(slot, cell)| *slot = cell - each);
                out[n] = each;
            });
            inner *= n + 1;
        }
        let most = row.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        pieces.iter().enumerate().all(|(at, v)| self.inverse[self.set_at(at)] > 0.0 || v.abs() <= NOTHING * most)
    }

    /// Cells, from what is measured: of each table what it knows, so that none adds its rounding to what others know better.
    fn estimated(&self, y: &[f64]) -> Vec<f64> {
        let mut known = vec![0.0; self.axes.iter().map(|line| line.len() + 1).product()];
        let mut rest = y;
        for table in &self.tables {
            let (own, after) = rest.split_at(table.strategy.measured_len());
            rest = after;
            let cells = table.strategy.transposed(own).expect("tables are of cells");
            // All cells along other axes have the same.
            let turned = self.turned(table.set, self.taken(table.set, false, &cells), false);
            self.add(table.set, true, self.outside(table), &turned, &mut known);
        }
        self.divide(&mut known);
        self.turned(self.all(), known, true)
    }

    fn each(&self, out: &mut [f64], mut visit: impl FnMut(&Part, &mut [f64])) {
        let lens = self.parts.iter().map(|part| part.workload.answers_len());
        for (part, own) in self.parts.iter().zip(pieces(out, lens)) {
            visit(part, own);
        }
    }
}

impl Strategy for Joint {
    fn measured_len(&self) -> usize {
        self.measured.measured_len()
    }

    fn geometry(&self) -> Geometry {
        self.measured.geometry()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        self.measured.sensitivity(unit)
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        self.measured.encoding(max_abs)
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        self.measured.encode(x, max_abs, out)
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let cells = self.estimated(y);
        self.each(out, |part, own| part.workload.apply(&cells, own));
    }

    fn variances(&self, out: &mut [f64]) {
        let each: Vec<[Vec<f64>; 2]> = self.axes.iter().map(Line::variances).collect();
        self.each(out, |part, own| {
            let along = each.iter().zip(&part.places);
            let pieces: Vec<[&[f64]; 2]> =
                along.map(|(both, place)| both.each_ref().map(|all| &all[place.clone()])).collect();
            own.copy_from_slice(&self.contracted(&pieces));
            for variance in own {
                *variance *= self.white();
            }
        });
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        let each: Vec<[Vec<f64>; 2]> = self.axes.iter().map(Line::variances).collect();
        let (mut sum, mut weights, mut largest) = (0.0, 0.0, Some(0.0f64));
        for part in &self.parts {
            let (mut along, mut most, mut weight) = (Vec::new(), Vec::new(), part.weight);
            for ((factor, place), both) in part.workload.kronecker_factors().iter().zip(&part.places).zip(&each) {
                let both = both.each_ref().map(|all| &all[place.clone()]);
                along.push(both.map(|own| vec![factor.weighted_spread(own).0]));
                most.push(not_exceeded(both));
                weight *= factor.answers_weight();
            }
            sum += weight * self.white() * self.contracted(&slices(&along))[0];
            weights += weight;
            let few = most.iter().map(|[means, _]| means.len()).fold(1usize, usize::saturating_mul) <= MAX_LEN;
            largest = largest.filter(|_| few).map(|so_far| {
                let variances = self.contracted(&slices(&most));
                variances.into_iter().fold(so_far, |most, variance| most.max(self.white() * variance))
            });
        }
        Some((sum / weights, largest))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.is_determined().then(|| self.estimated(y))
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        self.measured.multiplied(x)
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.measured.transposed(y)
    }

    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        if boxes.shape.len() < self.axes.len() || !self.is_determined() {
            return one_by_one(self, boxes);
        }
        let mut along = Vec::new();
        for (line, own) in self.axes.iter().zip(axes_of(self.axes.iter().map(Line::len), boxes.shape)?) {
            let part = boxes.of_axes(&own);
            let whole = line.along.box_variances(part.boxes())?;
            let of = |((first, last), whole): ((&[usize], &[usize]), f64)| {
                let mean = dot(&indicator(part.shape, first, last), &line.mean).powi(2);
                [mean, (whole - mean).max(0.0)]
            };
            along.push(part.each().zip(whole).map(of).collect::<Vec<[f64; 2]>>());
        }
        let variance = |k: usize| {
            let pieces: Vec<[&[f64]; 2]> =
                along.iter().map(|axis| axis[k].each_ref().map(std::slice::from_ref)).collect();
            self.white() * self.contracted(&pieces)[0]
        };
        Ok((0..boxes.count()).map(variance).collect())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        if !self.knows(row) {
            return Err(not_in_row_space());
        }
        let mut known = self.turned(self.all(), row.to_vec(), false);
        self.divide(&mut known);
        let mut weights = Vec::with_capacity(self.measured_len());
        for table in &self.tables {
            let own = self.turned(table.set, self.taken(table.set, true, &known), true);
            let mut cells = vec![0.0; row.len()];
            self.add(table.set, false, self.outside(table), &own, &mut cells);
            weights.extend(table.strategy.multiplied(&cells).ok_or_else(not_in_row_space)?);
        }
        Ok(weights)
    }
}

fn slices(axes: &[[Vec<f64>; 2]]) -> Vec<[&[f64]; 2]> {
    axes.iter().map(|both| both.each_ref().map(Vec::as_slice)).collect()
}

/// The pairs that no other exceeds in both: the largest sum with weights that are not negative is among them.
fn not_exceeded([means, rests]: [&[f64]; 2]) -> [Vec<f64>; 2] {
    let mut places = in_order(means.len(), &|k| -rests[k]);
    by_key(&mut places, &|k| -means[k]);
    let mut most = f64::NEG_INFINITY;
    places.retain(|k| {
        let kept = rests[*k] > most;
        most = most.max(rests[*k]);
        kept
    });
    [means, rests].map(|own| places.iter().map(|k| own[*k]).collect())
}
