//! The Walsh-Hadamard transform: characters of `Z_2^d`.

use std::ops::{Add, Sub};

/// In place, unnormalised: `out[s] = Σ_t (−1)^popcount(s & t) x[t]`. O(N log N).
///
/// # Panics
/// If the length is not a power of two: lengths are fixed by the plan.
pub(crate) fn walsh_hadamard<T: Copy + Add<Output = T> + Sub<Output = T>>(x: &mut [T]) {
    assert!(x.len().is_power_of_two());
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

#[cfg(test)]
mod tests {
    use super::walsh_hadamard;

    #[test]
    fn matches_the_definition_and_inverts_itself() {
        let x: Vec<i64> = (0..64).map(|i| (i * i) % 37 - 11).collect();
        let mut y = x.clone();
        walsh_hadamard(&mut y);
        for (s, value) in y.iter().enumerate() {
            let direct: i64 =
                x.iter().enumerate().map(|(t, v)| if (s & t).count_ones() % 2 == 0 { *v } else { -v }).sum();
            assert_eq!(*value, direct);
        }
        walsh_hadamard(&mut y);
        assert!(y.iter().zip(&x).all(|(a, b)| *a == 64 * b));
    }
}
