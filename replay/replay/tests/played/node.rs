//! The replay node over real sockets: the three services, the shown height, the faults.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use replay::{Addresses, Call, Error, Options, Pace, Recording, ReplayNode};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

static EVM: LazyLock<Arc<Recording>> = LazyLock::new(|| {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/evm-scenario");
    Arc::new(Recording::open(&dir).unwrap())
});

const RECEIPTS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"eth_getBlockReceipts","params":["0x2"]}"#;

/// The whole reply from the wire; empty if the connection was closed without one.
async fn exchange(url: &str, method: &str, path: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(url.trim_start_matches("http://")).await.unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: node\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A truncated reply may also end in a reset; the bytes before it are kept.
    if let Err(e) = stream.read_to_end(&mut answer).await {
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset);
    }
    String::from_utf8(answer).unwrap()
}

async fn get(url: &str, path: &str) -> String {
    exchange(url, "GET", path, "").await
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or("closed")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").unwrap().1
}

fn json(answer: &str) -> Value {
    serde_json::from_str(body(answer)).unwrap()
}

async fn start(options: Options) -> ReplayNode {
    ReplayNode::start(Arc::clone(&EVM), Addresses::default(), options).await.unwrap()
}

async fn with_faults(faults: &[&str], seed: u64) -> ReplayNode {
    let faults = faults.iter().map(|text| text.parse().unwrap()).collect();
    start(Options { faults, seed, ..Options::default() }).await
}

async fn tip(node: &ReplayNode) -> Value {
    json(&get(&node.comet_url(), "/status").await)["result"]["sync_info"]["latest_block_height"].clone()
}

#[tokio::test]
async fn the_three_services_answer_on_their_own_sockets_and_count_calls() {
    let node = start(Options::default()).await;
    let block = get(&node.comet_url(), "/block?height=2").await;
    assert!(block.to_ascii_lowercase().contains("content-type: application/json\r\n"), "{block}");
    assert_eq!(json(&block)["result"]["block"]["header"]["height"], "2");
    let latest = get(&node.rest_url(), "/cosmos/base/tendermint/v1beta1/blocks/latest").await;
    assert_eq!(json(&latest)["block"]["header"]["height"], "226");
    let receipts = json(&exchange(&node.json_rpc_url(), "POST", "/", RECEIPTS).await);
    assert_eq!(receipts["result"].as_array().unwrap().len(), 1);
    let not_allowed = get(&node.json_rpc_url(), "/").await;
    assert_eq!(status(&not_allowed), "405");
    assert!(not_allowed.to_ascii_lowercase().contains("\r\nallow: post\r\n"), "{not_allowed}");
    assert_eq!(
        (
            node.call_count(Call::Block),
            node.call_count(Call::RestBlock),
            node.call_count(Call::EthBlockReceipts)
        ),
        (1, 1, 1)
    );
    assert_eq!((node.missing().count, node.faulted()), (0, 0));
    let missing = get(&node.rest_url(), "/nothing").await;
    assert_eq!(status(&missing), "501");
    assert_eq!(node.missing().questions, ["GET /nothing "]);
    node.stop().await;
}

#[tokio::test]
async fn the_executor_of_a_bridge_answers_in_json_and_fails_in_text() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/l1-l2/l2");
    let recording = Arc::new(Recording::open(&dir).unwrap());
    let node = ReplayNode::start(recording, Addresses::default(), Options::default()).await.unwrap();
    let url = node.executor_url().unwrap();
    let seen = get(&url, "/withdrawal/8").await.to_ascii_lowercase();
    assert!(seen.contains("content-type: application/json\r\n"), "{seen}");
    let unseen = get(&url, "/withdrawal/999").await;
    assert_eq!((status(&unseen), body(&unseen)), ("500", "failed to query withdrawal"));
    assert!(unseen.to_ascii_lowercase().contains("content-type: text/plain"), "{unseen}");
    assert_eq!((node.call_count(Call::Executor), node.missing().count), (2, 0));
    assert_eq!(start(Options::default()).await.executor_url(), None);
}

#[tokio::test]
async fn a_stopped_node_no_longer_listens() {
    let node = start(Options::default()).await;
    let urls = [node.comet_url(), node.rest_url(), node.json_rpc_url()];
    node.stop().await;
    for url in urls {
        assert!(TcpStream::connect(url.trim_start_matches("http://")).await.is_err(), "{url}");
    }
}

#[tokio::test]
async fn heights_are_withheld_until_they_are_shown() {
    let node = start(Options { up_to: Some(10), ..Options::default() }).await;
    assert_eq!(tip(&node).await, "10");
    assert_eq!(status(&get(&node.comet_url(), "/block?height=11").await), "500");
    node.show(11).unwrap();
    assert_eq!(tip(&node).await, "11");
    assert_eq!(status(&get(&node.comet_url(), "/block?height=11").await), "200");
    node.show(3).unwrap();
    assert_eq!(node.shown(), 3);
    assert!(matches!(node.show(227), Err(Error::NoSuchHeight { height: 227, first: 1, last: 226 })));
    let options = Options { up_to: Some(0), ..Options::default() };
    let refused = ReplayNode::start(Arc::clone(&EVM), Addresses::default(), options).await.unwrap_err();
    assert_eq!(refused.to_string(), "height 0 is not in the recording: it has 1 to 226");
}

#[tokio::test]
async fn the_chain_grows_by_one_height_each_time_and_never_beyond_its_end() {
    let every = Duration::from_millis(2);
    let node = start(Options { block_every: Some(every), ..Options::default() }).await;
    let begin = Instant::now();
    let mut shown = node.watch();
    let mut before = *shown.borrow_and_update();
    while before < 226 {
        shown.changed().await.unwrap();
        let now = *shown.borrow_and_update();
        assert!(before < now && now <= 226, "{before} {now}");
        before = now;
    }
    // Delayed ticks are not caught up, so the duration is at least that of the blocks.
    assert!(begin.elapsed() >= every * 200, "{:?}", begin.elapsed());
    let more = timeout(every * 10, shown.changed()).await;
    assert!(more.is_err(), "grew beyond the end");
    assert_eq!(tip(&node).await, "226");
}

#[tokio::test]
async fn a_chain_that_grows_begins_at_the_given_height() {
    let block_every = Some(Duration::ZERO);
    let node = start(Options { up_to: Some(224), block_every, ..Options::default() }).await;
    let mut shown = node.watch();
    assert_eq!(node.shown(), 224);
    assert_eq!(*shown.wait_for(|height| *height == 226).await.unwrap(), 226);
}

#[tokio::test]
async fn an_address_in_use_is_named() {
    let first = start(Options::default()).await;
    let taken: std::net::SocketAddr = first.rest_url().trim_start_matches("http://").parse().unwrap();
    let addresses = Addresses { rest: taken, ..Addresses::default() };
    let message =
        ReplayNode::start(Arc::clone(&EVM), addresses, Options::default()).await.unwrap_err().to_string();
    assert!(message.contains(&format!("rest cannot listen on {taken}")), "{message}");
}

#[tokio::test]
async fn error_statuses_truncated_answers_and_hang_ups_reach_the_client() {
    let node = with_faults(&["comet:429=7s", "rest:cut", "json-rpc:hang-up"], 1).await;
    let busy = get(&node.comet_url(), "/status").await;
    assert_eq!(status(&busy), "429");
    assert!(busy.to_ascii_lowercase().contains("\r\nretry-after: 7\r\n"), "{busy}");
    let cut = get(&node.rest_url(), "/cosmos/auth/v1beta1/bech32").await;
    let whole = EVM.state().rest("GET", "/cosmos/auth/v1beta1/bech32", None, None).unwrap().body.clone();
    assert!(cut.to_ascii_lowercase().contains(&format!("\r\ncontent-length: {}\r\n", whole.len())), "{cut}");
    assert_eq!(body(&cut).as_bytes(), &whole[..whole.len() / 2]);
    assert_eq!(exchange(&node.json_rpc_url(), "POST", "/", RECEIPTS).await, "");
    assert_eq!(node.faulted(), 3);
    assert_eq!(node.call_count(Call::Status), 0);
}

#[tokio::test]
async fn a_request_body_beyond_the_bound_is_413() {
    let node = start(Options::default()).await;
    let answer = exchange(&node.json_rpc_url(), "POST", "/", &"x".repeat((5 << 20) + 1)).await;
    assert_eq!(status(&answer), "413");
    assert_eq!(node.call_count(Call::EthOther), 0);
}

#[tokio::test]
async fn lagging_and_stale_answers_reach_the_client() {
    let node = with_faults(&["json-rpc:null-receipts", "comet:stale=6", "comet:no-results"], 1).await;
    assert_eq!(tip(&node).await, "220");
    assert_eq!(status(&get(&node.comet_url(), "/block?height=221").await), "500");
    let results = get(&node.comet_url(), "/block_results?height=220").await;
    assert_eq!(json(&results)["error"]["data"], "could not find results for height #220");
    let receipts = json(&exchange(&node.json_rpc_url(), "POST", "/", RECEIPTS).await);
    assert!(receipts.as_object().unwrap().contains_key("result") && receipts["result"].is_null());
    let rest = get(&node.rest_url(), "/cosmos/base/tendermint/v1beta1/blocks/latest").await;
    assert_eq!(json(&rest)["block"]["header"]["height"], "226");
}

#[tokio::test]
async fn a_delayed_answer_is_late_and_complete() {
    let node = with_faults(&["delay=150ms", "delay=150ms"], 1).await;
    let begin = Instant::now();
    let answer = get(&node.comet_url(), "/health").await;
    assert_eq!(json(&answer)["result"], serde_json::json!({}));
    assert!(begin.elapsed() >= Duration::from_millis(300), "{:?}", begin.elapsed());
}

#[tokio::test]
async fn a_delayed_request_is_never_answered_when_the_node_goes_down() {
    let node = with_faults(&["comet:delay=500ms"], 1).await;
    let down = async {
        while node.faulted() == 0 {
            tokio::task::yield_now().await;
        }
        node.down();
    };
    let url = node.comet_url();
    let (answer, ()) = tokio::join!(get(&url, "/health"), down);
    assert_eq!(answer, "");
    node.up();
    assert_eq!(status(&get(&url, "/health").await), "200");
}

#[tokio::test]
async fn the_same_seed_hits_the_same_requests() {
    let mut runs = Vec::new();
    for seed in [5, 5, 6] {
        let node = with_faults(&["500@0.3", "hang-up@0.1"], seed).await;
        let mut statuses = Vec::new();
        for _ in 0..60 {
            statuses.push(status(&get(&node.comet_url(), "/health").await).to_owned());
        }
        runs.push((statuses, node.faulted()));
    }
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
    for kind in ["200", "500", "closed"] {
        assert!(runs[0].0.iter().any(|status| status == kind), "{kind}: {:?}", runs[0].0);
    }
}

fn fork(at: u64) -> Arc<Recording> {
    Arc::new(EVM.forked(at, 7).unwrap())
}

/// The recorded hash of a height.
fn hash_at(recording: &Recording, height: u64) -> Value {
    serde_json::from_slice::<Value>(&recording.height(height).unwrap().block).unwrap()["block_id"]["hash"]
        .clone()
}

/// Height and hash of a block over the wire; of the tip if no height is given.
async fn block(node: &ReplayNode, height: &str) -> (Value, Value) {
    let block = json(&get(&node.comet_url(), &format!("/block?height={height}")).await)["result"].take();
    (block["block"]["header"]["height"].clone(), block["block_id"]["hash"].clone())
}

#[tokio::test]
async fn a_switch_shows_another_history_from_one_request_to_the_next() {
    let node = start(Options { up_to: Some(150), ..Options::default() }).await;
    let (fork, mut shown) = (fork(100), node.watch());
    assert_eq!(block(&node, "120").await.1, hash_at(&EVM, 120));
    node.switch(Arc::clone(&fork), 130).unwrap();
    assert_eq!(*shown.borrow_and_update(), 130);
    assert_eq!(tip(&node).await, "130");
    assert_eq!(block(&node, "120").await.1, hash_at(&fork, 120));
    assert_ne!(hash_at(&fork, 120), hash_at(&EVM, 120));
    assert_eq!(block(&node, "100").await.1, hash_at(&EVM, 100));
    assert!(Arc::ptr_eq(&node.playing(), &fork) && Arc::ptr_eq(node.recording(), &EVM));
    let refused = node.switch(Arc::clone(&EVM), 227).unwrap_err();
    assert!(matches!(refused, Error::NoSuchHeight { height: 227, .. }));
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/l1-l2/l2");
    let refused = node.switch(Arc::new(Recording::open(&dir).unwrap()), 10).unwrap_err().to_string();
    assert!(refused.contains("the service executor"), "{refused}");
    assert!(Arc::ptr_eq(&node.playing(), &fork) && node.shown() == 130);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_request_mixes_two_histories() {
    let node = Arc::new(start(Options { up_to: Some(150), ..Options::default() }).await);
    let fork = fork(100);
    let whole = [(150, hash_at(&EVM, 150)), (130, hash_at(&fork, 130))]
        .map(|(h, hash)| (Value::from(h.to_string()), hash));
    let switching = Arc::clone(&node);
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let switcher = tokio::spawn(async move {
        while stopped.try_recv().is_err() {
            switching.switch(Arc::clone(&fork), 130).unwrap();
            tokio::task::yield_now().await;
            switching.switch(Arc::clone(&EVM), 150).unwrap();
            tokio::task::yield_now().await;
        }
    });
    for _ in 0..200 {
        let tip = block(&node, "").await;
        assert!(whole.contains(&tip), "{tip:?}");
    }
    stop.send(()).unwrap();
    switcher.await.unwrap();
}

#[tokio::test]
async fn a_chain_that_has_grown_to_its_end_grows_on_after_a_switch() {
    let node =
        start(Options { up_to: Some(226), block_every: Some(Duration::ZERO), ..Options::default() }).await;
    let mut shown = node.watch();
    node.switch(fork(200), 220).unwrap();
    // The next height is 220 or, if the chain has grown already, higher.
    shown.changed().await.unwrap();
    assert_eq!(*shown.wait_for(|height| *height == 226).await.unwrap(), 226);
}

#[tokio::test]
async fn faults_begin_and_end_while_the_node_runs() {
    let node = start(Options::default()).await;
    let ask = async || status(&get(&node.comet_url(), "/health").await).to_owned();
    assert_eq!(ask().await, "200");
    node.set_faults(vec!["comet:503".parse().unwrap()]);
    assert_eq!(ask().await, "503");
    node.set_faults(Vec::new());
    assert_eq!((ask().await.as_str(), node.faulted()), ("200", 1));
}

#[tokio::test]
async fn false_and_missing_answers_reach_the_client() {
    let node =
        with_faults(&["comet:lie-header-rehashed", "rest:wrong-chain", "json-rpc:pruned-receipts=3"], 1)
            .await;
    assert_ne!(block(&node, "2").await.1, hash_at(&EVM, 2));
    let info = json(&get(&node.rest_url(), "/cosmos/base/tendermint/v1beta1/node_info").await);
    assert_eq!(info["default_node_info"]["network"], "not-e2e-evm-1");
    let receipts = json(&exchange(&node.json_rpc_url(), "POST", "/", RECEIPTS).await);
    assert_eq!(receipts["result"], serde_json::json!([]));
    assert_eq!(node.faulted(), 3);
}

#[tokio::test]
async fn the_state_of_a_new_height_lags_for_a_while_regardless_of_later_heights() {
    // The number of the block in which the call runs.
    let ask = async |node: &ReplayNode, block: &str| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{{"data":"0x4360005260206000f3"}},"{block}"]}}"#
        );
        let answer = exchange(&node.json_rpc_url(), "POST", "/", &body).await;
        json(&answer)["result"].as_str().unwrap().to_owned()
    };
    let sound = start(Options::default()).await;
    let (tenth, eleventh, twelfth) =
        (ask(&sound, "0xa").await, ask(&sound, "0xb").await, ask(&sound, "0xc").await);
    assert!(tenth != eleventh && eleventh != twelfth, "{tenth} {eleventh} {twelfth}");

    let faults = vec!["state-lag=60s".parse().unwrap()];
    let node = start(Options { up_to: Some(10), faults, seed: 1, ..Options::default() }).await;
    // Heights shown before the start of the node do not lag.
    assert_eq!((ask(&node, "latest").await, node.lagged()), (tenth.clone(), 0));
    node.show(11).unwrap();
    assert_eq!(ask(&node, "latest").await, tenth);
    node.show(12).unwrap();
    let number = r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;
    let number = exchange(&node.json_rpc_url(), "POST", "/", number).await;
    assert_eq!(json(&number)["result"], "0xc");
    assert_eq!((ask(&node, "0xa").await, ask(&node, "0xb").await), (tenth.clone(), tenth));
    assert_eq!((ask(&node, "0xc").await, ask(&node, "latest").await), (eleventh.clone(), eleventh.clone()));
    assert_eq!(node.lagged(), 4);

    // The lag ends without a change of the faults.
    node.set_faults(vec!["state-lag=20ms".parse().unwrap()]);
    while ask(&node, "latest").await != twelfth {}
    assert_eq!(ask(&node, "0xb").await, eleventh);
}

#[tokio::test]
async fn a_paced_node_takes_its_time_and_answers_the_same() {
    let pace = Pace { call: Duration::from_millis(40), ..Pace::default() };
    let (paced, free) =
        (start(Options { pace, ..Options::default() }).await, start(Options::default()).await);
    let call = r#"{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[{"to":"0x042add9e80f7a23ab71d5e1d392af1d3928b7d05","data":"0x06fdde03"},"0xe2"]}"#;
    let batch = format!("[{call},{call},{call}]");
    let begun = Instant::now();
    let (one, two) = (paced.json_rpc_url(), paced.json_rpc_url());
    let (one, two) = tokio::join!(exchange(&one, "POST", "/", &batch), exchange(&two, "POST", "/", &batch));
    // Six calls, one at a time.
    assert!(begun.elapsed() >= Duration::from_millis(240), "{:?}", begun.elapsed());
    // Only the headers contain the time.
    assert_eq!(body(&one), body(&two));
    assert_eq!(body(&one), body(&exchange(&free.json_rpc_url(), "POST", "/", &batch).await));
    assert!(body(&one).contains("474153"), "{one}");
}
