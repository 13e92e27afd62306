//! The interface over sockets: greedy and slow clients.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use evm_rpc::{Dialect, EvmRpc, MAX_BODY};
use web::limits::{Limits, Rate};
use web::serve::server::Server;

use super::app;

const PATIENCE: Duration = Duration::from_mins(1);
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}"#;

async fn serve(limits: Limits) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Server::start(listener, Arc::new(app(Dialect::Fixed).await), limits, 2).unwrap()
}

fn open(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Sends a request that is the last one of its connection; the whole response.
fn post(server: &Server, body: &str) -> String {
    let mut stream = open(server);
    let head = "POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused_and_one_at_the_limit_is_not() {
    let server = serve(EvmRpc::limits(Limits::default())).await;
    let blanks = |len: usize| format!("{CALL}{}", " ".repeat(len - CALL.len()));
    assert!(post(&server, &blanks(MAX_BODY)).contains("0x7122181e20277"));
    let mut stream = open(&server);
    let head = "POST / HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
    write!(stream, "{head}content-length: {}\r\n\r\n", MAX_BODY + 1).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    assert!(response.starts_with("HTTP/1.1 413 "), "{response}");
    assert!(response.ends_with(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"the request body is over 5242880 bytes"}}"#), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_fails_as_a_whole_has_an_error_of_json_rpc_as_its_body() {
    let server = serve(EvmRpc::limits(Limits::default())).await;
    for (head, status, code) in [
        ("POST /other HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 0", 404, -32600),
        ("GET / HTTP/1.1", 405, -32600),
        ("POST / HTTP/1.1\r\nhost: again", 400, -32600),
    ] {
        let mut stream = open(&server);
        write!(stream, "{head}\r\nhost: h\r\nconnection: close\r\n\r\n").unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!((&body["id"], &body["error"]["code"]), (&serde_json::Value::Null, &code.into()), "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_arrive_slowly_leave_room_for_others_and_end() {
    let limits = Limits { body_read: Duration::from_secs(2), response_bytes: 12 << 20, ..Limits::default() };
    let server = serve(EvmRpc::limits(limits)).await;
    let slow = || {
        let mut stream = open(&server);
        let head = "POST / HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n";
        write!(stream, "{head}content-length: {MAX_BODY}\r\n\r\n[").unwrap();
        stream
    };
    let begun = Instant::now();
    let streams: Vec<_> = (0..3).map(|_| slow()).collect();
    assert!(post(&server, CALL).contains("0x7122181e20277"), "a small request needs no room");
    let statuses: Vec<_> = streams
        .into_iter()
        .map(|mut stream| {
            let mut response = String::new();
            stream.read_to_string(&mut response).unwrap();
            response[9..12].to_owned()
        })
        .collect();
    assert!(begun.elapsed() < PATIENCE);
    assert!(statuses.contains(&"408".to_owned()) && statuses.contains(&"429".to_owned()), "{statuses:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_of_a_batch_counts_in_the_rate_of_its_client() {
    let (per_second, burst) = (NonZeroU32::new(10).unwrap(), NonZeroU32::new(10).unwrap());
    let limits = Limits { per_client: Some(Rate { per_second, burst }), ..Limits::default() };
    let server = serve(EvmRpc::limits(limits)).await;
    let batch = format!("[{}]", vec![CALL; 600].join(","));
    assert_eq!(post(&server, &batch).matches("0x7122181e20277").count(), 600);
    let refused = post(&server, CALL);
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    assert!(
        refused.contains(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32005,"message":""#),
        "{refused}"
    );
    let wait = refused.lines().find_map(|line| line.strip_prefix("retry-after: ")).unwrap();
    assert!((50..=60).contains(&wait.parse::<u32>().unwrap()), "{wait}");
}
