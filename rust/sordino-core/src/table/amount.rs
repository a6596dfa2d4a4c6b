//! What is kept of a user's records in one cell.

use super::rule::{MOST_SUM, Rule};

/// What records of one user in one cell add up to; sums saturate, so that their order does not matter.
pub(super) trait Amount: Copy + Default + Send + Sync + 'static {
    /// What a row brings besides its cell.
    type Row: Copy + Default + Send + Sync + 'static;

    /// What row `i` brings; `values` are empty where records are only counted.
    fn row(values: &[u32], i: usize) -> Self::Row;

    /// One row more.
    fn with_row(self, row: Self::Row, rule: &Rule) -> Self;

    /// All of another part of the data.
    fn with(self, other: Self, rule: &Rule) -> Self;

    /// Records.
    fn records(self) -> u64;

    /// What they hold together.
    fn sum(self) -> u64;

    /// From records and what they hold, made such as could have been counted.
    fn of(records: u64, sum: u64, rule: &Rule) -> Self;
}

/// Records alone, never more than count: what is above `per_cell` is the same as `per_cell`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count(u32);

impl Amount for Count {
    type Row = ();

    fn row(_: &[u32], _: usize) {}

    fn with_row(self, (): (), rule: &Rule) -> Self {
        Self((self.0 + 1).min(rule.per_cell as u32))
    }

    fn with(self, other: Self, rule: &Rule) -> Self {
        Self::of(self.records() + other.records(), 0, rule)
    }

    fn records(self) -> u64 {
        self.0.into()
    }

    fn sum(self) -> u64 {
        0
    }

    fn of(records: u64, _: u64, rule: &Rule) -> Self {
        Self(records.min(rule.per_cell) as u32)
    }
}

/// Records, and the sum of their amounts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sum {
    records: u64,
    sum: u64,
}

impl Amount for Sum {
    type Row = u32;

    fn row(values: &[u32], i: usize) -> u32 {
        values[i]
    }

    fn with_row(self, row: u32, rule: &Rule) -> Self {
        Self::of(self.records + 1, self.sum + u64::from(row).min(rule.height), rule)
    }

    fn with(self, other: Self, rule: &Rule) -> Self {
        Self::of(self.records + other.records, self.sum + other.sum, rule)
    }

    fn records(self) -> u64 {
        self.records
    }

    fn sum(self) -> u64 {
        self.sum
    }

    fn of(records: u64, sum: u64, _: &Rule) -> Self {
        Self { records: records.min(MOST_SUM), sum: sum.min(MOST_SUM) }
    }
}
