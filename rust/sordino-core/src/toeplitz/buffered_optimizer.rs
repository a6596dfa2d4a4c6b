//! The buffered Toeplitz strategy of least error.
//!
//! Variables are the logarithms of the gaps of `λ_γ < λ_1 < λ̂_1 < λ_2 < … < λ̂_d`, `λ = −log θ`,
//! `λ_γ = −log γ`: every point is a valid strategy with interlaced poles, positive weights and positive
//! residues, so there are no constraints, and the loss is a few sums of positive terms.

use super::buffered::{BufferedToeplitz, MAX_DEGREE};
use super::exponentials::Exponentials;
use crate::error::Error;
use crate::minimize::bfgs;
use crate::objective::Objective;

/// A strategy to be fitted to the workload `1/(1 − γz)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BufferedProblem {
    /// Most buffers.
    pub degree: usize,
    /// Steps over which the error counts; `None` is for ever and needs a decay below 1.
    pub steps: Option<u64>,
    /// Steps over which privacy holds, at least `steps`; `None` is for ever.
    pub sensitivity_steps: Option<u64>,
    /// `γ` in (0, 1]; 1 is the running sum.
    pub decay: f64,
    /// The norm to minimise.
    pub objective: Objective,
    /// How often a unit takes part, at most, and how many steps apart, at least.
    pub participations: (u64, u64),
}

impl BufferedProblem {
    /// Counting for `steps` steps, private for as long.
    pub fn counting(degree: usize, steps: u64, objective: Objective) -> Self {
        Self {
            degree,
            steps: Some(steps),
            sensitivity_steps: Some(steps),
            decay: 1.0,
            objective,
            participations: (1, 1),
        }
    }

    fn check(&self) -> Result<(), Error> {
        if self.degree > MAX_DEGREE {
            return Err(Error::invalid("degree", format!("{} is above {MAX_DEGREE}", self.degree)));
        }
        if self.participations.0 == 0 || self.participations.1 == 0 {
            return Err(Error::invalid("participations", "must be at least 1, and at least one step apart"));
        }
        if !(self.decay > 0.0 && self.decay <= 1.0) {
            return Err(Error::invalid("decay", format!("{} is not in (0, 1]", self.decay)));
        }
        match (self.steps, self.sensitivity_steps) {
            (Some(0), _) => Err(Error::invalid("steps", "a stream has at least one step")),
            (None, _) if self.decay == 1.0 => {
                Err(Error::invalid("steps", "the error of a running sum grows for ever: give a horizon"))
            }
            (Some(steps), Some(private)) if private < steps => {
                Err(Error::invalid("sensitivity_steps", "privacy must hold for all steps"))
            }
            (None, Some(_)) => Err(Error::invalid("sensitivity_steps", "privacy must hold for all steps")),
            _ => Ok(()),
        }
    }

    /// The loss of a strategy: standard deviation of an answer at noise multiplier 1.
    ///
    /// # Errors
    /// As [`optimize`] and [`BufferedToeplitz::response`].
    pub fn loss(&self, strategy: &BufferedToeplitz) -> Result<f64, Error> {
        self.check()?;
        let response = strategy.response(self.decay)?;
        let square = match (self.steps, self.objective) {
            (None, _) => response.squared_norm_infinite().unwrap_or(f64::INFINITY),
            (Some(n), Objective::Max) => response.squared_norm(n),
            (Some(n), Objective::Mean) => response.total_squared(n) / n as f64,
        };
        let norm = match self.pattern() {
            Some((weights, apart)) => strategy.column_norm_of(self.sensitivity_steps, &weights, apart),
            None => strategy.column_norm(self.sensitivity_steps),
        };
        Ok(norm.get() * square.sqrt())
    }

    /// Ones for participations of one unit, and their distance, if there are several: of very many some, since the shape of
    /// the optimum does not change.
    fn pattern(&self) -> Option<(Vec<f64>, u64)> {
        let (count, apart) = self.participations;
        let within = self.sensitivity_steps.map_or(count, |n| count.min(n.div_ceil(apart)));
        (within > 1).then(|| (vec![1.0; within.min(MOST_PARTICIPATIONS) as usize], apart))
    }

    /// Logarithm of the loss before quantisation.
    fn log_loss(&self, gaps: &[f64], pattern: Option<&(Vec<f64>, u64)>) -> f64 {
        let (column, row) = sequences(gaps, self.decay);
        let sensitivity = match pattern {
            Some((weights, apart)) => column.pattern_square(self.sensitivity_steps, weights, *apart),
            None => 1.0 + column.squared_sum(self.sensitivity_steps.map(|n| n - 1)),
        };
        let error = match (self.steps, self.objective) {
            (steps, Objective::Max) | (steps @ None, _) => row.squared_sum(steps),
            (Some(n), Objective::Mean) => row.squared_total(n) / n as f64,
        };
        let loss = 0.5 * (sensitivity.ln() + error.ln());
        if loss.is_nan() { f64::INFINITY } else { loss }
    }

    /// With several participations and the largest error, the slowest pole has no end: it is left at a thousandth of the
    /// horizon, where it is a constant.
    fn clamped(&self, gaps: &[f64]) -> Vec<f64> {
        let mut gaps = gaps.to_vec();
        if let (Some(first), Some(n), true) = (gaps.first_mut(), self.steps, self.participations.0 > 1) {
            *first = first.max((1e-3 / n as f64).ln());
        }
        gaps
    }

    /// Poles in geometric progression from `slowest` over the horizon to `fastest`: so they are at the
    /// optimum, because the square root has no scale of its own.
    fn start(&self, degree: usize, (slowest, fastest): (f64, f64)) -> Vec<f64> {
        let (count, apart) = self.participations;
        // Several participations shorten what a column may be: to their distance.
        let steps = self.steps.map(|n| if count > 1 && slowest > 1.0 { n.min(apart) } else { n });
        let least = (slowest * (1.0 - self.decay).max(steps.map_or(0.0, |n| 1.0 / n as f64))).min(0.5);
        let ratio = (fastest / least).powf(1.0 / (2 * degree).saturating_sub(1).max(1) as f64);
        let gaps = std::iter::successors(Some(least), |rate| Some(rate * ratio)).take(2 * degree);
        let mut before = 0.0;
        gaps.map(|rate| (rate - std::mem::replace(&mut before, rate)).ln()).collect()
    }
}

/// The strategy of least loss with at most this many buffers, quantised, and its loss.
///
/// Fewer buffers are used where more change nothing (`2·degree > steps`) or where 16 bits cannot tell
/// their poles apart.
///
/// # Errors
/// If the degree is above twelve, the decay not in (0, 1], or privacy would end before the error counts.
pub fn optimize(problem: &BufferedProblem) -> Result<(BufferedToeplitz, f64), Error> {
    problem.check()?;
    let useful = problem.steps.map_or(MAX_DEGREE as u64, |n| n / 2);
    let mut degree = problem.degree.min(useful as usize);
    loop {
        let fitted = fit(problem, degree);
        if fitted.is_ok() || degree == 0 {
            return fitted;
        }
        degree -= 1;
    }
}

/// Slowest rate of a starting point, in units of one over the horizon, and fastest.
///
/// The optimum has 1 and 1.2 for [`Objective::Max`], nearly 3 and 1.2 to 2.6 for [`Objective::Mean`]. From
/// afar a pole and a zero may meet and stay, which wastes a buffer.
const STARTS: [(f64, f64); 2] = [(1.0, 1.2), (3.0, 2.0)];

/// Participations that are looked at one by one.
const MOST_PARTICIPATIONS: u64 = 1 << 10;

/// Iterations of the optimiser; some fifty are usual.
const ITERATIONS: usize = 500;

/// The best of the starting points, at exactly this degree.
fn fit(problem: &BufferedProblem, degree: usize) -> Result<(BufferedToeplitz, f64), Error> {
    let pattern = problem.pattern();
    let loss = |gaps: &[f64]| problem.log_loss(&problem.clamped(gaps), pattern.as_ref());
    let from = |ends| bfgs(loss, problem.start(degree, ends), ITERATIONS);
    let best = STARTS.map(from).into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
    let (gaps, _) = best.expect("there are starting points");
    let strategy = quantized(&problem.clamped(&gaps), problem.decay)?;
    let loss = problem.loss(&strategy)?;
    Ok((strategy, loss))
}

/// A pole by its rate `1 − θ` and by `θ`.
#[derive(Debug, Clone, Copy)]
struct Pole {
    rate: f64,
    theta: f64,
}

impl Pole {
    fn new(log: f64) -> Self {
        Self { rate: -(-log).exp_m1(), theta: (-log).exp() }
    }

    /// `θ − θ'`, from whichever form is the finer.
    fn minus(self, other: Self) -> f64 {
        if self.theta < 0.5 { self.theta - other.theta } else { other.rate - self.rate }
    }
}

/// `γ`, the poles of `C` and those of `C^{-1}` at these log gaps.
fn poles(gaps: &[f64], decay: f64) -> (Pole, Vec<Pole>, Vec<Pole>) {
    let start = -decay.ln();
    let mut log = start;
    let mut poles = (Vec::with_capacity(gaps.len() / 2), Vec::with_capacity(gaps.len() / 2));
    for pair in gaps.chunks_exact(2) {
        log += pair[0].exp();
        poles.0.push(Pole::new(log));
        log += pair[1].exp();
        poles.1.push(Pole::new(log));
    }
    (Pole::new(start), poles.0, poles.1)
}

/// `ω_i = Π_j (θ_i − θ̂_j)/Π_{j≠i} (θ_i − θ_j)`.
fn weights(theta: &[Pole], theta_hat: &[Pole]) -> Vec<f64> {
    residues(theta, theta_hat, theta.len())
}

/// `Π_q (p − q)/Π_{p'≠p} (p − p')` for the first `count` poles `p`; one more pole than zeros may stand.
fn residues(poles: &[Pole], zeros: &[Pole], count: usize) -> Vec<f64> {
    let residue = |(i, p): (usize, &Pole)| {
        let mut product = 1.0;
        for (j, zero) in zeros.iter().enumerate() {
            product *= p.minus(*zero);
            // Each zero with its neighbour among the poles, so that no product under- or overflows.
            if j != i {
                product /= p.minus(poles[j]);
            }
        }
        let unpaired = poles.len() > zeros.len() && i + 1 < poles.len();
        if unpaired { product / p.minus(poles[poles.len() - 1]) } else { product }
    };
    poles.iter().enumerate().take(count).map(residue).collect()
}

/// The tail `c_{k+1}` of a column of `C` and the row `b_k` of `B`.
pub(super) fn sequences(gaps: &[f64], decay: f64) -> (Exponentials, Exponentials) {
    let (workload, theta, mut noise) = poles(gaps, decay);
    let omega = weights(&theta, &noise);
    let column = Exponentials::new(omega.into_iter().zip(theta.iter().map(|p| p.rate)));
    noise.push(workload);
    let residues = residues(&noise, &theta, noise.len());
    (column, Exponentials::new(residues.into_iter().zip(noise.iter().map(|p| p.rate))))
}

/// The strategy at these log gaps in 16 bits.
pub(super) fn quantized(gaps: &[f64], decay: f64) -> Result<BufferedToeplitz, Error> {
    let (_, theta, theta_hat) = poles(gaps, decay);
    let rates: Vec<f64> = theta.iter().map(|p| p.rate).collect();
    BufferedToeplitz::new(&rates, &weights(&theta, &theta_hat))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    /// Agreement with a printed loss; a better optimum may fall one digit below.
    fn printed(value: f64, print: f64, digits: i32) {
        let unit = 10f64.powi(-digits);
        assert!((-1.1 * unit..0.51 * unit).contains(&(value - print)), "{value} is not {print}");
    }

    fn counting(degree: usize, log_steps: u32, objective: Objective) -> f64 {
        optimize(&BufferedProblem::counting(degree, 1 << log_steps, objective)).unwrap().1
    }

    #[test]
    fn table_of_counting() {
        const TABLE: [(u32, [f64; 6], [f64; 6]); 4] = [
            (10, [3.8649, 3.3298, 3.2776, 3.2729, 3.2726, 3.2726], [3.4568, 3.0840, 3.0587, 3.0574, 3.0574, 3.0573]),
            (12, [4.8339, 3.8513, 3.7324, 3.7160, 3.7141, 3.7139], [4.3199, 3.5801, 3.5060, 3.4989, 3.4983, 3.4983]),
            (16, [7.6074, 5.0809, 4.6972, 4.6171, 4.6004, 4.5972], [6.7876, 4.7404, 4.4439, 4.3913, 4.3823, 4.3809]),
            (20, [12.0308, 6.6729, 5.7858, 5.5644, 5.5021, 5.4851], [10.7252, 6.2314, 5.4931, 5.3197, 5.2767, 5.2663]),
        ];
        for (log_steps, max, mean) in TABLE {
            for degree in 1..=6 {
                printed(counting(degree, log_steps, Objective::Max), max[degree - 1], 4);
                printed(counting(degree, log_steps, Objective::Mean), mean[degree - 1], 4);
            }
        }
        printed(counting(8, 20, Objective::Max), 5.4794, 4);
    }

    #[test]
    fn fixtures_of_the_optimum() {
        let fixtures: [(u32, f64, &[f64], &[f64]); 3] = [
            (
                10,
                3.272_944,
                &[7.709_961_185e-4, 0.011_161_911_74, 0.081_396_620_86, 0.574_882_690_1],
                &[0.003_650_870_785, 0.030_567_043_93, 0.215_893_810_1, 1.590_054_529],
            ),
            (
                16,
                4.600_414,
                &[1.465_825_584e-5, 2.723_268_182e-4, 0.003_038_073_163, 0.033_304_877_69, 0.365_969_014_5],
                &[7.579_361_637e-5, 9.163_347_324e-4, 0.010_060_932_4, 0.110_275_454_1, 1.247_069_808],
            ),
            (
                20,
                5.485_050,
                &[
                    9.418_084_321e-7,
                    1.817_884_333e-5,
                    2.156_352_459e-4,
                    0.002_517_414_468,
                    0.029_374_170_39,
                    0.343_491_238_1,
                ],
                &[
                    4.937_604_499e-6,
                    6.303_819_044e-5,
                    7.369_043_82e-4,
                    0.008_600_010_77,
                    0.100_338_950_7,
                    1.205_868_523,
                ],
            ),
        ];
        for (log_steps, loss, theta, theta_hat) in fixtures {
            let problem = BufferedProblem::counting(theta.len(), 1 << log_steps, Objective::Max);
            let (strategy, reached) = optimize(&problem).unwrap();
            printed(reached, loss, 6);
            // The optimum is flat: the loss agrees to nine digits where the parameters have three.
            for (mu, log) in strategy.mu().iter().zip(theta) {
                assert!((mu.value() / -(-log).exp_m1() - 1.0).abs() < 2e-3, "{} {log}", mu.value());
            }
            for (rate, log) in strategy.noise_rates().iter().zip(theta_hat) {
                assert!((rate / -(-log).exp_m1() - 1.0).abs() < 2e-3, "{rate} {log}");
            }
        }
    }

    /// Complete elliptic integral of the first kind by the arithmetic-geometric mean.
    fn elliptic(m: f64) -> f64 {
        let (mut a, mut b) = (1.0f64, (1.0 - m).sqrt());
        while (a - b).abs() > 1e-15 * a {
            (a, b) = (f64::midpoint(a, b), (a * b).sqrt());
        }
        PI / (2.0 * a)
    }

    #[test]
    fn table_of_decay() {
        type Ratios = &'static [(f64, i32)];
        let table: [(f64, f64, Ratios); 5] = [
            (0.9, 1.4518, &[(1.0043, 4), (1.0000, 4)]),
            (0.99, 2.1369, &[(1.049, 3), (1.0025, 4), (1.0001, 4)]),
            (0.999, 2.8620, &[(1.167, 3), (1.0167, 4), (1.0018, 4), (1.0002, 4)]),
            (0.9999, 3.5938, &[(1.369, 3), (1.053, 3), (1.0089, 4), (1.0015, 4)]),
            (0.99999, 4.3266, &[(1.670, 3), (1.115, 3), (1.025, 3), (1.0058, 4)]),
        ];
        for (decay, optimum, ratios) in table {
            let exact = 2.0 / PI * elliptic(decay * decay);
            printed(exact, optimum, 4);
            for (degree, (ratio, digits)) in (1..).zip(ratios) {
                let problem = BufferedProblem {
                    steps: None,
                    sensitivity_steps: None,
                    decay,
                    ..BufferedProblem::counting(degree, 1, Objective::Max)
                };
                let (strategy, loss) = optimize(&problem).unwrap();
                printed(loss / exact, *ratio, *digits);
                assert!(loss >= exact, "no factorization is better");
                // The poles of the strategy lie below that of the workload.
                assert!(strategy.mu()[0].value() > 1.0 - decay);
            }
        }
    }

    #[test]
    #[ignore = "seconds; run by `make test-slow`"]
    fn every_degree_and_horizon() {
        for steps in [1, 2, 3, 4, 5, 8, 17, 100, 1 << 14, 1 << 30, 1 << 40] {
            let mut before = f64::INFINITY;
            for degree in [0, 1, 2, 3, 5, 8, 12] {
                for objective in [Objective::Max, Objective::Mean] {
                    let problem = BufferedProblem::counting(degree, steps, objective);
                    let (strategy, loss) = optimize(&problem).unwrap();
                    assert!(strategy.degree() <= degree && loss.is_finite());
                    let forever = BufferedProblem { sensitivity_steps: None, ..problem };
                    assert!(optimize(&forever).unwrap().1 >= loss * (1.0 - 1e-6), "{steps} {degree}");
                    if objective == Objective::Max {
                        assert!(loss <= before * (1.0 + 1e-6), "{steps} {degree}: {loss} {before}");
                        let oracle = super::super::square_root_norm_squared(steps);
                        assert!(loss >= oracle * (1.0 - 1e-9));
                        if degree >= 8 && steps <= 1 << 20 {
                            assert!(loss <= oracle * 1.0003, "{steps} {degree}: {loss} {oracle}");
                        }
                        before = loss;
                    }
                }
            }
        }
    }

    /// The least errors that are known for units which take part several times, with some digits to spare.
    #[test]
    fn table_of_participations() {
        let table = [
            (1000, 5, 200, 7.654, 8.943),
            (2000, 10, 200, 12.890, 15.589),
            (2052, 6, 342, 9.171, 10.751),
            (1000, 20, 50, 20.389, 25.943),
            (16384, 8, 2048, 12.957, 15.091),
            (100_000, 10, 10_000, 16.830, 19.575),
        ];
        for (steps, count, apart, mean, max) in table {
            for (objective, known) in [(Objective::Mean, mean), (Objective::Max, max)] {
                let degree = if steps > 10_000 { 4 } else { 3 };
                let once = BufferedProblem::counting(degree, steps, objective);
                let problem = BufferedProblem { participations: (count, apart), ..once };
                let (strategy, loss) = optimize(&problem).unwrap();
                assert!((loss / known - 1.0).abs() < 1.5e-3, "{steps} {count} {apart} {objective:?}: {loss} {known}");
                assert!(loss <= problem.loss(&optimize(&once).unwrap().0).unwrap());
                assert!(strategy.degree() <= degree);
            }
        }
    }

    #[test]
    fn impossible_problems_are_refused() {
        let problem = BufferedProblem::counting(2, 10, Objective::Max);
        assert!(optimize(&BufferedProblem { degree: 13, ..problem }).is_err());
        assert!(optimize(&BufferedProblem { steps: Some(0), ..problem }).is_err());
        assert!(optimize(&BufferedProblem { steps: None, sensitivity_steps: None, ..problem }).is_err());
        assert!(optimize(&BufferedProblem { steps: None, decay: 0.5, ..problem }).is_err());
        assert!(optimize(&BufferedProblem { sensitivity_steps: Some(9), ..problem }).is_err());
        assert!(optimize(&BufferedProblem { decay: 1.5, ..problem }).is_err());
        assert!(optimize(&BufferedProblem { participations: (0, 1), ..problem }).is_err());
        assert!(optimize(&BufferedProblem { participations: (2, 0), ..problem }).is_err());
    }
}
