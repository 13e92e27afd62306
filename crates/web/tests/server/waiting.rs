//! Asynchronous handlers: same responses, a timeout, and no delay of other requests.

use std::time::Duration;

use crate::socket::Socket;
use web::limits::Limits;

#[test]
fn an_asynchronous_handler_answers_like_any_other() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut client = Socket::open(server.address());
    let answer = client.get("/courier");
    assert_eq!((answer.status, answer.text()), (200, r#"["brought",""]"#));
    assert!(answer.header("etag").is_some() && answer.header("access-control-allow-origin").is_some());
    let posted =
        client.send("POST /courier HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nbox").response(false);
    assert_eq!((posted.status, posted.text()), (200, r#"["brought","box"]"#));
    assert_eq!(posted.header("cache-control"), Some("no-store"));
    assert_eq!(client.request("HEAD", "/courier", "").header("content-length"), Some("14"));
}

#[test]
fn an_answer_beyond_its_timeout_is_503_and_delays_no_other() {
    let limits = Limits { answer: Duration::from_millis(100), ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut waiting: Vec<_> = (0..32).map(|_| Socket::open(server.address())).collect();
    for client in &mut waiting {
        client.send("GET /lost HTTP/1.1\r\nhost: h\r\n\r\n");
    }
    assert_eq!(Socket::open(server.address()).get("/till").status, 200);
    for client in &mut waiting {
        let answer = client.response(false);
        assert_eq!((answer.status, answer.header("retry-after")), (503, Some("1")));
        assert!(
            answer.text().contains(r#""code":14"#) && answer.text().contains("100ms"),
            "{}",
            answer.text()
        );
        // The connection stays open.
        assert_eq!(client.get("/till").status, 200);
    }
}

#[test]
fn a_panic_while_waiting_is_a_500() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut client = Socket::open(server.address());
    assert_eq!(client.get("/faints").status, 500);
    assert_eq!(client.get("/till").status, 200);
}

#[test]
fn a_body_of_an_asynchronous_handler_has_the_limit_too() {
    let limits = Limits { body: 10, ..Limits::default() };
    let (server, _slow) = crate::shop::open(limits);
    let mut client = Socket::open(server.address());
    let head = "POST /till HTTP/1.1\r\nhost: h\r\ncontent-length: 11\r\n\r\n";
    let answer = client.send(format!("{head}01234567890")).response(false);
    assert_eq!(answer.status, 413);
    assert!(answer.text().contains("the request body is over 10 bytes"), "{}", answer.text());
}
