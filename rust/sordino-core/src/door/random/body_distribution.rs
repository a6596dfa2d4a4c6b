//! K-norm noise: doubles against integers, and the distribution against what is known of it, with fixed keys.
//!
//! Every statistic is compared at 5 standard errors of its law, or with a chi-square at 5.5 standard deviations
//! (false-alarm rate below 1e-6 a comparison had the keys been random), unless the test says otherwise.

use super::Key;
use super::body::BodyNoise;
use crate::linear_algebra::{
    Precision, from_rows, inverse, left_singular, product, scale_columns, scale_rows, transpose,
};
use crate::polytope::Polytope;

/// `numpy.random.default_rng(0).choice([-1, 1], size=4096)`, 64 signs a word, the first in the highest bit.
#[rustfmt::skip]
const SIGNS: [u64; 64] = [
    0xe07f_f66e_5007_677e, 0xbc36_ce93_14ca_baab, 0xbb2f_10dc_c51f_1f97, 0x350d_99b6_c5c6_8d84,
    0x2fd0_7e56_9bb0_1be4, 0x01cb_db85_7fe9_6bfb, 0xcd3f_a6fc_b2b0_cdc8, 0x7844_f13b_96dd_b2d0,
    0x6dee_2685_1547_7c59, 0xe209_95f1_ddc8_ee4b, 0x4e4b_2c6b_5b17_c9bc, 0x7850_da24_e8b5_0e84,
    0x58df_dcea_98b9_3ffd, 0x5464_7591_dfa3_c55a, 0x8747_6bc9_58d8_c3e0, 0xbefc_527e_7194_83d5,
    0xd19e_9094_e76a_1145, 0x61fa_264f_faae_4002, 0x61f1_de2e_c646_9dd3, 0x8a8e_e961_64f3_2961,
    0xa674_aae7_8264_80a4, 0xe867_a4a5_da1c_44ce, 0x0cfc_f75e_3abe_e4d6, 0x699e_3c69_7b85_a713,
    0x6b34_e026_2686_3ca9, 0xf348_50ca_9141_e845, 0x0113_98b7_3b66_6c18, 0xfdb5_acdc_ffdf_b62d,
    0x2774_742d_eb8e_09af, 0x91ee_8d7a_edc6_c9a5, 0x5f19_def6_54d6_1a7c, 0x6780_b8fa_0849_a5d3,
    0x8a55_f234_8afc_8e3b, 0x9904_d469_cf6b_4181, 0x9b10_b0ba_6b86_5029, 0xb95e_bbde_4da7_5d32,
    0xecb4_f37b_b1de_61ca, 0xe6db_94ea_06fe_a7fa, 0xac84_5b1c_1782_cf21, 0xaa68_c5e9_7d2e_c5b5,
    0xfb9b_6c32_d54d_2a3b, 0x1ca8_8a8a_1a73_690b, 0x2cc6_261c_3af6_9d11, 0xe605_527d_e7bf_e9c7,
    0x9751_dc6f_964a_69ec, 0xc3ca_be06_c81c_1da3, 0x8f6f_3896_ff31_fc18, 0x3685_9f53_ca78_6ea9,
    0x9104_6f25_866b_7a31, 0xefc0_009e_4caf_9c54, 0x7c64_d7ba_0ca6_e814, 0x5a00_630d_9123_9d63,
    0x66f7_8d88_8ce3_e6b1, 0xcc01_ea1d_63cf_fe99, 0x8c9b_b292_7eb1_9cfa, 0x8d7b_ba8f_3d48_3a39,
    0x126b_92a9_3064_8364, 0x0ad2_8048_f9b8_6aaf, 0x7c00_a350_4407_1b00, 0xe0aa_1822_455b_60b9,
    0x90e2_5bfa_5cc5_0bd3, 0x1e18_52b2_0daf_621d, 0xc134_c0d0_6c36_88eb, 0xd1b9_9734_2cb0_8908,
];

fn signs(rank: usize, count: usize) -> Vec<i64> {
    (0..rank * count).map(|at| 2 * (SIGNS[at / 64] >> (63 - at % 64) & 1) as i64 - 1).collect()
}

fn key(salt: u8, index: usize) -> Key {
    let mut bytes = [salt; 32];
    bytes[..8].copy_from_slice(&(index as u64).to_le_bytes());
    Key::deterministic(bytes)
}

/// Lattice units a unit of the body: noise of scale 1 in the unit of the body is in steps of 2^-20.
const SCALE: f64 = (1 << 20) as f64;
const QUARTERS: u64 = 4 << 20;
/// Bits of the entries of a whitened body.
const BITS: i32 = 30;

/// `2^BITS·F^{-1} G` in integers, where `F Fᵀ` is the minimum enclosing ellipsoid of the columns up to its size, and
/// the squared singular values of `F`: `‖F z‖² = Σ s_i² z_i²` up to a rotation.
fn whitened(rank: usize, count: usize, entries: &[i64]) -> (Polytope, Vec<f64>) {
    let floats: Vec<f64> = entries.iter().map(|v| *v as f64).collect();
    let matrix = from_rows(rank, count, &floats);
    let mut weights = vec![1.0 / count as f64; count];
    let root = |weights: &[f64]| {
        let mut weighted = matrix.clone();
        scale_columns(&mut weighted, |j| weights[j].sqrt());
        weighted
    };
    for _ in 0..1000 {
        let weighted = root(&weights);
        let inverse = inverse(&product(&weighted, &transpose(&weighted)));
        let lengths = product(&transpose(&matrix), &product(&inverse, &matrix));
        weights.iter_mut().enumerate().for_each(|(j, u)| *u *= lengths[(j, j)] / rank as f64);
    }
    let (vectors, values) = left_singular(&root(&weights), Precision::Careful).unwrap();
    let mut white = product(&transpose(&vectors), &matrix);
    scale_rows(&mut white, |i| 2f64.powi(BITS) / values[i]);
    let entries: Vec<i64> = (0..rank * count).map(|at| white[(at / count, at % count)].round() as i64).collect();
    let polytope = Polytope::new(rank, count, &entries, Some(&weights)).unwrap();
    (polytope, values.iter().map(|s| s * s).collect())
}

/// Noise vectors of scale 1 in the unit of the body, and how many attempts they took.
fn sample(polytope: &Polytope, exponent: i32, salt: u8, count: usize) -> (Vec<Vec<f64>>, u64) {
    let noise = BodyNoise::new(QUARTERS, polytope, exponent).unwrap();
    let mut attempts = 0;
    let draw = |index| {
        let (number, z) = noise.draw(&key(salt, index));
        attempts += number + 1;
        z.into_iter().map(|k| k as f64 / SCALE).collect()
    };
    let sample = (0..count).map(draw).collect();
    (sample, attempts)
}

fn close(what: &str, seen: f64, expected: f64, error: f64) {
    assert!((seen - expected).abs() <= error, "{what}: {seen}, expected {expected} ± {error}");
}

/// Mean, second moment and tails of values that should be Gamma(shape).
fn is_gamma(values: &[f64], shape: usize) {
    let n = values.len() as f64;
    let r = shape as f64;
    close("mean", values.iter().sum::<f64>() / n, r, 5.0 * (r / n).sqrt());
    let square = values.iter().map(|x| x * x).sum::<f64>() / n;
    let variance = r * (r + 1.0) * ((r + 2.0) * (r + 3.0) - r * (r + 1.0));
    close("square", square, r * (r + 1.0), 5.0 * (variance / n).sqrt());
    for factor in [0.5, 1.0, 1.5, 2.0] {
        let t = r * factor;
        let (mut term, mut tail) = ((-t).exp(), 0.0);
        for k in 0..shape {
            tail += term;
            term *= t / (k + 1) as f64;
        }
        let beyond = values.iter().filter(|x| **x > t).count() as f64;
        close("tail", beyond / n, tail, 5.0 * (tail * (1.0 - tail) / n).sqrt() + 1.0 / n);
    }
}

fn gauges(polytope: &Polytope, exponent: i32, sample: &[Vec<f64>]) -> Vec<f64> {
    let unit = 2f64.powi(exponent);
    sample.iter().map(|z| polytope.gauge(&z.iter().map(|v| v * unit).collect::<Vec<_>>())).collect()
}

/// Sums of squares weighted per coordinate, their mean and its standard error.
fn total(sample: &[Vec<f64>], weights: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let sums: Vec<f64> = sample.iter().map(|z| z.iter().zip(weights).map(|(v, w)| w * v * v).sum::<f64>()).collect();
    let mean = sums.iter().sum::<f64>() / n;
    let variance = sums.iter().map(|sum| (sum - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Decisions in integers alone give the same noise: for bodies of every small shape, noise from a quarter of a unit
/// to more than doubles hold, and units on either side of 1.
#[test]
fn doubles_and_integers_give_the_same_noise() {
    let bodies = [
        (1, 1, vec![5]),
        (1, 3, vec![-7, 1 << 61, 3]),
        (2, 3, vec![3, -1, 4, 1, 5, 9]),
        (3, 5, vec![2, 7, 1, -8, 2, 8, 1, 8, -2, 8, 4, 5, 9, 0, -4]),
        (4, 7, signs(4, 7)),
        (6, 16, signs(6, 16)),
    ];
    for (body, (rank, count, entries)) in bodies.into_iter().enumerate() {
        let polytope = Polytope::new(rank, count, &entries, None).unwrap();
        for (case, (quarters, exponent)) in
            [(1, 0), (37, -3), (4 << 20, 3), (4 << 40, 2), (1 << 48, 0)].into_iter().enumerate()
        {
            let mut noise = BodyNoise::new(quarters, &polytope, exponent).unwrap();
            let keys = if rank < 6 { 12 } else { 4 };
            let fast: Vec<_> = (0..keys).map(|i| noise.draw(&key((8 * body + case) as u8, i))).collect();
            noise.exact_only = true;
            let exact: Vec<_> = (0..keys).map(|i| noise.draw(&key((8 * body + case) as u8, i))).collect();
            assert_eq!(fast, exact, "body {body}, case {case}");
        }
    }
}

/// The noise does not depend on the number of threads, is added to every coordinate, and differs under another key.
#[test]
fn same_key_same_noise_for_any_number_of_threads() {
    let polytope = Polytope::new(10, 64, &signs(10, 64), None).unwrap();
    let noise = BodyNoise::new(QUARTERS, &polytope, 0).unwrap();
    let run = |threads, seed| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut units = vec![1000; 10];
        pool.install(|| noise.add(&mut units, &key(77, seed)));
        units
    };
    for seed in 0..3 {
        let one = run(1, seed);
        assert_eq!(one, run(3, seed));
        assert_ne!(one, run(1, seed + 100));
        let (_, drawn) = noise.draw(&key(77, seed));
        assert!(one.iter().zip(drawn).all(|(unit, k)| unit - 1000 == k && k != 0));
    }
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let polytope = Polytope::new(1, 1, &[1], None).unwrap();
    assert!(BodyNoise::new(0, &polytope, 0).is_err());
    assert!(BodyNoise::new(1 << 49, &polytope, 0).is_err());
    assert!(BodyNoise::new(1, &polytope, 513).is_err());
}

#[test]
#[should_panic = "one lattice value a dimension"]
fn no_coordinate_goes_without_noise() {
    let polytope = Polytope::new(1, 1, &[1], None).unwrap();
    BodyNoise::new(1, &polytope, 0).unwrap().add(&mut [0, 0], &key(0, 0));
}

/// As many columns as dimensions: in the coordinates of the columns the noise is independent Laplace.
#[test]
fn cross_polytope_is_laplace() {
    let (rank, count) = (3, 20_000);
    // Triangular: w = G^{-1} z by hand.
    let polytope = Polytope::new(rank, rank, &[8, 2, 1, 0, 6, -3, 0, 0, 7], None).unwrap();
    let (sample, _) = sample(&polytope, 3, 1, count);
    let weights: Vec<[f64; 3]> = sample
        .iter()
        .map(|z| {
            let w2 = z[2] * 8.0 / 7.0;
            let w1 = (z[1] * 8.0 + 3.0 * w2) / 6.0;
            [z[0] - (2.0 * w1 + w2) / 8.0, w1, w2]
        })
        .collect();
    let n = count as f64;
    for i in 0..rank {
        let values: Vec<f64> = weights.iter().map(|w| w[i]).collect();
        close("mean", values.iter().sum::<f64>() / n, 0.0, 5.0 * (2.0 / n).sqrt());
        is_gamma(&values.iter().map(|v| v.abs()).collect::<Vec<_>>(), 1);
        for k in 0..i {
            let product: f64 = weights.iter().map(|w| w[i] * w[k]).sum();
            close("covariance", product / n, 0.0, 5.0 * 2.0 / n.sqrt());
            // E|w_i||w_k| = 1, variance 4 − 1.
            let product: f64 = weights.iter().map(|w| (w[i] * w[k]).abs()).sum();
            close("magnitudes", product / n, 1.0, 5.0 * (3.0 / n).sqrt());
        }
    }
}

/// In the plane all is known: the share of a facet's cone is its triangle's share of the area, the gauge is Gamma(2)
/// whatever the cone, and within a cone the gauge splits uniformly between the two vertices. Chi-square over
/// cone × quantile of the gauge × split.
#[test]
#[ignore = "seconds"]
fn every_cone_has_its_share() {
    // An octagon, counter-clockwise, one column inside it.
    let vertices = [[9, 1], [6, 7], [0, 9], [-7, 6]];
    let columns: Vec<[i64; 2]> = vertices.into_iter().chain([[3, 3]]).collect();
    let entries: Vec<i64> = (0..2).flat_map(|i| columns.iter().map(move |c| c[i])).collect();
    let polytope = Polytope::new(2, 5, &entries, None).unwrap();
    let count = 40_000;
    let (sample, _) = sample(&polytope, 0, 2, count);
    let facets: Vec<([f64; 2], [f64; 2])> = (0..8)
        .map(|k| {
            let vertex = |k: usize| {
                let sign = if k % 8 < 4 { 1.0 } else { -1.0 };
                vertices[k % 4].map(|v| sign * v as f64)
            };
            (vertex(k), vertex(k + 1))
        })
        .collect();
    let cross = |a: [f64; 2], b: [f64; 2]| a[0] * b[1] - a[1] * b[0];
    let area: f64 = facets.iter().map(|(a, b)| cross(*a, *b)).sum();
    let (mut seen, mut norms) = (vec![[[0.0f64; 4]; 4]; 8], Vec::new());
    for z in &sample {
        let z = [z[0], z[1]];
        for (k, (a, b)) in facets.iter().enumerate() {
            let (wa, wb) = (cross(z, *b) / cross(*a, *b), cross(*a, z) / cross(*a, *b));
            if wa >= 0.0 && wb > 0.0 {
                let norm = wa + wb;
                let beyond = (1.0 + norm) * (-norm).exp(); // uniform
                seen[k][((4.0 * beyond) as usize).min(3)][((4.0 * wa / norm) as usize).min(3)] += 1.0;
                norms.push(norm);
                break;
            }
        }
    }
    assert_eq!(norms.len(), count);
    is_gamma(&norms, 2);
    let mut statistic = 0.0;
    for ((a, b), cells) in facets.iter().zip(&seen) {
        let expected = count as f64 * cross(*a, *b) / area / 16.0;
        statistic += cells.as_flattened().iter().map(|n| (n - expected).powi(2) / expected).sum::<f64>();
    }
    let freedom: f64 = 127.0;
    let z = ((statistic / freedom).cbrt() - (1.0 - 2.0 / (9.0 * freedom))) / (2.0 / (9.0 * freedom)).sqrt();
    assert!(z.abs() < 5.5, "chi-square {statistic}");
}

/// The privacy loss: outputs of two inputs at distance `v`. In every cell the frequencies differ by at most the factor
/// `exp(‖v‖_K)`, up to 5 standard errors, and where `v` points away from both they differ by just that.
#[test]
#[ignore = "seconds"]
fn the_ratio_of_neighbours_is_bounded_and_reached() {
    let polytope = Polytope::new(2, 3, &[4, 0, 4, 0, 4, 4], None).unwrap();
    let count = 40_000;
    let (near, _) = sample(&polytope, 0, 3, count);
    let (far, _) = sample(&polytope, 0, 4, count);
    // ‖v‖ = 1/2 + 1/4, within the cone of (4, 0) and (4, 4).
    let v = [3.0, 1.0];
    let loss: f64 = 0.75;
    let cell = |z: [f64; 2]| z.map(|x| (x / 4.0).floor().clamp(-3.0, 2.0) as i64 + 3);
    let mut counts = [[[0.0f64; 2]; 6]; 6];
    for (z, shifted) in near.iter().zip(&far) {
        let [i, k] = cell([z[0], z[1]]).map(|c| c as usize);
        counts[i][k][0] += 1.0;
        let [i, k] = cell([shifted[0] + v[0], shifted[1] + v[1]]).map(|c| c as usize);
        counts[i][k][1] += 1.0;
    }
    for pair in counts.as_flattened() {
        // The difference a·e^loss − b has at least this variance if the bound holds.
        for (a, b) in [(pair[0], pair[1]), (pair[1], pair[0])] {
            let error = (a * (2.0 * loss).exp() + b).sqrt();
            assert!(b - a * loss.exp() < 5.0 * error + 5.0, "{pair:?}");
        }
    }
    // z with z − v in the cone of (4, 0) and (4, 4).
    let beyond = |z: &[f64], v: [f64; 2]| z[1] - v[1] >= 0.0 && z[0] - v[0] >= z[1] - v[1];
    let without = near.iter().filter(|z| beyond(z, v)).count() as f64;
    let with = far.iter().filter(|z| beyond(z, [0.0; 2])).count() as f64;
    close("ratio", with / without, loss.exp(), 5.0 * loss.exp() * (1.0 / without + 1.0 / with).sqrt());
}

/// In the plane the acceptance is a ratio of areas: a hexagon of area 3·16 in a disc of radius √32.
#[test]
fn acceptance_is_estimated() {
    let polytope = Polytope::new(2, 3, &[4, 0, 4, 0, 4, 4], None).unwrap();
    let estimate = BodyNoise::new(1, &polytope, 0).unwrap().acceptance().unwrap();
    // The share of a direction lies between (1/2)² and 1.
    close("acceptance", estimate, 48.0 / (32.0 * std::f64::consts::PI), 5.0 * 0.375 / 20.0);
}

/// Error of the noise in the queries `G` at scale 1, attempts a sample, and the law of the gauge. The reference is
/// itself a mean of a few thousand draws: 4 % are allowed besides the standard errors.
fn signs_row(rank: usize, count: usize, samples: usize, error: f64, acceptance: f64) {
    let (polytope, squares) = whitened(rank, count, &signs(rank, count));
    let (sample, attempts) = sample(&polytope, BITS, rank as u8, samples);
    let (mean, deviation) = total(&sample, &squares);
    let seen = samples as f64 / attempts as f64;
    close("total error", mean, error, 5.0 * deviation + 0.04 * error);
    // A geometric number of attempts each; the reference has two digits.
    close("acceptance", seen, acceptance, acceptance * (5.0 / (samples as f64).sqrt() + 0.1));
    // A mean of 400 log-normal values, sd of the logarithm about 1.
    let estimate = BodyNoise::new(1, &polytope, 0).unwrap().acceptance().unwrap();
    close("estimate", estimate / seen, 1.0, 0.4);
    is_gamma(&gauges(&polytope, BITS, &sample), rank);
}

#[test]
fn signs_8_by_64() {
    signs_row(8, 64, 4000, 221.0, 1.4e-2);
}

#[test]
#[ignore = "seconds"]
fn signs_12_by_128() {
    signs_row(12, 128, 600, 604.0, 5.3e-4);
}

#[test]
#[ignore = "slow"]
fn signs_16_by_256() {
    signs_row(16, 256, 1000, 1287.0, 2.4e-5);
}

/// All two-way marginals of four binary attributes: in the basis of the characters of degree at most 2 the body's
/// minimum enclosing ellipsoid is a ball. The 24 cells are `(c_∅ ± c_i ± c_j ± c_ij)/4`.
#[test]
#[ignore = "seconds"]
fn two_way_marginals() {
    let sets: Vec<usize> = (0..16usize).filter(|set| set.count_ones() <= 2).collect();
    let rank = sets.len();
    let entries: Vec<i64> =
        sets.iter().flat_map(|set| (0..16).map(move |x| 1 - 2 * i64::from((set & x).count_ones() % 2))).collect();
    let polytope = Polytope::new(rank, 16, &entries, None).unwrap();
    assert!((polytope.inradius() - 1.0).abs() < 1e-6); // M = I
    let (sample, attempts) = sample(&polytope, 0, 40, 200);
    let weights: Vec<f64> = sets.iter().map(|set| [6.0, 3.0, 1.0][set.count_ones() as usize] / 4.0).collect();
    let (mean, deviation) = total(&sample, &weights);
    let acceptance = sample.len() as f64 / attempts as f64;
    close("total error", mean, 154.0, 5.0 * deviation + 0.04 * 154.0);
    close("acceptance", acceptance, 7.4e-5, 7.4e-5 * (5.0 / 14.0 + 0.05));
    is_gamma(&gauges(&polytope, 0, &sample), rank);
}
