//! HTTP/1.1 connections to the endpoints of a service, with and without TLS.
//!
//! # Invariants
//!
//! * Idle connections are few and time out. Redirects and the system's proxy settings are ignored.
//! * At most `limit` bytes of a body are kept, whatever length the server announces and whether or not it compresses.
//! * The system's root certificates are read only for https addresses; without them the client cannot be made.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chain::excerpt;
use flate2::read::GzDecoder;
use http::header::{CONTENT_ENCODING, HeaderMap, LOCATION, RETRY_AFTER};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;
use tokio::net::TcpStream;
use tower_service::Service as _;

use crate::error::{Error, RequestContext};
use crate::setup_error::SetupError;

/// A keep-alive client; cheap requests, one pool of connections per host.
pub(crate) struct Transport {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    connector: HttpsConnector<HttpConnector>,
}

/// A connection outside of the pool.
pub(crate) type Stream = TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>;

/// Failure to get a response.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Unreachable(String),
    /// The connection or the body broke, or the content coding is corrupt.
    Cut(String),
    /// The body is larger than this many bytes.
    TooLarge(usize),
}

/// Idle connections are closed before most servers and balancers close them, so that no request is sent on a
/// connection that is being closed.
const IDLE: Duration = Duration::from_secs(25);

impl Transport {
    pub(crate) fn new(tls: bool, connect: Duration, idle_per_host: usize) -> Result<Self, SetupError> {
        let connector = connector(tls, connect, Protocol::Http1)?;
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(idle_per_host)
            .build(connector.clone());
        Ok(Self { client, connector })
    }

    /// Sends one request and reads the response to its end. The caller sets the time limit.
    pub(crate) async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        limit: usize,
    ) -> Result<Response<Bytes>, Failure> {
        let response = self.client.request(request).await.map_err(|e| failure(&e, e.is_connect()))?;
        let (head, body) = response.into_parts();
        let body = read(body, limit).await?;
        let body = match head.headers.get(CONTENT_ENCODING).map(http::HeaderValue::as_bytes) {
            None | Some(b"identity") => body,
            Some(b"gzip" | b"x-gzip") => gunzip(&body, limit)?,
            Some(other) => {
                return Err(Failure::Cut(format!("content encoding `{}` was not requested", excerpt(other))));
            }
        };
        Ok(Response::from_parts(head, body))
    }

    /// Opens a connection outside of the pool. The caller sets the time limit.
    pub(crate) async fn connect(&self, uri: Uri) -> Result<Stream, Failure> {
        // The connector is always ready: it has no queue.
        self.connector.clone().call(uri).await.map(TokioIo::new).map_err(|e| failure(&*e, true))
    }
}

impl Failure {
    pub(crate) fn into_error(self, at: RequestContext) -> Error {
        match self {
            Self::Unreachable(reason) => Error::Unreachable { at, reason },
            Self::Cut(reason) => Error::Cut { at, reason },
            Self::TooLarge(limit) => Error::TooLarge { at, limit },
        }
    }
}

fn failure(e: &(dyn std::error::Error + 'static), connecting: bool) -> Failure {
    let reason = other_protocol(e).map_or_else(|| reason(e), str::to_owned);
    if connecting { Failure::Unreachable(reason) } else { Failure::Cut(reason) }
}

/// The whole body, in one piece from the start: collected parts would be copied, and take the space twice.
async fn read(mut body: Incoming, limit: usize) -> Result<Bytes, Failure> {
    let announced = body.size_hint().lower();
    if announced > u64::try_from(limit).unwrap_or(u64::MAX) {
        return Err(Failure::TooLarge(limit));
    }
    let mut all = BytesMut::with_capacity(usize::try_from(announced).unwrap_or(limit));
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|e| Failure::Cut(reason(&e)))?.into_data() else { continue };
        if data.len() > limit - all.len() {
            return Err(Failure::TooLarge(limit));
        }
        all.extend_from_slice(&data);
    }
    Ok(all.freeze())
}

/// The decompressed text of a gzip body.
fn gunzip(packed: &[u8], limit: usize) -> Result<Bytes, Failure> {
    let mut plain = Vec::new();
    // One byte more than allowed distinguishes "exactly the limit" from "more".
    let most = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    let outcome = GzDecoder::new(packed).take(most).read_to_end(&mut plain);
    outcome.map_err(|e| Failure::Cut(format!("damaged gzip: {e}")))?;
    if plain.len() > limit { Err(Failure::TooLarge(limit)) } else { Ok(plain.into()) }
}

/// An error with its causes: the client library has the system's text only in the last one.
pub(crate) fn reason(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

/// The protocol of a server that differs from its address, if its first bytes show it.
fn other_protocol(error: &(dyn std::error::Error + 'static)) -> Option<&'static str> {
    let causes = || std::iter::successors(Some(error), |cause| cause.source());
    if causes().filter_map(|cause| cause.downcast_ref()).any(is_no_tls) {
        return Some("the port does not speak TLS: write http:// instead of https://");
    }
    // A gRPC server sends first: its bytes are not HTTP/1.1, or arrive before there is a request.
    let is_other =
        |error: &hyper::Error| error.is_parse() || error.to_string().contains("unexpected message");
    let is_other = causes().filter_map(|cause| cause.downcast_ref()).any(is_other);
    is_other.then_some("the port does not speak HTTP/1.1; a gRPC port is for `grpc` only")
}

/// True if the first bytes of a server are not TLS. TLS errors are nested in one or more system errors.
fn is_no_tls(error: &std::io::Error) -> bool {
    error.get_ref().is_some_and(|inner| {
        matches!(inner.downcast_ref(), Some(rustls::Error::InvalidMessage(_)))
            || inner.downcast_ref().is_some_and(is_no_tls)
    })
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
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = OffsetDateTime::parse(text, &Rfc2822).ok()?;
    Some(Duration::try_from(date - OffsetDateTime::now_utc()).unwrap_or(Duration::ZERO))
}

/// Target of a redirect, without path and query: they may hold a key.
pub(crate) fn location(headers: &HeaderMap) -> Option<String> {
    let uri = headers.get(LOCATION)?.to_str().ok()?.parse::<Uri>().ok()?;
    let host = uri.host().map_or("another path", |host| host);
    Some(uri.scheme_str().map_or(host.to_owned(), |scheme| format!("{scheme}://{host}")))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::read::GzEncoder;

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
    fn a_redirect_is_reported_without_its_path() {
        let to = |text: &str| location(&headers(LOCATION, text));
        assert_eq!(to("https://me:pw@new.example/key?x=1").as_deref(), Some("https://new.example"));
        assert_eq!(to("/login").as_deref(), Some("another path"));
    }

    #[test]
    fn the_systems_certificates_are_not_needed_for_plain_http() {
        assert!(Transport::new(false, Duration::from_secs(1), 1).is_ok());
    }

    fn gzip(plain: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        GzEncoder::new(plain, Compression::default()).read_to_end(&mut packed).unwrap();
        packed
    }

    #[test]
    fn gzip_is_unpacked_up_to_the_limit_and_not_a_byte_further() {
        let packed = gzip(&vec![b'a'; 1_000_000]);
        assert!(packed.len() < 10_000);
        assert_eq!(gunzip(&packed, 1_000_000).unwrap().len(), 1_000_000);
        assert_eq!(gunzip(&packed, 999_999), Err(Failure::TooLarge(999_999)));
    }

    #[test]
    fn a_gzip_body_that_was_cut_is_an_error_and_not_a_short_answer() {
        let packed = gzip(b"{\"result\":[]}");
        for end in 0..packed.len() {
            let cut = gunzip(&packed[..end], 1_000);
            assert!(matches!(cut, Err(Failure::Cut(_))), "{end}: {cut:?}");
        }
    }
}
