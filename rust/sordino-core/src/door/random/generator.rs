//! One `ChaCha12` generator on the heap, and no copy of its key on the stack.

use super::Key;
use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};
use std::hint::black_box;

/// Bytes of the stack that are overwritten: several times what making a generator takes.
const SCRUBBED: usize = 1 << 13;

/// A generator under a key, that goes to any word of any stream in place.
pub(super) struct Generator(Box<ChaCha12Rng>);

impl Generator {
    pub(super) fn new(key: &Key) -> Self {
        scrubbed(|| Self(Box::new(ChaCha12Rng::from_seed(*key.bytes()))))
    }

    /// Goes to a word of 64 bits.
    pub(super) fn seek(&mut self, stream: u64, word: u64) {
        self.0.set_stream(stream);
        self.0.set_word_pos(2 * u128::from(word)); // in words of 32 bits
    }

    pub(super) fn word(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}

/// Uniform words of 64 bits under a key, one after the other.
pub(in crate::door) struct WordsOfKey(Generator);

impl WordsOfKey {
    pub(in crate::door) fn new(key: &Key) -> Self {
        Self(Generator::new(key))
    }

    pub(in crate::door) fn next(&mut self) -> u64 {
        self.0.word()
    }
}

impl Drop for Generator {
    /// The generator wipes itself; what making blocks left on the stack lies below whoever drops it.
    fn drop(&mut self) {
        scrub();
    }
}

/// Calls, and overwrites what the call left on the stack. What it returns must not hold a secret itself.
#[inline(never)]
fn scrubbed<T>(call: impl FnOnce() -> T) -> T {
    let result = below(call);
    scrub();
    result
}

#[inline(never)]
fn below<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// Lies where the frames of the call lay: both are called from the same place. A copy as long as a generator then takes
/// the registers that the copy to the heap went through: whoever saves registers, as a linker does that binds a symbol
/// late, would put them on the stack again.
#[inline(never)]
fn scrub() {
    let mut zeros = [0u8; SCRUBBED];
    black_box(&mut zeros);
    let (zeros, rest) = zeros.split_at_mut(SCRUBBED / 2);
    let len = black_box(size_of::<ChaCha12Rng>());
    rest[..len].copy_from_slice(&zeros[..len]);
    black_box(rest);
}
