//! Orthonormal cosines: DCT-II and its inverse DCT-III by one real Fourier transform of the same length.
//!
//! `c_k = s_k Σ_j x_j cos(π k (2j+1)/(2n))`, `s_0 = √(1/n)`, `s_k = √(2/n)`. Makhoul 1980: with the even entries of
//! `x` in order and the odd ones after them backwards, `c_k = s_k Re(e^{−iπk/(2n)} V_k)`.

use crate::scratch::{COMPLEX, REALS};
use crate::transform::fourier::RealFourier;
use crate::upper::Upper;
use num_complex::Complex;
use std::f64::consts::PI;
use std::sync::Arc;

/// Both transforms of one length.
#[derive(Debug, Clone)]
pub struct Cosine {
    fourier: RealFourier,
    /// `e^{−iπk/(2n)}` for `k ≤ n/2`.
    turns: Arc<[Complex<f64>]>,
}

impl Cosine {
    pub(super) fn new(len: usize) -> Self {
        let turns = (0..=len / 2).map(|k| Complex::from_polar(1.0, -PI * k as f64 / (2 * len) as f64)).collect();
        Self { fourier: RealFourier::new(len), turns }
    }

    pub(super) fn len(&self) -> usize {
        self.fourier.len()
    }

    pub(super) fn analyze(&self, x: &mut [f64]) {
        let n = self.len();
        let mut folded = REALS.take(n);
        for (i, value) in x.iter().enumerate() {
            folded[fold(i, n)] = *value;
        }
        let mut spectrum = COMPLEX.take(n / 2 + 1);
        self.fourier.forward_into(&mut folded, &mut spectrum);
        let (first, other) = ((1.0 / n as f64).sqrt(), (2.0 / n as f64).sqrt());
        x[0] = spectrum[0].re * first;
        // Frequencies k and n − k share a product: V_{n−k} is the conjugate of V_k.
        for k in 1..=n / 2 {
            let turned = spectrum[k] * self.turns[k] * other;
            x[k] = turned.re;
            x[n - k] = -turned.im;
        }
        if n.is_multiple_of(2) && n > 1 {
            x[n / 2] = (spectrum[n / 2] * self.turns[n / 2]).re * other;
        }
    }

    pub(super) fn synthesize(&self, c: &mut [f64]) {
        let n = self.len();
        let (first, other) = ((1.0 / n as f64).sqrt(), (0.5 / n as f64).sqrt());
        let mut spectrum = COMPLEX.take(n / 2 + 1);
        spectrum[0] = Complex::new(c[0] * first, 0.0);
        for k in 1..=n / 2 {
            spectrum[k] = Complex::new(c[k], -c[n - k]) * self.turns[k].conj() * other;
        }
        let mut folded = REALS.take(n);
        self.fourier.inverse(&mut spectrum, &mut folded);
        for (i, value) in c.iter_mut().enumerate() {
            *value = folded[fold(i, n)];
        }
    }

    /// `max_j Σ_k |c_k(e_j)| = √(1/n) + √(2/n)·(cot(π/(4n)) − 1)/2`, about `0.9003 √n`.
    ///
    /// With `d = gcd(2j+1, n)` the products `k(2j+1)` run `d` times through the multiples of `d` modulo `2n`, so
    /// `Σ_{k mod 2n} |cos(πk(2j+1)/(2n))| = d·cot(πd/(4n))`, which falls in `d`; `d = 1` at `j = 0`. Frequencies `k` and
    /// `−k` are equal, `k = 0` has 1 and `k = n` nothing.
    pub(super) fn column_l1(&self) -> Upper {
        let n = self.len() as f64;
        let all = (1.0 / (PI / (4.0 * n)).tan() - 1.0) / 2.0;
        Upper::rounded((1.0 / n).sqrt() + (2.0 / n).sqrt() * all.max(0.0), 64)
    }
}

/// Place of entry `i`: even ones in order, odd ones after them backwards.
fn fold(i: usize, n: usize) -> usize {
    if i.is_multiple_of(2) { i / 2 } else { n - 1 - i / 2 }
}
