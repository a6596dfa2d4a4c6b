//! The answers of another workload from one on.

use super::Workload;
use crate::error::Error;

/// Whether something is left to answer.
pub(super) fn check(first: usize, of: &Workload) -> Result<(), Error> {
    if first >= of.answers_len() {
        return Err(Error::invalid("first", "must leave at least one answer"));
    }
    if !of.is_listed() || of.input_len().is_none() {
        return Err(Error::invalid("workload", "must have answers and cells that can be held"));
    }
    Ok(())
}

/// Computes all answers, and keeps those from `first` on.
pub(crate) fn rest(first: usize, out: &mut [f64], all: impl FnOnce(&mut [f64])) {
    if first == 0 {
        return all(out);
    }
    let mut answers = vec![0.0; first + out.len()];
    all(&mut answers);
    out.copy_from_slice(&answers[first..]);
}
