use super::forest::{Folded, Forest};
use super::solve::Solver;
use super::{Laminar, NestedGroups};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::linear_algebra::{Matrix, from_rows, pseudo_inverse};
use crate::strategy::{Encoded, Geometry, Input, Strategy};
use crate::unit::Unit;
use crate::workload::Workload;
use proptest::prelude::*;

fn laminar(
    workload: &Workload,
    law: NoiseLaw,
    weights: Option<&[f64]>,
    unit: Option<Unit>,
    most: Option<u64>,
) -> Result<Box<dyn Strategy>, Error> {
    NestedGroups::of(workload)?.strategy(law, weights, unit, most)
}

fn nested_bound(workload: &Workload, weights: Option<&[f64]>) -> Result<f64, Error> {
    NestedGroups::of(workload)?.bound(weights)
}

/// Groups by labels, one list a level; negative ones are of no group.
fn groups(labels: &[Vec<i64>], factors: &[f64]) -> Workload {
    let columns = labels[0].len();
    let (mut starts, mut indices, mut entries) = (vec![0], vec![], vec![]);
    for (level, factor) in labels.iter().zip(factors) {
        for group in 0..=*level.iter().max().unwrap() {
            for cell in (0..columns).filter(|cell| level[*cell] == group) {
                indices.push(cell as u32);
                entries.push(*factor);
            }
            starts.push(indices.len());
        }
    }
    Workload::Sparse { rows: starts.len() - 1, columns, starts, indices, entries }
}

/// Levels of equal blocks, from the coarsest to the cells.
fn equal(sizes: &[usize]) -> Workload {
    let cells: usize = sizes.iter().product();
    let mut block = cells;
    let labels: Vec<Vec<i64>> = std::iter::once(1)
        .chain(sizes.iter().copied())
        .map(|size| {
            block /= size;
            (0..cells).map(|cell| (cell / block) as i64).collect()
        })
        .collect();
    groups(&labels, &vec![1.0; labels.len()])
}

fn error(strategy: &dyn Strategy, answers: usize) -> f64 {
    let mut variances = vec![0.0; answers];
    strategy.variances(&mut variances);
    let column = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get();
    column * column * variances.iter().sum::<f64>()
}

/// The measured matrix, by encoding the cells one by one.
fn matrix(strategy: &dyn Strategy, cells: usize) -> Matrix {
    let rows = strategy.measured_len();
    let mut entries = vec![0.0; rows * cells];
    for cell in 0..cells {
        let mut x = vec![0; cells];
        x[cell] = 1;
        let mut out = vec![0; rows];
        strategy.encode(Input::Cells(&x), 1, Encoded::Exact(&mut out)).unwrap();
        out.iter().enumerate().for_each(|(row, value)| entries[row * cells + cell] = *value as f64);
    }
    from_rows(rows, cells, &entries)
}

/// Three digits fewer than the reference: weights are rounded to 13 bits.
#[test]
fn equal_hierarchies_reach_the_optimum() {
    for (sizes, optimum) in
        [(vec![4, 4, 4], 149.450_892), (vec![4, 8, 16], 843.5874), (vec![12, 30], 511.2706), (vec![7, 24], 249.8864)]
    {
        let workload = equal(&sizes);
        let strategy = laminar(&workload, NoiseLaw::Gaussian, None, None, Some(1 << 24)).unwrap();
        let found = error(&*strategy, workload.answers_len());
        assert!(found >= optimum * (1.0 - 1e-6) && found < optimum * 1.0005, "{sizes:?}: {found} {optimum}");
    }
}

#[test]
fn crossing_groups_and_other_queries_are_refused() {
    let crossing = groups(&[vec![0, 0, 1, 1], vec![0, 1, 1, 0]], &[1.0, 1.0]);
    let uneven = Workload::Matrix { rows: 1, columns: 2, entries: vec![1.0, 2.0] };
    let sums = Workload::Linear { kernel: vec![1.0; 4], len: 4, center: 0 };
    for workload in [crossing, uneven, sums] {
        assert!(laminar(&workload, NoiseLaw::Gaussian, None, None, Some(1 << 24)).is_err());
    }
    let weights = vec![1.0; 3];
    assert!(laminar(&equal(&[2]), NoiseLaw::Gaussian, Some(&weights), None, Some(1 << 24)).is_ok());
    assert!(laminar(&equal(&[2]), NoiseLaw::Gaussian, Some(&weights[1..]), None, Some(1 << 24)).is_err());
}

/// A random hierarchy: each level joins neighbours of the one below; some cells may be in no group.
fn hierarchy() -> impl Strategy2 {
    (2usize..14, prop::collection::vec((1usize..4, 0.3..3.0f64), 1..4), any::<bool>(), any::<bool>())
}

trait Strategy2: proptest::strategy::Strategy<Value = (usize, Vec<(usize, f64)>, bool, bool)> {}
impl<S: proptest::strategy::Strategy<Value = (usize, Vec<(usize, f64)>, bool, bool)>> Strategy2 for S {}

proptest! {
    #[test]
    fn everything_is_that_of_the_measured_matrix(
        (cells, levels, with_cells, pure) in hierarchy(), seed in any::<u64>(), outside in 0usize..3,
    ) {
        let mut labels = Vec::new();
        let mut factors = Vec::new();
        let mut width = 1;
        let mut state = seed;
        if with_cells {
            labels.push((0..cells as i64).collect());
            factors.push(1.0);
        }
        for (times, factor) in levels {
            width *= times + 1;
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let kept = cells.saturating_sub(outside).max(1);
            labels.push((0..cells).map(|cell| if cell < kept { (cell / width) as i64 } else { -1 }).collect::<Vec<_>>());
            factors.push(factor);
        }
        let workload = groups(&labels, &factors);
        let law = if pure { NoiseLaw::Laplace } else { NoiseLaw::Gaussian };
        let weights: Vec<f64> = (0..workload.answers_len()).map(|t| 1.0 + ((state >> (t % 50)) & 3) as f64).collect();
        let strategy = laminar(&workload, law, Some(&weights), None, Some(1 << 24)).unwrap();
        let measured = matrix(&*strategy, cells);
        // Sensitivity: the largest column, and the columns furthest apart.
        let norm = |column: &[f64]| -> f64 {
            if pure { column.iter().map(|v| v.abs()).sum() } else { column.iter().map(|v| v * v).sum::<f64>().sqrt() }
        };
        let columns: Vec<Vec<f64>> = (0..cells).map(|j| measured.col_as_slice(j).to_vec()).collect();
        let largest = columns.iter().map(|column| norm(column)).fold(0.0, f64::max);
        let single = strategy.sensitivity(Unit::add_remove(1, None).unwrap()).unwrap().get();
        prop_assert!((single / largest - 1.0).abs() < 1e-12);
        let pair = strategy.sensitivity(Unit::replace_one(1).unwrap()).unwrap().get();
        let pairs = columns.iter().flat_map(|a| columns.iter().map(move |b| (a, b)));
        let apart = pairs.map(|(a, b)| norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<_>>()));
        prop_assert!((pair / apart.fold(largest, f64::max) - 1.0).abs() < 1e-12);
        // Answers and variances by the pseudo-inverse of what tells the leaves apart.
        let inverse = {
            let leaves: Vec<usize> = (0..cells).filter(|j| !columns[..*j].contains(&columns[*j])).collect();
            let leaves: Vec<usize> = leaves.into_iter().filter(|j| norm(&columns[*j]) > 0.0).collect();
            let entries: Vec<f64> =
                (0..measured.nrows()).flat_map(|row| leaves.iter().map(move |j| (row, *j))).map(|(r, j)| measured[(r, j)]).collect();
            (pseudo_inverse(&from_rows(measured.nrows(), leaves.len(), &entries)).unwrap(), leaves)
        };
        let y: Vec<f64> = (0..measured.nrows()).map(|i| ((i * 7 + 3) % 11) as f64).collect();
        let mut answers = vec![0.0; workload.answers_len()];
        strategy.decode(&y, &mut answers);
        let mut variances = vec![0.0; workload.answers_len()];
        strategy.variances(&mut variances);
        for t in 0..workload.answers_len() {
            let row = workload.row(t).unwrap();
            // Of a leaf the row asks all cells or none: its count by one number.
            let weights: Vec<f64> = (0..measured.nrows())
                .map(|k| inverse.1.iter().enumerate().map(|(l, j)| row[*j] * inverse.0[(l, k)]).sum())
                .collect();
            let known: f64 = weights.iter().zip(&y).map(|(w, y)| w * y).sum();
            let white = if pure { 2.0 } else { 1.0 };
            let variance: f64 = white * weights.iter().map(|w| w * w).sum::<f64>();
            prop_assert!((answers[t] - known).abs() < 1e-7 * (1.0 + known.abs()), "{} {known}", answers[t]);
            prop_assert!((variances[t] / variance - 1.0).abs() < 1e-7);
            let own = strategy.weights(&row).unwrap();
            prop_assert!(own.iter().zip(&weights).all(|(a, b)| (a - b).abs() < 1e-7 * (1.0 + b.abs())));
        }
    }

    /// The slopes are those of differences, of each node and of nodes that are alike together.
    #[test]
    fn slopes_are_those_of_the_error(
        logs in prop::collection::vec(-1.5..1.5f64, 40),
        sizes in prop::sample::select(vec![vec![2, 3, 2], vec![5], vec![3, 4]]),
        fold in any::<bool>(),
    ) {
        let mut forest = Forest::of(&equal(&sizes)).unwrap();
        if fold {
            let Folded { forest: folded, asked: total, stands, .. } = forest.folded(&vec![1.0; forest.len()], &|_| 1.0);
            prop_assert_eq!(folded.len(), sizes.len() + 1);
            prop_assert_eq!(total.iter().sum::<f64>(), forest.len() as f64);
            prop_assert_eq!(stands.len(), forest.len());
            let gram: Vec<f64> = (0..folded.len()).map(|v| logs[v].exp()).collect();
            let every = Solver::new(&forest, stands.iter().map(|v| gram[*v]).collect()).variances(&forest);
            let few = Solver::new(&folded, gram).variances(&folded);
            prop_assert!(every.iter().zip(&stands).all(|(t, v)| (t / few[*v] - 1.0).abs() < 1e-12));
            forest = folded;
        }
        let gram: Vec<f64> = (0..forest.len()).map(|v| logs[v % logs.len()].exp()).collect();
        let weights: Vec<f64> = (0..forest.len()).map(|v| 1.0 + (v % 3) as f64).collect();
        let value = |gram: &[f64]| -> f64 {
            Solver::new(&forest, gram.to_vec()).variances(&forest).iter().zip(&weights).map(|(t, w)| t * w).sum()
        };
        let slopes = Solver::new(&forest, gram.clone()).slopes(&forest, &weights);
        for v in 0..forest.len() {
            let step = 1e-5 * gram[v];
            let at = |sign: f64| {
                let mut moved = gram.clone();
                moved[v] += sign * step;
                value(&moved)
            };
            let known = (at(1.0) - at(-1.0)) / (2.0 * step);
            prop_assert!((slopes[v] - known).abs() < 1e-5 * (1.0 + known.abs()), "{v}: {} {known}", slopes[v]);
        }
    }
}

/// Uneven blocks of 256 leaves: within the published ratios of the certified bound.
#[test]
fn uneven_hierarchies_come_near_the_bound() {
    let cells = 256;
    let cuts = |count: usize| -> Vec<i64> {
        // Blocks whose sizes rise.
        (0..cells).map(|cell| ((cell as f64 / cells as f64).sqrt() * count as f64).floor() as i64).collect()
    };
    let fine = cuts(32);
    let labels = vec![(0..cells as i64).collect(), fine.clone(), fine.iter().map(|f| f / 5).collect(), vec![0; cells]];
    let workload = groups(&labels, &[1.0; 4]);
    let strategy = Laminar::new(&workload, Geometry::L2, super::WEIGHT_BITS, None).unwrap();
    let (rows, columns, entries) = workload.dense().unwrap();
    let queries = from_rows(rows, columns, &entries);
    let gram = crate::linear_algebra::transposed_product(&queries, &queries);
    let (vectors, values) = crate::linear_algebra::symmetric_eigen(&gram).unwrap();
    let bound: f64 = (0..columns)
        .map(|j| (0..columns).map(|k| vectors[(j, k)].powi(2) * values[k].max(0.0).sqrt()).sum::<f64>().powi(2))
        .sum();
    let ratio = (error(&strategy, rows) / bound).sqrt();
    assert!((1.0..1.002).contains(&ratio), "{ratio}");
}

/// What groups are charged for several cells at once: never less than any change, for one axis and for two.
#[test]
fn changes_of_several_cells_are_covered() {
    use crate::split_mix::SplitMix;
    let mut random = SplitMix(7);
    let dense = |strategy: &dyn Strategy, cells: usize| -> Vec<Vec<f64>> {
        (0..cells)
            .map(|j| {
                let mut x = vec![0; cells];
                x[j] = 1;
                let mut out = vec![0; strategy.measured_len()];
                strategy.encode(Input::Cells(&x), 1, Encoded::Exact(&mut out)).unwrap();
                out.into_iter().map(|v| v as f64).collect()
            })
            .collect()
    };
    for (records, cap) in [(4, 1), (6, 2), (7, 3), (12, 2)] {
        let unit = Unit::add_remove(records, Some(cap)).unwrap().one_signed().unwrap();
        let one = equal(&[3, 2]);
        let other = equal(&[2, 2]);
        let both = Workload::Kronecker { factors: vec![one.clone(), other.clone()] }.validated().unwrap();
        for (workload, cells) in [(&one, 6), (&both, 24)] {
            let single = laminar(workload, NoiseLaw::Gaussian, None, None, None);
            let strategy: Box<dyn Strategy> = match workload {
                Workload::Kronecker { .. } => crate::strategy::nested_product(workload, unit).unwrap(),
                _ => laminar(workload, NoiseLaw::Gaussian, None, Some(unit), Some(1 << 24)).unwrap(),
            };
            let said = strategy.sensitivity(unit).unwrap().get();
            let columns = dense(&*strategy, cells);
            let norm = |v: &[u32]| {
                let rows = columns[0].len();
                let sums = (0..rows).map(|r| (0..cells).map(|j| columns[j][r] * f64::from(v[j])).sum::<f64>());
                sums.map(|sum| sum * sum).sum::<f64>().sqrt()
            };
            // Vertices: random ones, and all records in neighbours.
            let mut most: f64 = 0.0;
            for trial in 0..3000 {
                let mut v = vec![0; cells];
                let mut left = records;
                let first = random.index(cells);
                for step in 0..cells {
                    let j = if trial % 2 == 0 { (first + step) % cells } else { random.index(cells) };
                    let add = left.min(cap - v[j]);
                    v[j] += add;
                    left -= add;
                }
                most = most.max(norm(&v));
            }
            assert!(most <= said * (1.0 + 1e-12), "{most} above {said}");
            assert!(said <= 1.35 * most, "{said} far above {most}");
            if let Ok(single) = single {
                // Made for one cell, it costs more once it is charged for several.
                let error = |strategy: &dyn Strategy| {
                    strategy.spread().unwrap().0.sqrt() * strategy.sensitivity(unit).unwrap().get()
                };
                assert!(error(&*strategy) <= error(&*single) * (1.0 + 1e-3));
            }
        }
    }
}

/// The least total squared error, from above: that of the search for the optimum.
fn optimum(workload: &Workload, weights: &[f64]) -> f64 {
    use crate::optimize::{Queries, Target, mean_strategy};
    let (rows, columns, entries) = workload.dense().unwrap();
    let queries = Queries::new(rows, columns, &entries).unwrap();
    let go_on = &mut |_, _| std::ops::ControlFlow::Continue(());
    let found = mean_strategy(queries, Some(weights), Target { gap: 1e-6, ..Target::default() }, go_on).unwrap();
    found.upper.powi(2) * weights.iter().sum::<f64>()
}

#[test]
fn bounds_of_equal_groups_are_attained() {
    for (sizes, known) in [(vec![4, 4, 4], 149.450_892), (vec![4, 8, 16], 843.5874), (vec![12, 30], 511.2706)] {
        let found = nested_bound(&equal(&sizes), None).unwrap();
        assert!((found / known - 1.0).abs() < 1e-6, "{sizes:?}: {found} {known}");
    }
    // What a heavy group leaves of a total is rounding, and proves nothing.
    for steep in [1e2, 1e6, 1e7, 1e12] {
        let workload = Workload::Matrix { rows: 2, columns: 2, entries: vec![steep, 0.0, 1.0, 1.0] };
        let found = nested_bound(&workload, None).unwrap();
        // Least squares of both rows alone: the columns have norms of at most the root of steep² + 1, and 1.
        assert!(found <= (steep + 1.0).powi(2) && found >= steep * steep * (1.0 - 1e-8), "{steep}: {found}");
    }
    let crossing = groups(&[vec![0, 0, 1, 1], vec![0, 1, 1, 0]], &[1.0, 1.0]);
    assert!(nested_bound(&crossing, None).is_err() && nested_bound(&equal(&[2]), Some(&[1.0])).is_err());
}

/// A chain of groups, each of a cell less, of more levels than a double has binary digits before it is none.
#[test]
fn deep_chains_have_weights() {
    let (few, many) = (100, 1_500);
    let rmse = |levels: usize, geometry: &Geometry, unit: Unit| {
        let labels: Vec<Vec<i64>> =
            (0..levels).map(|i| (0..levels).map(|cell| if cell < levels - i { 0 } else { -1 }).collect()).collect();
        let strategy =
            Laminar::new(&groups(&labels, &vec![1.0; levels]), geometry.clone(), super::WEIGHT_BITS, Some(unit));
        (error(&strategy.unwrap(), levels) / levels as f64).sqrt()
    };
    for (geometry, unit) in [
        (Geometry::L1, Unit::add_remove(1, None).unwrap()),
        (Geometry::L2, Unit::add_remove(1, None).unwrap()),
        (Geometry::L2, Unit::add_remove(4, Some(1)).unwrap()),
    ] {
        let ratio = rmse(many, &geometry, unit) / rmse(few, &geometry, unit);
        assert!((1.0..6.0).contains(&ratio), "{ratio}");
    }
}

/// Groups that a unit may change by other amounts are not alike, whatever is asked of them: of disjoint ones each has the weight
/// that its own change allows.
#[test]
fn groups_of_other_costs_are_apart() {
    let sizes = [3_usize, 1, 8, 1, 8, 2];
    let cells = || sizes.iter().enumerate().flat_map(|(group, size)| std::iter::repeat_n(group as i64, *size));
    let unit = Unit::add_remove(4, Some(1)).unwrap();
    let level = groups(&[cells().collect()], &[1.0]);
    let strategy = Laminar::new(&level, Geometry::L2, super::WEIGHT_BITS, Some(unit)).unwrap();
    for (weight, size) in strategy.weights.iter().zip(&strategy.forest.sizes) {
        let cost = unit.reach(*size) as f64 / unit.reach(1) as f64;
        let known = (2f64.powi(*super::WEIGHT_BITS.start() as i32) / cost.sqrt()).round();
        assert!((*weight as f64 - known).abs() <= 1.0, "{weight} {known}");
    }
    let two = groups(&[cells().collect(), vec![0; cells().count()]], &[1.0, 1.0]);
    let forest = Forest::of(&two).unwrap();
    let asked = forest.asked(None);
    let cost = |size: usize| size.min(4) as f64;
    let Folded { forest: apart, stands, first, .. } = forest.folded(&asked, &cost);
    assert_eq!((apart.len(), forest.folded(&asked, &|_| 1.0).forest.len()), (5, 2));
    assert!(stands.iter().zip(&forest.sizes).all(|(at, size)| cost(apart.sizes[*at]) == cost(*size)));
    assert!(first.iter().enumerate().all(|(at, v)| stands[*v] == at));
    assert!(apart.parent[1..].iter().all(|parent| *parent == 0));
}

/// Leaves and groups that are alike are one node with copies, and the bound is that of all nodes.
#[test]
fn bounds_of_what_is_alike_are_those_of_all_nodes() {
    let labels = |width: usize, cells: usize| (0..cells).map(|cell| (cell / width) as i64).collect::<Vec<_>>();
    let cells = 120;
    let some: Vec<i64> = (0..cells).map(|cell| if cell % 7 == 0 || cell > 100 { -1 } else { 0 }).collect();
    for (levels, factors) in [
        (vec![labels(1, cells), labels(5, cells), labels(35, cells), labels(cells, cells)], vec![1.0, 1.0, 1.0, 1.0]),
        (vec![labels(2, cells), labels(40, cells), labels(cells, cells)], vec![1.0, 0.3, 4.0]),
        (vec![labels(1, cells), some], vec![1.0, 2.0]),
        (vec![labels(8, cells), labels(48, cells)], vec![1.0, 1.0]),
    ] {
        let forest = Forest::of(&groups(&levels, &factors)).unwrap();
        let asked = forest.asked(None);
        let largest = asked.iter().copied().fold(0.0, f64::max);
        let whole = super::bound::of_forest(&forest, &asked.iter().map(|own| own / largest).collect::<Vec<_>>());
        let folded = super::bound::least_error(&forest, asked.clone());
        assert!(forest.folded(&asked, &|_| 1.0).forest.len() < forest.len() / 3);
        assert!((folded / (whole * largest) - 1.0).abs() < 2e-9, "{folded} {}", whole * largest);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// Never above the least error, and near it where groups are not chains of single ones.
    #[test]
    fn bounds_of_nested_groups_are_below_every_strategy(
        (cells, levels, with_cells, steep) in hierarchy(), seed in any::<u64>(), outside in 0usize..3,
    ) {
        let mut random = crate::split_mix::SplitMix(seed);
        let kept = cells.saturating_sub(outside).max(1);
        let mut labels: Vec<Vec<i64>> = Vec::new();
        let mut factors = Vec::new();
        let mut of: Vec<i64> = (0..cells as i64).collect();
        if with_cells {
            labels.push(of.iter().map(|g| if random.index(4) == 0 { -1 } else { *g }).collect());
            labels[0][0] = 0;
            factors.push(1.0);
        }
        for (_, factor) in levels {
            let fewer = *of.iter().max().unwrap() as usize / 2 + 1;
            let joined: Vec<i64> = (0..=*of.iter().max().unwrap()).map(|_| random.index(fewer) as i64).collect();
            of = of.iter().map(|g| joined[*g as usize]).collect();
            labels.push(of.iter().enumerate().map(|(cell, g)| if cell < kept { *g } else { -1 }).collect());
            factors.push(if steep { factor.powi(8) } else { factor });
        }
        // Numbers of groups without gaps.
        for level in &mut labels {
            let mut known: Vec<i64> = level.iter().copied().filter(|g| *g >= 0).collect();
            known.sort_unstable();
            known.dedup();
            level.iter_mut().filter(|g| **g >= 0).for_each(|g| *g = known.binary_search(g).unwrap() as i64);
        }
        let workload = groups(&labels, &factors);
        let weights: Vec<f64> = (0..workload.answers_len()).map(|_| 1.0 + random.index(3) as f64).collect();
        // Levels that lack a cell may cross what others join.
        if let Ok(found) = nested_bound(&workload, Some(&weights)) {
            let least = optimum(&workload, &weights);
            prop_assert!(found <= least * (1.0 + 1e-9), "{found} {least}");
            prop_assert!(found >= 0.7 * least, "{found} {least}");
        }
    }
}
