//! Which process an open stream belongs to: a fork must not go on with the same noise.

use crate::error::Error;
use std::sync::atomic::{AtomicU64, Ordering};

/// Forks that were noticed in this process and its ancestors.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// The process that made it.
///
/// A process id alone does not tell: two name spaces may have the same. Whoever embeds this library calls [`renew`]
/// after a fork, in the child; without that the ids decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner {
    generation: u64,
    process: u32,
}

impl Owner {
    /// This process.
    pub fn current() -> Self {
        Self { generation: generation(), process: std::process::id() }
    }

    /// Refuses any other.
    ///
    /// # Errors
    /// [`Error::Fork`].
    pub fn check(self) -> Result<(), Error> {
        if self == Self::current() { Ok(()) } else { Err(Error::Fork) }
    }
}

/// How many forks lead to this process, as far as they were noticed.
pub fn generation() -> u64 {
    GENERATION.load(Ordering::Relaxed)
}

/// Says that this process is a new one: everything that was open before refuses to go on in it.
///
/// Takes no lock, so that a child may call it whatever its parent's threads were doing.
pub fn renew() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::Owner;

    #[test]
    fn another_generation_or_process_is_refused() {
        let owner = Owner::current();
        assert!(owner.check().is_ok());
        let other = Owner { generation: owner.generation + 1, ..owner };
        assert!(other.check().is_err());
        assert!(Owner { process: owner.process + 1, ..owner }.check().is_err());
    }
}
