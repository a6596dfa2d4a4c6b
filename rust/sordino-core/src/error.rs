//! The one error type of the core. Messages carry public facts only: names, bounds, sizes.

use thiserror::Error;

/// Why a request was refused. No variant can hold a private value.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Error {
    /// A public argument is outside its domain.
    #[error("{name}: {reason}")]
    InvalidParameter {
        /// Name of the argument.
        name: &'static str,
        /// What was wrong and what is expected.
        reason: String,
    },
    /// An array has the wrong length.
    #[error("{name} has length {got}, expected {expected}")]
    Shape {
        /// Name of the array.
        name: &'static str,
        /// The length the plan asks for.
        expected: usize,
        /// The length given.
        got: usize,
    },
    /// Public sizes do not fit the exact integer path or the lattice.
    #[error("{0}")]
    Overflow(String),
    /// This mechanism does not serve this workload.
    #[error("{0}")]
    Unsupported(String),
    /// The operating system gave no randomness; nothing was released.
    #[error("the operating system refused to provide randomness; nothing was released")]
    Entropy,
    /// A stream was used after it was closed.
    #[error("this stream is closed; nothing was released")]
    Closed,
    /// A call failed in the middle: what it left is not used.
    #[error("an earlier call failed in the middle: this object takes nothing more in, and publishes nothing")]
    Broken,
    /// An update was made and is not stored.
    #[error(
        "the last update is not finished: the same items must come again, or resume() store it; nothing was released"
    )]
    Pending,
    /// A stream was asked for more steps than its budget covers.
    #[error("steps left of the horizon that this stream's budget covers: {left}; nothing was released")]
    Horizon {
        /// Steps that may still be published.
        left: u64,
    },
    /// Something was used in a process that did not make it.
    #[error("this belongs to another process: two would put different data on the same noise, or take in data twice")]
    Fork,
    /// Whoever called asked a computation to end early.
    #[error("interrupted")]
    Interrupted,
    /// The same thread is inside a call of this object.
    #[error("a call of this object is under way in this thread; nothing was released")]
    Busy,
    /// A checkpoint could not be read.
    #[error("these bytes are no checkpoint of this stream, or the key is another; nothing was restored")]
    Checkpoint,
}

impl Error {
    pub(crate) fn invalid(name: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidParameter { name, reason: reason.into() }
    }

    pub(crate) fn check_len(name: &'static str, expected: usize, got: usize) -> Result<(), Self> {
        if expected == got { Ok(()) } else { Err(Self::Shape { name, expected, got }) }
    }
}
