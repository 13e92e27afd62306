//! Movements of an account as CSV.
//!
//! # Invariants
//!
//! * The fee of a transaction is in its first row of the whole list only, so a column of fees can be added up.

use std::collections::BTreeMap;

use chain::movement::{Kind, Movement, Token};
use chain::{Account, U256};
use schema::ledger::row_of;
use schema::movement::{MovementRow, Place, PlacedMovement};
use web::call::Call;
use web::http_error::HttpError;
use web::reply::Reply;

use super::request::Request;
use crate::csv::{self, Lines, scaled};
use crate::cursor::Space;
use crate::page::{Direction, Page};
use crate::transfer_record::Records;
use crate::v1::{MovedToken, Transfer};

/// What the parameter `format` does.
pub(super) const FORMAT: &str = "With `csv`, text/csv in place of JSON: up to 10,000 rows (also by default) after a line with the \
     names of the columns; a header `Link` with rel=\"next\" leads to the next ones. The fee is what the account has paid for the \
     transaction less what was given back, in the first row of the transaction. A cell that a spreadsheet could take for a \
     formula begins with an apostrophe.";

const HEADER: [&str; 14] = [
    "timestamp",
    "height",
    "txhash",
    "direction",
    "kind",
    "amount",
    "decimals",
    "amount_decimal",
    "symbol",
    "denom",
    "counterparty",
    "fee_amount",
    "fee_denom",
    "msg_index",
];

/// The response with a page of the list of `account`, of the movements that `selects` selects.
pub(super) fn reply(
    call: &Call<'_>,
    request: &Request<'_>,
    account: Account,
    page: Page<u64>,
    selects: &dyn Fn(&Movement) -> bool,
) -> Result<Reply, HttpError> {
    let paging = &request.list.paging.request;
    let mut fees = Fees {
        records: request.records(),
        account,
        selects,
        descending: paging.direction == Direction::Descending,
        rows: BTreeMap::new(),
        last: None,
    };
    let mut lines = Lines::new(&HEADER, request.list.indexer.page_bytes);
    request.records().each(&page.rows, |number, placed, record| {
        let fee = fees.of(number, placed)?;
        lines.push(&cells(account, &placed.movement, record, fee))
    })?;
    let path = format!("/indexer/ledger/v1/transfers/by_account/{}", csv::encoded(call.text("account")));
    lines.reply(call, &path, (Space::Transfers, page))
}

/// The amount and the denom of a fee.
type Fee = Option<(String, String)>;

fn cells(account: Account, movement: &Movement, record: &Transfer, fee: Fee) -> [String; 14] {
    let Movement { from, to, .. } = movement;
    let (direction, counterparty) = match (*from == Some(account), *to == Some(account)) {
        (true, true) => ("self", &record.to),
        (true, false) => ("out", &record.to),
        _ => ("in", &record.from),
    };
    let token = record.token.as_ref();
    // An amount has 78 digits; a contract may say any number.
    let decimals = token.and_then(|token| token.decimals).filter(|decimals| *decimals <= 255);
    let symbol = token.and_then(|token| token.symbol.clone()).unwrap_or_default();
    let decimal = decimals.map_or_else(String::new, |decimals| scaled(movement.amount, decimals));
    let (fee_amount, fee_denom) = fee.unwrap_or_default();
    [
        record.timestamp.clone(),
        record.height.to_string(),
        record.txhash.clone(),
        direction.to_owned(),
        record.kind.clone(),
        record.amount.clone(),
        decimals.map_or_else(String::new, |decimals| decimals.to_string()),
        decimal,
        symbol,
        token.map_or_else(String::new, |token| name(token, &record.token_id)),
        counterparty.clone(),
        fee_amount,
        fee_denom,
        record.msg_index.map_or_else(String::new, |index| index.to_string()),
    ]
}

/// The denom of a token, or the address of its contract, with the id of an NFT behind it.
fn name(token: &MovedToken, id: &str) -> String {
    let name = if token.denom.is_empty() { &token.address } else { &token.denom };
    if id.is_empty() { name.clone() } else { format!("{name}/{id}") }
}

/// The fees of the transactions of a page.
struct Fees<'a> {
    records: Records<'a>,
    account: Account,
    selects: &'a dyn Fn(&Movement) -> bool,
    descending: bool,
    /// Rows of movements that were read.
    rows: BTreeMap<u64, MovementRow>,
    /// The last transaction: its rows follow each other.
    last: Option<(u64, Place)>,
}

impl Fees<'_> {
    /// The fee to be written in the row of the movement `number`.
    fn of(&mut self, number: u64, placed: &PlacedMovement) -> Result<Fee, HttpError> {
        let tx = (placed.height, placed.place);
        if !matches!(placed.place, Place::Tx(_)) || self.last.replace(tx) == Some(tx) {
            return Ok(None);
        }
        let before = self.beside(number, tx, |number| number.checked_sub(1))?;
        let after = self.beside(number, tx, |number| number.checked_add(1))?;
        let earlier = if self.descending { &after } else { &before };
        if earlier.iter().any(|movement| self.is_listed(movement)) {
            return Ok(None);
        }
        self.net(before.iter().chain(&after).chain([&placed.movement]))
    }

    fn is_listed(&self, movement: &Movement) -> bool {
        [movement.from, movement.to].contains(&Some(self.account)) && (self.selects)(movement)
    }

    /// The movements of the transaction `tx` on one side of `number`.
    fn beside(
        &mut self,
        number: u64,
        tx: (u64, Place),
        step: impl Fn(u64) -> Option<u64>,
    ) -> Result<Vec<Movement>, HttpError> {
        let (mut found, mut at) = (Vec::new(), step(number));
        while let Some(number) = at.filter(|number| *number > 0) {
            let Some(placed) = self.read(number)?.filter(|placed| (placed.height, placed.place) == tx) else {
                break;
            };
            found.push(placed.movement);
            at = step(number);
        }
        Ok(found)
    }

    fn read(&mut self, number: u64) -> Result<Option<PlacedMovement>, HttpError> {
        /// Rows that are kept: movements of one transaction are side by side.
        const KEPT: usize = 64;
        let first = row_of(number);
        if !self.rows.contains_key(&first) {
            if self.rows.len() == KEPT {
                self.rows.clear();
            }
            let Some(row) = self.records.row(first)? else { return Ok(None) };
            self.rows.insert(first, row);
        }
        let at = usize::try_from(number - first).unwrap_or(usize::MAX);
        Ok(self.rows.get(&first).and_then(|row| row.0.get(at)).cloned())
    }

    /// What the account has paid in fees, less what it was given back, by token.
    fn net<'m>(&self, movements: impl Iterator<Item = &'m Movement>) -> Result<Fee, HttpError> {
        let mut sums: BTreeMap<Token, (U256, U256)> = BTreeMap::new();
        for movement in movements {
            let (paid, refunded) = match movement.kind {
                Kind::Fee if movement.from == Some(self.account) => (movement.amount, U256::ZERO),
                Kind::FeeRefund if movement.to == Some(self.account) => (U256::ZERO, movement.amount),
                _ => continue,
            };
            let sum = sums.entry(movement.token.clone()).or_default();
            *sum = (sum.0.saturating_add(paid), sum.1.saturating_add(refunded));
        }
        let (mut amounts, mut denoms) = (Vec::new(), Vec::new());
        for (token, (paid, refunded)) in sums {
            amounts.push(paid.saturating_sub(refunded).to_string());
            denoms.push(name(&self.records.token(&token)?, ""));
        }
        Ok((!amounts.is_empty()).then(|| (amounts.join(" "), denoms.join(" "))))
    }
}
