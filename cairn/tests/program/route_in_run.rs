//! The routing service within `cairn run`: beside an index that starts, stops, has no node, or outlives its failures.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::route::{BRIDGED, DEPOSIT, Pair, ended};
use crate::support::{Cairn, Played, get, height, post, printed, refused, repository, until};
use serde_json::{Value, json};
use store::{Access, Batch, Bounds, Durability, Order, RocksOptions, RocksStore, Store as _, TableSpec};

/// An indexer of `played` with the database `index`, which also routes between the chains of `pair`.
fn both(pair: &Pair, played: &Played, index: &Path) -> Cairn {
    let routing =
        ["--route-registry", &pair.registry, "--route-data", &pair.data, "--route-listen", "127.0.0.1:0"];
    Cairn::start(&[&played.flags("run", index)[..], &routing].concat())
}

/// The address of the routing service, once it has started.
fn routing(cairn: &mut Cairn) -> String {
    cairn.logged("routing")["url"].as_str().unwrap().to_owned()
}

#[test]
fn an_indexer_serves_routes_if_configured() {
    let pair = Pair::start();
    let played = Played::start("evm-scenario", &[]);
    let index = pair.dir.path().join("index");
    let mut cairn = both(&pair, &played, &index);
    let routing = routing(&mut cairn);
    let url = cairn.url();
    assert_eq!(get(&format!("{routing}/v2/info/chains")).0, 200);
    assert_eq!(get(&format!("{url}/status")).0, 200);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    let (code, stderr_text) =
        refused(&[&played.flags("run", &index)[..], &["--route-registry", &pair.registry]].concat());
    assert!(code == 2 && stderr_text.contains("route.data"), "{code} {stderr_text}");
}

/// The sources of all recorded transfers: chain and hash.
fn sources() -> Vec<(String, String)> {
    let path = repository("testing/recordings/l1-l2/transfers.json");
    let tables: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let rows = |table: &str| tables[table].as_array().unwrap().clone();
    let source = |chain: &str, tx: &Value| (chain.to_owned(), tx["hash"].as_str().unwrap().to_owned());
    let mut all: Vec<_> =
        rows("packets").iter().map(|row| source(row["from"].as_str().unwrap(), &row["sent"])).collect();
    all.extend(rows("deposits").iter().map(|row| source("e2e-l1-1", &row["initiated"])));
    all.extend(rows("withdrawals").iter().map(|row| source("e2e-l2-1", &row["initiated"])));
    all.sort();
    all.dedup();
    all
}

/// The transfers of all recorded sources, once as many as were recorded have ended.
fn transfers(routing: &str) -> Vec<Value> {
    for (chain, hash) in sources() {
        let (code, body) =
            post(&format!("{routing}/v2/tx/track"), &json!({ "chain_id": chain, "tx_hash": hash }));
        assert_eq!(code, 200, "{body}");
    }
    until("the ends of the transfers", || {
        let status = |(chain, hash): (String, String)| {
            get(&format!("{routing}/v2/tx/status?chain_id={chain}&tx_hash={hash}")).1
        };
        let statuses = sources().into_iter().map(status);
        let all: Vec<Value> =
            statuses.flat_map(|status| status["transfers"].as_array().unwrap().clone()).collect();
        let has_ended =
            |transfer: &&Value| transfer["state"].as_str().unwrap().starts_with("STATE_COMPLETED");
        (all.len() == 73 && all.iter().filter(has_ended).count() == 61).then_some(all)
    })
}

#[test]
fn transfers_of_the_indexed_chain_end_alike_with_the_index_of_its_node_off() {
    // The executor of the registry does not run.
    let [without, with] = [&["--fault", "no-index"][..], &[]].map(|options| {
        let pair = Pair::with(options);
        let index = pair.dir.path().join("index");
        let flags = ["--route-registry", &pair.registry, "--route-data", &pair.data];
        let more = ["--route-listen", "127.0.0.1:0", "--route-track-rate", "1000/s:1000"];
        let mut cairn = Cairn::start(&[&pair.l2.flags("run", &index)[..], &flags, &more].concat());
        let routing = routing(&mut cairn);
        cairn.logged("caught up");
        transfers(&routing)
    });
    assert_eq!(without, with);
}

/// The balances of a portfolio's list, by denom.
fn by_denom(list: &Value) -> BTreeMap<String, String> {
    let pair = |it: &Value| (it["denom"].to_string(), it["amount"].to_string());
    list.as_array().unwrap_or_else(|| panic!("{list}")).iter().map(pair).collect()
}

#[test]
fn balances_of_the_indexed_chain_need_no_node_and_are_sent_again_after_movements() {
    const USER: &str = "init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
    let pair = Pair::start();
    let (router, url) = pair.route();
    let l2 = |url: &str| {
        let names = get(&format!("{url}/v1/supported-chains")).1;
        let names = names.as_array().unwrap().iter().map(|name| name.as_str().unwrap());
        let mut all = names.map(|name| get(&format!("{url}/v1/chain/{name}/{USER}/balances")));
        let (_, first) = (all.next().unwrap(), all.next().unwrap());
        first
    };
    let (code, expected) = l2(&url);
    assert_eq!(code, 200, "{expected}");
    let expected = by_denom(&expected);
    assert!(!expected.is_empty());
    router.kill();

    // In the registry no node of this chain answers.
    let chains = Path::new(&pair.registry).join("chains.toml");
    let text = std::fs::read_to_string(&chains).unwrap();
    let rest = pair.l2.services()[3];
    assert!(text.contains(rest));
    std::fs::write(&chains, text.replace(rest, "http://127.0.0.1:9")).unwrap();
    let (router, url) = pair.route();
    assert_eq!(l2(&url).0, 503);
    router.kill();

    // Before the first deposit to the user.
    let mut played = Played::start("l1-l2/l2", &["--up-to", "150"]);
    let index = pair.dir.path().join("index");
    let routing_flags =
        ["--route-registry", &pair.registry, "--route-data", &pair.data, "--route-listen", "127.0.0.1:0"];
    let flags = [&played.flags("run", &index)[..], &routing_flags, &["--index", "ledger"]].concat();
    let mut cairn = Cairn::start(&flags);
    let url = routing(&mut cairn);
    cairn.logged("caught up");
    let before = until("balances from the index", || Some(l2(&url)).filter(|(code, _)| *code == 200));
    assert_ne!(by_denom(&before.1), expected);

    let mut stream = TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "GET /v1/chain/all/{USER} HTTP/1.0\r\n\r\n").unwrap();
    let messages = BufReader::new(stream).lines().map_while(Result::ok).filter_map(|line| {
        let message: Value = serde_json::from_str(line.strip_prefix("data: ")?).unwrap();
        (message["chainId"] == "e2e-l2-1" && message["type"] == "balances").then_some(message)
    });
    let mut messages = messages.map(|message| by_denom(&message["balances"]));
    assert_eq!(messages.next().unwrap(), by_denom(&before.1));
    played.end();
    // The block of the user's last movement: behind the chain, an index would leave the answer to a node.
    played.begin(&["--up-to", "452"]);
    assert!(messages.any(|balances| balances == expected), "the stream ended");
    assert_eq!(by_denom(&l2(&url).1), expected);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn an_indexer_whose_node_is_down_routes_and_is_backed_up() {
    let pair = Pair::start();
    let (index, new) = (pair.dir.path().join("index"), pair.dir.path().join("new"));
    let mut played = Played::start("move-scenario", &[]);
    played.index(&index);
    played.end();
    let start = |data: &Path| {
        let mut cairn = both(&pair, &played, data);
        let routing = routing(&mut cairn);
        until("the control socket", || data.join("control.sock").exists().then_some(()));
        (cairn, routing)
    };
    let to = pair.dir.path().join("backups");
    let to = to.to_str().unwrap();
    let ask = json!({
        "amount_in": "5000000", "source_asset_chain_id": "e2e-l1-1", "source_asset_denom": "uinit",
        "dest_asset_chain_id": "e2e-l2-1", "dest_asset_denom": BRIDGED,
    });

    let (cairn, routing) = start(&index);
    let (code, route) = post(&format!("{routing}/v2/fungible/route"), &ask);
    assert_eq!((code, &route["amount_out"]), (200, &json!("5000000")), "{route}");
    assert!(
        printed(&["db", "backup", "--to", to, "--data", index.to_str().unwrap()])
            .starts_with("backup 1 of 20")
    );
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));

    // An empty database cannot be backed up.
    let (cairn, routing) = start(&new);
    assert_eq!(post(&format!("{routing}/v2/fungible/route"), &ask).0, 200);
    let (code, stderr_text) = refused(&["db", "backup", "--to", to, "--data", new.to_str().unwrap()]);
    assert!(
        code == 1 && stderr_text.contains("nothing is indexed before the node has answered"),
        "{stderr_text}"
    );
    assert_eq!(printed(&["db", "backup", "--list", "--to", to]).lines().count(), 1);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn a_request_for_a_route_that_has_begun_is_answered_when_an_indexer_stops() {
    let pair = Pair::start();
    let played = Played::start("evm-scenario", &[]);
    let index = pair.dir.path().join("index");
    let mut cairn = both(&pair, &played, &index);
    let routing = routing(&mut cairn);
    let url = cairn.url();
    cairn.logged("caught up");
    let body = r#"{"chain_ids":["e2e-l2-1"]}"#;
    let (first, rest) = body.split_at(7);
    let mut stream = TcpStream::connect(routing.strip_prefix("http://").unwrap()).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /v2/fungible/assets_from_source HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\nexpect: 100-continue\r\n\r\n"
    )
    .unwrap();
    let mut begun = [0; 25];
    stream.read_exact(&mut begun).unwrap();
    assert_eq!(&begun, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(first.as_bytes()).unwrap();

    cairn.signal("TERM");
    let indexer = url.strip_prefix("http://").unwrap();
    until("the index to be over", || TcpStream::connect(indexer).is_err().then_some(()));
    // Not a wait for a condition: the moment is the test's input, later than the process would end without the request.
    thread::sleep(Duration::from_millis(400));
    stream.write_all(rest.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 "), "{answer:?}");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn an_indexer_is_not_stopped_by_a_routing_service_that_fails_and_starts_it_again() {
    let pair = Pair::start();
    // It locks the database of tracked transfers.
    let (other, _) = pair.route();
    let played = Played::start("evm-scenario", &[]);
    let index = pair.dir.path().join("index");
    let mut cairn = both(&pair, &played, &index);
    let failed = cairn.logged_about("the routing service did not start");
    assert!(failed.contains("is in use"), "{failed}");
    let url = cairn.url();
    assert_eq!(get(&format!("{url}/status")).0, 200);
    other.kill();
    let routing = routing(&mut cairn);
    let id = json!({ "tx_hash": DEPOSIT, "chain_id": "e2e-l1-1" });
    assert_eq!(post(&format!("{routing}/v2/tx/track"), &id).0, 200);
    ended(&routing);
    assert_eq!(get(&format!("{url}/status")).0, 200);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

/// The tables of a database of tracked transfers.
const TRACKED: &[&TableSpec] = &[
    &TableSpec { name: "track_record", tag: 0x10, access: Access::Point },
    &TableSpec { name: "track_answer", tag: 0x11, access: Access::Point },
    &TableSpec { name: "track_due", tag: 0x12, access: Access::Scan },
    &TableSpec { name: "track_other", tag: 0x13, access: Access::Point },
    QUEUE,
    &TableSpec { name: "track_format", tag: 0x15, access: Access::Point },
];
const QUEUE: &TableSpec = &TableSpec { name: "track_queue", tag: 0x14, access: Access::Scan };

#[test]
fn an_indexer_starts_a_routing_service_again_that_fails_while_it_works() {
    let pair = Pair::start();
    let (cairn, url) = pair.route();
    let id = json!({ "tx_hash": format!("{:064x}", 1), "chain_id": "e2e-l1-1" });
    assert_eq!(post(&format!("{url}/v2/tx/track"), &id).0, 200);
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    // A key that does not decode, among the long-finished transfers: the worker reads it, the start does not.
    let store = RocksStore::open(Path::new(&pair.data), TRACKED, RocksOptions::default()).unwrap();
    let rows = store.snapshot().unwrap().scan(QUEUE, Bounds::all(), Order::Asc, 2).unwrap();
    assert_eq!(rows.len(), 1);
    let (mut key, ended) = (rows[0].0.clone(), 4);
    key.truncate(key.len() - (1 + 8 + 32));
    key.extend([&[ended][..], &[0; 8], &[0; 31]].concat());
    let mut batch = Batch::new();
    batch.put(QUEUE, key, Vec::new());
    store.commit(batch, Durability::Synced).unwrap();
    drop(store);

    let played = Played::start("evm-scenario", &[]);
    let index = pair.dir.path().join("index");
    let mut cairn = both(&pair, &played, &index);
    let first = cairn.logged("routing");
    let failed = cairn.logged("the routing service failed");
    assert!(failed["error"].as_str().unwrap().contains("track_queue"), "{failed}");
    let second = cairn.logged("routing");
    assert_eq!(second["url"], first["url"], "the same address");
    // With a longer backoff each time.
    assert_eq!(
        (&failed["pause"], &cairn.logged("the routing service failed")["pause"]),
        (&"1s".into(), &"2s".into())
    );
    until("the index to be complete", || (height(&index) == 226).then_some(()));
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}
