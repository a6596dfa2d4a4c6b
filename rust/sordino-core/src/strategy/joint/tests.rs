//! Answers, variances, norms and refusals against dense oracles.

use super::axis::MANY_CELLS;
use super::*;

fn sums(len: usize) -> Workload {
    Workload::Linear { kernel: vec![1.0; len], len, center: 0 }
}

fn total(len: usize) -> Workload {
    let (indices, entries) = ((0..len as u32).collect(), vec![1.0; len]);
    Workload::Sparse { rows: 1, columns: len, starts: vec![0, len], indices, entries }
}

fn product(factors: &[Workload; 2]) -> Workload {
    Workload::Kronecker { factors: factors.to_vec() }
}

/// Ranges and sums along both axes and along either, and all cells.
fn asked() -> Workload {
    let parts = vec![
        product(&[Workload::Ranges { len: 5 }, sums(4)]),
        product(&[total(5), sums(4)]),
        product(&[Workload::Ranges { len: 5 }, total(4)]),
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

/// Checks answers and variances against the queries and the weights of each; returns the variances.
fn answered(strategy: &dyn Strategy, workload: &Workload, x: &[i64], y: &[f64]) -> Vec<f64> {
    let (rows, cells, entries) = workload.dense().unwrap();
    let (mut answers, mut variances) = (vec![0.0; rows], vec![0.0; rows]);
    strategy.decode(y, &mut answers);
    strategy.variances(&mut variances);
    let noise = strategy.unit_variances();
    for (t, row) in entries.chunks_exact(cells).enumerate() {
        let truth: f64 = row.iter().zip(x).map(|(a, x)| a * *x as f64).sum();
        assert!((answers[t] - truth).abs() < 1e-8 * (1.0 + truth.abs()), "{t}: {} {truth}", answers[t]);
        let weights = strategy.weights(row).unwrap();
        let read: f64 = weights.iter().zip(y).map(|(w, y)| w * y).sum();
        assert!((read - truth).abs() < 1e-8 * (1.0 + truth.abs()));
        let variance: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
        assert!((variances[t] / variance - 1.0).abs() < 1e-9, "{t}: {} {variance}", variances[t]);
    }
    variances
}

#[test]
fn answers_variances_and_norms() {
    let workload = asked();
    let cells = 20_usize;
    for shares in [[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0], [0.0, 0.5, 0.0, 0.5]] {
        let strategy = joint(&workload, &[1.0, 2.0, 3.0, 1.0], NoiseLaw::Laplace, &beside(), &shares).unwrap();
        let x: Vec<i64> = (0..cells as i64).map(|j| j * 37 % 101 - 20).collect();
        let y = encoded(&*strategy, &x);
        let variances = answered(&*strategy, &workload, &x, &y);
        let boxes = Boxes { shape: &[5, 4], first: &[1, 0, 0, 1], last: &[3, 2, 4, 3] };
        for (k, told) in strategy.box_variances(boxes).unwrap().into_iter().enumerate() {
            let own = strategy.box_variance(boxes.shape, &boxes.first[2 * k..][..2], &boxes.last[2 * k..][..2]);
            assert!((told / own.unwrap() - 1.0).abs() < 1e-9);
        }
        let (mean, largest) = strategy.spread().unwrap();
        let counts = [(60, 1.0), (4, 2.0), (15, 3.0), (20, 1.0)];
        let weights: Vec<f64> = counts.into_iter().flat_map(|(len, weight)| vec![weight; len]).collect();
        let direct: f64 = variances.iter().zip(&weights).map(|(v, w)| v * w).sum::<f64>() / weights.iter().sum::<f64>();
        assert!((mean / direct - 1.0).abs() < 1e-12);
        assert!((largest.unwrap() / variances.iter().fold(0.0, |a: f64, b| a.max(*b)) - 1.0).abs() < 1e-12);
        let one = Unit::add_remove(1, None).unwrap();
        let columns =
            (0..cells).map(|j| encoded(&*strategy, &(0..cells).map(|i| i64::from(i == j)).collect::<Vec<_>>()));
        let most = columns.map(|column| column.iter().map(|v| v.abs()).sum::<f64>()).fold(0.0, f64::max);
        assert!(strategy.sensitivity(one).unwrap().get() == most);
    }
}

/// The same of rows of reals, which are measured in floating point.
#[test]
fn gaussian_tables() {
    let workload = asked();
    let cells = 20_usize;
    let first: Vec<f64> = (0..30).map(|k| if k % 5 == k / 5 { 1.0 } else { 0.3 - 0.05 * f64::from(k % 7) }).collect();
    let along = [first, (0..16).map(|k| f64::from(k % 5 == 0)).collect()];
    for shares in [[0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0], [1e-3, 0.5, 0.0, 0.5]] {
        let strategy = joint(&workload, &[1.0; 4], NoiseLaw::Gaussian, &along, &shares).unwrap();
        assert!(strategy.geometry() == Geometry::L2);
        let x: Vec<i64> = (0..cells as i64).map(|j| j * 37 % 101 - 20).collect();
        let mut y = vec![0.0; strategy.measured_len()];
        strategy.encode(Input::Cells(&x), 1000, Encoded::Float(&mut y)).unwrap();
        answered(&*strategy, &workload, &x, &y);
        let columns: Vec<Vec<f64>> = (0..cells)
            .map(|j| strategy.multiplied(&(0..cells).map(|i| f64::from(i == j)).collect::<Vec<_>>()).unwrap())
            .collect();
        let norm = |v: &[f64]| dot(v, v).sqrt();
        let most = columns.iter().map(|column| norm(column)).fold(0.0, f64::max);
        let pair = columns.iter().flat_map(|a| columns.iter().map(move |b| (a, b)));
        let apart =
            pair.map(|(a, b)| norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>())).fold(0.0, f64::max);
        let told = |unit: Unit| strategy.sensitivity(unit).unwrap().get();
        assert!((told(Unit::add_remove(1, None).unwrap()) / most - 1.0).abs() < 1e-9);
        assert!(told(Unit::replace_one(1).unwrap()) >= apart);
        let boxes = Boxes { shape: &[5, 4], first: &[1, 0], last: &[3, 2] };
        let own = strategy.box_variance(boxes.shape, boxes.first, boxes.last).unwrap();
        assert!((strategy.box_variances(boxes).unwrap()[0] / own - 1.0).abs() < 1e-9);
    }
    let dependent = vec![1.0; 25];
    let whole = [0.0, 0.0, 0.0, 1.0];
    assert!(joint(&asked(), &[1.0; 4], NoiseLaw::Gaussian, &[dependent, along[1].clone()], &whole).is_err());
    assert!(joint(&asked(), &[1.0; 4], NoiseLaw::Gaussian, &[vec![], along[1].clone()], &whole).is_err());
}

/// Where tables of single axes are measured alone, cells are not known, and queries of cells refused.
#[test]
fn what_is_not_measured_is_refused() {
    let margins = Workload::Union {
        parts: vec![product(&[total(5), sums(4)]), product(&[Workload::Ranges { len: 5 }, total(4)])],
    };
    let strategy = joint(&margins, &[1.0, 1.0], NoiseLaw::Laplace, &beside(), &[0.0, 0.5, 0.5, 0.0]).unwrap();
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
        assert!(joint(&asked(), &weights, NoiseLaw::Laplace, &sums, &shares).is_err(), "{shares:?} {sums:?}");
    }
    let whole = [0.0, 0.0, 0.0, 1.0];
    assert!(joint(&asked(), &weights[..3], NoiseLaw::Laplace, &beside(), &whole).is_err());
    let unlike = Workload::Union { parts: vec![product(&[sums(5), sums(4)]), product(&[sums(4), sums(5)])] };
    assert!(joint(&unlike, &[1.0; 2], NoiseLaw::Laplace, &[vec![], vec![]], &whole).is_err());
    assert!(joint(&Workload::Histogram { len: 20 }, &[1.0], NoiseLaw::Laplace, &[vec![], vec![]], &whole).is_err());
}

/// Errors along the axes of columns of norm 1 are those of the strategy.
#[test]
fn errors_along_axes() {
    let both = Workload::Union { parts: vec![Workload::Ranges { len: 5 }, total(5)] };
    let (constant, errors) = joint_errors(&both, None, NoiseLaw::Laplace, &beside()[0]).unwrap();
    let strategy = crate::strategy::p_identity(&both, &beside()[0]).unwrap();
    let unit = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get().powi(2) / Geometry::L1.white();
    let mut variances = vec![0.0; 16];
    strategy.variances(&mut variances);
    let ranges: f64 = unit * variances[..15].iter().sum::<f64>();
    assert!(((errors[0][0] + errors[0][1]) / ranges - 1.0).abs() < 1e-9);
    assert!((errors[1][0] / constant - 1.0).abs() < 1e-9 && errors[1][1] < 1e-9 * errors[1][0]);
    assert!((unit * variances[15] / constant - 1.0).abs() < 1e-9, "a total is all of itself");
    let twice = joint_errors(&both, Some(&[2.0; 16]), NoiseLaw::Laplace, &beside()[0]).unwrap();
    assert!((twice.1[0][1] / errors[0][1] - 2.0).abs() < 1e-12);
    assert!(joint_errors(&both, Some(&[2.0; 3]), NoiseLaw::Laplace, &beside()[0]).is_err());
}

#[test]
fn ranges_of_many_cells_are_summed_as_few_are() {
    let n = MANY_CELLS + 1;
    let asked = Workload::Union { parts: vec![Workload::Ranges { len: n }, total(n)] };
    // Prefix sums beside the cells, of columns that are not alike.
    let rows: Vec<f64> = (0..n * n).map(|k| f64::from(k % n <= k / n) * (1.0 + (k % 7) as f64 / 8.0)).collect();
    let (constant, by_gram) = joint_errors(&asked, None, NoiseLaw::Gaussian, &rows).unwrap();
    let ones = vec![1.0; asked.answers_len()];
    let (own, one_by_one) = joint_errors(&asked, Some(&ones), NoiseLaw::Gaussian, &rows).unwrap();
    assert_eq!(constant, own);
    for (a, b) in by_gram.iter().flatten().zip(one_by_one.iter().flatten()) {
        assert!((a - b).abs() <= 1e-9 * b, "{a} {b}");
    }
}
