//! Counts of a hierarchy, from the top down: the children of a node are not negative and add up to it.

use crate::order::in_order;

/// A hierarchy: the children of node `v` are `starts[v + 1]..starts[v + 2]`, those of the top `starts[0]..starts[1]`.
///
/// Nodes are numbered level by level, so that children come after their parent.
#[derive(Debug, Clone, Copy)]
pub struct Tree<'a>(pub &'a [usize]);

impl Tree<'_> {
    /// Parents from the top, `None` for the top itself, with their children.
    fn families(&self) -> impl Iterator<Item = (Option<usize>, std::ops::Range<usize>)> + '_ {
        let ranges = self.0.windows(2).map(|ends| ends[0]..ends[1]);
        std::iter::once(None).chain((0..).map(Some)).zip(ranges).filter(|(_, children)| !children.is_empty())
    }
}

/// Values of all nodes: level by level, those of children are the nearest ones that are not negative and add up to their
/// parent, in units of their variances; the top has `total`.
///
/// # Panics
/// If there are not as many values, variances and nodes.
pub fn top_down(tree: Tree<'_>, values: &[f64], variances: &[f64], total: f64) -> Vec<f64> {
    let mut found = vec![0.0; values.len()];
    for (parent, children) in tree.families() {
        let sum = parent.map_or(total, |parent| found[parent]);
        let (own, spread) = (&values[children.clone()], &variances[children.clone()]);
        onto_simplex(own, spread, sum, &mut found[children]);
    }
    found
}

/// `max(0, v − λ s²)`, with `λ` so that the sum is right.
fn onto_simplex(values: &[f64], variances: &[f64], sum: f64, out: &mut [f64]) {
    if sum <= 0.0 {
        out.fill(0.0);
        return;
    }
    // What is known exactly moves last.
    let largest = variances.iter().copied().fold(0.0, f64::max);
    let spread = |i: usize| if largest > 0.0 { (variances[i] / largest).max(1e-12) } else { 1.0 };
    let mut order: Vec<(f64, usize)> = (0..values.len()).map(|i| (values[i] / spread(i), i)).collect();
    order.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let (mut over, mut width, mut lambda) = (-sum, 0.0, f64::NEG_INFINITY);
    for (ratio, i) in order {
        if width > 0.0 && ratio <= lambda {
            break;
        }
        over += values[i];
        width += spread(i);
        lambda = over / width;
    }
    for (i, slot) in out.iter_mut().enumerate() {
        *slot = (values[i] - lambda * spread(i)).max(0.0);
    }
}

/// Whole numbers of all nodes: those of children are the nearest to their values, scaled, that add up to their parent's.
///
/// # Panics
/// If there are not as many values and nodes.
pub fn whole_top_down(tree: Tree<'_>, values: &[f64], total: i64) -> Vec<i64> {
    let mut found = vec![0; values.len()];
    for (parent, children) in tree.families() {
        let sum = parent.map_or(total, |parent| found[parent]);
        largest_remainders(&values[children.clone()], sum, &mut found[children]);
    }
    found
}

/// Whole numbers in proportion to values that are not negative: rounded down, and one more where most was lost, until the
/// sum is right.
///
/// # Panics
/// If there are no values, or others than slots.
pub fn largest_remainders(values: &[f64], sum: i64, out: &mut [i64]) {
    assert_eq!(values.len(), out.len());
    let before: f64 = values.iter().sum();
    let share = |i: usize| {
        if before.total_cmp(&(sum as f64)).is_eq() {
            values[i]
        } else if before > 0.0 {
            values[i] * (sum as f64 / before)
        } else {
            sum as f64 / values.len() as f64
        }
    };
    let mut left = sum;
    let mut lost = Vec::with_capacity(values.len());
    for (i, slot) in out.iter_mut().enumerate() {
        let exact = share(i);
        // A whole number that rounding made a little less is itself.
        *slot = (exact + (1e-9 + 8.0 * f64::EPSILON * exact).min(0.5)).floor() as i64;
        left -= *slot;
        lost.push(exact - *slot as f64);
    }
    let order = in_order(lost.len(), &|i| -lost[i]);
    // Rounding may leave more than one for each, or have taken some too many.
    while left > 0 {
        for i in order.iter().take(left.unsigned_abs() as usize) {
            out[*i] += 1;
            left -= 1;
        }
    }
    for i in order.iter().rev().cycle() {
        if left >= 0 {
            break;
        }
        if out[*i] > 0 {
            out[*i] -= 1;
            left += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_stay_as_they_are() {
        for values in [vec![2e9, 3e8, 5.0], vec![9e15, 5.0, 5.0, 5.0], vec![9e11, 1e11 - 1.0, 7.0, 3.0]] {
            let sum = values.iter().sum::<f64>() as i64;
            let mut found = vec![0; values.len()];
            largest_remainders(&values, sum, &mut found);
            assert_eq!(found, values.iter().map(|v| *v as i64).collect::<Vec<_>>());
        }
        let mut found = [0; 4];
        largest_remainders(&[9e11 + 0.4, 1e11 + 0.3, 6.25, 3.05], 1_000_000_000_010, &mut found);
        assert_eq!(found, [900_000_000_001, 100_000_000_000, 6, 3]);
    }

    #[test]
    fn four_children() {
        let starts = [0, 4, 4, 4, 4, 4];
        assert_eq!(top_down(Tree(&starts), &[5.0, -2.0, 3.0, 1.0], &[1.0; 4], 6.0), [4.0, 0.0, 2.0, 0.0]);
    }

    proptest! {
        #[test]
        fn nearest_of_all(
            values in prop::collection::vec(-9.0..9.0, 5),
            variances in prop::collection::vec(0.1..3.0, 5),
            other in prop::collection::vec(0.0..1.0, 5),
            total in 0.0..20.0,
        ) {
            let found = top_down(Tree(&[0, 5, 5, 5, 5, 5, 5]), &values, &variances, total);
            prop_assert!((found.iter().sum::<f64>() - total).abs() < 1e-9 && found.iter().all(|v| *v >= 0.0));
            let distance = |x: &[f64]| -> f64 {
                x.iter().zip(&values).zip(&variances).map(|((x, v), s)| (x - v).powi(2) / s).sum()
            };
            let sum: f64 = other.iter().sum::<f64>().max(1e-9);
            let other: Vec<f64> = other.iter().map(|v| v / sum * total).collect();
            prop_assert!(distance(&found) <= distance(&other) + 1e-9);
        }

        #[test]
        fn levels_add_up(values in prop::collection::vec(0.0..30.0, 6), total in 0_i64..100) {
            // Two children, with three and one of their own.
            let tree = Tree(&[0, 2, 5, 6, 6, 6, 6, 6]);
            let found = whole_top_down(tree, &values, total);
            prop_assert_eq!(found[0] + found[1], total);
            prop_assert_eq!(found[2] + found[3] + found[4], found[0]);
            prop_assert_eq!(found[5], found[1]);
            prop_assert!(found.iter().all(|v| *v >= 0));
            let real = top_down(tree, &values, &[1.0; 6], total as f64);
            let near = whole_top_down(tree, &real, total);
            prop_assert!(near.iter().zip(&real).take(2).all(|(whole, real)| (*whole as f64 - real).abs() < 1.0));
        }
    }
}
