//! What the layer one says of a rollup's outputs and claims, and the trees that prove withdrawals; part of the optional index `bridge`.
//!
//! A lane asks the layer one, and the writer of the index applies its replies ([`apply`]). A rewind of blocks takes back what was
//! written since, and the lane asks again.
//!
//! # Invariants
//!
//! * A proof is served only of an output whose root equals the one that follows from our withdrawals and block hash.
//! * An output is compared once the index has all blocks that it covers.

mod replies;

pub use self::replies::{Applied, apply};

use chain::bridge::tree::{Leaf, Node};
use store::key::All;
use store::{Message, Order, Snapshot};

use crate::Error;
use crate::opchild;

/// Nodes of a row of a tree: a proof reads one row of each level.
const PIECE: usize = 32;

store::tables! {
    /// Outputs of the rollup on the layer one.
    ///
    /// | number of the output (8, BE) | → [`Output`] (protobuf)
    pub table Outputs("bridge_output", 0x9c, Scan): u64 => Message<Output>;

    /// Withdrawals that were claimed on the layer one.
    ///
    /// | number of the withdrawal (8, BE) | → [`L1Claim`] (protobuf)
    pub table L1Claims("bridge_claim", 0x9d, Point): u64 => Message<L1Claim>;

    /// Withdrawals with a proof that were not seen to be claimed, or whose claim's transaction is searched for.
    ///
    /// | number of the withdrawal (8, BE) | → nothing
    pub table OpenClaims("bridge_open_claim", 0x8f, Scan): u64 => ();

    /// Trees of withdrawals: the nodes of a level in rows of 32.
    ///
    /// | number of the output (8, BE) | level, from 0 for the leaves (1) | number of the row, from 0 (4, BE) | → nodes (32 each)
    pub table WithdrawalTrees("withdrawal_tree", 0x9e, Scan): (u64, u8, u32) => Vec<u8>;

    /// The state of the rollup's bridge on the layer one.
    ///
    /// | 0 (1) | → [`L1State`] (protobuf)
    pub table L1States("bridge_l1_state", 0x9f, Point): u8 => Message<L1State>;
}

/// A claim of a withdrawal.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct L1Claim {
    /// When it was seen, nanoseconds since 1970 UTC.
    #[prost(uint64, tag = "1")]
    pub seen: u64,
    /// The transaction of the layer one; empty if no node has found it.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub tx_hash: Vec<u8>,
}

/// Time for which the transaction of a claim is searched for, in nanoseconds: an index that lacks it after a day never had it.
const SEARCH: u64 = 24 * 60 * 60 * 1_000_000_000;

impl L1Claim {
    /// Whether it ends the search for the transaction of a claim that was first seen at `seen`.
    pub fn ends_search(&self, seen: u64) -> bool {
        !self.tx_hash.is_empty() || self.seen.saturating_sub(seen) >= SEARCH
    }
}

/// A proposal of an output.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct L1Proposal {
    /// The last block of the rollup that it covers.
    #[prost(uint64, tag = "1")]
    pub l2_block: u64,
    /// The output root.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "2")]
    pub root: Vec<u8>,
    /// The block of the layer one.
    #[prost(uint64, tag = "3")]
    pub l1_height: u64,
    /// Its time, nanoseconds since 1970 UTC.
    #[prost(int64, tag = "4")]
    pub l1_time: i64,
}

/// An output.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Output {
    /// Its proposal.
    #[prost(message, optional, tag = "1")]
    pub proposal: Option<L1Proposal>,
    /// It was deleted, and not proposed again.
    #[prost(bool, tag = "2")]
    pub deleted: bool,
    /// Its former proposals, the last of them, which were deleted; oldest first.
    #[prost(message, repeated, tag = "3")]
    pub former: Vec<L1Proposal>,
    /// How its root compares with ours.
    #[prost(enumeration = "Comparison", tag = "4")]
    pub comparison: i32,
    /// The root of the withdrawals, if both roots are equal.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "5")]
    pub storage_root: Vec<u8>,
    /// The hash of its last block, if both roots are equal.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "6")]
    pub last_block_hash: Vec<u8>,
    /// The number of its first withdrawal, if it was compared and has any.
    #[prost(uint64, tag = "7")]
    pub first_withdrawal: u64,
    /// How many it has, if it was compared.
    #[prost(uint64, tag = "8")]
    pub withdrawals: u64,
}

impl Output {
    /// Its proposal, unless it was deleted.
    pub fn live(&self) -> Option<&L1Proposal> {
        self.proposal.as_ref().filter(|_| !self.deleted)
    }
}

/// How the root of an output compares with that of our withdrawals and block hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum Comparison {
    /// The index has not all of its blocks yet.
    Pending = 0,
    /// Both are equal.
    Equal = 1,
    /// They differ: one of both is false.
    Differs = 2,
    /// They differ, and so did all before: an executor of an earlier version may hash in another way.
    Unknown = 3,
    /// It covers blocks before the first one of the index, or a withdrawal that the layer one cannot pay.
    Impossible = 4,
}

/// The state of the bridge on the layer one.
#[derive(Clone, Copy, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct L1State {
    /// The bridge.
    #[prost(uint64, tag = "1")]
    pub bridge: u64,
    /// Seconds from a proposal until claims are accepted. It changes without an event.
    #[prost(uint64, tag = "2")]
    pub finalization_seconds: u64,
    /// No deposits are accepted any more.
    #[prost(bool, tag = "3")]
    pub disabled: bool,
    /// The last output that is not deleted; 0 if there is none.
    #[prost(uint64, tag = "4")]
    pub last_output: u64,
    /// The last output that was compared, up to which all are; 0 if there is none.
    #[prost(uint64, tag = "5")]
    pub compared: u64,
    /// The first output with an equal root; 0 if there is none.
    #[prost(uint64, tag = "6")]
    pub first_equal: u64,
    /// The first output after that with another root; 0 if there is none.
    #[prost(uint64, tag = "7")]
    pub mismatch: u64,
}

/// Replies of the layer one.
#[derive(Clone, Debug, Default)]
pub struct L1Replies {
    /// The bridge.
    pub bridge: u64,
    /// Its period now.
    pub finalization_seconds: u64,
    /// No deposits are accepted any more.
    pub disabled: bool,
    /// Outputs by number, ascending.
    pub outputs: Vec<(u64, L1Proposal)>,
    /// The last output, if `outputs` ends with it: stored ones after it were deleted.
    pub last: Option<u64>,
    /// Withdrawals that were claimed.
    pub claimed: Vec<(u64, L1Claim)>,
}

/// The state of the bridge on the layer one; `None` while it has not answered.
pub fn l1_state(snapshot: &dyn Snapshot) -> Result<Option<L1State>, Error> {
    Ok(store::table::read::<L1States>(snapshot, &0)?.map(|Message(state)| state))
}

/// The output with this number.
pub fn output(snapshot: &dyn Snapshot, number: u64) -> Result<Option<Output>, Error> {
    Ok(store::table::read::<Outputs>(snapshot, &number)?.map(|Message(output)| output))
}

/// The number of the first output: a source whose blocks begin in the middle does not have those before.
pub fn first(snapshot: &dyn Snapshot) -> Result<Option<u64>, Error> {
    let rows = store::table::rows::<Outputs>(snapshot, &All, Order::Asc, 1)?;
    Ok(rows.first().map(|(number, _)| *number))
}

/// The first output that covers the block `height` and is not deleted, with its number.
pub fn covering(
    snapshot: &dyn Snapshot,
    state: &L1State,
    height: u64,
) -> Result<Option<(u64, Output)>, Error> {
    let (mut low, mut high) = (1, state.last_output.saturating_add(1));
    let mut found = None;
    while low < high {
        let middle = low.midpoint(high);
        match output(snapshot, middle)? {
            Some(output) if output.live().is_some_and(|proposal| proposal.l2_block >= height) => {
                found = Some((middle, output));
                high = middle;
            }
            _ => low = middle + 1,
        }
    }
    Ok(found)
}

/// The proof of a withdrawal in an output; `None` unless the output has it, and its root is equal to ours.
pub fn proof(
    snapshot: &dyn Snapshot,
    (number, output): (u64, &Output),
    sequence: u64,
) -> Result<Option<Vec<Node>>, Error> {
    let place = sequence.checked_sub(output.first_withdrawal).filter(|place| *place < output.withdrawals);
    let (Some(place), Comparison::Equal) = (place, output.comparison()) else { return Ok(None) };
    let levels = u8::try_from(output.withdrawals.next_power_of_two().max(2).ilog2()).unwrap_or(u8::MAX);
    let mut proof = Vec::new();
    for level in 0..levels {
        let sibling = usize::try_from((place >> level) ^ 1).unwrap_or(usize::MAX);
        let row = u32::try_from(sibling / PIECE).unwrap_or(u32::MAX);
        let nodes =
            store::table::read::<WithdrawalTrees>(snapshot, &(number, level, row))?.unwrap_or_default();
        let node = nodes.chunks_exact(32).nth(sibling % PIECE).and_then(|node| Node::try_from(node).ok());
        let missing = || Error::Record {
            table: "withdrawal_tree",
            key: format!("{number}, {level}, {row}"),
            reason: "a node of the tree is missing".to_owned(),
        };
        proof.push(node.ok_or_else(missing)?);
    }
    Ok(Some(proof))
}

/// The claim of a withdrawal, if it was seen.
pub fn claim(snapshot: &dyn Snapshot, sequence: u64) -> Result<Option<L1Claim>, Error> {
    Ok(store::table::read::<L1Claims>(snapshot, &sequence)?.map(|Message(claim)| claim))
}

/// The first `limit` withdrawals after `after` of which the layer one is asked: see [`OpenClaims`].
pub fn open_claims(snapshot: &dyn Snapshot, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
    let all = &store::key::All;
    let rows = store::table::rows_after::<OpenClaims>(snapshot, all, &after, store::Order::Asc, limit)?;
    Ok(rows.into_iter().map(|(sequence, ())| sequence).collect())
}

/// The last `limit` of these withdrawals, newest first.
pub fn newest_open_claims(snapshot: &dyn Snapshot, limit: usize) -> Result<Vec<u64>, Error> {
    let rows = store::table::rows::<OpenClaims>(snapshot, &store::key::All, store::Order::Desc, limit)?;
    Ok(rows.into_iter().map(|(sequence, ())| sequence).collect())
}

/// The leaf of a withdrawal; `None` if the layer one cannot pay its amount, which has more than 64 bits.
pub fn leaf(bridge: u64, sequence: u64, withdrawal: &opchild::Withdrawal) -> Option<Node> {
    let opchild::Withdrawal { from, to, base_denom, amount, .. } = withdrawal;
    Some(Leaf { bridge, sequence, from, to, base_denom, amount: amount.parse().ok()? }.hash())
}
