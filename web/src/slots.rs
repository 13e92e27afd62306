//! How many requests a server has at once.
//!
//! What must hold: a connection has one slot at most, and gives it back whatever becomes of the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The slots of a server.
pub(crate) struct Slots {
    limit: usize,
    taken: AtomicUsize,
}

/// The slot of one connection, taken or not.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    taken: AtomicBool,
}

impl Slots {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, taken: AtomicUsize::new(0) })
    }
}

impl Slot {
    /// A slot that is not taken yet.
    pub(crate) fn of(slots: &Arc<Slots>) -> Self {
        Self { slots: Arc::clone(slots), taken: AtomicBool::new(false) }
    }

    /// Takes it, unless it is taken already; false if the server has none left. Used by one task only.
    pub(crate) fn take(&self) -> bool {
        if self.taken.load(Ordering::Relaxed) {
            return true;
        }
        let limit = self.slots.limit;
        let one_more = |taken: usize| (taken < limit).then_some(taken + 1);
        let took = self.slots.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        self.taken.store(took, Ordering::Relaxed);
        took
    }

    /// Gives it back if it is taken.
    pub(crate) fn give_back(&self) {
        if self.taken.swap(false, Ordering::Relaxed) {
            self.slots.taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_counts_once_and_comes_back_by_itself() {
        let slots = Slots::new(2);
        let (one, two, three) = (Slot::of(&slots), Slot::of(&slots), Slot::of(&slots));
        assert!(one.take() && one.take() && two.take());
        assert!(!three.take());
        one.give_back();
        one.give_back();
        assert!(three.take() && !one.take());
        drop(two);
        assert!(one.take() && !Slot::of(&slots).take());
    }
}
