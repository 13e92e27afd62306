//! The recorded pair of chains: types, transactions of blocks, and simulated ones with their replies.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proto::tx::{Any, Message as _, TxBody, TxRaw};
use serde_json::Value;

/// The types of a chain (`l1` or `l2`).
pub(crate) fn types(chain: &str) -> proto::json::Registry {
    let line = lines(chain, "state.ndjson.zst")
        .find(|line| line.contains(&proto::reflection::PATH[1..]) && line.contains("\"cometbft\""))
        .expect("every recording has the descriptors");
    let line: Value = serde_json::from_str(&line).unwrap();
    let response = ["/answer/result/response/value", "/answer/response/value"];
    let value = response.iter().find_map(|path| line.pointer(path)).unwrap();
    let descriptors = STANDARD.decode(value.as_str().unwrap()).unwrap();
    proto::json::Registry::from_descriptors(&descriptors).unwrap()
}

/// A transaction that a node simulated, and the status of the reply.
pub(crate) struct Simulated {
    pub(crate) status: u64,
    pub(crate) body: TxBody,
    pub(crate) raw: TxRaw,
}

/// All simulated transactions of a chain.
pub(crate) fn simulated(chain: &str) -> Vec<Simulated> {
    let of = |line: String| {
        let line: Value = serde_json::from_str(&line).unwrap();
        let bytes = STANDARD.decode(line["body"]["tx_bytes"].as_str().unwrap()).unwrap();
        let raw = TxRaw::decode(bytes.as_slice()).unwrap();
        let body = TxBody::decode(raw.body_bytes.as_slice()).unwrap();
        Simulated { status: line["status"].as_u64().unwrap(), body, raw }
    };
    lines(chain, "extra.ndjson.zst").filter(|line| line.contains("/tx/v1beta1/simulate")).map(of).collect()
}

/// All messages of all transactions in blocks, including those inside an authz execution, without vote data.
pub(crate) fn messages(chain: &str) -> Vec<Any> {
    let mut found = Vec::new();
    for line in lines(chain, "blocks.ndjson.zst") {
        let line: Value = serde_json::from_str(&line).unwrap();
        for tx in line["block"]["block"]["data"]["txs"].as_array().unwrap() {
            let raw = STANDARD.decode(tx.as_str().unwrap()).unwrap();
            let Ok(raw) = TxRaw::decode(raw.as_slice()) else { continue };
            let Ok(body) = TxBody::decode(raw.body_bytes.as_slice()) else { continue };
            found.extend(body.messages);
        }
    }
    found
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings/l1-l2")
}

fn lines(chain: &str, file: &str) -> impl Iterator<Item = String> {
    let path = folder().join(chain).join(file);
    let file = File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(zstd::Decoder::new(file).unwrap()).lines().map(Result::unwrap)
}
