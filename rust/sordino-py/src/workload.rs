//! Workloads.

use crate::error::PyError;
use crate::interrupt::detached;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::strategy;
use sordino_core::workload::Workload as Core;

/// A validated workload.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Workload(pub Core);

impl Workload {
    fn checked(workload: Core) -> Result<Self, PyError> {
        Ok(Self(workload.validated()?))
    }
}

#[pymethods]
impl Workload {
    #[staticmethod]
    fn histogram(len: usize) -> Result<Self, PyError> {
        Self::checked(Core::Histogram { len })
    }

    #[staticmethod]
    fn circular(kernel: PyReadonlyArray1<'_, f64>) -> PyResult<Self> {
        Ok(Self::checked(Core::Circular { kernel: kernel.as_slice()?.to_vec() })?)
    }

    #[staticmethod]
    fn linear(kernel: PyReadonlyArray1<'_, f64>, len: usize, center: usize) -> PyResult<Self> {
        Ok(Self::checked(Core::Linear { kernel: kernel.as_slice()?.to_vec(), len, center })?)
    }

    #[staticmethod]
    fn group(radices: Vec<usize>, kernel: PyReadonlyArray1<'_, f64>) -> PyResult<Self> {
        Ok(Self::checked(Core::Group { radices, kernel: kernel.as_slice()?.to_vec() })?)
    }

    #[staticmethod]
    #[pyo3(signature = (radices, sets, weights, total_share=0.0))]
    fn marginals(
        radices: Vec<usize>,
        sets: Vec<Vec<usize>>,
        weights: Vec<f64>,
        total_share: f64,
    ) -> Result<Self, PyError> {
        Self::checked(Core::Marginals { radices, sets, weights, total_share })
    }

    #[staticmethod]
    fn marginal_queries(
        queries: Vec<PyRef<'_, Self>>,
        sets: Vec<Vec<usize>>,
        weights: Vec<f64>,
    ) -> Result<Self, PyError> {
        let axes = queries.iter().map(|own| own.0.clone()).collect();
        Self::checked(Core::MarginalQueries { axes, sets, weights })
    }

    #[staticmethod]
    fn matrix(rows: usize, columns: usize, entries: PyReadonlyArray1<'_, f64>) -> PyResult<Self> {
        Ok(Self::checked(Core::Matrix { rows, columns, entries: entries.as_slice()?.to_vec() })?)
    }

    #[staticmethod]
    fn sparse(
        rows: usize,
        columns: usize,
        starts: PyReadonlyArray1<'_, i64>,
        indices: PyReadonlyArray1<'_, i64>,
        entries: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Self> {
        // What is negative or too large becomes a number that no matrix has.
        let starts = starts.as_slice()?.iter().map(|k| usize::try_from(*k).unwrap_or(usize::MAX)).collect();
        let indices = indices.as_slice()?.iter().map(|j| u32::try_from(*j).unwrap_or(u32::MAX)).collect();
        Ok(Self::checked(Core::Sparse { rows, columns, starts, indices, entries: entries.as_slice()?.to_vec() })?)
    }

    #[staticmethod]
    fn ranges(len: usize) -> Result<Self, PyError> {
        Self::checked(Core::Ranges { len })
    }

    #[staticmethod]
    fn intervals(
        len: usize,
        first: PyReadonlyArray1<'_, i64>,
        last: PyReadonlyArray1<'_, i64>,
        weights: Vec<f64>,
    ) -> PyResult<Self> {
        // What is negative or too large becomes a cell that no line has.
        let cell = |j: &i64| u32::try_from(*j).unwrap_or(u32::MAX);
        let ends = first.as_slice()?.iter().map(cell).zip(last.as_slice()?.iter().map(cell)).collect();
        Ok(Self::checked(Core::Intervals { len, ends, weights })?)
    }

    #[staticmethod]
    fn union(parts: Vec<PyRef<'_, Self>>) -> Result<Self, PyError> {
        Self::checked(Core::Union { parts: parts.iter().map(|part| part.0.clone()).collect() })
    }

    #[staticmethod]
    fn tail(first: usize, of: PyRef<'_, Self>) -> Result<Self, PyError> {
        Self::checked(Core::Tail { first, of: Box::new(of.0.clone()) })
    }

    #[staticmethod]
    fn kronecker(factors: Vec<PyRef<'_, Self>>) -> Result<Self, PyError> {
        Self::checked(Core::Kronecker { factors: factors.iter().map(|factor| factor.0.clone()).collect() })
    }

    #[getter]
    fn input_len(&self) -> Option<usize> {
        self.0.input_len()
    }

    #[getter]
    fn is_listed(&self) -> bool {
        self.0.is_listed()
    }

    #[getter]
    fn answers_len(&self) -> usize {
        self.0.answers_len()
    }

    fn apply<'py>(&self, py: Python<'py>, x: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let x = x.as_slice()?;
        let expected = self.0.input_len().unwrap_or(0);
        if x.len() != expected {
            return Err(PyError::from(Error::Shape { name: "x", expected, got: x.len() }).into());
        }
        self.0.listed().map_err(PyError::from)?;
        let mut out = vec![0.0; self.0.answers_len()];
        detached(py, || self.0.apply(x, &mut out));
        Ok(out.into_pyarray(py))
    }

    fn distinct_cells<'py>(&self, py: Python<'py>) -> Option<(Bound<'py, PyArray1<i64>>, Option<usize>)> {
        let (firsts, left_out) = detached(py, || strategy::distinct_cells(&self.0))?;
        let firsts: Vec<i64> = firsts.into_iter().map(|cell| cell as i64).collect();
        Some((firsts.into_pyarray(py), left_out))
    }

    fn row<'py>(&self, py: Python<'py>, index: usize) -> Result<Bound<'py, PyArray1<f64>>, PyError> {
        Ok(self.0.row(index)?.into_pyarray(py))
    }
}
