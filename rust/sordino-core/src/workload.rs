//! Workloads: the linear queries `y = A x` that a release answers. All public.

use crate::error::Error;
use crate::transform::fourier::convolve;
use crate::transform::group::GroupFourier;
use crate::transform::hadamard::walsh_hadamard;

/// Largest number of cells or answers in one plan.
pub const MAX_LEN: usize = 1 << 26;

/// A matrix `A` with structure. Row-major where several axes are flattened.
#[derive(Debug, Clone, PartialEq)]
pub enum Workload {
    /// `y = x`, `len` cells.
    Histogram {
        /// Number of cells.
        len: usize,
    },
    /// `y_i = Σ_j h_j x_{(i−j) mod N}`; the kernel has length `N`.
    Circular {
        /// Filter taps `h_0 … h_{N−1}`.
        kernel: Vec<f64>,
    },
    /// `y_t = Σ_j h_j x_{t+center−j}` for `0 ≤ t < len`, zero outside the series.
    Linear {
        /// Filter taps; those that never meet the series are dropped.
        kernel: Vec<f64>,
        /// Number of steps, of inputs and of answers.
        len: usize,
        /// 0 for causal; the index of the middle tap for a centred filter.
        center: usize,
    },
    /// `y_a = Σ_b h_{a−b} x_b` on `Z_{n_1} × … × Z_{n_k}`.
    Group {
        /// Orders `n_1 … n_k` of the cyclic factors.
        radices: Vec<usize>,
        /// `h`, row-major, `Π n_i` entries.
        kernel: Vec<f64>,
    },
    /// Marginal tables of a table with `radices[i]` levels of attribute `i`, one after the other.
    Marginals {
        /// Levels of each attribute.
        radices: Vec<usize>,
        /// Attribute sets, each strictly increasing.
        sets: Vec<Vec<usize>>,
        /// Weight of each set's squared error in the mean.
        weights: Vec<f64>,
    },
    /// Any matrix, row-major.
    Matrix {
        /// Number of queries.
        rows: usize,
        /// Number of cells.
        columns: usize,
        /// Entries, row after row.
        entries: Vec<f64>,
    },
}

impl Workload {
    /// Checks public sizes and entries.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for empty, oversized, non-finite or all-zero descriptions.
    pub fn validated(self) -> Result<Self, Error> {
        let finite = |name, values: &[f64]| {
            if values.iter().any(|v| !v.is_finite() || (v.abs() > 0.0 && !(1e-150..=1e150).contains(&v.abs()))) {
                return Err(Error::invalid(
                    name,
                    "entries must be finite and between 1e-150 and 1e150 in magnitude, or 0",
                ));
            }
            if values.iter().all(|v| *v == 0.0) {
                return Err(Error::invalid(name, "all entries are zero: there is nothing to answer"));
            }
            Ok(())
        };
        let product = |radices: &[usize]| {
            radices.iter().try_fold(1usize, |n, r| n.checked_mul(*r).filter(|n| *n <= MAX_LEN && *r > 0))
        };
        match &self {
            Self::Histogram { len } if *len == 0 => return Err(Error::invalid("length", "must be at least 1")),
            Self::Histogram { .. } => {}
            Self::Circular { kernel } => finite("kernel", kernel)?,
            Self::Linear { kernel, len, center } => {
                if *len == 0 {
                    return Err(Error::invalid("length", "must be at least 1"));
                }
                if kernel.len() >= 2 * len || *center >= kernel.len().max(1) {
                    return Err(Error::invalid("kernel", "must be shorter than twice the series, its center inside"));
                }
                finite("kernel", kernel)?;
            }
            Self::Group { radices, kernel } => {
                if product(radices) != Some(kernel.len()) {
                    return Err(Error::invalid("kernel", "must have one entry for each element of the group"));
                }
                finite("kernel", kernel)?;
            }
            Self::Marginals { radices, sets, weights } => {
                let sound = radices.iter().all(|n| (2..=1 << 16).contains(n))
                    && !sets.is_empty()
                    && sets.iter().all(|set| {
                        set.windows(2).all(|pair| pair[0] < pair[1])
                            && set.last().is_none_or(|last| *last < radices.len())
                            && product(&set.iter().map(|i| radices[*i]).collect::<Vec<_>>()).is_some()
                    });
                if !sound {
                    return Err(Error::invalid("sets", "must be increasing attribute numbers, 2 to 65536 levels each"));
                }
                if weights.len() != sets.len() || weights.iter().any(|w| !w.is_finite() || *w <= 0.0) {
                    return Err(Error::invalid("weights", "must be one positive number for each set"));
                }
            }
            Self::Matrix { rows, columns, entries } => {
                if *rows == 0 || *columns == 0 || rows.checked_mul(*columns) != Some(entries.len()) {
                    return Err(Error::invalid("matrix", "must be rectangular and not empty"));
                }
                finite("matrix", entries)?;
            }
        }
        if self.answers_len() > MAX_LEN || self.input_len().is_some_and(|len| len > MAX_LEN) {
            return Err(Error::invalid("length", "at most 2^26 cells and answers"));
        }
        Ok(self)
    }

    /// Number of cells of the input; `None` if the full domain is too large to be a table.
    pub fn input_len(&self) -> Option<usize> {
        match self {
            Self::Histogram { len } | Self::Linear { len, .. } => Some(*len),
            Self::Circular { kernel } | Self::Group { kernel, .. } => Some(kernel.len()),
            Self::Marginals { radices, .. } => {
                radices.iter().try_fold(1usize, |n, r| n.checked_mul(*r)).filter(|n| *n <= MAX_LEN)
            }
            Self::Matrix { columns, .. } => Some(*columns),
        }
    }

    /// The factors of a Kronecker product, none for other workloads.
    pub fn kronecker_factors(&self) -> &[Self] {
        &[]
    }

    /// Number of answers.
    pub fn answers_len(&self) -> usize {
        match self {
            Self::Histogram { len } | Self::Linear { len, .. } => *len,
            Self::Circular { kernel } | Self::Group { kernel, .. } => kernel.len(),
            Self::Marginals { radices, sets, .. } => sets.iter().map(|set| cells(radices, set)).sum(),
            Self::Matrix { rows, .. } => *rows,
        }
    }

    /// `out = A x` in floating point: for public (already noisy) `x`, or for bounded encodes.
    pub fn apply(&self, x: &[f64], out: &mut [f64]) {
        match self {
            Self::Histogram { .. } => out.copy_from_slice(x),
            Self::Circular { kernel } => {
                let n = kernel.len();
                let full = convolve(x, kernel, 2 * n);
                for (i, slot) in out.iter_mut().enumerate() {
                    *slot = full[i] + full[i + n];
                }
            }
            Self::Linear { kernel, len, center } => {
                let full = convolve(x, kernel, len + center);
                out.copy_from_slice(&full[*center..]);
            }
            Self::Group { radices, kernel } => {
                if radices.iter().all(|n| *n == 2) {
                    let (mut a, mut b) = (x.to_vec(), kernel.clone());
                    walsh_hadamard(&mut a);
                    walsh_hadamard(&mut b);
                    let inverse = 1.0 / a.len() as f64;
                    a.iter_mut().zip(&b).for_each(|(a, b)| *a *= b * inverse);
                    walsh_hadamard(&mut a);
                    out.copy_from_slice(&a);
                } else {
                    let transform = GroupFourier::new(radices);
                    let spectrum = transform.spectrum(kernel);
                    out.copy_from_slice(&transform.filter(x, |k| spectrum[k]));
                }
            }
            Self::Marginals { radices, sets, .. } => {
                let mut rest = out;
                for set in sets {
                    let (table, tail) = rest.split_at_mut(cells(radices, set));
                    marginal(x, radices, set, table);
                    rest = tail;
                }
            }
            Self::Matrix { columns, entries, .. } => {
                for (slot, row) in out.iter_mut().zip(entries.chunks_exact(*columns)) {
                    *slot = row.iter().zip(x).map(|(a, b)| a * b).sum();
                }
            }
        }
    }

    /// Row `t` of `A`, dense.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the full domain is too large to be a table.
    pub fn row(&self, t: usize) -> Result<Vec<f64>, Error> {
        let len = self
            .input_len()
            .ok_or_else(|| Error::Unsupported("the full domain is too large for a row of the workload".into()))?;
        let mut row = vec![0.0; len];
        match self {
            Self::Histogram { .. } => row[t] = 1.0,
            Self::Circular { kernel } => {
                for (j, h) in kernel.iter().enumerate() {
                    row[(t + len - j) % len] += h;
                }
            }
            Self::Linear { kernel, center, .. } => {
                for (j, h) in kernel.iter().enumerate() {
                    if let Some(slot) = (t + center).checked_sub(j).and_then(|i| row.get_mut(i)) {
                        *slot = *h;
                    }
                }
            }
            Self::Group { radices, kernel } => {
                for (j, slot) in row.iter_mut().enumerate() {
                    *slot = kernel[difference(t, j, radices)];
                }
            }
            Self::Marginals { radices, sets, .. } => {
                let mut cell = t;
                for set in sets {
                    let count = cells(radices, set);
                    if cell < count {
                        for (j, slot) in row.iter_mut().enumerate() {
                            *slot = f64::from(u8::from(project(j, radices, set) == cell));
                        }
                        break;
                    }
                    cell -= count;
                }
            }
            Self::Matrix { columns, entries, .. } => row.copy_from_slice(&entries[t * columns..(t + 1) * columns]),
        }
        Ok(row)
    }

    /// `‖row_t‖₂²` for every answer: the variances when noise of variance 1 is put on the input.
    pub fn row_squares(&self, out: &mut [f64]) {
        match self {
            Self::Histogram { .. } => out.fill(1.0),
            Self::Circular { kernel } | Self::Group { kernel, .. } => out.fill(kernel.iter().map(|h| h * h).sum()),
            Self::Linear { kernel, len, center } => {
                // Row t uses the taps with 0 ≤ t + center − j < len.
                let mut sums = vec![0.0];
                for h in kernel {
                    sums.push(sums[sums.len() - 1] + h * h);
                }
                for (t, slot) in out.iter_mut().enumerate() {
                    let last = (t + center + 1).min(kernel.len());
                    let first = (t + center + 1).saturating_sub(*len).min(last);
                    *slot = sums[last] - sums[first];
                }
            }
            Self::Marginals { radices, sets, .. } => {
                let domain: f64 = radices.iter().map(|n| *n as f64).product();
                let mut rest = out;
                for set in sets {
                    let (table, tail) = rest.split_at_mut(cells(radices, set));
                    let count = table.len() as f64;
                    table.fill(domain / count);
                    rest = tail;
                }
            }
            Self::Matrix { columns, entries, .. } => {
                for (slot, row) in out.iter_mut().zip(entries.chunks_exact(*columns)) {
                    *slot = row.iter().map(|a| a * a).sum();
                }
            }
        }
    }
}

/// Cells of the marginal table of one attribute set.
pub(crate) fn cells(radices: &[usize], set: &[usize]) -> usize {
    set.iter().map(|i| radices[*i]).product()
}

/// Index in the marginal table of `set` of cell `index` of the full table.
pub(crate) fn project(index: usize, radices: &[usize], set: &[usize]) -> usize {
    let (mut rest, mut cell, mut place) = (index, 0, 1);
    let mut wanted = set.iter().rev().peekable();
    for (axis, n) in radices.iter().enumerate().rev() {
        if wanted.next_if(|i| **i == axis).is_some() {
            cell += rest % n * place;
            place *= n;
        }
        rest /= n;
    }
    cell
}

/// `a − b` in the group, as flat indices.
fn difference(a: usize, b: usize, radices: &[usize]) -> usize {
    let (mut a, mut b, mut index, mut place) = (a, b, 0, 1);
    for n in radices.iter().rev() {
        index += (a % n + n - b % n) % n * place;
        place *= n;
        a /= n;
        b /= n;
    }
    index
}

/// Sums a table with the given radices onto the attributes of `set`.
pub(crate) fn marginal<T: Copy + Default + std::ops::AddAssign>(
    table: &[T],
    radices: &[usize],
    set: &[usize],
    out: &mut [T],
) {
    out.fill(T::default());
    for (index, value) in table.iter().enumerate() {
        out[project(index, radices, set)] += *value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn examples() -> Vec<Workload> {
        vec![
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
            },
            Workload::Matrix { rows: 2, columns: 3, entries: vec![1.0, 2.0, 3.0, 0.0, -1.0, 0.5] },
        ]
    }

    #[test]
    fn rows_apply_and_norms_agree() {
        for workload in examples() {
            let workload = workload.validated().unwrap();
            let n = workload.input_len().unwrap();
            let m = workload.answers_len();
            let x: Vec<f64> = (0..n).map(|i| ((i * 7 + 3) % 11) as f64 - 4.0).collect();
            let (mut y, mut squares) = (vec![0.0; m], vec![0.0; m]);
            workload.apply(&x, &mut y);
            workload.row_squares(&mut squares);
            for t in 0..m {
                let row = workload.row(t).unwrap();
                let dot: f64 = row.iter().zip(&x).map(|(a, b)| a * b).sum();
                assert!((dot - y[t]).abs() < 1e-9, "{workload:?} row {t}");
                assert!((row.iter().map(|a| a * a).sum::<f64>() - squares[t]).abs() < 1e-9, "{workload:?} row {t}");
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for workload in [
            Workload::Histogram { len: 0 },
            Workload::Circular { kernel: vec![0.0; 4] },
            Workload::Circular { kernel: vec![f64::NAN] },
            Workload::Circular { kernel: vec![] },
            Workload::Linear { kernel: vec![1.0; 9], len: 4, center: 0 },
            Workload::Group { radices: vec![2, 0], kernel: vec![] },
            Workload::Group { radices: vec![usize::MAX, 2], kernel: vec![1.0] },
            Workload::Marginals { radices: vec![2, 2], sets: vec![vec![1, 0]], weights: vec![1.0] },
            Workload::Marginals { radices: vec![2, 2], sets: vec![vec![2]], weights: vec![1.0] },
            Workload::Matrix { rows: 1, columns: 2, entries: vec![1.0] },
        ] {
            assert!(workload.validated().is_err());
        }
    }

    proptest! {
        #[test]
        fn marginal_of_a_marginal_is_the_marginal(values in prop::collection::vec(-9i64..9, 24)) {
            let radices = [2, 3, 4];
            let mut table = vec![0; 12];
            marginal(&values, &radices, &[1, 2], &mut table);
            let (mut direct, mut twice) = (vec![0; 4], vec![0; 4]);
            marginal(&values, &radices, &[2], &mut direct);
            marginal(&table, &[3, 4], &[1], &mut twice);
            prop_assert_eq!(direct, twice);
        }
    }
}
