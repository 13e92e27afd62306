//! Sampling: the choice of heights and rows to compare.

use std::collections::BTreeSet;
use std::hash::{BuildHasher as _, RandomState};

/// About `n` of the heights from `first` to `last`, both included, the others stratified at random, so that another run
/// picks others; and those of `also` within the range.
pub(super) fn heights(first: u64, last: u64, n: usize, also: &BTreeSet<u64>) -> BTreeSet<u64> {
    if first > last {
        return BTreeSet::new();
    }
    let mut heights: BTreeSet<u64> = also.range(first..=last).copied().collect();
    let (span, n) = (last - first + 1, n as u64);
    if n >= span {
        return (first..=last).collect();
    }
    if n > 0 {
        heights.extend([first, last]);
    }
    let random = RandomState::new();
    let edge = |part: u64| {
        first + u64::try_from(u128::from(part) * u128::from(span) / u128::from(n.max(1))).unwrap_or(span)
    };
    for part in 0..n {
        let (low, high) = (edge(part), edge(part + 1));
        heights.insert(low + random.hash_one(part) % (high - low).max(1));
    }
    heights
}

/// Whether `place` is one of about `n` evenly spaced places of `len`.
pub(super) fn is_chosen(place: u64, len: u64, n: u64) -> bool {
    let part = |place: u64| u128::from(place) * u128::from(n) / u128::from(len.max(1));
    n >= len || place == 0 || part(place) != part(place - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_both_ends_every_stretch_and_what_is_suspected() {
        let also = BTreeSet::from([3, 17, 500]);
        let chosen = heights(10, 109, 10, &also);
        assert!(chosen.contains(&10) && chosen.contains(&109) && chosen.contains(&17));
        assert!(!chosen.contains(&3) && !chosen.contains(&500));
        for part in 0..10 {
            assert!(chosen.range(10 + part * 10..20 + part * 10).next().is_some(), "{part}: {chosen:?}");
        }
        assert_eq!(heights(10, 19, 100, &BTreeSet::new()), (10..=19).collect());
        assert!(heights(10, 9, 100, &BTreeSet::new()).is_empty());
        assert_eq!(heights(10, 19, 0, &also), BTreeSet::from([17]));
    }

    #[test]
    fn so_many_places_are_chosen_and_all_where_there_are_fewer() {
        for (len, n) in [(1000, 10), (1000, 999), (7, 7), (5, 100)] {
            let chosen = (0..len).filter(|place| is_chosen(*place, len, n)).count() as u64;
            assert_eq!(chosen, n.min(len), "{n} of {len}");
        }
    }
}
