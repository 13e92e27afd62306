//! The recorded replies of a node, byte for byte.

use std::collections::BTreeMap;
use std::io::BufRead as _;

use evm_rpc::Dialect;
use evm_rpc::methods::METHODS;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{app, text};

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

pub(super) fn read() -> impl Iterator<Item = Golden> {
    let path = testkit::recording("evm-fees").join("rpc-goldens.ndjson.zst");
    let mut decoder = zstd::stream::Decoder::new(std::fs::File::open(path).unwrap()).unwrap();
    decoder.window_log_max(27).unwrap();
    std::io::BufReader::new(decoder).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
}

impl Golden {
    fn request(&self) -> String {
        let params = self.params.as_ref().map(|params| format!(r#","params":{}"#, params.get()));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"{}}}"#, self.method, params.unwrap_or_default())
    }

    /// Why the reply differs from the node's.
    fn difference(&self) -> Option<&'static str> {
        let params = self.params.as_ref().map_or("", |params| params.get());
        match self.method.as_str() {
            "web3_clientVersion" => Some("the node gives the version of CometBFT, which is not indexed"),
            _ if self.body.contains("method handler crashed") => Some("the node crashes on this index"),
            // A node that has the block in its cache counts these places from 0, otherwise from 1, as receipts do.
            method if method.starts_with("eth_get") && method.ends_with("AndIndex") && self.set != "unknown" => {
                let by_cache = self.note.as_deref().is_some_and(|note| note.contains("again"));
                (by_cache || self.set == "places" || self.set == "tags").then_some("the node counts from 0 here")
            }
            _ if params.is_empty() => None,
            _ => None,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_reproduced_byte_for_byte() {
    let app = app(Dialect::Node).await;
    let (mut compared, mut wrong) = (BTreeMap::<String, usize>::new(), Vec::new());
    for golden in read() {
        let is_known = METHODS.iter().any(|method| method.name == golden.method && !method.is_forwarded());
        let is_of_this_node = !matches!(golden.set.as_str(), "live" | "backfilled" | "envelope");
        if !is_known || !is_of_this_node || golden.difference().is_some() {
            continue;
        }
        let reply = text(&app, &golden.request()).await;
        *compared.entry(format!("{} {}", golden.set, golden.method)).or_default() += 1;
        if reply != golden.body {
            wrong.push(format!(
                "{} {}\n  node {}\n  here {}",
                golden.set,
                golden.request(),
                &golden.body[..golden.body.len().min(400)].trim_end(),
                &reply[..reply.len().min(400)].trim_end()
            ));
        }
    }
    println!("{compared:#?}");
    let count = wrong.len();
    wrong.truncate(60);
    assert!(wrong.is_empty(), "{count} differ:\n{}", wrong.join("\n"));
    assert!(compared.values().sum::<usize>() > 10_000);
}
