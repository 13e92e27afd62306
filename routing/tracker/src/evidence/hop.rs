//! Evidence about one hop of a transfer, as found on chains.
//!
//! # Invariants
//!
//! A hop is stored in this form: members are only ever added, with a default.
//! * Strings come from chains; the response size limit bounds them.

use serde::{Deserialize, Serialize};

pub use crate::evidence::link::{Relation, TxRef};
pub use crate::evidence::packet::{Ack, Forward, Hook, Ibc, Packet, PacketId};

/// One deposit over an optimistic bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deposit {
    /// The L1's id.
    pub from: String,
    /// The rollup's id, if the registry has the bridge.
    pub to: Option<String>,
    /// The bridge's number on the L1.
    pub bridge: u64,
    /// Counts the deposits of the bridge.
    pub l1_sequence: u64,
    /// Denomination on the L1.
    pub l1_denom: String,
    /// Denomination on the rollup.
    pub l2_denom: String,
    /// Base units.
    pub amount: String,
    /// The ERC20Wrapper that the hook calls, if it calls one that the registry has.
    pub wrapper: Option<String>,
    /// `initiate_token_deposit`.
    pub sent: TxRef,
    /// `finalize_token_deposit`, and its outcome.
    pub finalized: Option<(TxRef, Finalized)>,
}

/// Outcome of a deposit on the rollup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finalized {
    /// Success.
    Good,
    /// The tokens arrived, but the call that accompanied them failed.
    HookFailed(String),
    /// The rollup could not credit them and withdrew them again.
    DepositFailed(String),
    /// Only the rollup's state shows that it was finalized.
    Unknown,
}

/// One withdrawal over an optimistic bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withdrawal {
    /// The rollup's id.
    pub from: String,
    /// The L1's id and the bridge, if the registry has them.
    pub to: Option<(String, u64)>,
    /// Relation to the previous hop.
    pub link: Relation,
    /// Counts the withdrawals of the bridge.
    pub l2_sequence: u64,
    /// Sender of the withdrawal; for a refunded deposit, its receiver as given.
    pub sender: String,
    /// Receiver on the L1.
    pub receiver: String,
    /// Denomination on the rollup.
    pub l2_denom: String,
    /// Denomination on the L1.
    pub l1_denom: String,
    /// Base units.
    pub amount: String,
    /// Seconds from an output until withdrawals can be claimed with it.
    pub finalization_seconds: u64,
    /// `initiate_token_withdrawal`.
    pub sent: TxRef,
    /// The output that covers it, as of height `output_as_of` of the L1.
    pub output: Option<Output>,
    /// Height of the L1 when its outputs were scanned.
    pub output_as_of: u64,
    /// `finalize_token_withdrawal`, or the claimed flag in the L1's state.
    pub claimed: Option<Claim>,
}

/// An output on the L1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    /// Its number, from 1.
    pub index: u64,
    /// `propose_output`.
    pub tx: TxRef,
    /// Time from which on withdrawals can be claimed with it; nanoseconds since 1970.
    pub claimable_at: Option<i64>,
}

/// The claim of a withdrawal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The transaction; none if only the L1's state shows the claim.
    pub tx: Option<TxRef>,
}

/// Phase of a withdrawal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// The rollup has burnt the tokens.
    Initiated,
    /// An output on the L1 covers it.
    Proposed,
    /// The output is final: it can be claimed.
    Provable,
    /// The tokens are on the L1.
    Claimed,
}

/// One LayerZero message that moves an OFT.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerZero {
    /// The sending chain's id.
    pub from: String,
    /// The receiving chain's id, if the registry has the number.
    pub to: Option<String>,
    /// Globally unique message id, 32 bytes in lower-case hex.
    pub guid: String,
    /// LayerZero endpoint id of the receiving chain.
    pub dst_eid: u32,
    /// The sending OFT: `0x…`.
    pub sender_oft: String,
    /// The receiving OFT, 32 bytes in lower-case hex, if the packet was seen.
    pub receiver_oft: Option<String>,
    /// Whether the message carries a call to execute after the tokens arrive.
    pub composes: bool,
    /// Base units of the sending chain.
    pub amount: String,
    /// The transaction that sent it.
    pub sent: TxRef,
    /// `OFTReceived`, with base units of the receiving chain.
    pub received: Option<(TxRef, String)>,
    /// `LzReceiveAlert`: delivery failed and any account may retry it.
    pub alert: Option<TxRef>,
    /// `ComposeDelivered`.
    pub composed: Option<TxRef>,
    /// The next block of the receiving chain to scan.
    pub scanned: Option<u64>,
}

/// One or more swaps in a row, in one message on one Move chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swap {
    /// The chain's id.
    pub chain: String,
    /// Relation to the previous hop.
    pub link: Relation,
    /// What was paid, or came back.
    pub offered: Coin,
    /// What came of it, or why nothing did.
    pub outcome: Result<Coin, String>,
    /// Whether a call took the result further on the same chain.
    pub called: bool,
    /// Its transaction.
    pub sent: TxRef,
}

/// An amount of a token of a Move chain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coin {
    /// Address of its metadata: `0x` and 64 hex digits in lower case.
    pub metadata: String,
    /// The denomination of that metadata, once it is known.
    pub denom: Option<String>,
    /// Base units.
    pub amount: String,
}

/// A step whose further course cannot be followed: it is not known where the tokens are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfollowed {
    /// The chain that took the step.
    pub chain: String,
    /// Relation to the previous hop.
    pub link: Relation,
    /// Kind of the obstacle.
    pub obstacle: Obstacle,
    /// What the step is, for people.
    pub what: String,
    /// Its transaction.
    pub sent: TxRef,
}

/// Why a step cannot be followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Obstacle {
    /// A packet between clients instead of channels.
    IbcV2,
    /// A packet of a port that moves no tokens in a known way.
    Port,
    /// A packet, deposit, withdrawal or message that does not parse.
    Malformed,
    /// A message or an event of another bridge.
    Bridge,
    /// A packet that the receiving chain kept, although its memo asks to forward it.
    NotForwarded,
    /// A transaction whose events no node shows, or a call of an EVM whose logs none does.
    NoLogs,
}

/// One step of a transfer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ObservedHop {
    /// An IBC packet.
    Ibc(Ibc),
    /// L1 → rollup.
    Deposit(Deposit),
    /// Rollup → L1.
    Withdrawal(Withdrawal),
    /// LayerZero.
    LayerZero(LayerZero),
    /// A swap.
    Swap(Swap),
    /// A step that cannot be followed.
    Unfollowed(Unfollowed),
}

impl ObservedHop {
    /// The sending chain's id.
    pub fn from(&self) -> &str {
        match self {
            Self::Ibc(hop) => &hop.packet.id.chain,
            Self::Deposit(hop) => &hop.from,
            Self::Withdrawal(hop) => &hop.from,
            Self::LayerZero(hop) => &hop.from,
            Self::Swap(hop) => &hop.chain,
            Self::Unfollowed(hop) => &hop.chain,
        }
    }

    /// The receiving chain's id, if the registry knew it.
    pub fn to(&self) -> Option<&str> {
        match self {
            Self::Ibc(hop) => hop.packet.to.as_deref(),
            Self::Deposit(hop) => hop.to.as_deref(),
            Self::Withdrawal(hop) => hop.to.as_ref().map(|(chain, _)| chain.as_str()),
            Self::LayerZero(hop) => hop.to.as_deref(),
            Self::Swap(hop) => Some(&hop.chain),
            Self::Unfollowed(_) => None,
        }
    }

    /// Relation to the previous hop.
    pub fn link(&self) -> Relation {
        match self {
            Self::Ibc(hop) => hop.link,
            Self::Withdrawal(hop) => hop.link,
            Self::Swap(hop) => hop.link,
            Self::Unfollowed(hop) => hop.link,
            Self::Deposit(_) | Self::LayerZero(_) => Relation::Start,
        }
    }
}

impl Swap {
    /// The tokens that it names.
    pub fn coins(&self) -> impl Iterator<Item = &Coin> {
        [Some(&self.offered), self.outcome.as_ref().ok()].into_iter().flatten()
    }

    pub(crate) fn coins_mut(&mut self) -> impl Iterator<Item = &mut Coin> {
        [Some(&mut self.offered), self.outcome.as_mut().ok()].into_iter().flatten()
    }
}

impl Withdrawal {
    /// Phase at `now`, in nanoseconds since 1970.
    pub fn phase(&self, now: i64) -> Phase {
        match (&self.claimed, &self.output) {
            (Some(_), _) => Phase::Claimed,
            (None, None) => Phase::Initiated,
            (None, Some(output)) if output.claimable_at.is_some_and(|at| at <= now) => Phase::Provable,
            (None, Some(_)) => Phase::Proposed,
        }
    }
}
