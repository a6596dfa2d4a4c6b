//! Sparse recovery, orthonormal bases, isotonic regression, the private choice of a sparsity.

use crate::door::{UnitParts, unit};
use crate::error::PyError;
use crate::interrupt::detached;
use crate::names;
use crate::optimize::Reporter;
use crate::sketch::SketchOperator;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use sordino_core::domain::Domain;
use sordino_core::door::Key;
use sordino_core::door::{self, SparsityChoice};
use sordino_core::error::Error;
use sordino_core::estimate;
use sordino_core::estimate::recovery::{self, Target, Threshold};
use sordino_core::sketch::{Candidates, Measuring, Robust};
use sordino_core::transform::{self, BasisFunction, GivenBasis, NamedBasis};
use sordino_core::unit::Unit;
use std::ops::ControlFlow;

/// An orthonormal basis, built in or given by two functions.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Basis(Kind);

enum Kind {
    Named(NamedBasis),
    Given(GivenBasis<PyError>),
}

impl Basis {
    fn core(&self) -> &dyn transform::Basis {
        match &self.0 {
            Kind::Named(basis) => basis,
            Kind::Given(basis) => basis,
        }
    }

    /// Whether a function of the basis has raised.
    fn failed(&self) -> bool {
        matches!(&self.0, Kind::Given(basis) if basis.failed())
    }

    /// Raises what a function of the basis raised.
    fn check(&self) -> Result<(), PyError> {
        match &self.0 {
            Kind::Given(basis) => basis.check(),
            Kind::Named(_) => Ok(()),
        }
    }

    fn transformed<'py>(
        &self,
        py: Python<'py>,
        x: &PyReadonlyArray1<'py, f64>,
        run: impl FnOnce(&dyn transform::Basis, &mut [f64]) + Send,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut values = x.as_slice()?.to_vec();
        if values.len() != self.core().len() {
            let (expected, got) = (self.core().len(), values.len());
            return Err(PyError::from(Error::Shape { name: "values", expected, got }).into());
        }
        detached(py, || run(self.core(), &mut values));
        self.check()?;
        Ok(values.into_pyarray(py))
    }
}

#[pymethods]
impl Basis {
    /// A basis that is built in, with so many elements.
    #[staticmethod]
    fn named(name: names::BasisName, len: usize) -> Result<Self, PyError> {
        Ok(Self(Kind::Named(NamedBasis::new(name.0, len)?)))
    }

    /// A basis given by its two functions, a bound on the l1 norm of a cell's coefficients, and its accuracy.
    #[staticmethod]
    fn custom(len: usize, analyze: Py<PyAny>, synthesize: Py<PyAny>, column_l1: f64, relative_error: f64) -> Self {
        let [analyze, synthesize] = [analyze, synthesize].map(called);
        Self(Kind::Given(GivenBasis::new(len, analyze, synthesize, column_l1, relative_error)))
    }

    #[getter]
    fn len(&self) -> usize {
        self.core().len()
    }

    #[getter]
    fn column_l1(&self) -> f64 {
        self.core().column_l1().get()
    }

    fn analyze<'py>(&self, py: Python<'py>, x: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.transformed(py, &x, |basis, x| basis.analyze(x))
    }

    fn synthesize<'py>(&self, py: Python<'py>, c: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        self.transformed(py, &c, |basis, c| basis.synthesize(c))
    }
}

/// A function of Python as one of arrays.
fn called(function: Py<PyAny>) -> BasisFunction<PyError> {
    Box::new(move |x| {
        Python::attach(|py| {
            let values: PyReadonlyArray1<'_, f64> =
                function.bind(py).call1((PyArray1::from_slice(py, x),))?.extract()?;
            Ok(values.as_slice().map_err(PyErr::from)?.to_vec())
        })
    })
}

/// What a recovery found.
#[pyclass(frozen, get_all, module = "sordino._core")]
pub(crate) struct Recovered {
    support: Py<PyArray1<i64>>,
    coefficients: Py<PyArray1<f64>>,
    residual: f64,
    iterations: usize,
    converged: bool,
    /// Whether a signal ended it.
    interrupted: bool,
}

/// Recovers the coefficients of a table from a normalised sketch with noise of this standard deviation.
#[pyfunction]
#[allow(clippy::too_many_arguments)] // the problem, once
pub(crate) fn recover(
    py: Python<'_>,
    operator: PyRef<'_, SketchOperator>,
    basis: PyRef<'_, Basis>,
    y: PyReadonlyArray1<'_, f64>,
    algorithm: names::Recovery,
    sparsity: Option<usize>,
    noise: f64,
    iterations: usize,
    threshold: Option<(f64, bool)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Recovered> {
    let y = y.as_slice()?;
    let threshold = threshold.map(|(above, keep_first)| Threshold { above, keep_first });
    let target = Target { sparsity, noise, iterations, threshold };
    let (operator, basis) = (&*operator, &*basis);
    let mut reporter = Reporter::new(progress);
    let found = detached(py, || {
        let measuring = Measuring::new(&operator.0, basis.core())?;
        recovery::recover(&measuring, y, algorithm.0, target, &mut |iteration, residual| {
            if basis.failed() { ControlFlow::Break(()) } else { reporter.report(iteration, residual) }
        })
    });
    basis.check()?;
    let interrupted = reporter.interrupted(py)?;
    Ok(recovered(py, found.map_err(PyError::from)?, interrupted))
}

fn recovered(py: Python<'_>, found: recovery::Recovery, interrupted: bool) -> Recovered {
    Recovered {
        support: found.support.iter().map(|i| *i as i64).collect::<Vec<_>>().into_pyarray(py).unbind(),
        coefficients: found.values.into_pyarray(py).unbind(),
        residual: found.residual,
        iterations: found.iterations,
        converged: found.converged,
        interrupted,
    }
}

/// Keys that may have counts, and the columns of a sketch that are theirs.
fn listed(keys: &PyReadonlyArray1<'_, u64>) -> PyResult<Vec<u64>> {
    Ok(keys.as_slice()?.to_vec())
}

/// Recovers the counts of keys from a normalised sketch; with `robust` beside numbers that something else has spoilt, which
/// come behind the keys: columns of that norm.
#[pyfunction]
#[pyo3(signature = (operator, keys, y, algorithm, sparsity, noise, iterations, threshold=None, robust=None))]
#[allow(clippy::too_many_arguments)] // the problem, once
pub(crate) fn recover_keys(
    py: Python<'_>,
    operator: PyRef<'_, SketchOperator>,
    keys: PyReadonlyArray1<'_, u64>,
    y: PyReadonlyArray1<'_, f64>,
    algorithm: names::Recovery,
    sparsity: Option<usize>,
    noise: f64,
    iterations: usize,
    threshold: Option<f64>,
    robust: Option<f64>,
) -> PyResult<Recovered> {
    let (keys, y) = (listed(&keys)?, y.as_slice()?);
    let threshold = threshold.map(|above| Threshold { above, keep_first: false });
    let target = Target { sparsity, noise, iterations, threshold };
    let operator = &*operator;
    let mut reporter = Reporter::new(None);
    let found = detached(py, || {
        let candidates = Candidates::new(&operator.0, &keys)?;
        let report = &mut |iteration, residual| reporter.report(iteration, residual);
        match robust {
            Some(size) => recovery::recover(&Robust::new(&candidates, size), y, algorithm.0, target, report),
            None => recovery::recover(&candidates, y, algorithm.0, target, report),
        }
    });
    let interrupted = reporter.interrupted(py)?;
    Ok(recovered(py, found.map_err(PyError::from)?, interrupted))
}

/// `2·row + 1` for a plus, `2·row` for a minus: of every entry of the columns of keys, column by column.
#[pyfunction]
pub(crate) fn key_columns<'py>(
    py: Python<'py>,
    operator: PyRef<'_, SketchOperator>,
    keys: PyReadonlyArray1<'py, u64>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let (keys, operator) = (listed(&keys)?, &*operator);
    let entries = detached(py, || Ok(Candidates::new(&operator.0, &keys)?.entries().to_vec()));
    Ok(entries.map_err(|error: Error| PyError::from(error))?.into_pyarray(py))
}

/// The non-decreasing sequence nearest to these values.
#[pyfunction]
pub(crate) fn isotonic<'py>(
    py: Python<'py>,
    values: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let values = values.as_slice()?;
    Ok(detached(py, || estimate::isotonic(values)).into_pyarray(py))
}

/// Cells, all finite.
#[derive(FromPyObject)]
pub(crate) enum Cells<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Reals(PyReadonlyArray1<'py, f64>),
}

/// What is public about the choice of a sparsity.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct SparsityScores {
    candidates: Vec<usize>,
    penalties: Vec<f64>,
    unit: Unit,
    domain: Domain,
    epsilon: f64,
}

impl SparsityScores {
    fn choice(&self) -> SparsityChoice<'_> {
        let Self { candidates, penalties, unit, domain, epsilon } = self;
        SparsityChoice { candidates, penalties, unit: *unit, domain: *domain, epsilon: *epsilon }
    }
}

#[pymethods]
impl SparsityScores {
    #[new]
    fn new(
        candidates: Vec<usize>,
        penalties: Vec<f64>,
        parts: UnitParts,
        max_value: u64,
        fraction_bits: u32,
        epsilon: f64,
    ) -> Result<Self, PyError> {
        let (unit, domain) = (unit(parts)?, Domain::real(max_value, fraction_bits)?);
        Ok(Self { candidates, penalties, unit, domain, epsilon })
    }

    /// Bound of what neighbours' scores differ by.
    fn sensitivity(&self, basis: PyRef<'_, Basis>) -> Result<f64, PyError> {
        Ok(self.choice().sensitivity(basis.core())?.get())
    }

    /// Index of the chosen candidate.
    #[pyo3(signature = (basis, cells, key=None))]
    fn select(
        &self,
        py: Python<'_>,
        basis: PyRef<'_, Basis>,
        cells: Cells<'_>,
        key: Option<[u8; 32]>,
    ) -> PyResult<usize> {
        let cells = match &cells {
            Cells::Integers(cells) => door::Cells::Integers(cells.as_slice()?),
            Cells::Reals(cells) => door::Cells::Reals(cells.as_slice()?),
        };
        let (basis, key) = (&*basis, key.map(Key::deterministic));
        let chosen = detached(py, || self.choice().select(basis.core(), cells, key.as_ref()));
        basis.check()?;
        Ok(chosen.map_err(PyError::from)?)
    }
}
