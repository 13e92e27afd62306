//! Large replies, one at a time: a lock that is held as long as the bytes of such a reply.
//!
//! The content of a chain decides the size of replies about it, up to the body limit: many large ones at once, and what is
//! parsed from them, would take all memory. A reply of the usual size needs no lock.
//!
//! # Invariants
//!
//! * The replies about one height may be held together, because a block is derived from several.
//! * The lowest height has the next turn: later blocks wait for it anyway.
//! * A reply is requested again when its turn comes: its first bytes were dropped, so waiting requests hold nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

/// Bytes of a reply of usual size, unless its request expects more.
pub(crate) const USUAL: usize = 8 << 20;

/// The lock of one service.
#[derive(Debug, Default)]
pub(crate) struct LargeReplies {
    holder: Mutex<Holder>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Holder {
    height: Option<u64>,
    turns: usize,
    /// Number of waiting requests by height.
    waiting: BTreeMap<Option<u64>, usize>,
}

/// A waiting request, until it has its turn or is dropped.
struct Waiting<'a> {
    lock: &'a LargeReplies,
    height: Option<u64>,
}

/// The right to hold one large reply.
#[derive(Debug)]
pub(crate) struct Turn(Arc<LargeReplies>);

/// A reply with its turn.
struct Held {
    body: Bytes,
    _turn: Turn,
}

impl LargeReplies {
    /// Waits until no large reply is held, but for those about `height`.
    pub(crate) async fn turn(self: &Arc<Self>, height: Option<u64>) -> Turn {
        *self.holder().waiting.entry(height).or_default() += 1;
        let _waiting = Waiting { lock: self, height };
        loop {
            // Created before the check: it is woken by every later release.
            let released = self.released.notified();
            {
                let mut holder = self.holder();
                let is_first = holder.waiting.first_key_value().is_none_or(|(first, _)| *first == height);
                if holder.turns == 0 && is_first || height.is_some() && holder.height == height {
                    holder.height = height;
                    holder.turns += 1;
                    return Turn(Arc::clone(self));
                }
            }
            released.await;
        }
    }

    fn holder(&self) -> MutexGuard<'_, Holder> {
        // A holder is consistent after every assignment.
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Bytes that end the turn when the last part of them is dropped.
    pub(crate) fn hold(self, body: Bytes) -> Bytes {
        Bytes::from_owner(Held { body, _turn: self })
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let mut holder = self.0.holder();
        holder.turns -= 1;
        if holder.turns == 0 {
            holder.height = None;
            self.0.released.notify_waiters();
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut holder = self.lock.holder();
        if let Some(number) = holder.waiting.get_mut(&self.height) {
            *number -= 1;
            if *number == 0 {
                holder.waiting.remove(&self.height);
            }
        }
        // The next one may be the first now.
        self.lock.released.notify_waiters();
    }
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn replies_of_one_height_are_held_together_and_others_wait_until_all_bytes_are_dropped() {
        let lock = Arc::new(LargeReplies::default());
        let results = lock.turn(Some(7)).await.hold(Bytes::from_static(b"results"));
        let receipts = lock.turn(Some(7)).await.hold(Bytes::from_static(b"receipts"));
        let part = receipts.slice(3..5);
        let mut later = Box::pin(lock.turn(Some(9)));
        let mut other = Box::pin(lock.turn(Some(8)));
        drop((results, receipts));
        assert!((&mut later).now_or_never().is_none() && (&mut other).now_or_never().is_none());
        assert_eq!(&part[..], b"ei");
        drop(part);
        assert!((&mut later).now_or_never().is_none(), "the lowest height is first");
        drop(other.now_or_never().unwrap());
        drop(later.await);
        let unnamed = lock.turn(None).await;
        assert!(lock.turn(None).now_or_never().is_none(), "replies without a height are not of one block");
        drop(unnamed);
        let mut abandoned = Box::pin(lock.turn(Some(1)));
        let held = lock.turn(Some(2)).await;
        assert!((&mut abandoned).now_or_never().is_none());
        let mut next = Box::pin(lock.turn(Some(3)));
        assert!((&mut next).now_or_never().is_none());
        drop(held);
        drop(abandoned);
        assert!(next.now_or_never().is_some());
    }
}
