//! The HTTP/1.1 server of a service of the replay node, with faults of its connections.
//!
//! # Invariants
//!
//! - A fault that closes a connection leaves the other connections open.
//! - Request bodies are bounded.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::once;
use http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::answers::{HttpReply, Service, Work, answer};
use crate::state::{NodeState, until_stopped};
use crate::websocket::{self, plain_text};

/// Maximum request body in bytes: ten times a batch of 1,000 calls (go-ethereum's own limit).
const MAX_REQUEST: usize = 5 << 20;

/// Grace period for requests in flight when the node stops.
const STOP: Duration = Duration::from_secs(2);

/// Pause after a failed `accept`, until other connections release descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Time in which the first half of a truncated body reaches the client.
const FLUSH: Duration = Duration::from_millis(20);

type Body = UnsyncBoxBody<Bytes, Closed>;

/// A fault closes the connection.
#[derive(Debug, thiserror::Error)]
#[error("a fault of the replay node closes the connection")]
struct Closed;

/// Serves until the node is stopped or dropped.
pub(crate) async fn serve(
    state: Arc<NodeState>,
    service: Service,
    listener: TcpListener,
    stopped: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = until_stopped(stopped.clone()) => break,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed, retrying");
                sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "client left before it was served");
        }
        let (state, node_stopped) = (Arc::clone(&state), stopped.clone());
        let respond =
            service_fn(move |request| respond(Arc::clone(&state), service, request, node_stopped.clone()));
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(stream), respond)
            .with_upgrades();
        let stopped = until_stopped(stopped.clone());
        connections.spawn(async move {
            let mut connection = pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => Some(ended),
                () = stopped => None,
            };
            let ended = if let Some(ended) = ended {
                ended
            } else {
                connection.as_mut().graceful_shutdown();
                connection.await
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "connection ended early");
            }
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    if timeout(STOP, ended).await.is_err() {
        tracing::warn!(n_connections = connections.len(), "stopped with requests in flight");
    }
}

/// Answers a request to a service, after the delays of faults and pace.
async fn respond(
    state: Arc<NodeState>,
    service: Service,
    mut request: Request<Incoming>,
    stopped: watch::Receiver<bool>,
) -> Result<Response<Body>, Closed> {
    let upgrade = hyper::upgrade::on(&mut request);
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_REQUEST).collect().await else {
        return Ok(whole(plain_text(StatusCode::PAYLOAD_TOO_LARGE, "the request body is over 5 MiB\n")));
    };
    let request = Request::from_parts(head, body.to_bytes());
    let snapshot = state.snapshot();
    if snapshot.down {
        return Err(Closed);
    }
    let effects = state.next_effects(service, &snapshot);
    let is_search = ["/tx_search", "/cosmos/tx/v1beta1/txs"].contains(&request.uri().path());
    let delay = if is_search { effects.delay.max(effects.search_delay) } else { effects.delay };
    if !delay.is_zero() {
        sleep(delay).await;
        // A request in flight when a node goes down is never answered.
        if state.snapshot().down {
            return Err(Closed);
        }
    }
    if effects.hang_up {
        return Err(Closed);
    }
    if let Some((status, retry_after)) = effects.status {
        return Ok(whole(proxy_error(status, retry_after)));
    }
    if service == Service::Comet && request.uri().path() == websocket::PATH {
        return Ok(whole(websocket::open(state, &request, effects.websocket, upgrade, stopped)));
    }
    let waited = state.take_time(|| Work::new(&snapshot.recording, service, &request)).await;
    if waited && state.snapshot().down {
        return Err(Closed);
    }
    // A slow node answers from its state at the end of the delay.
    let answer = state.view(service, &state.snapshot(), &effects, |view| answer(service, view, &request));
    let response = response(service, answer);
    Ok(if effects.cut { truncated(response) } else { whole(response) })
}

fn whole(response: Response<Bytes>) -> Response<Body> {
    response.map(|bytes| Full::new(bytes).map_err(|never| match never {}).boxed_unsync())
}

/// Announces the whole body, sends half of it and closes the connection.
fn truncated(response: Response<Bytes>) -> Response<Body> {
    let (mut head, mut bytes) = response.into_parts();
    head.headers.insert(CONTENT_LENGTH, bytes.len().into());
    bytes.truncate(bytes.len() / 2);
    let half = once(async { Ok(Frame::data(bytes)) });
    let close = once(async {
        sleep(FLUSH).await;
        Err(Closed)
    });
    Response::from_parts(head, StreamBody::new(half.chain(close)).boxed_unsync())
}

fn response(service: Service, answer: HttpReply) -> Response<Bytes> {
    let HttpReply { status, body } = answer;
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    let is_text = service == Service::Executor && !status.is_success();
    let kind = if is_text { "text/plain; charset=utf-8" } else { "application/json" };
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = match service {
            Service::JsonRpc => "POST",
            Service::Executor => "GET",
            Service::Comet | Service::Rest => "GET, POST",
        };
        headers.insert(ALLOW, HeaderValue::from_static(allowed));
    }
    response
}

/// The error of a proxy in front of a node: plain text, not the node's JSON.
fn proxy_error(status: StatusCode, retry_after: Option<u64>) -> Response<Bytes> {
    let mut response = plain_text(status, "a fault played by the replay node\n");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}
