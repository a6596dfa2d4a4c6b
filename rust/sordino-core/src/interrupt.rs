//! Long computations ask now and then whether to go on.

use crate::error::Error;
use std::cell::Cell;

thread_local! {
    static ASK: Cell<Option<fn() -> bool>> = const { Cell::new(None) };
}

/// Calls `f`; while it runs on this thread, `stop` is asked now and then whether it shall end early.
pub fn asking<R>(stop: fn() -> bool, f: impl FnOnce() -> R) -> R {
    struct Restore(Option<fn() -> bool>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASK.set(self.0);
        }
    }
    let _restore = Restore(ASK.replace(Some(stop)));
    f()
}

/// Asks, between two parts of a computation that can end there. Nothing may be half done.
///
/// # Errors
/// [`Error::Interrupted`] if it shall end.
pub fn poll() -> Result<(), Error> {
    match ASK.get() {
        Some(stop) if stop() => Err(Error::Interrupted),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{asking, poll};

    #[test]
    fn asked_while_it_runs_and_not_after() {
        assert!(poll().is_ok());
        assert!(asking(|| true, || asking(|| false, poll)).is_ok());
        assert!(asking(|| true, poll).is_err());
        let panicked = std::panic::catch_unwind(|| asking(|| true, || panic!("in the middle")));
        assert!(panicked.is_err() && poll().is_ok());
    }
}
