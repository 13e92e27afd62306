//! `CometBFT`'s `/tx`, `/tx_search` and `/broadcast_tx_sync`, derived from the blocks and their results.
//!
//! The texts of errors are the node's (`rpc/core/tx.go`, `rpc/core/env.go`). The index begins at the first recorded
//! height, like that of a node that was restored from a snapshot there. Proofs are not derived: a request with a proof
//! must be recorded.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::comet_reply::{Params, internal, invalid_params, missing, recorded, unreadable};
use super::envelope::Reply;
use super::search::{Page, SearchError, Wanted, search};
use super::{Deviation, View};
use crate::recording::Outcome;

/// A transaction by its hash.
pub(super) fn tx(view: View<'_>, params: &Params) -> Result<Reply, Reply> {
    let hash =
        params.get("hash").map(|h| h.trim_start_matches("0x").to_ascii_uppercase()).unwrap_or_default();
    let bytes: [u8; 32] = hex::decode(&hash)
        .ok()
        .and_then(|bytes| bytes.try_into().ok())
        .ok_or_else(|| invalid_params(&format!("hash {hash:?} must be 32 bytes")))?;
    if let Some(off) = view.no_index() {
        return Err(internal(off));
    }
    let not_found = || Err(internal(&format!("tx ({hash}) not found")));
    match view.recording.place_of_tx(&bytes) {
        Some((height, _)) if !view.is_indexed(height) => not_found(),
        Some(_) if is_proven(params) => recorded(view, "tx", params),
        Some((height, index)) => found(view, height, index).map(Reply::text),
        None => match view.recording.state().cometbft("tx", params) {
            Some(Outcome::Error(raw)) => Err(Reply::Error(raw.clone())),
            // The height of the transaction is not recorded, so it is unknown whether it is shown.
            Some(Outcome::Result(_)) | None => not_found(),
        },
    }
}

/// Takes a transaction of the recording into the mempool. Of another one the node cannot tell whether the chain would
/// take it, so it rejects it.
pub(super) fn broadcast(view: View<'_>, params: &Params) -> Result<Reply, Reply> {
    let raw = params.get("tx").map_or("", String::as_str);
    let hash = super::hash_of(raw).map_err(|e| invalid_params(&format!("tx is not base64: {e}")))?;
    let bytes: Option<[u8; 32]> = hex::decode(&hash).ok().and_then(|bytes| bytes.try_into().ok());
    let (code, log) = match bytes.and_then(|bytes| view.recording.place_of_tx(&bytes)) {
        Some((height, _)) if height <= view.executed() => return Err(internal("tx already exists in cache")),
        Some(_) => (0, ""),
        None => (18, "the recording has no such transaction: invalid request"),
    };
    Ok(Reply::text(format!(r#"{{"code":{code},"data":"","log":"{log}","codespace":"sdk","hash":"{hash}"}}"#)))
}

/// One page of the results of a query.
pub(super) fn tx_search(view: View<'_>, params: &Params) -> Result<Reply, Reply> {
    if view.deviations.has(Deviation::NoSearch) {
        return Err(Reply::error(-32601, "Method not found", None));
    }
    let text = |name: &str| params.get(name).map_or("", String::as_str);
    let (page, per_page) = (whole(params, "page", 1)?, whole(params, "per_page", 30)?);
    let wanted = Wanted { query: text("query"), page, per_page, order_by: text("order_by") };
    let Page { txs, total } = search(view, wanted).map_err(|none| match none {
        SearchError::Message(message) => internal(&message),
        SearchError::Unsupported(what) => missing(view, &format!("{what}: {}", wanted.query)),
    })?;
    if is_proven(params) && !txs.is_empty() {
        return recorded(view, "tx_search", params);
    }
    let txs: Vec<_> = txs.iter().map(|tx| found(view, tx.height, tx.index)).collect::<Result<_, _>>()?;
    Ok(Reply::text(format!(r#"{{"txs":[{}],"total_count":"{total}"}}"#, txs.join(","))))
}

fn is_proven(params: &Params) -> bool {
    params.get("prove").is_some_and(|prove| prove == "true")
}

fn whole(params: &Params, name: &str, default: i64) -> Result<i64, Reply> {
    match params.get(name).map(String::as_str) {
        None | Some("") => Ok(default),
        Some(text) => text.parse().map_err(|e| {
            invalid_params(&format!("error converting http params to arguments: {name} {text:?}: {e}"))
        }),
    }
}

/// The node's reply for a transaction at a place.
fn found(view: View<'_>, height: u64, index: usize) -> Result<String, Reply> {
    #[derive(Deserialize)]
    struct Results<'a> {
        #[serde(borrow)]
        txs_results: Vec<&'a RawValue>,
    }
    let block = view.recording.height(height).ok_or_else(|| missing(view, &format!("height {height}")))?;
    let raw_txs = block.raw_txs().map_err(|e| unreadable(view, "/block", &e))?;
    let results: Results<'_> =
        serde_json::from_slice(&block.block_results).map_err(|e| unreadable(view, "/block_results", &e))?;
    let (Some(raw), Some(result)) = (raw_txs.get(index), results.txs_results.get(index)) else {
        return Err(missing(view, &format!("result {index} of height {height}")));
    };
    let hash = super::hash_of(raw).map_err(|e| missing(view, &format!("a tx of height {height}: {e}")))?;
    Ok(format!(
        r#"{{"hash":"{hash}","height":"{height}","index":{index},"tx_result":{result},"tx":"{raw}"}}"#
    ))
}
