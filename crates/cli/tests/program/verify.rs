//! A database that is looked at, damaged, healed and indexed again, through the whole program.

use std::path::Path;

use crate::support::{Cairn, Played, digest, refused, run};
use schema::nft::{NftLog, Tokens};
use schema::tx::AccountTxs;
use store::{
    Batch, Bounds, Durability, List as _, Order, RocksOptions, RocksStore, Store as _, Table as _, TableSpec,
};

/// Standard output and exit code of `cairn db verify` with these flags.
fn verify(data: &Path, flags: &[&str]) -> (i32, String) {
    let output = run(&[&["db", "verify", "--data", data.to_str().unwrap()], flags].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    (output.status.code().unwrap(), format!("{}{said}", String::from_utf8(output.stdout).unwrap()))
}

/// Loses the row in the middle of a table.
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

    // Beside the process that writes it, which is left alone.
    let mut cairn = Cairn::start(&played.flags("ingest", &data));
    cairn.logged("caught up");
    let (code, said) = verify(&data, &played.services());
    assert!(code == 0 && said.ends_with("sound: nothing is wrong\n"), "{code} {said}");
    assert!(said.contains("heights with the node 64") && said.contains("records 46"), "{said}");
    let (code, said) = verify(&data, &[&played.services()[..], &["--repair"]].concat());
    assert!(code == 2 && said.contains("is in use"), "{code} {said}");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    let whole = digest(&data);

    lose(&data, AccountTxs::SPEC);
    lose(&data, NftLog::SPEC);
    let damaged = digest(&data);
    assert_ne!(damaged, whole);
    let (code, said) = verify(&data, &["--offline"]);
    assert!(code == 1 && said.contains("entry of a list: table account_tx, key 14"), "{code} {said}");
    assert!(said.contains("error: the database is damaged"), "{said}");
    let (code, said) = verify(&data, &played.services());
    assert!(
        code == 1 && said.contains("row unlike the chain's: table nft_log, key 54: stored nothing"),
        "{code} {said}"
    );
    let (code, said) = verify(&data, &[&played.services()[..], &["--all"]].concat());
    assert!(code == 1 && said.contains("row unlike a new index's: table nft_log, key 54"), "{code} {said}");
    assert_eq!(digest(&data), damaged, "looking changes nothing");

    let (code, said) = verify(&data, &[&played.services()[..], &["--repair"]].concat());
    assert!(code == 0 && said.contains("repair: indexed heights "), "{code} {said}");
    assert!(said.ends_with("sound: nothing is wrong\n"), "{said}");
    assert_eq!(digest(&data), whole);

    lose(&data, AccountTxs::SPEC);
    lose(&data, Tokens::SPEC);
    let all = [&played.services()[..], &["--all", "--repair"]].concat();
    let (code, said) = verify(&data, &all);
    assert!(code == 0 && said.contains("repair: wrote "), "{code} {said}");
    assert_eq!(digest(&data), whole);

    lose(&data, AccountTxs::SPEC);
    for from in ["9", "4"] {
        let args = [&["db", "reindex", "--from", from, "--data", at], &played.services()[..]].concat();
        let output = run(&args);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(text, format!("indexed heights {from} to 67 again\n"));
    }
    assert_eq!(digest(&data), whole);
    let args = [&["db", "reindex", "--from", "3", "--data", at], &played.services()[..]].concat();
    let (code, said) = refused(&args);
    assert!(code == 1 && said.contains("the database holds 4 to 67"), "{said}");
}

#[test]
fn a_database_that_cannot_be_checked_is_neither_sound_nor_damaged() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let (code, said) = verify(&data, &["--offline"]);
    assert!(code == 2 && said.contains("holds no database yet"), "{code} {said}");
    assert!(!data.exists(), "looking at a directory must not make it");
    let (code, said) = verify(&data, &[]);
    assert!(code == 2 && said.contains("--comet") && said.contains("--offline"), "{code} {said}");
    let (code, said) = verify(&data, &["--offline", "--all"]);
    assert!(code == 2 && said.contains("cannot be used with"), "{code} {said}");

    let played = Played::start("wasm-scenario", &[]);
    played.index(&data);
    let other = Played::start("move-scenario", &[]);
    let (code, said) = verify(&data, &other.services());
    assert!(code == 2 && said.contains("e2e-move-1"), "{code} {said}");
    assert_eq!(verify(&data, &["--offline"]).0, 0);
    let services: Vec<String> = played.services().into_iter().map(str::to_owned).collect();
    drop(played);
    let (code, said) = verify(&data, &services.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(code == 2 && said.contains("the node does not answer within 15 s"), "{code} {said}");
}
