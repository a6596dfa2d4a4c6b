//! Noise that consecutive coordinates have in common, piece by piece.

use super::Key;
use super::words::ChaChaWords;
use crate::lattice::add_noise;
use rayon::prelude::*;

/// Adds to consecutive pieces of the given lengths what `draw` makes of a length; piece `i` uses `ChaCha` stream `i`.
pub(super) fn add_in_pieces(
    units: &mut [i64],
    lengths: &[u32],
    key: &Key,
    draw: impl Fn(usize, &mut ChaChaWords) -> Vec<i64> + Sync,
) {
    let mut rest = units;
    let mut pieces = Vec::with_capacity(lengths.len());
    for len in lengths {
        let (piece, tail) = rest.split_at_mut(*len as usize);
        pieces.push(piece);
        rest = tail;
    }
    assert!(rest.is_empty(), "every lattice value is in a piece: some would get no noise");
    pieces.into_par_iter().enumerate().for_each(|(stream, piece)| {
        let noise = draw(piece.len(), &mut ChaChaWords::new(key, stream as u64));
        for (unit, k) in piece.iter_mut().zip(noise) {
            *unit = add_noise(*unit, k);
        }
    });
}
