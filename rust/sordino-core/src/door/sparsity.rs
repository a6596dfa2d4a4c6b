//! How many coefficients to keep, chosen privately: `select` on the errors that a compressive mechanism would make.
//!
//! The error with `S` coefficients is taken as `u(S) = ‖c − c_S‖₁/√S + penalty(S)`, `c = Ψᵀx`, `c_S` its `S` largest
//! entries, the penalty public (the noise). A record changes `‖c − c_S‖₁` by at most `max_j ‖Ψᵀe_j‖₁`, for the distance to
//! a set is 1-Lipschitz, so every score moves by at most that over the square root of the fewest candidates: one bound for
//! all of them, from which the choice is private as it stands.
//!
//! Source: Li, Zhang, Winslett & Yang 2011, Section 3.4, with a sensitivity that does not depend on the candidate
//! and belongs to the basis.

use super::random::Key;
use super::select::select;
use crate::domain::Domain;
use crate::error::Error;
use crate::transform::Basis;
use crate::unit::Unit;
use crate::upper::Upper;

/// What is public about the choice.
#[derive(Debug, Clone, Copy)]
pub struct SparsityChoice<'a> {
    /// Numbers of coefficients to choose from.
    pub candidates: &'a [usize],
    /// Error by noise with each of them.
    pub penalties: &'a [f64],
    /// What one protected thing changes.
    pub unit: Unit,
    /// Declared bounds of a cell.
    pub domain: Domain,
    /// Privacy of the choice.
    pub epsilon: f64,
}

impl SparsityChoice<'_> {
    /// Bound of what neighbours' scores differ by, in units of the data, floating-point errors included.
    ///
    /// # Errors
    /// For no candidates, candidates that are not rising from 1 or beyond the basis, or penalties that do not belong to them.
    pub fn sensitivity(&self, basis: &dyn Basis) -> Result<Upper, Error> {
        let rising = self.candidates.windows(2).all(|pair| pair[0] < pair[1]);
        let (first, last) = (self.candidates.first().copied().unwrap_or(0), self.candidates.last().copied());
        if first == 0 || !rising || last.is_some_and(|last| last > basis.len()) {
            return Err(Error::invalid("candidates", "must be rising, from 1 to the number of coefficients"));
        }
        if self.penalties.len() != self.candidates.len() || self.penalties.iter().any(|p| !p.is_finite()) {
            return Err(Error::invalid("penalties", "must be one finite number for each candidate"));
        }
        let step = -(self.domain.fraction_bits() as i32);
        let records = Upper::integer(u128::from(self.unit.l1())) * self.domain.steps_per_record().scaled(step);
        let exact = records * basis.column_l1();
        // ‖c‖₁ ≤ √N‖x‖₂ ≤ N·max; the tail is off by at most that times the error of transform and sum.
        let cells = basis.len() as f64;
        let all = cells * self.domain.max_value() as f64;
        let error = Upper::rounded(all * basis.relative_error() * (1.0 + 1e-9), 4);
        let roots = Upper::rounded((first as f64).sqrt().recip(), 4);
        // Penalties are added in floating point.
        let penalty = self.penalties.iter().map(|p| p.abs()).fold(0.0, f64::max);
        Ok((exact + error + error) * roots + Upper::rounded((penalty + all) * 1e-15, 4))
    }

    /// Index of the chosen candidate, `epsilon`-differentially private.
    ///
    /// # Errors
    /// As [`Self::sensitivity`]; for cells that are not as many as the basis has elements at most; or if the operating
    /// system gives no randomness.
    pub fn select(&self, basis: &dyn Basis, cells: Cells<'_>, key: Option<&Key>) -> Result<usize, Error> {
        let sensitivity = self.sensitivity(basis)?;
        let len = cells.len();
        if len > basis.len() {
            return Err(Error::Shape { name: "cells", expected: basis.len(), got: len });
        }
        let spacing = 2f64.powi(-(self.domain.fraction_bits() as i32));
        let mut coefficients = vec![0.0; basis.len()];
        match cells {
            Cells::Integers(cells) => coefficients
                .iter_mut()
                .zip(cells)
                .for_each(|(c, x)| *c = self.domain.integer_steps(*x) as f64 * spacing),
            Cells::Reals(cells) => {
                coefficients.iter_mut().zip(cells).for_each(|(c, x)| *c = self.domain.steps(*x) as f64 * spacing);
            }
        }
        basis.analyze(&mut coefficients);
        let scores: Vec<f64> = tails(&mut coefficients, self.candidates)
            .into_iter()
            .zip(self.candidates.iter().zip(self.penalties))
            .map(|(tail, (s, penalty))| -(tail / (*s as f64).sqrt() + penalty))
            .collect();
        select(&scores, sensitivity.get(), self.epsilon, key)
    }
}

/// Cells as they arrive, all finite.
#[derive(Debug, Clone, Copy)]
pub enum Cells<'a> {
    /// Integers.
    Integers(&'a [i64]),
    /// Real numbers.
    Reals(&'a [f64]),
}

impl Cells<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Integers(cells) => cells.len(),
            Self::Reals(cells) => cells.len(),
        }
    }
}

/// `Σ|c|` without the `S` largest, for each rising `S`; the coefficients are sorted by magnitude.
fn tails(coefficients: &mut [f64], candidates: &[usize]) -> Vec<f64> {
    coefficients.sort_unstable_by(|a, b| b.abs().total_cmp(&a.abs()));
    let mut found: Vec<f64> = Vec::with_capacity(candidates.len());
    let (mut sum, mut lost, mut end) = (0.0f64, 0.0f64, coefficients.len());
    for s in candidates.iter().rev() {
        // From the smallest, with the rounding errors of each addition kept (Neumaier).
        for c in coefficients[*s..end].iter().rev() {
            let next = sum + c.abs();
            lost += if sum >= c.abs() { (sum - next) + c.abs() } else { (c.abs() - next) + sum };
            sum = next;
        }
        end = *s;
        found.push(sum + lost);
    }
    found.reverse();
    found
}

#[cfg(test)]
mod tests {
    use super::{Cells, SparsityChoice, tails};
    use crate::domain::Domain;
    use crate::door::Key;
    use crate::transform::{Basis, BasisName, NamedBasis};
    use crate::unit::Unit;

    const CANDIDATES: [usize; 4] = [1, 2, 4, 8];

    fn choice(epsilon: f64) -> SparsityChoice<'static> {
        SparsityChoice {
            candidates: &CANDIDATES,
            penalties: &[1.0, 2.0, 4.0, 8.0],
            unit: Unit::add_remove(1, None).unwrap(),
            domain: Domain::integral(1000).unwrap(),
            epsilon,
        }
    }

    fn scores(basis: &dyn Basis, cells: &[i64]) -> Vec<f64> {
        let mut c: Vec<f64> = cells.iter().map(|x| *x as f64).collect();
        basis.analyze(&mut c);
        tails(&mut c, &CANDIDATES).iter().zip(CANDIDATES).map(|(tail, s)| tail / (s as f64).sqrt()).collect()
    }

    #[test]
    fn no_record_moves_a_score_further_than_the_bound() {
        for name in [BasisName::Haar, BasisName::Cosine, BasisName::Standard] {
            let basis = NamedBasis::new(name, 64).unwrap();
            let bound = choice(1.0).sensitivity(&basis).unwrap().get();
            let mut moved = 0.0f64;
            for seed in 0..20i64 {
                let mut cells: Vec<i64> = (0..64).map(|i| (i * i * (seed + 3) + i * seed) % 23 % (seed + 1)).collect();
                let before = scores(&basis, &cells);
                for j in 0..64 {
                    cells[j] += 1;
                    let after = scores(&basis, &cells);
                    moved = before.iter().zip(&after).map(|(a, b)| (a - b).abs()).fold(moved, f64::max);
                    cells[j] -= 1;
                }
            }
            assert!(moved <= bound && bound < 1.5 * moved + 1.0, "{name:?}: {moved} of {bound}");
        }
    }

    #[test]
    fn tails_are_sums_of_what_is_left() {
        let mut c = vec![3.0, -1.0, 0.5, -7.0, 2.0];
        assert_eq!(tails(&mut c, &[1, 2, 5]), [6.5, 3.5, 0.0]);
    }

    #[test]
    fn the_best_is_found_when_privacy_allows() {
        let basis = NamedBasis::new(BasisName::Haar, 64).unwrap();
        // Four plateaus of 16 cells: four coefficients say all.
        let cells: Vec<i64> = (0..64).map(|i| [900, -300, 500, 20][i / 16]).collect();
        let key = Key::deterministic([5; 32]);
        let index = choice(1e3).select(&basis, Cells::Integers(&cells), Some(&key)).unwrap();
        assert_eq!(CANDIDATES[index], 4);
        let reals: Vec<f64> = cells.iter().map(|x| *x as f64).collect();
        assert_eq!(choice(1e3).select(&basis, Cells::Reals(&reals), Some(&key)).unwrap(), 2);
    }

    #[test]
    fn bad_choices_are_refused() {
        let basis = NamedBasis::new(BasisName::Haar, 8).unwrap();
        let good = choice(1.0);
        for bad in [
            SparsityChoice { candidates: &[], penalties: &[], ..good },
            SparsityChoice { candidates: &[2, 1], penalties: &[0.0; 2], ..good },
            SparsityChoice { candidates: &[0, 1], penalties: &[0.0; 2], ..good },
            SparsityChoice { candidates: &[1, 9], penalties: &[0.0; 2], ..good },
            SparsityChoice { penalties: &[f64::NAN, 0.0, 0.0, 0.0], ..good },
            SparsityChoice { penalties: &[0.0], ..good },
            SparsityChoice { epsilon: 0.0, ..good },
        ] {
            assert!(bad.select(&basis, Cells::Integers(&[1; 8]), None).is_err());
        }
        assert!(good.select(&basis, Cells::Integers(&[1; 9]), None).is_err());
    }
}
