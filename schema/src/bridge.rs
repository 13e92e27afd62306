//! The optional index `bridge`: transfers over OPinit bridges. A rollup has withdrawals and deposits ([`crate::opchild`]), the layer one
//! has bridges, outputs and claims ([`crate::ophost`]). What the layer one says about a rollup's outputs, a lane asks it for
//! ([`crate::bridge_output`]).

use std::sync::Once;

use chain::bridge::{BridgeEvent, Unread, may_have_events};
use chain::comet::Event;
use chain::comet::order::is_of_the_end;
use store::{List as _, Table as _};

use crate::Error;
use crate::block::BlockEvents;
use crate::bridge_output::{L1Claims, L1States, OpenClaims, Outputs, WithdrawalTrees};
use crate::index::{Index, Input, Rows, StoredBlock};
use crate::opchild::{
    self, BridgeStates, FinalizedDeposits, ReceiverDeposits, ReceiverWithdrawals, SenderDeposits,
    SenderWithdrawals, Source, Withdrawals,
};
use crate::ophost::{
    self, Batches, BridgeReplies, Bridges, ClaimHashes, ClaimNumbers, Claims, L1Deposits, ProposedOutputs,
};
use crate::records::damaged;
use crate::tx::{TxRecord, Txs};

/// The index.
pub const BRIDGE: Index = Index {
    name: "bridge",
    version: 3,
    tables: &[
        Withdrawals::SPEC,
        ReceiverWithdrawals::SPEC,
        SenderWithdrawals::SPEC,
        FinalizedDeposits::SPEC,
        ReceiverDeposits::SPEC,
        SenderDeposits::SPEC,
        BridgeStates::SPEC,
        Bridges::SPEC,
        ProposedOutputs::SPEC,
        L1Deposits::SPEC,
        Claims::SPEC,
        ClaimNumbers::SPEC,
        ClaimHashes::SPEC,
        BridgeReplies::SPEC,
        Batches::SPEC,
        Outputs::SPEC,
        L1Claims::SPEC,
        OpenClaims::SPEC,
        WithdrawalTrees::SPEC,
        L1States::SPEC,
    ],
    replies: &[
        BridgeReplies::SPEC,
        Outputs::SPEC,
        L1Claims::SPEC,
        OpenClaims::SPEC,
        WithdrawalTrees::SPEC,
        L1States::SPEC,
    ],
    input: Input::Records,
    needs_evm: false,
    rows,
};

fn rows(block: &StoredBlock<'_>, rows: &mut Rows<'_, '_>) -> Result<(), Error> {
    let source = |tx_hash: Vec<u8>| Source { height: block.height, time: block.time(), tx_hash };
    let events = block.events()?;
    let invalid = |error: serde_json::Error| damaged::<BlockEvents>(block.height, &error.to_string());
    let events: Vec<Event<'_>> =
        if may_have_events(&events) { serde_json::from_slice(&events).map_err(invalid)? } else { Vec::new() };
    let (end, begin): (Vec<_>, Vec<_>) = events.iter().partition(|event| is_of_the_end(event));
    begin.into_iter().try_for_each(|event| write(rows, &source(Vec::new()), None, event))?;
    block.txs(|seq, record| {
        if !may_have_events(record) {
            return Ok(());
        }
        let invalid = |error: String| damaged::<Txs>(seq, &error);
        let TxRecord { txhash, events, .. } =
            TxRecord::read(record).map_err(|error| invalid(error.to_string()))?;
        let hash = hex::decode(txhash).map_err(|error| invalid(error.to_string()))?;
        let source = source(hash);
        events.iter().try_for_each(|event| write(rows, &source, Some(seq), event))
    })?;
    end.into_iter().try_for_each(|event| write(rows, &source(Vec::new()), None, event))
}

/// Writes what an event says; `seq` is that of its transaction.
fn write(rows: &mut Rows<'_, '_>, source: &Source, seq: Option<u64>, event: &Event<'_>) -> Result<(), Error> {
    match BridgeEvent::try_read(event) {
        Err(Unread::Other) => Ok(()),
        Err(Unread::Invalid) => {
            report_invalid(source.height, &event.kind);
            Ok(())
        }
        Ok(BridgeEvent::Info { bridge, l1_chain_id }) => opchild::write_info(rows, bridge, l1_chain_id),
        Ok(BridgeEvent::Withdrawal(withdrawal)) => opchild::write_withdrawal(rows, source, withdrawal),
        Ok(BridgeEvent::Finalized(deposit)) => opchild::write_deposit(rows, source, deposit),
        Ok(event) => ophost::write(rows, source, seq, event),
    }
}

/// Logs an event that cannot be read. The first one only: a module that writes another form writes it in every block.
fn report_invalid(height: u64, kind: &str) {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        tracing::warn!(height, kind, "event of the bridge left out: an attribute is missing or invalid");
    });
}
