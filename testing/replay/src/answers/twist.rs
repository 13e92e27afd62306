//! How the answers of a faulty or neglected node differ from those of a sound one.
//!
//! Must hold: a twist changes what its line says and nothing else; without one, answers are those of the recording.

/// One way of answering otherwise. The comments name what is changed; everything else is answered soundly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Twist {
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
    LieTxs,
    /// `/block` and `/header`: the header's time, proposer or `app_hash` is another.
    LieHeader,
    /// As [`Twist::LieHeader`], with the hash of the false header in `block_id.hash`.
    LieHeaderRehashed,
    /// `/block_results`: the code, data or used gas of one result is another.
    LieResults,
    /// `/block_results`: the value of one attribute of an event is another.
    LieEvents,
    /// `eth_getBlockReceipts`: one receipt has another status, gas or hash or a log less, or is left out.
    LieReceipts,
    /// `/block`, `/block_results`, `/header`, REST blocks and their transactions, EVM blocks, receipts and traces by
    /// number: that of another shown height.
    OtherHeight,
    /// `/status`, `/block`, `/header` and REST's `node_info`: another chain's id; the header's hash fits.
    WrongChain,
}

impl Twist {
    /// Every twist with its name on the command line.
    pub(crate) const ALL: [(&str, Self); 14] = [
        ("null-receipts", Self::NullReceipts),
        ("no-results", Self::NoResults),
        ("discard-abci-responses", Self::DiscardAbciResponses),
        ("no-tracing", Self::NoTracing),
        ("pruned", Self::Pruned),
        ("pruned-receipts", Self::PrunedReceipts),
        ("lie-txs", Self::LieTxs),
        ("lie-header", Self::LieHeader),
        ("lie-header-rehashed", Self::LieHeaderRehashed),
        ("lie-results", Self::LieResults),
        ("lie-events", Self::LieEvents),
        ("lie-receipts", Self::LieReceipts),
        ("other-height", Self::OtherHeight),
        ("wrong-chain", Self::WrongChain),
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        // Every variant is in the table: a test goes through it.
        Self::ALL.iter().find(|(_, twist)| *twist == self).map_or("", |(name, _)| name)
    }

    /// Whether it carries a height, written `name=height`.
    pub(crate) fn has_height(self) -> bool {
        matches!(self, Self::Pruned | Self::PrunedReceipts)
    }
}

/// The twists of one answer, each with its height, or with the number that decides what a lie is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Twists {
    numbers: [u64; Twist::ALL.len()],
    /// One bit for each twist that is there: small enough to be handed on by value.
    given: u16,
}

impl Twists {
    /// Adds a twist; of two with a height the higher one stays, of two without the first.
    pub fn add(&mut self, twist: Twist, number: u64) {
        self.numbers[twist as usize] = match self.get(twist) {
            Some(before) if twist.has_height() => before.max(number),
            Some(before) => before,
            None => number,
        };
        self.given |= 1 << twist as u16;
    }

    /// What came with a twist, if it is there.
    pub fn get(&self, twist: Twist) -> Option<u64> {
        (self.given & 1 << twist as u16 != 0).then(|| self.numbers[twist as usize])
    }

    /// Whether a twist is there.
    pub fn has(&self, twist: Twist) -> bool {
        self.get(twist).is_some()
    }
}

impl<const N: usize> From<[(Twist, u64); N]> for Twists {
    fn from(twists: [(Twist, u64); N]) -> Self {
        let mut all = Self::default();
        for (twist, number) in twists {
            all.add(twist, number);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_twist_has_a_name_and_a_place_of_its_own() {
        for (place, (name, twist)) in Twist::ALL.into_iter().enumerate() {
            assert_eq!((twist as usize, twist.name()), (place, name));
        }
    }

    #[test]
    fn of_two_prunings_the_higher_counts_and_of_two_lies_the_first() {
        let twists =
            Twists::from([(Twist::Pruned, 9), (Twist::Pruned, 4), (Twist::LieTxs, 4), (Twist::LieTxs, 9)]);
        assert_eq!((twists.get(Twist::Pruned), twists.get(Twist::LieTxs)), (Some(9), Some(4)));
        assert!(!twists.has(Twist::LieEvents));
    }
}
