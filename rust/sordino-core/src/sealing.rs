//! Sealing what is secret before it leaves memory: `XChaCha20-Poly1305` under a key of the caller's.
//!
//! A sealed message is a fresh nonce (24 bytes) and the encrypted message with its tag. What it belongs to is
//! authenticated with it and not stored: a message that is put in the place of another is refused.

use crate::error::Error;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};

const NONCE: usize = 24;

/// `message` under `key`, bound to `place`.
///
/// # Errors
/// If the operating system gives no randomness.
pub fn seal(key: &[u8; 32], place: &[u8], message: &[u8]) -> Result<Vec<u8>, Error> {
    let mut nonce = [0; NONCE];
    getrandom::fill(&mut nonce).map_err(|_| Error::Entropy)?;
    let payload = Payload { msg: message, aad: place };
    let sealed =
        XChaCha20Poly1305::new(key.into()).encrypt(&XNonce::from(nonce), payload).map_err(|_| Error::Checkpoint)?;
    let mut out = Vec::with_capacity(NONCE + sealed.len());
    out.extend_from_slice(&nonce);
    out.extend_from_slice(&sealed);
    Ok(out)
}

/// What [`seal`] sealed.
///
/// # Errors
/// [`Error::Checkpoint`] if it was altered, or belongs to another key or place.
pub fn unseal(key: &[u8; 32], place: &[u8], sealed: &[u8]) -> Result<Vec<u8>, Error> {
    let (nonce, sealed) = sealed.split_first_chunk::<NONCE>().ok_or(Error::Checkpoint)?;
    let payload = Payload { msg: sealed, aad: place };
    XChaCha20Poly1305::new(key.into()).decrypt(&XNonce::from(*nonce), payload).map_err(|_| Error::Checkpoint)
}

#[cfg(test)]
mod tests {
    use super::{seal, unseal};

    #[test]
    fn opened_in_its_place_alone() {
        let sealed = seal(&[1; 32], b"row 7", b"secret").unwrap();
        assert_eq!(unseal(&[1; 32], b"row 7", &sealed).unwrap(), b"secret");
        assert!(unseal(&[2; 32], b"row 7", &sealed).is_err() && unseal(&[1; 32], b"row 8", &sealed).is_err());
        for i in 0..sealed.len() {
            let mut altered = sealed.clone();
            altered[i] ^= 1;
            assert!(unseal(&[1; 32], b"row 7", &altered).is_err(), "{i}");
        }
        assert!(unseal(&[1; 32], b"row 7", &sealed[..23]).is_err());
        assert_ne!(seal(&[1; 32], b"row 7", b"secret").unwrap(), sealed);
    }
}
