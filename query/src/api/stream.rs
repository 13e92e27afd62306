//! Event streams (SSE) of new blocks and transactions.

use schema::keys::AccountKey;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param, Type};
use web::event::EventStream;
use web::http_error::HttpError;
use web::openapi::schema::{Object, of};

use super::tx::MSGS;
use crate::indexer::Indexer;
use crate::params;
use crate::stream::reader;
use crate::stream::rows::{Filter, Kind};
use crate::v1::{Block, EvmTx, Tx};

/// The header that a browser sends when it reconnects (HTML standard, server-sent events).
const LAST_EVENT_ID: &str = "last-event-id";

const RESUME: Param = Param::query(
    "last_event_id",
    Type::String,
    "The id of an event, to go on after it; without one, only new rows are sent. The header Last-Event-ID wins.",
);

const ACCOUNT: Param =
    Param::query("account", Type::String, "Only transactions that involve this account, bech32 or hex.");

const IS_SIGNER: Param = params::is_signer("With an account: only transactions that it signed.");

type OpenHandler = fn(&Indexer, &Call<'_>) -> Result<EventStream, HttpError>;

const fn stream(
    path: &'static str,
    summary: &'static str,
    params: &'static [Param],
    response: &'static dyn Object,
    handler: OpenHandler,
) -> Endpoint<Indexer> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "Stream",
        summary,
        params,
        response,
        handler: Handler::Stream(handler),
        cache: MaxAge(0),
    }
}

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    stream(
        "/indexer/stream/v1/blocks",
        "New blocks, as server-sent events.",
        &[RESUME],
        of::<Block>(),
        blocks,
    ),
    stream(
        "/indexer/stream/v1/txs",
        "New transactions, as server-sent events.",
        &[RESUME, ACCOUNT, IS_SIGNER, MSGS],
        of::<Tx>(),
        txs,
    ),
    stream(
        "/indexer/stream/v1/evm-txs",
        "New EVM transactions, as server-sent events.",
        &[RESUME, ACCOUNT, IS_SIGNER],
        of::<EvmTx>(),
        evm_txs,
    ),
];

fn blocks(indexer: &Indexer, call: &Call<'_>) -> Result<EventStream, HttpError> {
    open(indexer, call, Filter { kind: Kind::Blocks, account: None, types: Vec::new() })
}

fn txs(indexer: &Indexer, call: &Call<'_>) -> Result<EventStream, HttpError> {
    open(indexer, call, of_account(indexer, call, Kind::Txs)?)
}

fn evm_txs(indexer: &Indexer, call: &Call<'_>) -> Result<EventStream, HttpError> {
    indexer.evm_only()?;
    open(indexer, call, of_account(indexer, call, Kind::EvmTxs)?)
}

fn of_account(indexer: &Indexer, call: &Call<'_>, kind: Kind) -> Result<Filter, HttpError> {
    let account = params::account_filter(call, indexer)?;
    let account = account.map(|account| (AccountKey(account), params::role(call)));
    Ok(Filter { kind, account, types: params::types(call)? })
}

fn open(indexer: &Indexer, call: &Call<'_>, filter: Filter) -> Result<EventStream, HttpError> {
    let header = call.header(LAST_EVENT_ID).filter(|id| !id.is_empty());
    reader::open(&indexer.feed, filter, header.or_else(|| call.first("last_event_id")))
}
