//! How long receipts are doubted that do not follow from their transactions and that nobody gives otherwise.
//!
//! No header covers them. A node that makes them otherwise than those that are known must not stop the index, nor slow it
//! down for ever; one that says something untrue now and then, or has strayed to another history, must not be accepted.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// So many heights in a row without one that fits are no accident: from then on there is no waiting.
const IN_A_ROW: u32 = 3;

/// What was found out so far.
#[derive(Debug)]
pub(crate) struct ReceiptFallback {
    /// For how long one height's are asked for again.
    retry_for: Duration,
    accepted_in_a_row: AtomicU32,
}

impl ReceiptFallback {
    pub(crate) fn new(retry_for: Duration) -> Self {
        Self { retry_for, accepted_in_a_row: AtomicU32::new(0) }
    }

    /// Whether those of a height that have contradicted for so long are to be taken as they are.
    pub(crate) fn expired(&self, doubted: Duration) -> bool {
        let systematic = self.accepted_in_a_row.load(Ordering::Relaxed) >= IN_A_ROW;
        systematic || doubted >= self.retry_for
    }

    /// Some were taken that contradict.
    pub(crate) fn accepted(&self) {
        // Wraps after 2^32 heights, to wait three times more.
        self.accepted_in_a_row.fetch_add(1, Ordering::Relaxed);
    }

    /// Some were right.
    pub(crate) fn reset(&self) {
        self.accepted_in_a_row.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_contradicts_height_after_height_is_soon_taken_until_one_fits() {
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
