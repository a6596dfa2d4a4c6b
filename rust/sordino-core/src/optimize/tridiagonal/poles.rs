//! `t^{-1/2}` on an interval as a sum of poles, so that the root of a matrix is a sum of inverses.

use std::f64::consts::{FRAC_PI_2, PI};

/// Points at which the deviation is looked at: it waves once a pole.
const LOOKS: u32 = 4000;

/// `r(t) = Σ_i factor_i/(t + shift_i)`, positive throughout, with `|r(t) √t − 1| ≤ deviation`.
#[derive(Debug, Clone)]
pub(in crate::optimize) struct Poles {
    pub(in crate::optimize) shifts: Vec<f64>,
    pub(in crate::optimize) factors: Vec<f64>,
    pub(in crate::optimize) deviation: f64,
}

impl Poles {
    /// So many poles for `[low, high]`: the midpoint rule in `u` for `t = low·sn²(u)/cn²(u)`, parameter `1 − low/high`,
    /// falls by `exp(−π K'/K)` a pole (Hale, Higham & Trefethen 2008).
    pub(super) fn new(low: f64, high: f64, count: usize) -> Self {
        let amplitude = Amplitude::new(low / high);
        let quarter = amplitude.quarter_period();
        let (mut shifts, mut factors) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let complement = low / high;
        let scale = 2.0 * quarter * low.sqrt() / (PI * count as f64);
        for i in 0..count {
            let part = (i as f64 + 0.5) / count as f64;
            // Near K the cosine would lose its digits: the functions of K − u have them.
            let far = part > 0.5;
            let (sine, cosine) = amplitude.at(if far { 1.0 - part } else { part }).sin_cos();
            let delta = (cosine * cosine + complement * sine * sine).sqrt();
            if far {
                shifts.push(high * (cosine / sine).powi(2));
                factors.push(scale * delta / (complement.sqrt() * sine * sine));
            } else {
                shifts.push(low * (sine / cosine).powi(2));
                factors.push(scale * delta / (cosine * cosine));
            }
        }
        let mut poles = Self { shifts, factors, deviation: 0.0 };
        let apart = (high / low).ln() / f64::from(LOOKS);
        let deviations = (0..=LOOKS).map(|k| {
            let t = low * (apart * f64::from(k)).exp();
            (poles.at(t) * t.sqrt() - 1.0).abs()
        });
        let seen = deviations.fold(0.0, f64::max);
        // Between two looks a wave rises by far less than a hundredth.
        poles.deviation = 1.01 * seen + 1e-12;
        poles
    }

    /// As many as deviate by little more than so much: `4 exp(−π² count/K)`.
    pub(in crate::optimize) fn within(low: f64, high: f64, deviation: f64) -> Self {
        let quarter = Amplitude::new(low / high).quarter_period();
        Self::new(low, high, (quarter * (4.0 / deviation).ln() / (PI * PI)).ceil() as usize)
    }

    fn at(&self, t: f64) -> f64 {
        self.shifts.iter().zip(&self.factors).map(|(shift, factor)| factor / (t + shift)).sum()
    }
}

/// Jacobi's amplitude for a parameter near 1, by the arithmetic-geometric mean.
struct Amplitude {
    /// Means and half differences, from the last to the first.
    steps: Vec<(f64, f64)>,
}

impl Amplitude {
    /// From the complementary parameter.
    fn new(complement: f64) -> Self {
        let (mut a, mut b) = (1.0, complement.sqrt());
        let mut steps = vec![(1.0, (1.0 - complement).sqrt())];
        while a - b > 1e-16 * a && steps.len() < 64 {
            steps.push((f64::midpoint(a, b), 0.5 * (a - b)));
            (a, b) = (f64::midpoint(a, b), (a * b).sqrt());
        }
        steps.reverse();
        Self { steps }
    }

    /// `K`.
    fn quarter_period(&self) -> f64 {
        FRAC_PI_2 / self.steps[0].0
    }

    /// The amplitude at a part of `K`.
    fn at(&self, part: f64) -> f64 {
        let doublings = self.steps.len() as i32 - 1;
        let start = 2f64.powi(doublings) * FRAC_PI_2 * part;
        let halvings = &self.steps[..self.steps.len() - 1];
        halvings.iter().fold(start, |phi, (a, c)| 0.5 * (phi + (c / a * phi.sin()).clamp(-1.0, 1.0).asin()))
    }
}

#[cfg(test)]
mod tests {
    use super::Poles;

    #[test]
    fn roots_of_a_wide_interval() {
        // 4 exp(-π²q/K), K = ln(16 high/low)/2, at its order.
        for (ratio, table) in [(1e7, [9e-4, 1.4e-5, 2e-7, 4e-9]), (1e13, [0.03, 0.003, 4e-4, 2.3e-5])] {
            for (count, deviation) in [8, 12, 16, 20].into_iter().zip(table) {
                let poles = Poles::new(1e-3, 1e-3 * ratio, count);
                assert!((0.5..2.0).contains(&(poles.deviation / deviation)), "{ratio} {count} {}", poles.deviation);
            }
        }
        assert!(Poles::new(2.0, 2.0, 3).deviation < 1e-11);
        // Wider intervals have fewer digits: the deviation is what is seen.
        for (ratio, most) in [(1.0, 2e-7), (1e2, 2e-7), (1e8, 2e-7), (1e16, 2e-7), (1e25, 3e-5)] {
            let poles = Poles::within(0.3, 0.3 * ratio, 1e-7);
            assert!(poles.deviation < most, "{ratio} {}", poles.deviation);
        }
        assert!(Poles::new(1.0, 1e18, 48).deviation < 1e-8);
    }
}
