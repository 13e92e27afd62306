//! Response of `GET /v2/tx/status`, rendered by each poll. Pure.
//!
//! # Invariants
//!
//! * Members and their order are those of the worked examples, and nulls are written.
//! * The top level repeats the first transfer, because clients differ in which of the two they read.
//! * A `withdrawal` member, which clients ignore if unknown, adds the phase that no state expresses; a `swaps` member adds
//!   the steps for which `transfer_sequence` has no form.

use chain::{Timestamp, U256};
use registry::{Registry, intermediary};

use self::response::{
    Blocking, Details, Event, HopEvent, Release, Status, SwapEvent, TransferError, Tx, Txs, WithdrawalAt,
};
use crate::chains::known_chain::KnownChains;
use crate::evidence::asset_location::tokens;
use crate::evidence::hop::{Ack, Ibc, LayerZero, ObservedHop, Phase, TxRef, Withdrawal};
use crate::evidence::state::Progress;
use crate::evidence::transfer::{State, Transfer};
use crate::record::{Record, Source};

mod response;

pub use self::response::Answer;

/// The status of a registered transaction as of `now`, in nanoseconds since 1970.
pub fn json(record: &Record, registry: &Registry, now: i64) -> Result<Vec<u8>, serde_json::Error> {
    let writer = Writer { registry, chains: &record.chains, now };
    let transfers = match &record.source {
        Source::Executed { .. } => {
            record.transfers.iter().map(|transfer| writer.transfer(transfer)).collect()
        }
        Source::Unseen { abandoned: Some(seconds) } => vec![bare(
            State::Abandoned,
            Some(error("STATUS_ERROR_INDEXING", format!("transaction not seen for {seconds} seconds"), None)),
        )],
        Source::Unseen { abandoned: None } if record.is_without_index => {
            let message = format!(
                "cannot be looked up: the nodes of {} index no transactions, and their newest blocks do not have it",
                record.chain
            );
            vec![bare(State::Submitted, Some(error("STATUS_ERROR_INDEXING", message, None)))]
        }
        Source::Unseen { abandoned: None } | Source::Unsure => vec![bare(State::Submitted, None)],
        Source::Failed { code, message } => {
            vec![bare(State::CompletedError, Some(execution(*code, message)))]
        }
    };
    let state = record.state();
    let top = top(state, &transfers);
    serde_json::to_vec(&Answer { transfers, top, status: legacy(state) })
}

/// URL of a page that shows a transaction; empty if none is known.
pub(crate) fn explorer_link(registry: &Registry, kept: &KnownChains, chain: &str, hash: &str) -> String {
    let page = match registry.chain(chain) {
        Some(chain) => registry[chain].explorer_tx.as_deref(),
        None => kept.get(chain).and_then(|chain| chain.explorer_tx.as_deref()),
    };
    page.map_or_else(String::new, |page| page.replace("${txHash}", hash))
}

/// The top level: the only transfer, or the combination of several.
fn top(state: State, transfers: &[Status]) -> Status {
    if let [only] = transfers {
        return only.clone();
    }
    let (mut sequence, mut swaps) = (Vec::new(), Vec::new());
    let mut blocking = None;
    for transfer in transfers {
        if let (None, Some(of)) = (&blocking, &transfer.next_blocking_transfer) {
            let transfer_sequence_index = sequence.len() + of.transfer_sequence_index;
            blocking = Some(Blocking { transfer_sequence_index });
        }
        swaps.extend(transfer.swaps.iter().cloned().map(|mut swap| {
            swap.transfer_sequence_index += sequence.len();
            swap
        }));
        sequence.extend(transfer.transfer_sequence.iter().cloned());
    }
    Status {
        state: name(state),
        transfer_sequence: sequence,
        next_blocking_transfer: blocking.filter(|_| !state.is_final()),
        transfer_asset_release: release(transfers),
        swaps,
        error: transfers.iter().find_map(|transfer| transfer.error.clone()),
    }
}

/// The release of all transfers: their sum if all are of one token on one chain, as the parts of a split swap are; else
/// that of the first.
fn release(transfers: &[Status]) -> Option<Release> {
    let first = transfers.first()?.transfer_asset_release.as_ref()?;
    let mut sum = Release { amount: None, ..first.clone() };
    let mut total = U256::ZERO;
    for transfer in transfers {
        let other = transfer.transfer_asset_release.as_ref();
        let same = other.filter(|other| (&other.chain_id, &other.denom) == (&sum.chain_id, &sum.denom));
        let amount = same.and_then(|same| U256::from_str_radix(same.amount.as_deref()?, 10).ok());
        let (Some(same), Some(added)) = (same, amount.and_then(|amount| total.checked_add(amount))) else {
            return Some(first.clone());
        };
        total = added;
        sum.released &= same.released;
    }
    sum.amount = Some(total.to_string());
    Some(sum)
}

fn bare(state: State, error: Option<TransferError>) -> Status {
    Status {
        state: name(state),
        transfer_sequence: Vec::new(),
        next_blocking_transfer: None,
        transfer_asset_release: None,
        swaps: Vec::new(),
        error,
    }
}

fn error(kind: &'static str, message: String, details: Option<Details>) -> TransferError {
    TransferError { kind, message, details }
}

/// An SDK error lists the innermost cause first and ends with the registered text of its code.
fn execution(code: Option<u64>, message: &str) -> TransferError {
    let registered = message.rsplit(": ").next().unwrap_or(message).to_owned();
    let details = code.map(|code| Details { code, message: registered });
    error("STATUS_ERROR_TRANSACTION_EXECUTION", message.to_owned(), details)
}

fn name(state: State) -> &'static str {
    match state {
        State::Submitted => "STATE_SUBMITTED",
        State::Pending => "STATE_PENDING",
        State::PendingError => "STATE_PENDING_ERROR",
        State::CompletedSuccess => "STATE_COMPLETED_SUCCESS",
        State::CompletedError => "STATE_COMPLETED_ERROR",
        State::Abandoned => "STATE_ABANDONED",
    }
}

/// The legacy state, which one client waits for.
fn legacy(state: State) -> &'static str {
    match state {
        State::Submitted => "STATE_SUBMITTED",
        State::Pending | State::PendingError => "STATE_PENDING",
        State::CompletedSuccess => "STATE_COMPLETED",
        State::CompletedError => "STATE_FAILED",
        State::Abandoned => "STATE_ABANDONED",
    }
}

struct Writer<'a> {
    registry: &'a Registry,
    chains: &'a KnownChains,
    now: i64,
}

impl Writer<'_> {
    fn transfer(&self, transfer: &Transfer) -> Status {
        let verdict = transfer.verdict();
        let state = transfer.state();
        let error = match state {
            State::CompletedError => {
                let message = verdict.reason.unwrap_or_else(|| "transfer failed".to_owned());
                let message = [Some(message), self.keyless_refund(transfer)].into_iter().flatten();
                let message = message.collect::<Vec<_>>().join("; ");
                Some(error("STATUS_ERROR_TRANSFER", message, None))
            }
            State::Pending | State::Abandoned if transfer.unfollowed().is_some() => {
                let what = transfer.unfollowed().map_or("", |hop| hop.what.as_str());
                Some(error("STATUS_ERROR_INDEXING", format!("cannot be followed: {what}"), None))
            }
            State::Abandoned => {
                let message = format!("no progress for {} seconds", transfer.abandoned.unwrap_or_default());
                Some(error("STATUS_ERROR_INDEXING", message, None))
            }
            State::PendingError => {
                self.keyless_refund(transfer).map(|what| error("STATUS_ERROR_TRANSFER", what, None))
            }
            _ => None,
        };
        let release = verdict.release.and_then(|(place, released)| {
            let at = tokens(self.registry, &transfer.hops, place)?;
            Some(Release { chain_id: at.chain, denom: at.denom, amount: at.amount, released })
        });
        Status {
            state: name(state),
            transfer_sequence: (0..transfer.hops.len()).filter_map(|at| self.event(transfer, at)).collect(),
            next_blocking_transfer: verdict
                .blocking
                .filter(|at| !matches!(transfer.hops[*at], ObservedHop::Unfollowed(_)))
                .map(|at| Blocking { transfer_sequence_index: shown_before(transfer, at) }),
            transfer_asset_release: release,
            swaps: self.swaps(transfer),
            error,
        }
    }

    /// What is to be said of a refund to the account that a packet's call was made by, which has no key: a deposit that
    /// the call made and that the rollup withdrew again.
    fn keyless_refund(&self, transfer: &Transfer) -> Option<String> {
        let ObservedHop::Withdrawal(refund) = transfer.hops.last()? else { return None };
        let l1 = &self.registry[self.registry.chain(&refund.to.as_ref()?.0)?];
        transfer.hops.iter().find_map(|hop| {
            let ObservedHop::Ibc(Ibc { packet, .. }) = hop else { return None };
            let caller = intermediary::hook_caller(l1.vm, &packet.dst_channel, &packet.sender)?;
            (refund.receiver == caller.to_bech32(&l1.bech32_prefix)).then(|| {
                format!(
                    "the rollup refused the deposit of a received packet, and the tokens return to {}, which has no key: \
                     only another packet of {} over {} can use them",
                    refund.receiver, packet.sender, packet.id.channel
                )
            })
        })
    }

    fn swaps(&self, transfer: &Transfer) -> Vec<SwapEvent> {
        let swap = |(at, hop): (usize, &ObservedHop)| {
            let ObservedHop::Swap(hop) = hop else { return None };
            let returned = hop.outcome.as_ref().ok();
            Some(SwapEvent {
                chain_id: hop.chain.clone(),
                tx: self.tx(&hop.sent),
                transfer_sequence_index: shown_before(transfer, at),
                denom_in: hop.offered.denom.clone(),
                amount_in: hop.offered.amount.clone(),
                denom_out: returned.and_then(|coin| coin.denom.clone()),
                amount_out: returned.map(|coin| coin.amount.clone()),
                error: hop.outcome.as_ref().err().cloned(),
            })
        };
        transfer.hops.iter().enumerate().filter_map(swap).collect()
    }

    /// None for a swap and for a step that cannot be followed: the wire has no member for them here.
    fn event(&self, transfer: &Transfer, at: usize) -> Option<Event> {
        let progress = transfer.progress(at);
        let hop = &transfer.hops[at];
        let tx = |at: &Option<TxRef>| at.as_ref().and_then(|at| self.tx(at));
        let (state, txs) = match hop {
            ObservedHop::Ibc(hop) => {
                let txs = Txs::PacketTxs {
                    send_tx: self.tx(&hop.sent),
                    receive_tx: tx(&hop.received),
                    acknowledge_tx: tx(&hop.acknowledged),
                    timeout_tx: tx(&hop.timed_out),
                    error: packet_error(hop),
                };
                (ibc_state(progress), txs)
            }
            ObservedHop::Deposit(hop) => {
                let receive_tx = hop.finalized.as_ref().and_then(|(at, _)| self.tx(at));
                (op_state(progress), Txs::BridgeTxs { send_tx: self.tx(&hop.sent), receive_tx })
            }
            ObservedHop::Withdrawal(hop) => {
                let receive_tx = hop.claimed.as_ref().and_then(|claim| tx(&claim.tx));
                (op_state(progress), Txs::BridgeTxs { send_tx: self.tx(&hop.sent), receive_tx })
            }
            ObservedHop::LayerZero(hop) => {
                let txs = Txs::MessageTxs {
                    send_tx: self.tx(&hop.sent),
                    receive_tx: hop.received.as_ref().and_then(|(at, _)| self.tx(at)),
                    compose_tx: tx(&hop.composed),
                    error_tx: tx(&hop.alert),
                };
                (lz_state(hop, progress, transfer.abandoned.is_some()), txs)
            }
            ObservedHop::Swap(_) | ObservedHop::Unfollowed(_) => return None,
        };
        let (from, to) = (hop.from().to_owned(), hop.to().unwrap_or_default().to_owned());
        let event = HopEvent {
            from_chain_id: from.clone(),
            to_chain_id: to.clone(),
            state,
            txs,
            src_chain_id: from,
            dst_chain_id: to,
            withdrawal: if let ObservedHop::Withdrawal(hop) = hop {
                Some(self.withdrawal(hop))
            } else {
                None
            },
        };
        match hop {
            ObservedHop::Ibc(_) => Some(Event::IbcTransfer(event)),
            ObservedHop::Deposit(_) | ObservedHop::Withdrawal(_) => Some(Event::OpInitTransfer(event)),
            ObservedHop::LayerZero(_) => Some(Event::LayerZeroTransfer(event)),
            ObservedHop::Swap(_) | ObservedHop::Unfollowed(_) => None,
        }
    }

    fn withdrawal(&self, hop: &Withdrawal) -> WithdrawalAt {
        WithdrawalAt {
            l2_sequence: hop.l2_sequence.to_string(),
            phase: match hop.phase(self.now) {
                Phase::Initiated => "INITIATED",
                Phase::Proposed => "PROPOSED",
                Phase::Provable => "PROVABLE",
                Phase::Claimed => "CLAIMED",
            },
            output_index: hop.output.as_ref().map(|output| output.index.to_string()),
            output_tx: hop.output.as_ref().and_then(|output| self.tx(&output.tx)),
            claimable_at: hop.output.as_ref().and_then(|output| output.claimable_at).map(seconds),
        }
    }

    fn tx(&self, at: &TxRef) -> Option<Tx> {
        let hash = at.hash.as_deref()?;
        Some(Tx {
            chain_id: at.chain.clone(),
            tx_hash: hash.to_owned(),
            explorer_link: explorer_link(self.registry, self.chains, &at.chain, hash),
            on_chain_at: at.time.map(seconds),
        })
    }
}

/// The number of hops in `transfer_sequence` before a hop.
fn shown_before(transfer: &Transfer, at: usize) -> usize {
    transfer.hops[..at].iter().filter(|hop| !matches!(hop, ObservedHop::Swap(_))).count()
}

fn seconds(nanos: i64) -> String {
    Timestamp::from_unix_nanos(nanos).seconds()
}

fn ibc_state(progress: Progress) -> &'static str {
    match progress {
        Progress::Unknown => "TRANSFER_UNKNOWN",
        Progress::Sent => "TRANSFER_PENDING",
        Progress::Received => "TRANSFER_RECEIVED",
        Progress::Done => "TRANSFER_SUCCESS",
        Progress::Failed => "TRANSFER_FAILURE",
    }
}

/// The wire has no failed state for the bridge: a failed deposit was received all the same.
fn op_state(progress: Progress) -> &'static str {
    match progress {
        Progress::Unknown => "OPINIT_TRANSFER_UNKNOWN",
        Progress::Sent => "OPINIT_TRANSFER_SENT",
        Progress::Received | Progress::Done | Progress::Failed => "OPINIT_TRANSFER_RECEIVED",
    }
}

/// Any account can retry a message that could not be delivered, so it has failed only when it is abandoned.
fn lz_state(hop: &LayerZero, progress: Progress, is_abandoned: bool) -> &'static str {
    match progress {
        Progress::Received => "LAYER_ZERO_TRANSFER_WAITING_FOR_COMPOSE",
        Progress::Done => "LAYER_ZERO_TRANSFER_RECEIVED",
        _ if hop.alert.is_some() && is_abandoned => "LAYER_ZERO_TRANSFER_FAILED",
        Progress::Unknown => "LAYER_ZERO_TRANSFER_UNKNOWN",
        Progress::Sent | Progress::Failed => "LAYER_ZERO_TRANSFER_SENT",
    }
}

/// The details require the reason, or that the sending chain has processed the acknowledgement.
fn packet_error(hop: &Ibc) -> Option<TransferError> {
    let Some(Ack::Error { message, reason }) = &hop.ack else {
        return hop
            .timed_out
            .as_ref()
            .map(|_| error("PACKET_ERROR_TIMEOUT", "packet timed out".to_owned(), None));
    };
    let code = message.strip_prefix("ABCI code: ").and_then(|rest| rest.split(':').next());
    let code = code.and_then(|code| code.trim().parse().ok());
    let reason = reason.as_ref().or(hop.acknowledged.as_ref().map(|_| message));
    let details = code.zip(reason).map(|(code, reason)| Details { code, message: reason.clone() });
    Some(error("PACKET_ERROR_ACKNOWLEDGEMENT", message.clone(), details))
}
