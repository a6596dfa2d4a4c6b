//! The probability vector nearest to a given one.

/// Replaces `x`, not empty, by the nearest point of the simplex: `max(x − τ, 0)` with sum 1.
///
/// The active set of Michelot 1986: what is below the threshold τ of those left leaves, until nothing does. Exact but
/// for rounding.
pub(super) fn project_simplex(x: &mut [f64]) {
    // Measured from the largest one, which alone would have τ = −1, sums are of small numbers.
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut threshold, mut left) = (-1.0, usize::MAX);
    loop {
        let above = x.iter().map(|value| value - largest).filter(|value| *value > threshold);
        let (count, sum) = above.fold((0usize, 0.0), |(count, sum), value| (count + 1, sum + value));
        if count == left {
            break;
        }
        (threshold, left) = ((sum - 1.0) / count as f64, count);
    }
    for value in x {
        *value = (*value - largest - threshold).max(0.0);
    }
}
