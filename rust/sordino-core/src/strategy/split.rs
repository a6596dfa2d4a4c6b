//! A union whose parts are measured each by a strategy of its own, with a share of the privacy.
//!
//! Noises of the parts are independent. With error `E_p` of part `p` where its strategy has the privacy alone, and shares
//! `c_p` of the squared ℓ2 sensitivity (Gaussian) or of the ℓ1 sensitivity (Laplace), the error is `Σ E_p/c_p` or
//! `Σ E_p/c_p²`: least for `c_p ∝ E_p^{1/2}` or `E_p^{1/3}`. The largest variance is least where all parts
//! have it. Shares are whole multiples of what the parts measure. An answer is read off its own part; any other query off
//! all parts that know it, by the inverse of their variances.

use super::{Encoded, Encoding, Geometry, Input, Run, Strategy};
use crate::error::Error;
use crate::objective::Objective;
use crate::parallel::pieces;
use crate::transform::fourier::UNIT_ROUNDOFF;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::{MAX_LEN, Workload, spread};
use std::sync::Arc;

/// Multiple of the part with the least: shares are near the best ones, and bits are left for large cells.
const LEAST_MULTIPLE: f64 = 32.0;
/// Most that multiples may be apart: one part may measure cells, another products of 2^40 units.
const MOST_APART: f64 = 72_057_594_037_927_936.0;
/// Bits of a multiple that count.
const MULTIPLE_BITS: i32 = 24;
/// Integers below this are measured as they are, larger ones as floats.
const MOST_EXACT: u64 = 1 << 60;

#[derive(Debug, Clone)]
struct Part {
    strategy: Arc<dyn Strategy>,
    multiple: u64,
    /// What the noise of a part with rows of one step is smaller by.
    gain: f64,
    answers: usize,
    /// How much its squared errors count in the mean.
    weight: f64,
}

#[derive(Debug, Clone)]
pub(super) struct Split {
    parts: Vec<Part>,
    geometry: Geometry,
    /// Of [`Strategy::refined`].
    factors: Vec<f64>,
}

/// The parts of a union, measured by these strategies with the best shares for `weights` of their squared errors, or for the
/// largest variance of an answer.
///
/// # Errors
/// [`Error::InvalidParameter`] if there are not as many strategies and weights as parts; [`Error::Unsupported`] if a
/// strategy has noise of another law than the others, or none for the unit.
pub fn split(
    workload: &Workload,
    strategies: Vec<Arc<dyn Strategy>>,
    weights: &[f64],
    unit: Unit,
    objective: Objective,
) -> Result<Box<dyn Strategy>, Error> {
    let Workload::Union { parts } = workload else {
        return Err(Error::Unsupported("parts are those of a union".into()));
    };
    Error::check_len("strategies", parts.len(), strategies.len())?;
    Error::check_len("weights", parts.len(), weights.len())?;
    let geometry = strategies[0].geometry();
    if !matches!(geometry, Geometry::L2 | Geometry::L1) || strategies.iter().any(|part| part.geometry() != geometry) {
        return Err(Error::Unsupported("parts are measured with independent noise of one law".into()));
    }
    let power = match objective {
        Objective::Mean if geometry == Geometry::L2 => 0.25,
        Objective::Mean => 1.0 / 3.0,
        // All parts alike.
        Objective::Max => 0.5,
    };
    let mut multiples = Vec::new();
    for ((part, strategy), weight) in parts.iter().zip(&strategies).zip(weights) {
        let size = strategy.sensitivity(unit)?.get();
        let unknown = || Error::Unsupported("the error of a part is not known".into());
        let (mean, largest) = spread_of(&**strategy, part.answers_len()).ok_or_else(unknown)?;
        let variance = match objective {
            Objective::Mean => weight * part.answers_len() as f64 * mean,
            Objective::Max => largest.ok_or_else(unknown)?,
        };
        multiples.push((variance * size * size).powf(power) / size);
    }
    let multiples = whole(&multiples)?;
    let parts =
        parts.iter().zip(strategies).zip(multiples).zip(weights).map(|(((part, strategy), multiple), weight)| Part {
            strategy,
            multiple,
            gain: 1.0,
            answers: part.answers_len(),
            weight: *weight,
        });
    Ok(Box::new(Split { parts: parts.collect(), geometry, factors: Vec::new() }))
}

/// Whole multiples in these proportions, nearly.
fn whole(multiples: &[f64]) -> Result<Vec<u64>, Error> {
    let least = multiples.iter().fold(f64::INFINITY, |least, m| least.min(*m));
    let apart = multiples.iter().fold(0.0f64, |most, m| most.max(*m)) / least;
    if apart.is_nan() || apart > MOST_APART {
        return Err(Error::Unsupported("the parts are too different to be measured on one lattice".into()));
    }
    Ok(multiples.iter().map(|multiple| rounded(LEAST_MULTIPLE * multiple / least)).collect())
}

/// The nearest integer of so many bits that a double holds it.
fn rounded(multiple: f64) -> u64 {
    let unit = 2f64.powi((multiple.log2().floor() as i32 + 1 - MULTIPLE_BITS).max(0));
    ((multiple / unit).round() * unit) as u64
}

/// Mean and largest variance of the answers of a strategy's own workload; none if they are too many to list.
fn spread_of(strategy: &dyn Strategy, answers: usize) -> Option<(f64, Option<f64>)> {
    strategy.spread().or_else(|| {
        (answers <= MAX_LEN).then(|| {
            let mut variances = vec![0.0; answers];
            strategy.variances(&mut variances);
            let (mean, largest) = spread(&variances);
            (mean, Some(largest))
        })
    })
}

impl Part {
    /// The multiple as a number, exactly.
    fn scale(&self) -> f64 {
        self.multiple as f64
    }

    fn measured(&self) -> usize {
        self.strategy.measured_len()
    }

    fn answers(&self) -> usize {
        self.answers
    }

    /// What variances of the strategy alone are divided by.
    fn square(&self) -> f64 {
        (self.scale() * self.gain).powi(2)
    }

    /// Weights of a row in what this part measures, and their variance.
    fn weights(&self, row: &[f64]) -> Option<(Vec<f64>, f64)> {
        let weights = self.strategy.weights(row).ok()?;
        let own = self.strategy.unit_variances();
        let variance: f64 = weights.iter().zip(&own).map(|(w, v)| w * w * v).sum();
        let scale = self.scale();
        Some((weights.iter().map(|w| w / scale).collect(), (variance / self.square()).max(f64::MIN_POSITIVE)))
    }
}

impl Split {
    /// Tables with noise of one law, and what they are measured times, nearly: to be decoded together.
    pub(super) fn of_tables(tables: &[(Arc<dyn Strategy>, f64)]) -> Result<Self, Error> {
        let (strategies, multiples): (Vec<Arc<dyn Strategy>>, Vec<f64>) = tables.iter().cloned().unzip();
        let geometry = strategies[0].geometry();
        let multiples = if multiples.len() == 1 { vec![1] } else { whole(&multiples)? };
        let parts = strategies.into_iter().zip(multiples).map(|(strategy, multiple)| Part {
            answers: strategy.measured_len(),
            strategy,
            multiple,
            gain: 1.0,
            weight: 1.0,
        });
        Ok(Self { parts: parts.collect(), geometry, factors: Vec::new() })
    }

    /// What each part is measured times.
    pub(super) fn scales(&self) -> impl Iterator<Item = f64> {
        self.parts.iter().map(Part::scale)
    }

    /// Each part with its piece of an array, of so many entries.
    fn pieces<'a, T>(
        &'a self,
        all: &'a mut [T],
        len: impl Fn(&Part) -> usize + 'a,
    ) -> impl Iterator<Item = (&'a Part, &'a mut [T])> {
        self.parts.iter().zip(pieces(all, self.parts.iter().map(len)))
    }
}

impl Strategy for Split {
    fn measured_len(&self) -> usize {
        self.parts.iter().map(Part::measured).sum()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        let mut sum = Upper::ZERO;
        for part in &self.parts {
            let own = Upper::integer(part.multiple.into()) * part.strategy.sensitivity(unit)?;
            sum = sum + if self.geometry == Geometry::L2 { own * own } else { own };
        }
        Ok(if self.geometry == Geometry::L2 { sum.sqrt() } else { sum })
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        let (mut exact, mut most, mut largest, mut error) = (true, 0u64, 0.0f64, Upper::ZERO);
        for part in &self.parts {
            let own = match part.strategy.encoding(max_abs)? {
                Encoding::Exact { max_abs } => {
                    let own = max_abs.saturating_mul(part.multiple);
                    exact &= own < MOST_EXACT;
                    most = most.max(own);
                    max_abs as f64 * part.scale()
                }
                Encoding::Float { error_l2, max_abs } => {
                    exact = false;
                    error = error + Upper::integer(part.multiple.into()) * error_l2;
                    max_abs * part.scale()
                }
            };
            largest = largest.max(own);
            // Of floats each number is rounded twice: once from what the part measures, once times its multiple.
            let root = Upper::integer(part.strategy.measured_len() as u128).sqrt();
            error = error + Upper::rounded(2.0 * UNIT_ROUNDOFF * own, 4) * root;
        }
        Ok(if exact {
            Encoding::Exact { max_abs: most }
        } else {
            Encoding::Float { error_l2: error, max_abs: largest * (1.0 + 1e-12) }
        })
    }

    fn steps(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for part in &self.parts {
            let own = part.strategy.steps();
            if own.is_empty() {
                return Vec::new();
            }
            for run in own {
                let Some(step) = run.step.checked_mul(part.multiple) else { return Vec::new() };
                runs.push(Run { step, len: run.len });
            }
        }
        runs
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        let mut refined = self.clone();
        let mut rest = factors;
        for part in &mut refined.parts {
            let (own, after) = rest.split_at_checked(part.strategy.steps().len())?;
            rest = after;
            if let [gain] = own {
                part.gain = *gain;
            } else {
                part.strategy = Arc::from(part.strategy.refined(own)?);
            }
        }
        refined.factors = factors.to_vec();
        Some(Box::new(refined))
    }

    fn factors(&self) -> &[f64] {
        &self.factors
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        match out {
            Encoded::Exact(units) => {
                for (part, own) in self.pieces(units, Part::measured) {
                    part.strategy.encode(x, max_abs, Encoded::Exact(&mut *own))?;
                    for unit in own {
                        *unit *= part.multiple as i64;
                    }
                }
            }
            Encoded::Float(values) => {
                for (part, own) in self.pieces(values, Part::measured) {
                    if let Encoding::Exact { .. } = part.strategy.encoding(max_abs)? {
                        let mut units = vec![0; own.len()];
                        part.strategy.encode(x, max_abs, Encoded::Exact(&mut units))?;
                        own.iter_mut().zip(units).for_each(|(slot, unit)| *slot = unit as f64);
                    } else {
                        part.strategy.encode(x, max_abs, Encoded::Float(&mut *own))?;
                    }
                    for value in own {
                        *value *= part.scale();
                    }
                }
            }
            Encoded::Wide(_) => unreachable!("the door allocates what `encoding` asked for"),
        }
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        let mut scaled = y.to_vec();
        for ((part, own), (_, answers)) in self.pieces(&mut scaled, Part::measured).zip(self.pieces(out, Part::answers))
        {
            for value in &mut *own {
                *value /= part.scale();
            }
            part.strategy.decode(own, answers);
        }
    }

    fn variances(&self, out: &mut [f64]) {
        for (part, variances) in self.pieces(out, Part::answers) {
            part.strategy.variances(&mut *variances);
            for variance in variances {
                *variance /= part.square();
            }
        }
    }

    fn spread(&self) -> Option<(f64, Option<f64>)> {
        let (mut sum, mut weights, mut largest) = (0.0, 0.0, Some(0.0f64));
        for part in &self.parts {
            let (mean, most) = spread_of(&*part.strategy, part.answers)?;
            let (square, weight) = (part.square(), part.weight * part.answers as f64);
            sum += weight * mean / square;
            weights += weight;
            largest = largest.zip(most).map(|(a, b)| a.max(b / square));
        }
        Some((sum / weights, largest))
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        let parts = self.parts.iter().map(|part| {
            let own = part.strategy.multiplied(x)?;
            Some(own.into_iter().map(|v| part.scale() * v).collect::<Vec<_>>())
        });
        Some(parts.collect::<Option<Vec<_>>>()?.concat())
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        let (mut sum, mut rest) = (Vec::new(), y);
        for part in &self.parts {
            let (own, after) = rest.split_at(part.measured());
            rest = after;
            let cells = part.strategy.transposed(own)?;
            sum.resize(cells.len(), 0.0);
            sum.iter_mut().zip(cells).for_each(|(slot, cell)| *slot += part.scale() * cell);
        }
        Some(sum)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        let known: Vec<Option<(Vec<f64>, f64)>> = self.parts.iter().map(|part| part.weights(row)).collect();
        let precision: f64 = known.iter().flatten().map(|(_, variance)| variance.recip()).sum();
        if precision == 0.0 {
            return Err(Error::Unsupported("no part of the union determines this query by itself".into()));
        }
        let each = self.parts.iter().zip(known).flat_map(|(part, known)| match known {
            Some((weights, variance)) => {
                let share = variance.recip() / precision;
                weights.into_iter().map(|w| share * w).collect()
            }
            None => vec![0.0; part.strategy.measured_len()],
        });
        Ok(each.collect())
    }

    fn answer_weights(&self, answer: usize, row: &[f64]) -> Result<Vec<f64>, Error> {
        let (mut weights, mut rest) = (Vec::with_capacity(self.measured_len()), Some(answer));
        for part in &self.parts {
            if let Some(own) = rest.filter(|own| *own < part.answers) {
                let scale = part.scale();
                weights.extend(part.strategy.answer_weights(own, row)?.into_iter().map(|w| w / scale));
                rest = None;
            } else {
                weights.resize(weights.len() + part.strategy.measured_len(), 0.0);
                rest = rest.map(|own| own - part.answers);
            }
        }
        Ok(weights)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::NoiseLaw;
    use crate::strategy::{Mechanism, Recipe};

    fn sums(len: usize) -> Workload {
        Workload::Linear { kernel: vec![1.0; len], len, center: 0 }
    }

    /// Unions of twelve cells, and how their parts are measured.
    fn unions() -> Vec<(Vec<Workload>, Vec<Mechanism>, NoiseLaw)> {
        let (ranges, cells) = (Workload::Ranges { len: 12 }, Workload::Histogram { len: 12 });
        let product = Workload::Kronecker { factors: vec![sums(4), Workload::Ranges { len: 3 }] };
        let window = Workload::Linear { kernel: vec![0.5, 1.0, 0.5], len: 12, center: 0 };
        let ring = Workload::Kronecker {
            factors: vec![Workload::Circular { kernel: vec![1.0, 0.5, 0.0, 0.5] }, Workload::Histogram { len: 3 }],
        };
        let (gauss, laplace) = (NoiseLaw::Gaussian, NoiseLaw::Laplace);
        vec![
            (vec![ranges.clone(), product.clone()], vec![Mechanism::Balanced, Mechanism::Balanced], gauss),
            (
                vec![window, ring, cells.clone()],
                vec![Mechanism::SquareRoot, Mechanism::Balanced, Mechanism::Identity],
                gauss,
            ),
            (vec![ranges, cells], vec![Mechanism::WeightedTree, Mechanism::Identity], laplace),
            (vec![sums(12), product], vec![Mechanism::Haar, Mechanism::WeightedTree], laplace),
        ]
    }

    fn built(parts: &[Workload], how: &[Mechanism], law: NoiseLaw, unit: Unit) -> Box<dyn Strategy> {
        let strategies = parts
            .iter()
            .zip(how)
            .map(|(part, mechanism)| {
                let recipe = Recipe { workload: part.clone(), mechanism: *mechanism, law };
                Arc::from(recipe.build().unwrap())
            })
            .collect();
        let weights: Vec<f64> = (1..=parts.len()).map(|k| k as f64).collect();
        split(&Workload::Union { parts: parts.to_vec() }, strategies, &weights, unit, Objective::Mean).unwrap()
    }

    fn encoded(strategy: &dyn Strategy, x: &[i64], max_abs: u64) -> Vec<f64> {
        let len = strategy.measured_len();
        if let Encoding::Exact { max_abs: most } = strategy.encoding(max_abs).unwrap() {
            let mut units = vec![0; len];
            strategy.encode(Input::Cells(x), max_abs, Encoded::Exact(&mut units)).unwrap();
            assert!(units.iter().all(|unit| unit.unsigned_abs() <= most));
            units.iter().map(|unit| *unit as f64).collect()
        } else {
            let mut values = vec![0.0; len];
            strategy.encode(Input::Cells(x), max_abs, Encoded::Float(&mut values)).unwrap();
            values
        }
    }

    #[test]
    fn answers_come_back_and_variances_are_those_of_the_weights() {
        let unit = Unit::add_remove(1, None).unwrap();
        for (parts, how, law) in unions() {
            let strategy = built(&parts, &how, law, unit);
            let workload = Workload::Union { parts };
            let (rows, columns, entries) = workload.dense().unwrap();
            let x: Vec<i64> = (0..columns as i64).map(|j| 3 + j * 37 % 101).collect();
            let y = encoded(&*strategy, &x, 128);
            let (mut answers, mut variances) = (vec![0.0; rows], vec![0.0; rows]);
            strategy.decode(&y, &mut answers);
            strategy.variances(&mut variances);
            let own = strategy.unit_variances();
            let variance = |weights: &[f64]| weights.iter().zip(&own).map(|(w, v)| w * w * v).sum::<f64>();
            for (t, row) in entries.chunks_exact(columns).enumerate() {
                let truth: f64 = row.iter().zip(&x).map(|(a, x)| a * *x as f64).sum();
                assert!((answers[t] - truth).abs() <= 1e-8 * (1.0 + truth.abs()));
                let told = strategy.answer_weights(t, row).unwrap();
                assert!((variances[t] / variance(&told) - 1.0).abs() < 1e-5, "{t}");
                // All parts together know no less.
                let together = strategy.weights(row).unwrap();
                let read: f64 = together.iter().zip(&y).map(|(w, y)| w * y).sum();
                assert!((read - truth).abs() <= 1e-8 * (1.0 + truth.abs()));
                assert!(variance(&together) <= variances[t] * (1.0 + 1e-5));
            }
        }
    }

    #[test]
    fn sensitivities_are_at_least_those_of_the_columns() {
        for (parts, how, law) in unions() {
            let units = [
                Unit::add_remove(1, None).unwrap(),
                Unit::add_remove(3, None).unwrap(),
                Unit::add_remove(2, Some(1)).unwrap(),
                Unit::replace_one(1).unwrap(),
            ];
            for unit in units {
                let strategy = built(&parts, &how, law, unit);
                let cells = 12;
                let columns: Vec<Vec<f64>> = (0..cells)
                    .map(|j| encoded(&*strategy, &(0..cells).map(|i| i64::from(i == j)).collect::<Vec<_>>(), 1))
                    .collect();
                let norm = |v: Vec<f64>| match law {
                    NoiseLaw::Gaussian => v.iter().map(|v| v * v).sum::<f64>().sqrt(),
                    NoiseLaw::Laplace => v.iter().map(|v| v.abs()).sum(),
                };
                let add = |a: &[f64], s: f64, b: &[f64]| a.iter().zip(b).map(|(a, b)| a + s * b).collect::<Vec<_>>();
                let zero = vec![0.0; strategy.measured_len()];
                let mut largest = 0.0f64;
                for (i, a) in columns.iter().enumerate() {
                    for (j, b) in columns.iter().enumerate() {
                        let change = match unit {
                            Unit::AddRemove { records, per_cell: None, .. } => add(&zero, f64::from(records), a),
                            Unit::AddRemove { .. } if i != j => add(a, 1.0, b),
                            Unit::ReplaceOne { .. } => add(a, -1.0, b),
                            Unit::AddRemove { .. } => a.clone(),
                        };
                        largest = largest.max(norm(change));
                    }
                }
                let declared = strategy.sensitivity(unit).unwrap().get();
                assert!(declared >= largest * (1.0 - 1e-9), "{unit:?}: {declared} {largest}");
                assert!(declared <= largest * 1.8, "{unit:?}: {declared} {largest}");
            }
        }
    }

    /// What is too large for integers is measured in floats, rounded twice.
    #[test]
    fn large_cells_are_floats_within_their_bound() {
        let (parts, how, law) = unions().swap_remove(0);
        let strategy = built(&parts, &how, law, Unit::add_remove(1, None).unwrap());
        let float = |bits: u32| match strategy.encoding(1 << bits) {
            Ok(Encoding::Float { error_l2, .. }) => Some((1i64 << bits, error_l2)),
            _ => None,
        };
        let (max_abs, error_l2) = (20..40).find_map(float).unwrap();
        let one = |j: usize| {
            let mut units = vec![0; strategy.measured_len()];
            let x: Vec<i64> = (0..12).map(|i| i64::from(i == j)).collect();
            strategy.encode(Input::Cells(&x), 1, Encoded::Exact(&mut units)).unwrap();
            units
        };
        let x: Vec<i64> = (0..12).map(|j| if j % 3 == 0 { max_abs } else { 77_777_777 * j % max_abs - 1 }).collect();
        let mut known = vec![0i128; strategy.measured_len()];
        for (j, x) in x.iter().enumerate() {
            known.iter_mut().zip(one(j)).for_each(|(sum, b)| *sum += i128::from(b) * i128::from(*x));
        }
        let got = encoded(&*strategy, &x, max_abs as u64);
        let error: f64 = got.iter().zip(&known).map(|(a, b)| ((*a as i128 - b) as f64).powi(2)).sum();
        assert!(error > 0.0 && error.sqrt() <= error_l2.get(), "{max_abs} {} {}", error.sqrt(), error_l2.get());
    }

    /// Noise that is smaller on some rows by known factors: what is told of answers follows it.
    #[test]
    fn refined_parts_have_the_variances_of_their_noise() {
        let (parts, how, law) = unions().swap_remove(2);
        let strategy = built(&parts, &how, law, Unit::add_remove(1, None).unwrap());
        let factors: Vec<f64> = (0..strategy.steps().len()).map(|k| 1.0 + 0.25 * k as f64).collect();
        let refined = strategy.refined(&factors).unwrap();
        let own = refined.unit_variances();
        let workload = Workload::Union { parts };
        let mut variances = vec![0.0; workload.answers_len()];
        refined.variances(&mut variances);
        for (t, told) in variances.iter().enumerate() {
            let row = workload.row(t).unwrap();
            let weights = refined.answer_weights(t, &row).unwrap();
            let direct: f64 = weights.iter().zip(&own).map(|(w, v)| w * w * v).sum();
            assert!((told / direct - 1.0).abs() < 1e-9, "{t}: {told} {direct}");
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let unit = Unit::add_remove(1, None).unwrap();
        let cells = || Workload::Histogram { len: 3 };
        let measured = |law| -> Arc<dyn Strategy> {
            Arc::from(Recipe { workload: cells(), mechanism: Mechanism::Identity, law }.build().unwrap())
        };
        let two = Workload::Union { parts: vec![cells(), cells()] };
        let (gauss, laplace) = (measured(NoiseLaw::Gaussian), measured(NoiseLaw::Laplace));
        assert!(split(&two, vec![Arc::clone(&gauss)], &[1.0, 1.0], unit, Objective::Mean).is_err());
        assert!(split(&two, vec![Arc::clone(&gauss), laplace], &[1.0, 1.0], unit, Objective::Mean).is_err());
        assert!(split(&cells(), vec![Arc::clone(&gauss)], &[1.0], unit, Objective::Mean).is_err());
        assert!(split(&two, vec![Arc::clone(&gauss), gauss], &[1.0, 1e90], unit, Objective::Mean).is_err());
    }
}
