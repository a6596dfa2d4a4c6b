//! Events grouped into steps: step `t` has the events `ends[t-1]..ends[t]`.

use crate::error::Error;

/// Refuses ends that are not those of so many events.
pub(crate) fn check_ends(events: usize, ends: &[usize]) -> Result<(), Error> {
    if !ends.is_sorted() || ends.last().copied().unwrap_or(0) != events {
        return Err(Error::invalid("ends", "must not decrease and must end with the number of events"));
    }
    Ok(())
}

/// Zeroes `rows` (steps × `width`) and lets every event add to the row of its step.
pub(super) fn grouped(
    events: usize,
    ends: &[usize],
    width: usize,
    rows: &mut [i64],
    mut add: impl FnMut(usize, &mut [i64]),
) -> Result<(), Error> {
    check_ends(events, ends)?;
    Error::check_len("rows", ends.len().saturating_mul(width), rows.len())?;
    rows.fill(0);
    let mut next = 0;
    for (row, &end) in rows.chunks_exact_mut(width).zip(ends) {
        for event in next..end {
            add(event, row);
        }
        next = end;
    }
    Ok(())
}
