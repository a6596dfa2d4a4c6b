//! Variances of the sums of what a stream with two diagonals publishes.

use super::buffered::{BufferedToeplitz, MAX_DEGREE};
use super::lanes::Lanes;
use pulp::{Arch, Simd, WithSimd};
use std::array::from_fn;

/// Numbers that are computed together: of most kernels, and of all of them.
const LANES: usize = 8;
const ALL: usize = 16;
const _: () = assert!(MAX_DEGREE <= ALL);

/// Variance of `Σ_{u≤t} v_u` at noise multiplier 1, from `s̃`, `d̃` and `σ` of each step.
///
/// Propagates the covariance `P` of the buffers, theirs with the sum `c` and the variance of the sum `v` through
/// `a ← Θa + d̃(k − s̃ωᵀa)1` and the sum of `k − s̃ωᵀa`: with `q = Pω`, `f = s̃²ωᵀq + σ²` and `u = d̃(½d̃f − s̃Θq)`,
/// `P ← ΘPΘ + u1ᵀ + 1uᵀ`, `c ← Θc + d̃(f − s̃ωᵀc)1 − s̃Θq` and `v ← v + f − 2s̃ωᵀc`, O(degree²) a step.
pub(super) fn running_variances(kernel: &BufferedToeplitz, steps: impl ExactSizeIterator<Item = [f64; 3]>) -> Vec<f64> {
    if kernel.degree() > LANES {
        return Arch::new().dispatch(Propagation::<_, ALL> { kernel, steps });
    }
    Arch::new().dispatch(Propagation::<_, LANES> { kernel, steps })
}

struct Propagation<'a, I, const SIZE: usize> {
    kernel: &'a BufferedToeplitz,
    steps: I,
}

impl<I: ExactSizeIterator<Item = [f64; 3]>, const SIZE: usize> WithSimd for Propagation<'_, I, SIZE> {
    type Output = Vec<f64>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Vec<f64> {
        // A lane that a kernel lacks weighs nothing.
        let (mut weights, mut thetas) = ([0.0; SIZE], [0.0; SIZE]);
        for (i, (mu, weight)) in self.kernel.mu().iter().zip(self.kernel.omega()).enumerate() {
            (weights[i], thetas[i]) = (weight.value(), 1.0 - mu.value());
        }
        let total: f64 = weights.iter().sum();
        let all = |value: f64| Lanes::<S, SIZE>::splat(simd, value);
        let (omega, poles) = (Lanes::load(simd, &weights), Lanes::load(simd, &thetas));
        // Rows of `P`, and of `θ_i θ_k`.
        let powers: [_; SIZE] = from_fn(|i| poles.times(simd, all(thetas[i])));
        let mut covariance = [all(0.0); SIZE];
        let (mut cross, mut variance) = (all(0.0), 0.0f64);
        // Of the step before. One pass over P adds that of two steps before and multiplies, while the next is computed: `q` is
        // what comes of it, `r`, and what the update adds, `ωᵀ1 u + ωᵀu 1`.
        let (mut update, mut r) = (all(0.0), all(0.0));
        let mut out = Vec::with_capacity(self.steps.len());
        for [scale, inverse, noise] in self.steps {
            let weighted = |v: Lanes<S, SIZE>| v.times(simd, omega).sum(simd);
            let added = weighted(update);
            let (fed_back, of_sum) = (weighted(r) + 2.0 * total * added, scale * weighted(cross));
            let fresh = scale * scale * fed_back + noise * noise;
            let (half, both) = (0.5 * inverse * inverse * fresh, inverse * (fresh - of_sum));
            let moved = r.plus(simd, update.times(simd, all(total)).plus(simd, all(added)));
            let image = all(scale).times(simd, poles).times(simd, moved);
            cross = cross.times(simd, poles).plus(simd, all(both).minus(simd, image));
            r = all(0.0);
            for i in 0..SIZE {
                let own = all(update.at(i)).plus(simd, update);
                covariance[i] = covariance[i].plus(simd, own).times(simd, powers[i]);
                r = r.plus(simd, covariance[i].times(simd, all(weights[i])));
            }
            update = all(half).minus(simd, all(inverse).times(simd, image));
            variance += fresh - 2.0 * of_sum;
            out.push(variance.max(0.0));
        }
        out
    }
}
