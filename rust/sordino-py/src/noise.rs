//! The sampler for research.

use crate::error::PyError;
use crate::interrupt::detached;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use sordino_core::door::{self, Key, NoiseLaw};
use sordino_core::error::Error;

fn sample(
    py: Python<'_>,
    law: NoiseLaw,
    count: usize,
    quarter_units: u64,
    key: Option<[u8; 32]>,
) -> Result<Bound<'_, PyArray1<i64>>, PyError> {
    let units = detached(py, || {
        let key = key.map_or_else(Key::from_entropy, |bytes| Ok(Key::deterministic(bytes)))?;
        let mut units = vec![0; count];
        door::noise(law, quarter_units, &key, &mut units)?;
        Ok::<_, Error>(units)
    })?;
    Ok(units.into_pyarray(py))
}

/// Exact rounded Gaussian integers.
#[pyfunction]
#[pyo3(signature = (count, quarter_units, key=None))]
pub(crate) fn gaussian_noise(
    py: Python<'_>,
    count: usize,
    quarter_units: u64,
    key: Option<[u8; 32]>,
) -> Result<Bound<'_, PyArray1<i64>>, PyError> {
    sample(py, NoiseLaw::Gaussian, count, quarter_units, key)
}

/// Exact rounded Laplace integers.
#[pyfunction]
#[pyo3(signature = (count, quarter_units, key=None))]
pub(crate) fn laplace_noise(
    py: Python<'_>,
    count: usize,
    quarter_units: u64,
    key: Option<[u8; 32]>,
) -> Result<Bound<'_, PyArray1<i64>>, PyError> {
    sample(py, NoiseLaw::Laplace, count, quarter_units, key)
}
