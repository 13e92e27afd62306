//! The stores that this process has open.
//!
//! RocksDB's handles share static objects, which the end of the process destroys: a thread that still uses a handle then aborts the
//! process (`pthread lock: Invalid argument`). So a process ends after its last store is closed.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

static OPEN: OpenStores = OpenStores { count: Mutex::new(0), closed: Condvar::new() };

struct OpenStores {
    count: Mutex<usize>,
    closed: Condvar,
}

/// Counts a store until it is dropped: the last field of the store, because fields are dropped in order.
pub(super) struct OpenStore(&'static OpenStores);

impl OpenStore {
    pub(super) fn new() -> Self {
        OPEN.open()
    }
}

impl OpenStores {
    fn open(&'static self) -> OpenStore {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        OpenStore(self)
    }

    fn wait(&self, limit: Duration) -> bool {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.closed.wait_timeout_while(count, limit, |count| *count > 0);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for OpenStore {
    fn drop(&mut self) {
        *self.0.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.0.closed.notify_all();
    }
}

/// Waits until no thread of this process has a store open; false if one has after `limit`.
pub fn wait_until_closed(limit: Duration) -> bool {
    OPEN.wait(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_waits_for_the_last_store_that_a_thread_uses() {
        static STORES: OpenStores = OpenStores { count: Mutex::new(0), closed: Condvar::new() };
        assert!(STORES.wait(Duration::ZERO), "none is open");
        let (first, last) = (STORES.open(), STORES.open());
        drop(first);
        assert!(!STORES.wait(Duration::ZERO));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| STORES.wait(Duration::from_mins(1)));
            drop(last);
            assert!(waiting.join().unwrap());
        });
    }
}
