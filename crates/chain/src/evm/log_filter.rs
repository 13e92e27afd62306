//! The filter of `eth_getLogs`, but for its range of blocks.

use super::Log;
use super::log::bytes;

/// Selects logs by contract and topics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFilter {
    addresses: Vec<[u8; 20]>,
    topics: Vec<Vec<[u8; 32]>>,
}

impl LogFilter {
    /// Logs of one of `addresses` (of any contract if there are none) that have at least as many topics as `topics` has places,
    /// and at each place one of the topics given (any if none are).
    pub fn new(mut addresses: Vec<[u8; 20]>, mut topics: Vec<Vec<[u8; 32]>>) -> Self {
        addresses.sort_unstable();
        addresses.dedup();
        for any in &mut topics {
            any.sort_unstable();
            any.dedup();
        }
        Self { addresses, topics }
    }

    /// The contracts, ascending; empty for any.
    pub fn addresses(&self) -> &[[u8; 20]] {
        &self.addresses
    }

    /// The topics of each place, ascending; empty for any.
    pub fn topics(&self) -> &[Vec<[u8; 32]>] {
        &self.topics
    }

    /// True if the filter selects `log`.
    pub fn matches(&self, log: &Log<'_>) -> bool {
        if log.topics.len() < self.topics.len() {
            return false;
        }
        let is_one_of = |any: &[[u8; 32]], topic: &str| {
            any.is_empty() || bytes(topic).is_some_and(|topic| any.binary_search(&topic).is_ok())
        };
        let of_address = self.addresses.is_empty()
            || bytes(&log.address).is_some_and(|address| self.addresses.binary_search(&address).is_ok());
        of_address && self.topics.iter().zip(&log.topics).all(|(any, topic)| is_one_of(any, topic))
    }
}
