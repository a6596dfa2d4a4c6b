//! Encrypted checkpoints: `XChaCha20-Poly1305` over the state, the public header authenticated with it.
//!
//! Layout: magic and version (8 bytes), length of the header (8), header, nonce (24), sealed state. A checkpoint
//! holds the key and past noise: it is as secret as the raw data.

use super::machine::Stream;
use super::plan::StreamPlan;
use super::state::Writer;
use crate::door::StreamDoor;
use crate::error::Error;
use crate::sealing::{seal, unseal};
use std::sync::Arc;
use zeroize::Zeroize;

const MAGIC: &[u8; 8] = b"sordino\x01";

impl Stream {
    /// The state, sealed under a 256-bit key; `header` is public and comes back from [`header`].
    ///
    /// # Errors
    /// If the stream is closed or belongs to another process, or the operating system gives no randomness.
    pub fn checkpoint(&self, key: &[u8; 32], header: &[u8]) -> Result<Vec<u8>, Error> {
        let mut state = Writer::default();
        self.save(&mut state)?;
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&(header.len() as u64).to_le_bytes());
        out.extend_from_slice(header);
        let place = bound(&out, self.plan(), self.door(), self.dim());
        out.extend_from_slice(&seal(key, &place, state.as_slice())?);
        Ok(out)
    }

    /// The stream of a checkpoint, at the step where it was made.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] if the bytes were altered, or belong to another plan or key.
    pub fn restore(
        plan: Arc<StreamPlan>,
        door: StreamDoor,
        dim: usize,
        key: &[u8; 32],
        checkpoint: &[u8],
    ) -> Result<Self, Error> {
        let (public, sealed) = split(checkpoint)?;
        let mut state = unseal(key, &bound(public, &plan, &door, dim), sealed)?;
        let stream = Self::load(plan, door, dim, &state);
        state.zeroize();
        stream
    }
}

/// The public header of a checkpoint; it is authenticated only when the state is restored.
///
/// # Errors
/// [`Error::Checkpoint`] if these bytes are no checkpoint.
pub fn header(checkpoint: &[u8]) -> Result<&[u8], Error> {
    split(checkpoint).map(|(public, _)| &public[16..])
}

/// What is authenticated with a state: what is public, and, not stored, what the state belongs to. Under another recipe,
/// other parameters, lattice, noise or shape a state of the same length would go on with noise that covers something else.
fn bound(public: &[u8], plan: &StreamPlan, door: &StreamDoor, dim: usize) -> Vec<u8> {
    let mut out = public.to_vec();
    out.extend_from_slice(format!("{:?} {door:?} {dim}", plan.recipe()).as_bytes());
    out.extend_from_slice(&plan.parameters());
    out
}

/// What is public, header included, and what follows.
fn split(checkpoint: &[u8]) -> Result<(&[u8], &[u8]), Error> {
    let rest = checkpoint.strip_prefix(MAGIC).ok_or(Error::Checkpoint)?;
    let (len, rest) = rest.split_first_chunk::<8>().ok_or(Error::Checkpoint)?;
    let len = usize::try_from(u64::from_le_bytes(*len)).map_err(|_| Error::Checkpoint)?;
    if len > rest.len() {
        return Err(Error::Checkpoint);
    }
    Ok(checkpoint.split_at(16 + len))
}
