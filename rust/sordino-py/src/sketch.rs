//! Sketches, their operators, and private running sums of them that bear one look at their state.

use crate::error::PyError;
use crate::guarded::{Guarded, Shared};
use crate::interrupt::detached;
use crate::names;
use crate::stream::{StreamDoor, StreamPlan};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sordino_core::door;
use sordino_core::error::Error;
use sordino_core::sketch::{self, Kind};
use std::sync::Arc;

fn check(name: &'static str, expected: usize, got: usize) -> Result<(), Error> {
    if expected == got { Ok(()) } else { Err(Error::Shape { name, expected, got }) }
}

/// A random matrix of signs from a public seed.
#[pyclass(frozen, eq, module = "sordino._core")]
#[derive(PartialEq)]
pub(crate) struct SketchOperator(pub Arc<sketch::Operator>);

#[pymethods]
impl SketchOperator {
    #[new]
    fn new(
        kind: names::SketchKind,
        cells: usize,
        measurements: usize,
        seed: u64,
        nonzeros: u32,
    ) -> Result<Self, PyError> {
        Ok(Self(Arc::new(sketch::Operator::new(kind.0(nonzeros), cells, measurements, seed)?)))
    }

    /// Kind, cells, measurements, seed, entries of a sparse column.
    #[getter]
    fn description(&self) -> (&'static str, usize, usize, u64, u32) {
        let (kind, nonzeros) = match self.0.kind() {
            Kind::Bernoulli => ("bernoulli", 0),
            Kind::Hadamard => ("hadamard", 0),
            Kind::Sparse { nonzeros } => ("sparse", nonzeros),
        };
        (kind, self.0.cells(), self.0.measurements(), self.0.seed(), nonzeros)
    }

    #[getter]
    fn column_entries(&self) -> usize {
        self.0.column_entries()
    }

    /// Signs of a column, shape (measurements,).
    fn column<'py>(&self, py: Python<'py>, cell: usize) -> Result<Bound<'py, PyArray1<i64>>, PyError> {
        if cell >= self.0.cells() {
            return Err(Error::Shape { name: "cell", expected: self.0.cells(), got: cell }.into());
        }
        let mut column = vec![0; self.0.measurements()];
        self.0.add_column(cell, 1, &mut column);
        Ok(column.into_pyarray(py))
    }

    /// Products of a public vector with the normalised matrix.
    fn apply<'py>(&self, py: Python<'py>, x: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let x = x.as_slice()?;
        check("x", self.0.cells(), x.len()).map_err(PyError::from)?;
        let mut y = vec![0.0; self.0.measurements()];
        detached(py, || self.0.apply(x, &mut y));
        Ok(y.into_pyarray(py))
    }

    /// Products with its transpose.
    fn adjoint<'py>(&self, py: Python<'py>, y: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let y = y.as_slice()?;
        check("y", self.0.measurements(), y.len()).map_err(PyError::from)?;
        let mut x = vec![0.0; self.0.cells()];
        detached(py, || self.0.adjoint(y, &mut x));
        Ok(x.into_pyarray(py))
    }
}

/// Integer sums that grow and merge; as private as the data.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Sketch(pub Guarded<sketch::Sketch>);

impl Shared for sketch::Sketch {}

#[pymethods]
impl Sketch {
    #[new]
    fn new(operator: PyRef<'_, SketchOperator>) -> Self {
        Self(Guarded::new(sketch::Sketch::new(Arc::clone(&operator.0))))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Result<Self, PyError> {
        Ok(Self(Guarded::new(detached(py, || sketch::Sketch::from_bytes(bytes))?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, PyError> {
        Ok(PyBytes::new(py, &self.0.with(py, |sketch| sketch.to_bytes())?))
    }

    #[getter]
    fn operator(&self, py: Python<'_>) -> Result<SketchOperator, PyError> {
        Ok(SketchOperator(self.0.briefly(py, |sketch| Arc::clone(sketch.operator()))?))
    }

    fn update_one(&self, py: Python<'_>, cell: i64, count: i64) -> Result<(), PyError> {
        Ok(self.0.briefly(py, |sketch| sketch.update(&[cell], Some(&[count])))??)
    }

    #[pyo3(signature = (cells, counts=None))]
    fn update(
        &self,
        py: Python<'_>,
        cells: PyReadonlyArray1<'_, i64>,
        counts: Option<PyReadonlyArray1<'_, i64>>,
    ) -> PyResult<()> {
        let (cells, counts) = (cells.as_slice()?, counts.as_ref().map(PyReadonlyArray1::as_slice).transpose()?);
        Ok(self.0.with(py, |sketch| sketch.update(cells, counts))?.map_err(PyError::from)?)
    }

    fn add_table(&self, py: Python<'_>, table: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        let table = table.as_slice()?;
        Ok(self.0.with(py, |sketch| sketch.add_table(table))?.map_err(PyError::from)?)
    }

    /// Adds another sketch, which stays as it is.
    fn merge(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<(), PyError> {
        // A copy, so that two sketches added to each other at once never wait for one another.
        let copy = other.0.with(py, |sketch| sketch.clone())?;
        Ok(self.0.with(py, |sketch| sketch.merge(&copy))??)
    }

    fn copy(&self, py: Python<'_>) -> Result<Self, PyError> {
        Ok(Self(Guarded::new(self.0.with(py, |sketch| sketch.clone())?)))
    }

    /// The sums: private, for what a stream is fed with.
    fn sums<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i64>>, PyError> {
        Ok(self.0.with(py, |sketch| sketch.sums().clamped(i64::MAX).collect::<Vec<_>>())?.into_pyarray(py))
    }
}

/// Running sums that bear one look at their state.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct PanPrivateTree(Guarded<door::PanPrivateTree>);

impl Shared for door::PanPrivateTree {
    fn step(&self) -> u64 {
        self.step()
    }

    fn closed(&self) -> bool {
        self.closed()
    }

    fn wipe(&mut self) {
        self.close();
    }
}

#[pymethods]
impl PanPrivateTree {
    #[new]
    #[pyo3(signature = (plan, door, dim, key=None))]
    fn new(
        plan: PyRef<'_, StreamPlan>,
        door: PyRef<'_, StreamDoor>,
        dim: usize,
        key: Option<[u8; 32]>,
    ) -> Result<Self, PyError> {
        Ok(Self(Guarded::new(plan.0.open_pan_private(door.0, dim, key)?)))
    }

    #[getter]
    fn step(&self) -> u64 {
        self.0.step()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.closed()
    }

    /// Publishes the next step.
    fn update(&self, py: Python<'_>, item: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        let item = item.as_slice()?;
        Ok(self.0.with(py, |tree| tree.update(item))?.map_err(PyError::from)?)
    }

    /// The sums published last.
    fn answers<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<f64>>, PyError> {
        Ok(self.0.with(py, |tree| tree.answers())?.into_pyarray(py))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}
