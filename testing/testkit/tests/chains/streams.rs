//! Event streams over sockets while a recorded chain is indexed and then replaced by another history: clients that
//! disconnect and resume end with the rows of the JSON lists.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ingest::Config;
use replay::{Addresses, Options, Recording, ReplayNode};
use serde_json::Value;
use store::{MemStore, Store};
use testkit::live::Live;
use testkit::{indexed, recording};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::timeout;
use web::app::App;
use web::limits::Limits;
use web::serve::server::Server;

/// Far longer than the chain takes.
const PATIENCE: Duration = Duration::from_mins(3);

/// Events of a connection.
const EVENTS: usize = 7;

/// Streams, each with its list and the member that has the rows.
const STREAMS: [(&str, &str, &str); 6] = [
    ("/indexer/stream/v1/blocks", "/indexer/block/v1/blocks?", "blocks"),
    ("/indexer/stream/v1/txs", "/indexer/tx/v1/txs?", "txs"),
    (
        "/indexer/stream/v1/txs?msgs=minievm.evm.v1.MsgCall",
        "/indexer/tx/v1/txs?msgs=minievm.evm.v1.MsgCall&",
        "txs",
    ),
    ("/indexer/stream/v1/evm-txs", "/indexer/tx/v1/evm-txs?", "txs"),
    ("/indexer/stream/v1/transfers?include_fees=true", "/indexer/ledger/v1/transfers?", "transfers"),
    (
        "/indexer/stream/v1/transfers?account=init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw&direction=out,in&kind=transfer&token=0x042add9e80f7a23ab71d5e1d392af1d3928b7d05",
        "/indexer/ledger/v1/transfers/by_account/init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw?direction=out,in&kind=transfer&\
         token=GAS&",
        "transfers",
    ),
];

static LEDGER: schema::index::Index = schema::ledger::LEDGER;

/// The height of a block or transaction.
fn height(row: &Value) -> u64 {
    match (row["height"].as_str(), row["blockNumber"].as_str()) {
        (Some(decimal), _) => decimal.parse().unwrap(),
        (None, Some(hex)) => u64::from_str_radix(hex.strip_prefix("0x").unwrap(), 16).unwrap(),
        (None, None) => panic!("{row}"),
    }
}

/// The rows of a stream, as a client has them when it receives the last row of `expected`, and the number of reorgs.
/// Leaves the connection after some events and resumes. The barrier is passed at the first event.
async fn follow(at: SocketAddr, target: &str, expected: &[Value], started: &Barrier) -> (Vec<Value>, usize) {
    let (mut rows, mut n_reorgs, mut id) = (Vec::new(), 0, None);
    loop {
        let mut socket = TcpStream::connect(at).await.unwrap();
        let resume = id.as_ref().map(|id: &String| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        socket.write_all(format!("GET {target} HTTP/1.0\r\n{resume}\r\n").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(socket).lines();
        let (mut name, mut last_id, mut n_events) = (String::new(), String::new(), 0);
        let mut other: Vec<String> = Vec::new();
        while n_events < EVENTS {
            let line = lines.next_line().await.unwrap();
            let line = line.unwrap_or_else(|| panic!("{target}: {other:?}"));
            match line.split_once(": ") {
                Some(("id", text)) => text.clone_into(&mut last_id),
                Some(("event", text)) => text.clone_into(&mut name),
                Some(("data", text)) => {
                    n_events += 1;
                    let data: Value = serde_json::from_str(text).unwrap();
                    match name.as_str() {
                        "start" => {
                            started.wait().await;
                        }
                        "reorg" => {
                            n_reorgs += 1;
                            rows.retain(|row| height(row) <= height(&data));
                        }
                        "block" | "tx" | "evm_tx" => rows.push(data),
                        "transfer" => rows.push(without_denom(data)),
                        name => panic!("{target}: {name} {data}"),
                    }
                    if rows.last() == expected.last() {
                        return (rows, n_reorgs);
                    }
                }
                _ => other.push(line),
            }
        }
        id = Some(last_id);
    }
}

/// The denom of a contract of genesis is known from the first transfer by the bank on.
fn without_denom(mut row: Value) -> Value {
    // Indexing would add a member to rows without one.
    if let Some(token) = row.get_mut("token").and_then(Value::as_object_mut) {
        token.remove("denom");
    }
    row
}

/// The rows of a list above height `from`, oldest first.
fn listed(app: &App<query::Indexer>, list: &str, member: &str, from: u64) -> Vec<Value> {
    let body = app.get(&format!("{list}pagination.limit=1000&pagination.reverse=false"));
    let body: Value = serde_json::from_slice(body.body()).unwrap();
    let rows = body[member].as_array().unwrap().iter();
    // No stream has movements of nothing.
    rows.filter(|row| height(row) > from && row["amount"] != "0").cloned().map(without_denom).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn clients_of_a_chain_that_is_replaced_end_with_the_rows_of_its_lists() {
    const FIRST: u64 = 3;
    let chain = Arc::new(Recording::open(&recording("evm-scenario")).unwrap());
    let other = Arc::new(chain.forked(120, 3).unwrap());
    let reference: Arc<dyn Store> = Arc::new(MemStore::new());
    let options = Options { up_to: Some(200), ..Options::default() };
    let with_ledger =
        |recording: &Recording| Config { indexes: vec![&LEDGER], ..indexed::config(recording).unwrap() };
    indexed::index_as(with_ledger(&other), Arc::clone(&other), options, Arc::clone(&reference))
        .await
        .unwrap();
    let reference = App::new(indexed::indexer(reference).unwrap(), query::ENDPOINTS).unwrap();
    let expected = STREAMS.map(|(_, list, member)| listed(&reference, list, member, FIRST));

    let options = Options { up_to: Some(FIRST), ..Options::default() };
    let played = ReplayNode::start(Arc::clone(&chain), Addresses::default(), options).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let node = Arc::new(indexed::clients(&played).unwrap());
    let config = with_ledger(&chain);
    let mut live = Live::start(node, config, Arc::clone(&store)).await.unwrap();
    live.reach(&chain, FIRST).await.unwrap();
    let app = Arc::new(App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = Server::start(listener, app, Limits::default(), 2).unwrap();
    let at = server.address();
    let started = Barrier::new(STREAMS.len() + 1);
    let index = async {
        started.wait().await;
        played.switch(Arc::clone(&chain), 150).unwrap();
        live.reach(&chain, 150).await.unwrap();
        played.switch(Arc::clone(&other), 200).unwrap();
        live.reach(&other, 200).await.unwrap();
    };
    let clients =
        STREAMS.iter().zip(&expected).map(|((target, ..), rows)| follow(at, target, rows, &started));
    let all = async { tokio::join!(join_all(clients), index) };
    let (clients, ()) = timeout(PATIENCE, all).await.unwrap();
    for (n, (rows, n_reorgs)) in clients.into_iter().enumerate() {
        let least = if STREAMS[n].0.contains("account=") { 4 } else { 20 };
        assert!(expected[n].len() > least, "{}", STREAMS[n].0);
        assert_eq!(rows, expected[n], "{}", STREAMS[n].0);
        assert!(n_reorgs > 0, "{}", STREAMS[n].0);
    }
    live.stop().await.unwrap();
    drop(server);
}
