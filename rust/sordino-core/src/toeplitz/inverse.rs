//! Inverse of a symmetric positive definite Toeplitz matrix in the form of Gohberg and Semencul.
//!
//! `T^{-1} = (L(x)L(x)ᵀ − L(x̃)L(x̃)ᵀ)/x_0` with `x = T^{-1}e_0`, `x̃ = (0, x_{n−1}, …, x_1)` and
//! `L(v)` lower triangular Toeplitz with first column `v` (Gohberg & Semencul 1972). Every product is a
//! convolution, and the diagonal of `A T^{-1} Aᵀ` for a filter `A` is two running sums of squares.

use crate::transform::fourier::{RealFourier, fast_len};
use num_complex::Complex;

/// Largest size solved by Levinson's recursion, O(n²); above, preconditioned conjugate gradients.
const LEVINSON: usize = 2048;

/// `T^{-1}` for `T` with first row `r`.
#[derive(Debug, Clone)]
pub(crate) struct ToeplitzInverse {
    x: Vec<f64>,
    transform: RealFourier,
    /// Spectra of `x` and `x̃`, zero-padded.
    spectra: [Vec<Complex<f64>>; 2],
}

impl ToeplitzInverse {
    /// `None` if the matrix is not numerically positive definite.
    pub(crate) fn new(r: &[f64]) -> Option<Self> {
        let transform = RealFourier::new(fast_len(2 * r.len()));
        let x = if r.len() <= LEVINSON { levinson(r)? } else { conjugate_gradients(r, &transform)? };
        let spectra = [transform.spectrum(&x), transform.spectrum(&shifted(&x))];
        Some(Self { x, transform, spectra })
    }

    /// `T^{-1}v`.
    pub(crate) fn apply(&self, v: &[f64]) -> Vec<f64> {
        let n = self.x.len();
        // L^T v correlates, L convolves; both keep the first n entries.
        let product = |spectrum: &[Complex<f64>]| {
            let mut inner = self.transform.filter(v, |k| spectrum[k].conj());
            inner.truncate(n);
            self.transform.filter(&inner, |k| spectrum[k])
        };
        let [first, second] = &self.spectra;
        let (mut out, less) = rayon::join(|| product(first), || product(second));
        out.truncate(n);
        out.iter_mut().zip(less).for_each(|(o, w)| *o = (*o - w) / self.x[0]);
        out
    }

    /// Diagonal of `A T^{-1} Aᵀ` for the causal filter with these taps: entry `t` for `t < n`.
    pub(crate) fn causal_variances(&self, taps: &[f64]) -> Vec<f64> {
        let n = self.x.len();
        let sums = |vector: &[f64]| {
            let mut product = crate::transform::fourier::convolve(taps, vector, n);
            let mut sum = 0.0;
            for value in &mut product {
                sum += *value * *value;
                *value = sum;
            }
            product
        };
        let (mut total, less) = rayon::join(|| sums(&self.x), || sums(&shifted(&self.x)));
        // The difference of two running sums may end below zero.
        total.iter_mut().zip(less).for_each(|(v, w)| *v = ((*v - w) / self.x[0]).max(0.0));
        total
    }
}

/// `(0, x_{n−1}, …, x_1)`.
fn shifted(x: &[f64]) -> Vec<f64> {
    std::iter::once(0.0).chain(x[1..].iter().rev().copied()).collect()
}

/// `T^{-1}e_0` by the Levinson-Durbin recursion on the forward predictor.
fn levinson(r: &[f64]) -> Option<Vec<f64>> {
    let mut a = vec![1.0];
    let mut error = r[0];
    for k in 1..r.len() {
        if error.is_nan() || error <= r[0] * 1e-9 {
            return None;
        }
        let gap: f64 = a.iter().enumerate().map(|(i, v)| v * r[k - i]).sum();
        let reflection = -gap / error;
        a.push(0.0);
        let last = a.len() - 1;
        for i in 0..a.len().div_ceil(2) {
            let (left, right) = (a[i], a[last - i]);
            a[i] = left + reflection * right;
            if i != last - i {
                a[last - i] = right + reflection * left;
            }
        }
        error *= 1.0 - reflection * reflection;
    }
    (error > r[0] * 1e-9).then(|| a.iter().map(|v| v / error).collect())
}

/// `T^{-1}e_0` of the infinite matrix whose symbol has this half spectrum: `g_0 g` with `g` the outer function of
/// `1/|g|² = symbol`, from its cepstrum.
///
/// Exact up to what the end of the finite matrix changes: next to nothing where `g` has decayed by then.
fn semi_infinite(symbol: &[f64], n: usize, wide: &RealFourier) -> Vec<f64> {
    let (len, half) = (wide.len(), wide.len() / 2);
    let mut spectrum: Vec<Complex<f64>> =
        symbol.iter().map(|v| Complex::new(-v.max(f64::MIN_POSITIVE).ln() / len as f64, 0.0)).collect();
    let mut signal = vec![0.0; len];
    wide.inverse(&mut spectrum, &mut signal);
    // The causal half of the cepstrum; what is its own mirror image belongs to both halves.
    signal[0] *= 0.5;
    signal[half] *= 0.5;
    signal[half + 1..].fill(0.0);
    wide.forward_into(&mut signal, &mut spectrum);
    for value in &mut spectrum {
        *value = Complex::from_polar(value.re.exp() / len as f64, value.im);
    }
    wide.inverse(&mut spectrum, &mut signal);
    signal.truncate(n);
    let first = signal[0];
    for value in &mut signal {
        *value *= first;
    }
    signal
}

/// `T^{-1}e_0` by conjugate gradients with T. Chan's circulant preconditioner, from that of the infinite matrix where it
/// is nearer than nothing. `wide` has an even length of at least `2n`.
fn conjugate_gradients(r: &[f64], wide: &RealFourier) -> Option<Vec<f64>> {
    let n = r.len();
    // Embed T in a circulant.
    let len = wide.len();
    let mut signal = r.to_vec();
    signal.resize(len, 0.0);
    for m in 1..n {
        signal[len - m] = r[m];
    }
    let symbol: Vec<f64> = wide.forward(&mut signal).iter().map(|c| c.re).collect();
    // Closest circulant in the Frobenius norm.
    let narrow = RealFourier::new(n);
    let mut closest: Vec<f64> =
        (0..n).map(|m| ((n - m) as f64 * r[m] + m as f64 * if m == 0 { 0.0 } else { r[n - m] }) / n as f64).collect();
    let preconditioner: Vec<f64> = narrow.forward(&mut closest).iter().map(|c| 1.0 / c.re.max(r[0] * 1e-12)).collect();

    let multiply = |v: &[f64], image: &mut [f64]| {
        image[..n].copy_from_slice(v);
        image[n..].fill(0.0);
        wide.filter_in_place(image, |k| Complex::new(symbol[k], 0.0));
    };
    let precondition = |v: &[f64], z: &mut [f64]| {
        z.copy_from_slice(v);
        narrow.filter_in_place(z, |k| Complex::new(preconditioner[k], 0.0));
    };
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };

    let (mut x, mut image) = (semi_infinite(&symbol, n, wide), signal);
    multiply(&x, &mut image);
    let mut residual: Vec<f64> = image[..n].iter().map(|v| -v).collect();
    residual[0] += 1.0;
    let mut square = dot(&residual, &residual);
    if square.is_nan() || square >= 1.0 {
        x.fill(0.0);
        residual.fill(0.0);
        residual[0] = 1.0;
        square = 1.0;
    }
    let (mut z, mut direction, mut rho) = (vec![0.0; n], vec![0.0; n], 1.0);
    for _ in 0..200 {
        if square < 1e-26 {
            break;
        }
        precondition(&residual, &mut z);
        let next = dot(&residual, &z);
        let beta = next / rho;
        rho = next;
        for i in 0..n {
            direction[i] = z[i] + beta * direction[i];
        }
        multiply(&direction, &mut image);
        let step = rho / dot(&direction, &image);
        if !step.is_finite() || step <= 0.0 {
            return None;
        }
        for i in 0..n {
            x[i] += step * direction[i];
            residual[i] -= step * image[i];
        }
        square = dot(&residual, &residual);
    }
    (square < 1e-20 && x[0] > 0.0).then_some(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: usize) -> Vec<f64> {
        (0..n).map(|m| 0.9f64.powi(m as i32) + if m == 0 { 0.5 } else { 0.3 / (m as f64 + 1.0) }).collect()
    }

    #[test]
    fn inverse_times_matrix_is_identity() {
        let n = 60;
        let r = row(n);
        let inverse = ToeplitzInverse::new(&r).unwrap();
        for j in [0, 1, 29, 59] {
            let column: Vec<f64> = (0..n).map(|i| r[i.abs_diff(j)]).collect();
            for (i, value) in inverse.apply(&column).iter().enumerate() {
                assert!((value - f64::from(u8::from(i == j))).abs() < 1e-10);
            }
        }
        // Variances of a filter against explicit rows.
        let taps = [1.0, 2.0, -0.5];
        let variances = inverse.causal_variances(&taps);
        for t in [0usize, 1, 2, 40, 59] {
            let row: Vec<f64> =
                (0..n).map(|i| t.checked_sub(i).and_then(|j| taps.get(j)).copied().unwrap_or(0.0)).collect();
            let direct: f64 = inverse.apply(&row).iter().zip(&row).map(|(a, b)| a * b).sum();
            assert!((direct - variances[t]).abs() < 1e-10 * direct);
        }
    }

    #[test]
    fn the_infinite_matrix_is_near_where_its_inverse_decays() {
        // T^{-1}e_0 of 0.9^|m| is (1, −0.9, 0, …)/(1 − 0.81), whatever the end.
        let (n, wide) = (500, RealFourier::new(1024));
        let symbol: Vec<f64> = (0..wide.spectrum_len())
            .map(|k| 0.19 / (1.81 - 1.8 * (std::f64::consts::TAU * k as f64 / 1024.0).cos()))
            .collect();
        for (j, value) in semi_infinite(&symbol, n, &wide).iter().enumerate() {
            let known = [1.0, -0.9].get(j).map_or(0.0, |v| v / 0.19);
            assert!((value - known).abs() < 1e-12, "{j}: {value}");
        }
    }

    #[test]
    fn both_solvers_agree() {
        // The second nearly has zeros on the circle, and its inverse does not decay.
        let triangle: Vec<f64> =
            (0..700).map(|m| if m == 0 { 10.01 } else { (10.0 - f64::from(m)).max(0.0) }).collect();
        for r in [row(700), triangle] {
            let wide = RealFourier::new(fast_len(2 * r.len()));
            let (a, b) = (levinson(&r).unwrap(), conjugate_gradients(&r, &wide).unwrap());
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-9));
        }
        assert!(levinson(&[1.0, 2.0, 0.0]).is_none());
    }
}
