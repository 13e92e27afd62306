//! A process that is killed while it commits leaves whole batches only, all commits that it reported, and no gap.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::{
    env,
    hash::{BuildHasher, RandomState},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use store::{
    Access, Batch, Bounds, Durability, Error, Order, RocksOptions, RocksStore, Snapshot, Store, TableSpec,
};

const POINT: &TableSpec = &TableSpec { name: "point", tag: 0x10, access: Access::Point };
const APPEND: &TableSpec = &TableSpec { name: "append", tag: 0x11, access: Access::Append };
const SCAN: &TableSpec = &TableSpec { name: "scan", tag: 0x12, access: Access::Scan };
const TABLES: &[&TableSpec] = &[POINT, APPEND, SCAN];

/// Rows of each table in a commit.
const ROWS: u64 = 40;

/// Environment variable of the child: the directory to commit to.
const DIRECTORY: &str = "STORE_KILL_TEST_DIRECTORY";

/// Small buffers, so that the kill hits flushes and compactions.
fn open(path: &Path) -> Result<RocksStore, Error> {
    let options = RocksOptions { write_buffer_bytes: 1 << 20, ..RocksOptions::default() };
    RocksStore::open(path, TABLES, options)
}

fn height(snapshot: &dyn Snapshot) -> u64 {
    let stored = snapshot.get(POINT, b"height").unwrap();
    stored.map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
}

/// The batch of a height: rows that only this height has, in two tables, and the height.
fn batch(height: u64) -> Batch {
    let mut batch = Batch::new();
    for row in 0..ROWS {
        let n = height * ROWS + row;
        batch.put(APPEND, n.to_be_bytes().to_vec(), height.to_be_bytes().repeat(20));
        batch.put(
            SCAN,
            n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
            n.to_be_bytes().to_vec(),
        );
    }
    batch.put(POINT, b"height".to_vec(), height.to_be_bytes().to_vec());
    batch
}

/// Not a separate test: the process that the test below starts and kills.
#[test]
#[ignore = "started by the test that kills it"]
fn child_that_commits_until_it_is_killed() {
    let Ok(directory) = env::var(DIRECTORY) else { return };
    let store = open(Path::new(&directory)).unwrap();
    let first = height(&*store.snapshot().unwrap()) + 1;
    for height in first.. {
        let durability = if height.is_multiple_of(64) { Durability::Synced } else { Durability::Buffered };
        store.commit(batch(height), durability).unwrap();
        // A pipe, so that a line is visible as soon as it is written.
        writeln!(std::io::stdout(), "\ncommitted {height}").unwrap();
    }
}

/// Runs a child in `directory` until it has made `commits`, kills it, and returns the last height that it reported.
fn commit_and_kill(directory: &Path, commits: usize) -> u64 {
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child_that_commits_until_it_is_killed", "--nocapture"])
        .env(DIRECTORY, directory)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let heights = lines.filter_map(|line| line.unwrap().strip_prefix("committed ")?.parse::<u64>().ok());
    let mut heights = heights.fuse();
    let mut reported = heights.next().expect("the child commits");
    let in_use = open(directory).err().unwrap();
    assert!(matches!(in_use, Error::InUse { .. }), "{in_use}");
    for height in heights.by_ref().take(commits) {
        reported = height;
    }
    child.kill().unwrap();
    child.wait().unwrap();
    heights.last().unwrap_or(reported) // The rest of the pipe.
}

/// Checks all rows of all heights up to the stored one, and that there are no others; returns that height.
fn check(directory: &Path) -> u64 {
    let store = open(directory).unwrap();
    let snapshot = store.snapshot().unwrap();
    let height = height(&*snapshot);
    let mut expected = [Vec::new(), Vec::new()];
    for height in 1..=height {
        for writes in batch(height).into_sorted().filter(|writes| writes.table() != POINT) {
            let rows = writes.iter().map(|(key, change)| (key.to_vec(), change.apply(None).unwrap()));
            expected[usize::from(writes.table() == SCAN)].extend(rows);
        }
    }
    for (table, mut rows) in [APPEND, SCAN].into_iter().zip(expected) {
        rows.sort();
        let stored = snapshot.scan(table, Bounds::all(), Order::Asc, usize::MAX).unwrap();
        assert_eq!(stored.len(), rows.len(), "rows of `{}` at height {height}", table.name);
        assert!(stored == rows, "rows of `{}` differ at height {height}", table.name);
    }
    height
}

#[test]
fn a_killed_process_leaves_a_prefix_of_whole_commits() {
    let directory = tempfile::tempdir().unwrap();
    let mut before = 0;
    for round in 0_u64..4 {
        let commits = usize::from(RandomState::new().hash_one(round).to_ne_bytes()[0]);
        let reported = commit_and_kill(directory.path(), commits);
        let height = check(directory.path());
        assert!(height >= reported, "round {round}: {reported} was committed, {height} is left");
        assert!(height > before, "round {round}: killed after {commits} commits");
        before = height;
    }
}
