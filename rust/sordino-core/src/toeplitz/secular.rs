//! Roots of the secular equation `1 + Σ ω_i/(μ_i − m) = 0`: the rates `m = 1 − θ̂` of the poles of `C^{-1}`.
//!
//! With `w = 1/z` the zeros of `C = 1 + Σ ω_i z/(1 − θ_i z)` solve `1 + Σ ω_i/(w − θ_i) = 0`; put
//! `w = 1 − m`. Every summand increases in `m` between poles, so there is one root in each
//! `(μ_i, μ_{i+1})` and one in `(μ_d, μ_d + Σω]`. Each root is kept as an offset from the nearer of its
//! two poles, as in the divide-and-conquer eigensolvers (Gu & Eisenstat 1995): all differences that the
//! residues need are then free of cancellation, however close poles and roots lie.

/// The root `μ[origin] + offset`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Root {
    origin: f64,
    offset: f64,
}

impl Root {
    /// The root itself.
    pub(super) fn value(&self) -> f64 {
        self.origin + self.offset
    }

    /// `point − root` for a point known exactly.
    pub(super) fn below(&self, point: f64) -> f64 {
        (point - self.origin) - self.offset
    }

    /// `other − root`.
    pub(super) fn to(&self, other: &Self) -> f64 {
        (other.origin - self.origin) + (other.offset - self.offset)
    }
}

/// The roots in increasing order; `mu` strictly increases, `omega` is positive.
pub(super) fn roots(mu: &[f64], omega: &[f64]) -> Vec<Root> {
    (0..mu.len()).map(|i| root_after(i, mu, omega)).collect()
}

/// The root above pole `i` and below the next.
fn root_after(i: usize, mu: &[f64], omega: &[f64]) -> Root {
    let value = |origin: f64, offset: f64| -> f64 {
        1.0 + mu.iter().zip(omega).map(|(m, w)| w / ((m - origin) - offset)).sum::<f64>()
    };
    let left = mu[i];
    let Some(&right) = mu.get(i + 1) else {
        return Root { origin: left, offset: bisect(omega.iter().sum(), |x| value(left, x) > 0.0) };
    };
    let half = (right - left) / 2.0;
    if value(left, half) > 0.0 {
        Root { origin: left, offset: bisect(half, |x| value(left, x) > 0.0) }
    } else {
        Root { origin: right, offset: -bisect(half, |x| value(right, -x) <= 0.0) }
    }
}

/// The least positive double at most `end` from which on `past` holds.
///
/// Bisection over bit patterns, which are ordered as the doubles are: 62 steps, whatever the magnitude.
fn bisect(end: f64, past: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0u64, end.to_bits());
    while high - low > 1 {
        let middle = low.midpoint(high);
        if past(f64::from_bits(middle)) {
            high = middle;
        } else {
            low = middle;
        }
    }
    f64::from_bits(high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_pole_in_closed_form() {
        let root = roots(&[0.25], &[0.5])[0];
        assert_eq!(root.value(), 0.75);
        assert_eq!(root.below(1.0), 0.25);
    }

    #[test]
    fn close_and_tiny_poles() {
        // Weight 2^-70 beside rates of 2^-40: the offset is resolved, not the sum.
        let (mu, omega) = ([2f64.powi(-40), 2f64.powi(-39), 0.5], [2f64.powi(-70), 2f64.powi(-41), 0.25]);
        let roots = roots(&mu, &omega);
        for (root, m) in roots.iter().zip(&mu) {
            let terms: Vec<f64> = mu.iter().zip(&omega).map(|(m, w)| w / root.below(*m)).collect();
            let size: f64 = 1.0 + terms.iter().map(|t| t.abs()).sum::<f64>();
            assert!((1.0 + terms.iter().sum::<f64>()).abs() < 1e-14 * size);
            assert!(root.value() >= *m);
        }
        assert!(roots[0].to(&roots[1]) > 0.0 && roots[1].to(&roots[2]) > 0.0);
    }
}
