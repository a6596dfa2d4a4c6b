//! Streams: plans, doors, open streams.

use crate::error::PyError;
use crate::guarded::{Guarded, Shared};
use crate::interrupt::detached;
use crate::names::{self, Lasting, NoiseLaw};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sordino_core::domain::Domain;
use sordino_core::door;
use sordino_core::door::Key;
use sordino_core::error::Error;
use sordino_core::interrupt;
use sordino_core::stream::{self, Horizon, Items, Participation, StreamRecipe};
use std::ops::ControlFlow;
use std::sync::Arc;
use zeroize::Zeroize;

/// A built mechanism for a stream.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct StreamPlan(pub Arc<stream::StreamPlan>);

/// What one protected unit changes: count (0: an exchange), weight, separation, and of an item: squared norm, l1 norm,
/// coordinates; the Euclidean norm of records that are vectors, whose square may be four times as large.
type Pattern = (u64, u32, u64, u128, u64, u64, Option<f64>);

fn pattern((count, weight, separation, squared, l1, touched, norm): Pattern) -> Result<Participation, Error> {
    let pattern = Participation::new(count.max(1), weight, separation)?;
    let pattern = match norm {
        Some(norm) => pattern.with_vectors(norm, touched, squared > 1)?,
        None => pattern.with_items(squared, l1, touched)?,
    };
    Ok(if count == 0 { pattern.exchanged() } else { pattern })
}

fn patterns(patterns: Vec<Pattern>) -> Result<Vec<Participation>, Error> {
    patterns.into_iter().map(pattern).collect()
}

#[pymethods]
impl StreamPlan {
    #[new]
    #[pyo3(signature = (filter, parameters, mechanism, law, horizon, length, objective, degree=None, participations=(1, 1)))]
    #[allow(clippy::too_many_arguments)] // the recipe, once
    fn new(
        py: Python<'_>,
        filter: names::FilterKind,
        parameters: Vec<f64>,
        mechanism: names::StreamMechanism,
        law: NoiseLaw,
        horizon: names::Horizon,
        length: u64,
        objective: names::Objective,
        degree: Option<u32>,
        participations: (u64, u64),
    ) -> PyResult<Self> {
        let recipe = StreamRecipe {
            filter: filter.0(&parameters)
                .ok_or_else(|| PyError::from(Error::Unsupported("the filter has other parameters".into())))?,
            mechanism: mechanism.0(degree),
            law: law.0,
            horizon: match horizon.0 {
                Lasting::Hard => Horizon::Hard(length),
                Lasting::Soft => Horizon::Soft(length),
                Lasting::Unbounded => Horizon::Unbounded,
            },
            objective: objective.0,
            participations,
        };
        let mut interrupted = None;
        #[allow(clippy::redundant_closure_for_method_calls)] // the method alone is not general enough in its lifetime
        let plan = detached(py, || {
            stream::StreamPlan::with_progress(recipe, &mut |_, _| match Python::attach(|py| py.check_signals()) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    interrupted = Some(error);
                    ControlFlow::Break(())
                }
            })
        });
        match interrupted {
            Some(error) => Err(error),
            None => Ok(Self(Arc::new(plan.map_err(PyError::from)?))),
        }
    }

    #[getter]
    fn steps(&self) -> u64 {
        self.0.steps()
    }

    #[getter]
    fn state_bytes(&self) -> u64 {
        self.0.state_bytes()
    }

    #[getter]
    fn operations(&self) -> f64 {
        self.0.operations()
    }

    /// Whether no product of two columns of the strategy is negative.
    #[getter]
    fn no_negative_products(&self) -> bool {
        self.0.no_negative_products()
    }

    /// Whether products of columns never grow with their distance.
    #[getter]
    fn falling_products(&self) -> bool {
        self.0.falling_products()
    }

    /// Operations that reading one coordinate takes, where nothing is computed before it is read.
    fn read_operations(&self, step: u64) -> f64 {
        self.0.read_operations(step)
    }

    /// Steps at which the variance of a sum may be largest, where few of very many are.
    fn worst_steps<'py>(&self, py: Python<'py>, steps: u64) -> Bound<'py, PyArray1<u64>> {
        self.0.worst_steps(steps).into_pyarray(py)
    }

    /// SHA-256 of the numbers that the noise depends on besides the recipe.
    fn parameters<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &py.detach(|| self.0.parameters()))
    }

    /// Of patterns that concern different coordinates, together.
    fn sensitivity(&self, patterns: Vec<Pattern>) -> Result<f64, PyError> {
        Ok(self.0.sensitivity(&self::patterns(patterns)?).get())
    }

    fn variances<'py>(
        &self,
        py: Python<'py>,
        steps: PyReadonlyArray1<'py, u64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let steps = steps.as_slice()?;
        Ok(detached(py, || self.0.variances(steps)).map_err(PyError::from)?.into_pyarray(py))
    }

    /// Fits lattice and noise; with noise in common, of a ratio to that of each of so many coordinates.
    #[pyo3(signature = (patterns, max_value, fraction_bits, noise_ratio, common=None))]
    fn fit(
        &self,
        py: Python<'_>,
        patterns: Vec<Pattern>,
        max_value: u64,
        fraction_bits: u32,
        noise_ratio: f64,
        common: Option<(f64, u64)>,
    ) -> Result<StreamDoor, PyError> {
        let mut patterns = self::patterns(patterns)?;
        if let Some((ratio, dim)) = common {
            patterns = patterns.into_iter().map(|p| p.with_common(ratio, dim)).collect::<Result<_, _>>()?;
        }
        let domain = Domain::real(max_value, fraction_bits)?;
        Ok(StreamDoor(detached(py, || self.0.fit(&patterns, domain, noise_ratio))?))
    }
}

/// A fitted lattice and noise for a stream.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct StreamDoor(pub door::StreamDoor);

#[pymethods]
impl StreamDoor {
    #[getter]
    fn grid(&self) -> i16 {
        self.0.grid()
    }

    #[getter]
    fn quarter_units(&self) -> u64 {
        self.0.quarter_units()
    }

    /// Ideal sensitivity, and what encoding and rounding add, in units of the items.
    #[getter]
    fn sensitivity(&self) -> (f64, f64, f64) {
        let s = self.0.sensitivity();
        let step = 2f64.powi(-(self.0.domain().fraction_bits() as i32));
        (s.ideal.get() * step, s.encoding.get() * step, s.rounding.get() * step)
    }

    #[getter]
    fn noise(&self) -> f64 {
        self.0.noise()
    }

    /// What the privacy rests on: Gaussian standard deviation, or Laplace scale.
    #[getter]
    fn scale(&self) -> f64 {
        self.0.scale()
    }

    /// Noise that all coordinates of a step have in common, over that of each.
    #[getter]
    fn common(&self) -> Option<f64> {
        self.0.common().map(|(ratio, _)| ratio)
    }

    /// Step and rate of discrete noise, if it is.
    #[getter]
    fn discrete(&self) -> Option<(f64, f64)> {
        self.0.discrete()
    }
}

/// One item of one coordinate.
#[derive(FromPyObject)]
pub(crate) enum Item {
    Integer(i64),
    Real(f64),
}

/// Items of a batch, row by row.
#[derive(FromPyObject)]
pub(crate) enum Batch<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Reals(PyReadonlyArray1<'py, f64>),
}

impl Batch<'_> {
    fn items(&self) -> PyResult<Items<'_>> {
        Ok(match self {
            Self::Integers(items) => Items::Integers(items.as_slice()?),
            Self::Reals(items) => Items::Reals(items.as_slice()?),
        })
    }
}

/// First step, name, answers, and the lattice increments they are made of.
type Prepared<'py> = (u64, Option<String>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<i64>>);

/// An open stream.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Stream(Guarded<Open>);

/// A stream, and the update that it has made and nobody has stored: it stays here until it is, so that an exception
/// between the core and the store loses nothing.
struct Open {
    stream: stream::Stream,
    held: Option<Held>,
}

/// An update that is not stored yet: shown to nobody.
#[derive(Clone)]
struct Held {
    first: u64,
    name: Option<String>,
    values: Vec<f64>,
    units: Vec<i64>,
}

impl Open {
    /// Refuses what would come after an update that is not stored.
    fn settled(&mut self) -> Result<&mut stream::Stream, Error> {
        if self.held.is_some() { Err(Error::Pending) } else { Ok(&mut self.stream) }
    }
}

/// Numbers that are published between two questions whether to go on.
const PART: usize = 1 << 14;

/// Publishes a batch; if it is interrupted between two parts, those before are published: their number of entries.
///
/// # Errors
/// As the stream's `update`, with nothing published; or [`Error::Interrupted`] before the first part.
fn publish(
    stream: &mut stream::Stream,
    items: Items<'_>,
    values: &mut [f64],
    units: Option<&mut [i64]>,
    whole: bool,
) -> Result<usize, Error> {
    let part = PART.div_ceil(stream.dim()) * stream.dim();
    if whole || items.len() <= part {
        stream.update(items, values, units)?;
        return Ok(items.len());
    }
    // A copy: a handler, or another thread, may write to the caller's between two parts.
    match items {
        Items::Integers(items) => {
            let mut kept = items.to_vec();
            let done = publish_parts(stream, Items::Integers(&kept), values, units, part);
            kept.zeroize();
            done
        }
        Items::Reals(items) => {
            let mut kept = items.to_vec();
            let done = publish_parts(stream, Items::Reals(&kept), values, units, part);
            kept.zeroize();
            done
        }
    }
}

fn publish_parts(
    stream: &mut stream::Stream,
    items: Items<'_>,
    values: &mut [f64],
    mut units: Option<&mut [i64]>,
    part: usize,
) -> Result<usize, Error> {
    let len = stream.check(items)? * stream.dim();
    let mut done = 0;
    while done < len {
        if let Err(stop) = interrupt::poll() {
            return if done == 0 { Err(stop) } else { Ok(done) };
        }
        let next = (done + part).min(len);
        let items = match items {
            Items::Integers(items) => Items::Integers(&items[done..next]),
            Items::Reals(items) => Items::Reals(&items[done..next]),
        };
        let units = units.as_mut().map(|units| &mut units[done..next]);
        stream.update(items, &mut values[done..next], units)?;
        done = next;
    }
    Ok(done)
}

impl Shared for Open {
    fn step(&self) -> u64 {
        self.held.as_ref().map_or(self.stream.step(), |held| held.first)
    }

    fn closed(&self) -> bool {
        self.stream.closed()
    }

    fn wipe(&mut self) {
        self.stream.close();
        self.held = None;
    }
}

#[pymethods]
impl Stream {
    #[new]
    #[pyo3(signature = (plan, door, dim, key=None))]
    fn new(
        plan: PyRef<'_, StreamPlan>,
        door: PyRef<'_, StreamDoor>,
        dim: usize,
        key: Option<[u8; 32]>,
    ) -> Result<Self, PyError> {
        let plan = Arc::clone(&plan.0);
        let stream = match key {
            Some(bytes) => stream::Stream::open_with(plan, door.0, dim, Key::deterministic(bytes))?,
            None => stream::Stream::open(plan, door.0, dim)?,
        };
        Ok(Self(Guarded::new(Open { stream, held: None })))
    }

    #[staticmethod]
    fn restore(
        plan: PyRef<'_, StreamPlan>,
        door: PyRef<'_, StreamDoor>,
        dim: usize,
        key: [u8; 32],
        checkpoint: &[u8],
    ) -> Result<Self, PyError> {
        let stream = stream::Stream::restore(Arc::clone(&plan.0), door.0, dim, &key, checkpoint)?;
        Ok(Self(Guarded::new(Open { stream, held: None })))
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
        self.0.with(py, |open| open.stream.bytes())
    }

    fn answers<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<f64>>, PyError> {
        Ok(self.0.briefly(py, |open| open.stream.answers().to_vec())?.into_pyarray(py))
    }

    /// Publishes one item of one coordinate.
    fn update_one(&self, py: Python<'_>, item: Item) -> Result<f64, PyError> {
        let mut value = [0.0];
        self.0.briefly(py, |open| {
            let items: Items<'_> = match &item {
                Item::Integer(x) => Items::Integers(std::slice::from_ref(x)),
                Item::Real(x) => Items::Reals(std::slice::from_ref(x)),
            };
            open.settled()?.update(items, &mut value, None)
        })??;
        Ok(value[0])
    }

    /// Publishes a batch; unless it is to be taken as a whole, a signal may end it between two steps.
    fn update<'py>(&self, py: Python<'py>, items: Batch<'py>, whole: bool) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let items = items.items()?;
        let mut values = vec![0.0; items.len()];
        let done = self.0.with(py, |open| publish(open.settled()?, items, &mut values, None, whole))?;
        if done.map_err(PyError::from)? < items.len() {
            return Err(PyError::from(Error::Interrupted).into());
        }
        Ok(values.into_pyarray(py))
    }

    /// Publishes a batch that nobody sees before it is stored: until `commit`, `held` returns it, and nothing follows.
    /// What a signal ends between two steps is held as far as it came.
    #[pyo3(signature = (items, name=None, whole=false))]
    fn prepare(&self, py: Python<'_>, items: Batch<'_>, name: Option<String>, whole: bool) -> PyResult<()> {
        let items = items.items()?;
        let prepared = self.0.with(py, |open| {
            let (mut values, mut units) = (vec![0.0; items.len()], vec![0; items.len()]);
            let first = open.stream.step();
            let done = publish(open.settled()?, items, &mut values, Some(&mut units), whole)?;
            values.truncate(done);
            units.truncate(done);
            open.held = Some(Held { first, name, values, units });
            if done < items.len() { Err(Error::Interrupted) } else { Ok(()) }
        });
        Ok(prepared?.map_err(PyError::from)?)
    }

    /// The batch that is not stored yet: first step, name, answers, lattice increments.
    fn held<'py>(&self, py: Python<'py>) -> Result<Option<Prepared<'py>>, PyError> {
        let held = self.0.briefly(py, |open| open.held.clone())?;
        Ok(held.map(|held| (held.first, held.name, held.values.into_pyarray(py), held.units.into_pyarray(py))))
    }

    /// Says that it is stored; once more changes nothing.
    fn commit(&self, py: Python<'_>) -> Result<(), PyError> {
        self.0.briefly(py, |open| open.held = None)
    }

    /// Answers again, or nothing if other increments were published for these steps.
    fn replay<'py>(
        &self,
        py: Python<'py>,
        items: Batch<'py>,
        published: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let (items, published) = (items.items()?, published.as_slice()?);
        let mut values = vec![0.0; items.len()];
        let equal =
            self.0.with(py, |open| open.settled()?.replay(items, &mut values, published))?.map_err(PyError::from)?;
        Ok(equal.then(|| values.into_pyarray(py)))
    }

    /// Goes on to the end of steps that were published when the state was elsewhere.
    fn skip(&self, py: Python<'_>, published: PyReadonlyArray1<'_, i64>) -> PyResult<()> {
        let published = published.as_slice()?;
        Ok(self.0.with(py, |open| open.settled()?.skip(published))?.map_err(PyError::from)?)
    }

    /// Takes a fresh key for all samples from here on.
    fn rekey(&self, py: Python<'_>) -> Result<(), PyError> {
        Ok(self.0.briefly(py, |open| open.settled()?.rekey())??)
    }

    /// The key, sealed.
    fn sealed_key<'py>(&self, py: Python<'py>, key: [u8; 32], place: &[u8]) -> Result<Bound<'py, PyBytes>, PyError> {
        Ok(PyBytes::new(py, &self.0.briefly(py, |open| open.settled()?.sealed_key(&key, place))??))
    }

    /// Takes a sealed key for all samples from here on.
    fn take_key(&self, py: Python<'_>, key: [u8; 32], place: &[u8], sealed: &[u8]) -> Result<(), PyError> {
        Ok(self.0.briefly(py, |open| open.settled()?.take_key(&key, place, sealed))??)
    }

    /// The state, sealed; behind a batch that waits to be stored only if that is said.
    #[pyo3(signature = (key, header, held=false))]
    fn checkpoint<'py>(
        &self,
        py: Python<'py>,
        key: [u8; 32],
        header: &[u8],
        held: bool,
    ) -> Result<Bound<'py, PyBytes>, PyError> {
        let sealed = self.0.with(py, |open| {
            let stream = if held { &mut open.stream } else { open.settled()? };
            stream.checkpoint(&key, header)
        });
        Ok(PyBytes::new(py, &sealed??))
    }

    fn close(&self, py: Python<'_>) {
        self.0.close(py);
    }
}

/// The public header of a checkpoint.
#[pyfunction]
pub(crate) fn checkpoint_header<'py>(py: Python<'py>, checkpoint: &[u8]) -> Result<Bound<'py, PyBytes>, PyError> {
    Ok(PyBytes::new(py, stream::header(checkpoint)?))
}

/// Vectors of records, a row each.
#[derive(FromPyObject)]
pub(crate) enum Records<'py> {
    Doubles(PyReadonlyArray2<'py, f64>),
    Singles(PyReadonlyArray2<'py, f32>),
}

/// Rows clipped to a Euclidean norm, and added up.
#[pyfunction]
pub(crate) fn clipped_sum<'py>(
    py: Python<'py>,
    records: Records<'py>,
    clip_norm: f64,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let sums = match &records {
        Records::Doubles(rows) => {
            let (dim, rows) = (rows.shape()[1], rows.as_slice()?);
            detached(py, || stream::clipped_sum(rows, dim, clip_norm))
        }
        Records::Singles(rows) => {
            let (dim, rows) = (rows.shape()[1], rows.as_slice()?);
            detached(py, || stream::clipped_sum(rows, dim, clip_norm))
        }
    };
    Ok(sums.map_err(PyError::from)?.into_pyarray(py))
}
