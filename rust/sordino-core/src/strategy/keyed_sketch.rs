//! The sums of a sketch themselves, of keys that nobody lists: what is counted is read off them by the caller.

use super::{Encoded, Encoding, Geometry, Input, Run, Strategy, compressive, integers};
use crate::door::NoiseLaw;
use crate::error::Error;
use crate::sketch::Operator;
use crate::unit::Unit;
use crate::upper::Upper;
use std::sync::Arc;

/// The sums of a sketch with noise, each clamped to the declared bound.
pub fn keyed_sketch(operator: Arc<Operator>, law: NoiseLaw) -> Box<dyn Strategy> {
    let geometry = if law == NoiseLaw::Gaussian { Geometry::L2 } else { Geometry::L1 };
    Box::new(KeyedSketch { operator, geometry })
}

#[derive(Debug)]
struct KeyedSketch {
    operator: Arc<Operator>,
    geometry: Geometry,
}

impl Strategy for KeyedSketch {
    fn measured_len(&self) -> usize {
        self.operator.measurements()
    }

    fn geometry(&self) -> Geometry {
        self.geometry.clone()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        Ok(compressive::sensitivity(&self.operator, &self.geometry, unit))
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        Ok(Encoding::Exact { max_abs })
    }

    fn steps(&self) -> Vec<Run> {
        vec![Run { step: 1, len: self.measured_len() }]
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        let Input::Sums(sums) = x else {
            return Err(Error::Unsupported("this mechanism takes a sketch".into()));
        };
        let out = integers(out);
        Error::check_len("sketch", out.len(), sums.len())?;
        // Clamping each sum brings no two sketches further apart.
        let bound = i64::try_from(max_abs).unwrap_or(i64::MAX);
        out.iter_mut().zip(sums.clamped(bound)).for_each(|(slot, sum)| *slot = sum);
        Ok(())
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        out.copy_from_slice(y);
    }

    fn variances(&self, out: &mut [f64]) {
        out.fill(if self.geometry == Geometry::L1 { 2.0 } else { 1.0 });
    }

    fn weights(&self, _row: &[f64]) -> Result<Vec<f64>, Error> {
        Err(Error::Unsupported("counts of keys are read off the sketch by the release itself".into()))
    }
}
