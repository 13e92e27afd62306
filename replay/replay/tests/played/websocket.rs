//! The websocket of the replay node, over real sockets and with a third-party client.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use replay::{Addresses, Options, Recording, ReplayNode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

static EVM: LazyLock<Arc<Recording>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/evm-scenario");
    Arc::new(Recording::open(&dir).unwrap())
});

/// Timeout for an expected message.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time in which no message may arrive.
const SILENCE: Duration = Duration::from_millis(300);

const NEW_BLOCK: &str = "tm.event='NewBlock'";

struct Client(WebSocketStream<TcpStream>);

impl Client {
    async fn open(node: &ReplayNode) -> Self {
        Self::try_open(node).await.unwrap()
    }

    async fn try_open(node: &ReplayNode) -> Result<Self, Error> {
        let host = node.comet_url().trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).await.unwrap();
        client_async(format!("ws://{host}/websocket"), stream).await.map(|(socket, _)| Self(socket))
    }

    async fn send(&mut self, method: &str, params: Value) {
        let call = json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params });
        self.0.send(Message::text(call.to_string())).await.unwrap();
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params).await;
        self.next().await.unwrap()
    }

    async fn subscribe(&mut self, query: &str) -> Value {
        self.call("subscribe", json!({ "query": query })).await
    }

    /// The next message; none once the node has closed the connection.
    async fn next(&mut self) -> Option<Value> {
        match timeout(PATIENCE, self.0.next()).await.unwrap() {
            Some(Ok(Message::Text(text))) => Some(serde_json::from_str(&text).unwrap()),
            Some(Ok(other)) => panic!("{other:?}"),
            Some(Err(_)) | None => None,
        }
    }

    async fn height(&mut self) -> Value {
        let event = self.next().await.unwrap();
        event["result"]["data"]["value"]["block"]["header"]["height"].clone()
    }

    async fn is_silent(&mut self) -> bool {
        timeout(SILENCE, self.0.next()).await.is_err()
    }
}

async fn start(up_to: u64, faults: &[&str]) -> ReplayNode {
    let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    let options = Options { up_to: Some(up_to), faults, ..Options::default() };
    ReplayNode::start(Arc::clone(&EVM), Addresses::default(), options).await.unwrap()
}

fn parse(raw: &[u8]) -> Value {
    serde_json::from_slice(raw).unwrap()
}

#[tokio::test]
async fn a_new_height_is_announced_once_with_all_members_of_the_node() {
    let node = start(189, &[]).await;
    let mut client = Client::open(&node).await;
    assert_eq!(
        client.subscribe(NEW_BLOCK).await,
        json!({ "jsonrpc": "2.0", "id": "subscribe", "result": {} })
    );
    node.show(190).unwrap();
    let event = client.next().await.unwrap();
    let (block, results) =
        (parse(&EVM.height(190).unwrap().block), parse(&EVM.height(190).unwrap().block_results));
    assert_eq!((&event["jsonrpc"], &event["id"]), (&json!("2.0"), &json!("subscribe")));
    let value = json!({
        "block": block["block"],
        "block_id": block["block_id"],
        "result_finalize_block": {
            "tx_results": results["txs_results"],
            "validator_updates": results["validator_updates"],
            "consensus_param_updates": results["consensus_param_updates"],
            "app_hash": results["app_hash"],
        },
    });
    let expected = json!({
        "query": NEW_BLOCK,
        "data": { "type": "tendermint/event/NewBlock", "value": value },
        "events": { "tm.event": ["NewBlock"] },
    });
    assert_eq!(event["result"], expected);
    node.show(193).unwrap();
    for height in ["191", "192", "193"] {
        assert_eq!(client.height().await, height);
    }
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn events_at_the_end_of_a_block_are_announced_and_searchable() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/l1-l2/l1");
    let l1 = Arc::new(Recording::open(&dir).unwrap());
    let options = Options { up_to: Some(l1.first()), ..Options::default() };
    let node = ReplayNode::start(Arc::clone(&l1), Addresses::default(), options).await.unwrap();
    let mut client = Client::open(&node).await;
    client.subscribe(NEW_BLOCK).await;
    node.show(l1.first() + 1).unwrap();
    let answer = client.next().await.unwrap()["result"].take();
    let results = parse(&l1.height(l1.first() + 1).unwrap().block_results);
    let events = results["finalize_block_events"].as_array().unwrap();
    assert!(!events.is_empty());
    assert_eq!(answer["data"]["value"]["result_finalize_block"]["events"], results["finalize_block_events"]);
    for event in events {
        for attribute in event["attributes"].as_array().unwrap() {
            let tag = format!("{}.{}", event["type"].as_str().unwrap(), attribute["key"].as_str().unwrap());
            assert!(answer["events"][&tag].as_array().unwrap().contains(&attribute["value"]), "{tag}");
        }
    }
}

#[tokio::test]
async fn an_announced_height_can_be_requested() {
    let options =
        Options { up_to: Some(150), block_every: Some(Duration::from_millis(5)), ..Options::default() };
    let node = ReplayNode::start(Arc::clone(&EVM), Addresses::default(), options).await.unwrap();
    let (mut client, mut asker) = (Client::open(&node).await, Client::open(&node).await);
    client.subscribe(NEW_BLOCK).await;
    let mut last = None;
    for _ in 0..20 {
        let height: u64 = client.height().await.as_str().unwrap().parse().unwrap();
        assert!(last.is_none_or(|last| height == last + 1), "{last:?} {height}");
        let block = asker.call("block", json!({ "height": height.to_string() })).await;
        assert_eq!(block["result"]["block"]["header"]["height"], height.to_string(), "{block}");
        last = Some(height);
    }
}

#[tokio::test]
async fn headers_alone_are_announced_on_request_and_nothing_after_unsubscribing() {
    let node = start(10, &[]).await;
    let mut client = Client::open(&node).await;
    assert_eq!(client.subscribe("tm.event = 'NewBlockHeader'").await["result"], json!({}));
    node.show(11).unwrap();
    let answer = client.next().await.unwrap()["result"].take();
    let header = &parse(&EVM.height(11).unwrap().block)["block"]["header"];
    assert_eq!(
        answer["data"],
        json!({ "type": "tendermint/event/NewBlockHeader", "value": { "header": header } })
    );
    assert_eq!(answer["events"], json!({ "tm.event": ["NewBlockHeader"] }));
    let params = json!(["tm.event='NewBlockHeader'"]);
    assert_eq!(client.call("unsubscribe", params.clone()).await["result"], json!({}));
    assert_eq!(client.call("unsubscribe", params).await["error"]["data"], "subscription not found");
    client.subscribe(NEW_BLOCK).await;
    assert_eq!(client.subscribe("tm.event = 'NewBlock'").await["error"]["data"], "already subscribed");
    assert_eq!(client.call("unsubscribe_all", json!({})).await["result"], json!({}));
    node.show(12).unwrap();
    assert!(client.is_silent().await);
}

#[tokio::test]
async fn calls_are_answered_as_over_http_and_malformed_ones_are_errors() {
    let node = start(10, &[]).await;
    let mut client = Client::open(&node).await;
    let block = client.call("block", json!({ "height": "7" })).await;
    assert_eq!(
        block,
        json!({ "jsonrpc": "2.0", "id": "block", "result": parse(&EVM.height(7).unwrap().block) })
    );
    let future = client.call("block", json!({ "height": "11" })).await;
    assert_eq!(
        future["error"]["data"],
        "height 11 must be less than or equal to the current blockchain height 10"
    );
    let query = client.subscribe("tm.event=").await["error"].take();
    assert_eq!(query["code"], -32603);
    assert!(query["data"].as_str().unwrap().starts_with("failed to parse query: "), "{query}");
    client.0.send(Message::text("{")).await.unwrap();
    assert_eq!(client.next().await.unwrap()["error"]["code"], -32700);
    client.0.send(Message::text(r#"{"jsonrpc":"2.0","method":"health"}"#)).await.unwrap();
    assert_eq!(client.call("health", json!({})).await["id"], "health");
    assert_eq!(node.missing().count, 0);
    assert_eq!(client.subscribe("tm.event='Tx'").await["error"]["code"], -32000);
    assert_eq!(node.missing().questions, ["subscription tm.event='Tx'"]);
}

#[tokio::test]
async fn a_message_beyond_the_bound_closes_the_websocket() {
    let node = start(10, &[]).await;
    let mut client = Client::open(&node).await;
    // The node may close before it has read all of it.
    drop(client.0.send(Message::text("x".repeat((1 << 20) + 1))).await);
    assert_eq!(client.next().await, None);
}

#[tokio::test]
async fn a_node_that_goes_down_or_begins_another_history_closes_every_websocket() {
    let node = start(10, &[]).await;
    let (mut busy, mut idle) = (Client::open(&node).await, Client::open(&node).await);
    busy.subscribe(NEW_BLOCK).await;
    node.down();
    assert_eq!((busy.next().await, idle.next().await), (None, None));
    assert!(Client::try_open(&node).await.is_err());
    node.up();
    let mut again = Client::open(&node).await;
    again.subscribe(NEW_BLOCK).await;
    node.switch(Arc::new(EVM.forked(5, 7).unwrap()), 20).unwrap();
    assert_eq!(again.next().await, None);
    let mut last = Client::open(&node).await;
    last.subscribe(NEW_BLOCK).await;
    node.stop().await;
    assert_eq!(last.next().await, None);
}

#[tokio::test]
async fn faults_reject_mute_and_close_websockets() {
    let node = start(10, &["comet:ws-refused"]).await;
    let Err(Error::Http(refused)) = Client::try_open(&node).await else { panic!("not refused") };
    assert_eq!(refused.status(), 404);
    node.set_faults(vec!["ws-silent".parse().unwrap()]);
    let mut silent = Client::open(&node).await;
    silent.send("subscribe", json!({ "query": NEW_BLOCK })).await;
    silent.0.send(Message::Ping("anybody".into())).await.unwrap();
    node.show(11).unwrap();
    assert!(silent.is_silent().await);
    node.set_faults(Vec::new());
    let mut client = Client::open(&node).await;
    client.subscribe(NEW_BLOCK).await;
    node.set_faults(vec!["comet:hang-up".parse().unwrap()]);
    node.show(12).unwrap();
    assert_eq!(client.next().await, None);
    assert!(Client::try_open(&node).await.is_err());
}

#[tokio::test]
async fn many_clients_get_announcements_at_once() {
    let node = start(10, &[]).await;
    let mut clients = Vec::new();
    for _ in 0..200 {
        let mut client = Client::open(&node).await;
        client.subscribe(NEW_BLOCK).await;
        clients.push(client);
    }
    node.show(12).unwrap();
    for client in &mut clients {
        assert_eq!((client.height().await, client.height().await), ("11".into(), "12".into()));
    }
}

#[tokio::test]
async fn a_client_that_reads_nothing_delays_no_other() {
    let node = start(100, &[]).await;
    let (mut deaf, mut client) = (Client::open(&node).await, Client::open(&node).await);
    deaf.subscribe(NEW_BLOCK).await;
    client.subscribe(NEW_BLOCK).await;
    node.show(226).unwrap();
    for height in 101..=226_u64 {
        assert_eq!(client.height().await, height.to_string());
    }
    assert_eq!(deaf.height().await, "101");
}

#[tokio::test]
async fn a_request_that_is_no_handshake_is_rejected_and_the_connection_stays_http() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let node = start(10, &[]).await;
    let mut stream = TcpStream::connect(node.comet_url().trim_start_matches("http://")).await.unwrap();
    let upgrade =
        "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 8\r\nsec-websocket-key: x\r\n";
    let both = format!(
        "GET /websocket HTTP/1.1\r\nhost: node\r\n{upgrade}\r\nGET /health HTTP/1.1\r\nhost: node\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(both.as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert!(answers.starts_with("HTTP/1.1 400 "), "{answers}");
    assert!(
        answers.contains("\r\nHTTP/1.1 200 OK\r\n") || answers.contains("Bad Request\nHTTP/1.1 200 OK\r\n"),
        "{answers}"
    );
}
