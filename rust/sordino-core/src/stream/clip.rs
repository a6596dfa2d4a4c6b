//! Vectors of records, clipped to a Euclidean norm and added up, in whole numbers.
//!
//! A record's vector `v` becomes `q = trunc(s v 2^b)`, `s = min(1, norm/‖v‖)` about, and `‖q‖₂ ≤ ⌊norm·2^b⌋` is looked at in
//! whole numbers: with less of `s` until it holds. So sums of records differ by vectors of the norm that was declared, at
//! most, whatever floating point did before.

use crate::error::Error;
use rayon::prelude::*;
use zeroize::Zeroize;

/// Bits of the norm.
const BITS: i32 = 29;
/// A norm whose square might be infinite is taken of smaller numbers.
const LARGE: f64 = 1e140;
/// Records of a part, which has sums of its own; a multiple of what is summed at once.
const PART: usize = 64;

/// `Σ clip(v)` over the rows of `records`, each a vector of `dim` numbers; a row that is not finite counts as zeros.
///
/// Exact: multiples of `2^-b`, `2^b` about `2^29/norm`, for fewer than `2^23` records; beyond, rounded to doubles.
///
/// # Errors
/// If `norm` is not positive or finite, or rows are not full.
pub fn clipped_sum<T: Copy + Into<f64> + Sync>(records: &[T], dim: usize, norm: f64) -> Result<Vec<f64>, Error> {
    if !norm.is_normal() || norm < 0.0 || !(2f64.powi(-200)..2f64.powi(200)).contains(&norm) {
        return Err(Error::invalid("clip_norm", "must be positive and finite"));
    }
    if dim == 0 || !records.len().is_multiple_of(dim) {
        return Err(Error::invalid("gradients", "must have a row for every record"));
    }
    // 2^29 <= norm 2^bits < 2^30.
    let bits = BITS - norm.log2().floor() as i32;
    let limit = (norm * 2f64.powi(bits)).floor() as u64;
    let clip = Clip { bits, limit };
    let parts: Vec<&[T]> = records.chunks(PART * dim).collect();
    let workers = rayon::current_num_threads().clamp(1, parts.len().max(1));
    let sums = parts
        .par_chunks(parts.len().div_ceil(workers).max(1))
        .map(|parts| {
            let (mut sums, mut whole) = (vec![0i64; dim], vec![0i64; dim]);
            for record in parts.iter().flat_map(|part| part.chunks_exact(dim)) {
                clip.whole(record, &mut whole);
                sums.iter_mut().zip(&whole).for_each(|(sum, q)| *sum += q);
            }
            whole.zeroize();
            sums
        })
        .reduce(
            || vec![0; dim],
            |mut a, mut b| {
                a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
                b.zeroize();
                a
            },
        );
    Ok(sums.into_iter().map(|sum| sum as f64 * 2f64.powi(-bits)).collect())
}

struct Clip {
    bits: i32,
    limit: u64,
}

impl Clip {
    /// Writes the whole numbers of a record.
    fn whole<T: Copy + Into<f64>>(&self, record: &[T], out: &mut [i64]) {
        let mut largest = 0.0f64;
        let mut finite = true;
        for v in record {
            let v: f64 = (*v).into();
            (largest, finite) = (largest.max(v.abs()), finite & v.is_finite());
        }
        if !finite {
            out.fill(0);
            return;
        }
        let small = if largest > LARGE { 2f64.powi(-600) } else { 1.0 };
        // What is far below the norm is nothing: arithmetic on subnormal numbers would take longer.
        let scaled = |v: T| {
            let v = small * v.into();
            if v.abs() < 2f64.powi(-450) { 0.0 } else { v }
        };
        let square: f64 = record.chunks(64).map(|part| part.iter().map(|v| scaled(*v).powi(2)).sum::<f64>()).sum();
        let most = (self.limit as f64).next_up();
        // Of what is long a little less than its norm asks for.
        let (grid, long) = (2f64.powi(self.bits), square.sqrt() * (1.0 + 2f64.powi(-40)));
        let norm = self.limit as f64 / grid * small;
        let mut factor = if long <= norm { grid / small } else { self.limit as f64 / long };
        loop {
            let mut exact = 0u128;
            for (record, out) in record.chunks(8).zip(out.chunks_mut(8)) {
                // Eight squares of at most 2^60 each.
                let mut part = 0u64;
                for (v, q) in record.iter().zip(out) {
                    *q = (scaled(*v) * factor).clamp(-most, most) as i64;
                    part += q.unsigned_abs().pow(2);
                }
                exact += u128::from(part);
            }
            if exact <= u128::from(self.limit).pow(2) {
                return;
            }
            factor *= 1.0 - 2f64.powi(-20);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn norm(v: &[f64]) -> f64 {
        let largest = v.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        if largest == 0.0 { 0.0 } else { largest * v.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt() }
    }

    proptest! {
        /// Each record has the norm at most, exactly, and what floating point would make of it, nearly.
        #[test]
        fn records_are_clipped(
            records in prop::collection::vec(-3.0f64..3.0, 30), scale in -300i32..300, clip in prop::sample::select(vec![1e-9, 0.3, 1.0, 1.5, 1e12]),
            single in any::<bool>(),
        ) {
            let (dim, scale) = (5, 10f64.powi(if single { scale / 12 } else { scale }));
            let records: Vec<f64> = records.iter().map(|v| v * scale).map(|v| if single { f64::from(v as f32) } else { v }).collect();
            let mut expected = vec![0.0; dim];
            for record in records.chunks(dim) {
                let found = if single {
                    let record: Vec<f32> = record.iter().map(|v| *v as f32).collect();
                    clipped_sum(&record, dim, clip).unwrap()
                } else {
                    clipped_sum(record, dim, clip).unwrap()
                };
                // Whole numbers of steps, whose squares are exact in 128 bits.
                let step = 2f64.powi(BITS - clip.log2().floor() as i32);
                let whole: Vec<i64> = found.iter().map(|v| (v * step) as i64).collect();
                prop_assert!(whole.iter().zip(&found).all(|(q, v)| *q as f64 == v * step));
                let square: u128 = whole.iter().map(|q| u128::from(q.unsigned_abs()).pow(2)).sum();
                prop_assert!(square as f64 <= (clip * step).powi(2));
                let factor = (clip / norm(record)).min(1.0);
                for (v, found) in record.iter().zip(&found) {
                    prop_assert!((v * factor - found).abs() <= 3e-9 * clip, "{v} {factor} {found}");
                }
                expected.iter_mut().zip(&found).for_each(|(sum, v)| *sum += v);
            }
            prop_assert_eq!(clipped_sum(&records, dim, clip).unwrap(), if single { expected.clone() } else { expected });
        }
    }

    #[test]
    fn what_is_no_vector() {
        let records = [f64::NAN, 1.0, 0.5, 0.25, f64::INFINITY, 0.0, 5e-324, 1e-310, 1.0, f64::NAN];
        assert_eq!(clipped_sum(&records, 2, 1.0).unwrap()[1], 0.25);
        assert!((clipped_sum(&records, 2, 1.0).unwrap()[0] - 0.5).abs() < 1e-8);
        assert_eq!(clipped_sum::<f64>(&[], 3, 1.0).unwrap(), [0.0; 3]);
        for (records, dim, norm) in
            [(&records[..], 3, 1.0), (&[], 0, 1.0), (&[], 1, 0.0), (&[], 1, f64::NAN), (&[], 1, -1.0)]
        {
            assert!(clipped_sum(records, dim, norm).is_err());
        }
    }

    /// However many parts and threads: whole numbers have one sum.
    #[test]
    fn many_records() {
        let records: Vec<f64> = (0..3000).map(|i| f64::from(i % 7) - 3.0).collect();
        let one_by_one = records.chunks(3).map(|record| clipped_sum(record, 3, 2.0).unwrap());
        let expected = one_by_one.reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a + b).collect()).unwrap();
        assert_eq!(clipped_sum(&records, 3, 2.0).unwrap(), expected);
    }
}
