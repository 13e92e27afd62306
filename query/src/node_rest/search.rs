//! `GET /cosmos/tx/v1beta1/txs?query=`: the node's search for transactions.

use web::call::Call;
use web::http_error::HttpError;
use web::reply::Reply;

use super::{node_error, unsigned};
use crate::indexer::{Indexer, View};
use crate::page_writer::PageWriter;
use crate::params::shown;
use crate::tx_parts::{self, TxParts};
use crate::tx_search::{self, Error, Place};

/// The code `INTERNAL` of gRPC, which a node's search sends with a 500.
const INTERNAL: u8 = 13;

/// Transactions of a page: the maximum and the default of nodes.
const MAX_LIMIT: u64 = 100;

/// The handler.
pub(super) fn search(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let descending = is_descending(call)?;
    let page = unsigned(call, "page")?.unwrap_or(1).max(1);
    let limit = unsigned(call, "limit")?.filter(|limit| *limit > 0).unwrap_or(MAX_LIMIT).min(MAX_LIMIT);
    let query = call.first("query").ok_or_else(|| node_error(INTERNAL, "query cannot be empty"))?;
    let view = indexer.view()?;
    let place = Place { page: page.try_into().unwrap_or(i64::MAX), limit, descending };
    let found = tx_search::search(indexer, &view, query, place).map_err(|error| match error {
        Error::Invalid(text) => node_error(INTERNAL, format!("failed to search for txs: {text}")),
        Error::Refused(text) => HttpError::bad_request(text),
        Error::Failed(error) => error,
    })?;
    respond(indexer, &view, &found.seqs, found.total)
}

fn is_descending(call: &Call<'_>) -> Result<bool, HttpError> {
    match call.first("order_by") {
        None | Some("0" | "1" | "ORDER_BY_UNSPECIFIED" | "ORDER_BY_ASC") => Ok(false),
        Some("2" | "ORDER_BY_DESC") => Ok(true),
        Some(text) => Err(HttpError::bad_request(format!("{} is not a valid tx.OrderBy", shown(text)))),
    }
}

fn respond(indexer: &Indexer, view: &View<'_>, seqs: &[u64], total: u64) -> Result<Reply, HttpError> {
    let mut txs = br#"{"txs":["#.to_vec();
    let mut page = PageWriter::new(br#"],"tx_responses":["#.to_vec(), seqs.len(), indexer.page_bytes);
    let mut one = Vec::new();
    let written = tx_parts::each(indexer, view, seqs, &mut page, |page, parts: &TxParts<'_>| {
        one.clear();
        parts.write_response(&mut one);
        let more = page.record(&one)?;
        if more.is_continue() {
            if txs.last() != Some(&b'[') {
                txs.push(b',');
            }
            parts.write_tx(&mut txs);
        }
        Ok(more)
    })?;
    if written < seqs.len() {
        return Err(HttpError::bad_request(format!(
            "the {} transactions of the page have more than {} bytes: ask for fewer, with limit={written}",
            seqs.len(),
            indexer.page_bytes
        )));
    }
    let (responses, _) = page.finish(false);
    let total = format!(r#"],"pagination":null,"total":"{total}"}}"#);
    Ok(Reply::json([txs, responses, total.into_bytes()].concat()))
}
