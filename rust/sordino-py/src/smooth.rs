//! Features of points, their sums, and queries of them.

use crate::error::PyError;
use crate::guarded::{Guarded, Shared};
use crate::interrupt::detached;
use crate::names;
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use sordino_core::error::Error;
use sordino_core::smooth::{self, Axis, Cells, Chebyshev, Cube, Declared, FeatureMap, IndexSet, Kernel};
use std::sync::Arc;

/// How declared queries are read off their whitened features.
struct Decoding {
    matrix: Vec<f64>,
    lost: Vec<f64>,
    whitening: Vec<f64>,
}

/// Bounds and features of points.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct PointFeatures {
    pub core: Arc<smooth::Features>,
    decoding: Option<Decoding>,
}

type Bounds = Vec<(f64, f64)>;

fn features(bounds: Bounds, map: Box<dyn FeatureMap>, points: u64) -> Result<PointFeatures, Error> {
    let core = Arc::new(smooth::Features::new(Cube::new(bounds)?, map, points)?);
    Ok(PointFeatures { core, decoding: None })
}

#[pymethods]
impl PointFeatures {
    /// Tensor Chebyshev polynomials below `degrees`, or those of the index set, shape (count, d).
    #[staticmethod]
    #[pyo3(signature = (bounds, degrees, points, indices=None))]
    fn chebyshev(
        py: Python<'_>,
        bounds: Bounds,
        degrees: Vec<usize>,
        points: u64,
        indices: Option<PyReadonlyArray2<'_, u32>>,
    ) -> PyResult<Self> {
        let listed = indices.as_ref().map(|indices| Ok::<_, PyErr>((indices.as_array().ncols(), indices.as_slice()?)));
        let listed = listed.transpose()?;
        let made = detached(py, || {
            let set = match listed {
                Some((dimension, indices)) => IndexSet::listed(dimension, indices)?,
                None => IndexSet::tensor(degrees)?,
            };
            let axes = set.sizes().iter().map(|size| Axis::chebyshev(*size)).collect::<Result<_, _>>()?;
            features(bounds, Box::new(Chebyshev::new(axes, set, points)?), points)
        });
        Ok(made.map_err(PyError::from)?)
    }

    /// Features of a product kernel: `mixings[j]` of shape (features, polynomials) on axis j.
    #[staticmethod]
    fn kernel(py: Python<'_>, bounds: Bounds, mixings: Vec<PyReadonlyArray2<'_, f64>>, points: u64) -> PyResult<Self> {
        let mixings: Vec<(usize, Vec<f64>)> = mixings
            .iter()
            .map(|mixing| Ok((mixing.as_array().ncols(), mixing.as_slice()?.to_vec())))
            .collect::<PyResult<_>>()?;
        let made = detached(py, || {
            let mut axes: Vec<Axis> = Vec::new();
            for (j, (degree, entries)) in mixings.iter().enumerate() {
                // Equal axes are certified once.
                let axis = match mixings[..j].iter().position(|earlier| *earlier == mixings[j]) {
                    Some(earlier) => axes[earlier].clone(),
                    None => Axis::mixed(*degree, entries.clone())?,
                };
                axes.push(axis);
            }
            let set = IndexSet::tensor(axes.iter().map(Axis::features).collect())?;
            features(bounds, Box::new(Chebyshev::new(axes, set, points)?), points)
        });
        Ok(made.map_err(PyError::from)?)
    }

    /// Cells of equal size.
    #[staticmethod]
    fn cells(bounds: Bounds, counts: Vec<usize>, points: u64) -> Result<Self, PyError> {
        Ok(features(bounds, Box::new(Cells::new(counts)?), points)?)
    }

    /// Declared queries: centres of shape (queries·each, d) in units of the cube, weights of shape (queries, each); the
    /// whitening, shape (features, queries), if it was made elsewhere.
    #[staticmethod]
    #[pyo3(signature = (bounds, profile, scales, centres, weights, tolerance, points, whitening=None))]
    #[allow(clippy::too_many_arguments)] // the public facts of declared queries, once
    fn declared(
        py: Python<'_>,
        bounds: Bounds,
        profile: names::KernelProfile,
        scales: Vec<f64>,
        centres: PyReadonlyArray2<'_, f64>,
        weights: PyReadonlyArray2<'_, f64>,
        tolerance: f64,
        points: u64,
        whitening: Option<PyReadonlyArray2<'_, f64>>,
    ) -> PyResult<Self> {
        let whitening = whitening.as_ref().map(PyReadonlyArray2::as_slice).transpose()?.map(<[f64]>::to_vec);
        let queries = weights.as_array().nrows();
        let (centres, weights) = (centres.as_slice()?.to_vec(), weights.as_slice()?.to_vec());
        let made = detached(py, || {
            let kernel = Kernel::new(profile.0, scales)?;
            let map = match whitening {
                Some(matrix) => Declared::with_whitening(kernel, centres, weights, queries, matrix, points)?,
                None => Declared::new(kernel, centres, weights, queries, tolerance, points)?,
            };
            let decoding = Decoding {
                matrix: map.decoding().to_vec(),
                lost: map.lost().to_vec(),
                whitening: map.whitening().to_vec(),
            };
            Ok(Self { decoding: Some(decoding), ..features(bounds, Box::new(map), points)? })
        });
        Ok(made.map_err(|error: Error| PyError::from(error))?)
    }

    /// Number of features.
    #[getter]
    fn features(&self) -> usize {
        self.core.map.features()
    }

    /// Features are multiples of `2^-bits`.
    #[getter]
    fn bits(&self) -> u32 {
        self.core.map.bits()
    }

    /// What tells these features from others.
    #[getter]
    fn mark(&self) -> u64 {
        self.core.mark()
    }

    /// Multi-indices in the order of the features, shape (features, d); None without an index set.
    fn indices<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<u32>>>> {
        let Some(set) = self.core.map.index_set() else { return Ok(None) };
        let indices = detached(py, || set.indices());
        Ok(Some(indices.into_pyarray(py).reshape([set.len(), set.sizes().len()])?))
    }

    /// Matrix from features to declared queries, shape (queries, features), and what each loses, shape (queries,).
    #[allow(clippy::type_complexity)] // two arrays
    fn decoding<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Option<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray1<f64>>)>> {
        let Some(decoding) = &self.decoding else { return Ok(None) };
        let shape = [decoding.lost.len(), self.core.map.features()];
        let matrix = PyArray1::from_slice(py, &decoding.matrix).reshape(shape)?;
        Ok(Some((matrix, PyArray1::from_slice(py, &decoding.lost))))
    }

    /// Matrix from declared queries to features, shape (features, queries).
    fn whitening<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyArray2<f64>>>> {
        let Some(decoding) = &self.decoding else { return Ok(None) };
        let shape = [self.core.map.features(), decoding.lost.len()];
        Ok(Some(PyArray1::from_slice(py, &decoding.whitening).reshape(shape)?))
    }

    /// `Σ_m values_m Π_j axes[j][q, m_j]` for queries q; axes of shape (queries, size).
    fn contract<'py>(
        &self,
        py: Python<'py>,
        values: PyReadonlyArray1<'py, f64>,
        axes: Vec<PyReadonlyArray2<'py, f64>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let set = self.core.map.index_set();
        let set = set.ok_or_else(|| PyError::from(Error::Unsupported("these features have no index set".into())))?;
        let queries = axes.first().map_or(0, |axis| axis.as_array().nrows());
        let values = values.as_slice()?;
        let axes = axes.iter().map(PyReadonlyArray2::as_slice).collect::<Result<Vec<_>, _>>()?;
        let answers = detached(py, || smooth::contract(set, values, &axes, queries)).map_err(PyError::from)?;
        Ok(answers.into_pyarray(py))
    }
}

/// Sums over points that grow and merge; as private as the points.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct PointSums(pub Guarded<smooth::PointSums>);

impl Shared for smooth::PointSums {}

#[pymethods]
impl PointSums {
    #[new]
    fn new(features: PyRef<'_, PointFeatures>) -> Self {
        Self(Guarded::new(smooth::PointSums::new(Arc::clone(&features.core))))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, features: PyRef<'_, PointFeatures>, bytes: &[u8]) -> Result<Self, PyError> {
        let features = Arc::clone(&features.core);
        Ok(Self(Guarded::new(detached(py, || smooth::PointSums::from_bytes(features, bytes))?)))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyBytes>, PyError> {
        Ok(PyBytes::new(py, &self.0.with(py, |sums| sums.to_bytes())?))
    }

    /// Number of points: private where points may be added or removed.
    #[getter]
    fn count(&self, py: Python<'_>) -> Result<u64, PyError> {
        self.0.briefly(py, |sums| sums.count())
    }

    /// Adds points of shape (n, d).
    fn add(&self, py: Python<'_>, points: PyReadonlyArray2<'_, f64>) -> PyResult<()> {
        let points = points.as_slice()?;
        Ok(self.0.with(py, |sums| sums.add(points))?.map_err(PyError::from)?)
    }

    /// Adds other sums, which stay as they are.
    fn merge(&self, py: Python<'_>, other: PyRef<'_, Self>) -> PyResult<()> {
        // A copy, so that two that are added to each other at once never wait for one another.
        let copy = other.0.with(py, |sums| sums.clone())?;
        Ok(self.0.with(py, |sums| sums.merge(&copy))?.map_err(PyError::from)?)
    }

    fn copy(&self, py: Python<'_>) -> Result<Self, PyError> {
        Ok(Self(Guarded::new(self.0.with(py, |sums| sums.clone())?)))
    }

    /// The sums, in units of `2^-bits`, and the number of points: private.
    fn sums<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<i64>>, PyError> {
        Ok(self.0.with(py, |sums| sums.sums().clamped(i64::MAX).collect::<Vec<_>>())?.into_pyarray(py))
    }
}
