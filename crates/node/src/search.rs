//! Transaction search by hash and by events, over CometBFT's RPC and over REST.
//!
//! CometBFT before 0.37 matches the conditions of a query against all events of a transaction together, later
//! versions against a single event. A caller must check the events of a hit again.
//!
//! # Invariants
//!
//! * "Not found" is returned only if every endpoint answered so.
//! * An endpoint without a transaction index is [`Error::NotIndexed`], never an empty result.
//! * A malformed query or a page out of range is [`Error::Refused`].

use std::sync::Arc;

use bytes::Bytes;
use chain::Timestamp;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde_json::Value;

use crate::comet::Comet;
use crate::comet::reply::{classify, is_bad_query, is_index_off, result_of, search_range};
use crate::error::{Error, RequestContext};
use crate::json::{number_at, text_at};
use crate::pool::endpoint::{Endpoint, Request};
use crate::rest::Rest;
use crate::rpc::{self, RpcError, RpcResponse};
use crate::tx_search_hit::{BlockResults, CometTx, RestTx, TxSearchHit};

impl Comet {
    /// The transaction with this hash (`/tx`), or `None` if no node's index has it.
    pub async fn tx(&self, hash: [u8; 32]) -> Result<Option<TxSearchHit>, Error> {
        let request = Request::get("tx", format!("/tx?hash=0x{}", hex::encode_upper(hash)));
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = searched(&endpoint, &request).await?;
            endpoint.parse::<CometTx>(&request, &result)?.found().map_err(|e| endpoint.malformed(&request, e))
        };
        match self.pool.query(&request, attempt).await {
            Err(Error::Refused { message, .. }) if is_unknown_tx(&message) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// One page of the transactions that match a query (`/tx_search`), by height and position, and the number of
    /// matches on all pages. Pages count from 1 and hold `per_page`, 100 at most.
    ///
    /// The query is in CometBFT's language: `send_packet.packet_sequence='42' AND tx.height>5`.
    pub async fn tx_search(
        &self,
        query: &str,
        page: u32,
        per_page: u32,
        newest_first: bool,
    ) -> Result<(Vec<TxSearchHit>, u64), Error> {
        #[derive(Deserialize)]
        struct Reply {
            txs: Vec<CometTx>,
            total_count: String,
        }
        let order = if newest_first { "desc" } else { "asc" };
        // Parameters of a GET are JSON texts.
        let query = serde_json::Value::from(query).to_string();
        let query = utf8_percent_encode(&query, NON_ALPHANUMERIC);
        let path = format!("/tx_search?query={query}&page={page}&per_page={per_page}&order_by=%22{order}%22");
        let request = Request::get("tx_search", path);
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = searched(&endpoint, &request).await?;
            let Reply { txs, total_count } = endpoint.parse(&request, &result)?;
            let bad = |reason: String| endpoint.malformed(&request, reason);
            let total = total_count.parse().map_err(|_| bad(format!("total_count {total_count:?}")))?;
            Ok((txs.into_iter().map(CometTx::found).collect::<Result<_, _>>().map_err(bad)?, total))
        };
        self.pool.query(&request, attempt).await
    }

    /// The transactions of a block in order, from `/block` and `/block_results`: no index is needed.
    pub async fn txs_of_block(&self, height: u64) -> Result<Vec<TxSearchHit>, Error> {
        let (block, results) = (self.block(height).await?, self.block_results(height).await?);
        let (host, method) = (Arc::from(results.origin.host()), "block_results".into());
        let at = RequestContext { service: "comet", host, method, height: Some(height) };
        let malformed = |reason: String| Error::Malformed { at: at.clone(), reason };
        let results: BlockResults =
            serde_json::from_slice(&results.bytes).map_err(|e| malformed(e.to_string()))?;
        results.found(height, &block.bytes).map_err(malformed)
    }

    /// The time in a block's header: `/header`, or the whole `/block` of nodes without that method.
    pub async fn block_time(&self, height: u64) -> Result<Timestamp, Error> {
        // By POST: to an unknown method older nodes answer a POST with a distinct error, but a GET with a web page.
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"header","params":{{"height":"{height}"}}}}"#);
        let header = Request::post("header", String::new(), body).about(height);
        let block = Request::get("block", format!("/block?height={height}")).about(height);
        let attempt = async |endpoint: Arc<Endpoint>| match result_of(&endpoint, &header).await {
            Ok(result) => time_of(&endpoint, &header, &result),
            Err(Error::MethodMissing { .. }) => {
                time_of(&endpoint, &block, &result_of(&endpoint, &block).await?)
            }
            Err(error) => Err(error),
        };
        self.pool.query(&header, attempt).await
    }
}

/// The time in the `result` of `/header` or `/block`.
fn time_of(endpoint: &Endpoint, request: &Request, result: &[u8]) -> Result<Timestamp, Error> {
    let json: Value = endpoint.parse(request, result)?;
    let time = text_at(&json, "/header/time").or_else(|_| text_at(&json, "/block/header/time"));
    let time = time.and_then(|time| Timestamp::parse(time).map_err(|e| e.to_string()));
    time.map_err(|reason| endpoint.malformed(request, reason))
}

async fn searched(endpoint: &Endpoint, request: &Request) -> Result<Bytes, Error> {
    match rpc::exchange(endpoint, request, None).await? {
        RpcResponse::Result(result) => Ok(result),
        RpcResponse::Error(error) => Err(classify_search_error(endpoint.context(request), error)),
    }
}

fn classify_search_error(at: RequestContext, error: RpcError) -> Error {
    let RpcError { code, message } = error;
    if is_index_off(&message) {
        Error::NotIndexed { at }
    } else if let Some(most) = search_range(&message) {
        Error::RangeRequired { at, most, message }
    } else if is_unknown_tx(&message) || is_bad_query(&message) {
        Error::Refused { at, code, message }
    } else {
        classify(at, RpcError { code, message })
    }
}

/// `tx (HASH) not found`.
fn is_unknown_tx(message: &str) -> bool {
    message.contains("tx (") && message.contains(") not found")
}

/// gRPC's code for a missing item.
const NOT_FOUND: i64 = 5;

impl Rest {
    /// As [`Rest::get`], with `None` if the node supports the path but lacks the item (HTTP 404 with gRPC code 5). An
    /// unknown path is an error.
    pub async fn get_or_absent(
        &self,
        path_and_query: &str,
        height: Option<u64>,
    ) -> Result<Option<Bytes>, Error> {
        present(self.get(path_and_query, height).await)
    }

    /// The transaction with this hash and the time of its block, truncated to seconds
    /// (`/cosmos/tx/v1beta1/txs/{hash}`), or `None` if no node's index has it.
    pub async fn find_tx(&self, hash: [u8; 32]) -> Result<Option<(TxSearchHit, Timestamp)>, Error> {
        #[derive(Deserialize)]
        struct Reply {
            tx_response: RestTx,
        }
        let path = format!("/cosmos/tx/v1beta1/txs/{}", hex::encode_upper(hash));
        let read = |answer: Reply| answer.tx_response.found();
        present(self.query_for(Request::get(&path, path.clone()), read).await)
    }

    /// One page of the matching transactions with the times of their blocks, truncated to seconds, and the number of
    /// matches on all pages (`/cosmos/tx/v1beta1/txs`). Pages count from 1 and hold `limit`, 100 at most.
    ///
    /// Uses the parameters of SDK 0.50 and later, then those of older versions if they are rejected.
    pub async fn find_txs(
        &self,
        query: &str,
        page: u32,
        limit: u32,
        newest_first: bool,
    ) -> Result<(Vec<(TxSearchHit, Timestamp)>, u64), Error> {
        let order = if newest_first { "ORDER_BY_DESC" } else { "ORDER_BY_ASC" };
        let paging = format!("page={page}&limit={limit}&order_by={order}");
        let path = format!("{TXS}?query={}&{paging}", utf8_percent_encode(query, NON_ALPHANUMERIC));
        match self.page_of_txs(path).await {
            Err(Error::Refused { message, .. }) if message.contains(EVENTS_REQUIRED) => {}
            outcome => return outcome,
        }
        let events: Vec<_> = conditions(query)
            .into_iter()
            .map(|condition| format!("events={}", utf8_percent_encode(condition, NON_ALPHANUMERIC)))
            .collect();
        // SDK 0.46 and 0.47 page as newer ones, those before by an offset.
        let offset = u64::from(page.saturating_sub(1)) * u64::from(limit);
        let older = format!("pagination.offset={offset}&pagination.limit={limit}");
        self.page_of_txs(format!("{TXS}?{}&{paging}&{older}", events.join("&"))).await
    }

    async fn page_of_txs(&self, path: String) -> Result<(Vec<(TxSearchHit, Timestamp)>, u64), Error> {
        #[derive(Deserialize)]
        struct Reply {
            tx_responses: Vec<RestTx>,
            #[serde(flatten)]
            others: Value,
        }
        let read = |answer: Reply| {
            let total = number_at(&answer.others, "/total");
            let total = total.or_else(|_| number_at(&answer.others, "/pagination/total"))?;
            let txs = answer.tx_responses.into_iter().map(RestTx::found).collect::<Result<_, _>>()?;
            Ok((txs, total))
        };
        self.query_for(Request::get(TXS, path), read).await
    }
}

const TXS: &str = "/cosmos/tx/v1beta1/txs";

/// Text of SDKs before 0.50 for a request without `events` (`x/auth/tx/service.go`).
const EVENTS_REQUIRED: &str = "must declare at least one event to search";

/// The conditions of a query, split; an `AND` within quotes does not separate.
fn conditions(query: &str) -> Vec<&str> {
    let (mut found, mut rest, mut from) = (Vec::new(), query, 0);
    while let Some(place) = rest[from..].find(" AND ").map(|place| from + place) {
        if rest[..place].matches('\'').count().is_multiple_of(2) {
            found.push(rest[..place].trim());
            (rest, from) = (&rest[place + " AND ".len()..], 0);
        } else {
            from = place + 1;
        }
    }
    found.push(rest.trim());
    found
}

fn present<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::Refused { code: NOT_FOUND, .. }) => Ok(None),
        outcome => outcome.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_split_at_its_own_ands_only() {
        assert_eq!(conditions("a.b='1'"), ["a.b='1'"]);
        assert_eq!(conditions("a.b='1' AND c.d=2 AND e EXISTS"), ["a.b='1'", "c.d=2", "e EXISTS"]);
        assert_eq!(conditions("a.b='x AND y' AND c.d='z'"), ["a.b='x AND y'", "c.d='z'"]);
    }
}
