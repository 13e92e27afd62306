//! Health probes of every server: `/healthz` (liveness) and `/readyz` (readiness).
//!
//! # Invariants
//! * Probes bypass the rate and concurrency limits and do not count towards them.
//! * They need no endpoint; `openapi::probes` describes them.
//!
//! Probes share the server threads, so they wait while every thread blocks on the disk.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderValue, Response};

use crate::http_error::HttpError;

/// The methods of both paths, as `Allow` lists them.
pub(crate) const METHODS: &str = "GET, HEAD, OPTIONS";

/// A kind of probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Liveness: the process answers.
    Live,
    /// Readiness: the process should receive requests.
    Ready,
}

impl Probe {
    /// `None` for every other path. As with endpoints, case and a trailing slash do not matter.
    pub(crate) fn from_path(path: &str) -> Option<Self> {
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

/// The readiness check; its error is the reason.
type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What a ready process lacks.
type Remark = Box<dyn Fn() -> Option<String> + Send + Sync>;

/// The probes.
pub(crate) struct Health {
    check: Check,
    remark: Remark,
}

impl Health {
    pub(crate) fn new(ready: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { check: Box::new(ready), remark: Box::new(|| None) }
    }

    /// Adds what a ready process lacks to its response to [`Probe::Ready`].
    pub(crate) fn with_remark(self, remark: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self { remark: Box::new(remark), ..self }
    }

    /// 200, or 503 with the reason.
    pub(crate) fn answer(&self, probe: Probe) -> Response<Bytes> {
        let ready = match probe {
            Probe::Live => Ok(None),
            Probe::Ready => self.check().map(|()| (self.remark)()),
        };
        ready.map_or_else(|reason| unavailable(&reason).response(), ok)
    }

    /// The error for a request during startup.
    pub(crate) fn not_ready(&self) -> HttpError {
        // A process that is ready but has no API yet is still starting.
        unavailable(&self.check().err().unwrap_or_else(|| "starting".to_owned()))
    }

    fn check(&self) -> Result<(), String> {
        // The check only reads shared state, so a panic leaves nothing inconsistent.
        catch_unwind(AssertUnwindSafe(|| (self.check)()))
            .unwrap_or_else(|_| Err("the check of readiness panicked".to_owned()))
    }
}

impl Default for Health {
    /// Always ready.
    fn default() -> Self {
        Self::new(|| Ok(()))
    }
}

fn unavailable(reason: &str) -> HttpError {
    HttpError::unavailable(format!("not ready: {reason}"))
}

fn ok(remark: Option<String>) -> Response<Bytes> {
    let body = remark.map_or(Bytes::from_static(b"ok"), |remark| format!("ok, but {remark}").into());
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
