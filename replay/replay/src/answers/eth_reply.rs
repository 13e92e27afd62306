//! Replies common to all methods of the EVM's JSON-RPC: recorded replies, block numbers, errors.

use serde_json::value::RawValue;

use super::View;
use super::comet_reply::missing;
use super::envelope::Reply;
use crate::recording::Outcome;

/// The namespaces of minievm: a method in one of them may exist; other methods do not.
const NAMESPACES: [&str; 8] =
    ["eth_", "net_", "txpool_", "web3_", "personal_", "debug_", "miner_", "cosmos_"];

pub(super) fn recorded(view: View<'_>, method: &str, params: Option<&RawValue>) -> Result<Reply, Reply> {
    recorded_at(view, method, params.map_or("[]", RawValue::get))
}

pub(super) fn recorded_at(view: View<'_>, method: &str, params: &str) -> Result<Reply, Reply> {
    match view.recording.state().eth(method, params.as_bytes()) {
        Some(Outcome::Result(raw)) => Ok(Reply::Result(raw.clone())),
        Some(Outcome::Error(raw)) => Ok(Reply::Error(raw.clone())),
        None if NAMESPACES.iter().any(|namespace| method.starts_with(namespace)) => {
            Err(missing(view, &format!("json-rpc {method} {params}")))
        }
        None => Err(unserved(method)),
    }
}

pub(super) fn unserved(method: &str) -> Reply {
    Reply::error(-32601, &format!("the method {method} does not exist/is not available"), None)
}

/// A block number: `0x…`, where 0 means 1, or a tag.
pub(super) fn number_of(view: View<'_>, text: &str) -> Result<u64, Reply> {
    match text {
        "latest" | "pending" | "safe" | "finalized" => Ok(view.shown),
        "earliest" => Ok(1),
        number => {
            let digits = number.strip_prefix("0x").unwrap_or("");
            let height = u64::from_str_radix(digits, 16);
            height.map(|h| h.max(1)).map_err(|e| invalid_params(&format!("block number {number:?}: {e}")))
        }
    }
}

pub(super) fn invalid_params(message: &str) -> Reply {
    Reply::error(-32602, message, None)
}
