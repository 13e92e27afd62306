//! In-flight limiter of a service: semaphores over calls and over the bytes of their bodies.
//!
//! # Invariants
//!
//! * At most `in_flight` calls run at once.
//! * The bodies being read add up to at most `bytes_in_flight`, by the size of recent answers. The bound is soft: the
//!   size of a reply is unknown before it is read (Go servers send chunks). A larger body is read, and later calls
//!   wait.
//! * A call acquires all its permits before it starts, so calls cannot deadlock.

use std::sync::atomic::{AtomicU32, Ordering};

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::limits::Limits;

/// Semaphores over calls and over bytes.
#[derive(Debug)]
pub(crate) struct InFlightLimiter {
    calls: Semaphore,
    bytes: Semaphore,
    size: u32,
    expected: AtomicU32,
}

/// Permit for one call, released on drop.
#[derive(Debug)]
pub(crate) struct Permit<'a> {
    // `None` only if a semaphore were closed, which never happens.
    _call: Option<SemaphorePermit<'a>>,
    _bytes: Option<SemaphorePermit<'a>>,
}

/// Bytes are counted in units of this size, because a semaphore counts to 2^32 at most.
const UNIT: usize = 1 << 10;

impl InFlightLimiter {
    pub(crate) fn new(limits: &Limits) -> Self {
        let size = units(limits.bytes_in_flight);
        Self {
            calls: Semaphore::new(limits.in_flight.clamp(1, Semaphore::MAX_PERMITS)),
            bytes: Semaphore::new(usize::try_from(size).unwrap_or(Semaphore::MAX_PERMITS)),
            size,
            expected: AtomicU32::new(1),
        }
    }

    /// Waits for both permits, in the order of the callers.
    pub(crate) async fn acquire(&self) -> Permit<'_> {
        // The semaphores are never closed, so both always give a permit.
        let request = self.calls.acquire().await.ok();
        let expected = self.expected.load(Ordering::Relaxed).min(self.size);
        let bytes = self.bytes.acquire_many(expected).await.ok();
        Permit { _call: request, _bytes: bytes }
    }

    /// Adapts the expected size of a reply: up at once, down slowly.
    pub(crate) fn record_size(&self, bytes: usize) {
        let now = units(bytes);
        let before = self.expected.load(Ordering::Relaxed);
        self.expected.store(now.max(before - before / 8), Ordering::Relaxed);
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).clamp(1, MAX_PERMITS)
}

/// 512 GiB in units: fits in a semaphore on every platform.
const MAX_PERMITS: u32 = 1 << 29;

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// True if a call could start now.
    fn open(limiter: &InFlightLimiter) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        matches!(pin!(limiter.acquire()).poll(&mut context), Poll::Ready(_))
    }

    fn limiter_of(in_flight: usize, bytes_in_flight: usize) -> InFlightLimiter {
        InFlightLimiter::new(&Limits { in_flight, bytes_in_flight, ..Limits::default() })
    }

    #[tokio::test]
    async fn no_more_calls_at_once_than_allowed() {
        let limiter = limiter_of(2, 1 << 20);
        let first = limiter.acquire().await;
        let second = limiter.acquire().await;
        assert!(!open(&limiter));
        drop(first);
        assert!(open(&limiter));
        drop(second);
    }

    #[tokio::test]
    async fn large_answers_leave_room_for_fewer_at_once() {
        let limiter = limiter_of(100, 10 << 20);
        limiter.record_size(4 << 20);
        let first = limiter.acquire().await;
        let second = limiter.acquire().await;
        assert!(!open(&limiter), "a third answer of 4 MiB does not fit into 10 MiB");
        drop((first, second));
        for _ in 0..20 {
            limiter.record_size(100);
        }
        let passes = [limiter.acquire().await, limiter.acquire().await, limiter.acquire().await];
        assert!(open(&limiter), "after small answers there is room again");
        drop(passes);
    }

    #[tokio::test]
    async fn an_answer_larger_than_all_bytes_still_passes_alone() {
        let limiter = limiter_of(100, 1 << 20);
        limiter.record_size(1 << 30);
        let alone = limiter.acquire().await;
        assert!(!open(&limiter));
        drop(alone);
        assert!(open(&limiter));
    }
}
