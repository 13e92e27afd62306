//! Websocket of a CometBFT endpoint, subscribed to new block headers.
//!
//! The subscription is to `NewBlockHeader`, which CometBFT 0.38 sends right after `NewBlock` (`state/execution.go`,
//! both after the commit). Its events have two kilobytes; `NewBlock` would send the whole block and its results,
//! which are fetched anyway. A header does not contain its own hash, only that of its parent.
//!
//! # Invariants
//!
//! * The websocket is opened with the path, credentials and TLS settings of all other requests.
//! * A message is bounded and no message is queued here.
//! * A peer that sends nothing, not even a pong, is disconnected.

use std::time::Duration;

use bytes::Bytes;
use chain::excerpt;
use futures_util::{SinkExt as _, StreamExt as _};
use http::uri::Scheme;
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::{Message, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, client::IntoClientRequest as _};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::comet::status::NewBlock;
use crate::error::{Error, RequestContext};
use crate::pool::endpoint::{Endpoint, Request};
use crate::pool::transport::Stream;
use crate::rpc::{self, RpcResponse};

/// A live subscription.
pub(crate) struct Socket {
    stream: WebSocketStream<Stream>,
    at: RequestContext,
    last_message: Instant,
    next_ping: Instant,
}

const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"query":"tm.event='NewBlockHeader'"}}"#;

/// Largest message; a header is far smaller.
const MESSAGE: usize = 64 << 10;

/// Ping interval. CometBFT closes a connection that was silent for 30 s.
const PING: Duration = Duration::from_secs(12);

/// A peer that has been silent for this long is disconnected.
const DEAD: Duration = Duration::from_secs(40);

pub(crate) fn websocket_request() -> Request {
    Request::get("websocket", "/websocket".to_owned())
}

impl Socket {
    /// Connects and subscribes; the subscription is confirmed when this returns.
    pub(crate) async fn open(endpoint: &Endpoint) -> Result<Self, Error> {
        let request = websocket_request();
        let (at, after) = (endpoint.context(&request), endpoint.limits().timeout);
        let whole = async {
            let now = Instant::now();
            let stream = handshake(endpoint, &request).await?;
            let mut socket = Self { stream, at: at.clone(), last_message: now, next_ping: now + PING };
            socket.send(Message::text(SUBSCRIBE)).await?;
            match socket.next_event().await? {
                None => Ok(socket),
                Some(_) => Err(socket.malformed("an event before the subscription was confirmed")),
            }
        };
        timeout(after, whole).await.unwrap_or(Err(Error::TimedOut { at: at.clone(), after }))
    }

    /// The next block. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<NewBlock, Error> {
        loop {
            if let Some(data) = self.next_event().await? {
                return NewBlock::read(&data).map_err(|reason| self.malformed(&reason));
            }
        }
    }

    /// The data of the next event; `None` for the confirmation of the subscription.
    async fn next_event(&mut self) -> Result<Option<Value>, Error> {
        #[derive(Deserialize)]
        struct Event {
            data: Option<Value>,
        }
        let body = self.message().await?;
        match rpc::decode(&body, None).map_err(|e| self.malformed(e.reason()))? {
            RpcResponse::Result(result) => {
                let event = serde_json::from_slice::<Event>(&result);
                Ok(event.map_err(|e| self.malformed(&e.to_string()))?.data)
            }
            RpcResponse::Error(error) => {
                let (at, message) = (self.at.clone(), excerpt(&error.message));
                Err(Error::Faulty { at, code: error.code, message })
            }
        }
    }

    /// The next message. Sends pings meanwhile; the library answers the peer's pings.
    async fn message(&mut self) -> Result<Bytes, Error> {
        loop {
            let message = tokio::select! {
                message = self.stream.next() => message,
                () = sleep_until(self.next_ping) => {
                    self.send_ping().await?;
                    continue;
                }
            };
            self.last_message = Instant::now();
            match message {
                Some(Ok(Message::Text(text))) => return Ok(text.into()),
                Some(Ok(Message::Binary(bytes))) => return Ok(bytes),
                Some(Ok(Message::Close(_))) | None => return Err(self.cut("closed by the node")),
                Some(Ok(_)) => {}
                Some(Err(e)) => return Err(self.cut(&e.to_string())),
            }
        }
    }

    async fn send_ping(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if now - self.last_message >= DEAD {
            return Err(Error::TimedOut { at: self.at.clone(), after: DEAD });
        }
        self.next_ping = now + PING;
        self.send(Message::Ping(Bytes::new())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Error> {
        match timeout(PING, self.stream.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(e)) => Err(self.cut(&e.to_string())),
            Err(_) => Err(Error::TimedOut { at: self.at.clone(), after: PING }),
        }
    }

    fn cut(&self, reason: &str) -> Error {
        Error::Cut { at: self.at.clone(), reason: excerpt(reason) }
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { at: self.at.clone(), reason: excerpt(reason) }
    }
}

/// Opens a connection and makes it a websocket (RFC 6455 §4.1).
async fn handshake(endpoint: &Endpoint, request: &Request) -> Result<WebSocketStream<Stream>, Error> {
    let (http, stream) = endpoint.connect(request).await?;
    let cut =
        |e: tungstenite::Error| Error::Cut { at: endpoint.context(request), reason: excerpt(e.to_string()) };
    // The library accepts no other scheme; TLS, if any, is the stream's.
    let mut uri = http.uri().clone().into_parts();
    uri.scheme = Scheme::try_from("ws").ok();
    let uri = Uri::from_parts(uri).map_err(|e| cut(tungstenite::Error::HttpFormat(e.into())))?;
    let mut handshake = uri.into_client_request().map_err(cut)?;
    handshake.headers_mut().extend(http.headers().clone());
    let size = Some(MESSAGE.min(endpoint.limits().body));
    let config = WebSocketConfig::default()
        .read_buffer_size(MESSAGE)
        .write_buffer_size(0)
        .max_write_buffer_size(MESSAGE)
        .max_message_size(size)
        .max_frame_size(size);
    let response = match client_async_with_config(handshake, stream, Some(config)).await {
        Ok((stream, _response)) => return Ok(stream),
        Err(tungstenite::Error::Http(response)) => response,
        Err(e) => return Err(cut(e)),
    };
    endpoint.check_rate_limit(request, &response)?;
    let advice = if response.status() == StatusCode::NOT_FOUND {
        "the server has no websocket at this path"
    } else {
        "the server, or a proxy in front of it, opens no websocket"
    };
    let message = format!("HTTP {}", response.status().as_u16());
    Err(Error::MethodMissing { at: endpoint.context(request), message, advice })
}
