//! Responses to slow, greedy or malformed clients. No sleeps: reading to the end waits for a close.

use std::time::{Duration, Instant};

use crate::socket::{Response, Socket};
use web::limits::Limits;
use web::serve::server::Server;

const SOON: Duration = Duration::from_millis(150);

fn refusal(bytes: impl AsRef<[u8]>, limits: Limits) -> Response {
    let (server, _slow) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    let answer = client.send(bytes).response(false);
    assert_eq!(client.rest(), b"", "the connection is closed after an error of this kind");
    let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(body["details"], serde_json::json!([]));
    assert!(body["message"].as_str().is_some_and(|message| !message.is_empty()));
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert!(answer.header("date").is_some());
    // No leftover disturbs the next client.
    assert_eq!(Socket::open(server.address()).get("/till").status, 200);
    answer
}

fn get(target: &str, headers: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n{headers}\r\n")
}

/// The status of hyper's own answer to a head that does not reach the service: it has no body.
fn own_answer_of_hyper(bytes: impl AsRef<[u8]>) -> u16 {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut client = Socket::open(server.address());
    let answer = client.send(bytes).response(false);
    assert_eq!((answer.header("content-length"), answer.header("connection")), (Some("0"), Some("close")));
    assert_eq!(client.rest(), b"", "the connection is closed");
    assert_eq!(Socket::open(server.address()).get("/till").status, 200);
    answer.status
}

#[test]
fn a_long_target_is_414_as_long_as_the_head_fits_the_buffer() {
    for len in [8 << 10, 12 << 10, 23 << 10] {
        let target = format!("/till?{}", "a".repeat(len));
        let answer = refusal(get(&target, ""), Limits::default());
        assert_eq!(answer.status, 414, "{len}");
        assert!(answer.text().contains("the request target is over 8192 bytes"), "{}", answer.text());
        assert!(answer.text().contains(r#"{"code":3,"#));
    }
    let (server, _slow) = crate::shop::open(Limits::default());
    let longest = format!("/till?{}", "a".repeat((8 << 10) - 6));
    assert_eq!(Socket::open(server.address()).get(&longest).status, 200);
    let huge = format!("/till?{}", "a".repeat(300_000));
    assert_eq!(own_answer_of_hyper(get(&huge, "")), 431);
}

#[test]
fn a_flood_of_headers_is_431() {
    let one_long = format!("x: {}\r\n", "a".repeat(17 << 10));
    let answer = refusal(get("/till", &one_long), Limits::default());
    assert_eq!(answer.status, 431);
    assert!(answer.text().contains("over 16384 bytes or over 100 lines"), "{}", answer.text());
    let one_huge = format!("x: {}\r\n", "a".repeat(200_000));
    let many_short = "x: y\r\n".repeat(101);
    let endless = "x: y\r\n".repeat(50_000);
    for headers in [one_huge, many_short, endless] {
        assert_eq!(own_answer_of_hyper(get("/till", &headers)), 431, "{}", headers.len());
    }
}

#[test]
fn bytes_that_are_not_http_are_400() {
    for bytes in
        ["\x16\x03\x01\x02\r\n\r\n", "GET /till\r\n\r\n", "GET /a b HTTP/1.1\r\n\r\n", "GET / HTTP/9\r\n\r\n"]
    {
        assert_eq!(own_answer_of_hyper(bytes), 400, "{bytes:?}");
    }
}

#[test]
fn a_request_has_one_host() {
    for head in [
        "GET /till HTTP/1.1\r\n",
        "GET /till HTTP/1.1\r\nhost: a\r\nhost: a\r\n",
        "GET /healthz HTTP/1.1\r\n",
    ] {
        let answer = refusal(format!("{head}connection: close\r\n\r\n"), Limits::default());
        assert_eq!(answer.status, 400, "{head}");
        assert!(answer.text().contains("Host headers, it must have one"), "{}", answer.text());
    }
    for host in ["a b", "a/b", "a\\b", "user@a", "[::1", "a:b:c", "ä", "a#b", "a?b", "<a>"] {
        let head = format!("GET /till HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
        let answer = refusal(head, Limits::default());
        assert_eq!(answer.status, 400, "{host}");
        assert!(answer.text().contains("the Host header is not a host name"), "{}", answer.text());
    }
    let (server, _slow) = crate::shop::open(Limits::default());
    for host in ["", "a", "a:", "a:80", "a.", "192.0.2.1:80", "[2001:db8::1]", "[::1]:80", "a_b", "xn--4ca"] {
        let head = format!("GET /till HTTP/1.1\r\nhost: {host}\r\n\r\n");
        assert_eq!(Socket::open(server.address()).send(head).response(false).status, 200, "{host}");
    }
    for (host, status) in [("", "200"), ("host: a\r\n", "200"), ("host: a\r\nhost: b\r\n", "400")] {
        let mut old = Socket::open(server.address());
        let answer = old.send(format!("GET /till HTTP/1.0\r\n{host}\r\n")).rest();
        assert!(answer.starts_with(format!("HTTP/1.0 {status}").as_bytes()), "{host}");
    }
}

#[test]
fn a_response_in_flight_is_sent_before_an_error() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut client = Socket::open(server.address());
    client.send("GET /large/200000 HTTP/1.1\r\nhost: h\r\n\r\nnonsense\r\n\r\n");
    let first = client.response(false);
    assert_eq!((first.status, first.body.last()), (200, Some(&b']')));
    assert_eq!(client.response(false).status, 400);
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_large_request_body_is_413_and_a_small_one_is_ignored() {
    let limits = || Limits { body: 1000, ..Limits::default() };
    for (method, target) in [("GET", "/till"), ("POST", "/till"), ("DELETE", "/nowhere")] {
        let head = format!("{method} {target} HTTP/1.1\r\nhost: h\r\ncontent-length: 100000\r\n\r\n");
        assert_eq!(refusal(head + &"a".repeat(100_000), limits()).status, 413, "{method}");
    }
    let chunk = format!("3e8\r\n{}\r\n1\r\na\r\n0\r\n\r\n", "a".repeat(1000));
    let head = "POST /till HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(refusal(format!("{head}{chunk}"), limits()).status, 413);
    let (server, _slow) = crate::shop::open(limits());
    let mut client = Socket::open(server.address());
    client.send("GET /till HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nbody");
    assert_eq!(client.response(false).text(), r#"["till"]"#);
}

#[test]
fn a_missing_body_is_408() {
    let limits = Limits { body_read: SOON, ..Limits::default() };
    assert_eq!(refusal("POST /till HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\n\r\nca", limits).status, 408);
}

/// Time for which the server keeps the connection of a client that has sent `bytes`.
fn held(server: &Server, bytes: &str, n_answers: usize) -> Duration {
    let mut client = Socket::open(server.address());
    let start = Instant::now();
    client.send(bytes);
    for _ in 0..n_answers {
        assert_eq!(client.response(false).status, 200);
    }
    assert_eq!(client.rest(), b"");
    start.elapsed()
}

#[test]
fn a_slow_head_is_closed_at_its_own_time_and_an_idle_connection_at_another() {
    let long = 10 * SOON;
    let heads_first = Limits { head_read: SOON, keep_alive: long, ..Limits::default() };
    let (server, _slow) = crate::shop::open(heads_first);
    let request = "GET /till HTTP/1.1\r\nhost: h\r\n\r\n";
    for bytes in ["", "GET /till HT", "GET /till HTTP/1.1\r\nhost: h\r\nx: "] {
        let held = held(&server, bytes, 0);
        assert!(held >= SOON && held < long, "{bytes:?}: {held:?}");
    }
    assert!(held(&server, request, 1) >= long);

    let idle_first = Limits { head_read: long, keep_alive: SOON, ..Limits::default() };
    let (server, _slow) = crate::shop::open(idle_first);
    let after_an_answer = held(&server, request, 1);
    assert!(after_an_answer >= SOON && after_an_answer < long, "{after_an_answer:?}");
    assert!(held(&server, "GET /till HT", 0) >= long);
}

#[test]
fn a_slow_second_head_is_closed_too() {
    let limits = Limits { head_read: SOON, keep_alive: Duration::from_mins(1), ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    assert_eq!(client.get("/till").status, 200);
    client.send("GET /till HT");
    assert_eq!(client.rest(), b"");
}

#[test]
fn a_response_that_is_not_read_is_aborted() {
    let limits = Limits { write_stall: SOON, connections: 1, ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut greedy = Socket::open(server.address());
    // More than the socket buffers of both sides hold.
    greedy.send("GET /large/30000000 HTTP/1.1\r\nhost: h\r\n\r\n");
    // The only permit is free once the server has aborted the response.
    assert_eq!(Socket::open(server.address()).get("/till").status, 200);
    assert!(greedy.rest().len() < 30_000_000);
}

#[test]
fn connections_beyond_the_limit_wait() {
    let (server, _slow) = crate::shop::open(Limits { connections: 3, ..Limits::default() });
    let mut held: Vec<_> = (0..3).map(|_| Socket::open(server.address())).collect();
    for client in &mut held {
        assert_eq!(client.get("/till").status, 200);
    }
    let mut waiting = Socket::open(server.address());
    waiting.send("GET /till HTTP/1.1\r\nhost: h\r\n\r\n");
    // Connected clients are served meanwhile, repeatedly.
    for turn in 0..300 {
        assert_eq!(held[turn % 3].get("/till").status, 200);
    }
    assert!(!waiting.has_answer(), "a fourth connection was served");
    drop(held.pop());
    assert_eq!(waiting.response(false).status, 200);
}

#[test]
fn hundreds_may_wait_for_a_connection_without_a_refusal() {
    let (server, _slow) = crate::shop::open(Limits { connections: 1, ..Limits::default() });
    let mut held = Socket::open(server.address());
    assert_eq!(held.get("/till").status, 200);
    // The kernel accepts connections for the server at once: if its queue is full, it drops a client's first packet,
    // and the client sends the next one a second later.
    let at = server.address();
    let waiting: Vec<_> =
        (0..400).map(|_| std::net::TcpStream::connect_timeout(&at, 6 * SOON).unwrap()).collect();
    drop((held, waiting));
    assert_eq!(Socket::open(at).get("/till").status, 200);
}

#[test]
fn a_stop_finishes_requests_in_flight_and_closes_idle_connections() {
    let (server, slow) = crate::shop::open(Limits::default());
    let address = server.address();
    let mut idle = Socket::open(address);
    assert_eq!(idle.get("/till").status, 200);
    let mut silent = Socket::open(address);
    let mut busy = Socket::open(address);
    busy.send("GET /slow HTTP/1.1\r\nhost: h\r\n\r\n");
    slow.begun.recv().unwrap();
    let stopping = std::thread::spawn(move || server.stop());
    // The idle connection is closed while the busy one is still being served.
    assert_eq!(idle.rest(), b"");
    assert_eq!(silent.rest(), b"");
    slow.release.send(()).unwrap();
    let answer = busy.response(false);
    assert_eq!((answer.status, answer.text()), (200, r#"["slow"]"#));
    assert_eq!(busy.rest(), b"");
    stopping.join().unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_stop_has_a_deadline() {
    let (server, _slow) = crate::shop::open(Limits { stop: SOON, ..Limits::default() });
    let mut half = Socket::open(server.address());
    half.send("POST /till HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n");
    // The request is in flight once the server asks for its body.
    assert_eq!(half.head().status, 100);
    let start = Instant::now();
    server.stop();
    assert!(start.elapsed() >= SOON && start.elapsed() < Duration::from_secs(5));
    assert_eq!(half.rest(), b"");
}
