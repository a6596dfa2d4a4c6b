//! How a budget is spent: chosen by errors over made and real tables, `benches/adaptive_marginals.py`.

use crate::door::{NoiseLaw, TableDoor, WHOLE, variance};

/// Share of each round for its choice.
const CHOICE: f64 = 0.1;
/// What rounds grow by: a noise of .7.
const GROWTH: f64 = 0.7;

/// Shares, for noise of one law and size.
#[derive(Debug)]
pub(super) struct Rule {
    law: NoiseLaw,
    scale: f64,
    rounds: u64,
    /// Rounds that are left at least when they grow.
    last: u64,
    /// Of each table of one attribute.
    pub single: u64,
    /// What is kept for the end.
    pub kept: u64,
}

impl Rule {
    pub(super) fn of(door: &TableDoor, attributes: usize) -> Self {
        let several = attributes.max(1) as u64;
        // Precisions add up under Gaussian noise; under Laplace noise budget that is spent on a table twice is wasted in part.
        let (singles, kept, rounds, last) = match door.law() {
            // More than eighty rounds gained nothing, and take time.
            NoiseLaw::Gaussian => (0.05, 0.25, (16 * several).min(80.max(2 * several)), 8),
            NoiseLaw::Laplace => (0.2, 0.0, 2 * several, 1),
        };
        let kept = (WHOLE as f64 * kept) as u64;
        let single = ((WHOLE - kept) as f64 * singles) as u64 / several;
        Self { law: door.law(), scale: door.scale(), rounds, last, single, kept }
    }

    pub(super) fn first_round(&self, left: u64) -> u64 {
        (left - self.kept) / self.rounds
    }

    /// A larger round, if enough of them are left.
    pub(super) fn larger(&self, round: u64, left: u64) -> u64 {
        let growth = if self.law == NoiseLaw::Gaussian { GROWTH * GROWTH } else { GROWTH };
        round.max(((round as f64 / growth) as u64).min(left / self.last))
    }

    pub(super) fn variance(&self, share: u64) -> f64 {
        variance(self.law, self.scale, share)
    }

    /// Mean magnitude of the noise of a cell.
    pub(super) fn mean_noise(&self, share: u64) -> f64 {
        let variance = self.variance(share);
        match self.law {
            NoiseLaw::Gaussian => (2.0 * variance / std::f64::consts::PI).sqrt(),
            NoiseLaw::Laplace => (0.5 * variance).sqrt(),
        }
    }
}

/// What a round spends on its choice.
pub(super) fn choice(round: u64) -> u64 {
    (round as f64 * CHOICE) as u64
}
