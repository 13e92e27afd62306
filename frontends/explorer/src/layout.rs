//! The frame of every page: header with navigation and search, footer with the JSON requests.

use http::StatusCode;
use maud::{DOCTYPE, Markup, html};
use web::http_error::HttpError;

use crate::assets::{ICON_LINK, SCRIPT_LINK, STYLE_LINK, THEME_LINK};
use crate::explorer::Explorer;
use crate::format::{clipped, none};

/// Characters of a title.
const TITLE: usize = 120;

/// The interactive page over the description of the API.
const API_PAGE: &str = "/swagger/";

/// The contents of a page.
pub(crate) struct Page {
    /// Its title, which is also its first heading.
    pub(crate) title: String,
    /// What distinguishes it from the other pages of its kind, in the browser's title only; empty for nothing.
    pub(crate) about: String,
    /// Below the heading.
    pub(crate) body: Markup,
    /// The JSON requests with the same contents.
    pub(crate) requests: Vec<String>,
}

/// A whole page. `path` is the template of its endpoint.
pub(crate) fn page(explorer: &Explorer, path: &str, page: &Page) -> Markup {
    let chain = if explorer.has_index() { explorer.chain_id() } else { "routes" };
    let title = chain::truncated(&page.title, TITLE);
    let about = chain::truncated(&page.about, TITLE);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) @if !about.is_empty() { " " (about) } " · " (chain) }
                script src=(*THEME_LINK) {}
                link rel="icon" type="image/svg+xml" href=(*ICON_LINK);
                link rel="stylesheet" href=(*STYLE_LINK);
                script src=(*SCRIPT_LINK) defer {}
            }
            body {
                a.skip href="#main" { "Skip to the contents" }
                header.top {
                    div.bar {
                        a.brand href="/" { img src=(*ICON_LINK) alt="" width="26" height="26"; span { (chain) } }
                        @if explorer.has_index() { (search("Search", "")) }
                    }
                    nav.main aria-label="Main" {
                        @for (href, name) in links(explorer) {
                            a href=(href) aria-current=[(href == path).then_some("page")] { (name) }
                        }
                    }
                }
                main #main {
                    h1 { bdi { (title) } }
                    (page.body)
                }
                footer {
                    @if !page.requests.is_empty() {
                        p.requests {
                            "The same as JSON: "
                            @for request in &page.requests {
                                a.mono href=(request) { "GET " (request) }
                                " "
                            }
                        }
                    }
                    p {
                        "cairn " (explorer.version())
                        @if explorer.has_index() { " · " a href="/status" { "Status" } }
                        " · " a href=(API_PAGE) { "API" } " · " a href="/openapi.json" { "OpenAPI" }
                        " " button.theme type="button" hidden { "Light or dark" }
                    }
                }
            }
        }
    }
}

/// The pages of the navigation.
fn links(explorer: &Explorer) -> Vec<(&'static str, &'static str)> {
    let mut links = Vec::new();
    if explorer.has_index() {
        links.extend([("/", "Overview"), ("/blocks", "Blocks"), ("/txs", "Transactions")]);
        if explorer.is_evm() {
            links.push(("/evm-txs", "EVM"));
        }
        links.extend([
            ("/tokens", "Tokens"),
            ("/collections", "NFTs"),
            ("/ibc", "IBC"),
            ("/bridge", "Bridge"),
        ]);
    }
    if explorer.has_routes() {
        links.extend([("/route", "Route"), ("/transfer", "Transfer")]);
    }
    links
}

/// The search form. `label` distinguishes it from another one on the page.
pub(crate) fn search(label: &str, text: &str) -> Markup {
    html! {
        form.search role="search" aria-label=(label) action="/search" method="get" {
            input type="search" name="q" value=(clipped(text)) required maxlength="200" autocomplete="off" spellcheck="false"
                aria-label="Search by height, hash, address, token or collection name"
                placeholder="Height, hash, address, token, collection";
            button type="submit" { "Search" }
        }
    }
}

/// A text in the place of records, with a way on: a page without a link has nothing that the keyboard reaches.
pub(crate) fn empty(text: &str) -> Markup {
    html! {
        p.empty { (text) }
        p { a href="/" { "To the overview" } }
    }
}

/// A list that this index does not have, or not yet, with the reason; `before` is what the page has above it.
pub(crate) fn absence(before: &Markup, error: &HttpError) -> Markup {
    html! { (before) section.card { p.empty { bdi { (clipped(sentence(error.message()))) } } } }
}

/// The page of records that this index does not have, which the navigation leads to all the same.
pub(crate) fn absent(title: &str, error: &HttpError) -> Page {
    let body = html! { section.card { (empty(&clipped(sentence(error.message())))) } };
    Page { title: title.to_owned(), about: String::new(), body, requests: Vec::new() }
}

/// The page of an error.
pub(crate) fn error(explorer: &Explorer, error: &HttpError) -> Page {
    let title = match error.status() {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::BAD_REQUEST => "Bad request",
        StatusCode::SERVICE_UNAVAILABLE => "Not available now",
        _ => "Error",
    };
    let body = html! {
        p.problem role="alert" { bdi { (clipped(sentence(error.message()))) } }
        p.dim { "HTTP status " (error.status().as_u16()) }
        p { a href="/" { @if explorer.has_index() { "To the overview" } @else { "To the first page" } } }
    };
    Page { title: title.to_owned(), about: String::new(), body, requests: Vec::new() }
}

/// A message without the code in brackets that the deployed server's begin with.
pub(crate) fn sentence(message: &str) -> &str {
    let code = message.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    let is_code = |code: &str| code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    code.filter(|(code, _)| is_code(code)).map_or(message, |(_, rest)| rest)
}

/// A section with a heading.
pub(crate) fn section(title: &str, body: &Markup) -> Markup {
    html! { section.card { h2 { (title) } (body) } }
}

/// A table. A column whose name begins with `>` has numbers, aligned to the right; one with `~` before that is left out
/// where the table has little room.
pub(crate) fn table(label: &str, columns: &[&str], rows: &[Vec<Markup>], empty: &str) -> Markup {
    if rows.is_empty() {
        return html! { p.empty { (empty) } };
    }
    html! {
        div.scroll {
            table aria-label=(label) {
                thead { tr { @for column in columns { th scope="col" class=[class(column)] { (name(column)) } } } }
                tbody {
                    @for row in rows {
                        tr { @for (cell, column) in row.iter().zip(columns) { td class=[class(column)] { (cell) } } }
                    }
                }
            }
        }
    }
}

/// The name of a column.
fn name(column: &str) -> &str {
    column.trim_start_matches(['>', '~'])
}

/// The class of a column.
fn class(column: &str) -> Option<&'static str> {
    match (column.starts_with('>') || column.starts_with("~>"), column.starts_with('~')) {
        (true, true) => Some("right wide"),
        (true, false) => Some("right"),
        (false, true) => Some("wide"),
        (false, false) => None,
    }
}

/// Names and values of one record; those without a value are left out.
pub(crate) fn facts(facts: Vec<(&str, Markup)>) -> Markup {
    let none = none().into_string();
    let facts = facts.into_iter().filter(|(_, value)| value.0 != none);
    html! {
        dl.facts { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } }
    }
}
