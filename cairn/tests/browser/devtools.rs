//! The Chrome DevTools Protocol: JSON commands, their results and events over one WebSocket.
//!
//! # Invariants
//!
//! - Events are kept in the order of their arrival until they are taken.
//! - Every wait has a deadline.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tungstenite::{Error, Message, WebSocket};

/// Longer than any command or page takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The longest wait for one frame; deadlines are checked between two.
const FRAME_WAIT: Duration = Duration::from_millis(100);

/// An event of the browser.
pub(crate) struct Event {
    pub(crate) method: String,
    pub(crate) params: Value,
}

/// A connection to the browser, or to one tab of it.
pub(crate) struct Connection {
    socket: WebSocket<TcpStream>,
    last_id: u64,
    events: VecDeque<Event>,
}

impl Connection {
    /// Connects to `path` at `authority`, as in `127.0.0.1:9222`.
    pub(crate) fn open(authority: &str, path: &str) -> Self {
        let stream = TcpStream::connect(authority).unwrap();
        stream.set_nodelay(true).unwrap();
        let (socket, _) = tungstenite::client(format!("ws://{authority}{path}"), stream).unwrap();
        socket.get_ref().set_read_timeout(Some(FRAME_WAIT)).unwrap();
        Self { socket, last_id: 0, events: VecDeque::new() }
    }

    /// Runs a command and returns its result.
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            let Some(mut message) = self.receive() else { continue };
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{method}: {message}");
                return message["result"].take();
            }
            self.keep(message);
        }
        panic!("no result of {method} within {PATIENCE:?}");
    }

    /// Sends a command and returns its id.
    pub(crate) fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let command = json!({ "id": self.last_id, "method": method, "params": params });
        self.socket.send(Message::text(command.to_string())).unwrap();
        self.last_id
    }

    /// The events that have arrived with results of commands.
    pub(crate) fn arrived(&mut self) -> VecDeque<Event> {
        std::mem::take(&mut self.events)
    }

    /// The next event; panics after a minute without one, with `awaited`.
    pub(crate) fn event(&mut self, awaited: &str) -> Event {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(event) = self.events.pop_front() {
                return event;
            }
            if let Some(message) = self.receive() {
                self.keep(message);
            }
        }
        panic!("{awaited}: not within {PATIENCE:?}");
    }

    /// Waits until the browser closes the connection; false if it does not in time.
    pub(crate) fn ended(&mut self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            match self.socket.read() {
                Err(Error::Io(error)) if is_timeout(&error) => {}
                Err(_) => return true,
                Ok(_) => {}
            }
        }
        false
    }

    fn keep(&mut self, mut message: Value) {
        if let Value::String(method) = message["method"].take() {
            self.events.push_back(Event { method, params: message["params"].take() });
        }
    }

    fn receive(&mut self) -> Option<Value> {
        match self.socket.read() {
            Ok(Message::Text(text)) => Some(serde_json::from_str(&text).unwrap()),
            Ok(_) => None,
            Err(Error::Io(error)) if is_timeout(&error) => None,
            Err(error) => panic!("the browser closed the connection: {error}"),
        }
    }
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
