//! Vectors of records, clipped to a Euclidean norm and added up, in whole numbers.
//!
//! A record's vector `v` becomes `q = round(s v 2^b)`, with `s` so small that `‖q‖₂ ≤ ‖s v 2^b‖ + √d/2 ≤ ⌊norm·2^b⌋`, all
//! roundings counted. Sums of whole numbers are exact. So sums of records differ by vectors of the norm that was
//! declared, at most, whatever floating point did before.

use crate::error::Error;
use rayon::prelude::*;
use zeroize::Zeroize;

/// Bits of the norm: sums of fewer than `2^23` records are exact doubles.
const BITS: i32 = 29;
/// Largest sum: doubles have all whole numbers up to it.
const LARGEST: i64 = 1 << 53;
/// Records whose whole numbers are added up as doubles.
const EXACT: usize = 1 << 22;
/// Records of a part, which has sums of its own.
const PART: usize = 8;
/// Numbers that are added up side by side.
const LANES: usize = 8;
/// A number plus this less this is the nearest whole number, if it is below `2^51`.
const WHOLE: f64 = 1.5 * (1u64 << 52) as f64;

/// `Σ clip(v)` over the rows of `records`, each a vector of `dim` numbers; a row that is not finite counts as zeros.
///
/// Exact: multiples of `2^-b`, `2^b` about `2^29/norm`. Sums beyond `2^53` of them, of more than `2^23` records, are clamped,
/// which brings no two further apart.
///
/// # Errors
/// If `norm` is not positive or finite, or rows are not full.
pub fn clipped_sum<T: Copy + Into<f64> + Sync>(records: &[T], dim: usize, norm: f64) -> Result<Vec<f64>, Error> {
    if !(2f64.powi(-200)..2f64.powi(200)).contains(&norm) {
        return Err(Error::invalid("clip_norm", "must be positive and finite"));
    }
    if dim == 0 || !records.len().is_multiple_of(dim) {
        return Err(Error::invalid("gradients", "must have a row for every record"));
    }
    // 2^29 <= norm 2^bits < 2^30.
    let clip = Clip::new(norm, BITS - norm.log2().floor() as i32, dim);
    let parts: Vec<&[T]> = records.chunks(PART * dim).collect();
    let each = parts.len().div_ceil(rayon::current_num_threads()).clamp(1, EXACT / PART);
    let sums = parts
        .par_chunks(each)
        .map(|parts| {
            let mut sums = vec![0.0; dim];
            parts.iter().flat_map(|part| part.chunks_exact(dim)).for_each(|record| clip.add(record, &mut sums));
            let whole = sums.iter().map(|sum| *sum as i64).collect();
            sums.zeroize();
            whole
        })
        .reduce(
            || vec![0i64; dim],
            |mut a, mut b| {
                a.iter_mut().zip(&b).for_each(|(a, b)| *a += b);
                b.zeroize();
                a
            },
        );
    Ok(sums.into_iter().map(|sum| sum.clamp(-LARGEST, LARGEST) as f64 * 2f64.powi(-clip.bits)).collect())
}

struct Clip {
    bits: i32,
    /// What the norm of whole numbers is at most, less what rounding them adds.
    room: f64,
    /// What the sum of squares, and its root, may be too small by, relatively.
    slack: f64,
}

impl Clip {
    fn new(norm: f64, bits: i32, dim: usize) -> Self {
        let limit = (norm * 2f64.powi(bits)).floor();
        let slack = 1.0 + (dim as f64 + 16.0) * f64::EPSILON;
        Self { bits, room: limit - 0.5 * (dim as f64).sqrt() * slack, slack }
    }

    /// Adds the whole numbers of a record to sums of others.
    fn add<T: Copy + Into<f64>>(&self, record: &[T], sums: &mut [f64]) {
        let square = squares(record, 1.0);
        if square.is_finite() {
            return self.rounded(record, 1.0, square, sums);
        }
        // What is too large for its square is taken smaller.
        if record.iter().all(|v| (*v).into().is_finite()) {
            let small = 2f64.powi(-600);
            self.rounded(record, small, squares(record, small), sums);
        }
    }

    fn rounded<T: Copy + Into<f64>>(&self, record: &[T], small: f64, square: f64, sums: &mut [f64]) {
        let long = square.sqrt() * self.slack;
        // Products of numbers with a power of two are exact.
        let unit = 2f64.powi(self.bits);
        let whole = small == 1.0 && long * unit * self.slack <= self.room;
        let factor = if whole { unit } else { self.room / long * (1.0 - 8.0 * f64::EPSILON) };
        for (sum, v) in sums.iter_mut().zip(record) {
            *sum += (scaled(*v, small) * factor + WHOLE) - WHOLE;
        }
    }
}

/// What is far below every norm is nothing: arithmetic on subnormal numbers would take longer, and tell of them.
#[inline]
fn scaled<T: Into<f64>>(v: T, small: f64) -> f64 {
    let v = small * v.into();
    if v.abs() < 2f64.powi(-450) { 0.0 } else { v }
}

fn squares<T: Copy + Into<f64>>(record: &[T], small: f64) -> f64 {
    let mut lanes = [0.0; LANES];
    let chunks = record.chunks_exact(LANES);
    let rest: f64 = chunks.remainder().iter().map(|v| scaled(*v, small).powi(2)).sum();
    for chunk in chunks {
        for (lane, v) in lanes.iter_mut().zip(chunk) {
            let v = scaled(*v, small);
            *lane += v * v;
        }
    }
    lanes.iter().sum::<f64>() + rest
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
                    prop_assert!((v * factor - found).abs() <= 6e-9 * clip, "{v} {factor} {found}");
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

    /// Sums beyond all doubles are at their end: neighbours are no further apart than elsewhere.
    #[test]
    fn more_records_than_doubles_count() {
        let (clip, records) = (0.3, vec![1.0f32; (1 << 24) + 3]);
        let (all, without) =
            (clipped_sum(&records, 1, clip).unwrap()[0], clipped_sum(&records[1..], 1, clip).unwrap()[0]);
        assert!(all == without && all >= clip * f64::from(1 << 23) * 0.99);
        let few = (1 << 23) - 1;
        let apart =
            clipped_sum(&records[..few], 1, clip).unwrap()[0] - clipped_sum(&records[1..few], 1, clip).unwrap()[0];
        assert!(apart <= clip && apart > clip * (1.0 - 1e-8));
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
