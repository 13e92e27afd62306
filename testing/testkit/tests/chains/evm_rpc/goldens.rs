//! The recorded replies of a node, byte for byte.

use std::collections::BTreeMap;
use std::io::BufRead as _;

use evm_rpc::methods::METHODS;
use evm_rpc::{Dialect, EvmRpc};
use serde::Deserialize;
use serde_json::value::RawValue;
use web::app::App;

use super::{app, over, text};

/// A recorded call: the line of `rpc-goldens.ndjson.zst` (testing/recordings/README.md).
#[derive(Deserialize)]
pub(super) struct Golden {
    pub(super) set: String,
    #[serde(default)]
    method: String,
    params: Option<Box<RawValue>>,
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) body: String,
    pub(super) http: Option<Exchange>,
    note: Option<String>,
}

/// A recorded HTTP request.
#[derive(Deserialize)]
pub(super) struct Exchange {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Option<String>,
}

pub(super) fn read(name: &str) -> impl Iterator<Item = Golden> + use<> {
    let path = testkit::recording(name).join("rpc-goldens.ndjson.zst");
    let mut decoder = zstd::stream::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    decoder.window_log_max(27).unwrap();
    std::io::BufReader::new(decoder).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

/// Errors of a node about blocks with a log without topics.
const LOG0_ERRORS: [&str; 3] = [
    "failed to get block receipts",
    "failed to get transaction receipt by hash",
    "missing required field 'topics'",
];

impl Golden {
    fn request(&self) -> String {
        let params = self.params.as_ref().map(|params| format!(r#","params":{}"#, params.get()));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"{}}}"#, self.method, params.unwrap_or_default())
    }

    /// Why the reply differs from the node's.
    fn difference(&self) -> Option<&'static str> {
        match self.method.as_str() {
            "web3_clientVersion" => Some("the node gives the version of CometBFT, which is not indexed"),
            _ if self.body.contains("method handler crashed") => Some("the node crashes on this index"),
            _ if LOG0_ERRORS.iter().any(|error| self.body.contains(error)) => {
                Some("the node can never read the receipts of the block again, which follow from its results")
            }
            "eth_getLogs" if self.set == "log0" && self.request().contains(r#""fromBlock":"0x1""#) => {
                Some("the recording begins later, and what was before it is refused and not left out")
            }
            method if method.ends_with("AndIndex") => {
                let params = self.params.as_ref().map_or("", |params| params.get());
                let is_cached = self.set == "places"
                    || params.contains("0X14")
                    || params.contains("0x6FD49C7F")
                    || self.note.as_ref().is_some_and(|note| note.starts_with("after"));
                is_cached.then_some(
                    "a node that has the block in its cache counts places from 0, not as it prints them",
                )
            }
            _ => None,
        }
    }
}

/// Compares the replies of a node about the chain `name` with those of its index; the number of equal ones by set and method.
async fn compared(name: &str, app: &App<EvmRpc>) -> BTreeMap<String, usize> {
    let (mut compared, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for golden in read(name) {
        let is_known = METHODS.iter().any(|method| method.name == golden.method && !method.is_forwarded());
        let is_of_this_node = !matches!(golden.set.as_str(), "live" | "backfilled" | "envelope");
        if !is_known || !is_of_this_node || golden.difference().is_some() {
            continue;
        }
        let reply = text(app, &golden.request()).await;
        *compared.entry(format!("{} {}", golden.set, golden.method)).or_default() += 1;
        if reply != golden.body {
            let at = reply.bytes().zip(golden.body.bytes()).take_while(|(one, other)| one == other).count();
            let around = |text: &str| text.chars().skip(at.saturating_sub(60)).take(160).collect::<String>();
            let request: String = golden.request().chars().skip(24).take(160).collect();
            let (node, here) = (around(&golden.body), around(&reply));
            wrong.push(format!("{} {request}\n  node {node}\n  here {here}", golden.set));
        }
    }
    let count = wrong.len();
    wrong.truncate(30);
    assert!(wrong.is_empty(), "{count} differ:\n{}", wrong.join("\n"));
    compared
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_reproduced_byte_for_byte() {
    let compared = compared("evm-fees", &app(Dialect::Node).await).await;
    assert!(compared.values().sum::<usize>() > 10_000);
}

/// Also of a block whose receipts the node can never read again: they are derived from its results.
#[tokio::test(flavor = "multi_thread")]
async fn the_recorded_replies_about_a_log_without_topics_are_reproduced() {
    let (_, indexer) = crate::evm_reads::index("evm-log0").await;
    let compared = compared("evm-log0", &over(indexer, Dialect::Node).app().unwrap()).await;
    assert!(
        compared["log0 eth_getTransactionByHash"] == 1 && compared["txs eth_getTransactionByHash"] == 6,
        "{compared:?}"
    );
}
