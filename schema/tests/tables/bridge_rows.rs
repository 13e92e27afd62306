//! A row of each table of the index `bridge`.

use schema::bridge_output::{
    Comparison, L1Claim, L1Claims, L1Proposal, L1State, L1States, OpenClaims, Output, Outputs,
    WithdrawalTrees,
};
use schema::opchild::{
    self, Arrival, BridgeState, BridgeStates, Finalized, FinalizedDeposits, ReceiverDeposits,
    ReceiverWithdrawals, SenderDeposits, SenderWithdrawals, Withdrawals,
};
use schema::ophost::{
    Batches, Bridge, BridgeReplies, Bridges, ClaimHashes, ClaimNumbers, Claims, L1Deposit, L1Deposits,
    OneProposal, PaidWithdrawal, ProposedOutput, ProposedOutputs,
};
use store::key::Text;
use store::{Message, Txn};

fn source() -> opchild::Source {
    opchild::Source { height: 300, time: 1_700_000_000_000_000_000, tx_hash: vec![0xaa; 32] }
}

pub(crate) fn rollup(txn: &mut Txn<'_>) {
    let (from, to) = ("init1from".to_owned(), "init1to".to_owned());
    let (denom, base_denom, amount) = ("l2/ab".to_owned(), "uinit".to_owned(), "300".to_owned());
    txn.push::<ReceiverWithdrawals>(&Text(to.clone()), 7).unwrap();
    txn.push::<SenderWithdrawals>(&Text(from.clone()), 7).unwrap();
    txn.push::<ReceiverDeposits>(&Text(to.clone()), 5).unwrap();
    txn.push::<SenderDeposits>(&Text(from.clone()), 5).unwrap();
    let deposit = Finalized {
        source: Some(source()),
        from: from.clone(),
        to: to.clone(),
        denom: denom.clone(),
        base_denom: base_denom.clone(),
        amount: amount.clone(),
        l1_height: 900,
        arrival: Arrival::HookFailed.into(),
        reason: "hook failed; x".to_owned(),
    };
    txn.put::<FinalizedDeposits>(&5, &Message(deposit));
    let withdrawal = opchild::Withdrawal { source: Some(source()), from, to, denom, base_denom, amount };
    txn.put::<Withdrawals>(&7, &Message(withdrawal));
    let state = BridgeState {
        bridge: 1,
        l1_chain_id: "l1-1".to_owned(),
        first_withdrawal: 1,
        last_withdrawal: 7,
        first_deposit: 1,
        last_deposit: 5,
    };
    txn.put::<BridgeStates>(&0, &Message(state));
    let proposal = L1Proposal { l2_block: 310, root: vec![0xbb; 32], l1_height: 905, l1_time: 9 };
    let output = Output {
        proposal: Some(proposal.clone()),
        deleted: true,
        former: vec![proposal],
        comparison: Comparison::Equal.into(),
        storage_root: vec![0xcc; 32],
        last_block_hash: vec![0xdd; 32],
        first_withdrawal: 7,
        withdrawals: 1,
    };
    txn.put::<Outputs>(&3, &Message(output));
    let claim = L1Claim { seen: 1_700_000_000_000_000_000, tx_hash: vec![0xff; 32] };
    txn.put::<L1Claims>(&6, &Message(claim));
    txn.put::<OpenClaims>(&7, &());
    txn.put::<WithdrawalTrees>(&(3, 0, 0), &[0xee; 64].to_vec());
    let state = L1State {
        bridge: 1,
        finalization_seconds: 604_800,
        disabled: true,
        last_output: 3,
        compared: 3,
        first_equal: 1,
        mismatch: 2,
    };
    txn.put::<L1States>(&0, &Message(state));
}

pub(crate) fn layer_one(txn: &mut Txn<'_>) {
    let (from, to, amount) = ("init1from".to_owned(), "init1to".to_owned(), "300".to_owned());
    let (l1_denom, l2_denom) = ("uinit".to_owned(), "l2/ab".to_owned());
    let bridge = Bridge {
        created: Some(source()),
        creator: "init1creator".to_owned(),
        proposer: "init1proposer".to_owned(),
        challenger: "init1challenger".to_owned(),
        submitter: "init1submitter".to_owned(),
        batch_chain: "INITIA".to_owned(),
        first_output: 1,
        last_output: 2,
        newest_output: 3,
        first_deposit: 1,
        last_deposit: 5,
        claims: 6,
    };
    txn.put::<Bridges>(&1, &Message(bridge));
    let proposal = OneProposal {
        source: Some(source()),
        l2_block: 310,
        root: vec![0xbb; 32],
        proposer: "init1proposer".to_owned(),
        deleted: Some(source()),
        challenger: "init1challenger".to_owned(),
    };
    txn.put::<ProposedOutputs>(&(1, 3), &Message(ProposedOutput { proposals: vec![proposal] }));
    let claim = PaidWithdrawal {
        source: Some(source()),
        output: 2,
        sequence: 6,
        from: from.clone(),
        to: to.clone(),
        l1_denom: l1_denom.clone(),
        l2_denom: l2_denom.clone(),
        amount: amount.clone(),
    };
    txn.put::<Claims>(&(1, 6), &Message(claim));
    txn.put::<ClaimNumbers>(&(1, 6), &6);
    txn.put::<ClaimHashes>(&(1, [0xab; 32]), &());
    txn.put::<BridgeReplies>(&1, &br#"{"bridge_id":"1"}"#.to_vec());
    let deposit = L1Deposit { source: Some(source()), from, to, l1_denom, l2_denom, amount, has_hook: true };
    txn.put::<L1Deposits>(&(1, 5), &Message(deposit));
    txn.push::<Batches>(&Text::from("init1submitter"), 4).unwrap();
}
