use super::*;
use crate::linear_algebra::{Matrix, from_rows, product, symmetric_eigen, transposed_product};

fn sums(len: usize) -> Workload {
    Workload::Linear { kernel: vec![1.0; len], len, center: 0 }
}

fn intervals(len: usize) -> Workload {
    let last = len as u32 - 1;
    let ends = vec![(0, last), (last / 2, last), (0, last / 3), (last, last), (last / 4, last / 2)];
    Workload::Intervals { len, ends, weights: Vec::new() }
}

fn union(parts: Vec<Workload>) -> Workload {
    Workload::Union { parts }
}

/// `AᵀA` with weights, written out.
fn gram(workload: &Workload, weights: &[f64]) -> Matrix {
    let Workload::Union { parts } = workload else { unreachable!("of unions") };
    let mut gram = Matrix::zeros(workload.input_len().unwrap(), workload.input_len().unwrap());
    for (part, weight) in parts.iter().zip(weights) {
        let (rows, columns, entries) = part.dense().unwrap();
        let entries: Vec<f64> = entries.iter().map(|v| v * weight.sqrt()).collect();
        let queries = from_rows(rows, columns, &entries);
        gram += transposed_product(&queries, &queries);
    }
    gram
}

fn dense_diagonal(gram: &Matrix) -> Vec<f64> {
    let (vectors, values) = symmetric_eigen(gram).unwrap();
    let n = values.len();
    (0..n).map(|j| (0..n).map(|k| vectors[(j, k)].powi(2) * values[k].max(0.0).sqrt()).sum()).collect()
}

#[test]
fn the_diagonal_is_that_of_the_root_or_below() {
    for len in [1, 2, 3, 4, 7, 16, 33, 60] {
        let (ranges, cells) = (Workload::Ranges { len }, Workload::Histogram { len });
        let total = Workload::Matrix { rows: 1, columns: len, entries: vec![1.0; len] };
        let exact = [
            vec![ranges.clone()],
            vec![sums(len)],
            vec![ranges.clone(), cells.clone()],
            vec![sums(len), cells.clone()],
        ];
        let nearly = [
            vec![sums(len), total.clone()],
            vec![ranges.clone(), total.clone(), cells.clone()],
            vec![sums(len), intervals(len)],
            vec![ranges.clone(), sums(len)],
            vec![sums(len), ranges.clone(), cells],
            vec![ranges, sums(len), total],
        ];
        let all = exact.map(|parts| (parts, 1e-11)).into_iter().chain(nearly.map(|parts| (parts, 3e-6)));
        for ((parts, loss), heavier) in all.flat_map(|of| [(of.clone(), 2.5), (of, 1e6)]) {
            let weights: Vec<f64> = (0..parts.len()).map(|k| 1.0 + heavier * k as f64).collect();
            let workload = union(parts);
            let (found, known) =
                (root_diagonal(&workload, Some(&weights)).unwrap(), dense_diagonal(&gram(&workload, &weights)));
            let rounded = 1e-11 * known.iter().fold(0.0f64, |most, b| most.max(*b));
            for (a, b) in found.iter().zip(&known) {
                assert!(a <= &(b + rounded), "{len}: {a} {b}");
                assert!((a - b).abs() <= loss * b + rounded, "{len}: {a} {b}");
            }
        }
    }
}

#[test]
fn the_diagonal_of_one_kind_is_summed_from_cell_to_cell() {
    for len in [1usize, 2, 3, 4, 7, 64, 1001, 20_000] {
        for symmetry in [Symmetry::Sine, Symmetry::Cosine] {
            let known = symmetry.diagonal(&symmetry.angles(len).map(root_value).collect::<Vec<_>>());
            let found = symmetry.inverse_root_diagonal(len);
            assert_eq!(found.len(), len);
            assert!(found.iter().zip(&known).all(|(a, b)| (a / b - 1.0).abs() < 1e-12), "{len} {symmetry:?}");
        }
    }
}

#[test]
fn products_are_those_of_the_matrix() {
    for len in [1usize, 2, 3, 8, 21] {
        let others = (0..2 * len).map(|k| (k % 3) as f64 - 0.5).collect();
        let others = Workload::Matrix { rows: 2, columns: len, entries: others };
        let parts = vec![Workload::Ranges { len }, sums(len), Workload::Histogram { len }, intervals(len), others];
        let (workload, weights) = (union(parts), [0.7, 3.0, 2.0, 5.0, 1.5]);
        let (gram, line) = (gram(&workload, &weights), Line::of(&workload, Some(&weights)).unwrap());
        let v: Vec<f64> = (0..2 * len).map(|k| ((k * 7) % 11) as f64 - 3.0).collect();
        let rows = Matrix::from_fn(2, len, |k, j| v[2 * j + k]);
        let (known, mut found) = (product(&rows, &gram), vec![f64::NAN; 2 * len]);
        line.times_gram(2, &v, &mut found);
        for j in 0..len {
            for k in 0..2 {
                assert!((known[(k, j)] - found[2 * j + k]).abs() <= 1e-10 * gram[(0, 0)].max(1.0) * len as f64);
            }
            assert!((line.gram_diagonal()[j] / gram[(j, j)] - 1.0).abs() < 1e-12);
        }
    }
}

/// Diagonals in the modes against products with modes written out.
#[test]
fn values_are_those_of_the_modes() {
    for len in [1usize, 2, 3, 8, 21] {
        let rows =
            Workload::Matrix { rows: 2, columns: len, entries: (0..2 * len).map(|k| (k % 5) as f64 + 0.5).collect() };
        let parts = vec![Workload::Ranges { len }, sums(len), Workload::Histogram { len }, rows, intervals(len)];
        let (workload, weights) = (union(parts), [0.7, 3.0, 2.0, 1.5, 4.0]);
        let (gram, line) = (gram(&workload, &weights), Line::of(&workload, Some(&weights)).unwrap());
        for symmetry in [Symmetry::Sine, Symmetry::Cosine, Symmetry::Reflected] {
            for (angle, value) in symmetry.angles(len).zip(line.gram_values(symmetry)) {
                let mode: Vec<f64> = (1..=len)
                    .map(|j| match symmetry {
                        Symmetry::Sine => (2.0 * j as f64 * angle).sin(),
                        _ => ((2 * j - 1) as f64 * angle).cos(),
                    })
                    .collect();
                let norm: f64 = mode.iter().map(|v| v * v).sum();
                let known: f64 =
                    (0..len).map(|i| (0..len).map(|j| mode[i] * gram[(i, j)] * mode[j]).sum::<f64>()).sum::<f64>()
                        / norm;
                assert!((value / known - 1.0).abs() < 1e-10, "{symmetry:?} {len}: {value} {known}");
            }
        }
    }
}

/// Total squared errors at unit noise: the bounds of two, three, eight and 32 cells.
#[test]
fn known_bounds() {
    for (len, bound) in [(2, 3.732_050_8), (3, 8.734_446_3), (8, 80.366_907), (32, 2_141.754_55)] {
        let diagonal = root_diagonal(&Workload::Ranges { len }, None).unwrap();
        let total: f64 = diagonal.iter().map(|s| s * s).sum();
        assert!((total / bound - 1.0).abs() < 1e-7, "{len}: {total}");
    }
}

/// Sums of a root's squares are at most the trace of the matrix, however heavy rows are that depend on each other.
#[test]
fn rows_that_depend_on_each_other_count_once() {
    for (len, copies) in [(3usize, 5), (31, 8), (200, 4)] {
        let row: Vec<f64> = (0..len).map(|j| ((j * 7) % 5) as f64).collect();
        let rows = Workload::Matrix { rows: copies, columns: len, entries: row.repeat(copies) };
        let once = Workload::Matrix { rows: 1, columns: len, entries: row };
        for exponent in -4..40 {
            let weight = 10f64.powf(0.5 * f64::from(exponent));
            let of = |rows: &Workload, weight: f64| {
                root_diagonal(&union(vec![sums(len), rows.clone()]), Some(&[1.0, weight])).unwrap()
            };
            let (found, known) = (of(&rows, weight), of(&once, copies as f64 * weight));
            for (a, b) in found.iter().zip(&known) {
                assert!(a <= &(b * (1.0 + 1e-9)) && a >= &(b * (1.0 - 1e-4)), "{len} {exponent}: {a} {b}");
            }
        }
    }
}
