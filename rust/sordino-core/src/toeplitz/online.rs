//! Exact convolution with a known integer kernel whose input arrives one number at a time.
//!
//! The feedback `P_t = Σ_{s<t} K_{t−s} v_s` of a stream must be an integer function of the past, so it is
//! summed exactly. Dyadic blocks ("relaxed multiplication" with one known operand, van der Hoeven 2002):
//! at `t = L·odd`, `L` a power of two, the block `v_{t−L} … v_{t−1}` is convolved with the kernel and added
//! to the sums pending for `t … t+L−1`. Every pair `s < t` meets in exactly one block: that of the highest
//! bit in which they differ. Pairs within one base block are summed directly. O(log² t) amortised.
//!
//! The past of a stream is noise and as secret as its data. The number of transforms of a block depends on
//! the largest magnitude in it; no branch depends on single values.

use crate::error::Error;
use crate::transform::wide::WideConvolution;
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

/// Steps whose mutual products are summed directly; of 32, 64, 128 and 256 the fastest where measured.
const BASE: usize = 128;

/// A kernel with its transforms, made when first needed and shared by any number of streams.
///
/// Taps beyond its length are zero: a kernel as long as the horizon and a finite kernel applied for ever
/// are the same thing.
#[derive(Debug)]
pub struct OnlineKernel {
    taps: Arc<[i64]>,
    /// Longest block: pairs further apart never meet a tap.
    period: usize,
    /// `‖K‖₁` without the diagonal.
    sum: u128,
    /// Convolution of a block of `BASE·2^i` with the taps `0, K_1, …, K_{2L−1}`.
    levels: Vec<OnceLock<WideConvolution>>,
}

impl OnlineKernel {
    /// Takes the kernel `K_0, K_1, …`; the diagonal `K_0` is not used in the sums.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the kernel is empty or an entry is `2^40` or more in magnitude.
    pub fn new(taps: Arc<[i64]>) -> Result<Self, Error> {
        if taps.is_empty() || taps.iter().any(|k| k.unsigned_abs() >= 1 << 40) {
            return Err(Error::invalid("kernel", "must have 1 or more entries below 2^40"));
        }
        let period = taps.len().next_power_of_two().max(BASE);
        let count = (period / BASE).ilog2() as usize + 1;
        let sum = taps[1..].iter().map(|k| u128::from(k.unsigned_abs())).sum();
        Ok(Self { taps, period, sum, levels: (0..count).map(|_| OnceLock::new()).collect() })
    }

    /// `K_0, K_1, …`.
    pub fn taps(&self) -> &[i64] {
        &self.taps
    }

    /// Largest magnitude of an input for which no sum leaves `i128`.
    pub fn max_input(&self) -> i128 {
        let bound = (1u128 << 126) / self.sum.max(1);
        bound.min(1 << 100) as i128
    }

    /// Number of past inputs that decide all further sums, at most twice the period.
    fn remembered(&self, steps: u64) -> usize {
        let period = self.period as u64;
        (steps - (steps / period).saturating_sub(1) * period) as usize
    }

    /// The convolution for blocks of this length.
    fn level(&self, block: usize) -> &WideConvolution {
        self.levels[(block / BASE).ilog2() as usize].get_or_init(|| {
            let mut ring = vec![0; 2 * block];
            let used = self.taps.len().min(2 * block);
            ring[1..used].copy_from_slice(&self.taps[1..used]);
            WideConvolution::new(&ring, block)
        })
    }
}

/// What must be kept to go on with a stream later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnlineState<'a> {
    /// Number of inputs so far.
    pub steps: u64,
    /// The most recent inputs, the oldest first: all of them, or as many as still matter.
    pub history: &'a [i128],
}

/// The sums `Σ_{s<t} K_{t−s} v_s` of one stream.
#[derive(Clone)]
pub struct OnlineConvolution {
    kernel: Arc<OnlineKernel>,
    steps: u64,
    history: Vec<i128>,
    /// Sums for the steps from now on, complete but for the pairs within the base block.
    pending: VecDeque<i128>,
}

impl std::fmt::Debug for OnlineConvolution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The inputs are secret noise.
        f.debug_struct("OnlineConvolution").field("steps", &self.steps).finish_non_exhaustive()
    }
}

impl OnlineConvolution {
    /// A stream at step 0.
    pub fn new(kernel: Arc<OnlineKernel>) -> Self {
        Self { kernel, steps: 0, history: Vec::new(), pending: VecDeque::new() }
    }

    /// A stream as it was: only blocks whose sums reach beyond this step are convolved, one for each bit of it.
    ///
    /// # Errors
    /// [`Error::InvalidParameter`] if the history does not have the length that belongs to the step, or an
    /// entry is too large.
    pub fn restore(kernel: Arc<OnlineKernel>, state: OnlineState<'_>) -> Result<Self, Error> {
        if state.history.len() != kernel.remembered(state.steps) {
            return Err(Error::invalid("history", "must be as long as the step requires"));
        }
        let limit = kernel.max_input().unsigned_abs();
        if state.history.iter().any(|v| v.unsigned_abs() > limit) {
            return Err(Error::invalid("history", "has an entry that is too large"));
        }
        let mut stream = Self::new(kernel);
        (stream.steps, stream.history) = (state.steps, state.history.to_vec());
        let period = stream.kernel.period;
        let since = (state.steps % period as u64) as usize;
        if state.steps >= period as u64 {
            stream.add_block(since, period);
        }
        let mut rest = since;
        while rest >= BASE {
            let block = 1 << rest.ilog2();
            rest -= block;
            stream.pending.drain(..block.min(stream.pending.len()));
            stream.add_block(rest, block);
        }
        stream.pending.drain(..rest.min(stream.pending.len()));
        Ok(stream)
    }

    /// What [`Self::restore`] needs.
    pub fn state(&self) -> OnlineState<'_> {
        OnlineState { steps: self.steps, history: &self.history }
    }

    /// The kernel, to be shared.
    pub fn kernel(&self) -> &Arc<OnlineKernel> {
        &self.kernel
    }

    /// Number of inputs so far: `t`.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// `Σ_{s<t} K_{t−s} v_s`, exactly, for the step to come.
    pub fn next(&self) -> i128 {
        let inside = (self.steps % BASE as u64) as usize;
        let used = inside.min(self.kernel.taps.len() - 1);
        let recent = self.history[self.history.len() - used..].iter().rev();
        let direct: i128 = self.kernel.taps[1..=used].iter().zip(recent).map(|(k, v)| i128::from(*k) * v).sum();
        self.pending.front().copied().unwrap_or(0) + direct
    }

    /// Takes `v_t`.
    ///
    /// # Panics
    /// If `|value|` is above [`OnlineKernel::max_input`].
    pub fn push(&mut self, value: i128) {
        assert!(value.unsigned_abs() <= self.kernel.max_input().unsigned_abs(), "an input is too large");
        self.pending.pop_front();
        self.history.push(value);
        self.steps += 1;
        if self.steps.is_multiple_of(BASE as u64) {
            self.close_block();
        }
    }

    /// Overwrites the past.
    pub fn wipe(&mut self) {
        self.history.fill(0);
        self.pending.iter_mut().for_each(|sum| *sum = 0);
    }

    /// Adds the block that ends here, and forgets what no longer matters.
    fn close_block(&mut self) {
        self.add_block(0, 1 << self.steps.trailing_zeros().min(self.kernel.period.ilog2()));
        let kept = self.kernel.remembered(self.steps);
        self.history.drain(..self.history.len() - kept);
    }

    /// Adds the block that ended some steps ago to the sums of as many steps from there on.
    fn add_block(&mut self, ago: usize, block: usize) {
        if self.kernel.taps.len() == 1 {
            return;
        }
        if self.pending.len() < block {
            self.pending.resize(block, 0);
        }
        let end = self.history.len() - ago;
        let recent = &self.history[end - block..end];
        if self.kernel.taps.len() > BASE / 4 {
            // On a ring of 2L, entries L… of the product are free of wrapping: lags 1 to 2L − 1.
            self.kernel.level(block).add_to(recent, block, self.pending.iter_mut().take(block));
            return;
        }
        for (lag, k) in self.kernel.taps.iter().enumerate().skip(1) {
            // Step t + i takes the input of t + i − lag, of before t.
            for (slot, v) in self.pending.iter_mut().zip(&recent[block - lag..]) {
                *slot += i128::from(*k) * v;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(taps: &[i64], v: &[i128], t: usize) -> i128 {
        (1..taps.len().min(t + 1)).map(|lag| i128::from(taps[lag]) * v[t - lag]).sum()
    }

    struct Words(u128);

    impl Words {
        fn next(&mut self, bits: u32) -> i128 {
            self.0 = self.0.wrapping_mul(0x2360_ed05_1fc6_5da4_4385_df64_9fcc_f645).wrapping_add(0xb479_04b1);
            (self.0 as i128) >> (127 - bits)
        }
    }

    fn kernel(len: usize, words: &mut Words) -> Arc<OnlineKernel> {
        Arc::new(OnlineKernel::new((0..len).map(|_| words.next(30) as i64).collect()).unwrap())
    }

    #[test]
    fn oracle_on_a_known_case() {
        assert_eq!(naive(&[9, 2, 3], &[10, 100, 0], 2), 2 * 100 + 3 * 10);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn sums_match_direct_dots(
            steps in 1usize..1500, len in 1usize..1500, bits in 1u32..67, seed in any::<u64>(), short in any::<bool>(),
        ) {
            let mut words = Words(u128::from(seed) | 1);
            let kernel = kernel(if short { len % 200 + 1 } else { len }, &mut words);
            let mut stream = OnlineConvolution::new(kernel.clone());
            let v: Vec<i128> = (0..steps).map(|_| words.next(bits)).collect();
            let cut = (seed % steps as u64) as usize;
            for t in 0..steps {
                if t == cut {
                    let restored = OnlineConvolution::restore(kernel.clone(), stream.state()).unwrap();
                    prop_assert_eq!(restored.state(), stream.state());
                    stream = restored;
                }
                prop_assert_eq!(stream.next(), naive(kernel.taps(), &v, t));
                stream.push(v[t]);
            }
        }
    }

    /// A finite kernel for ever keeps a bounded past, and a stream goes on after any step.
    #[test]
    fn memory_of_finite_kernels_is_bounded() {
        let mut words = Words(5);
        for len in [1, 3, 200, 300] {
            let kernel = kernel(len, &mut words);
            let mut stream = OnlineConvolution::new(kernel.clone());
            let mut v = Vec::new();
            for t in 0..5000 {
                assert_eq!(stream.next(), naive(kernel.taps(), &v, t));
                assert!(stream.history.len() <= 2 * kernel.period && stream.pending.len() <= kernel.period);
                let value = words.next(66);
                stream.push(value);
                v.push(value);
                if t % 977 == 0 {
                    stream = OnlineConvolution::restore(kernel.clone(), stream.state()).unwrap();
                }
            }
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(OnlineKernel::new(Arc::from([])).is_err() && OnlineKernel::new(Arc::from([1 << 40])).is_err());
        let kernel = kernel(10, &mut Words(1));
        let restore = |steps, history: &[i128]| {
            OnlineConvolution::restore(kernel.clone(), OnlineState { steps, history }).is_ok()
        };
        assert!(restore(2, &[1, 2]) && !restore(2, &[1]) && !restore(1000, &[1]));
        assert!(!restore(2, &[1, i128::MAX]) && !restore(2, &[1, i128::MIN]));
    }
}
