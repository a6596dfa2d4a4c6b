//! What no mechanism can do, and the discrepancy of queries.

use crate::error::PyError;
use crate::interrupt::detached;
use crate::optimize::Reporter;
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::optimize::{self, Queries, Target};

/// Lower bounds on the error of any mechanism, root mean squared over the queries; constants are the caller's.
#[pyclass(frozen, get_all, module = "sordino._core")]
pub(crate) struct LowerBounds {
    /// `√(detLB/m)`, and its number of cells.
    determinant: (f64, usize),
    /// `√(specLB/m)`, and its cells.
    spectral: (f64, Vec<usize>),
    /// `√(volLB/m)` at epsilon 1: at least, at most.
    volume: (f64, f64),
    /// What the volume proves for pure privacy at epsilon 1, with its constant.
    volume_error: f64,
}

/// Bounds over sets of at most `most` cells; D-optimal `cell_weights` serve the volume.
#[pyfunction]
pub(crate) fn lower_bounds(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    most: usize,
    cell_weights: PyReadonlyArray1<'_, f64>,
) -> PyResult<LowerBounds> {
    let (rows, columns) = queries.as_array().dim();
    let (entries, weights) = (queries.as_slice()?, cell_weights.as_slice()?);
    let bounds = detached(py, || -> Result<_, Error> {
        let queries = Queries::new(rows, columns, entries)?;
        let determinant = optimize::determinant_bound(queries, most)?;
        let spectral = optimize::spectral_bound(queries, most, None)?;
        let volume = optimize::volume_bound(queries, Some(weights))?;
        Ok(LowerBounds {
            determinant: (determinant.error, determinant.error_size),
            spectral: (spectral.value, spectral.columns),
            volume: (volume.lower, volume.upper),
            volume_error: volume.error,
        })
    });
    Ok(bounds.map_err(PyError::from)?)
}

/// An interval around the hereditary discrepancy, and signs.
#[pyclass(frozen, get_all, module = "sordino._core")]
pub(crate) struct Discrepancy {
    lower: f64,
    upper: f64,
    entry: f64,
    determinant: (f64, usize),
    spectral: (f64, usize),
    weighted: (f64, usize),
    walk: f64,
    banaszczyk: f64,
    /// Certified lower and upper bound of the worst-query error.
    gamma_2: (f64, f64),
    signs: Py<PyArray1<i8>>,
    found: f64,
}

/// Bounds and the best of `starts` walks, from the best factorization for the worst query.
#[pyfunction]
pub(crate) fn discrepancy(
    py: Python<'_>,
    queries: PyReadonlyArray2<'_, f64>,
    gap: f64,
    starts: usize,
    seed: u64,
) -> PyResult<Discrepancy> {
    let (rows, columns) = queries.as_array().dim();
    let entries = queries.as_slice()?;
    let mut reporter = Reporter::new(None);
    let all = detached(py, || -> Result<_, Error> {
        let queries = Queries::new(rows, columns, entries)?;
        let target = Target { gap, ..Target::default() };
        let best = optimize::worst_strategy(queries, target, &mut |i, gap| reporter.report(i, gap))?;
        let bounds = optimize::hereditary_discrepancy(queries, &best)?;
        let coloring = optimize::coloring(queries, &best, starts, seed, &mut |i, least| reporter.report(i, least))?;
        Ok((best, bounds, coloring))
    });
    if let Some(signal) = reporter.raised {
        return Err(signal);
    }
    let (best, bounds, coloring) = all.map_err(PyError::from)?;
    Ok(Discrepancy {
        lower: bounds.lower,
        upper: bounds.upper,
        entry: bounds.entry,
        determinant: (bounds.determinant.discrepancy, bounds.determinant.size),
        spectral: (bounds.uniform.value, bounds.uniform.columns.len()),
        weighted: (bounds.weighted.value, bounds.weighted.columns.len()),
        walk: bounds.walk,
        banaszczyk: bounds.banaszczyk,
        gamma_2: (best.lower, best.upper),
        signs: PyArray1::from_vec(py, coloring.signs).unbind(),
        found: coloring.discrepancy,
    })
}
