//! The history of a balance.

use std::ops::Range;

use chain::movement::Token;
use chain::{Account, Timestamp, U256};
use schema::known_balance::Known;
use schema::ledger::{Change, History, Holder, LEDGER};
use schema::tokens;
use store::Error;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::openapi::schema::{ObjectOrText, of};
use web::reply::Reply;

use super::balance::BALANCE_BYTES;
use super::ledger::{FROM_HEIGHT, FROM_TIME, TAG, TO_HEIGHT, TO_TIME, TOKEN, held_tokens, holder, range};
use super::{ListRequest, block};
use crate::array::Array;
use crate::csv::{self, Lines, scaled};
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::page::page;
use crate::page_writer::PageWriter;
use crate::params::{self, Paging};
use crate::transfer_record::moved_token;
use crate::v1::{BalanceChange, ListBalanceHistoryResponse, MovedToken};

const PARAMS: &[Param] = &[
    Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
    Param::path("token", TOKEN),
    FROM_HEIGHT,
    TO_HEIGHT,
    FROM_TIME,
    TO_TIME,
    Param::query_or(
        "format",
        Type::OneOf(&["json", "csv"]),
        "json",
        "With `csv`, text/csv in place of JSON: up to 10,000 rows (also by default) after a line with the names of the columns; a \
         header `Link` with rel=\"next\" leads to the next ones. An amount that is not known is an empty cell.",
    ),
    Param::Group(&params::checked_pages(Space::History, csv::MAX_ROWS)),
];

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[Endpoint {
    response: &ObjectOrText(of::<ListBalanceHistoryResponse>(), csv::TEXT),
    ..TAG.list::<ListBalanceHistoryResponse>(
        "/indexer/ledger/v1/balances/history/{account}/{token}",
        "A balance after each block that changed it; as CSV if that is wanted.",
        PARAMS,
        history,
    )
}];

/// Changes that are read at once.
const AT_ONCE: usize = 128;

/// The names of the columns. A change has a column for each sign: a cell that begins with a sign would be a formula.
const COLUMNS: [&str; 10] = [
    "timestamp",
    "height",
    "amount",
    "increase",
    "decrease",
    "exact",
    "decimals",
    "amount_decimal",
    "symbol",
    "denom",
];

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
    params::check(call, PARAMS)?;
    let is_csv = call.first("format") == Some("csv");
    let default = if is_csv { csv::MAX_ROWS } else { params::DEFAULT_LIMIT };
    let account = holder(indexer, params::account(call, indexer)?);
    let paging = Paging::<u64>::read_within(call, Space::History, (default, csv::MAX_ROWS))?;
    let request = ListRequest::with(indexer, paging)?;
    request.view.require(&LEDGER)?;
    let snapshot = request.snapshot();
    // The first one: that of a contract as an ERC-20. There is at least one.
    let token = held_tokens(indexer, snapshot, call.text("token"))?.swap_remove(0);
    let of = Of::new(&request.view, &token, account)?;
    let changes = match range::heights(call, indexer, &request.view)? {
        None => Changes { history: &of.history, part: 0..of.history.len() },
        Some((first, end)) => {
            let before = |height| of.history.position(height).map_err(HttpError::internal);
            let (start, end) = (before(first)?, before(end)?);
            Changes { history: &of.history, part: start..end.max(start) }
        }
    };
    if is_csv {
        return as_csv(call, &request, &of, (&token, &changes));
    }
    let write = |out: &mut PageWriter, rows: &[u64]| {
        for rows in rows.chunks(AT_ONCE) {
            for record in of.records(rows)? {
                if out.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    };
    let first = LEDGER.state(snapshot).map_err(HttpError::internal)?.map_or(0, |state| state.from);
    let further = format!(r#","known_from":"{first}""#);
    request.respond_with("balances", &changes, None, write, further.as_bytes())
}

fn as_csv(
    call: &Call<'_>,
    request: &ListRequest<'_, u64>,
    of: &Of<'_>,
    (token, changes): (&Token, &Changes<'_>),
) -> Result<Reply, HttpError> {
    let reply = tokens::reply(request.snapshot(), token).map_err(HttpError::internal)?;
    let token = moved_token(&request.indexer.identity, request.snapshot(), token, reply.as_ref())?;
    let page = page(changes, &request.paging.request).map_err(HttpError::internal)?;
    let mut lines = Lines::new(&COLUMNS, request.indexer.page_bytes);
    'all: for rows in page.rows.chunks(AT_ONCE) {
        for record in of.records(rows)? {
            if lines.push(&cells(&record, &token))?.is_break() {
                break 'all;
            }
        }
    }
    let [account, token] = ["account", "token"].map(|name| csv::encoded(call.text(name)));
    let path = format!("/indexer/ledger/v1/balances/history/{account}/{token}");
    lines.reply(call, &path, (Space::History, page))
}

fn cells(record: &BalanceChange, token: &MovedToken) -> [String; 10] {
    // An amount has 78 digits; a contract may say any number.
    let decimals = token.decimals.filter(|decimals| *decimals <= 255);
    let decimal = decimals.and_then(|decimals| {
        let amount = U256::from_str_radix(&record.amount, 10).ok().filter(|_| record.known)?;
        Some(scaled(amount, decimals))
    });
    let (increase, decrease) = match record.change.strip_prefix('-') {
        Some(decrease) => (String::new(), decrease.to_owned()),
        None => (record.change.clone(), String::new()),
    };
    [
        record.timestamp.clone(),
        record.height.to_string(),
        record.amount.clone(),
        increase,
        decrease,
        record.exact.to_string(),
        decimals.map_or_else(String::new, |decimals| decimals.to_string()),
        decimal.unwrap_or_default(),
        token.symbol.clone().unwrap_or_default(),
        if token.denom.is_empty() { token.address.clone() } else { token.denom.clone() },
    ]
}

/// A balance that has a history.
struct Of<'a> {
    view: &'a View<'a>,
    history: History<'a>,
    known: Option<Known>,
}

impl<'a> Of<'a> {
    fn new(view: &'a View<'a>, token: &Token, account: Account) -> Result<Self, HttpError> {
        let history =
            History::of(view.snapshot(), token, Holder(Some(account))).map_err(HttpError::internal)?;
        let known = Known::of(view.snapshot(), token, account, &history).map_err(HttpError::internal)?;
        Ok(Self { view, history, known })
    }

    /// The records of some blocks that follow each other in the history, in either order.
    fn records(&self, rows: &[u64]) -> Result<Vec<BalanceChange>, HttpError> {
        let Some(first) = rows.iter().min() else { return Ok(Vec::new()) };
        lane::spend(rows.len() as u64 * BALANCE_BYTES)?;
        let start = self.history.position(*first).map_err(HttpError::internal)?;
        let before = start.saturating_sub(1);
        let end = start + rows.len() as u64;
        let changes = self.history.slice(before..end).map_err(HttpError::internal)?;
        let mut last = if start > 0 { changes[0].1 } else { Change::default() };
        let skipped = usize::from(start > 0);
        let mut records = Vec::with_capacity(rows.len());
        for (height, after) in changes.into_iter().skip(skipped) {
            let time = block::at(self.view, height)?.map_or(0, |block| block.time);
            let amount = self.known.and_then(|known| known.at(height, Some((height, after))));
            let amount = amount.map(|amount| amount.to_string());
            records.push(BalanceChange {
                height,
                timestamp: Timestamp::from_unix_nanos(time).nanos(),
                exact: amount.is_some() && self.known.is_some_and(|known| known.is_exact()),
                known: amount.is_some(),
                amount: amount.unwrap_or_default(),
                change: Change(last.taken_from(after.0)).to_string(),
            });
            last = after;
        }
        if rows.first() != Some(first) {
            records.reverse();
        }
        Ok(records)
    }
}
