//! Movements of tokens.

mod csv;
pub(super) mod range;
mod request;

use std::str::FromStr as _;

use chain::movement::{self, Movement, Token};
use chain::{Account, Vm};
use schema::balances::TokenStates;
use schema::keys::AccountKey;
use schema::ledger::{self, AccountMovements, AccountTokenMovements, Class, TokenMovements};
use schema::movement::{Place, TokenKey};
use schema::rich::Erc20s;
use serde::Deserialize;
use store::Snapshot;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::openapi::schema::{ObjectOrText, of};
use web::reply::Reply;

use self::request::Request;
use super::{Tag, block, tx};
use crate::array::Array;
use crate::csv::{MAX_ROWS, TEXT};
use crate::cursor::Space;
use crate::indexer::Indexer;
use crate::movement_params::{self, DIRECTIONS, KINDS};
use crate::names;
use crate::params;
use crate::v1::ListTransfersResponse;

pub(super) const FROM_HEIGHT: Param =
    Param::query("from_height", Type::Between(0, i64::MAX), "Not before this block; 0 for the first.");

pub(super) const TO_HEIGHT: Param =
    Param::query("to_height", Type::Between(0, i64::MAX), "Not after this block; 0 for the last.");

pub(super) const FROM_TIME: Param =
    Param::query("from_time", Type::Pattern(range::TIME), "Not before this time, RFC 3339.");

pub(super) const TO_TIME: Param =
    Param::query("to_time", Type::Pattern(range::TIME), "Not after this time, RFC 3339.");

pub(super) const TOKEN: &str =
    "A denom (slashes as %2F in a path), or the address of a contract or of Move's metadata object.";

const KIND: Param = Param::query(
    "kind",
    Type::TextsOf(KINDS),
    "Only these kinds of movements, separated by commas. They are searched for: a page tests at most 5,000 movements, the total \
     is 0, and while next_key is not null others may follow, also after an empty page. Without pagination.offset.",
);

const PAGES: Param = Param::Group(&params::checked_pages(Space::Transfers, params::MAX_LIMIT));

const ALL: &[Param] = &[KIND, FROM_HEIGHT, TO_HEIGHT, FROM_TIME, TO_TIME, PAGES];

const BY_ACCOUNT: &[Param] = &[
    Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
    Param::query("direction", Type::TextsOf(DIRECTIONS), "Any of in, out and self; all if absent."),
    Param::query("token", Type::String, TOKEN),
    Param::query(
        "counterparty",
        params::ADDRESS,
        "Only from and to this account; searched for as `kind` is.",
    ),
    KIND,
    Param::query_or(
        "include_fees",
        Type::Flag,
        "false",
        "Fees and their refunds too, in either direction; so does `kind` if it names them.",
    ),
    Param::query_or(
        "include_zero",
        Type::Flag,
        "false",
        "Movements of the amount 0 too, which strangers can log about any account; in either direction.",
    ),
    FROM_HEIGHT,
    TO_HEIGHT,
    FROM_TIME,
    TO_TIME,
    Param::query_or("format", Type::OneOf(&["json", "csv"]), "json", csv::FORMAT),
    Param::Group(&params::checked_pages(Space::Transfers, MAX_ROWS)),
];

const BY_TOKEN: &[Param] = &[
    Param::path("token", TOKEN),
    Param::query(
        "token_id",
        Type::String,
        "Only this one of the contract's tokens; searched for as `kind` is.",
    ),
    KIND,
    FROM_HEIGHT,
    TO_HEIGHT,
    FROM_TIME,
    TO_TIME,
    PAGES,
];

const BY_HEIGHT: &[Param] = &[Param::path_of("height", params::HEIGHT, "A height, 1 or more."), KIND, PAGES];

const BY_TX: &[Param] =
    &[Param::path_of("tx_hash", params::HASH, "The Cosmos hash in hex, with or without 0x."), KIND, PAGES];

pub(super) const TAG: Tag = Tag("Ledger");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers",
        "All movements of tokens. Like all of this group it needs the optional index `ledger`: 404 if it is not stored, 503 \
         while it is being built. An unknown parameter is an error in this group.",
        ALL,
        transfers,
    ),
    Endpoint {
        response: &ObjectOrText(of::<ListTransfersResponse>(), TEXT),
        ..TAG.list::<ListTransfersResponse>(
            "/indexer/ledger/v1/transfers/by_account/{account}",
            "Movements from and to an account, without fees and without movements of nothing unless they are wanted; as CSV \
             if that is.",
            BY_ACCOUNT,
            by_account,
        )
    },
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers/by_token/{token}",
        "Movements of a token; 404 if none is indexed.",
        BY_TOKEN,
        by_token,
    ),
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers/by_height/{height}",
        "Movements of a block; 400 if it is above the last indexed one, 404 if it is below the first.",
        BY_HEIGHT,
        by_height,
    ),
    TAG.list::<ListTransfersResponse>(
        "/indexer/ledger/v1/transfers/by_tx/{tx_hash}",
        "Movements of a transaction.",
        BY_TX,
        by_tx,
    ),
];

fn transfers(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = Request::new(indexer, call, ALL)?;
    let run = request.range(call)?;
    request.respond(&run.map_or_else(|| request.all(), Ok)?)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let is_csv = call.first("format") == Some("csv");
    let default = if is_csv { MAX_ROWS } else { params::DEFAULT_LIMIT };
    let mut request = Request::with_limits(indexer, call, BY_ACCOUNT, (default, MAX_ROWS))?;
    let account = holder(indexer, params::account(call, indexer)?);
    let other = params::optional_account(call, indexer, "counterparty")?;
    request.filter.between = other.map(|other| (account, holder(indexer, other)));
    let mut classes = movement_params::directions(call)?;
    if call.boolean("include_fees", false)
        || request.filter.kinds.iter().copied().any(movement_params::is_fee)
    {
        classes.push(Class::Fee);
    }
    if call.boolean("include_zero", false) {
        classes.push(Class::Nothing);
    }
    let tokens = call.first("token").map(|text| tokens(indexer, request.snapshot(), text)).transpose()?;
    let key = AccountKey(account);
    let array: Box<dyn Array<Row = u64> + '_> = match &tokens {
        None => {
            let owners = classes.iter().map(|class| (key, *class)).collect();
            Box::new(request.union::<AccountMovements>(call, owners)?)
        }
        Some(tokens) => {
            let of_token = |token: &Token| {
                let token = TokenKey(token.clone());
                classes.iter().map(move |class| (key, token.clone(), *class)).collect::<Vec<_>>()
            };
            let owners = tokens.iter().flat_map(of_token).collect();
            Box::new(request.union::<AccountTokenMovements>(call, owners)?)
        }
    };
    if !is_csv {
        return request.respond(&*array);
    }
    let selects = |movement: &Movement| {
        let side = if movement.from == Some(account) { Class::Out } else { Class::In };
        tokens.as_ref().is_none_or(|tokens| tokens.contains(&movement.token))
            && classes.contains(&ledger::class_of(movement, side))
            && request.filter.passes(movement)
    };
    csv::reply(call, &request, account, request.page(&*array)?, &selects)
}

fn by_token(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let mut request = Request::new(indexer, call, BY_TOKEN)?;
    request.filter.token_id = call.first("token_id").map(str::to_owned);
    let tokens = tokens(indexer, request.snapshot(), call.text("token"))?;
    let union = request.union::<TokenMovements>(call, tokens.into_iter().map(TokenKey).collect())?;
    request.respond(&union)
}

fn by_height(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let height = params::height(call)?;
    let request = Request::new(indexer, call, BY_HEIGHT)?;
    range::after_block(&request.list.view, Some(height))?;
    request.respond(&request.between((height, Place::Begin), (height + 1, Place::Begin))?)
}

fn by_tx(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    /// The member of a record that is needed here.
    #[derive(Deserialize)]
    struct Head<'a> {
        height: &'a str,
    }
    let unknown =
        || HttpError::not_found(format!("[NOT_FOUND] transaction not found: {}", call.text("tx_hash")));
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let request = Request::new(indexer, call, BY_TX)?;
    let (seq, record) = tx::find(indexer, &request.list.view, &hash, b"")?.ok_or_else(unknown)?;
    let head: Head<'_> = serde_json::from_slice(&record).map_err(HttpError::internal)?;
    let height = head.height.parse().map_err(HttpError::internal)?;
    let block = block::at(&request.list.view, height)?;
    let place = block.map_or(0, |block| seq.saturating_sub(block.first_tx));
    let run = request.between((height, Place::Tx(place)), (height, Place::Tx(place + 1)))?;
    request.respond(&run)
}

fn vm(indexer: &Indexer) -> Vm {
    Vm::from_str(&indexer.identity.vm).unwrap_or(Vm::None)
}

/// The account that has the balances of `account`.
pub(super) fn holder(indexer: &Indexer, account: Account) -> Account {
    movement::holder(vm(indexer), account)
}

/// The tokens with this name or address that have moved: a contract may be an ERC-20, an ERC-721 or an ERC-1155.
///
/// # Errors
/// 404 if there is none, whatever else has the name.
pub(super) fn tokens(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    text: &str,
) -> Result<Vec<Token>, HttpError> {
    let mut tokens = named_tokens(indexer, snapshot, text)?;
    let keys: Vec<TokenKey> = tokens.iter().cloned().map(TokenKey).collect();
    let lens = store::list::lens::<TokenMovements>(snapshot, &keys).map_err(HttpError::internal)?;
    let mut lens = lens.into_iter();
    tokens.retain(|_| lens.next().is_some_and(|len| len > 0));
    if tokens.is_empty() {
        return Err(HttpError::not_found(format!(
            "[NOT_FOUND] token not found: {} (no movement of it is indexed)",
            params::shown(text)
        )));
    }
    Ok(tokens)
}

/// The tokens with balances that have this name or address, and of which anything is indexed.
///
/// # Errors
/// 404 if there is none.
pub(super) fn held_tokens(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    text: &str,
) -> Result<Vec<Token>, HttpError> {
    let mut known = Vec::new();
    for token in named_tokens(indexer, snapshot, text)? {
        if is_known(snapshot, &token).map_err(HttpError::internal)? {
            known.push(token);
        }
    }
    let is_nft = !known.is_empty();
    known.retain(ledger::has_balances);
    if known.is_empty() {
        let reason =
            if is_nft { "NFTs have no balances" } else { "no movement and no balance of it is indexed" };
        return Err(HttpError::not_found(format!(
            "[NOT_FOUND] token not found: {} ({reason})",
            params::shown(text)
        )));
    }
    Ok(known)
}

fn is_known(snapshot: &dyn Snapshot, token: &Token) -> Result<bool, store::Error> {
    if let Token::Erc20(contract) = token
        && store::table::read::<Erc20s>(snapshot, contract)?.is_some()
    {
        return Ok(true);
    }
    let key = TokenKey(token.clone());
    let has_moved = store::list::len::<TokenMovements>(snapshot, &key)? > 0;
    Ok(has_moved || store::table::read::<TokenStates>(snapshot, &key)?.is_some())
}

/// The tokens that the text may name, whether they have moved or not.
pub(super) fn named_tokens(
    indexer: &Indexer,
    snapshot: &dyn Snapshot,
    text: &str,
) -> Result<Vec<Token>, HttpError> {
    names::tokens(&indexer.identity, snapshot, text).map_err(HttpError::internal)
}
