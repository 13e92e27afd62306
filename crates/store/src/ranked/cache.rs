//! The sets in the memory of a writer: those that its transaction has opened, and the most recently committed ones.
//!
//! # Invariants
//!
//! A transaction takes a set out of the cache and returns it after its commit, so a set whose commit failed is read from
//! the store again.

use std::{collections::HashMap, fmt};

use lru::LruCache;
use rustc_hash::FxSeededState;

use super::levels::Levels;

/// Weight of the sets in the cache, and of those that a transaction loads: 25 MB. Small in tests, to cover evictions.
const CAPACITY: usize = if cfg!(test) { 12 } else { 1 << 18 };

/// LRU cache of sets as the last commit left them, by their key.
pub(crate) struct SetCache {
    sets: LruCache<Box<[u8]>, Box<Levels>, FxSeededState>,
    weight: usize,
}

impl SetCache {
    pub(crate) fn new(hasher: FxSeededState) -> Self {
        Self { sets: LruCache::unbounded_with_hasher(hasher), weight: 0 }
    }

    /// Number of sets.
    pub(crate) fn len(&self) -> usize {
        self.sets.len()
    }

    /// Adds the sets of a transaction after the commit of its batch, in place of those that were not changed for the
    /// longest time.
    pub(crate) fn absorb(&mut self, open: OpenSets) {
        for (set_key, levels) in open.sets {
            self.weight += levels.weight();
            if let Some(replaced) = self.sets.put(set_key, levels) {
                self.weight -= replaced.weight();
            }
        }
        while self.weight > CAPACITY
            && let Some((_, oldest)) = self.sets.pop_lru()
        {
            self.weight -= oldest.weight();
        }
    }

    fn take(&mut self, set_key: &[u8]) -> Option<Box<Levels>> {
        let levels = self.sets.pop(set_key)?;
        self.weight -= levels.weight();
        Some(levels)
    }
}

/// The sets that a transaction has opened, by their key.
pub(crate) struct OpenSets {
    sets: HashMap<Box<[u8]>, Box<Levels>, FxSeededState>,
    /// Weight of the sets when they were opened.
    weight: usize,
}

impl OpenSets {
    pub(crate) fn new(hasher: FxSeededState) -> Self {
        Self { sets: HashMap::with_hasher(hasher), weight: 0 }
    }

    /// Takes out a set that is open or in `cache`; `None` if it must be loaded.
    pub(crate) fn take(&mut self, set_key: &[u8], cache: &mut SetCache) -> Option<Box<Levels>> {
        self.sets.remove(set_key).or_else(|| {
            let levels = cache.take(set_key)?;
            self.weight += levels.weight();
            Some(levels)
        })
    }

    /// Returns a set that was taken out or loaded.
    pub(crate) fn put(&mut self, set_key: Box<[u8]>, levels: Box<Levels>) {
        self.sets.insert(set_key, levels);
    }

    /// Number of nodes that may still be loaded.
    pub(super) fn room(&self) -> usize {
        CAPACITY.saturating_sub(self.weight)
    }

    /// Counts a set that was loaded.
    pub(super) fn loaded(&mut self, levels: &Levels) {
        self.weight += levels.weight();
    }

    /// The changed rows of all sets: key and new value, `None` to delete.
    pub(crate) fn take_changes(&mut self) -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> {
        self.sets.iter_mut().flat_map(|(set_key, levels)| levels.take_changes(set_key))
    }
}

impl fmt::Debug for OpenSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenSets").field("sets", &self.sets.len()).field("weight", &self.weight).finish()
    }
}
