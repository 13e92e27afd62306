//! A bound of the bytes of replies that wait to be derived (semaphore): many heights are fetched at once, and blocks of
//! thousands of transactions have 30 MB of replies each.
//!
//! A reply that is larger than the room reserved for it is requested again when no other such reply of its service is
//! held (`node::large_replies`): a small transaction can have events of any size.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of replies in all.
const ROOM: usize = 192 << 20;

/// Bytes of results and receipts for each byte of a block, as of `evm-load`.
const ANSWERS_OF_BLOCK: usize = 10;

/// Minimum of bytes reserved for the replies about a block: those with events of a usual size need no more.
const MIN: usize = 4 << 20;

/// Bytes of the call trace of a transaction, about twice those of `evm-load`.
const TRACE_OF_TX: usize = 8 << 10;

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
    /// Waits until there is room for the other replies about a block of so many bytes. A height has one reservation at a
    /// time, so none waits for itself. A block without equal gets all the room.
    pub(super) async fn for_block(&self, bytes: usize) -> Reservation {
        self.reserve(bytes.saturating_mul(ANSWERS_OF_BLOCK)).await
    }

    /// Waits until there is room for the traces of so many transactions.
    pub(super) async fn for_traces(&self, txs: usize) -> Reservation {
        self.reserve(txs.saturating_mul(TRACE_OF_TX)).await
    }

    async fn reserve(&self, bytes: usize) -> Reservation {
        let bytes = bytes.clamp(MIN, ROOM);
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        let permit = Arc::clone(&self.0).acquire_many_owned(units).await;
        Reservation { bytes, _permit: permit.ok().map(Arc::new) }
    }
}

/// Reserved room, which the replies hold.
#[derive(Clone, Debug)]
pub(super) struct Reservation {
    /// Its size.
    pub(super) bytes: usize,
    _permit: Option<Arc<OwnedSemaphorePermit>>,
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use tokio::task::unconstrained;

    use super::*;

    #[tokio::test]
    async fn few_large_blocks_or_many_small_ones_have_answers_at_a_time() {
        for (bytes, at_once) in [(1 << 30, 1), (3 << 20, 6), (60 << 10, 48)] {
            let room = Room::default();
            // Tokio lets a task wait after some hundred permits, also if there are more.
            let take = || unconstrained(room.for_block(bytes)).now_or_never();
            let taken: Vec<_> = (0..1_000).map_while(|_| take()).collect();
            assert_eq!(taken.len(), at_once, "{bytes}");
            drop(taken);
            assert!(take().is_some());
        }
    }
}
