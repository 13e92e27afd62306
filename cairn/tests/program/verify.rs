//! A database that is verified, damaged, repaired and reindexed, through the whole program.

use std::path::Path;

use crate::support::{Cairn, Played, digest, refused, run};
use schema::nft::{NftLog, Tokens};
use schema::tx::{AccountTxs, TxByHash};
use store::{
    Batch, Bounds, Durability, List as _, Order, RocksOptions, RocksStore, Store as _, Table as _, TableSpec,
};

/// Standard output and exit code of `cairn db verify` with these flags.
fn verify(data: &Path, flags: &[&str]) -> (i32, String) {
    let output = run(&[&["db", "verify", "--data", data.to_str().unwrap()], flags].concat());
    let report = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), format!("{}{report}", String::from_utf8(output.stdout).unwrap()))
}

/// Deletes the row in the middle of a table.
fn lose(data: &Path, spec: &'static TableSpec) {
    let store = RocksStore::open(data, schema::TABLES, RocksOptions::default()).unwrap();
    let rows = store.snapshot().unwrap().scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap();
    let mut batch = Batch::new();
    batch.delete(spec, rows[rows.len() / 2].0.clone());
    store.commit(batch, Durability::Synced).unwrap();
}

#[test]
fn a_database_is_verified_damaged_repaired_and_indexed_again() {
    let played = Played::start("wasm-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();

    // Beside the writing process, which must not be affected.
    let mut cairn = Cairn::start(&played.flags("ingest", &data));
    cairn.logged("caught up");
    let (code, report) = verify(&data, &played.services());
    assert!(code == 0 && report.contains("\nsound: nothing is wrong\n"), "{code} {report}");
    assert!(report.contains("heights with the node 64") && report.contains("records 46"), "{report}");
    let (code, report) = verify(&data, &[&played.services()[..], &["--repair"]].concat());
    assert!(code == 2 && report.contains("is in use"), "{code} {report}");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    let whole = digest(&data);

    lose(&data, AccountTxs::SPEC);
    lose(&data, NftLog::SPEC);
    let damaged = digest(&data);
    assert_ne!(damaged, whole);
    let (code, report) = verify(&data, &["--offline"]);
    let expected = "expected nothing: the list has no rows in account_tx";
    assert!(code == 1 && report.contains("length of a list: table count, key 13"), "{code} {report}");
    assert!(report.contains(expected), "{report}");
    assert!(report.contains("error: the database is damaged"), "{report}");
    for scope in [&[][..], &["--all"], &["--last", "20"], &["--sample", "20"]] {
        let (code, report) = verify(&data, &[&played.services()[..], scope].concat());
        let expected =
            "row unlike a new index's: table nft_log, key 0000000000000037000000040001: stored nothing";
        assert!(code == 1 && report.contains(expected), "{scope:?}: {code} {report}");
    }
    let (code, report) = verify(&data, &[&played.services()[..], &["--last", "3"]].concat());
    assert!(
        code == 1 && !report.contains("table nft_log") && report.contains("heights with the node 3"),
        "{report}"
    );
    assert_eq!(digest(&data), damaged, "looking changes nothing");

    let (code, report) = verify(&data, &[&played.services()[..], &["--repair"]].concat());
    assert!(
        code == 0 && report.contains("repair: wrote ") && report.contains(" rows of a new index"),
        "{code} {report}"
    );
    assert!(report.contains("\nsound: nothing is wrong\n"), "{report}");
    assert_eq!(digest(&data), whole);

    lose(&data, TxByHash::SPEC);
    lose(&data, Tokens::SPEC);
    let (code, report) = verify(&data, &["--offline", "--repair"]);
    assert!(code == 0 && report.contains("rows that follow from others"), "{code} {report}");
    assert_eq!(digest(&data), whole);

    let reindex =
        |from: &[&str]| run(&[&["db", "reindex", "--data", at], from, &played.services()[..]].concat());
    let indexed_again = |from: &[&str], first: &str| {
        let output = reindex(from);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text, format!("indexed heights {first} to 67 again\n"));
    };
    let not_possible = |reason: &str| {
        let output = reindex(&["--from", "9"]);
        let message = String::from_utf8_lossy(&output.stderr);
        // An operator must decide.
        assert!(output.status.code() == Some(3) && message.contains(reason), "{message}");
        assert!(message.contains("cairn db restore") && message.contains("(cairn db reindex"), "{message}");
    };
    not_possible("reaches back to 67");
    indexed_again(&[], "4");
    for from in ["9", "4"] {
        indexed_again(&["--from", from], from);
    }
    assert_eq!(digest(&data), whole);
    lose(&data, AccountTxs::SPEC);
    not_possible("does not match the rows, so the database is damaged");
    indexed_again(&[], "4");
    assert_eq!(digest(&data), whole);
    let args = [&["db", "reindex", "--from", "3", "--data", at], &played.services()[..]].concat();
    let (code, report) = refused(&args);
    assert!(code == 1 && report.contains("the database holds 4 to 67"), "{report}");
}

#[test]
fn a_database_that_cannot_be_checked_is_neither_sound_nor_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (code, report) = verify(&data, &["--offline"]);
    assert!(code == 2 && report.contains("holds no database yet"), "{code} {report}");
    assert!(!data.exists(), "looking at a directory must not make it");
    let (code, report) = verify(&data, &[]);
    assert!(code == 2 && report.contains("--comet") && report.contains("--offline"), "{code} {report}");
    for flags in [["--offline", "--all"], ["--repair", "--last=5"]] {
        let (code, report) = verify(&data, &flags);
        assert!(code == 2 && report.contains("cannot be used with"), "{code} {report}");
    }

    let played = Played::start("wasm-scenario", &[]);
    played.index(&data);
    let other = Played::start("move-scenario", &[]);
    let (code, report) = verify(&data, &other.services());
    assert!(code == 2 && report.contains("e2e-move-1"), "{code} {report}");
    assert_eq!(verify(&data, &["--offline"]).0, 0);
    let services: Vec<String> = played.services().into_iter().map(str::to_owned).collect();
    drop(played);
    let (code, report) = verify(&data, &services.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(code == 2 && report.contains("the node does not answer within 15 s"), "{code} {report}");
}
