//! What is measured for all answers of a workload, read for those from one on.

use super::{Boxes, Encoded, Encoding, Geometry, Input, Run, Strategy};
use crate::error::Error;
use crate::unit::Unit;
use crate::upper::Upper;
use crate::workload::tail::rest;

/// The strategy of the whole workload: its sensitivity bounds that of any part, and each answer keeps its weights.
#[derive(Debug)]
pub(super) struct Tail {
    first: usize,
    whole: Box<dyn Strategy>,
}

impl Tail {
    pub(super) fn new(first: usize, whole: Box<dyn Strategy>) -> Self {
        Self { first, whole }
    }
}

impl Strategy for Tail {
    fn measured_len(&self) -> usize {
        self.whole.measured_len()
    }

    fn geometry(&self) -> Geometry {
        self.whole.geometry()
    }

    fn sensitivity(&self, unit: Unit) -> Result<Upper, Error> {
        self.whole.sensitivity(unit)
    }

    fn encoding(&self, max_abs: u64) -> Result<Encoding, Error> {
        self.whole.encoding(max_abs)
    }

    fn steps(&self) -> Vec<Run> {
        self.whole.steps()
    }

    fn refined(&self, factors: &[f64]) -> Option<Box<dyn Strategy>> {
        Some(Box::new(Self::new(self.first, self.whole.refined(factors)?)))
    }

    fn factors(&self) -> &[f64] {
        self.whole.factors()
    }

    fn encode(&self, x: Input<'_>, max_abs: u64, out: Encoded<'_>) -> Result<(), Error> {
        self.whole.encode(x, max_abs, out)
    }

    fn decode(&self, y: &[f64], out: &mut [f64]) {
        rest(self.first, out, |all| self.whole.decode(y, all));
    }

    fn variances(&self, out: &mut [f64]) {
        rest(self.first, out, |all| self.whole.variances(all));
    }

    fn cells(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.whole.cells(y)
    }

    fn multiplied(&self, x: &[f64]) -> Option<Vec<f64>> {
        self.whole.multiplied(x)
    }

    fn transposed(&self, y: &[f64]) -> Option<Vec<f64>> {
        self.whole.transposed(y)
    }

    fn box_variance(&self, shape: &[usize], first: &[usize], last: &[usize]) -> Result<f64, Error> {
        self.whole.box_variance(shape, first, last)
    }

    fn box_variances(&self, boxes: Boxes<'_>) -> Result<Vec<f64>, Error> {
        self.whole.box_variances(boxes)
    }

    fn column(&self, cell: usize) -> Option<Vec<f64>> {
        self.whole.column(cell)
    }

    fn weights(&self, row: &[f64]) -> Result<Vec<f64>, Error> {
        self.whole.weights(row)
    }

    fn answer_weights(&self, answer: usize, row: &[f64]) -> Result<Vec<f64>, Error> {
        self.whole.answer_weights(self.first + answer, row)
    }

    fn common_noise(&self) -> f64 {
        self.whole.common_noise()
    }

    fn unit_variances(&self) -> Vec<f64> {
        self.whole.unit_variances()
    }
}
