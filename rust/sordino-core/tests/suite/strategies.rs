//! Every strategy against its own dense matrices: sensitivities by brute force, decode as the inverse of
//! encode, variances as norms of the decoder's rows, weights as solutions of `Bᵀw = row`.

use crate::common::norm;
use sordino_core::door::NoiseLaw;
use sordino_core::strategy::{
    Encoded, Encoding, Factor, Factorization, Geometry, Input, Mechanism, Pieces, Recipe, Strategy,
};
use sordino_core::unit::Unit;
use sordino_core::workload::Workload;

const MAX_ABS: u64 = 1 << 20;

fn workloads() -> Vec<Workload> {
    let decay = |n: usize| (0..n).map(|j| 0.9f64.powi(j as i32)).collect::<Vec<_>>();
    vec![
        Workload::Histogram { len: 6 },
        Workload::Circular { kernel: vec![0.5, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.25] },
        Workload::Circular { kernel: decay(9) },
        Workload::Circular { kernel: vec![1.0, -1.0, 0.0, 0.0, 0.0] },
        Workload::Circular { kernel: vec![2.0] },
        Workload::Linear { kernel: vec![1.0; 11], len: 11, center: 0 },
        Workload::Linear { kernel: vec![1.0; 16], len: 16, center: 0 },
        Workload::Linear { kernel: decay(10), len: 10, center: 0 },
        Workload::Linear { kernel: vec![1.0 / 3.0; 3], len: 12, center: 0 },
        Workload::Linear { kernel: vec![0.25, 0.5, 0.75, 1.0, 0.5], len: 9, center: 2 },
        Workload::Linear { kernel: vec![1.0; 13], len: 8, center: 6 },
        Workload::Linear { kernel: vec![3.0], len: 1, center: 0 },
        Workload::Tail { first: 2, of: Box::new(Workload::Linear { kernel: vec![0.5; 3], len: 9, center: 0 }) },
        Workload::Tail { first: 6, of: Box::new(Workload::Linear { kernel: vec![0.5; 7], len: 8, center: 0 }) },
        Workload::Tail { first: 4, of: Box::new(Workload::Circular { kernel: decay(9) }) },
        // Answers that are 0 for all data, at the start and at the end.
        Workload::Linear { kernel: vec![0.0, 0.0, 1.0, 0.5], len: 9, center: 0 },
        Workload::Linear { kernel: vec![1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0], len: 9, center: 3 },
        Workload::Group { radices: vec![2, 3, 2], kernel: (0..12).map(|i| f64::from((i * 5) % 7) - 2.0).collect() },
        Workload::Group { radices: vec![2, 2, 2], kernel: vec![1.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0] },
        Workload::Marginals {
            radices: vec![2, 3, 2],
            sets: vec![vec![0, 1], vec![1, 2], vec![2]],
            weights: vec![1.0, 2.0, 0.5],
            total_share: 0.0,
        },
        Workload::Marginals {
            radices: vec![2, 2, 2, 2],
            sets: vec![vec![0, 1], vec![0, 2], vec![1, 3], vec![]],
            weights: vec![1.0; 4],
            total_share: 0.0,
        },
        Workload::Matrix {
            rows: 3,
            columns: 4,
            entries: vec![1.0, 2.0, 0.0, -1.0, 0.5, 0.5, 0.5, 0.5, 0.0, 1.0, 0.0, 4.0],
        },
        Workload::Matrix { rows: 2, columns: 3, entries: vec![0.1, 0.2, 0.3, 1.0 / 3.0, 0.0, -0.7] },
        sparse(vec![1.0, -2.5, 0.5, 4.0, 1.0]),
        sparse(vec![0.1, -0.2, 1.0 / 3.0, 0.7, 1.0]),
        Workload::Ranges { len: 5 },
        Workload::Ranges { len: 1 },
        Workload::Ranges { len: 12 },
        Workload::Union { parts: vec![Workload::Ranges { len: 9 }, Workload::Histogram { len: 9 }] },
        Workload::Union {
            parts: vec![
                Workload::Histogram { len: 4 },
                Workload::Linear { kernel: vec![0.5; 4], len: 4, center: 0 },
                sparse(vec![1.0, -2.5, 0.5, 4.0, 1.0]),
            ],
        },
        Workload::Linear { kernel: vec![0.5; 4], len: 9, center: 1 },
        Workload::Kronecker {
            factors: vec![Workload::Linear { kernel: decay(3), len: 3, center: 0 }, Workload::Ranges { len: 2 }],
        },
        Workload::Kronecker {
            factors: vec![
                Workload::Linear { kernel: vec![2.0; 4], len: 4, center: 0 },
                Workload::Histogram { len: 2 },
                Workload::Ranges { len: 3 },
            ],
        },
        Workload::Kronecker { factors: vec![Workload::Ranges { len: 3 }, Workload::Histogram { len: 4 }] },
    ]
}

/// Several queries of one series: of neighbours, of filters with ends, on a ring, and there without their total.
fn together() -> Vec<Workload> {
    let decay = |n: usize| (0..n).map(|j| 0.9f64.powi(j as i32)).collect::<Vec<_>>();
    vec![
        Workload::Union {
            parts: vec![
                Workload::Sparse {
                    rows: 1,
                    columns: 7,
                    starts: vec![0, 7],
                    indices: (0..7).collect(),
                    entries: vec![2.0; 7],
                },
                Workload::Sparse {
                    rows: 1,
                    columns: 7,
                    starts: vec![0, 3],
                    indices: vec![2, 3, 4],
                    entries: vec![-0.5; 3],
                },
                Workload::Linear { kernel: vec![1.0; 7], len: 7, center: 0 },
            ],
        },
        Workload::Union {
            parts: vec![
                Workload::Linear { kernel: decay(9), len: 9, center: 0 },
                Workload::Tail { first: 2, of: Box::new(Workload::Linear { kernel: vec![0.5; 3], len: 9, center: 0 }) },
                Workload::Histogram { len: 9 },
                Workload::Linear { kernel: vec![0.25, -0.5, 0.75, 1.0, 0.5], len: 9, center: 2 },
            ],
        },
        Workload::Union {
            parts: vec![
                Workload::Linear { kernel: vec![0.5; 4], len: 7, center: 0 },
                Workload::Tail { first: 2, of: Box::new(Workload::Linear { kernel: vec![2.0; 3], len: 7, center: 0 }) },
                Workload::Linear { kernel: vec![1.0; 12], len: 7, center: 6 },
            ],
        },
        Workload::Union {
            parts: vec![
                Workload::Circular { kernel: vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0] },
                Workload::Histogram { len: 6 },
                Workload::Circular { kernel: vec![1.0, -1.0, 0.0, 0.0, 0.0, 0.0] },
            ],
        },
        Workload::Union {
            parts: vec![
                Workload::Tail {
                    first: 2,
                    of: Box::new(Workload::Circular { kernel: vec![1.0, 0.0, -1.0, 0.0, 0.0] }),
                },
                Workload::Circular { kernel: vec![1.0, -1.0, 0.0, 0.0, 0.0] },
            ],
        },
    ]
}

/// Four cells, three queries, five entries; one row is empty.
fn sparse(entries: Vec<f64>) -> Workload {
    Workload::Sparse { rows: 3, columns: 4, starts: vec![0, 2, 2, 5], indices: vec![0, 2, 0, 1, 3], entries }
}

fn mechanisms() -> Vec<(Mechanism, NoiseLaw)> {
    let both = [
        Mechanism::Identity,
        Mechanism::Output,
        Mechanism::Fourier,
        Mechanism::FourierUniform,
        Mechanism::Tree { branching: 2 },
        Mechanism::Tree { branching: 3 },
        Mechanism::Haar,
        Mechanism::SquareRoot,
        Mechanism::Balanced,
        Mechanism::WeightedTree,
    ];
    let mut all: Vec<(Mechanism, NoiseLaw)> =
        both.into_iter().flat_map(|m| [(m, NoiseLaw::Gaussian), (m, NoiseLaw::Laplace)]).collect();
    for mechanism in [Mechanism::FourierComposed, Mechanism::FourierPlanar, Mechanism::FourierGrouped, Mechanism::Boxes]
    {
        all.push((mechanism, NoiseLaw::Laplace));
    }
    all
}

/// What a strategy was built from.
#[derive(Debug)]
struct Case {
    workload: Workload,
    /// `None` for strategies given as matrices.
    mechanism: Option<Mechanism>,
}

/// Every strategy that can be built.
fn strategies() -> Vec<(Case, Box<dyn Strategy>)> {
    let mut all = Vec::new();
    for workload in workloads().into_iter().chain(together()) {
        for (mechanism, law) in mechanisms() {
            let recipe = Recipe { workload: workload.clone(), mechanism, law };
            if let Ok(strategy) = recipe.build() {
                all.push((Case { workload: workload.clone(), mechanism: Some(mechanism) }, strategy));
            }
        }
    }
    assert!(all.len() > 90, "only {} strategies were built", all.len());
    for factorization in factorizations() {
        let strategy = factorization.build().unwrap_or_else(|e| panic!("{factorization:?}: {e}"));
        all.push((Case { workload: factorization.workload, mechanism: None }, strategy));
    }
    all
}

/// Matrices with entries in no order.
fn factor(rows: usize, columns: usize) -> Factor {
    let entry = |k: usize| {
        let word = (k as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f64 / 2f64.powi(23) - 1.0
    };
    Factor { rows, columns, entries: (0..rows * columns).map(entry).collect() }
}

/// Strategies given as matrices: square, tall, in blocks, of less than full rank, Kronecker products.
fn factorizations() -> Vec<Factorization> {
    let (gaussian, laplace) = (Pieces::Coordinates(NoiseLaw::Gaussian), Pieces::Coordinates(NoiseLaw::Laplace));
    let sums = |n: usize| Workload::Linear { kernel: vec![1.0; n], len: n, center: 0 };
    let one = |workload: Workload, factor: Factor, pieces: Pieces| Factorization {
        workload,
        factors: vec![factor],
        pieces,
        whole: false,
    };
    // Two queries, and two other rows that span the same plane.
    let plane = Workload::Matrix { rows: 2, columns: 4, entries: vec![1.0, 2.0, 0.0, -1.0, 0.5, 0.5, 0.5, 0.5] };
    let rotated = Factor { rows: 2, columns: 4, entries: vec![1.5, 2.5, 0.5, -0.5, 0.5, 1.5, -0.5, -1.5] };
    let grid = Workload::Kronecker { factors: vec![sums(3), Workload::Histogram { len: 2 }] };
    vec![
        one(Workload::Histogram { len: 5 }, factor(5, 5), gaussian.clone()),
        one(sums(6), factor(6, 6), laplace.clone()),
        one(sums(4), factor(7, 4), laplace.clone()),
        one(sums(6), factor(6, 6), Pieces::Blocks(vec![3, 1, 2])),
        one(plane.clone(), rotated.clone(), gaussian.clone()),
        one(plane, rotated, Pieces::Blocks(vec![2])),
        one(grid.clone(), factor(6, 6), gaussian.clone()),
        Factorization {
            workload: grid.clone(),
            factors: vec![factor(3, 3), factor(3, 2)],
            pieces: gaussian,
            whole: false,
        },
        Factorization { workload: grid, factors: vec![factor(4, 3), factor(2, 2)], pieces: laplace, whole: false },
    ]
}

/// `B x`.
fn encode(strategy: &dyn Strategy, x: &[i64]) -> Vec<f64> {
    let d = strategy.measured_len();
    match strategy.encoding(MAX_ABS).unwrap() {
        Encoding::Exact { .. } => {
            let mut out = vec![0; d];
            strategy.encode(Input::Cells(x), MAX_ABS, Encoded::Exact(&mut out)).unwrap();
            out.into_iter().map(|v| v as f64).collect()
        }
        Encoding::Float { .. } => {
            let mut out = vec![0.0; d];
            strategy.encode(Input::Cells(x), MAX_ABS, Encoded::Float(&mut out)).unwrap();
            out
        }
    }
}

fn unit_vector(n: usize, j: usize) -> Vec<i64> {
    (0..n).map(|i| i64::from(i == j)).collect()
}

fn columns(recipe: &Case, strategy: &dyn Strategy) -> Vec<Vec<f64>> {
    let n = recipe.workload.input_len().unwrap();
    (0..n).map(|j| encode(strategy, &unit_vector(n, j))).collect()
}

#[test]
fn sensitivities_bound_brute_force_and_are_tight_for_one_record() {
    for (recipe, strategy) in strategies() {
        let geometry = strategy.geometry();
        let columns = columns(&recipe, &*strategy);
        let column = columns.iter().map(|c| norm(&geometry, c)).fold(0.0, f64::max);
        let pair = columns
            .iter()
            .flat_map(|a| columns.iter().map(move |b| (a, b)))
            .map(|(a, b)| norm(&geometry, &a.iter().zip(b).map(|(x, y)| x - y).collect::<Vec<_>>()))
            .fold(0.0, f64::max);
        let declared = |unit: Unit| strategy.sensitivity(unit).unwrap().get();
        let slack = 1.0 - 1e-12;
        let one = declared(Unit::add_remove(1, None).unwrap());
        assert!(one >= column * slack, "{recipe:?}: {one} < {column}");
        assert!(one <= column * (1.0 + 1e-6), "{recipe:?}: {one} is not tight for {column}");
        assert!(declared(Unit::add_remove(5, None).unwrap()) >= 5.0 * column * slack, "{recipe:?}");
        let replace = declared(Unit::replace_one(1).unwrap());
        assert!(replace >= column.max(pair) * slack, "{recipe:?}: {replace} < {column}, {pair}");
        // Five records, at most two in a cell: all ways to put them in three cells.
        let capped = declared(Unit::add_remove(5, Some(2)).unwrap());
        for (i, a) in columns.iter().enumerate() {
            for (j, b) in columns.iter().enumerate() {
                for (k, c) in columns.iter().enumerate() {
                    if i != j && j != k && i != k {
                        for signs in [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]] {
                            let v: Vec<f64> = a
                                .iter()
                                .zip(b)
                                .zip(c)
                                .map(|((a, b), c)| 2.0 * a + 2.0 * signs[0] * b + signs[1] * c)
                                .collect();
                            assert!(capped >= norm(&geometry, &v) * slack, "{recipe:?}");
                        }
                    }
                }
            }
        }
    }
}

/// Mechanisms whose replacement sensitivity is claimed to be exact.
#[test]
fn replacement_is_tight_where_claimed() {
    for (recipe, strategy) in strategies() {
        let exact = strategy.geometry() == Geometry::L2
            && recipe.workload.input_len() != Some(1) // one cell has no pair
            && !matches!((recipe.mechanism, &recipe.workload), (Some(Mechanism::Output), Workload::Linear { .. } | Workload::Circular { .. } | Workload::Tail { .. }) | (Some(_), Workload::Histogram { .. }) | (None | Some(Mechanism::Balanced), Workload::Kronecker { .. }));
        if !exact {
            continue;
        }
        let columns = columns(&recipe, &*strategy);
        let mut largest = columns.iter().map(|c| norm(&Geometry::L2, c)).fold(0.0, f64::max);
        for a in &columns {
            for b in &columns {
                let v: Vec<f64> = a.iter().zip(b).map(|(x, y)| x - y).collect();
                largest = largest.max(norm(&Geometry::L2, &v));
            }
        }
        let declared = strategy.sensitivity(Unit::replace_one(1).unwrap()).unwrap().get();
        // Trees are cut off: the bound of a full tree may be larger by the missing branches.
        let tolerance =
            if matches!(recipe.mechanism, Some(Mechanism::Tree { .. } | Mechanism::Haar)) { 0.5 } else { 1e-6 };
        assert!(declared <= largest * (1.0 + tolerance), "{recipe:?}: {declared} for {largest}");
    }
}

/// Of everything that measures tables: products with the transpose, and with cells that are no integers.
#[test]
fn products_are_those_of_the_columns() {
    for (recipe, strategy) in strategies() {
        if matches!(recipe.workload, Workload::Marginals { .. }) {
            continue; // of records, not of a table
        }
        let columns = columns(&recipe, &*strategy);
        let wave = |k: usize| ((k * 29 + 3) % 23) as f64 / 7.0 - 1.5;
        let (x, y): (Vec<f64>, Vec<f64>) =
            ((0..columns.len()).map(wave).collect(), (0..strategy.measured_len()).map(wave).collect());
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let norm = |v: &[f64]| dot(v, v).sqrt();
        let back = strategy.transposed(&y).unwrap_or_else(|| panic!("{recipe:?} has no transpose"));
        assert_eq!(back.len(), columns.len(), "{recipe:?}");
        let size: f64 = columns.iter().map(|column| norm(column)).sum();
        for (got, column) in back.iter().zip(&columns) {
            let known = dot(column, &y);
            assert!((got - known).abs() <= 1e-9 * size * norm(&y), "{recipe:?}: {got} {known}");
        }
        let product = strategy.multiplied(&x).unwrap_or_else(|| panic!("{recipe:?} has no product"));
        for (i, got) in product.iter().enumerate() {
            let row: Vec<f64> = columns.iter().map(|column| column[i]).collect();
            let known = dot(&row, &x);
            assert!((got - known).abs() <= 1e-9 * size * norm(&x), "{recipe:?}: {got} {known}");
        }
    }
}

#[test]
fn decode_undoes_encode() {
    for (recipe, strategy) in strategies() {
        let n = recipe.workload.input_len().unwrap();
        let x: Vec<i64> = (0..n as i64).map(|i| (i * 37 + 11) % 101 - 30).collect();
        let reals: Vec<f64> = x.iter().map(|v| *v as f64).collect();
        let m = recipe.workload.answers_len();
        let (mut expected, mut got) = (vec![0.0; m], vec![0.0; m]);
        recipe.workload.apply(&reals, &mut expected);
        strategy.decode(&encode(&*strategy, &x), &mut got);
        let size = expected.iter().fold(1.0f64, |s, v| s.max(v.abs()));
        for (a, b) in got.iter().zip(&expected) {
            assert!((a - b).abs() < 1e-7 * size, "{recipe:?}: {a} instead of {b}");
        }
    }
}

#[test]
fn variances_are_those_of_the_decoder() {
    for (recipe, strategy) in strategies() {
        let (d, m) = (strategy.measured_len(), recipe.workload.answers_len());
        let noise = strategy.unit_variances();
        let mut direct = vec![0.0; m];
        for i in 0..d {
            let y: Vec<f64> = (0..d).map(|j| f64::from(u8::from(i == j))).collect();
            let mut column = vec![0.0; m];
            strategy.decode(&y, &mut column);
            direct.iter_mut().zip(column).for_each(|(v, c)| *v += noise[i] * c * c);
        }
        let mut declared = vec![0.0; m];
        strategy.variances(&mut declared);
        // Answers that are always 0 come out of a transform with its rounding.
        let floor = 1e-24 * direct.iter().fold(0.0f64, |most, v| most.max(*v));
        for (t, (a, b)) in declared.iter().zip(&direct).enumerate() {
            assert!((a - b).abs() <= 1e-8 * b + floor, "{recipe:?} answer {t}: {a} instead of {b}");
        }
    }
}

#[test]
fn weights_solve_for_rows() {
    for (recipe, strategy) in strategies() {
        let n = recipe.workload.input_len().unwrap();
        let columns = columns(&recipe, &*strategy);
        let noise = strategy.unit_variances();
        let mut variances = vec![0.0; recipe.workload.answers_len()];
        strategy.variances(&mut variances);
        let decoded: Vec<Vec<f64>> = (0..strategy.measured_len())
            .map(|i| {
                let mut y = vec![0.0; strategy.measured_len()];
                y[i] = 1.0;
                let mut answers = vec![0.0; recipe.workload.answers_len()];
                strategy.decode(&y, &mut answers);
                answers
            })
            .collect();
        for t in 0..recipe.workload.answers_len() {
            let row = recipe.workload.row(t).unwrap();
            let Ok(weights) = strategy.weights(&row) else {
                // Marginal tables measured directly answer no other query.
                assert!(matches!(
                    (recipe.mechanism, &recipe.workload),
                    (Some(Mechanism::Output), Workload::Marginals { .. })
                ));
                continue;
            };
            for j in 0..n {
                let value: f64 = columns[j].iter().zip(&weights).map(|(b, w)| b * w).sum();
                assert!((value - row[j]).abs() < 1e-7, "{recipe:?} row {t} cell {j}: {value} instead of {}", row[j]);
            }
            let variance = |weights: &[f64]| weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum::<f64>();
            assert!(variance(&weights) <= variances[t] * (1.0 + 1e-6), "{recipe:?}: weights are not the least");
            let own = strategy.answer_weights(t, &row).unwrap();
            for (i, w) in own.iter().enumerate() {
                assert!((decoded[i][t] - w).abs() <= 1e-7 * (1.0 + w.abs()), "{recipe:?} row {t}: decode has others");
            }
        }
    }
}

/// Queries outside of what was measured are refused, not answered with junk.
#[test]
fn outside_the_row_space_is_refused() {
    let difference = Recipe {
        workload: Workload::Circular { kernel: vec![1.0, -1.0, 0.0, 0.0] },
        mechanism: Mechanism::Fourier,
        law: NoiseLaw::Gaussian,
    };
    let strategy = difference.build().unwrap();
    assert!(strategy.weights(&[1.0; 4]).is_err(), "the total is not measured by differences");
    assert!(strategy.weights(&[1.0, 0.0, -1.0, 0.0]).is_ok());
    let marginals = Recipe {
        workload: Workload::Marginals {
            radices: vec![2, 2],
            sets: vec![vec![0], vec![1]],
            weights: vec![1.0; 2],
            total_share: 0.0,
        },
        mechanism: Mechanism::Fourier,
        law: NoiseLaw::Gaussian,
    };
    let strategy = marginals.build().unwrap();
    assert!(strategy.weights(&[1.0, 0.0, 0.0, 0.0]).is_err(), "a joint cell is not measured");
    assert!(strategy.weights(&[1.0, 1.0, 0.0, 0.0]).is_ok());
}

/// Matrices that cannot answer the workload, or do not fit it.
#[test]
fn unfit_matrices_are_refused() {
    let gaussian = Pieces::Coordinates(NoiseLaw::Gaussian);
    let build = |workload: Workload, factor: Factor, pieces: &Pieces| {
        Factorization { workload, factors: vec![factor], pieces: pieces.clone(), whole: false }.build()
    };
    let histogram = Workload::Histogram { len: 4 };
    assert!(build(histogram.clone(), factor(3, 4), &gaussian).is_err(), "three rows do not span four cells");
    assert!(build(histogram.clone(), factor(4, 3), &gaussian).is_err(), "another number of cells");
    assert!(build(histogram.clone(), factor(4, 4), &Pieces::Blocks(vec![1, 2])).is_err(), "blocks are too short");
    let dependent = Factor { rows: 2, columns: 2, entries: vec![1.0, 2.0, 2.0, 4.0] };
    assert!(build(Workload::Histogram { len: 2 }, dependent, &gaussian).is_err());
    let none = Factorization { workload: histogram, factors: vec![], pieces: gaussian, whole: false };
    assert!(none.build().is_err());
}

/// Exact sums: what a double can say of `B x`, at the largest admissible input.
#[test]
fn the_encode_error_bound_holds() {
    for factorization in factorizations() {
        let strategy = factorization.build().unwrap_or_else(|e| panic!("{factorization:?}: {e}"));
        let n = factorization.workload.input_len().unwrap();
        let Encoding::Float { error_l2, max_abs } = strategy.encoding(MAX_ABS).unwrap() else { panic!("not floats") };
        let columns: Vec<Vec<f64>> = (0..n).map(|j| encode(&*strategy, &unit_vector(n, j))).collect();
        for pattern in 0..1u32 << n.min(8) {
            let x: Vec<i64> =
                (0..n).map(|j| (MAX_ABS as i64 - j as i64) * (1 - 2 * i64::from(pattern >> j & 1))).collect();
            let got = encode(&*strategy, &x);
            assert!(got.iter().all(|v| v.abs() <= max_abs));
            // Columns are exact up to a unit in the last place; sums of them lose a few more.
            let direct = |i: usize| columns.iter().zip(&x).map(|(c, x)| c[i] * *x as f64).sum::<f64>();
            let missed = got.iter().enumerate().map(|(i, v)| (v - direct(i)).powi(2)).sum::<f64>().sqrt();
            assert!(missed <= 16.0 * error_l2.get(), "{factorization:?}: {missed} for {error_l2:?}");
        }
    }
}
