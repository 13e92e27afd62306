//! Owners of tokens, compared with what the contracts say.

use std::collections::BTreeMap;
use std::sync::Arc;

use replay::Recording;
use replay::answers::Answer;
use serde_json::Value;
use testkit::altered::{AlteredNode, Exchange};
use testkit::oracle;

use super::EVERY_HEIGHT;
use super::database::{Indexed, scratch};

/// `ownerOf`.
const OWNER_OF: &str = "0x6352211e";

/// Plays the scenario. Owners are told at the last height as they were told when tokens last moved, but that of one token,
/// which is somebody else's.
async fn node_that_tells_owners(wrong: &'static str) -> AlteredNode {
    let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
    let lines = oracle::lines("evm-scenario", &format!("\"data\":\"{OWNER_OF}")).unwrap();
    let mut said: BTreeMap<(String, String), (u64, Value)> = BTreeMap::new();
    for line in lines {
        let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
        let (key, height) = ((text("to"), text("data")), line["height"].as_u64().unwrap());
        if said.get(&key).is_none_or(|(of, _)| *of <= height) {
            said.insert(key, (height, line["result"].clone()));
        }
    }
    let alter = move |exchange: Exchange<'_>| -> Answer {
        let call: Value = serde_json::from_slice(exchange.request.body()).unwrap_or_default();
        let text = |name: &str| call["params"][0][name].as_str().unwrap_or_default().to_owned();
        match said.get(&(text("to"), text("data"))) {
            Some(_) if text("data").ends_with(wrong) => {
                exchange.with_result(&format!("0x{:0>64}", "dead".repeat(10)).into())
            }
            Some((_, owner)) if owner.is_string() => exchange.with_result(owner),
            _ => exchange.answer,
        }
    };
    AlteredNode::start(recording, alter).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_that_is_not_the_contracts_is_found() {
    let indexed = Indexed::new("evm-scenario").await.unwrap();
    let store = indexed.copy().unwrap();
    let node = node_that_tells_owners("0000000000000000000000000000000b").await;
    let clients = Arc::new(node.clients().unwrap());
    let report = ingest::verify::verify(&store, Some(&clients), EVERY_HEIGHT, &*scratch()).await.unwrap();
    assert!(report.checked["owners of tokens"] >= 65, "{:?}", report.checked);
    let [finding] = report.findings.as_slice() else { panic!("{:#?}", report.findings) };
    assert_eq!(finding.kind, "owner of a token");
    assert!(finding.expected.ends_with(&"dead".repeat(10)), "{finding}");
}
