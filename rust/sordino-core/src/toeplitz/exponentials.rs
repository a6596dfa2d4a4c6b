//! Sums of exponentials `Σ_j a_j p_j^k` and the closed forms of their sums of squares.
//!
//! A pole enters by its rate `1 − p`, so that poles within 1e-13 of one keep all their digits; every
//! geometric sum is `expm1` over a sum of rates. With positive amplitudes all terms are positive.

/// One exponential `a·p^k`, `p = 1 − rate` in `[−1, 1]`.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Mode {
    amplitude: f64,
    rate: f64,
    /// `−ln|p|`, infinite for `p = 0`.
    log: f64,
}

impl Mode {
    fn new(amplitude: f64, rate: f64) -> Self {
        let log = if rate < 1.0 { -(-rate).ln_1p() } else { -(rate - 1.0).ln() };
        // −ln of a rounded 1 may be −0.
        Self { amplitude, rate, log: log.abs() }
    }

    fn pole(&self) -> f64 {
        1.0 - self.rate
    }

    /// `p^k`.
    fn power(&self, k: u64) -> f64 {
        if k == 0 {
            return 1.0;
        }
        let size = (-(k as f64) * self.log).exp();
        if self.rate > 1.0 && k % 2 == 1 { -size } else { size }
    }

    /// `1 − p q`.
    fn gap(&self, other: &Self) -> f64 {
        self.rate + other.rate * self.pole()
    }

    /// `Σ_{k<steps} (p q)^k`, for ever if `steps` is `None`.
    fn geometric(&self, other: &Self, steps: Option<u64>) -> f64 {
        let gap = self.gap(other);
        match steps {
            None => 1.0 / gap,
            Some(0) => 0.0,
            Some(steps) if gap == 0.0 => steps as f64,
            Some(steps) => {
                let exponent = -(steps as f64) * (self.log + other.log);
                let negative = (self.rate > 1.0) != (other.rate > 1.0) && steps % 2 == 1;
                if negative { (1.0 + exponent.exp()) / gap } else { -exponent.exp_m1() / gap }
            }
        }
    }

    /// `Σ_{t=1}^{n} Σ_{k<t} (p q)^k = Σ_m C(n+1, m+2)(pq − 1)^m`.
    fn geometric_total(&self, other: &Self, n: u64) -> f64 {
        let gap = self.gap(other);
        let steps = n as f64;
        if steps * gap > 0.5 {
            return (steps - self.pole() * other.pole() * self.geometric(other, Some(n))) / gap;
        }
        // The difference above cancels here; the binomial series has term ratios below 1/6.
        let (mut term, mut sum) = (steps * (steps + 1.0) / 2.0, 0.0);
        for m in 0..24 {
            sum += term;
            let m = f64::from(m);
            term *= -gap * (steps - 1.0 - m) / (m + 3.0);
        }
        sum
    }
}

/// The sequence `Σ_j a_j p_j^k`, `k = 0, 1, …`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Exponentials(Vec<Mode>);

impl Exponentials {
    /// From pairs `(a_j, 1 − p_j)`.
    pub(super) fn new(terms: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self(terms.into_iter().map(|(amplitude, rate)| Mode::new(amplitude, rate)).collect())
    }

    /// The first `n` entries, each accurate to some 70 roundings.
    pub(super) fn coefficients(&self, n: usize) -> Vec<f64> {
        const BLOCK: usize = 64;
        let mut out = vec![0.0; n];
        for mode in &self.0 {
            for (block, values) in out.chunks_mut(BLOCK).enumerate() {
                let mut term = mode.amplitude * mode.power((block * BLOCK) as u64);
                for value in values {
                    *value += term;
                    term *= mode.pole();
                }
            }
        }
        out
    }

    /// `Σ_{k<steps}` of the squares, for ever if `steps` is `None`; infinite if that diverges.
    pub(super) fn squared_sum(&self, steps: Option<u64>) -> f64 {
        self.quadratic(|a, b| a.geometric(b, steps))
    }

    /// `Σ_{t=1}^{n} Σ_{k<t}` of the squares.
    pub(super) fn squared_total(&self, n: u64) -> f64 {
        self.quadratic(|a, b| a.geometric_total(b, n))
    }

    fn quadratic(&self, form: impl Fn(&Mode, &Mode) -> f64) -> f64 {
        let mut sum = 0.0;
        for (j, a) in self.0.iter().enumerate() {
            let cross: f64 = self.0[..j].iter().map(|b| b.amplitude * form(a, b)).sum();
            sum += a.amplitude * (a.amplitude * form(a, a) + 2.0 * cross);
        }
        sum
    }

    /// Square of the norm of `Σ_j w_j x_{js}`, `x_i` the column `1, a, ap, …` that begins at step i, over `n` steps; only
    /// as many weights as begin there.
    ///
    /// The state behind the columns is carried from one to the next, with one geometric sum in between: O(degree²) each.
    pub(super) fn pattern_square(&self, n: Option<u64>, weights: &[f64], separation: u64) -> f64 {
        let count = n.map_or(weights.len(), |n| weights.len().min(n.div_ceil(separation) as usize));
        let Some(last) = count.checked_sub(1) else { return 0.0 };
        let between = self.gram(Some(separation - 1));
        let after = self.gram(n.map(|n| n - 1 - last as u64 * separation));
        let powers = self.powers_above(separation - 1);
        let mut state = vec![0.0; self.0.len()];
        let mut square = 0.0;
        for (j, weight) in weights[..count].iter().enumerate() {
            let output: f64 = weight + state.iter().zip(&self.0).map(|(a, mode)| a * mode.amplitude).sum::<f64>();
            square += output * output;
            for (a, mode) in state.iter_mut().zip(&self.0) {
                *a = *a * mode.pole() + weight;
            }
            square += form(if j == last { &after } else { &between }, &state);
            for (a, power) in state.iter_mut().zip(&powers) {
                *a *= power;
            }
        }
        square
    }

    /// The matrix `a_i a_j Σ_{k<steps} (p_i p_j)^k`, row by row: the form whose value at a state is the
    /// sum of squares that follows it.
    pub(super) fn gram(&self, steps: Option<u64>) -> Vec<f64> {
        let entry = |(a, b): (&Mode, &Mode)| a.amplitude * b.amplitude * a.geometric(b, steps);
        self.0.iter().flat_map(|a| self.0.iter().map(move |b| (a, b))).map(entry).collect()
    }

    /// Upper bounds of `p_j^k` for non-negative poles.
    pub(super) fn powers_above(&self, k: u64) -> Vec<f64> {
        let above = |mode: &Mode| {
            // x = kλ carries five roundings, and exp(−x) changes by as many times x.
            let x = k as f64 * mode.log;
            if k == 0 { 1.0 } else { ((-x).exp() * (1.0 + (x.min(1e3) + 1.0) * 2f64.powi(-49))).min(1.0) }
        };
        self.0.iter().map(above).collect()
    }
}

/// `vᵀ G v`.
fn form(gram: &[f64], v: &[f64]) -> f64 {
    gram.chunks_exact(v.len().max(1))
        .zip(v)
        .map(|(row, a)| a * row.iter().zip(v).map(|(g, b)| g * b).sum::<f64>())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms_match_direct_sums() {
        let sums = [
            Exponentials::new([(0.5, 0.0), (0.3, 1e-3), (0.7, 0.4), (0.1, 1.0), (0.2, 1.3)]),
            Exponentials::new([(1.0, 1e-9), (2.0, 3e-7)]),
        ];
        for sum in sums {
            let terms = sum.coefficients(700);
            let (mut norm, mut total) = (0.0, 0.0);
            for (k, term) in terms.iter().enumerate() {
                norm += term * term;
                total += norm;
                let steps = k as u64 + 1;
                assert!((sum.squared_sum(Some(steps)) / norm - 1.0).abs() < 1e-13);
                assert!((sum.squared_total(steps) / total - 1.0).abs() < 1e-13);
            }
        }
    }

    #[test]
    fn poles_at_zero_and_on_the_circle() {
        let alternating = Exponentials::new([(1.0, 2.0)]);
        assert_eq!(alternating.coefficients(4), [1.0, -1.0, 1.0, -1.0]);
        assert_eq!(alternating.squared_sum(Some(9)), 9.0);
        let zero = Exponentials::new([(3.0, 1.0)]);
        assert_eq!(zero.coefficients(3), [3.0, 0.0, 0.0]);
        assert_eq!(zero.squared_sum(None), 9.0);
        assert_eq!(zero.squared_sum(Some(1)), 9.0);
        assert_eq!(Exponentials::new([(1.0, 0.0)]).squared_sum(None), f64::INFINITY);
    }
}
