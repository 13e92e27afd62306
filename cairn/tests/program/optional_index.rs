//! An optional index through the program: off, built without a node, served, written with new blocks, removed.

use std::time::Duration;

use serde_json::Value;

use crate::support::{Cairn, Played, digest, get, printed, refused, until};

/// A contract of `evm-scenario` that others call.
fn called(url: &str) -> String {
    let (_, page) = get(&format!("{url}/indexer/tx/v1/evm-txs?pagination.limit=100"));
    let txs = page["txs"].as_array().unwrap();
    let to = txs.iter().filter_map(|tx| tx["to"].as_str()).find(|to| to.len() == 42);
    to.unwrap().to_owned()
}

#[test]
fn an_optional_index_is_built_without_a_node_served_continued_and_removed() {
    let played = Played::start("evm-scenario", &["--up-to", "200"]);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();
    cairn.logged("caught up");
    let account = called(&url);
    let list = format!("/indexer/tx/v1/evm-txs/by_account/{account}?is_recipient=true");
    let (code, error) = get(&format!("{url}{list}"));
    assert!(
        code == 404 && error["message"].as_str().unwrap().contains("set `index = [\"parties\"]`"),
        "{error}"
    );
    let names = |status: &Value| -> Vec<String> {
        let indexes = status["indexes"].as_array().unwrap().iter();
        indexes.map(|index| index["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&get(&format!("{url}/status")).1), ["packets", "bridge"]);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    let without = digest(&data);

    let (code, message) = refused(&["db", "build-index", "nobody", "--data", at]);
    assert!(
        code == 2 && message.contains("`nobody` is not an optional index, allowed: parties"),
        "{message}"
    );
    let built = "index parties: complete up to height 200\n";
    assert_eq!(printed(&["db", "build-index", "parties", "--data", at]), built);
    assert!(printed(&["db", "info", "--data", at]).contains("index parties heights 1 to 200"));
    assert!(printed(&["db", "verify", "--offline", "--data", at]).contains("optional indexes 3"));
    assert_ne!(digest(&data), without);

    drop(played);
    let played = Played::start("evm-scenario", &[]);
    let mut cairn = Cairn::start(&[&played.flags("run", &data)[..], &["--index", "parties"]].concat());
    let url = cairn.url();
    let indexes = until("the index", || {
        let (_, status) = get(&format!("{url}/status"));
        (status["indexes"][0]["height"] == 226).then(|| status["indexes"].clone())
    });
    assert_eq!(indexes[0], serde_json::json!({ "name": "parties", "from": 1, "height": 226 }));
    // It is no longer named, so it stays as it is.
    assert_eq!(indexes[1]["height"], 200);
    let (code, page) = get(&format!("{url}{list}&pagination.limit=1000"));
    assert_eq!(code, 200);
    let (_, all) = get(&format!("{url}/indexer/tx/v1/evm-txs?pagination.limit=1000"));
    let is_received = |tx: &&Value| {
        let (to, created) = (&tx["to"], &tx["contractAddress"]);
        let recipient = if to == "" { created } else { to };
        *recipient == *account && tx["from"] != *recipient
    };
    let expected: Vec<&Value> = all["txs"].as_array().unwrap().iter().filter(is_received).collect();
    assert!(!expected.is_empty());
    assert_eq!(page["txs"].as_array().unwrap().iter().collect::<Vec<_>>(), expected);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));

    let with = digest(&data);
    assert_eq!(
        printed(&["db", "drop-index", "parties", "--data", at]),
        "index parties: removed, it had heights 1 to 226\n"
    );
    assert_eq!(printed(&["db", "drop-index", "parties", "--data", at]), "index parties: not stored\n");
    assert!(printed(&["db", "verify", "--offline", "--data", at]).contains("sound"));
    assert_eq!(
        printed(&["db", "build-index", "parties", "--data", at]),
        "index parties: complete up to height 226\n"
    );
    assert_eq!(digest(&data), with);
}

/// Indexes that follow from stored records.
const OF_RECORDS: [&str; 5] = ["contracts", "ledger", "logs", "packets", "parties"];

#[test]
fn indexes_that_are_killed_while_they_are_built_without_a_node_end_as_those_written_with_the_blocks() {
    const LAST: u64 = 260;
    let dir = tempfile::tempdir().unwrap();
    let (data, calm) = (dir.path().join("data"), dir.path().join("calm"));
    let mut played = Played::start("evm-load", &["--up-to", &LAST.to_string()]);
    let names = OF_RECORDS.join(",");
    for (data, names) in [(&calm, names.as_str()), (&data, "none")] {
        let mut cairn = Cairn::start(&[&played.flags("ingest", data)[..], &["--index", names]].concat());
        cairn.logged("caught up");
        cairn.signal("TERM");
        assert_eq!(cairn.ended().0, Some(0));
    }
    played.end();

    let flags = [&played.flags("run", &data)[..], &["--index", &names]].concat();
    let (mut moment, mut unfinished) = (Duration::ZERO, 0);
    loop {
        assert!(moment < Duration::from_mins(1), "the indexes are not built in {moment:?}");
        let mut cairn = Cairn::start(&flags);
        let url = cairn.url();
        // Not a wait for a condition: the moment is the test's input.
        std::thread::sleep(moment);
        moment += (moment / 8).max(Duration::from_millis(2));
        let (code, page) = get(&format!("{url}/indexer/tx/v1/txs?pagination.limit=3"));
        assert_eq!((code, page["txs"].as_array().unwrap().len()), (200, 3));
        let (_, status) = get(&format!("{url}/status"));
        cairn.kill();
        let indexes = status["indexes"].as_array().unwrap();
        if indexes.len() == OF_RECORDS.len() && indexes.iter().all(|index| index["height"] == LAST) {
            break;
        }
        unfinished += 1;
    }
    assert!(unfinished > 2, "killed {unfinished} times before the end");
    assert_eq!(digest(&data), digest(&calm));
}
