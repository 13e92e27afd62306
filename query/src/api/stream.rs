//! Event streams (SSE) of new blocks, transactions and movements of tokens.

use schema::keys::AccountKey;
use schema::ledger::{Class, LEDGER};
use schema::movement::TokenKey;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param, Type};
use web::event::EventStream;
use web::http_error::HttpError;
use web::openapi::schema::{Object, of};

use super::tx::MSGS;
use crate::indexer::Indexer;
use crate::movement_filter::MovementFilter;
use crate::movement_params::{self, DIRECTIONS, KINDS};
use crate::params;
use crate::stream::reader;
use crate::stream::rows::{Filter, Kind, Movements};
use crate::v1::{Block, EvmTx, Transfer, Tx};

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

/// Blocks by which the index of movements may be behind when a stream of them is opened, which then waits: a build of it reads so many at
/// once, and a rewind may take them back.
const BEHIND: u64 = 4096;

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
    stream(
        "/indexer/stream/v1/transfers",
        "New movements of tokens, as server-sent events, but for movements of nothing. It needs the optional index `ledger`.",
        TRANSFERS,
        of::<Transfer>(),
        transfers,
    ),
];

const TRANSFERS: &[Param] = &[
    RESUME,
    Param::query("account", params::ADDRESS, "Only movements from and to this account, bech32 or hex."),
    Param::query("token", Type::String, super::ledger::TOKEN),
    Param::query(
        "direction",
        Type::TextsOf(DIRECTIONS),
        "With an account: any of in, out and self; all if absent.",
    ),
    Param::query("kind", Type::TextsOf(KINDS), "Only these kinds of movements, separated by commas."),
    Param::query_or(
        "include_fees",
        Type::Flag,
        "false",
        "Fees and their refunds too; so does `kind` if it names them.",
    ),
];

fn blocks(indexer: &Indexer, call: &Call<'_>) -> Result<EventStream, HttpError> {
    open(indexer, call, Filter::new(Kind::Blocks, None, Vec::new()))
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
    Ok(Filter::new(kind, account, params::types(call)?))
}

fn transfers(indexer: &Indexer, call: &Call<'_>) -> Result<EventStream, HttpError> {
    params::check(call, TRANSFERS)?;
    let kinds = movement_params::kinds(call)?;
    let account = params::account_filter(call, indexer)?;
    if account.is_none() && call.first("direction").is_some() {
        return Err(HttpError::bad_request("direction is the direction to an account: account is missing"));
    }
    let mut classes = movement_params::directions(call)?;
    if call.boolean("include_fees", false) || kinds.iter().copied().any(movement_params::is_fee) {
        classes.push(Class::Fee);
    }
    let view = indexer.view()?;
    view.require_within(&LEDGER, BEHIND)?;
    let named = |text| match super::ledger::named_tokens(indexer, view.snapshot(), text)? {
        // An address is known before it has moved, a denom is not.
        unknown if unknown.is_empty() => super::ledger::tokens(indexer, view.snapshot(), text),
        named => Ok(named),
    };
    let tokens = call.first("token").map(named).transpose()?;
    let tokens = tokens.map(|tokens| tokens.into_iter().map(TokenKey).collect());
    let mut tested = MovementFilter { kinds, ..MovementFilter::default() };
    let account = account.map(|account| AccountKey(super::ledger::holder(indexer, account)));
    // The lists of an account are of classes; the others have all of them.
    let account = if let Some(account) = account {
        Some((account, classes))
    } else {
        tested.classes = classes;
        None
    };
    let mut filter = Filter::new(Kind::Transfers, None, Vec::new());
    filter.movements = Movements { account, tokens, tested };
    open(indexer, call, filter)
}

fn open(indexer: &Indexer, call: &Call<'_>, filter: Filter) -> Result<EventStream, HttpError> {
    let header = call.header(LAST_EVENT_ID).filter(|id| !id.is_empty());
    reader::open(&indexer.feed, filter, header.or_else(|| call.first("last_event_id")))
}
