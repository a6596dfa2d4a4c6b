//! Sums of private integers that never overflow, and never refuse: which totals are reached is private.

use zeroize::Zeroize;

/// Sums in 64 bits stay below this; before they could leave it they are moved to 128 bits.
const LIMIT: u64 = 1 << 62;
/// Totals that are read from bytes stay below this, so that no number of merges comes near 2^127.
const LARGEST: u128 = 1 << 100;

/// One sum for every measured number: 64 bits where additions are fast, 128 behind them once those are full.
///
/// **As private as what was added**; wiped when dropped.
#[derive(Clone)]
pub struct WideSums {
    low: Vec<i64>,
    /// Bound of every `|low|`.
    held: u64,
    /// What was moved out of `low`: empty until something was.
    high: Vec<i128>,
}

impl WideSums {
    /// Zeros.
    pub(crate) fn new(len: usize) -> Self {
        Self { low: vec![0; len], held: 0, high: Vec::new() }
    }

    /// Number of sums.
    pub fn len(&self) -> usize {
        self.low.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.low.is_empty()
    }

    /// The sums to add to: no single one may change by more than `amount`, which is below 2^62.
    #[inline]
    pub(crate) fn grow(&mut self, amount: u64) -> &mut [i64] {
        debug_assert!(amount < LIMIT);
        if self.held + amount >= LIMIT {
            self.spill();
        }
        self.held += amount;
        &mut self.low
    }

    #[cold]
    fn spill(&mut self) {
        self.high.resize(self.low.len(), 0);
        for (high, low) in self.high.iter_mut().zip(&mut self.low) {
            *high = high.saturating_add(i128::from(*low));
            *low = 0;
        }
        self.held = 0;
    }

    /// Adds `factor` times other sums, as many; `factor` is below 2^62.
    pub(crate) fn add(&mut self, other: &Self, factor: i64) {
        if factor == 1 && other.high.is_empty() {
            for (sum, more) in self.grow(other.held).iter_mut().zip(&other.low) {
                *sum += more;
            }
            return;
        }
        self.spill();
        for (high, more) in self.high.iter_mut().zip(other.totals()) {
            *high = high.saturating_add(more.saturating_mul(factor.into()));
        }
    }

    /// One sum.
    pub(crate) fn total(&self, index: usize) -> i128 {
        self.high.get(index).copied().unwrap_or(0).saturating_add(i128::from(self.low[index]))
    }

    /// All of them, in order.
    pub(crate) fn totals(&self) -> impl Iterator<Item = i128> + '_ {
        (0..self.low.len()).map(|index| self.total(index))
    }

    /// All of them clamped to `±bound`: it brings no two neighbours further apart.
    pub fn clamped(&self, bound: i64) -> impl Iterator<Item = i64> + '_ {
        self.totals().map(move |sum| sum.clamp(-i128::from(bound), i128::from(bound)) as i64)
    }

    /// Sums that were saved; `None` for totals that no data has.
    pub(crate) fn from_totals(totals: Vec<i128>) -> Option<Self> {
        let held = totals.iter().map(|total| total.unsigned_abs()).max().unwrap_or(0);
        if held >= LARGEST {
            return None;
        }
        let mut sums = Self::new(totals.len());
        if held < u128::from(LIMIT) {
            sums.held = held as u64;
            sums.low.iter_mut().zip(&totals).for_each(|(low, total)| *low = *total as i64);
        } else {
            sums.high = totals;
        }
        Some(sums)
    }
}

impl PartialEq for WideSums {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.totals().eq(other.totals())
    }
}

impl Zeroize for WideSums {
    fn zeroize(&mut self) {
        // Contents alone: the length stays, that of an empty sketch.
        self.low.as_mut_slice().zeroize();
        self.high.as_mut_slice().zeroize();
        self.held.zeroize();
    }
}

impl Drop for WideSums {
    fn drop(&mut self) {
        self.zeroize();
    }
}

impl std::fmt::Debug for WideSums {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WideSums").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is added in whatever pieces, the totals are those of wide integers.
        #[test]
        fn totals_are_exact(additions in prop::collection::vec((0usize..3, -(1i64 << 61)..1i64 << 61), 0..40), cut in 0usize..40) {
            let mut expected = [0i128; 3];
            let (mut one, mut two) = (WideSums::new(3), WideSums::new(3));
            for (i, (place, amount)) in additions.iter().enumerate() {
                let sums = if i < cut { &mut one } else { &mut two };
                sums.grow(amount.unsigned_abs())[*place] += amount;
                expected[*place] += i128::from(*amount);
            }
            one.add(&two, 1);
            prop_assert_eq!(one.totals().collect::<Vec<_>>(), expected);
            let again = WideSums::from_totals(expected.to_vec()).unwrap();
            prop_assert!(again.totals().eq(one.totals()));
            let bound = 1i64 << 40;
            prop_assert!(one.clamped(bound).eq(expected.map(|v| v.clamp(-i128::from(bound), bound.into()) as i64)));
        }
    }

    /// Where 64 bits are nearly full, and across it; contents are told apart, and wiped.
    #[test]
    fn sums_at_the_end_of_64_bits() {
        let mut sums = WideSums::new(2);
        assert!(sums.len() == 2 && !sums.is_empty() && WideSums::new(0).is_empty());
        for _ in 0..9 {
            let most = LIMIT - 1;
            sums.grow(most)[1] -= most as i64;
        }
        let most = 9 * i128::from(LIMIT - 1);
        assert_eq!((sums.total(0), sums.total(1)), (0, -most));
        for total in [LIMIT - 1, LIMIT, LIMIT + 1].map(i128::from) {
            let mut read = WideSums::from_totals(vec![total, -total]).unwrap();
            read.grow(LIMIT - 1)[0] += (LIMIT - 1) as i64;
            assert_eq!((read.total(0), read.total(1)), (total + i128::from(LIMIT - 1), -total));
        }
        let mut added = WideSums::from_totals(vec![5, 7]).unwrap();
        let more = WideSums::from_totals(vec![1, 2]).unwrap();
        added.add(&more, 1);
        added.add(&more, 2);
        assert!(added == WideSums::from_totals(vec![8, 13]).unwrap());
        assert!(
            added != WideSums::from_totals(vec![8, 14]).unwrap() && added != WideSums::from_totals(vec![8]).unwrap()
        );
        sums.zeroize();
        assert!(sums == WideSums::new(2) && sums.held == 0);
    }

    #[test]
    fn totals_that_no_data_has_are_not_read() {
        assert!(WideSums::from_totals(vec![1 << 100]).is_none());
        assert!(WideSums::from_totals(vec![i128::MIN]).is_none());
    }
}
