//! Attacks of greedy clients on a server of large records, and a polite client beside each. `--nocapture` prints figures.

#![allow(clippy::print_stderr, reason = "the figures of a run")]

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::hand_made::{BlockPlan, HandMade, TxPlan, indexer};
use schema::payload::{Chunk, Codec, Kind};
use schema::tx::Txs;
use web::app::App;
use web::limits::Limits;
use web::serve::server::{Server, default_workers};

/// Half a minute is far longer than anything takes here.
const PATIENCE: Duration = Duration::from_secs(30);

/// Growth of memory that an attack may cause: unread bodies, and what is being made.
const MOST: usize = 600 << 20;

/// A chain of `n` transactions whose records have `bytes` bytes each.
fn chain(n: usize, bytes: usize) -> HandMade {
    let mut made = HandMade::new("evm", 1);
    let tx = TxPlan { involved: BTreeSet::from([0]), signers: BTreeSet::new(), types: BTreeSet::from([0]) };
    for block in vec![tx; n].chunks(100) {
        made.add(&BlockPlan { txs: block.to_vec(), evm_txs: Vec::new() });
    }
    let snapshot = store::Store::snapshot(&*made.store).unwrap();
    let mut encoder = Codec::load(&*snapshot).unwrap().encoder(Kind::Tx).unwrap();
    drop(snapshot);
    let mut number = 1_u64;
    let mut attributes = String::new();
    while attributes.len() < bytes {
        number = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
        write!(attributes, r#"{{"key":"amount","value":"{number}"}},"#).unwrap();
    }
    made.write(|txn| {
        for seq in 1..=n as u64 {
            let hash = chain::hash::to_hex(&made.txs[0].hash).to_uppercase();
            let record = format!(
                r#"{{"txhash":"{hash}","n":{seq},"events":[{{"attributes":[{attributes}{{"n":{seq}}}]}}]}}"#
            );
            txn.put::<Txs>(&seq, &encoder.encode(&Chunk::single(record.as_bytes()).take()));
        }
    });
    made
}

/// Serves the chain to clients that a header names.
fn serve(made: &HandMade) -> Server {
    let limits = Limits {
        trusted_proxies: vec!["127.0.0.0/8".parse().unwrap()],
        // Of a test that lasts no minute.
        write_stall: PATIENCE,
        ..Limits::default()
    };
    let app = Arc::new(App::new(indexer(&made.store), query::ENDPOINTS).unwrap());
    Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), app, limits, default_workers()).unwrap()
}

fn connect(at: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(at).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn ask(socket: &mut TcpStream, client: usize, target: &str, headers: &str) {
    let head =
        format!("GET {target} HTTP/1.1\r\nhost: h\r\nx-forwarded-for: 192.0.2.{client}\r\n{headers}\r\n");
    socket.write_all(head.as_bytes()).unwrap();
}

/// The status of a response and the bytes of its body, which is read.
fn response(socket: &mut TcpStream) -> (u16, usize) {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end + 4;
        }
        let n = socket.read(&mut buffer).unwrap();
        assert!(n > 0, "closed");
        bytes.extend_from_slice(&buffer[..n]);
    };
    let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
    let len: usize =
        head.split("content-length: ").nth(1).map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
    let mut read = bytes.len() - end;
    while read < len {
        let n = socket.read(&mut buffer).unwrap();
        assert!(n > 0, "closed in a body");
        read += n;
    }
    (head[9..12].parse().unwrap(), len)
}

/// Bytes of this process, server and clients, in memory.
fn memory() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// Sends requests of a polite client for a while; the 50th and the 99th percentile of their times.
fn polite(at: SocketAddr, n: usize) -> [Duration; 2] {
    let mut socket = connect(at);
    let mut times: Vec<Duration> = (0..n)
        .map(|_| {
            thread::sleep(Duration::from_millis(10));
            let begun = Instant::now();
            ask(&mut socket, 250, "/indexer/block/v1/blocks?pagination.limit=10", "");
            assert_eq!(response(&mut socket).0, 200, "a polite client is served");
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    [times[n / 2], times[n * 99 / 100]]
}

/// Runs `attack` until the polite client is done, checks the growth of memory and prints figures.
fn beside(name: &str, at: SocketAddr, attack: impl Fn(&AtomicBool) + Sync) {
    let (before, quiet) = (memory(), polite(at, 30));
    let (is_over, most) = (AtomicBool::new(false), AtomicUsize::new(0));
    let times = thread::scope(|scope| {
        scope.spawn(|| attack(&is_over));
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                most.fetch_max(memory(), Ordering::Relaxed);
                thread::sleep(Duration::from_millis(5));
            }
        });
        let times = std::panic::catch_unwind(|| polite(at, 100));
        is_over.store(true, Ordering::Relaxed);
        times.unwrap()
    });
    let grown = most.into_inner().saturating_sub(before);
    eprintln!("{name}: +{} MiB, p50 and p99 {times:?}, quiet {quiet:?}", grown >> 20);
    assert!(grown < MOST, "{name}: {} MiB more", grown >> 20);
    assert!(times[1] < Duration::from_secs(2), "{name}: {times:?}");
}

/// Sends `target` on `n` connections of each client and reads nothing.
fn unread(at: SocketAddr, clients: usize, n: usize, target: &str, is_over: &AtomicBool) {
    let mut held = Vec::new();
    for _ in 0..n {
        for client in 1..=clients {
            let mut socket = connect(at);
            ask(&mut socket, client, target, "");
            held.push(socket);
        }
    }
    while !is_over.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Sends `target` on `n` connections of one client, and reads each response before the next request.
fn greedy(at: SocketAddr, n: usize, target: &str, headers: &str, is_over: &AtomicBool) {
    thread::scope(|scope| {
        for _ in 0..n {
            scope.spawn(|| {
                let mut socket = connect(at);
                while !is_over.load(Ordering::Relaxed) {
                    ask(&mut socket, 1, target, headers);
                    let (status, _) = response(&mut socket);
                    assert!(matches!(status, 200 | 429 | 503), "{status}");
                }
            });
        }
    });
}

#[test]
fn greedy_clients_take_bounded_memory_and_delay_no_other_client() {
    const LIST: &str = "/indexer/tx/v1/txs?pagination.limit=1000";
    let made = chain(1000, 100_000);
    let server = serve(&made);
    let at = server.address();
    beside("384 unread pages, 3 addresses", at, |is_over| unread(at, 3, 128, LIST, is_over));
    beside("896 unread pages, 7 addresses", at, |is_over| unread(at, 7, 128, LIST, is_over));
    beside("16 connections on large pages", at, |is_over| greedy(at, 16, LIST, "", is_over));
    drop(server);

    let made = chain(1000, 3_400);
    let server = serve(&made);
    let (at, gzip) = (server.address(), "accept-encoding: gzip\r\n");
    let page = "/indexer/tx/v1/txs?pagination.limit=100";
    beside("128 connections on gzip pages", at, |is_over| greedy(at, 128, page, gzip, is_over));
    beside("32 connections on large gzip pages", at, |is_over| greedy(at, 32, LIST, gzip, is_over));
    drop(server);

    // A transaction with over a million attributes.
    let made = chain(2, 50_000_000);
    let server = serve(&made);
    let (at, one) = (server.address(), "/indexer/tx/v1/txs?pagination.limit=1");
    let mut socket = connect(at);
    ask(&mut socket, 9, one, "");
    let (status, len) = response(&mut socket);
    assert!(status == 200 && len > 50_000_000, "a single row may be larger than a page: {status} {len}");
    drop(socket);
    beside("6 connections on a giant record", at, |is_over| greedy(at, 6, one, "", is_over));
    beside("64 unread giant records", at, |is_over| unread(at, 4, 16, one, is_over));
}
