//! The state of a stream as bytes: little-endian, in a fixed order, lengths checked.

use crate::error::Error;
use crate::toeplitz::Dyadic;
use zeroize::Zeroize;

/// Bytes of a state, wiped when dropped.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Appends; what a larger array leaves behind is wiped.
    fn push(&mut self, bytes: &[u8]) {
        if self.0.capacity() - self.0.len() < bytes.len() {
            let mut larger = Vec::with_capacity(2 * (self.0.len() + bytes.len()).max(256));
            larger.extend_from_slice(&self.0);
            self.0.zeroize();
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn u64(&mut self, value: u64) {
        self.push(&value.to_le_bytes());
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.u64(bytes.len() as u64);
        self.push(bytes);
    }

    /// Numbers of 128 bits; all in 64 if they fit, as noise nearly always does.
    pub(super) fn wide(&mut self, values: &[i128]) {
        let narrow = values.iter().all(|v| i64::try_from(*v).is_ok());
        self.push(&[u8::from(narrow)]);
        self.u64(values.len() as u64);
        for v in values {
            if narrow { self.push(&(*v as i64).to_le_bytes()) } else { self.push(&v.to_le_bytes()) }
        }
    }

    pub(super) fn integers(&mut self, values: &[i64]) {
        self.u64(values.len() as u64);
        for v in values {
            self.push(&v.to_le_bytes());
        }
    }

    pub(super) fn reals(&mut self, values: &[f64]) {
        self.u64(values.len() as u64);
        for v in values {
            self.push(&v.to_le_bytes());
        }
    }

    pub(super) fn dyadic(&mut self, values: impl ExactSizeIterator<Item = Dyadic>) {
        self.u64(values.len() as u64);
        for value in values {
            self.push(&value.mantissa().to_le_bytes());
            self.push(&value.shift().to_le_bytes());
        }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Reads what a [`Writer`] wrote.
pub(super) struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or_else(corrupt)?;
        self.0 = rest;
        Ok(*head)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        self.take().map(u64::from_le_bytes)
    }

    /// The length of an array whose entries take `width` bytes, all of them present.
    fn len(&mut self, width: usize) -> Result<usize, Error> {
        let len = usize::try_from(self.u64()?).map_err(|_| corrupt())?;
        if len > self.0.len() / width { Err(corrupt()) } else { Ok(len) }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, Error> {
        let len = self.len(1)?;
        let (head, rest) = self.0.split_at(len);
        self.0 = rest;
        Ok(head.to_vec())
    }

    pub(super) fn wide(&mut self) -> Result<Vec<i128>, Error> {
        match self.take()? {
            [1] => (0..self.len(8)?).map(|_| self.take().map(|v| i128::from(i64::from_le_bytes(v)))).collect(),
            [0] => (0..self.len(16)?).map(|_| self.take().map(i128::from_le_bytes)).collect(),
            _ => Err(corrupt()),
        }
    }

    pub(super) fn integers(&mut self) -> Result<Vec<i64>, Error> {
        (0..self.len(8)?).map(|_| self.take().map(i64::from_le_bytes)).collect()
    }

    pub(super) fn reals(&mut self) -> Result<Vec<f64>, Error> {
        (0..self.len(8)?).map(|_| self.take().map(f64::from_le_bytes)).collect()
    }
}

/// Replaces `state` by `read` if the lengths agree.
pub(super) fn replace<T>(state: &mut Vec<T>, read: Vec<T>) -> Result<(), Error> {
    if state.len() != read.len() {
        return Err(corrupt());
    }
    *state = read;
    Ok(())
}

/// The one message about bytes that are not what they should be.
pub(super) fn corrupt() -> Error {
    Error::Checkpoint
}
