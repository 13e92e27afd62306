//! Calls of clients, passed to a server as they are.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::Error;
use crate::evm::Evm;
use crate::pool::endpoint::Endpoint;

/// The reply to a call, as the server sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RawReply {
    /// The JSON of `result`.
    Result(Bytes),
    /// The JSON of `error`.
    Error(Bytes),
}

/// The members of a response. An absent `result` is `null`: some servers omit it.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Evm {
    /// Passes a call with these parameters (JSON) to a server. The next server is asked only if one has not replied: a second
    /// server that gets the same signed transaction changes nothing, since the chain executes it once.
    pub async fn forward(&self, method: &'static str, params: &str) -> Result<RawReply, Error> {
        let request = self.request(method, params);
        let attempt = async |endpoint: Arc<Endpoint>| {
            let response = endpoint.send(&request.http).await?;
            let body = response.body();
            let envelope: Envelope<'_> = serde_json::from_slice(body)
                .map_err(|error| endpoint.unreadable(&request.http, &response, error.to_string()))?;
            let part = |json: &RawValue| body.slice_ref(json.get().as_bytes());
            Ok(match (envelope.error, envelope.result) {
                (Some(error), _) => RawReply::Error(part(error)),
                (None, Some(result)) => RawReply::Result(part(result)),
                (None, None) => RawReply::Result(Bytes::from_static(b"null")),
            })
        };
        self.pool.query(&request.http, attempt).await
    }
}
