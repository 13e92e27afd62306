//! The websocket side of the scripted server, which sends the test's messages.
//!
//! Every connection is upgraded properly and its subscription confirmed; the client's messages are stored with the
//! requests of the server. One connection at a time gets the test's frames.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::scripted::Asked;

/// Sender of the test's messages. Dropping it ends the connection.
pub(crate) type EventSender = mpsc::UnboundedSender<Message>;

/// The frames for one websocket.
#[derive(Clone)]
pub(crate) struct Feed(Arc<Mutex<mpsc::UnboundedReceiver<Message>>>);

/// A websocket whose messages the test sends.
pub(crate) fn feed() -> (EventSender, Feed) {
    let (events, ear) = mpsc::unbounded_channel();
    (events, Feed(Arc::new(Mutex::new(ear))))
}

/// A `NewBlockHeader` event as CometBFT 0.38 sends it.
pub(crate) fn event(chain_id: &str, height: u64) -> Message {
    let parent = "AB".repeat(32);
    Message::text(format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"query":"tm.event='NewBlockHeader'","data":{{"type":"tendermint/event/NewBlockHeader","value":{{"header":{{"version":{{"block":"11"}},"chain_id":"{chain_id}","height":"{height}","time":"2026-01-01T00:00:00Z","last_block_id":{{"hash":"{parent}","parts":{{"total":1,"hash":"00"}}}},"proposer_address":"00"}}}}}},"events":{{"tm.event":["NewBlockHeader"]}}}}}}"#
    ))
}

impl Feed {
    /// Serves one connection until the test or the client ends it.
    pub(crate) async fn speak(&self, mut socket: TcpStream, asked: &Asked, hear: impl Fn(Asked)) {
        let accept = derive_accept_key(asked.key.as_bytes());
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: {accept}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).await.unwrap();
        let mut stream = WebSocketStream::from_raw_socket(socket, Role::Server, None).await;
        let mut ear = self.0.lock().await;
        let mut subscribed = false;
        loop {
            tokio::select! {
                message = stream.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        subscribed = true;
                        hear(Asked::frame("text", &text));
                        stream.send(Message::text(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)).await.unwrap();
                    }
                    Some(Ok(Message::Pong(bytes))) => hear(Asked::frame("pong", &String::from_utf8_lossy(&bytes))),
                    Some(Ok(_)) => {}
                    Some(Err(_)) | None => return,
                },
                frame = ear.recv(), if subscribed => match frame {
                    Some(frame) => if stream.send(frame).await.is_err() { return },
                    None => return,
                }
            }
        }
    }
}
