//! Many clients that are killed and resume while blocks come: nothing is missed or repeated.
//!
//! `CAIRN_STREAM_LOAD=CLIENTS:BLOCKS:PER_SECOND` sets the load, for example 1000:600:10 for a minute of 10 blocks a second;
//! it prints memory, CPU time and latencies of the process, clients included. A rate of 0 commits without a pause.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::client::{Event, request, serve};
use super::{BLOCKS, TXS, plan};
use crate::hand_made::{HandMade, account, indexer};

/// Far longer than the connections take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Times of the commits by height.
type Commits = Arc<Mutex<HashMap<u64, Instant>>>;

/// What a client received: the rows in order, latencies from commit to receipt, and how often it reconnected.
#[derive(Default)]
struct Received {
    rows: Vec<u64>,
    latencies: Vec<Duration>,
    n_connections: u64,
}

/// Reads the stream until it has the row `last`, and leaves the connection after some events, in the midst of the next one.
async fn follow(
    at: SocketAddr,
    target: String,
    last: u64,
    seed: u64,
    commits: Commits,
    started: Sender<()>,
) -> Received {
    let mut received = Received::default();
    let mut id: Option<String> = None;
    loop {
        received.n_connections += 1;
        let mut socket = TcpStream::connect(at).await.unwrap();
        socket.write_all(request(&target, id.as_deref()).as_bytes()).await.unwrap();
        let mut lines = BufReader::new(socket).lines();
        while lines.next_line().await.unwrap().is_some_and(|line| !line.is_empty()) {}
        // Connections of many lengths; the first ones are of one event.
        let n_events = 1 + (seed * 31 + received.n_connections * 17) % (received.n_connections * 20);
        for _ in 0..n_events {
            let mut event = Event::empty();
            while !event.add(&lines.next_line().await.unwrap().unwrap()) {}
            id = Some(event.id.clone());
            if event.name == "start" {
                started.send(()).unwrap();
                continue;
            }
            assert!(matches!(event.name.as_str(), "block" | "tx"), "{event:?}");
            received.rows.push(event.data["n"].as_u64().unwrap());
            let height = super::client::height(&event);
            if let Some(commit) = commits.lock().unwrap().get(&height) {
                received.latencies.push(commit.elapsed());
            }
            if received.rows.last() == Some(&last) {
                return received;
            }
        }
    }
}

/// MiB of memory and CPU time of this process (`proc_pid_stat(5)`, with 4 KiB pages and 100 ticks a second).
fn usage() -> (u64, Duration) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let fields: Vec<u64> = fields.map(|field| field.parse().unwrap_or(0)).collect();
    fields.get(21).map_or_else(Default::default, |pages| {
        (pages / 256, Duration::from_millis(10 * (fields[11] + fields[12])))
    })
}

#[test]
#[allow(clippy::print_stdout, reason = "figures for eyes")]
fn a_crowd_that_is_killed_and_resumes_gets_every_row_once() {
    let load = std::env::var("CAIRN_STREAM_LOAD").unwrap_or_else(|_| "100:120:0".to_owned());
    let [n_clients, n_blocks, per_second] =
        load.split(':').map(|n| n.parse::<u64>().unwrap()).collect::<Vec<_>>()[..]
    else {
        panic!("{load}")
    };
    let mut made = HandMade::new("evm", 1);
    let server = serve(indexer(&made.store));
    let commits = Commits::default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let hex = account(1).to_hex();
    let targets = [BLOCKS.to_owned(), TXS.to_owned(), format!("{TXS}?account={hex}")];
    let plans = || (1..=n_blocks).map(|n| plan(u8::try_from(n % 200).unwrap()));
    let txs: Vec<_> = plans().flat_map(|plan| plan.txs).collect();
    let all = 1..=u64::try_from(txs.len()).unwrap();
    let of_account = all.clone().zip(&txs).filter(|(_, tx)| tx.involved.contains(&1)).map(|(seq, _)| seq);
    let expected = [(1..=n_blocks).collect::<Vec<_>>(), all.collect(), of_account.collect()];
    let before = usage();
    let (started, all_started) = channel();
    let clients: Vec<_> = (0..n_clients)
        .map(|seed| {
            let kind = usize::try_from(seed % 3).unwrap();
            let last = *expected[kind].last().unwrap();
            let task = follow(
                server.address(),
                targets[kind].clone(),
                last,
                seed,
                Arc::clone(&commits),
                started.clone(),
            );
            (kind, runtime.spawn(task))
        })
        .collect();
    // The rows are compared from the first block on.
    (0..n_clients).for_each(|_| all_started.recv_timeout(PATIENCE).unwrap());
    let begun = Instant::now();
    for (n, plan) in (1..=n_blocks).zip(plans()) {
        commits.lock().unwrap().insert(n, Instant::now());
        made.add(&plan);
        if per_second > 0 {
            let next = Duration::from_secs(n) / u32::try_from(per_second).unwrap();
            std::thread::sleep(next.saturating_sub(begun.elapsed()));
        }
    }
    let mut latencies = Vec::new();
    let mut n_connections = 0;
    for (kind, client) in clients {
        let received = runtime.block_on(client).unwrap();
        assert_eq!(received.rows, expected[kind], "{}", targets[kind]);
        latencies.extend(received.latencies);
        n_connections += received.n_connections;
    }
    let after = usage();
    latencies.sort_unstable();
    let at = |share: usize| latencies[(latencies.len() - 1) * share / 1000];
    println!(
        "{load}: {} events, {n_connections} connections in {:.1?}; memory {} to {} MiB, CPU {:.1?}; latency {:?} (p50), {:?} (p99), {:?} (max)",
        latencies.len(),
        begun.elapsed(),
        before.0,
        after.0,
        after.1.saturating_sub(before.1),
        at(500),
        at(990),
        at(1000),
    );
}
