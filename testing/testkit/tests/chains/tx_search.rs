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
use testkit::{indexed, recording};
use web::app::App;

use super::node_search::{get, recorded};

static SEARCH_NOW: schema::index::Index = SEARCH;

const PATH: &str = "/cosmos/tx/v1beta1/txs";

async fn store(name: &str) -> Arc<dyn Store> {
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
    let escaped: String = query.bytes().map(|byte| format!("%{byte:02X}")).collect();
    format!("{PATH}?query={escaped}{parameters}")
}

/// The hashes and the total of a search; the message of its error.
fn found(app: &App<Indexer>, query: &str, parameters: &str) -> Result<(Vec<String>, usize), String> {
    let (status, body) = get(app, &path(query, parameters));
    let body: Value = serde_json::from_str(&body).unwrap();
    if status != 200 {
        return Err(body["message"].as_str().unwrap().to_owned());
    }
    let responses = body["tx_responses"].as_array().unwrap();
    assert_eq!(responses.len(), body["txs"].as_array().unwrap().len());
    let hashes = responses.iter().map(|tx| tx["txhash"].as_str().unwrap().to_owned()).collect();
    Ok((hashes, body["total"].as_str().unwrap().parse().unwrap()))
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_are_those_of_the_recorded_node_or_refused_with_the_remedy() {
    let app = app(&store("bridge-cases/l2").await);
    let (mut equal, mut refused) = (0, 0);
    for line in recorded("evm", "/cosmos/tx/v1beta1/txs?").into_iter().chain(recorded("evm", "v1beta1/txs")) {
        if line.path.contains("/txs/") {
            continue;
        }
        let (status, body) = get(&app, &line.path);
        if body.contains("this search is not answered by the index") {
            assert!(status == 400 && body.contains(": "), "{}: {body}", line.path);
            refused += 1;
            continue;
        }
        // A node takes the empty value for the beginning of one with a slash.
        if line.path.contains("message.action%3D''") {
            continue;
        }
        assert_eq!((status, body.as_str()), (line.status, line.answer.get()), "{}", line.path);
        equal += 1;
    }
    assert!(equal >= 100 && refused <= 60, "{equal} equal, {refused} refused");
}

/// An attribute of the events of the records.
struct Scan(Vec<(u64, String, Vec<Vec<(String, String)>>)>);

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
        let has = |events: &Vec<Vec<(String, String)>>| {
            events.iter().any(|event| conditions.iter().all(|condition| event.contains(condition)))
        };
        within.filter(|(_, _, events)| has(events)).map(|(_, hash, _)| hash.clone()).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_search_finds_what_a_scan_of_the_records_finds() {
    let store = store("bridge-cases/l2").await;
    let (app, scan) = (app(&store), Scan::of(&*store));
    let events: Vec<&Vec<(String, String)>> = scan.0.iter().flat_map(|(_, _, events)| events).collect();
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
                    && !tag.contains(['-', '/'])
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
            let total = expected.len();
            for descending in [false, true] {
                let order = if descending { "&order_by=ORDER_BY_DESC" } else { "" };
                match found(&app, &query, order) {
                    Ok((hashes, counted)) => {
                        prop_assert_eq!(counted, total, "{}", &query);
                        prop_assert_eq!(&hashes[..], &expected[..total.min(100)], "{}", &query);
                    }
                    Err(error) => {
                        prop_assert!(error.contains("this search is not answered"), "{}: {}", query, error)
                    }
                }
                expected.reverse();
            }
            Ok(())
        })
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_queries_of_known_clients_are_answered() {
    let store = store("bridge-cases/l2").await;
    let (app, scan) = (app(&store), Scan::of(&*store));
    let sent = scan.0.iter().flat_map(|(_, _, events)| events);
    let sent = sent.filter(|event| event.iter().any(|(tag, _)| tag == "send_packet.packet_sequence"));
    let sent = sent.last().unwrap();
    let value = |key: &str| {
        let tag = format!("send_packet.{key}");
        sent.iter().find(|(other, _)| *other == tag).unwrap().1.clone()
    };
    let keys =
        ["packet_src_channel", "packet_src_port", "packet_dst_channel", "packet_dst_port", "packet_sequence"];
    let hermes: Vec<String> = keys.iter().map(|key| format!("send_packet.{key}='{}'", value(key))).collect();
    assert_eq!(found(&app, &hermes.join(" AND "), "&page=1&limit=10&order_by=ORDER_BY_DESC").unwrap().1, 1);
    let relayer = format!("{} AND {}", hermes[0], hermes[4]);
    assert_eq!(found(&app, &relayer, "&limit=1000").unwrap().1, 1);
    let sender = "init1uzctf3mp2d0ke6fjej72cy4z2frs345tgs5dcq";
    for query in [
        format!("message.sender = '{sender}' AND tx.height >= 5"),
        format!("transfer.sender='{sender}'"),
        "tx.height >= 500 AND tx.height <= 586 AND message.action CONTAINS 'MsgSend'".to_owned(),
        "initiate_token_withdrawal.l2_sequence = 8".to_owned(),
        "message.action='/cosmos.bank.v1beta1.MsgSend'".to_owned(),
    ] {
        assert!(found(&app, &query, "").unwrap().1 > 0, "{query}");
    }
}
