//! Sums over long vectors, in an order that the compiler can vectorise and that no number of threads changes.

const LANES: usize = 8;

/// `Σᵢ term(aᵢ, bᵢ, cᵢ)`.
#[inline]
pub(super) fn sum(a: &[f64], b: &[f64], c: &[f64], term: impl Fn(f64, f64, f64) -> f64) -> f64 {
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let (c_blocks, c_rest) = c.as_chunks::<LANES>();
    let mut sums = [0.0; LANES];
    for ((a, b), c) in a_blocks.iter().zip(b_blocks).zip(c_blocks) {
        for lane in 0..LANES {
            sums[lane] += term(a[lane], b[lane], c[lane]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).zip(c_rest).map(|((a, b), c)| term(*a, *b, *c));
    sums.iter().sum::<f64>() + rest.sum::<f64>()
}

/// `⟨a, b⟩`.
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, b, |a, b, _| a * b)
}

/// `‖x‖`.
pub(super) fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

/// `‖a − b‖²`.
pub(super) fn squared_distance(a: &[f64], b: &[f64]) -> f64 {
    sum(a, b, b, |a, b, _| (a - b) * (a - b))
}

/// `‖x‖₁`.
pub(super) fn absolute_sum(x: &[f64]) -> f64 {
    sum(x, x, x, |x, _, _| x.abs())
}

/// `‖x‖_∞`.
pub(super) fn largest_magnitude(x: &[f64]) -> f64 {
    let (blocks, rest) = x.as_chunks::<LANES>();
    let mut most = [0.0f64; LANES];
    for block in blocks {
        for lane in 0..LANES {
            most[lane] = most[lane].max(block[lane].abs());
        }
    }
    most.iter().chain(rest).fold(0.0, |most, x| most.max(x.abs()))
}

/// `x += factor p`.
pub(super) fn add(x: &mut [f64], factor: f64, p: &[f64]) {
    x.iter_mut().zip(p).for_each(|(x, p)| *x += factor * p);
}
