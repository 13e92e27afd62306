//! What clients get of the node's addresses and replies: nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use crate::support::{Cairn, Played, exchange, get, get_text, until};

/// Parts of an address that must not be shown.
const SECRETS: [&str; 4] = ["me-the-user", "hunter2", "key-in-path", "key-in-query"];

/// A server that refuses every request and repeats it in the body, as proxies do. Returns its host and port.
fn echo() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            let body = String::from_utf8_lossy(&head[..read]).into_owned();
            let length = body.len();
            // The client may have gone.
            drop(write!(
                stream,
                "HTTP/1.1 403 Forbidden\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            ));
        }
    });
    at
}

fn secret(at: &str) -> String {
    format!("http://me-the-user:hunter2@{at}/key-in-path?key=key-in-query")
}

fn assert_discreet(what: &str, text: &str, hosts: &[&str]) {
    let ports = hosts.iter().map(|host| host.split_once(':').unwrap().1);
    for word in SECRETS.into_iter().chain(["127.0.0.1", "Forbidden", "HTTP/1.1"]).chain(ports) {
        assert!(!text.contains(word), "`{word}` is in {what}: {text}");
    }
}

/// The bodies of requests that a client may make.
fn bodies(url: &str) -> Vec<(String, String)> {
    let paths = [
        "",
        "readyz",
        "healthz",
        "status",
        "indexer/block/v1/blocks",
        "indexer/tx/v1/txs",
        "indexer/richlist/v1/GAS",
        "indexer/nft/v1/collections",
        "no/such/path",
        "txs",
        "stats",
        "swagger/doc.json",
    ];
    paths.iter().map(|path| ((*path).to_owned(), get_text(&format!("{url}/{path}")).1)).collect()
}

#[test]
fn a_client_gets_nothing_of_the_addresses_and_replies_of_a_node_that_never_answered() {
    let dir = tempfile::tempdir().unwrap();
    let at = echo();
    let data = dir.path().join("data");
    let node = secret(&at);
    let flags =
        ["run", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--grpc-listen", "127.0.0.1:0"];
    let chain = ["--chain-id", "c-1", "--vm", "evm", "--comet", &node, "--rest", &node, "--json-rpc", &node];
    let mut cairn = Cairn::start(&[&flags[..], &chain].concat());
    let url = cairn.logged("listening, there is no database yet")["url"].as_str().unwrap().to_owned();
    // The operator's log names the host, and no secret.
    let line = cairn.logged_about("the endpoint does not answer");
    assert!(line.contains(&at) && SECRETS.iter().all(|secret| !line.contains(secret)), "{line}");
    until("a reason", || {
        get_text(&format!("{url}/readyz")).1.contains("its replies cannot be read").then_some(())
    });
    for (path, body) in bodies(&url) {
        assert_discreet(&path, &body, &[&at]);
    }
    let (_, posted) = exchange("POST", &format!("{url}/status"), "content-length: 0\r\n", "");
    assert_discreet("a post", &posted, &[&at]);
}

#[test]
fn a_client_gets_nothing_of_a_node_whose_other_services_fail_while_it_is_indexed() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &["--fault", "json-rpc:no-tracing"]);
    let at = echo();
    let node = secret(&at);
    let mut flags = played.flags("run", &data);
    let rest = flags.iter().position(|flag| *flag == "--rest").unwrap();
    flags[rest + 1] = &node;
    let mut cairn = Cairn::start(&flags);
    let url = cairn.url();
    until("all blocks", || (get(&format!("{url}/status")).1["height"] == 226).then_some(()));
    until("the stopped lane", || {
        get_text(&format!("{url}/readyz")).1.contains("internal_txs stopped").then_some(())
    });
    let own = url.strip_prefix("http://").unwrap();
    for (path, body) in bodies(&url) {
        // The interface may name its own address.
        assert_discreet(&path, &body.replace(own, ""), &[&at]);
    }
}
