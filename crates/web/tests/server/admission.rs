//! Rate and concurrency limits. No sleeps: the test moves the clock, and repeats requests until a condition holds.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::socket::Socket;
use web::clock::Clock;
use web::limits::{Limits, PathRate, Rate};
use web::serve::server::Server;

/// A clock that the test moves.
#[derive(Clone)]
struct Hands(Arc<Mutex<Instant>>);

impl Hands {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn clock(&self) -> Clock {
        let hands = self.clone();
        Clock::new(move || *hands.0.lock().unwrap())
    }

    fn move_by(&self, millis: u64) {
        *self.0.lock().unwrap() += Duration::from_millis(millis);
    }
}

fn rate(per_second: u32, burst: u32) -> Rate {
    let some = |n| NonZeroU32::new(n).unwrap();
    Rate { per_second: some(per_second), burst: some(burst) }
}

/// Requests `/till` `n_requests` times; returns the number of successes.
fn n_answered(client: &mut Socket, headers: &str, n_requests: usize) -> usize {
    (0..n_requests).filter(|_| client.request("GET", "/till", headers).status == 200).count()
}

#[test]
fn a_request_beyond_the_rate_is_429_with_the_time_to_retry() {
    let hands = Hands::new();
    let limits = Limits { per_client: Some(rate(2, 5)), clock: hands.clock(), ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    assert_eq!(n_answered(&mut client, "", 5), 5);
    let answer = client.get("/till");
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert_eq!(
        answer.text(),
        r#"{"code":8,"message":"over 2 requests a second from your address, or 5 at once; try again in 1 s","details":[]}"#
    );
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    // Another connection of the same client is the same client; an unknown path counts as well.
    assert_eq!(Socket::open(server.address()).get("/nowhere").status, 429);
    hands.move_by(499);
    assert_eq!(client.get("/till").status, 429);
    hands.move_by(1);
    assert_eq!(n_answered(&mut client, "", 3), 1);
    hands.move_by(60_000);
    assert_eq!(n_answered(&mut client, "", 10), 5);
}

#[test]
fn a_path_may_have_its_own_rate() {
    let hands = Hands::new();
    let till = PathRate { path: "/till", rate: rate(1, 2), setting: "till_rate" };
    let limits = Limits { per_client_of_path: vec![till], clock: hands.clock(), ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    assert_eq!(n_answered(&mut client, "", 4), 2);
    // The router maps these to the same path.
    let answer = client.get("/TILL/");
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    let body: serde_json::Value = serde_json::from_str(answer.text()).unwrap();
    let message = "over 1 requests a second to /till from your address, or 2 at once; try again in 1 s";
    assert_eq!((&body["code"], &body["message"]), (&8.into(), &message.into()));
    let metadata = &body["details"][0]["metadata"];
    assert_eq!((&metadata["limit"], &metadata["setting"]), (&"1/s:2".into(), &"till_rate".into()));
    assert_eq!(client.get("/nowhere").status, 404, "another path is not concerned");
    hands.move_by(1_000);
    assert_eq!(n_answered(&mut client, "", 4), 1);
}

#[test]
fn the_wait_is_in_whole_seconds_and_long_enough() {
    let hands = Hands::new();
    let limits = Limits { per_client: Some(rate(1, 1)), clock: hands.clock(), ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    assert_eq!(client.get("/till").status, 200);
    hands.move_by(1);
    let wait: u64 = client.get("/till").header("retry-after").unwrap().parse().unwrap();
    assert_eq!(wait, 1);
    hands.move_by(wait * 1000);
    assert_eq!(client.get("/till").status, 200);
}

#[test]
fn a_preflight_is_not_counted_and_not_rejected() {
    let hands = Hands::new();
    let limits = Limits { per_client: Some(rate(1, 1)), clock: hands.clock(), ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    for _ in 0..3 {
        assert_eq!(client.request("OPTIONS", "/till", "").status, 204);
    }
    assert_eq!(n_answered(&mut client, "", 2), 1);
    assert_eq!(client.request("OPTIONS", "/till", "").status, 204);
}

#[test]
fn a_client_cannot_choose_its_address_but_a_trusted_proxy_can() {
    let hands = Hands::new();
    let limits = || Limits { per_client: Some(rate(1, 2)), clock: hands.clock(), ..Limits::default() };
    let forwarded = |client: &str| format!("x-forwarded-for: {client}\r\n");

    let (server, _slow) = crate::shop::open(limits());
    let mut client = Socket::open(server.address());
    let n_as_others = (0..9).map(|n| n_answered(&mut client, &forwarded(&format!("192.0.2.{n}")), 1));
    assert_eq!(n_as_others.sum::<usize>(), 2);

    let trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let (server, _slow) = crate::shop::open(Limits { trusted_proxies, ..limits() });
    let mut proxy = Socket::open(server.address());
    assert_eq!(n_answered(&mut proxy, &forwarded("192.0.2.1"), 5), 2);
    assert_eq!(n_answered(&mut proxy, &forwarded("192.0.2.2"), 5), 2);
    assert_eq!(n_answered(&mut proxy, &forwarded("192.0.2.77, 192.0.2.2, 127.0.0.1"), 5), 0);
    assert_eq!(n_answered(&mut proxy, "", 5), 2);
}

#[test]
fn the_rate_is_unlimited_by_default() {
    let (server, _slow) = crate::shop::open(Limits::default());
    assert_eq!(n_answered(&mut Socket::open(server.address()), "", 2000), 2000);
}

/// A client whose request is being answered: the server waits for its body.
fn busy(server: &Server, target: &str) -> Socket {
    let mut client = Socket::open(server.address());
    assert_eq!(client.send(post(target)).head().status, 100);
    client
}

fn post(target: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n")
}

/// The status of a response to another client.
fn status(server: &Server) -> u16 {
    Socket::open(server.address()).get("/till").status
}

/// Repeats a request until a permit is free: it is released a moment after the response is sent.
fn await_permit(server: &Server) {
    let mut client = Socket::open(server.address());
    assert!((0..100_000).any(|_| client.get("/till").status == 200), "no permit was released");
}

#[test]
fn a_request_beyond_the_limit_is_rejected_before_its_body_is_read() {
    let (server, _slow) = crate::shop::open(Limits { requests: 2, ..Limits::default() });
    let mut held = [busy(&server, "/till"), busy(&server, "/till")];

    let mut third = Socket::open(server.address());
    let answer = third.send(post("/till")).response(false);
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("1")),
        "not 100: the body is not read"
    );
    assert!(answer.text().starts_with(r#"{"code":14,"message":"2 requests are being answered"#));
    assert_eq!(answer.header("connection"), Some("close"), "its body is not read as a request");
    assert_eq!(third.rest(), b"");

    // Without a body the connection stays open.
    let mut fourth = Socket::open(server.address());
    for _ in 0..3 {
        assert_eq!(fourth.get("/till").status, 503);
    }
    for client in &mut held {
        assert_eq!(client.send("cash").response(false).text(), r#"["cash"]"#);
        // It gets a permit for one request after the other.
        assert_eq!(client.get("/till").status, 200);
    }
    await_permit(&server);
}

#[test]
fn a_client_that_disconnects_releases_its_permit() {
    let limits = Limits { requests: 1, answer: Duration::from_hours(1), ..Limits::default() };
    // In the middle of its body, and while its reply is pending.
    for body in ["bo", "body"] {
        let (server, _slow) = crate::shop::open(limits.clone());
        let mut leaving = busy(&server, "/lost");
        leaving.send(body);
        assert_eq!(status(&server), 503);
        drop(leaving);
        await_permit(&server);
    }
}

#[test]
fn a_response_that_is_not_read_keeps_its_permit() {
    let (server, _slow) = crate::shop::open(Limits { requests: 1, ..Limits::default() });
    let mut greedy = Socket::open(server.address());
    // More than the socket buffers of both sides hold.
    greedy.send("GET /large/30000000 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    assert_eq!(greedy.head().status, 200);
    assert_eq!(status(&server), 503);
    assert!(greedy.rest().len() > 20_000_000);
    await_permit(&server);
}

#[test]
fn a_client_that_reads_nothing_holds_only_its_own_permits() {
    let trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let limits = Limits { requests: 5, requests_per_client: 2, trusted_proxies, ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let from = |client: &str| format!("x-forwarded-for: {client}\r\n");
    let greedy = || {
        let mut client = Socket::open(server.address());
        let head = format!("GET /large/30000000 HTTP/1.1\r\nhost: h\r\n{}\r\n", from("192.0.2.1"));
        // The second request is sent before any of the first reply is read.
        client.send(head.repeat(2));
        assert_eq!(client.head().status, 200);
        client
    };
    let held = [greedy(), greedy()];
    let mut proxy = Socket::open(server.address());
    let answer = proxy.request("GET", "/till", &from("192.0.2.1"));
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert!(answer.text().contains("2 requests from your address are being answered"), "{}", answer.text());
    assert_eq!(proxy.request("GET", "/till", &from("192.0.2.2")).status, 200);
    drop(held);
    let is_free = |_| proxy.request("GET", "/till", &from("192.0.2.1")).status == 200;
    assert!((0..100_000).any(is_free), "no permit was released");
}

#[test]
fn a_client_has_a_limit_of_connections_and_a_trusted_proxy_has_none() {
    let limits = Limits { connections_per_client: 2, ..Limits::default() };
    let answered = |server: &Server| {
        let mut client = Socket::open(server.address());
        client.send("GET /healthz HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        !client.rest().is_empty()
    };
    let (server, _slow) = crate::shop::open(limits.clone());
    let mut held = [Socket::open(server.address()), Socket::open(server.address())];
    for client in &mut held {
        assert_eq!(client.get("/till").status, 200);
    }
    assert!(!answered(&server), "the third is closed");
    assert_eq!(held[0].get("/till").status, 200);
    drop(held);
    assert!((0..100_000).any(|_| answered(&server)), "no connection came back");

    let trusted_proxies = vec!["127.0.0.1/32".parse().unwrap()];
    let (server, _slow) = crate::shop::open(Limits { trusted_proxies, ..limits });
    let mut held: Vec<_> = (0..5).map(|_| Socket::open(server.address())).collect();
    assert!(held.iter_mut().all(|client| client.get("/till").status == 200));
}
