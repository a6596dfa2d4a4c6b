//! Locks that never wait with the interpreter held: no other thread stands still, and a fork does not hang.
//!
//! Nothing else in this crate locks what is shared. What a panic left half done is not used again.

use crate::error::PyError;
use crate::forks::notice;
use crate::interrupt::detached;
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::owner::Owner;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

/// No thread has this number.
const NOBODY: usize = 0;

/// A number of this thread.
fn thread() -> usize {
    thread_local!(static HERE: u8 = const { 0 });
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// What is said of a stream without waiting for it.
pub(crate) trait Shared: Send {
    /// Steps so far.
    fn step(&self) -> u64 {
        0
    }

    /// Whether it was closed.
    fn closed(&self) -> bool {
        false
    }

    /// Wipes what is secret.
    fn wipe(&mut self) {}
}

/// A value behind a lock, of one process.
pub(crate) struct Guarded<T: Shared> {
    owner: Owner,
    cell: Mutex<T>,
    step: AtomicU64,
    closed: AtomicBool,
    /// Whether it shall be closed as soon as nobody is inside.
    closing: AtomicBool,
    /// Which thread is inside.
    holder: AtomicUsize,
}

impl<T: Shared> Guarded<T> {
    pub(crate) fn new(value: T) -> Self {
        let (step, closed) = (value.step().into(), value.closed().into());
        Self {
            owner: Owner::current(),
            cell: Mutex::new(value),
            step,
            closed,
            closing: false.into(),
            holder: NOBODY.into(),
        }
    }

    /// Steps after the last call that ended.
    pub(crate) fn step(&self) -> u64 {
        self.step.load(Ordering::Acquire)
    }

    /// Whether it was closed.
    pub(crate) fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Calls `f` alone, after waiting detached from the interpreter.
    pub(crate) fn with<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> Result<R, PyError> {
        notice(py);
        self.free()?;
        detached(py, || Ok(self.call(self.cell.lock().map_err(|_| Error::Broken)?, f)))
    }

    /// As [`Self::with`], refused once it was closed, for what does not know that itself.
    pub(crate) fn open<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> Result<R, PyError> {
        if self.closed() {
            return Err(Error::Closed.into());
        }
        self.with(py, f)
    }

    /// As [`Self::with`] for what takes less than a switch of threads: detached only if it must wait.
    pub(crate) fn briefly<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> Result<R, PyError> {
        notice(py);
        self.free()?;
        match self.cell.try_lock() {
            Ok(guard) => Ok(self.call(guard, f)),
            Err(TryLockError::Poisoned(_)) => Err(Error::Broken.into()),
            Err(TryLockError::WouldBlock) => self.with(py, f),
        }
    }

    /// As [`Self::with`], inside the turn of another object: detached already.
    pub(crate) fn nested<R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<R, PyError> {
        if self.closed() {
            return Err(Error::Closed.into());
        }
        self.free()?;
        Ok(self.call(self.cell.lock().map_err(|_| Error::Broken)?, f))
    }

    /// Wipes what is secret, also after a panic; in another process there is nothing that could be used.
    pub(crate) fn close(&self, py: Python<'_>) {
        notice(py);
        if self.owner.check().is_err() {
            return;
        }
        self.closing.store(true, Ordering::Release);
        if self.free().is_err() {
            return; // a handler of a signal inside a call: it is closed when the call ends
        }
        py.detach(|| {
            let mut guard = self.cell.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            self.wipe(&mut guard);
        });
    }

    fn wipe(&self, guard: &mut MutexGuard<'_, T>) {
        guard.wipe();
        self.closed.store(true, Ordering::Release);
    }

    /// Refuses another process, and this thread while it is inside a call: a handler of a signal would wait for itself.
    fn free(&self) -> Result<(), Error> {
        self.owner.check()?;
        if self.holder.load(Ordering::Relaxed) == thread() { Err(Error::Busy) } else { Ok(()) }
    }

    fn call<R>(&self, mut guard: MutexGuard<'_, T>, f: impl FnOnce(&mut T) -> R) -> R {
        struct Held<'a>(&'a AtomicUsize);
        impl Drop for Held<'_> {
            fn drop(&mut self) {
                self.0.store(NOBODY, Ordering::Relaxed);
            }
        }
        self.holder.store(thread(), Ordering::Relaxed);
        let held = Held(&self.holder);
        let result = f(&mut guard);
        drop(held);
        self.step.store(guard.step(), Ordering::Release);
        self.closed.fetch_or(guard.closed(), Ordering::Release);
        if self.closing.load(Ordering::Acquire) {
            self.wipe(&mut guard);
        }
        result
    }
}

impl<T: Shared> Drop for Guarded<T> {
    fn drop(&mut self) {
        if self.owner.check().is_ok() {
            self.cell.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner).wipe();
        }
    }
}
