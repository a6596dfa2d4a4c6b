//! The Walsh-Hadamard transform: characters of `Z_2^d`.

use pulp::Arch;
use rayon::prelude::*;
use std::ops::{Add, Sub};

/// Longest transform that is done in the nearest cache, pass by pass.
const IN_CACHE: usize = 1 << 12;
/// Parts below this length are not worth a task of their own.
const PARALLEL: usize = 1 << 14;
/// Entries of each part that one task combines.
const PIECE: usize = 1 << 11;

/// What is transformed: integers, exactly, or floats.
pub(crate) trait Entry: Copy + Send + Sync + Add<Output = Self> + Sub<Output = Self> {}
impl Entry for i64 {}
impl Entry for i128 {}
impl Entry for f64 {}

/// In place, unnormalised: `out[s] = Σ_t (−1)^popcount(s & t) x[t]`. O(N log N).
///
/// # Panics
/// If the length is not a power of two: lengths are fixed by the plan.
pub(crate) fn walsh_hadamard<T: Entry>(x: &mut [T]) {
    assert!(x.len().is_power_of_two());
    if x.len() <= IN_CACHE {
        Arch::new().dispatch(
            #[inline(always)]
            || passes(x),
        );
        return;
    }
    let part = x.len() / 8;
    if part >= PARALLEL {
        x.par_chunks_exact_mut(part).for_each(walsh_hadamard);
    } else {
        x.chunks_exact_mut(part).for_each(walsh_hadamard);
    }
    let (left, right) = x.split_at_mut(4 * part);
    let ((a, b), (c, d)) = halves(left);
    let ((e, f), (g, h)) = halves(right);
    if part >= PARALLEL {
        let pieces = |s| <[T]>::par_chunks_mut(s, PIECE);
        let first = (pieces(a), pieces(b), pieces(c), pieces(d)).into_par_iter();
        let second = (pieces(e), pieces(f), pieces(g), pieces(h)).into_par_iter();
        first.zip(second).for_each(|((a, b, c, d), (e, f, g, h))| combine([a, b, c, d, e, f, g, h]));
    } else {
        combine([a, b, c, d, e, f, g, h]);
    }
}

/// Four quarters.
#[allow(clippy::type_complexity)] // named where it is taken apart
fn halves<T>(x: &mut [T]) -> ((&mut [T], &mut [T]), (&mut [T], &mut [T])) {
    let (left, right) = x.split_at_mut(x.len() / 2);
    let (a, b) = left.split_at_mut(left.len() / 2);
    let (c, d) = right.split_at_mut(right.len() / 2);
    ((a, b), (c, d))
}

/// The transform of length eight across eight arrays.
fn combine<T: Entry>(parts: [&mut [T]; 8]) {
    Arch::new().dispatch(
        #[inline(always)]
        || {
            let [a, b, c, d, e, f, g, h] = parts;
            let len = a.len();
            let (b, c, d, e, f, g, h) = (
                &mut b[..len],
                &mut c[..len],
                &mut d[..len],
                &mut e[..len],
                &mut f[..len],
                &mut g[..len],
                &mut h[..len],
            );
            for i in 0..len {
                let y = eight([a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]]);
                [a[i], b[i], c[i], d[i], e[i], f[i], g[i], h[i]] = y;
            }
        },
    );
}

#[inline(always)]
fn eight<T: Entry>(x: [T; 8]) -> [T; 8] {
    let (a, b) = (four([x[0], x[1], x[2], x[3]]), four([x[4], x[5], x[6], x[7]]));
    let (sum, difference) =
        (std::array::from_fn::<T, 4, _>(|i| a[i] + b[i]), std::array::from_fn::<T, 4, _>(|i| a[i] - b[i]));
    [sum[0], sum[1], sum[2], sum[3], difference[0], difference[1], difference[2], difference[3]]
}

#[inline(always)]
fn four<T: Entry>([a, b, c, d]: [T; 4]) -> [T; 4] {
    let (s, t, u, v) = (a + b, a - b, c + d, c - d);
    [s + u, t + v, s - u, t - v]
}

/// Passes over the whole array: eight neighbours at once, then four arrays at a time.
#[inline(always)]
fn passes<T: Entry>(x: &mut [T]) {
    let mut half = 1;
    let (octets, rest) = x.as_chunks_mut::<8>();
    if rest.is_empty() {
        for octet in octets {
            *octet = eight(*octet);
        }
        half = 8;
    }
    while 4 * half <= x.len() {
        for block in x.chunks_exact_mut(4 * half) {
            let ((a, b), (c, d)) = halves(block);
            for (((a, b), c), d) in a.iter_mut().zip(b).zip(c).zip(d) {
                [*a, *b, *c, *d] = four([*a, *b, *c, *d]);
            }
        }
        half *= 4;
    }
    if half < x.len() {
        let (left, right) = x.split_at_mut(half);
        for (a, b) in left.iter_mut().zip(right) {
            (*a, *b) = (*a + *b, *a - *b);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::walsh_hadamard;

    /// One stage after the other.
    fn naive(x: &mut [i64]) {
        let mut half = 1;
        while half < x.len() {
            for block in x.chunks_exact_mut(2 * half) {
                let (left, right) = block.split_at_mut(half);
                for (a, b) in left.iter_mut().zip(right) {
                    (*a, *b) = (*a + *b, *a - *b);
                }
            }
            half *= 2;
        }
    }

    #[test]
    fn matches_the_definition_and_inverts_itself() {
        for bits in 0..9 {
            let n = 1usize << bits;
            let x: Vec<i64> = (0..n as i64).map(|i| (i * i) % 37 - 11).collect();
            let mut y = x.clone();
            walsh_hadamard(&mut y);
            for (s, value) in y.iter().enumerate() {
                let direct: i64 =
                    x.iter().enumerate().map(|(t, v)| if (s & t).count_ones() % 2 == 0 { *v } else { -v }).sum();
                assert_eq!(*value, direct);
            }
            walsh_hadamard(&mut y);
            assert!(y.iter().zip(&x).all(|(a, b)| *a == n as i64 * b));
        }
    }

    #[test]
    fn every_size_goes_the_same_way() {
        for bits in 9..20 {
            let x: Vec<i64> = (0..1i64 << bits).map(|i| (i * 7919) % 1013 - 500).collect();
            let (mut y, mut z) = (x.clone(), x.clone());
            walsh_hadamard(&mut y);
            naive(&mut z);
            assert_eq!(y, z, "2^{bits}");
            let mut floats: Vec<f64> = x.iter().map(|v| *v as f64).collect();
            walsh_hadamard(&mut floats);
            assert!(floats.iter().zip(&z).all(|(a, b)| *a == *b as f64));
        }
    }
}
