//! Log lines of an endpoint that stops answering.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use node::{Comet, Endpoints, Evm, Node, Rest, Url};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::heads::{OFTEN, status, until, watching};
use crate::logged::logged;
use crate::scripted::{Play, Server, limits};

/// A server without a websocket that plays `of_status` for its status, and a client of it.
async fn node(of_status: impl Fn() -> Play + Send + Sync + 'static) -> (Server, Node) {
    let server = Server::play(move |_, asked| match asked.line.as_str() {
        "GET /status" => of_status(),
        _ => Play::Answer(404, "", Vec::new()),
    })
    .await;
    let comet = vec![server.url.clone()];
    let node = Node::new(Endpoints { comet, ..Endpoints::default() }, limits()).unwrap();
    (server, node)
}

#[tokio::test]
async fn an_endpoint_that_stops_answering_is_logged_once_and_once_when_it_answers_again() {
    for (play, words, outline) in [
        (Play::Close, "broke off", "comet: its replies cannot be read"),
        (Play::Hang, "no answer within", "comet: it does not answer in time"),
    ] {
        let is_down = Arc::new(AtomicBool::new(false));
        let down = Arc::clone(&is_down);
        let (server, node) =
            node(move || if down.load(Ordering::Relaxed) { play.clone() } else { status("c-1", 7) }).await;
        let (log_lines, log) = logged();
        watching(&node.comet, OFTEN, async {
            until(&node.comet, |state| state.height == Some(7) && state.down_since.is_none()).await;
            is_down.store(true, Ordering::Relaxed);
            until(&node.comet, |state| state.down_since.is_some() && state.failures > 3).await;
            while !log_lines.lines().iter().any(|line| line.contains("the endpoint")) {
                tokio::task::yield_now().await;
            }
            assert_eq!(node.outage().as_deref(), Some(outline), "without an address or a text of the node");
            is_down.store(false, Ordering::Relaxed);
            until(&node.comet, |state| state.down_since.is_none()).await;
            assert_eq!(node.outage(), None);
        })
        .await;
        drop(log);
        let lines: Vec<_> =
            log_lines.lines().into_iter().filter(|line| line.contains("the endpoint")).collect();
        assert_eq!(lines.len(), 2, "{lines:?}");
        let endpoint = format!("endpoint=comet {}", server.url.host());
        assert!(lines.iter().all(|line| line.contains(&endpoint)), "{lines:?}");
        assert!(lines[0].contains("WARN") && lines[0].contains(words), "{lines:?}");
        assert!(lines[1].contains("INFO") && lines[1].contains("outage_s="), "{lines:?}");
    }
}

#[tokio::test]
async fn a_server_that_is_unavailable_for_a_moment_while_it_starts_is_not_logged() {
    let asked = AtomicU64::new(0);
    let (_server, node) = node(move || match asked.fetch_add(1, Ordering::Relaxed) {
        0..3 => Play::Answer(503, "", Vec::new()),
        _ => status("c-1", 7),
    })
    .await;
    let (log_lines, log) = logged();
    watching(&node.comet, OFTEN, async {
        until(&node.comet, |state| state.failures == 3 && state.down_since.is_none()).await;
    })
    .await;
    drop(log);
    let lines: Vec<_> = log_lines.lines().into_iter().filter(|line| line.contains("the endpoint")).collect();
    assert!(lines.is_empty(), "{lines:?}");
}

#[tokio::test]
async fn one_failed_request_is_not_an_outage() {
    let server = Server::play(|_, asked| match asked.line.as_str() {
        "GET /status" => status("c-1", 7),
        _ => Play::Close,
    })
    .await;
    // Without a log: lines that are logged while `logged` starts may be lost.
    let comet = Comet::new(vec![server.url.clone()], limits()).unwrap();
    let is_down = || comet.endpoints()[0].down_since.is_some();
    for failures in 1..=3 {
        comet.block(5).await.unwrap_err();
        assert_eq!(is_down(), failures == 3, "{failures}");
    }
    comet.status().await.unwrap();
    assert!(!is_down());
}

/// The address of a server that sends the same bytes to every client.
async fn saying(first: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let place = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(first).await.unwrap();
            // The client disconnects after reading it.
            drop(stream.read_to_end(&mut Vec::new()).await);
        }
    });
    place
}

async fn failure(url: String) -> String {
    let url: Url = url.parse().unwrap();
    Comet::new(vec![url], limits()).unwrap().status().await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_port_of_another_protocol_is_reported_with_the_correction() {
    let http = saying(b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\n\r\n").await;
    let error = failure(format!("https://{http}")).await;
    assert!(error.contains("the port does not speak TLS: write http:// instead of https://"), "{error}");
    // The first frame of a gRPC server: its settings.
    let grpc = saying(b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x05\x00\x00\x40\x00").await;
    let error = failure(format!("http://{grpc}")).await;
    assert!(error.contains("the port does not speak HTTP/1.1; a gRPC port is for `grpc` only"), "{error}");
}

#[tokio::test]
async fn an_unreachable_service_is_reported_with_the_setting_that_enables_it() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = || vec![format!("http://{nobody}").parse().unwrap()];
    let rest = Rest::new(url(), limits()).unwrap().bech32_prefix().await.unwrap_err().to_string();
    assert!(rest.ends_with("and api.enable = true in its app.toml?"), "{rest}");
    let evm = Evm::new(url(), limits()).unwrap().block_number().await.unwrap_err().to_string();
    assert!(evm.ends_with("and json-rpc.enable = true in its app.toml?"), "{evm}");
    let comet = Comet::new(url(), limits()).unwrap().status().await.unwrap_err().to_string();
    assert!(comet.ends_with("is the node running and the address right?"), "{comet}");
}
