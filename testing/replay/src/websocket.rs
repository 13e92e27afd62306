//! The websocket of the `CometBFT` service: the opening, and one client until it leaves.
//!
//! Must hold: a height is told after it can be asked for, once, and in order; what waits to be sent to a client is one
//! message, and what is read of one is bounded. A websocket ends when the node is down or plays another history.
//!
//! Faults: the opening, every call and every told height are requests of the service. What delays a request delays
//! them; what would hang up, refuse or cut one ends the websocket. Calls are twisted as over HTTP, told heights are not.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use tokio::time::sleep;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};
use web::raw::RawReply;
use web::upgrade::{Socket, Upgrade};

use crate::answers::{Service, Subscriptions};
use crate::fault::{Effects, Websocket};
use crate::stage::{Scene, Stage};

/// Where it is.
pub(crate) const PATH: &str = "/websocket";

/// The largest message of a client; calls are short.
const MAX_MESSAGE: usize = 1 << 20;
/// What is read at a time: there may be as many clients as connections.
const READ_BUFFER: usize = 4 << 10;

/// Why a client's websocket ends; none of them is an error.
struct End;

/// Answers the request that opens a websocket.
pub(crate) fn open(stage: Arc<Stage>, request: &Request<Bytes>, kind: Websocket) -> RawReply {
    if kind == Websocket::Refused {
        return said(StatusCode::NOT_FOUND, "404 page not found\n").into();
    }
    let Some(accept) = acceptance(request) else {
        return said(StatusCode::BAD_REQUEST, "Bad Request\n").into();
    };
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    let scene = stage.scene();
    let upgrade = Upgrade::new(move |socket| async move {
        let mut scenes = stage.scenes();
        // A closed channel is a node that is gone.
        let over = scenes.wait_for(|now| now.down || now.history != scene.history);
        tokio::select! {
            _ = over => {}
            () = serve(&stage, scene.shown, socket, kind) => {}
        }
    });
    RawReply::Upgrade(response, upgrade)
}

/// The header that accepts the websocket, if the request asks for one (RFC 6455 §4.2.1).
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

fn said(status: StatusCode, text: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from_static(text.as_bytes()));
    *response.status_mut() = status;
    response
}

/// One client from its first message on; heights above `told` are news.
async fn serve(stage: &Stage, told: u64, mut socket: Socket, kind: Websocket) {
    if kind == Websocket::Silent {
        // Not even a ping is answered.
        match tokio::io::copy(&mut socket, &mut tokio::io::sink()).await {
            Ok(read) => tracing::debug!(read, "a client left a silent websocket"),
            Err(error) => tracing::debug!(%error, "a client left a silent websocket"),
        }
        return;
    }
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE));
    let socket = WebSocketStream::from_raw_socket(socket, Role::Server, Some(config)).await;
    let mut client = Client { stage, socket, subscriptions: Subscriptions::default(), told };
    let End = client.run().await;
}

struct Client<'a> {
    stage: &'a Stage,
    socket: WebSocketStream<Socket>,
    subscriptions: Subscriptions,
    /// The last height that was told, or could have been.
    told: u64,
}

impl Client<'_> {
    async fn run(&mut self) -> End {
        let mut scenes = self.stage.scenes();
        loop {
            let step = tokio::select! {
                message = self.socket.next() => match message {
                    Some(Ok(Message::Text(text))) => self.hear(text.as_bytes()).await,
                    Some(Ok(Message::Binary(bytes))) => self.hear(&bytes).await,
                    // Pings and closings are answered while the next message is waited for.
                    Some(Ok(_)) => Ok(()),
                    Some(Err(_)) | None => Err(End),
                },
                changed = scenes.changed() => match changed {
                    Ok(()) => {
                        let scene = scenes.borrow_and_update().clone();
                        self.tell(&scene).await
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
    async fn hear(&mut self, message: &[u8]) -> Result<(), End> {
        let effects = effects(self.stage).await?;
        let scene = self.stage.scene();
        let answer =
            self.stage.view(Service::Comet, &scene, &effects, |view| self.subscriptions.hear(view, message));
        match answer {
            Some(answer) => self.say(&answer).await,
            None => Ok(()),
        }
    }

    /// Tells of every height that is new since the last time.
    async fn tell(&mut self, scene: &Scene) -> Result<(), End> {
        // A lower tip is no news, and what it takes back is told again when it is shown again.
        self.told = self.told.min(scene.shown);
        while self.told < scene.shown {
            self.told += 1;
            let Some(height) = scene.recording.height(self.told) else { continue };
            let events = self.subscriptions.announce(height).map_err(|e| {
                tracing::error!(height = self.told, "cannot be told on a websocket: {e}");
                End
            })?;
            if !events.is_empty() {
                effects(self.stage).await?;
            }
            for event in events {
                self.say(&event).await?;
            }
        }
        Ok(())
    }

    async fn say(&mut self, json: &[u8]) -> Result<(), End> {
        let text = String::from_utf8_lossy(json).into_owned();
        self.socket.send(Message::text(text)).await.map_err(|_| End)
    }
}

/// What the faults do to what is said next; waited for already.
async fn effects(stage: &Stage) -> Result<Effects, End> {
    let effects = stage.next_effects(Service::Comet, &stage.scene());
    sleep(effects.delay).await;
    let ends = effects.hang_up || effects.cut || effects.status.is_some();
    if ends { Err(End) } else { Ok(effects) }
}
