//! A few numbers that are computed together, in vectors of what the machine has: what a compiler makes of loops over arrays is
//! left to chance.

use pulp::{Simd, bytemuck};

/// Up to so many numbers in vectors, of which there are fewer where they are longer.
#[derive(Clone, Copy)]
pub(super) struct Lanes<S: Simd, const SIZE: usize>([S::f64s; SIZE]);

impl<S: Simd, const SIZE: usize> Lanes<S, SIZE> {
    const VECTORS: usize = SIZE / S::F64_LANES;

    /// All of them the same.
    #[inline(always)]
    pub(super) fn splat(simd: S, value: f64) -> Self {
        Self([simd.splat_f64s(value); SIZE])
    }

    #[inline(always)]
    pub(super) fn load(simd: S, values: &[f64; SIZE]) -> Self {
        let mut lanes = Self::splat(simd, 0.0);
        let (vectors, _) = S::as_simd_f64s(values);
        lanes.0[..Self::VECTORS].copy_from_slice(vectors);
        lanes
    }

    #[inline(always)]
    pub(super) fn store(&self, values: &mut [f64; SIZE]) {
        values.copy_from_slice(bytemuck::cast_slice(&self.0[..Self::VECTORS]));
    }

    #[inline(always)]
    fn with(mut self, other: Self, of: impl Fn(S::f64s, S::f64s) -> S::f64s) -> Self {
        for k in 0..Self::VECTORS {
            self.0[k] = of(self.0[k], other.0[k]);
        }
        self
    }

    #[inline(always)]
    pub(super) fn plus(self, simd: S, other: Self) -> Self {
        self.with(other, |a, b| simd.add_f64s(a, b))
    }

    #[inline(always)]
    pub(super) fn minus(self, simd: S, other: Self) -> Self {
        self.with(other, |a, b| simd.sub_f64s(a, b))
    }

    #[inline(always)]
    pub(super) fn times(self, simd: S, other: Self) -> Self {
        self.with(other, |a, b| simd.mul_f64s(a, b))
    }

    /// One of the numbers.
    #[inline(always)]
    pub(super) fn at(&self, lane: usize) -> f64 {
        bytemuck::cast_slice::<S::f64s, f64>(&self.0[..Self::VECTORS])[lane]
    }

    /// Their sum, added by halves.
    #[inline(always)]
    pub(super) fn sum(mut self, simd: S) -> f64 {
        let mut len = Self::VECTORS;
        while len > 1 {
            len /= 2;
            for k in 0..len {
                self.0[k] = simd.add_f64s(self.0[k], self.0[k + len]);
            }
        }
        let mut len = S::F64_LANES;
        let mut values = [0.0; SIZE];
        values[..len].copy_from_slice(bytemuck::cast_slice(&self.0[..1]));
        while len > 1 {
            len /= 2;
            for k in 0..len {
                values[k] += values[k + len];
            }
        }
        values[0]
    }
}
