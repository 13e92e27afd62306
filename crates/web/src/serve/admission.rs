//! Admission of requests by their heads alone: rates, concurrency, sizes.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::CONNECTION;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::{Body as _, Incoming};
use tokio::sync::watch;

use crate::app::App;
use crate::event::EventStream;
use crate::http_error::HttpError;
use crate::limits::Limits;
use crate::limits::concurrency_limit::{ConcurrencyLimit, Full, RequestPermit};
use crate::limits::rate_limit::{Client, Clients};
use crate::limits::share::Pools;
use crate::mounts::Apps;

/// The values that all connections share.
pub(crate) struct AppServer<A: 'static> {
    pub(crate) apps: Apps<A>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) clients: Arc<Clients>,
    pub(crate) requests: ConcurrencyLimit,
    pub(crate) streams: ConcurrencyLimit,
    pub(crate) pools: Arc<Pools>,
    /// Changes when the server stops.
    pub(crate) stopped: watch::Receiver<()>,
}

impl<A> AppServer<A> {
    /// The permit to answer a request; otherwise the response to a health probe or to a request that exceeds a limit.
    #[expect(clippy::result_large_err, reason = "the caller returns the response")]
    pub(super) fn admit(
        &self,
        app: &App<A>,
        head: &Parts,
        body: &Incoming,
        peer: IpAddr,
    ) -> Result<RequestPermit, Response<Bytes>> {
        let response = if let Some(response) = app.probe(head) {
            response
        } else {
            match self.check_client(head, peer) {
                Ok(permit) => {
                    let size = check_size(head, body, &self.limits);
                    return size.map(|()| permit).map_err(|error| with_close(app.reject(head, &error)));
                }
                Err(error) => app.reject(head, &error),
            }
        };
        Err(close_unread(response, body))
    }

    /// Opens the event stream of a request; otherwise the response.
    #[expect(clippy::result_large_err, reason = "the caller returns the response")]
    pub(super) fn open(
        &self,
        app: &App<A>,
        head: &Parts,
        body: &Incoming,
        peer: IpAddr,
    ) -> Result<(Response<EventStream>, RequestPermit), Response<Bytes>> {
        let client = self.clients.client_of_request(peer, &head.headers);
        let admitted = self.clients.admit(client, head.uri.path());
        let permit = admitted
            .and_then(|()| check_size(head, body, &self.limits))
            .and_then(|()| acquire_stream(&self.streams, client, &self.limits))
            .map_err(|error| app.reject(head, &error));
        let opened = permit.and_then(|permit| Ok((app.stream(head)?, permit)));
        opened.map_err(|response| close_unread(response, body))
    }

    /// # Errors
    /// 429 or 503.
    pub(super) fn check_client(&self, head: &Parts, peer: IpAddr) -> Result<RequestPermit, HttpError> {
        let client = self.clients.client_of_request(peer, &head.headers);
        // A web page cannot read the response to a preflight, so preflights are not rate-limited.
        if head.method != Method::OPTIONS {
            self.clients.admit(client, head.uri.path())?;
        }
        acquire(&self.requests, Some(client), &self.limits)
    }
}

/// # Errors
/// 503 at the request limit of the server, 429 at that of `client`.
pub(crate) fn acquire(
    requests: &ConcurrencyLimit,
    client: Option<Client>,
    limits: &Limits,
) -> Result<RequestPermit, HttpError> {
    requests.acquire(client).map_err(|full| match full {
        Full::Server => HttpError::unavailable(format!(
            "{} requests are being answered, which is all at once; try again",
            limits.requests
        )),
        Full::Client(held) => HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!(
                "{held} requests from your address are being answered, or their answers wait to be read, which is all \
                 of one address at once; try again"
            ),
        ),
    })
}

/// # Errors
/// 503 at the stream limit of the server, 429 at that of `client`.
pub(crate) fn acquire_stream(
    streams: &ConcurrencyLimit,
    client: Client,
    limits: &Limits,
) -> Result<RequestPermit, HttpError> {
    streams.acquire(Some(client)).map_err(|full| match full {
        Full::Server => HttpError::unavailable(format!(
            "{} event streams are open, which is all at once; try again later or read the lists instead",
            limits.streams
        )),
        Full::Client(held) => HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!(
                "{held} event streams are open from your address, which is all of one address at once; close one first"
            ),
        ),
    })
}

/// Marks a response as the last of its connection.
pub(crate) fn with_close(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Closes the connection of a request whose body is not read. Without a body it stays open: a reconnect costs more.
pub(super) fn close_unread(response: Response<Bytes>, body: &Incoming) -> Response<Bytes> {
    if body.is_end_stream() { response } else { with_close(response) }
}

/// # Errors
/// 414, 431, or 413 by the announced length of the body.
pub(crate) fn check_size(head: &Parts, body: &Incoming, limits: &Limits) -> Result<(), HttpError> {
    if head.uri.path_and_query().is_some_and(|target| target.as_str().len() > limits.target) {
        let message = format!("the request target is over {} bytes", limits.target);
        return Err(HttpError::new(StatusCode::URI_TOO_LONG, message));
    }
    // `name: value` and the end of the line.
    let headers: usize = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if headers > limits.headers {
        let message = format!("the request headers are over {} bytes or over 100 lines", limits.headers);
        return Err(HttpError::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, message));
    }
    if usize::try_from(body.size_hint().lower()).map_or(true, |len| len > limits.body) {
        return Err(too_large(limits));
    }
    Ok(())
}

pub(super) fn too_large(limits: &Limits) -> HttpError {
    HttpError::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the request body is over {} bytes", limits.body))
}
