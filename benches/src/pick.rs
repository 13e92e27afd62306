//! Pseudo-random choices, the same in every run: SplitMix64 (Steele, Lea, Flood, 2014).

/// A seeded stream of choices.
#[derive(Clone, Debug)]
pub struct Pick(u64);

impl Pick {
    /// The stream of `seed`.
    pub const fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`; 0 if that is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of a 128-bit product is below the bound, so it always fits.
        u64::try_from((u128::from(self.next()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// Shuffles `items`.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for (at, choices) in (0..items.len()).zip(1..) {
            let other = usize::try_from(self.below(choices)).unwrap_or(at);
            items.swap(at, other);
        }
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_stay_below_their_bound_and_reach_all_of_it() {
        let mut pick = Pick::seeded(1);
        let mut seen = [0_u32; 10];
        for _ in 0..1_000 {
            seen[usize::try_from(pick.below(10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|times| (50..200).contains(times)), "{seen:?}");
        assert_eq!(pick.below(0), 0);
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Pick::seeded(7).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
