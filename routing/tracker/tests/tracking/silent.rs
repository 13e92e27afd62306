//! A chain whose node accepts connections and never answers, beside chains whose nodes answer.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chain::{Timestamp, Vm};
use registry::{ChainKind, Endpoints, Registry};
use replay::{Addresses, Call, ReplayNode};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracker::{Limit, Options, Refused, Tracker};

use crate::expected::expected;
use crate::life::after;
use crate::whole::afterwards;
use crate::world::{L1, L2, RECORDED_L1, Services, World, chain, chains, endpoints};

const SILENT: &str = "silent-1";
/// Finished transfers to the rollup, with all evidence on the two recorded chains.
const TRANSFERS: [&str; 3] = [
    "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9",
    "FA6141DF0F9C991E2F388FA267B6ACB5D6DBC28040BE8C2B9694A40ABCFCA435",
    "6D83FA6F14D265F1168480841D3630011A81BA4B783EA9EB2EC17D69AD2CFC88",
];
/// A transaction that failed on the L1, so that no other chain is queried.
const FAILED: &str = "F026EA7467BB7A86A88C086C90CFAA99D62A9916B7A8C406BFCF175A156C992F";

/// A node that never answers.
struct Hanging {
    url: String,
    connections: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Hanging {
    async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { url, connections, task }
    }

    fn endpoints(&self) -> Endpoints {
        Endpoints { rpc: vec![self.url.clone()], ..Endpoints::default() }
    }
}

impl Drop for Hanging {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Beside {
    tracker: Tracker,
    dir: TempDir,
    _registry: watch::Sender<Arc<Registry>>,
}

fn beside(registry: Registry, options: Options) -> Beside {
    let (keep, registry) = watch::channel(Arc::new(registry));
    let dir = TempDir::new().unwrap();
    let tracker = Tracker::open(dir.path(), registry, options).unwrap();
    Beside { tracker, dir, _registry: keep }
}

/// The recorded chains, and one that never answers.
fn with_a_silent_chain(world: &World, node: &Hanging) -> Registry {
    let all = |node| endpoints(node, Services::All);
    let mut builder = chains(all(&world.l1), all(&world.l2));
    builder.chain(chain(SILENT, ChainKind::Cosmos, Vm::Move, node.endpoints())).unwrap();
    builder.finish("test".to_owned())
}

pub(crate) fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_nanos(i64::try_from(now.as_nanos()).unwrap())
}

fn state(tracker: &Tracker, chain: &str, hash: &str) -> String {
    let answer: Value = serde_json::from_slice(&tracker.status(chain, hash).unwrap().unwrap()).unwrap();
    answer["state"].as_str().unwrap().to_owned()
}

/// Waits for a condition; returns the time until then.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(10), "{what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    begun.elapsed()
}

fn disk(dir: &Path) -> u64 {
    std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

/// Registers transfers of chains that reply, one after the other, while queries to the silent node are pending: each
/// reaches its end within a second. A busy machine may delay one of them; a queue behind that node delays all.
async fn followed_within_a_second(tracker: &Tracker, node: &Hanging) {
    let check = async {
        until("the node to be asked", || node.connections.load(Ordering::SeqCst) > 0).await;
        let mut fastest = Duration::MAX;
        for transfer in TRANSFERS {
            tracker.track_for(Some([203, 0, 113, 1].into()), L1, transfer, now()).unwrap();
            let is_over = || state(tracker, L1, transfer) == "STATE_COMPLETED_SUCCESS";
            let took = until("the transfer to be followed while the node is silent", is_over).await;
            fastest = took.min(fastest);
        }
        assert!(fastest < Duration::from_secs(1), "{fastest:?}");
    };
    tokio::select! {
        ended = tracker.run(std::future::pending()) => panic!("{ended:?}"),
        () = check => {}
    }
}

#[tokio::test]
async fn a_hundred_thousand_hashes_of_a_silent_chain_delay_no_transfer_of_another() {
    let (world, node) = (World::whole(Services::All).await, Hanging::start().await);
    // Longer than the test: a poll behind that node never finishes.
    let options = Options { question_timeout: Duration::from_mins(1), ..Options::default() };
    let beside = beside(with_a_silent_chain(&world, &node), options);
    let (tracker, dir) = (&beside.tracker, &beside.dir);
    for number in 0..100_000 {
        tracker.track(SILENT, &format!("{number:064x}"), now()).unwrap();
    }
    followed_within_a_second(tracker, &node).await;
    // The log of the database is bounded by twice its write buffer.
    assert!(disk(dir.path()) < 128 << 20, "{} bytes", disk(dir.path()));
}

#[tokio::test]
async fn a_chain_keeps_its_limit_for_a_hundred_thousand_hashes_of_a_thousand_addresses() {
    let (world, node) = (World::whole(Services::All).await, Hanging::start().await);
    let beside = beside(with_a_silent_chain(&world, &node), Options::default());
    let (tracker, dir) = (&beside.tracker, &beside.dir);
    let (mut kept, mut refused) = (0, 0);
    for number in 0..100_000_u32 {
        let client = IpAddr::from(((10 << 24) + number % 1_000).to_be_bytes());
        match tracker.track_for(Some(client), SILENT, &format!("{number:064x}"), now()) {
            Ok(_) => kept += 1,
            Err(Refused::TooMany(Limit::Chain(10_000))) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((kept, refused), (10_000, 90_000));
    followed_within_a_second(tracker, &node).await;
    // docs/src/reliability.md: 10 MiB of rows, and less of the log, which has each once.
    assert!(disk(dir.path()) < 20 << 20, "{} bytes", disk(dir.path()));
}

#[tokio::test]
async fn followed_transfers_do_not_wait_for_new_hashes_of_their_chain() {
    const HASHES: u64 = 1_000;
    // Sent in block 1032 of the L1, received in block 448 of the rollup.
    let world = World::showing(Some((1_040, 447)), Services::All).await;
    let slow = replay::Options { faults: vec!["delay=20ms".parse().unwrap()], ..replay::Options::default() };
    let l1 = ReplayNode::start(Arc::clone(&RECORDED_L1), Addresses::default(), slow).await.unwrap();
    let all = |node| endpoints(node, Services::All);
    let registry = chains(all(&l1), all(&world.l2)).finish("test".to_owned());
    let beside = beside(registry, Options { concurrency: 4, ..Options::default() });
    let tracker = &beside.tracker;
    tracker.track(L1, TRANSFERS[1], now()).unwrap();
    tracker.poll_due(now()).await.unwrap();
    assert_eq!(state(tracker, L1, TRANSFERS[1]), "STATE_PENDING");
    world.l2.show(448).unwrap();
    for number in 0..HASHES {
        tracker.track(L1, &format!("{number:064x}"), now()).unwrap();
    }
    let before = l1.call_count(Call::CometTx);
    let is_over = || state(tracker, L1, TRANSFERS[1]) == "STATE_COMPLETED_SUCCESS";
    tokio::select! {
        ended = tracker.run(std::future::pending()) => panic!("{ended:?}"),
        _ = until("the end of the transfer", is_over) => {}
    }
    let asked = l1.call_count(Call::CometTx) - before;
    assert!(asked < HASHES, "{asked} hashes were asked about first");
}

#[tokio::test]
async fn transfers_that_wait_for_a_silent_chain_take_no_slot_of_their_sending_chain() {
    let (world, node) = (World::whole(Services::All).await, Hanging::start().await);
    let registry = chains(endpoints(&world.l1, Services::All), node.endpoints()).finish("test".to_owned());
    // Two concurrent polls of a chain, and a node that may take a minute.
    let options = Options { concurrency: 1, question_timeout: Duration::from_mins(1), ..Options::default() };
    let beside = beside(registry, options);
    let tracker = &beside.tracker;
    let to_the_rollup = || {
        let sent = expected().into_iter().filter(|((chain, _), transfers)| {
            *chain == L1 && transfers.iter().any(|transfer| transfer.to_string().contains(L2))
        });
        sent.map(|((_, hash), _)| hash).filter(|hash| hash != FAILED).take(12).collect::<Vec<_>>()
    };
    for hash in to_the_rollup() {
        tracker.track(L1, &hash, now()).unwrap();
    }
    let check = async {
        until("the rollup to be asked", || node.connections.load(Ordering::SeqCst) > 0).await;
        tracker.track(L1, FAILED, now()).unwrap();
        let is_over = || state(tracker, L1, FAILED) == "STATE_COMPLETED_ERROR";
        until("what needs the L1 alone to be followed", is_over).await;
    };
    tokio::select! {
        ended = tracker.run(std::future::pending()) => panic!("{ended:?}"),
        () = check => {}
    }
    assert!(to_the_rollup().len() > 8);
}

#[tokio::test]
async fn a_silent_chain_gets_one_request_at_a_time_and_its_queue_is_unchanged() {
    let (world, node) = (World::whole(Services::All).await, Hanging::start().await);
    let options =
        Options { concurrency: 8, question_timeout: Duration::from_millis(50), ..Options::default() };
    let beside = beside(with_a_silent_chain(&world, &node), options);
    let tracker = &beside.tracker;
    let start = afterwards();
    for number in 0..1_000 {
        tracker.track(SILENT, &format!("{number:064x}"), start).unwrap();
    }
    let first = tracker.poll_due(start).await.unwrap();
    assert!((5..=16).contains(&first.polled), "{first:?}");
    assert_eq!(first.next_due, Some(after(start, 1)));
    for (seconds, next) in [(1, 3), (3, 7), (7, 15), (15, 31), (31, 61)] {
        let probed = tracker.poll_due(after(start, seconds)).await.unwrap();
        assert_eq!((probed.polled, probed.next_due), (1, Some(after(start, next))));
    }
    // No node ever had them: they are deleted without another query.
    let asked = node.connections.load(Ordering::SeqCst);
    assert!(asked <= 16 + 5, "{asked}");
    tracker.poll_due(after(start, 61 + 24 * 3_600)).await.unwrap();
    let left = (0..1_000).filter(|n| tracker.status(SILENT, &format!("{n:064x}")).unwrap().is_some()).count();
    assert_eq!(left, 0);
}
