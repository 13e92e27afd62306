//! Paths of a node's REST interface, against what the recorded nodes replied.

use query::Indexer;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use testkit::{indexed, recording};
use web::app::App;

/// The recorded nodes with an index, their chains, and the first and the last of the recorded blocks.
pub(crate) const NODES: [(&str, &str, u64, u64); 4] = [
    ("evm", "bridge-cases/l2", 1, 586),
    ("l1", "bridge-cases/l1", 161, 1267),
    ("move", "move-ledger", 1, 268),
    ("wasm", "wasm-ledger", 60, 170),
];

/// A recorded reply to a request of a node.
#[derive(Deserialize)]
pub(crate) struct Recorded {
    pub(crate) kind: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) body: Option<Box<RawValue>>,
    pub(crate) status: u16,
    pub(crate) answer: Box<RawValue>,
}

/// The recorded replies of a node.
pub(crate) fn replies(node: &str) -> Vec<Recorded> {
    let bytes = std::fs::read(recording("node-search").join(format!("{node}.ndjson.zst"))).unwrap();
    let text = String::from_utf8(zstd::stream::decode_all(bytes.as_slice()).unwrap()).unwrap();
    text.lines().map(|line| serde_json::from_str::<Recorded>(line).unwrap()).collect()
}

/// The recorded replies to `GET` of paths of the REST interface that contain `mark`.
pub(crate) fn recorded(node: &str, mark: &str) -> Vec<Recorded> {
    let lines = replies(node).into_iter();
    lines.filter(|line| line.kind == "rest" && line.method == "GET" && line.path.contains(mark)).collect()
}

/// Status and body of a response.
pub(crate) fn get(app: &App<Indexer>, path: &str) -> (u16, String) {
    let response = app.get(path);
    (response.status().as_u16(), String::from_utf8(response.body().to_vec()).unwrap())
}

async fn app(name: &str) -> App<Indexer> {
    let store = super::packets::store(name).await;
    App::new(indexed::indexer(store).unwrap(), query::WITH_NODE_PATHS).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_and_errors_have_the_bytes_of_the_recorded_nodes() {
    let (mut found, mut errors) = (0, 0);
    for (node, chain, from, _) in NODES {
        let app = app(chain).await;
        let of_hash = recorded(node, "/cosmos/tx/v1beta1/txs/");
        for line in of_hash.iter().filter(|line| !line.path.contains("/txs/block/")) {
            let (status, body) = get(&app, &line.path);
            let mut expected = line.answer.get().to_owned();
            let theirs: Value = serde_json::from_str(&expected).unwrap();
            let height =
                theirs["tx_response"]["height"].as_str().map_or(from, |height| height.parse().unwrap());
            if height < from {
                assert!(status == 404 && body.contains(&format!("indexed from height {from};")), "{body}");
                continue;
            }
            if from > 1 && line.status == 404 {
                // The recording begins there: that a transaction is unknown does not say that there is none.
                let since =
                    format!(r#" (indexed from height {from}; ask a node about earlier blocks)","details""#);
                expected = expected.replace(r#"","details""#, &since);
            }
            assert_eq!((status, body), (line.status, expected), "{node} {}", line.path);
            if status == 200 { found += 1 } else { errors += 1 }
        }
    }
    assert!(found >= 5 && errors >= 10, "{found} transactions, {errors} errors");
}

/// An error with our height in the place of the node's, which had some more blocks than the recording.
fn with_height(error: &str, height: u64) -> String {
    const MARK: &str = "current height ";
    let Some((before, after)) = error.split_once(MARK) else { return error.to_owned() };
    format!("{before}{MARK}{height}{}", after.trim_start_matches(|byte: char| byte.is_ascii_digit()))
}

#[tokio::test(flavor = "multi_thread")]
async fn transactions_of_a_block_are_those_of_the_recorded_nodes() {
    let (mut blocks, mut errors) = (0, 0);
    // A node without an index of transactions knows those of blocks.
    for (node, chain, _, last) in NODES.into_iter().chain([("null", "move-ledger", 1, 268)]) {
        let app = app(chain).await;
        for line in recorded(node, "/cosmos/tx/v1beta1/txs/block/") {
            let (status, body) = get(&app, &line.path);
            if line.status != 200 {
                let expected = with_height(line.answer.get(), last);
                assert_eq!((status, body.as_str()), (line.status, expected.as_str()), "{node} {}", line.path);
                errors += 1;
                continue;
            }
            assert_eq!(status, 200, "{node} {}: {body}", line.path);
            let (ours, theirs): (Value, Value) =
                (serde_json::from_str(&body).unwrap(), serde_json::from_str(line.answer.get()).unwrap());
            assert_eq!(ours["txs"], theirs["txs"], "{node} {}", line.path);
            assert_eq!(ours["pagination"], theirs["pagination"], "{node} {}", line.path);
            assert!(ours["block"].is_null() && ours["block_id"].is_null());
            blocks += 1;
        }
    }
    assert!(blocks >= 15 && errors >= 20, "{blocks} blocks, {errors} errors");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_paths_of_a_node_are_404_with_the_reason() {
    let app = app("bridge-cases/l2").await.with_missing(query::unserved);
    for path in ["/cosmos/bank/v1beta1/supply", "/ibc/core/channel/v1/channels", "/opinit/ophost/v1/bridges"]
    {
        let (status, body) = get(&app, path);
        assert_eq!(status, 404, "{path}");
        assert!(
            body.contains("only /cosmos/tx/v1beta1/txs and those below it follow from the index"),
            "{body}"
        );
    }
    assert_eq!(
        get(&app, "/indexer/other").1,
        r#"{"code":5,"message":"Cannot GET /indexer/other","details":[]}"#
    );
}
