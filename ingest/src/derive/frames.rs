//! Call traces → [`BlockFrames`].

use std::collections::HashMap;

use bytes::Bytes;
use chain::evm::trace::{self, Frame, TxTrace, write_internal_tx};
use chain::{Account, AccountSet, hash};
use schema::internal_tx::Calls;
use schema::payload::Packer;
use schema::records::Records as _;

use super::{BlockFrames, Failure, Parties, WorkerState};

/// Call trees of single transactions, by EVM hash, for those that the block's trace failed on; `None` if the node
/// cannot trace the transaction by itself either, or its tree cannot be read.
pub type Retraced = HashMap<[u8; 32], Option<Bytes>>;

/// A transaction that a trace must be of.
#[derive(Clone, Debug)]
pub struct Traced {
    /// Its EVM hash.
    pub hash: [u8; 32],
    /// Its call, on a chain whose traces do not name their transaction and begin with that call.
    pub call: Option<Call>,
}

/// The call of a transaction, as its receipt has it.
#[derive(Clone, Debug)]
pub struct Call {
    /// The sender.
    pub from: String,
    /// The called contract, or the created one; `None` if the type of the transaction is unknown, and so which it is.
    pub to: Option<String>,
    /// True if it created a contract, or was to.
    pub creates: bool,
    /// False if it failed.
    pub succeeded: bool,
}

impl From<[u8; 32]> for Traced {
    fn from(hash: [u8; 32]) -> Self {
        Self { hash, call: None }
    }
}

impl Call {
    /// The reason why the trace with these frames is of another call.
    fn contradiction(&self, frames: &[Frame<'_>]) -> Option<String> {
        let root = frames.first()?;
        if !root.from.eq_ignore_ascii_case(&self.from) {
            return Some(format!("from {} where the transaction is from {}", root.from, self.from));
        }
        // A failed creation may have no address.
        if let Some(to) = &self.to
            && !(root.to.eq_ignore_ascii_case(to) || self.creates && root.to.is_empty())
        {
            return Some(format!("to {} where the transaction is to {to}", root.to));
        }
        if self.to.is_some() && root.kind.starts_with("CREATE") != self.creates {
            return Some(format!(
                "a {} where the transaction {} a contract",
                root.kind,
                if self.creates { "creates" } else { "calls" }
            ));
        }
        // One that did not fit into its block has failed, although its trace has not.
        let failed = self.succeeded && !root.error.is_empty();
        failed.then(|| format!("failed ({}) where the transaction has succeeded", root.error))
    }
}

/// Derives the call frames of a block from the `result` of `debug_traceBlockByNumber`; without a reply, the trace of
/// every transaction failed.
///
/// There must be one entry for each of `expected`, the EVM transactions of the block in order, so that the
/// traced block is the indexed one. Entries that failed and are not in `retraced` are returned as
/// [`Failure::Untraced`]; those that failed permanently have no frames.
pub fn frames(
    height: u64,
    expected: &[Traced],
    answer: Option<&[u8]>,
    retraced: &Retraced,
    worker: &mut WorkerState,
) -> Result<BlockFrames, Failure> {
    let hashes: Vec<[u8; 32]> = expected.iter().map(|traced| traced.hash).collect();
    let failed =
        |hash: &[u8; 32]| TxTrace { hash: *hash, frames: Vec::new(), error: Some("no answer".into()) };
    let traces = match answer {
        Some(answer) => trace::parse_traces_of(answer, &hashes).map_err(Failure::ask_again)?,
        None => hashes.iter().map(failed).collect(),
    };
    if traces.len() != expected.len() {
        let (found, expected) = (traces.len(), expected.len());
        return Err(Failure::ask_again(format!("{found} traces for {expected} EVM transactions")));
    }
    for (trace, Traced { hash, call }) in traces.iter().zip(expected) {
        if trace.hash != *hash {
            let (found, expected) = (hash::to_hex(&trace.hash), hash::to_hex(hash));
            return Err(Failure::ask_again(format!("a trace of {found} where the block has {expected}")));
        }
        if let Some(reason) = call.as_ref().and_then(|call| call.contradiction(&trace.frames)) {
            return Err(Failure::ask_again(format!(
                "a trace in the place of {}: {reason}",
                hash::to_hex(hash)
            )));
        }
    }
    let failed = traces.iter().filter(|trace| trace.error.is_some() && !retraced.contains_key(&trace.hash));
    let untraced: Vec<[u8; 32]> = failed.map(|trace| trace.hash).collect();
    if !untraced.is_empty() {
        return Err(Failure::Untraced(untraced));
    }
    let shows_all = expected.iter().any(|traced| traced.call.is_some());
    let (mut packer, mut errors, mut place) = (Packer::new(Calls::MAX_RECORDS), Vec::new(), 0);
    let mut add = |hash: [u8; 32], frames: &[Frame<'_>]| -> Result<Vec<Parties>, trace::Error> {
        for frame in frames {
            worker.record.clear();
            if shows_all {
                trace::write_call(&mut worker.record, height, &hash, frame, &frame.output);
            } else {
                write_internal_tx(&mut worker.record, height, &hash, frame);
            }
            packer.push(&worker.record, &mut worker.calls);
            if !frame.error.is_empty() {
                errors.push((place, frame.error.to_string()));
            }
            place += 1;
        }
        frames.iter().map(parties).collect()
    };
    let tx = |trace: &trace::TxTrace<'_>| -> Result<Vec<Parties>, trace::Error> {
        match retraced.get(&trace.hash) {
            None => add(trace.hash, &trace.frames),
            Some(None) => add(trace.hash, &[]),
            Some(Some(tree)) => {
                let tree = std::str::from_utf8(tree).unwrap_or_default();
                add(trace.hash, &trace::parse_frames(&trace.hash, tree)?)
            }
        }
    };
    let txs = traces.iter().map(tx).collect::<Result<_, _>>().map_err(Failure::ask_again)?;
    let untraced = retraced.values().any(Option::is_none);
    Ok(BlockFrames { height, txs, records: packer.finish(&mut worker.calls), errors, untraced })
}

/// Whether the call tree of a transaction can be derived.
pub(crate) fn is_readable(hash: &[u8; 32], tree: &[u8]) -> Result<(), trace::Error> {
    let frames = trace::parse_frames(hash, std::str::from_utf8(tree).unwrap_or_default())?;
    frames.iter().try_for_each(|frame| parties(frame).map(drop))
}

fn parties(frame: &Frame<'_>) -> Result<Parties, trace::Error> {
    let mut accounts = AccountSet::default();
    frame.accounts(&mut accounts)?;
    let mut accounts = accounts.iter().copied();
    let pair: [Option<Account>; 2] = [accounts.next(), accounts.next()];
    Ok(Parties(pair))
}
