//! Marginal tables that are measured where an estimate is furthest from the truth.

use crate::door::{Cells, Measured, UnitParts, unit};
use crate::error::PyError;
use crate::interrupt::detached;
use crate::strategy::Strategy;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use sordino_core::adaptive_tables::Candidates;
use sordino_core::door::{self, Key};

/// A fitted lattice and noise for such tables, with the candidates.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct TableDoor {
    door: door::TableDoor,
    candidates: Candidates,
}

type Agreed<'py> = (Bound<'py, PyArray1<f64>>, f64, f64, usize);

/// Number of a candidate, its cells with noise, and their variance.
type Look<'py> = (usize, Bound<'py, PyArray1<f64>>, f64);

#[pymethods]
impl TableDoor {
    #[staticmethod]
    fn fit(
        strategy: PyRef<'_, Strategy>,
        levels: Vec<usize>,
        sets: Vec<Vec<usize>>,
        weights: Vec<f64>,
        parts: UnitParts,
        max_value: u64,
        noise_ratio: f64,
    ) -> Result<Self, PyError> {
        let candidates = Candidates::new(&levels, &sets, &weights)?;
        let door = candidates.door(&*strategy.core, unit(parts)?, max_value, noise_ratio)?;
        Ok(Self { door, candidates })
    }

    #[getter]
    fn grid(&self) -> i16 {
        self.door.grid()
    }

    #[getter]
    fn quarter_units(&self) -> u64 {
        self.door.quarter_units()
    }

    #[getter]
    fn noise(&self) -> f64 {
        self.door.scale()
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.door.scale()
    }

    #[getter]
    fn sensitivity(&self) -> (f64, f64, f64) {
        let sensitivity = self.door.sensitivity();
        (sensitivity.ideal.get(), sensitivity.encoding.get(), sensitivity.rounding.get())
    }

    /// Publishes tables that a strategy counts, under a fresh key or a known one (not private).
    #[pyo3(signature = (strategy, cells, key=None))]
    fn measure(
        &self,
        py: Python<'_>,
        strategy: PyRef<'_, Strategy>,
        cells: Cells<'_>,
        key: Option<[u8; 32]>,
    ) -> PyResult<Measured> {
        let data = cells.data()?;
        let (strategy, len) = (&*strategy, strategy.input_len.unwrap_or(0));
        let key = key.map(Key::deterministic);
        let measured = detached(py, || self.candidates.measure(&self.door, &*strategy.core, len, data, key));
        Ok(Measured(measured.map_err(PyError::from)?))
    }

    /// What this door published before.
    fn published(&self, py: Python<'_>, units: PyReadonlyArray1<'_, i64>) -> PyResult<Measured> {
        let units = units.as_slice()?.to_vec();
        Ok(Measured(detached(py, || self.candidates.published(&self.door, units)).map_err(PyError::from)?))
    }

    /// What was published, table by table.
    fn looks<'py>(&self, py: Python<'py>, measured: PyRef<'_, Measured>) -> Result<Vec<Look<'py>>, PyError> {
        let measured = &measured.0;
        let looks = detached(py, || self.candidates.looks(&self.door, measured))?;
        Ok(looks.into_iter().map(|look| (look.table, look.values.into_pyarray(py), look.variance)).collect())
    }

    /// Tables that agree, of all candidates, with the gap over the noise, what was mixed in, and iterations.
    fn agreed<'py>(
        &self,
        py: Python<'py>,
        measured: PyRef<'_, Measured>,
        total: Option<f64>,
        shrink: bool,
    ) -> Result<Agreed<'py>, PyError> {
        let measured = &measured.0;
        let found =
            detached(py, || self.candidates.agreed(&self.candidates.looks(&self.door, measured)?, total, shrink))?;
        Ok((found.nearest.tables.into_pyarray(py), found.gap, found.nearest.mixed, found.nearest.iterations))
    }
}
