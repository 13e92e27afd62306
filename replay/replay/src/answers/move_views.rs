//! `/initia/move/v1/view/batch`, composed of recorded views.
//!
//! A recording has views one by one. Those asked without a height were asked at the last recorded one.

use bytes::Bytes;
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::rest_reply::{invalid, missing};
use super::{HttpReply, View};
use crate::recording::RestReply;

pub(super) const BATCH: &str = "/initia/move/v1/view/batch";

#[derive(Deserialize)]
struct Batch<'a> {
    #[serde(borrow)]
    requests: Vec<Call<'a>>,
}

#[derive(Deserialize)]
struct Call<'a> {
    address: &'a str,
    module_name: &'a str,
    function_name: &'a str,
    #[serde(borrow)]
    args: &'a RawValue,
}

/// The replies of a batch in order, or the first that is an error, as the node gives them.
pub(super) fn batch(
    view: View<'_>,
    request: &Request<Bytes>,
    height: Option<u64>,
) -> Result<HttpReply, HttpReply> {
    let batch: Batch<'_> =
        serde_json::from_slice(request.body()).map_err(|error| invalid(&error.to_string()))?;
    let mut body = br#"{"responses":["#.to_vec();
    for (index, call) in batch.requests.iter().enumerate() {
        let RestReply { status, body: reply } = one(view, call, height)?;
        if *status != 200 {
            return Ok(HttpReply::new(StatusCode::from_u16(*status).unwrap_or_default(), reply.clone()));
        }
        if index > 0 {
            body.push(b',');
        }
        body.extend_from_slice(reply);
    }
    body.extend_from_slice(b"]}");
    Ok(HttpReply::new(StatusCode::OK, body))
}

fn one<'a>(view: View<'a>, call: &Call<'_>, height: Option<u64>) -> Result<&'a RestReply, HttpReply> {
    let Call { address, module_name, function_name, args } = call;
    let path =
        format!("/initia/move/v1/accounts/{address}/modules/{module_name}/view_functions/{function_name}");
    let body = json!({ "type_args": [], "args": args }).to_string();
    let state = view.recording.state();
    let last = view.recording.last();
    let recorded = state.rest("POST", &path, height, Some(body.as_bytes()));
    let at_last =
        || state.rest("POST", &path, None, Some(body.as_bytes())).filter(|_| height.unwrap_or(last) == last);
    recorded
        .or_else(at_last)
        .ok_or_else(|| missing(view, &format!("POST {path} at height {height:?} {body}")))
}
