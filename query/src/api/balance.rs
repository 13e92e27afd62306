//! Balances at a height, and their history.

use std::collections::BTreeSet;
use std::ops::Range;

use chain::movement::Token;
use chain::{Account, Timestamp};
use schema::balances;
use schema::keys::AccountKey;
use schema::known_balance::Known;
use schema::ledger::{self, Change, History, Holder, LEDGER};
use schema::movement::TokenKey;
use schema::rich::{self, Address};
use serde_json::{Map, Value};
use store::{Error, Key as _};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::ledger::range::height;
use super::ledger::{FROM_HEIGHT, TO_HEIGHT, TOKEN, holder, named_tokens};
use super::{ListRequest, Tag, block};
use crate::array::Array;
use crate::array::set::InMemory;
use crate::cursor::{Row, Space, Start};
use crate::indexer::{Indexer, View};
use crate::page_writer::PageWriter;
use crate::params;
use crate::transfer_record::moved_token;
use crate::v1::{Balance, BalanceChange, ListBalanceHistoryResponse, ListBalancesResponse};

const TAG: Tag = Tag("Ledger");

/// Tokens of an account that a request may list.
const MAX_TOKENS: usize = 5_000;

/// Bytes of the rows that a balance is computed from, for the fair share of a client.
pub(super) const BALANCE_BYTES: u64 = 512;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListBalancesResponse>(
        "/indexer/ledger/v1/balances/by_account/{account}",
        "Balances of an account after a block.",
        &[
            Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
            Param::query("height", Type::Between(0, i64::MAX), "The block; 0 for the last."),
            Param::query("token", Type::String, TOKEN),
            Param::query_or("include_zero", Type::Boolean, "false", "Balances of 0 too."),
            Param::Group(&params::pages(Space::Balances)),
        ],
        by_account,
    ),
    TAG.list::<ListBalanceHistoryResponse>(
        "/indexer/ledger/v1/balances/history/{account}/{token}",
        "A balance after each block that changed it.",
        &[
            Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
            Param::path("token", TOKEN),
            FROM_HEIGHT,
            TO_HEIGHT,
            Param::Group(&params::pages(Space::History)),
        ],
        history,
    ),
];

/// A token in the order of its key.
impl Row for TokenKey {
    /// No deployed server has such a list.
    fn deployed(_: Space, _: &Map<String, Value>) -> Option<Start<Self>> {
        None
    }
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let account = holder(indexer, params::account(call, indexer)?);
    let wanted = height(call, "height")?;
    let request = ListRequest::<TokenKey>::new(indexer, call, Space::Balances)?;
    let (height, time) = after_block(&request.view, wanted)?;
    let mut of: Vec<TokenKey> = match call.first("token") {
        Some(text) => named_tokens(indexer, request.snapshot(), text)?.into_iter().map(TokenKey).collect(),
        None => held(indexer, &request.view, account)?,
    };
    of.retain(|TokenKey(token)| ledger::has_balances(token));
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
            let token = moved_token(&indexer.identity, request.snapshot(), &key.0)?;
            let record = Balance {
                denom: token.denom,
                r#type: token.r#type,
                address: token.address,
                amount: held.amount.clone().unwrap_or_default(),
                known: held.amount.is_some(),
                exact: held.is_exact,
                last_height: held.last_height,
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

/// The block `wanted`, or the last one, with its time. An error if it is not indexed, or movements are not.
pub(super) fn after_block(view: &View<'_>, wanted: Option<u64>) -> Result<(u64, String), HttpError> {
    view.require(&LEDGER)?;
    let last = view.blocks()?.height;
    let height = wanted.unwrap_or(last);
    if height > last {
        return Err(HttpError::bad_request(format!("height {height} is above the indexed height {last}")));
    }
    let block = block::at(view, height)?
        .ok_or_else(|| HttpError::not_found(format!("[NOT_FOUND] block not found: height {height}")))?;
    Ok((height, Timestamp::from_unix_nanos(block.time).nanos()))
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

/// Blocks that have changed a balance.
struct Changes<'a> {
    history: &'a History<'a>,
    part: Range<u64>,
}

impl Array for Changes<'_> {
    type Row = u64;

    fn len(&self) -> u64 {
        self.part.end - self.part.start
    }

    fn position(&self, height: &u64) -> Result<u64, Error> {
        Ok(self.history.position(*height)?.clamp(self.part.start, self.part.end) - self.part.start)
    }

    fn slice(&self, range: Range<u64>) -> Result<Vec<u64>, Error> {
        let range = self.part.start + range.start..self.part.start + range.end;
        Ok(self.history.slice(range)?.into_iter().map(|(height, _)| height).collect())
    }
}

fn history(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let account = holder(indexer, params::account(call, indexer)?);
    let (from, to) = (height(call, "from_height")?, height(call, "to_height")?);
    let request = ListRequest::<u64>::new(indexer, call, Space::History)?;
    request.view.require(&LEDGER)?;
    let snapshot = request.snapshot();
    // The first one: that of a contract as an ERC-20.
    let token = named_tokens(indexer, snapshot, call.text("token"))?.into_iter().find(ledger::has_balances);
    let token = token.ok_or_else(|| HttpError::not_found("[NOT_FOUND] the token has no balances"))?;
    let history = History::of(snapshot, &token, Holder(Some(account))).map_err(HttpError::internal)?;
    let known = Known::of(snapshot, &token, account, &history).map_err(HttpError::internal)?;
    let before = |height: Option<u64>, or: u64| {
        height.map_or(Ok(or), |height| history.position(height)).map_err(HttpError::internal)
    };
    let (start, end) = (before(from, 0)?, before(to.map(|to| to.saturating_add(1)), history.len())?);
    let changes = Changes { history: &history, part: start..end.max(start) };
    let write = |out: &mut PageWriter, page: &[u64]| {
        for height in page {
            let at = history.position(*height).map_err(HttpError::internal)?;
            let rows = history.slice(at.saturating_sub(1)..at + 1).map_err(HttpError::internal)?;
            let after = rows.last().map_or_else(Change::default, |(_, change)| *change);
            let before = if at > 0 { rows[0].1 } else { Change::default() };
            let time = block::at(&request.view, *height)?.map_or(0, |block| block.time);
            let amount = known.and_then(|known| known.after(after)).map(|amount| amount.to_string());
            let record = BalanceChange {
                height: *height,
                timestamp: Timestamp::from_unix_nanos(time).nanos(),
                exact: amount.is_some() && known.is_some_and(|known| known.is_exact()),
                known: amount.is_some(),
                amount: amount.unwrap_or_default(),
                change: Change(before.taken_from(after.0)).to_string(),
            };
            if out.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                break;
            }
        }
        Ok(())
    };
    let first = LEDGER.state(snapshot).map_err(HttpError::internal)?.map_or(0, |state| state.from);
    let further = format!(r#","known_from":"{first}""#);
    request.respond_with("balances", &changes, None, write, further.as_bytes())
}
