//! Movements of tokens: their amounts, and tables of them.

use maud::{Markup, html};
use query::v1::{MovedToken, Transfer};

use crate::explorer::Explorer;
use crate::format::{account, block, cell, count, decimal, none, short, time, tx};
use crate::layout::table;
use crate::routing::Unit;
use crate::target;
use crate::units::unit_of;

/// True for tokens of which each has an id and an owner.
pub(super) fn is_nft(kind: &str) -> bool {
    matches!(kind, "erc721" | "collection" | "cw721")
}

/// The name of a token in requests: its denom, or the address of its contract.
pub(super) fn name(token: &MovedToken) -> &str {
    if token.denom.is_empty() { &token.address } else { &token.denom }
}

/// The display unit of a token: what a page knows of the denom, else what the movement says.
fn unit(explorer: &Explorer, token: &MovedToken) -> Option<Unit> {
    let registered = explorer.unit_on(explorer.chain_id(), name(token));
    registered.or_else(|| unit_of(token.symbol.clone(), token.decimals))
}

/// What a movement moved: `1.5 GAS`, or `token 7 of CATS`.
pub(super) fn amount(explorer: &Explorer, of: &Transfer) -> Markup {
    let token = of.token.clone().unwrap_or_default();
    let name = name(&token);
    if is_nft(&token.r#type) {
        let collection = token.symbol.clone().filter(|symbol| !symbol.is_empty());
        let collection = collection.unwrap_or_else(|| short(name));
        return html! {
            span.amount {
                "token "
                a href=(target::token(name, &of.token_id).into_string()) { bdi { (chain::truncated(&of.token_id, 24)) } }
                " of "
                a.denom href=(target::collection(name)) title=(name) { (cell(&collection)) }
            }
        };
    }
    let unit = unit(explorer, &token);
    let shown = match &unit {
        Some(unit) => decimal(&of.amount, unit.decimals),
        None => count(&of.amount),
    };
    html! {
        span.amount title=(chain::truncated(&format!("{} {name}", of.amount), 300)) {
            (shown) " "
            @if !of.token_id.is_empty() { span.dim { "of id " bdi { (chain::truncated(&of.token_id, 24)) } " " } }
            (symbol(name, unit.as_ref()))
        }
    }
}

/// The link of a token: its symbol if it is known.
pub(super) fn symbol(name: &str, unit: Option<&Unit>) -> Markup {
    let shown = unit.map_or_else(|| short(name), |unit| chain::truncated(&unit.symbol, 40));
    html! { a.denom href=(target::any_token(name)) title=(chain::truncated(name, 300)) { bdi { (shown) } } }
}

/// What for a token was moved.
pub(super) fn kind(kind: &str) -> Markup {
    let shown = match kind {
        "ibc_out" => "IBC, out",
        "ibc_in" => "IBC, in",
        "ibc_refund" => "IBC, returned",
        "bridge_out" => "bridge, out",
        "bridge_in" => "bridge, in",
        "fee_refund" => "fee, returned",
        other => other,
    };
    html! { span.tag { (chain::truncated(shown, 30)) } }
}

fn party(explorer: &Explorer, address: &str, nobody: &str) -> Markup {
    if address.is_empty() {
        html! { span.none { (nobody) } }
    } else if explorer.is_account(address) {
        account(address)
    } else {
        cell(address)
    }
}

/// The movements of one transaction.
pub(super) fn of_tx(explorer: &Explorer, transfers: &[Transfer]) -> Markup {
    let row = |of: &Transfer| {
        vec![
            kind(&of.kind),
            party(explorer, &of.from, "new"),
            party(explorer, &of.to, "destroyed"),
            amount(explorer, of),
        ]
    };
    let rows: Vec<_> = transfers.iter().map(row).collect();
    table("Token transfers", &["Kind", "From", "To", ">Amount"], &rows, "No tokens moved.")
}

/// Movements of several transactions; of one account if `own` is its spelling in movements.
pub(super) fn rows(explorer: &Explorer, transfers: &[Transfer], own: Option<&str>) -> Markup {
    let row = |of: &Transfer| {
        let mut cells = vec![time(&of.timestamp)];
        if let Some(own) = own {
            let is_out = of.from.eq_ignore_ascii_case(own);
            let other = if is_out { &of.to } else { &of.from };
            let nobody = if is_out { "destroyed" } else { "new" };
            cells.push(html! {
                @if is_out && of.to.eq_ignore_ascii_case(own) { span.badge.none { "self" } }
                @else if is_out { span.badge.bad { "out" } }
                @else { span.badge.good { "in" } }
            });
            cells.push(party(explorer, other, nobody));
        } else {
            cells.push(party(explorer, &of.from, "new"));
            cells.push(party(explorer, &of.to, "destroyed"));
        }
        cells.push(amount(explorer, of));
        cells.push(kind(&of.kind));
        cells.push(if of.txhash.is_empty() { block(of.height) } else { tx(&of.txhash) });
        if !of.success {
            cells.pop();
            cells.push(html! { (if of.txhash.is_empty() { none() } else { tx(&of.txhash) }) " " span.badge.bad { "Failed" } });
        }
        cells
    };
    let rows: Vec<_> = transfers.iter().map(row).collect();
    let sides = if own.is_some() { ["Direction", "Other side"] } else { ["From", "To"] };
    let columns = ["Time", sides[0], sides[1], ">Amount", "~Kind", "~Transaction"];
    table("Token transfers", &columns, &rows, "No tokens moved.")
}
