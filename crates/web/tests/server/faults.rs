//! A server that answers with any function, and plays faults.

use std::net::SocketAddr;
use std::time::Duration;

use crate::socket::Socket;
use bytes::Bytes;
use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use web::limits::Limits;
use web::raw::{RawReply, serve_raw};

/// A server on a runtime of its own, stopped when dropped.
struct Node {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    runtime: Runtime,
}

impl Node {
    fn start(limits: Limits) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(serve_raw(listener, limits, answer, async { drop(stopped.await) }));
        Self { address, stop: Some(stop), runtime }
    }
}

async fn answer(request: Request<Bytes>) -> RawReply {
    let large = Bytes::from(vec![b'x'; 1_000_000]);
    match request.uri().path() {
        "/cut/nothing" => RawReply::Cut(Response::new(large), 0),
        "/cut/some" => RawReply::Cut(Response::new(large), 600_000),
        "/cut/all" => RawReply::Cut(Response::new(large), 1_000_000),
        "/hang-up" => RawReply::HangUp,
        "/late" => {
            tokio::task::yield_now().await;
            Response::new(Bytes::from_static(b"late")).into()
        }
        _ => Response::new(request.into_body()).into(),
    }
}

#[test]
fn a_body_is_read_and_answered() {
    let node = Node::start(Limits::default());
    let mut client = Socket::open(node.address);
    client.send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello");
    let answer = client.response(false);
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    assert_eq!(client.get("/late").text(), "late");
}

#[test]
fn a_cut_answer_announces_all_and_sends_some() {
    let node = Node::start(Limits::default());
    for (target, sent) in [("/cut/nothing", 0), ("/cut/some", 600_000), ("/cut/all", 1_000_000)] {
        let mut client = Socket::open(node.address);
        client.send(format!("GET {target} HTTP/1.1\r\nhost: h\r\n\r\n"));
        assert_eq!(client.head().header("content-length"), Some("1000000"));
        assert_eq!(client.rest().len(), sent, "{target}");
    }
}

#[test]
fn a_hang_up_is_a_close_without_a_byte() {
    let node = Node::start(Limits::default());
    let mut client = Socket::open(node.address);
    assert_eq!(client.get("/").status, 200);
    client.send("GET /hang-up HTTP/1.1\r\nhost: h\r\n\r\n");
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_body_past_the_limit_never_reaches_the_function() {
    let node = Node::start(Limits { body: 10, ..Limits::default() });
    let mut client = Socket::open(node.address);
    client.send("POST /hang-up HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\nhello world");
    let answer = client.response(false);
    assert_eq!((answer.status, answer.header("content-type")), (413, Some("application/json")));
}

#[test]
fn it_stops_when_told() {
    let mut node = Node::start(Limits::default());
    let mut client = Socket::open(node.address);
    assert_eq!(client.get("/").status, 200);
    drop(node.stop.take());
    assert_eq!(client.rest(), b"");
    assert!(std::net::TcpStream::connect(node.address).is_err());
    node.runtime.shutdown_timeout(Duration::from_secs(5));
}
