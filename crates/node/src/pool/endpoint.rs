//! One URL of a service: a request as an HTTP exchange.
//!
//! # Invariants
//!
//! * A request holds an in-flight permit and has a time limit and a body limit.
//! * The result is a whole response with its status, or an error with the name of the endpoint. The service's client
//!   decodes the response.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use chain::excerpt;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::Full;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::error::{Error, RequestContext};
use crate::limits::Limits;
use crate::observer::{Exchange, Observer};
use crate::pool::in_flight::InFlightLimiter;
use crate::pool::large_replies::{LargeReplies, USUAL};
use crate::pool::transport::{Stream, Transport, location, retry_after};
use crate::state_at::{Probe, StateAt};
use crate::url::Url;

/// Selects the state that a REST query reads (SDK `GRPCBlockHeightHeader`).
const STATE_HEIGHT: HeaderName = HeaderName::from_static("x-cosmos-block-height");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("cairn/", env!("CARGO_PKG_VERSION")));

/// Longest wait for other large replies: each is read and derived in seconds.
const TURN: Duration = Duration::from_mins(5);
/// Bytes of a body that may be in a message.
const MAX_SHOWN: usize = 4096;

/// One request to a service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// Name in messages.
    pub(crate) name: String,
    /// Its height, for messages.
    pub(crate) height: Option<u64>,
    /// Appended to the address; empty for JSON-RPC by POST.
    pub(crate) path: String,
    /// The state height header.
    pub(crate) state_height: Option<u64>,
    /// Proof that the state must pass before the request is sent.
    pub(crate) probe: Option<Box<Probe>>,
    /// A JSON body makes it a POST.
    pub(crate) body: Option<Bytes>,
    /// Replaces the service's time limit.
    pub(crate) timeout: Option<Duration>,
    /// True if a reply shows that the endpoint has the block at `height`.
    pub(crate) shows_height: bool,
    /// Bytes up to which the reply is of usual size, if they are not the default.
    pub(crate) expects: Option<usize>,
}

impl Request {
    /// A GET of `path`.
    pub(crate) fn get(name: &str, path: String) -> Self {
        Self { name: name.to_owned(), path, ..Self::default() }
    }

    /// A POST of a JSON text.
    pub(crate) fn post(name: &str, path: String, json: String) -> Self {
        Self { body: Some(Bytes::from(json)), ..Self::get(name, path) }
    }

    /// Sets the height, for messages.
    pub(crate) fn about(self, height: u64) -> Self {
        Self { height: Some(height), ..self }
    }

    /// Sets the height of a block that only an endpoint at or above it can return.
    pub(crate) fn about_block(self, height: u64) -> Self {
        Self { height: Some(height), shows_height: true, ..self }
    }

    /// Sets the state to read.
    pub(crate) fn in_state(self, state: impl Into<StateAt>) -> Self {
        let StateAt { height, probe, exact: _ } = state.into();
        Self { height, state_height: height, probe: probe.map(Box::new), ..self }
    }

    /// Sets the bytes up to which the reply is of usual size; 0 for the default.
    pub(crate) fn expecting(self, bytes: usize) -> Self {
        Self { expects: (bytes > 0).then_some(bytes), ..self }
    }

    /// Sets the time limit.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }
}

/// One URL, with the shared transport and limiter of its service.
pub(crate) struct Endpoint {
    service: &'static str,
    url: Url,
    limits: Limits,
    transport: Arc<Transport>,
    limiter: Arc<InFlightLimiter>,
    large_replies: Arc<LargeReplies>,
    observer: OnceLock<Observer>,
}

impl Endpoint {
    pub(crate) fn new(
        service: &'static str,
        url: Url,
        limits: Limits,
        transport: Arc<Transport>,
        limiter: Arc<InFlightLimiter>,
        large_replies: Arc<LargeReplies>,
    ) -> Self {
        Self { service, url, limits, transport, limiter, large_replies, observer: OnceLock::new() }
    }

    pub(crate) fn observe(&self, observer: Observer) {
        // The first observer stays.
        self.observer.get_or_init(|| observer);
    }

    /// Removes the secrets of the address from the texts of an error.
    pub(crate) fn redact(&self, error: &mut Error) {
        error.change_texts(|text| self.url.redact(text));
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The context of errors of this request.
    pub(crate) fn context(&self, request: &Request) -> RequestContext {
        let (service, host) = (self.service, Arc::clone(self.url.host()));
        RequestContext { service, host, method: excerpt(&request.name).into(), height: request.height }
    }

    /// Sends the request and reads the whole response; one larger than usual when no other of the service is held. A rate
    /// limit and a redirect are errors; the caller reads any other status.
    pub(crate) async fn send(&self, request: &Request) -> Result<Response<Bytes>, Error> {
        let usual = request.expects.unwrap_or(USUAL).min(self.limits.body);
        let response = match self.exchange(request, usual).await {
            Err(Error::TooLarge { at, .. }) if usual < self.limits.body => {
                let (endpoint, method, height) = (&at.host, &at.method, at.height);
                tracing::info!(%endpoint, %method, height, usual_bytes = usual, "large reply, read when no other is held");
                let waiting = self.large_replies.turn(request.height);
                let turn = tokio::time::timeout(TURN, waiting).await;
                let turn = turn.map_err(|_| Error::TimedOut { at, after: TURN })?;
                self.exchange(request, self.limits.body).await?.map(|body| turn.hold(body))
            }
            response => {
                let response = response?;
                // A large reply says nothing about the next ones.
                self.limiter.record_size(response.body().len());
                response
            }
        };
        self.check_rate_limit(request, &response)?;
        let status = response.status();
        if status.is_redirection() {
            let to = location(response.headers()).unwrap_or_else(|| "nowhere".to_owned());
            return Err(Error::Redirected { at: self.context(request), status: status.as_u16(), to });
        }
        if let Some(observer) = self.observer.get() {
            observer(Exchange {
                service: self.service,
                path: &request.path,
                state_height: request.state_height,
                body: request.body.as_deref(),
                status: status.as_u16(),
                answer: response.body(),
            });
        }
        Ok(response)
    }

    async fn exchange(&self, request: &Request, limit: usize) -> Result<Response<Bytes>, Error> {
        let http = self.http_request(request)?;
        let after = request.timeout.unwrap_or(self.limits.timeout);
        let _permit = self.limiter.acquire().await;
        let exchange = self.transport.exchange(http, limit);
        match tokio::time::timeout(after, exchange).await {
            Err(_) => Err(Error::TimedOut { at: self.context(request), after }),
            Ok(outcome) => outcome.map_err(|failure| failure.into_error(self.context(request))),
        }
    }

    /// Opens a connection for this request alone. The caller sets the time limit.
    pub(crate) async fn connect(
        &self,
        request: &Request,
    ) -> Result<(http::Request<Full<Bytes>>, Stream), Error> {
        let http = self.http_request(request)?;
        let stream = self.transport.connect(http.uri().clone()).await;
        Ok((http, stream.map_err(|failure| failure.into_error(self.context(request)))?))
    }

    /// The request with its address and headers.
    fn http_request(&self, request: &Request) -> Result<http::Request<Full<Bytes>>, Error> {
        let invalid =
            |e: http::Error| Error::InvalidRequest { at: self.context(request), reason: e.to_string() };
        let uri = self.url.join(&request.path).map_err(invalid)?;
        let mut http = http::Request::builder().uri(uri).header(ACCEPT, JSON).header(USER_AGENT, AGENT);
        if !self.url.is_loopback() {
            http = http.header(ACCEPT_ENCODING, GZIP);
        }
        if let Some(authorization) = self.url.authorization() {
            http = http.header(AUTHORIZATION, authorization);
        }
        if let Some(height) = request.state_height {
            http = http.header(STATE_HEIGHT, HeaderValue::from(height));
        }
        let http = match &request.body {
            None => http.body(Full::default()),
            Some(body) => http.method(Method::POST).header(CONTENT_TYPE, JSON).body(Full::new(body.clone())),
        };
        http.map_err(invalid)
    }

    /// Fails on a rate limit (429) and on unavailability (503).
    pub(crate) fn check_rate_limit<B>(&self, request: &Request, response: &Response<B>) -> Result<(), Error> {
        let status = response.status();
        if ![StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE].contains(&status) {
            return Ok(());
        }
        let retry_after = retry_after(response.headers());
        Err(Error::Busy { at: self.context(request), status: status.as_u16(), retry_after })
    }

    pub(crate) fn malformed(&self, request: &Request, reason: impl ToString) -> Error {
        Error::Malformed { at: self.context(request), reason: reason.to_string() }
    }

    /// A response that is not JSON.
    pub(crate) fn unreadable(
        &self,
        request: &Request,
        response: &Response<Bytes>,
        reason: impl ToString,
    ) -> Error {
        // Before it is cut, which might leave a part of a secret.
        let body = response.body();
        let mut text = String::from_utf8_lossy(&body[..body.len().min(MAX_SHOWN)]).into_owned();
        self.url.redact(&mut text);
        let (status, message) = (response.status().as_u16(), excerpt(&text));
        Error::Unreadable { at: self.context(request), status, reason: reason.to_string(), message }
    }

    /// The body, if it is one complete JSON text: a web page, a truncated body or an empty one is an error.
    pub(crate) fn json(&self, request: &Request, response: Response<Bytes>) -> Result<Bytes, Error> {
        match serde_json::from_slice::<&RawValue>(response.body()) {
            Ok(_) => Ok(response.into_body()),
            Err(e) => Err(self.unreadable(request, &response, e)),
        }
    }

    /// Decodes JSON in the shape of the request's reply.
    pub(crate) fn parse<'a, T: Deserialize<'a>>(
        &self,
        request: &Request,
        json: &'a [u8],
    ) -> Result<T, Error> {
        serde_json::from_slice(json).map_err(|e| self.malformed(request, e))
    }
}
