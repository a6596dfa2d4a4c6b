//! A sketch that grows: exact integer sums, private until they are released.
//!
//! Nothing that is refused depends on what is counted: a cell that does not exist is a null item, counts are clamped,
//! and sums are wide.

use super::words::{VERSION, mix};
use super::{Kind, Operator};
use crate::error::Error;
use crate::wide_sums::WideSums;
use std::sync::Arc;
use zeroize::Zeroize;

/// Counts are clamped to this: beyond all that a door takes.
const LARGEST_COUNT: i64 = 1 << 53;
/// What tables of large counts are cut at: 2^26 cells of either half add up to less than 2^61.
const HALF: i64 = 1 << 31;
/// Counts whose magnitudes add up to this at most are added at once.
const AT_ONCE: u64 = 1 << 61;
const MAGIC: &[u8; 8] = b"sordsket";
const HEADER: usize = 48;

/// `Φ x` of a table `x` that arrives in pieces, in any order, at any number of places.
///
/// Linear: the sum of sketches is the sketch of the sum. **The sums are as private as the data**: they leave through the
/// door. They are wiped when the sketch is dropped.
#[derive(Clone)]
pub struct Sketch {
    operator: Arc<Operator>,
    sums: WideSums,
}

impl Sketch {
    /// The sketch of an empty table.
    pub fn new(operator: Arc<Operator>) -> Self {
        let sums = WideSums::new(operator.measurements());
        Self { operator, sums }
    }

    /// What it was made with.
    pub fn operator(&self) -> &Arc<Operator> {
        &self.operator
    }

    /// The sums: private.
    pub fn sums(&self) -> &WideSums {
        &self.sums
    }

    /// Adds `counts[i]` to cell `cells[i]` for every `i`; without counts, 1 to each. A cell that does not exist is a null
    /// item, and counts beyond 2^53 are clamped.
    ///
    /// # Errors
    /// For another number of counts; then nothing changed.
    pub fn update(&mut self, cells: &[i64], counts: Option<&[i64]>) -> Result<(), Error> {
        let limit = self.operator.cells() as u64;
        // A negative cell becomes a number far above every limit.
        let known = |cell: i64| ((cell as u64) < limit).then_some(cell as usize);
        match counts {
            None => {
                let sums = self.sums.grow(cells.len() as u64);
                cells.iter().filter_map(|c| known(*c)).for_each(|cell| self.operator.add_column(cell, 1, sums));
            }
            Some(counts) => {
                Error::check_len("counts", cells.len(), counts.len())?;
                let most = (AT_ONCE / LARGEST_COUNT as u64) as usize;
                for (cells, counts) in cells.chunks(most).zip(counts.chunks(most)) {
                    let sums = self.sums.grow(counts.iter().map(|count| clamped(*count).unsigned_abs()).sum());
                    for (cell, count) in cells.iter().zip(counts) {
                        if let Some(cell) = known(*cell) {
                            self.operator.add_column(cell, clamped(*count), sums);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a whole table, in a time that does not depend on its entries unless they add up to 2^61; counts beyond 2^53
    /// are clamped.
    ///
    /// # Errors
    /// For another number of cells; then nothing changed.
    pub fn add_table(&mut self, table: &[i64]) -> Result<(), Error> {
        Error::check_len("table", self.operator.cells(), table.len())?;
        // At most 2^26 cells of 2^63: no overflow.
        let total: u128 = table.iter().map(|count| u128::from(count.unsigned_abs())).sum();
        if total < u128::from(AT_ONCE) && table.iter().all(|count| *count == clamped(*count)) {
            self.operator.add_table(table, self.sums.grow(total as u64));
            return Ok(());
        }
        // In halves, each of which fits.
        let mut part: Vec<i64> = table.iter().map(|count| clamped(*count) & (HALF - 1)).collect();
        self.operator.add_table(&part, self.sums.grow(AT_ONCE - 1));
        part.iter_mut().zip(table).for_each(|(part, count)| *part = clamped(*count) >> HALF.trailing_zeros());
        let mut high = WideSums::new(self.operator.measurements());
        self.operator.add_table(&part, high.grow(AT_ONCE - 1));
        part.zeroize();
        self.sums.add(&high, HALF);
        Ok(())
    }

    /// Adds the sketch of other data.
    ///
    /// # Errors
    /// If it was made with another operator; then nothing changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.operator != other.operator {
            return Err(Error::invalid(
                "sketch",
                "sketches of another kind, seed or size cannot be added: their sums have nothing in common",
            ));
        }
        self.sums.add(&other.sums, 1);
        Ok(())
    }

    /// The sketch as bytes: header, sums, check word. They are as private as the data, and not encrypted.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, nonzeros) = match self.operator.kind() {
            Kind::Bernoulli => (1u32, 0u32),
            Kind::Hadamard => (2, 0),
            Kind::Sparse { nonzeros } => (3, nonzeros),
        };
        let mut bytes = Vec::with_capacity(HEADER + 16 * self.sums.len() + 8);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&u64::from(VERSION).to_le_bytes());
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&nonzeros.to_le_bytes());
        for word in [self.operator.cells() as u64, self.sums.len() as u64, self.operator.seed()] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        // 64 bits a sum, unless one needs more.
        let width = if self.sums.totals().all(|sum| i64::try_from(sum).is_ok()) { 8 } else { 16 };
        for sum in self.sums.totals() {
            bytes.extend_from_slice(&sum.to_le_bytes()[..width]);
        }
        bytes.extend_from_slice(&check(&bytes).to_le_bytes());
        bytes
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the bytes are no sketch, of another version, or damaged.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let damaged = || Error::invalid("bytes", "are no sketch, or damaged");
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        let (header, body) = (words.get(..HEADER / 8).ok_or_else(damaged)?, &bytes[..bytes.len() - 8]);
        if !bytes.len().is_multiple_of(8) || !bytes.starts_with(MAGIC) || words.last() != Some(&check(body)) {
            return Err(damaged());
        }
        if header[1] != u64::from(VERSION) {
            return Err(Error::invalid("bytes", "are a sketch of another version of the construction"));
        }
        let nonzeros = (header[2] >> 32) as u32;
        let kind = match header[2] as u32 {
            1 => Kind::Bernoulli,
            2 => Kind::Hadamard,
            3 => Kind::Sparse { nonzeros },
            _ => return Err(damaged()),
        };
        let size = |word: u64| usize::try_from(word).map_err(|_| damaged());
        let operator = Operator::new(kind, size(header[3])?, size(header[4])?, header[5])?;
        let stored = words.get(HEADER / 8..words.len() - 1).ok_or_else(damaged)?;
        let totals: Vec<i128> = match stored.len() / operator.measurements() {
            1 => stored.iter().map(|word| i128::from(*word as i64)).collect(),
            _ => stored
                .as_chunks::<2>()
                .0
                .iter()
                .map(|[low, high]| (u128::from(*low) | u128::from(*high) << 64) as i128)
                .collect(),
        };
        if totals.len() != operator.measurements() || !stored.len().is_multiple_of(totals.len()) {
            return Err(damaged());
        }
        let sums = WideSums::from_totals(totals).ok_or_else(damaged)?;
        Ok(Self { operator: Arc::new(operator), sums })
    }
}

fn clamped(count: i64) -> i64 {
    count.clamp(-LARGEST_COUNT, LARGEST_COUNT)
}

/// Detects accidents, not forgers.
fn check(bytes: &[u8]) -> u64 {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .fold(0x736B_6574, |sum: u64, word| mix(sum ^ u64::from_le_bytes(*word)).wrapping_add(1))
}

impl std::fmt::Debug for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sketch").field("operator", &self.operator).finish_non_exhaustive()
    }
}
