//! Whether a decode answers what it is for, tried on a few fixed inputs.

use crate::workload::{Workload, each};

/// Cells from which on one input has numbers enough.
const MANY: usize = 1 << 16;
/// Largest relative error of an answer that counts as answered.
pub(super) const ANSWERED: f64 = 1e-8;

/// Whether `estimate(x)`, an input recovered from its noiseless measurements, gives the workload's answers.
pub(super) fn answers(workload: &Workload, cells: usize, estimate: &dyn Fn(&[f64]) -> Vec<f64>) -> bool {
    let mut missing = vec![0.0; cells];
    tried(workload, cells, &mut |x, errors| {
        missing.iter_mut().zip(x).zip(estimate(x)).for_each(|((missing, x), got)| *missing = got - x);
        workload.apply(&missing, errors);
    })
}

/// Whether `decode(x, answers)`, from noiseless measurements of the cells `x`, gives the workload's answers.
pub(super) fn decodes(workload: &Workload, cells: usize, decode: &dyn Fn(&[f64], &mut [f64])) -> bool {
    let mut wanted = vec![0.0; workload.answers_len()];
    tried(workload, cells, &mut |x, errors| {
        workload.apply(x, &mut wanted);
        decode(x, errors);
        errors.iter_mut().zip(&wanted).for_each(|(error, wanted)| *error -= wanted);
    })
}

/// Whether the errors of the answers, `errors(x, out)`, are small on a few cells: a linear map that fails fails on almost
/// all.
fn tried(workload: &Workload, cells: usize, errors: &mut dyn FnMut(&[f64], &mut [f64])) -> bool {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let count = workload.answers_len();
    let (mut found, mut squares) = (vec![0.0; count], vec![0.0; count]);
    workload.row_squares(&mut squares);
    // Rows that are zero, or nearly, come out of a transform with the rounding error of the others of their part.
    let largest = |squares: &[f64]| squares.iter().fold(0.0f64, |most, square| most.max(*square));
    let all = largest(&squares);
    each(workload.parts(), &mut squares, |_, own| {
        let most = largest(own);
        let floor = 1e-12 * if most > 0.0 { most } else { all };
        for square in own {
            *square = square.max(floor);
        }
    });
    (0..if cells < MANY { 3 } else { 1 }).all(|_| {
        let x: Vec<f64> = (0..cells)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 * 2f64.powi(-53) - 0.5
            })
            .collect();
        errors(&x, &mut found);
        // Row by row: |⟨a_i, x⟩| is about ‖a_i‖₂, whatever the other rows are.
        let missed =
            |(error, square): (&f64, &f64)| error.is_nan() || error.abs() > ANSWERED * (cells as f64 * square).sqrt();
        !found.iter().zip(&squares).any(missed)
    })
}
