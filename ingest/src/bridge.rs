//! Asks the layer one of a rollup for the outputs and claims of its bridge, for the optional index `bridge`. An address is a node's REST,
//! or an index of the layer one that serves the same paths.
//!
//! The lane's writer writes the replies. A layer one that does not reply delays nothing: withdrawals then have no proofs yet.
//!
//! # Invariants
//!
//! * What is stored is read again in each round, so a restart or a rewind needs nothing.
//! * An output counts as deleted only if the layer one lists none of its number or above, in a state that is not older than the output.

pub(crate) mod alarm;
pub(crate) mod settings;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chain::bridge::claimable_at;
use node::{BridgeOutput, Node, Rest};
use schema::bridge::BRIDGE;
use schema::bridge_output::{self, L1Claim, L1Proposal, L1Replies, L1State};
use schema::opchild;
use store::{Snapshot, Store};
use tokio::sync::mpsc;

use crate::optional::Fetched;
use crate::rounds::{Failure, Rounds, send};

/// Newest outputs of a round. More are asked for if all of them are new or replaced.
const NEWEST: u64 = 10;

/// Outputs of a reply, at most: the limit of the module.
const PAGE: u64 = 1000;

/// Withdrawals of a round that are asked about: the newest, and the next of all others.
const CLAIMS: [usize; 2] = [8, 16];

/// Transactions of a search for a claim, the most that a node gives: bridges count their withdrawals independently of each other.
const CLAIM_TXS: u32 = 100;

/// Asks the layer one.
pub(crate) struct BridgeSource {
    pub(crate) l1: Rest,
    /// The rollup's.
    pub(crate) node: Arc<Node>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) poll: Duration,
    /// To the writer of the block lane.
    pub(crate) found: mpsc::Sender<Fetched>,
}

/// What was asked before.
#[derive(Default)]
struct Asked {
    /// The id of the layer one.
    chain: bool,
    /// The last withdrawal that was asked about in turn.
    claim: u64,
    /// Claims that no address knows were reported.
    unknown_claims: bool,
}

/// A withdrawal whose claim is asked about.
struct Claimable {
    sequence: u64,
    /// Its leaf.
    hash: [u8; 32],
    /// The block of the layer one with its output: claims come later.
    since: u64,
    /// When the claim was seen, if only its transaction is not known, nanoseconds since 1970 UTC.
    seen: Option<u64>,
}

impl BridgeSource {
    /// Runs for ever; pauses after errors.
    pub(crate) async fn run(self) -> Infallible {
        let (mut rounds, mut asked) = (Rounds::new("layer one", self.poll), Asked::default());
        loop {
            let outcome = self.round(&mut asked).await;
            rounds
                .pause(outcome, |error| {
                    tracing::warn!(error, "outputs of the bridge are old until the layer one replies");
                })
                .await;
        }
    }

    /// Asks once.
    async fn round(&self, asked: &mut Asked) -> Result<(), Failure> {
        let Some(bridge) = self.bridge().await? else { return Ok(()) };
        if !asked.chain {
            self.check_chain().await?;
            asked.chain = true;
        }
        let config = self.l1.bridge_config(bridge).await?;
        let replies = |outputs: &[BridgeOutput], last: Option<u64>, claimed: Vec<(u64, L1Claim)>| {
            let (finalization_seconds, disabled) = (config.finalization_seconds, config.disabled);
            let outputs = outputs.iter().map(|output| (output.index, proposal(output))).collect();
            Fetched::L1(L1Replies { bridge, finalization_seconds, disabled, outputs, last, claimed })
        };
        let (newest, missing) = self.newest(bridge).await?;
        let last = newest.last().map_or(0, |output| output.index);
        for (offset, limit) in missing {
            let page = self.l1.bridge_outputs(bridge, offset, limit).await?;
            send(&self.found, replies(&page, None, Vec::new())).await;
        }
        let is_new = {
            let snapshot = self.store.snapshot()?;
            let state = bridge_output::l1_state(&*snapshot)?;
            let is_same = |state: &L1State| {
                let known = (state.bridge, state.finalization_seconds, state.disabled, state.last_output);
                known == (bridge, config.finalization_seconds, config.disabled, last)
            };
            !state.as_ref().is_some_and(is_same)
                || !all_stored(&*snapshot, &newest)?
                || can_compare(&*snapshot, &state.unwrap_or_default())?
        };
        if is_new {
            send(&self.found, replies(&newest, Some(last), Vec::new())).await;
        }
        let claimed = self.claimed(bridge, config.finalization_seconds, asked).await?;
        if !claimed.is_empty() {
            send(&self.found, replies(&[], None, claimed)).await;
        }
        Ok(())
    }

    /// Fails if the addresses are of another chain than the rollup's events name.
    async fn check_chain(&self) -> Result<(), Failure> {
        let expected = opchild::state(&*self.store.snapshot()?)?.l1_chain_id;
        let found = self.l1.node_info().await?.chain_id;
        if expected.is_empty() || expected == found {
            return Ok(());
        }
        let reason = format!(
            "`bridge.l1` is chain {found}, and the rollup's bridge is on {expected}: correct the address"
        );
        Err(Failure::Reply(reason))
    }

    /// The rollup's bridge; `None` if it has none yet.
    async fn bridge(&self) -> Result<Option<u64>, Failure> {
        let stored = opchild::state(&*self.store.snapshot()?)?.bridge;
        if stored > 0 {
            return Ok(Some(stored));
        }
        // The event may be older than the first block.
        match &self.node.rest {
            Some(rest) => Ok(Some(rest.bridge_number().await?)),
            None => Ok(None),
        }
    }

    /// The newest outputs, ascending, as far back as the stored ones may differ, and pages of those between, by offset and limit.
    async fn newest(&self, bridge: u64) -> Result<(Vec<BridgeOutput>, Vec<(u64, u64)>), Failure> {
        let mut limit = NEWEST;
        loop {
            let (mut newest, height) = self.l1.newest_bridge_outputs(bridge, limit).await?;
            newest.reverse();
            let snapshot = self.store.snapshot()?;
            let stored = bridge_output::l1_state(&*snapshot)?.map_or(0, |state| state.last_output);
            let proposed = bridge_output::output(&*snapshot, stored)?;
            let proposed = proposed.and_then(|output| output.live().map(|proposal| proposal.l1_height));
            if let Some((height, proposed)) =
                height.zip(proposed).filter(|(height, proposed)| height < proposed)
            {
                let reason = format!(
                    "`bridge.l1` is at height {height}, and output {stored} was proposed at {proposed}: it has not got that far"
                );
                return Err(Failure::Reply(reason));
            }
            let Some(oldest) = newest.first() else { return Ok((newest, Vec::new())) };
            if oldest.index > stored + 1 {
                // Outputs are numbered from 1 without gaps.
                let pages = (stored..oldest.index - 1).step_by(usize::try_from(PAGE).unwrap_or(1));
                let missing = pages.map(|offset| (offset, PAGE.min(oldest.index - 1 - offset))).collect();
                return Ok((newest, missing));
            }
            let is_known = all_stored(&*snapshot, &newest[..1])?;
            if is_known || oldest.index > stored || limit >= PAGE || (newest.len() as u64) < limit {
                return Ok((newest, Vec::new()));
            }
            limit = (limit * 10).min(PAGE);
        }
    }

    /// Withdrawals that were claimed, of some that can be, and claims whose transactions were found now.
    async fn claimed(
        &self,
        bridge: u64,
        period: u64,
        asked: &mut Asked,
    ) -> Result<Vec<(u64, L1Claim)>, Failure> {
        let claimable = {
            let snapshot = self.store.snapshot()?;
            let [newest, others] = CLAIMS;
            let mut open = bridge_output::open_claims(&*snapshot, asked.claim, others)?;
            asked.claim = if open.len() < others { 0 } else { open.last().copied().unwrap_or_default() };
            open.extend(bridge_output::newest_open_claims(&*snapshot, newest)?);
            let open: BTreeSet<u64> = open.into_iter().collect();
            let state = bridge_output::l1_state(&*snapshot)?.unwrap_or_default();
            let mut found = Vec::new();
            for sequence in open {
                found.extend(claimable(&*snapshot, &state, period, bridge, sequence)?);
            }
            found
        };
        let mut claimed = Vec::new();
        for withdrawal in claimable {
            let Claimable { sequence, hash, since, seen } = withdrawal;
            if seen.is_none() && !self.is_claimed(bridge, hash, asked).await? {
                continue;
            }
            let claim =
                L1Claim { seen: now().unsigned_abs(), tx_hash: self.claim_tx(bridge, sequence, since).await };
            if seen.is_none_or(|seen| claim.ends_search(seen)) {
                claimed.push((sequence, claim));
            }
        }
        Ok(claimed)
    }

    /// Whether a withdrawal was claimed. An index of the layer one that begins in the middle does not know of each whether it was not.
    async fn is_claimed(&self, bridge: u64, hash: [u8; 32], asked: &mut Asked) -> Result<bool, Failure> {
        match self.l1.is_withdrawal_claimed(bridge, hash, None).await {
            Err(error @ node::Error::MethodMissing { .. }) => {
                if !std::mem::replace(&mut asked.unknown_claims, true) {
                    tracing::warn!(%error, "no address of the layer one knows all claims");
                }
                Ok(false)
            }
            outcome => Ok(outcome?),
        }
    }

    /// The hash of the transaction that claimed a withdrawal; empty if the layer one has no index of transactions, or not of this one,
    /// or fails: that there is a claim is known without it.
    async fn claim_tx(&self, bridge: u64, sequence: u64, since: u64) -> Vec<u8> {
        const KIND: &str = "finalize_token_withdrawal";
        // One condition that few transactions meet, because a node reads all that any of them selects.
        let query = format!("{KIND}.l2_sequence='{sequence}' AND tx.height>={since}");
        let found = match self.l1.find_txs(&query, 1, CLAIM_TXS, true).await {
            Ok((found, ..)) => found,
            Err(error) => {
                tracing::debug!(sequence, %error, "transaction of a claim not found");
                return Vec::new();
            }
        };
        let (bridge, sequence) = (bridge.to_string(), sequence.to_string());
        let is_it = |event: &node::FoundEvent| {
            event.kind == KIND
                && event.get("bridge_id") == Some(&bridge)
                && event.get("l2_sequence") == Some(&sequence)
        };
        let mut found = found.into_iter().filter(|(tx, _)| tx.code == 0 && tx.events.iter().any(is_it));
        found.next().map(|(tx, _)| tx.hash.to_vec()).unwrap_or_default()
    }
}

/// A withdrawal, if claims of it are accepted.
fn claimable(
    snapshot: &dyn Snapshot,
    state: &L1State,
    period: u64,
    bridge: u64,
    sequence: u64,
) -> Result<Option<Claimable>, Failure> {
    let Some(withdrawal) = opchild::withdrawal(snapshot, sequence)? else { return Ok(None) };
    let covering = bridge_output::covering(snapshot, state, withdrawal.height())?;
    let proposal = covering.and_then(|(_, output)| output.live().cloned());
    let Some(L1Proposal { l1_height: since, l1_time, .. }) = proposal else { return Ok(None) };
    if claimable_at(l1_time, period) > now() {
        return Ok(None);
    }
    let seen = bridge_output::claim(snapshot, sequence)?.map(|claim| claim.seen);
    let hash = bridge_output::leaf(bridge, sequence, &withdrawal);
    Ok(hash.map(|hash| Claimable { sequence, hash, since, seen }))
}

/// True if these outputs are stored.
fn all_stored(snapshot: &dyn Snapshot, outputs: &[BridgeOutput]) -> Result<bool, Failure> {
    for output in outputs {
        let stored = bridge_output::output(snapshot, output.index)?;
        if stored.as_ref().and_then(bridge_output::Output::live) != Some(&proposal(output)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if the next output that was not compared can be.
fn can_compare(snapshot: &dyn Snapshot, state: &L1State) -> Result<bool, Failure> {
    let next = state.compared + 1;
    if next > state.last_output {
        return Ok(false);
    }
    let height = BRIDGE.state(snapshot)?.map_or(0, |index| index.height);
    let output = bridge_output::output(snapshot, next)?;
    Ok(output.is_none_or(|output| output.live().is_some_and(|proposal| proposal.l2_block <= height)))
}

fn proposal(output: &BridgeOutput) -> L1Proposal {
    let BridgeOutput { l2_block, l1_block, l1_time, root, .. } = *output;
    L1Proposal { l2_block, root: root.to_vec(), l1_height: l1_block, l1_time: l1_time.unix_nanos() }
}

/// Nanoseconds since 1970 UTC.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
