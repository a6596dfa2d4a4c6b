//! Isotonic regression.

/// The non-decreasing sequence nearest to `values`: minimises `Σᵢ (xᵢ − vᵢ)²` over `x₁ ≤ x₂ ≤ …`.
///
/// Pools adjacent violators (Ayer, Brunk, Ewing, Reid & Silverman 1955), in linear time. Each pool keeps its own sum
/// and count, so that rounding does not carry from pool to pool, and the result never decreases. As post-processing of
/// a sorted histogram: Hay, Rastogi, Miklau & Suciu 2010, Section 3. Not a number where a value is not a number.
pub fn isotonic(values: &[f64]) -> Vec<f64> {
    let mut pools: Vec<Pool> = Vec::new();
    for value in values {
        let mut last = Pool { mean: *value, sum: *value, count: 1 };
        while let Some(before) = pools.pop_if(|before| before.mean >= last.mean) {
            last.join(&before);
        }
        pools.push(last);
    }
    pools.iter().flat_map(|pool| std::iter::repeat_n(pool.mean, pool.count)).collect()
}

/// Neighbours with one fitted value.
struct Pool {
    mean: f64,
    sum: f64,
    count: usize,
}

impl Pool {
    fn join(&mut self, before: &Pool) {
        self.sum += before.sum;
        self.count += before.count;
        self.mean = self.sum / self.count as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `xᵢ = max_{j ≤ i} min_{k ≥ i} mean(vⱼ … vₖ)` (Robertson, Wright & Dykstra 1988, Theorem 1.4.4).
    fn max_min(values: &[f64]) -> Vec<f64> {
        let mean = |j: usize, k: usize| values[j..=k].iter().sum::<f64>() / (k - j + 1) as f64;
        let least = |j: usize, i: usize| (i..values.len()).map(|k| mean(j, k)).fold(f64::INFINITY, f64::min);
        (0..values.len()).map(|i| (0..=i).map(|j| least(j, i)).fold(f64::NEG_INFINITY, f64::max)).collect()
    }

    #[test]
    fn known_answers() {
        let cases: [(&[f64], &[f64]); 5] = [
            (&[], &[]),
            (&[-2.0], &[-2.0]),
            (&[1.0, 2.0, 2.0, 5.0], &[1.0, 2.0, 2.0, 5.0]),
            (&[3.0, 2.0, 1.0], &[2.0, 2.0, 2.0]),
            (&[1.0, 4.0, 2.0, 3.0, 0.0, 9.0], &[1.0, 2.25, 2.25, 2.25, 2.25, 9.0]),
        ];
        for (values, expected) in cases {
            assert_eq!(isotonic(values), expected);
            assert_eq!(max_min(values), expected);
        }
    }

    #[test]
    fn long_pools_do_not_drift() {
        // Integers: every sum is exact, so that every mean is rounded once.
        let n = 1 << 20;
        let falling: Vec<f64> = (0..n).map(|i| f64::from(1_000_000_000 - i)).collect();
        let mean = 1e9 - f64::from(n - 1) / 2.0;
        assert!(isotonic(&falling).iter().all(|x| *x == mean));
        let saw: Vec<f64> = (0..n).map(|i| 1e9 + f64::from(i - 2 * (i % 4))).collect();
        let fitted = isotonic(&saw);
        assert!(fitted.iter().enumerate().all(|(i, x)| *x == 1e9 + (i / 4 * 4) as f64 - 1.5));
    }

    proptest! {
        #[test]
        fn nearest_non_decreasing_sequence(
            values in prop_oneof![
                prop::collection::vec((-4i8..=4).prop_map(f64::from), 0..24),
                prop::collection::vec(-1e3f64..1e3, 0..24),
            ],
        ) {
            let fitted = isotonic(&values);
            prop_assert!(fitted.is_sorted());
            prop_assert_eq!(fitted.len(), values.len());
            for (x, expected) in fitted.iter().zip(max_min(&values)) {
                prop_assert!((x - expected).abs() <= 1e-9, "{x}, {expected}");
            }
        }
    }
}
