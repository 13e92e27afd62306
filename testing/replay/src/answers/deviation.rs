//! Deviations: false, missing or pruned answers of a faulty node.
//!
//! # Invariants
//!
//! - A deviation changes what its comment states and nothing else.
//! - Without a deviation, answers are those of the recording.

/// One way in which answers deviate. Each comment names the affected calls and the change; all else is correct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deviation {
    /// `eth_getBlockReceipts` and what is asked by an EVM hash: `null`, as while the EVM index lags.
    NullReceipts,
    /// `/block_results` of the tip: not there yet, as for a moment in every block.
    NoResults,
    /// `/block_results`: not kept, as with `discard_abci_responses = true`.
    DiscardAbciResponses,
    /// `debug_…` of the JSON-RPC: not served, as without that namespace.
    NoTracing,
    /// What is below the height that it carries: pruned, blocks and state.
    Pruned,
    /// Receipts and EVM blocks below the height that it carries: pruned, as with `evm.indexer-retain-height`.
    PrunedReceipts,
    /// `/block`: one bit of one transaction is another, or one transaction is left out.
    FalseTxs,
    /// `/block` and `/header`: the header's time, proposer or `app_hash` is another.
    FalseHeader,
    /// As [`Deviation::FalseHeader`], with the hash of the false header in `block_id.hash`.
    FalseHeaderRehashed,
    /// `/block_results`: the code, data or used gas of one result is another.
    FalseResults,
    /// `/block_results`: the value of one attribute of an event is another.
    FalseEvents,
    /// `eth_getBlockReceipts`: one receipt has another status, gas or hash or a log less, or is left out.
    FalseReceipts,
    /// `/block`, `/block_results`, `/header`, REST blocks and their transactions, EVM blocks, receipts and traces by
    /// number: that of another shown height.
    OtherHeight,
    /// `/status`, `/block`, `/header` and REST's `node_info`: another chain's id; the header's hash fits.
    WrongChain,
}

impl Deviation {
    /// Every deviation with its name on the command line.
    pub(crate) const ALL: [(&str, Self); 14] = [
        ("null-receipts", Self::NullReceipts),
        ("no-results", Self::NoResults),
        ("discard-abci-responses", Self::DiscardAbciResponses),
        ("no-tracing", Self::NoTracing),
        ("pruned", Self::Pruned),
        ("pruned-receipts", Self::PrunedReceipts),
        ("lie-txs", Self::FalseTxs),
        ("lie-header", Self::FalseHeader),
        ("lie-header-rehashed", Self::FalseHeaderRehashed),
        ("lie-results", Self::FalseResults),
        ("lie-events", Self::FalseEvents),
        ("lie-receipts", Self::FalseReceipts),
        ("other-height", Self::OtherHeight),
        ("wrong-chain", Self::WrongChain),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        // Every variant is in the table: a test goes through it.
        Self::ALL.iter().find(|(_, deviation)| *deviation == self).map_or("", |(name, _)| name)
    }

    /// Whether it carries a height, written `name=height`.
    pub(crate) fn has_height(self) -> bool {
        matches!(self, Self::Pruned | Self::PrunedReceipts)
    }
}

/// The deviations of one answer, each with its height or with the random number that selects the change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Deviations {
    numbers: [u64; Deviation::ALL.len()],
    /// One bit for each deviation that is there: small enough to be handed on by value.
    given: u16,
}

impl Deviations {
    /// Adds a deviation; of two with a height the higher one stays, of two without the first.
    pub fn add(&mut self, deviation: Deviation, number: u64) {
        self.numbers[deviation as usize] = match self.get(deviation) {
            Some(before) if deviation.has_height() => before.max(number),
            Some(before) => before,
            None => number,
        };
        self.given |= 1 << deviation as u16;
    }

    /// What came with a deviation, if it is there.
    pub fn get(&self, deviation: Deviation) -> Option<u64> {
        (self.given & 1 << deviation as u16 != 0).then(|| self.numbers[deviation as usize])
    }

    /// Whether a deviation is there.
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
    fn every_deviation_has_a_name_and_a_place_of_its_own() {
        for (place, (name, deviation)) in Deviation::ALL.into_iter().enumerate() {
            assert_eq!((deviation as usize, deviation.name()), (place, name));
        }
    }

    #[test]
    fn of_two_prunings_the_higher_counts_and_of_two_lies_the_first() {
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
