//! Writes replies of the layer one, and compares outputs with what follows from the rollup's withdrawals and blocks.

use chain::bridge::tree::{self, Tree};
use store::{Message, Snapshot, Txn};

use super::{
    Comparison, L1Claim, L1Claims, L1Proposal, L1Replies, L1State, L1States, OpenClaims, Output, Outputs,
    PIECE, WithdrawalTrees, l1_state, leaf,
};
use crate::bridge::BRIDGE;
use crate::opchild::{self, BridgeState};
use crate::{Error, block};

/// Outputs that are compared in one commit: one has few withdrawals, unless the bridge is shut down.
const MAX_COMPARED: usize = 64;

/// Former proposals of an output that are kept.
const MAX_FORMER: usize = 16;

/// What changed by replies of the layer one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Applied {
    /// Outputs that were deleted, or replaced by another proposal.
    pub deleted: Vec<u64>,
    /// Outputs whose root differs from ours, after earlier ones were equal.
    pub differing: Vec<u64>,
}

/// Writes replies of the layer one, and compares the outputs that can be.
pub fn apply(txn: &mut Txn<'_>, replies: &L1Replies) -> Result<Applied, Error> {
    let mut applied = Applied::default();
    let mut state = l1_state(txn)?.unwrap_or_default();
    state.bridge = replies.bridge;
    (state.finalization_seconds, state.disabled) = (replies.finalization_seconds, replies.disabled);
    for (number, proposal) in &replies.outputs {
        if put_output(txn, &mut state, *number, proposal)? {
            applied.deleted.push(*number);
        }
    }
    if let Some(last) = replies.last {
        for number in last.saturating_add(1)..=state.last_output {
            delete_output(txn, &mut state, number)?;
            applied.deleted.push(number);
        }
        state.last_output = state.last_output.min(last);
    }
    for (sequence, claim) in &replies.claimed {
        put_claim(txn, *sequence, claim)?;
    }
    applied.differing = compare_outputs(txn, &mut state)?;
    txn.put::<L1States>(&0, &Message(state));
    Ok(applied)
}

/// Writes a claim. Without its transaction the withdrawal stays among those that are asked about.
fn put_claim(txn: &mut Txn<'_>, sequence: u64, claim: &L1Claim) -> Result<(), Error> {
    let stored = txn.get::<L1Claims>(&sequence)?.map(|Message(claim)| claim);
    let seen = stored.map_or(claim.seen, |stored| stored.seen);
    if claim.ends_search(seen) {
        txn.delete::<OpenClaims>(&sequence);
    }
    txn.put::<L1Claims>(&sequence, &Message(L1Claim { seen, tx_hash: claim.tx_hash.clone() }));
    Ok(())
}

/// Writes an output. True if it replaces one that was not known to be deleted.
fn put_output(
    txn: &mut Txn<'_>,
    state: &mut L1State,
    number: u64,
    proposal: &L1Proposal,
) -> Result<bool, Error> {
    let stored = txn.get::<Outputs>(&number)?.map(|Message(output)| output);
    state.last_output = state.last_output.max(number);
    if stored.as_ref().is_some_and(|stored| stored.live() == Some(proposal)) {
        return Ok(false);
    }
    delete_output(txn, state, number)?;
    let is_replaced = stored.as_ref().is_some_and(|stored| stored.live().is_some());
    let mut former = stored.as_ref().map(|stored| stored.former.clone()).unwrap_or_default();
    former.extend(stored.and_then(|stored| stored.proposal));
    former.drain(..former.len().saturating_sub(MAX_FORMER));
    let output = Output { proposal: Some(proposal.clone()), former, ..Output::default() };
    txn.put::<Outputs>(&number, &Message(output));
    Ok(is_replaced)
}

/// Marks an output as deleted, and removes what follows from it.
fn delete_output(txn: &mut Txn<'_>, state: &mut L1State, number: u64) -> Result<(), Error> {
    state.compared = state.compared.min(number.saturating_sub(1));
    for member in [&mut state.first_equal, &mut state.mismatch] {
        if *member >= number {
            *member = 0;
        }
    }
    let Some(Message(output)) = txn.get::<Outputs>(&number)? else { return Ok(()) };
    for (level, nodes) in (0_u8..).zip(levels(&output)) {
        for row in 0..nodes.div_ceil(PIECE as u64) {
            txn.delete::<WithdrawalTrees>(&(number, level, u32::try_from(row).unwrap_or(u32::MAX)));
        }
    }
    let withdrawals = output.first_withdrawal..output.first_withdrawal.saturating_add(output.withdrawals);
    withdrawals.for_each(|sequence| txn.delete::<OpenClaims>(&sequence));
    let Output { proposal, former, .. } = output;
    let output = Output { proposal, former, deleted: true, ..Output::default() };
    txn.put::<Outputs>(&number, &Message(output));
    Ok(())
}

/// The numbers of nodes of the levels of an output's tree.
fn levels(output: &Output) -> impl Iterator<Item = u64> {
    let leaves = if output.withdrawals == 0 { 0 } else { output.withdrawals.next_power_of_two().max(2) };
    std::iter::successors(Some(leaves), |nodes| Some(nodes / 2)).take_while(|nodes| *nodes > 0)
}

fn compare_outputs(txn: &mut Txn<'_>, state: &mut L1State) -> Result<Vec<u64>, Error> {
    let Some(index) = BRIDGE.state(txn)? else { return Ok(Vec::new()) };
    let withdrawals = opchild::state(txn)?;
    let mut differing = Vec::new();
    for number in (state.compared + 1..=state.last_output).take(MAX_COMPARED) {
        let before = if number == 1 { Some(0) } else { l2_block(txn, number - 1)? };
        let Some(Message(mut output)) = txn.get::<Outputs>(&number)? else {
            state.compared = number;
            continue;
        };
        let Some(proposal) = output.live().cloned() else { break };
        if proposal.l2_block > index.height {
            break;
        }
        state.compared = number;
        let Some(before) = before.filter(|before| before.saturating_add(1) >= index.from) else {
            set_comparison(txn, number, output, Comparison::Impossible);
            continue;
        };
        let Some((first, tree)) = tree_of(txn, &withdrawals, state.bridge, (before, proposal.l2_block))?
        else {
            set_comparison(txn, number, output, Comparison::Impossible);
            continue;
        };
        let Some(hash) = block::hash_at(txn, proposal.l2_block)? else {
            set_comparison(txn, number, output, Comparison::Impossible);
            continue;
        };
        let count = opchild::first_after(txn, &withdrawals, proposal.l2_block)? - first;
        if count > 0 {
            (output.first_withdrawal, output.withdrawals) = (first, count);
        }
        if tree::output_root(&tree.root(), &hash)[..] != proposal.root[..] {
            let comparison = if state.first_equal > 0 { Comparison::Differs } else { Comparison::Unknown };
            if comparison == Comparison::Differs {
                differing.push(number);
                if state.mismatch == 0 {
                    state.mismatch = number;
                }
            }
            set_comparison(txn, number, output, comparison);
            continue;
        }
        if state.first_equal == 0 {
            state.first_equal = number;
        }
        (output.storage_root, output.last_block_hash) = (tree.root().to_vec(), hash.to_vec());
        put_tree(txn, number, &tree);
        for sequence in first..first + count {
            if txn.get::<L1Claims>(&sequence)?.is_none() {
                txn.put::<OpenClaims>(&sequence, &());
            }
        }
        set_comparison(txn, number, output, Comparison::Equal);
    }
    Ok(differing)
}

fn set_comparison(txn: &mut Txn<'_>, number: u64, mut output: Output, comparison: Comparison) {
    output.set_comparison(comparison);
    txn.put::<Outputs>(&number, &Message(output));
}

fn l2_block(snapshot: &Txn<'_>, number: u64) -> Result<Option<u64>, Error> {
    let output = snapshot.get::<Outputs>(&number)?;
    Ok(output.and_then(|Message(output)| output.live().map(|proposal| proposal.l2_block)))
}

/// The tree of the withdrawals in the blocks after the first height up to the second one, and the number of the first of them.
fn tree_of(
    snapshot: &dyn Snapshot,
    state: &BridgeState,
    bridge: u64,
    (after, to): (u64, u64),
) -> Result<Option<(u64, Tree)>, Error> {
    let (first, end) =
        (opchild::first_after(snapshot, state, after)?, opchild::first_after(snapshot, state, to)?);
    let mut leaves = Vec::new();
    for sequence in first..end {
        let withdrawal = opchild::withdrawal(snapshot, sequence)?;
        let Some(leaf) = withdrawal.and_then(|withdrawal| leaf(bridge, sequence, &withdrawal)) else {
            return Ok(None);
        };
        leaves.push(leaf);
    }
    Ok(Some((first, Tree::new(leaves))))
}

fn put_tree(txn: &mut Txn<'_>, number: u64, tree: &Tree) {
    for (level, nodes) in (0_u8..).zip(tree.levels()) {
        for (row, nodes) in (0_u32..).zip(nodes.chunks(PIECE)) {
            txn.put::<WithdrawalTrees>(&(number, level, row), &nodes.concat());
        }
    }
}
