//! The threads of the index yield their core several times a millisecond: an index at full speed keeps every core busy,
//! and a request of microseconds would wait milliseconds for a free core, although its thread has a higher priority
//! (`docs/src/reliability.md` has the figures).

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Minimum time between two yields of a thread: a switch to another thread takes some microseconds and its caches.
const YIELD_EVERY: Duration = Duration::from_micros(200);

/// Yields this core to a waiting thread, if this thread has not done so recently. Called after every transaction.
pub(crate) fn yield_core() {
    thread_local!(static YIELDED: Cell<Option<Instant>> = const { Cell::new(None) });
    let now = Instant::now();
    if YIELDED.get().is_none_or(|yielded| now.duration_since(yielded) >= YIELD_EVERY) {
        std::thread::yield_now();
        YIELDED.set(Some(now));
    }
}
