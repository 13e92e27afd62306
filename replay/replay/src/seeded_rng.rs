//! A counter-based random number generator (SplitMix64): each number is a function of the seed and a position.

/// The step of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The random number of a seed at a position, which has several coordinates.
pub(crate) fn random_at(seed: u64, position: &[u64]) -> u64 {
    position.iter().fold(seed, |state, part| mix(state ^ part))
}

/// Maps a random number to [0, 1).
pub(crate) fn unit(number: u64) -> f64 {
    let high = u32::try_from(number >> 32).unwrap_or(u32::MAX);
    f64::from(high) / (f64::from(u32::MAX) + 1.0)
}

/// Maps a random number to [0, `len`); 0 if `len` is 0.
pub(crate) fn below(number: u64, len: usize) -> usize {
    let len = u64::try_from(len).unwrap_or(u64::MAX);
    usize::try_from(number.checked_rem(len).unwrap_or(0)).unwrap_or(0)
}
