//! Drafts: parsed parts before assembly, which reference each other by name and may be incomplete.
//!
//! Every layout is parsed into drafts, so that several files can describe one part.
//!
//! # Invariants
//!
//! * A draft records its file position and the kind of file, which decide its precedence and the handling of its
//!   errors.

use chain::{U256, Vm};

use crate::model::{BridgeKind, ChainKind, FeeAsset, LegKind, Terms};
use crate::problem::Place;

/// Kind of file, in order of precedence (`router-mechanics.md` §1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// Native format, written by the operator.
    Own,
    /// A channel that both chains of the Initia registry list.
    Paired,
    /// The Initia registry.
    Initia,
    /// The cosmos chain registry.
    Cosmos,
    /// Derived from an asset's trace.
    Implied,
}

/// A draft with its file position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Located<T> {
    pub(crate) source: Source,
    pub(crate) place: Place,
    pub(crate) part: T,
}

/// Drafts of several files.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Draft {
    pub(crate) chains: Vec<Located<ChainDraft>>,
    pub(crate) channels: Vec<Located<ChannelDraft>>,
    pub(crate) bridges: Vec<Located<BridgeDraft>>,
    pub(crate) assets: Vec<Located<AssetDraft>>,
    pub(crate) ofts: Vec<Located<OftDraft>>,
    pub(crate) venues: Vec<Located<VenueDraft>>,
    pub(crate) bridge_logos: Vec<Located<(BridgeKind, String)>>,
}

impl Draft {
    /// Appends the drafts of other files.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.chains.append(&mut other.chains);
        self.channels.append(&mut other.channels);
        self.bridges.append(&mut other.bridges);
        self.assets.append(&mut other.assets);
        self.ofts.append(&mut other.ofts);
        self.venues.append(&mut other.venues);
        self.bridge_logos.append(&mut other.bridge_logos);
    }
}

/// Makes `over`: what is said here, and below it what is only said there.
macro_rules! layered {
    ($draft:ident: $($optional:ident),+ $(,)?) => {
        impl $draft {
            /// What is said here, and what only `below` says.
            pub(crate) fn over(self, below: Self) -> Self {
                Self { $($optional: self.$optional.or(below.$optional),)+ ..self }
            }
        }
    };
}

/// A chain; see [`crate::Chain`].
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ChainDraft {
    pub(crate) id: String,
    pub(crate) name: Option<String>,
    pub(crate) pretty_name: Option<String>,
    pub(crate) kind: Option<ChainKind>,
    pub(crate) vm: Option<Vm>,
    pub(crate) initia: Option<bool>,
    pub(crate) l1: Option<bool>,
    pub(crate) bech32_prefix: Option<String>,
    pub(crate) testnet: Option<bool>,
    pub(crate) hidden: Option<bool>,
    pub(crate) forwards: Option<bool>,
    pub(crate) logo_uri: Option<String>,
    pub(crate) explorer_tx: Option<String>,
    pub(crate) rpc: Option<Vec<String>>,
    pub(crate) rest: Option<Vec<String>>,
    pub(crate) json_rpc: Option<Vec<String>>,
    pub(crate) executor: Option<Vec<String>>,
    pub(crate) secret: Option<Vec<String>>,
    pub(crate) fee_assets: Option<Vec<FeeAsset>>,
    pub(crate) native: Option<NativeDraft>,
    pub(crate) layer_zero_eid: Option<u32>,
    pub(crate) layer_zero_endpoint: Option<String>,
    pub(crate) confirmations: Option<u32>,
    pub(crate) block_seconds: Option<u32>,
}

layered!(ChainDraft: name, pretty_name, kind, vm, initia, l1, bech32_prefix, testnet, hidden, forwards, logo_uri,
    explorer_tx, rpc, rest, json_rpc, executor, secret, fee_assets, native, layer_zero_eid, layer_zero_endpoint, confirmations,
    block_seconds);

/// The coin of an EVM chain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NativeDraft {
    pub(crate) name: String,
    pub(crate) symbol: String,
    pub(crate) decimals: u8,
    pub(crate) denom: Option<String>,
}

/// One end of a channel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EndDraft {
    pub(crate) chain: String,
    pub(crate) port: String,
    pub(crate) channel: String,
}

/// A channel; without `b`, another draft describes the other end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ChannelDraft {
    pub(crate) a: EndDraft,
    pub(crate) b: Option<EndDraft>,
    pub(crate) paused: Option<String>,
    pub(crate) seconds: Option<u32>,
}

layered!(ChannelDraft: b, paused, seconds);

/// A bridge, by its rollup.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct BridgeDraft {
    pub(crate) l2: String,
    pub(crate) id: Option<u64>,
    pub(crate) l1: Option<String>,
    pub(crate) paused: Option<String>,
    pub(crate) deposit_seconds: Option<u32>,
    pub(crate) finalization_seconds: Option<u64>,
    pub(crate) submission_seconds: Option<u64>,
    /// L1 denomination, port, channel.
    pub(crate) migrated: Option<Vec<(String, String, String)>>,
}

layered!(BridgeDraft: id, l1, paused, deposit_seconds, finalization_seconds, submission_seconds, migrated);

/// How an asset came to its chain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OriginDraft {
    /// Over the channel with this end here; `from` is a denomination or a path on the other chain.
    Ibc { port: String, channel: String, from: String },
    /// By the bridge of this rollup.
    Bridged { from: String },
    /// In the wrapper of this chain.
    Wrapped { contract: String, from: String },
}

/// An asset.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AssetDraft {
    pub(crate) chain: String,
    /// May be missing where it can be computed.
    pub(crate) denom: Option<String>,
    /// The full ICS-20 path: of a voucher whose other chain is not known, or what holds if its origin is not.
    pub(crate) path: Option<String>,
    pub(crate) symbol: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) decimals: Option<u8>,
    pub(crate) contract: Option<String>,
    pub(crate) logo_uri: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) coingecko_id: Option<String>,
    pub(crate) price_usd: Option<String>,
    pub(crate) hidden: Option<bool>,
    pub(crate) origin: Option<OriginDraft>,
    pub(crate) terms: Option<Terms>,
}

layered!(AssetDraft: denom, path, symbol, name, decimals, contract, logo_uri, description, coingecko_id, price_usd, hidden,
    origin, terms);

/// A group of tokens that LayerZero connects.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OftDraft {
    pub(crate) symbol: String,
    pub(crate) legs: Vec<LegDraft>,
}

/// One chain's end of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LegDraft {
    pub(crate) place: Place,
    pub(crate) chain: String,
    pub(crate) denom: String,
    pub(crate) kind: LegKind,
    pub(crate) contract: String,
    pub(crate) eid: Option<u32>,
    pub(crate) shared_decimals: u8,
    pub(crate) options: String,
    pub(crate) messaging_fee: Option<U256>,
    pub(crate) terms: Terms,
}

/// A venue.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VenueDraft {
    pub(crate) name: String,
    pub(crate) chain: String,
    pub(crate) logo_uri: Option<String>,
}
