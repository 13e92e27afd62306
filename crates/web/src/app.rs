//! The request pipeline: routing, handler, entity tag, caching headers, compression and CORS.
//!
//! No socket is involved, so tests of responses need none. A panic in a handler becomes a 500. `stream` opens event
//! streams.

mod fallback;
mod later;
mod request;
mod stream;
pub(crate) mod success;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};

use crate::call::Call;
use crate::cors::Cors;
use crate::endpoint::{Endpoint, Handler, HandlerKind};
use crate::health::{self, Health, Probe};
use crate::http_error::HttpError;
use crate::limits::lane;
use crate::meter::{Meter, NO_ENDPOINT};
use crate::reply::Reply;
use crate::router::{Found, Route, RouteError, Router};
pub use fallback::Fallback;
use request::{
    STATUS_CODE, call, internal_request, method_not_allowed, no_endpoint, panicked, span_of, with_allow,
};
use success::success;

/// An API: the shared state of its handlers, and its endpoints.
pub struct App<A: 'static> {
    state: A,
    router: Router<A>,
    cors: Cors,
    health: Health,
    /// Meter of requests that match no endpoint.
    unrouted: Meter,
    /// True if every path but the health probes answers 503.
    starting: bool,
    /// Added to every response of an endpoint.
    headers: HeaderMap,
    /// Answers the paths that no endpoint here has.
    fallback: Option<Arc<dyn Fallback>>,
    /// See [`App::with_error_page`].
    error_page: Option<ErrorPage<A>>,
    /// See [`App::with_error_body`].
    error_body: Option<ErrorBody>,
    /// The paths of WebSockets.
    websockets: &'static [&'static str],
    /// See [`App::with_missing`].
    missing: Missing,
}

/// Why a path has no endpoint, if there is more to say than that.
pub type Missing = fn(&str) -> Option<&'static str>;

/// The body of an error, in place of that of [`HttpError`]. JSON.
pub type ErrorBody = fn(&Parts, &HttpError) -> Bytes;

/// The reply in place of an error; `None` for the error in JSON.
pub type ErrorPage<A> = fn(&A, &Parts, &HttpError) -> Option<Reply>;

impl App<()> {
    /// The server before the database is open: every request but `/healthz` and `/readyz` gets 503 with the reason from
    /// `ready`.
    ///
    /// # Errors
    /// None: see [`Router::new`].
    pub fn starting(
        ready: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Result<Self, RouteError> {
        Ok(Self { starting: true, ..Self::new((), &[])?.with_ready(ready) })
    }
}

impl<A> App<A> {
    /// CORS allows every origin (see [`App::with_cors`]) and `/readyz` always succeeds (see [`App::with_ready`]).
    ///
    /// # Errors
    /// See [`Router::new`].
    pub fn new(state: A, groups: &'static [&'static [Endpoint<A>]]) -> Result<Self, RouteError> {
        let router = Router::new(groups)?;
        let unrouted = Meter::new(NO_ENDPOINT);
        let (cors, health) = (Cors::default(), Health::default());
        let (headers, fallback, starting) = (HeaderMap::new(), None, false);
        let (error_page, error_body, websockets) = (None, None, &[][..]);
        Ok(Self {
            state,
            router,
            cors,
            health,
            unrouted,
            starting,
            headers,
            fallback,
            error_page,
            error_body,
            websockets,
            missing: |_| None,
        })
    }

    /// Sets the allowed origins.
    #[must_use]
    pub fn with_cors(self, cors: Cors) -> Self {
        Self { cors, ..self }
    }

    /// Sets the readiness check of `/readyz`: 200, or 503 with the reason. It runs for every such request on a server
    /// thread, so it must not block.
    #[must_use]
    pub fn with_ready(self, ready: impl Fn() -> Result<(), String> + Send + Sync + 'static) -> Self {
        Self { health: Health::new(ready), ..self }
    }

    /// Sets what a ready process lacks, for the body of `/readyz`. As the check, it must not block.
    #[must_use]
    pub fn with_remark(self, remark: impl Fn() -> Option<String> + Send + Sync + 'static) -> Self {
        Self { health: self.health.with_remark(remark), ..self }
    }

    /// Sets what the 404 of a path without an endpoint says of it.
    #[must_use]
    pub fn with_missing(self, missing: Missing) -> Self {
        Self { missing, ..self }
    }

    /// Adds `headers` to every response of an endpoint.
    #[must_use]
    pub fn with_headers(self, headers: HeaderMap) -> Self {
        Self { headers, ..self }
    }

    /// Lets `fallback` answer the paths that no endpoint here has, and those of its own without parameters where the endpoint
    /// here has some. Health probes, limits and the 404 of a path that
    /// neither has stay with this app. Streams of `fallback` are not served.
    #[must_use]
    pub fn with_fallback(self, fallback: Arc<dyn Fallback>) -> Self {
        Self { fallback: Some(fallback), ..self }
    }

    /// Lets `error_page` answer the paths that no endpoint has, here and in the app that has this one as its fallback, and
    /// the requests of an endpoint here that fail.
    #[must_use]
    pub fn with_error_page(self, error_page: ErrorPage<A>) -> Self {
        Self { error_page: Some(error_page), ..self }
    }

    /// Sets the body of errors; status and headers stay.
    #[must_use]
    pub fn with_error_body(self, body: ErrorBody) -> Self {
        Self { error_body: Some(body), ..self }
    }

    /// Opens WebSockets at `paths`: a message is the body of a `POST` there, and the body of the response a message.
    #[must_use]
    pub fn with_websockets_at(self, paths: &'static [&'static str]) -> Self {
        Self { websockets: paths, ..self }
    }

    pub(crate) fn has_websocket_at(&self, path: &str) -> bool {
        self.websockets.contains(&path)
    }

    /// The shared state of the handlers.
    pub fn state(&self) -> &A {
        &self.state
    }

    /// Answers `GET target` without a socket; `target` is a path with an optional query.
    pub fn get(&self, target: &str) -> Response<Bytes> {
        match internal_request(Method::GET, target) {
            Ok(request) => self.respond(&request, b""),
            Err(error) => error.response(),
        }
    }

    /// Runs the handler of `GET target` in this process, for another interface over the same endpoints: no meter,
    /// entity
    /// tag, compression or header. `target` is a path with an optional query.
    ///
    /// # Errors
    /// Those of the handler; 404 if no endpoint has the path, and 500 if its handler is asynchronous or a stream.
    pub fn read(&self, target: &str) -> Result<Reply, HttpError> {
        let request = internal_request(Method::GET, target)?;
        let found = self.router.find(request.uri.path()).ok_or_else(|| no_endpoint(target))?;
        let route = found.route(&request.method).ok_or_else(|| no_endpoint(target))?;
        self.run(route, &call(route, &found, &request, b"")?)
    }

    /// Answers a request with a synchronous handler; one with an asynchronous handler gets 500, and the response to a
    /// stream
    /// has no body. The response to a `HEAD` still has its body, for the length.
    pub fn respond(&self, request: &Parts, body: &[u8]) -> Response<Bytes> {
        self.probe(request).unwrap_or_else(|| self.respond_at(self.find(request), request, body))
    }

    /// As [`App::respond`], for a request that is not a health probe and whose path was found.
    pub(crate) fn respond_at(
        &self,
        found: Option<Found<'_, '_, A>>,
        request: &Parts,
        body: &[u8],
    ) -> Response<Bytes> {
        let begun = Instant::now();
        match self.target(found, request) {
            Ok((route, _)) if route.endpoint.handler.kind() == HandlerKind::Stream => {
                self.stream(request).map_or_else(|response| response, |head| head.map(|_| Bytes::new()))
            }
            Ok((route, found)) => {
                let span = span_of(route, request);
                let _entered = span.enter();
                let outcome = call(route, &found, request, body).and_then(|call| self.run(route, &call));
                let response = self.finish(route, request, outcome, begun);
                span.record(STATUS_CODE, response.status().as_u16());
                response
            }
            Err(response) => {
                if let Some(fallback) = self.fallback_of(request) {
                    return fallback.respond(request, body);
                }
                let page = match response.status() {
                    StatusCode::NOT_FOUND => self.error_page(request, &no_endpoint(request.uri.path())),
                    _ => None,
                };
                let response = page.unwrap_or(response);
                self.unrouted.count(response.status());
                self.with_cors_headers(request, response)
            }
        }
    }

    /// The response in place of an error, if it is not the error in JSON.
    pub(crate) fn error_page(&self, request: &Parts, error: &HttpError) -> Option<Response<Bytes>> {
        let Some(reply) = self.error_page.and_then(|page| page(&self.state, request, error)) else {
            return self.fallback.as_deref()?.error_page(request, error);
        };
        let mut response = success(&HeaderValue::from_static("no-store"), request, reply);
        response.headers_mut().extend(self.headers.clone());
        Some(response)
    }

    /// The routes of a request's path. Those with parameters yield to a path of the fallback in full.
    pub(crate) fn find<'p>(&self, request: &'p Parts) -> Option<Found<'_, 'p, A>> {
        let path = request.uri.path();
        let found = self.router.find(path)?;
        let yields = || self.fallback.as_deref().is_some_and(|fallback| fallback.has_in_full(path));
        (found.is_in_full() || !yields()).then_some(found)
    }

    /// The kind of a request's handler; [`HandlerKind::Sync`] if no endpoint has its path, and for the streams of a
    /// fallback.
    pub fn kind(&self, request: &Parts) -> HandlerKind {
        self.kind_at(self.find(request).as_ref(), request)
    }

    /// As [`App::kind`], for a request whose path was found.
    pub(crate) fn kind_at(&self, found: Option<&Found<'_, '_, A>>, request: &Parts) -> HandlerKind {
        if let Some(route) = found.and_then(|found| found.route(&request.method)) {
            return route.endpoint.handler.kind();
        }
        let kind = self.fallback_of(request).map(|fallback| fallback.kind(request));
        kind.filter(|kind| *kind != HandlerKind::Stream).unwrap_or(HandlerKind::Sync)
    }

    /// The response to `/healthz` or `/readyz`; `None` for other paths.
    pub(crate) fn probe(&self, request: &Parts) -> Option<Response<Bytes>> {
        let probe = Probe::from_path(request.uri.path())?;
        let response = match request.method {
            Method::GET | Method::HEAD => self.health.answer(probe),
            Method::OPTIONS => self.options(request, health::METHODS),
            _ => with_allow(self.failure(request, &method_not_allowed()), health::METHODS),
        };
        Some(self.with_cors_headers(request, response))
    }

    /// Answers a request that was rejected before its handler ran, or whose handler timed out.
    pub(crate) fn reject(&self, request: &Parts, error: &HttpError) -> Response<Bytes> {
        self.route(request).map_or(&self.unrouted, |route| &route.meter).count(error.status());
        self.with_cors_headers(request, self.failure(request, error))
    }

    /// The response to a request that fails.
    fn failure(&self, request: &Parts, error: &HttpError) -> Response<Bytes> {
        let mut response = error.response();
        if let Some(body) = self.error_body {
            *response.body_mut() = body(request, error);
        }
        response
    }

    pub(crate) fn with_cors_headers(
        &self,
        request: &Parts,
        mut response: Response<Bytes>,
    ) -> Response<Bytes> {
        self.cors.allow(&request.headers, response.headers_mut());
        response
    }

    /// The response for the outcome of a handler; updates the meter of the route.
    fn finish(
        &self,
        route: &Route<A>,
        request: &Parts,
        outcome: Result<Reply, HttpError>,
        begun: Instant,
    ) -> Response<Bytes> {
        if lane::needs().is_some() {
            // Dropped: the handler runs again in another lane.
            return Response::default();
        }
        let mut response = match outcome {
            Ok(reply) => success(&route.cache_control, request, reply),
            Err(error) => {
                if let Some(detail) = error.detail() {
                    tracing::error!(path = route.endpoint.path, detail, "request failed");
                }
                let page = self.error_page.and_then(|page| page(&self.state, request, &error));
                page.map_or_else(
                    || self.failure(request, &error),
                    |page| success(&HeaderValue::from_static("no-store"), request, page),
                )
            }
        };
        route.meter.observe(response.status(), begun.elapsed());
        if !self.headers.is_empty() {
            response.headers_mut().extend(self.headers.clone());
        }
        self.with_cors_headers(request, response)
    }

    fn run(&self, route: &Route<A>, call: &Call<'_>) -> Result<Reply, HttpError> {
        match route.endpoint.handler {
            // Handlers only read shared state, so a panic leaves nothing inconsistent.
            Handler::Sync(handler) => catch_unwind(AssertUnwindSafe(|| handler(&self.state, call)))
                .unwrap_or_else(|_| Err(panicked())),
            Handler::Async(_) => {
                Err(HttpError::internal("an asynchronous endpoint was called synchronously"))
            }
            Handler::Stream(_) => Err(HttpError::internal("a stream was called for a reply")),
        }
    }

    fn route(&self, request: &Parts) -> Option<&Route<A>> {
        self.router.find(request.uri.path())?.route(&request.method)
    }

    /// The endpoint of a request, or the response if there is none.
    #[expect(clippy::result_large_err, reason = "the caller returns the response")]
    fn target<'r, 'p>(
        &self,
        found: Option<Found<'r, 'p, A>>,
        request: &Parts,
    ) -> Result<(&'r Route<A>, Found<'r, 'p, A>), Response<Bytes>> {
        let (method, path) = (&request.method, request.uri.path());
        let Some(found) = found else {
            let reason = (self.missing)(path).map(|reason| format!(": {reason}")).unwrap_or_default();
            let not_found = || HttpError::not_found(format!("Cannot {method} {path}{reason}"));
            let error = if self.starting { self.health.not_ready() } else { not_found() };
            return Err(self.failure(request, &error));
        };
        match found.route(method) {
            Some(route) => Ok((route, found)),
            None if *method == Method::OPTIONS => Err(self.options(request, found.allow())),
            None => Err(with_allow(self.failure(request, &method_not_allowed()), found.allow())),
        }
    }

    fn options(&self, request: &Parts, methods: &'static str) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        *response.status_mut() = StatusCode::NO_CONTENT;
        self.cors.options(&request.headers, methods, response.headers_mut());
        response
    }
}
