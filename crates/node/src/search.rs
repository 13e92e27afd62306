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

use crate::comet::Comet;
use crate::comet_rpc::{classify, is_bad_query, is_index_off, parsed, result_of};
use crate::cosmos::Rest;
use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, Site};
use crate::rpc::{self, RpcError, RpcResponse};
use crate::tx_search_hit::{CometTx, FoundTx, RestTx};

impl Comet {
    /// The transaction with this hash (`/tx`), or `None` if no node's index has it.
    pub async fn tx(&self, hash: [u8; 32]) -> Result<Option<FoundTx>, Error> {
        let call = Call::get("tx", format!("/tx?hash=0x{}", hex::encode_upper(hash)));
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = searched(&endpoint, &call).await?;
            parsed::<CometTx>(&endpoint, &call, &result)?.found().map_err(|e| malformed(&endpoint, &call, e))
        };
        match self.pool().ask(&call, attempt).await {
            Err(Error::Refused { said, .. }) if is_unknown_tx(&said) => Ok(None),
            outcome => outcome.map(Some),
        }
    }

    /// One page of the transactions that a query finds (`/tx_search`), by height and place, and how many it finds on
    /// all pages. Pages count from 1 and hold `per_page`, 100 at most.
    ///
    /// The query is in CometBFT's language: `send_packet.packet_sequence='42' AND tx.height>5`.
    pub async fn tx_search(
        &self,
        query: &str,
        page: u32,
        per_page: u32,
        newest_first: bool,
    ) -> Result<(Vec<FoundTx>, u64), Error> {
        #[derive(Deserialize)]
        struct Answer {
            txs: Vec<CometTx>,
            total_count: String,
        }
        let order = if newest_first { "desc" } else { "asc" };
        // Parameters of a GET are JSON texts.
        let query = serde_json::Value::from(query).to_string();
        let query = utf8_percent_encode(&query, NON_ALPHANUMERIC);
        let path = format!("/tx_search?query={query}&page={page}&per_page={per_page}&order_by=%22{order}%22");
        let call = Call::get("tx_search", path);
        let attempt = async |endpoint: Arc<Endpoint>| {
            let result = searched(&endpoint, &call).await?;
            let Answer { txs, total_count } = parsed(&endpoint, &call, &result)?;
            let bad = |reason: String| malformed(&endpoint, &call, reason);
            let total = total_count.parse().map_err(|_| bad(format!("total_count {total_count:?}")))?;
            Ok((txs.into_iter().map(CometTx::found).collect::<Result<_, _>>().map_err(bad)?, total))
        };
        self.pool().ask(&call, attempt).await
    }

    /// The time in a block's header: `/header`, or the whole `/block` where a node is older than that.
    pub async fn block_time(&self, height: u64) -> Result<Timestamp, Error> {
        // By POST: older nodes answer an unknown method with an error of its own there, and with a page to a GET.
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":0,"method":"header","params":{{"height":"{height}"}}}}"#);
        let header = Call::post("header", String::new(), body).about(height);
        let block = Call::get("block", format!("/block?height={height}")).about(height);
        let attempt = async |endpoint: Arc<Endpoint>| match result_of(&endpoint, &header).await {
            Ok(result) => time_of(&endpoint, &header, &result),
            Err(Error::MethodMissing { .. }) => {
                time_of(&endpoint, &block, &result_of(&endpoint, &block).await?)
            }
            Err(error) => Err(error),
        };
        self.pool().ask(&header, attempt).await
    }
}

/// The time in the `result` of `/header` or `/block`.
fn time_of(endpoint: &Endpoint, call: &Call, result: &[u8]) -> Result<Timestamp, Error> {
    #[derive(Deserialize)]
    struct Answer {
        header: Option<Header>,
        block: Option<Block>,
    }
    #[derive(Deserialize)]
    struct Block {
        header: Header,
    }
    #[derive(Deserialize)]
    struct Header {
        time: String,
    }
    let Answer { header, block } = parsed(endpoint, call, result)?;
    let header = header.or(block.map(|block| block.header));
    let header = header.ok_or_else(|| malformed(endpoint, call, "the header is null".to_owned()))?;
    Timestamp::parse(&header.time).map_err(|e| malformed(endpoint, call, e.to_string()))
}

async fn searched(endpoint: &Endpoint, call: &Call) -> Result<Bytes, Error> {
    match rpc::exchange(endpoint, call, None).await? {
        RpcResponse::Result(result) => Ok(result),
        RpcResponse::Error(error) => Err(classify_search_error(endpoint.site(call), error)),
    }
}

fn classify_search_error(at: Site, error: RpcError) -> Error {
    let RpcError { code, message: said } = error;
    if is_index_off(&said) {
        Error::NotIndexed { at }
    } else if is_unknown_tx(&said) || is_bad_query(&said) {
        Error::Refused { at, code, said }
    } else {
        classify(at, RpcError { code, message: said })
    }
}

/// `tx (HASH) not found`.
fn is_unknown_tx(said: &str) -> bool {
    said.contains("tx (") && said.contains(") not found")
}

/// gRPC's code for something that is not there.
const NOT_FOUND: i64 = 5;

impl Rest {
    /// As [`Rest::get`], with `None` where the node knows the path but not the item (HTTP 404 with gRPC code 5). An
    /// unknown path is an error.
    pub async fn get_or_absent(
        &self,
        path_and_query: &str,
        height: Option<u64>,
    ) -> Result<Option<Bytes>, Error> {
        present(self.get(path_and_query, height).await)
    }

    /// The transaction with this hash and the time of its block, cut to seconds
    /// (`/cosmos/tx/v1beta1/txs/{hash}`), or `None` if no node's index has it.
    pub async fn find_tx(&self, hash: [u8; 32]) -> Result<Option<(FoundTx, Timestamp)>, Error> {
        #[derive(Deserialize)]
        struct Answer {
            tx_response: RestTx,
        }
        let path = format!("/cosmos/tx/v1beta1/txs/{}", hex::encode_upper(hash));
        let read = |answer: Answer| answer.tx_response.found();
        present(self.ask_for_valid(Call::get(&path, path.clone()), read).await)
    }

    /// One page of the transactions that a query finds with the times of their blocks, cut to seconds, and how many
    /// it finds on all pages (`/cosmos/tx/v1beta1/txs`). Pages count from 1 and hold `limit`, 100 at most.
    ///
    /// Uses the parameters of SDK 0.50 and later, then those of older versions if they are rejected.
    pub async fn find_txs(
        &self,
        query: &str,
        page: u32,
        limit: u32,
        newest_first: bool,
    ) -> Result<(Vec<(FoundTx, Timestamp)>, u64), Error> {
        let order = if newest_first { "ORDER_BY_DESC" } else { "ORDER_BY_ASC" };
        let paging = format!("page={page}&limit={limit}&order_by={order}");
        let path = format!("{TXS}?query={}&{paging}", utf8_percent_encode(query, NON_ALPHANUMERIC));
        match self.page_of_txs(path).await {
            Err(Error::Refused { said, .. }) if said.contains(EVENTS_REQUIRED) => {}
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

    async fn page_of_txs(&self, path: String) -> Result<(Vec<(FoundTx, Timestamp)>, u64), Error> {
        #[derive(Deserialize)]
        struct Answer {
            tx_responses: Vec<RestTx>,
            total: Option<String>,
            pagination: Option<Pagination>,
        }
        #[derive(Deserialize)]
        struct Pagination {
            total: Option<String>,
        }
        let read = |answer: Answer| {
            let total = answer.total.or(answer.pagination.and_then(|pagination| pagination.total));
            let total = total.ok_or("no total")?;
            let total = total.parse().map_err(|_| format!("total {total:?}"))?;
            let txs = answer.tx_responses.into_iter().map(RestTx::found).collect::<Result<_, _>>()?;
            Ok((txs, total))
        };
        self.ask_for_valid(Call::get(TXS, path), read).await
    }
}

const TXS: &str = "/cosmos/tx/v1beta1/txs";

/// Text of SDKs before 0.50 for a request without `events` (`x/auth/tx/service.go`).
const EVENTS_REQUIRED: &str = "must declare at least one event to search";

/// The conditions of a query, apart: `AND` within quotes joins nothing.
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

fn malformed(endpoint: &Endpoint, call: &Call, reason: String) -> Error {
    Error::Malformed { at: endpoint.site(call), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_falls_apart_at_its_own_ands_only() {
        assert_eq!(conditions("a.b='1'"), ["a.b='1'"]);
        assert_eq!(conditions("a.b='1' AND c.d=2 AND e EXISTS"), ["a.b='1'", "c.d=2", "e EXISTS"]);
        assert_eq!(conditions("a.b='x AND y' AND c.d='z'"), ["a.b='x AND y'", "c.d='z'"]);
    }
}
