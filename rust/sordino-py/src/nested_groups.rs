//! Nested groups of cells.

use crate::door::{UnitParts, unit as door_unit};
use crate::error::PyError;
use crate::interrupt::detached;
use crate::names::NoiseLaw;
use crate::strategy::Strategy;
use crate::workload::Workload;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use sordino_core::strategy;

/// The groups of a workload, of which any two are nested or disjoint.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct NestedGroups(strategy::NestedGroups);

#[pymethods]
impl NestedGroups {
    #[new]
    fn new(py: Python<'_>, workload: PyRef<'_, Workload>) -> Result<Self, PyError> {
        let workload = &workload.0;
        Ok(Self(detached(py, || strategy::NestedGroups::of(workload))?))
    }

    /// A lower bound on the total squared error of every Gaussian strategy, with the weights of the answers.
    #[pyo3(signature = (weights=None))]
    fn bound(&self, py: Python<'_>, weights: Option<PyReadonlyArray1<'_, f64>>) -> PyResult<f64> {
        let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        Ok(detached(py, || self.0.bound(weights)).map_err(PyError::from)?)
    }

    /// Counts of the groups, with the weights of the answers in the mean, as finely as counts up to `most` leave room for.
    #[pyo3(signature = (law, weights=None, unit=None, most=None))]
    fn strategy(
        &self,
        py: Python<'_>,
        law: NoiseLaw,
        weights: Option<PyReadonlyArray1<'_, f64>>,
        unit: Option<UnitParts>,
        most: Option<u64>,
    ) -> PyResult<Strategy> {
        let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
        let unit = unit.map(door_unit).transpose().map_err(PyError::from)?;
        let core = detached(py, || self.0.strategy(law.0, weights, unit, most)).map_err(PyError::from)?;
        Ok(Strategy::of_sizes(core, self.0.cells_len(), self.0.answers_len()))
    }
}
