//! Chance that can be repeated: numbers that a seed and a place decide.

/// The step of splitmix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
pub(crate) fn mix(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The number that a seed has at a place, which is told in parts.
pub(crate) fn number(seed: u64, place: &[u64]) -> u64 {
    place.iter().fold(seed, |state, part| mix(state ^ part))
}

/// Of a number, one from 0 up to but without 1.
pub(crate) fn unit(number: u64) -> f64 {
    let high = u32::try_from(number >> 32).unwrap_or(u32::MAX);
    f64::from(high) / (f64::from(u32::MAX) + 1.0)
}

/// Of a number, one from 0 up to but without `len`; 0 if that is 0.
pub(crate) fn below(number: u64, len: usize) -> usize {
    let len = u64::try_from(len).unwrap_or(u64::MAX);
    usize::try_from(number.checked_rem(len).unwrap_or(0)).unwrap_or(0)
}
