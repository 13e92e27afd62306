//! When a height that was fetched may be committed.

use crate::Error;

/// Decides it, for the heights of one lane in their order.
pub(crate) trait Confirmation<I>: Send {
    /// Takes the next height and gives those that may be committed now, in order. `is_last` says that no later one is
    /// known of: nothing can be waited for. An error ends the lane.
    fn push(&mut self, item: I, is_last: bool) -> impl Future<Output = Result<Vec<I>, Error>> + Send;

    /// Whether a height waits for the next one.
    fn has_pending(&self) -> bool;

    /// Gives the height that waits: the next one does not come.
    fn flush(&mut self) -> Option<I>;
}

/// Every height at once.
pub(crate) struct Immediate;

impl<I: Send> Confirmation<I> for Immediate {
    async fn push(&mut self, item: I, _: bool) -> Result<Vec<I>, Error> {
        Ok(vec![item])
    }

    fn has_pending(&self) -> bool {
        false
    }

    fn flush(&mut self) -> Option<I> {
        None
    }
}
