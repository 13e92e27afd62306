//! Position of a transaction in the polling queue of its chain: class and time.

/// The classes of a chain's queue, in the order in which they are polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Registered and not yet polled.
    New = 0,
    /// Seen on its chain; the transaction or one of its transfers is unfinished.
    Followed = 1,
    /// Polled, and no node has it.
    Unseen = 2,
    /// Abandoned, because no node had it for too long.
    Abandoned = 3,
    /// No further evidence is possible: kept for [`crate::Options::retention`] from the time in the row on.
    Ended = 4,
}

/// A row's position in the queue of its chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    /// Part of the queue.
    pub class: Class,
    /// Due time; nanoseconds since 1970.
    pub at: u64,
}

impl Class {
    /// Classes that are polled.
    pub(crate) const POLLED: [Self; 4] = [Self::New, Self::Followed, Self::Unseen, Self::Abandoned];
    /// Classes of transactions that no node has.
    pub(crate) const UNSEEN: [Self; 3] = [Self::New, Self::Unseen, Self::Abandoned];

    pub(crate) fn key(self) -> u8 {
        self as u8
    }
}
