//! A rewind on disk whose process is killed.

use std::env;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::path::Path;
use std::process::{Command, Stdio};

use schema::rewind::{Rewound, rewind};
use schema::undo::Lane;
use store::{Batch, Durability, RocksOptions, RocksStore, Snapshot, Store};

use crate::sample_chain::{chain_of, copy_into, digests};

/// Environment variable of the child: the database to rewind.
const DIRECTORY: &str = "SCHEMA_KILL_TEST_DIRECTORY";

const LAST: u64 = 60;
const TO: u64 = 40;

/// Commits that are reported before the child is killed.
const COMMITS: usize = 2;

fn open(path: &Path) -> RocksStore {
    RocksStore::open(path, schema::TABLES, RocksOptions::default()).unwrap()
}

/// A store that waits for a line on standard input before each commit, and writes one to standard output after it.
struct Stepped(RocksStore);

impl Store for Stepped {
    fn snapshot(&self) -> Result<Box<dyn Snapshot + '_>, store::Error> {
        self.0.snapshot()
    }

    fn commit(&self, batch: Batch, durability: Durability) -> Result<(), store::Error> {
        assert_ne!(stdin().read_line(&mut String::new()).unwrap(), 0, "the parent process has ended");
        self.0.commit(batch, durability)?;
        stdout().write_all(b"\ncommitted\n").unwrap();
        Ok(())
    }

    fn sync(&self) -> Result<(), store::Error> {
        self.0.sync()
    }

    fn disk_bytes(&self) -> Result<u64, store::Error> {
        self.0.disk_bytes()
    }
}

/// Not a separate test: the process that the test below starts and kills.
#[test]
#[ignore = "started by the test that kills it"]
fn child_that_takes_a_database_back() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    rewind(&Stepped(open(Path::new(&directory))), TO).unwrap();
}

/// Lets a child make some commits, and kills it during the next one. False if the rewind ended before that.
fn step_and_kill(directory: &Path) -> bool {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "killed::child_that_takes_a_database_back", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut grants = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut commits = lines.filter(|line| line.as_ref().is_ok_and(|line| line == "committed"));
    for _ in 0..COMMITS {
        // The write fails if the child has ended.
        if writeln!(grants).is_err() || commits.next().is_none() {
            assert!(child.wait().unwrap().success());
            return false;
        }
    }
    drop(writeln!(grants));
    child.kill().unwrap();
    child.wait().unwrap();
    true
}

#[test]
fn a_rewind_that_is_killed_repeatedly_completes() {
    let directory = tempfile::tempdir().unwrap();
    copy_into(&chain_of(LAST, TO + 10, 1), &open(directory.path()));
    let mut kills = 0;
    while step_and_kill(directory.path()) {
        kills += 1;
        assert!(kills < 60, "it does not get to its end");
        let store = open(directory.path());
        let [calls, blocks] = Lane::ALL.map(|lane| lane.height(&*store.snapshot().unwrap()).unwrap());
        assert!(TO <= calls && calls <= blocks, "{calls}, {blocks}");
    }
    assert!(kills > 5, "only {kills} kills");
    let store = open(directory.path());
    assert_eq!(digests(&store), digests(&chain_of(TO, TO, 1)));
    assert_eq!(rewind(&store, TO).unwrap(), Rewound { from: TO, to: TO });
}
