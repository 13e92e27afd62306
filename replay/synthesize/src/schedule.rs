//! The schedule of the chain: heights, their numbers of transactions and their times, in closed form.
//!
//! The sizes of blocks repeat every ten heights, of which three are empty.

use crate::Error;

/// Heights after which the sizes repeat.
const PERIOD: usize = 10;

/// Sizes of blocks; three of ten blocks are empty in each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BlockSizes {
    /// 1 to 4 transactions.
    Small,
    /// 100 transactions.
    #[default]
    Medium,
    /// 5,000 transactions.
    Large,
}

impl BlockSizes {
    fn pattern(self) -> [u64; PERIOD] {
        let all = |n| [n, n, 0, n, n, 0, n, n, 0, n];
        match self {
            Self::Small => [1, 4, 0, 2, 3, 0, 1, 4, 0, 2],
            Self::Medium => all(100),
            Self::Large => all(5_000),
        }
    }
}

impl std::str::FromStr for BlockSizes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "0-4" => Ok(Self::Small),
            "100" => Ok(Self::Medium),
            "5000" => Ok(Self::Large),
            other => Err(Error::BlockSizes(other.to_owned())),
        }
    }
}

/// Heights from `first` to [`Schedule::last`] with `txs` transactions in all.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) first: u64,
    pub(crate) txs: u64,
    /// Transactions of a period before each of its heights, and of all.
    before: [u64; PERIOD + 1],
}

impl Schedule {
    pub(crate) fn new(first: u64, txs: u64, sizes: BlockSizes) -> Self {
        let mut before = [0; PERIOD + 1];
        for (place, size) in sizes.pattern().into_iter().enumerate() {
            before[place + 1] = before[place] + size;
        }
        Self { first, txs, before }
    }

    /// Transactions before a height; all of them above the last height.
    pub(crate) fn txs_before(&self, height: u64) -> u64 {
        let offset = height.saturating_sub(self.first);
        let place = usize::try_from(offset % PERIOD as u64).unwrap_or_default();
        (offset / PERIOD as u64 * self.before[PERIOD] + self.before[place]).min(self.txs)
    }

    /// Number of transactions of a height.
    pub(crate) fn size(&self, height: u64) -> u64 {
        self.txs_before(height + 1) - self.txs_before(height)
    }

    /// The height of the last transaction; the one before the first if there is none.
    pub(crate) fn last(&self) -> u64 {
        let (mut low, mut high) = (self.first - 1, self.first + (self.txs + 1) * PERIOD as u64);
        while low < high {
            let middle = u64::midpoint(low, high);
            if self.txs_before(middle + 1) < self.txs { low = middle + 1 } else { high = middle }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_of_the_heights_sum_to_the_transactions_and_three_of_ten_are_empty() {
        for (sizes, txs) in
            [(BlockSizes::Small, 1_003), (BlockSizes::Medium, 2_101), (BlockSizes::Large, 70_001)]
        {
            let schedule = Schedule::new(771, txs, sizes);
            let sized: Vec<u64> = (771..=schedule.last()).map(|height| schedule.size(height)).collect();
            assert_eq!(sized.iter().sum::<u64>(), txs, "{sizes:?}");
            assert!(sized.last() > Some(&0), "{sizes:?}: {sized:?}");
            assert_eq!(
                sized.iter().take(20).filter(|size| **size == 0).count(),
                if sized.len() >= 20 { 6 } else { sized.len() / 3 }
            );
            assert_eq!((schedule.size(schedule.last() + 1), schedule.txs_before(770)), (0, 0));
        }
        assert_eq!(Schedule::new(5, 0, BlockSizes::Medium).last(), 4);
    }
}
