//! Types of a registry. Plain values; [`crate::build`] enforces the rules between them.

use chain::{U256, Vm};
use serde::Serialize;

use crate::serialize;

macro_rules! reference {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        ///
        /// Only means something in the registry that it came from; the order is that in which parts were added.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub struct $name(pub(crate) u32);

        impl $name {
            /// Its position among its kind, from 0.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

reference! {
    /// A chain of a registry.
    ChainRef
}
reference! {
    /// An asset of a registry.
    AssetRef
}
reference! {
    /// A channel of a registry.
    ChannelRef
}
reference! {
    /// An optimistic bridge of a registry.
    BridgeRef
}
reference! {
    /// A group of tokens that LayerZero connects.
    OftRef
}

/// Kind of clients, addresses and transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum ChainKind {
    /// CometBFT and the Cosmos SDK; all chains of Initia, those with an EVM too.
    Cosmos,
    /// An Ethereum-like chain: JSON-RPC only, its id is a decimal number.
    Evm,
}

/// A chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// The chain id; for an EVM chain its decimal number.
    pub id: String,
    /// The registry's name of it, for example `initia`; clients know the L1 by exactly that name.
    pub name: String,
    /// Display name; never empty.
    pub pretty_name: String,
    /// Cosmos or EVM.
    pub kind: ChainKind,
    /// The virtual machine of a chain of Initia, [`Vm::None`] for all others.
    #[serde(serialize_with = "serialize::text")]
    pub vm: Vm,
    /// Whether it belongs to Initia: `init1…` and `0x…` are the same account there.
    pub initia: bool,
    /// Whether it is Initia's layer one.
    pub l1: bool,
    /// Human-readable part of addresses; empty for an EVM chain.
    pub bech32_prefix: String,
    /// Whether its tokens are worth nothing.
    pub testnet: bool,
    /// Whether clients should leave it out of their pickers.
    pub hidden: bool,
    /// Whether it runs the packet forward middleware.
    pub forwards: bool,
    /// A picture.
    pub logo_uri: Option<String>,
    /// Fee assets.
    pub fee_assets: Vec<FeeAsset>,
    /// Where its nodes are.
    pub endpoints: Endpoints,
    /// A page that shows a transaction, with `${txHash}` in place of its hash.
    pub explorer_tx: Option<String>,
    /// The coin of an EVM chain.
    pub native: Option<NativeCoin>,
    /// LayerZero's number of the chain.
    pub layer_zero_eid: Option<u32>,
    /// LayerZero's endpoint contract (EVM) or module address (Move).
    pub layer_zero_endpoint: Option<String>,
    /// Blocks after which a transaction of an EVM chain counts as final; not used elsewhere.
    pub confirmations: u32,
    /// Seconds between two blocks, for estimates.
    pub block_seconds: u32,
}

/// A coin that fees are paid in, with its prices a unit of gas as decimal texts; empty if not known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FeeAsset {
    /// The denomination.
    pub denom: String,
    /// Low gas price.
    pub low: String,
    /// For most.
    pub average: String,
    /// High gas price.
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
    /// Those of the others that are for us alone, because they hold a key.
    pub secret: Vec<String>,
}

impl Endpoints {
    /// The first public address of `addresses`, which has no key or password.
    pub fn told<'a>(&self, addresses: &'a [String]) -> Option<&'a str> {
        let may_be_told = |address: &&String| !self.secret.contains(address) && !address.contains('@');
        addresses.iter().find(may_be_told).map(String::as_str)
    }
}

/// The coin of an EVM chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NativeCoin {
    /// For example `Ether`.
    pub name: String,
    /// For example `ETH`.
    pub symbol: String,
    /// For example 18.
    pub decimals: u8,
    /// Its denomination here: `<name>-native`.
    pub denom: String,
}

/// A token on a chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Asset {
    /// Where it is.
    pub chain: ChainRef,
    /// Its denomination there: `uinit`, `ibc/<HEX>`, `l2/<hex>`, `evm/<checksummed>`, `0x…`, `…-native`.
    pub denom: String,
    /// Short name; never empty.
    pub symbol: String,
    /// Long name.
    pub name: Option<String>,
    /// Decimal places of the unit that people count in.
    pub decimals: u8,
    /// The ERC-20 behind it, `0x…`, where there is one and the files name it.
    pub contract: Option<String>,
    /// A picture.
    pub logo_uri: Option<String>,
    /// A sentence.
    pub description: Option<String>,
    /// Its name at CoinGecko.
    pub coingecko_id: Option<String>,
    /// US dollars for one whole token, a decimal text.
    pub price_usd: Option<String>,
    /// Whether clients should leave it out of their pickers.
    pub hidden: bool,
    /// How it came to be.
    pub origin: Origin,
    /// Terms of the hop between the asset and its parent; unused for a native asset.
    pub terms: Terms,
}

/// How an asset came to its chain: one step back towards where it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Origin {
    /// It was made here.
    Native,
    /// ICS-20 voucher of `parent`, which came over `channel`.
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
    /// One step back, if there is one.
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Terms {
    /// Why it must not be used now; `None` if it may.
    pub paused: Option<String>,
    /// How long it takes; `None` takes the default of its kind.
    pub seconds: Option<u32>,
    /// Least amount that is taken, in base units of what goes in, before fees.
    #[serde(serialize_with = "serialize::text")]
    pub min_amount: U256,
    /// Kept on the way, in base units of what goes in.
    #[serde(serialize_with = "serialize::text")]
    pub fee_amount: U256,
    /// Kept on the way, in hundredths of a percent of what goes in, rounded up.
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
    /// Why it must not be used now; `None` if it may.
    pub paused: Option<String>,
    /// How long a packet takes; `None` takes the default.
    pub seconds: Option<u32>,
}

impl Channel {
    /// The end on `chain`, if it has one there.
    pub fn on(&self, chain: ChainRef) -> Option<&End> {
        [&self.a, &self.b].into_iter().find(|end| end.chain == chain)
    }

    /// The end that is not on `chain`, if the other one is.
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
    /// Where deposits are made and withdrawals are claimed.
    pub l1: ChainRef,
    /// The rollup.
    pub l2: ChainRef,
    /// Why it must not be used now; `None` if it may.
    pub paused: Option<String>,
    /// How long a deposit takes; `None` takes the default.
    pub deposit_seconds: Option<u32>,
    /// Seconds between an output's arrival on the L1 and when it can be claimed on; the chain's own answer wins.
    pub finalization_seconds: u64,
    /// Seconds within which the rollup proposes an output; the chain's own answer wins.
    pub submission_seconds: u64,
    /// L1 denominations whose transfers go over a channel instead, with that channel; the chain's own answer wins.
    pub migrated: Vec<(String, ChannelRef)>,
}

/// A group of tokens on several chains that LayerZero moves one for one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Oft {
    /// Symbol of the group.
    pub symbol: String,
    /// One for each chain, two at least.
    pub legs: Vec<Leg>,
}

/// One chain's end of an [`Oft`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leg {
    /// The token.
    pub asset: AssetRef,
    /// How the contract holds it.
    pub kind: LegKind,
    /// The OFT contract, `0x…` (EVM), or the address of the module (Move).
    pub contract: String,
    /// LayerZero's number of the chain.
    pub eid: u32,
    /// Decimals of amounts in cross-chain messages.
    pub shared_decimals: u8,
    /// Options that go with every message, hex with `0x`; `0x` leaves it to the contract.
    pub options: String,
    /// Default messaging fee in base units of the chain's coin, if the contract does not answer.
    #[serde(serialize_with = "serialize::amount")]
    pub messaging_fee: Option<U256>,
    /// Terms of sending from this leg.
    pub terms: Terms,
}

/// How an OFT contract holds its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum LegKind {
    /// The token itself is the OFT: burnt and minted.
    Token,
    /// The token is locked in an adapter, which needs an allowance.
    Adapter,
    /// The chain's coin is locked in an adapter: sent as value.
    NativeAdapter,
    /// A module of a Move chain.
    Move,
}

/// A place where tokens are exchanged. Told to clients; routes do not use any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Venue {
    /// For example `initia-dex`.
    pub name: String,
    /// Where it is.
    pub chain: ChainRef,
    /// A picture.
    pub logo_uri: Option<String>,
}

/// The bridges that routes use, by the names of the wire (`BridgeType`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum BridgeKind {
    /// ICS-20 transfers.
    Ibc,
    /// The optimistic bridge of Initia's rollups.
    OpInit,
    /// LayerZero's omnichain fungible tokens.
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
