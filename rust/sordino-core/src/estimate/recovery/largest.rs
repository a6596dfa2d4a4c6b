//! The largest entries of a vector.

/// Selects entries by magnitude, in linear time; keeps its working array.
#[derive(Debug, Default)]
pub(super) struct Largest {
    keys: Vec<u64>,
}

impl Largest {
    /// Writes to `out` where the `count` entries of largest magnitude are, rising; of equal ones those with the lower
    /// index. Zeros are never among them.
    pub(super) fn select(&mut self, values: &[f64], count: usize, out: &mut Vec<usize>) {
        out.clear();
        if count == 0 {
            return;
        }
        // Magnitudes are ordered as their bits are.
        self.keys.clear();
        self.keys.extend(values.iter().map(|v| v.abs().to_bits()).filter(|key| *key > 0));
        let (least, mut ties) = if self.keys.len() > count {
            let rank = self.keys.len() - count;
            let (_, least, above) = self.keys.select_nth_unstable(rank);
            let least = *least;
            (least, count - above.iter().filter(|key| **key > least).count())
        } else {
            (1, count)
        };
        for (j, value) in values.iter().enumerate() {
            let key = value.abs().to_bits();
            if key > least {
                out.push(j);
            } else if key == least && ties > 0 {
                out.push(j);
                ties -= 1;
            }
        }
    }

    /// Keeps the `count` entries of largest magnitude of a sparse vector, in their order, as [`Self::select`] does.
    pub(super) fn prune(
        &mut self,
        support: &mut Vec<usize>,
        values: &mut Vec<f64>,
        count: usize,
        kept: &mut Vec<usize>,
    ) {
        self.select(values, count, kept);
        for (slot, place) in kept.iter().enumerate() {
            support[slot] = support[*place];
            values[slot] = values[*place];
        }
        support.truncate(kept.len());
        values.truncate(kept.len());
    }
}
