//! One measurement for several products along the same axes: tables of sets of axes, each with its share, Laplace noise.
//!
//! Table T is `w_T ⊗_{i∈T} B_i ⊗_{i∉T} 1ᵀ`, `B_i` cells and weighted sums of them along axis i, the same in all tables. With
//! `G_i = B_iᵀB_i` and `c_i = 1ᵀG_i^{-1}1` the only direction that a total has along an axis is `m_i = G_i^{-1}1/√c_i`, of
//! which `B_i` has norm 1. So with S the axes along which a query is what no total has of it,
//!
//! `(Σ_T w_T² ⊗_{i∈T} G_i ⊗_{i∉T} 11ᵀ)^{-1} = Σ_S λ_S^{-1} ⊗_{i∈S} (G_i^{-1} − m_i m_iᵀ) ⊗_{i∉S} m_i m_iᵀ`,
//! `λ_S = Σ_{T⊇S} w_T² Π_{i∉T} c_i`: least squares over all tables, axis by axis. Of cells `c_i` is their number, and this is
//! what Miklau, Hay and others 2018 (§6.3) have of weighted marginals.

use super::boxes::{Boxes, axes_of, indicator, one_by_one};
use super::p_identity::{PIdentity, Scaled};
use super::product::{Product, entry_bits};
use super::split::Split;
use super::{Encoded, Encoding, Geometry, Input, Strategy, not_in_row_space};
use crate::error::Error;
use crate::linear_algebra::dot;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{MAX_LEN, Workload, along, outer};
use std::ops::Range;
use std::sync::Arc;

/// Axes: errors are sums over all sets of them.
const MOST_AXES: usize = 8;
/// Bits of entries at most, tables have multiples besides; and where errors alone are wanted.
const MOST_BITS: i32 = 18;
const FINE_BITS: i32 = 28;
/// What is nothing of a query, beside the whole.
const NOTHING: f64 = 1e-9;

/// An axis of a [`Joint`]: what is measured along it, and what a total has of that.
#[derive(Debug, Clone)]
struct Line {
    sums: PIdentity,
    /// `m`.
    mean: Vec<f64>,
    /// `c`.
    constant: f64,
}

impl Line {
    fn new(asked: Workload, scaled: &Scaled, bits: i32) -> Result<Self, Error> {
        asked.listed()?;
        let sums = PIdentity::new(asked, scaled, if scaled.is_cells() { 0 } else { bits })?;
        sums.check_digits()?;
        let solved = sums.solve(&vec![1.0; sums.len()]);
        let constant: f64 = solved.iter().sum();
        let size = constant.sqrt();
        Ok(Self { mean: solved.into_iter().map(|v| v / size).collect(), sums, constant })
    }

    /// Variances of what totals have of every answer, and of the rest, of noise of variance 1.
    fn variances(&self) -> [Vec<f64>; 2] {
        let asked = self.sums.workload();
        let mut mean = vec![0.0; asked.answers_len()];
        let mut rest = mean.clone();
        asked.apply(&self.mean, &mut mean);
        self.sums.variances(&mut rest);
        for (mean, rest) in mean.iter_mut().zip(&mut rest) {
            *mean *= *mean;
            *rest = (*rest / self.sums.geometry().white() - *mean).max(0.0);
        }
        [mean, rest]
    }

    /// `G^{-1} v` in two: what no total has of it, and its place along `m`.
    fn solve(&self, v: &[f64], out: &mut [f64]) {
        let (rest, place) = out.split_at_mut(v.len());
        place[0] = dot(&self.mean, v);
        let solved = self.sums.solve(v);
        rest.iter_mut().zip(solved).zip(&self.mean).for_each(|((slot, x), m)| *slot = x - m * place[0]);
    }
}

/// What the errors along an axis are where columns have norm 1: `c`, and for each part of `asked` the sums of `weights` times the
/// variances of what a total has of its answers, and of the rest.
///
/// # Errors
/// As [`super::p_identity`]; [`Error::InvalidParameter`] if there are not as many weights as answers.
pub fn joint_errors(asked: &Workload, weights: Option<&[f64]>, sums: &[f64]) -> Result<(f64, Vec<[f64; 2]>), Error> {
    let asked = asked.clone().validated()?;
    if let Some(weights) = weights {
        Error::check_len("weights", asked.answers_len(), weights.len())?;
    }
    let line = Line::new(asked.clone(), &Scaled::new(asked.table_len()?, sums)?, FINE_BITS)?;
    let unit = line.sums.column().get().powi(2);
    let variances = line.variances();
    let mut first = 0;
    let each = asked.parts().iter().map(|part| {
        let own = first..first + part.answers_len();
        first = own.end;
        variances.each_ref().map(|all| {
            let counted = |(k, v): (usize, &f64)| weights.map_or(1.0, |weights| weights[own.start + k]) * v;
            unit * all[own.clone()].iter().enumerate().map(counted).sum::<f64>()
        })
    });
    let each = each.collect();
    Ok((unit * line.constant, each))
}

#[derive(Debug, Clone)]
struct Part {
    /// A Kronecker product.
    workload: Workload,
    /// Which of the answers along each axis are its own.
    places: Vec<Range<usize>>,
    /// How much its squared errors count in the mean.
    weight: f64,
}

#[derive(Debug, Clone)]
struct Joint {
    axes: Vec<Line>,
    /// Bit k of a set, from the highest: axis k.
    tables: Arc<Split>,
    /// `1/λ_S`, none of sets that no table is above.
    inverse: Vec<f64>,
    parts: Vec<Part>,
}

/// The parts of a union of products along the same axes, whose squared errors count with `weights`, from tables of sets of axes:
/// `sums` are rows of weights of the cells along each axis, those of [`super::p_identity`], and `shares` how precise the table
/// of each set of axes is, the first axis the highest bit, zero of those that are not measured.
///
/// # Errors
/// [`Error::Unsupported`] unless all parts are products along the same axes, or all cells, and the tables determine them;
/// [`Error::InvalidParameter`] if numbers or shapes do not fit.
pub fn joint(
    workload: &Workload,
    weights: &[f64],
    sums: &[Vec<f64>],
    shares: &[f64],
) -> Result<Box<dyn Strategy>, Error> {
    let workload = workload.clone().validated()?;
    let (parts, asked) = by_axis(workload.parts(), weights)?;
    let count = asked.len();
    Error::check_len("sums", count, sums.len())?;
    if count > MOST_AXES {
        return Err(Error::Unsupported(format!("one measurement serves products of at most {MOST_AXES} axes")));
    }
    Error::check_len("shares", 1 << count, shares.len())?;
    if shares.iter().any(|share| !(0.0..=1e6).contains(share)) || shares.iter().all(|share| *share == 0.0) {
        return Err(Error::invalid("shares", "must be from 0 to 1e6, and not all 0"));
    }
    let sizes: Vec<usize> = asked.iter().map(Workload::table_len).collect::<Result<_, Error>>()?;
    let scaled: Vec<Scaled> =
        sizes.iter().zip(sums).map(|(n, sums)| Scaled::new(*n, sums)).collect::<Result<_, Error>>()?;
    let own = |set: usize, k: usize| set >> (count - 1 - k) & 1 == 1;
    let sets: Vec<usize> = (0..shares.len()).filter(|set| shares[*set] > 0.0).collect();
    let bits = sets.iter().map(|set| {
        let sums = scaled.iter().enumerate().filter(|(k, sums)| own(*set, *k) && !sums.is_cells());
        let totals = (0..count).filter(|k| !own(*set, *k)).map(|k| 1.0 + (sizes[k] as f64).log2());
        entry_bits(sums.map(|(_, sums)| sums.growth()), totals.sum())
    });
    let bits = bits.fold(MOST_BITS, i32::min);
    let lines = asked.into_iter().zip(&scaled).map(|(asked, scaled)| Line::new(asked, scaled, bits));
    let axes: Vec<Line> = lines.collect::<Result<_, Error>>()?;
    let (mut measured, mut counts) = (Vec::new(), Vec::new());
    for set in &sets {
        let along = axes.iter().enumerate().map(|(k, line)| own(*set, k).then_some(&line.sums).ok_or(line.sums.len()));
        let table = Product::of_table(along)?;
        let size = table.sensitivity(Unit::add_remove(1, None)?)?;
        // What its totals count of those of an axis: they have a weight.
        let of_totals = (0..count).filter(|k| !own(*set, *k)).map(|k| axes[k].constant * table.column(k).powi(2));
        counts.push(of_totals.product::<f64>());
        measured.push((Arc::new(table) as Arc<dyn Strategy>, shares[*set] / size.get()));
    }
    let tables = Split::of_tables(measured)?;
    let precision = |s: usize| {
        let each = sets.iter().zip(tables.scales()).zip(&counts);
        each.filter(|((set, _), _)| **set & s == s).map(|((_, scale), count)| scale * scale * count).sum::<f64>()
    };
    let inverse: Vec<f64> =
        (0..shares.len()).map(precision).map(|own| if own > 0.0 { own.recip() } else { 0.0 }).collect();
    let joint = Joint { axes, tables: Arc::new(tables), inverse, parts };
    joint.check_determined()?;
    Ok(Box::new(joint))
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

    fn white() -> f64 {
        Geometry::L1.white()
    }

    /// Refuses tables that leave out what a part asks for.
    fn check_determined(&self) -> Result<(), Error> {
        let each: Vec<[Vec<f64>; 2]> = self.axes.iter().map(Line::variances).collect();
        for part in &self.parts {
            let along: Vec<Vec<f64>> = each
                .iter()
                .zip(&part.places)
                .map(|(both, place)| both.each_ref().map(|own| own[place.clone()].iter().sum()).to_vec())
                .collect();
            let asked = outer(&along);
            let whole: f64 = asked.iter().sum();
            if asked.iter().zip(&self.inverse).any(|(own, inverse)| *inverse == 0.0 && *own > NOTHING * whole) {
                return Err(Error::Unsupported("the tables do not determine the answers".into()));
            }
        }
        Ok(())
    }

    fn is_determined(&self) -> bool {
        self.inverse.iter().all(|inverse| *inverse > 0.0)
    }

    /// `G^{-1} v` of all tables; with what no table knows of `v` over the largest of what they do.
    fn solve(&self, v: &[f64]) -> (Vec<f64>, f64) {
        let mut values = v.to_vec();
        let mut inner = 1;
        for line in self.axes.iter().rev() {
            let n = line.sums.len();
            values = along((n, n + 1), inner, &values, |line_of, out| line.solve(line_of, out));
            inner *= n + 1;
        }
        let (mut known, mut lost) = (0.0f64, 0.0f64);
        for (place, value) in values.iter_mut().enumerate() {
            let (mut set, mut rest) = (0, place);
            for (bit, line) in self.axes.iter().rev().enumerate() {
                let n = line.sums.len();
                set |= usize::from(rest % (n + 1) < n) << bit;
                rest /= n + 1;
            }
            let most = if self.inverse[set] > 0.0 { &mut known } else { &mut lost };
            *most = most.max(value.abs());
            *value *= self.inverse[set];
        }
        let mut inner = 1;
        for line in self.axes.iter().rev() {
            let n = line.sums.len();
            values = along((n + 1, n), inner, &values, |pieces, out| {
                let (rest, place) = pieces.split_at(n);
                out.iter_mut().zip(rest).zip(&line.mean).for_each(|((slot, rest), m)| *slot = rest + m * place[0]);
            });
            inner *= n;
        }
        (values, lost / known.max(f64::MIN_POSITIVE))
    }

    fn estimated(&self, y: &[f64]) -> Vec<f64> {
        self.solve(&self.tables.transposed(y).expect("tables are of cells")).0
    }

    fn each(&self, out: &mut [f64], mut visit: impl FnMut(&Part, &mut [f64])) {
        let mut rest = out;
        for part in &self.parts {
            let (own, after) = std::mem::take(&mut rest).split_at_mut(part.workload.answers_len());
            visit(part, own);
            rest = after;
        }
    }
}

impl Strategy for Joint {
    fn measured_len(&self) -> usize {
        self.tables.measured_len()
    }

    fn geometry(&self) -> Geometry {
        Geometry::L1
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        self.tables.sensitivity(unit)
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        self.tables.encoding(max_abs)
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        self.tables.encode(x, max_abs, out)
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
            own.iter_mut().for_each(|variance| *variance *= Self::white());
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
            sum += weight * Self::white() * self.contracted(&slices(&along))[0];
            weights += weight;
            let few = most.iter().map(|[means, _]| means.len()).fold(1usize, usize::saturating_mul) <= MAX_LEN;
            largest = largest.filter(|_| few).map(|so_far| {
                let variances = self.contracted(&slices(&most));
                variances.into_iter().fold(so_far, |most, variance| most.max(Self::white() * variance))
            });
        }
        Some((sum / weights, largest))
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.is_determined().then(|| self.estimated(y))
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        self.tables.multiplied(x)
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.tables.transposed(y)
    }

    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        if boxes.shape.len() < self.axes.len() || !self.is_determined() {
            return one_by_one(self, boxes);
        }
        let mut along = Vec::new();
        for (line, own) in self.axes.iter().zip(axes_of(self.axes.iter().map(|line| line.sums.len()), boxes.shape)?) {
            let part = boxes.of_axes(&own);
            let whole = line.sums.box_variances(part.boxes())?;
            let of = |((first, last), whole): ((&[usize], &[usize]), f64)| {
                let mean = dot(&indicator(part.shape, first, last), &line.mean).powi(2);
                [mean, (whole / Self::white() - mean).max(0.0)]
            };
            along.push(part.each().zip(whole).map(of).collect::<Vec<[f64; 2]>>());
        }
        let variance = |k: usize| {
            let pieces: Vec<[&[f64]; 2]> =
                along.iter().map(|axis| axis[k].each_ref().map(std::slice::from_ref)).collect();
            Self::white() * self.contracted(&pieces)[0]
        };
        Ok((0..boxes.count()).map(variance).collect())
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let (solved, lost) = self.solve(row);
        if lost > NOTHING {
            return Err(not_in_row_space());
        }
        self.tables.multiplied(&solved).ok_or_else(not_in_row_space)
    }
}

fn slices(axes: &[[Vec<f64>; 2]]) -> Vec<[&[f64]; 2]> {
    axes.iter().map(|both| both.each_ref().map(Vec::as_slice)).collect()
}

/// The pairs that no other exceeds in both: the largest sum with weights that are not negative is among them.
fn not_exceeded([means, rests]: [&[f64]; 2]) -> [Vec<f64>; 2] {
    let mut pairs: Vec<(f64, f64)> = means.iter().copied().zip(rests.iter().copied()).collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let mut most = f64::NEG_INFINITY;
    pairs.retain(|(_, rest)| {
        let kept = *rest > most;
        most = most.max(*rest);
        kept
    });
    let (means, rests) = pairs.into_iter().unzip();
    [means, rests]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(len: usize) -> Workload {
        Workload::Linear { kernel: vec![1.0; len], len, center: 0 }
    }

    fn total(len: usize) -> Workload {
        let (indices, entries) = ((0..len as u32).collect(), vec![1.0; len]);
        Workload::Sparse { rows: 1, columns: len, starts: vec![0, len], indices, entries }
    }

    fn product(factors: [Workload; 2]) -> Workload {
        Workload::Kronecker { factors: factors.to_vec() }
    }

    /// Ranges and sums along both axes and along either, and all cells.
    fn asked() -> Workload {
        let parts = vec![
            product([Workload::Ranges { len: 5 }, sums(4)]),
            product([total(5), sums(4)]),
            product([Workload::Ranges { len: 5 }, total(4)]),
            Workload::Histogram { len: 20 },
        ];
        Workload::Union { parts }
    }

    fn beside() -> Vec<Vec<f64>> {
        vec![vec![0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.1, 0.7, 0.7, 0.7], vec![]]
    }

    fn encoded(strategy: &dyn Strategy, x: &[i64]) -> Vec<f64> {
        let mut units = vec![0; strategy.measured_len()];
        strategy.encode(Input::Cells(x), 1000, Encoded::Exact(&mut units)).unwrap();
        units.into_iter().map(|unit| unit as f64).collect()
    }

    #[test]
    fn answers_variances_and_norms() {
        let workload = asked();
        let (rows, cells, entries) = workload.dense().unwrap();
        for shares in [[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.5]] {
            let strategy = joint(&workload, &[1.0, 2.0, 3.0, 1.0], &beside(), &shares).unwrap();
            let x: Vec<i64> = (0..cells as i64).map(|j| j * 37 % 101 - 20).collect();
            let y = encoded(&*strategy, &x);
            let (mut answers, mut variances) = (vec![0.0; rows], vec![0.0; rows]);
            strategy.decode(&y, &mut answers);
            strategy.variances(&mut variances);
            let noise = strategy.unit_variances();
            for (t, row) in entries.chunks_exact(cells).enumerate() {
                let truth: f64 = row.iter().zip(&x).map(|(a, x)| a * *x as f64).sum();
                assert!((answers[t] - truth).abs() < 1e-8 * (1.0 + truth.abs()), "{t}: {} {truth}", answers[t]);
                let weights = strategy.weights(row).unwrap();
                let read: f64 = weights.iter().zip(&y).map(|(w, y)| w * y).sum();
                assert!((read - truth).abs() < 1e-8 * (1.0 + truth.abs()));
                let variance: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
                assert!((variances[t] / variance - 1.0).abs() < 1e-9, "{t}: {} {variance}", variances[t]);
            }
            let boxes = Boxes { shape: &[5, 4], first: &[1, 0, 0, 1], last: &[3, 2, 4, 3] };
            for (k, told) in strategy.box_variances(boxes).unwrap().into_iter().enumerate() {
                let own = strategy.box_variance(boxes.shape, &boxes.first[2 * k..][..2], &boxes.last[2 * k..][..2]);
                assert!((told / own.unwrap() - 1.0).abs() < 1e-9);
            }
            let (mean, largest) = strategy.spread().unwrap();
            let counts = [(60, 1.0), (4, 2.0), (15, 3.0), (20, 1.0)];
            let weights: Vec<f64> = counts.into_iter().flat_map(|(len, weight)| vec![weight; len]).collect();
            let direct: f64 =
                variances.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>() / weights.iter().sum::<f64>();
            assert!((mean / direct - 1.0).abs() < 1e-12);
            assert!((largest.unwrap() / variances.iter().fold(0.0, |a: f64, b| a.max(*b)) - 1.0).abs() < 1e-12);
            let one = Unit::add_remove(1, None).unwrap();
            let columns =
                (0..cells).map(|j| encoded(&*strategy, &(0..cells).map(|i| i64::from(i == j)).collect::<Vec<_>>()));
            let most = columns.map(|column| column.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max);
            assert!(strategy.sensitivity(one).unwrap().get() == most);
        }
    }

    /// Where tables of single axes are measured alone, cells are not known, and queries of cells refused.
    #[test]
    fn what_is_not_measured_is_refused() {
        let margins = Workload::Union {
            parts: vec![product([total(5), sums(4)]), product([Workload::Ranges { len: 5 }, total(4)])],
        };
        let strategy = joint(&margins, &[1.0, 1.0], &beside(), &[0.0, 0.5, 0.5, 0.0]).unwrap();
        let y = encoded(&*strategy, &[3; 20]);
        assert!(strategy.cells(&y).is_none());
        let mut row = vec![0.0; 20];
        row[3] = 1.0;
        assert!(strategy.weights(&row).is_err());
        assert!(strategy.box_variances(Boxes { shape: &[5, 4], first: &[1, 1], last: &[1, 2] }).is_err());
        assert!(strategy.box_variances(Boxes { shape: &[5, 4], first: &[1, 0], last: &[1, 3] }).is_ok());
        let weights = [1.0; 4];
        for (shares, sums) in [
            (vec![0.0, 0.5, 0.5, 0.0], beside()), // cells are asked for
            (vec![0.0; 4], beside()),
            (vec![f64::NAN, 0.0, 0.0, 1.0], beside()),
            (vec![-0.1, 0.0, 0.0, 1.0], beside()),
            (vec![1.0], beside()),
            (vec![0.0, 0.0, 0.0, 1.0], vec![vec![], vec![-1.0; 4]]),
            (vec![0.0, 0.0, 0.0, 1.0], vec![vec![], vec![1.0; 3]]),
            (vec![0.0, 0.0, 0.0, 1.0], vec![vec![]]),
            (vec![0.0, 0.0, 0.0, 1.0], vec![vec![], vec![1e12; 4]]),
        ] {
            assert!(joint(&asked(), &weights, &sums, &shares).is_err(), "{shares:?} {sums:?}");
        }
        let whole = [0.0, 0.0, 0.0, 1.0];
        assert!(joint(&asked(), &weights[..3], &beside(), &whole).is_err());
        let unlike = Workload::Union { parts: vec![product([sums(5), sums(4)]), product([sums(4), sums(5)])] };
        assert!(joint(&unlike, &[1.0; 2], &[vec![], vec![]], &whole).is_err());
        assert!(joint(&Workload::Histogram { len: 20 }, &[1.0], &[vec![], vec![]], &whole).is_err());
    }

    /// Errors along the axes of columns of norm 1 are those of the strategy.
    #[test]
    fn errors_along_axes() {
        let both = Workload::Union { parts: vec![Workload::Ranges { len: 5 }, total(5)] };
        let (constant, errors) = joint_errors(&both, None, &beside()[0]).unwrap();
        let strategy = super::super::p_identity(&both, &beside()[0]).unwrap();
        let unit = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get().powi(2) / Joint::white();
        let mut variances = vec![0.0; 16];
        strategy.variances(&mut variances);
        let ranges: f64 = unit * variances[..15].iter().sum::<f64>();
        assert!(((errors[0][0] + errors[0][1]) / ranges - 1.0).abs() < 1e-9);
        assert!((errors[1][0] / constant - 1.0).abs() < 1e-9 && errors[1][1] < 1e-9 * errors[1][0]);
        assert!((unit * variances[15] / constant - 1.0).abs() < 1e-9, "a total is all of itself");
        let twice = joint_errors(&both, Some(&[2.0; 16]), &beside()[0]).unwrap();
        assert!((twice.1[0][1] / errors[0][1] - 2.0).abs() < 1e-12);
        assert!(joint_errors(&both, Some(&[2.0; 3]), &beside()[0]).is_err());
    }
}
