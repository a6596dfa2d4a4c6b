//! Core errors as the Python classes of `sordino.errors`.

use pyo3::prelude::*;
use sordino_core::error::Error;

/// Wraps a core error so that `?` works in bindings.
pub(crate) struct PyError(Error);

impl From<Error> for PyError {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<PyError> for PyErr {
    fn from(PyError(error): PyError) -> Self {
        if error == Error::Interrupted
            && let Some(raised) = crate::interrupt::raised()
        {
            return raised;
        }
        let class = match &error {
            Error::Shape { .. } => "ShapeError",
            Error::Unsupported(_) => "UnsupportedMechanismError",
            Error::Entropy => "EntropyError",
            Error::Closed | Error::Broken => "StreamClosedError",
            Error::Pending => "StepStoreError",
            Error::Busy => "BusyError",
            Error::Horizon { .. } => "HorizonError",
            Error::Fork => "ForkError",
            Error::Checkpoint => "CheckpointError",
            // The enum may grow: what is new is an argument that was refused.
            _ => "InvalidParameterError",
        };
        let message = error.to_string();
        Python::attach(|py| {
            py.import("sordino.errors")
                .and_then(|module| module.getattr(class))
                .and_then(|class| class.call1((message,)))
                .map_or_else(|error| error, PyErr::from_value)
        })
    }
}
