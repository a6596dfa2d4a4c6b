//! Sealing.

use crate::error::PyError;
use crate::interrupt::detached;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sordino_core::sealing;

/// A message sealed under a key, bound to a place.
#[pyfunction]
pub(crate) fn seal<'py>(
    py: Python<'py>,
    key: [u8; 32],
    place: &[u8],
    message: &[u8],
) -> Result<Bound<'py, PyBytes>, PyError> {
    Ok(PyBytes::new(py, &detached(py, || sealing::seal(&key, place, message))?))
}

/// What was sealed.
#[pyfunction]
pub(crate) fn unseal<'py>(
    py: Python<'py>,
    key: [u8; 32],
    place: &[u8],
    sealed: &[u8],
) -> Result<Bound<'py, PyBytes>, PyError> {
    Ok(PyBytes::new(py, &detached(py, || sealing::unseal(&key, place, sealed))?))
}
