//! A page as a value, and its response: HTML for success and for an error, or a redirect.

use futures_util::future::BoxFuture;
use http::StatusCode;
use maud::Markup;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema::Text;
use web::reply::Reply;

use crate::explorer::Explorer;
use crate::layout::{self, Page};

/// The media type of a page.
const HTML: &str = "text/html; charset=utf-8";

static PAGE: Text = Text { content_type: "text/html", doc: "An HTML page." };

/// The outcome of a view.
pub(crate) enum Response {
    Page(Page),
    /// To a path of ours.
    Redirect(String),
}

impl From<Page> for Response {
    fn from(page: Page) -> Self {
        Self::Page(page)
    }
}

/// A page that reads the index only.
pub(crate) trait View {
    const PATH: &'static str;
    const SUMMARY: &'static str;
    const PARAMS: &'static [Param] = &[];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError>;
}

/// A page that waits for a reply: of the routing API, or of a node.
pub(crate) trait WaitingView {
    const PATH: &'static str;
    const SUMMARY: &'static str;
    const PARAMS: &'static [Param];

    fn respond<'a>(explorer: &'a Explorer, call: &'a Call<'a>) -> BoxFuture<'a, Result<Response, HttpError>>;
}

/// What a form of a [`WaitingView`] does, at the same path.
pub(crate) trait RouteForm: WaitingView {
    fn submit<'a>(explorer: &'a Explorer, call: &'a Call<'a>) -> BoxFuture<'a, Result<Response, HttpError>>;
}

/// The endpoint of a view.
pub(crate) const fn page<V: View>() -> Endpoint<Explorer> {
    endpoint(V::PATH, V::SUMMARY, V::PARAMS, Handler::Sync(respond::<V>))
}

/// The endpoint of a view that waits for a reply.
pub(crate) const fn waiting_page<V: WaitingView>() -> Endpoint<Explorer> {
    endpoint(V::PATH, V::SUMMARY, V::PARAMS, Handler::Async(respond_later::<V>))
}

/// The endpoint of the form that a view of the routing API sends; its response is a redirect, or an error.
pub(crate) const fn route_form<V: RouteForm>() -> Endpoint<Explorer> {
    let endpoint = endpoint(V::PATH, V::SUMMARY, &[], Handler::Async(respond_to_form::<V>));
    Endpoint { method: Method::Post, ..endpoint }
}

const fn endpoint(
    path: &'static str,
    summary: &'static str,
    params: &'static [Param],
    handler: Handler<Explorer>,
) -> Endpoint<Explorer> {
    let (method, tag, cache) = (Method::Get, "Pages", MaxAge::LIST);
    Endpoint { method, path, tag, summary, params, response: &PAGE, handler, cache }
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn respond<V: View>(explorer: &Explorer, call: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(reply(explorer, V::PATH, V::respond(explorer, call)))
}

fn respond_later<'a, V: WaitingView>(
    explorer: &'a Explorer,
    call: &'a Call<'a>,
) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async move { Ok(reply(explorer, V::PATH, V::respond(explorer, call).await)) })
}

fn respond_to_form<'a, V: RouteForm>(
    explorer: &'a Explorer,
    call: &'a Call<'a>,
) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async move { Ok(reply(explorer, V::PATH, V::submit(explorer, call).await)) })
}

/// The response to an outcome. `path` is the template of the endpoint, or the path if there is none.
pub(crate) fn reply(explorer: &Explorer, path: &str, outcome: Result<Response, HttpError>) -> Reply {
    match outcome {
        Ok(Response::Page(page)) => html(explorer, StatusCode::OK, layout::page(explorer, path, &page)),
        Ok(Response::Redirect(location)) => Reply::see_other(format!("{}{location}", explorer.base())),
        Err(error) => {
            // The app logs the details of errors only, and this one becomes a page.
            if let Some(detail) = error.detail() {
                tracing::error!(path, detail, "request failed");
            }
            html(explorer, error.status(), layout::page(explorer, path, &layout::error(explorer, &error)))
        }
    }
}

fn html(explorer: &Explorer, status: StatusCode, page: Markup) -> Reply {
    let mut page = page.into_string();
    // The template engine leaves them as they are, and HTML forbids them (WHATWG §13.2.3.5).
    let is_forbidden = |letter: char| letter.is_control() && !letter.is_ascii_whitespace();
    if page.contains(is_forbidden) {
        page = page.replace(is_forbidden, "\u{fffd}");
    }
    if !explorer.base().is_empty() {
        // The template engine escapes quotes in texts, so only attributes with a path of ours begin so.
        page = page.replace("=\"/", &format!("=\"{}/", explorer.base()));
    }
    Reply { status, content_type: HTML, ..Reply::json(page) }
}
