//! Every kind against its definition, entry by entry.

use super::{MAX_DEPTH, MAX_ENTRIES, Workload};
use proptest::prelude::*;

/// `A` by definition, for the kinds made of others and the leaves that the properties draw.
pub(crate) fn naive(workload: &Workload) -> Vec<Vec<f64>> {
    match workload {
        Workload::Histogram { len } => {
            (0..*len).map(|t| (0..*len).map(|j| f64::from(u8::from(t == j))).collect()).collect()
        }
        Workload::Linear { kernel, len, center } => (0..*len as i64)
            .map(|t| {
                let tap = |j: i64| usize::try_from(t + *center as i64 - j).ok().and_then(|k| kernel.get(k));
                (0..*len as i64).map(|j| tap(j).copied().unwrap_or(0.0)).collect()
            })
            .collect(),
        Workload::Matrix { columns, entries, .. } => entries.chunks(*columns).map(<[f64]>::to_vec).collect(),
        Workload::Sparse { rows, columns, starts, indices, entries } => {
            let mut matrix = vec![vec![0.0; *columns]; *rows];
            for t in 0..*rows {
                for k in starts[t]..starts[t + 1] {
                    matrix[t][indices[k] as usize] = entries[k];
                }
            }
            matrix
        }
        Workload::Ranges { len } => {
            let ends = (0..*len).flat_map(|i| (i..*len).map(move |j| (i, j)));
            ends.map(|(i, j)| (0..*len).map(|c| f64::from(u8::from(i <= c && c <= j))).collect()).collect()
        }
        Workload::Intervals { len, ends, .. } => {
            let held = |c: usize, (first, last): (u32, u32)| f64::from(u8::from((first..=last).contains(&(c as u32))));
            ends.iter().map(|ends| (0..*len).map(|c| held(c, *ends)).collect()).collect()
        }
        Workload::Union { parts } => parts.iter().flat_map(naive).collect(),
        Workload::Kronecker { factors } => factors.iter().map(naive).fold(vec![vec![1.0]], |a, b| {
            let row = |a: &Vec<f64>, b: &Vec<f64>| a.iter().flat_map(|x| b.iter().map(move |y| x * y)).collect();
            a.iter().flat_map(|a| b.iter().map(move |b| row(a, b))).collect()
        }),
        _ => panic!("no definition here"),
    }
}

#[test]
fn the_oracle_on_known_cases() {
    let pair = Workload::Matrix { rows: 1, columns: 2, entries: vec![2.0, 3.0] };
    let sums = Workload::Linear { kernel: vec![1.0; 2], len: 2, center: 0 };
    let product = Workload::Kronecker { factors: vec![sums.clone(), pair.clone()] };
    assert_eq!(naive(&product), [[2.0, 3.0, 0.0, 0.0], [2.0, 3.0, 2.0, 3.0]]);
    assert_eq!(naive(&Workload::Ranges { len: 2 }), [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]);
    let union = Workload::Union { parts: vec![pair, sums] };
    assert_eq!(naive(&union), [[2.0, 3.0], [1.0, 0.0], [1.0, 1.0]]);
}

/// Workloads on `n` cells that are not made of others.
fn leaves(n: usize) -> BoxedStrategy<Workload> {
    let entry = prop_oneof![Just(0.0), Just(1.0), -2.0..2.0f64];
    let matrix = move |rows: usize| prop::collection::vec(entry.clone(), rows * n);
    let sparse = |(rows, full): (usize, Vec<f64>)| {
        let columns = full.len() / rows;
        let kept: Vec<usize> = (0..full.len()).filter(|k| full[*k] != 0.0).collect();
        Workload::Sparse {
            rows,
            columns,
            starts: (0..=rows).map(|t| kept.iter().filter(|k| **k < t * columns).count()).collect(),
            indices: kept.iter().map(|k| (k % columns) as u32).collect(),
            entries: kept.iter().map(|k| full[*k]).collect(),
        }
    };
    let dense = |(rows, entries): (usize, Vec<f64>)| Workload::Matrix { rows, columns: entries.len() / rows, entries };
    let rows = (1usize..5).prop_flat_map(move |rows| (Just(rows), matrix(rows)));
    let cells = n as u32;
    let interval = (0..cells).prop_flat_map(move |first| (Just(first), first..cells));
    let intervals = prop::collection::vec(interval, 1..20);
    prop_oneof![
        Just(Workload::Histogram { len: n }),
        Just(Workload::Ranges { len: n }),
        intervals.prop_map(move |ends| Workload::Intervals { len: n, ends, weights: Vec::new() }),
        Just(Workload::Linear { kernel: vec![1.0, -0.5][..2.min(n)].to_vec(), len: n, center: 0 }),
        rows.clone().prop_map(dense),
        rows.prop_map(sparse),
    ]
    .prop_filter("not all zero", |workload| workload.clone().validated().is_ok())
    .boxed()
}

/// Workloads on `n` cells, nested up to `depth`.
fn nested(n: usize, depth: u32) -> BoxedStrategy<Workload> {
    if depth == 0 {
        return leaves(n);
    }
    let divisors: Vec<usize> = (1..=n).filter(|d| n.is_multiple_of(*d)).collect();
    prop_oneof![
        leaves(n),
        prop::collection::vec(nested(n, depth - 1), 1..4).prop_map(|parts| Workload::Union { parts }),
        prop::sample::select(divisors)
            .prop_flat_map(move |d| (nested(d, depth - 1), nested(n / d, depth - 1)))
            .prop_map(|(a, b)| Workload::Kronecker { factors: vec![a, b] }),
    ]
    .boxed()
}

/// Workloads on 1 to 12 cells.
pub(crate) fn workloads() -> impl Strategy<Value = Workload> {
    (1usize..=12).prop_flat_map(|n| nested(n, 2))
}

/// Rows, products and norms are those of `rows`.
fn check(workload: &Workload, rows: &[Vec<f64>]) {
    let (n, m) = (workload.input_len().unwrap(), workload.answers_len());
    assert_eq!((m, n), (rows.len(), rows[0].len()), "{workload:?}");
    let x: Vec<f64> = (0..n).map(|i| ((i * 7 + 3) % 11) as f64 - 4.0).collect();
    let (mut y, mut squares) = (vec![0.0; m], vec![0.0; m]);
    workload.apply(&x, &mut y);
    workload.row_squares(&mut squares);
    for (t, row) in rows.iter().enumerate() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9 * (1.0 + b.abs());
        let dot: f64 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
        assert!(near(y[t], dot), "{workload:?} row {t}: {} instead of {dot}", y[t]);
        assert!(near(squares[t], row.iter().map(|a| a * a).sum()), "{workload:?} row {t}");
    }
}

proptest! {
    #[test]
    fn kinds_are_their_definition(workload in workloads()) {
        let workload = workload.validated().unwrap();
        let rows = naive(&workload);
        check(&workload, &rows);
        prop_assert_eq!(workload.dense().unwrap(), (rows.len(), rows[0].len(), rows.concat()));
        for (t, row) in rows.iter().enumerate() {
            prop_assert_eq!(&workload.row(t).unwrap(), row);
        }
    }
}

#[test]
fn rows_apply_and_norms_agree() {
    for workload in [
        Workload::Histogram { len: 5 },
        Workload::Circular { kernel: vec![1.0, -0.5, 0.25, 0.0, 2.0, 0.0] },
        Workload::Linear { kernel: vec![1.0, 2.0, 3.0], len: 7, center: 0 },
        Workload::Linear { kernel: vec![1.0, 2.0, 3.0, 4.0, 5.0], len: 4, center: 2 },
        Workload::Linear { kernel: vec![1.0; 7], len: 4, center: 3 },
        Workload::Group { radices: vec![2, 3, 2], kernel: (0..12).map(f64::from).collect() },
        Workload::Group { radices: vec![2, 2, 2], kernel: (0..8).map(f64::from).collect() },
        Workload::Marginals {
            radices: vec![2, 3, 4],
            sets: vec![vec![], vec![1], vec![0, 2]],
            weights: vec![1.0; 3],
            total_share: 0.0,
        },
        Workload::Matrix { rows: 2, columns: 3, entries: vec![1.0, 2.0, 3.0, 0.0, -1.0, 0.5] },
    ] {
        let workload = workload.validated().unwrap();
        let rows: Vec<Vec<f64>> = (0..workload.answers_len()).map(|t| workload.row(t).unwrap()).collect();
        check(&workload, &rows);
    }
}

/// A query without cells: its answer and norm are 0, not -0, whose square root and sign would show.
#[test]
fn empty_rows_are_plain_zero() {
    let entries = vec![1.0];
    let sparse = Workload::Sparse { rows: 2, columns: 1, starts: vec![0, 0, 1], indices: vec![0], entries };
    let (mut y, mut squares) = ([1.0; 2], [1.0; 2]);
    sparse.apply(&[3.0], &mut y);
    sparse.row_squares(&mut squares);
    assert!(y[0] == 0.0 && y[0].is_sign_positive() && squares[0].is_sign_positive());
}

/// Sizes at which several threads work, and a table whose axes shrink and grow.
#[test]
fn large_products_agree_with_their_parts() {
    let (n, m) = (300, 1000);
    let entries: Vec<f64> = (0..n * m).map(|k| ((k * 7919) % 13) as f64 - 6.0).collect();
    let matrix = Workload::Matrix { rows: m, columns: n, entries: entries.clone() };
    let sparse = Workload::Sparse {
        rows: m,
        columns: n,
        starts: (0..=m).map(|t| t * n).collect(),
        indices: (0..m * n).map(|k| (k % n) as u32).collect(),
        entries,
    }
    .validated()
    .unwrap();
    let x: Vec<f64> = (0..n).map(|i| ((i * 31) % 17) as f64).collect();
    let apply = |workload: &Workload, x: &[f64]| {
        let mut out = vec![0.0; workload.answers_len()];
        workload.apply(x, &mut out);
        out
    };
    assert_eq!(apply(&matrix, &x), apply(&sparse, &x));
    // Totals of 4096 cells, 2001000 ranges of 2000 cells: in the other order a table of 2^33 entries would be made.
    let totals = Workload::Matrix { rows: 1, columns: 4096, entries: vec![1.0; 4096] };
    let product = Workload::Kronecker { factors: vec![totals, Workload::Ranges { len: 2000 }] }.validated().unwrap();
    let x: Vec<f64> = (0..4096 * 2000).map(|i| f64::from((i * 31) % 17)).collect();
    let sums: Vec<f64> = (0..2000).map(|j| (0..4096).map(|i| x[i * 2000 + j]).sum()).collect();
    assert_eq!(apply(&product, &x), apply(&Workload::Ranges { len: 2000 }, &sums));
    assert!(product.dense().is_err() && product.answers_len() * 4096 * 2000 > MAX_ENTRIES);
}

#[test]
fn nonsense_is_refused() {
    let cells = |len| Workload::Histogram { len };
    let sparse = |columns, starts: &[usize], indices: &[u32], entry: f64| Workload::Sparse {
        rows: 2,
        columns,
        starts: starts.to_vec(),
        indices: indices.to_vec(),
        entries: vec![entry; indices.len()],
    };
    assert!(sparse(3, &[0, 2, 3], &[0, 2, 1], 1.0).validated().is_ok());
    let large =
        Workload::Marginals { radices: vec![1 << 16; 2], sets: vec![vec![0]], weights: vec![1.0], total_share: 0.0 };
    let tiny = Workload::Matrix { rows: 1, columns: 1, entries: vec![1e-100] };
    let deep = (0..=MAX_DEPTH).fold(cells(2), |inner, _| Workload::Union { parts: vec![inner] });
    for workload in [
        cells(0),
        Workload::Circular { kernel: vec![0.0; 4] },
        Workload::Circular { kernel: vec![f64::NAN] },
        Workload::Circular { kernel: vec![] },
        Workload::Linear { kernel: vec![1.0; 9], len: 4, center: 0 },
        Workload::Group { radices: vec![2, 0], kernel: vec![] },
        Workload::Group { radices: vec![usize::MAX, 2], kernel: vec![1.0] },
        Workload::Marginals { radices: vec![2, 2], sets: vec![vec![1, 0]], weights: vec![1.0], total_share: 0.0 },
        Workload::Marginals { radices: vec![2, 2], sets: vec![vec![2]], weights: vec![1.0], total_share: 0.0 },
        Workload::Matrix { rows: 1, columns: 2, entries: vec![1.0] },
        sparse(3, &[0, 2, 3], &[2, 0, 1], 1.0),
        sparse(3, &[0, 2, 3], &[1, 1, 1], 1.0),
        sparse(2, &[0, 2, 3], &[0, 2, 1], 1.0),
        sparse(3, &[0, 3, 2], &[0, 1, 2], 1.0),
        sparse(3, &[0, 2, 2], &[0, 1, 2], 1.0),
        sparse(3, &[0, 3], &[0, 1, 2], 1.0),
        sparse(3, &[1, 2, 3], &[0, 1, 2], 1.0),
        sparse(3, &[0, 2, 3], &[0, 2, 1], 0.0),
        sparse(3, &[0, 2, 3], &[0, 2, 1], f64::NAN),
        sparse(3, &[0, 0, 0], &[], 1.0),
        Workload::Ranges { len: 0 },
        Workload::Ranges { len: (1 << 26) + 1 },
        Workload::Ranges { len: usize::MAX },
        Workload::Union { parts: vec![] },
        Workload::Union { parts: vec![cells(2), cells(3)] },
        Workload::Union { parts: vec![cells(0)] },
        Workload::Union { parts: vec![large.clone()] },
        Workload::Union { parts: vec![Workload::Ranges { len: 1 << 26 }; 1 << 12] },
        Workload::Kronecker { factors: vec![] },
        Workload::Kronecker { factors: vec![cells(0)] },
        Workload::Kronecker { factors: vec![large] },
        Workload::Kronecker { factors: vec![cells(1 << 20); 4] },
        Workload::Kronecker { factors: vec![tiny; 2] },
        deep,
    ] {
        assert!(workload.clone().validated().is_err(), "{workload:?}");
    }
    assert!(Workload::Ranges { len: 11_584 }.validated().is_ok());
    assert!(Workload::Union { parts: vec![Workload::Ranges { len: 11_584 }; 2] }.validated().is_ok());
    let deep = (0..MAX_DEPTH).fold(cells(2), |inner, _| Workload::Union { parts: vec![inner] });
    assert!(deep.validated().is_ok());
}
