//! How much one service may have in the air.
//!
//! Holds: no more calls than the limit at once; bodies being read add up to no more bytes than the limit, by
//! the size that answers had lately. The size of an answer is unknown before it is read (Go servers send
//! chunks), so this second bound is soft: a body larger than foreseen is let through, and the next ones wait
//! for more room. A call takes all it needs before it starts, so calls cannot wait for each other in a ring.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::Limits;

/// Slots for calls and room for bytes.
#[derive(Debug)]
pub(crate) struct Gate {
    slots: Semaphore,
    room: Semaphore,
    size: u32,
    expected: AtomicU32,
}

/// The right to one call, given back on drop.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    // `None` only if a semaphore had been closed, which nobody does.
    _slot: Option<SemaphorePermit<'a>>,
    _room: Option<SemaphorePermit<'a>>,
}

/// Room is counted in pieces of this many bytes, since a semaphore counts to 2^32 at most.
const PIECE: usize = 1 << 10;

impl Gate {
    pub(crate) fn new(limits: &Limits) -> Self {
        let size = pieces(limits.bytes_in_flight);
        Self {
            slots: Semaphore::new(limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            room: Semaphore::new(usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS)),
            size,
            expected: AtomicU32::new(1),
        }
    }

    /// Waits for a slot and for room. First come, first served.
    pub(crate) async fn enter(&self) -> Pass<'_> {
        // An error would mean a closed semaphore, and nobody closes these: `None` is out of reach and would only lift a bound.
        let slot = self.slots.acquire().await.ok();
        let expected = self.expected.load(Ordering::Relaxed).min(self.size);
        let room = self.room.acquire_many(expected).await.ok();
        Pass { _slot: slot, _room: room }
    }

    /// Learns from an answer's size: up at once, down slowly.
    pub(crate) fn learn(&self, bytes: usize) {
        let now = pieces(bytes);
        let before = self.expected.load(Ordering::Relaxed);
        self.expected.store(now.max(before - before / 8), Ordering::Relaxed);
    }
}

fn pieces(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(PIECE)).unwrap_or(u32::MAX).clamp(1, LARGEST)
}

/// 512 GiB in pieces: fits a semaphore on every platform.
const LARGEST: u32 = 1 << 29;

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Whether a call could start now.
    fn open(gate: &Gate) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(pin!(gate.enter()).poll(&mut context), Poll::Ready(_))
    }

    fn gate(in_flight: usize, bytes_in_flight: usize) -> Gate {
        Gate::new(&Limits { in_flight, bytes_in_flight, ..Limits::default() })
    }

    #[tokio::test]
    async fn no_more_calls_at_once_than_allowed() {
        let gate = gate(2, 1 << 20);
        let first = gate.enter().await;
        let second = gate.enter().await;
        assert!(!open(&gate));
        drop(first);
        assert!(open(&gate));
        drop(second);
    }

    #[tokio::test]
    async fn large_answers_leave_room_for_fewer_at_once() {
        let gate = gate(100, 10 << 20);
        gate.learn(4 << 20);
        let first = gate.enter().await;
        let second = gate.enter().await;
        assert!(!open(&gate), "a third answer of 4 MiB does not fit into 10 MiB");
        drop((first, second));
        for _ in 0..20 {
            gate.learn(100);
        }
        let passes = [gate.enter().await, gate.enter().await, gate.enter().await];
        assert!(open(&gate), "after small answers there is room again");
        drop(passes);
    }

    #[tokio::test]
    async fn an_answer_larger_than_all_room_still_passes_alone() {
        let gate = gate(100, 1 << 20);
        gate.learn(1 << 30);
        let alone = gate.enter().await;
        assert!(!open(&gate));
        drop(alone);
        assert!(open(&gate));
    }
}
