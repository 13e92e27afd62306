//! Drafts: parsed parts before assembly, which reference each other by name and may be incomplete.
//!
//! Every layout is parsed into drafts, so that several files can describe one part. Their names are the keys of the
//! native format, from which serde deserializes them.
//!
//! # Invariants
//!
//! * A draft records its file position and the kind of file, which decide its precedence and the handling of its
//!   errors.

use chain::{U256, Vm};
use serde::{Deserialize, Deserializer};

use crate::denom::TRANSFER_PORT;
use crate::model::{BridgeKind, ChainKind, FeeAsset, LegKind, NativeCoin, Terms};
use crate::problem::Place;
use crate::serde_forms;

/// Kind of file, in order of precedence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Source {
    /// Native format, written by the operator.
    #[default]
    Native,
    /// A channel that both chains of the Initia registry list.
    Paired,
    /// The Initia registry.
    Initia,
    /// The cosmos chain registry.
    Cosmos,
    /// Derived from an asset's trace.
    Implied,
}

/// A draft with its file position, which is set after deserialization.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub(crate) struct Located<T> {
    #[serde(skip)]
    pub(crate) source: Source,
    #[serde(skip)]
    pub(crate) place: Place,
    pub(crate) part: T,
}

impl<T> Located<T> {
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Located<U> {
        Located { source: self.source, place: self.place, part: change(self.part) }
    }
}

/// Drafts of one or several files.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Draft {
    pub(crate) import: Option<Located<Import>>,
    pub(crate) chain: Vec<Located<ChainDraft>>,
    pub(crate) channel: Vec<Located<ChannelDraft>>,
    pub(crate) bridge: Vec<Located<BridgeDraft>>,
    pub(crate) asset: Vec<Located<AssetDraft>>,
    pub(crate) oft: Vec<Located<OftDraft>>,
    pub(crate) venue: Vec<Located<VenueDraft>>,
    pub(crate) bridge_kind: Vec<Located<BridgeKindDraft>>,
}

impl Draft {
    /// Appends the drafts of another file.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.import = self.import.take().or(other.import);
        self.chain.append(&mut other.chain);
        self.channel.append(&mut other.channel);
        self.bridge.append(&mut other.bridge);
        self.asset.append(&mut other.asset);
        self.oft.append(&mut other.oft);
        self.venue.append(&mut other.venue);
        self.bridge_kind.append(&mut other.bridge_kind);
    }
}

/// Makes `over`: the keys of this draft, and those of `below` where this draft has none.
macro_rules! layered {
    ($draft:ident: $($optional:ident),+ $(; $($nested:ident),+)?) => {
        impl $draft {
            /// The keys of this draft, and those of `below` where this draft has none.
            #[allow(clippy::needless_update, reason = "some drafts have optional keys only")]
            pub(crate) fn over(self, below: Self) -> Self {
                Self {
                    $($optional: self.$optional.or(below.$optional),)+
                    $($($nested: self.$nested.over(below.$nested),)+)?
                    ..self
                }
            }
        }
    };
}

/// Tables of the native format: an unknown key and an empty text are errors.
macro_rules! tables {
    ($($table:item)*) => {
        $(#[serde_with::apply(
            String => #[serde(deserialize_with = "serde_forms::text")],
            Option<String> => #[serde(default, deserialize_with = "serde_forms::text_option")],
        )]
        #[derive(Debug, Clone, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields)]
        $table)*
    };
}

tables! {
    /// Public registries to import.
    pub(crate) struct Import {
        /// Folder of an Initia registry.
        pub(crate) initia: Option<String>,
        /// Network of the Initia registry: one of [`NETWORKS`].
        #[serde(default, deserialize_with = "network")]
        #[serde_with(skip_apply)]
        pub(crate) network: Option<String>,
        /// Folder of a Cosmos chain registry.
        pub(crate) chain_registry: Option<String>,
        /// Names or ids of the chains to import; `None` imports all.
        pub(crate) chains: Option<Vec<String>>,
    }

    /// A chain; see [`crate::Chain`].
    #[derive(Default)]
    pub(crate) struct ChainDraft {
        pub(crate) id: String,
        pub(crate) name: Option<String>,
        pub(crate) pretty_name: Option<String>,
        pub(crate) kind: Option<ChainKind>,
        #[serde(default, deserialize_with = "serde_forms::vm")]
        pub(crate) vm: Option<Vm>,
        pub(crate) initia: Option<bool>,
        pub(crate) l1: Option<bool>,
        pub(crate) bech32_prefix: Option<String>,
        pub(crate) testnet: Option<bool>,
        pub(crate) hidden: Option<bool>,
        pub(crate) forwards: Option<bool>,
        pub(crate) logo_uri: Option<String>,
        pub(crate) explorer_tx: Option<String>,
        #[serde(default)]
        pub(crate) endpoints: EndpointsDraft,
        pub(crate) fee_assets: Option<Vec<FeeAsset>>,
        pub(crate) native: Option<NativeCoin>,
        #[serde(default)]
        pub(crate) layer_zero: LayerZeroDraft,
        pub(crate) confirmations: Option<u32>,
        pub(crate) block_seconds: Option<u32>,
    }

    /// Node addresses of a chain; see [`crate::Endpoints`].
    #[derive(Default)]
    pub(crate) struct EndpointsDraft {
        pub(crate) rpc: Option<Vec<String>>,
        pub(crate) rest: Option<Vec<String>>,
        pub(crate) json_rpc: Option<Vec<String>>,
        pub(crate) executor: Option<Vec<String>>,
        #[serde(skip)]
        pub(crate) secret: Option<Vec<String>>,
    }

    /// LayerZero on a chain.
    #[derive(Default)]
    pub(crate) struct LayerZeroDraft {
        pub(crate) eid: Option<u32>,
        pub(crate) endpoint: Option<String>,
    }

    /// A channel; without `b`, another draft describes the other end.
    pub(crate) struct ChannelDraft {
        pub(crate) a: EndDraft,
        pub(crate) b: Option<EndDraft>,
        pub(crate) paused: Option<String>,
        pub(crate) seconds: Option<u32>,
    }

    /// A bridge, by its rollup.
    #[derive(Default)]
    pub(crate) struct BridgeDraft {
        pub(crate) l2: String,
        pub(crate) id: Option<u64>,
        pub(crate) l1: Option<String>,
        pub(crate) paused: Option<String>,
        pub(crate) deposit_seconds: Option<u32>,
        pub(crate) finalization_seconds: Option<u64>,
        pub(crate) submission_seconds: Option<u64>,
        pub(crate) migrated: Option<Vec<MigratedDraft>>,
    }

    /// A denomination of the L1 whose transfers go over a channel.
    pub(crate) struct MigratedDraft {
        pub(crate) denom: String,
        /// The L1's end, `port/channel`; without a port that of ICS-20.
        pub(crate) channel: String,
    }

    /// An asset. It has at most one origin: `ibc`, `bridged` or `wrapped`.
    #[derive(Default)]
    pub(crate) struct AssetDraft {
        pub(crate) chain: String,
        /// Optional if it can be computed.
        pub(crate) denom: Option<String>,
        /// The full ICS-20 path of a voucher whose other chain is unknown, or the fallback if its origin is.
        pub(crate) path: Option<String>,
        pub(crate) symbol: Option<String>,
        pub(crate) name: Option<String>,
        pub(crate) decimals: Option<u8>,
        pub(crate) contract: Option<String>,
        pub(crate) logo_uri: Option<String>,
        pub(crate) description: Option<String>,
        pub(crate) coingecko_id: Option<String>,
        #[serde(default, deserialize_with = "serde_forms::price_option")]
        #[serde_with(skip_apply)]
        pub(crate) price_usd: Option<String>,
        pub(crate) hidden: Option<bool>,
        pub(crate) ibc: Option<IbcDraft>,
        pub(crate) bridged: Option<BridgedDraft>,
        pub(crate) wrapped: Option<WrappedDraft>,
        pub(crate) terms: Option<Terms>,
    }

    /// Origin of a voucher.
    pub(crate) struct IbcDraft {
        /// Port of the channel's end here; that of ICS-20 if missing.
        pub(crate) port: Option<String>,
        /// Channel of the end here.
        pub(crate) channel: String,
        /// Denomination or path on the other chain.
        pub(crate) from: String,
    }

    /// Origin of a coin that the bridge of its rollup mints.
    pub(crate) struct BridgedDraft {
        /// Denomination on the L1.
        pub(crate) from: String,
    }

    /// Origin of a token that the wrapper of its chain made.
    pub(crate) struct WrappedDraft {
        pub(crate) contract: String,
        /// Denomination on the same chain.
        pub(crate) from: String,
    }

    /// A group of tokens that LayerZero connects.
    pub(crate) struct OftDraft {
        pub(crate) symbol: String,
        #[serde(default, rename = "leg")]
        pub(crate) legs: Vec<Located<LegDraft>>,
    }

    /// One chain's end of an OFT group; see [`crate::Leg`].
    pub(crate) struct LegDraft {
        pub(crate) chain: String,
        pub(crate) denom: String,
        pub(crate) kind: LegKind,
        pub(crate) contract: String,
        pub(crate) eid: Option<u32>,
        #[serde(default = "shared_decimals")]
        pub(crate) shared_decimals: u8,
        pub(crate) options: Option<String>,
        #[serde(default, deserialize_with = "serde_forms::amount_option")]
        pub(crate) messaging_fee: Option<U256>,
        #[serde(default)]
        pub(crate) terms: Terms,
    }

    /// A venue.
    pub(crate) struct VenueDraft {
        pub(crate) name: String,
        pub(crate) chain: String,
        pub(crate) logo_uri: Option<String>,
        pub(crate) adapter: Option<String>,
        #[serde(default)]
        pub(crate) pools: Vec<String>,
    }

    /// A picture for a kind of bridge.
    pub(crate) struct BridgeKindDraft {
        pub(crate) id: BridgeKind,
        pub(crate) logo_uri: String,
    }
}

layered!(ChainDraft: name, pretty_name, kind, vm, initia, l1, bech32_prefix, testnet, hidden, forwards, logo_uri,
    explorer_tx, fee_assets, native, confirmations, block_seconds; endpoints, layer_zero);
layered!(EndpointsDraft: rpc, rest, json_rpc, executor, secret);
layered!(LayerZeroDraft: eid, endpoint);
layered!(ChannelDraft: b, paused, seconds);
layered!(BridgeDraft: id, l1, paused, deposit_seconds, finalization_seconds, submission_seconds, migrated);
layered!(AssetDraft: denom, path, symbol, name, decimals, contract, logo_uri, description, coingecko_id, price_usd,
    hidden, ibc, bridged, wrapped, terms);

impl AssetDraft {
    pub(crate) fn has_origin(&self) -> bool {
        self.ibc.is_some() || self.bridged.is_some() || self.wrapped.is_some()
    }

    /// The same asset as one of unknown origin.
    pub(crate) fn without_origin(self) -> Self {
        Self { ibc: None, bridged: None, wrapped: None, ..self }
    }
}

/// The folders of an Initia registry.
pub(crate) const NETWORKS: [&str; 3] = ["mainnets", "testnets", "devnets"];

fn network<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let name = String::deserialize(from)?;
    if NETWORKS.contains(&name.as_str()) {
        return Ok(Some(name));
    }
    Err(serde::de::Error::unknown_variant(&name, &NETWORKS))
}

/// Decimals of amounts in LayerZero's messages, unless a leg states others.
fn shared_decimals() -> u8 {
    6
}

/// One end of a channel.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct EndDraft {
    pub(crate) chain: String,
    pub(crate) port: String,
    pub(crate) channel: String,
}

impl EndDraft {
    /// An end on the port of ICS-20.
    pub(crate) fn transfer(chain: &str, channel: &str) -> Self {
        Self { chain: chain.to_owned(), port: TRANSFER_PORT.to_owned(), channel: channel.to_owned() }
    }
}

impl TryFrom<String> for EndDraft {
    type Error = String;

    /// Parses `chain/port/channel`; a chain's id has no slash.
    fn try_from(text: String) -> Result<Self, String> {
        match text.split('/').collect::<Vec<_>>()[..] {
            [chain, port, channel] if ![chain, port, channel].contains(&"") => {
                Ok(Self { chain: chain.to_owned(), port: port.to_owned(), channel: channel.to_owned() })
            }
            _ => Err(format!(
                "must be chain, port and channel such as \"interwoven-1/transfer/channel-0\", not {text:?}"
            )),
        }
    }
}
