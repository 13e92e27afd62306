//! Hit ratio of a cache that evicts the least recently used block: simulated for small catalogues, and by Che's
//! approximation (Che, Tung, Wang 2002) for any size.
//!
//! The approximation: under independent accesses a block stays for a time that is about the same for all blocks, the
//! *characteristic time* `t`, so it is cached with probability `1 - exp(-rate t)`; `t` is where the expected number of cached
//! blocks is the capacity.

use std::num::NonZeroUsize;

use lru::LruCache;

/// Blocks that are accessed at the same rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Class {
    pub(crate) blocks: f64,
    /// Accesses of each, a second.
    pub(crate) rate: f64,
}

/// The hit ratio and the number of cached blocks, by Che's approximation.
pub(crate) fn che(classes: &[Class], capacity: f64) -> (f64, f64) {
    let total: f64 = classes.iter().map(|class| class.blocks).sum();
    let accesses: f64 = classes.iter().map(|class| class.blocks * class.rate).sum();
    if accesses <= 0.0 {
        return (1.0, 0.0);
    }
    if total <= capacity {
        return (1.0, total);
    }
    let cached = |time: f64, weight: fn(&Class) -> f64| -> f64 {
        classes.iter().map(|class| class.blocks * weight(class) * -(-class.rate * time).exp_m1()).sum()
    };
    // Bisection of the logarithm: rates span many orders of magnitude.
    let (mut low, mut high) = (-60.0_f64, 200.0_f64);
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if cached(middle.exp2(), |_| 1.0) < capacity { low = middle } else { high = middle }
    }
    let time = f64::midpoint(low, high).exp2();
    (cached(time, |class| class.rate) / accesses, cached(time, |_| 1.0))
}

/// `blocks` whose accesses follow Zipf's law with `exponent` and are `rate` in total, as classes of similar rate.
pub(crate) fn zipf(blocks: f64, exponent: f64, rate: f64) -> Vec<Class> {
    let mut classes = Vec::new();
    let mut first = 1.0;
    while first <= blocks {
        // Single blocks at first, then a tenth more each time.
        let last = (first * 1.1_f64).floor().clamp(first, blocks.max(first));
        classes.push(Class { blocks: last - first + 1.0, rate: weight(first, last, exponent) });
        first = last + 1.0;
    }
    let sum: f64 = classes.iter().map(|class| class.rate).sum();
    for class in &mut classes {
        class.rate *= rate / sum / class.blocks;
    }
    classes
}

/// About the sum of `rank^-exponent` for the ranks `first..=last`.
fn weight(first: f64, last: f64, exponent: f64) -> f64 {
    if first >= last {
        return first.powf(-exponent);
    }
    let (from, to) = (first - 0.5, last + 0.5);
    if (exponent - 1.0).abs() < 1e-9 {
        return (to / from).ln();
    }
    (to.powf(1.0 - exponent) - from.powf(1.0 - exponent)) / (1.0 - exponent)
}

/// The hit ratio of `accesses` by Zipf's law to `blocks`, after as many that fill the cache: a real LRU list.
pub(crate) fn simulate(blocks: u32, exponent: f64, capacity: NonZeroUsize, accesses: u32, seed: u64) -> f64 {
    let mut sum = 0.0;
    let until: Vec<f64> = (1..=blocks)
        .map(|rank| {
            sum += f64::from(rank).powf(-exponent);
            sum
        })
        .collect();
    let mut cache = LruCache::new(capacity);
    let mut dice = Dice(seed);
    let mut hits = 0.0;
    for access in 0..2 * accesses {
        let at = dice.next() * sum;
        let block = until.partition_point(|&end| end < at);
        let hit = cache.put(block, ()).is_some();
        if access >= accesses && hit {
            hits += 1.0;
        }
    }
    hits / f64::from(accesses)
}

/// Pseudo-random numbers: SplitMix64.
struct Dice(u64);

impl Dice {
    /// A number from 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        f64::from(u32::try_from(mix(self.0) >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    }
}

/// A hash of `number`.
pub(crate) fn mix(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
