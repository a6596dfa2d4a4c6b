//! Answers from what was measured: post-processing, free.

use super::{Strategy, not_in_row_space};
use crate::door::Measured;
use crate::error::Error;
use crate::scratch::REALS;
use crate::workload::Workload;
use rayon::prelude::*;

/// Answers of the strategy's own workload, written to `out`.
pub fn decode(strategy: &dyn Strategy, measured: &Measured, out: &mut [f64]) {
    let mut values = REALS.take(measured.units().len());
    measured.values_into(&mut values);
    strategy.decode(&values, out);
}

/// Work limit, in multiplications: rows times measured coordinates.
const MAX_WORK: usize = 1 << 32;

/// Answers and their variances at unit noise, one minimum-norm combination of measurements a row.
///
/// # Errors
/// [`Error::Unsupported`] if a row is outside the measured row space, or the workload too large to
/// be answered row by row; [`Error::Shape`] for another domain.
pub fn answer(
    strategy: &dyn Strategy,
    measured: &Measured,
    input_len: usize,
    workload: &Workload,
) -> Result<(Vec<f64>, Vec<f64>), Error> {
    let columns = workload.input_len().ok_or_else(not_in_row_space)?;
    Error::check_len("workload's input", input_len, columns)?;
    workload.listed()?;
    let rows = workload.answers_len();
    if rows.saturating_mul(strategy.measured_len().max(columns)) > MAX_WORK {
        return Err(Error::Unsupported("too many queries to answer one by one; plan them as a workload".into()));
    }
    let y = measured.values();
    let (noise, common) = (strategy.unit_variances(), strategy.common_noise());
    (0..rows)
        .into_par_iter()
        .map(|t| {
            let weights = strategy.weights(&workload.row(t)?)?;
            let value = weights.iter().zip(&y).map(|(w, v)| w * v).sum();
            let own: f64 = weights.iter().zip(&noise).map(|(w, v)| w * w * v).sum();
            Ok((value, own + common * weights.iter().sum::<f64>().powi(2)))
        })
        .collect::<Result<Vec<(f64, f64)>, Error>>()
        .map(|pairs| pairs.into_iter().unzip())
}
