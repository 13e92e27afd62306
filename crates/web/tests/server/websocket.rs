//! WebSockets: messages are requests, with the limits of HTTP.

use std::net::TcpStream;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, client};
use web::limits::{Limits, Rate};
use web::serve::server::Server;

use crate::socket::Socket;

const PATIENCE: Duration = Duration::from_secs(20);

fn connect(server: &Server, path: &str) -> WebSocket<TcpStream> {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    client(format!("ws://{}{path}", server.address()), stream).unwrap().0
}

fn ask(socket: &mut WebSocket<TcpStream>, text: &str) -> String {
    socket.send(Message::text(text)).unwrap();
    read(socket)
}

fn read(socket: &mut WebSocket<TcpStream>) -> String {
    match socket.read().unwrap() {
        Message::Text(text) => text.to_string(),
        other => panic!("{other:?}"),
    }
}

fn closed(socket: &mut WebSocket<TcpStream>) -> Option<CloseCode> {
    loop {
        match socket.read() {
            Ok(Message::Close(frame)) => return frame.map(|frame| frame.code),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
}

#[test]
fn a_message_is_the_body_of_a_post_and_its_response_a_message() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut socket = connect(&server, "/courier");
    assert_eq!(ask(&mut socket, "a letter"), r#"["brought","a letter"]"#);
    socket.send(Message::binary("a box".as_bytes().to_vec())).unwrap();
    assert_eq!(read(&mut socket), r#"["brought","a box"]"#);
    assert_eq!(ask(&mut connect(&server, "/till"), "5"), r#"["5"]"#, "of a synchronous handler");
    socket.close(None).unwrap();
    assert_eq!(closed(&mut socket), None);
}

#[test]
fn messages_that_arrive_with_the_handshake_or_before_a_response_are_answered() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut socket = connect(&server, "/courier");
    for n in 0..100 {
        socket.send(Message::text(n.to_string())).unwrap();
    }
    let mut replies: Vec<_> = (0..100).map(|_| read(&mut socket)).collect();
    replies.sort();
    let mut expected: Vec<_> = (0..100).map(|n| format!(r#"["brought","{n}"]"#)).collect();
    expected.sort();
    assert_eq!(replies, expected);
}

#[test]
fn a_socket_is_limited_like_a_stream_and_its_messages_like_requests() {
    let one = NonZeroU32::MIN;
    let per_client = Some(Rate { per_second: NonZeroU32::new(2).unwrap(), burst: one });
    let (server, _slow) = crate::shop::open(Limits { streams: 1, per_client, ..Limits::default() });
    let mut socket = connect(&server, "/courier");
    let begun = Instant::now();
    for text in ["1", "2"] {
        assert_eq!(ask(&mut socket, text), format!(r#"["brought","{text}"]"#));
    }
    assert!(
        begun.elapsed() >= Duration::from_millis(500),
        "the rate holds for messages: {:?}",
        begun.elapsed()
    );
    let (server, _slow) = crate::shop::open(Limits { streams: 1, ..Limits::default() });
    let _first = connect(&server, "/courier");
    let stream = TcpStream::connect(server.address()).unwrap();
    let refused = client(format!("ws://{}/courier", server.address()), stream).unwrap_err();
    assert!(refused.to_string().contains("503"), "{refused}");
}

#[test]
fn a_message_over_the_limit_closes_the_socket() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut socket = connect(&server, "/courier");
    assert!(ask(&mut socket, &"x".repeat(8 << 20)).ends_with(r#"x"]"#));
    match socket.send(Message::text("x".repeat((32 << 20) + 1))) {
        Ok(()) => assert_eq!(closed(&mut socket), Some(CloseCode::Size)),
        Err(Error::Io(_)) => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_message_without_room_closes_the_socket_while_it_arrives() {
    let (server, _slow) = crate::shop::open(Limits { response_bytes: 4 << 20, ..Limits::default() });
    let mut socket = connect(&server, "/courier");
    assert!(ask(&mut socket, &"x".repeat(1 << 20)).ends_with(r#"x"]"#));
    match socket.send(Message::text("x".repeat(5 << 20))) {
        Ok(()) => assert_eq!(closed(&mut socket), Some(CloseCode::Again)),
        Err(Error::Io(_)) => {}
        Err(error) => panic!("{error}"),
    }
    let mut other = connect(&server, "/courier");
    assert!(ask(&mut other, &"x".repeat(1 << 20)).ends_with(r#"x"]"#), "its bytes are released");
}

#[test]
fn an_upgrade_of_a_path_without_sockets_is_a_request_like_others() {
    let (server, _slow) = crate::shop::open(Limits::default());
    for (path, status) in [("/nothing", 404), ("/courier/", 200)] {
        let stream = TcpStream::connect(server.address()).unwrap();
        let refused = client(format!("ws://{}{path}", server.address()), stream).unwrap_err();
        assert!(refused.to_string().contains(&status.to_string()), "{path}: {refused}");
    }
}

#[test]
fn a_stop_of_the_server_closes_its_sockets() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let mut socket = connect(&server, "/courier");
    assert_eq!(ask(&mut socket, "1"), r#"["brought","1"]"#);
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < PATIENCE);
    assert_eq!(closed(&mut socket), Some(CloseCode::Away));
}

#[test]
fn a_stop_does_not_wait_for_a_client_that_reads_nothing() {
    let (server, _slow) = crate::shop::open(Limits { stop: PATIENCE, ..Limits::default() });
    let mut socket = connect(&server, "/courier");
    socket.send(Message::text("x".repeat(24 << 20))).unwrap();
    // The response has begun to arrive, and has more bytes than the buffers of a connection.
    socket.get_ref().peek(&mut [0]).unwrap();
    let begun = Instant::now();
    server.stop();
    assert!(begun.elapsed() < PATIENCE / 4, "{:?}", begun.elapsed());
}

#[test]
fn an_upgrade_that_is_malformed_is_refused_and_a_request_without_one_is_not() {
    let (server, _slow) = crate::shop::open(Limits::default());
    let upgrade = "connection: keep-alive, Upgrade\r\nupgrade: websocket\r\n";
    let mut client = Socket::open(server.address());
    assert_eq!(client.request("GET", "/till", "upgrade: websocket\r\n").status, 200, "no connection option");
    let key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    for (headers, status) in [
        (format!("{upgrade}sec-websocket-version: 8\r\n{key}"), 426),
        (format!("{upgrade}{key}"), 426),
        (format!("{upgrade}sec-websocket-version: 13\r\n"), 400),
    ] {
        let response = Socket::open(server.address()).request("GET", "/till", &headers);
        assert_eq!(response.status, status, "{headers}");
    }
    let headers = format!("{upgrade}sec-websocket-version: 13\r\n{key}");
    let mut client = Socket::open(server.address());
    client.send(format!("GET /till HTTP/1.1\r\nhost: here\r\n{headers}\r\n"));
    let head = client.head();
    assert_eq!(
        (head.status, head.header("sec-websocket-accept")),
        (101, Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    );
}
