//! Queries along an axis, as far as errors of boxes need them.

/// What is asked along an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Axis {
    /// Every cell.
    Cells,
    /// Running sums.
    Sums,
    /// All ranges.
    Ranges,
}

impl Axis {
    /// Mean over the queries of the square of how many of the cells from `first` up to `end` each contains, of `len`.
    pub(super) fn mean_square(self, first: u32, end: u32, len: u32) -> f64 {
        let (k, behind, n) = (f64::from(end - first), f64::from(len - end), f64::from(len));
        let squares = k * (k + 1.0) * (2.0 * k + 1.0) / 6.0 + behind * k * k;
        match self {
            Self::Cells => k / n,
            Self::Sums => squares / n,
            // Ranges are differences of two of `n + 1` running sums.
            Self::Ranges => {
                let sum = k * (k + 1.0) / 2.0 + behind * k;
                ((n + 1.0) * squares - sum * sum) / (n * (n + 1.0) / 2.0)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Axis;

    /// Against queries one by one.
    #[test]
    fn squares_one_by_one() {
        let n = 9;
        for (first, end) in [(0, 9), (0, 1), (8, 9), (2, 6)] {
            let inside = |from: u32, to: u32| f64::from(to.min(end).saturating_sub(from.max(first)));
            let mean = |ranges: &[(u32, u32)]| {
                ranges.iter().map(|(from, to)| inside(*from, *to).powi(2)).sum::<f64>() / ranges.len() as f64
            };
            let all: Vec<(u32, u32)> = (0..n).flat_map(|i| (i + 1..=n).map(move |j| (i, j))).collect();
            let sums: Vec<(u32, u32)> = (1..=n).map(|j| (0, j)).collect();
            let cells: Vec<(u32, u32)> = (0..n).map(|i| (i, i + 1)).collect();
            for (axis, ranges) in [(Axis::Ranges, all), (Axis::Sums, sums), (Axis::Cells, cells)] {
                assert!((axis.mean_square(first, end, n) / mean(&ranges) - 1.0).abs() < 1e-12, "{axis:?}");
            }
        }
    }
}
