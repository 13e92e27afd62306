//! HTTP/2 connections without TLS ("prior knowledge", RFC 9113 §3.3), for gRPC.
//!
//! # Invariants
//! * The limits of [`Limits`] hold as over HTTP/1.1: connections, requests, rates, headers, and the times of a head, a
//!   body and a stalled write. `target` and `body` are the handler's.
//! * An idle connection stays open while its client answers pings: gRPC clients keep one for hours.

use std::convert::Infallible;
use std::error::Error;
use std::future::Future;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};
use hyper::body::Body;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_io_timeout::TimeoutWriter;
use tokio_util::io::InspectReader;

pub use hyper::body::Incoming;

use crate::bodies::Held;
use crate::http_error::HttpError;
use crate::limits::Limits;
use crate::limits::concurrency_limit::{ConcurrencyLimit, RequestPermit};
use crate::limits::rate_limit::Clients;
use crate::limits::share::{Pools, Share};
use crate::serve::admission::{acquire, acquire_stream};
use crate::serve::flow::{Flow, FlowBody};
use crate::serve::{AcceptLoop, log_end};

/// Interval of pings on an idle connection, and the time for their responses.
const PING_EVERY: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The counted bytes of a response.
pub type HeldBytes = Arc<Held>;

/// The limits that apply to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// A health check: none.
    Probe,
    /// One response: rates and [`Limits::requests`].
    Reply,
    /// A response without end: rates and [`Limits::streams`].
    Stream,
}

/// Answers the requests of a server.
pub trait RequestHandler: Send + Sync + 'static {
    /// The body of a response. It may end long after the head, as a stream does.
    type Body: Body<Data = Bytes, Error: Into<Box<dyn Error + Send + Sync>>> + Send + Unpin + 'static;

    /// The kind of a request, by its path.
    fn kind(&self, path: &str) -> RequestKind;

    /// The response to a request that exceeds a limit.
    fn reject(&self, path: &str, error: &HttpError) -> Response<Self::Body>;

    /// The response to a request, whose extensions have the [`Share`] of its client unless it is a probe. Work that
    /// blocks on the disk runs in it. An extension [`HeldBytes`] of the response is kept until its last byte is sent.
    /// The future is dropped after [`Limits::body_read`].
    fn respond(&self, request: Request<Incoming>) -> impl Future<Output = Response<Self::Body>> + Send;
}

/// Serves until `shutdown` resolves, then drains requests in flight for at most [`Limits::stop`].
///
/// The handler runs on the threads of the current runtime, as with [`crate::serve::serve_fn`].
pub async fn serve_http2<H: RequestHandler>(
    listener: TcpListener,
    handler: H,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let limits = Arc::new(limits);
    let clients = Arc::new(Clients::new(&limits));
    let accept_loop = AcceptLoop { limits: Arc::clone(&limits), clients: Some(Arc::clone(&clients)) };
    let requests = ConcurrencyLimit::of_requests(&limits);
    let streams = ConcurrencyLimit::of_streams(&limits);
    let pools = Pools::new(&limits, &clients);
    let server = Arc::new(Http2Server { handler, limits, clients, requests, streams, pools });
    let connection = |stream, peer, stopped| connection(Arc::clone(&server), stream, peer, stopped);
    accept_loop.run(listener, connection, shutdown).await;
}

/// The values that all connections share.
struct Http2Server<H> {
    handler: H,
    limits: Arc<Limits>,
    clients: Arc<Clients>,
    requests: ConcurrencyLimit,
    streams: ConcurrencyLimit,
    pools: Arc<Pools>,
}

/// One connection from its first request to its last.
async fn connection<H: RequestHandler>(
    server: Arc<Http2Server<H>>,
    stream: TcpStream,
    peer: IpAddr,
    mut stopped: watch::Receiver<()>,
) {
    let (limits, flow) = (Arc::clone(&server.limits), Arc::new(Flow::new(Arc::clone(&server.limits))));
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(limits.write_stall));
    let received = Arc::clone(&flow);
    let stream = InspectReader::new(Box::pin(stream), move |bytes: &[u8]| received.received(bytes.len()));
    let service = service_fn(|request| {
        let (server, flow) = (Arc::clone(&server), Arc::clone(&flow));
        async move {
            let (mut response, permit) = server.answer(request, peer).await;
            let held = response.extensions_mut().remove::<HeldBytes>();
            Ok::<_, Infallible>(response.map(|body| FlowBody::new(body, permit, held, flow)))
        }
    });
    let streams = limits.requests_per_client.saturating_add(limits.streams_per_client);
    let streams = u32::try_from(streams).unwrap_or(u32::MAX);
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .max_concurrent_streams(streams)
        .max_header_list_size(u32::try_from(limits.headers).unwrap_or(u32::MAX))
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        biased;
        ended = &mut connection => Some(ended),
        // Always an error: the sender is dropped.
        _ = stopped.changed() => None,
        () = flow.stalled() => return,
    };
    if ended.is_none() {
        connection.as_mut().graceful_shutdown();
    }
    log_end(match ended {
        Some(ended) => ended,
        None => connection.await,
    });
}

impl<H: RequestHandler> Http2Server<H> {
    async fn answer(
        &self,
        request: Request<Incoming>,
        peer: IpAddr,
    ) -> (Response<H::Body>, Option<RequestPermit>) {
        let (head, body) = request.into_parts();
        let uri = head.uri.clone();
        let permit = match self.admit(&head, peer) {
            Ok(permit) => permit,
            Err(error) => return (self.handler.reject(uri.path(), &error), None),
        };
        let mut request = Request::from_parts(head, body);
        if let Some(share) = permit.as_ref().and_then(|permit| Share::from_permit(permit, &self.pools)) {
            request.extensions_mut().insert(share);
        }
        let response = self.handler.respond(request);
        let response = timeout(self.limits.body_read, response).await.unwrap_or_else(|_| {
            let late = HttpError::new(StatusCode::REQUEST_TIMEOUT, "the request body took too long");
            self.handler.reject(uri.path(), &late)
        });
        (response, permit)
    }

    /// # Errors
    /// 429 or 503.
    fn admit(&self, head: &Parts, peer: IpAddr) -> Result<Option<RequestPermit>, HttpError> {
        let kind = self.handler.kind(head.uri.path());
        if kind == RequestKind::Probe {
            return Ok(None);
        }
        let client = self.clients.client_of_request(peer, &head.headers);
        self.clients.admit(client, head.uri.path())?;
        let permit = if kind == RequestKind::Stream {
            acquire_stream(&self.streams, client, &self.limits)
        } else {
            acquire(&self.requests, Some(client), &self.limits)
        };
        permit.map(Some)
    }
}
