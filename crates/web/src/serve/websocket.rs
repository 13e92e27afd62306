//! WebSocket connections (RFC 6455): each message is the body of a `POST` to the path that was upgraded, and its response
//! body is a message.
//!
//! # Invariants
//! * A socket holds a permit of [`Limits::streams`], and each of its messages one of [`Limits::requests`]: rates, shares and
//!   the counted bytes of responses are those of HTTP. A message that exceeds a rate waits, since no status can refuse it.
//! * At most [`IN_FLIGHT`] messages of a socket are answered at once; meanwhile nothing more is read from it. Their bytes count as
//!   those of responses do; a socket whose next message has no room is closed.
//! * A socket whose client answers no ping, or that stalls for [`Limits::write_stall`], is closed.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, SelectAll};
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{
    CONNECTION, CONTENT_TYPE, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Instant, interval_at, sleep, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

use crate::app::App;
use crate::bodies::Held;
use crate::http_error::HttpError;
use crate::limits::concurrency_limit::RequestPermit;
use crate::limits::rate_limit::Client;
use crate::limits::share::Share;
use crate::pushes::{Push, PushStream, Pushes};
use crate::reply::JSON;
use crate::serve::admission::{AppServer, acquire, acquire_stream, check_size, with_close};
use crate::serve::arrival::Arrival;

/// Maximum bytes of a message, as go-ethereum's server has (`rpc/websocket.go`); longer ones close the socket.
const MAX_MESSAGE: usize = 32 << 20;

/// The reason of a close for want of room or time.
const BUSY: &str = "the server is busy; try again";

/// Messages of a socket that are answered at once.
const IN_FLIGHT: usize = 16;

/// Time for the last message at a stop.
const CLOSE_WAIT: Duration = Duration::from_millis(200);

/// Interval of pings; a client that has sent nothing for one is gone.
const PING_EVERY: Duration = Duration::from_secs(30);

/// The only version (RFC 6455 §4.1).
const VERSION: &[u8] = b"13";

/// True if the client asks for a WebSocket.
pub(crate) fn is_upgrade(head: &Parts) -> bool {
    head.method == Method::GET
        && has_token(&head.headers, "websocket", &UPGRADE)
        && has_token(&head.headers, "upgrade", &CONNECTION)
}

fn has_token(headers: &HeaderMap, token: &str, name: &http::HeaderName) -> bool {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
}

/// The response that opens a WebSocket (RFC 6455 §4.2.2).
///
/// # Errors
/// 400 if the request lacks the key, 426 if it asks for another version.
fn accept(head: &Parts) -> Result<Response<Bytes>, HttpError> {
    if head.headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version.as_bytes() != VERSION) {
        let message = "WebSockets have version 13 here: set Sec-WebSocket-Version";
        return Err(HttpError::new(StatusCode::UPGRADE_REQUIRED, message));
    }
    let key = head.headers.get(SEC_WEBSOCKET_KEY);
    let key = key.ok_or_else(|| HttpError::bad_request("the request lacks Sec-WebSocket-Key"))?;
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    // Base64 of a hash is a header value.
    if let Ok(accept) = HeaderValue::try_from(derive_accept_key(key.as_bytes())) {
        headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    Ok(response)
}

/// A connection that has become a WebSocket.
pub(crate) struct Socket<A: 'static> {
    server: Arc<AppServer<A>>,
    app: Arc<App<A>>,
    client: Client,
    uri: Uri,
    share: Share,
    pushes: Pushes,
    /// Of an event stream.
    _permit: RequestPermit,
}

impl<A> AppServer<A> {
    /// Makes a WebSocket of a connection; otherwise the response.
    #[expect(clippy::result_large_err, reason = "the caller returns the response")]
    pub(crate) fn upgrade(
        self: &Arc<Self>,
        app: &Arc<App<A>>,
        head: &Parts,
        body: &Incoming,
        peer: IpAddr,
    ) -> Result<(Response<Bytes>, Socket<A>), Response<Bytes>> {
        let client = self.clients.client_of_request(peer, &head.headers);
        let opened = self
            .clients
            .admit(client, head.uri.path())
            .and_then(|()| check_size(head, body, &self.limits))
            .and_then(|()| accept(head))
            .and_then(|response| Ok((response, acquire_stream(&self.streams, client, &self.limits)?)));
        // A permit of this server always has a client.
        let opened = opened.and_then(|(response, permit)| {
            let share = Share::from_permit(&permit, &self.pools);
            let share = share.ok_or_else(|| HttpError::internal("a WebSocket without a client"))?;
            Ok((response, permit, share))
        });
        let (response, permit, share) = opened.map_err(|error| with_close(app.reject(head, &error)))?;
        let (server, app, uri) = (Arc::clone(self), Arc::clone(app), head.uri.clone());
        let pushes = Pushes::default();
        Ok((response, Socket { server, app, client, uri, share, pushes, _permit: permit }))
    }
}

/// A response message, with the permit of its request and the streams that it opens.
type Answer = Option<(Bytes, RequestPermit, Vec<PushStream>)>;

impl<A: Send + Sync + 'static> Socket<A> {
    /// Answers messages until the client or the server closes; `unread` are the bytes of the stream that were read before.
    pub(crate) async fn run(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        unread: Bytes,
        stopped: watch::Receiver<()>,
    ) {
        let config =
            WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
        let stream = Arrival::new(stream, self.share.clone());
        let socket =
            WebSocketStream::from_partially_read(stream, unread.into(), Role::Server, Some(config)).await;
        if let Err(error) = self.converse(socket, stopped).await {
            tracing::debug!(%error, "a WebSocket ended early");
        }
    }

    /// Ends at a stop too, even while the client reads nothing.
    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        mut socket: WebSocketStream<Arrival<S>>,
        mut stopped: watch::Receiver<()>,
    ) -> Result<(), Error> {
        tokio::select! {
            biased;
            // Always an error: the sender is dropped.
            _ = stopped.changed() => {}
            ended = self.exchange(&mut socket) => return ended,
        }
        timeout(CLOSE_WAIT, close(&mut socket, CloseCode::Away, "")).await.unwrap_or(Ok(()))
    }

    async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        socket: &mut WebSocketStream<Arrival<S>>,
    ) -> Result<(), Error> {
        let (mut answers, mut pushed) = (FuturesUnordered::new(), SelectAll::new());
        let mut pings = interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        let mut is_alive = true;
        loop {
            tokio::select! {
                biased;
                Some(answer) = answers.next() => match answer {
                    Some((text, permit, opened)) => {
                        send(socket, text).await?;
                        drop::<RequestPermit>(permit);
                        pushed.extend(opened);
                    }
                    None => return close(socket, CloseCode::Again, BUSY).await,
                },
                message = socket.next(), if answers.len() < IN_FLIGHT => {
                    is_alive = true;
                    let held = socket.get_mut().take();
                    match message {
                        Some(Ok(Message::Text(text))) => answers.push(self.answer(text.into(), held)),
                        Some(Ok(Message::Binary(bytes))) => answers.push(self.answer(bytes, held)),
                        Some(Ok(_)) => {}
                        Some(Err(Error::Capacity(_))) => {
                            return close(socket, CloseCode::Size, "a message has at most 32 MiB").await;
                        }
                        Some(Err(Error::Io(error))) if error.kind() == ErrorKind::OutOfMemory => {
                            return close(socket, CloseCode::Again, BUSY).await;
                        }
                        Some(Err(error)) => return Err(error),
                        None => return Ok(()),
                    }
                }
                Some(push) = pushed.next() => match push {
                    Push::Message(text) => match self.share.count(text) {
                        Ok(text) => send(socket, text).await?,
                        Err(_) => return close(socket, CloseCode::Again, BUSY).await,
                    },
                    Push::Close(reason) => return close(socket, CloseCode::Policy, reason).await,
                },
                _ = pings.tick() => {
                    if !is_alive && answers.len() < IN_FLIGHT {
                        return Ok(());
                    }
                    is_alive = false;
                    socket.send(Message::Ping(Bytes::new())).await?;
                }
            }
        }
    }

    /// The response to a message; `None` if it cannot be answered.
    async fn answer(&self, message: Bytes, _held: Vec<Held>) -> Answer {
        let permit = self.admit().await;
        let share = Share::from_permit(&permit, &self.server.pools)?;
        let request = Request::post(self.uri.clone()).header(CONTENT_TYPE, JSON).body(());
        let (mut head, ()) = request.ok()?.into_parts();
        head.extensions.insert(self.client);
        head.extensions.insert(share.clone());
        let pushes = self.pushes.of_next_message();
        head.extensions.insert(pushes.clone());
        let response =
            timeout(self.server.limits.answer, self.app.respond_later(&head, &message)).await.ok()?;
        Some((share.count(response.into_body()).ok()?, permit, pushes.take_opened()))
    }

    /// The permit of a message, once the limits of its client allow it.
    async fn admit(&self) -> RequestPermit {
        loop {
            let AppServer { clients, requests, limits, .. } = &*self.server;
            let permit = clients
                .admit(self.client, self.uri.path())
                .and_then(|()| acquire(requests, Some(self.client), limits));
            match permit {
                Ok(permit) => return permit,
                Err(error) => sleep(Duration::from_secs(error.retry_after().unwrap_or(1))).await,
            }
        }
    }
}

/// Sends a response; none if it is empty, as that to a notification.
async fn send<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    text: Bytes,
) -> Result<(), Error> {
    match Utf8Bytes::try_from(text) {
        Ok(text) if text.is_empty() => Ok(()),
        Ok(text) => socket.send(Message::Text(text)).await,
        Err(_) => close(socket, CloseCode::Error, "").await,
    }
}

async fn close<S: AsyncRead + AsyncWrite + Unpin>(
    socket: &mut WebSocketStream<S>,
    code: CloseCode,
    reason: &'static str,
) -> Result<(), Error> {
    socket.close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) })).await
}
