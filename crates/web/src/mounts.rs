//! The apps of several chains behind one socket.
//!
//! | Request | Answered by |
//! |---|---|
//! | `/c/{chain}/…` | the app of that chain, which gets the rest of the path |
//! | `/c` | the list of the chains, JSON |
//! | `/healthz`, `/readyz` | the process: ready if every chain is |
//! | with a host name of a chain | the app of that chain |
//! | any other | the app of the first chain |
//!
//! # Invariants
//! * A chain whose database is not open answers 503, and never delays another one.
//! * The limits of clients hold for every response but those to health probes.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::header::HOST;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery};
use http::{Response, Uri};
use serde_json::json;

use crate::app::App;
use crate::cors::Cors;
use crate::http_error::HttpError;
use crate::percent::decode_segment;
use crate::router::RouteError;

/// Prefix of the paths of a chain.
pub const PREFIX: &str = "/c/";

/// The path of the list of chains.
const LIST: &str = "/c";

/// The app of a chain; empty until its database is open.
pub type Slot<A> = Arc<OnceLock<Arc<App<A>>>>;

/// One app of a server: that of a chain.
pub struct Mount<A: 'static> {
    /// The chain's id.
    pub id: String,
    /// Host names, without ports.
    pub hosts: Vec<String>,
    /// The app.
    pub app: Slot<A>,
}

/// The apps of a server of several chains.
pub struct Mounts<A: 'static> {
    first: Mount<A>,
    others: Vec<Mount<A>>,
    /// Answers the health probes of the process.
    process: App<()>,
}

impl<A> Mounts<A> {
    /// `first` also answers requests that name no chain. `ready` is the readiness check of the process.
    ///
    /// # Errors
    /// None: see [`App::starting`].
    pub fn new(
        first: Mount<A>,
        others: Vec<Mount<A>>,
        ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Self, RouteError> {
        Ok(Self { first, others, process: App::starting(ready)? })
    }

    /// Sets the origins that may read the responses that no app gives.
    #[must_use]
    pub fn with_cors(self, cors: Cors) -> Self {
        Self { process: self.process.with_cors(cors), ..self }
    }

    fn all(&self) -> impl Iterator<Item = &Mount<A>> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The app of a request, whose path loses the prefix of the chain; the response if there is none.
    #[expect(clippy::result_large_err, reason = "the caller returns the response")]
    fn select(&self, head: &mut Parts) -> Result<&Arc<App<A>>, Response<Bytes>> {
        let path = head.uri.path();
        let chain = if let Some(rest) = path.strip_prefix(PREFIX) {
            let (id, _) = rest.split_once('/').unwrap_or((rest, ""));
            let length = PREFIX.len() + id.len();
            let id = decode_segment(id).unwrap_or_default();
            let unknown = || {
                let error = self.unknown(&id);
                let page = self.first.app.get().and_then(|app| app.error_page(head, &error));
                page.unwrap_or_else(|| error.response())
            };
            let chain = self.all().find(|chain| chain.id == id).ok_or_else(unknown)?;
            head.uri = without_prefix(&head.uri, length).map_err(|error| error.response())?;
            chain
        } else if path == LIST {
            return Err(self.list());
        } else {
            host(head).and_then(|host| self.of_host(&host)).unwrap_or(&self.first)
        };
        let waiting = || HttpError::unavailable(format!("the database of {} is not open yet", chain.id));
        chain.app.get().ok_or_else(|| waiting().response())
    }

    fn of_host(&self, host: &str) -> Option<&Mount<A>> {
        // With a dot at its end, a name is that of the root (RFC 1034 §3.1): the same host.
        let name = |host: &str| host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let host = name(host);
        self.all().find(|chain| chain.hosts.iter().any(|own| name(own) == host))
    }

    fn unknown(&self, id: &str) -> HttpError {
        let known: Vec<_> = self.all().map(|chain| chain.id.as_str()).collect();
        HttpError::not_found(format!("there is no chain `{id}` here: {}", known.join(", ")))
    }

    fn list(&self) -> Response<Bytes> {
        let chain = |chain: &Mount<A>| {
            json!({
                "chain_id": chain.id,
                "path": format!("{PREFIX}{}", chain.id),
                "hosts": chain.hosts,
                "open": chain.app.get().is_some(),
            })
        };
        let body = json!({ "chains": self.all().map(chain).collect::<Vec<_>>() });
        let mut response = Response::new(Bytes::from(body.to_string()));
        let json = http::HeaderValue::from_static("application/json");
        response.headers_mut().insert(http::header::CONTENT_TYPE, json);
        response
    }
}

/// The apps of a server.
pub(crate) enum Apps<A: 'static> {
    One(Arc<App<A>>),
    Several(Box<Mounts<A>>),
}

impl<A> Apps<A> {
    /// The response to a health probe of the process, unless an app answers it.
    pub(crate) fn probe(&self, head: &Parts) -> Option<Response<Bytes>> {
        match self {
            Self::One(_) => None,
            Self::Several(mounts) => mounts.process.probe(head),
        }
    }

    /// The app of a request that is not such a probe, see [`Mounts`]; otherwise the response.
    #[expect(clippy::result_large_err, reason = "the caller returns the response")]
    pub(crate) fn select(&self, head: &mut Parts) -> Result<&Arc<App<A>>, Response<Bytes>> {
        match self {
            Self::One(app) => Ok(app),
            Self::Several(mounts) => {
                mounts.select(head).map_err(|response| mounts.process.with_cors_headers(head, response))
            }
        }
    }

    /// Answers a request that has no app and exceeds a limit.
    pub(crate) fn reject(&self, head: &Parts, error: &HttpError) -> Response<Bytes> {
        match self {
            Self::One(app) => app.reject(head, error),
            Self::Several(mounts) => mounts.process.reject(head, error),
        }
    }
}

/// The host that a request names, without the port.
fn host(head: &Parts) -> Option<String> {
    if let Some(host) = head.uri.host() {
        return Some(host.to_owned());
    }
    let host = Authority::try_from(head.headers.get(HOST)?.as_bytes()).ok()?;
    Some(host.host().to_owned())
}

/// The URI without the first `length` bytes of its path.
fn without_prefix(uri: &Uri, length: usize) -> Result<Uri, HttpError> {
    let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    let rest = &target[length..];
    let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
    rest.parse().map_err(|_| HttpError::bad_request("the request target is not a path"))
}
