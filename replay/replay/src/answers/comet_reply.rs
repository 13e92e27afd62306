//! Replies that the `CometBFT` RPC and the EVM's JSON-RPC have in common, and the errors of each.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::View;
use super::envelope::Reply;
use crate::recording::{Outcome, items};

/// Parameters of a `CometBFT` call by name.
pub(super) type Params = BTreeMap<String, String>;

pub(super) fn recorded(view: View<'_>, method: &str, params: &Params) -> Result<Reply, Reply> {
    match view.recording.state().cometbft(method, params) {
        Some(Outcome::Result(raw)) => Ok(Reply::Result(raw.clone())),
        Some(Outcome::Error(raw)) => Err(Reply::Error(raw.clone())),
        None => Err(missing(view, &format!("comet {method} {params:?}"))),
    }
}

/// The items of a raw array, or the error of a malformed recording.
pub(super) fn array<'a>(view: View<'_>, what: &str, raw: &'a [u8]) -> Result<Vec<&'a RawValue>, Reply> {
    items(raw).map_err(|e| unreadable(view, what, &e))
}

/// The error for a request without a recorded reply; it is counted.
pub(super) fn missing(view: View<'_>, question: &str) -> Reply {
    Reply::error(-32000, &view.counters.miss(question), None)
}

pub(super) fn unreadable(view: View<'_>, what: &str, error: &serde_json::Error) -> Reply {
    malformed(view, what, &error.to_string())
}

pub(super) fn malformed(view: View<'_>, what: &str, error: &str) -> Reply {
    missing(view, &format!("a well-formed {what}: {error}"))
}

pub(super) fn internal(data: &str) -> Reply {
    Reply::error(-32603, "Internal error", Some(data))
}

pub(super) fn invalid_params(data: &str) -> Reply {
    Reply::error(-32602, "Invalid params", Some(data))
}
