//! Two paths for whoever watches over the process, on every server: `/healthz` and `/readyz`.
//!
//! What must hold: they are answered when other requests are refused for their number, and count as none of them; they
//! need no endpoint and stand in no document. They run on the threads of all requests, so while every thread waits for
//! a disk they wait as well.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};

use crate::refusal::Refusal;

/// The methods of both paths, as `Allow` lists them.
pub(crate) const METHODS: &str = "GET, HEAD, OPTIONS";

/// What a path of this module asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Whether the process answers at all.
    Live,
    /// Whether it should be given requests.
    Ready,
}

impl Probe {
    /// None for every other path. As with endpoints, neither case nor a slash at the end matters.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let path = path.strip_suffix('/').unwrap_or(path);
        let is = |name: &str| path.eq_ignore_ascii_case(name);
        if is("/healthz") {
            Some(Self::Live)
        } else if is("/readyz") {
            Some(Self::Ready)
        } else {
            None
        }
    }
}

/// Says why the program is not ready.
pub(crate) struct Health(Box<dyn Fn() -> Result<(), String> + Send + Sync>);

impl Health {
    pub(crate) fn new(ready: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self(Box::new(ready))
    }

    /// 200, or 503 with the reason.
    pub(crate) fn answer(&self, probe: Probe) -> Response<Bytes> {
        let ready = match probe {
            Probe::Live => Ok(()),
            Probe::Ready => self.check(),
        };
        ready.map_or_else(|reason| not_ready(&reason).response(), |()| well())
    }

    /// The answer to a request that cannot be answered yet.
    pub(crate) fn refusal(&self) -> Refusal {
        // Ready and without an API is a moment of the start.
        not_ready(&self.check().err().unwrap_or_else(|| "starting".to_owned()))
    }

    fn check(&self) -> Result<(), String> {
        // It only reads what it shares with others, so a panic leaves nothing half done.
        catch_unwind(AssertUnwindSafe(|| (self.0)()))
            .unwrap_or_else(|_| Err("the check of readiness panicked".to_owned()))
    }
}

impl Default for Health {
    /// Ready as soon as it answers.
    fn default() -> Self {
        Self::new(|| Ok(()))
    }
}

fn not_ready(reason: &str) -> Refusal {
    Refusal::unavailable(format!("not ready: {reason}"))
}

fn well() -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(b"ok"));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
