//! Queries for the optimistic bridge: deposits on the rollup, outputs and claims on the L1.

use std::future::ready;

use chain::bridge::claimable_at;
use chain::bridge::tree::Leaf;
use node::{BridgeOutput, FoundEvent, TxSearchHit};

use super::ChainQueries;
use super::packet::nothing;
use crate::chains::local_index::BridgeStep;
use crate::chains::query_error::QueryError;
use crate::chains::search::{Search, Wanted};
use crate::evidence::detect;
use crate::evidence::event::{around, finalized, find};
use crate::evidence::hop::{Deposit, Finalized, ObservedHop, Output, Relation, TxRef, Withdrawal};
use crate::evidence::state::Observation;

impl ChainQueries<'_> {
    pub(super) async fn finalized(&self, hop: &Deposit) -> Result<Vec<Observation>, QueryError> {
        const KIND: &str = "finalize_token_deposit";
        let Some(to) = &hop.to else { return Ok(Vec::new()) };
        let (search, sequence) = (self.search(to)?, hop.l1_sequence);
        let text = sequence.to_string();
        // A rollup has one bridge, so its events have no bridge number.
        let place = |tx: &TxSearchHit| find(tx, KIND, &[("l1_sequence", &text)]);
        let indexed = search.indexed(BridgeStep::Finalized { l1_sequence: sequence }, &place);
        let state = match search.clients.rest() {
            _ if indexed.is_some() => Ok(true),
            Ok(rest) => rest.next_deposit(None).await.map(|next| next > sequence).map_err(QueryError::from),
            Err(error) => Err(error.into()),
        };
        if let Ok(false) = state {
            return Ok(Vec::new());
        }
        let condition = format!("{KIND}.l1_sequence='{sequence}'");
        let wanted = Wanted { narrower: condition.clone(), condition, place: &place };
        let found = match indexed {
            Some(found) => Ok(Some(found)),
            None => search.event(&wanted).await,
        };
        let found = match (found, &state) {
            (Ok(Some(found)), _) => Some(found),
            (found, Err(_)) => return nothing(found, state.err()),
            (_, Ok(_)) if hop.finalized.is_some() => return Ok(Vec::new()),
            (_, Ok(_)) => {
                let rest = search.clients.rest()?;
                let holds =
                    |height| async move { rest.next_deposit(Some(height)).await.map(|next| next > sequence) };
                let tip = search.tip().await?.map_or(1, |(height, _)| height);
                match search.event_at_change((1, tip), holds, &wanted).await? {
                    None => {
                        let (at, how) = (search.in_state(tip), Finalized::Unknown);
                        return Ok(vec![Observation::Finalized { sequence, at, how, next: Vec::new() }]);
                    }
                    found => found,
                }
            }
        };
        let Some((found, event)) = found else { return Ok(Vec::new()) };
        let Some(how) = finalized(&found.0.events[event]) else { return Ok(Vec::new()) };
        let at = search.located(&found).await?;
        let message = around(&found.0, event);
        let next = match how {
            Finalized::DepositFailed(_) => self.refund(message, &at).into_iter().collect(),
            Finalized::Good => detect::called_steps(self.registry, message, &at),
            Finalized::HookFailed(_) | Finalized::Unknown => Vec::new(),
        };
        Ok(vec![Observation::Finalized { sequence, at, how, next }])
    }

    /// The withdrawal that a refused deposit starts in its own message.
    fn refund(&self, message: &[FoundEvent], at: &TxRef) -> Option<ObservedHop> {
        let event = message.iter().find(|event| event.kind == "initiate_token_withdrawal")?;
        detect::withdrawal(self.registry, event, Relation::Refund, at).map(ObservedHop::Withdrawal)
    }

    /// The first output at or above the withdrawal's height, by bisection: the L1's state has no deleted one.
    pub(super) async fn output(&self, hop: &Withdrawal) -> Result<Vec<Observation>, QueryError> {
        let Some((l1, bridge)) = &hop.to else { return Ok(Vec::new()) };
        if let Some(output) = &hop.output
            && output.claimable_at.is_some_and(|at| at <= self.now)
        {
            // Final: it can no longer be deleted.
            return Ok(Vec::new());
        }
        let search = self.search(l1)?;
        let rest = search.clients.rest()?;
        // Before the outputs, which may change meanwhile.
        let Some((as_of, _)) = search.tip().await? else { return Ok(Vec::new()) };
        let sequence = hop.l2_sequence;
        let mut last = rest.last_bridge_output(*bridge, None).await?;
        if let Some(output) = &hop.output
            && last.is_none_or(|last| last.l2_block < hop.sent.height)
        {
            // Deleted, unless the node is behind.
            let height = search.recent_height(output.tx.height).await?;
            last = rest.last_bridge_output(*bridge, Some(height)).await?;
        }
        let Some(mut first) = last.filter(|last| last.l2_block >= hop.sent.height) else {
            let deleted = Observation::Output { sequence, as_of, output: None };
            return Ok(if hop.output.is_some() { vec![deleted] } else { Vec::new() });
        };
        let mut low = 1;
        while low < first.index {
            let middle = rest.bridge_output(*bridge, low + (first.index - low) / 2).await?;
            if middle.l2_block >= hop.sent.height { first = middle } else { low = middle.index + 1 }
        }
        let is_known = |known: &Output| known.index == first.index && known.tx.height == first.l1_block;
        if hop.output.as_ref().is_some_and(is_known) {
            return Ok(Vec::new());
        }
        let tx = self.proposal(&search, *bridge, &first).await;
        let claimable_at = Some(claimable_at(first.l1_time.unix_nanos(), hop.finalization_seconds));
        let output = Some(Output { index: first.index, tx, claimable_at });
        Ok(vec![Observation::Output { sequence, as_of, output }])
    }

    /// The transaction that proposed an output; without its hash if no node has it.
    async fn proposal(&self, search: &Search<'_>, bridge: u64, output: &BridgeOutput) -> TxRef {
        const KIND: &str = "propose_output";
        let (index, id) = (output.index.to_string(), bridge.to_string());
        let place = |tx: &TxSearchHit| find(tx, KIND, &[("output_index", &index), ("bridge_id", &id)]);
        let condition = format!("{KIND}.output_index='{index}'");
        let narrower = format!("{KIND}.bridge_id='{bridge}'");
        let wanted = Wanted { condition, narrower, place: &place };
        let indexed = search.indexed(BridgeStep::Proposed { bridge, output: output.index }, &place);
        // A deleted output may have had the same number.
        let found = match indexed.filter(|((tx, _), _)| tx.height == output.l1_block) {
            None => {
                let block = (output.l1_block, output.l1_block);
                search.event_at_change(block, |_| ready(Ok(true)), &wanted).await.ok().flatten()
            }
            found => found,
        };
        let found = match found {
            None => search.event(&wanted).await.ok().flatten(),
            found => found,
        };
        let found = found.filter(|((tx, _), _)| tx.height == output.l1_block);
        TxRef {
            chain: search.chain.clone(),
            hash: found.map(|((tx, _), _)| hex::encode_upper(tx.hash)),
            height: output.l1_block,
            time: Some(output.l1_time.unix_nanos()),
        }
    }

    pub(super) async fn claimed(&self, hop: &Withdrawal) -> Result<Vec<Observation>, QueryError> {
        const KIND: &str = "finalize_token_withdrawal";
        let Some((l1, bridge)) = &hop.to else { return Ok(Vec::new()) };
        let (search, bridge) = (self.search(l1)?, *bridge);
        let hash = withdrawal_hash(hop, bridge);
        let (sequence, id) = (hop.l2_sequence.to_string(), bridge.to_string());
        let place = |tx: &TxSearchHit| find(tx, KIND, &[("l2_sequence", &sequence), ("bridge_id", &id)]);
        let indexed = search.indexed(BridgeStep::Claimed { bridge, l2_sequence: hop.l2_sequence }, &place);
        let state = match (search.clients.rest(), hash) {
            _ if hop.claimed.is_some() || indexed.is_some() => Ok(true),
            (Ok(rest), Some(hash)) => {
                rest.is_withdrawal_claimed(bridge, hash, None).await.map_err(QueryError::from)
            }
            (Err(error), _) => Err(error.into()),
            // The L1 cannot pay such an amount.
            (Ok(_), None) => Ok(false),
        };
        if let Ok(false) = state {
            return Ok(Vec::new());
        }
        let condition = format!("{KIND}.l2_sequence='{sequence}'");
        let wanted = Wanted { condition, narrower: format!("{KIND}.bridge_id='{id}'"), place: &place };
        let found = match indexed {
            Some(found) => Ok(Some(found)),
            None => search.event(&wanted).await,
        };
        let found = match (found, &state, hash) {
            (Ok(Some(found)), ..) => Some(found),
            (found, Err(_), _) => return nothing(found, state.err()),
            (_, Ok(_), Some(hash)) if hop.claimed.is_none() => {
                let rest = search.clients.rest()?;
                let holds =
                    |height| async move { rest.is_withdrawal_claimed(bridge, hash, Some(height)).await };
                let from = hop.output.as_ref().map_or(1, |output| output.tx.height);
                let tip = search.tip().await?.map_or(from, |(height, _)| height);
                search.event_at_change((from, tip), holds, &wanted).await?
            }
            _ => return Ok(Vec::new()),
        };
        let at = match found {
            Some((found, _)) => Some(search.located(&found).await?),
            None => None,
        };
        Ok(vec![Observation::Claimed { sequence: hop.l2_sequence, at }])
    }
}

/// The hash by which the L1 remembers the claim; none for an amount that it cannot pay.
fn withdrawal_hash(hop: &Withdrawal, bridge: u64) -> Option<[u8; 32]> {
    let Withdrawal { l2_sequence: sequence, sender: from, receiver: to, l1_denom: base_denom, .. } = hop;
    let amount = hop.amount.parse().ok()?;
    Some(Leaf { bridge, sequence: *sequence, from, to, base_denom, amount }.hash())
}
