//! Exports as lines of JSON.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use crate::support::{Cairn, Played, get, printed, refused, repository};
use serde_json::Value;
use store::{Bounds, Order, RocksOptions, RocksStore, Store as _};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

fn lines(path: &Path) -> Vec<Value> {
    let reader = zstd::Decoder::new(File::open(path).unwrap()).unwrap();
    BufReader::new(reader).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

fn summary(directory: &Path) -> Value {
    serde_json::from_reader(File::open(directory.join("export.json")).unwrap()).unwrap()
}

#[test]
fn every_row_is_a_line_and_every_height_is_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();
    let played = Played::start("evm-scenario", &[]);
    // Beside the writing process.
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    cairn.logged("caught up");

    let heights = dir.path().join("heights");
    let to = heights.to_str().unwrap();
    let message = printed(&["db", "export", "--form", "heights", "--to", to, "--data", at]);
    assert!(message.starts_with("exported 226 lines in 1 files"), "{message}");
    check_heights(&heights, &url);

    let tables = dir.path().join("tables");
    printed(&["db", "export", "--to", tables.to_str().unwrap(), "--data", at]);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    check_tables(&tables, &data);

    let some = dir.path().join("some");
    let to = some.to_str().unwrap();
    printed(&["db", "export", "--table", "tx", "--table", "count", "--to", to, "--data", at]);
    let files: Vec<_> = std::fs::read_dir(&some).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 3, "{files:?}");
    let (code, message) = refused(&["db", "export", "--to", to, "--data", at]);
    assert!(code == 1 && message.contains("is not empty"), "{message}");
    let (code, message) = refused(&["db", "export", "--table", "txs", "--to", to, "--data", at]);
    assert!(
        code == 1 && message.contains("there is no table `txs`; the tables are count, rank"),
        "{message}"
    );
}

/// The heights of the recording, with the transactions of the API.
fn check_heights(directory: &Path, url: &str) {
    let exported = lines(&directory.join("blocks.ndjson.zst"));
    let recorded = lines(&repository("testing/recordings/evm-scenario/blocks.ndjson.zst"));
    let numbers = |lines: &[Value]| lines.iter().map(|line| line["height"].clone()).collect::<Vec<_>>();
    assert_eq!(numbers(&exported), numbers(&recorded));
    let count =
        |list: &str| -> usize { exported.iter().map(|line| line[list].as_array().unwrap().len()).sum() };
    assert_eq!((count("txs"), count("evm_txs"), count("internal_txs")), (655, 642, 2928));
    for line in exported.iter().step_by(25) {
        let height = &line["height"];
        let (_, shown) = get(&format!(
            "{url}/indexer/tx/v1/txs/by_height/{height}?pagination.limit=100&pagination.reverse=false"
        ));
        assert_eq!(line["txs"], shown["txs"], "height {height}");
        let (_, block) = get(&format!("{url}/indexer/block/v1/blocks/{height}"));
        assert_eq!(line["block"]["hash"], block["block"]["hash"], "{block}");
    }
    let summary = summary(directory);
    assert_eq!((&summary["last_height"], &summary["chain_id"]), (&LAST.into(), &"e2e-evm-1".into()));
    assert_eq!(summary["replayable"], false);
}

/// A file for each table, with a line for each row.
fn check_tables(directory: &Path, data: &Path) {
    let store = RocksStore::open(data, schema::TABLES, RocksOptions::default()).unwrap();
    let snapshot = store.snapshot().unwrap();
    let summary = summary(directory);
    assert_eq!(summary["files"].as_array().unwrap().len(), schema::TABLES.len());
    for spec in schema::TABLES {
        let rows = snapshot.scan(spec, Bounds::all(), Order::Asc, usize::MAX).unwrap();
        let lines = lines(&directory.join(format!("{}.ndjson.zst", spec.name)));
        assert_eq!(lines.len(), rows.len(), "rows of {}", spec.name);
        for line in &lines {
            assert!(line["key"].is_array() && line.as_object().unwrap().len() == 2, "{}: {line}", spec.name);
        }
    }
    let of = |table: &str| lines(&directory.join(format!("{table}.ndjson.zst")));
    let first = &of("tx")[0];
    assert_eq!(first["key"], serde_json::json!([1]));
    // A row has the records of a chunk.
    assert!(first["value"][0]["txhash"].is_string(), "{first}");
    let txs: usize = of("tx").iter().map(|line| line["value"].as_array().unwrap().len()).sum();
    assert_eq!(txs, 655);
    // Owner, role and first ordinal, and the entries.
    let row = &of("account_tx")[0];
    assert_eq!(row["key"].as_array().unwrap().len(), 3, "{row}");
    assert!(row["value"][0].is_u64() && row["key"][1] == "involved", "{row}");
    assert_eq!(of("block")[4]["value"]["json"]["height"], "5");
    let frames: usize = of("internal_tx").iter().map(|line| line["value"].as_array().unwrap().len()).sum();
    assert_eq!(frames, 2928);
}

#[test]
fn holders_after_a_block_are_lines_however_many_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();
    let played = Played::start("evm-scenario", &[]);
    let mut cairn = Cairn::start(&[&played.flags("run", &data)[..], &["--index", "ledger"]].concat());
    let url = cairn.url();
    cairn.logged("caught up");
    let export = |to: &Path, more: &[&str]| {
        let own = ["db", "export", "--form", "holders", "--to", to.to_str().unwrap(), "--data", at];
        [&own, more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    for height in [100, LAST] {
        let to = dir.path().join(height.to_string());
        let height_text = height.to_string();
        let args = export(&to, &["--token", "GAS", "--height", &height_text]);
        printed(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let exported = lines(&to.join("holders.ndjson.zst"));
        let (_, page) = get(&format!(
            "{url}/indexer/ledger/v1/holders/GAS?height={height}&order_by=account&pagination.limit=1000"
        ));
        let pair = |it: &Value| (it["account"].to_string(), it["amount"].to_string());
        let sorted = |list: &[Value]| list.iter().map(pair).collect::<std::collections::BTreeMap<_, _>>();
        let listed = page["holders"].as_array().unwrap();
        assert!(listed.len() > 5, "{page}");
        assert_eq!(exported.len(), listed.len());
        assert_eq!(sorted(&exported), sorted(listed), "{height}");
        assert!(exported.iter().all(|line| line["exact"] == true));
    }
    let to = dir.path().join("refused");
    for (more, code, words) in [
        (&["--token", "nothing"][..], 1, "no token with balances is named `nothing`"),
        (
            &["--token", "GAS", "--height", "227"],
            1,
            "height 227 is not indexed: the ledger has blocks 1 to 226",
        ),
        (&[], 2, "--token"),
    ] {
        let args = export(&to, more);
        let (refused_with, message) = refused(&args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(refused_with == code && message.contains(words), "{refused_with} {message}");
        assert!(!to.exists(), "nothing is written");
    }
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}
