//! A recorded L1 with swap venues and a rollup: each swap that an account sent has the recorded state, hops and release.

use std::sync::{Arc, LazyLock};

use chain::Timestamp;
use registry::Registry;
use replay::ReplayNode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::watch;
use tracker::{LocalIndex, Options, Tracker};

use crate::local::Recorded;
use crate::world::{Services, endpoints, play, recording};

const DIR: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testing/recordings/l1-l2-swaps");

static EXPECTED: LazyLock<Vec<Value>> = LazyLock::new(|| {
    serde_json::from_slice(&std::fs::read(format!("{DIR}/expected.json")).unwrap()).unwrap()
});

/// The recorded registry, with only these assets.
fn registry(is_listed: impl Fn(&str) -> bool) -> Registry {
    let file = |name: &str| std::fs::read_to_string(format!("{DIR}/registry/{name}.toml")).unwrap();
    let assets = file("assets");
    let assets: Vec<_> = assets.split("[[asset]]").skip(1).filter(|asset| is_listed(asset)).collect();
    let assets: String = assets.into_iter().flat_map(|asset| ["[[asset]]", asset]).collect();
    registry::load_text(&[assets, file("bridges"), file("chains")].join("\n")).unwrap()
}

/// The responses about all swaps, polled until their states have settled.
async fn answers(
    faults: &[&str],
    registry: Registry,
    index: Option<Arc<dyn LocalIndex>>,
) -> Vec<(&'static Value, Value)> {
    let l1 = play(&recording("l1-l2-swaps/l1"), None, faults).await;
    let l2 = play(&recording("l1-l2-swaps/l2"), None, faults).await;
    let node = |id: &str| -> &ReplayNode { if id.contains("-l1-") { &l1 } else { &l2 } };
    let registry = registry.with_endpoints(|id| Some(endpoints(node(id), Services::All)));
    let (_, registry) = watch::channel(Arc::new(registry));
    let dir = TempDir::new().unwrap();
    let tracker = Tracker::open(dir.path(), registry, Options::default()).unwrap();
    if let Some(index) = index {
        tracker.read_from(index);
    }
    let now = Timestamp::parse("2026-11-26T19:10:00Z").unwrap();
    let id = |swap: &'static Value| (swap["chain_id"].as_str().unwrap(), swap["tx_hash"].as_str().unwrap());
    for swap in &*EXPECTED {
        let (chain, hash) = id(swap);
        tracker.track(chain, hash, now).unwrap();
    }
    for seconds in [0, 61, 122, 183] {
        let now = Timestamp::from_unix_nanos(now.unix_nanos() + seconds * 1_000_000_000);
        tracker.poll_due(now).await.unwrap();
    }
    let answer = |swap| {
        let (chain, hash) = id(swap);
        serde_json::from_slice(&tracker.status(chain, hash).unwrap().unwrap()).unwrap()
    };
    EXPECTED.iter().map(|swap| (swap, answer(swap))).collect()
}

/// The members of an expected hop, as the response has them.
fn hop(event: &Value) -> Value {
    let (kind, hop) = event.as_object().unwrap().iter().next().unwrap();
    let hash = |member: &str| {
        let txs = hop.get("packet_txs").unwrap_or(&hop["txs"]);
        txs[member]["tx_hash"].clone()
    };
    let mut of = json!({
        "kind": kind, "from": hop["from_chain_id"], "to": hop["to_chain_id"], "state": hop["state"],
    });
    of["txs"] = match kind.as_str() {
        // The transaction that received it is the one that wrote its acknowledgement.
        "ibc_transfer" => json!([
            hash("send_tx"),
            hash("receive_tx"),
            hash("receive_tx"),
            hash("acknowledge_tx"),
            hash("timeout_tx")
        ]),
        _ => json!([hash("send_tx"), hash("receive_tx")]),
    };
    of
}

fn expected_hop(hop: &Value) -> Value {
    let mut of = hop.clone();
    for member in ["channel", "sequence", "bridge_id", "l1_sequence", "error"] {
        of.as_object_mut().unwrap().remove(member);
    }
    of
}

fn differences(swap: &Value, answer: &Value) -> Vec<String> {
    let mut all = Vec::new();
    let hops = |events: &Value, hop: fn(&Value) -> Value| -> Vec<Value> {
        events.as_array().unwrap().iter().map(hop).collect()
    };
    let (wanted, got) = (hops(&swap["hops"], expected_hop), hops(&answer["transfer_sequence"], hop));
    if wanted != got {
        all.push(format!("hops {got:?} instead of {wanted:?}"));
    }
    for (member, wanted) in [("state", "state"), ("transfer_asset_release", "release")] {
        if answer[member] != swap[wanted] {
            all.push(format!("{member} {} instead of {}", answer[member], swap[wanted]));
        }
    }
    all
}

#[tokio::test]
async fn all_recorded_swaps_have_their_state_hops_and_release() {
    // Without the tokens of the L1 in its registry, the tracker asks the chain for their denominations.
    let all = || registry(|_| true);
    let few = registry(|asset| ["uinit", "GAS", "18-decimals"].iter().any(|denom| asset.contains(denom)));
    let index = || -> Arc<dyn LocalIndex> {
        Arc::new(Recorded::of(&recording("l1-l2-swaps/l1"), &recording("l1-l2-swaps/l2")))
    };
    // With the chains indexed by this process, neither the executor nor an index of the nodes is needed.
    let nothing_else = &["no-index", "discard-abci-responses", "executor:502"][..];
    for (faults, registry, index) in [
        (&[][..], all(), None),
        (&["no-search"], all(), None),
        (&[], few, None),
        (nothing_else, all(), Some(index())),
    ] {
        let answers = answers(faults, registry, index).await;
        assert_eq!(answers.len(), 121);
        let wrong = answers.iter().flat_map(|(swap, answer)| {
            differences(swap, answer).into_iter().map(move |what| format!("{}: {what}", swap["what"]))
        });
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{faults:?}: {}\n{}", wrong.len(), wrong.join("\n"));
    }
}
