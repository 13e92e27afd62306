//! The fleet of `docs/contrib/fleet`: a rolling restart loses no request, and every golden reply is right while writers
//! are killed. nginx must be installed; `NGINX` names it otherwise.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use tempfile::TempDir;
use testkit::golden::{self, Case};

use crate::support::{Played, digest, get, get_text, repository, until};
use crate::{Done, digest_in};

/// The recordings that the fleet plays, and their last heights.
const CHAINS: [(&str, u64); 2] = [("evm-scenario", 226), ("move-scenario", 50)];

/// Clients that always have a request in flight.
const CLIENTS: usize = 6;

/// Kills of writers while the golden replies are compared.
const KILLS: usize = 10;

/// A running fleet; it ends when it is dropped.
struct Fleet {
    dir: TempDir,
    port: u16,
}

impl Fleet {
    fn up() -> Self {
        let fleet = Self { dir: tempfile::tempdir().unwrap(), port: free_ports() };
        fleet.run(&["up"]);
        fleet
    }

    /// `fleet COMMAND DIR …`
    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(repository("docs/contrib/fleet/fleet"));
        command.arg(words[0]).arg(self.dir.path()).args(&words[1..]).env("PORT", self.port.to_string());
        command.env("CAIRN", env!("CARGO_BIN_EXE_cairn")).env("BLOCK_EVERY", "50ms");
        command
    }

    fn run(&self, words: &[&str]) {
        let done = self.command(words).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Kills the writer of chain `number`; returns once another one has caught up with the node.
    fn replace(&self, number: usize) {
        let before = self.caught_up(number);
        self.run(&["replace", &number.to_string()]);
        until("the next writer to catch up", || (self.caught_up(number) > before).then_some(()));
    }

    /// How often a writer of chain `number` has caught up.
    fn caught_up(&self, number: usize) -> usize {
        let log = std::fs::read_to_string(self.dir.path().join(format!("ingest-{number}.log"))).unwrap();
        log.matches("caught up").count()
    }

    /// The URL of a chain, at the proxy.
    fn url(&self, chain: &str) -> String {
        format!("http://127.0.0.1:{}/c/{chain}", self.port)
    }

    fn digest(&self, chain: &str) -> String {
        let mut command = digest_in(self.dir.path(), "s3://fleet/cairn", chain);
        command.envs([
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port + 1)),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "fleet".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "fleet-secret".to_owned()),
        ]);
        crate::digest_of(command)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        drop(self.command(&["down"]).output());
    }
}

/// The first of 21 free ports in a row. They are below those that the system gives to clients and for port 0 (32768 and
/// above), which other tests could take before the fleet does.
fn free_ports() -> u16 {
    let is_free = |port: u16| std::net::TcpListener::bind(("127.0.0.1", port)).is_ok();
    (20_000..32_000).step_by(21).find(|first| (*first..=first + 20).all(is_free)).unwrap()
}

/// Requests of the clients until `done`; returns the number of replies. Any but a 200 fails.
fn load(urls: &[String], done: &AtomicBool) -> usize {
    let requests = ["/status", "/indexer/block/v1/blocks?pagination.limit=10", "/indexer/tx/v1/txs"];
    let answers = AtomicUsize::new(0);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let answers = &answers;
            scope.spawn(move || {
                for number in (client..).step_by(CLIENTS) {
                    let url = &urls[number % urls.len()];
                    let request = requests[number % requests.len()];
                    let (status, body) = get_text(&format!("{url}{request}"));
                    assert_eq!(status, 200, "{url}{request}: {body}");
                    answers.fetch_add(1, Ordering::Relaxed);
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                }
            });
        }
    });
    answers.into_inner()
}

/// Compares the replies at `url` with `cases` until `done` and at least once; returns their number.
fn compare(url: &str, cases: &[Case], done: &AtomicBool) -> usize {
    let mut compared = 0;
    loop {
        for case in cases.iter().filter(|case| case.left_out().is_none()) {
            let (status, body) = get_text(&format!("{url}{}", case.target));
            let difference = case.difference(status, body.as_bytes());
            assert_eq!(difference, None, "{}", case.target);
            compared += 1;
        }
        if done.load(Ordering::Relaxed) {
            return compared;
        }
    }
}

/// The digest of `recording`, indexed with RocksDB.
fn expected(recording: &str, dir: &Path) -> String {
    let data = dir.join(recording);
    Played::start(recording, &[]).index(&data);
    digest(&data)
}

#[test]
fn a_fleet_loses_no_request_and_answers_all_golden_requests_while_writers_are_killed() {
    let fleet = Fleet::up();
    let chains = CHAINS.map(|(recording, last)| {
        let cases = golden::cases(recording).unwrap();
        let played = Played::start(recording, &[]);
        (recording, last, cases, played.chain().to_owned())
    });
    let urls = chains.each_ref().map(|(.., chain)| fleet.url(chain));

    // While the chains grow: all servers are restarted twice, and each writer is killed twice.
    let done = AtomicBool::new(false);
    let answers = thread::scope(|scope| {
        let _done = Done(&done);
        let clients = scope.spawn(|| load(&urls, &done));
        for _ in 0..2 {
            fleet.run(&["restart"]);
            fleet.run(&["replace", "1"]);
            fleet.run(&["replace", "2"]);
        }
        for ((_, last, ..), url) in chains.iter().zip(&urls) {
            until("the whole chain", || (get(&format!("{url}/status")).1["height"] == *last).then_some(()));
        }
        fleet.run(&["restart"]);
        done.store(true, Ordering::Relaxed);
        clients.join().unwrap()
    });
    println!("{answers} requests, none lost, while nine servers were restarted and four writers killed");

    let done = AtomicBool::new(false);
    let compared = thread::scope(|scope| {
        let _done = Done(&done);
        let clients = chains.each_ref().map(|(_, _, cases, chain)| {
            let (url, done) = (fleet.url(chain), &done);
            scope.spawn(move || compare(&url, cases, done))
        });
        for kill in 0..KILLS {
            fleet.replace(1 + kill % 2);
        }
        done.store(true, Ordering::Relaxed);
        clients.map(|client| client.join().unwrap())
    });
    println!("{compared:?} golden answers, 0 different, while writers were killed {KILLS} times");

    let dir = tempfile::tempdir().unwrap();
    for (recording, .., chain) in &chains {
        assert_eq!(fleet.digest(chain), expected(recording, dir.path()), "{recording}");
    }
    let processes = || {
        let ids = std::fs::read_dir(fleet.dir.path()).unwrap().map(|entry| entry.unwrap().path());
        ids.filter(|path| path.extension().is_some_and(|extension| extension == "pid")).count()
    };
    assert_eq!(processes(), 10, "a process ended by itself");
    fleet.run(&["down"]);
    assert_eq!(processes(), 0);
}
