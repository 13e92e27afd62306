//! One URL of a service: a call as an HTTP exchange.
//!
//! # Invariants
//!
//! * A call holds an in-flight permit and has a time limit and a body limit.
//! * The result is a whole response with its status, or an error that names the endpoint. The service's client reads
//!   it.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_TYPE, InvalidHeaderValue,
    SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE, USER_AGENT,
};
use http::{HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use hyper::upgrade::Upgraded;
use serde_json::value::RawValue;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::body::Broken;
use crate::error::{Error, Site, excerpt};
use crate::in_flight::InFlightLimiter;
use crate::limits::Limits;
use crate::observer::{Exchange, Observer};
use crate::state_at::{Probe, StateAt};
use crate::transport::{Failure, Reply, Switch, Transport};
use crate::url::Url;

/// Selects the state that a REST query reads (SDK `GRPCBlockHeightHeader`).
const STATE_HEIGHT: HeaderName = HeaderName::from_static("x-cosmos-block-height");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const AGENT: HeaderValue = HeaderValue::from_static(concat!("cairn/", env!("CARGO_PKG_VERSION")));

/// One request to a service.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    /// Name in messages.
    pub(crate) name: String,
    /// The height that it is about, for messages.
    pub(crate) height: Option<u64>,
    /// Appended to the address; empty for JSON-RPC by POST.
    pub(crate) path: String,
    /// The state height header.
    pub(crate) state_height: Option<u64>,
    /// Proof that the state must pass first.
    pub(crate) probe: Option<Box<Probe>>,
    /// A JSON body makes it a POST.
    pub(crate) body: Option<Bytes>,
    /// Longer or shorter than the service's limit.
    pub(crate) timeout: Option<Duration>,
    /// Whether the call may be hedged near the tip.
    pub(crate) urgent: bool,
}

impl Call {
    /// A GET of `path`.
    pub(crate) fn get(name: &str, path: String) -> Self {
        Self { name: name.to_owned(), path, ..Self::default() }
    }

    /// A POST of a JSON text.
    pub(crate) fn post(name: &str, path: String, json: String) -> Self {
        Self { body: Some(Bytes::from(json)), ..Self::get(name, path) }
    }

    /// About a height, for messages.
    pub(crate) fn about(self, height: u64) -> Self {
        Self { height: Some(height), ..self }
    }

    /// About a block that a caller may be waiting for at the tip.
    pub(crate) fn about_block(self, height: u64) -> Self {
        Self { height: Some(height), urgent: true, ..self }
    }

    /// Read from a state.
    pub(crate) fn in_state(self, state: impl Into<StateAt>) -> Self {
        let StateAt { height, probe, exact: _ } = state.into();
        Self { height, state_height: height, probe: probe.map(Box::new), ..self }
    }

    /// With a time limit of its own.
    pub(crate) fn within(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }
}

/// One URL, with the transport and the limiter that its service shares.
pub(crate) struct Endpoint {
    service: &'static str,
    url: Url,
    limits: Limits,
    transport: Arc<Transport>,
    limiter: Arc<InFlightLimiter>,
    observer: OnceLock<Observer>,
}

impl Endpoint {
    pub(crate) fn new(
        service: &'static str,
        url: Url,
        limits: Limits,
        transport: Arc<Transport>,
        limiter: Arc<InFlightLimiter>,
    ) -> Self {
        Self { service, url, limits, transport, limiter, observer: OnceLock::new() }
    }

    pub(crate) fn observe(&self, observer: Observer) {
        // The first stays.
        self.observer.get_or_init(|| observer);
    }

    /// The place that an error about this call names.
    pub(crate) fn site(&self, call: &Call) -> Site {
        let (service, host) = (self.service, Arc::clone(self.url.host()));
        Site { service, host, call: excerpt(call.name.as_bytes()).into(), height: call.height }
    }

    /// Sends the call and reads the whole response. A rate limit and a redirect are errors; the caller reads any
    /// other status.
    pub(crate) async fn send(&self, call: &Call) -> Result<Reply, Error> {
        let request = self.request(call)?;
        let after = call.timeout.unwrap_or(self.limits.timeout);
        let _pass = self.limiter.acquire().await;
        let exchange = self.transport.exchange(request, self.limits.body);
        let at = || self.site(call);
        let reply = match tokio::time::timeout(after, exchange).await {
            Err(_) => return Err(Error::TimedOut { at: at(), after }),
            Ok(Err(failure)) => return Err(self.failed(call, failure)),
            Ok(Ok(reply)) => reply,
        };
        self.limiter.record_size(reply.body.len());
        let status = reply.status;
        if is_rate_limit(status) {
            return Err(Error::Busy { at: at(), status: status.as_u16(), retry_after: reply.retry_after });
        }
        if status.is_redirection() {
            let to = reply.location.unwrap_or_else(|| "nowhere".to_owned());
            return Err(Error::Redirected { at: at(), status: status.as_u16(), to });
        }
        if let Some(observer) = self.observer.get() {
            let (body, answer) = (call.body.as_deref(), &*reply.body);
            let (service, path, state_height) = (self.service, &*call.path, call.state_height);
            observer(Exchange { service, path, state_height, body, status: status.as_u16(), answer });
        }
        Ok(reply)
    }

    /// Makes a websocket of a connection (RFC 6455 §4.1). The caller sets the time limit.
    pub(crate) async fn upgrade(&self, call: &Call) -> Result<Upgraded, Error> {
        let mut request = self.request(call)?;
        let key = generate_key();
        let invalid =
            |e: InvalidHeaderValue| Error::InvalidRequest { at: self.site(call), reason: e.to_string() };
        let headers = request.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::from_str(&key).map_err(invalid)?);
        let not_one = |reason: String| Error::Malformed { at: self.site(call), reason };
        match self.transport.switch(request).await.map_err(|failure| self.failed(call, failure))? {
            Switch::Refused(status, retry_after) if is_rate_limit(status) => {
                Err(Error::Busy { at: self.site(call), status: status.as_u16(), retry_after })
            }
            Switch::Refused(status, _) => {
                let said = format!("HTTP {}", status.as_u16());
                let advice = if status == StatusCode::NOT_FOUND {
                    "the server has no websocket at this path"
                } else {
                    "the server, or a proxy in front of it, opens no websocket"
                };
                Err(Error::MethodMissing { at: self.site(call), said, advice })
            }
            Switch::Switched(headers, upgraded) => {
                let accepted = headers.get(SEC_WEBSOCKET_ACCEPT).map(HeaderValue::as_bytes);
                if accepted == Some(derive_accept_key(key.as_bytes()).as_bytes()) {
                    Ok(upgraded)
                } else {
                    Err(not_one("the websocket was accepted for another key".to_owned()))
                }
            }
        }
    }

    fn failed(&self, call: &Call, failure: Failure) -> Error {
        let at = self.site(call);
        match failure {
            Failure::Unreachable(reason) => Error::Unreachable { at, reason },
            Failure::Broken(Broken::Cut { got, reason }) => Error::Cut { at, got, reason },
            Failure::Broken(Broken::TooLarge) => Error::TooLarge { at, limit: self.limits.body },
        }
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    fn request(&self, call: &Call) -> Result<Request<Full<Bytes>>, Error> {
        let invalid = |e: http::Error| Error::InvalidRequest { at: self.site(call), reason: e.to_string() };
        let uri = self.url.join(&call.path).map_err(invalid)?;
        let mut request = Request::builder().uri(uri).header(ACCEPT, JSON).header(USER_AGENT, AGENT);
        if !self.url.is_loopback() {
            request = request.header(ACCEPT_ENCODING, GZIP);
        }
        if let Some(authorization) = self.url.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        if let Some(height) = call.state_height {
            request = request.header(STATE_HEIGHT, HeaderValue::from(height));
        }
        let request = match &call.body {
            None => request.body(Full::default()),
            Some(body) => {
                request.method(Method::POST).header(CONTENT_TYPE, JSON).body(Full::new(body.clone()))
            }
        };
        request.map_err(invalid)
    }
}

fn is_rate_limit(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE
}

impl Reply {
    /// An answer that is no JSON where JSON was due.
    pub(crate) fn unreadable(&self, at: Site, reason: &str) -> Error {
        let (status, said) = (self.status.as_u16(), excerpt(&self.body));
        Error::Unreadable { at, status, reason: reason.to_owned(), said }
    }

    /// The body, if it is one whole JSON text: a page, a cut body or an empty one is an error.
    pub(crate) fn json(self, at: impl FnOnce() -> Site) -> Result<Bytes, Error> {
        match serde_json::from_slice::<&RawValue>(&self.body) {
            Ok(_) => Ok(self.body),
            Err(e) => Err(self.unreadable(at(), &e.to_string())),
        }
    }
}
