//! The block nearest to a time.

use crate::evm::{Error, EvmView};

/// On which side of a time a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closest {
    /// The last block that is not later.
    Before,
    /// The first block that is not earlier.
    After,
}

impl EvmView<'_> {
    /// The height of the block that is closest to `timestamp`, seconds since 1970 UTC, on one side of it; `None` if there is none.
    pub fn height_at(&self, timestamp: u64, side: Closest) -> Result<Option<u64>, Error> {
        let (first, head) = (self.first(), self.head);
        // The first height whose block is later than the time (before), or not earlier than it (after).
        let (mut low, mut high) = (first, head + 1);
        while low < high {
            let middle = low.midpoint(high);
            let Some(block) = self.stored(middle)? else { return Ok(None) };
            let time = schema::evm_block::seconds(&block);
            let is_behind = match side {
                Closest::Before => time > timestamp,
                Closest::After => time >= timestamp,
            };
            if is_behind { high = middle } else { low = middle + 1 }
        }
        Ok(match side {
            Closest::Before => (low > first).then(|| low - 1),
            Closest::After => (low <= head).then_some(low),
        })
    }

    /// The time of a block in seconds; `None` above the head.
    pub fn timestamp(&self, height: u64) -> Result<Option<u64>, Error> {
        Ok(self.stored(height)?.map(|block| schema::evm_block::seconds(&block)))
    }
}
