//! Public pseudo-random words: sketches are the same on every machine and in every later version.

/// Version of everything that follows from a seed; another construction gets another number.
pub const VERSION: u16 = 1;

/// Keys of the constructions, so that two kinds of sketch with one seed have nothing in common.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    Signs = 1,
    Rows = 2,
    Flips = 3,
    Columns = 4,
}

/// Words by number, in any order: the finalizer of `SplitMix64` (Steele, Lea & Flood 2014, with Stafford's mix 13) on a
/// Weyl sequence that starts where the seed says.
///
/// Not for noise: whoever knows the seed knows the words. Sensitivities do not depend on them.
#[derive(Debug, Clone, Copy)]
pub(super) struct PublicWords(u64);

const WEYL: u64 = 0x9E37_79B9_7F4A_7C15;

impl PublicWords {
    pub(super) fn new(seed: u64, purpose: Use) -> Self {
        Self(mix(mix(seed).wrapping_add((purpose as u64).wrapping_mul(WEYL)) ^ u64::from(VERSION)))
    }

    #[inline(always)]
    pub(super) fn word(self, number: u64) -> u64 {
        mix(self.0.wrapping_add(number.wrapping_mul(WEYL)))
    }
}

#[inline(always)]
pub(super) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::{PublicWords, Use, mix};

    /// First outputs of `SplitMix64` from state 0, as published with the generator.
    #[test]
    fn the_mix_is_that_of_splitmix64() {
        let state = |i: u64| i.wrapping_mul(super::WEYL);
        assert_eq!(mix(state(1)), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(state(2)), 0x6E78_9E6A_A1B9_65F4);
        assert_eq!(mix(state(3)), 0x06C4_5D18_8009_454F);
    }

    #[test]
    fn bits_are_balanced_and_uses_differ() {
        let words = PublicWords::new(7, Use::Signs);
        let ones: u32 = (0..10_000).map(|i| words.word(i).count_ones()).sum();
        // 640,000 bits: 5 standard deviations are 2,000.
        assert!(ones.abs_diff(320_000) < 2_000);
        assert_ne!(words.word(0), PublicWords::new(7, Use::Rows).word(0));
        assert_ne!(words.word(0), PublicWords::new(8, Use::Signs).word(0));
    }
}
