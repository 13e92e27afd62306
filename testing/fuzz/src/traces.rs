//! Call traces: an accepted answer gives every frame once, as JSON; any other reply is requested again.

use std::sync::LazyLock;

use chain::evm::trace;
use ingest::derive::{self, Failure, Retraced, Traced, WorkerState};
use replay::recording::Trace;
use serde_json::Value;

use crate::edit;
use crate::input::Input;
use crate::recorded::{Chain, chains};

/// Members of a frame and their values.
pub const WORDS: &[&str] = &[
    "\"calls\":[",
    "\"type\":\"CREATE2\"",
    "\"type\":\"SELFDESTRUCT\"",
    "\"error\":",
    "\"revertReason\":",
    "\"result\":",
    "\"txHash\":",
    "null",
    "\"0x\"",
    "\"0xffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\"",
    "\\u0000",
    "\\ud800",
];

/// Maximum length of a reply in a seed.
const MAX_BYTES: usize = 6_000;

/// Input: a byte, then a reply; or the number of a recorded reply, and edits of it.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let chain = &chains()[0];
    let answer = if input.byte().is_multiple_of(2) {
        input.rest().to_vec()
    } else {
        let recorded: &&[u8] = input.one_of(&RECORDED);
        let mut answer: Value = serde_json::from_slice(recorded).unwrap();
        edit::apply(&mut answer, &mut input);
        answer.to_string().into_bytes()
    };
    if let Ok(text) = std::str::from_utf8(&answer)
        && let Ok(frames) = trace::parse_frames(&[1; 32], text)
    {
        assert!(frames.len() <= answer.len(), "no more frames than bytes");
    }
    chain.workers.with(|worker| block(chain, &answer, worker)).unwrap()
}

/// Small recorded traces.
static RECORDED: LazyLock<Vec<&[u8]>> = LazyLock::new(|| {
    let traces = chains()[0].recording.heights().iter().filter_map(|height| match &height.eth_trace {
        Some(Trace::Result(trace)) if trace.len() <= MAX_BYTES => Some(&trace[..]),
        _ => None,
    });
    traces.step_by(4).collect()
});

fn block(chain: &Chain, answer: &[u8], worker: &mut WorkerState) -> bool {
    let Ok(traces) = trace::parse_traces(answer) else { return false };
    let expected: Vec<Traced> = traces.iter().map(|trace| trace.hash.into()).collect();
    let one_more = [&expected[..], &[[0; 32].into()]].concat();
    let one_more = derive::frames(7, &one_more, Some(answer), &Retraced::new(), worker);
    assert!(matches!(one_more, Err(Failure::AskAgain(_))), "a block has one trace for each transaction");
    let mut retraced = Retraced::new();
    let derived = match derive::frames(7, &expected, Some(answer), &retraced, worker) {
        Err(Failure::Untraced(hashes)) => {
            retraced.extend(hashes.into_iter().map(|hash| (hash, None)));
            let again = derive::frames(7, &expected, Some(answer), &retraced, worker);
            assert!(!matches!(again, Err(Failure::Untraced(_))), "a missing trace is requested only once");
            again
        }
        other => other,
    };
    let Ok(derived) = derived else { return false };
    assert_eq!(derived.txs.len(), traces.len());
    for (tx, trace) in derived.txs.iter().zip(&traces) {
        let frames = if retraced.contains_key(&trace.hash) { 0 } else { trace.frames.len() };
        assert_eq!(tx.len(), frames, "a transaction has the frames of its trace");
    }
    let in_txs: usize = derived.txs.iter().map(Vec::len).sum();
    assert_eq!(chain.records(&derived.records), in_txs);
    !traces.is_empty()
}

/// Recorded traces, as text and as edits.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = RECORDED.iter().map(|trace| [&[0], *trace].concat()).collect();
    seeds.truncate(12);
    seeds.extend((0_u8..12).map(|number| vec![1, 0, number, 0, 9, 2, 3, b'a', b'b', b'c']));
    seeds
}
