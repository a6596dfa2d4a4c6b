//! Boxes of cells, and how they are divided.

/// Cells from `first` up to, without, `end` on each of two axes; a line has one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// First cell on each axis.
    pub first: [u32; 2],
    /// One behind the last cell on each axis.
    pub end: [u32; 2],
}

impl Region {
    /// All cells of a table.
    pub(crate) fn whole(shape: [u32; 2]) -> Self {
        Self { first: [0, 0], end: shape }
    }

    /// Cells on an axis.
    pub(crate) fn side(&self, axis: usize) -> u32 {
        self.end[axis] - self.first[axis]
    }

    /// Cells in all.
    pub fn cells(&self) -> u64 {
        u64::from(self.side(0)) * u64::from(self.side(1))
    }

    /// Parts whose sides differ by one cell at most, so many on each axis, row by row: they are disjoint, and all of it.
    pub(crate) fn parts(self, fan: [u32; 2]) -> impl Iterator<Item = Self> {
        let cut = move |axis: usize, k: u32| {
            let at = u64::from(k) * u64::from(self.side(axis)) / u64::from(fan[axis].max(1));
            self.first[axis] + at as u32
        };
        (0..fan[0]).flat_map(move |i| {
            (0..fan[1]).map(move |j| Self { first: [cut(0, i), cut(1, j)], end: [cut(0, i + 1), cut(1, j + 1)] })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Region;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_are_disjoint_and_all(shape in [1u32..40, 1u32..40], fan in [1u32..9, 1u32..9]) {
            let fan = [fan[0].min(shape[0]), fan[1].min(shape[1])];
            let mut seen = vec![0; (shape[0] * shape[1]) as usize];
            let mut sides = [[u32::MAX, 0]; 2];
            for part in Region::whole(shape).parts(fan) {
                prop_assert!(part.cells() > 0);
                for (axis, [least, most]) in sides.iter_mut().enumerate() {
                    (*least, *most) = ((*least).min(part.side(axis)), (*most).max(part.side(axis)));
                }
                for i in part.first[0]..part.end[0] {
                    for j in part.first[1]..part.end[1] {
                        seen[(i * shape[1] + j) as usize] += 1;
                    }
                }
            }
            prop_assert!(seen.iter().all(|times| *times == 1));
            prop_assert!(sides.iter().all(|[least, most]| most - least <= 1));
        }
    }
}
