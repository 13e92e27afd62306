//! Movements of an account as CSV (RFC 4180), for spreadsheets.
//!
//! # Invariants
//!
//! * No cell is a formula: one that begins with a character by which spreadsheets know formulas gets an apostrophe before it.
//! * The fee of a transaction is in its first row of the whole list only, so a column of fees can be added up.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use chain::movement::{Kind, Movement, Token};
use chain::{Account, U256};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use schema::ledger::row_of;
use schema::movement::{MovementRow, Place, PlacedMovement};
use web::call::Call;
use web::http_error::HttpError;
use web::limits::lane;
use web::openapi::schema::Text;
use web::reply::Reply;

use super::request::Request;
use crate::cursor::{self, Space};
use crate::page::{Direction, Page};
use crate::transfer_record::Records;
use crate::v1::{MovedToken, Transfer};

/// Rows of a page, at most and by default.
pub(super) const MAX_ROWS: u64 = 10_000;

/// What the parameter `format` does.
pub(super) const FORMAT: &str = "With `csv`, text/csv in place of JSON: up to 10,000 rows (also by default) after a line with the \
     names of the columns; a header `Link` with rel=\"next\" leads to the next ones. The fee is what the account has paid for the \
     transaction less what was given back, in the first row of the transaction. A cell that a spreadsheet could take for a \
     formula begins with an apostrophe.";

/// The body.
pub(super) const TEXT: Text = Text {
    content_type: "text/csv",
    doc: "Lines of cells (RFC 4180), the names of the columns in the first one.",
};

const CONTENT_TYPE: &str = "text/csv; charset=utf-8";

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
    mut page: Page<u64>,
    selects: &dyn Fn(&Movement) -> bool,
) -> Result<Reply, HttpError> {
    let paging = &request.list.paging.request;
    let mut out = Vec::new();
    write_row(&mut out, &HEADER.map(str::to_owned));
    let mut fees = Fees {
        records: request.records(),
        account,
        selects,
        descending: paging.direction == Direction::Descending,
        rows: BTreeMap::new(),
        last: None,
    };
    let (mut written, max) = (0, request.list.indexer.page_bytes);
    request.records().each(&page.rows, |number, placed, record| {
        let fee = fees.of(number, placed)?;
        let mut line = Vec::new();
        write_row(&mut line, &cells(account, &placed.movement, record, fee));
        if written > 0 && out.len() + line.len() > max {
            return Ok(ControlFlow::Break(()));
        }
        lane::spend(line.len() as u64)?;
        out.extend(line);
        written += 1;
        Ok(ControlFlow::Continue(()))
    })?;
    if !paging.is_backward() {
        page.cut(written, paging);
    }
    let link = page.next.map(|next| link(call, &cursor::encode(Space::Transfers, next))).transpose()?;
    Ok(Reply { content_type: CONTENT_TYPE, link, ..Reply::json(out) })
}

/// The `Link` to the page at `key`.
fn link(call: &Call<'_>, key: &str) -> Result<String, HttpError> {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let others = call
        .form()?
        .into_iter()
        .filter(|(name, _)| !matches!(&**name, "pagination.key" | "pagination.offset"));
    let mut query: Vec<String> =
        others.map(|(name, value)| format!("{}={}", encode(&name), encode(&value))).collect();
    query.push(format!("pagination.key={key}"));
    let account = encode(call.text("account"));
    Ok(format!("</indexer/ledger/v1/transfers/by_account/{account}?{}>; rel=\"next\"", query.join("&")))
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
    let decimals = token.and_then(|token| token.decimals);
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

/// An amount in units of 10^`decimals`, without trailing zeros.
fn scaled(amount: U256, decimals: u32) -> String {
    let digits = format!("{amount:0>width$}", amount = amount.to_string(), width = decimals as usize + 1);
    let (whole, part) = digits.split_at(digits.len() - decimals as usize);
    let part = part.trim_end_matches('0');
    if part.is_empty() { whole.to_owned() } else { format!("{whole}.{part}") }
}

/// Appends a line.
fn write_row(out: &mut Vec<u8>, cells: &[String]) {
    for (n, cell) in cells.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        // As OWASP advises: what begins so is a formula to spreadsheets.
        let is_formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let guard = if is_formula { "'" } else { "" };
        if cell.contains([',', '"', '\r', '\n']) {
            out.extend(format!("\"{guard}{}\"", cell.replace('"', "\"\"")).into_bytes());
        } else {
            out.extend_from_slice(guard.as_bytes());
            out.extend_from_slice(cell.as_bytes());
        }
    }
    out.extend_from_slice(b"\r\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line(cells: &[&str]) -> String {
        let mut out = Vec::new();
        write_row(&mut out, &cells.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn cells_are_quoted_where_they_must_be_and_are_never_formulas() {
        assert_eq!(line(&["a", "", "b c"]), "a,,b c\r\n");
        assert_eq!(
            line(&["a,b", "say \"x\"", "1\n2", "1\r2"]),
            "\"a,b\",\"say \"\"x\"\"\",\"1\n2\",\"1\r2\"\r\n"
        );
        assert_eq!(
            line(&["=1+1", "+1", "-1", "@x", "\tx", "\rx", "=\"a\",b"]),
            "'=1+1,'+1,'-1,'@x,'\tx,\"'\rx\",\"'=\"\"a\"\",b\"\r\n"
        );
    }

    #[test]
    fn an_amount_is_scaled_without_loss() {
        let scaled = |amount: u64, decimals| scaled(U256::from(amount), decimals);
        assert_eq!(scaled(0, 6), "0");
        assert_eq!(scaled(1_500_000, 6), "1.5");
        assert_eq!(scaled(7, 3), "0.007");
        assert_eq!(scaled(1000, 0), "1000");
        assert_eq!(super::scaled(U256::MAX, 18).len(), 79);
    }
}
