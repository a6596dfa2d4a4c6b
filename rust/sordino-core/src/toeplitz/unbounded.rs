//! Strategies for a stream of unknown length: private for ever, near the best at every step.
//!
//! The square root tuned to `t` steps has standard deviation `S_t` at step `t` (noise multiplier 1); who
//! does not know `t` compares with it. The table holds the parameters that minimise the largest ratio
//! `‖b_{<t}‖·‖c‖/S_t` over `2^4 ≤ t ≤ 2^40`, `‖c‖` taken for ever.

use super::buffered::BufferedToeplitz;
use super::dyadic::Dyadic;
use crate::error::Error;

/// The strategy with this many buffers of least ratio to the square root over `2^4 ≤ t ≤ 2^40`.
///
/// | buffers | 4 | 6 | 8 | 12 |
/// |---|---|---|---|---|
/// | ratio of standard deviations at most | 1.6235 | 1.3902 | 1.3481 | 1.3352 |
///
/// Beyond 2^40 it stays private, and its standard deviation grows as the root of `t`.
///
/// # Errors
/// If `degree` is not 4, 6, 8 or 12.
pub fn unbounded(degree: usize) -> Result<BufferedToeplitz, Error> {
    let table: &[[Dyadic; 2]] = match degree {
        4 => &FOUR,
        6 => &SIX,
        8 => &EIGHT,
        12 => &TWELVE,
        _ => return Err(Error::invalid("degree", format!("{degree} is not 4, 6, 8 or 12"))),
    };
    BufferedToeplitz::from_dyadic(table.iter().map(|row| row[0]).collect(), table.iter().map(|row| row[1]).collect())
}

/// One buffer: `[μ, ω]` as mantissa and shift.
const fn buffer(mu: (u32, u32), omega: (u32, u32)) -> [Dyadic; 2] {
    [Dyadic::new(mu.0, mu.1), Dyadic::new(omega.0, omega.1)]
}

const FOUR: [[Dyadic; 2]; 4] = [
    buffer((52322, 51), (45215, 33)),
    buffer((64000, 40), (37562, 27)),
    buffer((39750, 29), (45261, 22)),
    buffer((36451, 20), (37267, 17)),
];

const SIX: [[Dyadic; 2]; 6] = [
    buffer((47050, 53), (52932, 35)),
    buffer((38983, 45), (46798, 31)),
    buffer((47430, 38), (38720, 27)),
    buffer((41768, 31), (55129, 24)),
    buffer((50445, 25), (32895, 20)),
    buffer((47273, 19), (48823, 17)),
];

const EIGHT: [[Dyadic; 2]; 8] = [
    buffer((44816, 54), (57753, 36)),
    buffer((40969, 48), (45317, 33)),
    buffer((54119, 43), (38667, 30)),
    buffer((62723, 38), (62106, 28)),
    buffer((62433, 33), (46590, 25)),
    buffer((52248, 28), (64680, 23)),
    buffer((35489, 23), (40263, 20)),
    buffer((61112, 19), (51019, 17)),
];

const TWELVE: [[Dyadic; 2]; 12] = [
    buffer((62976, 55), (43922, 36)),
    buffer((47750, 50), (65225, 35)),
    buffer((38382, 46), (59275, 33)),
    buffer((58418, 43), (53693, 31)),
    buffer((42222, 39), (47492, 29)),
    buffer((57622, 36), (40994, 27)),
    buffer((36917, 32), (34433, 25)),
    buffer((44108, 29), (56173, 24)),
    buffer((48850, 26), (44399, 22)),
    buffer((50500, 23), (34733, 20)),
    buffer((53566, 19), (43622, 17)),
    buffer((48581, 16), (33332, 18)),
];

#[cfg(test)]
mod tests {
    use super::super::buffered_optimizer::{quantized, sequences};
    use super::super::square_root_norm_squared;
    use super::*;
    use crate::minimize::bfgs;

    /// Steps at which the ratio is taken: `per_octave` in each octave from 2^4 to `2^range`.
    fn steps(range: u32, per_octave: u32) -> Vec<u64> {
        let count = (range - 4) * per_octave;
        (0..=count).map(|k| (16.0 * 2f64.powf(f64::from(k) / f64::from(per_octave))).round() as u64).collect()
    }

    /// The largest ratio to the square root, and where.
    fn ratio(strategy: &BufferedToeplitz, range: u32) -> f64 {
        let norm = strategy.column_norm(None).get();
        let response = strategy.response(1.0).unwrap();
        let at = |t: u64| norm * response.squared_norm(t).sqrt() / square_root_norm_squared(t);
        steps(range, 16).into_iter().map(at).fold(0.0, f64::max)
    }

    /// Minimises the power mean of the ratios with exponents rising to 4096.
    fn minimax(degree: usize, range: u32) -> BufferedToeplitz {
        let oracle: Vec<(u64, f64)> =
            steps(range, 6).into_iter().map(|t| (t, square_root_norm_squared(t).ln())).collect();
        let least = 2f64.powi(-(range as i32));
        let ratio = (1.0 / least).powf(1.0 / (2 * degree - 1) as f64);
        let mut before = 0.0;
        let rates = std::iter::successors(Some(least), |rate| Some(rate * ratio)).take(2 * degree);
        let mut gaps: Vec<f64> = rates.map(|rate| (rate - std::mem::replace(&mut before, rate)).ln()).collect();
        for power in (2..=12).map(|k| f64::from(1 << k)) {
            let loss = |gaps: &[f64]| {
                let (column, row) = sequences(gaps, 1.0);
                let norm = 0.5 * (1.0 + column.squared_sum(None)).ln();
                let logs: Vec<f64> =
                    oracle.iter().map(|(t, s)| norm + 0.5 * row.squared_sum(Some(*t)).ln() - s).collect();
                let top = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                if top.is_nan() || logs.iter().any(|l| l.is_nan()) {
                    return f64::INFINITY;
                }
                top + logs.iter().map(|l| (power * (l - top)).exp()).sum::<f64>().ln() / power
            };
            (gaps, _) = bfgs(loss, gaps, 300);
        }
        quantized(&gaps, 1.0).unwrap()
    }

    #[test]
    #[ignore = "prints the table; a minute"]
    fn generate() {
        for degree in [4, 6, 8, 12] {
            let clock = std::time::Instant::now();
            let best = minimax(degree, 40);
            eprintln!("{degree}: ratio {:.5}, {:?}", ratio(&best, 40), clock.elapsed());
            for (m, w) in best.mu().iter().zip(best.omega()) {
                eprintln!("    buffer(({}, {}), ({}, {})),", m.mantissa(), m.shift(), w.mantissa(), w.shift());
            }
        }
    }

    #[test]
    fn ratios_of_the_table() {
        for (degree, bound) in [(4, 1.6235), (6, 1.3902), (8, 1.3481), (12, 1.3352)] {
            let strategy = unbounded(degree).unwrap();
            assert_eq!(strategy.degree(), degree);
            let reached = ratio(&strategy, 40);
            assert!(reached <= bound && reached > bound - 2e-4, "{degree}: {reached}");
            // Between the grid points of the first octaves as well.
            let (norm, response) = (strategy.column_norm(None).get(), strategy.response(1.0).unwrap());
            for t in 16..=2048 {
                assert!(norm * response.squared_norm(t).sqrt() <= bound * square_root_norm_squared(t), "{degree} {t}");
            }
        }
        assert!(unbounded(5).is_err());
    }

    /// The parameters published before these, with a ratio of 1.394.
    #[test]
    fn earlier_parameters_of_degree_eight() {
        let mu =
            [(54206, 54), (44227, 48), (57252, 43), (32856, 37), (33237, 32), (59453, 28), (47101, 23), (62348, 19)];
        let omega =
            [(62085, 36), (50195, 33), (43023, 30), (34514, 27), (52896, 25), (38349, 22), (53617, 20), (48729, 17)];
        let dyadic = |pairs: [(u32, u32); 8]| pairs.map(|(mantissa, shift)| Dyadic::new(mantissa, shift)).to_vec();
        let strategy = BufferedToeplitz::from_dyadic(dyadic(mu), dyadic(omega)).unwrap();
        let norm = strategy.column_norm(None).get();
        assert!((norm - 1.947_834_117).abs() < 1e-9);
        let response = strategy.response(1.0).unwrap();
        // From the same parameters in 80 decimal digits, roots and all.
        for (log_steps, std) in [
            (6, 3.232_717_878_489_247),
            (10, 4.334_818_707_879_445),
            (16, 6.007_856_696_318_399),
            (20, 7.144_698_688_723_761),
            (30, 9.963_168_429_982_557),
            (40, 13.304_961_026_442_05),
            (44, 26.513_529_872_087_92),
        ] {
            let reached = norm * response.squared_norm(1 << log_steps).sqrt();
            assert!((reached / std - 1.0).abs() < 1e-13, "{log_steps}: {reached}");
        }
        let rates = [2.092_955_101_285_404e-11, 9.312_338_476_955_607e-10, 3.637_251_692_256_051e-8];
        for (rate, log) in strategy.noise_rates().into_iter().zip(rates) {
            assert!((-(-rate).ln_1p() / log - 1.0).abs() < 1e-14);
        }
        assert!((ratio(&strategy, 40) - 1.394).abs() < 5e-4);
    }
}
