//! Holders of an ERC-20 by amount, with their shares.

use chain::U256;
use maud::{Markup, html};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::{account, clipped, count, decimal, short};
use crate::layout::Page;
use crate::layout::{section, table};
use crate::listing::{KEY, Listing};
use crate::target::{Target, encoded};
use crate::view::{Response, View};
use query::v1::TokenHolder;

/// Holders whose amounts are added up for the shares: the largest page of the API.
const ADDED: &str = "1000";

pub(crate) struct HoldersPage;

impl View for HoldersPage {
    const PATH: &'static str = "/holders";
    const SUMMARY: &'static str = "Holders of a token, by amount.";
    const PARAMS: &'static [Param] =
        &[Param::query("denom", Type::String, "A denom, or the address of an ERC-20."), KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let denom = call.first("denom");
        let (list, requests) = match denom {
            Some(denom) => holders(explorer, call, denom)?,
            None => (html! { p.empty { "Enter a denom or the address of an ERC-20." } }, Vec::new()),
        };
        let body = html! {
            form.filter method="get" action=(Self::PATH) {
                label { "Denom " input type="search" name="denom" required value=[denom.map(clipped)] placeholder="0x… or evm/…" spellcheck="false"; }
                button type="submit" { "Show" }
            }
            (list)
        };
        let about = denom.map(|denom| format!("of {}", short(denom))).unwrap_or_default();
        Ok(Page { title: "Holders".to_owned(), about, body, requests }.into())
    }
}

fn holders(explorer: &Explorer, call: &Call<'_>, denom: &str) -> Result<(Markup, Vec<String>), HttpError> {
    let list = Target::new(format!("/indexer/richlist/v1/{}", encoded(denom)));
    let holders = Listing::<TokenHolder>::read(explorer, call, list.clone())?;
    let largest = Listing::<TokenHolder>::first(explorer, list.with("pagination.limit", ADDED))?;
    let sum = sum(&largest.rows);
    let is_all = largest.rows.len() as u64 == largest.total();
    let unit = explorer.unit(denom);
    let row = |of: &TokenHolder| {
        let amount =
            unit.as_ref().map_or_else(|| count(&of.amount), |unit| decimal(&of.amount, unit.decimals));
        vec![
            account(&of.account),
            html! { span.num title=(of.amount) { (amount) } },
            html! { span.num { (share(&of.amount, sum)) } },
        ]
    };
    let rows: Vec<_> = holders.rows.iter().map(row).collect();
    let symbol = unit.as_ref().map_or("base units", |unit| unit.symbol.as_str());
    let amount = format!(">Amount ({})", chain::truncated(symbol, 20));
    let columns = ["Account", amount.as_str(), if is_all { ">Share" } else { ">Share of the 1,000 largest" }];
    let body = section(
        &chain::truncated(denom, 80),
        &html! {
            (table("Holders", &columns, &rows, "There are no holders."))
            (holders.pager(&Target::new(HoldersPage::PATH).with("denom", denom)))
        },
    );
    Ok((body, vec![holders.request]))
}

/// The sum of the amounts; `None` if it is over 256 bits, as only a malformed list is.
fn sum(holders: &[TokenHolder]) -> Option<U256> {
    holders.iter().try_fold(U256::ZERO, |sum, of| sum.checked_add(of.amount.parse().ok()?))
}

/// Per cent of `sum` with two decimal places.
fn share(amount: &str, sum: Option<U256>) -> String {
    let share = sum.and_then(|sum| hundredths(amount, sum));
    share.map_or_else(|| "–".to_owned(), |share| format!("{}.{:02} %", share / 100, share % 100))
}

/// Hundredths of a per cent of `sum`; `None` if it is 0, or the amount is no number.
pub(super) fn hundredths(amount: &str, sum: U256) -> Option<u64> {
    let amount: U256 = amount.parse().ok()?;
    if sum.is_zero() {
        return None;
    }
    // Dividing both first keeps the product within 256 bits; such amounts lose nothing that two places show.
    let (amount, sum) =
        if sum.bit_len().max(amount.bit_len()) > 240 { (amount >> 16, sum >> 16) } else { (amount, sum) };
    if sum.is_zero() {
        return None;
    }
    u64::try_from(amount * U256::from(10_000) / sum).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_for_any_amount() {
        let of = |amount: U256, sum: U256| share(&amount.to_string(), Some(sum));
        assert_eq!(of(U256::from(1), U256::from(3)), "33.33 %");
        assert_eq!(of(U256::MAX, U256::MAX), "100.00 %");
        assert_eq!(of(U256::ZERO, U256::from(5)), "0.00 %");
        assert_eq!(of(U256::ZERO, U256::ZERO), "–");
    }
}
