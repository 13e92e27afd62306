//! Holders of a token, now or at a height.

use std::collections::BTreeMap;

use chain::movement::Token;
use chain::{Account, U256};
use schema::balances::{BALANCES, TokenHolders, TokenStates};
use schema::keys::AccountKey;
use schema::known_balance::{self, Known};
use schema::ledger::{History, Holder};
use schema::meta::{self, RichLane};
use schema::movement::TokenKey;
use schema::rich::{Address, Erc20s, Holders};
use serde_json::{Map, Value};
use store::{Message, Snapshot};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::ListRequest;
use super::balance::BALANCE_BYTES;
use super::ledger::range::{after_block, height};
use super::ledger::{TAG, TOKEN, held_tokens};
use crate::array::Array;
use crate::array::map_rows::MapRows;
use crate::array::set::{InMemory, Set};
use crate::cursor::{Row, Space, Start};
use crate::indexer::Indexer;
use crate::names::address;
use crate::page_writer::PageWriter;
use crate::params;
use crate::v1::{ListTokenHoldersResponse, TokenHolder};

/// Accounts whose balances a request computes.
const MAX_HOLDERS: usize = 10_000;

const PARAMS: &[Param] = &[
    Param::path("token", TOKEN),
    Param::query("height", Type::Between(0, i64::MAX), "The block; 0 for the last."),
    Param::query_or(
        "order_by",
        Type::OneOf(&["amount", "account"]),
        "amount",
        "By amount, or by account if at most 10,000 have ever held it.",
    ),
    Param::Group(&params::checked_pages(Space::TokenHolders, params::MAX_LIMIT)),
];

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[TAG.list::<ListTokenHoldersResponse>(
    "/indexer/ledger/v1/holders/{token}",
    "Holders of a token: now, or after a block if at most 10,000 accounts have ever held it.",
    PARAMS,
    holders,
)];

/// A holder by amount, then by account.
pub(super) type HolderRow = ([u8; 32], AccountKey);

impl Row for HolderRow {
    /// No deployed server has such a list.
    fn deployed(_: Space, _: &Map<String, Value>) -> Option<Start<Self>> {
        None
    }
}

fn holders(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    params::check(call, PARAMS)?;
    let wanted = height(call, "height")?;
    let by_account = call.first("order_by") == Some("account");
    let space = if by_account { Space::HoldersByAccount } else { Space::TokenHolders };
    let request = ListRequest::<HolderRow>::new(indexer, call, space)?;
    // Without a height, those of the lane that keeps them: it may be a block behind.
    let at_lane = request.view.rich()?.height;
    let is_current = !by_account && at_lane > 0 && wanted.is_none_or(|wanted| wanted == at_lane);
    let (height, time) = after_block(&request.view, wanted.or(is_current.then_some(at_lane)))?;
    let snapshot = request.snapshot();
    let text = call.text("token");
    // There is at least one.
    let token = held_tokens(indexer, snapshot, text)?.swap_remove(0);
    if !matches!(token, Token::Erc20(_)) {
        request.view.require(&BALANCES)?;
    }
    let is_incomplete = is_incomplete(snapshot, &token)?.ok_or_else(|| {
        let text = params::shown(text);
        HttpError::not_found(format!(
            "[NOT_FOUND] the holders of {text} are not known: movements do not explain its supply"
        ))
    })?;
    let further = |is_incomplete: bool| {
        let incomplete = if is_incomplete { r#","incomplete":true"# } else { "" };
        format!(r#","height":"{height}","timestamp":"{time}"{incomplete}"#)
    };
    if is_current {
        let array = current(snapshot, &token)?;
        let write = |out: &mut PageWriter, page: &[HolderRow]| {
            write(
                indexer,
                out,
                page.iter().map(|(amount, account)| (account.0, U256::from_be_bytes(*amount))),
            )
        };
        return request.respond_with("holders", &*array, None, write, further(is_incomplete).as_bytes());
    }
    let (held, some_unknown) = held_at(snapshot, &token, height)?;
    let key = |(account, amount): (&Account, &U256)| {
        let amount = if by_account { [0; 32] } else { amount.to_be_bytes() };
        (amount, AccountKey(*account))
    };
    let mut rows: Vec<HolderRow> = held.iter().map(key).collect();
    rows.sort_unstable_by_key(store::Key::to_bytes);
    let write = |out: &mut PageWriter, page: &[HolderRow]| {
        let of =
            |(_, AccountKey(account)): &HolderRow| (*account, held.get(account).copied().unwrap_or_default());
        write(indexer, out, page.iter().map(of))
    };
    let array = InMemory(rows.iter().collect());
    let further = further(is_incomplete || some_unknown);
    request.respond_with("holders", &array, None, write, further.as_bytes())
}

/// Appends the records of holders.
pub(super) fn write(
    indexer: &Indexer,
    out: &mut PageWriter,
    page: impl Iterator<Item = (Account, U256)>,
) -> Result<(), HttpError> {
    for (account, amount) in page {
        let record =
            TokenHolder { account: address(&indexer.identity, &account), amount: amount.to_string() };
        if out.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// True if holders of `token` may be missing; `None` if it is not known.
pub(super) fn is_incomplete(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<bool>, HttpError> {
    Ok(match token {
        Token::Erc20(contract) => {
            let state = store::table::read::<Erc20s>(snapshot, contract).map_err(HttpError::internal)?;
            state.map(|Message(state)| !state.complete || state.silent)
        }
        token => {
            let key = TokenKey(token.clone());
            let state = store::table::read::<TokenStates>(snapshot, &key).map_err(HttpError::internal)?;
            state.map(|Message(state)| state.incomplete || state.drifting)
        }
    })
}

/// The holders at the height of the lane that keeps them.
pub(super) fn current<'a>(
    snapshot: &'a dyn Snapshot,
    token: &Token,
) -> Result<Box<dyn Array<Row = HolderRow> + 'a>, HttpError> {
    let Token::Erc20(contract) = token else {
        let set = Set::<TokenHolders>::all(snapshot, TokenKey(token.clone()));
        return Ok(Box::new(set.map_err(HttpError::internal)?));
    };
    let set = Set::<Holders>::all(snapshot, *contract).map_err(HttpError::internal)?;
    // A longer account is behind all shorter ones.
    let lower_bound = |(amount, AccountKey(account)): &HolderRow| {
        (*amount, Address::try_from(account.as_bytes()).unwrap_or([u8::MAX; 20]))
    };
    let row = |(amount, account): ([u8; 32], Address)| (amount, AccountKey(account.into()));
    Ok(Box::new(MapRows::new(set, lower_bound, move |rows| Ok(rows.into_iter().map(row).collect()))))
}

/// How many accounts hold some of `token` at the height of the lane that keeps them; `None` if none does.
pub(super) fn number(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<u64>, HttpError> {
    let lane: RichLane = meta::read(snapshot).map_err(HttpError::internal)?.unwrap_or_default();
    if lane.height == 0 || is_incomplete(snapshot, token)?.is_none() {
        return Ok(None);
    }
    Ok(Some(current(snapshot, token)?.len()))
}

/// How many accounts held some of `token` after the block `height`; `None` if too many ever have, or none is known.
pub(super) fn number_at(
    snapshot: &dyn Snapshot,
    token: &Token,
    height: u64,
) -> Result<Option<u64>, HttpError> {
    let is_known = number(snapshot, token)?.is_some();
    if !is_known || ever_held(snapshot, token)?.is_none() {
        return Ok(None);
    }
    Ok(Some(held_at(snapshot, token, height)?.0.len() as u64))
}

/// The balances after the block `height` that are not 0, and whether some are not known, or not exact.
fn held_at(
    snapshot: &dyn Snapshot,
    token: &Token,
    height: u64,
) -> Result<(BTreeMap<Account, U256>, bool), HttpError> {
    let accounts = ever_held(snapshot, token)?.ok_or_else(|| {
        HttpError::bad_request(format!(
            "more than {MAX_HOLDERS} accounts have held the token: only its holders now, by amount, are listed; leave out \
             `height` and `order_by`, or let the operator run `cairn db export --form holders`"
        ))
    })?;
    lane::spend(accounts.len() as u64 * BALANCE_BYTES)?;
    let (mut held, mut some_unknown) = (BTreeMap::new(), false);
    for account in accounts {
        let history = History::of(snapshot, token, Holder(Some(account))).map_err(HttpError::internal)?;
        let last = history.until(height).map_err(HttpError::internal)?;
        let known = Known::of(snapshot, token, account, &history).map_err(HttpError::internal)?;
        some_unknown |= known.is_none_or(|known| !known.is_exact());
        match known.and_then(|known| known.at(height, last)) {
            Some(amount) if amount.is_zero() => {}
            Some(amount) => {
                held.insert(account, amount);
            }
            None => {}
        }
    }
    Ok((held, some_unknown))
}

/// Accounts that may have held `token` at some height; `None` if they are more than [`MAX_HOLDERS`].
fn ever_held(snapshot: &dyn Snapshot, token: &Token) -> Result<Option<Vec<Account>>, HttpError> {
    let mut found = Vec::new();
    for account in known_balance::ever_held(snapshot, token) {
        if found.len() == MAX_HOLDERS {
            return Ok(None);
        }
        found.push(account.map_err(HttpError::internal)?);
    }
    Ok(Some(found))
}
