//! CometBFT's answers over JSON-RPC: the `result` of a call, and the mapping of error texts to [`Error`].

use bytes::Bytes;

use crate::endpoint::{Endpoint, Request};
use crate::error::{Error, RequestContext};
use crate::rpc::{self, RpcError, RpcResponse, number_after};

/// The text of `result`, or the classified error.
pub(crate) async fn result_of(endpoint: &Endpoint, request: &Request) -> Result<Bytes, Error> {
    match rpc::exchange(endpoint, request, None).await? {
        RpcResponse::Result(result) => Ok(result),
        RpcResponse::Error(error) => Err(classify(endpoint.context(request), error)),
    }
}

/// Classifies a CometBFT error by its text (`rpc/core/env.go`, `state/store.go` of CometBFT 0.38); the
/// code is −32603 for all of them.
pub(crate) fn classify(at: RequestContext, error: RpcError) -> Error {
    let RpcError { code, message } = error;
    let has = |text: &str| message.contains(text);
    if has("must be less than or equal to the current blockchain height") {
        Error::NotYet { at, tip: number_after(&message, "current blockchain height "), message }
    } else if has("is not available, lowest height is") {
        Error::Pruned { at, lowest: number_after(&message, "lowest height is "), message }
    } else if has("node is not persisting finalize block responses") {
        Error::ResultsDiscarded { at }
    } else if has("failed to unmarshall FinalizeBlockResponse") {
        Error::Corrupt { at, message }
    } else if code == rpc::METHOD_MISSING {
        Error::MethodMissing { at, message, advice: "is this the address of CometBFT's RPC?" }
    } else if code == rpc::INVALID_PARAMS || has("height must be greater than 0") {
        Error::Refused { at, code, message }
    } else {
        Error::Faulty { at, code, message }
    }
}

/// `rpc/core/tx.go` of CometBFT.
const INDEX_OFF: &str = "transaction indexing is disabled";

/// Texts of CometBFT for invalid queries (`rpc/core/tx.go`, `rpc/core/env.go`, `libs/pubsub/query` of 0.34 and 0.38).
/// Their code is also that of internal failures.
const BAD_QUERIES: [&str; 7] = [
    "page should be within",
    ": offset ",
    "invalid input",
    "parse error",
    "expected order_by",
    "maximum query length exceeded",
    "error during searching for a hash",
];

/// True if the node has no transaction index; REST passes the text on.
pub(crate) fn is_index_off(message: &str) -> bool {
    message.contains(INDEX_OFF)
}

/// True if CometBFT rejects the search itself.
pub(crate) fn is_bad_query(message: &str) -> bool {
    BAD_QUERIES.iter().any(|text| message.contains(text))
}
