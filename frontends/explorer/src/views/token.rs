//! An NFT with the transactions of its history, or any other token.

use maud::{Markup, html};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::{fungible, lookup, rows};
use crate::explorer::Explorer;
use crate::format::{TOO_LONG, block, none, short, text, time, uri, whole_account};
use crate::layout::Page;
use crate::layout::{facts, section};
use crate::listing::{KEY, Listing};
use crate::target::{self, Target, encoded};
use crate::view::{Response, View};
use query::v1::{Nft, Tx};

pub(crate) struct TokenPage;

impl View for TokenPage {
    const PATH: &'static str = "/token/{collection}";
    const SUMMARY: &'static str =
        "One NFT; without an id, a token with its holders and transfers, or the page of the collection.";
    const PARAMS: &'static [Param] = &[
        Param::path("collection", "A contract in bech32 or hex, or a denom with slashes as %2F."),
        Param::query("id", Type::String, "The id of the token in its collection."),
        Param::query("a", Type::String, "As id, if it is not an address: the form of Etherscan."),
        Param::query("tab", Type::OneOf(&["transfers", "holders"]), "The list of a token."),
        Param::query("height", Type::String, "Holders after this block."),
        KEY,
    ];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let (collection, id) = (encoded(call.text("collection")), call.first("id").unwrap_or_default());
        if id.is_empty()
            && let Some(token) = fungible::find(explorer, call.text("collection"))?
        {
            return fungible::page(explorer, call, token);
        }
        if let (true, Some(page)) = (id.is_empty(), without_id(explorer, call)?) {
            return Ok(Response::Redirect(page));
        }
        let list = Target::new(format!("/indexer/nft/v1/tokens/by_collection/{collection}"));
        // The API has no filter for an empty id, which is the first in the order of ids.
        let list = if id.is_empty() { list.with("pagination.reverse", "false") } else { list };
        let found = Listing::<Nft>::first(explorer, list.with("token_id", id))?;
        let token = found.rows.first().map(|token| (token, token.nft.clone().unwrap_or_default()));
        let token = token.filter(|(_, nft)| nft.token_id == id);
        // A burned token has a history, and the API has no path for an empty id.
        let history = if id.is_empty() {
            None
        } else {
            let list = Target::new(format!("/indexer/nft/v1/txs/{collection}/{}", encoded(id)));
            Some(Listing::<Tx>::read(explorer, call, list)?)
        };
        if token.is_none() && history.as_ref().is_none_or(|history| history.rows.is_empty()) {
            let shown = chain::truncated(id, 80);
            return Err(HttpError::not_found(format!("the collection has no token with the id `{shown}`")));
        }
        let body = html! {
            section.card {
                @if let Some((token, nft)) = &token {
                    (facts(vec![
                        ("Id", text(&nft.token_id)),
                        ("Collection", html! {
                            a href=(target::collection(&token.collection_addr)) { bdi { (chain::truncated(&token.collection_name, 120)) } }
                        }),
                        ("Owner", whole_account(&token.owner)),
                        ("URI", if nft.uri_truncated { text(TOO_LONG) } else { uri(&nft.uri) }),
                        ("Image", image(explorer, &nft.uri, id)),
                        ("Object", whole_account(&token.object_addr)),
                        ("Last change", html! { (block(token.height)) " · " (time(&token.timestamp)) }),
                    ]))
                } @else {
                    p { "No account owns a token with this id: it was burned." }
                }
            }
            @if let Some(history) = &history {
                (section("History", &html! {
                    (rows::txs(explorer, &history.rows))
                    (history.pager(&target::token(call.text("collection"), id)))
                }))
            }
        };
        let title = format!("Token {}", chain::truncated(id, 80));
        let about = format!("of {}", short(call.text("collection")));
        let requests = [Some(found.request), history.map(|history| history.request)];
        Ok(Page { title, about, body, requests: requests.into_iter().flatten().collect() }.into())
    }
}

/// The image of the token, where the operator lets pages show it.
fn image(explorer: &Explorer, uri: &str, id: &str) -> Markup {
    let alt = format!("Image of token {}", chain::truncated(id, 80));
    let Some(source) = explorer.media().image(uri) else { return none() };
    html! { img.nft src=(source) alt=(alt) loading="lazy" referrerpolicy="no-referrer"; }
}

/// The page of a token contract: a collection, unless its first token has an empty id, or an ERC-20. Wallets open
/// `/token/{address}`.
fn without_id(explorer: &Explorer, call: &Call<'_>) -> Result<Option<String>, HttpError> {
    let address = call.text("collection");
    if lookup::exists(explorer, "/indexer/nft/v1/collections", address)? {
        // Etherscan has the id of a token, or an account whose tokens are listed.
        if let Some(id) = call.first("a").filter(|id| !explorer.is_account(id)) {
            return Ok(Some(target::token(address, id).into_string()));
        }
        let first = Target::new(format!("/indexer/nft/v1/tokens/by_collection/{}", encoded(address)));
        let first = first.with("pagination.limit", "1").with("pagination.reverse", "false");
        let first = Listing::<Nft>::first(explorer, first)?;
        let is_empty = first
            .rows
            .first()
            .and_then(|token| token.nft.as_ref())
            .is_some_and(|nft| nft.token_id.is_empty());
        return Ok((!is_empty).then(|| target::collection(address)));
    }
    if explorer.is_evm() && lookup::has_holders(explorer, address)? {
        return Ok(Some(target::holders(address)));
    }
    Ok(explorer.is_account(address).then(|| target::account(address)))
}
