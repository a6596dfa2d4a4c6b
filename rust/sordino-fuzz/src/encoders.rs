//! Strategies on random workloads against their own dense matrices and the workload's rows.

use crate::Food;
use bolero::check;
use sordino_core::domain::Domain;
use sordino_core::door::{Data, Door, Key, NoiseLaw};
use sordino_core::strategy::{
    CommonNoise, Encoded, Encoding, Geometry, Input, Mechanism, NestedGroups, Recipe, Strategy, common, nested_product,
};
use sordino_core::unit::Unit;
use sordino_core::workload::Workload;

const MAX_ABS: u64 = 1 << 20;

/// A workload of few cells; `deep` lets it be made of others.
fn workload(food: &mut Food<'_>, deep: bool) -> Workload {
    match food.byte() % if deep { 14 } else { 10 } {
        0 => Workload::Histogram { len: food.from(1, 9) },
        1 => {
            let len = food.from(1, 9);
            Workload::Circular { kernel: food.reals(len) }
        }
        2 => {
            let (len, taps) = (food.from(1, 10), food.from(1, 6));
            Workload::Linear { kernel: food.reals(taps), len, center: food.from(0, 3) }
        }
        3 => Workload::Linear { kernel: vec![1.0; 9], len: food.from(1, 9), center: 0 },
        4 => {
            let radices: Vec<usize> = (0..food.from(1, 3)).map(|_| food.from(1, 3)).collect();
            let kernel = food.reals(radices.iter().product());
            Workload::Group { radices, kernel }
        }
        5 => {
            let radices: Vec<usize> = (0..food.from(1, 3)).map(|_| food.from(1, 3)).collect();
            let sets: Vec<Vec<usize>> = (0..food.from(1, 3))
                .map(|_| {
                    let bits = food.byte();
                    (0..radices.len()).filter(|i| bits >> i & 1 == 1).collect()
                })
                .collect();
            let weights = vec![1.0; sets.len()];
            Workload::Marginals { radices, sets, weights, total_share: 0.0 }
        }
        6 => {
            let (rows, columns) = (food.from(1, 4), food.from(1, 6));
            Workload::Matrix { rows, columns, entries: food.reals(rows * columns) }
        }
        7 => {
            // Rows of zeros and ones: of disjoint or nested sets now and then.
            let (rows, columns) = (food.from(1, 5), food.from(1, 7));
            let row = |food: &mut Food<'_>| {
                let (first, len) = (food.from(0, columns - 1), food.from(1, columns));
                (0..columns).map(move |j| f64::from(u8::from((first..first + len).contains(&j)))).collect::<Vec<_>>()
            };
            Workload::Matrix { rows, columns, entries: (0..rows).flat_map(|_| row(food)).collect() }
        }
        8 => Workload::Ranges { len: food.from(1, 7) },
        9 => {
            let len = food.from(1, 9);
            let interval = |food: &mut Food<'_>| {
                let (a, b) = (food.from(0, len - 1) as u32, food.from(0, len - 1) as u32);
                (a.min(b), a.max(b))
            };
            let ends: Vec<(u32, u32)> = (0..food.from(1, 4)).map(|_| interval(food)).collect();
            Workload::Intervals { len, ends, weights: Vec::new() }
        }
        10 => Workload::Tail { first: food.from(0, 4), of: Box::new(workload(food, false)) },
        11 | 12 => Workload::Kronecker { factors: (0..food.from(2, 3)).map(|_| small_factor(food)).collect() },
        _ => {
            let len = food.from(2, 6);
            let parts = [
                Workload::Histogram { len },
                Workload::Ranges { len },
                Workload::Linear { kernel: food.reals(2), len, center: 0 },
            ];
            Workload::Union { parts: (0..food.from(1, 3)).map(|_| food.of(&parts)).collect() }
        }
    }
}

fn small_factor(food: &mut Food<'_>) -> Workload {
    let len = food.from(1, 3);
    food.of(&[
        Workload::Histogram { len },
        Workload::Ranges { len },
        Workload::Linear { kernel: vec![1.0; len], len, center: 0 },
    ])
}

fn unit(food: &mut Food<'_>) -> Unit {
    let records = food.from(1, 5) as u32;
    match food.byte() % 4 {
        0 => Unit::replace_one(records).unwrap(),
        1 => Unit::add_remove(records, None).unwrap(),
        2 => Unit::add_remove(records, Some(food.from(1, 3) as u32)).unwrap(),
        _ => Unit::add_remove(records, Some(food.from(1, 3) as u32)).unwrap().one_signed().unwrap(),
    }
}

/// What one unit may change in so many cells.
fn change(food: &mut Food<'_>, unit: Unit, cells: usize) -> Vec<i64> {
    let mut v = vec![0i64; cells];
    match unit {
        Unit::ReplaceOne { records } => {
            for _ in 0..records {
                let (from, to) = (food.from(0, cells - 1), food.from(0, cells - 1));
                // A cell at its bound does not move: a record may only leave or only arrive.
                let kind = food.byte() % 4;
                v[to] += i64::from(kind != 1);
                v[from] -= i64::from(kind != 2);
            }
        }
        Unit::AddRemove { records, per_cell, one_signed } => {
            let most = i64::from(per_cell.unwrap_or(records));
            for _ in 0..records {
                let (cell, step) = (food.from(0, cells - 1), if one_signed || food.coin() { 1 } else { -1 });
                if (v[cell] + step).abs() <= most {
                    v[cell] += step;
                }
            }
        }
    }
    v
}

fn strategy(food: &mut Food<'_>, workload: &Workload, unit: Unit) -> Option<Box<dyn Strategy>> {
    let law = food.of(&[NoiseLaw::Gaussian, NoiseLaw::Laplace]);
    let mechanism = match food.byte() % 20 {
        0 => Mechanism::Identity,
        1 | 2 => Mechanism::Output,
        3 | 4 => Mechanism::Fourier,
        5 => Mechanism::FourierComposed,
        6 => Mechanism::FourierPlanar,
        7 => Mechanism::FourierGrouped,
        8 => Mechanism::FourierUniform,
        9 => Mechanism::Tree { branching: food.from(2, 5) },
        10 => Mechanism::Haar,
        11 => Mechanism::SquareRoot,
        12 => Mechanism::Balanced,
        13 => Mechanism::WeightedTree,
        14 => return common(workload, CommonNoise::Gaussian(f64::from(food.byte()) / 16.0)).ok(),
        15 => return common(workload, CommonNoise::Laplace(u32::from(food.byte()))).ok(),
        16 => Mechanism::Boxes,
        17 => Mechanism::TableCover,
        18 => return NestedGroups::of(workload).ok()?.strategy(law, None, food.coin().then_some(unit), None).ok(),
        _ => return nested_product(workload, unit).ok(),
    };
    Recipe { workload: workload.clone(), mechanism, law }.build().ok()
}

/// The norm in which a strategy's sensitivity is measured.
fn norm(geometry: &Geometry, v: &[f64]) -> Option<f64> {
    let squares = |v: &[f64]| v.iter().map(|x| x * x).sum::<f64>();
    Some(match geometry {
        Geometry::L2 => squares(v).sqrt(),
        Geometry::L1 => v.iter().map(|x| x.abs()).sum(),
        Geometry::Blocks(lens) => {
            let mut rest = v;
            let mut block = |len: u32| {
                let (block, tail) = rest.split_at(len as usize);
                rest = tail;
                squares(block).sqrt()
            };
            lens.iter().map(|len| block(*len)).sum()
        }
        Geometry::Boxes(lens) => {
            let mut rest = v;
            let mut block = |len: u32| {
                let (block, tail) = rest.split_at(len as usize);
                rest = tail;
                block.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
            };
            lens.iter().map(|len| block(*len)).sum()
        }
        // The inverse of 1 + ratio²·(all ones).
        Geometry::Common(CommonNoise::Gaussian(ratio)) => {
            let (sum, square) = (v.iter().sum::<f64>(), ratio * ratio);
            (squares(v) - square * sum * sum / (1.0 + v.len() as f64 * square)).sqrt()
        }
        // A part of the change may be laid on the common noise, whose rate is so many times that of a cell.
        Geometry::Common(CommonNoise::Laplace(ratio)) => {
            let cost = |c: f64| v.iter().map(|x| (x - c).abs()).sum::<f64>() + f64::from(*ratio) * c.abs();
            (-9..=9).map(|c| cost(f64::from(c))).fold(f64::INFINITY, f64::min)
        }
        Geometry::Body(_) => return None,
    })
}

/// `B x`, exact integers as they are.
fn encode(strategy: &dyn Strategy, input: Input<'_>) -> (Vec<i64>, Vec<f64>) {
    let d = strategy.measured_len();
    let (mut units, mut values) = (vec![0; d], vec![0.0; d]);
    if let Encoding::Exact { .. } = strategy.encoding(MAX_ABS).unwrap() {
        strategy.encode(input, MAX_ABS, Encoded::Exact(&mut units)).unwrap();
        values = units.iter().map(|v| *v as f64).collect();
    } else {
        strategy.encode(input, MAX_ABS, Encoded::Float(&mut values)).unwrap();
    }
    (units, values)
}

#[test]
fn strategies() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let asked = workload(&mut food, true);
        let unit = unit(&mut food);
        let Ok(asked) = asked.validated() else { return };
        let Some(strategy) = strategy(&mut food, &asked, unit) else { return };
        let (cells, answers) = (asked.input_len().unwrap(), asked.answers_len());
        let Ok(encoding) = strategy.encoding(MAX_ABS) else { return };
        let unit_vector = |j: usize| (0..cells).map(|i| i64::from(i == j)).collect::<Vec<_>>();
        let columns: Vec<_> = (0..cells).map(|j| encode(&*strategy, Input::Cells(&unit_vector(j)))).collect();

        // B x is the sum of its columns, and no larger than was said.
        let limit = MAX_ABS as i64;
        let x: Vec<i64> = (0..cells).map(|_| food.integer().clamp(-limit, limit)).collect();
        let (units, values) = encode(&*strategy, Input::Cells(&x));
        match encoding {
            Encoding::Exact { max_abs } => {
                for (row, unit) in units.iter().enumerate() {
                    let sum: i128 = columns.iter().zip(&x).map(|(c, x)| i128::from(c.0[row]) * i128::from(*x)).sum();
                    assert_eq!(i128::from(*unit), sum, "{asked:?} {strategy:?}");
                    assert!(unit.unsigned_abs() <= max_abs);
                }
                let rows: Vec<u64> =
                    strategy.steps().iter().flat_map(|run| std::iter::repeat_n(run.step, run.len)).collect();
                // Of common noise the last run is the sample that all have in common.
                let shared = usize::from(matches!(strategy.geometry(), Geometry::Common(_)));
                assert!(rows.is_empty() || rows.len() == units.len() + shared);
                for (row, step) in rows.iter().take(units.len()).enumerate() {
                    assert!(*step > 0 && columns.iter().all(|c| c.0[row].unsigned_abs() % step == 0), "{asked:?}");
                }
            }
            Encoding::Float { error_l2, max_abs } => {
                let direct = |row: usize| columns.iter().zip(&x).map(|(c, x)| c.1[row] * *x as f64).sum::<f64>();
                let missed = values.iter().enumerate().map(|(i, v)| (v - direct(i)).powi(2)).sum::<f64>().sqrt();
                assert!(missed <= 16.0 * error_l2.get(), "{asked:?} {strategy:?}: {missed} of {error_l2:?}");
                assert!(values.iter().all(|v| v.abs() <= max_abs));
            }
        }
        let nonzero: Vec<usize> = (0..cells).filter(|j| x[*j] != 0).collect();
        let sparse = encode(&*strategy, Input::Sparse { cells: &x, nonzero: &nonzero });
        assert!(sparse.0 == units && sparse.1.iter().zip(&values).all(|(a, b)| a == b), "{asked:?} {strategy:?}");

        // No unit moves it further than the sensitivity.
        if let Ok(bound) = strategy.sensitivity(unit) {
            let v = change(&mut food, unit, cells);
            let moved: Vec<f64> = (0..strategy.measured_len())
                .map(|row| columns.iter().zip(&v).map(|(c, v)| c.1[row] * *v as f64).sum())
                .collect();
            if let Some(norm) = norm(&strategy.geometry(), &moved) {
                assert!(norm <= bound.get() * (1.0 + 1e-9), "{asked:?} {strategy:?} {unit:?} {v:?}: {norm} {bound:?}");
            }
        }

        // Decoding undoes it.
        let (rows, _, entries) = asked.dense().unwrap();
        let mut decoded = vec![0.0; answers];
        strategy.decode(&values, &mut decoded);
        assert_eq!(rows, answers);
        // Answers that are always 0 come out of a transform with its rounding.
        let size: f64 =
            entries.iter().fold(1.0f64, |s, v| s.max(v.abs())) * x.iter().map(|v| v.abs() as f64).sum::<f64>();
        for (t, answer) in decoded.iter().enumerate() {
            let row = &entries[t * cells..(t + 1) * cells];
            let expected: f64 = row.iter().zip(&x).map(|(a, x)| a * *x as f64).sum();
            assert!((answer - expected).abs() <= 1e-6 * size, "{asked:?} {strategy:?} {t}: {answer} for {expected}");
        }

        measured(&asked, &*strategy, unit, &x, &values);
    });
}

/// Through the door the same noise goes on all inputs: what differs is the encode, on the lattice.
fn measured(asked: &Workload, strategy: &dyn Strategy, unit: Unit, x: &[i64], values: &[f64]) {
    let domain = Domain::integral(MAX_ABS).unwrap();
    let Ok(door) = Door::fit(strategy, unit, domain, 1.5) else { return };
    let key = Key::deterministic([6; 32]);
    let publish = |x: &[i64]| door.measure_with(strategy, x.len(), Data::Integers(x), &key).unwrap();
    let (with, without) = (publish(x), publish(&vec![0; x.len()]));
    let spacing = 2f64.powi(i32::from(with.grid()));
    let exact = matches!(strategy.encoding(MAX_ABS), Ok(Encoding::Exact { .. })) && with.grid() <= 0;
    for ((a, b), value) in with.units().iter().zip(without.units()).zip(values) {
        let moved = (a - b) as f64 * spacing;
        let slack = if exact { 0.0 } else { spacing * (1.0 + 1e-9) };
        assert!((moved - value).abs() <= slack, "{asked:?} {strategy:?}: {moved} for {value}");
    }
    let total = door.sensitivity().total().get();
    assert!(door.scale() >= 1.5 * total * (1.0 - 1e-12), "{asked:?} {strategy:?}: less noise than was asked for");
}
