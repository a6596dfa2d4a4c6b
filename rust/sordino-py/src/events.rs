//! Streams of events: what turns events into changes of counters, counters that are read by coordinate, segments.

use crate::error::PyError;
use crate::stream::{StreamDoor, StreamPlan};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::{door, events, stream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Integers<'py> = PyReadonlyArray1<'py, i64>;
type Ends<'py> = PyReadonlyArray1<'py, u64>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ends(ends: &Ends<'_>) -> PyResult<Vec<usize>> {
    Ok(ends.as_slice()?.iter().map(|end| *end as usize).collect())
}

fn ends_together(one: usize, other: usize) -> Result<(), Error> {
    if one == other { Ok(()) } else { Err(Error::Shape { name: "target", expected: one, got: other }) }
}

/// What edges add to a function of a growing graph.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct GraphEvents(Mutex<events::GraphEvents>);

#[pymethods]
impl GraphEvents {
    #[new]
    fn new(function: &str, vertices: u32, max_degree: Option<u32>, k: u32) -> Result<Self, PyError> {
        let function = match function {
            "edge_count" => events::GraphFunction::EdgeCount,
            "triangle_count" => events::GraphFunction::Triangles,
            "star_count" => events::GraphFunction::Stars { k },
            "degree_histogram" => events::GraphFunction::DegreeHistogram,
            _ => return Err(Error::Unsupported("unknown function of graphs".into()).into()),
        };
        Ok(Self(Mutex::new(events::GraphEvents::new(function, vertices, max_degree)?)))
    }

    /// What the edges of every step change, row by row: private.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        source: Integers<'py>,
        target: Integers<'py>,
        ends: Ends<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (u, v, ends) = (source.as_slice()?, target.as_slice()?, self::ends(&ends)?);
        ends_together(u.len(), v.len()).map_err(PyError::from)?;
        let rows = py.detach(|| {
            let mut graph = lock(&self.0);
            let mut rows = vec![0; ends.len() * graph.width()];
            graph.rows(u, v, &ends, &mut rows).map(|()| rows)
        });
        Ok(rows.map_err(PyError::from)?.into_pyarray(py))
    }

    /// Memory in use, about.
    #[getter]
    fn bytes(&self) -> usize {
        lock(&self.0).bytes()
    }
}

/// What weighted edges add to the cost of a minimum spanning forest.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct SpanningForest(Mutex<events::SpanningForest>);

#[pymethods]
impl SpanningForest {
    #[new]
    fn new(vertices: u32, max_weight: u64) -> Result<Self, PyError> {
        Ok(Self(Mutex::new(events::SpanningForest::new(vertices, max_weight)?)))
    }

    /// What the edges of every step change: private.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        source: Integers<'py>,
        target: Integers<'py>,
        weights: Integers<'py>,
        ends: Ends<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (u, v, w, ends) = (source.as_slice()?, target.as_slice()?, weights.as_slice()?, self::ends(&ends)?);
        ends_together(u.len(), v.len()).and_then(|()| ends_together(u.len(), w.len())).map_err(PyError::from)?;
        let mut rows = vec![0; ends.len()];
        py.detach(|| lock(&self.0).rows(u, v, w, &ends, &mut rows)).map_err(PyError::from)?;
        Ok(rows.into_pyarray(py))
    }

    /// Memory in use, about.
    #[getter]
    fn bytes(&self) -> usize {
        lock(&self.0).bytes()
    }
}

/// What letters add to the counts of short words.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Words(Mutex<events::Text>);

#[pymethods]
impl Words {
    #[new]
    fn new(kind: &str, alphabet: u32, longest: u32) -> Result<Self, PyError> {
        Ok(Self(Mutex::new(match kind {
            "substring_counts" => events::Text::Substrings(events::Substrings::new(alphabet, longest)?),
            "episode_counts" => events::Text::Episodes(events::Episodes::new(alphabet, longest)?),
            _ => return Err(Error::Unsupported("unknown count of words".into()).into()),
        })))
    }

    /// What the letters of every step add, row by row: private.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        letters: Integers<'py>,
        ends: Ends<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (letters, ends) = (letters.as_slice()?, self::ends(&ends)?);
        let rows = py.detach(|| {
            let mut text = lock(&self.0);
            let mut rows = vec![0; ends.len() * text.width() as usize];
            text.rows(letters, &ends, &mut rows).map(|()| rows)
        });
        Ok(rows.map_err(PyError::from)?.into_pyarray(py))
    }

    /// Feeds letters to counters that are read by coordinate.
    fn feed(&self, py: Python<'_>, counters: &LazyStream, letters: Integers<'_>, ends: Ends<'_>) -> PyResult<()> {
        let (letters, ends) = (letters.as_slice()?, self::ends(&ends)?);
        let fed = py.detach(|| lock(&self.0).feed(&mut lock(&counters.0), letters, &ends));
        Ok(fed.map_err(PyError::from)?)
    }

    /// Memory in use, about.
    #[getter]
    fn bytes(&self) -> usize {
        lock(&self.0).bytes()
    }
}

/// Open running sums that are read by coordinate.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct LazyStream(Mutex<stream::LazyStream>);

#[pymethods]
impl LazyStream {
    #[new]
    #[pyo3(signature = (plan, door, dim, key=None))]
    fn new(
        plan: PyRef<'_, StreamPlan>,
        door: PyRef<'_, StreamDoor>,
        dim: u64,
        key: Option<[u8; 32]>,
    ) -> Result<Self, PyError> {
        Ok(Self(Mutex::new(stream::LazyStream::open(Arc::clone(&plan.0), door.0, dim, key)?)))
    }

    #[getter]
    fn step(&self) -> u64 {
        lock(&self.0).step()
    }

    #[getter]
    fn closed(&self) -> bool {
        lock(&self.0).closed()
    }

    #[getter]
    fn bytes(&self) -> usize {
        lock(&self.0).bytes()
    }

    /// Takes steps of events that change one coordinate each.
    fn advance(
        &self,
        py: Python<'_>,
        coordinates: PyReadonlyArray1<'_, u64>,
        amounts: Integers<'_>,
        ends: Ends<'_>,
    ) -> PyResult<()> {
        let (coordinates, amounts, ends) = (coordinates.as_slice()?, amounts.as_slice()?, self::ends(&ends)?);
        Ok(py.detach(|| lock(&self.0).advance_single(coordinates, amounts, &ends)).map_err(PyError::from)?)
    }

    /// The noisy sums of these coordinates.
    fn read<'py>(
        &self,
        py: Python<'py>,
        coordinates: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let coordinates = coordinates.as_slice()?;
        let mut out = vec![0.0; coordinates.len()];
        py.detach(|| lock(&self.0).read(coordinates, &mut out)).map_err(PyError::from)?;
        Ok(out.into_pyarray(py))
    }

    fn close(&self) {
        lock(&self.0).close();
    }
}

/// Where segments end, and their private counts.
type Segments<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);

/// Segments of a stream that end when a noisy count comes above a noisy threshold.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct AboveThreshold(Mutex<door::AboveThreshold>);

#[pymethods]
impl AboveThreshold {
    #[new]
    #[pyo3(signature = (threshold, sensitivity, epsilon, key=None))]
    fn new(threshold: u64, sensitivity: u64, epsilon: f64, key: Option<[u8; 32]>) -> Result<Self, PyError> {
        Ok(Self(Mutex::new(door::AboveThreshold::open(threshold, sensitivity, epsilon, key)?)))
    }

    #[getter]
    fn scale(&self) -> f64 {
        lock(&self.0).scale()
    }

    /// Items at which segments end (public), and the exact counts of those segments (private).
    fn push<'py>(&self, py: Python<'py>, items: Integers<'py>) -> PyResult<Segments<'py>> {
        let items = items.as_slice()?;
        let (mut places, mut counts) = (Vec::new(), Vec::new());
        let pushed = py.detach(|| lock(&self.0).push_all(items, &mut places, &mut counts));
        pushed.map_err(PyError::from)?;
        Ok((places.into_pyarray(py), counts.into_pyarray(py)))
    }

    fn close(&self) {
        lock(&self.0).close();
    }
}
