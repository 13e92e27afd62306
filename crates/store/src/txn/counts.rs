//! List lengths and sets that a writer remembers from commit to commit.

use std::{
    hash::{BuildHasher, RandomState},
    num::NonZeroUsize,
};

use lru::LruCache;
use rustc_hash::FxSeededState;

use crate::ranked::cache::{OpenSets, SetCache};

/// LRU cache of the lengths of recently appended lists and of the upper levels of recently changed sets: saves a read
/// per push, and several per insertion into a set.
///
/// Holds committed values only. Belongs to the single writer of these lists and sets.
pub struct Counts {
    /// `None` while a batch that changes the length is not committed yet.
    pub(super) lengths: LruCache<Box<[u8]>, Option<u64>, FxSeededState>,
    pub(super) sets: SetCache,
}

impl Counts {
    /// A cache for the lengths of `capacity` lists (at least one), of about 130 bytes each, and for sets, of up to 25 MB
    /// in all.
    pub fn new(capacity: usize) -> Self {
        let capacity = NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN);
        let lengths = LruCache::with_hasher(capacity, random_hasher());
        Self { lengths, sets: SetCache::new(random_hasher()) }
    }

    /// Adds the lengths and sets of a transaction after the commit of its batch.
    pub fn absorb(&mut self, pending: Pending) {
        self.sets.absorb(pending.sets);
        for (count_key, len) in pending.lengths {
            self.lengths.put(count_key, Some(len));
        }
    }
}

impl std::fmt::Debug for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Counts")
            .field("lists", &self.lengths.len())
            .field("room", &self.lengths.cap())
            .field("sets", &self.sets.len())
            .finish()
    }
}

/// List lengths and sets that become valid with the commit of their batch. Dropping it is safe: the next change of each
/// of them reads the store.
#[derive(Debug)]
#[must_use = "give it to `Counts::absorb` once the batch is committed"]
pub struct Pending {
    pub(super) lengths: Vec<(Box<[u8]>, u64)>,
    pub(super) sets: OpenSets,
}

/// A fast hash with a random seed: outsiders choose keys (addresses) and must not be able to prepare collisions.
pub(super) fn random_hasher() -> FxSeededState {
    let seed = RandomState::new().hash_one(0_u8).to_ne_bytes();
    FxSeededState::with_seed(usize::from_ne_bytes(seed))
}
