//! Memory of ten thousand slow clients and of some that pipeline, and their effect on others. One test: it measures the
//! memory of the process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stderr, reason = "measured figures, and a warning if the machine is too small")]

mod shop;
mod socket;

use std::time::Duration;

use socket::Socket;
use web::limits::Limits;

const CROWD: usize = 10_000;

/// The server's memory for one connection: its task, its buffer, its timer.
const BYTES_PER_CLIENT: usize = 48 << 10;

/// Clients that pipeline, the requests that each sends at once, and its memory: the buffer holds a head of the largest
/// size, and the allocator's overhead.
const HASTY: usize = 200;
const REQUESTS_AT_ONCE: usize = 128;
const BYTES_PER_HASTY_CLIENT: usize = 96 << 10;

/// Descriptors for all other purposes.
const SPARE: usize = 300;

/// The first number in the line of `/proc/self/{file}` that begins with `name`; `None` if it is unlimited.
fn proc(file: &str, name: &str) -> Option<usize> {
    let text = std::fs::read_to_string(format!("/proc/self/{file}")).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.split_whitespace().next().filter(|word| *word != "unlimited").map(|word| word.parse().unwrap())
}

fn resident_bytes() -> usize {
    proc("status", "VmRSS:").unwrap() << 10
}

/// As many clients as the process may have sockets for: both ends are in this process.
fn crowd() -> usize {
    let most = proc("limits", "Max open files").map_or(CROWD, |most| most.saturating_sub(SPARE) / 2);
    if most < CROWD {
        eprintln!("only {most} clients instead of {CROWD}: raise the limit of open files (ulimit -n)");
    }
    most.min(CROWD)
}

#[test]
fn ten_thousand_slow_clients_cost_little_and_delay_no_other() {
    let n_clients = crowd();
    let hour = Duration::from_hours(1);
    let connections = n_clients + 8;
    let (server, _slow) = shop::open(Limits {
        connections,
        connections_per_client: connections,
        head_read: hour,
        keep_alive: hour,
        ..Limits::default()
    });
    // The fixed memory of the process.
    assert_eq!(Socket::open(server.address()).get("/till").status, 200);
    let before = resident_bytes();
    let slow = (0..n_clients).map(|_| {
        let mut client = Socket::open(server.address());
        // With the reply, all memory is allocated that a connection ever allocates for a head.
        assert_eq!(client.get("/till").status, 200);
        client.send("G");
        client
    });
    let mut slow: Vec<_> = slow.collect();
    let each = resident_bytes().saturating_sub(before) / n_clients;
    eprintln!("{n_clients} slow clients: {each} bytes each");
    assert!(each < BYTES_PER_CLIENT, "{each} bytes for each client");
    assert!(each > 500, "{each} bytes for each client: not all of them are there");

    // Other clients connect and disconnect meanwhile.
    for _ in 0..200 {
        assert_eq!(Socket::open(server.address()).get("/till").status, 200);
    }
    // The slow clients were not dropped meanwhile.
    for client in slow.iter_mut().step_by(97) {
        assert_eq!(client.send("ET /till HTTP/1.1\r\nhost: h\r\n\r\n").response(false).status, 200);
    }
    drop(slow);

    let (server, _slow) = shop::open(Limits { keep_alive: hour, ..Limits::default() });
    let request = format!("GET /till?{} HTTP/1.1\r\nhost: h\r\n\r\n", "a".repeat((8 << 10) - 64));
    let burst = request.repeat(REQUESTS_AT_ONCE);
    let hasty = || {
        let mut client = Socket::open(server.address());
        client.send(&burst);
        assert!((0..REQUESTS_AT_ONCE).all(|_| client.response(false).status == 200));
        client
    };
    drop(hasty());
    let before = resident_bytes();
    let hasty: Vec<_> = (0..HASTY).map(|_| hasty()).collect();
    let each = resident_bytes().saturating_sub(before) / hasty.len();
    eprintln!("{HASTY} hasty clients: {each} bytes each");
    assert!(each < BYTES_PER_HASTY_CLIENT, "{each} bytes for each client that does not wait");
}
