//! A fresh 256-bit key for every call of the door.

use crate::error::Error;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// A 256-bit `ChaCha` key, wiped when dropped. It has no `Debug` output and cannot be cloned.
///
/// The bytes lie on the heap and are filled in there: a move copies a pointer.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Key(Box<[u8; 32]>);

impl Key {
    /// A key from the operating system.
    ///
    /// # Errors
    /// [`Error::Entropy`] if the operating system refuses.
    pub fn from_entropy() -> Result<Self, Error> {
        let mut key = Self(Box::new([0; 32]));
        getrandom::fill(&mut key.0[..]).map_err(|_| Error::Entropy)?;
        Ok(key)
    }

    /// A known key, for tests and tutorials: what is released under it is not private.
    pub fn deterministic(bytes: [u8; 32]) -> Self {
        Self(Box::new(bytes))
    }

    /// The known key, if there is one, else a fresh one.
    pub(crate) fn known_or_fresh(bytes: Option<[u8; 32]>) -> Result<Self, Error> {
        bytes.map_or_else(Self::from_entropy, |bytes| Ok(Self::deterministic(bytes)))
    }

    /// A copy of what somebody kept, if it has 32 bytes.
    pub(crate) fn kept(bytes: &[u8]) -> Option<Self> {
        Some(Self::copied(bytes.try_into().ok()?))
    }

    /// The same key again, for another reader of its noise.
    pub(crate) fn again(&self) -> Self {
        Self::copied(&self.0)
    }

    fn copied(bytes: &[u8; 32]) -> Self {
        let mut key = Self(Box::new([0; 32]));
        key.0.copy_from_slice(bytes);
        key
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
