//! From a workload to released answers in two calls, for those who use this crate without its Python layer.

use crate::domain::Domain;
use crate::door::{Data, Door, Measured};
use crate::error::Error;
use crate::strategy::{Recipe, Strategy, decode};
use crate::unit::Unit;

/// A strategy with the door that was fitted to it: everything is public, and nothing is charged anywhere.
///
/// ```
/// use sordino_core::domain::Domain;
/// use sordino_core::door::{Data, NoiseLaw};
/// use sordino_core::plan::Plan;
/// use sordino_core::strategy::{Mechanism, Recipe};
/// use sordino_core::unit::Unit;
/// use sordino_core::workload::Workload;
///
/// // Moving sums over four cells; one record adds or removes one; Gaussian noise of 4.22 sensitivities.
/// let workload = Workload::Linear { kernel: vec![1.0; 4], len: 6, center: 0 };
/// let recipe = Recipe { workload, mechanism: Mechanism::Fourier, law: NoiseLaw::Gaussian };
/// let plan = Plan::new(&recipe, Unit::add_remove(1, None)?, Domain::integral(1 << 20)?, 4.22)?;
/// assert!(plan.stderr().iter().all(|error| *error < 4.22 * 2.0));
/// let release = plan.release(Data::Integers(&[3, 1, 4, 1, 5, 9]))?;
/// assert_eq!(release.answers.len(), 6);
/// # Ok::<(), sordino_core::error::Error>(())
/// ```
#[derive(Debug)]
pub struct Plan {
    strategy: Box<dyn Strategy>,
    door: Door,
    input_len: usize,
    answers_len: usize,
}

/// What was published, and the answers that follow from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Release {
    /// The noisy strategy, on its lattice.
    pub measured: Measured,
    /// Answers of the plan's workload, unbiased.
    pub answers: Vec<f64>,
}

impl Plan {
    /// Builds the strategy and fits lattice and noise to it.
    ///
    /// `noise_ratio` is the noise (Gaussian standard deviation, Laplace scale) over the sensitivity. Its privacy is for
    /// the caller to know: `μ = 1/noise_ratio` in Gaussian differential privacy, `ε = 1/noise_ratio` under Laplace
    /// noise, between neighbours that differ by `unit`.
    ///
    /// # Errors
    /// If the mechanism does not serve the workload, or magnitudes or the noise do not fit the lattice.
    pub fn new(recipe: &Recipe, unit: Unit, domain: Domain, noise_ratio: f64) -> Result<Self, Error> {
        let strategy = recipe.build()?;
        let door = Door::fit(&*strategy, unit, domain, noise_ratio)?;
        let strategy = door.refined(&*strategy)?.unwrap_or(strategy);
        let input_len = recipe.workload.input_len().unwrap_or(0);
        Ok(Self { strategy, door, input_len, answers_len: recipe.workload.answers_len() })
    }

    /// What is measured.
    pub fn strategy(&self) -> &dyn Strategy {
        &*self.strategy
    }

    /// Lattice, noise and sensitivity.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Standard deviation of each answer's noise.
    pub fn stderr(&self) -> Vec<f64> {
        let mut out = vec![0.0; self.answers_len];
        self.strategy.variances(&mut out);
        let noise = self.door.noise();
        out.into_iter().map(|variance| noise * variance.sqrt()).collect()
    }

    /// Measures the private input under a fresh key and answers from what was published.
    ///
    /// # Errors
    /// For the wrong form or length of input, or if the operating system gives no randomness; then nothing was
    /// published.
    pub fn release(&self, data: Data<'_>) -> Result<Release, Error> {
        let measured = self.door.measure(&*self.strategy, self.input_len, data)?;
        let mut answers = vec![0.0; self.answers_len];
        decode(&*self.strategy, &measured, &mut answers);
        Ok(Release { measured, answers })
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use crate::domain::Domain;
    use crate::door::{Data, NoiseLaw};
    use crate::strategy::{Mechanism, Recipe};
    use crate::unit::Unit;
    use crate::workload::Workload;

    /// With next to no noise the answers are the workload's; both laws, and the error is what was said.
    #[test]
    fn answers_are_those_of_the_workload() {
        let workload = Workload::Linear { kernel: vec![1.0; 16], len: 16, center: 0 };
        let cells: Vec<i64> = (0..16).map(|i| i * i % 7).collect();
        for (mechanism, law) in
            [(Mechanism::Balanced, NoiseLaw::Gaussian), (Mechanism::Tree { branching: 2 }, NoiseLaw::Laplace)]
        {
            let recipe = Recipe { workload: workload.clone(), mechanism, law };
            let (unit, domain) = (Unit::add_remove(1, None).unwrap(), Domain::integral(1 << 20).unwrap());
            let plan = Plan::new(&recipe, unit, domain, 1e-3).unwrap();
            let release = plan.release(Data::Integers(&cells)).unwrap();
            let (mut total, stderr) = (0.0, plan.stderr());
            for ((cell, answer), error) in cells.iter().zip(&release.answers).zip(&stderr) {
                total += *cell as f64;
                // Beyond forty standard errors less than once in 10^17 under either law.
                assert!((answer - total).abs() < 40.0 * error + 1e-9 && *error < 0.02, "{answer} {total} {error}");
            }
            assert_eq!(release.measured.units().len(), plan.strategy().measured_len());
            assert!((plan.door().scale() / plan.door().sensitivity().total().get() / 1e-3 - 1.0).abs() < 1e-5);
            assert!(plan.release(Data::Integers(&cells[1..])).is_err());
        }
    }
}
