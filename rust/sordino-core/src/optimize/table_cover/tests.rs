//! The error formula against dense least squares; what a cover must be; errors that were found by other means.

use super::{Table, table_cover};
use crate::linear_algebra::{Matrix, join_columns, product, ridge_inverse, transpose};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// All sets of `size` of `d` attributes.
fn all_sets(d: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let shorter = all_sets(d, size - 1);
    let longer = |set: Vec<usize>| {
        (set.last().map_or(0, |last| last + 1)..d).map(move |next| [set.as_slice(), &[next]].concat())
    };
    shorter.into_iter().flat_map(longer).collect()
}

fn cells(levels: &[usize], set: &[usize]) -> f64 {
    set.iter().map(|a| levels[*a] as f64).product()
}

/// The total weighted squared error at `ε = 1`, by its definition.
fn error(levels: &[usize], sets: &[Vec<usize>], weights: &[f64], tables: &[Table]) -> f64 {
    let mut terms: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
    for (set, weight) in sets.iter().zip(weights) {
        for chosen in 0..1u32 << set.len() {
            let within: Vec<usize> = (0..set.len()).filter(|k| chosen >> k & 1 == 1).map(|k| set[k]).collect();
            let contrasts: f64 = within.iter().map(|a| levels[*a] as f64 - 1.0).product();
            *terms.entry(within).or_default() += weight * contrasts / cells(levels, set);
        }
    }
    let precision = |set: &[usize]| -> f64 {
        let above = tables.iter().filter(|table| set.iter().all(|a| table.attributes.contains(a)));
        above.map(|table| table.share * table.share / cells(levels, &table.attributes)).sum()
    };
    2.0 * terms.iter().filter(|(_, e)| **e > 0.0).map(|(set, e)| e / precision(set)).sum::<f64>()
}

/// The root mean squared error at `ε = 1`.
fn rmse(levels: &[usize], sets: &[Vec<usize>], weights: &[f64], tables: &[Table]) -> f64 {
    let answers: f64 = sets.iter().zip(weights).map(|(set, w)| w * cells(levels, set)).sum();
    (error(levels, sets, weights, tables) / answers).sqrt()
}

/// The sums that a table is made of, row by row, over all cells.
fn sums(levels: &[usize], set: &[usize]) -> Matrix {
    let all: usize = levels.iter().product();
    let cell_of = |mut cell: usize| {
        let coordinates: Vec<usize> = levels
            .iter()
            .map(|n| {
                let coordinate = cell % n;
                cell /= n;
                coordinate
            })
            .collect();
        set.iter().fold(0, |index, a| index * levels[*a] + coordinates[*a])
    };
    Matrix::from_fn(cells(levels, set) as usize, all, |i, j| f64::from(u8::from(cell_of(j) == i)))
}

fn trace(matrix: &Matrix) -> f64 {
    (0..matrix.ncols()).map(|i| matrix[(i, i)]).sum()
}

/// Tables for all sets of some sizes of attributes with as many levels, and their error.
fn uniform(levels: usize, d: usize, sizes: &[usize]) -> (Vec<Table>, f64) {
    measured(&vec![levels; d], sizes)
}

/// The same for attributes with these levels.
fn measured(levels: &[usize], sizes: &[usize]) -> (Vec<Table>, f64) {
    let sets: Vec<Vec<usize>> = sizes.iter().flat_map(|size| all_sets(levels.len(), *size)).collect();
    let weights = vec![1.0; sets.len()];
    let tables = table_cover(levels, &sets, &weights).unwrap();
    check(&sets, &tables);
    let found = rmse(levels, &sets, &weights, &tables);
    (tables, found)
}

/// What every cover must be.
fn check(sets: &[Vec<usize>], tables: &[Table]) {
    assert!(tables.iter().all(|table| table.share > 0.0 && table.attributes.is_sorted_by(|a, b| a < b)));
    assert!(tables.is_sorted_by(|a, b| a.attributes < b.attributes));
    assert!((tables.iter().map(|table| table.share).sum::<f64>() - 1.0).abs() < 1e-12);
    let within = |set: &Vec<usize>| tables.iter().any(|table| set.iter().all(|a| table.attributes.contains(a)));
    assert!(sets.iter().all(within));
}

#[test]
fn the_error_is_that_of_dense_least_squares() {
    let levels = [2, 3, 2, 3];
    let sets = [vec![0, 1], vec![1, 2], vec![3], vec![], vec![0, 2, 3]];
    let weights = [1.0, 2.0, 0.5, 3.0, 0.7];
    let tables = table_cover(&levels, &sets, &weights).unwrap();
    check(&sets, &tables);
    let scaled = |table: &Table| {
        let rows = sums(&levels, &table.attributes);
        Matrix::from_fn(rows.ncols(), rows.nrows(), |i, j| table.share * rows[(j, i)])
    };
    let measured = join_columns(&tables.iter().map(scaled).collect::<Vec<_>>());
    // Directions that are not measured are not asked for.
    let inverse = ridge_inverse(&measured, 1e-10).unwrap();
    let direct = sets.iter().zip(weights).map(|(set, w)| {
        let rows = sums(&levels, set);
        2.0 * w * trace(&product(&product(&rows, &inverse), &transpose(&rows)))
    });
    let (direct, formula) = (direct.sum::<f64>(), error(&levels, &sets, &weights, &tables));
    assert!((direct / formula - 1.0).abs() < 1e-6, "{direct} {formula}");
}

/// Errors at epsilon 1 that were found by other means.
#[test]
fn reference_values() {
    let cases: [(usize, usize, usize, f64); 6] =
        [(4, 10, 2, 34.6), (2, 10, 2, 15.0), (2, 20, 2, 47.1), (2, 50, 2, 260.0), (16, 5, 2, 13.481), (2, 16, 3, 60.0)];
    for (levels, d, size, known) in cases {
        let found = uniform(levels, d, &[size]).1;
        assert!(found <= known, "{levels}^{d} {size}: {found}");
    }
    let mixed = measured(&[2, 16, 4, 8, 2, 16, 4, 8], &[2]).1;
    assert!(mixed <= 22.75, "{mixed}");
    let (one, error) = uniform(4, 5, &[3]);
    assert_eq!(one, [Table { attributes: (0..5).collect(), share: 1.0 }]);
    assert!((error - 32f64.sqrt()).abs() < 1e-9);
}

/// Above so many wanted tables a search is brief, and still finds planes.
#[test]
fn many_pairs_are_covered() {
    let (tables, error) = uniform(2, 220, &[2]);
    assert!(tables.len() < 2500 && error < 4850.0, "{} {error}", tables.len());
}

#[test]
fn what_is_wanted_may_be_little() {
    assert_eq!(table_cover(&[2, 3], &[], &[]).unwrap(), []);
    let nothing = Table { attributes: Vec::new(), share: 1.0 };
    assert_eq!(table_cover(&[2, 3], &[vec![], vec![]], &[1.0, 0.0]).unwrap(), [nothing]);
    let one = Table { attributes: vec![1], share: 1.0 };
    assert_eq!(table_cover(&[2, 3, 5], &[vec![1], vec![]], &[0.0, 0.0]).unwrap(), [one]);
}

/// The order of what is asked for, of equal sets and of attributes within a set is nothing.
#[test]
fn order_does_not_matter() {
    let levels = [3, 2, 4, 2, 5, 2];
    let sets = all_sets(6, 2);
    let weights: Vec<f64> = (0..sets.len()).map(|k| (1 + k % 4) as f64).collect();
    let mut reversed: Vec<Vec<usize>> = sets.iter().rev().map(|set| set.iter().rev().copied().collect()).collect();
    let mut reversed_weights: Vec<f64> = weights.iter().rev().copied().collect();
    reversed.push(sets[3].clone());
    reversed_weights.push(1.0);
    reversed_weights[sets.len() - 4] -= 1.0;
    assert_eq!(
        table_cover(&levels, &sets, &weights).unwrap(),
        table_cover(&levels, &reversed, &reversed_weights).unwrap()
    );
}

/// Tables too large for one, and wanted sets too many for a search.
#[test]
fn large_problems_are_served() {
    let levels = vec![65536; 40];
    let sets = vec![(0..40).collect::<Vec<_>>(), vec![3], vec![1, 2]];
    check(&sets, &table_cover(&levels, &sets, &[1.0, 5.0, 2.0]).unwrap());
    let sets = all_sets(20, 8);
    let weights = vec![1.0; sets.len()];
    let tables = table_cover(&[2; 20], &sets, &weights).unwrap();
    assert_eq!(tables, [Table { attributes: (0..20).collect(), share: 1.0 }]);
    let sets = vec![(0..10).collect::<Vec<_>>(), (5..15).collect(), vec![16], vec![]];
    check(&sets, &table_cover(&levels, &sets, &[1.0, 5.0, 2.0, 0.0]).unwrap());
    let sets = all_sets(640, 2);
    let tables = table_cover(&[10; 640], &sets, &vec![1.0; sets.len()]).unwrap();
    assert_eq!(tables.len(), sets.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn covers_are_sound_and_never_worse(
        levels in prop::collection::vec(2usize..9, 7),
        chosen in prop::collection::vec((0u32..128, prop_oneof![Just(0.0), 0.01f64..3.0]), 1..12),
    ) {
        let sets: Vec<Vec<usize>> =
            chosen.iter().map(|(bits, _)| (0..7).filter(|a| bits >> a & 1 == 1).collect()).collect();
        let weights: Vec<f64> = chosen.iter().map(|(_, weight)| *weight).collect();
        let tables = table_cover(&levels, &sets, &weights).unwrap();
        check(&sets, &tables);
        let found = error(&levels, &sets, &weights, &tables) * (1.0 - 1e-8);
        let mut distinct = sets.clone();
        distinct.sort();
        distinct.dedup();
        let share = 1.0 / distinct.len() as f64;
        let equal: Vec<Table> = distinct.into_iter().map(|attributes| Table { attributes, share }).collect();
        prop_assert!(found <= error(&levels, &sets, &weights, &equal));
        let mut attributes: Vec<usize> = sets.concat();
        attributes.sort_unstable();
        attributes.dedup();
        let union = Table { attributes, share: 1.0 };
        prop_assert!(found <= error(&levels, &sets, &weights, &[union]));
        prop_assert_eq!(tables, table_cover(&levels, &sets, &weights).unwrap());
    }
}
