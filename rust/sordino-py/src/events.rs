//! Streams of events: what turns events into changes of counters, counters that are read by coordinate, segments.

use crate::error::PyError;
use crate::guarded::{Guarded, Shared};
use crate::interrupt::detached;
use crate::names;
use crate::stream::{StreamDoor, StreamPlan};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sordino_core::error::Error;
use sordino_core::{door, events, stream};
use std::sync::Arc;
use zeroize::Zeroize;

type Integers<'py> = PyReadonlyArray1<'py, i64>;
type Ends<'py> = PyReadonlyArray1<'py, u64>;

/// What turns events into changes of counters, and the changes that it made last: the same step is not taken in twice,
/// however often an exception came between it and the counters.
struct Encoder<T> {
    events: T,
    /// First step of the last batch, and its rows.
    last: (u64, Vec<i64>),
}

impl<T> Encoder<T> {
    fn new(events: T) -> Guarded<Self>
    where
        Self: Shared,
    {
        Guarded::new(Self { events, last: (0, Vec::new()) })
    }

    /// Rows of the steps from `first`: made now, or when these steps were taken in.
    fn rows(
        &mut self,
        first: u64,
        len: usize,
        encode: impl FnOnce(&mut T, &mut [i64]) -> Result<(), Error>,
    ) -> Result<Vec<i64>, Error> {
        if len == 0 || self.last.0 != first || self.last.1.len() != len {
            let mut rows = vec![0; len];
            encode(&mut self.events, &mut rows)?;
            self.last.1.zeroize();
            self.last = (first, rows);
        }
        Ok(self.last.1.clone())
    }
}

macro_rules! shared {
    ($($events:ty),*) => {$(
        impl Shared for Encoder<$events> {
            fn wipe(&mut self) {
                self.events.wipe();
                self.last.1.zeroize();
            }
        }
    )*};
}

shared!(events::GraphEvents, events::SpanningForest, events::Text);

impl Shared for stream::LazyStream {
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

/// Segments, and what the last items made of them: the same items at the same step are not counted twice, however often
/// an exception came between the two.
struct Segmented {
    above: door::AboveThreshold,
    step: u64,
    last: (Vec<i64>, Vec<u64>, Vec<i64>),
}

impl Segmented {
    /// Adds the items of the steps from `first`, or finds what they made when they were added.
    fn push(&mut self, first: u64, items: &[i64]) -> Result<(Vec<u64>, Vec<i64>), Error> {
        let (known, places, counts) = &self.last;
        if first == self.step {
            let (mut places, mut counts) = (Vec::new(), Vec::new());
            self.above.push_all(items, &mut places, &mut counts)?;
            self.last.0.zeroize();
            self.last.2.zeroize();
            self.last = (items.to_vec(), places.clone(), counts.clone());
            self.step += items.len() as u64;
            return Ok((places, counts));
        }
        if first + known.len() as u64 == self.step && known == items {
            return Ok((places.clone(), counts.clone()));
        }
        Err(Error::Pending)
    }

    /// How many steps were added last, and what they made, if they began at `first`.
    fn held(&self, first: u64) -> Option<(u64, Vec<u64>, Vec<i64>)> {
        let (items, places, counts) = &self.last;
        let steps = items.len() as u64;
        (steps > 0 && first + steps == self.step).then(|| (steps, places.clone(), counts.clone()))
    }
}

impl Shared for Segmented {
    fn step(&self) -> u64 {
        self.step
    }

    fn wipe(&mut self) {
        self.above.close();
        self.last.0.zeroize();
        self.last.2.zeroize();
    }
}

fn ends(ends: &Ends<'_>) -> PyResult<Vec<usize>> {
    Ok(ends.as_slice()?.iter().map(|end| *end as usize).collect())
}

fn ends_together(one: usize, other: usize) -> Result<(), Error> {
    if one == other { Ok(()) } else { Err(Error::Shape { name: "target", expected: one, got: other }) }
}

/// What edges add to a function of a growing graph.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct GraphEvents(Guarded<Encoder<events::GraphEvents>>);

#[pymethods]
impl GraphEvents {
    #[new]
    fn new(function: names::GraphFunction, vertices: u32, max_degree: Option<u32>, k: u32) -> Result<Self, PyError> {
        Ok(Self(Encoder::new(events::GraphEvents::new(function.0(k), vertices, max_degree)?)))
    }

    /// What the edges of every step from `first` change, row by row: private.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        source: Integers<'py>,
        target: Integers<'py>,
        ends: Ends<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (u, v, ends) = (source.as_slice()?, target.as_slice()?, self::ends(&ends)?);
        ends_together(u.len(), v.len()).map_err(PyError::from)?;
        let rows = self.0.open(py, |encoder| {
            let len = ends.len() * encoder.events.width();
            encoder.rows(first, len, |graph, rows| graph.rows(u, v, &ends, rows))
        });
        Ok(rows?.map_err(PyError::from)?.into_pyarray(py))
    }

    /// Memory in use, about.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> Result<usize, PyError> {
        self.0.with(py, |counted| counted.events.bytes())
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// What weighted edges add to the cost of a minimum spanning forest.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct SpanningForest(Guarded<Encoder<events::SpanningForest>>);

#[pymethods]
impl SpanningForest {
    #[new]
    fn new(vertices: u32, max_weight: u64) -> Result<Self, PyError> {
        Ok(Self(Encoder::new(events::SpanningForest::new(vertices, max_weight)?)))
    }

    /// What the edges of every step from `first` change: private.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        source: Integers<'py>,
        target: Integers<'py>,
        weights: Integers<'py>,
        ends: Ends<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (u, v, w, ends) = (source.as_slice()?, target.as_slice()?, weights.as_slice()?, self::ends(&ends)?);
        ends_together(u.len(), v.len()).and_then(|()| ends_together(u.len(), w.len())).map_err(PyError::from)?;
        let rows = self
            .0
            .open(py, |encoder| encoder.rows(first, ends.len(), |forest, rows| forest.rows(u, v, w, &ends, rows)));
        Ok(rows?.map_err(PyError::from)?.into_pyarray(py))
    }

    /// Memory in use, about.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> Result<usize, PyError> {
        self.0.with(py, |counted| counted.events.bytes())
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// What letters add to the counts of short words.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Words(Guarded<Encoder<events::Text>>);

#[pymethods]
impl Words {
    #[new]
    fn new(kind: names::WordCount, alphabet: u32, longest: u32) -> Result<Self, PyError> {
        Ok(Self(Encoder::new(kind.0(alphabet, longest)?)))
    }

    /// What the letters of every step from `first` add, row by row: private.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        first: u64,
        letters: Integers<'py>,
        ends: Ends<'py>,
    ) -> PyResult<Bound<'py, PyArray1<i64>>> {
        let (letters, ends) = (letters.as_slice()?, self::ends(&ends)?);
        let rows = self.0.open(py, |encoder| {
            let len = ends.len() * encoder.events.width() as usize;
            encoder.rows(first, len, |text, rows| text.rows(letters, &ends, rows))
        });
        Ok(rows?.map_err(PyError::from)?.into_pyarray(py))
    }

    /// Feeds letters to counters that are read by coordinate.
    fn feed(&self, py: Python<'_>, counters: &LazyStream, letters: Integers<'_>, ends: Ends<'_>) -> PyResult<()> {
        let (letters, ends) = (letters.as_slice()?, self::ends(&ends)?);
        let fed = counters.0.with(py, |counters| self.0.nested(|text| text.events.feed(counters, letters, &ends)));
        Ok(fed??.map_err(PyError::from)?)
    }

    /// Memory in use, about.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> Result<usize, PyError> {
        self.0.with(py, |counted| counted.events.bytes())
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// Open running sums that are read by coordinate.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct LazyStream(Guarded<stream::LazyStream>);

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
        Ok(Self(Guarded::new(stream::LazyStream::open(Arc::clone(&plan.0), door.0, dim, key)?)))
    }

    #[getter]
    fn step(&self) -> u64 {
        self.0.step()
    }

    #[getter]
    fn closed(&self) -> bool {
        self.0.closed()
    }

    #[getter]
    fn bytes(&self, py: Python<'_>) -> Result<usize, PyError> {
        self.0.with(py, |counted| counted.bytes())
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
        Ok(self.0.with(py, |counters| counters.advance_single(coordinates, amounts, &ends))?.map_err(PyError::from)?)
    }

    /// Takes a fresh key for the noise of all steps from here on.
    fn rekey(&self, py: Python<'_>) -> Result<(), PyError> {
        Ok(self.0.with(py, stream::LazyStream::rekey)??)
    }

    /// The keys, sealed.
    fn sealed<'py>(&self, py: Python<'py>, key: [u8; 32], place: &[u8]) -> Result<Bound<'py, PyBytes>, PyError> {
        Ok(PyBytes::new(py, &self.0.with(py, |counters| counters.sealed(&key, place))??))
    }

    #[staticmethod]
    fn unsealed(
        py: Python<'_>,
        plan: PyRef<'_, StreamPlan>,
        door: PyRef<'_, StreamDoor>,
        dim: u64,
        key: [u8; 32],
        place: &[u8],
        sealed: &[u8],
    ) -> Result<Self, PyError> {
        let (plan, door) = (Arc::clone(&plan.0), door.0);
        let stream = detached(py, || stream::LazyStream::unsealed(plan, door, dim, &key, place, sealed))?;
        Ok(Self(Guarded::new(stream)))
    }

    /// The noisy sums of these coordinates.
    fn read<'py>(
        &self,
        py: Python<'py>,
        coordinates: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let coordinates = coordinates.as_slice()?;
        let mut out = vec![0.0; coordinates.len()];
        self.0.with(py, |counters| counters.read(coordinates, &mut out))?.map_err(PyError::from)?;
        Ok(out.into_pyarray(py))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// Where segments end, and their private counts.
type Segments<'py> = (Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);
/// The same with the number of steps before them.
type Held<'py> = (u64, Bound<'py, PyArray1<u64>>, Bound<'py, PyArray1<i64>>);

/// Segments of a stream that end when a noisy count comes above a noisy threshold.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct AboveThreshold(Guarded<Segmented>);

#[pymethods]
impl AboveThreshold {
    #[new]
    #[pyo3(signature = (threshold, sensitivity, epsilon, key=None))]
    fn new(threshold: u64, sensitivity: u64, epsilon: f64, key: Option<[u8; 32]>) -> Result<Self, PyError> {
        let above = door::AboveThreshold::open(threshold, sensitivity, epsilon, key)?;
        Ok(Self(Guarded::new(Segmented { above, step: 0, last: Default::default() })))
    }

    #[getter]
    fn scale(&self, py: Python<'_>) -> Result<f64, PyError> {
        self.0.briefly(py, |segmented| segmented.above.scale())
    }

    /// Steps so far.
    #[getter]
    fn step(&self) -> u64 {
        self.0.step()
    }

    /// Items of the steps from `first` at which segments end (public), and the exact counts of those segments (private).
    /// The same items at the same steps make the same segments again.
    fn push<'py>(&self, py: Python<'py>, first: u64, items: Integers<'py>) -> PyResult<Segments<'py>> {
        let items = items.as_slice()?;
        let (places, counts) = self.0.with(py, |segmented| segmented.push(first, items))?.map_err(PyError::from)?;
        Ok((places.into_pyarray(py), counts.into_pyarray(py)))
    }

    /// Noise and the running segment, sealed.
    fn sealed<'py>(&self, py: Python<'py>, key: [u8; 32], place: &[u8]) -> Result<Bound<'py, PyBytes>, PyError> {
        Ok(PyBytes::new(py, &self.0.with(py, |segmented| segmented.above.sealed(&key, place))??))
    }

    /// Goes on from what was sealed after so many steps.
    fn go_on(&self, py: Python<'_>, key: [u8; 32], place: &[u8], sealed: &[u8], step: u64) -> Result<(), PyError> {
        self.0.with(py, |segmented| {
            segmented.above.go_on(&key, place, sealed)?;
            segmented.step = step;
            Ok::<_, Error>(())
        })??;
        Ok(())
    }

    /// Steps, ends and counts of the items taken in last, if those were the steps from `first`.
    fn held<'py>(&self, py: Python<'py>, first: u64) -> Result<Option<Held<'py>>, PyError> {
        let held = self.0.with(py, |segmented| segmented.held(first))?;
        Ok(held.map(|(steps, places, counts)| (steps, places.into_pyarray(py), counts.into_pyarray(py))))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}
