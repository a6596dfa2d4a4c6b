//! Work that all threads share, compiled once for a kind of number: for each closure of its own rayon takes a kilobyte of the
//! wheel or two.

use rayon::prelude::*;

/// Pieces that numbers of much the same work are cut into.
const PIECES: usize = 256;

/// Pieces of these lengths, one after the other.
pub(crate) fn pieces<T>(out: &mut [T], lens: impl Iterator<Item = usize>) -> Vec<&mut [T]> {
    let mut rest = out;
    let next = |len| {
        let (own, tail) = std::mem::take(&mut rest).split_at_mut(len);
        rest = tail;
        own
    };
    lens.map(next).collect()
}

/// Calls `write` with pieces of `len` numbers, of which the last may be shorter, and the place of the first of them.
pub(crate) fn in_pieces<T: Send>(out: &mut [T], len: usize, write: &(dyn Fn(usize, &mut [T]) + Sync)) {
    if !out.is_empty() {
        out.par_chunks_mut(len).enumerate().for_each(|(k, piece)| write(k * len, piece));
    }
}

/// Writes every number, by its place.
pub(crate) fn fill<T: Send>(out: &mut [T], of: impl Fn(usize) -> T + Sync) {
    let len = out.len().div_ceil(PIECES);
    in_pieces(out, len, &|first, piece| piece.iter_mut().zip(first..).for_each(|(slot, k)| *slot = of(k)));
}

/// Calls `write` with every slice and its number.
pub(crate) fn each_slice<T: Send>(slices: Vec<&mut [T]>, write: &(dyn Fn(usize, &mut [T]) + Sync)) {
    slices.into_par_iter().enumerate().for_each(|(k, slice)| write(k, slice));
}

/// What is made of each of so many.
pub(crate) fn collected<T: Send>(count: usize, of: &(dyn Fn(usize) -> T + Sync)) -> Vec<T> {
    (0..count).into_par_iter().map(of).collect()
}

/// The largest of so many, and nothing below zero.
pub(crate) fn largest_of<T: Default + PartialOrd + Send>(count: usize, of: &(dyn Fn(usize) -> T + Sync)) -> T {
    let larger = |a: T, b: T| if b > a { b } else { a };
    (0..count).into_par_iter().map(of).reduce(T::default, larger)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every number is written once, by its own place.
    #[test]
    fn all_places_and_no_others() {
        for len in [0, 1, 2, 255, 256, 257, 511, 513, 1000, 70_000] {
            let expected: Vec<usize> = (0..len).map(|k| 3 * k + 1).collect();
            let mut out = vec![0; len];
            fill(&mut out, |k| 3 * k + 1);
            assert_eq!(out, expected);
            for piece in [1, 2, 7, 256, len.max(1), len + 1] {
                let mut out = vec![0; len];
                in_pieces(&mut out, piece, &|first, own| {
                    assert!(own.len() == piece || first + own.len() == len);
                    own.iter_mut().zip(first..).for_each(|(slot, k)| *slot += 3 * k + 1);
                });
                assert_eq!(out, expected);
            }
            assert_eq!(collected(len, &|k| 3 * k + 1), expected);
            assert_eq!(largest_of(len, &|k| if k % 7 == 3 { k as i64 } else { -1 }), largest(len));
        }
        let mut numbers = vec![0; 10];
        each_slice(pieces(&mut numbers, [3, 0, 5].into_iter()), &|k, own| own.fill(k + 1));
        assert_eq!(numbers, [1, 1, 1, 3, 3, 3, 3, 3, 0, 0]);
    }

    fn largest(len: usize) -> i64 {
        (0..len as i64).filter(|k| k % 7 == 3).max().unwrap_or(0)
    }
}
