//! Real Fourier transforms of any length, and convolution by them.

use crate::scratch::{COMPLEX, REALS};
use num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Plans kept for the next transform of their length: making one takes as long as a few transforms.
const KEPT: usize = 32;
/// Most points of all plans that are kept together, each of some 25 bytes.
const KEPT_POINTS: usize = 1 << 21;

#[derive(Default)]
struct Known {
    /// What was planned last, the latest at the end.
    kept: Vec<Arc<Plan>>,
    /// All plans that somebody holds.
    held: Vec<Weak<Plan>>,
}

struct Plans(Mutex<Known>);

static PLANS: Plans = Plans(Mutex::new(Known { kept: Vec::new(), held: Vec::new() }));

/// Both directions of one length, each made when it is first needed.
struct Plan {
    len: usize,
    forward: OnceLock<Arc<dyn RealToComplex<f64>>>,
    inverse: OnceLock<Arc<dyn ComplexToReal<f64>>>,
}

impl Plan {
    fn new(len: usize) -> Self {
        Self { len, forward: OnceLock::new(), inverse: OnceLock::new() }
    }

    fn forward(&self) -> &dyn RealToComplex<f64> {
        &**made(&self.forward, || RealFftPlanner::new().plan_fft_forward(self.len))
    }

    fn inverse(&self) -> &dyn ComplexToReal<f64> {
        &**made(&self.inverse, || RealFftPlanner::new().plan_fft_inverse(self.len))
    }
}

/// What is there, or else made, by two threads at once if need be: nobody waits while another makes it.
pub(crate) fn made<T>(once: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if let Some(found) = once.get() {
        return found;
    }
    let found = make();
    once.get_or_init(|| found)
}

impl Plans {
    /// The plan of this length, kept for the next time. Nobody waits: after a fork a lock may be held for ever.
    fn get(&self, len: usize) -> Arc<Plan> {
        let Ok(mut plans) = self.0.try_lock() else { return Arc::new(Plan::new(len)) };
        let Known { kept, held } = &mut *plans;
        let known = kept.iter().rposition(|plan| plan.len == len).map(|index| kept.remove(index));
        let held_by_others = || held.iter().filter_map(Weak::upgrade).find(|plan| plan.len == len);
        let plan = known.or_else(held_by_others).unwrap_or_else(|| {
            let plan = Arc::new(Plan::new(len));
            held.retain(|plan| plan.strong_count() > 0);
            held.push(Arc::downgrade(&plan));
            plan
        });
        if len <= KEPT_POINTS {
            kept.push(Arc::clone(&plan));
            while kept.len() > KEPT || kept.iter().map(|plan| plan.len).sum::<usize>() > KEPT_POINTS {
                kept.remove(0);
            }
        }
        plan
    }
}

/// Forward and inverse real transform of one length; unnormalised, as in `numpy.fft.rfft` and
/// `n·irfft`.
#[derive(Clone)]
pub(crate) struct RealFourier {
    plan: Arc<Plan>,
}

impl std::fmt::Debug for RealFourier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RealFourier({})", self.len())
    }
}

impl RealFourier {
    pub(crate) fn new(len: usize) -> Self {
        Self { plan: PLANS.get(len) }
    }

    /// Length of the signal.
    pub(crate) fn len(&self) -> usize {
        self.plan.len
    }

    pub(crate) fn spectrum_len(&self) -> usize {
        self.len() / 2 + 1
    }

    /// Half spectrum of `x` (destroyed), length `len/2 + 1`.
    pub(crate) fn forward(&self, x: &mut [f64]) -> Vec<Complex<f64>> {
        let mut spectrum = vec![Complex::default(); self.spectrum_len()];
        self.forward_into(x, &mut spectrum);
        spectrum
    }

    pub(crate) fn forward_into(&self, x: &mut [f64], spectrum: &mut [Complex<f64>]) {
        let forward = self.plan.forward();
        let mut scratch = COMPLEX.take(forward.get_scratch_len());
        forward.process_with_scratch(x, spectrum, &mut scratch).expect("lengths fixed by the plan");
    }

    /// Inverse times `len`; the spectrum is destroyed.
    pub(crate) fn inverse(&self, spectrum: &mut [Complex<f64>], out: &mut [f64]) {
        // A real signal has real coefficients at 0 and N/2; rounding may have left a trace.
        spectrum[0].im = 0.0;
        if self.len().is_multiple_of(2) {
            spectrum[self.len() / 2].im = 0.0;
        }
        let inverse = self.plan.inverse();
        let mut scratch = COMPLEX.take(inverse.get_scratch_len());
        inverse.process_with_scratch(spectrum, out, &mut scratch).expect("lengths fixed by the plan");
    }

    /// Half spectrum of a borrowed signal, zero-padded to the length.
    pub(crate) fn spectrum(&self, x: &[f64]) -> Vec<Complex<f64>> {
        let mut padded = REALS.take(self.len());
        padded[..x.len()].copy_from_slice(x);
        padded[x.len()..].fill(0.0);
        self.forward(&mut padded)
    }

    /// `out = irfft(spectrum(x)·transfer)`, `x` zero-padded; `out` has the full length.
    pub(crate) fn filter(&self, x: &[f64], transfer: impl Fn(usize) -> Complex<f64>) -> Vec<f64> {
        let mut out = x.to_vec();
        out.resize(self.len(), 0.0);
        self.filter_in_place(&mut out, transfer);
        out
    }

    /// The same, of an array of the full length.
    pub(crate) fn filter_in_place(&self, x: &mut [f64], transfer: impl Fn(usize) -> Complex<f64>) {
        let mut spectrum = COMPLEX.take(self.spectrum_len());
        self.forward_into(x, &mut spectrum);
        let inverse = 1.0 / self.len() as f64;
        for (k, value) in spectrum.iter_mut().enumerate() {
            *value = *value * transfer(k) * inverse;
        }
        self.inverse(&mut spectrum, x);
    }

    /// Transform of the even sequence that has these values from 0 to half of the ring: even too, and returned alike. It is
    /// its own inverse, but for the length.
    pub(crate) fn even(&self, half: &[f64]) -> Vec<f64> {
        let (mut whole, mut spectrum) = (REALS.take(self.len()), COMPLEX.take(self.spectrum_len()));
        whole[..half.len()].copy_from_slice(half);
        for k in 1..half.len() {
            whole[self.len() - k] = half[k];
        }
        self.forward_into(&mut whole, &mut spectrum);
        spectrum.iter().map(|value| value.re).collect()
    }

    /// `x ← irfft(rfft(x)·transfer)` for a real transfer: by Hartley's transform, which is its own inverse, so that one
    /// direction is planned.
    pub(crate) fn filter_evenly(&self, x: &mut [f64], transfer: impl Fn(usize) -> f64) {
        let len = self.len();
        let mut spectrum = COMPLEX.take(self.spectrum_len());
        self.hartley(x, &mut spectrum, |k| transfer(k) / len as f64);
        self.hartley(x, &mut spectrum, |_| 1.0);
    }

    /// `x_k ← scale_k Σ_j x_j (cos + sin)(2πjk/N)`.
    fn hartley(&self, x: &mut [f64], spectrum: &mut [Complex<f64>], scale: impl Fn(usize) -> f64) {
        self.forward_into(x, spectrum);
        let len = self.len();
        for (k, value) in spectrum.iter().enumerate() {
            let scale = scale(k);
            x[(len - k) % len] = scale * (value.re + value.im);
            x[k] = scale * (value.re - value.im);
        }
    }

    /// How often frequency `k` of the half spectrum occurs in the whole: 1 at 0 and N/2, else 2.
    pub(crate) fn multiplicity(&self, k: usize) -> f64 {
        if k == 0 || 2 * k == self.len() { 1.0 } else { 2.0 }
    }

    /// `Σ_{k<N} value(k)` over the whole spectrum of a function symmetric in `k`.
    pub(crate) fn sum(&self, value: impl Fn(usize) -> f64) -> f64 {
        (0..self.spectrum_len()).map(|k| self.multiplicity(k) * value(k)).sum()
    }
}

/// First `out_len` terms of the linear convolution of two real sequences, O(n log n).
pub(crate) fn convolve(a: &[f64], b: &[f64], out_len: usize) -> Vec<f64> {
    let (a, b) = (&a[..a.len().min(out_len)], &b[..b.len().min(out_len)]);
    let len = fast_len(a.len() + b.len());
    let transform = RealFourier::new(len);
    let spectrum = transform.spectrum(b);
    let mut out = transform.filter(a, |k| spectrum[k]);
    out.resize(out_len, 0.0);
    out
}

/// An even length at or above `len` that transforms fast.
pub(crate) fn fast_len(len: usize) -> usize {
    let power = len.next_power_of_two().max(2);
    // 3/4 of a power of two is still a fast mixed radix.
    if power >= 16 && power / 4 * 3 >= len { power / 4 * 3 } else { power }
}

/// Unit roundoff of doubles.
pub(crate) const UNIT_ROUNDOFF: f64 = 1.110_223_024_625_156_5e-16;

/// Levels of radix-2 rounding charged to a transform of this length.
///
/// A power of two is charged `log2 N + 3`: Percival's bound counts `log2 N`, and real packing adds
/// less than three. Mixed radix, Rader's and Bluestein's algorithms are charged four times as much,
/// a margin checked in tests.
pub(crate) fn rounding_levels(len: usize) -> f64 {
    let log = f64::from(len.max(2).next_power_of_two().trailing_zeros());
    if len.is_power_of_two() { log + 3.0 } else { 4.0 * log + 12.0 }
}

/// Relative error bound `‖fl(Fx) − Fx‖₂ ≤ bound·‖Fx‖₂` of one transform (Higham 2002, Thm 24.2:
/// `η·levels` with `η ≤ u·(1 + 4·(√2 + 1) + …) < 12 u` for twiddles within one unit in the last place).
pub(crate) fn transform_error(len: usize) -> f64 {
    12.0 * UNIT_ROUNDOFF * rounding_levels(len) * 1.01
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(a: &[f64], b: &[f64], out_len: usize) -> Vec<f64> {
        let mut out = vec![0.0; out_len];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                if i + j < out_len {
                    out[i + j] += x * y;
                }
            }
        }
        out
    }

    #[test]
    fn oracle_on_a_known_case() {
        assert_eq!(naive(&[1.0, 2.0], &[3.0, 4.0, 5.0], 4), [3.0, 10.0, 13.0, 10.0]);
    }

    #[test]
    fn plans_are_kept_within_limits() {
        let plans = Plans(Mutex::new(Known::default()));
        let first = plans.get(1000);
        for len in (1..KEPT).chain([KEPT_POINTS + 1]) {
            plans.get(len);
        }
        assert!(Arc::ptr_eq(&first, &plans.get(1000)));
        for len in (1..=2 * KEPT).chain([KEPT_POINTS / 2, KEPT_POINTS]) {
            assert_eq!(plans.get(len).len, len);
            let kept = &plans.0.lock().unwrap().kept;
            assert!(kept.len() <= KEPT && kept.iter().map(|plan| plan.len).sum::<usize>() <= KEPT_POINTS);
        }
        // What others hold is found, whether it is kept or not.
        assert!(Arc::ptr_eq(&first, &plans.get(1000)));
        let long = plans.get(KEPT_POINTS + 1);
        assert!(Arc::ptr_eq(&long, &plans.get(KEPT_POINTS + 1)));
        drop(long);
        plans.get(1 << 10);
        assert!(plans.0.lock().unwrap().held.iter().all(|plan| plan.strong_count() > 0));
    }

    #[test]
    fn a_direction_is_made_when_it_is_needed() {
        let transform = RealFourier { plan: Arc::new(Plan::new(6)) };
        let mut spectrum = transform.spectrum(&[1.0, 2.0]);
        assert!(transform.plan.forward.get().is_some() && transform.plan.inverse.get().is_none());
        let mut back = [0.0; 6];
        transform.inverse(&mut spectrum, &mut back);
        assert!((back[1] - 12.0).abs() < 1e-12 && back[5].abs() < 1e-12);
    }

    #[test]
    fn one_direction_does_for_even_sequences_and_real_transfers() {
        for len in [2usize, 3, 8, 34, 45] {
            let ring = RealFourier::new(len);
            let half: Vec<f64> = (0..=len / 2).map(|k| ((k * 37) % 11) as f64 - 3.0).collect();
            for (k, value) in ring.even(&half).iter().enumerate() {
                let cosine =
                    |j: usize| half[j.min(len - j)] * (std::f64::consts::TAU * (j * k) as f64 / len as f64).cos();
                assert!((value - (0..len).map(cosine).sum::<f64>()).abs() < 1e-12 * len as f64);
            }
            let x: Vec<f64> = (0..len).map(|k| ((k * 29) % 13) as f64).collect();
            let mut filtered = x.clone();
            ring.filter_evenly(&mut filtered, |k| 1.0 / (1 + k) as f64);
            let known = ring.filter(&x, |k| Complex::new(1.0 / (1 + k) as f64, 0.0));
            assert!(filtered.iter().zip(&known).all(|(a, b)| (a - b).abs() < 1e-12 * len as f64));
        }
    }

    proptest! {
        #[test]
        fn convolution_matches_the_oracle(
            a in prop::collection::vec(-10.0..10.0f64, 1..40),
            b in prop::collection::vec(-10.0..10.0f64, 1..40),
            out_len in 1usize..80,
        ) {
            for (x, y) in convolve(&a, &b, out_len).iter().zip(naive(&a, &b, out_len)) {
                prop_assert!((x - y).abs() < 1e-10);
            }
        }

        #[test]
        fn fast_lengths_are_even_and_long_enough(len in 1usize..100_000) {
            let fast = fast_len(len);
            prop_assert!(fast >= len && fast < 2 * len.max(2) && fast.is_multiple_of(2));
        }
    }
}
