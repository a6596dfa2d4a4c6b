//! Modes of a line of cells, as sequences on a ring.

use crate::transform::fourier::RealFourier;
use std::f64::consts::PI;

/// Which sequences on a ring stand for the cells `1 … n`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symmetry {
    /// Odd about 0 and `n + 1`, period `2(n + 1)`.
    Sine,
    /// Even about 1/2 and odd about `n + 1`, period `4n + 2`.
    Cosine,
    /// Even about 1/2 and `n + 1/2`, period `2n`: the sum of all cells is a mode.
    Reflected,
}

impl Symmetry {
    /// How many sequences of `len` cells with this symmetry repeat after.
    pub(crate) fn period(self, len: usize) -> usize {
        match self {
            Self::Sine => 2 * (len + 1),
            Self::Cosine => 4 * len + 2,
            Self::Reflected => 2 * len,
        }
    }

    /// Which mode has this frequency on the ring, if one of `len` cells has.
    pub(crate) fn mode(self, len: usize, frequency: usize) -> Option<usize> {
        match self {
            Self::Sine => frequency.checked_sub(1).filter(|k| *k < len),
            Self::Cosine => (frequency % 2 == 1 && frequency < 2 * len).then_some(frequency / 2),
            Self::Reflected => (frequency < len).then_some(frequency),
        }
    }

    /// The matrix of these modes whose eigenvalues are given by frequency on the ring, times `v`.
    pub(crate) fn times(self, ring: &RealFourier, v: &[f64], eigenvalue: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut whole = vec![0.0; ring.len()];
        let (period, half) = (ring.len(), ring.len() / 2);
        for (j, value) in (1..).zip(v) {
            match self {
                Self::Sine => (whole[j], whole[period - j]) = (*value, -value),
                // The images about 1/2, and those of both about n + 1.
                Self::Cosine => {
                    (whole[j], whole[(period + 1 - j) % period]) = (*value, *value);
                    (whole[half + 1 - j], whole[half + j]) = (-value, -value);
                }
                Self::Reflected => (whole[j % period], whole[(period + 1 - j) % period]) = (*value, *value),
            }
        }
        ring.filter_evenly(&mut whole, eigenvalue);
        whole[1..=v.len()].to_vec()
    }

    /// The angles `θ_k` of the modes `sin(2jθ_k)` or `cos((2j − 1)θ_k)`: eigenvalues of `L` and `L₁` are `4 sin² θ_k`.
    pub(super) fn angles(self, len: usize) -> impl Iterator<Item = f64> {
        (1..=len).map(move |k| match self {
            Self::Sine => k as f64 * PI / (2 * (len + 1)) as f64,
            Self::Cosine => (2 * k - 1) as f64 * PI / (4 * len + 2) as f64,
            Self::Reflected => (k - 1) as f64 * PI / (2 * len) as f64,
        })
    }

    /// The diagonal, at cells `1 … n`, of the matrix with these eigenvalues.
    ///
    /// `(n + 1)^{−1} Σ_k v_k (1 − cos(2πjk/(n + 1)))`, `2/(2n + 1) Σ_k v_k (1 + cos((2k − 1)(2j − 1)π/(2n + 1)))`, and
    /// `n^{−1} Σ_{k>0} v_k (1 + cos(k(2j − 1)π/n))` with `v_0/n`.
    pub(crate) fn diagonal(self, values: &[f64]) -> Vec<f64> {
        let len = values.len();
        match self {
            Self::Sine => {
                // On the ring of the modes, which is planned already where they are measured.
                let mut even = vec![0.0; self.period(len)];
                even.iter_mut().skip(2).step_by(2).zip(values).for_each(|(slot, value)| *slot = *value);
                let cosines = RealFourier::new(even.len()).forward(&mut even);
                let scale = ((len + 1) as f64).recip();
                (1..=len).map(|j| scale * (cosines[0].re - cosines[j].re)).collect()
            }
            Self::Cosine => {
                let ring = RealFourier::new(self.period(len));
                let mut odd = vec![0.0; ring.len()];
                odd.iter_mut().skip(1).step_by(2).zip(values).for_each(|(slot, value)| *slot = *value);
                let cosines = ring.forward(&mut odd);
                let scale = 2.0 / (2 * len + 1) as f64;
                (1..=len).map(|j| scale * (cosines[0].re + cosines[2 * j - 1].re)).collect()
            }
            Self::Reflected => {
                let mut even = vec![0.0; self.period(len)];
                even[..len].copy_from_slice(values);
                let cosines = RealFourier::new(even.len()).forward(&mut even);
                let scale = (len as f64).recip();
                let at = |j: usize| (2 * j - 1).min(2 * len + 1 - 2 * j);
                (1..=len).map(|j| scale * (cosines[0].re + cosines[at(j)].re - values[0])).collect()
            }
        }
    }

    /// The diagonal where the eigenvalues are `1/(2 sin θ_k)`: from cell to cell it moves by `(cot((4j + 1)φ) + cot((4j + 3)φ))
    /// /(2n + 2)` with `φ = π/(4n + 4)`, `(1/sin((4j + 1)φ) + 1/sin((4j − 1)φ))/(2n + 1)` with `φ = π/(4n + 2)`, from 0 beyond
    /// the line, since `cos(2aθ) − cos(2(a + 2)θ)` is `2 sin 2(a + 1)θ sin 2θ` and sums of sines of odd multiples are known.
    ///
    /// Not of reflected sequences, whose mode 0 has none.
    pub(super) fn inverse_root_diagonal(self, len: usize) -> Vec<f64> {
        match self {
            Self::Sine => {
                let angle = PI / (4 * (len + 1)) as f64;
                let cotangent = |m: usize| (m as f64 * angle).tan().recip();
                let step = |j: usize| (cotangent(4 * j + 1) + cotangent(4 * j + 3)) / (2 * (len + 1)) as f64;
                // It rises to the middle, and falls alike.
                let mut diagonal = sums_up_to(len.div_ceil(2), step);
                diagonal.extend_from_within(..len / 2);
                diagonal[len.div_ceil(2)..].reverse();
                diagonal
            }
            Self::Cosine => {
                let angle = PI / (4 * len + 2) as f64;
                let inverse = |m: usize| (m as f64 * angle).sin().recip();
                let step = |k: usize| (inverse(4 * (len - k) + 1) + inverse(4 * (len - k) - 1)) / (2 * len + 1) as f64;
                let mut diagonal = sums_up_to(len, step);
                diagonal.reverse();
                diagonal
            }
            Self::Reflected => vec![f64::INFINITY; len],
        }
    }

    /// Squared products of a row with every mode, the modes of norm 1.
    pub(super) fn squared_products(self, row: &[f64]) -> Vec<f64> {
        let len = row.len();
        match self {
            Self::Sine => {
                let ring = RealFourier::new(2 * (len + 1));
                let shifted: Vec<f64> = std::iter::once(0.0).chain(row.iter().copied()).collect();
                let scale = 2.0 / (len + 1) as f64;
                ring.spectrum(&shifted)[1..=len].iter().map(|v| scale * v.im * v.im).collect()
            }
            Self::Cosine => {
                let ring = RealFourier::new(8 * len + 4);
                let mut odd = vec![0.0; ring.len()];
                odd.iter_mut().skip(1).step_by(2).zip(row).for_each(|(slot, value)| *slot = *value);
                let scale = 4.0 / (2 * len + 1) as f64;
                let spectrum = ring.forward(&mut odd);
                (0..len).map(|k| scale * spectrum[2 * k + 1].re.powi(2)).collect()
            }
            Self::Reflected => {
                let ring = RealFourier::new(4 * len);
                let mut odd = vec![0.0; ring.len()];
                odd.iter_mut().skip(1).step_by(2).zip(row).for_each(|(slot, value)| *slot = *value);
                let spectrum = ring.forward(&mut odd);
                let scale = |k: usize| if k == 0 { 1.0 } else { 2.0 } / len as f64;
                (0..len).map(|k| scale(k) * spectrum[k].re.powi(2)).collect()
            }
        }
    }
}

/// Sums of the first steps, of one to so many, to the last digits.
fn sums_up_to(count: usize, step: impl Fn(usize) -> f64) -> Vec<f64> {
    let (mut sum, mut lost) = (0.0, 0.0);
    (0..count)
        .map(|k| {
            let step = step(k);
            let next = sum + step;
            lost += if sum >= step { (sum - next) + step } else { (step - next) + sum };
            sum = next;
            sum + lost
        })
        .collect()
}

/// Eigenvalue `1/(2 sin θ)` of the root of the inverse of a second difference.
pub(super) fn root_value(angle: f64) -> f64 {
    0.5 / angle.sin()
}
