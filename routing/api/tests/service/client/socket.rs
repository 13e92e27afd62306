//! The same service behind a socket, with the limits of `cairn route`.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use web::limits::Limits;
use web::serve::server::Server;

use super::Client;

/// A running server.
pub(crate) struct Socket(Server);

impl Socket {
    pub(crate) fn start(client: &Client) -> Self {
        let limits = Limits { body: 1 << 20, ..Limits::default() };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self(Server::start(listener, Arc::clone(&client.app), limits, 2).unwrap())
    }

    /// Sends a head and a body unchanged, and returns all bytes until the server closes.
    pub(crate) fn exchange(&self, head: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.0.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let length = body.len();
        let head = format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // A client that writes all of its body before it reads must not see a broken pipe.
        stream.write_all(body).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Waits for its threads.
    pub(crate) fn stop(self) {
        self.0.stop();
    }
}
