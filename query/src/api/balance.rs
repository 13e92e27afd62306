//! Balances at a height.

use std::collections::BTreeSet;

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
use store::Key as _;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::ListRequest;
use super::ledger::{TAG, TOKEN, held_tokens, holder, range};
use crate::array::set::InMemory;
use crate::cursor::{Row, Space, Start};
use crate::indexer::{Indexer, View};
use crate::page_writer::PageWriter;
use crate::params;
use crate::token_types;
use crate::transfer_record::{is_derived, moved_token};
use crate::v1::{Balance, ListBalancesResponse};

/// Tokens of an account that a request may list.
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
    let mut of: Vec<TokenKey> = match call.first("token") {
        Some(text) => held_tokens(indexer, request.snapshot(), text)?.into_iter().map(TokenKey).collect(),
        None => held(indexer, &request.view, account)?,
    };
    of.retain(|key| ledger::has_balances(&key.0) && (types.is_empty() || types.contains(&key.type_byte())));
    of.sort_by_cached_key(TokenKey::to_bytes);
    lane::spend(of.len() as u64 * BALANCE_BYTES)?;
    let mut shown = Vec::with_capacity(of.len());
    for key in of {
        let held = Held::of(&request.view, &key.0, account, height)?;
        if call.boolean("include_zero", false) || held.amount.as_deref() != Some("0") {
            shown.push((key, held));
        }
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
    request.respond_with("balances", &rows, None, write, further.as_bytes())
}

/// The tokens that an account may hold, now or earlier.
fn held(indexer: &Indexer, view: &View<'_>, account: Account) -> Result<Vec<TokenKey>, HttpError> {
    let snapshot = view.snapshot();
    let moved =
        ledger::tokens_of(snapshot, AccountKey(account), MAX_TOKENS + 1).map_err(HttpError::internal)?;
    // Those that have not moved since the first block.
    let before = balances::tokens_before(snapshot, account, MAX_TOKENS + 1).map_err(HttpError::internal)?;
    let mut found: BTreeSet<Token> = moved.into_iter().chain(before).map(|TokenKey(token)| token).collect();
    if let Some(address) = Address::try_from(account.as_bytes()).ok().filter(|_| indexer.is_evm()) {
        view.require_account_tokens()?;
        let tokens = rich::tokens_of(snapshot, &address, None, MAX_TOKENS + 1);
        found.extend(tokens.map_err(HttpError::internal)?.into_iter().map(Token::Erc20));
    }
    if found.len() > MAX_TOKENS {
        return Err(HttpError::bad_request(format!(
            "the account may have more than {MAX_TOKENS} tokens: name one by `token`"
        )));
    }
    Ok(found.into_iter().map(TokenKey).collect())
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
        let (last_height, change) = history.until(height).map_err(HttpError::internal)?.unwrap_or_default();
        let known = Known::of(view.snapshot(), token, account, &history).map_err(HttpError::internal)?;
        let amount = known.and_then(|known| known.after(change)).map(|amount| amount.to_string());
        let is_exact = amount.is_some() && known.is_some_and(|known| known.is_exact());
        Ok(Self { amount, is_exact, last_height })
    }
}
