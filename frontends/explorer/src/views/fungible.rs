//! A token whose amounts add up: what it says of itself, its supply, its holders now or earlier, and its transfers.

use maud::{Markup, html};
use query::v1::{GetLedgerTokenResponse, LedgerToken, TokenHolder, Transfer};
use web::call::Call;
use web::http_error::HttpError;

use super::movements::{self, is_nft};
use super::tokens::{amount, name};
use crate::explorer::Explorer;
use crate::format::{account, block, copied, count, none, short, text, whole_account};
use crate::layout::{Page, absence, facts, table};
use crate::listing::{Listing, is_absent};
use crate::target::{self, Target, encoded};
use crate::view::Response;

/// The token of a page; `None` if the index does not know it, or if it is a collection of NFTs.
pub(super) fn find(explorer: &Explorer, text: &str) -> Result<Option<(LedgerToken, String)>, HttpError> {
    let request = format!("/indexer/ledger/v1/tokens/{}", encoded(text));
    match explorer.read::<GetLedgerTokenResponse>(&request) {
        Err(error) if is_absent(&error) || error.status() == http::StatusCode::BAD_REQUEST => Ok(None),
        Err(error) => Err(error),
        Ok(response) => Ok(response.token.filter(|token| !is_nft(&token.kind)).map(|token| (token, request))),
    }
}

/// The page of a token.
pub(super) fn page(
    explorer: &Explorer,
    call: &Call<'_>,
    (token, request): (LedgerToken, String),
) -> Result<Response, HttpError> {
    let path = target::any_token(name(&token));
    // A token has one address, whichever of its names is asked for.
    if call.text("collection") != name(&token) {
        return Ok(Response::Redirect(path));
    }
    let by_holders = call.first("tab") == Some("holders");
    let page = Target::new(path.clone());
    let with_tab = page.clone().with("tab", "holders");
    let (list, mut requests) = if by_holders {
        holders(explorer, call, &token, &with_tab)?
    } else {
        transfers(explorer, call, &token, &page)?
    };
    requests.insert(0, request);
    let body = html! {
        section.card { (about(&token)) }
        nav.tabs aria-label="Lists of the token" {
            a href=(path) aria-current=[(!by_holders).then_some("page")] { "Transfers" }
            a href=(with_tab.into_string()) aria-current=[by_holders.then_some("page")] { "Holders" }
        }
        (list)
    };
    let symbol = token.symbol.clone().filter(|symbol| !symbol.is_empty());
    let title = symbol
        .map_or_else(|| "Token".to_owned(), |symbol| format!("Token {}", chain::truncated(&symbol, 40)));
    let mut about = short(name(&token));
    if by_holders {
        about = format!("{about} – Holders");
    }
    Ok(Page { title, about, body, requests }.into())
}

fn about(token: &LedgerToken) -> Markup {
    let number = |number: Option<u64>| number.map_or_else(none, |number| html! { (count(number)) });
    let supply = token.supply.as_deref().map_or_else(none, |supply| {
        html! {
            span.amount title=(supply) { (amount(token, supply)) } " "
            span.dim { @if let Some(symbol) = &token.symbol { bdi { (chain::truncated(symbol, 40)) } } @else { "base units" } }
        }
    });
    html! {
        (facts(vec![
            ("Name", text(token.name.as_deref().unwrap_or_default())),
            ("Symbol", text(token.symbol.as_deref().unwrap_or_default())),
            ("Decimals", token.decimals.map_or_else(none, |decimals| html! { (decimals) })),
            ("Type", html! { (token.kind) }),
            ("Denom", if token.denom.is_empty() { none() } else { copied(&token.denom) }),
            ("Contract", whole_account(&token.address)),
            ("Supply", supply),
            ("Holders", number(token.holders)),
            ("Transfers", number(token.transfers)),
            ("First seen", block(token.first_height)),
        ]))
        @if !token.verified { p.dim { "The contract has not answered as a token of its type." } }
        @if token.drifting { p.dim { "Its balances change without movements: amounts of earlier blocks are not exact." } }
        @if token.silent { p.dim { "Its contract does not answer queries of balances." } }
        @if token.derived == Some(true) { p.dim { "A function of its module computes the balances that wallets show; those here are of the stores." } }
    }
}

fn transfers(
    explorer: &Explorer,
    call: &Call<'_>,
    token: &LedgerToken,
    page: &Target,
) -> Result<(Markup, Vec<String>), HttpError> {
    let list = Target::new(format!("/indexer/ledger/v1/transfers/by_token/{}", encoded(name(token))));
    let list = match Listing::<Transfer>::read(explorer, call, list) {
        Err(error) if is_absent(&error) => return Ok((absence(&html! {}, &error), Vec::new())),
        list => list?,
    };
    let body = html! { section.card { (movements::rows(explorer, &list.rows, None)) (list.pager(page)) } };
    Ok((body, vec![list.request]))
}

fn holders(
    explorer: &Explorer,
    call: &Call<'_>,
    token: &LedgerToken,
    page: &Target,
) -> Result<(Markup, Vec<String>), HttpError> {
    let height = call.first("height").map(str::trim).filter(|height| !height.is_empty());
    let form = html! {
        form.filter method="get" {
            input type="hidden" name="tab" value="holders";
            label.short { "After block " input type="text" inputmode="numeric" name="height" value=[height] size="10"; }
            button type="submit" { "Show" }
        }
    };
    let list = Target::new(format!("/indexer/ledger/v1/holders/{}", encoded(name(token))));
    let list = match Listing::<TokenHolder>::read(explorer, call, list.with_some("height", height)) {
        Err(error) if is_absent(&error) => return Ok((absence(&form, &error), Vec::new())),
        list => list?,
    };
    let row = |of: &TokenHolder| {
        vec![
            account(&of.account),
            html! { span.num title=(of.amount) { (amount(token, &of.amount)) } },
            share(&of.amount, token.supply.as_deref().filter(|_| height.is_none())),
        ]
    };
    let rows: Vec<_> = list.rows.iter().map(row).collect();
    let body = html! {
        (form)
        section.card {
            @if let Some(height) = height { p.dim { "After block " (chain::truncated(height, 20)) "." } }
            (table("Holders", &["Account", ">Amount", "~>Of the supply"], &rows, "There are no holders."))
            (list.pager(&page.clone().with_some("height", height)))
        }
    };
    Ok((body, vec![list.request]))
}

/// The part of the supply, in per cent.
fn share(of: &str, supply: Option<&str>) -> Markup {
    let parts = supply.and_then(|supply| super::holders::hundredths(of, supply.parse().ok()?));
    parts.map_or_else(
        none,
        |parts| html! { span.num { (parts / 100) "." (format!("{:02}", parts % 100)) " %" } },
    )
}
