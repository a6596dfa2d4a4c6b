//! Any Toeplitz strategy, the square root among them: `P_t = ⌊2^-q Σ_{s<t} K_{t−s} v_s + ½⌋`, summed exactly.
//!
//! `K_0 = 2^q`. Over two histories the rounded sums differ from the exact difference by at most 1.

use super::{Process, saturate};
use crate::door::NoiseSource;
use crate::error::Error;
use crate::stream::state::{Reader, Writer, corrupt};
use crate::toeplitz::{OnlineConvolution, OnlineKernel, OnlineState};
use std::sync::Arc;

/// One convolution a coordinate.
#[derive(Debug, Clone)]
pub(in crate::stream) struct Series {
    quarter_units: u64,
    kernel: Arc<OnlineKernel>,
    convolutions: Vec<OnlineConvolution>,
}

impl Series {
    pub(crate) fn new(kernel: Arc<OnlineKernel>, dim: usize, quarter_units: u64) -> Self {
        let convolutions = vec![OnlineConvolution::new(Arc::clone(&kernel)); dim];
        Self { quarter_units, kernel, convolutions }
    }
}

impl Process for Series {
    fn next(&mut self, source: &mut NoiseSource, row: &mut [i64]) {
        source.fill(row, self.quarter_units);
        let bits = self.kernel.taps()[0].trailing_zeros();
        for (k, convolution) in row.iter_mut().zip(&mut self.convolutions) {
            let half = (1i128 << bits) >> 1;
            let v = i128::from(*k) - ((convolution.next() + half) >> bits);
            convolution.push(v);
            *k = saturate(v);
        }
    }

    fn boxed(&self) -> Box<dyn Process> {
        Box::new(self.clone())
    }

    fn save(&self, out: &mut Writer) {
        for convolution in &self.convolutions {
            let state = convolution.state();
            out.u64(state.steps);
            out.wide(state.history);
        }
    }

    fn load(&mut self, input: &mut Reader<'_>) -> Result<(), Error> {
        for convolution in &mut self.convolutions {
            let steps = input.u64()?;
            let history = input.wide()?;
            let state = OnlineState { steps, history: &history };
            *convolution = OnlineConvolution::restore(Arc::clone(&self.kernel), state).map_err(|_| corrupt())?;
        }
        Ok(())
    }

    fn wipe(&mut self) {
        self.convolutions.iter_mut().for_each(OnlineConvolution::wipe);
    }
}
