//! Trees over cells that grow where records are.

use crate::door::{Cells, Measured, UnitParts, unit};
use crate::error::PyError;
use crate::interrupt::detached;
use crate::names::{Axis, Growth, NoiseLaw};
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use sordino_core::door::{self, Key};
use sordino_core::path_tree;

/// A fitted lattice and noise for such trees.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct PathDoor(door::PathDoor);

#[pymethods]
impl PathDoor {
    #[staticmethod]
    fn fit(
        shape: [u32; 2],
        growth: Growth,
        law: NoiseLaw,
        parts: UnitParts,
        max_value: u64,
        noise_ratio: f64,
    ) -> Result<Self, PyError> {
        Ok(Self(door::PathDoor::fit(shape, growth.0, law.0, unit(parts)?, max_value, noise_ratio)?))
    }

    #[getter]
    fn grid(&self) -> i16 {
        self.0.grid()
    }

    #[getter]
    fn quarter_units(&self) -> u64 {
        self.0.quarter_units()
    }

    #[getter]
    fn noise(&self) -> f64 {
        self.0.scale()
    }

    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    #[getter]
    fn sensitivity(&self) -> (f64, f64, f64) {
        let sensitivity = self.0.sensitivity();
        (sensitivity.ideal.get(), sensitivity.encoding.get(), sensitivity.rounding.get())
    }

    /// Publishes counts of a tree under a fresh key, or a known one (not private).
    #[pyo3(signature = (cells, key=None))]
    fn measure(&self, py: Python<'_>, cells: Cells<'_>, key: Option<[u8; 32]>) -> PyResult<Measured> {
        let data = cells.data()?;
        let measured = detached(py, || match key {
            Some(bytes) => self.0.measure_with(data, Key::deterministic(bytes)),
            None => self.0.measure(data),
        });
        Ok(Measured(measured.map_err(PyError::from)?))
    }

    /// What this door published before.
    fn published(&self, py: Python<'_>, units: numpy::PyReadonlyArray1<'_, i64>) -> PyResult<Measured> {
        let units = units.as_slice()?.to_vec();
        Ok(Measured(detached(py, || self.0.published(units)).map_err(PyError::from)?))
    }

    /// The tree that was published.
    fn grown(&self, py: Python<'_>, measured: PyRef<'_, Measured>) -> Result<GrownTree, PyError> {
        let measured = &measured.0;
        Ok(GrownTree(detached(py, || self.0.grown(measured))?))
    }

    /// Mean squared error of queries by noise alone, if the tree grows down to every cell.
    fn dense_square(&self, py: Python<'_>, axes: [Axis; 2]) -> Result<f64, PyError> {
        Ok(detached(py, || self.0.dense_square(axes.map(|axis| axis.0)))?)
    }
}

type Readings<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A tree that has grown.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct GrownTree(path_tree::Grown);

#[pymethods]
impl GrownTree {
    /// First cell, and one behind the last, on two axes: four numbers a node.
    fn regions<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let ends = self.0.regions().flat_map(|region| [region.first, region.end]).flatten().map(i64::from);
        ends.collect::<Vec<i64>>().into_pyarray(py)
    }

    fn depths<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        self.0.depths().map(i64::from).collect::<Vec<i64>>().into_pyarray(py)
    }

    /// The last measurement of every node on which nothing was decided, and its variance; else no numbers.
    fn undecided<'py>(&self, py: Python<'py>) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
        let (values, variances): (Vec<f64>, Vec<f64>) = self.0.undecided().unzip();
        (values.into_pyarray(py), variances.into_pyarray(py))
    }

    /// Everything that was measured: boxes as in `regions`, counts with noise, variances.
    fn measured<'py>(&self, py: Python<'py>) -> Readings<'py> {
        let (mut ends, mut values, mut variances) = (Vec::new(), Vec::new(), Vec::new());
        for (region, value, variance) in self.0.measured() {
            ends.extend([region.first, region.end].iter().flatten().copied().map(i64::from));
            values.push(value);
            variances.push(variance);
        }
        (ends.into_pyarray(py), values.into_pyarray(py), variances.into_pyarray(py))
    }

    /// Counts of the nodes: not negative, and adding up.
    fn counts<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        detached(py, || self.0.counts()).into_pyarray(py)
    }

    /// The table, flat.
    fn cells<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        detached(py, || self.0.cells()).into_pyarray(py)
    }
}
