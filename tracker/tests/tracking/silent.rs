//! A chain whose node takes connections and never answers, beside chains whose nodes do.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use chain::{Timestamp, Vm};
use registry::{ChainKind, Endpoints, Registry};
use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracker::{Options, Tracker};

use crate::expected::expected;
use crate::life::after;
use crate::whole::afterwards;
use crate::world::{L1, L2, Services, World, chain, chains, endpoints};

const SILENT: &str = "silent-1";
/// A transfer to the rollup that is over, all of which the two recorded chains can show.
const TRANSFER: &str = "7C27A135DF17CB9A54ED67E84174690BEBFD034E579D20F1960C9FC430791DF9";
/// A transaction that failed on the L1, so that nobody else has to be asked.
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

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_unix_nanos(i64::try_from(now.as_nanos()).unwrap())
}

fn state(tracker: &Tracker, chain: &str, hash: &str) -> String {
    let answer: Value = serde_json::from_slice(&tracker.status(chain, hash).unwrap().unwrap()).unwrap();
    answer["state"].as_str().unwrap().to_owned()
}

/// Waits for it, and says how long that took.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Duration {
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

#[tokio::test]
async fn a_hundred_thousand_hashes_of_a_chain_that_never_answers_delay_no_transfer_of_another() {
    let (world, node) = (World::whole(Services::All).await, Hanging::start().await);
    let beside = beside(with_a_silent_chain(&world, &node), Options::default());
    let (tracker, dir) = (&beside.tracker, &beside.dir);
    for number in 0..100_000 {
        tracker.track(SILENT, &format!("{number:064x}"), now()).unwrap();
    }
    let check = async {
        until("the node to be asked", || node.connections.load(Ordering::SeqCst) > 0).await;
        tracker.track(L1, TRANSFER, now()).unwrap();
        let is_over = || state(tracker, L1, TRANSFER) == "STATE_COMPLETED_SUCCESS";
        let took = until("the transfer to be followed while the node is silent", is_over).await;
        println!("followed in {took:?}, {} MiB on disk", disk(dir.path()) >> 20);
    };
    tokio::select! {
        ended = tracker.run(std::future::pending()) => panic!("{ended:?}"),
        () = check => {}
    }
    // The log of the database is bounded by twice its memory for writes.
    assert!(disk(dir.path()) < 128 << 20, "{} bytes", disk(dir.path()));
}

#[tokio::test]
async fn transfers_that_wait_for_a_silent_chain_hold_no_place_of_the_chain_that_they_were_sent_from() {
    let (world, node) = (World::whole(Services::All).await, Hanging::start().await);
    let registry = chains(endpoints(&world.l1, Services::All), node.endpoints()).finish("test".to_owned());
    // Two looks of a chain at once, and a node that may take a minute.
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
async fn a_silent_chain_is_asked_by_one_request_at_a_time_and_its_queue_stays_as_it_is() {
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
    // Nobody ever had them: they go without another question.
    let asked = node.connections.load(Ordering::SeqCst);
    assert!(asked <= 16 + 5, "{asked}");
    tracker.poll_due(after(start, 61 + 24 * 3_600)).await.unwrap();
    let left = (0..1_000).filter(|n| tracker.status(SILENT, &format!("{n:064x}")).unwrap().is_some()).count();
    assert_eq!(left, 0);
}
