//! Strategies, their answers and variances.

use crate::door::{Door, Measured};
use crate::door::{UnitParts, unit as door_unit};
use crate::error::PyError;
use crate::interrupt::detached;
use crate::names::{self, NoiseLaw};
use crate::sketch::SketchOperator;
use crate::smooth::PointFeatures;
use crate::workload::Workload;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sordino_core::door;
use sordino_core::error::Error;
use sordino_core::smooth::Weights;
use sordino_core::strategy::{
    self, Boxes, CommonNoise, Compression, Factor, Factorization, Geometry, Pieces, PointSummary, Recipe,
};
use std::sync::Arc;

/// A built strategy and the recipe it came from.
#[pyclass(frozen, module = "sordino._core")]
pub(crate) struct Strategy {
    pub core: Arc<dyn strategy::Strategy>,
    pub input_len: Option<usize>,
    answers_len: usize,
    /// Whether answers are decoded one by one.
    listed: bool,
}

impl Strategy {
    fn of(core: Box<dyn strategy::Strategy>, workload: &Workload) -> Self {
        let workload = &workload.0;
        Self {
            core: Arc::from(core),
            input_len: workload.input_len(),
            answers_len: workload.answers_len(),
            listed: workload.is_listed(),
        }
    }

    /// Of so many cells and answers.
    pub(crate) fn of_sizes(core: Box<dyn strategy::Strategy>, cells: usize, answers: usize) -> Self {
        Self { core: Arc::from(core), input_len: Some(cells), answers_len: answers, listed: true }
    }

    /// Room for the answers.
    fn answers(&self) -> Result<Vec<f64>, PyError> {
        if self.listed {
            return Ok(vec![0.0; self.answers_len]);
        }
        Err(Error::Unsupported("more than 2^26 answers are not listed: use release.sum or release.answer".into())
            .into())
    }
}

/// Weights of the features of points.
#[derive(FromPyObject)]
enum PointWeights<'py> {
    Listed(PyReadonlyArray1<'py, f64>),
    Product(Vec<Vec<f64>>),
}

#[pymethods]
impl Strategy {
    #[new]
    #[pyo3(signature = (workload, mechanism, law, branching=2))]
    fn new(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        mechanism: names::Mechanism,
        law: NoiseLaw,
        branching: usize,
    ) -> Result<Self, PyError> {
        let recipe = Recipe { workload: workload.0.clone(), mechanism: mechanism.0(branching), law: law.0 };
        let core = detached(py, || recipe.build())?;
        Ok(Self::of(core, &workload))
    }

    /// A strategy given as matrices, shape (measured, cells): their Kronecker product is measured. With `blocks`
    /// noise has a norm on consecutive rows, with `body` that of the hull of the columns. With `whole` whole numbers are
    /// measured of whole counts.
    #[staticmethod]
    #[pyo3(signature = (workload, factors, law, blocks=None, body=false, whole=false))]
    fn factored(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        factors: Vec<PyReadonlyArray2<'_, f64>>,
        law: NoiseLaw,
        blocks: Option<Vec<u32>>,
        body: bool,
        whole: bool,
    ) -> PyResult<Self> {
        let factors = factors
            .iter()
            .map(|factor| {
                let (rows, columns) = factor.as_array().dim();
                Ok(Factor { rows, columns, entries: factor.as_slice()?.to_vec() })
            })
            .collect::<PyResult<_>>()?;
        let pieces = match blocks {
            Some(blocks) => Pieces::Blocks(blocks),
            None if body => Pieces::Body,
            None => Pieces::Coordinates(law.0),
        };
        let recipe = Factorization { workload: workload.0.clone(), factors, pieces, whole };
        let core = detached(py, || recipe.build()).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// The balanced root of a union of ranges, running sums, cells and a few others, weighted by part.
    #[staticmethod]
    fn balanced_union(py: Python<'_>, workload: PyRef<'_, Workload>, weights: Vec<f64>) -> PyResult<Self> {
        let core = &workload.0;
        let core = detached(py, || strategy::balanced_union(core, &weights)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// The Fourier mechanism of filters of one series, weighted by part.
    #[staticmethod]
    fn fourier_filters(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        weights: Vec<f64>,
        unit: UnitParts,
    ) -> PyResult<Self> {
        let unit = door_unit(unit).map_err(PyError::from)?;
        let core = &workload.0;
        let core = detached(py, || strategy::fourier_filters(core, &weights, unit)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// Blocks of a few sizes for a union of ranges, intervals, moving and running sums and cells, weighted by part.
    #[staticmethod]
    fn weighted_tree_union(py: Python<'_>, workload: PyRef<'_, Workload>, weights: Vec<f64>) -> PyResult<Self> {
        let core = &workload.0;
        let core = detached(py, || strategy::weighted_tree_union(core, &weights)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// The parts of a union, each measured by its strategy with the best share for the weights of their squared errors, or for
    /// the largest error.
    #[staticmethod]
    fn split(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        strategies: Vec<PyRef<'_, Self>>,
        weights: Vec<f64>,
        unit: UnitParts,
        objective: names::Objective,
    ) -> PyResult<Self> {
        let unit = door_unit(unit).map_err(PyError::from)?;
        let strategies = strategies.iter().map(|part| Arc::clone(&part.core)).collect();
        let core = &workload.0;
        let core =
            detached(py, || strategy::split(core, strategies, &weights, unit, objective.0)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// One of the merged cells of a workload, for all of its cells.
    #[staticmethod]
    fn of_merged_cells(py: Python<'_>, workload: PyRef<'_, Workload>, merged: PyRef<'_, Self>) -> PyResult<Self> {
        let (core, inner) = (&workload.0, Arc::clone(&merged.core));
        let core = detached(py, || strategy::of_merged_cells(core, inner)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// Nested groups and cells along the axes of a product, Gaussian noise, for all that a unit may change.
    #[staticmethod]
    fn nested_product(py: Python<'_>, workload: PyRef<'_, Workload>, unit: UnitParts) -> PyResult<Self> {
        let unit = door_unit(unit).map_err(PyError::from)?;
        let core = &workload.0;
        let core = detached(py, || strategy::nested_product(core, unit)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// Cells and weighted sums of them, shape (sums, cells), Laplace noise.
    #[staticmethod]
    fn p_identity(py: Python<'_>, workload: PyRef<'_, Workload>, sums: PyReadonlyArray2<'_, f64>) -> PyResult<Self> {
        let (core, sums) = (&workload.0, sums.as_slice()?);
        let core = detached(py, || strategy::p_identity(core, sums)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// The same of every block of as many cells, of filters.
    #[staticmethod]
    fn p_identity_of_blocks(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        sums: PyReadonlyArray2<'_, f64>,
    ) -> PyResult<Self> {
        let (core, block, sums) = (&workload.0, sums.as_array().ncols(), sums.as_slice()?);
        let core = detached(py, || strategy::p_identity_of_blocks(core, block, sums)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// The same along the axes of a product, None for totals, which are measured alone.
    #[staticmethod]
    fn p_identity_product(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        sums: Vec<Option<PyReadonlyArray2<'_, f64>>>,
    ) -> PyResult<Self> {
        let sums: Vec<Option<Vec<f64>>> = sums
            .iter()
            .map(|own| own.as_ref().map(|own| Ok(own.as_slice()?.to_vec())).transpose())
            .collect::<PyResult<_>>()?;
        let core = &workload.0;
        let core = detached(py, || strategy::p_identity_product(core, &sums)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// A union of products along the same axes, whose parts have these weights, from tables of sets of axes: rows of what is measured
    /// along each axis, under Laplace noise beside its cells, and the share of each set's table, the first axis the highest bit.
    #[staticmethod]
    fn joint(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        weights: Vec<f64>,
        law: NoiseLaw,
        along: Vec<PyReadonlyArray2<'_, f64>>,
        shares: Vec<f64>,
    ) -> PyResult<Self> {
        let along: Vec<Vec<f64>> = along.iter().map(|own| Ok(own.as_slice()?.to_vec())).collect::<PyResult<_>>()?;
        let core = &workload.0;
        let core = detached(py, || strategy::joint(core, &weights, law.0, &along, &shares)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// Marginal queries by a matrix for each attribute, none for levels as they are: Gaussian noise of what no constant has of
    /// its queries, Laplace noise of all of them.
    #[staticmethod]
    fn marginal_queries(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        matrices: Vec<Option<PyReadonlyArray2<'_, f64>>>,
        law: NoiseLaw,
    ) -> PyResult<Self> {
        let rows = |matrix: &PyReadonlyArray2<'_, f64>| Ok((matrix.as_array().nrows(), matrix.as_slice()?.to_vec()));
        let matrices = matrices
            .iter()
            .map(|matrix| matrix.as_ref().map(rows).transpose())
            .collect::<PyResult<Vec<Option<strategy::Rows>>>>()?;
        let core = &workload.0;
        let core = detached(py, || strategy::marginal_queries(core, &matrices, law.0)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// All cells with noise of their own and common noise: `ratio` of the deviations, or of the rates, a whole number.
    #[staticmethod]
    fn common(py: Python<'_>, workload: PyRef<'_, Workload>, law: NoiseLaw, ratio: f64) -> PyResult<Self> {
        let noise = match law.0 {
            door::NoiseLaw::Gaussian => CommonNoise::Gaussian(ratio),
            door::NoiseLaw::Laplace => CommonNoise::Laplace(ratio as u32),
        };
        let core = &workload.0;
        let core = detached(py, || strategy::common(core, noise)).map_err(PyError::from)?;
        Ok(Self::of(core, &workload))
    }

    /// A sketch of the table, of which the recovery keeps `sparsity` coefficients.
    #[staticmethod]
    fn sketched(
        py: Python<'_>,
        workload: PyRef<'_, Workload>,
        operator: PyRef<'_, SketchOperator>,
        law: NoiseLaw,
        sparsity: usize,
    ) -> Result<Self, PyError> {
        let operator = Arc::clone(&operator.0);
        let recipe = Compression { workload: workload.0.clone(), operator, law: law.0, sparsity };
        let core = detached(py, || recipe.build())?;
        Ok(Self::of(core, &workload))
    }

    /// The sums of a sketch of keys that nobody lists.
    #[staticmethod]
    fn keyed(operator: PyRef<'_, SketchOperator>, law: NoiseLaw) -> Self {
        let core = strategy::keyed_sketch(Arc::clone(&operator.0), law.0);
        let answers_len = core.measured_len();
        Self { core: Arc::from(core), input_len: None, answers_len, listed: true }
    }

    /// Sums of the features of points: with weights of the axes, one a feature, or none; `count_weight` is that of the
    /// number of points, 0 if it is not measured.
    #[staticmethod]
    fn summed(
        py: Python<'_>,
        features: PyRef<'_, PointFeatures>,
        weights: PointWeights<'_>,
        law: NoiseLaw,
        count_weight: f64,
    ) -> PyResult<Self> {
        let weights = match weights {
            PointWeights::Listed(weights) => Weights::Listed(weights.as_slice()?.to_vec()),
            PointWeights::Product(axes) if axes.is_empty() => Weights::Uniform,
            PointWeights::Product(axes) => Weights::Product(axes),
        };
        let summary = PointSummary { features: Arc::clone(&features.core), weights, law: law.0, count_weight };
        let core = detached(py, || summary.build()).map_err(PyError::from)?;
        let answers_len = core.measured_len();
        Ok(Self { core: Arc::from(core), input_len: None, answers_len, listed: true })
    }

    /// The strategy as it answers under a door's noise: another one where rows have noise of different sizes.
    fn refined(&self, py: Python<'_>, door: PyRef<'_, Door>) -> PyResult<Option<Self>> {
        let door = &*door;
        let core = detached(py, || door.core.refined(&*self.core)).map_err(PyError::from)?;
        Ok(core.map(|core| Self {
            core: Arc::from(core),
            input_len: self.input_len,
            answers_len: self.answers_len,
            listed: self.listed,
        }))
    }

    /// Answers from numbers in place of the measured ones, such as projected ones.
    fn decode<'py>(
        &self,
        py: Python<'py>,
        measured: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let measured = measured.as_slice()?;
        if measured.len() != self.core.measured_len() {
            let (expected, got) = (self.core.measured_len(), measured.len());
            return Err(PyError::from(Error::Shape { name: "measured", expected, got }).into());
        }
        let mut out = self.answers()?;
        detached(py, || self.core.decode(measured, &mut out));
        Ok(out.into_pyarray(py))
    }

    #[getter]
    fn measured_len(&self) -> usize {
        self.core.measured_len()
    }

    /// What is measured of cells that are no integers, without noise; None where that is no table of them.
    fn multiplied<'py>(
        &self,
        py: Python<'py>,
        cells: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Option<Bound<'py, PyArray1<f64>>>> {
        let cells = cells.as_slice()?;
        Ok(detached(py, || self.core.multiplied(cells)).map(|measured| measured.into_pyarray(py)))
    }

    /// Whether it measures products of a table with a matrix whose transpose is known.
    #[getter]
    fn has_transpose(&self, py: Python<'_>) -> bool {
        detached(py, || self.core.transposed(&vec![0.0; self.core.measured_len()]).is_some())
    }

    #[getter]
    fn geometry(&self) -> &'static str {
        match self.core.geometry() {
            Geometry::L2 => "l2",
            Geometry::L1 => "l1",
            Geometry::Blocks(_) => "blocks",
            Geometry::Boxes(_) => "boxes",
            Geometry::Body(_) => "body",
            Geometry::Common(_) => "common",
        }
    }

    #[getter]
    fn ideal_mean_square(&self) -> Option<f64> {
        self.core.ideal_mean_square()
    }

    fn variances<'py>(&self, py: Python<'py>) -> Result<Bound<'py, PyArray1<f64>>, PyError> {
        let mut out = self.answers()?;
        detached(py, || self.core.variances(&mut out));
        Ok(out.into_pyarray(py))
    }

    /// Mean and largest variance of the answers, where they are known without listing them.
    fn spread(&self, py: Python<'_>) -> Option<(f64, Option<f64>)> {
        detached(py, || self.core.spread())
    }

    /// The table that the answers are read off, where what was measured determines it.
    fn cells<'py>(&self, py: Python<'py>, measured: PyRef<'py, Measured>) -> Option<Bound<'py, PyArray1<f64>>> {
        let measured = &*measured;
        detached(py, || self.core.cells(&measured.0.values())).map(|cells| cells.into_pyarray(py))
    }

    /// The same; of cells that are measured as one their sum, in the place of the first of them.
    fn merged_cells<'py>(&self, py: Python<'py>, measured: PyRef<'py, Measured>) -> Option<Bound<'py, PyArray1<f64>>> {
        let measured = &*measured;
        detached(py, || self.core.merged_cells(&measured.0.values())).map(|cells| cells.into_pyarray(py))
    }

    /// Variances of sums over boxes of a table at unit noise.
    fn box_variances<'py>(
        &self,
        py: Python<'py>,
        shape: Vec<usize>,
        first: Vec<usize>,
        last: Vec<usize>,
    ) -> Result<Bound<'py, PyArray1<f64>>, PyError> {
        let boxes = Boxes { shape: &shape, first: &first, last: &last };
        Ok(detached(py, || strategy::box_variances(&*self.core, boxes))?.into_pyarray(py))
    }

    /// Variance of the noise that all measured numbers have in common, at unit noise.
    #[getter]
    fn common_noise(&self) -> f64 {
        self.core.common_noise()
    }

    /// Of marginals: variances of residuals at unit noise, for sets of attributes.
    fn residual_variances(&self, sets: Vec<Vec<usize>>) -> Option<Vec<f64>> {
        self.core.residual_variances(&sets)
    }

    fn unit_variances<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        self.core.unit_variances().into_pyarray(py)
    }

    fn column<'py>(&self, py: Python<'py>, cell: usize) -> Option<Bound<'py, PyArray1<f64>>> {
        self.core.column(cell).map(|column| column.into_pyarray(py))
    }

    /// Weights that decoding gives what was measured in answer `answer` of the strategy's own workload.
    fn answer_weights<'py>(
        &self,
        py: Python<'py>,
        answer: usize,
        row: PyReadonlyArray1<'py, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let row = row.as_slice()?;
        let weights = detached(py, || self.core.answer_weights(answer, row)).map_err(PyError::from)?;
        Ok(weights.into_pyarray(py))
    }

    fn weights<'py>(&self, py: Python<'py>, row: PyReadonlyArray1<'py, f64>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let row = row.as_slice()?;
        let weights = detached(py, || self.core.weights(row)).map_err(PyError::from)?;
        Ok(weights.into_pyarray(py))
    }
}

/// Answers of the strategy's workload from what was measured.
#[pyfunction]
pub(crate) fn decode<'py>(
    py: Python<'py>,
    strategy: PyRef<'py, Strategy>,
    measured: PyRef<'py, Measured>,
) -> Result<Bound<'py, PyArray1<f64>>, PyError> {
    let mut out = strategy.answers()?;
    let (strategy, measured) = (&*strategy, &*measured);
    detached(py, || strategy::decode(&*strategy.core, &measured.0, &mut out));
    Ok(out.into_pyarray(py))
}

/// Sums of the cells of a table over boxes.
#[pyfunction]
pub(crate) fn box_sums<'py>(
    py: Python<'py>,
    cells: PyReadonlyArray1<'py, f64>,
    shape: Vec<usize>,
    first: Vec<usize>,
    last: Vec<usize>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (cells, boxes) = (cells.as_slice()?, Boxes { shape: &shape, first: &first, last: &last });
    let sums = detached(py, || strategy::box_sums(cells, boxes)).map_err(PyError::from)?;
    Ok(sums.into_pyarray(py))
}

/// A pair of arrays.
type Arrays<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// Answers of another workload, and their variances at unit noise.
#[pyfunction]
pub(crate) fn answer<'py>(
    py: Python<'py>,
    strategy: PyRef<'py, Strategy>,
    measured: PyRef<'py, Measured>,
    workload: PyRef<'py, Workload>,
) -> Result<Arrays<'py>, PyError> {
    let (strategy, measured, workload) = (&*strategy, &*measured, &*workload);
    let len = strategy.input_len.unwrap_or(0);
    let (values, variances) = detached(py, || strategy::answer(&*strategy.core, &measured.0, len, &workload.0))?;
    Ok((values.into_pyarray(py), variances.into_pyarray(py)))
}

/// The Gram matrix of filters, whose squared errors have these weights, and a block of so many cells, summed over all blocks.
#[pyfunction]
pub(crate) fn block_gram(
    py: Python<'_>,
    workload: PyRef<'_, Workload>,
    weights: Vec<f64>,
    block: usize,
) -> PyResult<Py<PyArray1<f64>>> {
    let core = &workload.0;
    let gram = detached(py, || strategy::block_gram(core, &weights, block)).map_err(PyError::from)?;
    Ok(PyArray1::from_vec(py, gram).unbind())
}

/// What a total has along an axis where these rows are measured, under Laplace noise beside its cells; and for each part of what is
/// asked there the squared errors of what totals have of it, and of the rest; weighted by answer.
#[pyfunction]
#[pyo3(signature = (asked, weights, law, rows))]
pub(crate) fn joint_errors(
    py: Python<'_>,
    asked: PyRef<'_, Workload>,
    weights: Option<PyReadonlyArray1<'_, f64>>,
    law: NoiseLaw,
    rows: PyReadonlyArray2<'_, f64>,
) -> PyResult<(f64, Vec<[f64; 2]>)> {
    let weights = weights.as_ref().map(PyReadonlyArray1::as_slice).transpose()?;
    let (asked, rows) = (&asked.0, rows.as_slice()?);
    Ok(detached(py, || strategy::joint_errors(asked, weights, law.0, rows)).map_err(PyError::from)?)
}

/// Sizes of the blocks that a weighted tree measures, and their weights, of a union whose parts have these.
#[pyfunction]
#[pyo3(signature = (workload, weights=None))]
pub(crate) fn tree_blocks(
    py: Python<'_>,
    workload: PyRef<'_, Workload>,
    weights: Option<Vec<f64>>,
) -> Result<Vec<(usize, i64)>, PyError> {
    let workload = &workload.0;
    Ok(detached(py, || strategy::tree_blocks(workload, weights.as_deref()))?)
}
