//! The door.

use crate::error::PyError;
use crate::interrupt::detached;
use crate::names::{Neighbours, Relation};
use crate::sketch::Sketch;
use crate::smooth::PointSums;
use crate::strategy::Strategy;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sordino_core::domain::Domain;
use sordino_core::door::Key;
use sordino_core::door::{self, Data, DiscreteRows};
use sordino_core::error::Error;
use sordino_core::strategy::Codes;
use sordino_core::unit::Unit;

type Runs<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>);

/// A fitted lattice and noise.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Door {
    pub(crate) core: door::Door,
}

#[pymethods]
impl Door {
    #[getter]
    fn grid(&self) -> i16 {
        self.core.grid()
    }

    #[getter]
    fn quarter_units(&self) -> u64 {
        self.core.quarter_units()
    }

    /// Ideal sensitivity, and what encoding and rounding add, in units of the input.
    #[getter]
    fn sensitivity(&self) -> (f64, f64, f64) {
        let s = self.core.sensitivity();
        let step = 2f64.powi(-(self.core.domain().fraction_bits() as i32));
        (s.ideal.get() * step, s.encoding.get() * step, s.rounding.get() * step)
    }

    #[getter]
    fn noise(&self) -> f64 {
        self.core.noise()
    }

    /// What the privacy rests on: Gaussian standard deviation, or Laplace scale.
    #[getter]
    fn scale(&self) -> f64 {
        self.core.scale()
    }

    /// Steps, rates and lengths of the runs of rows with discrete noise; empty for noise on the grid.
    #[getter]
    fn discrete<'py>(&self, py: Python<'py>) -> Runs<'py> {
        let rows = self.core.discrete();
        let of = |value: fn(&DiscreteRows) -> f64| rows.iter().map(value).collect::<Vec<f64>>().into_pyarray(py);
        let lengths: Vec<i64> = rows.iter().map(|rows| rows.len as i64).collect();
        (of(|rows| rows.step), of(|rows| rows.rate), lengths.into_pyarray(py))
    }

    /// Step, privacy loss, width and first step of staircase noise on a single number, else None.
    #[getter]
    fn staircase(&self) -> Option<(f64, f64, u64, u64)> {
        self.core.staircase()
    }

    /// Publishes cells or record codes under a fresh key, or a known one (not private).
    #[pyo3(signature = (strategy, cells, key=None))]
    fn measure(
        &self,
        py: Python<'_>,
        strategy: PyRef<'_, Strategy>,
        cells: Cells<'_>,
        key: Option<[u8; 32]>,
    ) -> PyResult<Measured> {
        // A copy: measuring may take long, and adding goes on meanwhile.
        let sums = match &cells {
            Cells::Sketch(sketch) => Some(sketch.0.with(py, |sketch| sketch.sums().clone())?),
            Cells::Points(points) => Some(points.0.with(py, |points| points.sums().clone())?),
            _ => None,
        };
        let data = sums.as_ref().map_or_else(|| cells.data(), |sums| Ok(Data::Sums(sums)))?;
        let (strategy, len) = (&*strategy, strategy.input_len.unwrap_or(0));
        let measured = detached(py, || match key {
            Some(bytes) => self.core.measure_with(&*strategy.core, len, data, &Key::deterministic(bytes)),
            None => self.core.measure(&*strategy.core, len, data),
        });
        Ok(Measured(measured.map_err(PyError::from)?))
    }

    /// What this door published before, in its units.
    fn published(&self, units: PyReadonlyArray1<'_, i64>) -> PyResult<Measured> {
        let found = self.core.published(units.as_slice()?.to_vec());
        Ok(Measured(found.map_err(PyError::from)?))
    }
}

/// Arrays that the door takes; Python has checked shape, dtype and finiteness.
#[derive(FromPyObject)]
pub(crate) enum Cells<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Reals(PyReadonlyArray1<'py, f64>),
    Bytes(PyReadonlyArray2<'py, u8>),
    Words(PyReadonlyArray2<'py, i64>),
    Sparse(PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, i64>),
    Sketch(PyRef<'py, Sketch>),
    Points(PyRef<'py, PointSums>),
}

impl Cells<'_> {
    pub(crate) fn data(&self) -> PyResult<Data<'_>> {
        Ok(match self {
            Self::Integers(cells) => Data::Integers(cells.as_slice()?),
            Self::Reals(cells) => Data::Reals(cells.as_slice()?),
            Self::Bytes(codes) => Data::Codes(Codes::Bytes(codes.as_slice()?)),
            Self::Words(codes) => Data::Codes(Codes::Words(codes.as_slice()?)),
            Self::Sketch(_) | Self::Points(_) => {
                return Err(PyError::from(Error::Unsupported("sums are copied first".into())).into());
            }
            Self::Sparse(cells, values) => Data::Sparse { cells: cells.as_slice()?, values: values.as_slice()? },
        })
    }
}

/// What was published.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Measured(pub door::Measured);

#[pymethods]
impl Measured {
    #[getter]
    fn units<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        PyArray1::from_slice(py, self.0.units())
    }

    #[getter]
    fn grid(&self) -> i16 {
        self.0.grid()
    }

    fn values<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.0.values().into_pyarray(py)
    }
}

/// A neighbouring relation: its kind, records, records of a cell, and whether none lowers a cell.
pub(crate) type UnitParts = (Relation, u32, Option<u32>, bool);

/// The unit that these say.
pub(crate) fn unit((relation, records, per_cell, one_signed): UnitParts) -> Result<Unit, Error> {
    let unit = match relation.0 {
        Neighbours::ReplaceOne => Unit::replace_one(records),
        Neighbours::AddRemove => Unit::add_remove(records, per_cell),
    }?;
    if one_signed { unit.one_signed() } else { Ok(unit) }
}

/// Fits lattice and noise to a strategy, unit, domain and noise ratio.
#[pyfunction]
#[pyo3(signature = (strategy, parts, max_value, fraction_bits, noise_ratio))]
pub(crate) fn fit(
    py: Python<'_>,
    strategy: PyRef<'_, Strategy>,
    parts: UnitParts,
    max_value: u64,
    fraction_bits: u32,
    noise_ratio: f64,
) -> Result<Door, PyError> {
    let unit = unit(parts)?;
    let domain = Domain::real(max_value, fraction_bits)?;
    let strategy = &*strategy;
    let core = detached(py, || door::Door::fit(&*strategy.core, unit, domain, noise_ratio))?;
    Ok(Door { core })
}

/// Indices of the keys whose weight with Gaussian noise is above a threshold.
#[pyfunction]
#[pyo3(signature = (weights, quarter_units, threshold, key=None))]
pub(crate) fn publish_keys(
    py: Python<'_>,
    weights: PyReadonlyArray1<'_, i64>,
    quarter_units: u64,
    threshold: i64,
    key: Option<[u8; 32]>,
) -> PyResult<Vec<usize>> {
    let weights = weights.as_slice()?;
    let key = key.map(Key::deterministic);
    let publish = || door::publish_keys(weights, quarter_units, threshold, key.as_ref());
    Ok(detached(py, publish).map_err(PyError::from)?)
}

/// Indices of the keys of which a word of 96 bits is below the threshold for so many users.
#[pyfunction]
#[pyo3(signature = (users, thresholds, key=None))]
pub(crate) fn keep_keys(
    py: Python<'_>,
    users: PyReadonlyArray1<'_, u64>,
    thresholds: Vec<u128>,
    key: Option<[u8; 32]>,
) -> PyResult<Vec<usize>> {
    let users = users.as_slice()?;
    let key = key.map(Key::deterministic);
    Ok(detached(py, || door::keep_keys(users, &thresholds, key.as_ref())).map_err(PyError::from)?)
}
