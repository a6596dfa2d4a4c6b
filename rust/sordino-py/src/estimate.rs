//! Estimates from what was published.

use crate::error::PyError;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::estimate::{self, Constraint, DenseColumns};
use std::ops::ControlFlow;

/// Cells, their weights, duality gap and iterations.
type Projected = (Py<PyArray1<i64>>, Py<PyArray1<f64>>, f64, usize);

/// Projects `target` onto `columns @ x` for x within the constraint; columns of shape (coordinates, cells).
#[pyfunction]
pub(crate) fn project(
    py: Python<'_>,
    columns: PyReadonlyArray2<'_, f64>,
    target: PyReadonlyArray1<'_, f64>,
    constraint: &str,
    size: f64,
    tolerance: f64,
    iterations: usize,
) -> PyResult<Projected> {
    let (rows, count) = columns.as_array().dim();
    let (entries, target) = (columns.as_slice()?, target.as_slice()?);
    let constraint = match constraint {
        "total" => Constraint::Total(size),
        "bound" => Constraint::AtMost(size),
        _ => Constraint::Absolute(size),
    };
    let found = py.detach(|| -> Result<_, Error> {
        let columns = DenseColumns::from_rows(rows, count, entries)?;
        estimate::project(&columns, target, constraint, tolerance, iterations, &mut |_, _| ControlFlow::Continue(()))
    });
    let found = found.map_err(PyError::from)?;
    let (cells, weights): (Vec<i64>, Vec<f64>) =
        found.weights.iter().map(|(cell, weight)| (*cell as i64, *weight)).unzip();
    Ok((PyArray1::from_vec(py, cells).unbind(), PyArray1::from_vec(py, weights).unbind(), found.gap, found.iterations))
}
