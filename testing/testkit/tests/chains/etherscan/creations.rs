//! The creations of contracts, compared with the events of the chain: also of those that Ethereum's interface never shows.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

use super::naive::{lines, text};
use super::{opened, result};

/// A creation: the height, the hash of the Cosmos transaction, and whether it logged.
struct Created {
    height: u64,
    cosmos: String,
    has_logs: bool,
}

/// The creations of each contract, oldest first.
fn creations(name: &str) -> BTreeMap<String, Vec<Created>> {
    let mut found = BTreeMap::<String, Vec<Created>>::new();
    for line in lines(name, "blocks.ndjson.zst") {
        let member = |outer: &str, inner: &str| {
            let outer = &line[outer];
            if outer["result"].is_object() { outer["result"][inner].clone() } else { outer[inner].clone() }
        };
        let (block, results) = (member("block", "block"), member("block_results", "txs_results"));
        let txs = block["data"]["txs"].as_array().cloned().unwrap_or_default();
        for (tx, result) in txs.iter().zip(results.as_array().into_iter().flatten()) {
            let events = result["events"].as_array().cloned().unwrap_or_default();
            let of = |kind: &str, key: &str| -> Vec<String> {
                let events = events.iter().filter(|event| event["type"] == kind);
                let attributes =
                    events.flat_map(|event| event["attributes"].as_array().cloned().unwrap_or_default());
                attributes.filter(|it| it["key"] == key).map(|it| text(&it["value"]).to_lowercase()).collect()
            };
            for contract in of("contract_created", "contract") {
                found.entry(contract).or_default().push(Created {
                    height: line["height"].as_u64().unwrap(),
                    cosmos: format!("0x{}", hex::encode(Sha256::digest(STANDARD.decode(text(tx)).unwrap()))),
                    has_logs: !of("evm", "log").is_empty(),
                });
            }
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn each_created_contract_has_its_first_creation_also_without_a_log() {
    let (mut silent, mut again) = (0, 0);
    for name in ["evm-scenario", "evm-fees"] {
        let app = opened(name).await;
        for (contract, all) in creations(name) {
            let query = format!("module=contract&action=getcontractcreation&contractaddresses={contract}");
            let row = result(&app, &query).await[0].clone();
            let first = &all[0];
            assert_eq!(row["blockNumber"], first.height.to_string(), "{name} {row}");
            again += usize::from(all.len() > 1);
            if !first.has_logs && row["txHash"] == first.cosmos.as_str() {
                silent += 1;
            }
            let hash = text(&row["txHash"]);
            let shown = format!("module=proxy&action=eth_getTransactionByHash&txhash={hash}");
            let tx = super::reply(&app, &shown).await;
            let is_shown = tx["result"].is_object();
            assert!(is_shown || hash == first.cosmos, "{name} {row}");
            assert!(row["contractCreator"].is_string(), "{row}");
        }
    }
    assert!(silent > 0 && again == 2, "{silent} {again}");
}
