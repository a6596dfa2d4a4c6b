//! Recipes: a strategy described as plain data, built in a separate step.

use super::balanced::{Balanced, Precision};
use super::dense::Dense;
use super::fourier::Fourier;
use super::fourier_basis::{FourierBasis, Sharing};
use super::group::Group;
use super::haar::Haar;
use super::identity::Identity;
use super::marginals::{Marginals, Shares};
use super::merged::on_merged_cells;
use super::output::Output;
use super::product::Product;
use super::sparse::Sparse;
use super::square_root::SquareRoot;
use super::table_cover::TableCover;
use super::tail::Tail;
use super::tree::Tree;
use super::weighted_tree::{WEIGHT_BITS, WeightedTree};
use super::z2::Z2;
use super::{Geometry, Strategy};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::workload::Workload;

/// Entries of rows that are measured as they are, of workloads that have a form of their own.
const FEW_ENTRIES: usize = 1 << 22;

/// The mechanisms, by the names that users write. Kinds are never removed or re-meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mechanism {
    /// Noise on every cell of the input.
    Identity,
    /// Noise on every answer.
    Output,
    /// The optimal weights in the Fourier (character) basis of the workload's group.
    Fourier,
    /// Fourier coefficients with Laplace noise and Gaussian weights, calibrated by composition.
    FourierComposed,
    /// Planar Laplace noise on each frequency.
    FourierPlanar,
    /// Spherical Laplace noise on blocks of frequencies.
    FourierGrouped,
    /// The same noise on every character of the marginals.
    FourierUniform,
    /// Residuals of marginals under noise in the largest of those of one order.
    Boxes,
    /// Larger tables than the marginals, each with its weight.
    TableCover,
    /// A tree of counts with least squares.
    Tree {
        /// Children of a node.
        branching: usize,
    },
    /// The Haar wavelet with optimal level weights.
    Haar,
    /// The square root (outer factor) of a causal filter.
    SquareRoot,
    /// The balanced root of ranges, of running sums, and of their products.
    Balanced,
    /// Blocks of a few sizes, each with its weight; of products along every axis.
    WeightedTree,
}

/// A strategy as data: workload, mechanism, law of the noise.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    /// What is answered.
    pub workload: Workload,
    /// What is measured.
    pub mechanism: Mechanism,
    /// Gaussian, or Laplace (spherical Laplace where the mechanism says so).
    pub law: NoiseLaw,
}

/// Whether noise on the answers alone can be less than noise on the cells, and their rows are short enough to be held.
fn few_rows(first: usize, workload: &Workload) -> bool {
    let rows = workload.answers_len();
    rows.saturating_mul(rows) <= first && workload.input_len().is_some_and(|cells| rows * cells <= FEW_ENTRIES)
}

impl Recipe {
    /// Builds the strategy; the same recipe gives the same strategy.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the mechanism does not serve the workload with this noise.
    pub fn build(&self) -> Result<Box<dyn Strategy>, Error> {
        let workload = self.workload.clone().validated()?;
        let geometry = if self.law == NoiseLaw::Gaussian { Geometry::L2 } else { Geometry::L1 };
        let gaussian = self.law == NoiseLaw::Gaussian;
        if !matches!(self.mechanism, Mechanism::Identity | Mechanism::Balanced | Mechanism::WeightedTree) {
            workload.listed()?;
        }
        let unsupported = || Error::Unsupported("this mechanism does not serve this workload with this noise".into());
        Ok(match (self.mechanism, &workload) {
            (Mechanism::Identity, _) => Box::new(Identity::new(&workload, geometry)?),
            // To measure what is left out as well costs more than all else where few answers are left.
            (Mechanism::Output, Workload::Tail { first, .. }) if few_rows(*first, &workload) => {
                let (rows, columns, entries) = workload.dense()?;
                Box::new(Dense::new(rows, columns, entries, geometry))
            }
            // Windows without a warm-up have trees and roots of their own.
            (Mechanism::WeightedTree, Workload::Kronecker { .. }) if !gaussian => {
                Box::new(Product::new(&workload, geometry, None)?)
            }
            (Mechanism::WeightedTree, _) if !gaussian => {
                on_merged_cells(&workload, |own| Ok(Box::new(WeightedTree::new(own, None, WEIGHT_BITS)?)))?
            }
            (Mechanism::Balanced, Workload::Kronecker { .. }) if gaussian => {
                Box::new(Product::new(&workload, geometry, None)?)
            }
            (Mechanism::Balanced, _) if gaussian => {
                on_merged_cells(&workload, |own| Ok(Box::new(Balanced::new(own, None, Precision::Full)?)))?
            }
            (_, Workload::Tail { first, of }) => {
                Box::new(Tail::new(*first, Self { workload: (**of).clone(), ..self.clone() }.build()?))
            }
            (Mechanism::Output, Workload::Matrix { rows, columns, entries }) => {
                Box::new(Dense::new(*rows, *columns, entries.clone(), geometry))
            }
            (Mechanism::Output, Workload::Sparse { .. }) => Box::new(Sparse::new(&workload, geometry)?),
            (Mechanism::Output, Workload::Intervals { .. }) => Box::new(Sparse::new(&workload.sparse()?, geometry)?),
            (Mechanism::Output, Workload::Ranges { .. } | Workload::Union { .. } | Workload::Kronecker { .. }) => {
                let (rows, columns, entries) = workload.dense()?;
                Box::new(Dense::new(rows, columns, entries, geometry))
            }
            (Mechanism::Output, Workload::Marginals { .. }) => {
                Box::new(Marginals::new(&workload, geometry, Shares::Direct)?)
            }
            (Mechanism::Output, _) => Box::new(Output::new(&workload, geometry)?),
            (Mechanism::Fourier, Workload::Marginals { .. }) => {
                Box::new(Marginals::new(&workload, geometry, Shares::Optimal)?)
            }
            (Mechanism::FourierUniform, Workload::Marginals { .. }) => {
                Box::new(Marginals::new(&workload, geometry, Shares::Uniform)?)
            }
            (Mechanism::Boxes, Workload::Marginals { .. }) if !gaussian => {
                Box::new(Marginals::new(&workload, geometry, Shares::Boxes)?)
            }
            (Mechanism::TableCover, _) if !gaussian => Box::new(TableCover::new(&workload)?),
            (Mechanism::Fourier, Workload::Group { radices, kernel }) if radices.iter().all(|n| *n == 2) => {
                Box::new(Z2::new(kernel, geometry))
            }
            (Mechanism::Fourier, Workload::Group { radices, kernel }) if gaussian => {
                Box::new(Group::new(radices, kernel))
            }
            (Mechanism::Fourier, Workload::Union { parts }) if gaussian => {
                Box::new(Fourier::new(&workload, &vec![1.0; parts.len()])?)
            }
            (Mechanism::Fourier, Workload::Circular { .. } | Workload::Linear { .. }) if gaussian => {
                Box::new(Fourier::new(&workload, &[1.0])?)
            }
            (Mechanism::Fourier, Workload::Circular { .. } | Workload::Linear { .. }) => {
                Box::new(FourierBasis::new(&workload, Sharing::Independent)?)
            }
            (Mechanism::FourierComposed, _) if !gaussian => Box::new(FourierBasis::new(&workload, Sharing::Composed)?),
            (Mechanism::FourierPlanar, _) if !gaussian => Box::new(FourierBasis::new(&workload, Sharing::Planar)?),
            (Mechanism::FourierGrouped, _) if !gaussian => Box::new(FourierBasis::new(&workload, Sharing::Grouped)?),
            (Mechanism::Tree { branching }, _) => Box::new(Tree::new(&workload, branching, geometry)?),
            (Mechanism::SquareRoot, _) if gaussian => Box::new(SquareRoot::new(&workload)?),
            (Mechanism::Haar, _) => Box::new(Haar::new(&workload, geometry)?),
            _ => return Err(unsupported()),
        })
    }
}
