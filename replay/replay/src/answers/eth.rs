//! The EVM's JSON-RPC: `POST`, single and batch.
//!
//! Behaviour of minievm (`jsonrpc/backend`): heights above the indexed one are `null`, or `block #H not found` for
//! traces; a block without transactions has `[]` for both receipts and traces.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::comet_reply::{array, missing};
use super::envelope::{self, Calls, Reply};
use super::eth_reply::{invalid_params, number_of, recorded, recorded_at, unserved};
use super::{Deviation, HttpReply, View, absent, byzantine, ethereum, logs};
use crate::counters::Call;
use crate::recording::{Height, Outcome, Trace};

/// A call without a recipient, whose init code returns the height of its state.
const NUMBER: &str = r#"{"data":"0x4360005260206000f3"}"#;

const UNREADABLE_RECEIPTS: &str = "internal jsonrpc error: failed to get block receipts";

pub(super) fn answer(view: View<'_>, request: &Request<Bytes>) -> HttpReply {
    if request.method() != Method::POST {
        return HttpReply::new(StatusCode::METHOD_NOT_ALLOWED, Bytes::new());
    }
    let body = match Calls::parse(request.body()) {
        Ok(calls) => calls.answer(|call| reply(view, call)),
        Err(error) => error.body(b"null"),
    };
    HttpReply::new(StatusCode::OK, body)
}

fn reply(view: View<'_>, call: &envelope::Call<'_>) -> Reply {
    let method = &*call.method;
    if !view.recording.is_evm() && !view.recording.is_ethereum() {
        view.counters.count(Call::EthOther);
        return missing(
            view,
            &format!("json-rpc {method}: {} has no EVM", view.recording.summary().chain_id),
        );
    }
    let params = call.params.map_or("[]", RawValue::get);
    let params: Vec<&RawValue> = match serde_json::from_str(params) {
        Ok(params) => params,
        Err(e) => return invalid_params(&format!("params must be an array: {e}")),
    };
    if view.recording.is_ethereum() {
        return ethereum::reply(view, call, &params);
    }
    if view.deviations.has(Deviation::NoTracing) && method.starts_with("debug_") {
        view.counters.count(Call::EthOther);
        return unserved(method);
    }
    let (kind, outcome) = match method {
        "eth_blockNumber" => (Call::EthBlockNumber, Ok(Reply::text(format!("\"{:#x}\"", view.shown)))),
        "eth_getBlockReceipts" => (Call::EthBlockReceipts, block_receipts(view, &params)),
        "eth_getBlockByNumber" => (Call::EthBlock, block(view, &params)),
        "eth_getTransactionReceipt" => (Call::EthReceipt, receipt(view, &params)),
        "debug_traceBlockByNumber" => (Call::TraceBlock, trace_block(view, &params)),
        "debug_traceTransaction" => (Call::TraceTransaction, trace_transaction(view, &params)),
        "eth_call" => (Call::EthCall, eth_call(view, &params)),
        "eth_getBalance" => (Call::EthOther, balance(view, &params)),
        "eth_getLogs" => (Call::EthLogs, logs::logs(view, &params)),
        "eth_getTransactionByHash" => (Call::EthOther, transaction(view, call.params, &params)),
        "cosmos_cosmosTxHashByTxHash" | "cosmos_txHashByCosmosTxHash" => {
            (Call::EthOther, other_hash(view, method, call.params, &params))
        }
        _ => (Call::EthOther, recorded(view, method, call.params)),
    };
    view.counters.count(kind);
    outcome.unwrap_or_else(|error| error)
}

fn block_receipts(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    let height = tag(view, params, 0)?;
    if view.deviations.has(Deviation::NullReceipts) {
        return Ok(Reply::null());
    }
    if has_no_receipts(view, height) {
        return Ok(Reply::text("[]"));
    }
    let Some(recorded) = at(view, view.answered(height))? else { return Ok(Reply::null()) };
    let receipts = match (&recorded.eth_receipts, &recorded.eth_block) {
        (Some(receipts), _) => receipts,
        // The node could not read its own receipts, with this error.
        (None, Some(_)) => return Err(Reply::error(-32603, UNREADABLE_RECEIPTS, None)),
        (None, None) => return Err(missing(view, &format!("the receipts of height {height}"))),
    };
    let malformed = |e| missing(view, &format!("well-formed receipts of height {height}: {e}"));
    let receipts = byzantine::receipts(receipts, &view.deviations);
    let receipts = receipts.and_then(|receipts| byzantine::rebuilt(receipts, height, &view.deviations));
    receipts.map(Reply::Result).map_err(malformed)
}

/// Whether the EVM's index of a height is pruned.
fn has_no_receipts(view: View<'_>, height: u64) -> bool {
    view.deviations.get(Deviation::PrunedReceipts).is_some_and(|base| height < base)
}

fn block(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    let height = tag(view, params, 0)?;
    if params.get(1).is_some_and(|full| full.get() == "true") {
        return Err(missing(view, &format!("eth_getBlockByNumber {height} with full transactions")));
    }
    if has_no_receipts(view, height) {
        return Ok(Reply::null());
    }
    let Some(recorded) = at(view, view.answered(height))? else { return Ok(Reply::null()) };
    match (recorded.eth_block, recorded.eth_receipts) {
        (Some(block), _) => {
            let block = byzantine::rebuilt(block, height, &view.deviations);
            block
                .map(Reply::Result)
                .map_err(|e| missing(view, &format!("the EVM block of height {height}: {e}")))
        }
        // The node had pruned it.
        (None, Some(_)) => Ok(Reply::null()),
        (None, None) => Err(missing(view, &format!("the EVM block of height {height}"))),
    }
}

fn receipt(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    let hash = text(params, 0, "transaction hash")?.to_ascii_lowercase();
    let Some((height, index)) = view.recording.place_of_receipt(&hash) else {
        return Ok(Reply::null());
    };
    if view.deviations.has(Deviation::NullReceipts) || has_no_receipts(view, height) {
        return Ok(Reply::null());
    }
    let Some(recorded) = at(view, height)? else { return Ok(Reply::null()) };
    let raw =
        recorded.eth_receipts.as_ref().ok_or_else(|| missing(view, &format!("receipts of {height}")))?;
    let receipts = array(view, "list of receipts", raw)?;
    let receipt = receipts.get(index).ok_or_else(|| missing(view, &format!("receipt {hash}")))?;
    let receipt = byzantine::rebuilt(raw.slice_ref(receipt.get().as_bytes()), height, &view.deviations);
    receipt.map(Reply::Result).map_err(|e| missing(view, &format!("a well-formed receipt {hash}: {e}")))
}

fn trace_block(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    let height = tag(view, params, 0)?;
    call_tracer(view, params)?;
    trace_of(view, view.answered(height)).map(|trace| match trace {
        Trace::Result(raw) => Reply::Result(raw),
        Trace::Error(raw) => Reply::Error(raw),
    })
}

fn trace_transaction(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry<'a> {
        /// Only minievm names it.
        #[serde(default)]
        tx_hash: Option<&'a str>,
        #[serde(borrow, default)]
        result: Option<&'a RawValue>,
        #[serde(default)]
        error: Option<&'a str>,
    }
    let hash = text(params, 0, "transaction hash")?.to_ascii_lowercase();
    call_tracer(view, params)?;
    let place = view.recording.place_of_receipt(&hash).filter(|(height, _)| *height <= view.shown);
    let (height, index) = place.ok_or_else(|| Reply::error(-32000, "transaction not found", None))?;
    let raw = match trace_of(view, height)? {
        Trace::Result(raw) => raw,
        Trace::Error(raw) => return Err(Reply::Error(raw)),
    };
    for (place, entry) in array(view, "list of traces", &raw)?.into_iter().enumerate() {
        let entry: Entry<'_> = serde_json::from_str(entry.get())
            .map_err(|e| missing(view, &format!("a well-formed trace of height {height}: {e}")))?;
        if entry.tx_hash.map_or(place == index, |named| named == hash) {
            return match (entry.error, entry.result) {
                (None, Some(frame)) => Ok(Reply::Result(raw.slice_ref(frame.get().as_bytes()))),
                (error, _) => Err(Reply::error(-32000, error.unwrap_or("no trace"), None)),
            };
        }
    }
    Err(missing(view, &format!("the trace of {hash}")))
}

/// The trace of a shown height, or the node's error.
fn trace_of(view: View<'_>, height: u64) -> Result<Trace, Reply> {
    if height < 2 {
        return Err(Reply::error(-32000, "genesis is not traceable", None));
    }
    // A block is traced on the state of the previous height.
    has_state(view, height - 1)?;
    let recorded =
        at(view, height)?.ok_or_else(|| Reply::error(-32000, &format!("block #{height} not found"), None))?;
    match (&recorded.eth_trace, recorded.eth_receipts.as_deref()) {
        (Some(trace), _) => Ok(trace.clone()),
        (None, Some(b"[]")) => Ok(Trace::Result(Bytes::from_static(b"[]"))),
        _ => Err(missing(view, &format!("the trace of height {height}"))),
    }
}

/// The recorded transaction, unless it is above the tip.
fn transaction(view: View<'_>, raw: Option<&RawValue>, params: &[&RawValue]) -> Result<Reply, Reply> {
    let hash = text(params, 0, "transaction hash")?.to_ascii_lowercase();
    match view.recording.place_of_receipt(&hash) {
        Some((height, _))
            if height > view.shown
                || view.deviations.has(Deviation::NullReceipts)
                || has_no_receipts(view, height) =>
        {
            Ok(Reply::null())
        }
        _ => recorded(view, "eth_getTransactionByHash", raw),
    }
}

/// The recorded translation of a hash; zeros for a transaction above the tip, like minievm for an unknown hash.
fn other_hash(
    view: View<'_>,
    method: &str,
    raw: Option<&RawValue>,
    params: &[&RawValue],
) -> Result<Reply, Reply> {
    let given = text(params, 0, "transaction hash")?;
    let to_cosmos = method == "cosmos_cosmosTxHashByTxHash";
    let height = if to_cosmos {
        view.recording.place_of_receipt(&given.to_ascii_lowercase())
    } else {
        let hash = hex::decode(given.strip_prefix("0x").unwrap_or(given)).ok();
        let hash = hash.and_then(|hash| <[u8; 32]>::try_from(hash).ok());
        hash.and_then(|hash| view.recording.place_of_tx(&hash))
    };
    match height {
        Some((height, _)) if height <= view.shown && !view.deviations.has(Deviation::NullReceipts) => {
            recorded(view, method, raw)
        }
        _ => {
            let prefix = if to_cosmos { "" } else { "0x" };
            Ok(Reply::text(format!("\"{prefix}{}\"", "0".repeat(64))))
        }
    }
}

fn eth_call(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    // Only recorded calls match: a call with a sender, a value or a gas limit differs from them.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Message<'a> {
        to: &'a str,
        #[serde(alias = "input")]
        data: &'a str,
    }
    let height = tag(view, params, 1)?;
    let raw = params.first().map_or("null", |p| p.get());
    if raw == NUMBER {
        has_state(view, height)?;
        return Ok(Reply::text(format!("\"0x{:064x}\"", view.state_of(height))));
    }
    let message: Message<'_> = serde_json::from_str(raw)
        .map_err(|e| missing(view, &format!("eth_call {raw} at height {height}: {e}")))?;
    has_state(view, height)?;
    if let Some((extension, first)) = view.recording.extension_at(height) {
        let computed = extension.eth_call(message.to, message.data, view.state_of(height));
        let found = || view.recording.state().eth_call_up_to(message.to, message.data, first - 1).cloned();
        match computed.or_else(found) {
            Some(Outcome::Result(raw)) => return Ok(Reply::Result(raw)),
            Some(Outcome::Error(raw)) => return Ok(Reply::Error(raw)),
            None => {}
        }
    }
    match view.recording.state().eth_call(message.to, message.data, height) {
        Some(_) if view.state_of(height) < height => {
            Ok(absent::eth_call(view, message.to, message.data, height - 1))
        }
        Some(Outcome::Result(raw)) => Ok(Reply::Result(raw.clone())),
        Some(Outcome::Error(raw)) => Ok(Reply::Error(raw.clone())),
        None if view.recording.is_forked_at(height) => {
            Ok(absent::eth_call(view, message.to, message.data, view.state_of(height)))
        }
        None => Err(missing(view, &format!("eth_call {raw} at height {height}"))),
    }
}

fn balance(view: View<'_>, params: &[&RawValue]) -> Result<Reply, Reply> {
    let (address, height) = (text(params, 0, "address")?, tag(view, params, 1)?);
    has_state(view, height)?;
    let height = view.state_of(height);
    recorded_at(view, "eth_getBalance", &format!(r#"["{address}","{height:#x}"]"#))
}

/// The height; `None` above the tip, a counted error below the first.
fn at(view: View<'_>, height: u64) -> Result<Option<Height>, Reply> {
    if height > view.shown {
        return Ok(None);
    }
    let recorded = view.recording.height(height);
    recorded.map(Some).ok_or_else(|| missing(view, &format!("height {height}")))
}

/// minievm's errors for a height that does not exist yet and for pruned state: the SDK's text and the name of its kind
/// of error.
fn has_state(view: View<'_>, height: u64) -> Result<(), Reply> {
    if height > view.shown {
        return Err(Reply::error(-32000, &format!("block #{height} not found"), None));
    }
    match view.no_state(height) {
        None => Ok(()),
        Some(why) => Err(Reply::error(-32000, &format!("{why}: invalid request"), None)),
    }
}

fn tag(view: View<'_>, params: &[&RawValue], position: usize) -> Result<u64, Reply> {
    number_of(view, text(params, position, "block number")?)
}

fn text<'a>(params: &[&'a RawValue], position: usize, what: &str) -> Result<&'a str, Reply> {
    let raw = params.get(position).ok_or_else(|| {
        invalid_params(&format!("missing value for required argument {position}, the {what}"))
    })?;
    serde_json::from_str(raw.get())
        .map_err(|e| invalid_params(&format!("argument {position}, the {what}: {e}")))
}

/// Only the call tracer without options was recorded.
fn call_tracer(view: View<'_>, params: &[&RawValue]) -> Result<(), Reply> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Options<'a> {
        tracer: &'a str,
        // A time limit; it does not change the trace.
        #[serde(default, rename = "timeout")]
        _timeout: IgnoredAny,
    }
    let raw = params.get(1).map_or("null", |p| p.get());
    match serde_json::from_str::<Options<'_>>(raw) {
        Ok(options) if options.tracer == "callTracer" => Ok(()),
        _ => Err(missing(view, &format!("a trace with the options {raw}"))),
    }
}
