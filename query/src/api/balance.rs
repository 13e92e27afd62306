//! Balances at a height.

use std::collections::BTreeMap;

use chain::Account;
use chain::movement::Token;
use schema::balances;
use schema::keys::AccountKey;
use schema::known_balance::Known;
use schema::ledger::{self, History, Holder};
use schema::movement::TokenKey;
use schema::rich::{self, Address};
use schema::tokens;
use serde_json::{Map, Value};
use store::{Key as _, Order};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::ListRequest;
use super::ledger::{TAG, TOKEN, held_tokens, holder, range};
use crate::array::set::InMemory;
use crate::cursor::{Cursor, Row, Space, Start};
use crate::indexer::{Indexer, View};
use crate::page::{Direction, PageRequest, page};
use crate::page_writer::PageWriter;
use crate::params;
use crate::token_types;
use crate::transfer_record::{is_derived, moved_token};
use crate::v1::{Balance, ListBalancesResponse};

/// Tokens of an account that a request looks at; the rest of them is behind the cursor.
const MAX_TOKENS: usize = 5_000;

/// Bytes of the rows that a balance is computed from, for the fair share of a client.
pub(super) const BALANCE_BYTES: u64 = 512;

const BY_ACCOUNT: &[Param] = &[
    Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
    Param::query("height", Type::Between(0, i64::MAX), "The block; 0 for the last."),
    Param::query("token", Type::String, TOKEN),
    Param::query(
        "type",
        Type::TextsOf(token_types::PATTERN),
        "Any of erc20, fa, bank and cw20; all if absent. NFTs have no balances.",
    ),
    Param::query_or("include_zero", Type::Flag, "false", "Balances of 0 too."),
    Param::Group(&params::checked_pages(Space::Balances, params::MAX_LIMIT)),
];

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[TAG.list::<ListBalancesResponse>(
    "/indexer/ledger/v1/balances/by_account/{account}",
    "Balances of an account after a block.",
    BY_ACCOUNT,
    by_account,
)];

/// A token in the order of its key.
impl Row for TokenKey {
    /// No deployed server has such a list.
    fn deployed(_: Space, _: &Map<String, Value>) -> Option<Start<Self>> {
        None
    }
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    params::check(call, BY_ACCOUNT)?;
    let account = holder(indexer, params::account(call, indexer)?);
    let wanted = range::height(call, "height")?;
    let types = token_types::named(call)?;
    let request = ListRequest::<TokenKey>::new(indexer, call, Space::Balances)?;
    let (height, time) = range::after_block(&request.view, wanted)?;
    let paging = &request.paging.request;
    let Candidates { mut tokens, whole } = match call.first("token") {
        Some(text) => {
            let named = held_tokens(indexer, request.snapshot(), text)?;
            Candidates { tokens: named.into_iter().map(TokenKey).collect(), whole: true }
        }
        None => candidates(indexer, &request.view, account, paging)?,
    };
    let descending = paging.direction == Direction::Descending;
    let last = if descending { tokens.first() } else { tokens.last() }.cloned();
    tokens
        .retain(|key| ledger::has_balances(&key.0) && (types.is_empty() || types.contains(&key.type_byte())));
    tokens.sort_by_cached_key(TokenKey::to_bytes);
    lane::spend(tokens.len() as u64 * BALANCE_BYTES)?;
    if descending {
        tokens.reverse();
    }
    let mut shown = Vec::new();
    for key in tokens {
        // One more than the page says that others follow.
        if !whole && shown.len() as u64 > paging.limit {
            break;
        }
        let held = Held::of(&request.view, &key.0, account, height)?;
        if call.boolean("include_zero", false) || held.amount.as_deref() != Some("0") {
            shown.push((key, held));
        }
    }
    if descending {
        shown.reverse();
    }
    let rows = InMemory(shown.iter().map(|(key, _)| key).collect());
    let write = |out: &mut PageWriter, page: &[TokenKey]| {
        for key in page {
            let place = shown.binary_search_by_key(&key.to_bytes(), |(shown, _)| shown.to_bytes());
            let Some((_, held)) = place.ok().and_then(|place| shown.get(place)) else { continue };
            let reply = tokens::reply(request.snapshot(), &key.0).map_err(HttpError::internal)?;
            let token = moved_token(&indexer.identity, request.snapshot(), &key.0, reply.as_ref())?;
            let record = Balance {
                denom: token.denom,
                r#type: token.r#type,
                address: token.address,
                amount: held.amount.clone().unwrap_or_default(),
                known: held.amount.is_some(),
                exact: held.is_exact,
                last_height: held.last_height,
                symbol: token.symbol,
                decimals: token.decimals,
                derived: is_derived(&key.0, reply.as_ref()),
            };
            if out.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                break;
            }
        }
        Ok(())
    };
    let further = format!(r#","height":"{height}","timestamp":"{time}""#);
    let mut page = page(&rows, paging).map_err(HttpError::internal)?;
    if !whole {
        page.next = page.next.or(last.map(Cursor::After));
        // Nobody has counted them.
        page.total = 0;
    }
    request.respond_page("balances", page, None, write, further.as_bytes())
}

/// Tokens that an account may hold, now or earlier, in the order of their keys.
struct Candidates {
    tokens: Vec<TokenKey>,
    /// False if others may follow.
    whole: bool,
}

/// All tokens of `account`, or, if they are more than a request looks at, those behind the place where the page begins.
fn candidates(
    indexer: &Indexer,
    view: &View<'_>,
    account: Account,
    paging: &PageRequest<TokenKey>,
) -> Result<Candidates, HttpError> {
    let order = match paging.direction {
        Direction::Ascending => Order::Asc,
        Direction::Descending => Order::Desc,
    };
    let all = candidates_after(indexer, view, account, None, order)?;
    match &paging.at {
        Start::Offset(0) => Ok(all),
        _ if all.whole => Ok(all),
        Start::Row(Cursor::After(after)) => candidates_after(indexer, view, account, Some(after), order),
        _ => Err(HttpError::bad_request(format!(
            "the account may have more than {MAX_TOKENS} tokens: follow next_key from the first page, without \
             pagination.offset, or name one by `token`"
        ))),
    }
}

fn candidates_after(
    indexer: &Indexer,
    view: &View<'_>,
    account: Account,
    after: Option<&TokenKey>,
    order: Order,
) -> Result<Candidates, HttpError> {
    let (snapshot, limit) = (view.snapshot(), MAX_TOKENS + 1);
    let moved = ledger::tokens_of(snapshot, AccountKey(account), after, order, limit);
    // Those that have not moved since the first block.
    let before = balances::tokens_before(snapshot, account, after, order, limit);
    let mut listed = Vec::new();
    if let Some(address) = Address::try_from(account.as_bytes()).ok().filter(|_| indexer.is_evm()) {
        view.require_account_tokens()?;
        // ERC-20s are before all other tokens.
        let after = match (after, order) {
            (Some(TokenKey(Token::Erc20(contract))), _) => Some(contract),
            (Some(_), Order::Asc) => Some(&[u8::MAX; 20]),
            (Some(_), Order::Desc) | (None, _) => None,
        };
        listed = rich::tokens_of(snapshot, &address, after, order, limit).map_err(HttpError::internal)?;
    }
    let listed = listed.into_iter().map(|contract| TokenKey(Token::Erc20(contract)));
    let (moved, before) = (moved.map_err(HttpError::internal)?, before.map_err(HttpError::internal)?);
    let found = moved.into_iter().chain(before).chain(listed).map(|token| (token.to_bytes(), token));
    // Of each source there are the first ones, so the first of all are among them.
    let mut tokens: Vec<TokenKey> = found.collect::<BTreeMap<_, _>>().into_values().collect();
    let whole = tokens.len() <= MAX_TOKENS;
    match order {
        Order::Asc => tokens.truncate(MAX_TOKENS),
        Order::Desc => drop(tokens.drain(..tokens.len().saturating_sub(MAX_TOKENS))),
    }
    Ok(Candidates { tokens, whole })
}

/// A balance at a height.
struct Held {
    /// Decimal; `None` if it is not known.
    amount: Option<String>,
    is_exact: bool,
    /// The last block that changed it; 0 if none has.
    last_height: u64,
}

impl Held {
    fn of(view: &View<'_>, token: &Token, account: Account, height: u64) -> Result<Self, HttpError> {
        let history =
            History::of(view.snapshot(), token, Holder(Some(account))).map_err(HttpError::internal)?;
        let last = history.until(height).map_err(HttpError::internal)?;
        let known = Known::of(view.snapshot(), token, account, &history).map_err(HttpError::internal)?;
        let amount = known.and_then(|known| known.at(height, last)).map(|amount| amount.to_string());
        let is_exact = amount.is_some() && known.is_some_and(|known| known.is_exact());
        Ok(Self { amount, is_exact, last_height: last.map_or(0, |(height, _)| height) })
    }
}
