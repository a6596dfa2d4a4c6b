//! Forks that no process id tells: by a byte of memory that the system empties in a child.

use pyo3::buffer::PyBuffer;
use pyo3::prelude::*;
use sordino_core::owner;
use std::sync::OnceLock;

/// The byte is 1, and 0 in a child that was not noticed yet.
static PAGE: OnceLock<PyBuffer<u8>> = OnceLock::new();

/// Says where a byte of the page is; the first one counts.
#[pyfunction]
pub(crate) fn watch_forks(py: Python<'_>, byte: PyBuffer<u8>) -> PyResult<()> {
    byte.copy_from_slice(py, &[1])?;
    let _ = PAGE.set(byte);
    Ok(())
}

/// Says that this process is a child that was forked.
#[pyfunction]
pub(crate) fn renew_owner(py: Python<'_>) {
    mark(py);
    owner::renew();
}

/// How many forks lead to this process.
#[pyfunction]
pub(crate) fn forks(py: Python<'_>) -> u64 {
    notice(py);
    owner::generation()
}

fn mark(py: Python<'_>) {
    if let Some(page) = PAGE.get() {
        // Of one writable byte, as `watch_forks` found.
        let _ = page.copy_from_slice(py, &[1]);
    }
}

/// Begins anew in a child that Python has not seen to be one.
pub(crate) fn notice(py: Python<'_>) {
    let mut seen = [1];
    if let Some(page) = PAGE.get()
        && page.copy_to_slice(py, &mut seen).is_ok()
        && seen == [0]
    {
        renew_owner(py);
    }
}
