//! Tables to residuals, and back.

use super::{Marginals, Piece};

impl Marginals {
    /// Applies the residual operator of `set` to its table.
    pub(super) fn residual(&self, table: &[i64], set: &[usize]) -> Vec<i128> {
        let mut values: Vec<i128> = table.iter().map(|v| i128::from(*v)).collect();
        let mut stride = 1;
        for attribute in set.iter().rev() {
            let n = self.radices[*attribute];
            if n == 2 {
                values = values
                    .chunks_exact(2 * stride)
                    .flat_map(|block| (0..stride).map(|i| block[i] - block[i + stride]).collect::<Vec<_>>())
                    .collect();
                continue; // this axis has shrunk to one row
            }
            for block in values.chunks_exact_mut(n * stride) {
                for start in 0..stride {
                    let sum: i128 = (0..n).map(|i| block[start + i * stride]).sum();
                    for i in 0..n {
                        block[start + i * stride] = n as i128 * block[start + i * stride] - sum;
                    }
                }
            }
            stride *= n;
        }
        values
    }

    /// Recovers the part of the table of `set` that lies in its residual space, from `B`-values.
    pub(super) fn recover(&self, measured: &[f64], piece: &Piece) -> Vec<f64> {
        let mut values: Vec<f64> = measured.iter().map(|v| v / piece.weight as f64).collect();
        let mut stride = 1;
        for attribute in piece.set.iter().rev() {
            let n = self.radices[*attribute];
            if n == 2 {
                values = values
                    .chunks_exact(stride)
                    .flat_map(|block| {
                        block.iter().map(|v| v / 2.0).chain(block.iter().map(|v| -v / 2.0)).collect::<Vec<_>>()
                    })
                    .collect();
            } else {
                for block in values.chunks_exact_mut(n * stride) {
                    for start in 0..stride {
                        let mean: f64 = (0..n).map(|i| block[start + i * stride]).sum::<f64>() / n as f64;
                        for i in 0..n {
                            block[start + i * stride] = (block[start + i * stride] - mean) / n as f64;
                        }
                    }
                }
            }
            stride *= n;
        }
        values
    }
}
