//! Who is let in: how often one client may ask, and how many requests there are at once. No sleeps: a clock is moved by
//! hand, and what happens in its own time is asked for until it has.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::socket::Socket;
use web::clock::Clock;
use web::limits::{Limits, PathRate, Rate};
use web::server::Server;

/// A clock that stands still until it is moved.
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

/// Asks for the till so often, and how often it was answered.
fn n_answered(client: &mut Socket, headers: &str, n_asked: usize) -> usize {
    (0..n_asked).filter(|_| client.ask("GET", "/till", headers).status == 200).count()
}

#[test]
fn who_asks_too_often_is_told_when_to_come_back() {
    let hands = Hands::new();
    let limits = Limits { per_client: Some(rate(2, 5)), clock: hands.clock(), ..Limits::default() };
    let (server, _doorman) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    assert_eq!(n_answered(&mut client, "", 5), 5);
    let answer = client.get("/till");
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert_eq!(
        answer.text(),
        r#"{"code":8,"message":"over 2 requests a second from your address, or 5 at once; try again in 1 s","details":[]}"#
    );
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    // Another connection of the same client is the same client; a path that there is not counts as well.
    assert_eq!(Socket::open(server.address()).get("/nowhere").status, 429);
    hands.move_by(499);
    assert_eq!(client.get("/till").status, 429);
    hands.move_by(1);
    assert_eq!(n_answered(&mut client, "", 3), 1);
    hands.move_by(60_000);
    assert_eq!(n_answered(&mut client, "", 10), 5);
}

#[test]
fn a_path_may_have_a_rate_of_its_own() {
    let hands = Hands::new();
    let till = PathRate { path: "/till", rate: rate(1, 2), setting: "till_rate" };
    let limits = Limits { per_client_of_path: vec![till], clock: hands.clock(), ..Limits::default() };
    let (server, _doorman) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    assert_eq!(n_answered(&mut client, "", 4), 2);
    // A router takes these for the same path.
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
    let (server, _doorman) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    assert_eq!(client.get("/till").status, 200);
    hands.move_by(1);
    let wait: u64 = client.get("/till").header("retry-after").unwrap().parse().unwrap();
    assert_eq!(wait, 1);
    hands.move_by(wait * 1000);
    assert_eq!(client.get("/till").status, 200);
}

#[test]
fn a_preflight_is_not_counted_and_not_refused() {
    let hands = Hands::new();
    let limits = Limits { per_client: Some(rate(1, 1)), clock: hands.clock(), ..Limits::default() };
    let (server, _doorman) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    for _ in 0..3 {
        assert_eq!(client.ask("OPTIONS", "/till", "").status, 204);
    }
    assert_eq!(n_answered(&mut client, "", 2), 1);
    assert_eq!(client.ask("OPTIONS", "/till", "").status, 204);
}

#[test]
fn a_client_cannot_name_itself_but_a_trusted_proxy_can() {
    let hands = Hands::new();
    let limits = || Limits { per_client: Some(rate(1, 2)), clock: hands.clock(), ..Limits::default() };
    let forwarded = |client: &str| format!("x-forwarded-for: {client}\r\n");

    let (server, _doorman) = crate::shop::open(limits());
    let mut client = Socket::open(server.address());
    let n_as_others = (0..9).map(|n| n_answered(&mut client, &forwarded(&format!("192.0.2.{n}")), 1));
    assert_eq!(n_as_others.sum::<usize>(), 2);

    let trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let (server, _doorman) = crate::shop::open(Limits { trusted_proxies, ..limits() });
    let mut proxy = Socket::open(server.address());
    assert_eq!(n_answered(&mut proxy, &forwarded("192.0.2.1"), 5), 2);
    assert_eq!(n_answered(&mut proxy, &forwarded("192.0.2.2"), 5), 2);
    assert_eq!(n_answered(&mut proxy, &forwarded("192.0.2.77, 192.0.2.2, 127.0.0.1"), 5), 0);
    assert_eq!(n_answered(&mut proxy, "", 5), 2);
}

#[test]
fn there_is_no_rate_unless_one_is_set() {
    let (server, _doorman) = crate::shop::open(Limits::default());
    assert_eq!(n_answered(&mut Socket::open(server.address()), "", 2000), 2000);
}

/// A client whose request is being answered: the server has asked for its body.
fn busy(server: &Server, target: &str) -> Socket {
    let mut client = Socket::open(server.address());
    assert_eq!(client.send(post(target)).head().status, 100);
    client
}

fn post(target: &str) -> String {
    format!("POST {target} HTTP/1.1\r\nhost: h\r\ncontent-length: 4\r\nexpect: 100-continue\r\n\r\n")
}

/// The status of an answer to somebody else.
fn status(server: &Server) -> u16 {
    Socket::open(server.address()).get("/till").status
}

/// Asks until a slot is free: it comes back a moment after the answer has left.
fn await_slot(server: &Server) {
    let mut client = Socket::open(server.address());
    assert!((0..100_000).any(|_| client.get("/till").status == 200), "no slot came back");
}

#[test]
fn a_request_too_many_is_refused_before_its_body_is_read() {
    let (server, _doorman) = crate::shop::open(Limits { requests: 2, ..Limits::default() });
    let mut held = [busy(&server, "/till"), busy(&server, "/till")];

    let mut third = Socket::open(server.address());
    let answer = third.send(post("/till")).response(false);
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")), "not 100: no body is wanted");
    assert!(answer.text().starts_with(r#"{"code":14,"message":"2 requests are being answered"#));
    assert_eq!(answer.header("connection"), Some("close"), "what else it sends is not read as a request");
    assert_eq!(third.rest(), b"");

    // Without a body the connection goes on.
    let mut fourth = Socket::open(server.address());
    for _ in 0..3 {
        assert_eq!(fourth.get("/till").status, 503);
    }
    for client in &mut held {
        assert_eq!(client.send("cash").response(false).text(), r#"["cash"]"#);
        // It has its slot for one request after the other.
        assert_eq!(client.get("/till").status, 200);
    }
    await_slot(&server);
}

#[test]
fn a_client_that_leaves_gives_its_slot_back() {
    let limits = Limits { requests: 1, answer: Duration::from_hours(1), ..Limits::default() };
    // In the middle of its body, and while its answer is waited for.
    for body in ["bo", "body"] {
        let (server, _doorman) = crate::shop::open(limits.clone());
        let mut leaving = busy(&server, "/lost");
        leaving.send(body);
        assert_eq!(status(&server), 503);
        drop(leaving);
        await_slot(&server);
    }
}

#[test]
fn an_answer_that_nobody_takes_keeps_its_slot() {
    let (server, _doorman) = crate::shop::open(Limits { requests: 1, ..Limits::default() });
    let mut greedy = Socket::open(server.address());
    // More than the socket buffers of both sides hold.
    greedy.send("GET /large/30000000 HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
    assert_eq!(greedy.head().status, 200);
    assert_eq!(status(&server), 503);
    assert!(greedy.rest().len() > 20_000_000);
    await_slot(&server);
}

#[test]
fn a_client_that_reads_nothing_holds_its_own_slots_and_nobody_elses() {
    let trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let limits = Limits { requests: 5, requests_per_client: 2, trusted_proxies, ..Limits::default() };
    let (server, _doorman) = crate::shop::open(limits);
    let from = |client: &str| format!("x-forwarded-for: {client}\r\n");
    let greedy = || {
        let mut client = Socket::open(server.address());
        let head = format!("GET /large/30000000 HTTP/1.1\r\nhost: h\r\n{}\r\n", from("192.0.2.1"));
        // The second is sent before anything of the first answer is read.
        client.send(head.repeat(2));
        assert_eq!(client.head().status, 200);
        client
    };
    let held = [greedy(), greedy()];
    let mut proxy = Socket::open(server.address());
    let answer = proxy.ask("GET", "/till", &from("192.0.2.1"));
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")));
    assert!(answer.text().contains("2 requests from your address are being answered"), "{}", answer.text());
    assert_eq!(proxy.ask("GET", "/till", &from("192.0.2.2")).status, 200);
    drop(held);
    let is_free = |_| proxy.ask("GET", "/till", &from("192.0.2.1")).status == 200;
    assert!((0..100_000).any(is_free), "no slot came back");
}

#[test]
fn a_client_has_its_share_of_the_connections_and_a_trusted_proxy_more() {
    let limits = Limits { connections_per_client: 2, ..Limits::default() };
    let answered = |server: &Server| {
        let mut client = Socket::open(server.address());
        client.send("GET /healthz HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
        !client.rest().is_empty()
    };
    let (server, _doorman) = crate::shop::open(limits.clone());
    let mut held = [Socket::open(server.address()), Socket::open(server.address())];
    for client in &mut held {
        assert_eq!(client.get("/till").status, 200);
    }
    assert!(!answered(&server), "the third is closed");
    assert_eq!(held[0].get("/till").status, 200);
    drop(held);
    assert!((0..100_000).any(|_| answered(&server)), "no connection came back");

    let trusted_proxies = vec!["127.0.0.1".parse().unwrap()];
    let (server, _doorman) = crate::shop::open(Limits { trusted_proxies, ..limits });
    let mut held: Vec<_> = (0..5).map(|_| Socket::open(server.address())).collect();
    assert!(held.iter_mut().all(|client| client.get("/till").status == 200));
}
