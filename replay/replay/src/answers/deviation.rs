//! Deviations: false, missing, pruned or changed answers of a faulty node.
//!
//! # Invariants
//!
//! A deviation changes only the replies that its comment names.
//! - Without a deviation, answers are those of the recording.

/// One way in which answers deviate. Each comment names the affected calls and the change; all other replies are
/// correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// `eth_getBlockReceipts` and calls by an EVM hash: `null`, as while the EVM index lags.
    NullReceipts,
    /// `/block_results` of the tip: not available yet, as for a moment in every block.
    NoResults,
    /// `/block_results`: not kept, as with `discard_abci_responses = true`.
    DiscardAbciResponses,
    /// `debug_…` of the JSON-RPC: not served, as without that namespace.
    NoTracing,
    /// Blocks and state below the deviation's height: pruned.
    Pruned,
    /// Receipts and EVM blocks below the deviation's height: pruned, as with `evm.indexer-retain-height`.
    PrunedReceipts,
    /// Receipts and EVM blocks from the deviation's height on: other EVM block hashes, as after a node has rebuilt its EVM
    /// index, which minievm does when it was killed.
    OtherBlockHashes,
    /// `/block`: one bit of one transaction is flipped, or one transaction is omitted.
    FalseTxs,
    /// `/block` and `/header`: the header's time, proposer or `app_hash` is changed.
    FalseHeader,
    /// As [`Deviation::FalseHeader`], with the hash of the false header in `block_id.hash`.
    FalseHeaderRehashed,
    /// `/block_results`: the code, data or used gas of one result is changed.
    FalseResults,
    /// `/block_results`: the value of one attribute of an event is changed.
    FalseEvents,
    /// `eth_getBlockReceipts`: one receipt has another status, gas or hash, or one log less, or is omitted.
    FalseReceipts,
    /// `/block`, `/block_results`, `/header`, REST blocks and their transactions, EVM blocks, receipts and traces by
    /// number: the reply for another shown height.
    OtherHeight,
    /// `/status`, `/block`, `/header` and REST's `node_info`: another chain's id; the header's hash matches it.
    WrongChain,
    /// Searches: not served, as by a provider that blocks them.
    NoSearch,
    /// Searches and transactions by hash: no index, as with `indexer = "null"`.
    NoIndex,
    /// The same: the index lacks the transactions below the deviation's height.
    PrunedIndex,
    /// Searches: refused unless the query bounds the height to at most this number of blocks.
    SearchRange,
    /// `/header` of the tip: later by this number of seconds.
    LateTip,
    /// `/withdrawal/…` of the executor: not seen.
    UnseenWithdrawals,
}

impl Deviation {
    /// Every deviation with its name on the command line.
    pub(crate) const ALL: [(&str, Self); 21] = [
        ("null-receipts", Self::NullReceipts),
        ("no-results", Self::NoResults),
        ("discard-abci-responses", Self::DiscardAbciResponses),
        ("no-tracing", Self::NoTracing),
        ("pruned", Self::Pruned),
        ("pruned-receipts", Self::PrunedReceipts),
        ("block-hashes", Self::OtherBlockHashes),
        ("lie-txs", Self::FalseTxs),
        ("lie-header", Self::FalseHeader),
        ("lie-header-rehashed", Self::FalseHeaderRehashed),
        ("lie-results", Self::FalseResults),
        ("lie-events", Self::FalseEvents),
        ("lie-receipts", Self::FalseReceipts),
        ("other-height", Self::OtherHeight),
        ("wrong-chain", Self::WrongChain),
        ("no-search", Self::NoSearch),
        ("no-index", Self::NoIndex),
        ("pruned-index", Self::PrunedIndex),
        ("search-range", Self::SearchRange),
        ("late-tip", Self::LateTip),
        ("unseen-withdrawals", Self::UnseenWithdrawals),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        // Every variant is in the table; a test checks it.
        Self::ALL.iter().find(|(_, deviation)| *deviation == self).map_or("", |(name, _)| name)
    }

    /// Whether it has a number, written `name=number`.
    pub(crate) fn has_number(self) -> bool {
        use Deviation::{LateTip, OtherBlockHashes, Pruned, PrunedIndex, PrunedReceipts, SearchRange};
        matches!(self, Pruned | PrunedReceipts | PrunedIndex | OtherBlockHashes | SearchRange | LateTip)
    }
}

/// The deviations of one reply, each with its number or with the random number that selects the change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deviations {
    numbers: [u64; Deviation::ALL.len()],
    /// One bit for each deviation that is set: small enough to be passed by value.
    given: u32,
}

impl Deviations {
    /// Adds a deviation; of two with a number the higher one is kept, of two without the first.
    pub fn add(&mut self, deviation: Deviation, number: u64) {
        self.numbers[deviation as usize] = match self.get(deviation) {
            Some(before) if deviation.has_number() => before.max(number),
            Some(before) => before,
            None => number,
        };
        self.given |= 1 << deviation as u32;
    }

    /// The number of a deviation, if it is set.
    pub fn get(&self, deviation: Deviation) -> Option<u64> {
        (self.given & 1 << deviation as u32 != 0).then(|| self.numbers[deviation as usize])
    }

    /// Whether a deviation is set.
    pub fn has(&self, deviation: Deviation) -> bool {
        self.get(deviation).is_some()
    }
}

impl<const N: usize> From<[(Deviation, u64); N]> for Deviations {
    fn from(deviations: [(Deviation, u64); N]) -> Self {
        let mut all = Self::default();
        for (deviation, number) in deviations {
            all.add(deviation, number);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_deviation_has_its_own_name_and_place() {
        for (place, (name, deviation)) in Deviation::ALL.into_iter().enumerate() {
            assert_eq!((deviation as usize, deviation.name()), (place, name));
        }
    }

    #[test]
    fn of_two_heights_the_higher_is_kept_and_of_two_numbers_the_first() {
        let deviations = Deviations::from([
            (Deviation::Pruned, 9),
            (Deviation::Pruned, 4),
            (Deviation::FalseTxs, 4),
            (Deviation::FalseTxs, 9),
        ]);
        assert_eq!(
            (deviations.get(Deviation::Pruned), deviations.get(Deviation::FalseTxs)),
            (Some(9), Some(4))
        );
        assert!(!deviations.has(Deviation::FalseEvents));
    }
}
