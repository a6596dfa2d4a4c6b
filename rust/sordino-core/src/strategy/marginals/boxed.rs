//! Which orders of residuals share a box of noise.

use std::collections::BTreeMap;

/// Orders of residuals that share a box, and how large their columns are.
pub(super) struct Boxed {
    /// Order from which on, coordinates, size of the largest entry of a column.
    boxes: Vec<(usize, usize, f64)>,
}

/// Orders whose ways to be put together are all tried.
const MOST_ORDERS: usize = 10;

impl Boxed {
    /// The boxes of least mean squared error, of order, gain, largest entry and coordinates of each set.
    ///
    /// A box of D coordinates has noise of variance `(D + 1)(D + 2)/3`, so that with sizes c the error is
    /// `Σ a/c²`, `a = (D + 1)(D + 2)/3·Σ gain·entry²`, for a sensitivity of `Σ c`: at best `(Σ a^⅓)³`, `c ∝ a^⅓`.
    pub(super) fn best(sets: impl Iterator<Item = (usize, f64, f64, usize)>) -> Self {
        let mut orders: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
        for (order, gain, entry, len) in sets {
            let (sum, dimension) = orders.entry(order).or_default();
            (*sum, *dimension) = (*sum + gain * entry * entry, *dimension + len);
        }
        let orders: Vec<(usize, (f64, usize))> = orders.into_iter().collect();
        let ways = 1usize << (orders.len().min(MOST_ORDERS) - 1);
        let made = |way: usize| {
            let mut boxes: Vec<(usize, usize, f64)> = Vec::new();
            for (i, (order, (sum, len))) in orders.iter().enumerate() {
                match boxes.last_mut() {
                    Some((_, dimension, total)) if way >> i.wrapping_sub(1) & 1 == 1 => {
                        (*dimension, *total) = (*dimension + len, *total + sum);
                    }
                    _ => boxes.push((*order, *len, *sum)),
                }
            }
            for (_, dimension, size) in &mut boxes {
                let d = *dimension as f64;
                *size = ((d + 1.0) * (d + 2.0) / 3.0 * *size).cbrt();
            }
            boxes
        };
        let error = |boxes: &[(usize, usize, f64)]| boxes.iter().map(|(.., size)| size).sum::<f64>();
        let tried = (0..ways).map(made).min_by(|a, b| error(a).total_cmp(&error(b)));
        Self { boxes: tried.unwrap_or_default() }
    }

    /// Size of the largest entry of a column in the box of an order.
    pub(super) fn size(&self, order: usize) -> f64 {
        self.boxes.iter().rev().find(|(first, ..)| *first <= order).map_or(1.0, |(.., size)| *size)
    }

    pub(super) fn lens(&self) -> Vec<u32> {
        self.boxes.iter().map(|(_, len, _)| *len as u32).collect()
    }
}
