//! Signals during computations that are detached from the interpreter: Ctrl-C ends them soon, not at their end.

use pyo3::prelude::*;
use sordino_core::interrupt;
use std::cell::RefCell;
use std::time::{Duration, Instant};

/// Time between two looks at signals.
const PAUSE: Duration = Duration::from_millis(50);

thread_local! {
    static LOOKED: RefCell<(Option<Instant>, Option<PyErr>)> = const { RefCell::new((None, None)) };
}

/// Calls `f` detached; where it asks, handlers of signals run, and what they raise ends it.
pub(crate) fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    py.detach(|| {
        LOOKED.with_borrow_mut(|(when, _)| *when = Some(Instant::now()));
        interrupt::asking(stop, f)
    })
}

/// What a handler raised.
pub(crate) fn raised() -> Option<PyErr> {
    LOOKED.with_borrow_mut(|(_, error)| error.take())
}

fn stop() -> bool {
    let due = LOOKED.with_borrow(|(when, _)| when.is_none_or(|when| when.elapsed() >= PAUSE));
    if !due {
        return false;
    }
    // Nothing is borrowed while handlers run: they may call the library.
    let error = Python::attach(|py| py.check_signals().err());
    LOOKED.with_borrow_mut(|(when, kept)| {
        *when = Some(Instant::now());
        if error.is_some() {
            *kept = error;
        }
        kept.is_some()
    })
}
