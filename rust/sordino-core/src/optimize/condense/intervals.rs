//! Few rows for any number of intervals of a line.
//!
//! The sum of the cells from `f` to `l` is `p_{l+1} − p_f`, p the prefix sums: intervals are edges between `n + 1` nodes, and
//! their squares add up to the quadratic form of a Laplacian. Node i, joined with `a_ij` to later ones and with `d` to all of
//! them, is eliminated by
//!
//! `Σ_j a_ij (p_i − p_j)² = d (p_i − Σ_j (a_ij/d) p_j)² + Σ_{j<k} (a_ij a_ik/d) (p_j − p_k)²`,
//!
//! and nothing is ever subtracted: every entry has the digits of the weights (Grassmann, Taksar & Heyman 1985).

/// Upper triangular R with `Rᵀ R = Aᵀ diag(ω) A` row by row, rows of zeros left out.
pub(super) fn root(cells: usize, ends: &[(u32, u32)], weights: Option<&[f64]>) -> Vec<f64> {
    let nodes = cells + 1;
    let mut joined = vec![0.0; nodes * nodes];
    for (t, (first, last)) in ends.iter().enumerate() {
        joined[*first as usize * nodes + *last as usize + 1] += weights.map_or(1.0, |weights| weights[t]);
    }
    let mut rows = Vec::with_capacity(cells * cells);
    for i in 0..cells {
        let (eliminated, rest) = joined.split_at_mut((i + 1) * nodes);
        let own = &eliminated[i * nodes..];
        let sum: f64 = own[i + 1..].iter().sum();
        if sum == 0.0 {
            continue;
        }
        let start = rows.len();
        rows.resize(start + cells, 0.0);
        let mut after = 0.0;
        for t in (i..cells).rev() {
            after += own[t + 1];
            rows[start + t] = after / sum.sqrt();
        }
        for (j, row) in rest.chunks_exact_mut(nodes).enumerate() {
            let share = own[i + 1 + j] / sum;
            if share > 0.0 {
                let after = i + 2 + j;
                row[after..].iter_mut().zip(&own[after..]).for_each(|(slot, other)| *slot += share * other);
            }
        }
    }
    rows
}
