//! The vector of a given sum without negative entries that is nearest to another.

/// Replaces `x`, not empty, by the nearest point of the simplex: `max(x − τ, 0)` with sum `total`, positive.
///
/// The active set of Michelot 1986: what is below the threshold τ of those left leaves, until nothing does. What has left
/// does not come back, whatever rounding says, so that there are at most as many rounds as entries. Exact but for rounding.
pub(super) fn project_simplex(x: &mut [f64], total: f64) {
    // Measured from the largest one, which alone would have τ = −total, sums are of small numbers.
    let largest = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut active: Vec<f64> = x.iter().map(|value| value - largest).filter(|value| *value > -total).collect();
    let mut threshold = -total;
    while !active.is_empty() {
        threshold = (active.iter().sum::<f64>() - total) / active.len() as f64;
        let before = active.len();
        active.retain(|value| *value > threshold);
        if active.len() == before {
            break;
        }
    }
    for value in x {
        *value = (*value - largest - threshold).max(0.0);
    }
}

#[cfg(test)]
mod tests {
    use super::project_simplex;
    use proptest::prelude::*;

    /// Entries that tie but for rounding kept some searches going round for ever.
    #[test]
    fn ties_within_rounding_end() {
        let mut x = [-0.001, 0.011, 0.0, 0.008, 0.005, 0.008, -0.003, -0.004];
        project_simplex(&mut x, 0.056);
        assert!((x.iter().sum::<f64>() - 0.056).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn lattice_points_are_projected(entries in prop::collection::vec(-8i32..20, 1..30), total in 1i32..80) {
            let (unit, mut x) = (0.001, entries.iter().map(|v| f64::from(*v) * 0.001).collect::<Vec<_>>());
            let total = f64::from(total) * unit;
            let before = x.clone();
            project_simplex(&mut x, total);
            prop_assert!((x.iter().sum::<f64>() - total).abs() < 1e-13);
            // The same is taken from all that stay, and no more from those at zero.
            let kept = || before.iter().zip(&x).filter(|(_, b)| **b > 1e-12).map(|(a, b)| a - b);
            let (least, most) = (kept().fold(f64::INFINITY, f64::min), kept().fold(f64::NEG_INFINITY, f64::max));
            prop_assert!(most - least < 1e-13);
            prop_assert!(before.iter().zip(&x).all(|(a, b)| *b > 1e-12 || a - least < 1e-12));
        }
    }
}
