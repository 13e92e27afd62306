//! Cache of computed blocks (LRU), bounded by the bytes of their text.
//!
//! # Invariants
//!
//! - The cached blocks are one block, or have at most the cache's bytes in all.
//! - A block is computed once for all requests that arrive meanwhile.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;
use lru::LruCache;
use replay::recording::{Height, Trace};

/// A block in the making, or made; `None` if it cannot be computed.
type Slot = Arc<OnceLock<Option<Height>>>;

#[derive(Debug)]
pub(crate) struct Cache {
    /// Maximum bytes.
    room: usize,
    blocks: Mutex<Blocks>,
}

#[derive(Debug)]
struct Blocks {
    /// With the counted bytes of each: 0 before it is computed.
    slots: LruCache<u64, (Slot, usize)>,
    /// All counted bytes.
    bytes: usize,
}

impl Cache {
    pub(crate) fn new(room: usize) -> Self {
        Self { room, blocks: Mutex::new(Blocks { slots: LruCache::unbounded(), bytes: 0 }) }
    }

    /// The block of a height: from the cache, or by `compute`.
    pub(crate) fn get(&self, height: u64, compute: impl FnOnce() -> Option<Height>) -> Option<Height> {
        let slot = {
            let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(&blocks.slots.get_or_insert(height, Default::default).0)
        };
        let mut is_new = false;
        let block = slot.get_or_init(|| {
            is_new = true;
            compute()
        });
        if is_new {
            self.account(height, &slot);
        }
        block.clone()
    }

    /// Counts a computed block, and removes the least recently used ones if there are too many bytes.
    fn account(&self, height: u64, slot: &Slot) {
        let mut blocks = self.blocks.lock().unwrap_or_else(PoisonError::into_inner);
        // It may have been removed before it was computed.
        if let Some((_, counted)) =
            blocks.slots.peek_mut(&height).filter(|(cached, _)| Arc::ptr_eq(cached, slot))
        {
            *counted = size(slot);
            blocks.bytes += size(slot);
        }
        while blocks.bytes > self.room && blocks.slots.len() > 1 {
            let Some((_, (_, counted))) = blocks.slots.pop_lru() else { break };
            blocks.bytes -= counted;
        }
    }
}

/// Bytes of a block; 0 before it is computed.
fn size(slot: &Slot) -> usize {
    let Some(Some(block)) = slot.get() else { return 0 };
    let Height { height: _, block, block_results, rest_txs, eth_block, eth_receipts, eth_trace } = block;
    let trace = eth_trace.as_ref().map(|(Trace::Result(raw) | Trace::Error(raw))| raw);
    let parts = [rest_txs.as_ref(), eth_block.as_ref(), eth_receipts.as_ref(), trace];
    block.len() + block_results.len() + parts.into_iter().flatten().map(Bytes::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    use super::*;

    /// A block with so many bytes.
    fn block(height: u64, bytes: usize) -> Height {
        Height {
            height,
            block: vec![b'x'; bytes].into(),
            block_results: Bytes::new(),
            rest_txs: None,
            eth_block: None,
            eth_receipts: None,
            eth_trace: None,
        }
    }

    /// The counted bytes and those of the cached blocks.
    fn bytes(cache: &Cache) -> (usize, usize) {
        let blocks = cache.blocks.lock().unwrap();
        (blocks.bytes, blocks.slots.iter().map(|(_, (slot, _))| size(slot)).sum())
    }

    #[test]
    fn memory_is_bounded_for_any_length_of_the_chain_and_any_order_of_reads() {
        const ROOM: usize = 10_000;
        for length in [100, 10_000_u64] {
            let cache = Cache::new(ROOM);
            std::thread::scope(|scope| {
                for reader in 0..4 {
                    let cache = &cache;
                    scope.spawn(move || {
                        for step in 0..4_000_u64 {
                            // In order, with other heights between, which others read as well.
                            let height =
                                if step % 3 == 0 { step.wrapping_mul(reader * 7919 + 1) } else { step };
                            let height = height % length;
                            let size = usize::try_from(height % 50 * 20).unwrap();
                            let read = cache.get(height, || Some(block(height, size))).unwrap();
                            assert_eq!((read.height, read.block.len()), (height, size));
                        }
                    });
                }
            });
            let (counted, cached) = bytes(&cache);
            assert_eq!(counted, cached, "{length} heights");
            assert!((ROOM / 2..=ROOM).contains(&cached), "{length} heights: {cached}");
        }
    }

    #[test]
    fn a_block_larger_than_the_cache_is_cached_alone() {
        let cache = Cache::new(10);
        for height in 0..3 {
            cache.get(height, || Some(block(height, 100))).unwrap();
            assert_eq!(bytes(&cache), (100, 100));
        }
    }

    #[test]
    fn a_block_is_computed_once_for_all_readers() {
        let (cache, computed) = (Cache::new(1_000), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    cache.get(7, || {
                        computed.fetch_add(1, Relaxed);
                        Some(block(7, 100))
                    })
                });
            }
        });
        assert_eq!(computed.into_inner(), 1);
    }
}
