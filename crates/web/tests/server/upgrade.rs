//! Connections that leave HTTP: what a handler does with the socket, and what still bounds it.

use std::net::SocketAddr;
use std::time::Duration;

use crate::socket::Socket;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use web::limits::Limits;
use web::raw::{RawReply, serve_raw};
use web::upgrade::Upgrade;

/// A server on a runtime of its own, stopped when dropped.
struct Node {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    _runtime: Runtime,
}

impl Node {
    fn start(limits: Limits) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(serve_raw(listener, limits, answer, async { drop(stopped.await) }));
        Self { address, stop: Some(stop), _runtime: runtime }
    }

    /// A client whose connection was taken over.
    fn taken(&self, more: &str) -> Socket {
        let mut client = Socket::open(self.address);
        client.send(format!(
            "GET /echo HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n{more}"
        ));
        assert_eq!(client.head().status, 101);
        client
    }

    /// A client whose handler is at work: it says back what looks like a head.
    fn at_work(&self) -> Socket {
        let mut client = self.taken("HTTP/1.1 299\r\n\r\n");
        assert_eq!(client.head().status, 299);
        client
    }
}

/// Says back every byte, up to and including a `!`; or does not agree after all.
async fn answer(request: Request<Bytes>) -> RawReply {
    let mut response = Response::new(Bytes::new());
    if request.uri().path() == "/" {
        return response.into();
    }
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    response.headers_mut().insert("upgrade", "echo".parse().unwrap());
    if request.uri().path() == "/no" {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
    let echo = Upgrade::new(|mut socket| async move {
        while let Ok(byte) = socket.read_u8().await {
            socket.write_all(&[byte]).await.unwrap();
            socket.flush().await.unwrap();
            if byte == b'!' {
                return;
            }
        }
    });
    RawReply::Upgrade(response, echo)
}

#[test]
fn the_handler_has_every_byte_after_the_request_and_closes_when_it_ends() {
    let node = Node::start(Limits::default());
    let mut client = node.taken("early ");
    client.send("GET / HTTP/1.1\r\n\r\n!");
    assert_eq!(client.rest(), b"early GET / HTTP/1.1\r\n\r\n!");
}

#[test]
fn the_timeouts_of_http_are_over() {
    let short = Duration::from_millis(40);
    let limits = Limits { head_read: short, keep_alive: short, body_read: short, ..Limits::default() };
    let node = Node::start(limits);
    let (mut client, mut idle) = (node.taken("a"), Socket::open(node.address));
    assert_eq!(idle.get("/").status, 200);
    // When the idle connection has been closed, the other one has been silent for as long.
    assert_eq!(idle.rest(), b"");
    client.send("b!");
    assert_eq!(client.rest(), b"ab!");
}

#[test]
fn it_is_still_a_connection_and_no_longer_a_request() {
    let node = Node::start(Limits { connections: 2, requests: 1, ..Limits::default() });
    let mut taken = node.at_work();
    let mut second = Socket::open(node.address);
    assert_eq!(second.get("/").status, 200);
    let mut third = Socket::open(node.address);
    third.send("GET / HTTP/1.1\r\nhost: h\r\n\r\n");
    assert_eq!(second.get("/").status, 200);
    assert!(!third.has_answer());
    taken.send("!");
    assert_eq!(taken.rest(), b"!");
    assert_eq!(third.response(false).status, 200);
}

#[test]
fn a_stop_closes_it() {
    let mut node = Node::start(Limits::default());
    let mut client = node.at_work();
    drop(node.stop.take());
    assert_eq!(client.rest(), b"");
}

#[test]
fn without_the_status_101_the_connection_stays_one_of_http() {
    let node = Node::start(Limits::default());
    let mut client = Socket::open(node.address);
    client.send("GET /no HTTP/1.1\r\nhost: h\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n");
    assert_eq!(client.response(false).status, 403);
    assert_eq!(client.get("/").status, 200);
}
