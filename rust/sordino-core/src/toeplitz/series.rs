//! Power series to `n` terms: product, inverse, square root, and the binomial series in closed form.
//!
//! Inverse and root double their terms by Newton's iteration (Brent & Kung 1978): O(n log n). Missing
//! coefficients of an argument are zeros.

use crate::transform::fourier::{RealFourier, convolve, fast_len};

/// Products with a factor up to this long, and series up to this many terms, are computed directly.
const DIRECT: usize = 64;

/// The first `len` coefficients of `a·b`.
pub fn multiply(a: &[f64], b: &[f64], len: usize) -> Vec<f64> {
    let (a, b) = (&a[..a.len().min(len)], &b[..b.len().min(len)]);
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if short.len() > DIRECT {
        return convolve(long, short, len);
    }
    let mut out = vec![0.0; len];
    for (i, x) in short.iter().enumerate() {
        for (slot, y) in out[i..].iter_mut().zip(long) {
            *slot += x * y;
        }
    }
    out
}

/// The first `len` coefficients of `1/a`, `a_0 ≠ 0`.
///
/// Newton: `b ← b + b(1 − ab)`.
pub fn inverse(a: &[f64], len: usize) -> Vec<f64> {
    let mut b = Vec::with_capacity(len);
    for k in 0..len.min(DIRECT) {
        let sum: f64 = (1..=k.min(a.len() - 1)).map(|i| a[i] * b[k - i]).sum();
        b.push((f64::from(u8::from(k == 0)) - sum) / a[0]);
    }
    while b.len() < len {
        let (known, terms) = (b.len(), (2 * b.len()).min(len));
        // What wraps around a ring of all terms meets those that are known alone: 1 and zeros.
        let ring = RealFourier::new(fast_len(terms));
        let spectrum = ring.spectrum(&b);
        let mut residual = ring.filter(&a[..a.len().min(terms)], |k| spectrum[k]);
        unknown_terms(&mut residual, known, terms);
        ring.filter_in_place(&mut residual, |k| spectrum[k]);
        b.extend(residual[known..terms].iter().map(|c| -c));
    }
    b
}

/// Keeps these terms, and no others.
fn unknown_terms(series: &mut [f64], known: usize, terms: usize) {
    series[..known].fill(0.0);
    series[terms..].fill(0.0);
}

/// The first `len` coefficients of `√a`, `a_0 > 0`.
///
/// Newton on `r = 1/√a`: `r ← r + r(1 − a r²)/2`, then `√a = a·r`.
pub fn square_root(a: &[f64], len: usize) -> Vec<f64> {
    let short = len.min(DIRECT);
    let mut root = Vec::with_capacity(short);
    for k in 0..short {
        let known = a.get(k).copied().unwrap_or(0.0);
        root.push(if k == 0 {
            known.sqrt()
        } else {
            let sum: f64 = (1..k).map(|i| root[i] * root[k - i]).sum();
            (known - sum) / (2.0 * root[0])
        });
    }
    if len <= DIRECT {
        return root;
    }
    let mut r = inverse(&root, short);
    while r.len() < len {
        let (known, terms) = (r.len(), (2 * r.len()).min(len));
        // The product has up to twice as many terms: what wraps around meets those that are known alone.
        let ring = RealFourier::new(fast_len(terms + known));
        let spectrum = ring.spectrum(&r);
        let mut residual = ring.filter(&a[..a.len().min(terms)], |k| spectrum[k] * spectrum[k]);
        unknown_terms(&mut residual, known, terms);
        ring.filter_in_place(&mut residual, |k| spectrum[k]);
        r.extend(residual[known..terms].iter().map(|c| -0.5 * c));
    }
    multiply(a, &r, len)
}

/// The first `len` coefficients of `(1 − γz)^exponent`: `c_k = c_{k−1}·γ(k − 1 − exponent)/k`.
///
/// The exponent −1/2 gives `γ^k·C(2k, k)/4^k`: the square root of the running sum for `γ = 1`
/// (Fichtenberger, Henzinger & Upadhyay 2023), of the exponentially decaying sum below.
pub fn binomial(gamma: f64, exponent: f64, len: usize) -> Vec<f64> {
    std::iter::successors(Some((0usize, 1.0f64)), |(k, c)| {
        let next = *k as f64 + 1.0;
        Some((k + 1, c * gamma * (next - 1.0 - exponent) / next))
    })
    .take(len)
    .map(|(_, c)| c)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(a: &[f64], b: &[f64], len: usize) -> Vec<f64> {
        let at = |x: &[f64], i: usize| x.get(i).copied().unwrap_or(0.0);
        (0..len).map(|k| (0..=k).map(|i| at(a, i) * at(b, k - i)).sum()).collect()
    }

    fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance)
    }

    /// A series without zeros in the disk: the constant outweighs the rest.
    fn series() -> impl Strategy<Value = Vec<f64>> {
        (prop::collection::vec(-1.0..1.0f64, 0..200), 1.5..3.0f64).prop_map(|(tail, first)| {
            let total: f64 = tail.iter().map(|v| v.abs()).sum::<f64>().max(1.0);
            std::iter::once(first).chain(tail.into_iter().map(|v| v / total)).collect()
        })
    }

    #[test]
    fn oracle_on_a_known_case() {
        assert_eq!(naive(&[1.0, 2.0], &[3.0, 4.0, 5.0], 4), [3.0, 10.0, 13.0, 10.0]);
    }

    #[test]
    fn closed_forms() {
        let half = binomial(1.0, -0.5, 5);
        assert_eq!(half, [1.0, 0.5, 0.375, 0.3125, 0.273_437_5]);
        let ones = vec![1.0; 3000];
        let root = binomial(1.0, -0.5, 3000);
        assert!(close(&square_root(&ones, 3000), &root, 1e-11));
        assert!(close(&multiply(&root, &root, 3000), &ones, 1e-11));
        assert!(close(&inverse(&root, 3000), &binomial(1.0, 0.5, 3000), 1e-11));
        assert_eq!(binomial(0.5, 1.0, 4), [1.0, -0.5, 0.0, 0.0]);
        // S_1024, the squared norm of the root: 3.272554 (page of the mechanism).
        let energy: f64 = root[..1024].iter().map(|c| c * c).sum();
        assert!((energy - 3.272_554).abs() < 5e-7);
    }

    proptest! {
        #[test]
        fn products_match_the_oracle(
            a in prop::collection::vec(-10.0..10.0f64, 1..200),
            b in prop::collection::vec(-10.0..10.0f64, 1..200),
            len in 1usize..400,
        ) {
            prop_assert!(close(&multiply(&a, &b, len), &naive(&a, &b, len), 1e-9));
        }

        #[test]
        fn inverses_and_roots_solve_their_equations(a in series(), len in 1usize..500) {
            let mut padded = a.clone();
            padded.resize(len, 0.0);
            let mut one = vec![0.0; len];
            one[0] = 1.0;
            prop_assert!(close(&naive(&a, &inverse(&a, len), len), &one, 1e-12));
            let root = square_root(&a, len);
            prop_assert!(close(&naive(&root, &root, len), &padded, 1e-12));
        }
    }
}
