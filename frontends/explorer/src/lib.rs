//! The explorer: HTML pages of one chain, rendered on the server from the JSON APIs.
//!
//! A page reads the indexer API (and the routing API) in this process, by the target that a client would request, and
//! links that target. So a figure on a page is the figure of the JSON, with the same cursors and limits.
//!
//! # Invariants
//! * No page works only with JavaScript; the script refreshes what the page already shows.
//! * Text of the chain is escaped by the template engine; nothing here writes HTML from a string.
//! * A browser loads nothing from another host, but images from the operator's IPFS gateway, if there is one: the
//!   Content-Security-Policy forbids it.
//!
//! | module | purpose |
//! |---|---|
//! | [`routing`], [`contracts`] | what the pages need of a routing service, and of contracts |
//! | `explorer` | shared state: reads of the APIs, catch-up rate |
//! | `activity` | hours and days of the chain |
//! | [`media`] | images of NFTs |
//! | `evm`, `units` | the halves of an EVM transaction; display units of denoms |
//! | `view` | a page as a value; success, redirect and error as a response |
//! | `unknown` | paths of other explorers, and the page for any other path and request |
//! | `layout` | the frame of every page |
//! | `listing`, `record` | lists with their cursors; what pages compute of a record |
//! | `format`, `target` | hashes, times and amounts as HTML; paths and queries |
//! | `assets` | style sheet, script and icon |
//! | `views` | one module per page |

mod activity;
mod assets;
pub mod contracts;
mod evm;
mod explorer;
mod format;
mod layout;
mod listing;
pub mod media;
mod record;
pub mod routing;
mod target;
mod units;
mod unknown;
mod view;
mod views;

use std::sync::Arc;

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};
use query::Indexer;
use web::app::App;
use web::cors::Cors;
use web::endpoint::Endpoint;
use web::http_error::HttpError;

pub use self::explorer::{Explorer, Head, Inputs};
use self::media::Media;
use self::routing::Routing;

/// The pages of an index, with those of routes.
const PAGES: &[&[Endpoint<Explorer>]] = &[assets::ENDPOINTS, views::OF_INDEX, views::OF_ROUTES];

/// The pages of a routing service without an index.
const ROUTE_PAGES: &[&[Endpoint<Explorer>]] = &[assets::ENDPOINTS, views::HOME_OF_ROUTES, views::OF_ROUTES];

/// A page runs no script and loads no style but ours, and no other site can frame it. Images are those of `media` too.
fn policy(media: &Media) -> String {
    let gateway = media.origin().map(|origin| format!(" {origin}")).unwrap_or_default();
    format!(
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:{gateway}; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
}

/// The indexer API with the pages behind it; with a routing service also those of routes and transfers.
///
/// # Errors
/// If the status of the index cannot be read.
pub fn mount(index: App<Indexer>, inputs: Inputs) -> Result<Arc<App<Indexer>>, HttpError> {
    let pages = Arc::new(app(Explorer::over_index(&index, inputs)?, PAGES)?);
    let index = Arc::new(index.with_fallback(Arc::clone(&pages) as _));
    pages.state().attach(&index);
    Ok(index)
}

/// The pages of a routing service that runs without an index.
///
/// # Errors
/// None in practice: the paths are constants.
pub fn route_pages(routing: Arc<dyn Routing>, version: &str) -> Result<App<Explorer>, HttpError> {
    app(Explorer::over_routing(routing, version), ROUTE_PAGES)
}

fn app(
    explorer: Explorer,
    pages: &'static [&'static [Endpoint<Explorer>]],
) -> Result<App<Explorer>, HttpError> {
    let policy = HeaderValue::try_from(policy(explorer.media())).map_err(HttpError::internal)?;
    let headers: HeaderMap = [
        (CONTENT_SECURITY_POLICY, policy),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    ]
    .into_iter()
    .collect();
    // Scripts of other sites read the JSON.
    let app = App::new(explorer, pages).map_err(HttpError::internal)?.with_cors(Cors::off());
    Ok(app.with_headers(headers).with_error_page(unknown::respond))
}
