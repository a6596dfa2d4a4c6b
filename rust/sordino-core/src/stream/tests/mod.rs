//! Streams from inside: what a process does with noise said beforehand.

mod enumeration;
mod lazy;
mod paths;
mod rebuild;
mod replicas;
mod states;
mod trees;

use super::process::Process;
use super::{Filter, Horizon, StreamMechanism, StreamPlan, StreamRecipe};
use crate::door::{NoiseLaw, NoiseSource};
use crate::objective::Objective;

const GAUSS: NoiseLaw = NoiseLaw::Gaussian;
/// Noise of an impulse response: rounding is 2^-50 of it.
const IMPULSE: i64 = 1 << 50;
/// Size of the noise that processes are made for.
const QUARTERS: u64 = 1 << 24;

fn plan(
    filter: Filter,
    mechanism: StreamMechanism,
    law: NoiseLaw,
    horizon: Horizon,
    objective: Objective,
) -> StreamPlan {
    StreamPlan::new(StreamRecipe { filter, mechanism, law, horizon, objective, participations: (1, 1) }).unwrap()
}

/// Every Gaussian strategy with a square `C`, on every filter that it serves, for `n` steps.
fn square_plans(n: u64) -> Vec<StreamPlan> {
    let decay = || Filter::Decay { decay: 0.8, factor: 0.2 };
    let window = || Filter::Window { window: 3, factor: 1.0 };
    let taps = || Filter::Taps(vec![1.0, 2.0, -0.5]);
    let buffered = |degree| StreamMechanism::Buffered { degree };
    let hard = Horizon::Hard(n);
    let mut plans = Vec::new();
    for filter in [Filter::RunningSum, Filter::RunningAverage, decay(), window(), taps()] {
        for horizon in [hard, Horizon::Unbounded] {
            plans.push(plan(filter.clone(), StreamMechanism::Identity, GAUSS, horizon, Objective::Max));
        }
    }
    for filter in [Filter::RunningSum, Filter::RunningAverage] {
        for (mechanism, horizon) in [
            (StreamMechanism::Output, hard),
            (buffered(Some(1)), hard),
            (buffered(Some(3)), hard),
            (buffered(None), hard),
            (buffered(Some(3)), Horizon::Soft(n)),
            (buffered(Some(4)), Horizon::Unbounded),
            (buffered(None), Horizon::Unbounded),
            (StreamMechanism::TwoDiagonals, hard),
            (StreamMechanism::TimeVarying { degree: Some(2) }, hard),
            (StreamMechanism::TimeVarying { degree: None }, hard),
            (StreamMechanism::NormalizedSquareRoot, hard),
            (StreamMechanism::SquareRoot, hard),
            (StreamMechanism::Optimal, hard),
        ] {
            for objective in [Objective::Max, Objective::Mean] {
                plans.push(plan(filter.clone(), mechanism, GAUSS, horizon, objective));
            }
        }
    }
    for (filter, mechanism) in [
        (decay(), buffered(None)),
        (decay(), buffered(Some(1))),
        (decay(), StreamMechanism::SquareRoot),
        (window(), StreamMechanism::Comb),
        (window(), StreamMechanism::Outer),
        (taps(), StreamMechanism::Outer),
    ] {
        for horizon in [hard, Horizon::Soft(n), Horizon::Unbounded] {
            plans.push(plan(filter.clone(), mechanism, GAUSS, horizon, Objective::Mean));
        }
    }
    plans
}

/// Row-major `n × m`.
#[derive(Debug, Clone)]
struct Matrix {
    columns: usize,
    entries: Vec<f64>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> f64) -> Self {
        let entry = &entry;
        Self { columns, entries: (0..rows).flat_map(|i| (0..columns).map(move |j| entry(i, j))).collect() }
    }

    fn rows(&self) -> usize {
        self.entries.len() / self.columns
    }

    fn row(&self, i: usize) -> &[f64] {
        &self.entries[i * self.columns..][..self.columns]
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.row(i)[j]
    }

    fn times(&self, other: &Self) -> Self {
        Self::new(self.rows(), other.columns, |i, j| (0..self.columns).map(|k| self.at(i, k) * other.at(k, j)).sum())
    }

    /// The inverse of a lower triangular matrix.
    fn inverse(&self) -> Self {
        let n = self.rows();
        let mut out = Self::new(n, n, |_, _| 0.0);
        for j in 0..n {
            for i in j..n {
                let known: f64 = (j..i).map(|k| self.at(i, k) * out.at(k, j)).sum();
                out.entries[i * n + j] = (f64::from(u8::from(i == j)) - known) / self.at(i, i);
            }
        }
        out
    }

    fn distance(&self, other: &Self) -> f64 {
        self.entries.iter().zip(&other.entries).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    }
}

/// The filter as a matrix of `n` steps.
fn workload(filter: &Filter, n: usize) -> Matrix {
    let taps = filter.taps(n);
    Matrix::new(
        n,
        n,
        |t, s| {
            if t < s { 0.0 } else { taps.get(t - s).copied().unwrap_or(0.0) / filter.divisor(t as u64 + 1) }
        },
    )
}

fn process(plan: &StreamPlan, dim: usize) -> Box<dyn Process> {
    plan.strategy().process(dim, QUARTERS)
}

/// What one sample of noise, of scale 1, does to the published increments: `steps` rows, a column a sample; and
/// the samples' sizes over the noise of scale 1.
fn colouring(plan: &StreamPlan, steps: usize) -> (Matrix, Vec<f64>) {
    let run = |impulse: Option<usize>| {
        let script = (0..=impulse.unwrap_or(0)).map(|i| if Some(i) == impulse { IMPULSE } else { 0 });
        let (mut source, mut process) = (NoiseSource::scripted(script), process(plan, 1));
        let values: Vec<f64> = (0..steps)
            .map(|_| {
                let mut row = [0];
                process.next(&mut source, &mut row);
                row[0] as f64 / IMPULSE as f64
            })
            .collect();
        (values, source.sizes().iter().map(|size| *size as f64 / QUARTERS as f64).collect::<Vec<_>>())
    };
    let sizes = run(None).1;
    let columns: Vec<Vec<f64>> = (0..sizes.len()).map(|i| run(Some(i)).0).collect();
    (Matrix::new(steps, sizes.len(), |t, i| columns[i][t] * sizes[i]), sizes)
}

/// Standard normal distribution function.
fn normal(x: f64) -> f64 {
    0.5 * libm::erfc(-x / std::f64::consts::SQRT_2)
}
