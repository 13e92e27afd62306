//! Otterscan's pages from a folder, which is the result of its build, and the configuration that they read.
//!
//! # Invariants
//! * Files are read once, at the start: a request names a row of a table, and no path.
//! * What is no file is the first page if a browser opens it as a page, because the pages have routes of their own; a script that
//!   asks for it gets a 404.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, HeaderValue};
use serde_json::json;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema::Text;
use web::reply::{Prepared, Reply};

/// Maximum number and bytes of the files: the build of version 2.10 has 200 of 7 MB.
const MAX_FILES: usize = 4096;
const MAX_BYTES: u64 = 64 << 20;

/// Maximum depth of folders: that of the paths that the server takes.
const MAX_DEPTH: usize = 4;

/// The first page.
const INDEX: &str = "index.html";

/// A year: the build names its assets by their content.
const FOR_EVER: MaxAge = MaxAge(31_536_000);

/// Name of the native currency if none is set.
const NATIVE: &str = "native";

/// What the pages may do: everything from here, colours in the code and pictures made there. They ask no other server.
const POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self' 'unsafe-inline'; \
                      img-src 'self' data: blob:; font-src 'self' data:; worker-src 'self' blob:; base-uri 'none'; \
                      form-action 'self'; frame-ancestors 'none'";

static FILE: Text = Text { content_type: "text/html", doc: "A file of the pages." };

/// Why a folder cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// A file or folder cannot be read.
    #[error("{0}: {1}")]
    Unreadable(PathBuf, #[source] std::io::Error),
    /// The first page is missing.
    #[error("{0} has no index.html: name the result of Otterscan's build, usually the folder `dist`")]
    NoIndex(PathBuf),
    /// A file is none, or its name is not UTF-8.
    #[error("{0} is no plain file or folder: replace links by what they link to")]
    NotPlain(PathBuf),
    /// There are too many files.
    #[error(
        "{0} has more than {MAX_FILES} files, {MAX_BYTES} bytes or {MAX_DEPTH} levels of folders: name the result of a build only"
    )]
    TooMuch(PathBuf),
}

/// The pages.
pub struct Otterscan {
    files: BTreeMap<String, File>,
    /// Symbol of the native currency.
    currency: String,
}

struct File {
    content_type: &'static str,
    content: Prepared,
}

/// What has the pages.
pub(crate) trait Site: 'static {
    /// The pages.
    fn otterscan(&self) -> Option<&Otterscan>;
    /// The id of the Cosmos chain, once there is a database, and whether there are lists of tokens.
    fn chain(&self) -> Option<(String, bool)>;
}

impl Otterscan {
    /// Reads the files of `folder`. `currency` is the symbol of the chain's native currency, if it is known.
    ///
    /// # Errors
    /// If it is no build of Otterscan, or too large.
    pub fn read(folder: &Path, currency: Option<String>) -> Result<Self, Unusable> {
        let (mut files, mut bytes, mut waiting) =
            (BTreeMap::new(), 0, vec![(folder.to_owned(), String::new(), 1)]);
        while let Some((dir, prefix, depth)) = waiting.pop() {
            let unreadable = |error| Unusable::Unreadable(dir.clone(), error);
            for entry in std::fs::read_dir(&dir).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                let path = entry.path();
                let kind = entry.file_type().map_err(|error| Unusable::Unreadable(path.clone(), error))?;
                let Ok(name) = entry.file_name().into_string() else { return Err(Unusable::NotPlain(path)) };
                let name = format!("{prefix}{name}");
                if kind.is_dir() && depth < MAX_DEPTH {
                    waiting.push((path, format!("{name}/"), depth + 1));
                    continue;
                }
                if !kind.is_file() && !kind.is_dir() {
                    return Err(Unusable::NotPlain(path));
                }
                // Compressed copies; the server compresses.
                if matches!(extension(&name), "br" | "gz") {
                    continue;
                }
                let size = entry.metadata().map_err(|error| Unusable::Unreadable(path.clone(), error))?.len();
                bytes += size;
                if kind.is_dir() || files.len() == MAX_FILES || bytes > MAX_BYTES {
                    return Err(Unusable::TooMuch(folder.to_owned()));
                }
                let content = std::fs::read(&path).map_err(|error| Unusable::Unreadable(path, error))?;
                let content_type = content_type(&name);
                files.insert(name, File { content_type, content: Prepared::json(content) });
            }
        }
        if !files.contains_key(INDEX) {
            return Err(Unusable::NoIndex(folder.to_owned()));
        }
        Ok(Self { files, currency: currency.unwrap_or_else(|| NATIVE.to_owned()) })
    }

    /// The number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// False: there is a first page.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The file at `path`, or what is in its place.
    fn file(&self, path: &str, call: &Call<'_>) -> Result<Reply, HttpError> {
        let is_page = || {
            let last = path.rsplit('/').next().unwrap_or_default();
            !last.contains('.') && call.header("accept").is_some_and(|accept| accept.contains("text/html"))
        };
        let found = self.files.get(path).or_else(|| self.files.get(INDEX).filter(|_| is_page()));
        let file = found.ok_or_else(|| HttpError::not_found(format!("Cannot GET /{path}")))?;
        Ok(Reply { content_type: file.content_type, ..Reply::prepared(&file.content) })
    }

    /// The configuration of the pages, with the address that the browser has opened.
    fn config(&self, (chain_id, has_tokens): (&str, bool), call: &Call<'_>) -> Result<Reply, HttpError> {
        let host = call.header("host").ok_or_else(|| HttpError::bad_request("the request names no host"))?;
        // A proxy that ends TLS says so.
        let is_secure = call.header("x-forwarded-proto") == Some("https");
        let origin = format!("{}://{host}", if is_secure { "https" } else { "http" });
        let symbol = &self.currency;
        let config = json!({
            "erigonURL": format!("{origin}/"),
            // Names of functions and events, and logos, if the folder has them: a 404 says that there is none.
            "assetsURLPrefix": origin,
            // The pages of the methods `ots2_*`.
            "experimental": has_tokens,
            "chainInfo": {
                "name": chain_id,
                "faucets": [],
                // Values are in wei, whatever the decimals of the token.
                "nativeCurrency": { "name": symbol, "symbol": symbol, "decimals": 18 },
            },
            "branding": { "siteName": "Otterscan", "networkTitle": chain_id, "hideAnnouncements": true },
            // The defaults are servers elsewhere, which would learn who looks at what.
            "sourcify": {
                "sources": { "cairn": { "url": format!("{origin}/sourcify"), "backendFormat": "SourcifyAPIV2" } },
            },
        });
        Ok(Reply::json(config.to_string()))
    }
}

/// The headers of all responses.
pub(crate) fn headers() -> HeaderMap {
    let headers = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "same-origin"),
    ];
    headers.into_iter().map(|(name, value)| (name, HeaderValue::from_static(value))).collect()
}

/// The endpoints of a site.
pub(crate) const fn endpoints<A: Site>() -> [Endpoint<A>; 7] {
    [
        file("/", &[], |site, call| page(site, call, &[])),
        Endpoint {
            cache: FOR_EVER,
            ..file("/assets/{name}", &[NAME], |site, call| page(site, call, &["assets", call.text("name")]))
        },
        file("/config.json", &[], config),
        file("/{a}", &[A], |site, call| page(site, call, &[call.text("a")])),
        file("/{a}/{b}", &[A, B], |site, call| page(site, call, &[call.text("a"), call.text("b")])),
        file("/{a}/{b}/{c}", &[A, B, C], |site, call| {
            page(site, call, &[call.text("a"), call.text("b"), call.text("c")])
        }),
        file("/{a}/{b}/{c}/{d}", &[A, B, C, D], |site, call| {
            page(site, call, &[call.text("a"), call.text("b"), call.text("c"), call.text("d")])
        }),
    ]
}

const NAME: Param = Param::path("name", "A file, with the hash of its content in its name.");
const A: Param = Param::path("a", "A folder, a file or a page.");
const B: Param = Param::path("b", "As before.");
const C: Param = Param::path("c", "As before.");
const D: Param = Param::path("d", "As before.");

const fn file<A: Site>(
    path: &'static str,
    params: &'static [Param],
    handler: fn(&A, &Call<'_>) -> Result<Reply, HttpError>,
) -> Endpoint<A> {
    Endpoint {
        method: Method::Get,
        path,
        tag: "Otterscan",
        summary: "A file of Otterscan's pages.",
        params,
        response: &FILE,
        handler: Handler::Sync(handler),
        cache: MaxAge::LIST,
    }
}

fn page<A: Site>(site: &A, call: &Call<'_>, path: &[&str]) -> Result<Reply, HttpError> {
    let pages = site.otterscan().ok_or_else(|| HttpError::not_found("there are no pages"))?;
    match path {
        [] => pages.file(INDEX, call),
        segments => pages.file(&segments.join("/"), call),
    }
}

fn config<A: Site>(site: &A, call: &Call<'_>) -> Result<Reply, HttpError> {
    let (chain_id, has_tokens) =
        site.chain().ok_or_else(|| HttpError::unavailable("there is no database yet"))?;
    let pages = site.otterscan().ok_or_else(|| HttpError::not_found("there are no pages"))?;
    pages.config((&chain_id, has_tokens), call)
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// The media type of a file, by its name.
fn content_type(name: &str) -> &'static str {
    match extension(name) {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}
