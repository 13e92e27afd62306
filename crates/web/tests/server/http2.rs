//! HTTP/2: responses in pieces, permits, and clients that read nothing.

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use web::http_error::HttpError;
use web::limits::Limits;
use web::serve::http2::{RequestHandler, RequestKind, serve_http2};
use web::serve::server::Server;

const LARGE: usize = 3 << 20;
/// Far longer than any reply takes here: only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

struct Large;

impl RequestHandler for Large {
    type Body = Full<Bytes>;

    fn kind(&self, path: &str) -> RequestKind {
        match path {
            "/probe" => RequestKind::Probe,
            "/stream" => RequestKind::Stream,
            _ => RequestKind::Reply,
        }
    }

    fn reject(&self, _: &str, error: &HttpError) -> Response<Full<Bytes>> {
        let mut response = Response::new(error.body().into());
        *response.status_mut() = error.status();
        response
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let len = if request.uri().path() == "/" { LARGE } else { 7 };
        Response::new(Bytes::from(vec![7; len]).into())
    }
}

fn open(limits: Limits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Server::run(listener, 2, |listener, stopped| serve_http2(listener, Large, limits, stopped)).unwrap()
}

type Sender = http2::SendRequest<Empty<Bytes>>;

/// A client, and its connection, which ends with it or when the server closes it.
async fn connect(address: SocketAddr) -> (Sender, JoinHandle<hyper::Result<()>>) {
    connect_with(address, (1 << 16) - 1).await
}

/// As [`connect`]; a stream may send `window` bytes before its client reads any.
async fn connect_with(address: SocketAddr, window: u32) -> (Sender, JoinHandle<hyper::Result<()>>) {
    let stream = TokioIo::new(TcpStream::connect(address).await.unwrap());
    let mut builder = http2::Builder::new(TokioExecutor::new());
    // The smallest windows, so that nearly all of a response waits in the server.
    builder.initial_stream_window_size(window).initial_connection_window_size((1 << 16) - 1);
    let (sender, connection) = builder.handshake(stream).await.unwrap();
    (sender, tokio::spawn(connection))
}

async fn get(sender: &mut Sender, path: &str) -> hyper::Result<Response<Incoming>> {
    sender.ready().await?;
    sender.send_request(Request::get(format!("http://here{path}")).body(Empty::new()).unwrap()).await
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

#[tokio::test]
async fn a_large_response_arrives_whole() {
    let server = open(Limits::default());
    let (mut client, _connection) = connect(server.address()).await;
    let response = get(&mut client, "/").await.unwrap();
    let body = soon(response.into_body().collect()).await.unwrap().to_bytes();
    assert!(body.len() == LARGE && body.iter().all(|byte| *byte == 7));
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_its_permit_until_it_is_closed() {
    let write_stall = Duration::from_millis(500);
    let server = open(Limits { requests: 1, write_stall, ..Limits::default() });
    let (mut idle, connection) = connect(server.address()).await;
    let unread = get(&mut idle, "/").await.unwrap();
    let (mut other, _other) = connect(server.address()).await;
    assert_eq!(get(&mut other, "/").await.unwrap().status(), 503);
    assert_eq!(get(&mut other, "/probe").await.unwrap().status(), 200, "a probe needs no permit");
    assert_eq!(get(&mut other, "/stream").await.unwrap().status(), 200, "a stream has a limit of its own");

    drop(soon(connection).await);
    assert!(unread.into_body().collect().await.is_err(), "the response is not complete");
    let after = soon(async {
        loop {
            let (mut client, _connection) = connect(server.address()).await;
            let response = get(&mut client, "/").await.unwrap();
            if response.status() == 200 {
                return response.into_body().collect().await.unwrap().to_bytes().len();
            }
        }
    });
    assert_eq!(after.await, LARGE);
}

#[tokio::test]
async fn a_client_that_never_grants_a_byte_is_closed_although_it_asks_on() {
    let write_stall = Duration::from_millis(300);
    let server = open(Limits { write_stall, ..Limits::default() });
    let (mut idle, connection) = connect_with(server.address(), 0).await;
    let _unread = get(&mut idle, "/small").await.unwrap();
    soon(async {
        // The head of a response needs no window.
        while get(&mut idle, "/probe").await.is_ok() {
            tokio::time::sleep(write_stall / 10).await;
        }
    })
    .await;
    drop(soon(connection).await);
}

#[tokio::test]
async fn a_connection_that_rests_is_not_closed() {
    let short = Duration::from_millis(300);
    let limits = Limits { head_read: short, keep_alive: short, write_stall: short, ..Limits::default() };
    let server = open(limits);
    let (mut client, connection) = connect(server.address()).await;
    for _ in 0..2 {
        let response = soon(get(&mut client, "/")).await.unwrap();
        assert_eq!(soon(response.into_body().collect()).await.unwrap().to_bytes().len(), LARGE);
        // As long as the clock of the limits needs to close it.
        tokio::time::sleep(3 * short).await;
    }
    assert!(!connection.is_finished());
}
