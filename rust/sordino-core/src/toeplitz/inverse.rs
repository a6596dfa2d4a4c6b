//! Inverse of a symmetric positive definite Toeplitz matrix in the form of Gohberg and Semencul.
//!
//! `T^{-1} = (L(x)L(x)ᵀ − L(x̃)L(x̃)ᵀ)/x_0` with `x = T^{-1}e_0`, `x̃ = (0, x_{n−1}, …, x_1)` and
//! `L(v)` lower triangular Toeplitz with first column `v` (Gohberg & Semencul 1972). Every product is a
//! convolution, and the diagonal of `A T^{-1} Aᵀ` for a filter `A` is two running sums of squares.

use crate::linear_algebra::dot;
use crate::scratch::REALS;
use crate::transform::fourier::{RealFourier, fast_len};
use num_complex::Complex;

/// Largest size solved by Levinson's recursion, O(n²); above, preconditioned conjugate gradients.
const LEVINSON: usize = 2048;
/// Squared residuals at which a solution is as good as it gets, those that are computed with it and those that are
/// multiplied out; and up to which it is taken.
const SOLVED: f64 = 1e-26;
const REACHED: f64 = 1e-24;
const TAKEN: f64 = 1e-20;
/// The same from which one step of Newton, which squares it, takes less work than more conjugate gradients.
const NEAR: f64 = 1e-13;

/// `T^{-1}` for `T` with first row `r`.
#[derive(Debug, Clone)]
pub(crate) struct ToeplitzInverse {
    x: Vec<f64>,
    transform: RealFourier,
    /// Spectra of `x` and `x̃`, zero-padded.
    spectra: [Vec<Complex<f64>>; 2],
}

impl ToeplitzInverse {
    /// `None` if the matrix is not numerically positive definite. `symbol` is the half spectrum of a positive function on
    /// the circle whose first lags are `r`.
    pub(crate) fn new(r: &[f64], symbol: &[f64], circle: &RealFourier) -> Option<Self> {
        let transform = RealFourier::new(fast_len(2 * r.len()));
        if r.len() <= LEVINSON {
            return Some(Self::of_column(levinson(r)?, transform));
        }
        let matrix = Embedded::new(r, transform.clone());
        let start = semi_infinite(symbol, r.len(), circle);
        let (x, residual) = matrix.conjugate_gradients(start.clone(), NEAR)?;
        if square(&residual) >= NEAR {
            return None;
        }
        Self::of_column(x, transform.clone()).refined(residual, &matrix).or_else(|| {
            // What rounding keeps from Newton's step, which sees the residual itself.
            let (x, residual) = matrix.conjugate_gradients(start, SOLVED)?;
            (square(&residual) < TAKEN && x[0] > 0.0).then(|| Self::of_column(x, transform))
        })
    }

    /// The inverse with the first column `x`.
    fn of_column(x: Vec<f64>, transform: RealFourier) -> Self {
        let spectra = [transform.spectrum(&x), transform.spectrum(&shifted(&x))];
        Self { x, transform, spectra }
    }

    /// After steps of Newton: the inverse times its residual is what is missing, up to the square of it.
    fn refined(mut self, mut residual: Vec<f64>, matrix: &Embedded) -> Option<Self> {
        for _ in 0..2 {
            if square(&residual) < REACHED {
                break;
            }
            if self.x[0] <= 0.0 {
                return None;
            }
            let mut x = self.apply(&residual);
            x.iter_mut().zip(&self.x).for_each(|(more, x)| *more += x);
            residual = matrix.missing(&x);
            self = Self::of_column(x, self.transform);
        }
        (square(&residual) < TAKEN && self.x[0] > 0.0).then_some(self)
    }

    /// `T^{-1}v`.
    pub(crate) fn apply(&self, v: &[f64]) -> Vec<f64> {
        let n = self.x.len();
        // L^T v correlates, L convolves; both keep the first n entries. What is hard to invert has more digits if the
        // difference is taken last.
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
        let (n, len) = (self.x.len(), self.transform.len() as f64);
        let filter = self.transform.spectrum(&taps[..taps.len().min(n)]);
        let sums = |spectrum: &[Complex<f64>]| {
            let mut product: Vec<_> = filter.iter().zip(spectrum).map(|(a, b)| a * b / len).collect();
            let mut answers = vec![0.0; self.transform.len()];
            self.transform.inverse(&mut product, &mut answers);
            answers.truncate(n);
            let mut sum = 0.0;
            for value in &mut answers {
                sum += *value * *value;
                *value = sum;
            }
            answers
        };
        let [mut total, less] = self.spectra.each_ref().map(|spectrum| sums(spectrum));
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

/// A symmetric Toeplitz matrix in a circulant.
struct Embedded<'a> {
    /// Its first row.
    r: &'a [f64],
    /// Of an even length of at least twice as many.
    wide: RealFourier,
    /// Half spectrum of the circulant.
    symbol: Vec<f64>,
}

impl<'a> Embedded<'a> {
    fn new(r: &'a [f64], wide: RealFourier) -> Self {
        let len = wide.len();
        let mut signal = r.to_vec();
        signal.resize(len, 0.0);
        for m in 1..r.len() {
            signal[len - m] = r[m];
        }
        let symbol = wide.forward(&mut signal).iter().map(|c| c.re).collect();
        Self { r, wide, symbol }
    }

    /// `T v`, and what is of no use behind it.
    fn multiply(&self, v: &[f64], image: &mut [f64]) {
        image[..v.len()].copy_from_slice(v);
        image[v.len()..].fill(0.0);
        self.wide.filter_in_place(image, |k| Complex::new(self.symbol[k], 0.0));
    }

    /// `e_0 − T x`.
    fn missing(&self, x: &[f64]) -> Vec<f64> {
        let mut image = REALS.take(self.wide.len());
        self.multiply(x, &mut image);
        let mut missing: Vec<f64> = image[..x.len()].iter().map(|v| -v).collect();
        missing[0] += 1.0;
        missing
    }

    /// `x` near `T^{-1}e_0` and what it misses, by conjugate gradients with T. Chan's circulant preconditioner, from `start`
    /// where it is nearer than nothing, until what it misses has the square `enough`.
    fn conjugate_gradients(&self, start: Vec<f64>, enough: f64) -> Option<(Vec<f64>, Vec<f64>)> {
        let (r, n) = (self.r, self.r.len());
        // Closest circulant in the Frobenius norm.
        let narrow = RealFourier::new(n);
        let mut closest: Vec<f64> = (0..n)
            .map(|m| ((n - m) as f64 * r[m] + m as f64 * if m == 0 { 0.0 } else { r[n - m] }) / n as f64)
            .collect();
        let preconditioner: Vec<f64> =
            narrow.forward(&mut closest).iter().map(|c| 1.0 / c.re.max(r[0] * 1e-12)).collect();
        let precondition = |v: &[f64], z: &mut [f64]| {
            z.copy_from_slice(v);
            narrow.filter_in_place(z, |k| Complex::new(preconditioner[k], 0.0));
        };

        let mut residual = self.missing(&start);
        let mut x = start;
        let mut left = square(&residual);
        if left.is_nan() || left >= 1.0 {
            x.fill(0.0);
            residual.fill(0.0);
            residual[0] = 1.0;
            left = 1.0;
        }
        let mut image = REALS.take(self.wide.len());
        let (mut z, mut direction, mut rho) = (vec![0.0; n], vec![0.0; n], 1.0);
        for _ in 0..200 {
            if left < enough {
                break;
            }
            precondition(&residual, &mut z);
            let next = dot(&residual, &z);
            let beta = next / rho;
            rho = next;
            for i in 0..n {
                direction[i] = z[i] + beta * direction[i];
            }
            self.multiply(&direction, &mut image);
            let step = rho / dot(&direction, &image[..n]);
            if !step.is_finite() || step <= 0.0 {
                return None;
            }
            for i in 0..n {
                x[i] += step * direction[i];
                residual[i] -= step * image[i];
            }
            left = square(&residual);
        }
        Some((x, residual))
    }
}

fn square(v: &[f64]) -> f64 {
    dot(v, v)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(n: usize) -> Vec<f64> {
        (0..n).map(|m| 0.9f64.powi(m as i32) + if m == 0 { 0.5 } else { 0.3 / (m as f64 + 1.0) }).collect()
    }

    fn inverse_of(r: &[f64]) -> Option<ToeplitzInverse> {
        let circle = RealFourier::new(2 * r.len());
        ToeplitzInverse::new(r, &Embedded::new(r, circle.clone()).symbol, &circle)
    }

    #[test]
    fn inverse_times_matrix_is_identity() {
        let n = 60;
        let r = row(n);
        let inverse = inverse_of(&r).unwrap();
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
            let matrix = Embedded::new(&r, wide.clone());
            let a = levinson(&r).unwrap();
            let (b, _) = matrix.conjugate_gradients(vec![0.0; 700], SOLVED).unwrap();
            let (near, residual) = matrix.conjugate_gradients(vec![0.0; 700], 1e-9).unwrap();
            assert!(near.iter().zip(&a).any(|(a, b)| (a - b).abs() > 1e-8));
            let c = ToeplitzInverse::of_column(near, wide.clone()).refined(residual, &matrix).unwrap().x;
            assert!(a.iter().zip(&b).zip(&c).all(|((a, b), c)| (a - b).abs() < 1e-9 && (a - c).abs() < 1e-9));
        }
        // Of a length that no transform likes, from the symbol.
        let r = row(LEVINSON + 13);
        let (a, b) = (levinson(&r).unwrap(), inverse_of(&r).unwrap().x);
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-11));
        assert!(levinson(&[1.0, 2.0, 0.0]).is_none());
    }
}
