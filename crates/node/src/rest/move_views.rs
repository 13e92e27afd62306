//! Views of Move modules in one request (`/initia/move/v1/view/batch`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::Error;
use crate::pool::endpoint::Request;
use crate::rest::Rest;

const BATCH: &str = "/initia/move/v1/view/batch";

/// A call of a view function of a module at `0x1`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MoveView {
    /// The module.
    pub module: &'static str,
    /// The function; it has no type arguments.
    pub function: &'static str,
    /// Each in BCS.
    pub args: Vec<Vec<u8>>,
}

#[derive(Serialize)]
struct Body<'a> {
    requests: Vec<Call<'a>>,
}

#[derive(Serialize)]
struct Call<'a> {
    address: &'static str,
    module_name: &'a str,
    function_name: &'a str,
    type_args: [&'a str; 0],
    args: Vec<String>,
}

#[derive(Deserialize)]
struct Replies {
    responses: Vec<Reply>,
}

#[derive(Deserialize)]
struct Reply {
    /// JSON in a text.
    data: String,
}

impl Rest {
    /// What the views return at a height, in order. One that aborts fails all: [`Error::Refused`] with its text.
    pub async fn move_views(&self, views: &[MoveView], height: u64) -> Result<Vec<Value>, Error> {
        let call = |view: &MoveView| Call {
            address: "0x1",
            module_name: view.module,
            function_name: view.function,
            type_args: [],
            args: view.args.iter().map(|arg| STANDARD.encode(arg)).collect(),
        };
        let body = Body { requests: views.iter().map(call).collect() };
        // Texts and lists of texts always serialize.
        let body = serde_json::to_string(&body).unwrap_or_default();
        let request = Request::post(BATCH, BATCH.to_owned(), body).in_state(Some(height));
        let read = |replies: Replies| {
            if replies.responses.len() != views.len() {
                return Err(format!("{} replies to {} views", replies.responses.len(), views.len()));
            }
            let parse = |reply: Reply| serde_json::from_str(&reply.data).map_err(|error| error.to_string());
            replies.responses.into_iter().map(parse).collect()
        };
        self.query_for(request, read).await
    }
}
