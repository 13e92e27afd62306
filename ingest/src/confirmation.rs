//! Confirmation: the decision whether a fetched height may be committed.

use crate::Error;

/// Decides when a fetched height may be committed; called once per height, in order.
pub(crate) trait Confirmation<I>: Send {
    /// Takes the next height and returns the heights that may be committed now, in order. `is_last`: no later height is
    /// known, so waiting for one is useless. An error ends the lane.
    fn push(&mut self, item: I, is_last: bool) -> impl Future<Output = Result<Vec<I>, Error>> + Send;

    /// Returns the height that waits for its successor, if any; called if no height arrives.
    fn flush(&mut self) -> Option<I>;
}

/// Confirms every height at once.
pub(crate) struct Immediate;

impl<I: Send> Confirmation<I> for Immediate {
    async fn push(&mut self, item: I, _: bool) -> Result<Vec<I>, Error> {
        Ok(vec![item])
    }

    fn flush(&mut self) -> Option<I> {
        None
    }
}
