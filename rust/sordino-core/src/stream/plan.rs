//! A stream before it is opened: strategy, sensitivity, errors.

use super::filter::Filter;
use super::participation::Participation;
use super::recipe::{Horizon, StreamMechanism, StreamRecipe};
use super::state::Writer;
use super::strategy::StreamStrategy;
use crate::domain::Domain;
use crate::door::NoiseLaw;
use crate::door::{PanPrivateTree, StreamDoor, StreamShift};
use crate::error::Error;
use crate::optimize::Progress;
use crate::upper::Upper;
use sha2::{Digest, Sha256};
use std::ops::ControlFlow;
use std::sync::OnceLock;

/// A built strategy and the recipe it came from.
#[derive(Debug)]
pub struct StreamPlan {
    recipe: StreamRecipe,
    strategy: Box<dyn StreamStrategy>,
    parameters: OnceLock<[u8; 32]>,
}

impl StreamPlan {
    /// Builds the strategy of a recipe.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the mechanism does not serve the filter, the noise or the horizon.
    pub fn new(recipe: StreamRecipe) -> Result<Self, Error> {
        Self::with_progress(recipe, &mut |_, _| ControlFlow::Continue(()))
    }

    /// As [`Self::new`]; long optimisations report their steps, and may be ended with a larger gap.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn with_progress(recipe: StreamRecipe, progress: Progress<'_>) -> Result<Self, Error> {
        let filter = recipe.filter.validated()?;
        let recipe = StreamRecipe { filter, ..recipe };
        let strategy = recipe.build(progress)?;
        Ok(Self { recipe, strategy, parameters: OnceLock::new() })
    }

    /// What this was made from.
    pub fn recipe(&self) -> &StreamRecipe {
        &self.recipe
    }

    /// Steps that may be published.
    pub fn steps(&self) -> u64 {
        self.recipe.horizon.steps()
    }

    pub(super) fn strategy(&self) -> &dyn StreamStrategy {
        &*self.strategy
    }

    /// Upper bound of `‖C(x − x')‖`: ℓ2, or ℓ1 for Laplace noise; of all patterns together, which concern different
    /// coordinates.
    pub fn sensitivity(&self, patterns: &[Participation]) -> Upper {
        self.together(patterns, |pattern, l1| if l1 { pattern.item_l1() } else { pattern.item_norm() })
    }

    /// Of patterns whose changes at one step have these norms, ℓ2 or ℓ1.
    fn together(&self, patterns: &[Participation], norm: impl Fn(&Participation, bool) -> Upper) -> Upper {
        let l1 = self.recipe.law == NoiseLaw::Laplace;
        let parts = patterns.iter().map(|pattern| {
            let columns = if pattern.is_exchange() {
                self.strategy.exchange_norm(self.steps(), l1)
            } else {
                self.strategy.norm(pattern, self.steps())
            };
            columns * norm(pattern, l1)
        });
        match patterns.len() {
            1 => parts.fold(Upper::ZERO, |_, part| part),
            _ if l1 => parts.fold(Upper::ZERO, |sum, part| sum + part),
            _ => parts.fold(Upper::ZERO, |sum, part| sum + part * part).sqrt(),
        }
    }

    /// Fits lattice and noise.
    ///
    /// # Errors
    /// If magnitudes or the noise do not fit the lattice, or there is no pattern.
    pub fn fit(&self, patterns: &[Participation], domain: Domain, noise_ratio: f64) -> Result<StreamDoor, Error> {
        if patterns.is_empty() {
            return Err(Error::invalid("unit", "a unit that changes nothing needs no privacy"));
        }
        let touched = Upper::integer(patterns.iter().map(|pattern| u128::from(pattern.touched())).sum());
        let mut rounding = self.strategy.rounding(self.steps()) * touched.sqrt();
        let common = patterns[0].common();
        if common != patterns.iter().find_map(Participation::common) || patterns.len() > 1 && common.is_some() {
            return Err(Error::invalid("unit", "common noise is for records of one kind"));
        }
        let mut largest_scale = self.strategy.largest_scale();
        if let Some((ratio, dim)) = common {
            if self.recipe.law != NoiseLaw::Gaussian {
                return Err(Error::Unsupported("common noise of a stream is Gaussian".into()));
            }
            // The common noise of every step moves by whole lattice units.
            let half = Upper::rounded(0.5 * (dim as f64 + ratio.powi(-2)).sqrt(), 8);
            rounding = rounding + half * Upper::integer(self.steps().into()).sqrt();
            largest_scale *= ratio.max(1.0);
        }
        let vectors = patterns.iter().any(|pattern| pattern.rounded(false).is_some());
        let rounded = vectors.then(|| self.together(patterns, |p, l1| p.rounded(l1).unwrap_or(Upper::ZERO)));
        let shift = StreamShift { ideal: self.sensitivity(patterns), rounded, rounding, largest_scale, common };
        StreamDoor::fit(shift, domain, self.recipe.law, noise_ratio)
    }

    /// Variance of the answer at each of these steps (from 1) for noise of scale 1.
    ///
    /// # Errors
    /// If a step is beyond the horizon.
    pub fn variances(&self, steps: &[u64]) -> Result<Vec<f64>, Error> {
        if steps.iter().any(|t| *t == 0 || *t > self.steps()) {
            return Err(Error::invalid("step", "must be from 1 to the last step of the horizon"));
        }
        self.strategy.variances(&self.recipe.filter, steps)
    }

    /// Whether no product of two columns of the strategy is negative.
    pub fn no_negative_products(&self) -> bool {
        self.strategy.no_negative_products()
    }

    /// Whether no product of a column with a later one grows with their distance.
    pub fn falling_products(&self) -> bool {
        self.strategy.falling_products()
    }

    /// Steps at which the variance of a sum over the first `steps` may be largest, where few of very many are.
    pub fn worst_steps(&self, steps: u64) -> Vec<u64> {
        self.strategy.worst_steps(steps)
    }

    /// SHA-256 of the numbers that the noise depends on besides the recipe: a state goes on only with the same ones.
    pub fn parameters(&self) -> [u8; 32] {
        *self.parameters.get_or_init(|| {
            let mut out = Writer::default();
            self.strategy.parameters(&mut out);
            Sha256::digest(out.as_slice()).into()
        })
    }

    /// Opens running sums whose state may be looked at once, for noise that was fitted to this plan.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the plan is not a plain binary tree on running sums with a hard horizon; for a bad `dim`.
    pub fn open_pan_private(
        &self,
        door: StreamDoor,
        dim: usize,
        key: Option<[u8; 32]>,
    ) -> Result<PanPrivateTree, Error> {
        let recipe = &self.recipe;
        let (StreamMechanism::BinaryTree, Filter::RunningSum, Horizon::Hard(steps)) =
            (recipe.mechanism, &recipe.filter, recipe.horizon)
        else {
            return Err(Error::Unsupported("only a binary tree of running sums can be pan-private".into()));
        };
        PanPrivateTree::open(door, steps, dim, key)
    }

    /// Bytes that the noise keeps for one coordinate at the last step.
    pub fn state_bytes(&self) -> u64 {
        self.strategy.state_bytes(self.recipe.horizon.design().unwrap_or(self.steps()))
    }

    /// Operations that reading one coordinate takes after so many steps, where nothing is computed before it is read.
    pub fn read_operations(&self, step: u64) -> f64 {
        self.strategy.summed_operations(step)
    }

    /// Multiplications and additions of the noise a step and coordinate, amortised.
    pub fn operations(&self) -> f64 {
        self.strategy.operations(self.recipe.horizon.design().unwrap_or(self.steps()))
    }
}
