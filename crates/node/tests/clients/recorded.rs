//! The replies of real nodes of every VM, read from the recordings.

use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use node::{Endpoints, Node, Validator};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::scripted::{Asked, Play, Server, fault, json, limits, result};

/// Chain id, folder, tip, its validator's moniker, and its application with version.
const CHAINS: [(&str, &str, u64, &str, &str, &str); 5] = [
    ("e2e-evm-1", "evm-scenario", 226, "node-evm", "minievm", "v1.2.18"),
    ("e2e-move-1", "move-scenario", 50, "node-move", "minimove", "v1.1.11"),
    ("e2e-wasm-1", "wasm-scenario", 68, "node-wasm", "miniwasm", "v1.2.11"),
    ("e2e-l1-1", "l1-l2/l1", 1459, "node-l1", "initia", "v1.4.5"),
    ("e2e-l2-1", "l1-l2/l2", 820, "operator", "minievm", "v1.2.18"),
];

/// A request with its reply.
#[derive(Deserialize)]
pub(crate) struct Line {
    pub(crate) kind: String,
    pub(crate) path: Option<String>,
    method: Option<String>,
    pub(crate) height: Option<u64>,
    pub(crate) status: Option<u16>,
    pub(crate) answer: Option<Box<RawValue>>,
    /// Of `eth_call`.
    pub(crate) to: Option<String>,
    pub(crate) data: Option<String>,
    pub(crate) result: Option<Box<RawValue>>,
    pub(crate) error: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Recorded {
    height: u64,
    block: Box<RawValue>,
    block_results: Box<RawValue>,
    eth_receipts: Option<Box<RawValue>>,
    eth_trace: Option<Box<RawValue>>,
}

fn lines<T: for<'de> Deserialize<'de>>(folder: &str, file: &str) -> Vec<T> {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(folder).join(file);
    let reader = zstd::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    let lines = BufReader::new(reader).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

/// A node that answers as recorded.
pub(crate) async fn replayed(folder: &'static str) -> (Node, Arc<Vec<Line>>) {
    let state: Arc<Vec<Line>> = Arc::new(lines(folder, "state.ndjson.zst"));
    let shared = Arc::clone(&state);
    let server = Server::play(move |_, asked| play(&shared, asked)).await;
    let urls = vec![server.url.clone()];
    let endpoints =
        Endpoints { comet: urls.clone(), rest: urls.clone(), json_rpc: urls, ..Endpoints::default() };
    (Node::new(endpoints, limits()).unwrap(), state)
}

/// The recorded answer to exactly this request: path, query and state height, or call and height.
fn play(state: &[Line], asked: &Asked) -> Play {
    if asked.body.contains("eth_call") {
        return call(state, asked);
    }
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().unwrap().into_owned();
    let path = decoded(asked.line.strip_prefix("GET ").unwrap());
    let height = asked.headers.lines().find_map(|line| line.strip_prefix("x-cosmos-block-height: "));
    let height = height.map(|height| height.parse().unwrap());
    let is_asked =
        |line: &&Line| line.height == height && line.path.as_deref().map(decoded).as_ref() == Some(&path);
    match state.iter().find(is_asked) {
        Some(line) if line.kind == "cometbft" => result(line.answer.as_ref().unwrap().get()),
        Some(line) if line.method.as_deref() == Some("GET") => {
            fault(line.status.unwrap(), line.answer.as_ref().unwrap().get())
        }
        // Not recorded: the replies of these chains to unknown paths.
        _ => fault(501, r#"{"code":12,"message":"Not Implemented","details":[]}"#),
    }
}

fn call(state: &[Line], asked: &Asked) -> Play {
    let body: serde_json::Value = serde_json::from_str(&asked.body).unwrap();
    let is_asked = |line: &&Line| {
        let Line { to: Some(to), data: Some(data), height: Some(height), .. } = line else { return false };
        body["params"] == serde_json::json!([{ "to": to, "data": data }, format!("{height:#x}")])
    };
    match state.iter().find(is_asked) {
        Some(Line { result: Some(answer), .. }) => result(answer.get()),
        Some(Line { error: Some(error), .. }) => {
            json(&format!(r#"{{"jsonrpc":"2.0","id":%ID%,"error":{}}}"#, error.get()))
        }
        _ => panic!("not recorded: {}", asked.body),
    }
}

#[tokio::test]
async fn every_chain_reports_its_status_program_and_prefix() {
    for (chain_id, folder, latest, _, app, version) in CHAINS {
        let (node, _) = replayed(folder).await;
        let status = node.comet.verify_chain(chain_id).await.unwrap();
        assert_eq!((status.node_version.as_str(), status.catching_up), ("0.38.19", false), "{folder}");
        assert_eq!((status.earliest_height, status.latest_height), (1, latest), "{folder}");
        let rest = node.rest.as_ref().unwrap();
        let info = rest.node_info().await.unwrap();
        assert_eq!((info.chain_id.as_str(), info.app_name.as_str()), (chain_id, app), "{folder}");
        assert_eq!(info.app_version, version, "{folder}");
        assert_eq!(rest.bech32_prefix().await.unwrap(), "init", "{folder}");
    }
}

#[tokio::test]
async fn every_chains_validator_is_found_by_the_address_that_cometbft_gives_it() {
    #[derive(Deserialize)]
    struct Answer {
        validators: Vec<Seat>,
    }
    #[derive(Deserialize)]
    struct Seat {
        address: String,
    }
    for (_, folder, _, moniker, ..) in CHAINS {
        let (node, state) = replayed(folder).await;
        let validators = node.rest.as_ref().unwrap().validators().await.unwrap();
        let is_seats = |line: &&Line| line.path.as_ref().is_some_and(|path| path.starts_with("/validators?"));
        let seats = state.iter().find(is_seats).unwrap().answer.as_ref().unwrap();
        let seats = serde_json::from_str::<Answer>(seats.get()).unwrap().validators;
        let [Validator { consensus_address, moniker: name, operator_address }] = &validators[..] else {
            panic!("{folder}: {validators:?}");
        };
        assert_eq!(hex::encode_upper(consensus_address), seats[0].address, "{folder}");
        assert_eq!(name, moniker, "{folder}");
        assert!(operator_address.starts_with("initvaloper1"), "{folder}");
    }
}

#[tokio::test]
async fn every_chain_serves_its_descriptors_by_rpc() {
    for (_, folder, ..) in CHAINS {
        let (node, _) = replayed(folder).await;
        let descriptors = node.descriptors().await.unwrap();
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&descriptors.bytes)), descriptors.sha256);
        let name = b"cosmos/tx/v1beta1/tx.proto";
        assert!(descriptors.bytes.windows(name.len()).any(|w| w == name), "{folder}");
    }
}

#[tokio::test]
async fn every_recorded_block_is_returned_byte_for_byte() {
    let blocks: Arc<Vec<Recorded>> = Arc::new(lines("evm-scenario", "blocks.ndjson.zst"));
    let shared = Arc::clone(&blocks);
    let server = Server::play(move |_, asked| {
        let find = |height: u64| shared.iter().find(|block| block.height == height).unwrap();
        if let Some(path) = asked.line.strip_prefix("GET ") {
            let (path, height) = path.split_once("?height=").unwrap();
            let block = find(height.parse().unwrap());
            return result(if path == "/block" { block.block.get() } else { block.block_results.get() });
        }
        let (_, height) = asked.body.split_once("[\"0x").unwrap();
        let block = find(u64::from_str_radix(height.split_once('"').unwrap().0, 16).unwrap());
        match (asked.body.contains("debug_"), &block.eth_trace, &block.eth_receipts) {
            (true, Some(trace), _) => result(trace.get()),
            (false, _, Some(receipts)) => result(receipts.get()),
            _ => result("null"),
        }
    })
    .await;
    let urls = vec![server.url.clone()];
    let endpoints = Endpoints { comet: urls.clone(), json_rpc: urls, ..Endpoints::default() };
    let node = Node::new(endpoints, limits()).unwrap();
    let evm = node.evm.as_ref().unwrap();
    for block in blocks.iter() {
        assert_eq!(node.comet.block(block.height).await.unwrap().bytes, block.block.get());
        assert_eq!(node.comet.block_results(block.height).await.unwrap().bytes, block.block_results.get());
        let receipts = block.eth_receipts.as_ref().map(|receipts| receipts.get());
        assert_eq!(evm.block_receipts(block.height).await.unwrap().bytes, receipts.unwrap());
        if let Some(trace) = &block.eth_trace {
            assert_eq!(evm.trace_block(block.height).await.unwrap().bytes, trace.get());
        }
    }
    assert_eq!(blocks.len(), 226);
}
