//! A full disk makes commits fail, but not reads, and a failed commit never reappears.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "says what could not be tested, and figures")]

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

use store::{
    Access, Backups, Batch, Bounds, Durability, Error, MemStore, Order, RocksOptions, RocksStore, Store,
    TableSpec,
};

const POINT: &TableSpec = &TableSpec { name: "point", tag: 0x10, access: Access::Point };
const APPEND: &TableSpec = &TableSpec { name: "append", tag: 0x11, access: Access::Append };
const TABLES: &[&TableSpec] = &[POINT, APPEND];

/// Environment variables of the child: the small file system, and a directory for notes that outlive it.
const DISK: &str = "STORE_SPACE_TEST_DISK";
const NOTES: &str = "STORE_SPACE_TEST_NOTES";

/// RocksDB resumes once it could write a whole memory table of 64 MiB.
const DISK_BYTES: u64 = 256 << 20;
const LEFT_BYTES: u64 = 24 << 20;

/// RocksDB checks the free space every five seconds.
const PATIENCE: Duration = Duration::from_mins(1);

fn open(path: &Path, reserve_bytes: u64) -> Result<RocksStore, Error> {
    RocksStore::open(path, TABLES, RocksOptions { reserve_bytes, ..RocksOptions::default() })
}

/// A row for each table, one of them of half a megabyte.
fn batch(n: u32) -> Batch {
    let mut batch = Batch::new();
    batch.put(POINT, n.to_be_bytes().to_vec(), n.to_be_bytes().to_vec());
    batch.put(APPEND, n.to_be_bytes().to_vec(), n.to_be_bytes().repeat(1 << 17));
    batch
}

/// The stored batches, each of them complete.
fn stored(store: &dyn Store) -> Vec<u32> {
    let snapshot = store.snapshot().unwrap();
    let points = snapshot.scan(POINT, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    let appends = snapshot.scan(APPEND, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    assert_eq!(points.len(), appends.len());
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    points
        .iter()
        .zip(&appends)
        .map(|((key, value), (other, large))| {
            assert!(key == value && key == other && large.len() == 1 << 19 && large[..4] == key[..]);
            number(key)
        })
        .collect()
}

#[test]
fn without_a_free_reserve_commits_fail_and_reads_continue() {
    let directory = tempfile::tempdir().unwrap();
    let store = open(directory.path(), 0).unwrap();
    store.room().unwrap();
    store.commit(batch(1), Durability::Synced).unwrap();
    drop(store);

    let store = open(directory.path(), u64::MAX).unwrap();
    for refused in [store.room(), store.commit(batch(2), Durability::Synced)] {
        let error = refused.unwrap_err();
        assert!(
            matches!(&error, Error::NoSpace { path, free, reserve: u64::MAX }
                if path == directory.path() && *free > 0),
            "{error}"
        );
        assert!(error.to_string().contains("delete something"), "{error}");
    }
    assert_eq!(stored(&store), [1]);
    drop(store);
    assert_eq!(stored(&open(directory.path(), 0).unwrap()), [1]);
}

#[test]
fn the_engine_in_memory_always_has_space() {
    MemStore::new().room().unwrap();
}

/// Commits batches from `next` on until one fails; returns the committed ones.
fn commit_until_full(store: &RocksStore, next: &mut u32) -> Vec<u32> {
    let mut committed = Vec::new();
    loop {
        let n = *next;
        *next += 1;
        let durability = if n.is_multiple_of(3) { Durability::Synced } else { Durability::Buffered };
        match store.commit(batch(n), durability) {
            Ok(()) => committed.push(n),
            Err(Error::NoSpace { free, .. }) => {
                assert!(free < DISK_BYTES / 4, "{free} bytes are free");
                return committed;
            }
            Err(error) => panic!("{error}"),
        }
        assert!(committed.len() < 1_000, "the disk does not fill");
    }
}

/// Another program uses the disk except for some free space.
fn fill(filler: &Path) {
    let found = rustix::fs::statvfs(filler.parent().unwrap()).unwrap();
    let bytes = found.f_bavail * found.f_frsize - LEFT_BYTES;
    fs::write(filler, vec![7; usize::try_from(bytes).unwrap()]).unwrap();
}

/// Commits a batch as soon as there is space again, and returns its number.
fn commit_when_there_is_room(store: &RocksStore, next: &mut u32) -> u32 {
    let since = Instant::now();
    loop {
        let n = *next;
        *next += 1;
        match store.commit(batch(n), Durability::Synced) {
            Ok(()) => {
                println!("went on {:?} after there was room", since.elapsed());
                return n;
            }
            Err(Error::NoSpace { .. }) if since.elapsed() < PATIENCE => {}
            Err(error) => panic!("after {:?} with room: {error}", since.elapsed()),
        }
        thread::sleep(Duration::from_millis(50)); // A client that retries.
    }
}

/// Not a separate test: runs in a mount namespace with a small file system.
#[test]
#[ignore = "started by the test that makes the file system"]
fn child_that_fills_the_disk_and_goes_on() {
    let (Ok(disk), Ok(notes)) = (env::var(DISK), env::var(NOTES)) else { return };
    let (database, filler) = (Path::new(&disk).join("database"), Path::new(&disk).join("filler"));
    let store = open(&database, 0).unwrap();
    let mut next = 0;
    let mut committed = Vec::new();
    for _ in 0..2 {
        fill(&filler);
        committed.extend(commit_until_full(&store, &mut next));
        assert!(committed.len() > 3, "{committed:?}");
        for _ in 0..5 {
            let refused = store.commit(batch(next), Durability::Buffered);
            assert!(matches!(refused, Err(Error::NoSpace { .. })), "{refused:?}");
            next += 1;
        }
        assert_eq!(stored(&store), committed, "while the disk is full");
        fs::remove_file(&filler).unwrap();
        committed.push(commit_when_there_is_room(&store, &mut next));
        assert_eq!(stored(&store), committed, "after there is room");
    }
    drop(store);
    let store = open(&database, 0).unwrap();
    assert_eq!(stored(&store), committed, "after opening again");

    // Repeated, and ended by a kill.
    fill(&filler);
    committed.extend(commit_until_full(&store, &mut next));
    let mut file = fs::File::create(Path::new(&notes).join("committed")).unwrap();
    for n in &committed {
        writeln!(file, "{n}").unwrap();
    }
    file.sync_all().unwrap();
    std::process::abort();
}

/// Not a separate test: runs in the same namespace after the other child died.
#[test]
#[ignore = "started by the test that makes the file system"]
fn child_that_opens_after_the_end() {
    let (Ok(disk), Ok(notes)) = (env::var(DISK), env::var(NOTES)) else { return };
    let (database, filler) = (Path::new(&disk).join("database"), Path::new(&disk).join("filler"));
    let text = fs::read_to_string(Path::new(&notes).join("committed")).unwrap();
    let committed: Vec<u32> = text.lines().map(|line| line.parse().unwrap()).collect();
    fs::remove_file(filler).unwrap();
    let store = open(&database, 0).unwrap();
    assert_eq!(stored(&store), committed);
    store.commit(batch(u32::MAX), Durability::Synced).unwrap();
    fs::write(Path::new(&notes).join("done"), "").unwrap();
}

/// Runs `script` in new namespaces, in which it may mount.
fn unshared(script: &str, arguments: &[PathBuf], notes: &Path) -> Option<Output> {
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-ec", script, "sh"])
        .args(arguments)
        .env(NOTES, notes)
        .output();
    output.ok()
}

/// Not a separate test: runs in a mount namespace with a small file system.
#[test]
#[ignore = "started by the test that makes the file system"]
fn child_that_restores_to_a_disk_that_is_too_small() {
    let (Ok(disk), Ok(notes)) = (env::var(DISK), env::var(NOTES)) else { return };
    let (to, from) = (Path::new(&disk).join("database"), Path::new(&notes).join("backups"));
    let error = Backups::new(&from).restore(None, &to).unwrap_err();
    assert!(matches!(&error, Error::Engine { path, .. } if *path == to), "{error}");
    assert!(error.to_string().contains("the disk is full: the backup takes "), "{error}");
    fs::write(Path::new(&notes).join("done"), "").unwrap();
}

#[test]
fn the_error_of_a_backup_that_does_not_fit_contains_the_disk() {
    let (disk, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (database, checkpoint) = (notes.path().join("database"), notes.path().join("checkpoint"));
    let store = open(&database, 0).unwrap();
    (0..12).for_each(|n| store.commit(batch(n), Durability::Buffered).unwrap());
    store.checkpoint(&checkpoint).unwrap();
    Backups::new(&notes.path().join("backups")).add(&checkpoint, TABLES).unwrap();
    let mount = "mount -t tmpfs -o size=2097152 cairn-test \"$1\"";
    let child = "child_that_restores_to_a_disk_that_is_too_small";
    let script = format!("{mount}\n{DISK}=\"$1\" \"$2\" --ignored --exact {child} --nocapture");
    let arguments = [disk.path().to_owned(), env::current_exe().unwrap()];
    if !unshared(mount, &arguments, notes.path()).is_some_and(|output| output.status.success()) {
        eprintln!("NOT TESTED: this machine lets no user mount a file system (unshare --user --mount)");
        return;
    }
    let output = unshared(&script, &arguments, notes.path()).unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && notes.path().join("done").exists(), "{output_text}");
}

#[test]
fn a_full_disk_fails_commits_until_there_is_space_and_loses_none() {
    let (disk, notes) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mount = format!("mount -t tmpfs -o size={DISK_BYTES} cairn-test \"$1\"");
    let arguments = [disk.path().to_owned(), env::current_exe().unwrap()];
    if !unshared(&mount, &arguments, notes.path()).is_some_and(|output| output.status.success()) {
        eprintln!(
            "NOT TESTED: this machine lets no user mount a file system (unshare --user --mount), \
             so only the reserve was tested, not a disk that is full"
        );
        return;
    }
    let run = |child: &str| format!("{DISK}=\"$1\" \"$2\" --ignored --exact {child} --nocapture");
    // A signal ends the first child.
    let script = format!(
        "{mount}\n{} || test $? -gt 128\n{}",
        run("child_that_fills_the_disk_and_goes_on"),
        run("child_that_opens_after_the_end")
    );
    let output = unshared(&script, &arguments, notes.path()).unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{output_text}");
    assert!(output.status.success() && notes.path().join("done").exists(), "{output_text}");
}
