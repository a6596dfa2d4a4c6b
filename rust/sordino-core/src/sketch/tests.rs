use super::{Kind, Measuring, Operator, Sketch};
use crate::door::NoiseLaw;
use crate::estimate::recovery::Operator as _;
use crate::strategy::Compression;
use crate::transform::{BasisName, NamedBasis};
use crate::unit::Unit;
use crate::workload::Workload;
use proptest::prelude::*;
use std::sync::Arc;

const KINDS: [Kind; 5] = [
    Kind::Bernoulli,
    Kind::Hadamard,
    Kind::Sparse { nonzeros: 1 },
    Kind::Sparse { nonzeros: 3 },
    Kind::Sparse { nonzeros: 8 },
];

fn column(operator: &Operator, cell: usize) -> Vec<i64> {
    let mut out = vec![0; operator.measurements()];
    operator.add_column(cell, 1, &mut out);
    out
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn columns_have_the_stated_entries() {
    for kind in KINDS {
        for (n, k) in [(40, 13), (64, 64), (300, 16), (1000, 129)] {
            let operator = Operator::new(kind, n, k, 5).unwrap();
            let mut positive = 0;
            for j in 0..n {
                let column = column(&operator, j);
                assert!(column.iter().all(|v| v.abs() <= 1));
                assert_eq!(column.iter().filter(|v| **v != 0).count(), operator.column_entries());
                positive += column.iter().filter(|v| **v > 0).count();
                if let Kind::Sparse { nonzeros } = kind {
                    // One in each block of rows.
                    for b in 0..nonzeros as usize {
                        let block = b * k / nonzeros as usize..(b + 1) * k / nonzeros as usize;
                        assert_eq!(column[block].iter().filter(|v| **v != 0).count(), 1);
                    }
                }
            }
            // Half of the signs, within 6 standard deviations of independent ones (Hadamard rows less one).
            let entries = (n * operator.column_entries()) as f64;
            assert!((positive as f64 - entries / 2.0).abs() < 3.0 * entries.sqrt() + n as f64, "{kind:?} {n} {k}");
        }
    }
}

#[test]
fn tables_columns_and_adjoints_are_one_matrix() {
    for kind in KINDS {
        for (n, k) in [(1, 1), (7, 3), (100, 37), (129, 64), (1000, 100), (70_001, 65)] {
            let Ok(operator) = Operator::new(kind, n, k, 11) else { continue };
            let table: Vec<i64> = (0..n as i64).map(|j| (j * 37) % 101 - 50).collect();
            let mut whole = vec![5; k];
            operator.add_table(&table, &mut whole);
            let mut single = vec![5; k];
            table.iter().enumerate().for_each(|(j, v)| operator.add_column(j, *v, &mut single));
            assert_eq!(whole, single, "{kind:?} {n} {k}");

            let scale = (operator.column_entries() as f64).sqrt();
            let x: Vec<f64> = table.iter().map(|v| *v as f64).collect();
            let mut y = vec![f64::NAN; k];
            operator.apply(&x, &mut y);
            for (value, sum) in y.iter().zip(&single) {
                assert!((value * scale - (*sum - 5) as f64).abs() < 1e-7, "{kind:?} {n} {k}");
            }
            let mut back = vec![f64::NAN; n];
            operator.adjoint(&y, &mut back);
            assert!((dot(&back, &x) - dot(&y, &y)).abs() < 1e-9 * dot(&y, &y), "{kind:?} {n} {k}");
            for j in [0, n / 2, n - 1] {
                let direct: f64 = column(&operator, j).iter().zip(&y).map(|(s, v)| *s as f64 * v).sum();
                assert!((back[j] * scale - direct).abs() < 1e-7);
            }
        }
    }
}

/// A recovery has the columns of small sparse sketches written down: the same products.
#[test]
fn stored_columns_are_the_columns() {
    for (kind, cells, k) in
        [(Kind::Sparse { nonzeros: 3 }, 300, 40), (Kind::Hadamard, 300, 40), (Kind::Bernoulli, 90, 9)]
    {
        let operator = Operator::new(kind, cells, k, 2).unwrap();
        let basis = NamedBasis::new(BasisName::Standard, operator.padded()).unwrap();
        let measuring = Measuring::new(&operator, &basis).unwrap();
        let x: Vec<f64> = (0..operator.padded()).map(|j| (j as f64 * 0.37).sin()).collect();
        let y: Vec<f64> = (0..k).map(|r| (r as f64 * 0.77).cos()).collect();
        let (mut sketch, mut direct) = (vec![f64::NAN; k], vec![f64::NAN; k]);
        measuring.apply(&x, &mut sketch);
        operator.apply(&x, &mut direct);
        assert!(sketch.iter().zip(&direct).all(|(a, b)| (a - b).abs() < 1e-12));
        let (mut back, mut direct) = (vec![f64::NAN; x.len()], vec![f64::NAN; x.len()]);
        measuring.adjoint(&y, &mut back);
        operator.adjoint(&y, &mut direct);
        assert!(back.iter().zip(&direct).all(|(a, b)| (a - b).abs() < 1e-12));
    }
    let other = NamedBasis::new(BasisName::Standard, 299).unwrap();
    assert!(Measuring::new(&Operator::new(Kind::Hadamard, 300, 40, 2).unwrap(), &other).is_err());
}

/// Neighbours differ in the hull of plus and minus unit vectors: the extreme points attain the norms.
#[test]
fn sensitivities_by_brute_force() {
    for kind in KINDS {
        for (n, k) in [(24, 8), (33, 17), (64, 40)] {
            let operator = Arc::new(Operator::new(kind, n, k, 3).unwrap());
            let columns: Vec<Vec<i64>> = (0..n).map(|j| column(&operator, j)).collect();
            let norm = |l1: bool, v: &[i64]| {
                if l1 {
                    v.iter().map(|v| v.abs()).sum::<i64>() as f64
                } else {
                    (v.iter().map(|v| v * v).sum::<i64>() as f64).sqrt()
                }
            };
            for (law, l1) in [(NoiseLaw::Laplace, true), (NoiseLaw::Gaussian, false)] {
                let workload = Workload::Histogram { len: n };
                let compression = Compression { workload, operator: Arc::clone(&operator), law, sparsity: 2 };
                let strategy = compression.build().unwrap();
                let bound = |unit: Unit| strategy.sensitivity(unit).unwrap().get();
                let single = columns.iter().map(|c| norm(l1, c)).fold(0.0, f64::max);
                let mut pair = single;
                for i in 0..n {
                    for j in 0..i {
                        let both: Vec<i64> = columns[i].iter().zip(&columns[j]).map(|(a, b)| a - b).collect();
                        pair = pair.max(norm(l1, &both));
                    }
                }
                let near = |bound: f64, exact: f64| bound >= exact && bound <= exact * (1.0 + 1e-12);
                assert!(near(bound(Unit::add_remove(1, None).unwrap()), single));
                assert!(near(bound(Unit::add_remove(5, None).unwrap()), 5.0 * single));
                let replaced = bound(Unit::replace_one(1).unwrap());
                if kind == Kind::Hadamard {
                    // Cells of the padding count as well.
                    assert!(replaced >= pair && replaced <= 2.0 * single);
                } else {
                    assert!(near(replaced, pair), "{kind:?} {n} {k} {l1}: {replaced} for {pair}");
                }
            }
        }
    }
}

/// The construction never changes: sums over all entries, weighted by their places.
#[test]
fn known_answers() {
    let mut found = Vec::new();
    for kind in KINDS {
        let operator = Operator::new(kind, 1000, 100, 20_261_121).unwrap();
        let mut digest = 0i64;
        for j in 0..1000 {
            operator.column(j, |row, plus| {
                let weight = (j as i64 * 31 + row as i64 * 17) % 1009;
                digest += if plus { weight } else { -weight };
            });
        }
        found.push(digest);
    }
    assert_eq!(found, [-90_514, 51_818, 1_642, 57_421, 22_629]);
}

#[test]
fn sketches_travel_and_merge() {
    for kind in KINDS {
        let operator = Arc::new(Operator::new(kind, 500, 50, 9).unwrap());
        let table: Vec<i64> = (0..500).map(|j| j % 7 - 2).collect();
        let mut whole = Sketch::new(Arc::clone(&operator));
        whole.add_table(&table).unwrap();

        let cells: Vec<i64> = (0..500).rev().collect();
        let counts: Vec<i64> = cells.iter().map(|j| table[*j as usize]).collect();
        let (mut left, mut right) = (Sketch::new(Arc::clone(&operator)), Sketch::new(Arc::clone(&operator)));
        left.update(&cells[..200], Some(&counts[..200])).unwrap();
        right.update(&cells[200..], Some(&counts[200..])).unwrap();
        let mut read = Sketch::from_bytes(&right.to_bytes()).unwrap();
        read.merge(&left).unwrap();
        left.merge(&right).unwrap();
        assert_eq!((left.sums(), read.sums()), (whole.sums(), whole.sums()));
        assert_eq!(left.to_bytes(), read.to_bytes());

        let ones = [3, 3, 499];
        let mut counted = Sketch::new(Arc::clone(&operator));
        counted.update(&ones, None).unwrap();
        let mut weighted = Sketch::new(operator);
        weighted.update(&[499, 3], Some(&[1, 2])).unwrap();
        assert_eq!(counted.to_bytes(), weighted.to_bytes());
    }
}

/// Every count is clamped, and totals are exact far beyond 64 bits, in every order.
#[test]
fn totals_have_no_border() {
    for kind in KINDS {
        let operator = Arc::new(Operator::new(kind, 300, 30, 4).unwrap());
        let table: Vec<i64> = (0..300).map(|j| if j % 3 == 0 { i64::MIN } else { 1i64 << (j % 60) }).collect();
        let cells: Vec<i64> = (0..300).collect();
        let (mut tables, mut records) = (Sketch::new(Arc::clone(&operator)), Sketch::new(Arc::clone(&operator)));
        for _ in 0..40 {
            tables.add_table(&table).unwrap();
            records.update(&cells, Some(&table)).unwrap();
        }
        let copy = tables.clone();
        tables.merge(&copy).unwrap();
        let mut exact = vec![0i128; 30];
        for (cell, count) in table.iter().enumerate() {
            let count = i128::from((*count).clamp(-(1 << 53), 1 << 53));
            operator.column(cell, |row, plus| exact[row] += if plus { 80 * count } else { -80 * count });
        }
        assert!(tables.sums().totals().eq(exact.iter().copied()), "{kind:?}");
        assert!(records.sums().totals().eq(exact.iter().map(|sum| sum / 2)), "{kind:?}");
        assert_eq!(Sketch::from_bytes(&tables.to_bytes()).unwrap().sums(), tables.sums());
    }
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let operator = Arc::new(Operator::new(Kind::Sparse { nonzeros: 2 }, 100, 10, 1).unwrap());
    let mut sketch = Sketch::new(Arc::clone(&operator));
    sketch.update(&[1, 2], Some(&[5, -6])).unwrap();
    let before = sketch.to_bytes();
    assert!(sketch.update(&[3], Some(&[1, 2])).is_err());
    sketch.update(&[100, -1, i64::MIN], Some(&[7, 7, 7])).unwrap();
    assert_eq!(sketch.to_bytes(), before);
    assert!(sketch.add_table(&[1; 99]).is_err());
    for other in [
        Operator::new(Kind::Sparse { nonzeros: 2 }, 100, 10, 2),
        Operator::new(Kind::Sparse { nonzeros: 3 }, 100, 10, 1),
        Operator::new(Kind::Sparse { nonzeros: 2 }, 101, 10, 1),
        Operator::new(Kind::Bernoulli, 100, 10, 1),
    ] {
        assert!(sketch.merge(&Sketch::new(Arc::new(other.unwrap()))).is_err());
    }
    assert_eq!(sketch.to_bytes(), before);
}

#[test]
fn damaged_bytes_are_refused() {
    let operator = Arc::new(Operator::new(Kind::Hadamard, 64, 8, 1).unwrap());
    let mut sketch = Sketch::new(operator);
    sketch.update(&[1, 2, 3], None).unwrap();
    let bytes = sketch.to_bytes();
    for i in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[i] ^= 4;
        assert!(Sketch::from_bytes(&damaged).is_err(), "byte {i}");
    }
    for len in 0..bytes.len() {
        assert!(Sketch::from_bytes(&bytes[..len]).is_err());
    }
    assert!(Sketch::from_bytes(&[bytes, vec![0; 8]].concat()).is_err());
}

#[test]
fn bad_operators_are_refused() {
    for (kind, n, k) in [
        (Kind::Bernoulli, 0, 1),
        (Kind::Bernoulli, 10, 0),
        (Kind::Bernoulli, 10, 11),
        (Kind::Hadamard, (1 << 26) + 1, 5),
        (Kind::Sparse { nonzeros: 0 }, 10, 5),
        (Kind::Sparse { nonzeros: 6 }, 10, 5),
        (Kind::Sparse { nonzeros: 65 }, 1000, 500),
    ] {
        assert!(Operator::new(kind, n, k, 0).is_err(), "{kind:?} {n} {k}");
    }
}

proptest! {
    #[test]
    fn order_does_not_matter(
        cells in prop::collection::vec((0i64..200, -1000i64..1000), 0..60),
        kind in prop::sample::select(&KINDS[..]),
        cut in 0usize..60,
    ) {
        let operator = Arc::new(Operator::new(kind, 200, 40, 77).unwrap());
        let (places, counts): (Vec<i64>, Vec<i64>) = cells.iter().copied().unzip();
        let mut forward = Sketch::new(Arc::clone(&operator));
        forward.update(&places, Some(&counts)).unwrap();
        let cut = cut.min(cells.len());
        let mut backward = Sketch::new(Arc::clone(&operator));
        for i in (cut..cells.len()).rev().chain((0..cut).rev()) {
            backward.update(&places[i..=i], Some(&counts[i..=i])).unwrap();
        }
        let mut table = vec![0; 200];
        for (cell, count) in &cells {
            table[*cell as usize] += count;
        }
        let mut whole = vec![0; 40];
        operator.add_table(&table, &mut whole);
        prop_assert_eq!(forward.sums(), backward.sums());
        prop_assert!(forward.sums().totals().eq(whole.iter().map(|sum| i128::from(*sum))));
    }
}
