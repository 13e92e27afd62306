//! A flipped byte in a database's files, through the whole program: a 500 for requests that need it, a report, and a
//! reindex.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::support::{Cairn, Played, digest, get, run};
use store::{RocksOptions, RocksStore};

/// The file with the identity of the database.
const IRREPLACEABLE: [&str; 1] = ["meta"];

/// Compacts every table to one file; returns the names.
fn compact(data: &Path) -> Vec<String> {
    RocksStore::open(data, schema::TABLES, RocksOptions::default()).unwrap().compact().unwrap();
    let names = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter(|name| Path::new(name).extension().is_some_and(|kind| kind == "sst")).collect();
    names.sort();
    names
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Flips a bit in the first block of rows.
fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes[9] ^= 0x20;
    fs::write(file, bytes).unwrap();
}

/// Exit code and output of `cairn db verify`.
fn verify(data: &Path, flags: &[&str]) -> (i32, String) {
    let output = run(&[&["db", "verify", "--data", data.to_str().unwrap()], flags].concat());
    let report = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code().unwrap(), report.concat())
}

/// The unreadable table in a line of `cairn db verify`.
fn named<'a>(report: &'a str, file: &str) -> &'a str {
    let line = report.lines().find(|line| line.starts_with("unreadable rows: ") && line.contains(file));
    line.unwrap().split_once("table ").unwrap().1.split_once(',').unwrap().0
}

#[test]
fn a_flipped_byte_in_any_table_is_reported_and_repaired_by_a_reindex() {
    let dir = tempfile::tempdir().unwrap();
    let sound = dir.path().join("sound");
    let played = Played::start("wasm-scenario", &[]);
    played.index(&sound);
    let files = compact(&sound);
    let whole = digest(&sound);
    let all = dir.path().join("all");
    copy(&sound, &all);
    let mut tables = BTreeSet::new();
    for (n, file) in files.iter().enumerate() {
        let data = dir.path().join(n.to_string());
        copy(&sound, &data);
        flip(&data.join(file));
        let (code, report) = verify(&data, &["--offline"]);
        assert_ne!(code, 0, "{file}: {report}");
        let table = named(&report, file).to_owned();
        assert!(report.contains("`cairn db reindex`"), "{file}: {report}");
        if IRREPLACEABLE.contains(&&*table) {
            let (is_success, report) = reindex(&data, &played);
            assert!(!is_success && report.contains("restore a backup"), "{table}: {report}");
        } else {
            // All at once below: a reindex takes a second whatever is damaged.
            flip(&all.join(file));
            if ["count", "tx"].contains(&&*table) {
                assert_eq!(
                    verify(&data, &[&played.services()[..], &["--repair"]].concat()).0,
                    code,
                    "{file}"
                );
                is_repaired(&data, &played, &whole);
            }
        }
        tables.insert(table);
        fs::remove_dir_all(data).unwrap();
    }
    is_repaired(&all, &played, &whole);
    assert_eq!(tables.len(), files.len());
    assert!(tables.len() > 15 && tables.contains("tx") && tables.contains("count"), "{tables:?}");
}

/// Whether `cairn db reindex` succeeds, and its output.
fn reindex(data: &Path, played: &Played) -> (bool, String) {
    let args = ["db", "reindex", "--data", data.to_str().unwrap()];
    let output = run(&[&args, &played.services()[..]].concat());
    let report = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    (output.status.success(), report)
}

/// Reindexes a damaged database, which has the digest `whole` after that.
fn is_repaired(data: &Path, played: &Played, whole: &str) {
    let (is_success, report) = reindex(data, played);
    assert!(is_success, "{report}");
    assert_eq!(verify(data, &["--offline"]).0, 0);
    assert_eq!(digest(data), whole);
}

#[test]
fn requests_that_need_a_damaged_block_are_500_and_all_others_are_served() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let played = Played::start("evm-scenario", &[]);
    played.index(&data);
    let files = compact(&data);
    let mut seen = false;
    for file in files {
        let damaged = dir.path().join(&file);
        copy(&data, &damaged);
        flip(&damaged.join(&file));
        if named(&verify(&damaged, &["--offline"]).1, &file) != "tx" {
            continue;
        }
        seen = true;
        let mut cairn =
            Cairn::start(&["query", "--data", damaged.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
        let url = cairn.url();
        let first = format!("{url}/indexer/tx/v1/txs?pagination.reverse=false&pagination.limit=1");
        let last = format!("{url}/indexer/tx/v1/txs?pagination.reverse=true&pagination.limit=1");
        for _ in 0..2 {
            let (status, answer) = get(&first);
            assert_eq!(status, 500, "{answer}");
            let (status, answer) = get(&last);
            assert!(status == 200 && answer["txs"].as_array().unwrap().len() == 1, "{answer}");
        }
    }
    assert!(seen);
}
