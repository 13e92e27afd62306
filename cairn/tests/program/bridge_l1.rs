//! A rollup that asks an index of its layer one about its bridge, instead of the layer one's node.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Cairn, Played, get, get_text, repository, until};

/// The lists of the rollup's bridge.
const PAGES: [&str; 5] = [
    "/indexer/bridge/v1/info",
    "/indexer/bridge/v1/withdrawals?pagination.limit=1000",
    "/indexer/bridge/v1/deposits?pagination.limit=1000",
    "/indexer/bridge/v1/outputs?pagination.limit=1000",
    "/indexer/bridge/v1/coverage/60",
];

/// An index of `played`, and its address once it has caught up.
fn index(played: &Played, data: &Path, more: &[&str]) -> (Cairn, String) {
    let mut cairn = Cairn::start(&[&played.flags("run", data)[..], more].concat());
    let url = cairn.url();
    cairn.logged("caught up");
    (cairn, url)
}

/// The pages of a rollup's bridge once it has `claims` claimed withdrawals with their transactions, and the last of its `outputs` is compared.
fn pages(url: &str, claims: &Value, outputs: &Value) -> Vec<(String, Value)> {
    until("all that the layer one says", || {
        let (_, withdrawals) = get(&format!("{url}{}", PAGES[1]));
        let claimed = withdrawals["withdrawals"].as_array()?.iter();
        let claimed =
            claimed.filter(|one| one["state"] == "claimed" && one["claimed_tx"].is_string()).count();
        let (_, all) = get(&format!("{url}{}", PAGES[3]));
        let listed = all["outputs"].as_array()?;
        // Outputs are compared in order. Before the first one of a recording there is none to which its withdrawals could be compared.
        let last = listed.iter().find(|output| output["output_index"] == *outputs)?;
        (json!(claimed) == *claims && last["verified"] == true).then_some(())
    });
    let (_, withdrawals) = get(&format!("{url}{}", PAGES[1]));
    let sequences = withdrawals["withdrawals"].as_array().unwrap().iter().map(|one| one["sequence"].clone());
    let records = sequences.map(|sequence| format!("/indexer/bridge/v1/withdrawal/{sequence}"));
    let paths: Vec<String> = PAGES.into_iter().map(str::to_owned).chain(records).collect();
    paths.into_iter().map(|path| (path.clone(), get(&format!("{url}{path}")).1)).collect()
}

/// The numbers of claims and of live outputs of bridge 1 on the layer one whose index is at `url`.
fn numbers(url: &str) -> (Value, Value) {
    let (_, claims) = get(&format!("{url}/indexer/bridge/v1/claims?bridge_id=1&pagination.limit=1000"));
    let (_, bridges) = get(&format!("{url}/indexer/bridge/v1/bridges"));
    (json!(claims["claims"].as_array().unwrap().len()), bridges["bridges"][0]["last_output"].clone())
}

#[test]
fn an_index_of_the_layer_one_says_of_a_bridge_what_its_node_says() {
    let (l1, l2) = (Played::start("l1-l2-swaps/l1", &[]), Played::start("l1-l2-swaps/l2", &[]));
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (_l1_index, l1_url) = index(&l1, &at("l1"), &["--index", "bridge,search"]);
    let (claims, outputs) = numbers(&l1_url);
    let (_a, by_index) = index(&l2, &at("a"), &["--bridge-l1", &l1_url, "--bridge-poll", "1s"]);
    let (_b, by_node) = index(&l2, &at("b"), &["--bridge-l1", l1.services()[3], "--bridge-poll", "1s"]);
    let (found, expected) = (pages(&by_index, &claims, &outputs), pages(&by_node, &claims, &outputs));
    assert!(claims.as_u64() > Some(2) && outputs.as_u64() > Some(40), "{claims} claims, {outputs} outputs");
    assert_eq!(found, expected);
    // The settings are the node's bytes.
    let path = "/opinit/ophost/v1/bridges/1";
    assert_eq!(get_text(&format!("{l1_url}{path}")), get_text(&format!("{}{path}", l1.services()[3])));
}

#[test]
fn of_what_is_older_than_the_index_of_the_layer_one_its_node_is_asked() {
    let played =
        |name: &str| Played::of(name, &repository("testing/recordings/bridge-cases").join(name), &[]);
    let (l1, l2) = (played("l1"), played("l2"));
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let (_l1_index, l1_url) = index(&l1, &at("l1"), &["--index", "bridge,search"]);
    let (claims, outputs) = numbers(&l1_url);
    let node = l1.services()[3];
    // Operators that no indexed event names are those of the node's reply.
    let (_, settings) = get(&format!("{node}/opinit/ophost/v1/bridges/1"));
    let config = &settings["bridge_config"];
    let bridge = until("the operators", || {
        let (_, bridges) = get(&format!("{l1_url}/indexer/bridge/v1/bridges"));
        (bridges["bridges"][0]["proposer"] != "").then(|| bridges["bridges"][0].clone())
    });
    let batch = &config["batch_info"];
    assert_eq!(bridge["proposer"], config["proposer"]);
    assert_eq!(bridge["challenger"], config["challenger"]);
    assert_eq!([&bridge["submitter"], &bridge["batch_chain"]], [&batch["submitter"], &batch["chain_type"]]);
    let (code, batches) = get(&format!("{l1_url}/indexer/bridge/v1/batches?bridge_id=1"));
    assert!(code == 200 && batches["txs"].as_array().unwrap().len() > 1, "{batches}");
    for (path, status) in [("outputs/1", 501), ("outputs/60", 200), ("outputs?pagination.limit=1", 501)] {
        let (code, body) = get_text(&format!("{l1_url}/opinit/ophost/v1/bridges/1/{path}"));
        assert_eq!(code, status, "{path}: {body}");
    }
    let both = format!("{l1_url},{node}");
    let (_a, by_both) = index(&l2, &at("a"), &["--bridge-l1", &both, "--bridge-poll", "1s"]);
    let (_b, by_node) = index(&l2, &at("b"), &["--bridge-l1", node, "--bridge-poll", "1s"]);
    assert_eq!(pages(&by_both, &claims, &outputs), pages(&by_node, &claims, &outputs));
    // Alone it is not enough.
    let only = ["--bridge-l1", &l1_url, "--bridge-poll", "1s", "--log", "debug"];
    let mut alone = Cairn::start(&[&l2.flags("run", &at("c"))[..], &only].concat());
    let line = alone.logged("no reply, asking again");
    assert!(line["error"].as_str().unwrap().contains("may be older than block 161"), "{line}");
}

#[test]
fn an_index_of_the_layer_one_that_is_behind_deletes_no_output() {
    let (mut l1, l2) = (Played::start("l1-l2-swaps/l1", &[]), Played::start("l1-l2-swaps/l2", &[]));
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let flags = |l1: &str| ["--bridge-l1", l1, "--bridge-poll", "1s", "--log", "debug"].map(str::to_owned);
    let start = |l1: &str| {
        let more = flags(l1);
        index(&l2, &at("l2"), &more.each_ref().map(String::as_str))
    };
    let (rollup, url) = start(l1.services()[3]);
    let before = until("all outputs, compared", || {
        let (_, page) = get(&format!("{url}{}", PAGES[3]));
        let last = page["outputs"].as_array()?.iter().find(|output| output["output_index"] == json!(43))?;
        // Outputs are compared after they are listed.
        (last["verified"] == true).then(|| page.clone())
    });
    rollup.signal("TERM");
    assert_eq!(rollup.ended().0, Some(0));
    l1.end();
    l1.begin(&["--up-to", "300"]);
    let (_l1_index, l1_url) = index(&l1, &at("l1"), &["--index", "bridge,search"]);
    // The index asks the node of bridge 1 once it has its event.
    until("the settings", || {
        (get_text(&format!("{l1_url}/opinit/ophost/v1/bridges/1")).0 == 200).then_some(())
    });
    let (mut rollup, url) = start(&l1_url);
    let line = rollup.logged("no reply, asking again");
    assert!(line["error"].as_str().unwrap().contains("it has not got that far"), "{line}");
    assert_eq!(get(&format!("{url}{}", PAGES[3])).1, before);
}
