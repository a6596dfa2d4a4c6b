//! Runs of cells of one line that no query tells apart.

use super::Workload;

/// Cells in a row that all queries count alike.
pub(crate) struct Runs {
    /// Which run each cell is in; `None` of cells that are in no query.
    pub(crate) places: Vec<Option<u32>>,
    /// The first cell of each run.
    pub(crate) firsts: Vec<usize>,
}

impl Runs {
    /// Of intervals and matrices, together those of a union; `None` of other queries.
    pub(crate) fn of(workload: &Workload) -> Option<Self> {
        let len = workload.input_len()?;
        let (mut starts, mut covered) = (vec![false; len + 1], vec![0i32; len + 1]);
        let mark = &mut |first: usize, end: usize| {
            (starts[first], starts[end]) = (true, true);
            covered[first] += 1;
            covered[end] -= 1;
        };
        if !alike(workload, mark) {
            return None;
        }
        let (mut firsts, mut depth) = (Vec::new(), 0);
        let place = |cell| {
            depth += covered[cell];
            if depth > 0 && starts[cell] {
                firsts.push(cell);
            }
            (depth > 0).then(|| firsts.len() as u32 - 1)
        };
        let places = (0..len).map(place).collect();
        Some(Self { places, firsts })
    }

    /// The queries of one cell a run.
    pub(crate) fn picked(&self, workload: &Workload) -> Workload {
        let columns = self.firsts.len();
        let at = |cell: u32| self.places[cell as usize].unwrap_or_default();
        match workload {
            Workload::Intervals { ends, weights, .. } => {
                let ends = ends.iter().map(|(first, last)| (at(*first), at(*last))).collect();
                Workload::Intervals { len: columns, ends, weights: weights.clone() }
            }
            Workload::Sparse { rows, starts: all, indices: cells, entries: values, .. } => {
                let (mut starts, mut indices, mut entries) = (vec![0], Vec::new(), Vec::new());
                for row in all.windows(2) {
                    for k in row[0]..row[1] {
                        if self.firsts[at(cells[k]) as usize] == cells[k] as usize {
                            indices.push(at(cells[k]));
                            entries.push(values[k]);
                        }
                    }
                    starts.push(indices.len());
                }
                // Groups of one run each are the cells themselves.
                let cells = starts.len() == columns + 1 && starts.iter().enumerate().all(|(row, start)| row == *start);
                if cells
                    && indices.iter().enumerate().all(|(row, cell)| row == *cell as usize)
                    && entries.iter().all(|v| *v == 1.0)
                {
                    return Workload::Histogram { len: columns };
                }
                Workload::Sparse { rows: *rows, columns, starts, indices, entries }
            }
            Workload::Matrix { rows, columns: len, entries } => {
                let row = |row: &[f64]| self.firsts.iter().map(|cell| row[*cell]).collect::<Vec<_>>();
                let entries = entries.chunks_exact(*len).flat_map(row).collect();
                Workload::Matrix { rows: *rows, columns, entries }
            }
            Workload::Union { parts } => {
                Workload::Union { parts: parts.iter().map(|part| self.picked(part)).collect() }
            }
            other => other.clone(),
        }
    }
}

/// Marks where each query counts cells in a row alike, the first and the one after the last; whether the queries say so.
fn alike(workload: &Workload, mark: &mut dyn FnMut(usize, usize)) -> bool {
    match workload {
        Workload::Intervals { ends, .. } => {
            for (first, last) in ends {
                mark(*first as usize, *last as usize + 1);
            }
        }
        Workload::Sparse { starts, indices, entries, .. } => {
            for row in starts.windows(2) {
                let mut k = row[0];
                while k < row[1] {
                    let (first, from) = (indices[k] as usize, k);
                    while k < row[1] && indices[k] as usize == first + k - from && entries[k] == entries[from] {
                        k += 1;
                    }
                    mark(first, first + k - from);
                }
            }
        }
        Workload::Matrix { columns, entries, .. } => {
            for row in entries.chunks_exact(*columns) {
                let mut first = 0;
                for same in row.chunk_by(|a, b| a == b) {
                    if same[0] != 0.0 {
                        mark(first, first + same.len());
                    }
                    first += same.len();
                }
            }
        }
        Workload::Union { parts } => return parts.iter().all(|part| alike(part, mark)),
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn queries_of_runs_are_those_of_all_cells(
            len in 1usize..30,
            pairs in prop::collection::vec((0usize..30, 0usize..30), 0..12),
            rows in prop::collection::vec((0usize..30, 0usize..30, -1i32..3), 1..6),
            kind in 0usize..3,
        ) {
            let between = |a: usize, b: usize| ((a % len).min(b % len), (a % len).max(b % len));
            let ends: Vec<(u32, u32)> =
                pairs.into_iter().map(|(a, b)| between(a, b)).map(|(a, b)| (a as u32, b as u32)).collect();
            // Two steps a row, of which the second may be nothing.
            let row = |(a, b, value): &(usize, usize, i32)| {
                let (first, last) = between(*a, *b);
                (0..len).map(|j| if j < first { 0.0 } else if j <= last { 1.0 } else { f64::from(*value) }).collect()
            };
            let dense: Vec<Vec<f64>> = rows.iter().map(row).collect();
            let matrix = Workload::Matrix { rows: dense.len(), columns: len, entries: dense.concat() };
            let mut parts = Vec::new();
            if kind != 0 || ends.is_empty() {
                parts.push(if kind == 2 { compressed(&dense) } else { matrix });
            }
            if !ends.is_empty() {
                parts.push(Workload::Intervals { len, ends, weights: vec![] });
            }
            let workload = Workload::Union { parts };
            let runs = Runs::of(&workload).unwrap();
            let short = runs.picked(&workload).validated().unwrap();
            let x: Vec<f64> = (0..len).map(|j| ((j * 37) % 11) as f64 - 3.0).collect();
            let mut sums = vec![0.0; runs.firsts.len()];
            for (place, value) in runs.places.iter().zip(&x) {
                if let Some(place) = place {
                    sums[*place as usize] += value;
                }
            }
            let count = workload.answers_len();
            let (mut known, mut answers) = (vec![0.0; count], vec![0.0; count]);
            workload.apply(&x, &mut known);
            short.apply(&sums, &mut answers);
            prop_assert_eq!(answers, known);
            // As few as tell all queries apart: neighbours differ in some query.
            let column = |cell: usize| (0..count).map(|t| short.row(t).unwrap()[cell]).collect::<Vec<_>>();
            for cell in 0..sums.len() {
                prop_assert!(column(cell).iter().any(|value| *value != 0.0));
                prop_assert!(
                    cell == 0 || column(cell) != column(cell - 1) || runs.firsts[cell] > runs.firsts[cell - 1] + 1
                );
            }
        }
    }

    fn compressed(dense: &[Vec<f64>]) -> Workload {
        let (mut starts, mut indices, mut entries) = (vec![0], Vec::new(), Vec::new());
        for row in dense {
            for (j, value) in row.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                indices.push(j as u32);
                entries.push(*value);
            }
            starts.push(indices.len());
        }
        Workload::Sparse { rows: dense.len(), columns: dense[0].len(), starts, indices, entries }
    }

    #[test]
    fn cells_of_other_queries_are_all_told_apart() {
        let total = Workload::Matrix { rows: 1, columns: 4, entries: vec![1.0; 4] };
        assert_eq!(Runs::of(&total).unwrap().firsts, [0]);
        assert!(Runs::of(&Workload::Union { parts: vec![total, Workload::Histogram { len: 4 }] }).is_none());
    }
}
