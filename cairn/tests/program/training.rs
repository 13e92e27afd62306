//! Training of dictionaries on a database.

use crate::support::{Cairn, Played, digest, get, printed, repository, until};

/// The recording, extended.
const NAME: &str = "evm-scenario, extended to 8000 transactions";

#[test]
fn records_after_a_training_are_readable_also_by_a_replica_from_before() {
    let recorded = repository("testing/recordings/evm-scenario");
    let played =
        |options: &[&str]| Played::of(NAME, &recorded, &[&["--synthesize", "8000"][..], options].concat());
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let at = data.to_str().unwrap();
    played(&["--up-to", "280"]).index(&data);
    let mut replica = Cairn::start(&["query", "--follow", at, "--listen", "127.0.0.1:0"]);
    let url = replica.url();
    let before = digest(&data);

    let seen = printed(&["db", "train-dictionary", "--dry-run", "--data", at]);
    let text = printed(&["db", "train-dictionary", "--data", at]);
    let (lines, end) = text.trim_end().rsplit_once('\n').unwrap();
    assert_eq!(seen.trim_end(), lines);
    assert!(end.starts_with("dictionaries added: 3;"), "{text}");
    for line in lines.lines() {
        let bytes: Vec<u64> = line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
        let [_records, json, stored, with_new] = bytes[..] else { panic!("{line}") };
        assert!(with_new * 100 < stored * 98 && stored < json, "{line}");
    }
    assert_eq!(digest(&data), before);

    played(&[]).index(&data);
    assert_eq!(
        printed(&["db", "verify", "--offline", "--data", at]).lines().last(),
        Some("sound: nothing is wrong")
    );
    for list in ["tx/v1/txs", "tx/v1/evm-txs", "tx/v1/evm-internal-txs"] {
        let target = format!("{url}/indexer/{list}?pagination.limit=1&pagination.reverse=true");
        until("the replica has the last record", || {
            let (status, answer) = get(&target);
            assert_eq!(status, 200, "{answer}");
            let height = get(&format!("{url}/status")).1["height"].as_u64();
            (height > Some(300)).then_some(())
        });
        assert_eq!(get(&target).0, 200);
    }
}
