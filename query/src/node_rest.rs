//! Paths of a node's REST interface that the index serves as the node does: transactions of `cosmos.tx.v1beta1`, and on a layer one what
//! rollups ask about their bridges (`opinit.ophost.v1`).
//!
//! They are no part of [`crate::ENDPOINTS`], because the node's own document and gRPC service describe them.
//!
//! # Invariants
//! * A response is the one of a node that has all blocks, member by member, or an error that says why it is not given.
//! * What the index does not have is never reported as absent from the chain.

mod node_info;
mod ophost;
mod search;

use schemars::JsonSchema;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;

use crate::api::{Tag, block, tx};
use crate::indexer::{Indexer, View};
use crate::node_text::{go_hex, since};
use crate::page_writer::PageWriter;
use crate::params::shown;
use crate::tx_parts::{self, TxParts};

pub(crate) use self::ophost::ENDPOINTS as OPHOST;

/// Transactions of a block in a response without `pagination.limit`: the node's default.
const DEFAULT_LIMIT: u64 = 100;

/// The code `UNKNOWN` of gRPC, which nodes send with a 500.
const UNKNOWN: u8 = 2;

const TAG: Tag = Tag("Node");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.record::<GetTxResponse>(
        "/cosmos/tx/v1beta1/txs/{hash}",
        "One transaction, as a node prints it.",
        &[Param::path("hash", "Hex.")],
        by_hash,
    ),
    TAG.list::<GetTxsEventResponse>(
        "/cosmos/tx/v1beta1/txs",
        "Transactions that match a query, as a node finds and prints them.",
        &[
            Param::query("query", Type::String, "Conditions on attributes of events, joined by AND."),
            Param::query_or("order_by", Type::String, "ORDER_BY_ASC", "ORDER_BY_ASC or ORDER_BY_DESC."),
            Param::query_or("page", Type::Integer, "1", "The number of the page, from 1."),
            Param::query_or("limit", Type::Integer, "100", "Transactions of a page, at most 100."),
        ],
        search::search,
    ),
    TAG.list::<GetBlockWithTxsResponse>(
        "/cosmos/tx/v1beta1/txs/block/{height}",
        "The transactions of a block, as a node prints them; without the block itself.",
        &[
            Param::path("height", "A height, 1 or more."),
            Param::query_or("pagination.limit", Type::Integer, "100", "How many transactions."),
            Param::query_or("pagination.offset", Type::Integer, "0", "How many transactions to skip."),
            Param::query("pagination.reverse", Type::Boolean, "Refused: the order is that of the block."),
        ],
        of_block,
    ),
    TAG.list::<node_info::GetNodeInfoResponse>(
        "/cosmos/base/tendermint/v1beta1/node_info",
        "The chain's id, as a node gives it; the rest describes this program.",
        &[],
        |indexer, _| Ok(node_info::get(indexer)),
    ),
];

/// Prefixes of the paths of a node's modules.
const MODULES: [&str; 7] =
    ["/cosmos/", "/cosmwasm/", "/ibc/", "/initia/", "/minievm/", "/miniwasm/", "/opinit/"];

/// Why a path of a node has no endpoint here; `None` for other paths.
pub fn unserved(path: &str) -> Option<&'static str> {
    let is_of_node = MODULES.iter().any(|module| path.starts_with(module));
    is_of_node.then_some(
        "of the paths of a node, only /cosmos/tx/v1beta1/txs and those below it follow from the index, and of a layer one those of \
         bridges, their outputs and claims; ask a node",
    )
}

/// `cosmos.tx.v1beta1.GetTxResponse`.
#[derive(JsonSchema)]
struct GetTxResponse {
    #[expect(dead_code, reason = "the schema")]
    tx: serde_json::Value,
    #[expect(dead_code, reason = "the schema")]
    tx_response: serde_json::Value,
}

/// `cosmos.tx.v1beta1.GetBlockWithTxsResponse`.
#[derive(JsonSchema)]
struct GetBlockWithTxsResponse {
    #[expect(dead_code, reason = "the schema")]
    txs: Vec<serde_json::Value>,
    #[expect(dead_code, reason = "the schema")]
    pagination: serde_json::Value,
}

/// `cosmos.tx.v1beta1.GetTxsEventResponse`.
#[derive(JsonSchema)]
struct GetTxsEventResponse {
    #[expect(dead_code, reason = "the schema")]
    txs: Vec<serde_json::Value>,
    #[expect(dead_code, reason = "the schema")]
    tx_responses: Vec<serde_json::Value>,
    #[expect(dead_code, reason = "the schema")]
    total: String,
}

/// An error as nodes send it: 500 with a code of gRPC.
fn node_error(code: u8, message: impl Into<String>) -> HttpError {
    HttpError::new(http::StatusCode::INTERNAL_SERVER_ERROR, message).with_code(code)
}

fn by_hash(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let text = call.text("hash");
    let hash = go_hex(text).map_err(|error| node_error(UNKNOWN, error))?;
    let view = indexer.view()?;
    let unknown = || {
        HttpError::not_found(format!("tx not found: {}{}", shown(text), since(indexer.identity.start_height)))
    };
    let hash = <[u8; 32]>::try_from(hash).map_err(|_| unknown())?;
    let (seq, record) = tx::find(indexer, &view, &hash, b"")?.ok_or_else(unknown)?;
    let parts = TxParts::of(seq, &record)?;
    let mut body = Vec::with_capacity(record.len() * 3 / 2);
    body.extend_from_slice(br#"{"tx":"#);
    parts.write_tx(&mut body);
    body.extend_from_slice(br#","tx_response":"#);
    parts.write_response(&mut body);
    body.push(b'}');
    Ok(Reply::json(body))
}

fn of_block(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let text = call.text("height");
    let height: i64 = text.parse().map_err(|error| {
        HttpError::bad_request(format!(
            "type mismatch, parameter: height, error: strconv.ParseInt: parsing \"{}\": {}",
            shown(text),
            go_syntax(&error)
        ))
    })?;
    let limit = unsigned(call, "pagination.limit")?;
    let offset = unsigned(call, "pagination.offset")?.unwrap_or(0);
    if call.boolean("pagination.reverse", false) {
        return Err(HttpError::bad_request(
            "pagination.reverse is not served here: read the block in its order, by pagination.offset",
        ));
    }
    let view = indexer.view()?;
    let block = stored(indexer, &view, height)?;
    if block.txs > 0 && offset >= block.txs {
        return Err(node_error(
            UNKNOWN,
            format!(
                "codespace sdk code 18: invalid request: out of range: cannot paginate {} txs with offset {offset} and \
                 limit {}",
                block.txs,
                limit.unwrap_or(0)
            ),
        ));
    }
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(DEFAULT_LIMIT);
    let first = block.first_tx.saturating_add(offset.min(block.txs));
    let seqs: Vec<u64> = (first..block.first_tx.saturating_add(block.txs))
        .take(usize::try_from(limit).unwrap_or(usize::MAX))
        .collect();
    let mut page = PageWriter::new(br#"{"txs":["#.to_vec(), seqs.len(), indexer.page_bytes);
    let mut one = Vec::new();
    let written = tx_parts::each(indexer, &view, &seqs, &mut page, |page, parts| {
        one.clear();
        parts.write_tx(&mut one);
        page.record(&one)
    })?;
    if written < seqs.len() {
        return Err(HttpError::bad_request(format!(
            "{} transactions of the block {height} have more than {} bytes: ask for fewer with pagination.limit, at most \
             {written}",
            seqs.len(),
            indexer.page_bytes
        )));
    }
    let (mut body, _) = page.finish(false);
    body.extend_from_slice(br#"],"block_id":null,"block":null,"pagination":{"next_key":null,"total":""#);
    body.extend_from_slice(itoa::Buffer::new().format(block.txs).as_bytes());
    body.extend_from_slice(br#""}}"#);
    Ok(Reply::json(body))
}

/// The block at `height`, with the error of a node for a height that the chain does not have.
fn stored(indexer: &Indexer, view: &View<'_>, height: i64) -> Result<schema::block::Block, HttpError> {
    let last = view.blocks()?.height;
    let valid = u64::try_from(height).ok().filter(|height| (1..=last).contains(height));
    let Some(height) = valid else {
        return Err(node_error(
            UNKNOWN,
            format!(
                "codespace sdk code 26: invalid height: requested height {height} but height must not be less than 1 or \
                 greater than the current height {last}"
            ),
        ));
    };
    block::at(view, height)?.ok_or_else(|| below_index(indexer, height))
}

/// A height that is not indexed.
fn below_index(indexer: &Indexer, height: u64) -> HttpError {
    HttpError::bad_request(format!(
        "height {height} is not indexed: indexed from height {}; ask a node that has it",
        indexer.identity.start_height
    ))
}

/// An unsigned number in a query string, with the error of Go's `strconv.ParseUint`.
fn unsigned(call: &Call<'_>, name: &str) -> Result<Option<u64>, HttpError> {
    let Some(text) = call.first(name) else { return Ok(None) };
    // Go takes no sign here.
    let parsed = if text.starts_with('+') { "+".parse::<u64>() } else { text.parse::<u64>() };
    parsed.map(Some).map_err(|error| {
        let (text, error) = (shown(text), go_syntax(&error));
        HttpError::bad_request(format!("strconv.ParseUint: parsing \"{text}\": {error}"))
    })
}

fn go_syntax(error: &std::num::ParseIntError) -> &'static str {
    use std::num::IntErrorKind;
    match error.kind() {
        IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
        _ => "invalid syntax",
    }
}
