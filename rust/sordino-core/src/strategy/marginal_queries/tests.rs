//! Against the same queries of the full table, written out.

use super::*;
use crate::linear_algebra::{Matrix, from_rows, product, scale_columns, symmetric_eigen, to_rows, transpose};

fn sums(len: usize) -> Workload {
    Workload::Linear { kernel: vec![1.0; len], len, center: 0 }
}

/// `(I − J/n) W^{1/2}`, without what is nearly zero: rows that leave constants out.
fn rests(workload: &Workload) -> Rows {
    let (rows, n, entries) = workload.dense().unwrap();
    let mut queries = from_rows(rows, n, &entries);
    for i in 0..rows {
        let mean = (0..n).map(|j| queries[(i, j)]).sum::<f64>() / n as f64;
        (0..n).for_each(|j| queries[(i, j)] -= mean);
    }
    let gram: Matrix = product(&transpose(&queries), &queries);
    let (mut vectors, values) = symmetric_eigen(&gram).unwrap();
    let most = values.iter().fold(0.0f64, |most, v| most.max(*v));
    let kept: Vec<usize> = (0..n).filter(|k| values[*k] > 1e-9 * most.max(1e-9)).collect();
    scale_columns(&mut vectors, |k| values[k].max(0.0).powf(0.25));
    let rows = crate::linear_algebra::select_columns(&vectors, &kept);
    (kept.len(), to_rows(&transpose(&rows)))
}

/// Levels by themselves and their sum: what determines any queries.
fn tree(len: usize) -> Rows {
    let mut entries = vec![1.0; len];
    (0..len).for_each(|i| entries.extend((0..len).map(|j| if i == j { 2.0 } else { 0.0 })));
    (len + 1, entries)
}

fn cases() -> Vec<(Vec<Workload>, Vec<Vec<usize>>)> {
    let total = Workload::Matrix { rows: 1, columns: 3, entries: vec![1.0; 3] };
    // Of less rank than there are values: rounded rows would span other spaces.
    let groups = Workload::Matrix {
        rows: 2,
        columns: 7,
        entries: [[1.0, 0.0], [0.0, 1.0]]
            .map(|ends| (0..7).map(|j| ends[usize::from(j > 2)]).collect::<Vec<f64>>())
            .concat(),
    };
    let few =
        Workload::Matrix { rows: 2, columns: 5, entries: (0..10).map(|k| f64::from((k * k) % 7) / 3.0).collect() };
    let odd = Workload::Matrix { rows: 2, columns: 3, entries: vec![1.0, -2.0, 0.5, 0.0, 1.0, 1.0] };
    vec![
        (
            vec![Workload::Ranges { len: 4 }, Workload::Histogram { len: 3 }, Workload::Histogram { len: 2 }, sums(3)],
            vec![vec![0, 1], vec![2, 3], vec![0], vec![1, 2, 3]],
        ),
        (vec![sums(5), Workload::Ranges { len: 3 }], vec![vec![], vec![0, 1]]),
        (vec![total, odd, Workload::Histogram { len: 3 }], vec![vec![0, 1], vec![1, 2]]),
        (vec![groups, few, sums(3)], vec![vec![0, 1], vec![1, 2], vec![0, 2]]),
    ]
}

fn built(law: NoiseLaw) -> Vec<(Workload, Box<dyn Strategy>)> {
    let of = |(axes, sets): (Vec<Workload>, Vec<Vec<usize>>)| {
        let matrix = |axis: &Workload| match (axis, law) {
            (Workload::Histogram { .. }, _) => None,
            (_, NoiseLaw::Gaussian) => Some(rests(axis)),
            (_, NoiseLaw::Laplace) => Some(tree(axis.input_len().unwrap())),
        };
        let matrices: Vec<_> = axes.iter().map(matrix).collect();
        let weights = (1..=sets.len()).map(|k| k as f64).collect();
        let workload = Workload::MarginalQueries { axes, sets, weights };
        let strategy = marginal_queries(&workload, &matrices, law).unwrap();
        (workload, strategy)
    };
    cases().into_iter().map(of).collect()
}

fn all() -> Vec<(NoiseLaw, Workload, Box<dyn Strategy>)> {
    let of = |law: NoiseLaw| built(law).into_iter().map(move |(workload, strategy)| (law, workload, strategy));
    of(NoiseLaw::Gaussian).chain(of(NoiseLaw::Laplace)).collect()
}

fn encoded(strategy: &dyn Strategy, x: &[i64]) -> Vec<f64> {
    let mut units = vec![0; strategy.measured_len()];
    strategy.encode(Input::Cells(x), 1000, Encoded::Exact(&mut units)).unwrap();
    units.into_iter().map(|unit| unit as f64).collect()
}

fn unit_vector(n: usize, j: usize) -> Vec<i64> {
    (0..n).map(|i| i64::from(i == j)).collect()
}

#[test]
fn answers_come_back_and_variances_are_those_of_the_weights() {
    for (law, workload, strategy) in all() {
        let (rows, columns, entries) = workload.dense().unwrap();
        let x: Vec<i64> = (0..columns as i64).map(|j| 3 + j * 37 % 101).collect();
        let y = encoded(&*strategy, &x);
        let (mut answers, mut variances, mut squares) = (vec![0.0; rows], vec![0.0; rows], vec![0.0; rows]);
        strategy.decode(&y, &mut answers);
        strategy.variances(&mut variances);
        workload.row_squares(&mut squares);
        let noise = strategy.unit_variances();
        for (t, row) in entries.chunks_exact(columns).enumerate() {
            let truth: f64 = row.iter().zip(&x).map(|(a, x)| a * *x as f64).sum();
            assert!((answers[t] - truth).abs() <= 1e-8 * (1.0 + truth.abs()), "{law:?} {t} {} {truth}", answers[t]);
            assert!((row.iter().map(|a| a * a).sum::<f64>() - squares[t]).abs() < 1e-9, "{t}");
            assert_eq!(workload.row(t).unwrap(), row);
            let own = strategy.answer_weights(t, &[]).unwrap();
            let read: f64 = own.iter().zip(&y).map(|(w, y)| w * y).sum();
            assert!((read - truth).abs() <= 1e-8 * (1.0 + truth.abs()), "{law:?} {t} {read} {truth}");
            let variance: f64 = own.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
            assert!((variance - variances[t]).abs() <= 1e-9 * (variance + 1e-9), "{law:?} {t} {variance}");
            if law == NoiseLaw::Gaussian {
                let weights = strategy.weights(row).unwrap();
                weights.iter().zip(&own).for_each(|(a, b)| assert!((a - b).abs() <= 1e-9, "{t}: {a} {b}"));
            }
        }
    }
}

#[test]
fn sensitivities_bound_all_changes() {
    for (law, workload, strategy) in all() {
        let cells = workload.input_len().unwrap();
        let columns: Vec<Vec<f64>> = (0..cells).map(|j| encoded(&*strategy, &unit_vector(cells, j))).collect();
        let norm = |v: &mut dyn Iterator<Item = f64>| match law {
            NoiseLaw::Gaussian => v.map(|v| v * v).sum::<f64>().sqrt(),
            NoiseLaw::Laplace => v.map(f64::abs).sum(),
        };
        let one = columns.iter().map(|a| norm(&mut a.iter().copied())).fold(0.0, f64::max);
        let pairs = columns.iter().flat_map(|a| columns.iter().map(move |b| (a, b)));
        let two = pairs.map(|(a, b)| norm(&mut a.iter().zip(b).map(|(a, b)| a - b))).fold(one, f64::max);
        let declared = |unit: Unit| strategy.sensitivity(unit).unwrap().get();
        let single = declared(Unit::add_remove(1, None).unwrap());
        assert!(single >= one * (1.0 - 1e-12) && single <= 1.3 * one, "{law:?} {single} {one}");
        let replaced = declared(Unit::replace_one(1).unwrap());
        assert!(replaced >= two * (1.0 - 1e-12) && replaced <= 2.0 * two, "{law:?} {replaced} {two}");
        assert!(declared(Unit::add_remove(3, None).unwrap()) >= 3.0 * one * (1.0 - 1e-12));
    }
}

/// Records, with null records among them, and the table of the others.
#[test]
fn records_are_their_table() {
    for (_, workload, strategy) in all() {
        let levels = workload.record_levels().unwrap();
        let rows: Vec<Vec<i64>> = (0..40i64)
            .map(|r| levels.iter().map(|n| (r * 7 + r / 3) % (*n as i64 + i64::from(r % 5 == 0))).collect())
            .collect();
        let mut table = vec![0i64; levels.iter().product()];
        for row in rows.iter().filter(|row| row.iter().zip(&levels).all(|(code, n)| *code < *n as i64)) {
            table[row.iter().zip(&levels).fold(0, |at, (code, n)| at * n + *code as usize)] += 1;
        }
        let codes: Vec<i64> = rows.concat();
        let mut units = vec![0; strategy.measured_len()];
        let codes = crate::strategy::Codes::Words(&codes);
        strategy.encode(Input::Codes(codes), 1000, Encoded::Exact(&mut units)).unwrap();
        let known = encoded(&*strategy, &table);
        assert!(units.iter().zip(&known).all(|(a, b)| *a as f64 == *b));
    }
}

#[test]
fn noise_that_is_smaller_by_block_is_followed() {
    let (_, strategy) = built(NoiseLaw::Laplace).swap_remove(0);
    let factors: Vec<f64> = (0..strategy.steps().len()).map(|k| 1.0 + 0.25 * k as f64).collect();
    let refined = strategy.refined(&factors).unwrap();
    let (noise, len) = (refined.unit_variances(), cases()[0].0.len());
    assert_eq!(len, 4);
    let (workload, _) = built(NoiseLaw::Laplace).swap_remove(0);
    let mut variances = vec![0.0; workload.answers_len()];
    refined.variances(&mut variances);
    for (t, told) in variances.iter().enumerate() {
        let weights = refined.answer_weights(t, &[]).unwrap();
        let direct: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
        assert!((told / direct - 1.0).abs() < 1e-9, "{t}: {told} {direct}");
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let axes = vec![sums(3), Workload::Histogram { len: 2 }];
    let workload =
        |sets: Vec<Vec<usize>>| Workload::MarginalQueries { axes: axes.clone(), weights: vec![1.0; sets.len()], sets };
    let good = workload(vec![vec![0, 1]]);
    assert!(marginal_queries(&good, &[Some(rests(&sums(3))), None], NoiseLaw::Gaussian).is_ok());
    assert!(marginal_queries(&good, &[None, None], NoiseLaw::Gaussian).is_err());
    assert!(marginal_queries(&good, &[Some((1, vec![1.0, -1.0])), None], NoiseLaw::Gaussian).is_err());
    assert!(marginal_queries(&good, &[Some((1, vec![f64::NAN; 3])), None], NoiseLaw::Gaussian).is_err());
    assert!(marginal_queries(&good, &[None], NoiseLaw::Gaussian).is_err());
    assert!(marginal_queries(&sums(3), &[None], NoiseLaw::Gaussian).is_err());
    for sets in [vec![], vec![vec![1, 0]], vec![vec![2]], vec![vec![0, 0]]] {
        assert!(workload(sets).validated().is_err());
    }
}
