//! Fallback for receipts that do not follow from their transactions, if no endpoint has others.
//!
//! No header commits to receipts. A node whose receipts differ from the known format must not stop the index or slow it
//! down permanently; a node that is wrong now and then, or follows another history, must not be trusted. So mismatching
//! receipts are accepted only after a time, or at once if several heights in a row mismatch.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// After so many mismatching heights in a row the cause is systematic: no more waiting.
const IN_A_ROW: u32 = 3;

/// State of the fallback.
#[derive(Debug)]
pub(crate) struct ReceiptFallback {
    /// Time for which the receipts of one height are fetched again.
    retry_for: Duration,
    accepted_in_a_row: AtomicU32,
}

impl ReceiptFallback {
    pub(crate) fn new(retry_for: Duration) -> Self {
        Self { retry_for, accepted_in_a_row: AtomicU32::new(0) }
    }

    /// True if receipts that have mismatched for this long are to be accepted.
    pub(crate) fn expired(&self, mismatching_for: Duration) -> bool {
        let systematic = self.accepted_in_a_row.load(Ordering::Relaxed) >= IN_A_ROW;
        systematic || mismatching_for >= self.retry_for
    }

    /// Records that mismatching receipts were accepted.
    pub(crate) fn accepted(&self) {
        // Wraps after 2^32 heights, to wait three times more.
        self.accepted_in_a_row.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that receipts matched.
    pub(crate) fn reset(&self) {
        self.accepted_in_a_row.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receipts_that_mismatch_several_heights_in_a_row_are_accepted_at_once_until_some_match() {
        let minute = Duration::from_mins(1);
        let receipt_fallback = ReceiptFallback::new(minute);
        for _ in 0..IN_A_ROW {
            assert!(!receipt_fallback.expired(minute / 2));
            assert!(receipt_fallback.expired(minute));
            receipt_fallback.accepted();
        }
        assert!(receipt_fallback.expired(Duration::ZERO));
        receipt_fallback.reset();
        assert!(!receipt_fallback.expired(Duration::ZERO));
    }
}
