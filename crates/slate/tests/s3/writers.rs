//! Writers that are overtaken, killed and stopped; and readers meanwhile.

use std::env;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use slate::object_store::path::Path;
use slate::{Engine, Location, Options, SlateReader, SlateStore, check_conditional_writes};
use store::{Durability, Error, Store};

use crate::gateway::{Gateway, URL};
use crate::heights::{Done, block, head, is_mixed, request};
use crate::{CHAIN, ENGINE};

/// Set in the child process that commits.
const CHILD: &str = "SLATE_TEST_CHILD";

#[test]
fn one_of_several_creators_of_an_object_wins() {
    let gateway = Gateway::start();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let objects = gateway.bucket().object_store();
    for _ in 0..10 {
        assert_eq!(runtime.block_on(check_conditional_writes(&objects, &Path::from("a"))).unwrap(), None);
    }
    // A refused request is an error, not a lost race.
    let read_only = gateway.beside(&["--readonly"]).bucket().object_store();
    runtime.block_on(check_conditional_writes(&read_only, &Path::from("a"))).unwrap_err();
}

#[test]
fn a_second_writer_fences_the_first() {
    let gateway = Gateway::start();
    let first = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    first.commit(block(1), Durability::Synced).unwrap();
    let second = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    let refused = first.commit(block(2), Durability::Synced).unwrap_err();
    assert!(matches!(refused, Error::Fenced { .. }), "{refused}");
    assert_eq!(head(&*second.snapshot().unwrap()), 1);
    second.commit(block(3), Durability::Synced).unwrap();
    let reader = SlateReader::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    assert!(request(&*reader.snapshot().unwrap()).iter().all(|height| *height == 3));
}

/// Not a separate test: the process that the tests below start, kill and stop.
#[test]
#[ignore = "started by the tests that kill it"]
fn child_that_commits_until_it_is_killed() {
    if env::var(CHILD).is_err() {
        return;
    }
    let engine = Engine::start(Options::default()).unwrap();
    let store = SlateStore::open(&engine, &Location::parse(URL).unwrap(), CHAIN).unwrap();
    for height in head(&*store.snapshot().unwrap()) + 1.. {
        let durability = if height.is_multiple_of(4) { Durability::Synced } else { Durability::Buffered };
        if let Err(error) = store.commit(block(height), durability) {
            writeln!(std::io::stdout(), "\nfailed {height} {}", matches!(error, Error::Fenced { .. }))
                .unwrap();
            return;
        }
        if durability == Durability::Synced {
            writeln!(std::io::stdout(), "\nsynced {height}").unwrap();
        }
    }
}

/// A child and the lines that it prints.
struct Writer {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Writer {
    fn start(gateway: &Gateway) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--ignored", "--exact", "writers::child_that_commits_until_it_is_killed", "--nocapture"])
            .env(CHILD, "1")
            .envs(gateway.variables())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next height that it reports as durable; `None` at its end.
    fn synced(&mut self) -> Option<u64> {
        self.lines.find_map(|line| line.unwrap().strip_prefix("synced ")?.parse().ok())
    }

    fn signal(&self, name: &str) {
        let kill = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
    }
}

fn open_below(gateway: &Gateway) -> SlateStore {
    let below = Location::in_store("s3://chains/below", std::sync::Arc::new(gateway.prefixed("below")));
    SlateStore::open(&ENGINE, &below, CHAIN).unwrap()
}

#[test]
fn a_killed_writer_loses_nothing_that_it_reported_and_leaves_whole_blocks() {
    let gateway = Gateway::start();
    let mut before = 0;
    for round in 1..=5 {
        let mut writer = Writer::start(&gateway);
        let mut reported = 0;
        for _ in 0..round {
            reported = writer.synced().unwrap();
        }
        writer.signal("-KILL");
        writer.child.wait().unwrap();
        while let Some(height) = writer.synced() {
            reported = height;
        }
        let store = open_below(&gateway);
        let seen = request(&*store.snapshot().unwrap());
        assert!(!is_mixed(&seen), "{seen:?}");
        assert!(seen[0] >= reported, "{reported} was durable, {} is left", seen[0]);
        assert!(seen[0] > before);
        before = seen[0];
    }
}

#[test]
fn a_writer_that_was_stopped_and_overtaken_writes_nothing_more() {
    let gateway = Gateway::start();
    let mut writer = Writer::start(&gateway);
    writer.synced().unwrap();
    writer.signal("-STOP");
    let store = open_below(&gateway);
    let overtaken_at = head(&*store.snapshot().unwrap());
    store.commit(block(overtaken_at + 1_000), Durability::Synced).unwrap();
    writer.signal("-CONT");
    let outcome = writer.lines.find_map(|line| line.unwrap().strip_prefix("failed ").map(str::to_owned));
    let (_, fenced) = outcome.as_deref().and_then(|line| line.split_once(' ')).unwrap();
    assert_eq!(fenced, "true");
    writer.child.wait().unwrap();
    store.commit(block(overtaken_at + 1_001), Durability::Synced).unwrap();
    let seen = request(&*store.snapshot().unwrap());
    assert!(seen.iter().all(|height| *height == overtaken_at + 1_001), "{seen:?}");
}

#[test]
fn no_request_mixes_heights_while_writers_replace_each_other() {
    const BLOCKS: u64 = 400;
    const BLOCKS_OF_A_WRITER: u64 = 50;
    /// Blocks that the reader may be behind. Without a bound the log grows, and each look for its end takes longer.
    const AHEAD: usize = 4;
    let gateway = Gateway::start();
    let store = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    store.commit(block(1), Durability::Synced).unwrap();
    let reader = SlateReader::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
    let ended = AtomicBool::new(false);
    let (committed, commits) = sync_channel(AHEAD);
    let mut heights = std::collections::BTreeSet::new();
    thread::scope(|scope| {
        let (reader, ended, gateway) = (&reader, &ended, &gateway);
        scope.spawn(move || {
            let mut store = store;
            for height in 2..=BLOCKS {
                if height % BLOCKS_OF_A_WRITER == 0 {
                    store = SlateStore::open(&ENGINE, &gateway.bucket(), CHAIN).unwrap();
                }
                store.commit(block(height), Durability::Synced).unwrap();
                if committed.send(height).is_err() {
                    break;
                }
            }
        });
        scope.spawn(move || {
            let _ended = Done(ended);
            for _ in commits {
                reader.catch_up().unwrap();
            }
        });
        let mut last = 0;
        while !ended.load(Ordering::Relaxed) {
            let seen = request(&*reader.snapshot().unwrap());
            assert!(!is_mixed(&seen), "{seen:?}");
            assert!(seen[0] >= last, "{} after {last}", seen[0]);
            last = seen[0];
            heights.insert(last);
        }
    });
    assert_eq!(head(&*reader.snapshot().unwrap()), BLOCKS);
    assert!(heights.len() > 20, "{heights:?}");
}
