//! A recorded pair of chains with interchain accounts, an ordered channel that closes, a deleted and re-proposed output,
//! refused deposits, and a bridge that is shut down.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use chain::Timestamp;
use replay::ReplayNode;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::watch;
use tracker::{Options, Tracker};

use crate::world::{Services, connected, endpoints, play, recording};

const L1: &str = "ledger-l1-1";
const L2: &str = "ledger-l2-1";

static TABLES: LazyLock<Value> = LazyLock::new(|| {
    let path = "../../testing/recordings/bridge-cases/transfers.json";
    serde_json::from_slice(&std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()).unwrap()
});

struct World {
    tracker: Tracker,
    _keep: (ReplayNode, ReplayNode, TempDir),
}

impl World {
    /// All transfers of the tables, polled until their states have settled.
    async fn tracked(faults: &[&str]) -> Self {
        let l1 = play(&recording("bridge-cases/l1"), None, faults).await;
        let l2 = play(&recording("bridge-cases/l2"), None, faults).await;
        let all = |node| endpoints(node, Services::All);
        let channels = [
            ("transfer", "channel-0", "channel-0"),
            ("nft-transfer", "channel-1", "channel-1"),
            ("transfer", "channel-8", "channel-5"),
        ];
        let builder = connected((L1, all(&l1)), (L2, all(&l2)), &channels);
        let (_, registry) = watch::channel(Arc::new(builder.finish("test".to_owned())));
        let dir = TempDir::new().unwrap();
        let tracker = Tracker::open(dir.path(), registry, Options::default()).unwrap();
        let now = Timestamp::parse("2026-11-26T20:26:00Z").unwrap();
        for (chain, hash, _) in packets().into_iter().chain(withdrawals()) {
            tracker.track(chain, &hash, now).unwrap();
        }
        for seconds in [0, 61, 122, 183] {
            let now = Timestamp::from_unix_nanos(now.unix_nanos() + seconds * 1_000_000_000);
            tracker.poll_due(now).await.unwrap();
        }
        Self { tracker, _keep: (l1, l2, dir) }
    }

    fn answer(&self, chain: &str, hash: &str) -> Value {
        serde_json::from_slice(&self.tracker.status(chain, hash).unwrap().unwrap()).unwrap()
    }
}

fn chain_of(name: &str) -> &'static str {
    if name == "L1" { L1 } else { L2 }
}

/// Chain, transaction and key of each packet that a transaction sent; those of end blocks have none.
fn packets() -> Vec<(&'static str, String, String)> {
    let all = TABLES["packets"].as_object().unwrap();
    let sent = all.iter().filter_map(|(key, packet)| {
        let sent = &packet["send_packet"][0];
        let is_of_tx = sent["place"].as_str()?.starts_with("tx");
        is_of_tx.then(|| {
            (
                chain_of(sent["chain"].as_str().unwrap()),
                sent["hash"].as_str().unwrap().to_owned(),
                key.clone(),
            )
        })
    });
    sent.collect()
}

fn withdrawals() -> Vec<(&'static str, String, String)> {
    let all = TABLES["withdrawals"].as_object().unwrap();
    let started =
        all.iter().filter(|(_, w)| w["place"].as_str().is_some_and(|place| place.starts_with("tx")));
    started.map(|(key, w)| (L2, w["hash"].as_str().unwrap().to_owned(), key.clone())).collect()
}

/// The states that a packet's transfer may have by its own record, if it is the only one of its transaction.
fn ends(packet: &Value) -> &'static [&'static str] {
    let ack = packet["write_acknowledgement"][0]["ack"].as_str().unwrap_or_default();
    let is_good = ack == r#"{"result":"AQ=="}"# || ack.contains(r#""underlying_app_success":true"#);
    match () {
        () if packet["dst"].as_str().unwrap().starts_with("icahost") => &["STATE_PENDING"],
        () if is_good => &["STATE_COMPLETED_SUCCESS"],
        () if !ack.is_empty() || packet.get("timeout_packet").is_some() => &["STATE_COMPLETED_ERROR"],
        () => &["STATE_PENDING", "STATE_PENDING_ERROR"],
    }
}

async fn check_packets(faults: &[&str]) {
    let world = World::tracked(faults).await;
    let all = packets();
    let (mut compared, mut accounts) = (0, 0);
    for (chain, hash, key) in &all {
        let is_only = all.iter().filter(|(_, other, _)| other == hash).count() == 1;
        let answer = world.answer(chain, hash);
        let (packet, state) = (&TABLES["packets"][key], answer["state"].as_str().unwrap());
        if is_only {
            assert!(ends(packet).contains(&state), "{key}: {answer}");
            compared += 1;
        }
        if packet["dst"].as_str().unwrap().starts_with("icahost") {
            assert_ne!(state, "STATE_COMPLETED_SUCCESS");
            let reason = answer["error"]["message"].as_str().unwrap();
            assert!(reason.starts_with("cannot be followed: packet "), "{reason}");
            accounts += 1;
        }
    }
    assert!(compared > 25 && accounts == 6, "{compared}, {accounts}");
}

#[tokio::test]
async fn packets_reach_their_recorded_ends_and_those_of_interchain_accounts_are_never_done() {
    check_packets(&[]).await;
}

#[tokio::test]
async fn without_searches_packets_reach_the_same_ends() {
    check_packets(&["no-search"]).await;
}

#[tokio::test]
async fn withdrawals_have_the_output_that_covers_them_now_and_their_claim() {
    for faults in [&[][..], &["no-search"]] {
        let world = World::tracked(faults).await;
        let mut claimed = 0;
        for (chain, hash, key) in withdrawals() {
            let answer = world.answer(chain, &hash);
            let withdrawal = &TABLES["withdrawals"][&key];
            let hop = answer["transfer_sequence"].as_array().unwrap().iter().find_map(|hop| {
                let withdrawal = &hop["op_init_transfer"]["withdrawal"];
                (withdrawal["l2_sequence"] == key.as_str()).then_some(withdrawal)
            });
            // One that a refused deposit started is a hop of the deposit, whose transaction is the executor's.
            let Some(hop) = hop else { continue };
            let is_claimed = withdrawal["claimed"].as_bool().unwrap();
            assert_eq!(hop["phase"] == "CLAIMED", is_claimed, "{key}: {answer}");
            claimed += usize::from(is_claimed);
            let height = withdrawal["height"].as_u64().unwrap();
            let covers = |output: &&Value| {
                let event = &output["event"];
                let covered = |key: &str| event[key].as_str().unwrap().parse::<u64>().unwrap();
                event.get("output_root").is_some() && covered("l2_block_number") >= height
            };
            // The last proposal with a number stands: output 19 was deleted and proposed again.
            let outputs = TABLES["outputs"].as_array().unwrap();
            let live = |output: &&Value| {
                let index = &output["event"]["output_index"];
                let last = outputs.iter().rfind(|other| other["event"]["output_index"] == *index).unwrap();
                last["height"] == output["height"]
            };
            let wanted = outputs.iter().filter(live).find(covers);
            let wanted = wanted.map_or(&Value::Null, |output| &output["event"]["output_index"]);
            assert_eq!(hop["output_index"], *wanted, "{key}");
        }
        assert!(claimed == 3, "{claimed}");
    }
}

#[tokio::test]
async fn no_fault_of_the_nodes_makes_a_false_end() {
    let faults: [&[&str]; 9] = [
        &["no-index"],
        &["discard-abci-responses"],
        &["no-search", "discard-abci-responses"],
        &["pruned-index=400"],
        &["pruned=300"],
        &["search-range=20"],
        &["rest:stale=200"],
        &["no-search", "rest:stale=200"],
        &["no-index", "hang-up@0.3"],
    ];
    for faults in faults {
        let world = World::tracked(faults).await;
        let all = packets();
        for (chain, hash, key) in &all {
            if all.iter().filter(|(_, other, _)| other == hash).count() > 1 {
                continue;
            }
            let answer = world.answer(chain, hash);
            let (ends, state) = (ends(&TABLES["packets"][key]), answer["state"].as_str().unwrap());
            let is_open = match state {
                "STATE_SUBMITTED" | "STATE_PENDING" => true,
                "STATE_PENDING_ERROR" => ends.contains(&"STATE_COMPLETED_ERROR"),
                _ => false,
            };
            assert!(is_open || ends.contains(&state), "{faults:?} {key}: {answer}");
        }
        for (chain, hash, key) in withdrawals() {
            let answer = world.answer(chain, &hash);
            let is_claimed = TABLES["withdrawals"][&key]["claimed"].as_bool().unwrap();
            let is_it = |hop: &&Value| hop["op_init_transfer"]["withdrawal"]["l2_sequence"] == key.as_str();
            let hop = answer["transfer_sequence"].as_array().unwrap().iter().find(is_it);
            let is_done = hop.is_some_and(|hop| hop["op_init_transfer"]["withdrawal"]["phase"] == "CLAIMED");
            assert!(is_claimed || !is_done, "{faults:?} {key}: {answer}");
        }
    }
}
