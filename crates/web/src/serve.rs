//! The accept loop of every server, and HTTP/1.1 connections. [`crate::serve::http2`] has those of HTTP/2.
//!
//! # Invariants
//! * Beyond the connection limit nothing is accepted: clients wait in the kernel's bounded queue. Beyond the limit per
//!   client, a connection is closed at once.
//! * An error of `accept` never ends the loop.
//! * A stop closes the listener, ends event streams and WebSockets, closes idle connections, then waits for requests in flight, and
//!   aborts the rest at the deadline.

mod admission;
mod arrival;
mod flow;
pub mod http2;
mod request_timer;
mod response_body;
pub mod server;
mod service;
mod websocket;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, copy, sink};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{AcquireError, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};
use tokio_io_timeout::TimeoutWriter;
use tokio_util::io::InspectReader;

use crate::limits::Limits;
use crate::limits::concurrency_limit::{ConcurrencyLimit, PerClientLimit};
use crate::limits::rate_limit::Clients;
use crate::limits::share::Pools;
use crate::mounts::Apps;
use crate::serve::admission::{AppServer, acquire, check_size, with_close};
use crate::serve::request_timer::RequestTimer;
use crate::serve::response_body::{ResponseBody, with_permit};
use crate::serve::service::{AppService, read};

/// Backoff after a failed `accept`: if descriptors run out, only waiting helps.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const LAST_BACKOFF: Duration = Duration::from_secs(1);

/// The minimum that hyper accepts.
const MIN_BUFFER: usize = 8192;

/// Bytes of a request line besides its target: `OPTIONS  HTTP/1.1`, the line end, and some reserve.
const REQUEST_LINE: usize = 64;

/// Time and byte limits of a lingering close. The bytes are those of the largest body that a client sends by mistake:
/// one that writes all of it before it reads gets the response and no broken pipe.
const LINGER: Duration = Duration::from_secs(5);
const LINGER_BYTES: u64 = 64 << 20;

/// Minimum interval between warnings that an address is at its connection limit.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Serves `apps` until `shutdown` resolves, then drains requests in flight for at most [`Limits::stop`].
///
/// Handlers run on the threads of the current runtime. Handlers that block on disk reads need a runtime of their own
/// ([`crate::serve::server::Server`]).
pub(crate) async fn serve<A: Send + Sync + 'static>(
    listener: TcpListener,
    apps: Apps<A>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let limits = Arc::new(limits);
    let clients = Arc::new(Clients::new(&limits));
    let accept_loop = AcceptLoop { limits: Arc::clone(&limits), clients: Some(Arc::clone(&clients)) };
    let requests = ConcurrencyLimit::of_requests(&limits);
    let streams = ConcurrencyLimit::of_streams(&limits);
    let pools = Pools::new(&limits, &clients);
    let (stop, stopped) = watch::channel(());
    let server = Arc::new(AppServer { apps, limits, clients, requests, streams, pools, stopped });
    let connection = |stream, peer, stopped: watch::Receiver<()>| {
        let timer = Arc::new(RequestTimer::new());
        let upgraded = Arc::new(Mutex::new(None));
        let (server, timer_of, slot) = (Arc::clone(&server), Arc::clone(&timer), Arc::clone(&upgraded));
        let limits = Arc::clone(&server.limits);
        let service = AppService { server, peer, timer: timer_of, upgraded: slot };
        async move {
            let ended = connection(stream, service, timer, limits, stopped.clone()).await;
            let Some((stream, unread)) = ended else { return };
            let socket = upgraded.lock().unwrap_or_else(PoisonError::into_inner).take();
            match socket {
                Some(socket) => socket.run(stream, unread, stopped).await,
                None => linger(stream).await,
            }
        }
    };
    let shutdown = async {
        shutdown.await;
        drop(stop);
    };
    accept_loop.run(listener, connection, shutdown).await;
}

/// Serves until `shutdown` resolves, then drains requests in flight for at most [`Limits::stop`]; `handler` answers. It runs
/// on the threads of the current runtime. Bodies of up to [`Limits::body`] bytes are read for every
/// method; a request that breaks a limit is rejected before `handler` runs. The limits per client do not apply.
pub async fn serve_fn<H, F>(
    listener: TcpListener,
    limits: Limits,
    handler: H,
    shutdown: impl Future<Output = ()>,
) where
    H: Fn(Request<Bytes>) -> F + Send + Sync + 'static,
    F: Future<Output = Response<Bytes>> + Send + 'static,
{
    let limits = Arc::new(limits);
    let accept_loop = AcceptLoop { limits: Arc::clone(&limits), clients: None };
    let requests = ConcurrencyLimit::of_requests(&limits);
    let shared = Arc::new((handler, Arc::clone(&limits), requests));
    let service = |timer: Arc<RequestTimer>| {
        let shared = Arc::clone(&shared);
        service_fn(move |request: Request<Incoming>| {
            timer.begin();
            let (shared, timer) = (Arc::clone(&shared), Arc::clone(&timer));
            Box::pin(async move {
                let (handler, limits, requests) = &*shared;
                let (head, body) = request.into_parts();
                let checked = acquire(requests, None, limits)
                    .and_then(|permit| check_size(&head, &body, limits).map(|()| permit));
                let (permit, body) = match checked {
                    Ok(permit) => (Some(permit), read(body, limits).await),
                    Err(error) => (None, Err(error)),
                };
                let response = match body {
                    Ok(body) => handler(Request::from_parts(head, body)).await,
                    Err(error) => with_close(error.response()),
                };
                Ok(with_permit(response, permit, &timer, limits))
            })
        })
    };
    let connection = |stream, _, stopped| {
        let timer = Arc::new(RequestTimer::new());
        let ended = connection(stream, service(Arc::clone(&timer)), timer, Arc::clone(&limits), stopped);
        async {
            if let Some((stream, _)) = ended.await {
                linger(stream).await;
            }
        }
    };
    accept_loop.run(listener, connection, shutdown).await;
}

/// The accept loop, with the settings that all connections share.
pub(crate) struct AcceptLoop {
    pub(crate) limits: Arc<Limits>,
    /// Identifies clients for the connection limit per client; `None` disables that limit.
    pub(crate) clients: Option<Arc<Clients>>,
}

impl AcceptLoop {
    /// Runs the loop; `connection` serves one connection of a peer, until its receiver's sender is dropped and the
    /// requests in flight have ended.
    pub(crate) async fn run<F>(
        self,
        listener: TcpListener,
        connection: impl Fn(TcpStream, IpAddr, watch::Receiver<()>) -> F,
        shutdown: impl Future<Output = ()>,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut shutdown = pin!(shutdown);
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        let per_client =
            PerClientLimit::new(self.limits.connections_per_client, self.limits.connections, &self.limits);
        let mut warned: Option<Instant> = None;
        let (stop, stopped) = watch::channel(());
        let mut connections = JoinSet::new();
        loop {
            let next = async {
                let permit = Arc::clone(&permits).acquire_owned().await?;
                Ok::<_, AcquireError>((permit, accept(&listener).await))
            };
            let next = tokio::select! {
                biased;
                () = &mut shutdown => break,
                next = next => next,
            };
            // The semaphore is never closed.
            let Ok((permit, (stream, peer))) = next else { break };
            let client = self.clients.as_ref().and_then(|clients| clients.client_of_peer(peer));
            let client_permit = client.map(|client| per_client.acquire(client, permits.available_permits()));
            if let Some(Err(limit)) = client_permit {
                if warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
                    warned = Some(Instant::now());
                    tracing::warn!(%peer, limit, "connection limit of a client reached; is it an untrusted proxy?");
                }
                continue;
            }
            let connection = connection(stream, peer, stopped.clone());
            connections.spawn(async move {
                connection.await;
                drop((permit, client_permit));
            });
            while let Some(ended) = connections.try_join_next() {
                log_panic(ended);
            }
        }
        drop(listener);
        drop(stop);
        drain(connections, self.limits.stop).await;
    }
}

/// One connection from its first request to its last; then its stream, with the bytes that were read after that request,
/// unless it is to be closed at once.
async fn connection<S>(
    stream: TcpStream,
    service: S,
    timer: Arc<RequestTimer>,
    limits: Arc<Limits>,
    mut stopped: watch::Receiver<()>,
) -> Option<(impl AsyncRead + AsyncWrite + Unpin, Bytes)>
where
    S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = Infallible> + Unpin + 'static,
    S::Future: Unpin,
{
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(limits.write_stall));
    let received = Arc::clone(&timer);
    let stream = InspectReader::new(Box::pin(stream), move |_: &[u8]| received.received());
    // Heads up to this size reach the service, which distinguishes a long target from large headers.
    let head = limits.target + limits.headers + REQUEST_LINE;
    let mut connection = http1::Builder::new()
        .max_header_size(head)
        // hyper's default lets a pipelining client grow the buffer to 400 KiB.
        .max_buf_size(head.max(MIN_BUFFER))
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(stream), service);
    let ended = tokio::select! {
        biased;
        ended = &mut connection => Some(ended),
        // Always an error: the sender is dropped.
        _ = stopped.changed() => None,
        () = timer.expired(&limits) => return None,
    };
    let Some(ended) = ended else {
        Pin::new(&mut connection).graceful_shutdown();
        log_end(connection.await);
        return None;
    };
    log_end(ended);
    let parts = connection.into_parts();
    Some((parts.io.into_inner(), parts.read_buf))
}

pub(crate) fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(error = %error, "connection ended early");
    }
}

/// Lingering close (RFC 9112 §9.6): an immediate close makes the client's kernel discard the last response if the
/// client is still sending.
async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let close = async {
        stream.shutdown().await?;
        copy(&mut stream.take(LINGER_BYTES), &mut sink()).await
    };
    if let Ok(Err(error)) = timeout(LINGER, close).await {
        tracing::debug!(error = %error, "client left before its connection was closed");
    }
}

/// Accepts the next connection; retries after errors.
async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    let mut backoff = FIRST_BACKOFF;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if let Err(error) = stream.set_nodelay(true) {
                    tracing::debug!(error = %error, "client left before it was served");
                }
                return (stream, peer.ip());
            }
            // The client left while it was queued; not an error of this server.
            Err(error) if is_client_error(&error) => {}
            Err(error) => {
                tracing::warn!(error = %error, wait = ?backoff, "accepting a connection failed, retrying");
                sleep(backoff).await;
                backoff = (2 * backoff).min(LAST_BACKOFF);
            }
        }
    }
}

fn is_client_error(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

async fn drain(mut connections: JoinSet<()>, deadline: Duration) {
    let all = async {
        while let Some(ended) = connections.join_next().await {
            log_panic(ended);
        }
    };
    if timeout(deadline, all).await.is_err() {
        tracing::warn!(n_connections = connections.len(), "stopped with requests in flight");
        connections.shutdown().await;
    }
}

fn log_panic(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        tracing::error!(error = %error, "connection task failed");
    }
}
