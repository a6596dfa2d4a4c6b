use super::rule::Next;
use super::*;
use crate::door::{NoiseLaw, WHOLE};
use crate::error::Error;
use nalgebra::{DMatrix, DVector};
use proptest::prelude::*;

/// Counts of cells, with what is added to each measurement in turn.
struct Counts {
    cells: Vec<f64>,
    columns: u32,
    regions: Vec<Region>,
    noise: Vec<f64>,
    taken: usize,
}

impl Counts {
    fn of(shape: [u32; 2], cells: &[f64], noise: &[f64]) -> Self {
        let regions = vec![Region::whole(shape)];
        Self { cells: cells.to_vec(), columns: shape[1], regions, noise: noise.to_vec(), taken: 0 }
    }
}

fn inside(region: &Region, columns: u32) -> impl Iterator<Item = usize> {
    let (first, end) = (region.first, region.end);
    (first[0]..end[0]).flat_map(move |i| (first[1]..end[1]).map(move |j| (i * columns + j) as usize))
}

impl Source for Counts {
    fn measure(&mut self, node: usize, _: u64) -> Result<f64, Error> {
        self.taken += 1;
        let exact: f64 = inside(&self.regions[node], self.columns).map(|cell| self.cells[cell]).sum();
        Ok(exact + self.noise[self.taken % self.noise.len()])
    }

    fn divide(&mut self, node: usize, fan: [u32; 2]) -> Result<(), Error> {
        self.regions.extend(self.regions[node].parts(fan));
        Ok(())
    }
}

fn rule(shape: [u32; 2], growth: Growth, law: NoiseLaw, noise: f64) -> Rule {
    Rule { growth, shape, law, noise }
}

/// The rule by hand: epsilon 1, so records are in units of their noise.
#[test]
fn what_is_done_next() {
    let line = rule([1, 64], Growth::Adaptive, NoiseLaw::Laplace, 1.0);
    let region = Region::whole([1, 64]);
    let next = |estimate: f64| line.next(&region, 1, estimate, WHOLE);
    assert_eq!(next(-5.0), Next::Again);
    assert_eq!(next(4.4), Next::Again);
    // k = 1.5 to 3: two leaves; up to 6: four; from 16/3 on eight, which are leaves below 12.
    for (k, fan, last) in
        [(1.6, 2, true), (2.6, 2, true), (2.7, 4, true), (5.9, 8, true), (11.9, 8, true), (12.1, 8, false)]
    {
        let share = if last { WHOLE } else { (WHOLE as f64 * 0.4) as u64 };
        assert_eq!(next(3.0 * k), Next::Divide { fan: [1, fan], share }, "{k}");
    }
    let single = Region { first: [0, 3], end: [1, 4] };
    assert_eq!(line.next(&single, 3, 1e9, WHOLE), Next::Again);
    let few = Region { first: [0, 3], end: [1, 6] };
    assert_eq!(line.next(&few, 3, 1e9, WHOLE), Next::Divide { fan: [1, 3], share: WHOLE });
    let plane = rule([64, 64], Growth::Adaptive, NoiseLaw::Laplace, 1.0);
    let all = Region::whole([64, 64]);
    for (per_side, most, last) in [(1.6f64, 2, true), (2.9, 2, true), (3.1, 4, true), (5.9, 4, true), (6.1, 4, false)] {
        // Two levels more.
        let share = if last { WHOLE } else { (WHOLE as f64 / (1.0 + 4f64.cbrt())) as u64 };
        let found = plane.next(&all, 1, 3.0 * per_side * per_side, WHOLE);
        assert_eq!(found, Next::Divide { fan: [most, most], share }, "{per_side}");
    }
    assert_eq!(plane.next(&all, 1, 1e9, 1), Next::Leaf);
    // Gaussian noise of the same variance decides alike.
    let gaussian = rule([1, 64], Growth::Adaptive, NoiseLaw::Gaussian, 2f64.sqrt());
    assert_eq!(gaussian.next(&region, 1, 4.4, WHOLE), Next::Again);
    assert_eq!(gaussian.next(&region, 1, 4.6, WHOLE), Next::Divide { fan: [1, 2], share: WHOLE });
}

/// The full tree of 128 x 128 cells: four parts, then sixteen three times; and shares that grow as they should.
#[test]
fn the_full_tree() {
    let full = rule([128, 128], Growth::Full, NoiseLaw::Laplace, 1.0);
    let tree = Grown::grow(&full, &mut Counts::of([128, 128], &vec![1.0; 1 << 14], &[0.0])).unwrap();
    let depths: Vec<u32> = tree.depths().collect();
    let of = |depth: u32| depths.iter().filter(|d| **d == depth).count();
    assert_eq!([0, 1, 2, 3, 4, 5].map(of), [1, 4, 64, 1024, 16384, 0]);
    assert_eq!(tree.measured().count(), tree.len() - 1);
    let mut left = WHOLE;
    let mut shares = Vec::new();
    for depth in 0..4 {
        let Next::Divide { share, .. } = full.next(&Region::whole([64, 64]), depth, 0.0, left) else { panic!() };
        shares.push(share as f64);
        left -= share;
    }
    assert_eq!(left, 0);
    assert!(shares.windows(2).all(|pair| (pair[1] / pair[0] / 4f64.cbrt() - 1.0).abs() < 1e-9));
    for shape in [[100, 37], [5, 3], [3, 1], [2, 2], [65, 65]] {
        let cells: Vec<f64> = (0..shape[0] * shape[1]).map(f64::from).collect();
        let tree =
            Grown::grow(&rule(shape, Growth::Full, NoiseLaw::Laplace, 1.0), &mut Counts::of(shape, &cells, &[0.0]));
        for (found, expected) in tree.unwrap().cells().iter().zip(&cells) {
            assert!((found - expected).abs() < 1e-6 * (1.0 + expected));
        }
    }
}

/// Errors by noise alone of a tree with parts of one size, against its normal equations.
#[test]
fn errors_by_noise() {
    for (shape, law) in [
        ([1, 64], NoiseLaw::Laplace),
        ([16, 16], NoiseLaw::Gaussian),
        ([1, 8], NoiseLaw::Gaussian),
        ([4, 16], NoiseLaw::Laplace),
    ] {
        for growth in [Growth::Adaptive, Growth::Full] {
            let n = (shape[0] * shape[1]) as usize;
            let tree =
                Grown::grow(&rule(shape, growth, law, 3.0), &mut Counts::of(shape, &vec![1e9; n], &[0.0])).unwrap();
            let mut precision = DMatrix::<f64>::zeros(n, n);
            for (region, _, variance) in tree.measured() {
                let mut row = DVector::zeros(n);
                inside(&region, shape[1]).for_each(|cell| row[cell] = 1.0);
                precision += &row * row.transpose() / variance;
            }
            let covariance = precision.try_inverse().unwrap();
            let queries = |axis: Axis, n: usize| -> DMatrix<f64> {
                let rows: Vec<(usize, usize)> = match axis {
                    Axis::Cells => (0..n).map(|i| (i, i)).collect(),
                    Axis::Sums => (0..n).map(|i| (0, i)).collect(),
                    Axis::Ranges => (0..n).flat_map(|i| (i..n).map(move |j| (i, j))).collect(),
                };
                DMatrix::from_fn(rows.len(), n, |row, cell| f64::from(rows[row].0 <= cell && cell <= rows[row].1))
            };
            for axes in [[Axis::Ranges, Axis::Ranges], [Axis::Cells, Axis::Sums], [Axis::Sums, Axis::Ranges]] {
                let asked = queries(axes[0], shape[0] as usize).kronecker(&queries(axes[1], shape[1] as usize));
                let expected = (&asked * &covariance).component_mul(&asked).sum() / asked.nrows() as f64;
                let found = noise_square(&rule(shape, growth, law, 3.0), axes).unwrap();
                assert!((found / expected - 1.0).abs() < 1e-6, "{shape:?} {growth:?} {axes:?}: {found} {expected}");
            }
        }
    }
}

proptest! {
    /// Counts add up, none is negative, and without noise they are the truth wherever the tree has grown.
    #[test]
    fn counts_add_up(
        cells in prop::collection::vec(0.0f64..50.0, 42),
        noise in prop::collection::vec(-30.0f64..30.0, 17),
        line in any::<bool>(), full in any::<bool>(),
    ) {
        let shape = if line { [1, 42] } else { [6, 7] };
        let rule = rule(shape, if full { Growth::Full } else { Growth::Adaptive }, NoiseLaw::Laplace, 3.0);
        let tree = Grown::grow(&rule, &mut Counts::of(shape, &cells, &noise)).unwrap();
        let (counts, estimate) = (tree.counts(), tree.cells());
        prop_assert!(counts.iter().chain(&estimate).all(|count| *count >= 0.0));
        prop_assert!((estimate.iter().sum::<f64>() - counts[0]).abs() < 1e-6);
        for (region, count) in tree.regions().zip(&counts) {
            let sum: f64 = inside(&region, shape[1]).map(|cell| estimate[cell]).sum();
            prop_assert!((sum - count).abs() < 1e-6);
        }
        let exact = Grown::grow(&rule, &mut Counts::of(shape, &cells, &[0.0])).unwrap();
        for (region, count) in exact.regions().zip(exact.counts()) {
            let truth: f64 = inside(&region, shape[1]).map(|cell| cells[cell]).sum();
            prop_assert!((truth - count).abs() < 1e-6);
        }
    }

    /// Estimates before they are made consistent are those of weighted least squares.
    #[test]
    fn least_squares(noise in prop::collection::vec(-3.0f64..3.0, 13), full in any::<bool>()) {
        let shape = [4, 6];
        let rule = rule(shape, if full { Growth::Full } else { Growth::Adaptive }, NoiseLaw::Gaussian, 0.5);
        let tree = Grown::grow(&rule, &mut Counts::of(shape, &[500.0; 24], &noise)).unwrap();
        let (mut normal, mut right) = (DMatrix::<f64>::zeros(24, 24), DVector::<f64>::zeros(24));
        for (region, value, variance) in tree.measured() {
            let mut row = DVector::zeros(24);
            inside(&region, 6).for_each(|cell| row[cell] = 1.0);
            normal += &row * row.transpose() / variance;
            right += row * (value / variance);
        }
        let solved = normal.lu().solve(&right).unwrap();
        // All of it is positive, so that what is consistent is what least squares gives.
        for (found, expected) in tree.cells().iter().zip(solved.iter()) {
            prop_assert!((found - expected).abs() < 1e-6 * expected, "{found} {expected}");
        }
    }
}
