//! Tables of a rollup with an OPinit bridge, part of the optional index `bridge`: what the events of `x/opchild` say.

use chain::Account;
use chain::bridge::{self, FinalizedDeposit, Outcome};
use store::key::Text;
use store::{Message, Snapshot};

use crate::Error;
use crate::index::Rows;
use crate::records::damaged;

store::tables! {
    /// Withdrawals of a rollup.
    ///
    /// | number on the rollup (8, BE) | → [`Withdrawal`] (protobuf)
    pub table Withdrawals("bridge_withdrawal", 0x90, Scan): u64 => Message<Withdrawal>;

    /// Withdrawals by their receiver, as the events spell it; oldest first.
    ///
    /// | receiver (escaped text) | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list ReceiverWithdrawals("receiver_withdrawal", 0x91): Text;

    /// Withdrawals by their sender, as the events spell it, without those to the sender itself; oldest first.
    ///
    /// | sender (escaped text) | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list SenderWithdrawals("sender_withdrawal", 0x92): Text;

    /// Deposits that a rollup has finalized.
    ///
    /// | number on the layer one (8, BE) | → [`Finalized`] (protobuf)
    pub table FinalizedDeposits("bridge_deposit", 0x93, Scan): u64 => Message<Finalized>;

    /// Deposits by their receiver, as the events spell it; oldest first.
    ///
    /// | receiver (escaped text) | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list ReceiverDeposits("receiver_deposit", 0x94): Text;

    /// Deposits by their sender, as the events spell it, without those to the sender itself; oldest first.
    ///
    /// | sender (escaped text) | first ordinal (8, BE) | → up to 32 numbers (varints)
    pub list SenderDeposits("sender_deposit", 0x95): Text;

    /// What the events of a rollup say of its bridge.
    ///
    /// | 0 (1) | → [`BridgeState`] (protobuf)
    pub table BridgeStates("bridge_state", 0x96, Point): u8 => Message<BridgeState>;
}

/// Where an event is.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Source {
    /// The block.
    #[prost(uint64, tag = "1")]
    pub height: u64,
    /// Its time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "2")]
    pub time: i64,
    /// The hash of the transaction; empty for an event of the block itself.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "3")]
    pub tx_hash: Vec<u8>,
}

/// A withdrawal.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Withdrawal {
    /// Where it was initiated.
    #[prost(message, optional, tag = "1")]
    pub source: Option<Source>,
    /// The sender; of a refused deposit its receiver, which may be any text.
    #[prost(string, tag = "2")]
    pub from: String,
    /// The receiver on the layer one.
    #[prost(string, tag = "3")]
    pub to: String,
    /// The denom on the rollup.
    #[prost(string, tag = "4")]
    pub denom: String,
    /// The denom on the layer one.
    #[prost(string, tag = "5")]
    pub base_denom: String,
    /// Decimal.
    #[prost(string, tag = "6")]
    pub amount: String,
}

impl Withdrawal {
    /// The block that it is in.
    pub fn height(&self) -> u64 {
        self.source.as_ref().map_or(0, |source| source.height)
    }
}

/// A deposit that was finalized.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Finalized {
    /// Where it was finalized.
    #[prost(message, optional, tag = "1")]
    pub source: Option<Source>,
    /// The sender on the layer one.
    #[prost(string, tag = "2")]
    pub from: String,
    /// The receiver, which may be any text.
    #[prost(string, tag = "3")]
    pub to: String,
    /// The denom on the rollup.
    #[prost(string, tag = "4")]
    pub denom: String,
    /// The denom on the layer one.
    #[prost(string, tag = "5")]
    pub base_denom: String,
    /// Decimal.
    #[prost(string, tag = "6")]
    pub amount: String,
    /// The block of the layer one.
    #[prost(uint64, tag = "7")]
    pub l1_height: u64,
    /// What became of it.
    #[prost(enumeration = "Arrival", tag = "8")]
    pub arrival: i32,
    /// The reason if it did not succeed.
    #[prost(string, tag = "9")]
    pub reason: String,
}

/// What became of a deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Arrival {
    /// The tokens arrived, and its hook, if there is one, ran.
    Arrived = 0,
    /// The tokens arrived; the hook failed.
    HookFailed = 1,
    /// A withdrawal returns the tokens.
    Refunded = 2,
}

/// What the events of a rollup say of its bridge.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct BridgeState {
    /// The number of the bridge on the layer one; 0 if no block since the first one says it.
    #[prost(uint64, tag = "1")]
    pub bridge: u64,
    /// The Cosmos id of the layer one.
    #[prost(string, tag = "2")]
    pub l1_chain_id: String,
    /// The first indexed withdrawal; 0 if there is none.
    #[prost(uint64, tag = "3")]
    pub first_withdrawal: u64,
    /// The last withdrawal; 0 if there is none.
    #[prost(uint64, tag = "4")]
    pub last_withdrawal: u64,
    /// The first indexed deposit; 0 if there is none.
    #[prost(uint64, tag = "5")]
    pub first_deposit: u64,
    /// The last deposit that was finalized; 0 if there is none.
    #[prost(uint64, tag = "6")]
    pub last_deposit: u64,
}

/// What the events of the rollup say of its bridge.
pub fn state(snapshot: &dyn Snapshot) -> Result<BridgeState, Error> {
    let row = store::table::read::<BridgeStates>(snapshot, &0)?;
    Ok(row.map_or_else(BridgeState::default, |Message(state)| state))
}

/// The withdrawal with this number, if it is indexed.
pub fn withdrawal(snapshot: &dyn Snapshot, sequence: u64) -> Result<Option<Withdrawal>, Error> {
    Ok(store::table::read::<Withdrawals>(snapshot, &sequence)?.map(|Message(withdrawal)| withdrawal))
}

/// The first withdrawal in a block after `height`: one more than the last one if there is none. `state` is of the same snapshot.
pub fn first_after(snapshot: &dyn Snapshot, state: &BridgeState, height: u64) -> Result<u64, Error> {
    if state.last_withdrawal == 0 {
        return Ok(1);
    }
    let (mut low, mut high) = (state.first_withdrawal, state.last_withdrawal + 1);
    while low < high {
        let middle = low.midpoint(high);
        let found = withdrawal(snapshot, middle)?;
        let found = found.ok_or_else(|| damaged::<Withdrawals>(middle, "the withdrawal is missing"))?;
        if found.height() > height { high = middle } else { low = middle + 1 }
    }
    Ok(low)
}

/// Writes the bridge of the rollup.
pub(crate) fn write_info(rows: &mut Rows<'_, '_>, bridge: u64, l1_chain_id: String) -> Result<(), Error> {
    let state = stored_state(rows)?;
    rows.set::<BridgeStates>(&0, &Message(BridgeState { bridge, l1_chain_id, ..state }));
    Ok(())
}

fn stored_state(rows: &Rows<'_, '_>) -> Result<BridgeState, Error> {
    Ok(rows.get::<BridgeStates>(&0)?.map_or_else(BridgeState::default, |Message(state)| state))
}

/// Writes a withdrawal.
pub(crate) fn write_withdrawal(
    rows: &mut Rows<'_, '_>,
    source: &Source,
    withdrawal: bridge::Withdrawal,
) -> Result<(), Error> {
    let mut state = stored_state(rows)?;
    let bridge::Withdrawal { sequence, from, to, denom, base_denom, amount } = withdrawal;
    // The module counts them; one that is out of order would be of no tree.
    if sequence == 0 || (state.last_withdrawal > 0 && sequence != state.last_withdrawal + 1) {
        return Ok(());
    }
    if state.first_withdrawal == 0 {
        state.first_withdrawal = sequence;
    }
    state.last_withdrawal = sequence;
    rows.set::<BridgeStates>(&0, &Message(state));
    rows.push::<ReceiverWithdrawals>(&Text(to.clone()), sequence)?;
    if !is_same(rows, &from, &to) {
        rows.push::<SenderWithdrawals>(&Text(from.clone()), sequence)?;
    }
    let source = Some(source.clone());
    rows.put::<Withdrawals>(&sequence, &Message(Withdrawal { source, from, to, denom, base_denom, amount }));
    Ok(())
}

/// Writes a deposit that was finalized.
pub(crate) fn write_deposit(
    rows: &mut Rows<'_, '_>,
    source: &Source,
    deposit: FinalizedDeposit,
) -> Result<(), Error> {
    let mut state = stored_state(rows)?;
    let FinalizedDeposit { l1_sequence, from, to, denom, base_denom, amount, l1_height, outcome, reason } =
        deposit;
    if l1_sequence == 0 || (state.last_deposit > 0 && l1_sequence != state.last_deposit + 1) {
        return Ok(());
    }
    if state.first_deposit == 0 {
        state.first_deposit = l1_sequence;
    }
    state.last_deposit = l1_sequence;
    rows.set::<BridgeStates>(&0, &Message(state));
    rows.push::<ReceiverDeposits>(&Text(to.clone()), l1_sequence)?;
    if !is_same(rows, &from, &to) {
        rows.push::<SenderDeposits>(&Text(from.clone()), l1_sequence)?;
    }
    let arrival = i32::from(match outcome {
        Outcome::Arrived => Arrival::Arrived,
        Outcome::HookFailed => Arrival::HookFailed,
        Outcome::Refunded => Arrival::Refunded,
    });
    let source = Some(source.clone());
    let row = Finalized { source, from, to, denom, base_denom, amount, l1_height, arrival, reason };
    rows.put::<FinalizedDeposits>(&l1_sequence, &Message(row));
    Ok(())
}

/// True if both texts are of one account, so that the lists of its sides are disjoint.
fn is_same(rows: &Rows<'_, '_>, a: &str, b: &str) -> bool {
    let prefix = &rows.chain().prefix;
    let account = |text: &str| Account::from_bech32(text, prefix).or_else(|| Account::from_hex_literal(text));
    a == b || account(a).is_some_and(|of_a| account(b) == Some(of_a))
}
