//! Tokens that have moved, with what the node says of them.

use chain::movement::Token;
use schema::ledger::{LEDGER, TokenMovements};
use schema::movement::{Place, TokenKey};
use schema::tokens::{self, TOKENS, Tokens, TokensByType};
use store::{Message, Snapshot, Table as _};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::ledger::{self, TAG, TOKEN};
use super::{ListRequest, holders, one};
use crate::array::set::InMemory;
use crate::array::union::Union;
use crate::array::{Array, Run, Stored};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::page_writer::PageWriter;
use crate::params;
use crate::record::missing;
use crate::token_record::{self, AtBlock};
use crate::token_types;
use crate::transfer_record::moved_token;
use crate::v1::{GetLedgerTokenResponse, ListLedgerTokensResponse};

const PAGES: Param = Param::Group(&params::checked_pages(Space::LedgerTokens, params::MAX_LIMIT));

const LIST: &[Param] = &[
    Param::query(
        "type",
        Type::TextsOf(token_types::PATTERN),
        "Any of erc20, fa, bank, cw20, erc721, erc1155, collection and cw721; all if absent.",
    ),
    Param::query("search", Type::String, "The beginning of a symbol or denom, in any case."),
    PAGES,
];

const BY_NAME: &[Param] = &[
    Param::path("token", TOKEN),
    Param::query(
        "height",
        Type::Between(0, i64::MAX),
        "The block that supply, holders and transfers are of; 0 for the last.",
    ),
];

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListLedgerTokensResponse>(
        "/indexer/ledger/v1/tokens",
        "Tokens, in the order in which they were first seen. Like the next one it needs the optional index `tokens`: 404 if it is \
         not stored, 503 while it is being built.",
        LIST,
        list,
    ),
    TAG.list::<GetLedgerTokenResponse>(
        "/indexer/ledger/v1/tokens/{token}",
        "One token. Of a contract that emits movements of several types, the first one that was seen.",
        BY_NAME,
        by_name,
    ),
];

/// Tokens whose rows are read at once.
const AT_ONCE: usize = 128;

/// Bytes of work for a token: its rows.
const WORK: u64 = 1024;

/// Tokens that a search finds.
const MAX_FOUND: usize = 10_000;

fn list(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    params::check(call, LIST)?;
    let types = token_types::named(call)?;
    let text = call.first("search").unwrap_or_default();
    let request = ListRequest::<u64>::new(indexer, call, Space::LedgerTokens)?;
    request.view.require(&TOKENS)?;
    let height = request.view.blocks()?.height;
    let respond = |array: &dyn Array<Row = u64>| {
        request.respond("tokens", array, None, |out, numbers| {
            records(indexer, request.snapshot(), out, numbers, height)
        })
    };
    if !text.is_empty() {
        let found = tokens::search(request.snapshot(), text, MAX_FOUND).map_err(HttpError::internal)?;
        let mut found = found.ok_or_else(|| {
            HttpError::bad_request(format!(
                "[INVALID_VALUE] more than {MAX_FOUND} tokens match search: {} (use a longer text)",
                params::shown(text)
            ))
        })?;
        lane::spend(found.len() as u64 * 64)?;
        if text.chars().count() > tokens::SEARCHED {
            found = with_beginning(&request, &found, text)?;
        }
        if !types.is_empty() {
            let keys = tokens::numbered(request.snapshot(), &found).map_err(HttpError::internal)?;
            let mut keys = keys.into_iter();
            found.retain(|_| keys.next().is_some_and(|key| types.contains(&key.type_byte())));
        }
        return respond(&InMemory(found.iter().collect()));
    }
    if types.is_empty() {
        let state = TOKENS.state(request.snapshot()).map_err(HttpError::internal)?;
        return respond(&Run { first: 1, len: state.map_or(0, |state| state.numbered) });
    }
    respond(&Union::<TokensByType>::new(request.snapshot(), types).map_err(HttpError::internal)?)
}

/// Appends the records of the tokens `numbers` after the last block, which is `height`, as many as the page takes.
fn records(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    page: &mut PageWriter,
    numbers: &[u64],
    height: u64,
) -> Result<(), HttpError> {
    for numbers in numbers.chunks(AT_ONCE) {
        lane::spend(numbers.len() as u64 * WORK)?;
        let keys: Vec<TokenKey> = tokens::numbered(snapshot, numbers).map_err(HttpError::internal)?;
        let firsts = store::table::read_many::<Tokens>(snapshot, &keys).map_err(HttpError::internal)?;
        for ((number, key), first) in numbers.iter().zip(&keys).zip(firsts) {
            let Message(first) = first.ok_or_else(|| missing(Tokens::SPEC, *number))?;
            let at = after_last(snapshot, &key.0, height)?;
            let record = token_record::token(indexer, snapshot, (&key.0, first), &at)?;
            if page.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// What depends on the block, after the last one, which is `height`.
fn after_last(snapshot: &dyn Snapshot, token: &Token, height: u64) -> Result<AtBlock, HttpError> {
    let state = LEDGER.state(snapshot).map_err(HttpError::internal)?;
    let key = TokenKey(token.clone());
    let transfers = store::list::len::<TokenMovements>(snapshot, &key).map_err(HttpError::internal)?;
    Ok(AtBlock {
        height,
        holders: holders::number(snapshot, token)?,
        transfers: state.is_some_and(|state| state.height >= height).then_some(transfers),
    })
}

/// What depends on the block, after an earlier one.
fn after_earlier(view: &View<'_>, token: &Token, height: u64) -> Result<AtBlock, HttpError> {
    let (snapshot, (height, _)) = (view.snapshot(), ledger::range::after_block(view, Some(height))?);
    let len = LEDGER.state(snapshot).map_err(HttpError::internal)?.map_or(0, |state| state.numbered);
    let before = schema::ledger::position(snapshot, len, height + 1, Place::Begin);
    let first_after = before.map_err(HttpError::internal)? + 1;
    let all =
        Stored::<TokenMovements>::all(snapshot, TokenKey(token.clone())).map_err(HttpError::internal)?;
    let transfers = all.position(&first_after).map_err(HttpError::internal)?;
    Ok(AtBlock { height, holders: holders::number_at(snapshot, token, height)?, transfers: Some(transfers) })
}

/// Those of the tokens whose denom or symbol begins with `text`, of which only the first characters were searched.
fn with_beginning(request: &ListRequest<'_, u64>, found: &[u64], text: &str) -> Result<Vec<u64>, HttpError> {
    let (indexer, snapshot, beginning) = (request.indexer, request.snapshot(), text.to_lowercase());
    let mut kept = Vec::new();
    for numbers in found.chunks(AT_ONCE) {
        lane::spend(numbers.len() as u64 * WORK)?;
        let keys = tokens::numbered(snapshot, numbers).map_err(HttpError::internal)?;
        for (number, TokenKey(token)) in numbers.iter().zip(keys) {
            let reply = tokens::reply(snapshot, &token).map_err(HttpError::internal)?;
            let moved = moved_token(&indexer.identity, snapshot, &token, reply.as_ref())?;
            let symbol = moved.symbol.unwrap_or_default();
            if [moved.denom, symbol].iter().any(|name| name.to_lowercase().starts_with(&beginning)) {
                kept.push(*number);
            }
        }
    }
    Ok(kept)
}

fn by_name(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    params::check(call, BY_NAME)?;
    let name = call.text("token");
    let view = indexer.view()?;
    view.require(&TOKENS)?;
    let keys: Vec<TokenKey> =
        ledger::named_tokens(indexer, view.snapshot(), name)?.into_iter().map(TokenKey).collect();
    let firsts = store::table::read_many::<Tokens>(view.snapshot(), &keys).map_err(HttpError::internal)?;
    let seen = keys.iter().zip(firsts).filter_map(|(key, first)| Some((key, first?)));
    let unknown = || HttpError::not_found(format!("[NOT_FOUND] token not found: {}", params::shown(name)));
    let (TokenKey(token), Message(first)) =
        seen.min_by_key(|(_, Message(first))| first.number).ok_or_else(unknown)?;
    let snapshot = view.snapshot();
    let last = view.blocks()?.height;
    let earlier = ledger::range::height(call, "height")?.filter(|height| *height != last);
    let at = match earlier {
        None => after_last(snapshot, token, last)?,
        Some(height) => after_earlier(&view, token, height)?,
    };
    let record = token_record::token(indexer, snapshot, (token, first), &at)?;
    Ok(one("token", &serde_json::to_vec(&record).map_err(HttpError::internal)?))
}
