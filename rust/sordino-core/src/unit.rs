//! The unit of privacy: what one protected thing can change in the input.

use crate::changes::Changes;
use crate::error::Error;
use crate::upper::Upper;

/// A neighbouring relation on integer-valued inputs `x`, `x'` of equal length.
///
/// Every strategy has a sensitivity for [`Unit::AddRemove`]; the other relations are contained in
/// an ℓ1 ball ([`Unit::l1`]) and may use its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// At most `records` records, each changing one cell by at most 1; with `per_cell`, no cell
    /// changes by more than that. `‖x − x'‖₁ ≤ records`, `‖x − x'‖_∞ ≤ per_cell`. With `one_signed` all of them only add:
    /// `x' = x + v` or `x = x' + v` with `v ≥ 0`, clamped cells included, since clamping is monotone.
    AddRemove {
        /// How many records.
        records: u32,
        /// Cap on the change of a single cell.
        per_cell: Option<u32>,
        /// Whether no record lowers a cell.
        one_signed: bool,
    },
    /// At most `records` records move from one cell to another: `x' = x + Σ (e_j − e_i)`.
    ReplaceOne {
        /// How many records.
        records: u32,
    },
}

impl Unit {
    /// A checked [`Unit::AddRemove`].
    ///
    /// # Errors
    /// If a count is zero.
    pub fn add_remove(records: u32, per_cell: Option<u32>) -> Result<Self, Error> {
        if records == 0 || per_cell == Some(0) {
            return Err(Error::invalid("unit", "counts must be at least 1"));
        }
        Ok(Self::AddRemove { records, per_cell: per_cell.filter(|cell| *cell < records), one_signed: false })
    }

    /// The same unit, of which no record lowers a cell.
    ///
    /// # Errors
    /// If records move.
    pub fn one_signed(self) -> Result<Self, Error> {
        match self {
            Self::AddRemove { records, per_cell, .. } => Ok(Self::AddRemove { records, per_cell, one_signed: true }),
            Self::ReplaceOne { .. } => Err(Error::invalid("unit", "a moved record lowers a cell")),
        }
    }

    /// A checked [`Unit::ReplaceOne`].
    ///
    /// # Errors
    /// If `records` is zero.
    pub fn replace_one(records: u32) -> Result<Self, Error> {
        if records == 0 {
            return Err(Error::invalid("unit", "counts must be at least 1"));
        }
        Ok(Self::ReplaceOne { records })
    }

    /// Radius of the smallest ℓ1 ball around zero that contains every difference.
    pub fn l1(self) -> u64 {
        match self {
            Self::AddRemove { records, .. } => u64::from(records),
            Self::ReplaceOne { records } => 2 * u64::from(records),
        }
    }

    /// How many entries of the input can differ, never more than `len`.
    pub fn touched(self, len: usize) -> usize {
        usize::try_from(self.l1()).unwrap_or(usize::MAX).min(len)
    }

    /// `max ‖δ‖₂²` over the relation for so many cells, clamped entries included: an exact integer.
    ///
    /// The maximum of a convex function over `{‖δ‖₁ ≤ k, ‖δ‖_∞ ≤ c}` is at `⌊k/c⌋` entries of `c`
    /// and one of the remainder. A replacement moves `k` records: `k·(e_j − e_i)` has `2k²`.
    pub fn l2_squared(self, len: usize) -> u128 {
        match self {
            Self::AddRemove { records, per_cell, .. } => {
                let (k, c) = (u128::from(records), u128::from(per_cell.unwrap_or(records)));
                let full = (k / c).min(len as u128);
                let rest = if full < len as u128 { (k - full * c).min(c) } else { 0 };
                full * c * c + rest * rest
            }
            Self::ReplaceOne { records } => 2 * u128::from(records) * u128::from(records),
        }
    }

    /// By how much a unit changes a sum of so many cells at most: all its records, or as many as the cells take.
    pub fn reach(self, cells: usize) -> u128 {
        match self {
            Self::AddRemove { records, per_cell, .. } => {
                let cap = u128::from(per_cell.unwrap_or(records).min(records));
                (cap * cells as u128).min(records.into())
            }
            Self::ReplaceOne { records } => records.into(),
        }
    }

    /// The changes of several cells, in units of the most that one cell changes, and that number; none if a unit may be
    /// in one cell as a whole.
    pub fn changes(self) -> Option<(u32, Changes)> {
        let Self::AddRemove { records, per_cell: Some(cap), one_signed } = self else { return None };
        let most = usize::try_from(records.div_ceil(cap)).unwrap_or(usize::MAX);
        (cap < records).then_some((cap, Changes { most, signed: !one_signed }))
    }

    /// Sensitivity of a linear map from two facts about its columns `b_j` in the norm in use:
    /// `column ≥ max ‖b_j‖` and `pair ≥ max_{i≠j} ‖b_i − b_j‖`.
    ///
    /// Clamping may turn `e_i − e_j` into `e_i`, so a replacement takes the larger of the two; only then is
    /// `pair` computed.
    pub fn from_columns(self, column: Upper, pair: impl FnOnce() -> Upper) -> Upper {
        match self {
            Self::AddRemove { records, .. } => Upper::exact(f64::from(records)) * column,
            Self::ReplaceOne { records } => Upper::exact(f64::from(records)) * column.max(pair()).min(column + column),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Unit;
    use crate::changes::Changes;
    use crate::upper::Upper;

    #[test]
    fn radii_of_units() {
        let (added, moved) = (Unit::add_remove(5, None).unwrap(), Unit::replace_one(5).unwrap());
        let capped = Unit::add_remove(5, Some(2)).unwrap();
        assert_eq!((added.l1(), moved.l1(), capped.l1()), (5, 10, 5));
        assert_eq!([1, 4, 5, 6, 99].map(|len| added.touched(len)), [1, 4, 5, 5, 5]);
        assert_eq!([9, 10, 11].map(|len| moved.touched(len)), [9, 10, 10]);
        assert_eq!([1, 2, 3, 4].map(|cells| capped.reach(cells)), [2, 4, 5, 5]);
        assert_eq!([1, 2].map(|cells| added.reach(cells)), [5, 5]);
        assert_eq!([1, 2].map(|cells| moved.reach(cells)), [5, 5]);
    }

    #[test]
    fn a_cap_that_caps_nothing_is_none() {
        for cap in [5, 6] {
            assert_eq!(Unit::add_remove(5, Some(cap)).unwrap(), Unit::add_remove(5, None).unwrap());
        }
        let capped = Unit::add_remove(5, Some(4)).unwrap();
        assert_eq!(capped.changes(), Some((4, Changes { most: 2, signed: true })));
        assert_eq!(capped.one_signed().unwrap().changes(), Some((4, Changes { most: 2, signed: false })));
        assert_eq!(Unit::add_remove(5, Some(5)).unwrap().changes(), None);
        assert_eq!(Unit::replace_one(5).unwrap().changes(), None);
        let full = Unit::AddRemove { records: 5, per_cell: Some(5), one_signed: false };
        assert_eq!(full.changes(), None);
        assert!(
            Unit::replace_one(0).is_err()
                && Unit::replace_one(1).is_ok()
                && Unit::replace_one(1).unwrap().one_signed().is_err()
        );
    }

    /// A moved record costs the farther of a column and a pair, and never more than two columns.
    #[test]
    fn sensitivities_from_columns() {
        let cost =
            |unit: Unit, column: f64, pair: f64| unit.from_columns(Upper::exact(column), || Upper::exact(pair)).get();
        let (added, moved) = (Unit::add_remove(3, None).unwrap(), Unit::replace_one(3).unwrap());
        assert_eq!(cost(added, 4.0, 100.0), 12.0);
        assert_eq!([1.0, 6.0, 8.0, 9.0].map(|pair| cost(moved, 4.0, pair)), [12.0, 18.0, 24.0, 24.0]);
    }

    #[test]
    fn l2_of_capped_contributions() {
        let unit = Unit::add_remove(7, Some(3)).unwrap();
        assert_eq!([1, 2, 3, 9].map(|len| unit.l2_squared(len)), [9, 9 + 9, 9 + 9 + 1, 9 + 9 + 1]);
        assert_eq!(Unit::add_remove(7, None).unwrap().l2_squared(2), 49);
        assert_eq!(Unit::replace_one(3).unwrap().l2_squared(2), 18);
        assert!(Unit::add_remove(0, None).is_err() && Unit::add_remove(1, Some(0)).is_err());
    }
}
