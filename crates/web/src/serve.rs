//! The accept loop of every server, and HTTP/1.1 service of an [`App`].
//!
//! # Invariants
//! * Beyond the connection limit nothing is accepted: clients wait in the kernel's bounded queue. Beyond the limit per
//!   client, a connection is closed at once.
//! * An error of `accept` never ends the loop.
//! * A stop closes the listener, then idle connections, then waits for requests in flight, and aborts the rest at the
//!   deadline.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{AcquireError, Semaphore, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep, timeout};

use crate::app::App;
use crate::concurrency_limit::{ClientPermit, ConcurrencyLimit, PerClientLimit, RequestPermit};
use crate::limits::Limits;
use crate::rate_limit::Clients;
use crate::response_body::{ConnState, CutShort, ResponseBody};
use crate::service::AppService;
use crate::timeout_stream::{REQUEST_LINE, TimeoutStream};

/// Backoff after a failed `accept`: when descriptors run out, only time helps.
const FIRST_BACKOFF: Duration = Duration::from_millis(5);
const LAST_BACKOFF: Duration = Duration::from_secs(1);

/// The minimum that hyper accepts.
const LEAST_BUFFER: usize = 8192;

/// Interval of the warning that an address is at its connection limit.
const WARN_EVERY: Duration = Duration::from_secs(10);

/// Serves until `shutdown` resolves, then drains requests in flight for at most [`Limits::stop`].
///
/// Handlers run on the threads of the current runtime. Handlers that block on disk reads need a runtime of their own
/// ([`crate::server::Server`]).
pub async fn serve<A: Send + Sync + 'static>(
    listener: TcpListener,
    app: Arc<App<A>>,
    limits: Limits,
    shutdown: impl Future<Output = ()>,
) {
    let limits = Arc::new(limits);
    let extra_header = if app.cors().is_any() { "access-control-allow-origin: *\r\n" } else { "" };
    let clients = Arc::new(Clients::new(&limits));
    let accept_loop =
        AcceptLoop { limits: Arc::clone(&limits), clients: Some(Arc::clone(&clients)), extra_header };
    let service = move |conn, peer| {
        let (app, limits, clients) = (Arc::clone(&app), Arc::clone(&limits), Arc::clone(&clients));
        AppService { app, limits, clients, peer, conn }
    };
    accept_loop.run(listener, service, shutdown).await;
}

/// The accept loop, with the settings that all connections share.
pub(crate) struct AcceptLoop {
    pub(crate) limits: Arc<Limits>,
    /// Identifies clients for the connection limit per client; `None` disables that limit.
    pub(crate) clients: Option<Arc<Clients>>,
    /// See [`TimeoutStream::new`].
    pub(crate) extra_header: &'static str,
}

impl AcceptLoop {
    /// Runs the loop; `service` makes the service of one connection from the peer address.
    pub(crate) async fn run<S>(
        self,
        listener: TcpListener,
        service: impl Fn(Arc<ConnState>, IpAddr) -> S,
        shutdown: impl Future<Output = ()>,
    ) where
        S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = CutShort> + Send + 'static,
        S::Future: Send + 'static,
    {
        let mut shutdown = pin!(shutdown);
        let permits = Arc::new(Semaphore::new(self.limits.connections));
        let slots = ConcurrencyLimit::new(self.limits.requests, self.limits.requests_per_client);
        let mut per_client = ConnectionLimit::new(self.clients.clone(), self.limits.connections_per_client);
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
            let Ok(share) = per_client.admit(peer) else { continue };
            let conn = Arc::new(ConnState::new(RequestPermit::of(&slots)));
            let wire =
                TimeoutStream::new(stream, Arc::clone(&conn), Arc::clone(&self.limits), self.extra_header);
            let service = service(Arc::clone(&conn), peer);
            let connection = self.connection(wire, service, conn, stopped.clone());
            connections.spawn(async move {
                connection.await;
                drop((permit, share));
            });
            while let Some(ended) = connections.try_join_next() {
                log_panic(ended);
            }
        }
        drop(listener);
        drop(stop);
        drain(connections, self.limits.stop).await;
    }

    /// One connection from its first request to its last, and the upgraded protocol after it.
    fn connection<S>(
        &self,
        wire: TimeoutStream,
        service: S,
        conn: Arc<ConnState>,
        mut stopped: watch::Receiver<()>,
    ) -> impl Future<Output = ()> + Send + use<S>
    where
        S: Service<Request<Incoming>, Response = Response<ResponseBody>, Error = CutShort> + Send + 'static,
        S::Future: Send + 'static,
    {
        // Heads up to this size reach the service, which distinguishes a long target from large headers.
        let head = self.limits.target + self.limits.headers + REQUEST_LINE;
        let connection = http1::Builder::new()
            .max_header_size(head)
            // hyper's default lets a pipelining client grow the buffer to 400 KiB.
            .max_buf_size(head.max(LEAST_BUFFER))
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(wire), service)
            .with_upgrades();
        async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                biased;
                ended = connection.as_mut() => ended,
                // Always an error: the sender is dropped.
                _ = stopped.changed() => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(error = %error, "connection ended early");
            } else if let Some(upgrade) = conn.take_upgrade() {
                tokio::select! {
                    () = upgrade.run() => {}
                    _ = stopped.changed() => {}
                }
            }
        }
    }
}

/// Connections per client.
struct ConnectionLimit {
    clients: Option<Arc<Clients>>,
    shares: Arc<PerClientLimit>,
    limit: usize,
    warned: Option<Instant>,
}

/// The client is at its connection limit.
struct TooMany;

impl ConnectionLimit {
    fn new(clients: Option<Arc<Clients>>, limit: usize) -> Self {
        Self { clients, shares: PerClientLimit::new(limit), limit, warned: None }
    }

    /// A permit for one more connection of `peer`; `Ok(None)` if its connections are not counted.
    fn admit(&mut self, peer: IpAddr) -> Result<Option<ClientPermit>, TooMany> {
        let Some(client) = self.clients.as_ref().and_then(|clients| clients.client_of_peer(peer)) else {
            return Ok(None);
        };
        let share = self.shares.take(client);
        if share.is_none() && self.warned.is_none_or(|at| at.elapsed() >= WARN_EVERY) {
            self.warned = Some(Instant::now());
            tracing::warn!(%peer, limit = self.limit, "an address has all connections that one may have; is it a proxy that is not trusted?");
        }
        share.map(Some).ok_or(TooMany)
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
                tracing::warn!(error = %error, wait = ?backoff, "no connection can be accepted, trying again");
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
