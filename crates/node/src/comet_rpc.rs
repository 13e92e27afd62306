//! CometBFT's answers over JSON-RPC: the `result` of a call, and the [`Error`] that an error's text stands for.

use bytes::Bytes;
use serde::Deserialize;

use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, Site};
use crate::rpc::{self, RpcError, RpcResponse, number_after};

/// The text of `result`, or the meaning of the error.
pub(crate) async fn result_of(endpoint: &Endpoint, call: &Call) -> Result<Bytes, Error> {
    match rpc::exchange(endpoint, call, None).await? {
        RpcResponse::Result(result) => Ok(result),
        RpcResponse::Error(error) => Err(classify(endpoint.site(call), error)),
    }
}

pub(crate) fn parsed<'a, T: Deserialize<'a>>(
    endpoint: &Endpoint,
    call: &Call,
    result: &'a [u8],
) -> Result<T, Error> {
    serde_json::from_slice(result)
        .map_err(|e| Error::Malformed { at: endpoint.site(call), reason: e.to_string() })
}

/// Classifies a CometBFT error by its text (`rpc/core/env.go`, `state/store.go` of CometBFT 0.38); the
/// code is −32603 for all of them.
pub(crate) fn classify(at: Site, error: RpcError) -> Error {
    let RpcError { code, message: said } = error;
    let has = |text: &str| said.contains(text);
    if has("must be less than or equal to the current blockchain height") {
        Error::NotYet { at, tip: number_after(&said, "current blockchain height "), said }
    } else if has("is not available, lowest height is") {
        Error::Pruned { at, lowest: number_after(&said, "lowest height is "), said }
    } else if has("node is not persisting finalize block responses") {
        Error::ResultsDiscarded { at }
    } else if has("failed to unmarshall FinalizeBlockResponse") {
        Error::Corrupt { at, said }
    } else if code == rpc::METHOD_MISSING {
        Error::MethodMissing { at, said, advice: "is this the address of CometBFT's RPC?" }
    } else if code == rpc::INVALID_PARAMS || has("height must be greater than 0") {
        Error::Refused { at, code, said }
    } else {
        Error::Faulty { at, code, said }
    }
}

/// `rpc/core/tx.go` of CometBFT.
const INDEX_OFF: &str = "transaction indexing is disabled";

/// Texts of CometBFT for invalid queries (`rpc/core/tx.go`, `rpc/core/env.go`, `libs/pubsub/query` of 0.34 and 0.38):
/// their code is that of the node's own failures.
const BAD_QUERIES: [&str; 7] = [
    "page should be within",
    ": offset ",
    "invalid input",
    "parse error",
    "expected order_by",
    "maximum query length exceeded",
    "error during searching for a hash",
];

/// Whether the node has no transaction index; REST passes the text on.
pub(crate) fn is_index_off(said: &str) -> bool {
    said.contains(INDEX_OFF)
}

/// Whether CometBFT rejects a search itself.
pub(crate) fn is_bad_query(said: &str) -> bool {
    BAD_QUERIES.iter().any(|text| said.contains(text))
}
