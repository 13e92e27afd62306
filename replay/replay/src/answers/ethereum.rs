//! The JSON-RPC of an EVM chain that is not a rollup: recorded replies by method and parameters.
//!
//! Only `eth_getLogs` is derived for parameters that were not recorded: from the logs of all recorded receipts, so it
//! covers only those transactions.

use serde_json::value::RawValue;

use super::View;
use super::envelope::{self, Reply};
use super::eth_reply::recorded;
use super::logs;
use crate::counters::Call;

pub(super) fn reply(view: View<'_>, call: &envelope::Call<'_>, params: &[&RawValue]) -> Reply {
    let method = &*call.method;
    let (kind, outcome) = match method {
        "eth_getLogs" => {
            let raw = call.params.map_or("[]", RawValue::get);
            let known = view.recording.state().eth(method, raw.as_bytes()).is_some();
            let outcome = if known { recorded(view, method, call.params) } else { logs::logs(view, params) };
            (Call::EthLogs, outcome)
        }
        _ => (kind(method), recorded(view, method, call.params)),
    };
    view.counters.count(kind);
    outcome.unwrap_or_else(|error| error)
}

fn kind(method: &str) -> Call {
    match method {
        "eth_blockNumber" => Call::EthBlockNumber,
        "eth_getBlockByNumber" => Call::EthBlock,
        "eth_getTransactionReceipt" => Call::EthReceipt,
        "eth_call" => Call::EthCall,
        _ => Call::EthOther,
    }
}
