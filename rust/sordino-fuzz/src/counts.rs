//! What is counted in parts, against all at once.

use crate::Food;
use crate::parsers::{FEATURES, fill, rule};
use bolero::check;
use sordino_core::sketch::{Kind, Operator, Sketch};
use sordino_core::smooth::PointSums;
use sordino_core::table::Tally;
use std::sync::Arc;

/// Parts of the rows, through bytes or not, merged in any order.
#[test]
fn tallies_in_parts() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let (rule, text) = (rule(&mut food), food.coin());
        let (mut whole, mut parts) = (Tally::new(rule), Vec::new());
        for _ in 0..food.from(1, 4) {
            let (rows, mut again) = (food.from(0, 12), food.clone());
            fill(&mut again, &mut whole, text, rows);
            let mut part = Tally::new(rule);
            fill(&mut food, &mut part, text, rows);
            let place = food.from(0, parts.len());
            let bytes = part.to_bytes().unwrap();
            parts.insert(place, if food.coin() { Tally::from_bytes(&bytes).unwrap() } else { part });
        }
        let mut merged = Tally::new(rule);
        parts.iter_mut().for_each(|part| merged.merge(part).unwrap());
        assert_eq!(merged.table().unwrap(), whole.table().unwrap());
        assert_eq!(merged.to_bytes().unwrap(), whole.to_bytes().unwrap());
    });
}

/// Cells one by one, tables, merges: the sums of columns in wide integers.
#[test]
fn sketches_in_parts() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let kind =
            food.of(&[Kind::Bernoulli, Kind::Hadamard, Kind::Sparse { nonzeros: 1 }, Kind::Sparse { nonzeros: 3 }]);
        let (cells, rows) = (food.from(3, 40), food.from(3, 40));
        let operator = Arc::new(Operator::new(kind, cells, rows.min(cells), food.word()).unwrap());
        let mut columns = vec![vec![0i64; operator.measurements()]; cells];
        for (cell, column) in columns.iter_mut().enumerate() {
            operator.column(cell, |row, plus| column[row] += if plus { 1 } else { -1 });
            assert_eq!(column.iter().map(|v| v.unsigned_abs()).sum::<u64>() as usize, operator.column_entries());
        }
        let mut expected = vec![0i128; operator.measurements()];
        let mut add = |cell: i64, count: i64| {
            let count = i128::from(count.clamp(-(1 << 53), 1 << 53));
            if let Some(column) = usize::try_from(cell).ok().and_then(|cell| columns.get(cell)) {
                expected.iter_mut().zip(column).for_each(|(sum, entry)| *sum += count * i128::from(*entry));
            }
        };
        let (mut own, mut other) = (Sketch::new(Arc::clone(&operator)), Sketch::new(Arc::clone(&operator)));
        for _ in 0..food.from(0, 6) {
            let sketch = if food.coin() { &mut own } else { &mut other };
            if food.coin() {
                let table: Vec<i64> = (0..cells).map(|_| food.integer()).collect();
                sketch.add_table(&table).unwrap();
                table.iter().enumerate().for_each(|(cell, count)| add(cell as i64, *count));
            } else {
                let places: Vec<i64> = (0..food.from(0, 8)).map(|_| food.integer()).collect();
                let counts: Vec<i64> = places.iter().map(|_| food.integer()).collect();
                let counted = food.coin();
                sketch.update(&places, counted.then_some(&counts[..])).unwrap();
                places.iter().zip(&counts).for_each(|(cell, count)| add(*cell, if counted { *count } else { 1 }));
            }
        }
        own.merge(&Sketch::from_bytes(&other.to_bytes()).unwrap()).unwrap();
        let bound = 1 << 62;
        let clamped = expected.iter().map(|sum| (*sum).clamp(-i128::from(bound), i128::from(bound)) as i64);
        assert!(own.sums().clamped(bound).eq(clamped));
    });
}

/// The sums of two sets of points are those of both, whatever lies beyond the bounds or is no number.
#[test]
fn points_in_parts() {
    check!().for_each(|input: &[u8]| {
        let mut food = Food::new(input);
        let points: Vec<f64> = (0..2 * food.from(0, 20)).map(|_| food.any_real()).collect();
        let (first, second) = points.split_at(2 * food.from(0, points.len() / 2));
        let sums = |points: &[f64]| {
            let mut sums = PointSums::new(Arc::clone(&FEATURES));
            sums.add(points).unwrap();
            sums
        };
        let mut merged = sums(second);
        merged.merge(&PointSums::from_bytes(Arc::clone(&FEATURES), &sums(first).to_bytes()).unwrap()).unwrap();
        assert!(merged.sums() == sums(&points).sums());
        let known = points.chunks(2).filter(|point| point.iter().all(|x| !x.is_nan())).count();
        assert_eq!(merged.count(), known as u64);
        // A point adds what it adds, whatever lies beside it.
        let mut single = PointSums::new(Arc::clone(&FEATURES));
        points.chunks(2).for_each(|point| single.add(point).unwrap());
        assert!(single.sums() == merged.sums());
    });
}
