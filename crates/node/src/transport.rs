//! HTTP/1.1 connections to the endpoints of a service, with and without TLS.
//!
//! # Invariants
//!
//! * Idle connections are few and time out. Redirects and the system's proxy settings are ignored.
//! * The system's root certificates are read only for https addresses; without them the client cannot be made.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, HeaderMap, LOCATION, RETRY_AFTER};
use http::{Request, StatusCode, Uri};
use http_body_util::Full;
use hyper::upgrade::Upgraded;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use crate::body::{self, Broken};
use crate::setup_error::SetupError;

/// A keep-alive client; cheap calls, one pool of connections per host.
pub(crate) struct Transport {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

/// One whole HTTP answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    /// Pause that the server ordered.
    pub(crate) retry_after: Option<Duration>,
    /// Scheme and host of a redirect.
    pub(crate) location: Option<String>,
    pub(crate) body: Bytes,
}

/// Failure to get an answer.
#[derive(Debug)]
pub(crate) enum Failure {
    Unreachable(String),
    Broken(Broken),
}

/// Idle connections are closed before most servers and balancers close them, so that a call does not run
/// into a dying one.
const IDLE: Duration = Duration::from_secs(25);

impl Transport {
    pub(crate) fn new(tls: bool, connect: Duration, idle_per_host: usize) -> Result<Self, SetupError> {
        let connector = connector(tls, connect, Protocol::Http1)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(idle_per_host)
            .build(connector);
        Ok(Self { client })
    }

    /// Sends one request and reads the answer to its end. Takes as long as it takes: the caller sets the
    /// time limit.
    pub(crate) async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Reply, Failure> {
        let answer = self.client.request(request).await.map_err(failure)?;
        let (head, body) = answer.into_parts();
        let packed = body::collect(body, limit).await.map_err(Failure::Broken)?;
        let body = match head.headers.get(CONTENT_ENCODING).map(http::HeaderValue::as_bytes) {
            None | Some(b"identity") => packed,
            Some(b"gzip" | b"x-gzip") => body::gunzip(&packed, limit).map_err(Failure::Broken)?,
            Some(other) => {
                let reason = format!("content encoding `{}` was not asked for", crate::error::excerpt(other));
                return Err(Failure::Broken(Broken::Cut { got: packed.len(), reason }));
            }
        };
        let (retry_after, location) = (retry_after(&head.headers), location(&head.headers));
        Ok(Reply { status: head.status, retry_after, location, body })
    }

    /// Sends one request to go on in another protocol (RFC 9110 §7.8). The caller sets the time limit.
    pub(crate) async fn switch(&self, request: Request<Full<Bytes>>) -> Result<Switch, Failure> {
        let answer = self.client.request(request).await.map_err(failure)?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Switch::Refused(answer.status(), retry_after(answer.headers())));
        }
        let headers = answer.headers().clone();
        let broken = |e: hyper::Error| Failure::Broken(Broken::Cut { got: 0, reason: body::reason(&e) });
        Ok(Switch::Switched(headers, hyper::upgrade::on(answer).await.map_err(broken)?))
    }
}

fn failure(e: hyper_util::client::legacy::Error) -> Failure {
    let reason = other_protocol(&e).map_or_else(|| body::reason(&e), str::to_owned);
    if e.is_connect() {
        Failure::Unreachable(reason)
    } else {
        Failure::Broken(Broken::Cut { got: 0, reason })
    }
}

/// Which other protocol a server speaks than the one that its address names, where its first bytes show it.
fn other_protocol(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let causes = || std::iter::successors(Some(error), |cause| cause.source());
    if causes().filter_map(|cause| cause.downcast_ref()).any(is_no_tls) {
        return Some("the port does not speak TLS: write http:// instead of https://");
    }
    // A gRPC server speaks first: its bytes are either no answer, or come before there is a question.
    let is_other =
        |error: &hyper::Error| error.is_parse() || error.to_string().contains("unexpected message");
    let is_other = causes().filter_map(|cause| cause.downcast_ref()).any(is_other);
    is_other.then_some("the port does not speak HTTP/1.1; a gRPC port is for `grpc` only")
}

/// Whether the first bytes of a server are none of TLS. Errors of TLS are inside of one or more of the system's.
fn is_no_tls(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| {
        matches!(inner.downcast_ref(), Some(rustls::Error::InvalidMessage(_)))
            || inner.downcast_ref().is_some_and(is_no_tls)
    })
}

/// Outcome of a protocol upgrade.
pub(crate) enum Switch {
    /// The head of the agreement, and the connection.
    Switched(HeaderMap, Upgraded),
    /// The status, and how long the server wants to be left alone.
    Refused(StatusCode, Option<Duration>),
}

/// Protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// Opens TCP connections, with TLS where an address says https; `tls` if any does.
pub(crate) fn connector(
    tls: bool,
    connect: Duration,
    protocol: Protocol,
) -> Result<HttpsConnector<HttpConnector>, SetupError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(Some(connect));
    let https = HttpsConnectorBuilder::new().with_tls_config(tls_config(tls)?).https_or_http();
    Ok(match protocol {
        Protocol::Http1 => https.enable_http1().wrap_connector(tcp),
        Protocol::Http2 => https.enable_http2().wrap_connector(tcp),
    })
}

/// TLS 1.2 and 1.3 with ring and the system's root certificates (on Debian the package `ca-certificates`,
/// else `SSL_CERT_FILE` or `SSL_CERT_DIR`), so that an operator's own authority works too.
fn tls_config(needed: bool) -> Result<ClientConfig, SetupError> {
    let mut roots = RootCertStore::empty();
    if needed {
        let found = rustls_native_certs::load_native_certs();
        let (added, _unusable) = roots.add_parsable_certificates(found.certs);
        if added == 0 {
            let reason = found.errors.first().map_or("none installed".to_owned(), ToString::to_string);
            return Err(SetupError::NoRoots { reason });
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| SetupError::Tls { reason: e.to_string() })?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

/// RFC 9110 §10.2.3: seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    Some(Duration::try_from(date - OffsetDateTime::now_utc()).unwrap_or(Duration::ZERO))
}

/// Where a redirect leads, without path and query: they may hold a key.
fn location(headers: &HeaderMap) -> Option<String> {
    let uri = headers.get(LOCATION)?.to_str().ok()?.parse::<Uri>().ok()?;
    let host = uri.host().map_or("another path", |host| host);
    Some(uri.scheme_str().map_or(host.to_owned(), |scheme| format!("{scheme}://{host}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, value: &str) -> HeaderMap {
        [(name, value.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_pause_is_given_in_seconds_or_as_a_date() {
        let pause = |text: &str| retry_after(&headers(RETRY_AFTER, text));
        assert_eq!(pause("7"), Some(Duration::from_secs(7)));
        assert_eq!(pause("Wed, 21 Oct 2015 07:28:00 GMT"), Some(Duration::ZERO));
        assert!(pause("Fri, 21 Oct 2199 07:28:00 GMT") > Some(Duration::from_secs(1_000_000)));
        assert_eq!(pause("soon"), None);
        assert_eq!(pause("-1"), None);
    }

    #[test]
    fn a_redirect_is_named_without_its_path() {
        let to = |text: &str| location(&headers(LOCATION, text));
        assert_eq!(to("https://me:pw@new.example/key?x=1").as_deref(), Some("https://new.example"));
        assert_eq!(to("/login").as_deref(), Some("another path"));
    }

    #[test]
    fn the_systems_certificates_are_not_needed_for_plain_http() {
        assert!(Transport::new(false, Duration::from_secs(1), 1).is_ok());
    }
}
