//! The websocket of the `CometBFT` service: handshake, calls and announcements of new heights.
//!
//! Faults: the handshake, every call and every announced height count as requests of the service. Delays apply to them;
//! faults that hang up, refuse or cut a reply close the websocket. Deviations apply to calls, not to announcements.
//!
//! # Invariants
//!
//! - Each height is announced once, in order, after it can be requested.
//! - At most one message waits to be sent to a client, and the size of received messages is bounded.
//! - A websocket is closed when the node goes down or switches to another recording.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use crate::answers::{Service, Subscriptions};
use crate::fault::{Effects, Websocket};
use crate::state::{NodeState, Snapshot, until_stopped};

/// The path of the websocket.
pub(crate) const PATH: &str = "/websocket";

/// Largest message of a client; calls are short.
const MAX_MESSAGE: usize = 1 << 20;
/// Read buffer per client, small because there may be as many clients as connections.
const READ_BUFFER: usize = 4 << 10;

/// The end of a client's websocket, which is not an error.
struct End;

type Socket = TokioIo<Upgraded>;

/// Answers the request that opens a websocket, and serves it until the node is stopped or dropped.
pub(crate) fn open(
    state: Arc<NodeState>,
    request: &Request<Bytes>,
    kind: Websocket,
    upgrade: OnUpgrade,
    stopped: watch::Receiver<bool>,
) -> Response<Bytes> {
    if kind == Websocket::Refused {
        return plain_text(StatusCode::NOT_FOUND, "404 page not found\n");
    }
    let Some(accept) = acceptance(request) else {
        return plain_text(StatusCode::BAD_REQUEST, "Bad Request\n");
    };
    let mut response = plain_text(StatusCode::SWITCHING_PROTOCOLS, "");
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    let snapshot = state.snapshot();
    tokio::spawn(async move {
        let mut snapshots = state.snapshots();
        // A closed channel means that the node was dropped.
        let over = snapshots.wait_for(|now| now.down || now.history != snapshot.history);
        let served = async {
            match upgrade.await {
                Ok(socket) => serve(&state, snapshot.shown, TokioIo::new(socket), kind).await,
                Err(error) => tracing::debug!(%error, "the connection did not leave HTTP"),
            }
        };
        tokio::select! {
            _ = over => {}
            () = until_stopped(stopped) => {}
            () = served => {}
        }
    });
    response
}

/// The header that accepts the websocket, if the request is a handshake (RFC 6455 §4.2.1).
fn acceptance(request: &Request<Bytes>) -> Option<HeaderValue> {
    let headers = request.headers();
    let sound = request.method() == Method::GET
        && has_token(headers, &CONNECTION, "upgrade")
        && has_token(headers, &UPGRADE, "websocket")
        && has_token(headers, &SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| sound)?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(token))
}

/// A plain-text response of a proxy or of the HTTP server, not of the node.
pub(crate) fn plain_text(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = status;
    response
}

/// Serves one client; heights above `announced` are new to it.
async fn serve(state: &NodeState, announced: u64, mut socket: Socket, kind: Websocket) {
    if kind == Websocket::Silent {
        // Pings are not answered either.
        match tokio::io::copy(&mut socket, &mut tokio::io::sink()).await {
            Ok(read) => tracing::debug!(read, "client left a silent websocket"),
            Err(error) => tracing::debug!(%error, "client left a silent websocket"),
        }
        return;
    }
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let socket = WebSocketStream::from_raw_socket(socket, Role::Server, Some(config)).await;
    let mut client = Client { state, socket, subscriptions: Subscriptions::default(), announced };
    let End = client.run().await;
}

struct Client<'a> {
    state: &'a NodeState,
    socket: WebSocketStream<Socket>,
    subscriptions: Subscriptions,
    /// The last height that was announced, or had no subscription.
    announced: u64,
}

impl Client<'_> {
    async fn run(&mut self) -> End {
        let mut snapshots = self.state.snapshots();
        loop {
            let step = tokio::select! {
                message = self.socket.next() => match message {
                    Some(Ok(Message::Text(text))) => self.handle(text.as_bytes()).await,
                    Some(Ok(Message::Binary(bytes))) => self.handle(&bytes).await,
                    // Pings and closings are answered while the loop waits for the next message.
                    Some(Ok(_)) => Ok(()),
                    Some(Err(_)) | None => Err(End),
                },
                changed = snapshots.changed() => match changed {
                    Ok(()) => {
                        let snapshot = snapshots.borrow_and_update().clone();
                        self.announce(&snapshot).await
                    }
                    Err(_) => Err(End),
                },
            };
            if let Err(end) = step {
                return end;
            }
        }
    }

    /// Answers a call.
    async fn handle(&mut self, message: &[u8]) -> Result<(), End> {
        let effects = effects(self.state).await?;
        let snapshot = self.state.snapshot();
        let answer = self
            .state
            .view(Service::Comet, &snapshot, &effects, |view| self.subscriptions.handle(view, message));
        match answer {
            Some(answer) => self.send_text(&answer).await,
            None => Ok(()),
        }
    }

    /// Announces every height above the last announced one.
    async fn announce(&mut self, snapshot: &Snapshot) -> Result<(), End> {
        // A lower tip is not announced; the heights above it are announced again when they are shown again.
        self.announced = self.announced.min(snapshot.shown);
        while self.announced < snapshot.shown {
            self.announced += 1;
            let Some(height) = snapshot.recording.height(self.announced) else { continue };
            let events = self.subscriptions.announce(&height).map_err(|e| {
                tracing::error!(height = self.announced, error = %e, "announcing a height failed");
                End
            })?;
            if !events.is_empty() {
                effects(self.state).await?;
            }
            for event in events {
                self.send_text(&event).await?;
            }
        }
        Ok(())
    }

    async fn send_text(&mut self, json: &[u8]) -> Result<(), End> {
        let text = String::from_utf8_lossy(json).into_owned();
        self.socket.send(Message::text(text)).await.map_err(|_| End)
    }
}

/// The effects of the faults on the next message, after their delay.
async fn effects(state: &NodeState) -> Result<Effects, End> {
    let effects = state.next_effects(Service::Comet, &state.snapshot());
    sleep(effects.delay).await;
    let ends = effects.hang_up || effects.cut || effects.status.is_some();
    if ends { Err(End) } else { Ok(effects) }
}
