//! A sketch that grows: exact integer sums, private until they are released.

use super::words::{VERSION, mix};
use super::{Kind, Operator};
use crate::error::Error;
use std::sync::Arc;
use zeroize::Zeroize;

/// `Σ|x|` stays below this, and so does every sum.
const LARGEST: u64 = 1 << 62;
const MAGIC: &[u8; 8] = b"sordsket";
const HEADER: usize = 56;

/// `Φ x` of a table `x` that arrives in pieces, in any order, at any number of places.
///
/// Linear: the sum of sketches is the sketch of the sum. **The sums are as private as the data**: they leave through the
/// door. They are wiped when the sketch is dropped.
#[derive(Clone)]
pub struct Sketch {
    operator: Arc<Operator>,
    sums: Vec<i64>,
    /// Bound of `Σ|x|`, so that no sum can overflow unseen.
    magnitude: u64,
}

impl Sketch {
    /// The sketch of an empty table.
    pub fn new(operator: Arc<Operator>) -> Self {
        let sums = vec![0; operator.measurements()];
        Self { operator, sums, magnitude: 0 }
    }

    /// What it was made with.
    pub fn operator(&self) -> &Arc<Operator> {
        &self.operator
    }

    /// The sums: private.
    pub fn sums(&self) -> &[i64] {
        &self.sums
    }

    /// Adds `counts[i]` to cell `cells[i]` for every `i`; without counts, 1 to each.
    ///
    /// # Errors
    /// For a cell that does not exist, another number of counts, or sums that might leave 62 bits; then nothing changed.
    pub fn update(&mut self, cells: &[i64], counts: Option<&[i64]>) -> Result<(), Error> {
        let limit = self.operator.cells() as u64;
        // A negative cell becomes a number far above every limit.
        if cells.iter().any(|cell| *cell as u64 >= limit) {
            return Err(Error::invalid("cells", "must be from 0 to the number of cells less one"));
        }
        let added = if let Some(counts) = counts {
            Error::check_len("counts", cells.len(), counts.len())?;
            total(counts)
        } else {
            Some(cells.len() as u64)
        };
        let magnitude = self.grown(added)?;
        match counts {
            None => cells.iter().for_each(|cell| self.operator.add_column(*cell as usize, 1, &mut self.sums)),
            Some(counts) => {
                for (cell, count) in cells.iter().zip(counts) {
                    self.operator.add_column(*cell as usize, *count, &mut self.sums);
                }
            }
        }
        self.magnitude = magnitude;
        Ok(())
    }

    /// Adds a whole table, in a time that does not depend on its entries.
    ///
    /// # Errors
    /// For another number of cells, or sums that might leave 62 bits; then nothing changed.
    pub fn add_table(&mut self, table: &[i64]) -> Result<(), Error> {
        Error::check_len("table", self.operator.cells(), table.len())?;
        let magnitude = self.grown(total(table))?;
        self.operator.add_table(table, &mut self.sums);
        self.magnitude = magnitude;
        Ok(())
    }

    /// Adds the sketch of other data.
    ///
    /// # Errors
    /// If it was made with another operator, or sums might leave 62 bits; then nothing changed.
    pub fn merge(&mut self, other: &Self) -> Result<(), Error> {
        if self.operator != other.operator {
            return Err(Error::invalid(
                "sketch",
                "sketches of another kind, seed or size cannot be added: their sums have nothing in common",
            ));
        }
        let magnitude = self.grown(Some(other.magnitude))?;
        for (sum, more) in self.sums.iter_mut().zip(&other.sums) {
            *sum += more;
        }
        self.magnitude = magnitude;
        Ok(())
    }

    fn grown(&self, added: Option<u64>) -> Result<u64, Error> {
        added.and_then(|added| self.magnitude.checked_add(added)).filter(|total| *total < LARGEST).ok_or_else(|| {
            Error::Overflow("the counts of a sketch must stay below 2^62 in all; nothing was added".into())
        })
    }

    /// The sketch as bytes: header, sums, check word. They are as private as the data, and not encrypted.
    pub fn to_bytes(&self) -> Vec<u8> {
        let (kind, nonzeros) = match self.operator.kind() {
            Kind::Bernoulli => (1u32, 0u32),
            Kind::Hadamard => (2, 0),
            Kind::Sparse { nonzeros } => (3, nonzeros),
        };
        let mut bytes = Vec::with_capacity(HEADER + 8 * self.sums.len() + 8);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&u64::from(VERSION).to_le_bytes());
        bytes.extend_from_slice(&kind.to_le_bytes());
        bytes.extend_from_slice(&nonzeros.to_le_bytes());
        for word in [self.operator.cells() as u64, self.sums.len() as u64, self.operator.seed(), self.magnitude] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for sum in &self.sums {
            bytes.extend_from_slice(&sum.to_le_bytes());
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
        let sums: Vec<i64> = words[HEADER / 8..words.len() - 1].iter().map(|word| *word as i64).collect();
        let magnitude = header[6];
        if sums.len() != operator.measurements()
            || magnitude >= LARGEST
            || sums.iter().any(|sum| sum.unsigned_abs() > magnitude)
        {
            return Err(damaged());
        }
        Ok(Self { operator: Arc::new(operator), sums, magnitude })
    }
}

/// `Σ|x|`, if it fits.
fn total(values: &[i64]) -> Option<u64> {
    let sum: u128 = values.iter().map(|value| u128::from(value.unsigned_abs())).sum();
    u64::try_from(sum).ok()
}

/// Detects accidents, not forgers.
fn check(bytes: &[u8]) -> u64 {
    bytes
        .as_chunks::<8>()
        .0
        .iter()
        .fold(0x736B_6574, |sum: u64, word| mix(sum ^ u64::from_le_bytes(*word)).wrapping_add(1))
}

impl Drop for Sketch {
    fn drop(&mut self) {
        self.sums.zeroize();
        self.magnitude.zeroize();
    }
}

impl std::fmt::Debug for Sketch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sketch").field("operator", &self.operator).finish_non_exhaustive()
    }
}
