//! Optimisation of strategies.

use crate::error::PyError;
use crate::workload::Workload;
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray1};
use pyo3::prelude::*;
use sordino_core::optimize;

/// Few rows that stand for all queries in the mean.
#[pyfunction]
#[pyo3(signature = (workload, weights=None))]
pub(crate) fn condensed<'py>(
    py: Python<'py>,
    workload: PyRef<'py, Workload>,
    weights: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray2<f64>>> {
    let weights = weights.as_ref().map(|weights| weights.as_slice()).transpose()?;
    let workload = &workload.0;
    let (rows, columns, entries) = py.detach(|| optimize::condensed(workload, weights)).map_err(PyError::from)?;
    entries.into_pyarray(py).reshape([rows, columns])
}
