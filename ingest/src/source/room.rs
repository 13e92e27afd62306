//! A bound of the bytes of answers that wait to be derived (semaphore): many heights are fetched at once, and blocks of
//! thousands of transactions have 30 MB of answers each.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of answers in all.
const ROOM: usize = 192 << 20;

/// Bytes of results and receipts for each byte of a block, as of `evm-load`.
const ANSWERS_OF_BLOCK: usize = 10;

/// Bytes of a permit.
const UNIT: usize = 1 << 10;

/// Room for answers, shared by all heights of a lane.
#[derive(Clone, Debug)]
pub(crate) struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM / UNIT)))
    }
}

impl Room {
    /// Waits until there is room for the other answers about a block of so many bytes; they hold the permit. A height
    /// holds one permit at a time, so none waits for itself. A block without equal gets all the room.
    pub(super) async fn for_block(&self, bytes: usize) -> Option<Arc<OwnedSemaphorePermit>> {
        let units = bytes.saturating_mul(ANSWERS_OF_BLOCK).clamp(UNIT, ROOM) / UNIT;
        let units = u32::try_from(units).unwrap_or(u32::MAX);
        Arc::clone(&self.0).acquire_many_owned(units).await.ok().map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::task::unconstrained;

    use super::*;

    #[tokio::test]
    async fn few_large_blocks_or_many_small_ones_have_answers_at_a_time() {
        for (bytes, at_once) in [(1 << 30, 1), (3 << 20, 6), (60 << 10, 327)] {
            let room = Room::default();
            // Tokio lets a task wait after some hundred permits, also if there are more.
            let take = || unconstrained(room.for_block(bytes)).now_or_never().flatten();
            let taken: Vec<_> = (0..1_000).map_while(|_| take()).collect();
            assert_eq!(taken.len(), at_once, "{bytes}");
            drop(taken);
            assert!(take().is_some());
        }
    }
}
