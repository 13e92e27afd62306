//! All tokens that have moved, with a search.

use maud::{Markup, html};
use query::v1::LedgerToken;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::movements::is_nft;
use crate::explorer::Explorer;
use crate::format::{cell, count, decimal, none, short};
use crate::layout::{Page, absence, table};
use crate::listing::{KEY, Listing, is_absent};
use crate::target::{self, Target};
use crate::view::{Response, View};

/// Types of tokens that the filter offers, and what it calls them.
const TYPES: [(&str, &str); 8] = [
    ("bank", "Coins of the bank"),
    ("erc20", "ERC-20"),
    ("fa", "Assets of Move"),
    ("cw20", "CW20"),
    ("erc721", "ERC-721"),
    ("erc1155", "ERC-1155"),
    ("collection", "NFTs of Move"),
    ("cw721", "CW721"),
];

pub(crate) struct TokensPage;

impl View for TokensPage {
    const PATH: &'static str = "/tokens";
    const SUMMARY: &'static str = "All tokens that have moved.";
    const PARAMS: &'static [Param] = &[
        Param::query("search", Type::String, "The beginning of a symbol or denom."),
        Param::query("type", Type::String, "Only tokens of this type."),
        KEY,
    ];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let given = |name: &str| call.first(name).map(str::trim).filter(|value| !value.is_empty());
        let (search, kind) = (given("search"), given("type"));
        let list = target::tokens(search).with_some("type", kind);
        let form = html! {
            form.filter method="get" action=(Self::PATH) {
                label.short { "Symbol or denom " input type="search" name="search" value=[search] maxlength="200" spellcheck="false"; }
                label.short { "Type "
                    select name="type" {
                        option value="" { "Any" }
                        @for (value, name) in TYPES { option value=(value) selected[kind == Some(value)] { (name) } }
                    }
                }
                button type="submit" { "Filter" }
            }
        };
        let title = "Tokens".to_owned();
        let about = search.map(|search| chain::truncated(search, 40)).unwrap_or_default();
        let tokens = match Listing::<LedgerToken>::read(explorer, call, list) {
            Err(error) if is_absent(&error) => {
                let body = html! { (absence(&form, &error)) (holders_link(explorer)) };
                return Ok(Page { title, about, body, requests: Vec::new() }.into());
            }
            tokens => tokens?,
        };
        let page = Target::new(Self::PATH).with_some("search", search).with_some("type", kind);
        let body = html! {
            (form)
            section.card { (rows(explorer, &tokens.rows)) (tokens.pager(&page)) }
            (holders_link(explorer))
        };
        Ok(Page { title, about, body, requests: vec![tokens.request] }.into())
    }
}

/// The way to the lists of holders that the rich list has of any denom.
fn holders_link(explorer: &Explorer) -> Markup {
    html! { @if explorer.is_evm() { p { a href="/holders" { "Holders of a denom" } } } }
}

/// The name of a token in requests.
pub(super) fn name(token: &LedgerToken) -> &str {
    if token.denom.is_empty() { &token.address } else { &token.denom }
}

/// The page of a token: NFTs are a collection.
pub(super) fn page(token: &LedgerToken) -> String {
    if is_nft(&token.kind) { target::collection(&token.address) } else { target::any_token(name(token)) }
}

/// An amount of a token, in its display unit if that is known.
pub(super) fn amount(token: &LedgerToken, amount: &str) -> String {
    let decimals = token.decimals.and_then(|decimals| u8::try_from(decimals).ok());
    decimals.map_or_else(|| count(amount), |decimals| decimal(amount, decimals))
}

/// Tokens.
pub(super) fn rows(explorer: &Explorer, tokens: &[LedgerToken]) -> Markup {
    let row = |of: &LedgerToken| {
        let unit = explorer.unit_on(explorer.chain_id(), name(of));
        let symbol =
            unit.map(|unit| unit.symbol).or_else(|| of.symbol.clone()).filter(|symbol| !symbol.is_empty());
        let symbol = symbol.unwrap_or_else(|| short(name(of)));
        let number =
            |number: Option<u64>| number.map_or_else(none, |number| html! { span.num { (count(number)) } });
        vec![
            html! { a href=(page(of)) title=(chain::truncated(name(of), 300)) { bdi { (chain::truncated(&symbol, 40)) } } },
            of.name.as_deref().map_or_else(none, cell),
            html! { span.tag { (chain::truncated(&of.kind, 12)) } @if !of.verified { " " span.dim title="the contract has not answered as a token" { "not verified" } } },
            of.supply
                .as_deref()
                .map_or_else(none, |supply| html! { span.num title=(supply) { (amount(of, supply)) } }),
            number(of.holders),
            number(of.transfers),
        ]
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    let columns = ["Token", "~Name", "~Type", ">Supply", ">Holders", "~>Transfers"];
    table("Tokens", &columns, &rows, "There are no such tokens.")
}
