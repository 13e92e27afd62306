//! CometBFT's replies over JSON-RPC: the `result` of a call, and the mapping of error texts to [`Error`].

use bytes::Bytes;

use crate::error::{Error, RequestContext};
use crate::pool::endpoint::{Endpoint, Request};
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

/// The most blocks of a search where a node states none.
const SEARCH_RANGE: u64 = 100;

/// The number of blocks to which a node, or a proxy in front of it, limits a search; none if its text is about anything
/// else. No release of CometBFT has such a limit, so the words are those that are likely.
pub(crate) fn search_range(message: &str) -> Option<u64> {
    let text = message.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_it = has(&["range", "window", "span"])
        && has(&["block", "height"])
        && has(&[
            "require",
            "limit",
            "exceed",
            "at most",
            "maximum",
            "max ",
            "too large",
            "too wide",
            "must",
        ]);
    let numbers = text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse::<u64>().ok());
    // A larger limit is none in practice, and a smaller one would never end.
    let stated = numbers.filter(|number| (1..=SEARCH_RANGE).contains(number)).max();
    is_it.then(|| stated.unwrap_or(SEARCH_RANGE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_a_search_is_read_from_the_nodes_text() {
        for (text, most) in [
            ("Internal error: block range is required and must be at most 100 blocks", Some(100)),
            ("block range exceeds maximum limit 50", Some(50)),
            ("height range too large (max 10000)", Some(100)),
            ("query must have a range of heights", Some(100)),
            ("transaction indexing is disabled", None),
            ("page should be within [1, 1] range, given 2", None),
            ("height must be greater than 0, but got -1", None),
        ] {
            assert_eq!(search_range(text), most, "{text}");
        }
    }
}
