//! Tables of the layer one of OPinit bridges, part of the optional index `bridge`: what the events of `x/ophost` say.

use chain::bridge::tree::{Leaf, Node};
use chain::bridge::{BridgeChange, BridgeEvent, Claim, Deposit, Proposal};
use store::key::{All, Text};
use store::{Message, Order, Snapshot, Txn};

use crate::Error;
use crate::index::Rows;
use crate::opchild::Source;

store::tables! {
    /// Bridges.
    ///
    /// | bridge (8, BE) | → [`Bridge`] (protobuf)
    pub table Bridges("ophost_bridge", 0x97, Scan): u64 => Message<Bridge>;

    /// Outputs that were proposed.
    ///
    /// | bridge (8, BE) | number of the output (8, BE) | → [`ProposedOutput`] (protobuf)
    pub table ProposedOutputs("ophost_output", 0x98, Scan): (u64, u64) => Message<ProposedOutput>;

    /// Deposits into rollups.
    ///
    /// | bridge (8, BE) | number of the deposit (8, BE) | → [`L1Deposit`] (protobuf)
    pub table L1Deposits("ophost_deposit", 0x99, Scan): (u64, u64) => Message<L1Deposit>;

    /// Withdrawals that were paid out, numbered from 1 for each bridge.
    ///
    /// | bridge (8, BE) | number (8, BE) | → [`PaidWithdrawal`] (protobuf)
    pub table Claims("ophost_claim", 0x9a, Scan): (u64, u64) => Message<PaidWithdrawal>;

    /// The numbers of claims, by the withdrawal: it is claimed once.
    ///
    /// | bridge (8, BE) | number of the withdrawal on the rollup (8, BE) | → number of the claim (varint)
    pub table ClaimNumbers("ophost_claim_number", 0x8e, Point): (u64, u64) => u64;

    /// Withdrawals that were paid out, by their hash: the layer one remembers nothing else of them.
    ///
    /// | bridge (8, BE) | hash of the withdrawal (32) | → nothing
    pub table ClaimHashes("ophost_claim_hash", 0x8d, Point): (u64, Node) => ();

    /// Replies of the node about bridges, whose settings also change without an event.
    ///
    /// | bridge (8, BE) | → JSON, as the node sent it
    pub table BridgeReplies("ophost_bridge_reply", 0x8c, Point): u64 => Vec<u8>;

    /// Transactions that publish blocks of a rollup, by who publishes them.
    ///
    /// | submitter (escaped text) | first ordinal (8, BE) | → up to 32 sequences (varints)
    pub list Batches("ophost_batch", 0x9b): Text;
}

/// A bridge.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct Bridge {
    /// Where it was created; absent if that was before the first block.
    #[prost(message, optional, tag = "1")]
    pub created: Option<Source>,
    /// Who created it; empty if that is not known.
    #[prost(string, tag = "2")]
    pub creator: String,
    /// Who may propose outputs; empty if that is not known.
    #[prost(string, tag = "3")]
    pub proposer: String,
    /// Who may delete outputs; empty if that is not known.
    #[prost(string, tag = "4")]
    pub challenger: String,
    /// Who publishes the blocks; empty if that is not known.
    #[prost(string, tag = "5")]
    pub submitter: String,
    /// Where they are published; empty if that is not known.
    #[prost(string, tag = "6")]
    pub batch_chain: String,
    /// The first indexed output; 0 if there is none.
    #[prost(uint64, tag = "7")]
    pub first_output: u64,
    /// The last output that is not deleted; 0 if there is none.
    #[prost(uint64, tag = "8")]
    pub last_output: u64,
    /// The last output that was ever proposed; 0 if there is none.
    #[prost(uint64, tag = "9")]
    pub newest_output: u64,
    /// The first indexed deposit; 0 if there is none.
    #[prost(uint64, tag = "10")]
    pub first_deposit: u64,
    /// The last deposit; 0 if there is none.
    #[prost(uint64, tag = "11")]
    pub last_deposit: u64,
    /// How many claims are indexed.
    #[prost(uint64, tag = "12")]
    pub claims: u64,
}

/// The proposals of an output: the last one counts unless it is deleted.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct ProposedOutput {
    /// Oldest first.
    #[prost(message, repeated, tag = "1")]
    pub proposals: Vec<OneProposal>,
}

/// A proposal of an output.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct OneProposal {
    /// Where it was proposed.
    #[prost(message, optional, tag = "1")]
    pub source: Option<Source>,
    /// The last block of the rollup that it covers.
    #[prost(uint64, tag = "2")]
    pub l2_block: u64,
    /// The output root.
    #[serde(serialize_with = "crate::json::hex")]
    #[prost(bytes = "vec", tag = "3")]
    pub root: Vec<u8>,
    /// Who proposed it.
    #[prost(string, tag = "4")]
    pub proposer: String,
    /// Where it was deleted; absent if it is not.
    #[prost(message, optional, tag = "5")]
    pub deleted: Option<Source>,
    /// Who deleted it.
    #[prost(string, tag = "6")]
    pub challenger: String,
}

/// A deposit into a rollup.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct L1Deposit {
    /// Where it was initiated.
    #[prost(message, optional, tag = "1")]
    pub source: Option<Source>,
    /// The sender.
    #[prost(string, tag = "2")]
    pub from: String,
    /// The receiver on the rollup, which may be any text.
    #[prost(string, tag = "3")]
    pub to: String,
    /// The denom on the layer one.
    #[prost(string, tag = "4")]
    pub l1_denom: String,
    /// The denom on the rollup.
    #[prost(string, tag = "5")]
    pub l2_denom: String,
    /// Decimal.
    #[prost(string, tag = "6")]
    pub amount: String,
    /// Whether it has a hook.
    #[prost(bool, tag = "7")]
    pub has_hook: bool,
}

/// A withdrawal that was paid out.
#[derive(Clone, PartialEq, Eq, serde::Serialize, prost::Message)]
pub struct PaidWithdrawal {
    /// Where it was claimed.
    #[prost(message, optional, tag = "1")]
    pub source: Option<Source>,
    /// The output that proves it.
    #[prost(uint64, tag = "2")]
    pub output: u64,
    /// Its number on the rollup.
    #[prost(uint64, tag = "8")]
    pub sequence: u64,
    /// The sender on the rollup.
    #[prost(string, tag = "3")]
    pub from: String,
    /// The receiver.
    #[prost(string, tag = "4")]
    pub to: String,
    /// The denom on the layer one.
    #[prost(string, tag = "5")]
    pub l1_denom: String,
    /// The denom on the rollup.
    #[prost(string, tag = "6")]
    pub l2_denom: String,
    /// Decimal.
    #[prost(string, tag = "7")]
    pub amount: String,
}

/// The bridge with this number, if an event names it.
pub fn bridge(snapshot: &dyn Snapshot, number: u64) -> Result<Option<Bridge>, Error> {
    Ok(store::table::read::<Bridges>(snapshot, &number)?.map(|Message(bridge)| bridge))
}

/// The numbers of up to `limit` bridges after `after`.
pub fn bridges_after(snapshot: &dyn Snapshot, after: u64, limit: usize) -> Result<Vec<u64>, Error> {
    let rows = store::table::rows_after::<Bridges>(snapshot, &All, &after, Order::Asc, limit)?;
    Ok(rows.into_iter().map(|(number, _)| number).collect())
}

/// The last reply of the node about a bridge.
pub fn bridge_reply(snapshot: &dyn Snapshot, number: u64) -> Result<Option<Vec<u8>>, Error> {
    Ok(store::table::read::<BridgeReplies>(snapshot, &number)?)
}

/// Writes replies of the node about bridges.
pub fn put_replies(txn: &mut Txn<'_>, replies: &[(u64, Vec<u8>)]) {
    for (number, json) in replies {
        txn.put::<BridgeReplies>(number, json);
    }
}

/// Writes what an event of a layer one says; `seq` is that of its transaction.
pub(crate) fn write(
    rows: &mut Rows<'_, '_>,
    source: &Source,
    seq: Option<u64>,
    event: BridgeEvent,
) -> Result<(), Error> {
    match event {
        BridgeEvent::Bridge(change) => change_bridge(rows, source, change),
        BridgeEvent::Proposed(proposal) => propose(rows, source, proposal),
        BridgeEvent::Deleted { bridge, output, challenger } => {
            delete(rows, source, (bridge, output), &challenger)
        }
        BridgeEvent::Deposit(deposit) => write_deposit(rows, source, deposit),
        BridgeEvent::Claim(claim) => write_claim(rows, source, claim),
        BridgeEvent::Batch { submitter } => match seq {
            Some(seq) => push_once(rows, submitter, seq),
            None => Ok(()),
        },
        BridgeEvent::Info { .. } | BridgeEvent::Withdrawal(_) | BridgeEvent::Finalized(_) => Ok(()),
    }
}

fn of(rows: &Rows<'_, '_>, number: u64) -> Result<Bridge, Error> {
    Ok(rows.get::<Bridges>(&number)?.map_or_else(Bridge::default, |Message(bridge)| bridge))
}

fn change_bridge(rows: &mut Rows<'_, '_>, source: &Source, change: BridgeChange) -> Result<(), Error> {
    let mut bridge = of(rows, change.bridge)?;
    if change.creator.is_some() {
        bridge.created = Some(source.clone());
    }
    let named = [
        (&mut bridge.creator, change.creator),
        (&mut bridge.proposer, change.proposer),
        (&mut bridge.challenger, change.challenger),
        (&mut bridge.submitter, change.submitter),
        (&mut bridge.batch_chain, change.batch_chain),
    ];
    for (member, value) in named {
        if let Some(value) = value {
            *member = value;
        }
    }
    rows.set::<Bridges>(&change.bridge, &Message(bridge));
    Ok(())
}

fn propose(rows: &mut Rows<'_, '_>, source: &Source, proposal: Proposal) -> Result<(), Error> {
    let Proposal { bridge: number, output, l2_block, root, proposer } = proposal;
    let mut bridge = of(rows, number)?;
    if bridge.first_output == 0 {
        bridge.first_output = output;
    }
    bridge.last_output = output;
    bridge.newest_output = bridge.newest_output.max(output);
    rows.set::<Bridges>(&number, &Message(bridge));
    let key = (number, output);
    let mut row = rows.get::<ProposedOutputs>(&key)?.map_or_else(ProposedOutput::default, |Message(row)| row);
    row.proposals.push(OneProposal {
        source: Some(source.clone()),
        l2_block,
        root: root.to_vec(),
        proposer,
        deleted: None,
        challenger: String::new(),
    });
    rows.set::<ProposedOutputs>(&key, &Message(row));
    Ok(())
}

/// Deletes an output and all later ones.
fn delete(
    rows: &mut Rows<'_, '_>,
    source: &Source,
    (number, output): (u64, u64),
    challenger: &str,
) -> Result<(), Error> {
    let mut bridge = of(rows, number)?;
    for deleted in output.max(bridge.first_output)..=bridge.last_output {
        let Some(Message(mut row)) = rows.get::<ProposedOutputs>(&(number, deleted))? else { continue };
        if let Some(proposal) = row.proposals.last_mut().filter(|proposal| proposal.deleted.is_none()) {
            proposal.deleted = Some(source.clone());
            challenger.clone_into(&mut proposal.challenger);
        }
        rows.set::<ProposedOutputs>(&(number, deleted), &Message(row));
    }
    bridge.last_output = bridge.last_output.min(output.saturating_sub(1));
    rows.set::<Bridges>(&number, &Message(bridge));
    Ok(())
}

fn write_deposit(rows: &mut Rows<'_, '_>, source: &Source, deposit: Deposit) -> Result<(), Error> {
    let Deposit { bridge: number, l1_sequence, from, to, l1_denom, l2_denom, amount, data } = deposit;
    let mut bridge = of(rows, number)?;
    if bridge.first_deposit == 0 {
        bridge.first_deposit = l1_sequence;
    }
    bridge.last_deposit = bridge.last_deposit.max(l1_sequence);
    rows.set::<Bridges>(&number, &Message(bridge));
    let (source, has_hook) = (Some(source.clone()), !data.is_empty());
    let row = L1Deposit { source, from, to, l1_denom, l2_denom, amount, has_hook };
    rows.set::<L1Deposits>(&(number, l1_sequence), &Message(row));
    Ok(())
}

fn write_claim(rows: &mut Rows<'_, '_>, source: &Source, claim: Claim) -> Result<(), Error> {
    let Claim { bridge: number, output, sequence, from, to, l1_denom, l2_denom, amount } = claim;
    let mut bridge = of(rows, number)?;
    bridge.claims += 1;
    rows.set::<ClaimNumbers>(&(number, sequence), &bridge.claims);
    // A layer one pays no amount of more bits.
    if let Ok(amount) = amount.parse() {
        let leaf = Leaf { bridge: number, sequence, from: &from, to: &to, base_denom: &l1_denom, amount };
        rows.set::<ClaimHashes>(&(number, leaf.hash()), &());
    }
    let source = Some(source.clone());
    let row = PaidWithdrawal { source, output, sequence, from, to, l1_denom, l2_denom, amount };
    rows.put::<Claims>(&(number, bridge.claims), &Message(row));
    rows.set::<Bridges>(&number, &Message(bridge));
    Ok(())
}

/// Adds a transaction to the list of its submitter, once.
fn push_once(rows: &mut Rows<'_, '_>, submitter: String, seq: u64) -> Result<(), Error> {
    rows.push_once::<Batches>(&Text(submitter), seq)
}
