//! Locks that never wait with the interpreter held: no other thread stands still, and a fork does not hang.
//!
//! Nothing else in this crate locks what is shared. What a panic left half done is not used again.

use crate::error::PyError;
use pyo3::prelude::*;
use sordino_core::error::Error;
use sordino_core::owner::Owner;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

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
pub(crate) struct Guarded<T> {
    owner: Owner,
    cell: Mutex<T>,
    step: AtomicU64,
    closed: AtomicBool,
}

impl<T: Shared> Guarded<T> {
    pub fn new(value: T) -> Self {
        let (step, closed) = (value.step().into(), value.closed().into());
        Self { owner: Owner::current(), cell: Mutex::new(value), step, closed }
    }

    /// Steps after the last call that ended.
    pub fn step(&self) -> u64 {
        self.step.load(Ordering::Acquire)
    }

    /// Whether it was closed.
    pub fn closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Calls `f` alone, after waiting detached from the interpreter.
    pub fn with<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> Result<R, PyError> {
        self.owner.check()?;
        py.detach(|| Ok(self.call(self.cell.lock().map_err(|_| Error::Broken)?, f)))
    }

    /// As [`Self::with`], refused once it was closed, for what does not know that itself.
    pub fn open<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> Result<R, PyError> {
        if self.closed() {
            return Err(Error::Closed.into());
        }
        self.with(py, f)
    }

    /// As [`Self::with`] for what takes less than a switch of threads: detached only if it must wait.
    pub fn briefly<R: Send>(&self, py: Python<'_>, f: impl FnOnce(&mut T) -> R + Send) -> Result<R, PyError> {
        self.owner.check()?;
        match self.cell.try_lock() {
            Ok(guard) => Ok(self.call(guard, f)),
            Err(TryLockError::Poisoned(_)) => Err(Error::Broken.into()),
            Err(TryLockError::WouldBlock) => self.with(py, f),
        }
    }

    /// As [`Self::with`], inside the turn of another object: detached already.
    pub fn nested<R>(&self, f: impl FnOnce(&mut T) -> R) -> Result<R, PyError> {
        if self.closed() {
            return Err(Error::Closed.into());
        }
        self.owner.check()?;
        Ok(self.call(self.cell.lock().map_err(|_| Error::Broken)?, f))
    }

    /// Wipes what is secret, also after a panic; in another process there is nothing that could be used.
    pub fn close(&self, py: Python<'_>) {
        if self.owner.check().is_ok() {
            py.detach(|| {
                let mut guard = self.cell.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                guard.wipe();
                self.closed.store(true, Ordering::Release);
            });
        }
    }

    fn call<R>(&self, mut guard: MutexGuard<'_, T>, f: impl FnOnce(&mut T) -> R) -> R {
        let result = f(&mut guard);
        self.step.store(guard.step(), Ordering::Release);
        self.closed.fetch_or(guard.closed(), Ordering::Release);
        result
    }
}
