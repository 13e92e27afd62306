//! Latest chain state, which supplements the registry's files.
//!
//! Keys are chain ids, not references, so that facts survive a reload. A fact that was never queried or answered is
//! absent; then the files apply.

use std::collections::HashMap;

use chain::U256;

use crate::model::{AssetRef, BridgeRef, ChainRef, ChannelRef};
use crate::snapshot::Registry;
use crate::wrapper::Pair;

/// Chain facts. The refresher writes them; planners read a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Why a channel cannot be used, by (chain id, port, channel) of either end.
    pub closed: HashMap<(String, String, String), String>,
    /// By (L1's chain id, bridge id).
    pub bridges: HashMap<(String, u64), BridgeFacts>,
    /// ERC-20 behind a denomination, `0x…`, by (chain id, denom).
    pub contracts: HashMap<(String, String), String>,
    /// Whether a chain lets IBC packets call its ERC20Wrapper (`initia.ibchooks.v1`), by chain id.
    pub hooks: HashMap<String, bool>,
    /// What an ERC20Wrapper answered about a local token, by (chain id, wrapper, local denomination), as the files
    /// spell them.
    pub wrappers: HashMap<(String, String, String), WrapperFacts>,
}

/// The address that stands for no token.
const NO_TOKEN: &str = "0x0000000000000000000000000000000000000000";

/// Answers of an ERC20Wrapper about a local token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrapperFacts {
    /// `remoteTokens` and `remoteDecimals`.
    Pair {
        /// `0x…`; zero if the wrapper has no such local token.
        remote: String,
        /// Of the remote token.
        decimals: u8,
    },
    /// Something that no ERC20Wrapper answers, and why that is known.
    NotAWrapper(String),
}

/// State of a wrapper's pair according to the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairState {
    /// The chain was not asked or did not answer: the files hold.
    Unknown,
    /// The contract has this pair.
    Confirmed,
    /// It has not: a call would convert another token, so no route uses the pair.
    Contradicted(String),
}

/// Facts of L1 and rollup about a bridge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BridgeFacts {
    /// Deposits are refused.
    pub disabled: bool,
    /// `finalization_period` in seconds.
    pub finalization_seconds: Option<u64>,
    /// `submission_interval` in seconds.
    pub submission_seconds: Option<u64>,
    /// By L1 denomination: the L1's end (port, channel) that its transfers go over; `None` if it is not migrated.
    pub migrated: HashMap<String, Option<(String, String)>>,
}

/// Quote of an OFT contract: fee and amount received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    /// Base units of the token that arrive, in decimals of the *sending* chain.
    pub received: U256,
    /// Base units of the sending chain's coin.
    pub native_fee: U256,
}

impl Facts {
    /// Reason why a channel is paused, from the operator or from the state of either end.
    pub fn paused<'a>(&'a self, registry: &'a Registry, channel: ChannelRef) -> Option<&'a str> {
        let channel = &registry[channel];
        let said = |end: &crate::model::End| {
            let key = (registry[end.chain].id.clone(), end.port.clone(), end.channel.clone());
            self.closed.get(&key).map(String::as_str)
        };
        channel.paused.as_deref().or_else(|| said(&channel.a)).or_else(|| said(&channel.b))
    }

    /// Why a bridge must not be used now.
    pub fn stopped<'a>(&'a self, registry: &'a Registry, bridge: BridgeRef) -> Option<&'a str> {
        let disabled = self.of(registry, bridge).is_some_and(|facts| facts.disabled);
        registry[bridge].paused.as_deref().or_else(|| disabled.then_some("the bridge is disabled on the L1"))
    }

    /// How long after its output a withdrawal can be claimed, and within what time there is an output; seconds.
    pub fn periods(&self, registry: &Registry, bridge: BridgeRef) -> (u64, u64) {
        let (files, facts) = (&registry[bridge], self.of(registry, bridge));
        (
            facts.and_then(|facts| facts.finalization_seconds).unwrap_or(files.finalization_seconds),
            facts.and_then(|facts| facts.submission_seconds).unwrap_or(files.submission_seconds),
        )
    }

    /// The channel that transfers of an L1 denomination go over instead of the bridge, if it was migrated.
    pub fn migrated(&self, registry: &Registry, bridge: BridgeRef, l1_denom: &str) -> Option<ChannelRef> {
        if let Some(said) = self.of(registry, bridge).and_then(|facts| facts.migrated.get(l1_denom)) {
            let (port, channel) = said.as_ref()?;
            return registry.channel_at(registry[bridge].l1, port, channel);
        }
        registry[bridge].migrated.iter().find(|(denom, _)| denom == l1_denom).map(|(_, channel)| *channel)
    }

    /// The ERC-20 behind an asset, `0x…`: from the files, else from the chain.
    pub fn contract<'a>(&'a self, registry: &'a Registry, asset: AssetRef) -> Option<&'a str> {
        let chain = || self.contracts.get(&key(registry, asset)).map(String::as_str);
        registry[asset].contract.as_deref().or_else(chain)
    }

    /// Whether a chain confirms a wrapper's pair.
    pub fn pair(&self, registry: &Registry, pair: &Pair<'_>) -> PairState {
        // Most planners ask before anything was learnt, and for each pair.
        if self.wrappers.is_empty() && self.contracts.is_empty() {
            return PairState::Unknown;
        }
        for asset in [pair.remote, pair.local] {
            let (files, chain) =
                (registry[asset].contract.as_deref(), self.contracts.get(&key(registry, asset)));
            if let (Some(files), Some(chain)) = (files, chain)
                && !files.eq_ignore_ascii_case(chain)
            {
                let denom = &registry[asset].denom;
                return PairState::Contradicted(format!(
                    "the chain says that the ERC-20 of {denom} is {chain}, the registry {files}"
                ));
            }
        }
        let (local, remote) = (&registry[pair.local], &registry[pair.remote]);
        let contract = pair.contract;
        let (found, decimals) = match self.wrappers.get(&Self::wrapper_key(registry, pair)) {
            None => return PairState::Unknown,
            Some(WrapperFacts::NotAWrapper(why)) => {
                return PairState::Contradicted(format!("{contract} is no ERC20Wrapper: {why}"));
            }
            Some(WrapperFacts::Pair { remote, decimals }) => (remote, *decimals),
        };
        let expected = self.contract(registry, pair.remote);
        let same = expected.map_or(found != NO_TOKEN, |expected| found.eq_ignore_ascii_case(expected));
        if !same || decimals != remote.decimals {
            return PairState::Contradicted(format!(
                "the wrapper {contract} says that {} stands for {found} with {decimals} decimals, the registry says for {} \
                 ({}) with {}",
                local.denom,
                remote.denom,
                expected.unwrap_or("unknown contract"),
                remote.decimals
            ));
        }
        if expected.is_some() { PairState::Confirmed } else { PairState::Unknown }
    }

    /// The key of a pair in [`Facts::wrappers`].
    pub fn wrapper_key(registry: &Registry, pair: &Pair<'_>) -> (String, String, String) {
        let (chain, local) = key(registry, pair.local);
        (chain, pair.contract.to_owned(), local)
    }

    /// Whether packets may call the wrapper of a chain; false if unknown, because chains refuse by default.
    pub fn hooks_allowed(&self, registry: &Registry, chain: ChainRef) -> bool {
        self.hooks.get(&registry[chain].id).copied().unwrap_or(false)
    }

    fn of(&self, registry: &Registry, bridge: BridgeRef) -> Option<&BridgeFacts> {
        let bridge = &registry[bridge];
        self.bridges.get(&(registry[bridge.l1].id.clone(), bridge.id))
    }
}

fn key(registry: &Registry, asset: AssetRef) -> (String, String) {
    let asset = &registry[asset];
    (registry[asset.chain].id.clone(), asset.denom.clone())
}
