//! All collections of NFTs, and one with its tokens.

use maud::{Markup, html};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::rows;
use crate::explorer::Explorer;
use crate::format::{account, block, count, short, text, time, whole_account};
use crate::layout::Page;
use crate::layout::{facts, section, table};
use crate::listing::{KEY, Listing};
use crate::target::{self, Target, encoded};
use crate::view::{Response, View};
use query::v1::{Collection, GetCollectionResponse, Nft};

pub(crate) struct CollectionsPage;

impl View for CollectionsPage {
    const PATH: &'static str = "/collections";
    const SUMMARY: &'static str = "All collections of NFTs.";
    const PARAMS: &'static [Param] = &[Param::query("name", Type::String, "A part of a name."), KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let name = call.first("name");
        let list = name.map_or_else(|| Target::new("/indexer/nft/v1/collections"), by_name);
        let collections = Listing::<Collection>::read(explorer, call, list)?;
        let page = Target::new(Self::PATH).with_some("name", name);
        let body = html! {
            form.filter method="get" action=(Self::PATH) {
                label { "Name " input type="search" name="name" value=[name] maxlength="200"; }
                button type="submit" { "Filter" }
            }
            section.card { (collection_rows(&collections.rows)) (collections.pager(&page)) }
        };
        let about = name.map(|name| chain::truncated(name, 40)).unwrap_or_default();
        Ok(Page { title: "NFT collections".to_owned(), about, body, requests: vec![collections.request] }
            .into())
    }
}

/// The list of collections whose name has a part.
pub(crate) fn by_name(name: &str) -> Target {
    Target::new(format!("/indexer/nft/v1/collections/by_name/{}", encoded(name)))
}

/// Collections.
pub(crate) fn collection_rows(collections: &[Collection]) -> Markup {
    let row = |of: &Collection| {
        let detail = of.collection.clone().unwrap_or_default();
        let name = &detail.name;
        let shown = if name.is_empty() { "(no name)".to_owned() } else { chain::truncated(name, 60) };
        vec![
            html! { a href=(target::collection(&of.object_addr)) { bdi { (shown) } } },
            html! { span.num { (count(detail.nfts.unwrap_or_default().length)) } },
            account(&detail.creator),
            block(of.height),
            time(&of.timestamp),
        ]
    };
    let rows: Vec<_> = collections.iter().map(row).collect();
    let columns = ["Collection", ">Tokens", "~Creator", "Height", "~Time"];
    table("Collections", &columns, &rows, "There are no collections.")
}

pub(crate) struct CollectionPage;

impl View for CollectionPage {
    const PATH: &'static str = "/collection/{address}";
    const SUMMARY: &'static str = "One collection of NFTs.";
    const PARAMS: &'static [Param] = &[Param::path("address", "Bech32 or hex."), KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let request = format!("/indexer/nft/v1/collections/{}", encoded(call.text("address")));
        let collection = explorer.read::<GetCollectionResponse>(&request)?.collection.unwrap_or_default();
        let list = format!("/indexer/nft/v1/tokens/by_collection/{}", collection.object_addr);
        let tokens = Listing::<Nft>::read(explorer, call, Target::new(list))?;
        let detail = collection.collection.unwrap_or_default();
        let body = html! {
            section.card {
                (facts(vec![
                    ("Name", text(&detail.name)),
                    ("Name at its origin", text(&detail.origin_name)),
                    ("Address", whole_account(&collection.object_addr)),
                    ("Creator", whole_account(&detail.creator)),
                    ("Tokens", html! { (count(detail.nfts.unwrap_or_default().length)) }),
                    ("Since", html! { (block(collection.height)) " · " (time(&collection.timestamp)) }),
                ]))
            }
            (section("Tokens", &html! {
                (rows::tokens(&tokens.rows, false))
                (tokens.pager(&Target::new(target::collection(&collection.object_addr))))
            }))
        };
        let title = if detail.name.is_empty() { "Collection".to_owned() } else { detail.name.clone() };
        let about = short(&collection.object_addr);
        Ok(Page { title, about, body, requests: vec![request, tokens.request] }.into())
    }
}
