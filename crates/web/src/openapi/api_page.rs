//! The interactive page over an OpenAPI document: lists the operations and sends requests.
//!
//! A page of HTML, script and style, embedded in the program; it reads `../openapi.json` and needs no other host. Paths are
//! relative, because the server works wherever it is mounted.

use crate::call::Call;
use crate::endpoint::{Endpoint, Handler, MaxAge, Method};
use crate::http_error::HttpError;
use crate::openapi::schema::{Object, Text};
use crate::reply::Reply;

/// Path of the page.
pub const PATH: &str = "/swagger";

/// The page and its files, for the endpoint list of an API. They describe the API and are not part of it.
pub const fn endpoints<A: 'static>() -> [Endpoint<A>; 3] {
    [
        file(PATH, &HTML, Handler::Sync(page)),
        file("/swagger/page.js", &SCRIPT, Handler::Sync(script)),
        file("/swagger/page.css", &STYLE, Handler::Sync(style)),
    ]
}

/// True for the paths of [`endpoints`].
pub fn has(path: &str) -> bool {
    endpoints::<()>().iter().any(|endpoint| endpoint.path == path)
}

static HTML: Text = Text { content_type: "text/html; charset=utf-8", doc: "The interactive documentation." };
static SCRIPT: Text = Text { content_type: "text/javascript; charset=utf-8", doc: "Its script." };
static STYLE: Text = Text { content_type: "text/css; charset=utf-8", doc: "Its style." };

const fn file<A: 'static>(
    path: &'static str,
    response: &'static dyn Object,
    handler: Handler<A>,
) -> Endpoint<A> {
    let summary = "The interactive documentation of the API.";
    Endpoint {
        method: Method::Get,
        path,
        tag: "App",
        summary,
        params: &[],
        response,
        handler,
        cache: MaxAge::RECORD,
    }
}

fn page<A>(_: &A, _: &Call<'_>) -> Result<Reply, HttpError> {
    reply(&HTML, include_str!("api_page/page.html"))
}

fn script<A>(_: &A, _: &Call<'_>) -> Result<Reply, HttpError> {
    reply(&SCRIPT, include_str!("api_page/page.js"))
}

fn style<A>(_: &A, _: &Call<'_>) -> Result<Reply, HttpError> {
    reply(&STYLE, include_str!("api_page/page.css"))
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn reply(text: &Text, body: &'static str) -> Result<Reply, HttpError> {
    Ok(Reply { content_type: text.content_type, ..Reply::json(body) })
}

#[cfg(test)]
mod tests {
    use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};

    use super::*;
    use crate::app::App;

    static GROUPS: &[&[Endpoint<()>]] = &[&endpoints()];

    #[test]
    fn the_page_loads_its_own_files_and_nothing_else() {
        let app = App::new((), GROUPS).unwrap();
        let page = app.get("/swagger/");
        assert_eq!(page.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        let policy = page.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let html = std::str::from_utf8(page.body()).unwrap();
        let mut size = html.len();
        for file in ["/swagger/page.js", "/swagger/page.css"] {
            assert!(html.contains(file), "{file}");
            let file = app.get(file);
            size += file.body().len();
            assert!(!file.headers().contains_key(CONTENT_SECURITY_POLICY));
            assert!(!std::str::from_utf8(file.body()).unwrap().contains("://"));
        }
        assert!(!html.contains("://") && !html.contains("<style") && size < 30_000, "{size}");
    }
}
