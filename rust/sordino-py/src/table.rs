//! Tallies of records with bounded contributions.

use crate::error::PyError;
use crate::guarded::{Guarded, Shared};
use crate::interrupt::detached;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sordino_core::table::{self, Rule, Seed, Users, Weighting};

/// Names of users as Python holds them.
#[derive(FromPyObject)]
enum Named<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    /// Where each begins, and the bytes of all.
    Bytes(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u8>),
}

impl Named<'_> {
    fn users(&self) -> PyResult<Users<'_>> {
        Ok(match self {
            Self::Integers(names) => Users::Integers(names.as_slice()?),
            Self::Bytes(offsets, bytes) => Users::Bytes { offsets: offsets.as_slice()?, bytes: bytes.as_slice()? },
        })
    }
}

impl Shared for table::Tally {}

/// What is kept of all users' records; as private as the data.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Tally(Guarded<table::Tally>);

#[pymethods]
impl Tally {
    #[new]
    fn new(
        seed: [u64; 6],
        cells: u32,
        max_cells: u32,
        per_cell: u32,
        max_records: u32,
        height: u32,
    ) -> Result<Self, PyError> {
        let rule = Rule::new(Seed::new(seed)?, cells, max_cells, per_cell, max_records, height)?;
        Ok(Self(Guarded::new(table::Tally::new(rule))))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Result<Self, PyError> {
        Ok(Self(Guarded::new(detached(py, || table::Tally::from_bytes(bytes))?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, PyError> {
        Ok(PyBytes::new(py, &self.0.with(py, table::Tally::to_bytes)??))
    }

    /// Takes in rows.
    fn update(
        &self,
        py: Python<'_>,
        users: Named<'_>,
        cells: PyReadonlyArray1<'_, i32>,
        values: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<()> {
        let (users, cells, values) = (users.users()?, cells.as_slice()?, values.as_slice()?);
        Ok(self.0.with(py, |tally| tally.update(users, cells, values))?.map_err(PyError::from)?)
    }

    /// Takes in what another tally holds, which stays as it is.
    fn merge(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<(), PyError> {
        // A copy, so that two tallies merged into each other at once never wait for one another.
        let mut copy = other.0.with(py, |tally| tally.clone())?;
        Ok(self.0.with(py, |tally| tally.merge(&mut copy))??)
    }

    fn same_rule(&self, py: Python<'_>, other: PyRef<'_, Self>) -> Result<bool, PyError> {
        let rule = other.0.with(py, |tally| *tally.rule())?;
        self.0.with(py, |tally| *tally.rule() == rule)
    }

    /// The table: private.
    fn table<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i64>>, PyError> {
        Ok(self.0.with(py, table::Tally::table)??.into_pyarray(py))
    }
}

impl Shared for table::Participants {}

/// The steps of a stream that users took part in; as private as the data.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Participants(Guarded<table::Participants>);

#[pymethods]
impl Participants {
    #[new]
    fn new(most: u32, apart: u32) -> Result<Self, PyError> {
        Ok(Self(Guarded::new(table::Participants::new(most, apart)?)))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> Result<Self, PyError> {
        Ok(Self(Guarded::new(detached(py, || table::Participants::from_bytes(bytes))?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, PyError> {
        Ok(PyBytes::new(py, &self.0.with(py, |state| state.to_bytes())?))
    }

    /// The cells of rows, negative where the user takes no part in the step: private.
    fn admitted<'py>(
        &self,
        py: Python<'py>,
        users: Named<'py>,
        cells: PyReadonlyArray1<'py, i32>,
    ) -> PyResult<Bound<'py, PyArray1<i32>>> {
        let (users, cells) = (users.users()?, cells.as_slice()?);
        let admitted = self.0.with(py, |state| state.admitted(users, cells))?;
        Ok(admitted.map_err(PyError::from)?.into_pyarray(py))
    }

    fn advance(&self, py: Python<'_>) -> Result<(), PyError> {
        Ok(self.0.with(py, table::Participants::advance)??)
    }

    #[getter]
    fn bounds(&self, py: Python<'_>) -> Result<(u32, u32), PyError> {
        self.0.with(py, |state| state.bounds())
    }

    #[getter]
    fn step(&self, py: Python<'_>) -> Result<u32, PyError> {
        self.0.with(py, |state| state.step())
    }
}

impl Shared for table::KeyLists {}

/// The keys of every user; as private as the data.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct KeyLists(Guarded<table::KeyLists>);

#[pymethods]
impl KeyLists {
    #[new]
    fn new() -> Self {
        Self(Guarded::new(table::KeyLists::default()))
    }

    fn update(&self, py: Python<'_>, users: Named<'_>, keys: PyReadonlyArray1<'_, i32>) -> PyResult<()> {
        let (users, keys) = (users.users()?, keys.as_slice()?);
        Ok(self.0.with(py, |lists| lists.update(users, keys))?.map_err(PyError::from)?)
    }

    /// The weight of every key, if of each user at most `most` count: private.
    fn weights<'py>(
        &self,
        py: Python<'py>,
        seed: [u64; 6],
        order: PyReadonlyArray1<'py, u32>,
        taken: PyReadonlyArray1<'py, bool>,
        most: usize,
        shared: bool,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let seed = Seed::new(seed).map_err(PyError::from)?;
        let (order, taken) = (order.as_slice()?, taken.as_slice()?);
        let weighting = if shared { Weighting::Shared } else { Weighting::Each };
        let weights = self.0.with(py, |lists| lists.weights(&seed, order, taken, most, weighting))?;
        Ok(weights.map_err(PyError::from)?.into_pyarray(py))
    }
}

/// The weight of one of so many keys of a user.
#[pyfunction]
pub(crate) fn key_weight(keys: usize, shared: bool) -> i64 {
    if shared { Weighting::Shared.of(keys) } else { Weighting::Each.of(keys) }
}
