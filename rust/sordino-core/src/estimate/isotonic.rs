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
            last.join(before);
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
    fn join(&mut self, before: Pool) {
        self.sum += before.sum;
        self.count += before.count;
        self.mean = self.sum / self.count as f64;
    }
}
