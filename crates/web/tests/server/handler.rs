//! A server whose handler is any function.

use std::net::SocketAddr;
use std::time::Duration;

use crate::socket::Socket;
use bytes::Bytes;
use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;
use web::limits::Limits;
use web::serve::serve_fn;

/// A server with its own runtime, stopped when dropped.
struct FnServer {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    runtime: Runtime,
}

impl FnServer {
    fn start(limits: Limits) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        runtime.spawn(serve_fn(listener, limits, answer, async { drop(stopped.await) }));
        Self { address, stop: Some(stop), runtime }
    }
}

async fn answer(request: Request<Bytes>) -> Response<Bytes> {
    match request.uri().path() {
        "/late" => {
            tokio::task::yield_now().await;
            Response::new(Bytes::from_static(b"late"))
        }
        "/never" => panic!("a rejected request reached the handler"),
        _ => Response::new(request.into_body()),
    }
}

#[test]
fn a_body_is_read_and_answered() {
    let server = FnServer::start(Limits::default());
    let mut client = Socket::open(server.address);
    client.send("POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 5\r\n\r\nhello");
    let answer = client.response(false);
    assert_eq!((answer.status, answer.text()), (200, "hello"));
    assert_eq!(client.get("/late").text(), "late");
}

#[test]
fn a_body_past_the_limit_never_reaches_the_function() {
    let server = FnServer::start(Limits { body: 10, ..Limits::default() });
    let mut client = Socket::open(server.address);
    client.send("POST /never HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\nhello world");
    let answer = client.response(false);
    assert_eq!((answer.status, answer.header("content-type")), (413, Some("application/json")));
}

#[test]
fn it_stops_on_shutdown() {
    let mut server = FnServer::start(Limits::default());
    let mut client = Socket::open(server.address);
    assert_eq!(client.get("/").status, 200);
    drop(server.stop.take());
    assert_eq!(client.rest(), b"");
    assert!(std::net::TcpStream::connect(server.address).is_err());
    server.runtime.shutdown_timeout(Duration::from_secs(5));
}
