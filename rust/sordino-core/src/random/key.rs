//! A fresh 256-bit key for every call of the door.

use crate::error::Error;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A 256-bit `ChaCha` key, wiped when dropped. It has no `Debug` output and cannot be cloned.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Key([u8; 32]);

impl Key {
    /// A key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system refuses.
    pub fn from_entropy() -> Result<Self, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).map_err(|_| Error::Entropy)?;
        Ok(Self(bytes))
    }

    /// A known key, for tests and tutorials: what is released under it is not private.
    pub fn deterministic(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}
