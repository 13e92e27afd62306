//! Websocket of a CometBFT endpoint, subscribed to new block headers.
//!
//! The subscription is to `NewBlockHeader`, which CometBFT 0.38 sends right after `NewBlock` (`state/execution.go`,
//! both after the commit). Its events have two kilobytes; `NewBlock` would send the whole block and its results,
//! which are fetched anyway. A header does not contain its own hash, only that of its parent.
//!
//! # Invariants
//!
//! * The websocket is opened over the connections of all other requests, with the same path and credentials.
//! * A message is bounded and no message is queued here.
//! * A peer that sends nothing, not even a pong, is disconnected.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use crate::endpoint::{Call, Endpoint};
use crate::error::{Error, Site, excerpt};
use crate::rpc::{self, RpcResponse};
use crate::status::{NewBlock, hash_or_none};

/// A live subscription.
pub(crate) struct Socket {
    stream: WebSocketStream<TokioIo<Upgraded>>,
    at: Site,
    heard: Instant,
    ping: Instant,
}

const SUBSCRIBE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"subscribe","params":{"query":"tm.event='NewBlockHeader'"}}"#;

/// Largest message; a header is far smaller.
const MESSAGE: usize = 64 << 10;

/// Ping interval. CometBFT closes a connection that was silent for 30 s.
const PING: Duration = Duration::from_secs(12);

/// A peer that has been silent for this long is disconnected.
const DEAD: Duration = Duration::from_secs(40);

pub(crate) fn websocket_call() -> Call {
    Call::get("websocket", "/websocket".to_owned())
}

impl Socket {
    /// Connects and subscribes; the subscription is confirmed when this returns.
    pub(crate) async fn open(endpoint: &Endpoint) -> Result<Self, Error> {
        let call = websocket_call();
        let (at, limits) = (endpoint.site(&call), endpoint.limits());
        let whole = async {
            let upgraded = endpoint.upgrade(&call).await?;
            let size = Some(MESSAGE.min(limits.body));
            let config = WebSocketConfig::default()
                .read_buffer_size(MESSAGE)
                .write_buffer_size(0)
                .max_write_buffer_size(MESSAGE)
                .max_message_size(size)
                .max_frame_size(size);
            let stream =
                WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, Some(config)).await;
            let now = Instant::now();
            let mut socket = Self { stream, at: at.clone(), heard: now, ping: now + PING };
            socket.send(Message::text(SUBSCRIBE)).await?;
            match socket.next_result().await?.data {
                None => Ok(socket),
                Some(_) => Err(socket.malformed("an event before the subscription was confirmed")),
            }
        };
        let after = limits.timeout;
        timeout(after, whole).await.unwrap_or(Err(Error::TimedOut { at: at.clone(), after }))
    }

    /// The next block. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Result<NewBlock, Error> {
        loop {
            if let Some(data) = self.next_result().await?.data {
                let header = data.value.header;
                let height =
                    header.height.parse().map_err(|_| self.malformed("a header without a height in it"))?;
                let parent = hash_or_none(&header.last_block_id.hash)
                    .map_err(|_| self.malformed("a parent's hash that is none"))?;
                return Ok(NewBlock { chain_id: header.chain_id, height, parent });
            }
        }
    }

    async fn next_result(&mut self) -> Result<EventResult, Error> {
        let body = self.message().await?;
        match rpc::decode(&body, None).map_err(|e| self.malformed(e.reason()))? {
            RpcResponse::Result(result) => {
                serde_json::from_slice(&result).map_err(|e| self.malformed(&e.to_string()))
            }
            RpcResponse::Error(error) => Err(Error::Faulty {
                at: self.at.clone(),
                code: error.code,
                said: excerpt(error.message.as_bytes()),
            }),
        }
    }

    /// The next message. Sends pings meanwhile; the library answers the peer's pings.
    async fn message(&mut self) -> Result<Bytes, Error> {
        loop {
            let message = tokio::select! {
                message = self.stream.next() => message,
                () = sleep_until(self.ping) => {
                    self.send_ping().await?;
                    continue;
                }
            };
            self.heard = Instant::now();
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
        if now - self.heard >= DEAD {
            return Err(Error::TimedOut { at: self.at.clone(), after: DEAD });
        }
        self.ping = now + PING;
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
        Error::Cut { at: self.at.clone(), got: 0, reason: excerpt(reason.as_bytes()) }
    }

    fn malformed(&self, reason: &str) -> Error {
        Error::Malformed { at: self.at.clone(), reason: excerpt(reason.as_bytes()) }
    }
}

/// The `result` of a message: empty for the confirmation.
#[derive(Deserialize)]
struct EventResult {
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    value: Value,
}

#[derive(Deserialize)]
struct Value {
    header: Header,
}

#[derive(Deserialize)]
struct Header {
    chain_id: String,
    height: String,
    last_block_id: BlockId,
}

#[derive(Deserialize)]
struct BlockId {
    hash: String,
}
