//! The vector of a given sum without negative entries that is nearest to another.

/// Replaces `x`, not empty, by the nearest point of the simplex: `max(x − τ, 0)` with sum `total`, positive.
///
/// The active set of Michelot 1986: what is below the threshold τ of those left leaves, until nothing does. Exact but
/// for rounding.
pub(super) fn project_simplex(x: &mut [f64], total: f64) {
    // Measured from the largest one, which alone would have τ = −total, sums are of small numbers.
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (mut threshold, mut left) = (-total, usize::MAX);
    loop {
        let above = x.iter().map(|value| value - largest).filter(|value| *value > threshold);
        let (count, sum) = above.fold((0usize, 0.0), |(count, sum), value| (count + 1, sum + value));
        if count == left {
            break;
        }
        (threshold, left) = ((sum - total) / count as f64, count);
    }
    for value in x {
        *value = (*value - largest - threshold).max(0.0);
    }
}
