//! Estimates from what was published.

use crate::error::PyError;
use crate::interrupt::detached;
use crate::names::{self, Limits};
use crate::optimize::Reporter;
use crate::strategy::Strategy;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyReadwriteArray2};
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::estimate::cuts;
use sordino_core::estimate::{self, Constraint, DenseColumns, Factor, NearestProblem, Pairs, Residuals, Tree};
use std::ops::ControlFlow;

/// Cells, their weights, duality gap and iterations.
type Projected = (Py<PyArray1<i64>>, Py<PyArray1<f64>>, f64, usize);

/// A constraint with its number.
fn sized(constraint: names::Constraint, size: f64) -> Constraint {
    match constraint.0 {
        Limits::Total => Constraint::Total(size),
        Limits::AtMost => Constraint::AtMost(size),
        Limits::Absolute => Constraint::Absolute(size),
    }
}

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
    let constraint = sized(constraint, size);
    let found = detached(py, || -> Result<_, Error> {
        let columns = DenseColumns::from_rows(rows, count, entries)?;
        estimate::project(&columns, target, constraint, tolerance, iterations, &mut |_, _| ControlFlow::Continue(()))
    });
    let found = found.map_err(PyError::from)?;
    let (cells, weights): (Vec<i64>, Vec<f64>) =
        found.weights.iter().map(|(cell, weight)| (*cell as i64, *weight)).unzip();
    Ok((PyArray1::from_vec(py, cells).unbind(), PyArray1::from_vec(py, weights).unbind(), found.gap, found.iterations))
}

/// The table nearest to what a strategy measured, within the constraint: cells, gap in squares of unit noise, steps.
#[pyfunction]
pub(crate) fn nearest_cells(
    py: Python<'_>,
    strategy: PyRef<'_, Strategy>,
    measured: PyReadonlyArray1<'_, f64>,
    constraint: names::Constraint,
    size: f64,
    tolerance: f64,
    iterations: usize,
) -> PyResult<(Py<PyArray1<f64>>, f64, usize)> {
    let (core, measured) = (&*strategy.core, measured.as_slice()?);
    let constraint = sized(constraint, size);
    let found = detached(py, || estimate::nearest_cells(core, measured, constraint, tolerance, iterations));
    let found = found.map_err(PyError::from)?;
    Ok((PyArray1::from_vec(py, found.cells).unbind(), found.gap, found.iterations))
}

/// Tables, duality gap, the share of tables inside the limits and iterations.
type Nearest = (Py<PyArray1<f64>>, f64, f64, usize);

/// The tables of sets of attributes that agree, are within limits and are nearest to published residuals.
#[pyfunction]
#[pyo3(signature = (levels, sets, subsets, residuals, weights, total, tolerance, iterations, limits=None))]
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
    limits: Option<(PyReadonlyArray1<'_, f64>, PyReadonlyArray1<'_, f64>)>,
) -> PyResult<Nearest> {
    let (y, weights) = (residuals.as_slice()?, weights.as_slice()?);
    let limits = limits.as_ref().map(|(low, high)| Ok::<_, PyErr>((low.as_slice()?, high.as_slice()?))).transpose()?;
    let found = detached(py, || {
        let residuals = &Residuals::new(&levels, &sets, &subsets)?;
        let problem = NearestProblem { residuals, y, weights, total, limits };
        estimate::nearest_tables(&problem, tolerance, iterations)
    });
    let found = found.map_err(PyError::from)?;
    Ok((PyArray1::from_vec(py, found.tables).unbind(), found.gap, found.mixed, found.iterations))
}

/// Where the children of each node begin; refused unless they are as many as nodes, each after its parent.
fn tree_of(starts: &PyReadonlyArray1<'_, i64>, nodes: usize) -> PyResult<Vec<usize>> {
    let found: Vec<usize> = starts.as_slice()?.iter().map(|v| usize::try_from(*v).unwrap_or(usize::MAX)).collect();
    let rising = found.is_sorted() && found.first() == Some(&0) && found.last() == Some(&nodes);
    let later = found.iter().skip(1).enumerate().all(|(node, start)| *start > node || *start == nodes);
    if rising && later && found.len() == nodes + 2 {
        return Ok(found);
    }
    Err(PyError::from(Error::Shape { name: "starts", expected: nodes + 2, got: found.len() }).into())
}

/// Counts of a hierarchy: the children of each node are not negative and add up to it.
#[pyfunction]
pub(crate) fn top_down<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    values: PyReadonlyArray1<'py, f64>,
    variances: PyReadonlyArray1<'py, f64>,
    total: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (values, variances) = (values.as_slice()?, variances.as_slice()?);
    let tree = tree_of(&starts, values.len())?;
    if variances.len() != values.len() {
        let error = Error::Shape { name: "variances", expected: values.len(), got: variances.len() };
        return Err(PyError::from(error).into());
    }
    Ok(detached(py, || estimate::top_down(Tree(&tree), values, variances, total)).into_pyarray(py))
}

/// The same in whole numbers, in proportion to values that are not negative.
#[pyfunction]
pub(crate) fn whole_top_down<'py>(
    py: Python<'py>,
    starts: PyReadonlyArray1<'py, i64>,
    values: PyReadonlyArray1<'py, f64>,
    total: i64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let values = values.as_slice()?;
    let tree = tree_of(&starts, values.len())?;
    Ok(detached(py, || estimate::whole_top_down(Tree(&tree), values, total)).into_pyarray(py))
}

/// A table in whole numbers with these margins, flat.
#[pyfunction]
#[pyo3(signature = (values, rows, columns, empty=None))]
pub(crate) fn whole_table<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    rows: PyReadonlyArray1<'py, i64>,
    columns: PyReadonlyArray1<'py, i64>,
    empty: Option<PyReadonlyArray1<'py, bool>>,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let (values, rows, columns) = (values.as_slice()?, rows.as_slice()?, columns.as_slice()?);
    let empty = empty.as_ref().map(|empty| empty.as_slice()).transpose()?;
    let found = detached(py, || estimate::whole_table(values, rows, columns, empty));
    Ok(found.map_err(PyError::from)?.into_pyarray(py))
}

/// A random table of whole numbers whose expectation is `values`, flat, with so many columns.
#[pyfunction]
pub(crate) fn unbiased_table<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
    columns: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<i64>>> {
    let values = values.as_slice()?;
    let found = detached(py, || estimate::unbiased_table(values, columns, seed));
    Ok(found.map_err(PyError::from)?.into_pyarray(py))
}

/// Exchanges values of records, in place, until their tables of pairs come no nearer; squared distances that are left.
#[pyfunction]
pub(crate) fn exchange<'py>(
    py: Python<'py>,
    mut codes: PyReadwriteArray2<'py, u16>,
    levels: Vec<usize>,
    pairs: Vec<[usize; 2]>,
    tables: PyReadonlyArray1<'py, i64>,
    sweeps: usize,
    seed: u64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (codes, tables) = (codes.as_slice_mut()?, tables.as_slice()?);
    let pairs = Pairs { levels: &levels, pairs: &pairs, tables };
    let found = detached(py, || estimate::exchange(codes, &pairs, sweeps, seed));
    Ok(found.map_err(PyError::from)?.into_pyarray(py))
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
