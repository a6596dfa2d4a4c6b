//! Signals during computations that are detached from the interpreter: Ctrl-C ends them soon, not at their end.

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use sordino_core::{interrupt, owner};
use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Time between two looks at signals.
const PAUSE: Duration = Duration::from_millis(50);

thread_local! {
    static LOOKED: RefCell<(Option<Instant>, Option<PyErr>)> = const { RefCell::new((None, None)) };
}

/// Threads of a forked child, and which one: those of its parent are not there.
static CHILD: Mutex<Option<(u64, Arc<ThreadPool>)>> = Mutex::new(None);

/// Calls `f` detached; where it asks, handlers of signals run, and what they raise ends it.
pub(crate) fn detached<R: Send>(py: Python<'_>, f: impl FnOnce() -> R + Send) -> R {
    let (mut f, mut result) = (Some(f), None);
    detached_once(py, &mut || result = f.take().map(|f| f()));
    result.expect("it was called")
}

/// The same of what keeps its result itself: compiled once, not for every method.
fn detached_once(py: Python<'_>, f: &mut (dyn FnMut() + Send)) {
    py.detach(|| match owner::generation() {
        0 => {
            LOOKED.with_borrow_mut(|(when, _)| *when = Some(Instant::now()));
            interrupt::asking(stop, f);
        }
        child => match pool(child) {
            Some(pool) => pool.install(f),
            None => f(),
        },
    });
}

/// The threads of this child. The lock may be held for ever by a thread of its parent: then they are made anew.
fn pool(child: u64) -> Option<Arc<ThreadPool>> {
    let fresh = || ThreadPoolBuilder::new().build().ok().map(Arc::new);
    let Ok(mut known) = CHILD.try_lock() else { return fresh() };
    if let Some((generation, pool)) = &*known
        && *generation == child
    {
        return Some(Arc::clone(pool));
    }
    let pool = fresh()?;
    // The parent's threads cannot be joined here.
    std::mem::forget(known.replace((child, Arc::clone(&pool))));
    Some(pool)
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
