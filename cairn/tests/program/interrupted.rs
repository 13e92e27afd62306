//! `cairn db` commands that are killed and repeated, and places that they refuse.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{Cairn, Played, command, digest, height, printed, refused, until};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

/// Runs a command again and again, each time killed a little later, until it ends by itself; returns what it printed then.
///
/// The moments are a millisecond apart at first, and later an eighth of the time before: a database is opened or created in
/// a few milliseconds, and steps as small for all of a command would take the square of its time.
fn killed_until_it_ends(args: &[&str]) -> String {
    let mut moment = Duration::ZERO;
    loop {
        let mut child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Not a wait for a condition: the moment is the test's input.
        std::thread::sleep(moment);
        moment += (moment / 8).max(Duration::from_millis(1));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        if output.status.code().is_some() {
            let message = String::from_utf8_lossy(&output.stderr);
            // A restore or an export that was killed between its end and that of the process: the caller compares what it made.
            let is_made =
                ["it is not empty, and a backup is restored to", "is not empty: name another directory"]
                    .iter()
                    .any(|refusal| message.contains(refusal));
            assert!(output.status.success() || is_made, "{args:?}: {message}");
            return String::from_utf8(output.stdout).unwrap();
        }
    }
}

#[test]
fn a_reindex_that_is_killed_continues_and_ends_with_the_same_database() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();
    let mut played = Played::start("evm-scenario", &[]);
    played.index(&data);
    let whole = digest(&data);
    for from in [Some("100"), None] {
        played.end();
        played.begin(&["--fault", "comet:delay=200ms"]);
        let args: Vec<_> = ["db", "reindex", "--data", at]
            .into_iter()
            .chain(from.into_iter().flat_map(|from| ["--from", from]))
            .map(str::to_owned)
            .chain(played.services().into_iter().map(str::to_owned))
            .collect();
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let mut child = command(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let first = from.map_or(1, |from| from.parse().unwrap());
        until("the removal", || (height(&data) < first).then_some(()));
        until("some heights again", || {
            let now = height(&data);
            (now > first + 5 && now < LAST - 20).then_some(())
        });
        child.kill().unwrap();
        child.wait().unwrap();
        let reached = height(&data);
        assert!(reached < LAST, "{reached}");
        played.end();
        played.begin(&[]);
        let message = printed(&args);
        let continued =
            format!("an interrupted reindex of heights {first} to {LAST} continues after height ");
        assert!(message.starts_with(&continued), "{message}");
        assert!(message.ends_with(&format!("indexed heights {first} to {LAST} again\n")), "{message}");
        assert_eq!(digest(&data), whole, "from {first}");
        // A finished one is not continued.
        assert_eq!(printed(&args), format!("indexed heights {first} to {LAST} again\n"));
        assert_eq!(digest(&data), whole, "from {first}");
    }
}

#[test]
fn a_reindex_that_is_killed_at_any_moment_ends_with_the_same_database() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &[]);
    played.index(&data);
    let whole = digest(&data);
    for from in [&["--from", "150"][..], &[]] {
        let args = ["db", "reindex", "--data", data.to_str().unwrap()];
        killed_until_it_ends(&[&args, from, &played.services()[..]].concat());
        assert_eq!(digest(&data), whole, "{from:?}");
    }
}

#[test]
fn a_reindex_that_is_killed_and_followed_by_an_index_is_complete() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &["--fault", "comet:delay=100ms"]);
    played.index(&data);
    let whole = digest(&data);
    let args = ["db", "reindex", "--from", "100", "--data", data.to_str().unwrap()];
    let mut child = command(&[&args[..], &played.services()].concat()).stdout(Stdio::null()).spawn().unwrap();
    until("fewer heights", || (height(&data) < LAST).then_some(()));
    child.kill().unwrap();
    child.wait().unwrap();
    played.index(&data);
    assert_eq!(digest(&data), whole);
}

#[test]
fn rollbacks_exports_restores_and_copies_that_are_killed_and_repeated_end_right() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &[]);
    played.index(&data);
    let (whole, at) = (digest(&data), data.to_str().unwrap());

    let exported = path("export");
    let text = killed_until_it_ends(&["db", "export", "--to", &exported, "--data", at]);
    assert!(text.is_empty() || text.starts_with("exported "), "{text}");
    let calm = path("calm-export");
    printed(&["db", "export", "--to", &calm, "--data", at]);
    let files = |folder: &str| {
        let mut files: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap()))
            .collect();
        files.sort();
        files
    };
    assert!(files(&exported) == files(&calm), "the same files");
    let (code, message) = refused(&["db", "export", "--to", &exported, "--data", at]);
    assert!(code == 1 && message.contains("is not empty"), "a complete one is kept: {message}");

    let backups = path("backups");
    killed_until_it_ends(&["db", "backup", "--to", &backups, "--data", at]);
    let restored = path("restored");
    killed_until_it_ends(&["db", "restore", "--from", &backups, "--data", &restored]);
    assert_eq!(digest(Path::new(&restored)), whole);
    assert!(!fs::read_dir(&restored).unwrap().any(|entry| entry.unwrap().file_type().unwrap().is_dir()));

    let copied = path("copied");
    let args = ["db", "copy", "--chain-id", played.chain(), "--from", at, "--to", &copied];
    killed_until_it_ends(&args);
    assert_eq!(digest(Path::new(&copied)), whole);

    killed_until_it_ends(&["db", "rollback", "--to", "100", "--data", at]);
    printed(&["db", "rollback", "--to", "100", "--data", &restored]);
    assert_eq!((digest(&data), height(&data)), (digest(Path::new(&restored)), 100));
}

#[test]
fn a_repair_that_is_killed_and_repeated_ends_right() {
    use store::{Batch, Bounds, Durability, Order, RocksOptions, RocksStore, Store as _, Table as _};
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &[]);
    played.index(&data);
    let whole = digest(&data);
    {
        let store = RocksStore::open(&data, schema::TABLES, RocksOptions::default()).unwrap();
        let mut batch = Batch::new();
        for spec in [schema::tx::TxByHash::SPEC, schema::rich::Erc20s::SPEC, schema::evm_tx::EvmTxs::SPEC] {
            let rows = store.snapshot().unwrap().scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap();
            batch.delete(spec, rows[rows.len() / 2].0.clone());
        }
        store.commit(batch, Durability::Synced).unwrap();
    }
    assert_ne!(digest(&data), whole);
    let args = ["db", "verify", "--repair", "--data", data.to_str().unwrap()];
    let report = killed_until_it_ends(&[&args[..], &played.services()].concat());
    assert!(report.contains("\nsound: nothing is wrong\n"), "{report}");
    assert_eq!(digest(&data), whole);
}

#[test]
fn a_reindex_of_heights_that_the_database_does_not_hold_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("wasm-scenario", &[]);
    played.index(&data);
    let whole = digest(&data);
    for from in ["0", "3", "68", "9999"] {
        let args = ["db", "reindex", "--from", from, "--data", data.to_str().unwrap()];
        let (code, message) = refused(&[&args[..], &played.services()].concat());
        let reason = format!("heights from {from} on cannot be indexed again: the database holds 4 to 67");
        assert!(code == 1 && message.contains(&reason), "{from}: {code} {message}");
    }
    assert_eq!(digest(&data), whole);
}

#[test]
fn a_place_inside_a_database_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let data = dir.path().join("data");
    let played = Played::start("wasm-scenario", &[]);
    played.index(&data);
    let (whole, at) = (digest(&data), data.to_str().unwrap());
    symlink(&data, dir.path().join("link")).unwrap();
    let listed = |folder: &Path| {
        fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect::<std::collections::BTreeSet<_>>()
    };
    let before = listed(&data);
    let places =
        ["data", "data/backups", "data/a/b", "link", "link/backups", "none/../data/backups", "data/."];
    for place in places.map(path) {
        for args in [
            &["db", "backup", "--to", &place, "--data", at][..],
            &["db", "export", "--to", &place, "--data", at],
            &["db", "copy", "--chain-id", played.chain(), "--from", at, "--to", &place],
        ] {
            let (code, message) = refused(args);
            assert!(
                code == 1 && message.contains("or inside it: name a place for"),
                "{args:?}: {code} {message}"
            );
        }
    }
    // Another database.
    let other = path("other");
    printed(&["db", "copy", "--chain-id", played.chain(), "--from", at, "--to", &other]);
    let (code, message) = refused(&["db", "backup", "--to", &other, "--data", at]);
    assert!(code == 1 && message.contains("other: it holds a database; name an empty"), "{message}");
    // The database by another name, and one beside it.
    let (code, message) = refused(&["db", "backup", "--to", &path("data/b"), "--data", &path("link")]);
    assert!(code == 1 && message.contains("or inside it"), "{message}");
    printed(&["db", "backup", "--to", &path("data-backups"), "--data", at]);
    let inside = path("data-backups/restored");
    let (code, message) = refused(&["db", "restore", "--from", &path("data-backups"), "--data", &inside]);
    assert!(code == 1 && message.contains("or inside it"), "{message}");
    // A writing process makes checkpoints for a backup, which must not begin either.
    let mut cairn = Cairn::start(&played.flags("ingest", &data));
    cairn.logged("caught up");
    let (code, message) = refused(&["db", "backup", "--to", &path("link/backups"), "--data", at]);
    assert!(code == 1 && message.contains("or inside it"), "{message}");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    assert_eq!(digest(&data), whole);
    let new: Vec<_> =
        listed(&data).difference(&before).map(|name| name.to_string_lossy().into_owned()).collect();
    // What RocksDB makes.
    let is_ours =
        |name: &String| [".log", ".sst", "MANIFEST", "OPTIONS", "LOG"].iter().any(|part| name.contains(part));
    assert!(new.iter().all(is_ours), "{new:?}");
}

#[test]
fn the_temporary_directory_of_a_killed_process_is_removed_by_the_next_one() {
    let dir = tempfile::tempdir().unwrap();
    let (data, temporary) = (dir.path().join("data"), dir.path().join("tmp"));
    fs::create_dir(&temporary).unwrap();
    let left = || fs::read_dir(&temporary).unwrap().count();
    let played = Played::start("wasm-scenario", &[]);
    played.index(&data);
    let within = |args: &[&str]| {
        let mut command = command(args);
        command.env("TMPDIR", &temporary);
        command
    };
    let mut demo =
        Cairn::spawn(within(&["demo", "--listen", "127.0.0.1:0", "--route-listen", "127.0.0.1:0"]));
    demo.line("Open http://");
    let mut follower =
        Cairn::spawn(within(&["query", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"]));
    follower.url();
    assert_eq!(left(), 2);
    demo.kill();
    assert_eq!(left(), 2, "a kill leaves it");
    let info = within(&["db", "info", "--data", data.to_str().unwrap()]).output().unwrap();
    assert!(info.status.success());
    assert_eq!(left(), 1, "the directory of a running process stays");
    follower.kill();
    assert!(within(&["db", "info", "--data", data.to_str().unwrap()]).output().unwrap().status.success());
    assert_eq!(left(), 0);
}
