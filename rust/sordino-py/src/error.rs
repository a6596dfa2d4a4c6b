//! Core errors as the Python classes of `sordino.errors`, beside what Python raised itself.

use pyo3::prelude::*;
use sordino_core::error::Error;

/// An error of either side, so that `?` works in bindings.
pub(crate) enum PyError {
    Core(Error),
    Raised(PyErr),
}

impl From<Error> for PyError {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<PyErr> for PyError {
    fn from(error: PyErr) -> Self {
        Self::Raised(error)
    }
}

impl From<PyError> for PyErr {
    fn from(error: PyError) -> Self {
        let error = match error {
            PyError::Core(error) => error,
            PyError::Raised(error) => return error,
        };
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
            Error::Pending => "StepPendingError",
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
