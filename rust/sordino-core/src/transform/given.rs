//! An orthonormal basis given by two functions that may fail.

use super::Basis;
use crate::error::Error;
use crate::upper::Upper;
use std::fmt;
use std::sync::{Mutex, PoisonError};

/// Returns as many coefficients (or cells) as it is given cells (or coefficients).
pub type BasisFunction<E> = Box<dyn Fn(&[f64]) -> Result<Vec<f64>, E> + Send + Sync>;

/// A basis given by its two functions, a bound on the ℓ1 norm of a cell's coefficients, and its accuracy.
///
/// Transforms cannot fail: the first failure waits in the basis until [`Self::check`] asks for it, and what came of
/// that call is zero.
pub struct GivenBasis<E> {
    len: usize,
    analyze: BasisFunction<E>,
    synthesize: BasisFunction<E>,
    column_l1: Upper,
    relative_error: f64,
    failure: Mutex<Option<E>>,
}

impl<E: From<Error> + Send> GivenBasis<E> {
    /// `column_l1` and `relative_error` as [`Basis::column_l1`] and [`Basis::relative_error`] define them; neither
    /// can be checked here.
    pub fn new(
        len: usize,
        analyze: BasisFunction<E>,
        synthesize: BasisFunction<E>,
        column_l1: f64,
        relative_error: f64,
    ) -> Self {
        let column_l1 = Upper::rounded(column_l1, 1);
        Self { len, analyze, synthesize, column_l1, relative_error, failure: Mutex::new(None) }
    }

    /// Whether a function has failed since [`Self::check`] was last asked.
    pub fn failed(&self) -> bool {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the first failure out.
    ///
    /// # Errors
    /// What a function returned, or [`Error::Unsupported`] if its array had another length or was not finite.
    pub fn check(&self) -> Result<(), E> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }

    fn call(&self, function: &BasisFunction<E>, x: &mut [f64]) {
        let found = function(x).and_then(|values| {
            if values.len() == x.len() && values.iter().all(|v| v.is_finite()) {
                return Ok(values);
            }
            let what = "a function of this basis returned another number of coefficients, or some that are not finite";
            Err(Error::Unsupported(what.into()).into())
        });
        match found {
            Ok(values) => x.copy_from_slice(&values),
            Err(failure) => {
                x.fill(0.0);
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(failure);
            }
        }
    }
}

impl<E> fmt::Debug for GivenBasis<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenBasis").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<E: From<Error> + Send> Basis for GivenBasis<E> {
    fn len(&self) -> usize {
        self.len
    }

    fn analyze(&self, x: &mut [f64]) {
        self.call(&self.analyze, x);
    }

    fn synthesize(&self, c: &mut [f64]) {
        self.call(&self.synthesize, c);
    }

    fn column_l1(&self) -> Upper {
        self.column_l1
    }

    fn relative_error(&self) -> f64 {
        self.relative_error
    }
}

#[cfg(test)]
mod tests {
    use super::{Basis, GivenBasis};
    use crate::error::Error;

    #[test]
    fn the_first_failure_waits_and_its_result_is_zero() {
        let flipped = |x: &[f64]| Ok(x.iter().map(|v| -v).collect());
        let basis: GivenBasis<Error> =
            GivenBasis::new(2, Box::new(flipped), Box::new(|x| Ok(x[1..].to_vec())), 1.0, 1e-12);
        let mut x = [1.0, 2.0];
        basis.analyze(&mut x);
        assert_eq!(x, [-1.0, -2.0]);
        assert!(!basis.failed() && basis.check().is_ok());
        basis.synthesize(&mut x);
        assert_eq!(x, [0.0, 0.0]);
        assert!(basis.failed());
        assert!(matches!(basis.check(), Err(Error::Unsupported(_))));
        assert!(!basis.failed() && basis.check().is_ok());
    }
}
