//! The search for transactions, against what the recorded nodes found, and against a scan of all records.

use std::sync::Arc;

use ingest::Config;
use proptest::prelude::*;
use query::Indexer;
use replay::{Options, Recording};
use schema::payload::Codec;
use schema::search::{self, SEARCH};
use schema::tx::Txs;
use serde_json::Value;
use store::{MemStore, Store};
use testkit::oracle::extra_lines;
use testkit::{indexed, recording};
use web::app::App;

use super::node_search::{NODES, get, recorded};

static SEARCH_NOW: schema::index::Index = SEARCH;

const PATH: &str = "/cosmos/tx/v1beta1/txs";

pub(crate) async fn store(name: &str) -> Arc<dyn Store> {
    let recording = Arc::new(Recording::open(&recording(name)).unwrap());
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config {
        indexes: vec![&SEARCH_NOW],
        internal_txs: false,
        rich_list: false,
        ..indexed::config(&recording).unwrap()
    };
    indexed::index_as(config, recording, Options::default(), Arc::clone(&store)).await.unwrap();
    store
}

fn app(store: &Arc<dyn Store>) -> App<Indexer> {
    App::new(indexed::indexer(Arc::clone(store)).unwrap(), query::WITH_NODE_PATHS).unwrap()
}

/// The path of a search.
fn path(query: &str, parameters: &str) -> String {
    let escaped: Vec<String> = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escaped = escaped.concat();
    format!("{PATH}?query={escaped}{parameters}")
}

/// The hashes and the total of a search; the message of its error.
fn found(app: &App<Indexer>, query: &str, parameters: &str) -> Result<(Vec<String>, u64), String> {
    let (status, body) = get(app, &path(query, parameters));
    let body: Value = serde_json::from_str(&body).unwrap();
    if status != 200 {
        return Err(body["message"].as_str().unwrap().to_owned());
    }
    let responses = body["tx_responses"].as_array().unwrap();
    assert_eq!(responses.len(), body["txs"].as_array().unwrap().len());
    Ok((hashes(responses, "txhash"), total(&body["total"])))
}

fn hashes(txs: &[Value], member: &str) -> Vec<String> {
    txs.iter().map(|tx| tx[member].as_str().unwrap().to_owned()).collect()
}

fn total(number: &Value) -> u64 {
    number.as_str().unwrap().parse().unwrap()
}

/// Whether an error is that of a search that the index does not answer.
fn is_refused(error: &str) -> bool {
    error.contains("this search is not answered by the index, because ") && error.contains(": ")
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_are_those_of_the_recorded_node_or_refused_with_the_remedy() {
    let (mut equal, mut refused) = (0, 0);
    for (node, chain, ..) in NODES {
        let app = app(&store(chain).await);
        for line in recorded(node, "/cosmos/tx/v1beta1/txs") {
            if line.path.contains("/txs/") {
                continue;
            }
            // The other nodes had some more blocks than the recordings.
            if node != "evm" && line.path.contains("%3E") && !line.path.contains("%3C") {
                continue;
            }
            let (status, body) = get(&app, &line.path);
            if is_refused(&body) {
                assert_eq!(status, 400, "{}: {body}", line.path);
                refused += 1;
                continue;
            }
            assert_eq!((status, body.as_str()), (line.status, line.answer.get()), "{node} {}", line.path);
            equal += 1;
        }
    }
    assert_eq!((equal, refused), (320, 152));
}

/// A recorded search: what was searched for, and the hashes and the total that the node found.
struct Search {
    query: String,
    found: (Vec<String>, u64),
    heights: Vec<u64>,
}

/// The searches that were recorded with a chain.
fn searches(chain: &str) -> Vec<Search> {
    let mut searches = Vec::new();
    for mark in ["/tx_search?", "/v1beta1/txs?"] {
        for line in extra_lines(chain, mark).unwrap() {
            let (_, query) = line["path"].as_str().unwrap().split_once("query=").unwrap();
            let query = decoded(query.split('&').next().unwrap());
            let query = query.trim_matches('"').to_owned();
            let (txs, member, count) = match &line["answer"]["txs"] {
                Value::Array(txs) if line["answer"].get("tx_responses").is_none() => {
                    (txs.as_slice(), "hash", &line["answer"]["total_count"])
                }
                _ => (
                    line["answer"]["tx_responses"].as_array().unwrap().as_slice(),
                    "txhash",
                    &line["answer"]["total"],
                ),
            };
            let heights = txs.iter().map(|tx| total(&tx["height"])).collect();
            searches.push(Search { query, found: (hashes(txs, member), total(count)), heights });
        }
    }
    searches
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex = |rest: &mut std::str::Bytes<'_>| [rest.next().unwrap(), rest.next().unwrap()];
        bytes.push(match byte {
            b'%' => u8::from_str_radix(std::str::from_utf8(&hex(&mut rest)).unwrap(), 16).unwrap(),
            b'+' => b' ',
            byte => byte,
        });
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_search_that_was_recorded_with_a_chain_finds_the_same() {
    let (mut equal, mut bounded) = (0, 0);
    for chain in
        ["l1-l2/l1", "l1-l2/l2", "l1-l2-swaps/l1", "l1-l2-swaps/l2", "bridge-cases/l1", "bridge-cases/l2"]
    {
        let store = store(chain).await;
        let app = app(&store);
        let first = schema::meta::read::<schema::meta::Identity>(&*store.snapshot().unwrap()).unwrap();
        let first = first.unwrap().start_height;
        for Search { query, found: expected, heights } in searches(chain) {
            let ours = found(&app, &query, "&limit=30");
            if first <= 1 {
                assert_eq!(ours.as_ref(), Ok(&expected), "{chain} {query}");
                equal += 1;
                continue;
            }
            // The node has blocks that the recording lacks, so that the search must name the first height.
            let error = ours.unwrap_err();
            assert!(error.contains(&format!("add tx.height >= {first}")), "{chain} {query}: {error}");
            let ours = found(&app, &format!("{query} AND tx.height >= {first}"), "&limit=30").unwrap();
            let before = heights.iter().filter(|height| **height < first).count();
            let (hashes, count) = expected;
            assert_eq!(ours, (hashes[before..].to_vec(), count - before as u64), "{chain} {query}");
            bounded += 1;
        }
    }
    assert_eq!((equal, bounded), (1_162, 650));
}

/// The attributes of an event, as `type.key` and value.
type Attributes = Vec<(String, String)>;

/// The height, the hash and the events of each transaction.
struct Scan(Vec<(u64, String, Vec<Attributes>)>);

impl Scan {
    fn of(store: &dyn Store) -> Self {
        let snapshot = store.snapshot().unwrap();
        let codec = Codec::load(&*snapshot).unwrap();
        let last = schema::meta::read::<schema::meta::BlockLane>(&*snapshot).unwrap().unwrap().txs;
        let (seqs, mut all): (Vec<u64>, _) = ((1..=last).collect(), Vec::new());
        schema::records::each::<Txs>(&*snapshot, &codec, &seqs, |record| {
            let json: Value = serde_json::from_slice(record).unwrap();
            let height = json["height"].as_str().unwrap().parse().unwrap();
            let hash = json["txhash"].as_str().unwrap().to_owned();
            let events = search::events(record).unwrap();
            let events = events.iter().map(|event| {
                let attributes = event.attributes.iter();
                attributes
                    .map(|attribute| {
                        (format!("{}.{}", &*event.kind, &*attribute.key), attribute.value.to_string())
                    })
                    .collect()
            });
            all.push((height, hash, events.collect()));
        })
        .unwrap();
        Self(all)
    }

    fn matching(&self, conditions: &[(String, String)], heights: (u64, u64)) -> Vec<String> {
        let within = self.0.iter().filter(|(height, ..)| (heights.0..=heights.1).contains(height));
        let has = |events: &Vec<Attributes>| {
            events.iter().any(|event| conditions.iter().all(|condition| event.contains(condition)))
        };
        within.filter(|(_, _, events)| has(events)).map(|(_, hash, _)| hash.clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_search_finds_what_a_scan_of_the_records_finds() {
    let store = store("bridge-cases/l2").await;
    let (app, scan) = (app(&store), Scan::of(&*store));
    let events: Vec<&Attributes> = scan.0.iter().flat_map(|(_, _, events)| events).collect();
    let strategy = (
        any::<prop::sample::Index>(),
        prop::collection::vec(any::<prop::sample::Index>(), 1..3),
        1_u64..600,
        1_u64..600,
        any::<bool>(),
    );
    let mut runner = proptest::test_runner::TestRunner::default();
    runner
        .run(&strategy, |(event, attributes, from, to, ranged)| {
            let event = event.get(&events);
            let conditions: Vec<(String, String)> =
                attributes.iter().map(|attribute| attribute.get(event).clone()).collect();
            prop_assume!(conditions.iter().all(|(tag, value)| {
                !value.contains('\'')
                    && value.len() < 200
                    && tag != "tx.height"
                    && tag.is_ascii()
                    && !tag.contains('/')
            }));
            let heights = if ranged { (from.min(to), from.max(to)) } else { (0, 1_000) };
            let mut query: Vec<String> =
                conditions.iter().map(|(tag, value)| format!("{tag}='{value}'")).collect();
            if ranged {
                query.push(format!("tx.height>={} AND tx.height <= {}", heights.0, heights.1));
            }
            let query = query.join(" AND ");
            prop_assume!(query.len() <= 512);
            let mut expected = scan.matching(&conditions, heights);
            let total = expected.len() as u64;
            for descending in [false, true] {
                let order = if descending { "&order_by=ORDER_BY_DESC" } else { "" };
                match found(&app, &query, order) {
                    Ok((hashes, counted)) => {
                        prop_assert_eq!(counted, total, "{}", &query);
                        prop_assert_eq!(&hashes[..], &expected[..expected.len().min(100)], "{}", &query);
                    }
                    Err(error) => prop_assert!(is_refused(&error), "{}: {}", query, error),
                }
                expected.reverse();
            }
            Ok(())
        })
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_equality_takes_no_value_for_the_beginning_of_another() {
    let lines = std::fs::read_to_string(recording("node-search").join("prefix-quirk.ndjson")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = |line: &'_ Value| line["query"].as_str().unwrap().trim_end_matches('\'').to_owned();
    let app = app(&store("bridge-cases/l2").await);
    let mut counts = [0; 2];
    for line in lines.iter().filter(|line| line["node"] == "evm") {
        let (_, ours) = found(&app, line["query"].as_str().unwrap(), "").unwrap();
        let theirs = total(&line["total"]);
        // A node takes it for the beginning of the other one, too.
        let is_beginning = lines.iter().any(|other| text(other).starts_with(&format!("{}/", text(line))));
        assert!(if is_beginning { ours < theirs } else { ours == theirs }, "{line} {ours}");
        counts[usize::from(is_beginning)] += 1;
    }
    assert_eq!(counts, [28, 14]);
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_numbers_find_what_the_recorded_nodes_found() {
    let mut compared = 0;
    for (node, chain, from, _) in NODES {
        let app = app(&store(chain).await);
        for line in recorded(node, "/cosmos/tx/v1beta1/txs?query=") {
            let (_, query) = line.path.split_once("query=").unwrap();
            let query = decoded(query.split('&').next().unwrap());
            if line.status != 200 || query.contains("tx.height") || !query.contains(['<', '>']) {
                continue;
            }
            let theirs: Value = serde_json::from_str(line.answer.get()).unwrap();
            let first = &theirs["tx_responses"][0]["height"];
            if query.contains("TIME")
                || first.as_str().is_some_and(|first| first.parse::<u64>().unwrap() < from)
            {
                continue;
            }
            let ours = found(&app, &format!("{query} AND tx.height >= {from}"), "&limit=3").unwrap();
            let hashes = hashes(theirs["tx_responses"].as_array().unwrap(), "txhash");
            assert_eq!(ours, (hashes, total(&theirs["total"])), "{node} {query}");
            compared += 1;
        }
    }
    assert_eq!(compared, 11);
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_of_numbers_find_what_a_scan_of_the_records_finds() {
    let store = store("bridge-cases/l2").await;
    let (app, scan) = (app(&store), Scan::of(&*store));
    let mut some = 0;
    for tag in
        ["initiate_token_withdrawal.l2_sequence", "tx.fee", "gas_refund.gas", "send_packet.packet_sequence"]
    {
        for lower in [0_u128, 1, 7, 16, 100_000] {
            let upper = lower * 2 + 5;
            let is_within = |(other, value): &(String, String)| {
                other == tag && value.parse().is_ok_and(|number: u128| (lower..upper).contains(&number))
            };
            let txs = scan.0.iter().filter(|(_, _, events)| events.iter().flatten().any(is_within));
            let expected: Vec<String> = txs.map(|(_, hash, _)| hash.clone()).collect();
            some += usize::from(!expected.is_empty());
            for bounds in [
                format!("{tag} >= {lower} AND {tag} < {upper}"),
                format!("{tag} < {upper}.0 AND {tag} >= {lower}."),
                format!("{tag} <= {}.5 AND {tag} >= 00{lower}", upper - 1),
            ] {
                let count = expected.len() as u64;
                assert_eq!(found(&app, &bounds, "").unwrap(), (expected.clone(), count), "{bounds}");
            }
        }
    }
    assert!(some >= 6, "{some}");
    for (query, reason) in [
        ("a.b > 1 AND a.b > 2", "nodes do not combine its bounds of a.b"),
        ("a.b > 1.00000000000000000000000000000000000001", "has too many digits"),
    ] {
        let error = found(&app, query, "").unwrap_err();
        assert!(is_refused(&error) && error.contains(reason), "{error}");
    }
}

/// The attributes of the last event of this type.
fn last_event(scan: &Scan, kind: &str) -> Attributes {
    let prefix = format!("{kind}.");
    let events = scan.0.iter().flat_map(|(_, _, events)| events);
    let mut of_kind = events.filter(|event| event.iter().any(|(tag, _)| tag.starts_with(&prefix)));
    of_kind.next_back().unwrap().clone()
}

/// The conditions that these attributes have the values of an event.
fn conditions(event: &[(String, String)], kind: &str, keys: &[&str]) -> Vec<String> {
    let condition = |key: &&str| {
        let tag = format!("{kind}.{key}");
        let (_, value) = event.iter().find(|(other, _)| *other == tag).unwrap();
        format!("{tag}='{value}'")
    };
    keys.iter().map(condition).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queries_of_published_relayers_and_libraries_are_answered() {
    let store = store("bridge-cases/l2").await;
    let (app, scan) = (app(&store), Scan::of(&*store));
    let total = |query: &str, parameters| found(&app, query, parameters).unwrap().1;

    // Hermes: packets, and client updates by their height.
    let sent = last_event(&scan, "send_packet");
    let keys =
        ["packet_src_channel", "packet_src_port", "packet_dst_channel", "packet_dst_port", "packet_sequence"];
    let hermes = conditions(&sent, "send_packet", &keys);
    assert_eq!(total(&hermes.join(" AND "), "&page=1&limit=10&order_by=ORDER_BY_DESC"), 1);
    let update = last_event(&scan, "update_client");
    let update = conditions(&update, "update_client", &["client_id", "consensus_height"]);
    assert!(total(&update.join(" AND "), "&limit=10&order_by=ORDER_BY_DESC") >= 1);
    // The Go relayer: the channel and the sequence, for packets and acknowledgements.
    assert_eq!(total(&format!("{} AND {}", hermes[0], hermes[4]), "&limit=1000"), 1);
    let ack = last_event(&scan, "write_acknowledgement");
    let ack = conditions(&ack, "write_acknowledgement", &["packet_dst_channel", "packet_sequence"]);
    assert_eq!(total(&ack.join(" AND "), "&limit=1000"), 1);

    let sender = "init1uzctf3mp2d0ke6fjej72cy4z2frs345tgs5dcq";
    let hash = &scan.0[20].1;
    for query in [
        // initia.js 1: `tx.search` with heights, and `searchEvents`.
        format!("message.sender = '{sender}' AND tx.height >= 5"),
        "tx.height >= 500 AND tx.height <= 586 AND message.action CONTAINS 'MsgSend'".to_owned(),
        // initia.js 2.
        format!("transfer.sender='{sender}'"),
        // Bots of the bridge: numbers without quotes.
        "initiate_token_withdrawal.l2_sequence = 8".to_owned(),
        // Wallets.
        format!("message.sender='{sender}'"),
        format!("transfer.recipient='{sender}'"),
        "message.action='/cosmos.bank.v1beta1.MsgSend'".to_owned(),
        format!("tx.hash='{hash}'"),
    ] {
        assert!(total(&query, "&order_by=ORDER_BY_DESC") > 0, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_without_its_index_says_which_one_is_missing() {
    let app = app(&super::packets::store("bridge-cases/l2").await);
    let error = found(&app, "message.module='bank'", "").unwrap_err();
    assert!(error.contains(r#"set `index = ["search"]`"#), "{error}");
    // Few transactions are tested one by one.
    assert_eq!(found(&app, "message.module CONTAINS 'bank'", "").unwrap().1, 7);
}
