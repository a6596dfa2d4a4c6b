//! Messages of clients: signs of waves, and subsets.

use crate::error::PyError;
use crate::interrupt::detached;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use sordino_core::door::{self, Key};
use sordino_core::error::Error;
use sordino_core::waves;

/// Rows of so many shares, one behind the other.
fn shares<'a>(rows: &'a PyReadonlyArray2<'_, i64>, steps: usize) -> Result<&'a [i64], PyError> {
    match rows.as_array().to_slice() {
        Some(found) if rows.shape()[1] == steps => Ok(found),
        _ => Err(Error::Unsupported("shares are rows of the steps, in C order".into()).into()),
    }
}

/// The waves of a circle.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Waves(waves::Waves);

#[pymethods]
impl Waves {
    #[new]
    fn new(py: Python<'_>, steps: usize) -> PyResult<Self> {
        Ok(Self(detached(py, || waves::Waves::new(steps)).map_err(PyError::from)?))
    }

    #[getter]
    fn variance(&self) -> f64 {
        self.0.variance()
    }

    #[getter]
    fn largest(&self) -> f64 {
        self.0.largest()
    }

    #[getter]
    fn codes(&self) -> u64 {
        self.0.codes()
    }

    /// Messages of clients, a row of shares each, under a fresh key, or a known one (not private).
    #[pyo3(signature = (rows, bits, flips, key=None))]
    fn tell<'py>(
        &self,
        py: Python<'py>,
        rows: PyReadonlyArray2<'py, i64>,
        bits: u32,
        flips: u64,
        key: Option<[u8; 32]>,
    ) -> PyResult<Bound<'py, PyArray1<u64>>> {
        let rows = shares(&rows, self.0.steps())?;
        let key = key.map(Key::deterministic);
        let messages = detached(py, || door::tell_sign(&self.0, rows, bits, flips, key));
        Ok(messages.map_err(PyError::from)?.into_pyarray(py))
    }

    /// Sums of the waves of messages.
    fn sums<'py>(&self, py: Python<'py>, codes: PyReadonlyArray1<'py, u64>) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let codes = codes.as_slice()?;
        let mut sums = vec![0; self.0.steps()];
        detached(py, || self.0.add(codes, &mut sums)).map_err(PyError::from)?;
        Ok(sums.into_pyarray(py))
    }

    /// The estimated distribution function.
    fn distribution<'py>(
        &self,
        py: Python<'py>,
        means: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let means = means.as_slice()?;
        let found = detached(py, || self.0.distribution(means)).map_err(PyError::from)?;
        Ok(found.into_pyarray(py))
    }
}

/// Messages of clients: sets of places, a row each, under a fresh key, or a known one (not private).
#[pyfunction]
#[pyo3(signature = (rows, size, bits, flips, key=None))]
pub(crate) fn tell_subset<'py>(
    py: Python<'py>,
    rows: PyReadonlyArray2<'py, i64>,
    size: usize,
    bits: u32,
    flips: u64,
    key: Option<[u8; 32]>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let steps = rows.shape()[1];
    let rows = shares(&rows, steps)?;
    let key = key.map(Key::deterministic);
    let messages = detached(py, || door::tell_subset(steps, size, rows, bits, flips, key));
    Ok(messages.map_err(PyError::from)?.into_pyarray(py))
}
