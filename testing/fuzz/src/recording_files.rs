//! A recording's files: an accepted recording has no gaps and answers any request without a panic; any other is an
//! error.

use std::io::Write as _;
use std::path::Path;

use bytes::Bytes;
use http::{HeaderValue, Request};
use replay::Recording;
use replay::answers::{Deviations, Service, View, answer};
use replay::counters::Counters;
use replay::recording::FORMAT;
use serde_json::json;
use tempfile::TempDir;

use crate::input::Input;
use crate::recorded::chains;

/// Members of lines, and requests.
pub const WORDS: &[&str] = &[
    "\"height\":1",
    "\"block\":{}",
    "\"block_results\":{}",
    "\"eth_receipts\":[]",
    "\"eth_trace\":{\"result\":[]}",
    "{\"kind\":\"rest\",\"method\":\"GET\",\"path\":\"/a\",\"status\":200,\"answer\":{}}\n",
    "{\"kind\":\"cometbft\",\"path\":\"/status\",\"answer\":{}}\n",
    "{\"kind\":\"eth\",\"method\":\"eth_chainId\",\"result\":\"0x1\"}\n",
    "{\"kind\":\"eth_call\",\"to\":\"0x1\",\"data\":\"0x\",\"height\":1,\"result\":\"0x\"}\n",
    "/block?height=1",
    "/block_results?height=",
    "/tx_search?query=",
    "/cosmos/tx/v1beta1/txs/block/",
    "\"method\":\"eth_getLogs\",\"params\":[{}]",
    "18446744073709551615",
    "\n",
    "%ff",
];

/// Maximum length of a line in a seed.
const MAX_BYTES: usize = 5_000;

/// Input: a byte for the form: the three files as they are, their lines compressed here, or requests to a recorded
/// chain.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    match input.byte() % 4 {
        0 => files(&summary(1), &compressed(input.rest()), &compressed(b"")),
        1 => files(&summary(0), &compressed(HEIGHT.as_bytes()), &compressed(input.rest())),
        2 => torn(input),
        _ => request(input),
    }
}

const HEIGHT: &str = "{\"height\":1,\"block\":{},\"block_results\":{}}\n";

fn summary(more: u64) -> Vec<u8> {
    let summary = json!({
        "format": FORMAT, "name": "fuzzed", "chain_id": "fuzzed-1", "vm": "evm", "first_height": 1,
        "last_height": 1 + more, "txs": 0, "evm_txs": 0, "trace_frames": 0, "fee_denom": "", "state_queries": 0,
    });
    summary.to_string().into_bytes()
}

fn compressed(lines: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(lines, 1).unwrap()
}

/// Checks files that are not zstd, truncated or with a wrong summary.
fn torn(mut input: Input<'_>) -> bool {
    let (which, rest) = (input.byte() % 3, input.rest());
    let (mut about, mut blocks, mut state) = (summary(0), compressed(HEIGHT.as_bytes()), compressed(b""));
    *[&mut about, &mut blocks, &mut state][usize::from(which)] = rest.to_vec();
    files(&about, &blocks, &state)
}

fn files(about: &[u8], blocks: &[u8], state: &[u8]) -> bool {
    thread_local! {
        static FOLDER: TempDir = tempfile::tempdir().unwrap();
    }
    FOLDER.with(|folder| {
        let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
        write("recording.json", about);
        write("blocks.ndjson.zst", blocks);
        write("state.ndjson.zst", state);
        open(folder.path())
    })
}

fn open(folder: &Path) -> bool {
    let recording = match Recording::open(folder) {
        Ok(recording) => recording,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return false;
        }
    };
    let heights = recording.heights();
    assert!((recording.first()..).zip(heights).all(|(number, height)| height.height == number), "dense");
    if !recording.is_ethereum() {
        assert_eq!(heights.last().map(|height| height.height), Some(recording.last()));
    }
    for (service, target, body) in [
        (Service::Comet, "/status", ""),
        (Service::Comet, "/block?height=1", ""),
        (Service::Comet, "/tx_search?query=\"tx.height=1\"&page=1&per_page=2", ""),
        (Service::Comet, "/tx?hash=0x00", ""),
        (Service::Rest, "/cosmos/tx/v1beta1/txs/block/1", ""),
        (Service::Rest, "/cosmos/tx/v1beta1/txs/00", ""),
        (
            Service::JsonRpc,
            "/",
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1"}]}"#,
        ),
        (
            Service::JsonRpc,
            "/",
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_getTransactionReceipt","params":["0x00"]}"#,
        ),
        (Service::Executor, "/status", ""),
    ] {
        send(&recording, service, recording.last(), target, body.as_bytes());
    }
    true
}

/// Input: a byte for the chain, one for the service, one for the node's height, the target in a line, the body.
fn request(mut input: Input<'_>) -> bool {
    let recording = &chains()[usize::from(input.byte()) % chains().len()].recording;
    let service = Service::ALL[usize::from(input.byte()) % Service::ALL.len()];
    let shown = recording.first() + u64::from(input.byte());
    let mut lines = input.rest().splitn(2, |byte| *byte == b'\n');
    let target = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    send(recording, service, shown.min(recording.last()), &target, lines.next().unwrap_or_default())
}

fn send(recording: &Recording, service: Service, shown: u64, target: &str, body: &[u8]) -> bool {
    let method = if body.is_empty() { "GET" } else { "POST" };
    let request = Request::builder()
        .method(method)
        .uri(target)
        .header("x-cosmos-block-height", HeaderValue::from(shown));
    let Ok(request) = request.body(Bytes::copy_from_slice(body)) else { return false };
    let counters = Counters::default();
    let view =
        View { recording, shown, deviations: Deviations::default(), lagging: &[], counters: &counters };
    let one = answer(service, view, &request);
    assert_eq!(one, answer(service, view, &request), "answers are deterministic");
    one.status.is_success()
}

/// Small recorded lines, and a request of every kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![[&[0], HEIGHT.as_bytes(), HEIGHT.replace('1', "2").as_bytes()].concat()];
    seeds.extend((0_u8..3).map(|which| [&[2, which], compressed(HEIGHT.as_bytes()).as_slice()].concat()));
    seeds.push([&[2, 0], summary(0).as_slice()].concat());
    for (number, chain) in (0_u8..).zip(chains()) {
        for height in chain.recording.heights().iter().filter(|height| height.block.len() < MAX_BYTES).take(2)
        {
            let mut line = br#"{"height":1,"block":"#.to_vec();
            line.extend_from_slice(&height.block);
            line.extend_from_slice(br#","block_results":"#);
            line.extend_from_slice(&height.block_results);
            line.write_all(b"}\n").unwrap();
            seeds.push([&[0], line.as_slice(), line.as_slice()].concat());
        }
        for (service, request) in REQUESTS {
            seeds.push([&[3, number, *service, 40], request.as_bytes()].concat());
        }
    }
    seeds.extend(
        WORDS
            .iter()
            .filter(|word| word.starts_with("{\"kind\""))
            .map(|line| [&[1], line.as_bytes()].concat()),
    );
    seeds
}

/// The number of a service, and a request to it.
const REQUESTS: &[(u8, &str)] = &[
    (0, "/status"),
    (0, "/block?height=20"),
    (0, "/block_results?height=20"),
    (0, "/blockchain?minHeight=1&maxHeight=20"),
    (
        0,
        "/tx_search?query=\"message.action='/cosmos.bank.v1beta1.MsgSend'\"&page=1&per_page=3&order_by=\"desc\"",
    ),
    (0, "/tx_search?query=\"tx.height>5 AND transfer.amount EXISTS\""),
    (0, "/validators?height=20"),
    (1, "/cosmos/base/tendermint/v1beta1/blocks/20"),
    (1, "/cosmos/tx/v1beta1/txs/block/20?pagination.limit=2&pagination.offset=1"),
    (1, "/cosmos/tx/v1beta1/txs?query=tx.height=20&page=1&limit=2"),
    (1, "/cosmos/tx/v1beta1/txs/0000000000000000000000000000000000000000000000000000000000000000"),
    (2, "/\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getBlockByNumber\",\"params\":[\"0x14\",false]}"),
    (
        2,
        "/\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"eth_getLogs\",\"params\":[{\"fromBlock\":\"0x1\",\"toBlock\":\"0x14\",\"topics\":[null,[\"0x00\"]]}]}",
    ),
    (
        2,
        "/\n[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"debug_traceBlockByNumber\",\"params\":[\"0x14\",{\"tracer\":\"callTracer\"}]}]",
    ),
    (3, "/withdrawal/1"),
    (3, "/withdrawals/init1?offset=0&limit=3"),
];
