//! Search by height, hash, address, token or collection name: one match is a redirect, several are a list.

use http::StatusCode;
use maud::{Markup, html};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::collection::{by_name, collection_rows};
use super::lookup::{self, exists};
use super::tokens;
use crate::explorer::Explorer;
use crate::layout::Page;
use crate::layout::{search, section, sentence};
use crate::listing::{KEY, Listing};
use crate::target::{self, Target};
use crate::view::{Response, View};
use query::v1::{Collection, LedgerToken};

/// Characters of a text that is looked for.
const MAX_CHARS: usize = 200;

/// Tokens of a search.
const TOKENS: &str = "10";

pub(crate) struct SearchPage;

impl View for SearchPage {
    const PATH: &'static str = "/search";
    const SUMMARY: &'static str = "Search by height, hash, address, token or collection name.";
    const PARAMS: &'static [Param] = &[Param::query("q", Type::String, "The text."), KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let text = call.first("q").unwrap_or_default().trim();
        if text.chars().count() > MAX_CHARS {
            return Err(HttpError::bad_request(format!("q has over {MAX_CHARS} characters")));
        }
        let mut requests = Vec::new();
        let mut found = html! { p.empty { "Enter a height, a hash, an address, a token or a part of a collection's name." } };
        if !text.is_empty() {
            if let Some(page) = record(explorer, text)? {
                return Ok(Response::Redirect(page));
            }
            let collections = Listing::<Collection>::read(explorer, call, by_name(text))?;
            let (tokens, too_many) = tokens_named(explorer, text)?;
            let named = tokens.as_ref().map(|tokens| tokens.rows.as_slice()).unwrap_or_default();
            if call.first("pagination.key").is_none() && too_many.is_empty() {
                match (collections.rows.as_slice(), named) {
                    ([only], []) => return Ok(Response::Redirect(target::collection(&only.object_addr))),
                    ([], [only]) => return Ok(Response::Redirect(tokens::page(only))),
                    _ => {}
                }
            }
            found = results(explorer, &collections, (named, &too_many), text);
            requests.extend(tokens.map(|tokens| tokens.request));
            requests.push(collections.request);
        }
        let body = html! { section.card { (search("Search again", text)) } (found) };
        let about = chain::truncated(text, 40);
        Ok(Page { title: "Search".to_owned(), about, body, requests }.into())
    }
}

/// The first tokens whose symbol or denom begins so, where tokens are indexed, and why they are not listed if there are too many.
fn tokens_named(
    explorer: &Explorer,
    text: &str,
) -> Result<(Option<Listing<LedgerToken>>, String), HttpError> {
    match Listing::optional(explorer, target::tokens(Some(text)).with("pagination.limit", TOKENS)) {
        Err(error) if error.status() == StatusCode::BAD_REQUEST => {
            Ok((None, sentence(error.message()).to_owned()))
        }
        tokens => Ok((tokens?, String::new())),
    }
}

fn results(
    explorer: &Explorer,
    collections: &Listing<Collection>,
    (named, too_many): (&[LedgerToken], &str),
    text: &str,
) -> Markup {
    if collections.rows.is_empty() && named.is_empty() && too_many.is_empty() {
        return html! {
            p.empty { "Nothing was found for " strong { bdi { (text) } } ": no height, hash, address, token or collection of this chain." }
        };
    }
    let page = Target::new(SearchPage::PATH).with("q", text);
    html! {
        @if !too_many.is_empty() { p.dim { bdi { (too_many) } } }
        @if !named.is_empty() {
            (section("Tokens", &html! {
                (tokens::rows(explorer, named))
                p.more { a href=(Target::new(tokens::TokensPage::PATH).with("search", text).into_string()) { "All that begin so" } }
            }))
        }
        @if !collections.rows.is_empty() {
            (section("Collections", &html! { (collection_rows(&collections.rows)) (collections.pager(&page)) }))
        }
    }
}

/// The page of the record that `text` names exactly.
fn record(explorer: &Explorer, text: &str) -> Result<Option<String>, HttpError> {
    let digits = lookup::digits(text);
    if text.bytes().all(|byte| byte.is_ascii_digit()) && exists(explorer, "/indexer/block/v1/blocks", text)? {
        return Ok(Some(target::block(text)));
    }
    if lookup::is_hash(text) {
        for page in [lookup::tx, lookup::evm_tx, lookup::block] {
            if let Some(page) = page(explorer, digits)? {
                return Ok(Some(page));
            }
        }
    }
    if !explorer.names_account(text) {
        return Ok(None);
    }
    let is_collection = exists(explorer, "/indexer/nft/v1/collections", text)?;
    Ok(Some(if is_collection { target::collection(text) } else { target::account(text) }))
}
