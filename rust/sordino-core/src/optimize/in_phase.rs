//! What bounds long filters of one series: circulants in phase with them in the place of the polar factor.

use crate::error::Error;
use crate::transform::fourier::RealFourier;
use crate::workload::Workload;
use num_complex::Complex;

/// A coefficient of a transform that may be rounding, over the root of the sum of the squares of all of them.
const ROUNDED: f64 = 1e-10;

/// Sums over the cells of filters of one series, and over their frequencies; see [`in_phase`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct InPhase {
    /// `Σ_j s_j`.
    pub products: f64,
    /// `Σ_j s_j²`.
    pub squares: f64,
    /// `(Σ_k |λ_k|^{2/3})^{3/2}/L` over the ring of L; coefficients that may be rounding are left out.
    pub roots: f64,
}

/// The taps of a part that join a cell to an answer.
struct Lags<'a> {
    taps: &'a [f64],
    first_lag: isize,
    first_answer: usize,
    /// Of the weight of its squared errors.
    root: f64,
    cells: usize,
    circular: bool,
}

impl<'a> Lags<'a> {
    fn of(part: &'a Workload, weight: f64) -> Result<Self, Error> {
        let (first_answer, whole) = part.whole();
        let (taps, center, cells, circular): (&[f64], _, _, _) = match whole {
            Workload::Histogram { len } => (&[1.0], 0, *len, false),
            Workload::Linear { kernel, len, center } => (kernel, *center, *len, false),
            Workload::Circular { kernel } => (kernel, 0, kernel.len(), true),
            _ => return Err(Error::Unsupported("circulants are in phase with filters of one series".into())),
        };
        let skipped = (center + 1).saturating_sub(cells).min(taps.len());
        let first_lag = skipped as isize - center as isize;
        let inside = (cells as isize - first_lag).clamp(0, (taps.len() - skipped) as isize) as usize;
        let taps = &taps[skipped..skipped + inside];
        Ok(Self { taps, first_lag, first_answer, root: weight.sqrt(), cells, circular })
    }

    fn place(&self, k: usize, length: usize) -> usize {
        (self.first_lag + k as isize).rem_euclid(length as isize) as usize
    }

    fn spectrum(&self, ring: &RealFourier) -> Vec<Complex<f64>> {
        let mut signal = vec![0.0; ring.len()];
        for (k, tap) in self.taps.iter().enumerate() {
            signal[self.place(k, ring.len())] = self.root * tap;
        }
        ring.forward(&mut signal)
    }
}

/// Sums of `s_j = ⟨z_j, a_j⟩`, Z of spectral norm 1: no Gaussian strategy has less than `Σ_j s_j²`, and no nuclear norm is below
/// `Σ_j s_j`. `weights` are those of the squared errors of the parts.
///
/// On a ring of N, of 2N where the filters have ends, the parts of Z have the spectra `√w_p λ_p/|λ|`, `|λ|²` the sum of all
/// `w_p |λ_p|²`. `s_j` is a sum over the lags that join cell j to an answer: those from `first − j` to `n − 1 − j`, all on a
/// ring. Where no answer reads before the first cell, a ring of little more than N is tried as well.
///
/// # Errors
/// [`Error::Unsupported`] of what is no filter or union of filters and cells, or of both kinds.
pub fn in_phase(workload: &Workload, weights: &[f64]) -> Result<InPhase, Error> {
    let parts = workload.parts();
    Error::check_len("weights", parts.len(), weights.len())?;
    let found =
        parts.iter().zip(weights).map(|(part, weight)| Lags::of(part, *weight)).collect::<Result<Vec<_>, _>>()?;
    let is_cells = |part: &Workload| matches!(part, Workload::Histogram { .. });
    let kinds = || parts.iter().zip(&found).filter(|(part, _)| !is_cells(part)).map(|(_, filter)| filter.circular);
    let (Some(circular), n) = (kinds().next(), found[0].cells) else {
        return Err(Error::Unsupported("there is no filter among these queries".into()));
    };
    if kinds().any(|other| other != circular) || found.iter().any(|filter| filter.cells != n) {
        return Err(Error::Unsupported("filters on a ring go with others on it, those with ends likewise".into()));
    }
    let own = on_ring(&found, if circular { n } else { 2 * n }, circular);
    let reads_inside = |filter: &Lags<'_>| {
        filter.first_lag >= 0 && filter.taps.len() + filter.first_lag as usize <= filter.first_answer + 1
    };
    if circular || !found.iter().all(reads_inside) {
        return Ok(own);
    }
    let closer = on_ring(&found, n + n / 8, circular);
    Ok(InPhase { products: own.products.max(closer.products), squares: own.squares.max(closer.squares), ..own })
}

/// The sums on a ring of this length, on which the lags from the first to the last cell are different.
fn on_ring(found: &[Lags<'_>], length: usize, circular: bool) -> InPhase {
    let n = found[0].cells;
    let ring = RealFourier::new(length);
    let mut spectra: Vec<_> = found.iter().map(|filter| filter.spectrum(&ring)).collect();
    let square = |k: usize| spectra.iter().map(|spectrum| spectrum[k].norm_sqr()).sum::<f64>();
    let sizes: Vec<f64> = (0..ring.spectrum_len()).map(|k| square(k).sqrt()).collect();
    let largest = sizes.iter().fold(0.0f64, |most, size| most.max(*size));
    let least = ROUNDED * ring.sum(|k| sizes[k] * sizes[k]).sqrt();
    let cubic: Vec<f64> = sizes.iter().map(|v| if *v > least { (v * v).cbrt() } else { 0.0 }).collect();
    let roots = ring.sum(|k| cubic[k]).powf(1.5) / length as f64;
    // `<z_j, a_j>` by lags, from `first_lag` on, and their sums.
    let before: Vec<Vec<f64>> = found
        .iter()
        .zip(&mut spectra)
        .map(|(filter, spectrum)| {
            for (value, size) in spectrum.iter_mut().zip(&sizes) {
                *value = if *size > 1e-12 * largest { *value / (size * length as f64) } else { Complex::default() };
            }
            let mut dual = vec![0.0; length];
            ring.inverse(spectrum, &mut dual);
            let mut sum = 0.0;
            let products = filter.taps.iter().enumerate().map(|(k, tap)| {
                sum += filter.root * tap * dual[filter.place(k, length)];
                sum
            });
            std::iter::once(0.0).chain(products).collect()
        })
        .collect();
    let inside = |j: usize| {
        let of_part = |(filter, before): (&Lags<'_>, &Vec<f64>)| {
            if circular {
                return before[filter.taps.len()];
            }
            let upto = |lag: isize| before[(lag - filter.first_lag).clamp(0, filter.taps.len() as isize) as usize];
            upto((n - j) as isize) - upto(filter.first_answer as isize - j as isize)
        };
        found.iter().zip(&before).map(of_part).sum::<f64>()
    };
    let cells: Vec<f64> = (0..n).map(inside).collect();
    InPhase { products: cells.iter().sum(), squares: cells.iter().map(|s| s * s).sum(), roots }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linear_algebra::{from_rows, product, symmetric_eigen, transpose};

    /// A lower bound of the nuclear norm, and of the least total squared error; equal to them on a ring.
    #[test]
    fn sums_are_below_what_they_bound() {
        let n = 24usize;
        let taps: Vec<f64> = (0..n).map(|k| 0.8f64.powi(k as i32)).collect();
        let linear = |center| Workload::Linear { kernel: taps.clone(), len: n, center };
        let ring = Workload::Circular { kernel: taps.clone() };
        let tail = Workload::Tail { first: 5, of: Box::new(linear(0)) };
        let window = Workload::Linear { kernel: vec![1.0; n / 2], len: n, center: 0 };
        let windows = Workload::Tail { first: n / 2 - 1, of: Box::new(window) };
        let cells = Workload::Histogram { len: n };
        let union = Workload::Union { parts: vec![linear(0), cells, linear(4)] };
        let cases = [
            (linear(0), vec![1.0]),
            (linear(7), vec![2.0]),
            (ring, vec![1.0]),
            (tail, vec![1.0]),
            (windows, vec![1.0]),
            (union, vec![1.0, 3.0, 0.5]),
        ];
        for (workload, weights) in cases {
            let found = in_phase(&workload, &weights).unwrap();
            let of_parts = workload.parts().iter().zip(&weights);
            let entries: Vec<f64> = of_parts
                .flat_map(|(part, weight)| part.dense().unwrap().2.into_iter().map(move |v| v * weight.sqrt()))
                .collect();
            let rows = from_rows(entries.len() / n, n, &entries);
            let (vectors, values) = symmetric_eigen(&product(&transpose(&rows), &rows)).unwrap();
            let nuclear: f64 = values.iter().map(|v| v.max(0.0).sqrt()).sum();
            let root = |j: usize| (0..values.len()).map(|k| vectors[(j, k)].powi(2) * values[k].max(0.0).sqrt()).sum();
            let squares: f64 = (0..n)
                .map(|j: usize| {
                    let s: f64 = root(j);
                    s * s
                })
                .sum();
            assert!(found.products <= nuclear * (1.0 + 1e-9) && found.products > 0.8 * nuclear);
            assert!(
                found.squares > 0.7 * squares && found.squares * (n as f64) >= found.products.powi(2) * (1.0 - 1e-9)
            );
            if matches!(workload, Workload::Circular { .. }) {
                assert!((found.products / nuclear - 1.0).abs() < 1e-9 && (found.squares / squares - 1.0).abs() < 1e-9);
                let sum: f64 = values.iter().map(|v| v.cbrt()).sum();
                assert!((found.roots / (sum.powf(1.5) / n as f64) - 1.0).abs() < 1e-9);
            }
        }
        assert!(in_phase(&Workload::Ranges { len: 5 }, &[1.0]).is_err());
        assert!(in_phase(&Workload::Histogram { len: 5 }, &[1.0]).is_err());
    }
}
