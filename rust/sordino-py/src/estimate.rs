//! Estimates from what was published.

use crate::error::PyError;
use crate::interrupt::detached;
use crate::names::{self, Limits};
use crate::optimize::Reporter;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::estimate::cuts;
use sordino_core::estimate::{self, Constraint, DenseColumns, Factor, Residuals};
use std::ops::ControlFlow;

/// Cells, their weights, duality gap and iterations.
type Projected = (Py<PyArray1<i64>>, Py<PyArray1<f64>>, f64, usize);

/// Projects `target` onto `columns @ x` for x within the constraint; columns of shape (coordinates, cells).
#[pyfunction]
pub(crate) fn project(
    py: Python<'_>,
    columns: PyReadonlyArray2<'_, f64>,
    target: PyReadonlyArray1<'_, f64>,
    constraint: names::Constraint,
    size: f64,
    tolerance: f64,
    iterations: usize,
) -> PyResult<Projected> {
    let (rows, count) = columns.as_array().dim();
    let (entries, target) = (columns.as_slice()?, target.as_slice()?);
    let constraint = match constraint.0 {
        Limits::Total => Constraint::Total(size),
        Limits::AtMost => Constraint::AtMost(size),
        Limits::Absolute => Constraint::Absolute(size),
    };
    let found = detached(py, || -> Result<_, Error> {
        let columns = DenseColumns::from_rows(rows, count, entries)?;
        estimate::project(&columns, target, constraint, tolerance, iterations, &mut |_, _| ControlFlow::Continue(()))
    });
    let found = found.map_err(PyError::from)?;
    let (cells, weights): (Vec<i64>, Vec<f64>) =
        found.weights.iter().map(|(cell, weight)| (*cell as i64, *weight)).unzip();
    Ok((PyArray1::from_vec(py, cells).unbind(), PyArray1::from_vec(py, weights).unbind(), found.gap, found.iterations))
}

/// Tables, duality gap, the share of uniform ones and iterations.
type Nearest = (Py<PyArray1<f64>>, f64, f64, usize);

/// The tables of sets of attributes that agree, have no negative cell and are nearest to published residuals.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "a problem, its metric and its limits")]
pub(crate) fn nearest_tables(
    py: Python<'_>,
    levels: Vec<usize>,
    sets: Vec<Vec<usize>>,
    subsets: Vec<Vec<usize>>,
    residuals: PyReadonlyArray1<'_, f64>,
    weights: PyReadonlyArray1<'_, f64>,
    total: f64,
    tolerance: f64,
    iterations: usize,
) -> PyResult<Nearest> {
    let (y, weights) = (residuals.as_slice()?, weights.as_slice()?);
    let found = detached(py, || {
        let residuals = Residuals::new(&levels, &sets, &subsets)?;
        estimate::nearest_tables(&residuals, y, weights, total, tolerance, iterations)
    });
    let found = found.map_err(PyError::from)?;
    Ok((PyArray1::from_vec(py, found.tables).unbind(), found.gap, found.mixed, found.iterations))
}

/// Probabilities of grid points, duality gap and iterations.
type Measure = (Py<PyArray1<f64>>, f64, usize);

/// Projects `target` onto the features of probability measures on a grid; each factor of shape (features, points).
#[pyfunction]
#[pyo3(signature = (factors, target, weights, max_iterations, progress=None))]
pub(crate) fn project_measure(
    py: Python<'_>,
    factors: Vec<PyReadonlyArray2<'_, f64>>,
    target: PyReadonlyArray1<'_, f64>,
    weights: PyReadonlyArray1<'_, f64>,
    max_iterations: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Measure> {
    let factor = |f: &PyReadonlyArray2<'_, f64>| (f.as_array().nrows(), f.as_array().ncols());
    let sizes: Vec<(usize, usize)> = factors.iter().map(factor).collect();
    let entries = factors.iter().map(|f| f.as_slice()).collect::<Result<Vec<_>, _>>()?;
    let factors: Vec<Factor<'_>> = sizes.into_iter().zip(entries).map(|((t, g), f)| (t, g, f)).collect();
    let (target, weights) = (target.as_slice()?, weights.as_slice()?);
    let mut reporter = Reporter::new(progress);
    let found = detached(py, || {
        estimate::project_measure(&factors, target, weights, max_iterations, &mut |iteration, gap| {
            reporter.report(iteration, gap)
        })
    });
    // A signal as well: nobody could tell its result from one that has converged.
    if let Some(raised) = reporter.raised {
        return Err(raised);
    }
    let found = found.map_err(PyError::from)?;
    Ok((found.weights.into_pyarray(py).unbind(), found.gap, found.iterations))
}

/// A side of a cut, its weight, and whether no cut is better.
type FoundCut<'py> = (Bound<'py, PyArray1<bool>>, f64, bool);

/// The best cut that is found in a released graph with these symmetric weights.
#[pyfunction]
pub(crate) fn search_cut<'py>(
    py: Python<'py>,
    weights: PyReadonlyArray2<'py, f64>,
    goal: names::Goal,
) -> PyResult<FoundCut<'py>> {
    let n = weights.as_array().nrows();
    let entries = weights.as_slice()?;
    let found = detached(py, || cuts::search(entries, n, goal.0)).map_err(PyError::from)?;
    Ok((found.side.into_pyarray(py), found.weight, found.exact))
}
