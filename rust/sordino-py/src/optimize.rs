//! Optimal strategies.

use crate::error::PyError;
use crate::workload::Workload;
use numpy::{PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sordino_core::optimize::{self, Queries, Target};
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
    lower: Option<f64>,
    upper: f64,
    iterations: usize,
    /// Whether a signal ended the search.
    interrupted: bool,
}

/// An array of the given number of rows.
fn matrix(py: Python<'_>, rows: usize, entries: Vec<f64>) -> PyResult<Py<PyArray2<f64>>> {
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
    pub fn new(callback: Option<Py<PyAny>>) -> Self {
        Self { callback, raised: None }
    }

    /// The core's progress function.
    pub fn report(&mut self, iteration: usize, gap: f64) -> ControlFlow<()> {
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
    pub fn interrupted(self, py: Python<'_>) -> PyResult<bool> {
        match self.raised {
            Some(error) if !error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) => Err(error),
            raised => Ok(raised.is_some()),
        }
    }
}

/// The strategy of least mean ("mean") or worst-query ("max") error, shape of `queries` (queries, cells).
#[pyfunction]
#[pyo3(signature = (queries, objective, weights, gap, iterations, start, progress))]
#[allow(clippy::too_many_arguments)] // the settings of a search, once
pub(crate) fn optimize_strategy(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    objective: &str,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    gap: f64,
    iterations: usize,
    start: Option<PyReadonlyArray1<'_, f64>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Searched> {
    let shape = queries.as_array().dim();
    let entries = queries.as_slice()?;
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let start = start.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let mut reporter = Reporter::new(progress);
    let core = py.detach(|| {
        let queries = Queries::new(shape.0, shape.1, entries)?;
        let target = Target { gap, iterations, start };
        let report = &mut |iteration, gap| reporter.report(iteration, gap);
        match objective {
            "max" => optimize::worst_strategy(queries, target, report),
            _ => optimize::mean_strategy(queries, weights, target, report),
        }
    });
    let interrupted = reporter.interrupted(py)?;
    let core = core.map_err(PyError::from)?;
    Ok(Searched {
        strategy: matrix(py, core.rank, core.strategy)?,
        blocks: None,
        query_weights: PyArray1::from_vec(py, core.query_weights).unbind(),
        cell_weights: PyArray1::from_vec(py, core.cell_weights).unbind(),
        lower: Some(core.lower),
        upper: core.upper,
        iterations: core.iterations,
        interrupted,
    })
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
    let (rows, _, entries) = py.detach(|| optimize::condensed(workload, weights)).map_err(PyError::from)?;
    matrix(py, rows, entries)
}

/// The matrix of the queries.
#[pyfunction]
pub(crate) fn dense(py: Python<'_>, workload: PyRef<'_, Workload>) -> PyResult<Py<PyArray2<f64>>> {
    let workload = &workload.0;
    let (rows, _, entries) = py.detach(|| workload.dense()).map_err(PyError::from)?;
    matrix(py, rows, entries)
}
