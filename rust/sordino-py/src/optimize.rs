//! Optimal strategies.

use crate::error::PyError;
use crate::interrupt::detached;
use crate::names::{Coefficients, Objective, SearchedNoise};
use crate::workload::Workload;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sordino_core::changes::Changes;
use sordino_core::error::Error;
use sordino_core::objective;
use sordino_core::optimize::{self, Progress, Queries, Target};
use std::ops::ControlFlow;

/// What a search found: a strategy and its certificate.
#[pyclass(frozen, get_all, module = "sordino._core")]
pub(crate) struct Searched {
    /// Shape (measured, cells).
    strategy: Py<PyArray2<f64>>,
    /// Lengths of the blocks of rows whose noise has a norm.
    blocks: Option<Vec<u32>>,
    query_weights: Py<PyArray1<f64>>,
    cell_weights: Py<PyArray1<f64>>,
    /// Shape (weights, cells), of a search for units that change several cells.
    changes: Option<Py<PyArray2<i8>>>,
    lower: Option<f64>,
    upper: f64,
    iterations: usize,
    /// Whether a signal ended the search.
    interrupted: bool,
}

/// An array of the given number of rows.
fn matrix<T: Element>(py: Python<'_>, rows: usize, entries: Vec<T>) -> PyResult<Py<PyArray2<T>>> {
    let columns = entries.len().checked_div(rows).unwrap_or(0);
    Ok(PyArray1::from_vec(py, entries).reshape([rows, columns])?.unbind())
}

/// Runs a search that reports to Python: a callback may end it by returning `False`, a signal ends it too.
pub(crate) struct Reporter {
    callback: Option<Py<PyAny>>,
    /// What the callback raised, or the signal.
    pub raised: Option<PyErr>,
}

impl Reporter {
    pub(crate) fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, raised: None }
    }

    /// The core's progress function.
    pub(crate) fn report(&mut self, iteration: usize, gap: f64) -> ControlFlow<()> {
        let go_on = Python::attach(|py| -> PyResult<bool> {
            py.check_signals()?;
            let Some(callback) = &self.callback else { return Ok(true) };
            let answer = callback.bind(py).call1((iteration, gap))?;
            Ok(answer.is_none() || answer.is_truthy()?)
        });
        match go_on {
            Ok(true) => ControlFlow::Continue(()),
            Ok(false) => ControlFlow::Break(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// Whether a signal ended the search; what the callback raised goes on.
    pub(crate) fn interrupted(self, py: Python<'_>) -> PyResult<bool> {
        match self.raised {
            Some(error) if !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => Err(error),
            raised => Ok(raised.is_some()),
        }
    }
}

/// Runs a search for `queries` (queries, cells); says whether a signal ended it.
fn search<T: Send>(
    py: Python<'_>,
    queries: &PyReadonlyArray2<'_, f64>,
    progress: Option<Py<PyAny>>,
    run: impl FnOnce(Queries<'_>, Progress<'_>) -> Result<T, Error> + Send,
) -> PyResult<(T, bool)> {
    let (rows, columns) = queries.as_array().dim();
    let entries = queries.as_slice()?;
    let mut reporter = Reporter::new(progress);
    let found = detached(py, || {
        let queries = Queries::new(rows, columns, entries)?;
        run(queries, &mut |iteration, gap| reporter.report(iteration, gap))
    });
    let interrupted = reporter.interrupted(py)?;
    Ok((found.map_err(PyError::from)?, interrupted))
}

/// The strategy of least mean ("mean") or worst-query ("max") error.
#[pyfunction]
#[pyo3(signature = (queries, objective, gap, iterations, start, progress))]
pub(crate) fn optimize_strategy(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    objective: Objective,
    gap: f64,
    iterations: usize,
    start: Option<PyReadonlyArray1<'_, f64>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let start = start.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let target = Target { gap, iterations, start };
    let (found, interrupted) = search(py, &queries, progress, |queries, report| match objective.0 {
        objective::Objective::Max => optimize::worst_strategy(queries, target, report),
        objective::Objective::Mean => optimize::mean_strategy(queries, None, target, report),
    })?;
    certified(py, found, interrupted)
}

/// The strategy of least mean error for units that change up to `most` cells, in both directions if `signed`.
#[pyfunction]
pub(crate) fn several_strategy(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    most: usize,
    signed: bool,
    gap: f64,
    iterations: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let target = Target { gap, iterations, start: None };
    let (s, interrupted) = search(py, &queries, progress, |queries, report| {
        optimize::several_strategy(queries, Changes { most, signed }, target, report)
    })?;
    let (changes, lower) = (Some(matrix(py, s.weights.len(), s.changes)?), Some(s.lower));
    let strategy = found(py, (s.rank, s.strategy), None, s.weights, s.upper, s.iterations, interrupted)?;
    Ok(Searched { changes, lower, ..strategy })
}

/// The balanced root of queries of full column rank.
#[pyfunction]
pub(crate) fn balanced_root(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let (found, interrupted) = search(py, &queries, progress, optimize::balanced_root)?;
    certified(py, found, interrupted)
}

/// The rows of it alone, without a certificate.
#[pyfunction]
pub(crate) fn balanced_rows(py: Python<'_>, queries: PyReadonlyArray2<'_, f64>) -> PyResult<Py<PyArray2<f64>>> {
    let (rows, columns) = queries.as_array().dim();
    let entries = queries.as_slice()?;
    let found = detached(py, || optimize::balanced_rows(Queries::new(rows, columns, entries)?));
    matrix(py, columns, found.map_err(PyError::from)?)
}

/// A strategy with its certificate.
fn certified(py: Python<'_>, o: optimize::Optimized, interrupted: bool) -> PyResult<Searched> {
    let (query_weights, lower) = (PyArray1::from_vec(py, o.query_weights).unbind(), Some(o.lower));
    let strategy = found(py, (o.rank, o.strategy), None, o.cell_weights, o.upper, o.iterations, interrupted)?;
    Ok(Searched { query_weights, lower, ..strategy })
}

/// A strategy without a certificate for all others.
fn found(
    py: Python<'_>,
    (rows, strategy): (usize, Vec<f64>),
    blocks: Option<Vec<u32>>,
    cell_weights: Vec<f64>,
    upper: f64,
    iterations: usize,
    interrupted: bool,
) -> PyResult<Searched> {
    Ok(Searched {
        strategy: matrix(py, rows, strategy)?,
        blocks,
        query_weights: PyArray1::from_vec(py, Vec::new()).unbind(),
        cell_weights: PyArray1::from_vec(py, cell_weights).unbind(),
        changes: None,
        lower: None,
        upper,
        iterations,
        interrupted,
    })
}

/// The minimum enclosing ellipsoid of the columns, mapped to the unit ball; `upper` is its certified gap.
#[pyfunction]
pub(crate) fn minimum_ellipsoid(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    gap: f64,
    iterations: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let target = Target { gap, iterations, start: None };
    let (e, interrupted) =
        search(py, &queries, progress, |queries, report| optimize::minimum_ellipsoid(queries, target, report))?;
    found(py, (e.rank, e.strategy), None, e.weights, e.gap, e.iterations, interrupted)
}

/// The base decomposition with one noise level for each of its blocks.
#[pyfunction]
pub(crate) fn dense_strategy(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    coefficients: Coefficients,
    law: SearchedNoise,
    gap: f64,
    iterations: usize,
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let target = Target { gap, iterations, start: None };
    let (d, interrupted) = search(py, &queries, progress, |queries, report| {
        optimize::dense_strategy(queries, None, coefficients.0, law.0, target, report)
    })?;
    found(py, (d.rank, d.strategy), Some(d.blocks), d.cell_weights, d.upper, d.iterations, interrupted)
}

/// Cells and weighted sums of them, for Laplace noise; sums to start from, beside others or alone, have shape (sums, cells).
/// Limits are the squared weights of a sum, and evaluations.
#[pyfunction]
#[pyo3(signature = (queries, starts, alone, limits, progress))]
pub(crate) fn p_identity(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    starts: Vec<PyReadonlyArray2<'_, f64>>,
    alone: bool,
    limits: (f64, usize),
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let starts: Vec<&[f64]> = starts.iter().map(PyReadonlyArray2::as_slice).collect::<Result<_, _>>()?;
    let (p, interrupted) = search(py, &queries, progress, |queries, report| {
        optimize::p_identity(queries, &starts, alone, limits, report)
    })?;
    found(py, (p.columns + p.sums, p.strategy), None, Vec::new(), p.upper, p.iterations, interrupted)
}

/// The same of ranges, intervals, running sums, cells and few others, weighted by part: a strategy of `Θ` alone.
#[pyfunction]
#[pyo3(signature = (workload, weights, starts, alone, limits, progress))]
pub(crate) fn p_identity_of_line(
    py: Python<'_>,
    workload: PyRef<'_, Workload>,
    weights: Option<Vec<f64>>,
    starts: Vec<PyReadonlyArray2<'_, f64>>,
    alone: bool,
    limits: (f64, usize),
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let workload = &workload.0;
    let cells = workload.input_len().unwrap_or(0);
    let starts: Vec<&[f64]> = starts.iter().map(PyReadonlyArray2::as_slice).collect::<Result<_, _>>()?;
    let mut reporter = Reporter::new(progress);
    let result = detached(py, || {
        optimize::p_identity_of_line(workload, weights.as_deref(), &starts, alone, limits, &mut |iteration, gap| {
            reporter.report(iteration, gap)
        })
    });
    let interrupted = reporter.interrupted(py)?;
    let (sums, upper, evaluations) = result.map_err(PyError::from)?;
    let rows = sums.len() / cells.max(1);
    found(py, (rows, sums), None, Vec::new(), upper, evaluations, interrupted)
}

/// Few rows that stand for all queries in the mean.
#[pyfunction]
#[pyo3(signature = (workload, weights=None))]
pub(crate) fn condensed(
    py: Python<'_>,
    workload: PyRef<'_, Workload>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<Py<PyArray2<f64>>> {
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let workload = &workload.0;
    let (rows, _, entries) = detached(py, || optimize::condensed(workload, weights)).map_err(PyError::from)?;
    matrix(py, rows, entries)
}

/// The diagonal of the root of the queries' Gram matrix, or a lower bound of it, for ranges and running sums with others;
/// `weights` are of the parts of a union.
#[pyfunction]
#[pyo3(signature = (workload, weights=None))]
pub(crate) fn root_diagonal<'py>(
    py: Python<'py>,
    workload: PyRef<'py, Workload>,
    weights: Option<Vec<f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let workload = &workload.0;
    let found = detached(py, || optimize::root_diagonal(workload, weights.as_deref())).map_err(PyError::from)?;
    Ok(PyArray1::from_vec(py, found))
}

/// `Σ_j s_j`, `Σ_j s_j²` and `(Σ_k |λ_k|^(2/3))^(3/2)/L` of filters of one series, with the weights of parts.
#[pyfunction]
pub(crate) fn in_phase(
    py: Python<'_>,
    workload: PyRef<'_, Workload>,
    weights: Vec<f64>,
) -> Result<(f64, f64, f64), PyError> {
    let workload = &workload.0;
    let found = detached(py, || optimize::in_phase(workload, &weights))?;
    Ok((found.products, found.squares, found.roots))
}

/// A lower bound on the error of every Gaussian strategy for running sums, or averages, of so many steps.
#[pyfunction]
pub(crate) fn prefix_bound(py: Python<'_>, steps: usize, averages: bool, objective: Objective) -> Result<f64, PyError> {
    let prefixes = if averages { optimize::Prefixes::Averages } else { optimize::Prefixes::Sums };
    detached(py, || optimize::prefix_bound(steps, prefixes, objective.0)).map_err(PyError::from)
}

/// A lower bound on the error of every Gaussian strategy for exponential decays of so many steps.
#[pyfunction]
pub(crate) fn decay_bound(py: Python<'_>, steps: usize, decay: f64) -> Result<f64, PyError> {
    detached(py, || optimize::decay_bound(steps, decay)).map_err(PyError::from)
}

/// A lower bound on the sum of the singular values of intervals.
#[pyfunction]
pub(crate) fn joined_prefixes(py: Python<'_>, workload: PyRef<'_, Workload>) -> Result<f64, PyError> {
    let workload = &workload.0;
    detached(py, || optimize::joined_prefixes(workload)).map_err(PyError::from)
}

/// The matrix of the queries.
#[pyfunction]
pub(crate) fn dense(py: Python<'_>, workload: PyRef<'_, Workload>) -> PyResult<Py<PyArray2<f64>>> {
    let workload = &workload.0;
    let (rows, _, entries) = detached(py, || workload.dense()).map_err(PyError::from)?;
    matrix(py, rows, entries)
}
