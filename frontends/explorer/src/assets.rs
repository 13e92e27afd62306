//! Style sheet, scripts and icon, embedded in the program.
//!
//! Their links carry a hash of the contents, so browsers may keep them for a year.

use std::sync::LazyLock;

use http::StatusCode;
use twox_hash::XxHash3_64;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param, Type};
use web::http_error::HttpError;
use web::openapi::schema::Text;
use web::reply::Reply;

use crate::explorer::Explorer;

const STYLE: &str = include_str!("../assets/explorer.css");
const SCRIPT: &str = include_str!("../assets/explorer.js");
const THEME: &str = include_str!("../assets/theme.js");
/// Cursors and filters would lead crawlers through endless pages.
const ROBOTS: &str = "User-agent: *\nDisallow: /indexer/\nDisallow: /v2/\nDisallow: /search\nDisallow: /*?\n";
const ICON: &str = include_str!("../assets/icon.svg");

/// A year.
const FOR_EVER: MaxAge = MaxAge(31_536_000);

const PARAMS: &[Param] = &[Param::query("v", Type::String, "Hash of the contents, for caches only.")];

static FILE: Text = Text { content_type: "text/plain", doc: "A file of the pages." };

/// The files.
pub(crate) const ENDPOINTS: &[Endpoint<Explorer>] = &[
    file("/assets/explorer.css", |_, _| Ok(reply("text/css; charset=utf-8", STYLE))),
    file("/assets/explorer.js", |_, _| Ok(reply("text/javascript; charset=utf-8", SCRIPT))),
    file("/assets/theme.js", |_, _| Ok(reply("text/javascript; charset=utf-8", THEME))),
    file("/assets/icon.svg", |_, _| Ok(reply("image/svg+xml", ICON))),
    Endpoint {
        cache: MaxAge::RECORD,
        ..file("/robots.txt", |_, _| Ok(reply("text/plain; charset=utf-8", ROBOTS)))
    },
];

/// Link to the style sheet.
pub(crate) static STYLE_LINK: LazyLock<String> = LazyLock::new(|| link("/assets/explorer.css", STYLE));
/// Link to the script.
pub(crate) static SCRIPT_LINK: LazyLock<String> = LazyLock::new(|| link("/assets/explorer.js", SCRIPT));
/// Link to the script that runs before the page is painted.
pub(crate) static THEME_LINK: LazyLock<String> = LazyLock::new(|| link("/assets/theme.js", THEME));
/// Link to the icon.
pub(crate) static ICON_LINK: LazyLock<String> = LazyLock::new(|| link("/assets/icon.svg", ICON));

fn link(path: &str, contents: &str) -> String {
    format!("{path}?v={:016x}", XxHash3_64::oneshot(contents.as_bytes()))
}

const fn file(
    path: &'static str,
    handler: fn(&Explorer, &Call<'_>) -> Result<Reply, HttpError>,
) -> Endpoint<Explorer> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "Assets",
        summary: "A file of the pages.",
        params: PARAMS,
        response: &FILE,
        handler: Handler::Sync(handler),
        cache: FOR_EVER,
    }
}

fn reply(content_type: &'static str, contents: &'static str) -> Reply {
    Reply { status: StatusCode::OK, content_type, ..Reply::json(contents) }
}
