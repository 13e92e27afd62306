//! Subscriptions over WebSocket: those of a node while blocks were made, and what it was not asked.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use evm_rpc::{Dialect, EvmRpc};
use futures_util::{SinkExt as _, StreamExt as _};
use ingest::{Config, Ingest};
use query::SlowReader;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::evm_block::BLOCKS;
use schema::rewind::rewind;
use serde::Deserialize;
use serde_json::{Value, json};
use store::{MemStore, Store};
use testkit::{indexed, recording};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, client_async};
use web::limits::Limits;
use web::serve::server::Server;

use super::over;

const PATIENCE: Duration = Duration::from_mins(1);

/// Before the first block that the recorded subscriptions report, and the last one of them.
const BLOCKS_OF_RECORDING: (u64, u64) = (537, 571);

struct Socket(WebSocketStream<TcpStream>);

impl Socket {
    async fn open(server: &Server) -> Self {
        let stream = TcpStream::connect(server.address()).await.unwrap();
        Self(client_async(format!("ws://{}/", server.address()), stream).await.unwrap().0)
    }

    async fn send(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    /// The next text; the reason of the close at the end.
    async fn read(&mut self) -> Result<String, String> {
        loop {
            match timeout(PATIENCE, self.0.next()).await.unwrap().unwrap().unwrap() {
                Message::Text(text) => return Ok(text.to_string()),
                Message::Close(frame) => return Err(frame.unwrap().reason.to_string()),
                _ => {}
            }
        }
    }

    async fn ask(&mut self, text: &str) -> String {
        self.send(text).await;
        self.read().await.unwrap()
    }

    /// Subscribes; the id.
    async fn subscribe(&mut self, params: &str) -> String {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":{params}}}"#);
        let reply: Value = serde_json::from_str(&self.ask(&call).await).unwrap();
        reply["result"].as_str().unwrap_or_else(|| panic!("{reply}")).to_owned()
    }

    /// The next notification: the id of its subscription, and its result.
    async fn notified(&mut self) -> (String, Value) {
        let mut message: Value = serde_json::from_str(&self.read().await.unwrap()).unwrap();
        let params = &mut message["params"];
        (params["subscription"].as_str().unwrap().to_owned(), params["result"].take())
    }
}

fn serve(rpc: EvmRpc) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    Server::start(listener, Arc::new(rpc.app().unwrap()), EvmRpc::limits(Limits::default()), 2).unwrap()
}

/// Indexes the chain of `node` up to `height`, with headers.
pub(super) async fn index(node: &ReplayNode, height: u64, store: &Arc<dyn Store>) {
    let lanes = indexed::config(node.recording()).unwrap();
    let config = Config { indexes: vec![&BLOCKS], internal_txs: false, rich_list: false, ..lanes };
    let ingest =
        Ingest::prepare(config, Arc::new(indexed::clients(node).unwrap()), Arc::clone(store)).await.unwrap();
    let (stop, stopped) = watch::channel(false);
    let reached = async {
        while BLOCKS.state(&*store.snapshot().unwrap()).unwrap().is_none_or(|at| at.height < height) {
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
    };
    let (outcome, ()) = tokio::join!(ingest.run(stopped), reached);
    outcome.unwrap();
}

pub(super) async fn played(shown: u64) -> ReplayNode {
    let recording = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let options = Options { up_to: Some(shown), ..Options::default() };
    ReplayNode::start(recording, Addresses::default(), options).await.unwrap()
}

/// A line of the transcripts.
#[derive(Deserialize)]
struct Line {
    set: String,
    conn: Option<String>,
    out: Option<String>,
    #[serde(rename = "in")]
    reply: Option<String>,
}

fn transcript(conn: &str) -> Vec<Line> {
    let path = recording("evm-fees").join("rpc-goldens.ndjson.zst");
    let mut decoder = zstd::stream::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    decoder.window_log_max(27).unwrap();
    let lines = std::io::BufRead::lines(std::io::BufReader::new(decoder));
    let lines = lines.map(|line| serde_json::from_str::<Line>(&line.unwrap()).unwrap());
    lines.filter(|line| line.set == "live" && line.conn.as_deref() == Some(conn)).collect()
}

/// The notifications of each subscription in order, without the id.
fn by_subscription(messages: impl Iterator<Item = String>) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::<String, Vec<String>>::new();
    for message in messages {
        let Some((_, rest)) = message.split_once(r#""params":{"subscription":""#) else { continue };
        let (id, result) = rest.split_once('"').unwrap();
        found.entry(id.to_owned()).or_default().push(result.to_owned());
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn new_heads_and_logs_are_those_that_a_node_sent_byte_for_byte() {
    let (before, last) = BLOCKS_OF_RECORDING;
    let (node, store) = (played(before).await, Arc::new(MemStore::new()) as Arc<dyn Store>);
    index(&node, before, &store).await;
    let server = serve(over(indexed::indexer(Arc::clone(&store)).unwrap(), Dialect::Node));
    let mut socket = Socket::open(&server).await;
    let lines = transcript("a");
    // The node's id of each subscription, and ours.
    let mut ids = BTreeMap::new();
    for (line, reply) in lines.iter().zip(&lines[1..]) {
        let Some(call) = line.out.as_deref().filter(|call| call.contains("eth_subscribe")) else { continue };
        if call.contains("newPendingTransactions") {
            let refused = socket.ask(call).await;
            assert!(
                refused.contains(r#""code":-32601"#) && refused.contains("no \\\"newPending"),
                "{refused}"
            );
            continue;
        }
        let [node, own] = [reply.reply.clone().unwrap(), socket.ask(call).await]
            .map(|reply| serde_json::from_str::<Value>(&reply).unwrap());
        ids.insert(node["result"].as_str().unwrap().to_owned(), own["result"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 4);
    let mut expected = by_subscription(lines.iter().filter_map(|line| line.reply.clone()));
    expected.retain(|node, _| ids.contains_key(node));
    // One of them was ended early.
    let total: usize = expected.values().map(Vec::len).sum();
    assert!(total > 150, "{total}");

    node.show(last).unwrap();
    index(&node, last, &store).await;
    let mut missing: BTreeMap<_, _> =
        expected.iter().map(|(node, all)| (ids[node].clone(), all.len())).collect();
    let mut messages = Vec::new();
    while missing.values().any(|left| *left > 0) {
        let message = socket.read().await.unwrap();
        for (id, left) in &mut missing {
            *left -= usize::from(*left > 0 && message.contains(id.as_str()));
        }
        messages.push(message);
    }
    let own = by_subscription(messages.into_iter());
    for (node, expected) in expected {
        let own = &own[&ids[&node]];
        assert!(own.len() >= expected.len() && own[..expected.len()] == expected[..], "{node}");
    }
    server.stop();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_subscriptions_are_refused_as_a_node_refuses_them() {
    let server = serve(super::rpc(Dialect::Node).await);
    let mut socket = Socket::open(&server).await;
    let (lines, mut compared) = (transcript("b"), 0);
    for (line, reply) in lines.iter().zip(&lines[1..]) {
        let (Some(call), Some(reply)) = (&line.out, &reply.reply) else { continue };
        if call.contains("newPendingTransactions") || call.contains("eth_blockNumber") {
            continue;
        }
        let own = socket.ask(call).await;
        if reply.contains("error") {
            compared += 1;
            assert_eq!(own, *reply, "{call}");
        } else {
            assert!(own.contains(r#""result":"0x"#), "{own}");
        }
    }
    assert_eq!(compared, 8);
    for (params, error) in [
        (r#"["logs",{"fromBlock":"latest","toBlock":"0x5"}]"#, "invalid block range params"),
        (
            r#"["logs",{"blockHash":"0x0000000000000000000000000000000000000000000000000000000000000000"}]"#,
            "invalid block range params",
        ),
        (r#"["logs"]"#, "missing value for required argument 1"),
        (r#"{"a":1}"#, "non-array args"),
        ("[5]", "expected subscription name as first argument"),
    ] {
        let call = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":{params}}}"#);
        let reply = socket.ask(&call).await;
        assert!(reply.contains(&format!(r#""message":"{error}"#)), "{params}: {reply}");
    }
    // What is subscribed to is remembered.
    let contracts: Vec<_> = (0..1001).map(|number| format!("0x{number:040x}")).collect();
    let params = json!(["logs", { "address": contracts }]);
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_subscribe", "params": params });
    let reply = socket.ask(&call.to_string()).await;
    assert!(reply.contains(r#"{"code":-32000,"message":"exceed max addresses"}"#), "{reply}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_has_a_bounded_number_of_subscriptions_and_each_can_be_ended() {
    let server = serve(super::rpc(Dialect::Fixed).await);
    let mut socket = Socket::open(&server).await;
    let mut ids = Vec::new();
    for n in 0..64 {
        ids.push(socket.subscribe(if n % 2 == 0 { r#"["newHeads"]"# } else { r#"["logs",{}]"# }).await);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 64);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["newHeads"]}"#;
    assert!(socket.ask(call).await.contains("a connection has at most 64 subscriptions"));
    let end = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"eth_unsubscribe","params":["{}"]}}"#, ids[0]);
    assert_eq!(socket.ask(&end).await.trim_end(), r#"{"jsonrpc":"2.0","id":1,"result":true}"#);
    assert!(socket.ask(&end).await.contains("subscription not found"));
    assert!(!socket.subscribe(r#"["newHeads"]"#).await.is_empty());
    let mut other = Socket::open(&server).await;
    let of_other = end.replace(&ids[0], &ids[1]);
    assert!(other.ask(&of_other).await.contains("subscription not found"), "of another socket");
    server.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_are_rolled_back_are_sent_as_removed_and_then_those_that_replace_them() {
    let (before, _) = BLOCKS_OF_RECORDING;
    let (node, store) = (played(before).await, Arc::new(MemStore::new()) as Arc<dyn Store>);
    index(&node, before, &store).await;
    let server = serve(over(indexed::indexer(Arc::clone(&store)).unwrap(), Dialect::Fixed));
    let mut logs = Socket::open(&server).await;
    logs.subscribe(r#"["logs",{}]"#).await;
    let mut heads = Socket::open(&server).await;
    heads.subscribe(r#"["newHeads"]"#).await;
    node.show(before + 5).unwrap();
    index(&node, before + 5, &store).await;
    let number = |json: &Value| u64::from_str_radix(&json.as_str().unwrap()[2..], 16).unwrap();
    let mut sent: Vec<Value> = Vec::new();
    for height in before + 1..=before + 5 {
        assert_eq!(number(&heads.notified().await.1["number"]), height);
    }
    while sent.last().is_none_or(|log| number(&log["blockNumber"]) < before + 5) {
        sent.push(logs.notified().await.1);
    }
    // The others of the last block.
    let of_last = |log: &&Value| number(&log["blockNumber"]) == before + 5;
    let view = indexed::indexer(Arc::clone(&store)).unwrap();
    let all = view
        .evm(Dialect::Fixed)
        .unwrap()
        .block_logs(&chain::evm::log_filter::LogFilter::default(), before + 5);
    while sent.iter().filter(of_last).count() < all.as_ref().unwrap().len() {
        sent.push(logs.notified().await.1);
    }
    drop(view);

    rewind(&*store, before + 3).unwrap();
    let removed: Vec<Value> =
        sent.iter().filter(|log| number(&log["blockNumber"]) > before + 3).cloned().collect();
    assert!(!removed.is_empty());
    for log in removed.iter().rev() {
        let mut expected = log.clone();
        expected["removed"] = true.into();
        assert_eq!(logs.notified().await.1, expected);
    }
    index(&node, before + 5, &store).await;
    for log in &removed {
        assert_eq!(logs.notified().await.1, *log);
    }
    for height in [before + 4, before + 5] {
        assert_eq!(number(&heads.notified().await.1["number"]), height);
    }

    rewind(&*store, before - 70).unwrap();
    assert!(heads.read().await.unwrap_err().contains("more blocks were rolled back"));
    server.stop();
    node.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_reads_too_slowly_gets_a_closed_socket_with_the_reason() {
    let (before, last) = BLOCKS_OF_RECORDING;
    let (node, store) = (played(before).await, Arc::new(MemStore::new()) as Arc<dyn Store>);
    index(&node, before, &store).await;
    let slow = SlowReader { blocks: 3, time: Duration::ZERO };
    let rpc = over(indexed::indexer(Arc::clone(&store)).unwrap(), Dialect::Fixed).with_slow_reader(slow);
    let server = serve(rpc);
    let mut socket = Socket::open(&server).await;
    socket.subscribe(r#"["newHeads"]"#).await;
    node.show(last).unwrap();
    // More blocks at once than a client may be behind.
    index(&node, last, &store).await;
    let mut heights = 0;
    let reason = loop {
        match socket.read().await {
            Ok(_) => heights += 1,
            Err(reason) => break reason,
        }
    };
    assert!(reason.contains("reads too slowly") && heights < last - before, "{heights}: {reason}");
    server.stop();
    node.stop().await;
}
