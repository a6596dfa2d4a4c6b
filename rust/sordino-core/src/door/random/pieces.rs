//! Noise that consecutive coordinates have in common, piece by piece.

use super::Key;
use super::words::ChaChaWords;
use crate::lattice::add_noise;
use crate::parallel::{each_slice, pieces};

/// Adds to consecutive pieces of the given lengths what `draw` makes of a length; piece `i` uses `ChaCha` stream `i`.
pub(super) fn add_in_pieces(
    units: &mut [i64],
    lengths: &[u32],
    key: &Key,
    draw: impl Fn(usize, &mut ChaChaWords) -> Vec<i64> + Sync,
) {
    let all: usize = lengths.iter().map(|len| *len as usize).sum();
    assert!(all == units.len(), "every lattice value is in a piece: some would get no noise");
    each_slice(pieces(units, lengths.iter().map(|len| *len as usize)), &|stream, piece| {
        let noise = draw(piece.len(), &mut ChaChaWords::new(key, stream as u64));
        for (unit, k) in piece.iter_mut().zip(noise) {
            *unit = add_noise(*unit, k);
        }
    });
}
