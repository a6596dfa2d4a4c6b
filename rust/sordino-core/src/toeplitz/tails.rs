//! Sums over the squares of what comes after each step.

use super::buffered::BufferedToeplitz;
use super::lanes::Lanes;
use pulp::{Arch, Simd, WithSimd};
use std::array::from_fn;

/// Numbers that are computed together.
const LANES: usize = 8;

/// `Σ_{t>j} w_t c_{t−j}²` from the last `j` to the first, over the squares of the kernel's exponentials. A lane that it lacks
/// weighs nothing.
pub(super) struct Tails {
    powers: Vec<[f64; LANES]>,
    products: Vec<[f64; LANES]>,
    state: Vec<[f64; LANES]>,
}

impl Tails {
    pub(super) fn new(kernel: &BufferedToeplitz) -> Self {
        let rows = (kernel.degree() * (kernel.degree() + 1) / 2).div_ceil(LANES);
        let [mut powers, mut products, state] = from_fn(|_| vec![[0.0; LANES]; rows]);
        let mut pair = 0;
        for (i, (m, w)) in kernel.mu().iter().zip(kernel.omega()).enumerate() {
            for (k, (n, v)) in kernel.mu().iter().zip(kernel.omega()).enumerate().take(i + 1) {
                let (row, lane) = (pair / LANES, pair % LANES);
                powers[row][lane] = (1.0 - m.value()) * (1.0 - n.value());
                // Pairs off the diagonal stand for two.
                products[row][lane] = w.value() * v.value() * if i == k { 1.0 } else { 2.0 };
                pair += 1;
            }
        }
        Self { powers, products, state }
    }

    /// The sums of the steps of a piece, which ends where the one before it in time began.
    pub(super) fn after(&mut self, weights: &[f64]) -> Vec<f64> {
        let mut after = vec![0.0; weights.len()];
        Arch::new().dispatch(Sweep { tails: self, weights, after: &mut after });
        after
    }
}

struct Sweep<'a> {
    tails: &'a mut Tails,
    weights: &'a [f64],
    after: &'a mut [f64],
}

impl WithSimd for Sweep<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Tails { powers, products, state } = self.tails;
        for (slot, weight) in self.after.iter_mut().zip(self.weights).rev() {
            let (mut sums, weight) = (Lanes::<S, LANES>::splat(simd, 0.0), Lanes::splat(simd, *weight));
            for ((state, powers), products) in state.iter_mut().zip(&*powers).zip(&*products) {
                let own = Lanes::load(simd, state);
                sums = sums.plus(simd, own);
                let fresh = weight.times(simd, Lanes::load(simd, products));
                own.times(simd, Lanes::load(simd, powers)).plus(simd, fresh).store(state);
            }
            *slot = sums.sum(simd);
        }
    }
}
