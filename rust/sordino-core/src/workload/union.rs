//! Several workloads on the same cells, their answers one after the other.

use super::Workload;
use crate::error::Error;
use crate::parallel::pieces;

/// Whether all parts are asked of the same cells.
pub(super) fn check(parts: &[Workload]) -> Result<(), Error> {
    let Some(first) = parts.first() else {
        return Err(Error::invalid("parts", "must name at least one workload"));
    };
    if parts.iter().any(|part| part.input_len().is_none()) {
        return Err(Error::invalid("parts", "the full table of a part is too large"));
    }
    if parts.iter().any(|part| part.input_len() != first.input_len()) {
        return Err(Error::invalid("parts", "must be queries on the same cells"));
    }
    Ok(())
}

/// Calls `visit` with every part and its piece of `out`.
pub(crate) fn each(parts: &[Workload], out: &mut [f64], mut visit: impl FnMut(&Workload, &mut [f64])) {
    for (part, piece) in parts.iter().zip(pieces(out, parts.iter().map(Workload::answers_len))) {
        visit(part, piece);
    }
}

/// Which part answer `t` is in, and which of its answers it is.
pub(super) fn part_of(parts: &[Workload], t: usize) -> (usize, usize) {
    let mut rest = t;
    for (k, part) in parts.iter().enumerate() {
        let answers = part.answers_len();
        if rest < answers {
            return (k, rest);
        }
        rest -= answers;
    }
    (parts.len() - 1, rest)
}

/// Row `t`; `row` comes as zeros.
pub(super) fn write_row(parts: &[Workload], t: usize, row: &mut [f64]) {
    let (part, answer) = part_of(parts, t);
    parts[part].write_row(answer, row);
}
