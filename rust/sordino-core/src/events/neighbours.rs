//! The neighbours of a vertex: a set of vertices that only grows.

use zeroize::Zeroize;

/// A sorted list; from `n/32` members on, where it takes no less memory, `n` bits.
///
/// So no insertion moves more than `n/8` bytes, and an intersection costs at most `n/64` words.
#[derive(Clone)]
pub(super) enum Neighbours {
    Sorted(Vec<u32>),
    Bits(Vec<u64>),
}

/// Lists whose lengths differ by this factor are searched, not merged.
const GALLOP: usize = 16;

impl Neighbours {
    pub(super) fn new() -> Self {
        Self::Sorted(Vec::new())
    }

    pub(super) fn contains(&self, vertex: u32) -> bool {
        match self {
            Self::Sorted(list) => list.binary_search(&vertex).is_ok(),
            Self::Bits(words) => bit(words, vertex) == 1,
        }
    }

    /// Adds a vertex that is no member yet, out of `vertices`.
    pub(super) fn insert(&mut self, vertex: u32, vertices: u32) {
        match self {
            Self::Sorted(list) => {
                let place = list.partition_point(|&w| w < vertex);
                list.insert(place, vertex);
                if list.len() >= 32.max(vertices as usize / 32) {
                    let mut words = vec![0; (vertices as usize).div_ceil(64)];
                    for &w in list.iter() {
                        set(&mut words, w);
                    }
                    *self = Self::Bits(words);
                }
            }
            Self::Bits(words) => set(words, vertex),
        }
    }

    /// Number of common members.
    pub(super) fn common(&self, other: &Self) -> usize {
        match (self, other) {
            (Self::Sorted(a), Self::Sorted(b)) if a.len() <= b.len() => common_sorted(a, b),
            (Self::Sorted(a), Self::Sorted(b)) => common_sorted(b, a),
            (Self::Sorted(list), Self::Bits(words)) | (Self::Bits(words), Self::Sorted(list)) => {
                list.iter().map(|&w| bit(words, w) as usize).sum()
            }
            (Self::Bits(a), Self::Bits(b)) => a.iter().zip(b).map(|(a, b)| (a & b).count_ones() as usize).sum(),
        }
    }

    pub(super) fn wipe(&mut self) {
        match self {
            Self::Sorted(list) => list.zeroize(),
            Self::Bits(words) => words.zeroize(),
        }
    }

    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Sorted(list) => list.capacity() * 4,
            Self::Bits(words) => words.capacity() * 8,
        }
    }
}

fn bit(words: &[u64], vertex: u32) -> u64 {
    words[vertex as usize / 64] >> (vertex % 64) & 1
}

fn set(words: &mut [u64], vertex: u32) {
    words[vertex as usize / 64] |= 1 << (vertex % 64);
}

fn common_sorted(short: &[u32], long: &[u32]) -> usize {
    if short.len() * GALLOP < long.len() { galloped(short, long) } else { merged(short, long) }
}

/// Without branches on the members: which of two comes first is as good as random.
fn merged(a: &[u32], b: &[u32]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        common += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    common
}

/// Exponential search, each from where the last one ended (Bentley & Yao 1976).
fn galloped(short: &[u32], long: &[u32]) -> usize {
    let (mut rest, mut common) = (long, 0);
    for &w in short {
        let mut reach = 1;
        while reach < rest.len() && rest[reach] < w {
            reach *= 2;
        }
        let window = &rest[..rest.len().min(reach + 1)];
        rest = &rest[window.partition_point(|&x| x < w)..];
        match rest.first() {
            None => break,
            Some(&x) => common += usize::from(x == w),
        }
    }
    common
}

#[cfg(test)]
mod tests {
    use super::{Neighbours, galloped, merged};
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(members: &BTreeSet<u32>, vertices: u32) -> Neighbours {
        let mut set = Neighbours::new();
        // Not in order, so that insertion has to find the place.
        for &w in members.iter().filter(|w| *w % 2 == 0).chain(members.iter().filter(|w| *w % 2 == 1)) {
            assert!(!set.contains(w));
            set.insert(w, vertices);
        }
        set
    }

    proptest! {
        #[test]
        fn sets_are_sets(
            a in prop::collection::btree_set(0_u32..300, 0..120),
            b in prop::collection::btree_set(0_u32..300, 0..20),
            vertices in prop::sample::select(vec![300_u32, 2000, 100_000]),
        ) {
            let (left, right) = (of(&a, vertices), of(&b, vertices));
            let common = a.intersection(&b).count();
            prop_assert_eq!(left.common(&right), common);
            prop_assert_eq!(right.common(&left), common);
            prop_assert_eq!(left.common(&left), a.len());
            for w in 0..300 {
                prop_assert_eq!(left.contains(w), a.contains(&w));
            }
            let (a, b): (Vec<u32>, Vec<u32>) = (a.into_iter().collect(), b.into_iter().collect());
            prop_assert_eq!(merged(&a, &b), common);
            prop_assert_eq!(galloped(&b, &a), common);
        }
    }
}
