//! Types of a registry. Plain values; [`crate::build`] enforces the rules between them.

mod oft;

use chain::{U256, Vm};
use serde::{Deserialize, Serialize};

pub use self::oft::{Leg, LegKind, Oft};
use crate::{chain_rules, serde_forms};

macro_rules! references {
    ($($(#[$doc:meta])* $name:ident)+) => {
        $($(#[$doc])*
        ///
        /// Valid only for the registry that it came from; ordered by insertion.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Its position among its kind, from 0.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        })+
    };
}

references! {
    /// A chain of a registry.
    ChainRef
    /// An asset of a registry.
    AssetRef
    /// A channel of a registry.
    ChannelRef
    /// A bridge of a registry.
    BridgeRef
    /// A group of tokens that LayerZero connects, of a registry.
    OftRef
}

/// Kind of clients, addresses and transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "snake_case"))]
pub enum ChainKind {
    /// CometBFT and the Cosmos SDK; all chains of Initia, including those with an EVM.
    Cosmos,
    /// An Ethereum-like chain: JSON-RPC only, its id is a decimal number.
    Evm,
}

/// A chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// The chain id; for an EVM chain its decimal number.
    pub id: String,
    /// The registry's name for it, for example `initia`; clients recognize the L1 by exactly that name.
    pub name: String,
    /// Display name; never empty.
    pub pretty_name: String,
    /// Cosmos or EVM.
    pub kind: ChainKind,
    /// The virtual machine of a chain of Initia, [`Vm::None`] for all others.
    #[serde(serialize_with = "serde_forms::display")]
    pub vm: Vm,
    /// Whether it is a chain of Initia, where `init1…` and `0x…` spell the same account.
    pub initia: bool,
    /// Whether it is Initia's layer one.
    pub l1: bool,
    /// Human-readable part of addresses; empty for an EVM chain.
    pub bech32_prefix: String,
    /// Whether its tokens are worth nothing.
    pub testnet: bool,
    /// Whether clients should leave it out of their pickers.
    pub hidden: bool,
    /// Whether it runs the packet forward middleware; [`crate::Facts::forwards()`] has the chain's answer.
    pub forwards: bool,
    /// Whether the operator set `forwards`, which has precedence over the chain's answer.
    pub forwards_given: bool,
    /// Image URL.
    pub logo_uri: Option<String>,
    /// Fee assets.
    pub fee_assets: Vec<FeeAsset>,
    /// Addresses of its nodes.
    pub endpoints: Endpoints,
    /// A page that shows a transaction, with `${txHash}` in place of its hash.
    pub explorer_tx: Option<String>,
    /// The coin of an EVM chain.
    pub native: Option<NativeCoin>,
    /// LayerZero endpoint id.
    pub layer_zero_eid: Option<u32>,
    /// LayerZero's endpoint contract (EVM) or module address (Move).
    pub layer_zero_endpoint: Option<String>,
    /// Blocks after which a transaction of an EVM chain counts as final; not used elsewhere.
    pub confirmations: u32,
    /// Seconds between two blocks, for estimates.
    pub block_seconds: u32,
}

impl Chain {
    /// Whether its contracts take encrypted messages only, which a client makes with keys of its own.
    pub fn encrypts_calls(&self) -> bool {
        chain_rules::encrypts_calls(&self.id)
    }
}

/// A coin for fees, with its prices per unit of gas as decimal texts; empty if unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeeAsset {
    /// The denomination.
    #[serde(deserialize_with = "serde_forms::text")]
    pub denom: String,
    /// Low gas price.
    #[serde(default, deserialize_with = "serde_forms::price")]
    pub low: String,
    /// Average gas price.
    #[serde(default, deserialize_with = "serde_forms::price")]
    pub average: String,
    /// High gas price.
    #[serde(default, deserialize_with = "serde_forms::price")]
    pub high: String,
}

/// Addresses of a chain's nodes, in order of preference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Endpoints {
    /// CometBFT RPC.
    pub rpc: Vec<String>,
    /// Cosmos REST.
    pub rest: Vec<String>,
    /// EVM JSON-RPC.
    pub json_rpc: Vec<String>,
    /// The executor of a rollup's bridge (opinit-bots), for withdrawal proofs.
    pub executor: Vec<String>,
    /// Addresses in the other lists that clients must not see, because they contain a key.
    pub secret: Vec<String>,
}

impl Endpoints {
    /// The first of `addresses` that contains no key or password.
    pub fn first_public<'a>(&self, addresses: &'a [String]) -> Option<&'a str> {
        let is_public = |address: &&String| !self.secret.contains(address) && !address.contains('@');
        addresses.iter().find(is_public).map(String::as_str)
    }
}

/// The coin of an EVM chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NativeCoin {
    /// For example `Ether`.
    #[serde(deserialize_with = "serde_forms::text")]
    pub name: String,
    /// For example `ETH`.
    #[serde(deserialize_with = "serde_forms::text")]
    pub symbol: String,
    /// For example 18.
    #[serde(default = "native_decimals")]
    pub decimals: u8,
    /// Its denomination here; by default the chain's name and `-native`.
    #[serde(default, deserialize_with = "serde_forms::text")]
    pub denom: String,
}

/// Decimals of nearly all native coins.
fn native_decimals() -> u8 {
    18
}

/// A token on a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asset {
    /// Its chain.
    pub chain: ChainRef,
    /// Its denomination on that chain: `uinit`, `ibc/<HEX>`, `l2/<hex>`, `evm/<checksummed>`, `0x…`, `…-native`.
    pub denom: String,
    /// Short name; never empty.
    pub symbol: String,
    /// Long name.
    pub name: Option<String>,
    /// Decimal places of the display unit.
    pub decimals: u8,
    /// The ERC-20 behind it, `0x…`, if the files or the denomination name one.
    pub contract: Option<String>,
    /// Image URL.
    pub logo_uri: Option<String>,
    /// A sentence.
    pub description: Option<String>,
    /// Its name at CoinGecko.
    pub coingecko_id: Option<String>,
    /// US dollars for one whole token, a decimal text.
    pub price_usd: Option<String>,
    /// Whether clients should leave it out of their pickers.
    pub hidden: bool,
    /// Its origin.
    pub origin: Origin,
    /// Terms of the hop between the asset and its parent; unused for a native asset.
    pub terms: Terms,
}

/// Origin of an asset: the step from its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Origin {
    /// It was issued on this chain.
    Native,
    /// ICS-20 voucher of `parent`, received over `channel`.
    Ibc {
        /// Between the two chains.
        channel: ChannelRef,
        /// On the channel's other end.
        parent: AssetRef,
    },
    /// Minted by the rollup's bridge module for `parent` on the L1.
    Bridged {
        /// The bridge, whose L2 is this asset's chain.
        bridge: BridgeRef,
        /// On the L1.
        parent: AssetRef,
    },
    /// `parent`, on the same minievm chain, in the ERC20Wrapper with another number of decimals.
    Wrapped {
        /// The wrapper contract, `0x…`.
        contract: String,
        /// The bridged coin, with its own decimals.
        parent: AssetRef,
    },
}

impl Origin {
    /// The parent; a native asset has none.
    pub fn parent(&self) -> Option<AssetRef> {
        match self {
            Self::Native => None,
            Self::Ibc { parent, .. } | Self::Bridged { parent, .. } | Self::Wrapped { parent, .. } => {
                Some(*parent)
            }
        }
    }
}

/// Operator's terms of one hop.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Terms {
    /// Reason why it must not be used now; `None` if it may be used.
    #[serde(deserialize_with = "serde_forms::text_option")]
    pub paused: Option<String>,
    /// Usual duration; `None` selects the default of its kind.
    pub seconds: Option<u32>,
    /// Minimum amount in, in base units of the input asset, before fees.
    #[serde(serialize_with = "serde_forms::display", deserialize_with = "serde_forms::amount")]
    pub min_amount: U256,
    /// Fixed fee, in base units of the input asset.
    #[serde(serialize_with = "serde_forms::display", deserialize_with = "serde_forms::amount")]
    pub fee_amount: U256,
    /// Proportional fee, in hundredths of a percent of the amount in, rounded up.
    #[serde(deserialize_with = "serde_forms::basis_points")]
    pub fee_bps: u32,
}

/// One end of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct End {
    /// The chain.
    pub chain: ChainRef,
    /// For example `transfer`.
    pub port: String,
    /// For example `channel-0`.
    pub channel: String,
}

/// An IBC channel between two chains, with both ends known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Channel {
    /// One end.
    pub a: End,
    /// The other.
    pub b: End,
    /// Reason why it must not be used now; `None` if it may be used.
    pub paused: Option<String>,
    /// Usual duration of a packet; `None` selects the default.
    pub seconds: Option<u32>,
}

impl Channel {
    /// The end on `chain`, if there is one.
    pub fn on(&self, chain: ChainRef) -> Option<&End> {
        [&self.a, &self.b].into_iter().find(|end| end.chain == chain)
    }

    /// The other end of a channel with an end on `chain`.
    pub fn beyond(&self, chain: ChainRef) -> Option<&End> {
        if self.a.chain == chain {
            Some(&self.b)
        } else if self.b.chain == chain {
            Some(&self.a)
        } else {
            None
        }
    }
}

/// An optimistic bridge (OPinit) between the L1 and a rollup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bridge {
    /// Its number on the L1, from 1.
    pub id: u64,
    /// Chain on which deposits are made and withdrawals are claimed.
    pub l1: ChainRef,
    /// The rollup.
    pub l2: ChainRef,
    /// Reason why it must not be used now; `None` if it may be used.
    pub paused: Option<String>,
    /// Usual duration of a deposit; `None` selects the default.
    pub deposit_seconds: Option<u32>,
    /// Seconds from an output's arrival on the L1 until withdrawals can be claimed with it; the chain's answer has
    /// precedence.
    pub finalization_seconds: u64,
    /// Seconds within which the rollup proposes an output; the chain's answer has precedence.
    pub submission_seconds: u64,
    /// Migrated L1 denominations, with the channel that carries their transfers; the chain's answer has precedence.
    pub migrated: Vec<(String, ChannelRef)>,
}

/// A place where tokens are exchanged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Venue {
    /// For example `initia-dex`.
    pub name: String,
    /// Its chain.
    pub chain: ChainRef,
    /// Image URL.
    pub logo_uri: Option<String>,
    /// Address of the modules that swap and then send the coin on (`entry_point` and its siblings), `0x…` as the
    /// registry spells it: the receivers of packets depend on the spelling.
    pub adapter: Option<String>,
    /// Denominations of LP tokens of `StableSwap` pools, `move/` and 64 hex digits; the chain lists these pools without
    /// them.
    pub pools: Vec<String>,
}

/// Kinds of bridges that routes use, with their names on the wire (`BridgeType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum BridgeKind {
    /// ICS-20 transfers.
    #[serde(rename(deserialize = "IBC"))]
    Ibc,
    /// The optimistic bridge of Initia's rollups.
    #[serde(rename(deserialize = "OPINIT"))]
    OpInit,
    /// LayerZero's omnichain fungible tokens.
    #[serde(rename(deserialize = "LAYER_ZERO"))]
    LayerZero,
}

impl BridgeKind {
    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 3] = [Self::Ibc, Self::OpInit, Self::LayerZero];

    /// The name on the wire.
    pub fn id(self) -> &'static str {
        match self {
            Self::Ibc => "IBC",
            Self::OpInit => "OPINIT",
            Self::LayerZero => "LAYER_ZERO",
        }
    }

    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ibc => "IBC",
            Self::OpInit => "OPinit",
            Self::LayerZero => "LayerZero",
        }
    }
}
