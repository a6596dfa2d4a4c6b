//! The buffered Toeplitz strategy of least error.
//!
//! Variables are the logarithms of the gaps of `λ_γ < λ_1 < λ̂_1 < λ_2 < … < λ̂_d`, `λ = −log θ`,
//! `λ_γ = −log γ`: every point is a valid strategy with interlaced poles, positive weights and positive
//! residues, so there are no constraints, and the loss is a few sums of positive terms.

use super::buffered::{BufferedToeplitz, MAX_DEGREE};
use super::exponentials::Exponentials;
use super::minimize::bfgs;
use crate::error::Error;
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
}

impl BufferedProblem {
    /// Counting for `steps` steps, private for as long.
    pub fn counting(degree: usize, steps: u64, objective: Objective) -> Self {
        Self { degree, steps: Some(steps), sensitivity_steps: Some(steps), decay: 1.0, objective }
    }

    fn check(&self) -> Result<(), Error> {
        if self.degree > MAX_DEGREE {
            return Err(Error::invalid("degree", format!("{} is above {MAX_DEGREE}", self.degree)));
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
        Ok(strategy.column_norm(self.sensitivity_steps).get() * square.sqrt())
    }

    /// Logarithm of the loss before quantisation.
    fn log_loss(&self, gaps: &[f64]) -> f64 {
        let (column, row) = sequences(gaps, self.decay);
        let sensitivity = 1.0 + column.squared_sum(self.sensitivity_steps.map(|n| n - 1));
        let error = match (self.steps, self.objective) {
            (steps, Objective::Max) | (steps @ None, _) => row.squared_sum(steps),
            (Some(n), Objective::Mean) => row.squared_total(n) / n as f64,
        };
        let loss = 0.5 * (sensitivity.ln() + error.ln());
        if loss.is_nan() { f64::INFINITY } else { loss }
    }

    /// Poles in geometric progression from one over the horizon to about one: so they are at the optimum
    /// for the square root, whose kernel has no scale of its own.
    fn start(&self, degree: usize) -> Vec<f64> {
        let least = (1.0 - self.decay).max(self.steps.map_or(0.0, |n| 1.0 / n as f64)).min(0.5);
        let ratio = (1.2 / least).powf(1.0 / (2 * degree - 1).max(1) as f64);
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

/// Iterations of the optimiser; some fifty are usual.
const ITERATIONS: usize = 500;

fn fit(problem: &BufferedProblem, degree: usize) -> Result<(BufferedToeplitz, f64), Error> {
    let (gaps, _) = bfgs(|gaps| problem.log_loss(gaps), problem.start(degree), ITERATIONS);
    let strategy = quantized(&gaps, problem.decay)?;
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
fn sequences(gaps: &[f64], decay: f64) -> (Exponentials, Exponentials) {
    let (workload, theta, mut noise) = poles(gaps, decay);
    let omega = weights(&theta, &noise);
    let column = Exponentials::new(omega.into_iter().zip(theta.iter().map(|p| p.rate)));
    noise.push(workload);
    let residues = residues(&noise, &theta, noise.len());
    (column, Exponentials::new(residues.into_iter().zip(noise.iter().map(|p| p.rate))))
}

/// The strategy at these log gaps in 16 bits.
fn quantized(gaps: &[f64], decay: f64) -> Result<BufferedToeplitz, Error> {
    let (_, theta, theta_hat) = poles(gaps, decay);
    let rates: Vec<f64> = theta.iter().map(|p| p.rate).collect();
    BufferedToeplitz::new(&rates, &weights(&theta, &theta_hat))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timing() {
        for n in [10, 12, 16, 20] {
            for d in [1, 2, 3, 4, 5, 6, 8, 12] {
                let t = std::time::Instant::now();
                let max = optimize(&BufferedProblem::counting(d, 1 << n, Objective::Max)).unwrap();
                let t1 = t.elapsed();
                let t = std::time::Instant::now();
                let mean = optimize(&BufferedProblem::counting(d, 1 << n, Objective::Mean)).unwrap();
                eprintln!("{n} {d} {:.6} {:.6} {:?} {:?} {}", max.1, mean.1, t1, t.elapsed(), max.0.degree());
            }
        }
    }
}
