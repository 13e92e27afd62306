//! Event streams: format, limits, slow clients, stop.

use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use web::limits::Limits;
use web::serve::server::Server;

use crate::socket::{Response, Socket};

const SOON: Duration = Duration::from_millis(150);
/// Far longer than anything takes here.
const LONG: Duration = Duration::from_mins(1);

/// Opens the stream `target`; the head of its response.
fn open(server: &Server, target: &str, headers: &str) -> (Socket, Response) {
    let mut client = Socket::open(server.address());
    client.send(format!("GET {target} HTTP/1.1\r\nhost: h\r\n{headers}\r\n"));
    let head = client.head();
    (client, head)
}

/// Retries until the stream opens, as permits are released only after a connection has ended.
fn reopen(server: &Server, target: &str) -> Socket {
    let begun = Instant::now();
    loop {
        let (client, head) = open(server, target, "");
        if head.status == 200 {
            return client;
        }
        assert!(begun.elapsed() < LONG, "{head:?}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_stream_has_its_own_headers_and_its_events_come_at_once() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let (mut client, head) =
        open(&server, "/news/2", "accept-encoding: gzip\r\norigin: https://a.example\r\n");
    assert_eq!(head.status, 200);
    for (name, value) in [
        ("content-type", Some("text/event-stream")),
        ("cache-control", Some("no-store")),
        ("x-accel-buffering", Some("no")),
        ("access-control-allow-origin", Some("*")),
        ("transfer-encoding", Some("chunked")),
        ("etag", None),
        ("content-encoding", None),
        ("content-length", None),
    ] {
        assert_eq!(head.header(name), value, "{name}");
    }
    assert!(client.until("data: {\"n\":1}\n\n").ends_with("id: 1\nevent: news\ndata: {\"n\":1}\n\n"));
    assert!(client.until("data: {\"n\":2}\n\n").contains("id: 2\n"));
    let (mut client, _) = open(&server, "/news/9", "last-event-id: 8\r\n");
    assert!(client.until("\n\n").contains("id: 9\n"), "the handler has the headers of the request");
}

#[test]
fn a_stream_that_ends_leaves_its_connection_open() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let (mut client, _) = open(&server, "/news/end", "");
    assert!(client.until("0\r\n\r\n").contains("id: 1\n"));
    assert_eq!(client.get("/till").status, 200);
    let head = client.request("HEAD", "/news/end", "");
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
}

#[test]
fn an_error_of_a_stream_is_json() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut client = Socket::open(server.address());
    let refused = client.get("/news/many");
    assert_eq!((refused.status, refused.header("content-type")), (400, Some("application/json")));
    assert_eq!(client.request("DELETE", "/news/1", "").status, 405);
    assert_eq!(client.request("OPTIONS", "/news/1", "").status, 204);
}

#[test]
fn a_stream_without_events_sends_comments_and_outlives_the_timeouts_of_requests() {
    let short = Duration::from_millis(30);
    let limits =
        Limits { heartbeat: short, answer: short, head_read: short, keep_alive: short, ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let (mut client, _) = open(&server, "/news/0", "");
    for _ in 0..6 {
        assert!(client.until(":\n\n").ends_with("3\r\n:\n\n"));
    }
}

#[test]
fn streams_have_limits_of_their_own() {
    let limits = Limits { requests: 1, requests_per_client: 1, streams: 2, ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let held = [open(&server, "/news/1", ""), open(&server, "/news/1", "")];
    assert!(held.iter().all(|(_, head)| head.status == 200));
    let mut client = Socket::open(server.address());
    let refused = client.get("/news/1");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.text().contains("2 event streams are open"), "{}", refused.text());
    assert_eq!(client.get("/till").status, 200, "streams hold no permit of a request");
    drop(held);
    reopen(&server, "/news/1").until("id: 1\n");

    let (server, _slow) = crate::shop::open(Limits { streams_per_client: 1, ..Limits::default() });
    let (one, head) = open(&server, "/news/1", "");
    assert_eq!(head.status, 200);
    let refused = Socket::open(server.address()).get("/news/1");
    assert_eq!(refused.status, 429);
    assert!(refused.text().contains("1 event streams are open from your address"), "{}", refused.text());
    drop(one);
    reopen(&server, "/news/1").until("id: 1\n");
}

#[test]
fn a_client_that_reads_nothing_is_ended() {
    let (server, _slow) = crate::shop::open(Limits { write_stall: SOON, streams: 1, ..Limits::default() });
    let (greedy, head) = open(&server, "/news/endless", "");
    assert_eq!(head.status, 200);
    // The only permit is free once the server has ended that stream.
    reopen(&server, "/news/1").until("id: 1\n");
    drop(greedy);
}

#[test]
fn a_stop_ends_streams_at_once() {
    let (server, _slow) = crate::shop::open(Limits { stop: LONG, ..Limits::default() });
    let (mut client, _) = open(&server, "/news/1", "");
    client.until("id: 1\n");
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < LONG / 4);
    assert!(client.rest().ends_with(b"0\r\n\r\n"), "the end is regular");
}

#[test]
fn a_stream_opens_without_a_socket_too() {
    let (app, _slow) = crate::shop::app();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let events: Vec<_> = runtime.block_on(app.open("/news/3").unwrap().take(3).collect());
    assert_eq!(events[2].data(), r#"{"n":3}"#);
    for (target, status) in [("/news/x", 400), ("/nowhere", 404), ("/till", 500)] {
        assert_eq!(app.open(target).err().unwrap().status(), status, "{target}");
    }
    assert_eq!(app.read("/news/1").unwrap_err().status(), 500);
    let head = app.get("/news/1");
    assert_eq!(
        (head.status().as_u16(), &head.headers()["content-type"]),
        (200, &http::HeaderValue::from_static("text/event-stream"))
    );
}
