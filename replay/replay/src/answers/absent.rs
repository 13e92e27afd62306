//! Answers about state that was not recorded: the state of a lagging node, and that of a fork.
//!
//! A recording has answers at the heights that the recorder requested. The state of another height is that of the last
//! answer at or below it; without one, the contract or object does not exist yet.

use bytes::Bytes;
use http::StatusCode;

use super::envelope::Reply;
use super::rest_reply::{error, unknown};
use super::{HttpReply, View};
use crate::recording::{Outcome, RestReply};

/// `balanceOf(address)`.
const BALANCE_OF: &str = "0x70a08231";
const ZERO: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

/// The outcome of a call in the state of `height`.
pub(super) fn eth_call(view: View<'_>, to: &str, data: &str, height: u64) -> Reply {
    let state = view.recording.state();
    match state.eth_call_up_to(to, data, height) {
        Some(Outcome::Result(raw)) => Reply::Result(raw.clone()),
        Some(Outcome::Error(raw)) => Reply::Error(raw.clone()),
        None if !state.is_called_up_to(to, height) => Reply::text("\"0x\""),
        None if data.starts_with(BALANCE_OF) => Reply::text(format!("\"{ZERO}\"")),
        None => Reply::error(-32000, "Reverted", None),
    }
}

/// The answer to a REST request in the state of `height`.
pub(super) fn rest(view: View<'_>, method: &str, path: &str, body: &[u8], height: u64) -> HttpReply {
    match view.recording.state().rest_up_to(method, path, height, body) {
        Some(RestReply { status, body }) => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            HttpReply::new(status, body.clone())
        }
        None if path.starts_with("/cosmos/bank/v1beta1/balances/") => empty("balances"),
        None if path.starts_with("/cosmos/auth/v1beta1/accounts") => empty("accounts"),
        None if path.contains("/smart/") => unknown("key: [00] not found: query wasm contract failed"),
        None if path.starts_with("/cosmwasm/wasm/v1/contract/") => {
            let address = path.rsplit('/').next().unwrap_or_default();
            unknown(&format!("codespace wasm code 22: no such contract: address {address}"))
        }
        None => error(
            StatusCode::INTERNAL_SERVER_ERROR,
            2,
            "collections: not found: key 'hexBytes:00' of type bytes",
        ),
    }
}

fn empty(list: &str) -> HttpReply {
    let body = format!(r#"{{"{list}":[],"pagination":{{"next_key":null,"total":"0"}}}}"#);
    HttpReply::new(StatusCode::OK, Bytes::from(body))
}
