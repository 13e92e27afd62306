//! Balances of an account, now or earlier, and the movements of its tokens.

use maud::{Markup, html};
use query::v1::{Balance, Transfer};
use serde::de::IgnoredAny;
use web::call::Call;
use web::http_error::HttpError;

use super::tab::{List, Tab};
use crate::explorer::Explorer;
use crate::format::{block, count, decimal, none};
use crate::layout::{absence, section, table};
use crate::listing::{Listing, is_absent};
use crate::target::{Target, encoded};
use crate::units::unit_of;
use crate::views::movements;

/// Balances on the first tab.
const FEW: &str = "8";

/// Kinds of movements that the filter offers.
const KINDS: [&str; 12] = [
    "transfer",
    "mint",
    "burn",
    "ibc_in",
    "ibc_out",
    "ibc_refund",
    "bridge_in",
    "bridge_out",
    "fee",
    "fee_refund",
    "stake",
    "reward",
];

/// A parameter with a value; forms send empty ones too.
fn given<'c>(call: &'c Call<'_>, name: &str) -> Option<&'c str> {
    call.first(name).map(str::trim).filter(|value| !value.is_empty())
}

fn balances_of(account: &str) -> Target {
    Target::new(format!("/indexer/ledger/v1/balances/by_account/{}", encoded(account)))
}

/// The first balances of an account, for its first tab; nothing where they are not indexed.
pub(super) fn overview(explorer: &Explorer, account: &str, all: &str) -> Result<Option<List>, HttpError> {
    let list = balances_of(account).with("pagination.limit", FEW);
    let Some(list) = Listing::<Balance>::optional(explorer, list)? else { return Ok(None) };
    let left = list.total().saturating_sub(list.rows.len() as u64);
    let body = section(
        "Balances",
        &html! {
            (rows(explorer, account, &list.rows))
            p.more {
                a href=(all) { @if left > 0 { (count(left)) " more, and those of an earlier day" } @else { "Those of an earlier day" } }
            }
        },
    );
    Ok(Some((body, vec![list.request])))
}

/// All balances, after a block or at the end of a day if that is asked.
pub(super) fn balances(explorer: &Explorer, call: &Call<'_>, page: Target) -> Result<List, HttpError> {
    let account = call.text("account");
    let (day, height) = (given(call, "day"), given(call, "height"));
    let (mut requests, mut at) = (Vec::new(), height.map(str::to_owned));
    let form = html! {
        form.filter method="get" {
            input type="hidden" name="tab" value=(Tab::Balances.names().0);
            label.short { "At the end of the day (UTC) " input type="date" name="day" value=[day]; }
            label.short { "or after block " input type="text" inputmode="numeric" name="height" value=[height] size="10"; }
            button type="submit" { "Show" }
        }
    };
    if let (Some(day), None) = (day, height) {
        // Balances change with movements only: those of a time are those after the last movement before it.
        let last =
            Target::new("/indexer/ledger/v1/transfers").with("to_time", format!("{day}T23:59:59.999999999Z"));
        match Listing::<Transfer>::first(explorer, last.with("pagination.limit", "1")) {
            Err(error) if is_absent(&error) => return Ok((absence(&form, &error), requests)),
            last => {
                let last = last?;
                let Some(of) = last.rows.first() else {
                    let none = html! { section.card { p.empty { "No movement of a token is indexed up to that day." } } };
                    return Ok((html! { (form) (none) }, vec![last.request]));
                };
                at = Some(of.height.to_string());
                requests.push(last.request);
            }
        }
    }
    let list = balances_of(account).with_some("height", at.as_deref());
    let list = match Listing::<Balance>::read(explorer, call, list) {
        Err(error) if is_absent(&error) => return Ok((absence(&form, &error), requests)),
        list => list?,
    };
    let page = page.with_some("day", day).with_some("height", height);
    let body = html! {
        (form)
        section.card {
            @if let Some(at) = &at { p.dim { "After block " (block(at)) "." } }
            (rows(explorer, account, &list.rows))
            (list.pager(&page))
        }
    };
    requests.push(list.request);
    Ok((body, requests))
}

fn rows(explorer: &Explorer, account: &str, balances: &[Balance]) -> Markup {
    let row = |of: &Balance| {
        let name = if of.denom.is_empty() { &of.address } else { &of.denom };
        let registered = explorer.unit_on(explorer.chain_id(), name);
        let unit = registered.or_else(|| unit_of(of.symbol.clone(), of.decimals));
        let shown =
            unit.as_ref().map_or_else(|| count(&of.amount), |unit| decimal(&of.amount, unit.decimals));
        let history =
            format!("/indexer/ledger/v1/balances/history/{}/{}?format=csv", encoded(account), encoded(name));
        vec![
            movements::symbol(name, unit.as_ref()),
            html! {
                @if !of.known { span.none { "not known" } }
                @else { span.amount title=(chain::truncated(&format!("{} {name}", of.amount), 300)) { (shown) } }
                @if of.known && !of.exact { " " span.dim title="the token changes balances without movements" { "about" } }
            },
            if of.last_height == 0 { none() } else { block(of.last_height) },
            html! { a href=(history) { "CSV" } },
        ]
    };
    let rows: Vec<_> = balances.iter().map(row).collect();
    table("Balances", &["Token", ">Amount", "~Last change", "~History"], &rows, "The account holds no token.")
}

/// Movements from and to an account.
pub(super) fn transfers(explorer: &Explorer, call: &Call<'_>, page: Target) -> Result<List, HttpError> {
    let text = call.text("account");
    let path = Target::new(format!("/indexer/ledger/v1/transfers/by_account/{}", encoded(text)));
    let (direction, kind, token) = (given(call, "direction"), given(call, "kind"), given(call, "token"));
    let (from, to, other) = (given(call, "from"), given(call, "until"), given(call, "with"));
    let select = |target: Target| {
        let target =
            target.with_some("direction", direction).with_some("kind", kind).with_some("token", token);
        let target = target.with_some("from_time", from.map(|day| format!("{day}T00:00:00Z")).as_deref());
        let target =
            target.with_some("to_time", to.map(|day| format!("{day}T23:59:59.999999999Z")).as_deref());
        target.with_some("counterparty", other)
    };
    let form = html! {
        form.filter method="get" {
            input type="hidden" name="tab" value=(Tab::Transfers.names().0);
            label.short { "Direction "
                select name="direction" {
                    @for (value, name) in [("", "Any"), ("in", "In"), ("out", "Out"), ("self", "To itself")] {
                        option value=(value) selected[direction.unwrap_or_default() == value] { (name) }
                    }
                }
            }
            label.short { "Kind "
                select name="kind" {
                    option value="" { "Any but fees" }
                    @for name in KINDS { option value=(name) selected[kind == Some(name)] { (name.replace('_', " ")) } }
                }
            }
            label.short { "Token " input type="text" name="token" value=[token] placeholder="denom or 0x…" spellcheck="false"; }
            label.short { "With account " input type="text" name="with" value=[other] spellcheck="false"; }
            label.short { "From day " input type="date" name="from" value=[from]; }
            label.short { "until day " input type="date" name="until" value=[to]; }
            button type="submit" { "Filter" }
        }
    };
    let list = match Listing::<Transfer>::read(explorer, call, select(path.clone())) {
        Err(error) if is_absent(&error) => return Ok((absence(&form, &error), Vec::new())),
        list => list?,
    };
    let page = page.with_some("direction", direction).with_some("kind", kind).with_some("token", token);
    let page = page.with_some("from", from).with_some("until", to).with_some("with", other);
    let own = chain::Account::parse(text, explorer.prefix());
    let own = own.map(|own| if explorer.is_evm() { own.to_hex() } else { own.to_bech32(explorer.prefix()) });
    let csv = select(path).with("format", "csv").into_string();
    let body = html! {
        (form)
        section.card {
            (movements::rows(explorer, &list.rows, Some(own.as_deref().unwrap_or_default())))
            p.more { a href=(csv) { "These as CSV" } }
            (list.pager(&page))
        }
    };
    Ok((body, vec![list.request]))
}

/// How many movements an account has, if they are indexed.
pub(super) fn number_of_transfers(explorer: &Explorer, account: &str) -> Result<Option<u64>, HttpError> {
    let list = Target::new(format!("/indexer/ledger/v1/transfers/by_account/{}", encoded(account)));
    let list = Listing::<IgnoredAny>::optional(explorer, list.with("pagination.limit", "1"))?;
    Ok(list.map(|list| list.total()))
}
