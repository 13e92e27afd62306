//! Cache of the ERC-20 events that the block lane has derived, until the rich list's lane reaches them.
//!
//! An optimization with a bound: missing events are fetched from the node again.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chain::evm::erc20::Erc20Event;

/// Bound of cached events: some 100 bytes each.
const MAX_EVENTS: usize = 1 << 17;

/// Events by height.
#[derive(Debug, Default)]
pub(crate) struct TransferCache(Mutex<Cached>);

#[derive(Debug, Default)]
struct Cached {
    heights: BTreeMap<u64, Vec<Erc20Event>>,
    events: usize,
}

impl TransferCache {
    /// Caches the events of `height`, unless the cache is full.
    pub(crate) fn keep(&self, height: u64, events: Vec<Erc20Event>) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.remove(height);
        // An empty height counts as well, so the number of heights is bounded too.
        let size = events.len() + 1;
        if cached.events + size <= MAX_EVENTS {
            cached.events += size;
            cached.heights.insert(height, events);
        }
    }

    /// Clears the cache: after a rewind it may hold another history.
    pub(crate) fn clear(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Cached::default();
    }

    /// Removes and returns the events of `height`, if cached; lower heights are dropped.
    pub(crate) fn take(&self, height: u64) -> Option<Vec<Erc20Event>> {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(below) = cached.heights.keys().next().copied().filter(|below| *below < height) {
            cached.remove(below);
        }
        cached.remove(height)
    }
}

impl Cached {
    fn remove(&mut self, height: u64) -> Option<Vec<Erc20Event>> {
        let events = self.heights.remove(&height)?;
        self.events -= events.len() + 1;
        Some(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_events_are_returned_once_and_lower_heights_are_dropped() {
        let event = Erc20Event::Contract { contract: [1; 20] };
        let transfer_cache = TransferCache::default();
        for height in 1..=3 {
            transfer_cache.keep(height, vec![event.clone()]);
        }
        assert_eq!(transfer_cache.take(2), Some(vec![event.clone()]));
        assert_eq!((transfer_cache.take(1), transfer_cache.take(2)), (None, None));
        assert_eq!(transfer_cache.take(3), Some(vec![event]));
        assert_eq!(transfer_cache.0.lock().unwrap_or_else(PoisonError::into_inner).events, 0);
    }

    #[test]
    fn events_beyond_the_bound_are_not_cached() {
        let transfer_cache = TransferCache::default();
        let many = vec![Erc20Event::Contract { contract: [1; 20] }; MAX_EVENTS - 10];
        transfer_cache.keep(1, many);
        transfer_cache.keep(2, vec![Erc20Event::Contract { contract: [1; 20] }; 20]);
        assert!(transfer_cache.take(2).is_none());
    }
}
