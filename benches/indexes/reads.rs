//! Latency of reads of the indexes over a socket, one request at a time.

use std::net::TcpListener;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::client::{Client, get};
use benches::pick::Pick;
use benches::report::table;
use evm_rpc::{Dialect, EvmRpc};
use serde_json::{Value, json};
use store::{RocksStore, Store};
use testkit::indexed;
use web::app::App;
use web::limits::Limits;
use web::serve::server::Server;

/// Distinct requests of a case.
const REQUESTS: usize = 300;

/// Logs that a filter of the first case has.
const FEW: std::ops::RangeInclusive<usize> = 10..=30;

/// Prints the latencies.
pub(crate) fn print(store: &Arc<RocksStore>) -> Result<()> {
    let indexer = indexed::indexer(Arc::clone(store) as Arc<dyn Store>)?;
    let app = Arc::new(App::new(indexer, query::ENDPOINTS)?);
    let index = Arc::new(OnceLock::from(Arc::clone(&app)));
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "bench").app()?;
    let listen = || TcpListener::bind("127.0.0.1:0");
    let api = Server::start(listen()?, app, Limits::default(), 2)?;
    let rpc = Server::start(listen()?, Arc::new(rpc), EvmRpc::limits(Limits::default()), 2)?;
    let mut rows = Vec::new();
    let mut client = Client::connect(rpc.address())?;
    let drawn = Drawn::take(&mut client)?;
    rows.push(measure(&mut client, "eth_getLogs, whole chain, 10 to 30 logs", &drawn.few)?);
    rows.push(measure(&mut client, "eth_getLogs, up to 10,000 logs", &drawn.many)?);
    let mut client = Client::connect(api.address())?;
    for (case, path) in [
        (
            "account's balance of a token at a height",
            "ledger/v1/balances/by_account/{account}?height={height}&token={token}",
        ),
        ("account's balances at a height", "ledger/v1/balances/by_account/{account}?height={height}"),
        ("account's transfers, 100", "ledger/v1/transfers/by_account/{account}?pagination.limit=100"),
        ("account's transactions, 100", "tx/v1/txs/by_account/{account}?pagination.limit=100"),
    ] {
        let target = |Party { account, token, height }: &Party| {
            let path = path.replace("{account}", account).replace("{token}", token);
            get(&format!("/indexer/{}", path.replace("{height}", &height.to_string())))
        };
        let requests: Vec<_> = drawn.parties.iter().map(target).collect();
        rows.push(measure(&mut client, case, &requests)?);
    }
    table(&["request", "requests", "p50 ms", "p99 ms", "most ms", "kB"], &rows);
    api.stop();
    rpc.stop();
    Ok(())
}

fn measure(client: &mut Client, case: &str, requests: &[Vec<u8>]) -> Result<Vec<String>> {
    let (mut waits, mut bytes) = (Vec::new(), 0);
    for request in requests {
        let sent = Instant::now();
        bytes += client.ask(request).context(case.to_owned())?.len();
        waits.push(sent.elapsed());
    }
    waits.sort_unstable();
    let at = |percent: usize| {
        let wait: Option<&Duration> = waits.get(waits.len().saturating_sub(1) * percent / 100);
        format!("{:.2}", wait.map_or(f64::NAN, |wait| wait.as_secs_f64() * 1e3))
    };
    let kilobytes = bytes / requests.len().max(1) / 1_000;
    Ok(vec![case.to_owned(), requests.len().to_string(), at(50), at(99), at(100), kilobytes.to_string()])
}

/// Requests for what the chain has at places that are drawn.
struct Drawn {
    few: Vec<Vec<u8>>,
    many: Vec<Vec<u8>>,
    parties: Vec<Party>,
}

/// An account in a log, with the contract and the height of the log.
struct Party {
    account: String,
    token: String,
    height: u64,
}

impl Drawn {
    fn take(client: &mut Client) -> Result<Self> {
        let head = call(client, "eth_blockNumber", &json!([]))?;
        let head = u64::from_str_radix(head.as_str().unwrap_or_default().trim_start_matches("0x"), 16)?;
        let mut pick = Pick::seeded(7);
        let mut drawn = Self { few: Vec::new(), many: Vec::new(), parties: Vec::new() };
        for _ in 0..20 * REQUESTS {
            if drawn.few.len() == REQUESTS {
                break;
            }
            let at = 1 + pick.below(head);
            let logs = logs(client, &json!({ "fromBlock": hex(at), "toBlock": hex(at) }))?;
            let log = logs.get(usize::try_from(pick.below(logs.len() as u64))?);
            let Some((topics, token)) =
                log.and_then(|log| log["topics"].as_array().zip(log["address"].as_str()))
            else {
                continue;
            };
            let Some(party) = topics.get(2).and_then(Value::as_str) else { continue };
            let account = format!("0x{}", party.get(26..).unwrap_or_default());
            // A log about an NFT has a topic more, and NFTs have no balances.
            if topics.len() == 3 {
                drawn.parties.push(Party { account, token: token.to_owned(), height: at });
            }
            let filter =
                json!({ "fromBlock": "0x1", "toBlock": "latest", "topics": [topics[0], null, party] });
            let found = self::logs(client, &filter).map_or(0, |logs| logs.len());
            if FEW.contains(&found) {
                drawn.few.push(request("eth_getLogs", &json!([filter])));
            }
        }
        ensure!(!drawn.few.is_empty(), "no filter with {FEW:?} logs was drawn");
        for _ in 0..REQUESTS / 10 {
            let from = 1 + pick.below(head / 2);
            // The whole rest is too much, and the error names the range that is not.
            let params = json!([{ "fromBlock": hex(from), "toBlock": hex(head) }]);
            let reply: Value = serde_json::from_slice(client.ask(&request("eth_getLogs", &params))?)?;
            let range =
                reply["error"]["data"].as_str().and_then(|text| text.split_once('[')?.1.split_once(']'));
            let to = range.and_then(|(range, _)| range.split_once(", ")).context("no range in the error")?.1;
            let filter = json!({ "fromBlock": hex(from), "toBlock": to });
            drawn.many.push(request("eth_getLogs", &json!([filter])));
        }
        drawn.parties.truncate(REQUESTS);
        Ok(drawn)
    }
}

fn hex(number: u64) -> String {
    format!("{number:#x}")
}

fn logs(client: &mut Client, filter: &Value) -> Result<Vec<Value>> {
    let logs = call(client, "eth_getLogs", &json!([filter]))?;
    logs.as_array().cloned().context("no list of logs")
}

fn call(client: &mut Client, method: &str, params: &Value) -> Result<Value> {
    let mut reply: Value = serde_json::from_slice(client.ask(&request(method, params))?)?;
    ensure!(reply["error"].is_null(), "{method}{params}: {}", reply["error"]);
    Ok(reply["result"].take())
}

fn request(method: &str, params: &Value) -> Vec<u8> {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let head = "POST / HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json";
    format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}
