//! Call traces → [`BlockFrames`].

use std::collections::HashMap;

use bytes::Bytes;
use chain::trace::{self, Frame, write_internal_tx};
use chain::{Account, AccountSet, hash};
use schema::internal_tx::CHUNK_FRAMES;
use schema::payload::Frames;

use super::{AskAgain, BlockFrames, Chunk, Failure, Parties, TxFrames, WorkerState};

/// Bytes of frames after which a chunk is closed: a page that wants one of them decompresses no more than this and one
/// frame.
const CHUNK_BYTES: usize = 64 << 10;

/// Call trees of single transactions, by EVM hash, for those that the block's trace failed on; `None` where the node
/// has none either.
pub type Retraced = HashMap<[u8; 32], Option<Bytes>>;

/// Derives the call frames of a block from the `result` of `debug_traceBlockByNumber`.
///
/// There must be one entry for each of `expected`, the EVM hashes of the block's transactions in order: what the node
/// traced is the block that is indexed. Entries that failed and are not in
/// `retraced` come back as [`Failure::Untraced`]; those that failed for good have no frames.
pub fn frames(
    height: u64,
    expected: &[[u8; 32]],
    answer: &[u8],
    retraced: &Retraced,
    worker: &mut WorkerState,
) -> Result<BlockFrames, Failure> {
    let traces = trace::parse_traces(answer).map_err(AskAgain::because)?;
    if traces.len() != expected.len() {
        let (found, expected) = (traces.len(), expected.len());
        return Err(AskAgain::because(format!("{found} traces for {expected} EVM transactions")).into());
    }
    if let Some((trace, hash)) = traces.iter().zip(expected).find(|(trace, hash)| trace.hash != **hash) {
        let (found, expected) = (hash::to_hex(&trace.hash), hash::to_hex(hash));
        return Err(AskAgain::because(format!("a trace of {found} where the block has {expected}")).into());
    }
    let failed = traces.iter().filter(|trace| trace.error.is_some() && !retraced.contains_key(&trace.hash));
    let untraced: Vec<[u8; 32]> = failed.map(|trace| trace.hash).collect();
    if !untraced.is_empty() {
        return Err(Failure::Untraced(untraced));
    }
    let tx = |trace: &trace::TxTrace<'_>| -> Result<TxFrames, trace::Error> {
        match retraced.get(&trace.hash) {
            None => tx_frames(height, trace.hash, &trace.frames, worker),
            Some(None) => tx_frames(height, trace.hash, &[], worker),
            Some(Some(tree)) => {
                let tree = std::str::from_utf8(tree).unwrap_or_default();
                tx_frames(height, trace.hash, &trace::parse_frames(&trace.hash, tree)?, worker)
            }
        }
    };
    let txs = traces.iter().map(tx).collect::<Result<_, _>>().map_err(AskAgain::because)?;
    Ok(BlockFrames { height, txs })
}

fn tx_frames(
    height: u64,
    hash: [u8; 32],
    frames: &[Frame<'_>],
    worker: &mut WorkerState,
) -> Result<TxFrames, trace::Error> {
    let mut chunks = Vec::new();
    let mut chunk = Frames::default();
    let mut close = |chunk: &mut Frames| {
        let frames = chunk.len() as u64;
        chunks.push(Chunk { frames, payload: worker.calls.encode(&chunk.take()) });
    };
    for frame in frames {
        chunk.push(|out| write_internal_tx(out, height, &hash, frame));
        if chunk.len() == CHUNK_FRAMES || chunk.json_bytes() >= CHUNK_BYTES {
            close(&mut chunk);
        }
    }
    if !chunk.is_empty() {
        close(&mut chunk);
    }
    let parties = frames.iter().map(parties).collect::<Result<_, _>>()?;
    Ok(TxFrames { hash, chunks, parties })
}

fn parties(frame: &Frame<'_>) -> Result<Parties, trace::Error> {
    let mut accounts = AccountSet::new();
    frame.accounts(&mut accounts)?;
    let mut accounts = accounts.as_slice().iter().copied();
    let pair: [Option<Account>; 2] = [accounts.next(), accounts.next()];
    Ok(Parties(pair))
}
