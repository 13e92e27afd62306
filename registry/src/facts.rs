//! What the chains said last, beside what the files say.
//!
//! Everything is named by ids of chains, not by references, so that it outlives a reload. What was never asked, or never
//! answered, is not there: then the files hold.

use std::collections::HashMap;

use chain::U256;

use crate::model::{AssetRef, BridgeRef, ChainRef, ChannelRef};
use crate::snapshot::Registry;

/// Answers of nodes. Written by whoever asks them; a planner reads a copy.
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
}

/// What the L1 and the rollup said of a bridge.
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

/// What sending an OFT costs and brings, as its contract says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quote {
    /// Base units of the token that arrive, in decimals of the *sending* chain.
    pub received: U256,
    /// Base units of the sending chain's coin.
    pub native_fee: U256,
}

impl Facts {
    /// Why a channel must not be used now: the operator's reason, or what a chain said of either end.
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

    /// The ERC-20 behind an asset, `0x…`: the files' word, else the chain's.
    pub fn contract<'a>(&'a self, registry: &'a Registry, asset: AssetRef) -> Option<&'a str> {
        let asset = &registry[asset];
        let key = (registry[asset.chain].id.clone(), asset.denom.clone());
        asset.contract.as_deref().or_else(|| self.contracts.get(&key).map(String::as_str))
    }

    /// Whether packets may call the wrapper of a chain; not if nobody knows, because chains refuse by default.
    pub fn hooks_allowed(&self, registry: &Registry, chain: ChainRef) -> bool {
        self.hooks.get(&registry[chain].id).copied().unwrap_or(false)
    }

    fn of(&self, registry: &Registry, bridge: BridgeRef) -> Option<&BridgeFacts> {
        let bridge = &registry[bridge];
        self.bridges.get(&(registry[bridge.l1].id.clone(), bridge.id))
    }
}
