//! A server that runs out of file descriptors waits and does not end.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test that cannot go on has failed")]

mod shop;
mod socket;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use socket::Socket;
use web::limits::Limits;

/// Set in the serving process, which is this test again with few descriptors.
const SERVES: &str = "WEB_TEST_SERVES";
const NAME: &str = "a_server_without_descriptors_goes_on_once_it_has_some";

#[test]
fn a_server_without_descriptors_goes_on_once_it_has_some() {
    if std::env::var_os(SERVES).is_some() {
        return serve_until_the_end_of_input();
    }
    let mut server = Command::new("sh")
        .args(["-c", r#"ulimit -n 32 && exec "$0" "$@""#])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", NAME, "--nocapture"])
        .env(SERVES, "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address =
        lines.find_map(|line| Some(line.unwrap().split_once("listens on ")?.1.parse().unwrap())).unwrap();

    // More clients than it has descriptors; the kernel queues the rest.
    let mut clients: Vec<_> = (0..60).map(|_| Socket::open(address)).collect();
    for client in &mut clients {
        client.send("GET /till HTTP/1.1\r\nhost: h\r\n\r\n");
    }
    for client in &mut clients[..5] {
        assert_eq!(client.response(false).status, 200);
    }
    let mut last = clients.pop().unwrap();
    assert!(!last.has_answer(), "32 descriptors were enough for 60 connections");
    drop(clients);
    assert_eq!(last.response(false).status, 200);

    drop(server.stdin.take());
    assert!(server.wait().unwrap().success());
}

fn serve_until_the_end_of_input() {
    let (server, _slow) = shop::open(Limits::default());
    println!("listens on {}", server.address());
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    server.stop();
}
