//! Finality of replies about the state of a height.
//!
//! A node announces a height before its state is committed, and near the tip may answer from the state of another
//! height (`node::StateAt`). There, contract calls count only if the server proves the height of their state, and a
//! REST query is preceded by a probe: the sequence of an account that signed a transaction of the height. If the block
//! has no such transaction, the next block must exist, which a node makes only from the committed state, or the height
//! must have been the tip for long. Further below the tip a state is committed; with several endpoints, of which one
//! may lag far behind, it is probed there too.
//!
//! # Invariants
//! * Nothing that follows from a reply is stored before the reply is final.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chain::Account;
use chain::comet::{Event, ResultsResponse};
use chain::tx::is_unordered;
use node::{ContractCall, Error as NodeError, Evm, Node, Probe, RequestContext, StateAt};
use schema::block::Blocks;
use schema::payload::Codec;
use schema::records;
use schema::tx::Txs;
use serde::Deserialize;
use store::{Message, Store};
use tokio::time::Instant;

use crate::Error;

/// At this many blocks below the tip a state is committed on any endpoint that answers: this is seconds, while lags are
/// a fraction of one.
pub(crate) const COMMITTED_DEPTH: u64 = 16;

/// A tip of this age is committed: lags are a fraction of a second. A chain without transactions may have no next block
/// for a minute.
const COMMITTED_AFTER: Duration = Duration::from_secs(5);

/// Transactions of a block that are searched for a probe.
const CANDIDATES: u64 = 64;

/// Finality of one chain's state.
#[derive(Clone)]
pub(crate) struct Finality {
    pub(crate) node: Arc<Node>,
    /// Source of probes of indexed heights.
    pub(crate) store: Arc<dyn Store>,
    pub(crate) codec: Arc<Codec>,
    pub(crate) prefix: String,
    /// The tip, and the time at which it was first seen.
    pub(crate) seen: Arc<Mutex<Option<(u64, Instant)>>>,
}

impl Finality {
    /// The state selector for contract calls at `height`.
    pub(crate) fn contract_state(&self, height: u64) -> StateAt {
        let exact = !is_deep(height, self.node.tip()) || self.several();
        StateAt { exact, ..StateAt::from(Some(height)) }
    }

    /// The state selector for REST queries at `height`, given its block's probe; an error if a reply could not be
    /// final yet.
    pub(crate) fn state(&self, height: u64, probe: Option<&Probe>) -> Result<StateAt, NodeError> {
        let tip = self.node.tip();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let since = seen.filter(|(height, _)| *height == tip).map_or_else(Instant::now, |(_, since)| since);
        *seen = Some((tip, since));
        state(height, (tip, since.elapsed() >= COMMITTED_AFTER, self.several()), probe)
    }

    /// True if the answering endpoint may lag behind the tip.
    fn several(&self) -> bool {
        let Node { evm, rest, .. } = &*self.node;
        evm.as_ref().is_some_and(|evm| evm.servers() > 1)
            || rest.as_ref().is_some_and(|rest| rest.servers() > 1)
    }

    /// A probe of an indexed height, if one is needed and the block yields one.
    pub(crate) fn probe(&self, height: u64) -> Result<Option<Probe>, Error> {
        if is_deep(height, self.node.tip()) && !self.several() {
            return Ok(None);
        }
        let snapshot = self.store.snapshot()?;
        let Some(Message(block)) = store::table::read::<Blocks>(&*snapshot, &height)? else {
            return Ok(None);
        };
        let seqs: Vec<u64> = (block.first_tx..block.first_tx + block.txs.min(CANDIDATES)).collect();
        let mut found = None;
        let read = records::each::<Txs>(&*snapshot, &self.codec, &seqs, |json| {
            if found.is_none() {
                found = probe_in(json, &self.prefix);
            }
        });
        match read {
            // A damaged record yields no probe; the audit reports it.
            Ok(()) | Err(schema::Error::Record { .. }) => Ok(found),
            Err(error) => Err(error.into()),
        }
    }
}

/// A probe from the record of a transaction.
fn probe_in(record: &[u8], prefix: &str) -> Option<Probe> {
    let record: Record<'_> = serde_json::from_slice(record).ok()?;
    if record.code != 0 || record.tx.body.unordered {
        return None;
    }
    signed(&record.events).find_map(|value| probe_of(value, prefix))
}

/// True if the state of `height` is committed wherever there is an answer.
pub(crate) fn is_deep(height: u64, tip: u64) -> bool {
    tip >= height.saturating_add(COMMITTED_DEPTH)
}

fn state(
    height: u64,
    (tip, old, several): (u64, bool, bool),
    probe: Option<&Probe>,
) -> Result<StateAt, NodeError> {
    let state = StateAt::from(Some(height));
    let deep = is_deep(height, tip);
    match probe {
        Some(probe) if several || !deep => Ok(StateAt { probe: Some(probe.clone()), ..state }),
        _ if deep || tip > height || (old && tip == height) => Ok(state),
        _ => {
            let (service, method) = ("node", "state".into());
            let at = RequestContext { service, host: "any endpoint".into(), method, height: Some(height) };
            let message = "no transaction shows that its state is committed, and the next block is not there"
                .to_owned();
            Err(NodeError::NotYet { at, tip: Some(tip), message })
        }
    }
}

/// A probe for the state after these results of the transactions `raw`.
pub(crate) fn probe(results: &ResultsResponse<'_>, raw: &[Vec<u8>], prefix: &str) -> Option<Probe> {
    let txs =
        results.txs_results.iter().zip(raw).filter(|(result, raw)| result.code == 0 && !is_unordered(raw));
    txs.flat_map(|(result, _)| signed(&result.events)).find_map(|value| probe_of(value, prefix))
}

/// The signers of a transaction in order, each as `<address>/<sequence>`. The SDK's own events; contracts cannot emit
/// events of this type.
pub(crate) fn signed<'e>(events: &'e [Event<'_>]) -> impl Iterator<Item = &'e str> {
    let of_txs = events.iter().filter(|event| event.kind == "tx");
    of_txs.flat_map(|event| &event.attributes).filter(|a| a.key == "acc_seq").map(|a| a.value.as_ref())
}

fn probe_of(value: &str, prefix: &str) -> Option<Probe> {
    let (address, sequence) = value.rsplit_once('/')?;
    let sequence = sequence.parse().ok()?;
    Account::from_bech32(address, prefix)?;
    Some(Probe { address: address.to_owned(), sequence })
}

/// The result of a contract call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Returned {
    pub(crate) bytes: Vec<u8>,
    /// Returned by the latest state: the requested one is pruned.
    pub(crate) latest: bool,
}

/// The results of `calls` in `state`, or in the latest one if that is pruned; `None` if a contract reverts.
pub(crate) async fn call_all(
    evm: &Evm,
    state: &StateAt,
    calls: &[ContractCall],
) -> Vec<Result<Option<Returned>, NodeError>> {
    let exact = evm.calls(calls, state).await;
    let is_pruned = |answer: &Result<Vec<u8>, NodeError>| answer.as_ref().is_err_and(NodeError::is_pruned);
    let pruned =
        exact.iter().zip(calls).filter(|(answer, _)| is_pruned(answer)).map(|(_, call)| call.clone());
    let pruned: Vec<_> = pruned.collect();
    let latest = if pruned.is_empty() { Vec::new() } else { evm.calls(&pruned, &StateAt::default()).await };
    let mut latest = latest.into_iter();
    let chosen = exact.into_iter().map(|answer| match is_pruned(&answer).then(|| latest.next()).flatten() {
        Some(answer) => (answer, true),
        None => (answer, false),
    });
    let returned = chosen.map(|(answer, latest)| match answer {
        Ok(bytes) => Ok(Some(Returned { bytes, latest })),
        Err(NodeError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    });
    returned.collect()
}

/// The reply for `state`, or for the latest one if that is pruned; `None` if the contract or module refuses.
pub(crate) async fn answer_or_refusal<T, F>(
    state: &StateAt,
    request: impl Fn(StateAt) -> F,
) -> Result<Option<T>, NodeError>
where
    F: Future<Output = Result<T, NodeError>>,
{
    let answer = match request(state.clone()).await {
        Err(NodeError::Pruned { .. }) => request(StateAt::default()).await,
        answer => answer,
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(NodeError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// The parts of a transaction's record that are read.
#[derive(Deserialize)]
struct Record<'a> {
    code: u32,
    tx: Tx,
    #[serde(borrow)]
    events: Vec<Event<'a>>,
}

#[derive(Deserialize)]
struct Tx {
    body: Body,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    unordered: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Probe {
        Probe { address: "init1".to_owned(), sequence: 3 }
    }

    #[test]
    fn near_the_tip_a_state_is_probed_and_without_a_probe_the_next_block_must_exist() {
        let at = |probe| Ok(StateAt { probe, ..StateAt::from(Some(100)) });
        for tip in [0, 99, 100, 101, 115] {
            assert_eq!(state(100, (tip, false, false), Some(&some())), at(Some(some())), "tip {tip}");
        }
        assert_eq!(state(100, (116, false, false), Some(&some())), at(None));
        assert_eq!(
            state(100, (116, false, true), Some(&some())),
            at(Some(some())),
            "another endpoint may be behind"
        );
        for several in [false, true] {
            for tip in [0, 99, 100] {
                let error = state(100, (tip, false, several), None).unwrap_err();
                assert!(matches!(error, NodeError::NotYet { .. }), "tip {tip}: {error}");
            }
            assert_eq!(state(100, (101, false, several), None), at(None));
            assert_eq!(state(100, (100, true, several), None), at(None), "the tip for long");
            assert!(state(100, (99, true, several), None).is_err());
            assert_eq!(state(100, (116, false, several), None), at(None));
        }
    }

    #[test]
    fn a_probe_is_the_signer_and_the_sequence_of_a_transaction_that_raised_it() {
        let address = Account::from_bytes(&[7; 20]).unwrap().to_bech32("init");
        let probe = |text: &str| probe_of(text, "init");
        let found = Probe { address: address.clone(), sequence: 12 };
        assert_eq!(probe(&format!("{address}/12")), Some(found));
        for none in [format!("{address}/x"), address, "init1/5".to_owned(), String::new()] {
            assert_eq!(probe(&none), None, "{none}");
        }
    }

    #[test]
    fn a_transaction_that_raises_no_sequence_is_not_a_probe() {
        // Body, then auth info: a body of one varint field, 4 being `unordered`.
        let raw = |field: u8, value: u8| vec![0x0a, 2, field << 3, value, 0x12, 0];
        for (raw, unordered) in [(raw(4, 1), true), (raw(4, 0), false), (raw(3, 1), false), (vec![7], true)] {
            assert_eq!(is_unordered(&raw), unordered, "{raw:?}");
        }
    }
}
