//! Words of the public formats with a meaning, in any case.
//!
//! A word that none of the formats has is neutral, as if it was not there, and reported once: a word that a registry
//! renames must close no channel and remove no chain.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::problem::{Place, Problem};
use chain::Vm;

/// The words of a member, with their meaning.
pub(super) struct Words<T: 'static> {
    member: &'static str,
    /// What a word that is unknown counts as.
    neutral: &'static str,
    known: &'static [(&'static str, T)],
}

/// Whether a channel can be used. The lower-case words are those of the cosmos chain registry before 2025-10-15.
pub(super) const CHANNEL_STATUS: Words<bool> = Words {
    member: "tags.status",
    neutral: "the channel counts as open",
    known: &[
        ("ACTIVE", true),
        ("live", true),
        ("INACTIVE", false),
        ("CLOSED", false),
        ("PENDING", false),
        ("killed", false),
        ("upcoming", false),
    ],
};

/// State of a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ChainStatus {
    Live,
    Upcoming,
    Killed,
}

pub(super) const CHAIN_STATUS: Words<ChainStatus> = Words {
    member: "status",
    neutral: "the chain counts as live",
    known: &[
        ("live", ChainStatus::Live),
        ("upcoming", ChainStatus::Upcoming),
        ("killed", ChainStatus::Killed),
    ],
};

/// Whether the tokens of a chain are worth nothing.
pub(super) const NETWORK_TYPE: Words<bool> = Words {
    member: "network_type",
    neutral: "the chain counts as one of the main network",
    known: &[("mainnet", false), ("testnet", true), ("devnet", true)],
};

/// Whether it is a chain of the Cosmos SDK. The other words are the namespaces of CAIP-2.
pub(super) const CHAIN_TYPE: Words<bool> = Words {
    member: "chain_type",
    neutral: "the chain counts as one of the Cosmos SDK",
    known: &[
        ("cosmos", true),
        ("eip155", false),
        ("bip122", false),
        ("polkadot", false),
        ("solana", false),
        ("algorand", false),
        ("arweave", false),
        ("ergo", false),
        ("fil", false),
        ("hedera", false),
        ("monero", false),
        ("reef", false),
        ("stacks", false),
        ("starknet", false),
        ("stellar", false),
        ("tezos", false),
        ("vechain", false),
        ("waves", false),
        ("xrpl", false),
        ("unknown", false),
    ],
};

/// The virtual machine of a rollup.
pub(super) const ROLLUP_TYPE: Words<Vm> = Words {
    member: "metadata.minitia.type",
    neutral: "the chain counts as one without a virtual machine",
    known: &[("minimove", Vm::Move), ("miniwasm", Vm::Wasm), ("minievm", Vm::Evm)],
};

/// A step in the traces of an asset.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Ibc,
    Op,
    Wrapped,
    /// A step that no route takes.
    Other,
}

pub(super) const TRACE_TYPE: Words<Step> = Words {
    member: "traces.type",
    neutral: "the asset counts as one that originates on its chain",
    known: &[
        ("ibc", Step::Ibc),
        ("ibc-cw20", Step::Ibc),
        ("op", Step::Op),
        ("wrapped", Step::Wrapped),
        ("ibc-bridge", Step::Other),
        ("bridge", Step::Other),
        ("liquid-stake", Step::Other),
        ("synthetic", Step::Other),
        ("additional-mintage", Step::Other),
        ("test-mintage", Step::Other),
        ("legacy-mintage", Step::Other),
    ],
};

/// Whether the version of a channel is that of ICS-20, also within the JSON of a channel that pays relayers, and in the
/// spelling `ics-20`.
pub(super) fn is_ics20(version: &str) -> bool {
    version.to_ascii_lowercase().replace('-', "").contains("ics20")
}

/// What an unknown version of a channel on the port of the transfer module counts as.
pub(super) const OF_ICS20: &str = "the channel counts as one of ICS-20, because only that has its port";

/// The unknown words that were found, with their number and the first place.
#[derive(Default)]
pub(super) struct UnknownWords(BTreeMap<(&'static str, String), (usize, &'static str, Place)>);

/// Unknown words that are kept apart; a file may have any number of them.
const MAX_WORDS: usize = 200;

impl UnknownWords {
    /// The meaning of a word; `None` if it is absent or unknown.
    pub(super) fn meaning<T: Copy>(&mut self, words: &Words<T>, value: &Value, place: &Place) -> Option<T> {
        let word = value.as_str()?.trim();
        let known = words.known.iter().find(|(known, _)| known.eq_ignore_ascii_case(word));
        if known.is_none() {
            self.add(words.member, word, words.neutral, place);
        }
        known.map(|(_, meaning)| *meaning)
    }

    /// Records an unknown word.
    pub(super) fn add(&mut self, member: &'static str, word: &str, neutral: &'static str, place: &Place) {
        let key = (member, chain::truncated(word, 64));
        if self.0.len() < MAX_WORDS || self.0.contains_key(&key) {
            self.0.entry(key).or_insert_with(|| (0, neutral, place.clone())).0 += 1;
        }
    }

    /// A warning for each.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        self.0.iter().map(|((member, word), (count, neutral, first))| {
            let what = format!("the word `{word}` is unknown, {count} times, first in {first}: {neutral}");
            Place::about(*member).warning(what)
        })
    }
}
