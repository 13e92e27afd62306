//! Latest chain state, which supplements the registry's files.
//!
//! Keys are chain ids, not references, so that facts survive a reload. A fact that was never queried or answered is
//! absent; the files apply instead.

use std::collections::HashMap;
use std::sync::Arc;

use chain::U256;

use crate::model::{AssetRef, BridgeRef, ChainRef, ChannelRef};
use crate::snapshot::Registry;
use crate::wrapper::Pair;

/// Chain facts. The refresher writes them; planners read a copy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// Reason why a channel cannot be used, by (chain id, port, channel) of either end.
    pub closed: HashMap<(String, String, String), String>,
    /// By (L1's chain id, bridge id).
    pub bridges: HashMap<(String, u64), BridgeFacts>,
    /// ERC-20 behind a denomination, `0x…`, by (chain id, denom).
    pub contracts: HashMap<(String, String), String>,
    /// Whether a chain lets IBC packets call its ERC20Wrapper, or the L1 its swap adapter (`initia.ibchooks.v1`), by chain
    /// id.
    pub hooks: HashMap<String, bool>,
    /// Address of the swap adapter that a chain's list of hooks has, `0x` and 64 hex digits, by chain id.
    pub adapters: HashMap<String, String>,
    /// Whether a chain has the module of the packet forward middleware, by chain id.
    pub forwards: HashMap<String, bool>,
    /// Answers of an ERC20Wrapper about a local token, by (chain id, wrapper, local denomination), in the spelling of
    /// the files.
    pub wrappers: HashMap<(String, String, String), WrapperFacts>,
    /// US dollars for one whole token, a decimal number, by CoinGecko's name: from a price feed.
    pub prices: Arc<HashMap<String, String>>,
}

/// The zero address: no token.
const NO_TOKEN: &str = "0x0000000000000000000000000000000000000000";

/// Answers of an ERC20Wrapper about a local token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WrapperFacts {
    /// `remoteTokens` and `remoteDecimals`.
    Pair {
        /// `0x…`; zero if the wrapper has no such local token.
        remote: String,
        /// Decimals of the remote token.
        decimals: u8,
    },
    /// The answer of a contract that is no ERC20Wrapper, with the evidence.
    NotAWrapper(String),
}

/// State of a wrapper's pair according to the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PairState {
    /// The chain was not queried or did not answer: the files apply.
    Unknown,
    /// The contract has this pair.
    Confirmed,
    /// The contract does not have the pair: a call would convert another token, so no route uses the pair.
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
        if channel.paused.is_some() || self.closed.is_empty() {
            return channel.paused.as_deref();
        }
        let closed = |end: &crate::model::End| {
            let key = (registry[end.chain].id.clone(), end.port.clone(), end.channel.clone());
            self.closed.get(&key).map(String::as_str)
        };
        closed(&channel.a).or_else(|| closed(&channel.b))
    }

    /// Reason why a bridge must not be used now.
    pub fn stopped<'a>(&'a self, registry: &'a Registry, bridge: BridgeRef) -> Option<&'a str> {
        let disabled = self.bridge_facts(registry, bridge).is_some_and(|facts| facts.disabled);
        registry[bridge].paused.as_deref().or_else(|| disabled.then_some("the bridge is disabled on the L1"))
    }

    /// Seconds from an output to the time when a withdrawal can be claimed, and seconds between two outputs.
    pub fn periods(&self, registry: &Registry, bridge: BridgeRef) -> (u64, u64) {
        let (files, facts) = (&registry[bridge], self.bridge_facts(registry, bridge));
        (
            facts.and_then(|facts| facts.finalization_seconds).unwrap_or(files.finalization_seconds),
            facts.and_then(|facts| facts.submission_seconds).unwrap_or(files.submission_seconds),
        )
    }

    /// The channel that carries transfers of a migrated L1 denomination instead of the bridge; `None` if not migrated.
    pub fn migrated(&self, registry: &Registry, bridge: BridgeRef, l1_denom: &str) -> Option<ChannelRef> {
        if let Some(fact) = self.bridge_facts(registry, bridge).and_then(|facts| facts.migrated.get(l1_denom))
        {
            let (port, channel) = fact.as_ref()?;
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
        // Fast path: the planner checks each pair, usually before any fact is known.
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

    /// Address of a chain's swap adapter: from the files, else from the chain.
    pub fn adapter<'a>(&'a self, registry: &'a Registry, chain: ChainRef) -> Option<&'a str> {
        let found = || self.adapters.get(&registry[chain].id).map(String::as_str);
        registry.adapter(chain).or_else(found)
    }

    /// Whether packets may call the wrapper of a chain, or the swap adapter of the L1; false if unknown, because chains
    /// refuse by default.
    pub fn hooks_allowed(&self, registry: &Registry, chain: ChainRef) -> bool {
        self.hooks.get(&registry[chain].id).copied().unwrap_or(false)
    }

    /// Whether a chain forwards packets: by the operator, else by the chain, else by the list of the registry.
    pub fn forwards(&self, registry: &Registry, chain: ChainRef) -> bool {
        let chain = &registry[chain];
        let answer = self.forwards.get(&chain.id).filter(|_| !chain.forwards_given);
        answer.copied().unwrap_or(chain.forwards)
    }

    fn bridge_facts(&self, registry: &Registry, bridge: BridgeRef) -> Option<&BridgeFacts> {
        let bridge = &registry[bridge];
        self.bridges.get(&(registry[bridge.l1].id.clone(), bridge.id))
    }
}

fn key(registry: &Registry, asset: AssetRef) -> (String, String) {
    let asset = &registry[asset];
    (registry[asset.chain].id.clone(), asset.denom.clone())
}
