//! Workloads: the linear queries `y = A x` that a release answers. All public.
//!
//! One file for each kind of matrix; here what they have in common.

mod filter;
mod group;
pub(crate) mod intervals;
mod kronecker;
pub(crate) mod marginal_queries;
mod marginals;
mod matrix;
mod ranges;
mod runs;
mod sparse;
pub(crate) mod tail;
#[cfg(test)]
pub(crate) mod tests;
mod union;

pub(crate) use kronecker::{along, outer};
pub(crate) use marginals::{cells, marginal, project};
pub(crate) use runs::Runs;
pub(crate) use union::each;

use crate::error::Error;
use crate::parallel::in_pieces;

/// Largest number of cells or answers in one plan.
pub const MAX_LEN: usize = 1 << 26;
/// Largest number of answers that are asked for without being held.
const MAX_IMPLICIT: usize = 1 << 62;

/// Largest number of entries of a matrix that is written out.
const MAX_ENTRIES: usize = 1 << 26;

/// How deep unions and products may be nested.
const MAX_DEPTH: usize = 16;

/// Multiplications from which on several threads are faster than one.
const PARALLEL: usize = 1 << 18;

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
        /// Share of the precision that the total of all records is to have at least, where residuals are measured.
        total_share: f64,
    },
    /// Products of queries along the attributes of sets, of records: for each set the answers of its marginal table, one
    /// set after the other.
    MarginalQueries {
        /// The queries of each attribute.
        axes: Vec<Workload>,
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
    /// Any matrix, in compressed sparse rows.
    Sparse {
        /// Number of queries.
        rows: usize,
        /// Number of cells.
        columns: usize,
        /// Row `t` has the entries from `starts[t]` up to `starts[t + 1]`; `rows + 1` numbers.
        starts: Vec<usize>,
        /// Column of each entry, rising within a row.
        indices: Vec<u32>,
        /// Entries, row after row.
        entries: Vec<f64>,
    },
    /// `y_(i, j) = x_i + … + x_j` for all `i ≤ j`, ordered by `i`, then `j`.
    Ranges {
        /// Number of cells.
        len: usize,
    },
    /// `y_t = x_i + … + x_j` for the given pairs.
    Intervals {
        /// Number of cells.
        len: usize,
        /// First and last cell of each, both included.
        ends: Vec<(u32, u32)>,
        /// Weight of each one's squared error in the mean; none where all count alike.
        weights: Vec<f64>,
    },
    /// The answers of several workloads on the same cells, one after the other.
    Union {
        /// The workloads.
        parts: Vec<Workload>,
    },
    /// The answers of another workload from number `first` on.
    Tail {
        /// The first one that is asked for.
        first: usize,
        /// The workload.
        of: Box<Workload>,
    },
    /// `A_1 ⊗ … ⊗ A_k`: cells and answers row-major over those of the factors.
    Kronecker {
        /// The factors.
        factors: Vec<Workload>,
    },
}

impl Workload {
    /// Checks public sizes and entries.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] for empty, oversized, non-finite or all-zero descriptions.
    pub fn validated(self) -> Result<Self, Error> {
        self.check_valid()?;
        Ok(self)
    }

    /// As [`Self::validated`].
    pub(crate) fn check_valid(&self) -> Result<(), Error> {
        self.check(0)
    }

    /// Checks a part of a workload that is nested so deep.
    fn check_inner(&self, depth: usize) -> Result<(), Error> {
        if depth == MAX_DEPTH {
            return Err(Error::invalid("workloads", format!("nested more than {MAX_DEPTH} deep")));
        }
        self.check(depth + 1)
    }

    fn check(&self, depth: usize) -> Result<(), Error> {
        match self {
            Self::Histogram { len } | Self::Ranges { len } => {
                if *len == 0 {
                    return Err(Error::invalid("length", "must be at least 1"));
                }
            }
            Self::Intervals { len, ends, weights } => intervals::check(*len, ends, weights)?,
            Self::Circular { kernel } => check_entries("kernel", kernel)?,
            Self::Linear { kernel, len, center } => {
                if *len == 0 {
                    return Err(Error::invalid("length", "must be at least 1"));
                }
                if kernel.len() >= 2 * len || *center >= kernel.len().max(1) {
                    return Err(Error::invalid("kernel", "must be shorter than twice the series, its center inside"));
                }
                check_entries("kernel", kernel)?;
            }
            Self::Group { radices, kernel } => {
                if size(radices) != Some(kernel.len()) {
                    return Err(Error::invalid("kernel", "must have one entry for each element of the group"));
                }
                check_entries("kernel", kernel)?;
            }
            Self::MarginalQueries { axes, sets, weights } => {
                axes.iter().try_for_each(|axis| axis.check_inner(depth))?;
                marginals::check(&marginal_queries::levels(axes), sets, weights)?;
                marginal_queries::check(axes, sets)?;
            }
            Self::Marginals { radices, sets, weights, total_share } => {
                marginals::check(radices, sets, weights)?;
                if !(0.0..=0.5).contains(total_share) {
                    return Err(Error::invalid("total_share", "must be between 0 and 1/2"));
                }
            }
            Self::Matrix { rows, columns, entries } => {
                if *rows == 0 || *columns == 0 || rows.checked_mul(*columns) != Some(entries.len()) {
                    return Err(Error::invalid("matrix", "must be rectangular and not empty"));
                }
                check_entries("matrix", entries)?;
            }
            Self::Sparse { rows, columns, starts, indices, entries } => {
                sparse::check(*rows, *columns, starts, indices, entries)?;
                check_entries("matrix", entries)?;
            }
            Self::Tail { first, of } => {
                of.check_inner(depth)?;
                tail::check(*first, of)?;
            }
            Self::Union { parts: inner } | Self::Kronecker { factors: inner } => {
                inner.iter().try_for_each(|workload| workload.check_inner(depth))?;
                if matches!(self, Self::Union { .. }) { union::check(inner) } else { kronecker::check(inner) }?;
            }
        }
        // Answers that follow a rule are computed as they are read.
        let implicit = matches!(self, Self::Ranges { .. } | Self::Kronecker { .. } | Self::Union { .. });
        let most = if implicit { MAX_IMPLICIT } else { MAX_LEN };
        if self.answers_len() > most || self.input_len().is_some_and(|len| len > MAX_LEN) {
            return Err(Error::invalid(
                "length",
                "at most 2^26 cells and answers; of ranges, Kronecker products and unions 2^62 answers",
            ));
        }
        Ok(())
    }

    /// Whether the answers can be held one by one: at most 2^26. Of others only what is asked for is computed.
    pub fn is_listed(&self) -> bool {
        self.answers_len() <= MAX_LEN
    }

    /// Refuses a workload whose answers cannot be held.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if they are more than 2^26.
    pub fn listed(&self) -> Result<(), Error> {
        if self.is_listed() {
            return Ok(());
        }
        Err(Error::Unsupported(
            "more than 2^26 answers are not listed: ask for sums over boxes, or other queries".into(),
        ))
    }

    /// Number of cells of the input; `None` if the full domain is too large to be a table.
    pub fn input_len(&self) -> Option<usize> {
        match self {
            Self::Histogram { len } | Self::Linear { len, .. } | Self::Ranges { len } | Self::Intervals { len, .. } => {
                Some(*len)
            }
            Self::Circular { kernel } | Self::Group { kernel, .. } => Some(kernel.len()),
            Self::Marginals { radices, .. } => size(radices),
            Self::MarginalQueries { axes, .. } => size(&marginal_queries::levels(axes)),
            Self::Matrix { columns, .. } | Self::Sparse { columns, .. } => Some(*columns),
            Self::Union { parts } => parts.first().and_then(Self::input_len),
            Self::Tail { of, .. } => of.input_len(),
            Self::Kronecker { factors } => {
                factors.iter().try_fold(1usize, |n, factor| Some(n.saturating_mul(factor.input_len()?)))
            }
        }
    }

    /// Levels of the attributes, of queries of records.
    pub(crate) fn record_levels(&self) -> Option<Vec<usize>> {
        match self {
            Self::Marginals { radices, .. } => Some(radices.clone()),
            Self::MarginalQueries { axes, .. } => Some(marginal_queries::levels(axes)),
            _ => None,
        }
    }

    /// The factors of a Kronecker product, none for other workloads.
    pub fn kronecker_factors(&self) -> &[Self] {
        match self {
            Self::Kronecker { factors } => factors,
            _ => &[],
        }
    }

    /// The parts of a union; another workload is its only one.
    pub(crate) fn parts(&self) -> &[Self] {
        match self {
            Self::Union { parts } => parts,
            _ => std::slice::from_ref(self),
        }
    }

    /// The first answer that is asked for, and the workload whose answers are asked for from there on.
    pub(crate) fn whole(&self) -> (usize, &Self) {
        if let Self::Tail { first, of } = self { (*first, of) } else { (0, self) }
    }

    /// Which part an answer of a union is in, and which of its answers it is.
    pub(crate) fn part_of(&self, answer: usize) -> (usize, usize) {
        union::part_of(self.parts(), answer)
    }

    /// Length and tap, if every answer is a multiple of the sum of all cells up to its own.
    pub(crate) fn running_sum(&self) -> Option<(usize, f64)> {
        match self {
            Self::Linear { kernel, len, center: 0 }
                if kernel.len() >= *len && kernel.iter().all(|tap| *tap == kernel[0]) =>
            {
                Some((*len, kernel[0]))
            }
            _ => None,
        }
    }

    /// A factor and the first and last cell of every answer, if each is that multiple of a sum of neighbouring cells: of
    /// filters whose taps are all equal, running sums among them, and of a total.
    pub(crate) fn windows(&self) -> Option<(f64, impl Iterator<Item = (usize, usize)> + use<>)> {
        let (start, whole) = self.whole();
        let even = |entries: &[f64]| entries.iter().all(|entry| *entry == entries[0]);
        let (entries, len, center, answers) = match whole {
            Self::Linear { kernel, len, center } if even(kernel) => (kernel, *len, *center, *len),
            Self::Sparse { rows: 1, columns, indices, entries, .. }
                if even(entries) && indices.windows(2).all(|pair| pair[0] + 1 == pair[1]) =>
            {
                (entries, *columns, *indices.last()? as usize, 1)
            }
            _ => return None,
        };
        let taps = entries.len();
        let ends = move |t: usize| ((t + center + 1).saturating_sub(taps), (t + center).min(len - 1));
        Some((entries[0], (start..answers).map(ends)))
    }

    /// Number of answers.
    pub fn answers_len(&self) -> usize {
        match self {
            Self::Histogram { len } | Self::Linear { len, .. } => *len,
            Self::Circular { kernel } | Self::Group { kernel, .. } => kernel.len(),
            Self::Marginals { radices, sets, .. } => sets.iter().map(|set| cells(radices, set)).sum(),
            Self::MarginalQueries { axes, sets, .. } => {
                sets.iter().map(|set| marginal_queries::answers(axes, set)).fold(0, usize::saturating_add)
            }
            Self::Matrix { rows, .. } | Self::Sparse { rows, .. } => *rows,
            Self::Ranges { len } => ranges::count(*len),
            Self::Intervals { ends, .. } => ends.len(),
            Self::Union { parts } => parts.iter().map(Self::answers_len).fold(0, usize::saturating_add),
            Self::Tail { first, of } => of.answers_len().saturating_sub(*first),
            Self::Kronecker { factors } => factors.iter().map(Self::answers_len).fold(1, usize::saturating_mul),
        }
    }

    /// What the squared errors of all answers weigh together, where each has a weight of its own; else their number.
    pub(crate) fn answers_weight(&self) -> f64 {
        match self {
            Self::Intervals { weights, .. } if !weights.is_empty() => weights.iter().sum(),
            _ => self.answers_len() as f64,
        }
    }

    /// Mean of the values of all answers, by what their squared errors weigh, and the largest.
    pub(crate) fn weighted_spread(&self, values: &[f64]) -> (f64, f64) {
        let (mean, largest) = spread(values);
        let Self::Intervals { ends, weights, .. } = self else { return (mean, largest) };
        let sum: f64 = intervals::weighted(ends, weights).zip(values).map(|((_, _, weight), own)| weight * own).sum();
        (sum / self.answers_weight(), largest)
    }

    /// `out = A x` in floating point: for public (already noisy) `x`, or for bounded encodes.
    pub fn apply(&self, x: &[f64], out: &mut [f64]) {
        match self {
            Self::Histogram { .. } => out.copy_from_slice(x),
            Self::Circular { kernel } => filter::apply_circular(kernel, x, out),
            Self::Linear { kernel, center, .. } => filter::apply_linear(kernel, *center, x, out),
            Self::Group { radices, kernel } => group::apply(radices, kernel, x, out),
            Self::Marginals { radices, sets, .. } => marginals::apply(radices, sets, x, out),
            Self::MarginalQueries { axes, sets, .. } => marginal_queries::apply(axes, sets, x, out),
            Self::Matrix { columns, entries, .. } => matrix::apply(*columns, entries, x, out),
            Self::Sparse { starts, indices, entries, .. } => sparse::apply(starts, indices, entries, x, out),
            Self::Ranges { .. } => ranges::apply(x, out),
            Self::Intervals { ends, .. } => intervals::apply(ends, x, out),
            Self::Union { parts } => union::each(parts, out, |part, piece| part.apply(x, piece)),
            Self::Tail { first, of } => tail::rest(*first, out, |all| of.apply(x, all)),
            Self::Kronecker { factors } => kronecker::apply(factors, x, out),
        }
    }

    /// Row `t` of `A`, dense.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the full domain is too large to be a table.
    pub fn row(&self, t: usize) -> Result<Vec<f64>, Error> {
        let mut row = vec![0.0; self.table_len()?];
        self.write_row(t, &mut row);
        Ok(row)
    }

    /// `A` written out: rows, columns, and the entries row by row.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there are more than 2^26 entries.
    pub fn dense(&self) -> Result<(usize, usize, Vec<f64>), Error> {
        let (rows, columns) = (self.answers_len(), self.table_len()?);
        let count = rows.saturating_mul(columns);
        if count > MAX_ENTRIES {
            return Err(Error::Unsupported("the workload has more than 2^26 entries: too many to write out".into()));
        }
        let mut entries = vec![0.0; count];
        fill(&mut entries, columns, count, |t, row| self.write_row(t, row));
        Ok((rows, columns, entries))
    }

    /// The same queries in compressed rows, of a workload that is written out by its few entries.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for other workloads, and of more than 2^26 entries.
    pub(crate) fn sparse(&self) -> Result<Self, Error> {
        let Self::Intervals { len, ends, .. } = self else {
            return Err(Error::Unsupported("the workload is not written out".into()));
        };
        let starts = intervals::starts(ends).filter(|starts| starts[ends.len()] <= MAX_ENTRIES);
        let starts =
            starts.ok_or_else(|| Error::Unsupported("the intervals have more than 2^26 cells in all".into()))?;
        let indices: Vec<u32> = ends.iter().flat_map(|(first, last)| *first..=*last).collect();
        let entries = vec![1.0; indices.len()];
        Ok(Self::Sparse { rows: ends.len(), columns: *len, starts, indices, entries })
    }

    /// Number of cells, where the full domain is a table.
    pub(crate) fn table_len(&self) -> Result<usize, Error> {
        self.input_len()
            .ok_or_else(|| Error::Unsupported("the full domain is too large for a row of the workload".into()))
    }

    /// Row `t`; `row` has the length of the input and comes as zeros.
    pub(crate) fn write_row(&self, t: usize, row: &mut [f64]) {
        match self {
            Self::Histogram { .. } => row[t] = 1.0,
            Self::Circular { kernel } => filter::write_circular_row(kernel, t, row),
            Self::Linear { kernel, center, .. } => filter::write_linear_row(kernel, *center, t, row),
            Self::Group { radices, kernel } => group::write_row(radices, kernel, t, row),
            Self::Marginals { radices, sets, .. } => marginals::write_row(radices, sets, t, row),
            Self::MarginalQueries { axes, sets, .. } => marginal_queries::write_row(axes, sets, t, row),
            Self::Matrix { columns, entries, .. } => row.copy_from_slice(&entries[t * columns..(t + 1) * columns]),
            Self::Sparse { starts, indices, entries, .. } => sparse::write_row(starts, indices, entries, t, row),
            Self::Ranges { .. } => ranges::write_row(t, row),
            Self::Intervals { ends, .. } => intervals::write_row(ends, t, row),
            Self::Union { parts } => union::write_row(parts, t, row),
            Self::Tail { first, of } => of.write_row(first + t, row),
            Self::Kronecker { factors } => kronecker::write_row(factors, t, row),
        }
    }

    /// `‖row_t‖₂²` for every answer: the variances when noise of variance 1 is put on the input.
    pub fn row_squares(&self, out: &mut [f64]) {
        match self {
            Self::Histogram { .. } => out.fill(1.0),
            Self::Circular { kernel } | Self::Group { kernel, .. } => out.fill(kernel.iter().map(|h| h * h).sum()),
            Self::Linear { kernel, center, .. } => filter::linear_row_squares(kernel, *center, out),
            Self::Marginals { radices, sets, .. } => marginals::row_squares(radices, sets, out),
            Self::MarginalQueries { axes, sets, .. } => marginal_queries::row_squares(axes, sets, out),
            Self::Matrix { columns, entries, .. } => matrix::row_squares(*columns, entries, out),
            Self::Sparse { starts, entries, .. } => sparse::row_squares(starts, entries, out),
            Self::Ranges { len } => ranges::row_squares(*len, out),
            Self::Intervals { ends, .. } => intervals::row_squares(ends, out),
            Self::Union { parts } => union::each(parts, out, Self::row_squares),
            Self::Tail { first, of } => tail::rest(*first, out, |all| of.row_squares(all)),
            Self::Kronecker { factors } => kronecker::row_squares(factors, out),
        }
    }

    /// Mean and largest of [`Self::row_squares`]; for ranges and products without listing them.
    pub(crate) fn row_squares_spread(&self) -> (f64, f64) {
        match self {
            Self::Ranges { len } => ranges::row_squares_spread(*len),
            Self::Kronecker { factors } => factors
                .iter()
                .map(Self::row_squares_spread)
                .fold((1.0, 1.0), |(mean, most), (a, b)| (mean * a, most * b)),
            Self::Union { parts } if !self.is_listed() => {
                let all = self.answers_len() as f64;
                parts.iter().fold((0.0, 0.0), |(mean, most), part| {
                    let (own, largest) = part.row_squares_spread();
                    (mean + own * part.answers_len() as f64 / all, f64::max(most, largest))
                })
            }
            _ => {
                let mut squares = vec![0.0; self.answers_len()];
                self.row_squares(&mut squares);
                spread(&squares)
            }
        }
    }

    /// Bounds of the magnitude of every entry that is not zero, from below and from above.
    fn magnitudes(&self) -> (f64, f64) {
        let of = |entries: &[f64]| {
            let sizes = entries.iter().map(|a| a.abs()).filter(|a| *a > 0.0);
            sizes.fold((f64::INFINITY, 0.0), |(least, most), a| (a.min(least), a.max(most)))
        };
        match self {
            Self::Histogram { .. } | Self::Marginals { .. } | Self::Ranges { .. } | Self::Intervals { .. } => {
                (1.0, 1.0)
            }
            Self::Circular { kernel } | Self::Linear { kernel, .. } | Self::Group { kernel, .. } => of(kernel),
            Self::Matrix { entries, .. } | Self::Sparse { entries, .. } => of(entries),
            Self::Union { parts } => {
                let all = parts.iter().map(Self::magnitudes);
                all.fold((f64::INFINITY, 0.0), |(a, b), (c, d)| (a.min(c), b.max(d)))
            }
            Self::MarginalQueries { axes, sets, .. } => marginal_queries::magnitudes(axes, sets),
            Self::Tail { of, .. } => of.magnitudes(),
            Self::Kronecker { factors } => kronecker::magnitudes(factors),
        }
    }
}

/// Cells of a table, none if there are more than a plan may have.
fn size(radices: &[usize]) -> Option<usize> {
    radices.iter().try_fold(1usize, |n, r| n.checked_mul(*r).filter(|n| *n <= MAX_LEN && *r > 0))
}

/// Mean and largest of numbers that are not negative.
pub(crate) fn spread(values: &[f64]) -> (f64, f64) {
    let sum: f64 = values.iter().sum();
    (sum / values.len() as f64, values.iter().fold(0.0, |most, v| v.max(most)))
}

/// Refuses entries that are not finite or whose squares overflow or vanish, and refuses to have nothing but zeros.
fn check_entries(name: &'static str, values: &[f64]) -> Result<(), Error> {
    if values.iter().any(|v| !v.is_finite() || (v.abs() > 0.0 && !(1e-150..=1e150).contains(&v.abs()))) {
        return Err(Error::invalid(name, "entries must be finite and between 1e-150 and 1e150 in magnitude, or 0"));
    }
    if values.iter().all(|v| *v == 0.0) {
        return Err(Error::invalid(name, "all entries are zero: there is nothing to answer"));
    }
    Ok(())
}

/// Writes each piece of `out` by its number, in several threads if the `work` in all is worth it.
fn fill<T: Send>(out: &mut [T], piece: usize, work: usize, write: impl Fn(usize, &mut [T]) + Sync) {
    if work < PARALLEL {
        out.chunks_exact_mut(piece).enumerate().for_each(|(i, piece)| write(i, piece));
    } else {
        in_pieces(out, piece, &|first, own| write(first / piece, own));
    }
}
