//! Public types of the planner: requests, plans and reasons.

use chain::U256;
use registry::facts::Quote;
use registry::{AssetRef, BridgeKind, BridgeRef, ChainRef, ChannelRef, Facts, OftRef, Registry};

use crate::swap::{Refusal, Swap};

/// Maximum number of hops of a plan. Useful routes, up to the chain that issued a token and down again, need at most
/// half.
pub const MAX_HOPS: usize = 8;

/// Input of the planner apart from the request.
#[derive(Clone, Copy)]
pub struct World<'a> {
    /// Chains, assets and their connections.
    pub registry: &'a Registry,
    /// Latest chain facts.
    pub facts: &'a Facts,
    /// LayerZero quotes.
    pub quotes: &'a dyn Quotes,
}

/// Source of LayerZero quotes.
pub trait Quotes {
    /// Fee and amount received for sending `amount` from leg `from` to leg `to` (positions in the group); without a
    /// quote the planner leaves that hop out.
    fn quote(&self, oft: OftRef, from: usize, to: usize, amount: U256) -> Option<Quote>;
}

/// A requested transfer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Asset sent.
    pub from: AssetRef,
    /// Asset received.
    pub to: AssetRef,
    /// Base units of `from`.
    pub amount_in: U256,
    /// Restricts the route to a withdrawal over the optimistic bridge.
    pub op_withdraw: bool,
    /// Whether the user accepts more than one transaction.
    pub multi_tx: bool,
    /// Whether the user can sign an op hook.
    pub op_hook: bool,
    /// Only these kinds of bridges; `None` allows all.
    pub bridges: Option<Vec<BridgeKind>>,
}

/// A route with exact amounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// At least one, in order; each starts with the output of the one before.
    pub hops: Vec<Hop>,
    /// Details of the hop with [`Step::Swap`], of which a plan has at most one.
    pub swap: Option<Swap>,
}

impl Plan {
    /// Base units of the asset sent.
    pub fn amount_in(&self) -> U256 {
        self.hops.first().map_or(U256::ZERO, |hop| hop.amount_in)
    }

    /// Base units of the asset received.
    pub fn amount_out(&self) -> U256 {
        self.hops.last().map_or(U256::ZERO, |hop| hop.amount_out)
    }

    /// Usual duration in seconds. Never 0 if it leads to another chain, because clients derive their poll interval from
    /// it.
    pub fn seconds(&self, registry: &Registry) -> u64 {
        let sum = self.hops.iter().fold(0u64, |sum, hop| sum.saturating_add(hop.seconds));
        sum.max(u64::from(self.chains(registry).len() > 1))
    }

    /// Number of transactions that the user signs, an op hook not counted.
    pub fn txs(&self) -> usize {
        self.hops.last().map_or(0, |hop| hop.tx + 1)
    }

    /// Whether a deposit must carry an op hook: it is followed by a wrap in the same transaction.
    pub fn required_op_hook(&self) -> bool {
        self.hops.windows(2).any(|pair| {
            let same = pair[0].tx == pair[1].tx;
            same && matches!(pair[0].step, Step::Deposit { .. }) && pair[1].step == Step::Wrap
        })
    }

    /// Chains in the order of the path; one chain if the path stays on it.
    pub fn chains(&self, registry: &Registry) -> Vec<ChainRef> {
        let source = self.hops.first().map(|hop| hop.from);
        let assets = source.into_iter().chain(self.hops.iter().map(|hop| hop.to));
        let mut chains: Vec<_> = assets.map(|asset| registry[asset].chain).collect();
        chains.dedup();
        chains
    }

    /// `chain_ids` of the wire: [`Plan::chains`] by id.
    pub fn chain_ids<'a>(&self, registry: &'a Registry) -> Vec<&'a str> {
        ids(registry, self.chains(registry))
    }

    /// The chains on which an address is needed. All but the last are for the user's own addresses: the source chain,
    /// then each chain where a later transaction is signed, because the user must hold the tokens there. The last is
    /// for
    /// the recipient's address. So the recipient's chain is listed twice if the user signs there too, and a path that
    /// stays on one chain lists it twice.
    ///
    /// The signer of an op hook at the end of a path is not listed: `signed_op_hook` names it.
    pub fn required_chains(&self, registry: &Registry) -> Vec<ChainRef> {
        let mut own: Vec<ChainRef> = Vec::new();
        let mut signed = None;
        for hop in &self.hops {
            let chain = registry[hop.from].chain;
            if signed.replace(hop.tx) != Some(hop.tx) && !own.contains(&chain) {
                own.push(chain);
            }
        }
        own.extend(self.hops.last().map(|hop| registry[hop.to].chain));
        own
    }

    /// `required_chain_addresses` of the wire: [`Plan::required_chains`] by id.
    pub fn required_chain_addresses<'a>(&self, registry: &'a Registry) -> Vec<&'a str> {
        ids(registry, self.required_chains(registry))
    }
}

fn ids(registry: &Registry, chains: Vec<ChainRef>) -> Vec<&str> {
    chains.into_iter().map(|chain| registry[chain].id.as_str()).collect()
}

/// One step of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hop {
    /// Action of the hop.
    pub step: Step,
    /// Input asset.
    pub from: AssetRef,
    /// Output asset.
    pub to: AssetRef,
    /// Base units of `from`.
    pub amount_in: U256,
    /// Base units of `to`.
    pub amount_out: U256,
    /// Index of the user's transaction, from 0.
    pub tx: usize,
    /// Usual duration in seconds.
    pub seconds: u64,
}

/// Action of a hop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A bank send, to another account of the same chain.
    Send,
    /// An ICS-20 transfer.
    Ibc {
        /// Over this channel.
        channel: ChannelRef,
    },
    /// An ICS-20 transfer whose voucher the rollup turns into its bridged coin, because the denomination was migrated.
    MigratedDeposit {
        /// The bridge that it was migrated from.
        bridge: BridgeRef,
        /// Over this channel.
        channel: ChannelRef,
    },
    /// `MsgMigrateToken`, then an ICS-20 transfer: a migrated denomination returns to the L1.
    MigratedWithdraw {
        /// The bridge that it was migrated from.
        bridge: BridgeRef,
        /// Over this channel.
        channel: ChannelRef,
    },
    /// A deposit into an optimistic bridge.
    Deposit {
        /// The bridge.
        bridge: BridgeRef,
    },
    /// A withdrawal from a rollup, which the user claims on the L1 days later.
    Withdraw {
        /// The bridge.
        bridge: BridgeRef,
    },
    /// The ERC20Wrapper's `toLocal`: the remote token of a pair becomes the local one.
    Wrap,
    /// The ERC20Wrapper's `toRemote`.
    Unwrap,
    /// A swap in pools of the chain, see [`Plan::swap`].
    Swap,
    /// An omnichain fungible token's `send`.
    LayerZero {
        /// The group.
        oft: OftRef,
        /// The sending leg's position in it.
        from: usize,
        /// The receiving leg's position in it.
        to: usize,
        /// Base units of the sending chain's coin, paid on top.
        fee: U256,
    },
}

impl Step {
    /// The channel of an IBC transfer.
    pub fn channel(self) -> Option<ChannelRef> {
        match self {
            Self::Ibc { channel }
            | Self::MigratedDeposit { channel, .. }
            | Self::MigratedWithdraw { channel, .. } => Some(channel),
            _ => None,
        }
    }

    /// The kind of bridge; none for a conversion or a send, which stay on their chain.
    pub fn bridge_kind(self) -> Option<BridgeKind> {
        match self {
            Self::Ibc { .. } | Self::MigratedDeposit { .. } | Self::MigratedWithdraw { .. } => {
                Some(BridgeKind::Ibc)
            }
            Self::Deposit { .. } | Self::Withdraw { .. } => Some(BridgeKind::OpInit),
            Self::LayerZero { .. } => Some(BridgeKind::LayerZero),
            Self::Send | Self::Wrap | Self::Unwrap | Self::Swap => None,
        }
    }
}

/// Reason why no route exists.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoRoute {
    /// The assets are not connected.
    #[error("no routes found: nothing connects {from} with {to}")]
    NoPath {
        /// `<denom> on <chain>`.
        from: String,
        /// The same.
        to: String,
    },
    /// Every route uses a paused part.
    #[error("no routes found: {0}")]
    Paused(String),
    /// The registry has an error there, or a chain contradicts it.
    #[error("no routes found: {0}")]
    Doubt(String),
    /// The amount is below a step's minimum, or fees consume it.
    #[error("no routes found: amount_in {amount} is below the minimum {minimum} of {hop}")]
    TooSmall {
        /// Requested amount.
        amount: U256,
        /// Minimum of the path, in base units of the source asset where it can be computed.
        minimum: U256,
        /// Step that rejects the amount.
        hop: String,
    },
    /// A wrapper takes whole units of the coin with fewer decimals only.
    #[error("amount_in must be a multiple of {multiple}: the wrapper refuses a remainder")]
    Dust {
        /// 10 to the power of the difference in decimals.
        multiple: U256,
        /// The largest amount up to the requested one that leaves no remainder; `None` if that is none.
        usable: Option<U256>,
    },
    /// Overflow: a wrapper carries 256 bits, LayerZero 64.
    #[error("no routes found: an amount of {amount} is more than {hop} can carry")]
    TooLarge {
        /// Requested amount.
        amount: U256,
        /// Step that rejects the amount.
        hop: String,
    },
    /// The route needs more transactions than the client accepts.
    #[error("no routes found in one transaction: it takes {txs}; ask with allow_multi_tx")]
    SeveralTxs {
        /// Number of transactions that it takes.
        txs: usize,
    },
    /// The route needs an op hook, which the client does not support.
    #[error(
        "no routes found without an op hook, which this request cannot carry; use /v2/fungible/msgs with signed_op_hook"
    )]
    NeedsHook,
    /// No pool, or no path over three of them, leads from one asset to the other.
    #[error("no routes found: no pool swaps {from} for {to}, directly or over two others")]
    NoPool {
        /// `<denom> on <chain>`.
        from: String,
        /// The same.
        to: String,
    },
    /// The pools refuse the amount, or any.
    #[error("no routes found: {amount} of {denom} cannot be swapped: {refusal}")]
    Swap {
        /// Base units.
        amount: U256,
        /// Of the coin offered, or of the coin returned if the amount out is set.
        denom: String,
        /// The pool's reason.
        refusal: Refusal,
    },
    /// The state of the pools is unknown or too old to quote.
    #[error("no routes found: {0}")]
    NoPoolState(String),
    /// No LayerZero quote is available.
    #[error("no routes found: {0} does not answer what it costs")]
    NoQuote(String),
}
