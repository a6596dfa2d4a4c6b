//! Public weights of the features: less noise on what matters more.

use super::IndexSet;
use crate::error::Error;

/// Weights are integers in units of `2^-WEIGHT_BITS`, rounded down, so that no sensitivity grows.
pub(crate) const WEIGHT_BITS: u32 = 30;

/// Weights from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Weights {
    /// All are 1.
    Uniform,
    /// The product of weights of the axes, for tensor sets.
    Product(Vec<Vec<f64>>),
    /// One a feature.
    Listed(Vec<f64>),
}

impl Weights {
    /// The weights as integers in the order of the features; `None` if all are 1.
    ///
    /// # Errors
    /// If there is another number of them than features, or one is not in `(0, 1]`, or so small that it vanishes.
    pub fn integers(&self, set: Option<&IndexSet>, features: usize) -> Result<Option<Vec<u64>>, Error> {
        let invalid = || Error::invalid("weights", "must be from 2^-30 to 1, one a feature");
        let whole = |weight: f64| {
            // Five roundings at most on the way here, so the product of the exact weights is not below.
            let scaled = (weight * (1.0 - 2f64.powi(-48)) * f64::from(1u32 << WEIGHT_BITS)).floor();
            if weight <= 1.0 && scaled >= 1.0 { Ok(scaled as u64) } else { Err(invalid()) }
        };
        match (self, set) {
            (Self::Uniform, _) => Ok(None),
            (Self::Listed(weights), _) if weights.len() == features => {
                weights.iter().map(|weight| whole(*weight)).collect::<Result<_, _>>().map(Some)
            }
            (Self::Product(axes), Some(set)) if set.is_tensor() && axes.len() == set.sizes().len() => {
                let mut products = vec![1.0];
                for (axis, size) in axes.iter().zip(set.sizes()) {
                    if axis.len() != *size || axis.iter().any(|w| !(*w > 0.0 && *w <= 1.0)) {
                        return Err(invalid());
                    }
                    products = products.iter().flat_map(|p| axis.iter().map(move |w| p * w)).collect();
                }
                products.into_iter().map(whole).collect::<Result<_, _>>().map(Some)
            }
            _ => Err(invalid()),
        }
    }
}
