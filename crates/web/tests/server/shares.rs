//! What one client may use at once: bytes of unread bodies, and places for expensive work.

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::socket::{Response, Socket};
use web::limits::Limits;
use web::limits::lane::{HEAVY, LIGHT};

/// A body of more bytes than the socket buffers of both sides hold.
const LARGE: usize = 30_000_000;

/// Limits that take the address of a client from a header.
fn limits() -> Limits {
    Limits { trusted_proxies: vec!["127.0.0.1/32".parse().unwrap()], ..Limits::default() }
}

/// Sends `GET target` on a connection of its own, for a client of the address `192.0.2.n`.
fn ask(at: SocketAddr, n: usize, target: &str, headers: &str) -> Socket {
    let mut socket = Socket::open(at);
    socket.send(format!("GET {target} HTTP/1.1\r\nhost: h\r\nx-forwarded-for: 192.0.2.{n}\r\n{headers}\r\n"));
    socket
}

fn get(at: SocketAddr, n: usize, target: &str) -> Response {
    ask(at, n, target, "").response(false)
}

#[test]
fn unread_bodies_are_bounded_in_bytes_and_every_client_has_room() {
    let size = crate::shop::app().0.get(&format!("/large/{LARGE}")).body().len();
    let response_bytes = 12 * size;
    let (server, _slow) = crate::shop::open(Limits { response_bytes, ..limits() });
    let (at, large) = (server.address(), format!("/large/{LARGE}"));
    let mut held = Vec::new();
    let mut greedy = |n| {
        let before = held.len();
        loop {
            let mut socket = ask(at, n, &large, "");
            match socket.head() {
                Response { status: 200, .. } => held.push(socket),
                refused => return (held.len() - before, refused),
            }
        }
    };
    let (first, refused) = greedy(1);
    assert_eq!((first, refused.status, refused.header("retry-after")), (6, 429, Some("1")));
    let (second, refused) = greedy(2);
    assert_eq!((second, refused.status), (3, 429));
    let (_, refused) = greedy(3);
    assert_eq!(refused.status, 429);
    // Others are served meanwhile, with pages of a usual size.
    for n in 4..20 {
        assert_eq!(get(at, n, "/large/1000000").status, 200, "{n}");
    }
    let body = get(at, 1, &large);
    assert!(body.text().contains("bytes of others to your address wait to be read"), "{}", body.text());
    assert!(body.text().contains(r#""code":8"#));
    assert_eq!(get(at, 1, "/large/9000").status, 200, "a small body is always sent");
    drop(held);
    assert!((0..100_000).any(|_| get(at, 1, &large).status == 200), "no byte was released");
}

#[test]
fn a_body_that_is_read_too_slowly_is_released() {
    let write_stall = Duration::from_secs(3);
    let limits = Limits { response_bytes: LARGE + (LARGE >> 1), write_stall, ..limits() };
    let (server, _slow) = crate::shop::open(limits);
    let (at, large) = (server.address(), format!("/large/{LARGE}"));
    let mut silent = ask(at, 1, &large, "");
    assert_eq!(silent.head().status, 200);
    assert_eq!(get(at, 2, &large).status, 503, "another one has all bytes");
    assert!((0..100_000).any(|_| get(at, 2, &large).status == 200), "no byte was released");
    assert!(silent.rest().len() < LARGE);
}

#[test]
fn expensive_requests_of_a_client_wait_for_its_own_places() {
    let (server, slow) = crate::shop::open(Limits { heavy: 2, ..limits() });
    let at = server.address();
    let mut greedy: Vec<Socket> = (0..20).map(|_| ask(at, 1, "/heavy", "")).collect();
    slow.begun.recv().unwrap();
    // The second place is left for another client, and a third one waits.
    let mut other = ask(at, 2, "/heavy", "");
    slow.begun.recv().unwrap();
    let mut third = ask(at, 3, "/heavy", "");
    for n in 1..5 {
        assert_eq!(get(at, n, "/till").status, 200, "cheap requests wait for nothing");
        assert_eq!(get(at, n, &format!("/costs/{LIGHT}")).status, 200);
    }
    assert!(slow.begun.try_recv().is_err(), "a third expensive request runs");
    for _ in 0..22 {
        slow.release.send(()).unwrap();
    }
    for socket in greedy.iter_mut().chain([&mut other, &mut third]) {
        assert_eq!(socket.response(false).status, 200);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn expensive_requests_run_after_cheap_ones() {
    let (server, _slow) = crate::shop::open(limits());
    let niceness = |bytes| -> i32 {
        let answer = get(server.address(), 1, &format!("/costs/{bytes}"));
        answer.text().trim_matches(['[', ']', '"']).parse().unwrap()
    };
    assert!(niceness(1) < niceness(LIGHT + 1));
    assert_eq!(niceness(LIGHT + 1), niceness(HEAVY + 1));
}

#[test]
fn a_stop_does_not_wait_for_expensive_work() {
    let (server, slow) = crate::shop::open(Limits { stop: Duration::from_millis(100), ..limits() });
    let _client = ask(server.address(), 1, "/heavy", "");
    slow.begun.recv().unwrap();
    let (done, stopped) = channel();
    std::thread::spawn(move || {
        server.stop();
        done.send(()).unwrap();
    });
    let stopped = stopped.recv_timeout(Duration::from_secs(20));
    slow.release.send(()).unwrap();
    assert!(stopped.is_ok(), "the server still runs");
}

#[test]
fn an_expensive_request_that_waits_for_too_long_is_503() {
    let (server, slow) = crate::shop::open(Limits { answer: Duration::from_millis(100), ..limits() });
    let at = server.address();
    let mut first = ask(at, 1, "/heavy", "");
    slow.begun.recv().unwrap();
    let refused = get(at, 1, "/heavy");
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert!(refused.text().contains("other expensive requests are being answered"), "{}", refused.text());
    slow.release.send(()).unwrap();
    assert_eq!(first.response(false).status, 200);
}

#[test]
fn handlers_that_need_a_lock_run_one_by_one_and_take_no_place_of_others() {
    let (server, slow) = crate::shop::open(Limits { heavy: 2, ..limits() });
    let at = server.address();
    let mut locked: Vec<Socket> = (1..6).map(|n| ask(at, n, "/locked", "")).collect();
    slow.begun.recv().unwrap();
    for n in 6..9 {
        assert_eq!(get(at, n, &format!("/costs/{}", LIGHT + 1)).status, 200);
        assert_eq!(get(at, n, &format!("/costs/{}", HEAVY + 1)).status, 200);
    }
    assert!(slow.begun.try_recv().is_err(), "two of them run");
    for _ in &locked {
        slow.release.send(()).unwrap();
    }
    assert!(locked.iter_mut().all(|socket| socket.response(false).status == 200));
}

#[test]
fn a_client_runs_some_requests_at_once_and_the_others_wait_without_a_thread() {
    // Two threads.
    let (server, slow) = crate::shop::open(Limits { light: 2, ..limits() });
    let at = server.address();
    let mut greedy: Vec<Socket> = (0..20).map(|_| ask(at, 1, "/slow", "")).collect();
    slow.begun.recv().unwrap();
    for n in 2..30 {
        assert_eq!(get(at, n, "/till").status, 200);
    }
    for _ in &greedy {
        slow.release.send(()).unwrap();
    }
    assert!(greedy.iter_mut().all(|socket| socket.response(false).status == 200));
}

#[test]
fn a_large_body_is_sent_plain_while_the_places_for_compression_are_taken() {
    let (server, slow) = crate::shop::open(Limits { heavy: 2, ..limits() });
    let (at, gzip) = (server.address(), "accept-encoding: gzip\r\n");
    let mut taken = ask(at, 1, "/heavy", "");
    slow.begun.recv().unwrap();
    let coding = |n, target, headers| {
        let answer = ask(at, n, target, headers).response(false);
        (answer.status, answer.header("content-encoding").map(str::to_owned))
    };
    assert_eq!(coding(1, "/large/200000", gzip), (200, None));
    assert_eq!(coding(1, "/large/20000", gzip), (200, Some("gzip".to_owned())), "a small one needs no place");
    assert_eq!(coding(1, "/large/200000", "accept-encoding: gzip, identity;q=0\r\n").0, 503);
    assert_eq!(coding(2, "/large/200000", gzip), (200, Some("gzip".to_owned())));
    slow.release.send(()).unwrap();
    assert_eq!(taken.response(false).status, 200);
    assert_eq!(coding(1, "/large/200000", gzip), (200, Some("gzip".to_owned())));
}

#[test]
fn a_stream_ends_before_an_event_for_which_there_is_no_room() {
    let (server, _slow) = crate::shop::open(Limits { response_bytes: 50 << 20, ..limits() });
    let at = server.address();
    let mut first = ask(at, 1, "/news/huge", "");
    assert_eq!(first.head().status, 200);
    first.until("event: news");
    let mut second = ask(at, 1, "/news/huge", "connection: close\r\n");
    assert_eq!(second.head().status, 200);
    assert_eq!(second.rest(), b"0\r\n\r\n", "the end of a chunked body");
}
