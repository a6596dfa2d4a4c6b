//! Convolution over a finite abelian group.

use crate::transform::group::GroupFourier;
use crate::transform::hadamard::walsh_hadamard;

/// `out_a = Σ_b h_{a−b} x_b`.
pub(super) fn apply(radices: &[usize], kernel: &[f64], x: &[f64], out: &mut [f64]) {
    if radices.iter().all(|n| *n == 2) {
        let (mut a, mut b) = (x.to_vec(), kernel.to_vec());
        walsh_hadamard(&mut a);
        walsh_hadamard(&mut b);
        let inverse = 1.0 / a.len() as f64;
        a.iter_mut().zip(&b).for_each(|(a, b)| *a *= b * inverse);
        walsh_hadamard(&mut a);
        out.copy_from_slice(&a);
    } else {
        let transform = GroupFourier::new(radices);
        let spectrum = transform.spectrum(kernel);
        out.copy_from_slice(&transform.filter(x, |k| spectrum[k]));
    }
}

/// Row `t`.
pub(super) fn write_row(radices: &[usize], kernel: &[f64], t: usize, row: &mut [f64]) {
    for (j, slot) in row.iter_mut().enumerate() {
        *slot = kernel[difference(t, j, radices)];
    }
}

/// `a − b` in the group, as flat indices.
fn difference(a: usize, b: usize, radices: &[usize]) -> usize {
    let (mut a, mut b, mut index, mut place) = (a, b, 0, 1);
    for n in radices.iter().rev() {
        index += (a % n + n - b % n) % n * place;
        place *= n;
        a /= n;
        b /= n;
    }
    index
}
