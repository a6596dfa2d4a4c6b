//! What several test files need.

pub(crate) mod every;
pub(crate) mod streams;

use sordino_core::strategy::Geometry;

/// The norm of a strategy's sensitivity.
pub(crate) fn norm(geometry: &Geometry, v: &[f64]) -> f64 {
    match geometry {
        Geometry::L2 => v.iter().map(|x| x * x).sum::<f64>().sqrt(),
        Geometry::L1 => v.iter().map(|x| x.abs()).sum(),
        Geometry::Blocks(lens) => {
            let mut rest = v;
            lens.iter()
                .map(|len| {
                    let (block, tail) = rest.split_at(*len as usize);
                    rest = tail;
                    block.iter().map(|x| x * x).sum::<f64>().sqrt()
                })
                .sum()
        }
        Geometry::Boxes(lens) => {
            let mut rest = v;
            lens.iter()
                .map(|len| {
                    let (block, tail) = rest.split_at(*len as usize);
                    rest = tail;
                    block.iter().fold(0.0, |most: f64, x| most.max(x.abs()))
                })
                .sum()
        }
        Geometry::Body(_) | Geometry::Common(_) => panic!("these norms have their own tests"),
    }
}
