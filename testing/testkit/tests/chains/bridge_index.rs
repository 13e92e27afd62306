//! The index of bridges over recorded pairs of chains: its proofs against what executors replied and layer ones accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead as _;
use std::sync::Arc;
use std::time::Duration;

use chain::Timestamp;
use chain::bridge::BridgeEvent;
use chain::comet::{order, parse_block, parse_results};
use ingest::config::Bridge;
use ingest::{Config, Ingest};
use query::Indexer;
use replay::{Addresses, Options, Recording, ReplayNode};
use schema::bridge::BRIDGE;
use schema::bridge_output::{self, Applied, L1Claims, L1Proposal, L1Replies};
use schema::index_writer::Writer;
use schema::opchild;
use schema::undo::Horizon;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use store::{MemStore, Order, Store, Table as _};
use testkit::{indexed, recording};
use tokio::sync::watch;
use web::app::App;

use crate::transfers::get;

static INDEX: schema::index::Index = BRIDGE;

const ROOT: &str = "/indexer/bridge/v1";

/// A pair of recorded chains, and the index of the rollup.
struct Pair {
    l1: Arc<Recording>,
    l2: Arc<Recording>,
    store: Arc<dyn Store>,
}

/// What a layer one had at a height.
#[derive(Default)]
struct L1 {
    /// The last blocks of outputs that are not deleted, by number.
    outputs: BTreeMap<u64, u64>,
    claimed: BTreeSet<u64>,
}

impl Pair {
    fn open(name: &str) -> Self {
        let open = |chain: &str| Arc::new(Recording::open(&recording(&format!("{name}/{chain}"))).unwrap());
        Self { l1: open("l1"), l2: open("l2"), store: Arc::new(MemStore::new()) }
    }

    /// What the layer one has at a height of bridge 1.
    fn l1_at(&self, height: u64) -> L1 {
        let mut state = L1::default();
        for block in self.l1.heights().iter().filter(|block| block.height <= height) {
            for (_, event) in order::in_order(&parse_results(&block.block_results).unwrap()) {
                match BridgeEvent::read(event) {
                    Some(BridgeEvent::Proposed(proposal)) if proposal.bridge == 1 => {
                        state.outputs.insert(proposal.output, proposal.l2_block);
                    }
                    Some(BridgeEvent::Deleted { bridge: 1, output, .. }) => {
                        state.outputs.split_off(&output);
                    }
                    Some(BridgeEvent::Claim(claim)) if claim.bridge == 1 => {
                        state.claimed.insert(claim.sequence);
                    }
                    _ => {}
                }
            }
        }
        state
    }

    /// Indexes the rollup up to a height, while the layer one is at another one, until all is known that it says.
    async fn index(&self, l1_height: u64, l2_height: u64) {
        let play = async |recording: &Arc<Recording>, up_to| {
            let options = Options { up_to: Some(up_to), ..Options::default() };
            ReplayNode::start(Arc::clone(recording), Addresses::default(), options).await.unwrap()
        };
        let (l1, l2) = (play(&self.l1, l1_height).await, play(&self.l2, l2_height).await);
        let bridge = Bridge { l1: vec![l1.rest_url().parse().unwrap()], poll: Duration::from_millis(20) };
        let config = Config {
            indexes: vec![&INDEX],
            bridge: Some(bridge),
            internal_txs: false,
            rich_list: false,
            ..indexed::config(&self.l2).unwrap()
        };
        let expected = self.l1_at(l1_height);
        let last = expected.outputs.keys().next_back().copied().unwrap_or_default();
        let covered = expected.outputs.values().copied().filter(|l2_block| *l2_block <= l2_height).max();
        let covered = covered.unwrap_or_default();
        let is_indexed = |(_, l2_block): &(&u64, &u64)| **l2_block <= l2_height;
        let compared = expected.outputs.iter().filter(is_indexed).map(|(number, _)| *number).max();
        let compared = compared.unwrap_or_default();
        let is_done = || {
            let snapshot = self.store.snapshot().unwrap();
            let height = BRIDGE.state(&*snapshot).unwrap().map_or(0, |state| state.height);
            let state = bridge_output::l1_state(&*snapshot).unwrap().unwrap_or_default();
            // Only withdrawals with a proof are asked about.
            let is_claimed = |sequence: &u64| {
                let withdrawal = opchild::withdrawal(&*snapshot, *sequence).unwrap();
                let has_proof = withdrawal.is_some_and(|withdrawal| withdrawal.height() <= covered);
                !has_proof || store::table::read::<L1Claims>(&*snapshot, sequence).unwrap().is_some()
            };
            (height, state.last_output, state.compared) == (l2_height, last, compared)
                && expected.claimed.iter().all(is_claimed)
        };
        let node = Arc::new(indexed::clients(&l2).unwrap());
        let ingest = Ingest::prepare(config, node, Arc::clone(&self.store)).await.unwrap();
        let (stop, stopped) = watch::channel(false);
        let reached = async {
            // Nothing announces what the layer one says.
            while !is_done() {
                tokio::task::yield_now().await;
            }
            stop.send_replace(true);
        };
        let both = async { tokio::join!(ingest.run(stopped), reached) };
        let (outcome, ()) = tokio::time::timeout(Duration::from_mins(2), both).await.unwrap();
        outcome.unwrap();
    }

    fn app(&self) -> App<Indexer> {
        App::new(indexed::indexer(Arc::clone(&self.store)).unwrap(), query::ENDPOINTS).unwrap()
    }
}

/// A recorded reply of an executor.
#[derive(Deserialize)]
struct BotReply {
    path: String,
    at: Option<String>,
    status: u16,
    answer: Box<RawValue>,
}

/// The recorded replies of the executor about withdrawals.
fn bot(pair: &str) -> Vec<BotReply> {
    let path = recording(pair).join("l2/extra.ndjson.zst");
    let text = zstd::stream::decode_all(std::fs::read(path).unwrap().as_slice()).unwrap();
    let lines = text.lines().map(Result::unwrap).filter(|line| line.contains(r#""kind":"bot""#));
    let replies = lines.map(|line| serde_json::from_str::<BotReply>(&line).unwrap());
    // Paths that are not the executor's, or those of its own state.
    let is_of_withdrawals = |reply: &BotReply| {
        let parts: Vec<&str> = reply.path.split('?').next().unwrap().split('/').skip(1).collect();
        matches!(parts[..], ["withdrawal" | "withdrawals", item] if !item.is_empty())
    };
    replies.filter(is_of_withdrawals).collect()
}

fn records(reply: &Value) -> Vec<Value> {
    reply["withdrawals"].as_array().map_or_else(|| vec![reply.clone()], Clone::clone)
}

fn members(record: &Value) -> Vec<&String> {
    record.as_object().unwrap().keys().collect()
}

/// Compares the records of executors with ours; returns how many are equal, and those with an output that we do not have.
fn compare(app: &App<Indexer>, pair: &str) -> (usize, Vec<u64>) {
    let (mut equal, mut other) = (0, Vec::new());
    for reply in bot(pair).iter().filter(|reply| reply.status == 200) {
        for theirs in records(&serde_json::from_str(reply.answer.get()).unwrap()) {
            let sequence = theirs["sequence"].as_u64().unwrap();
            let mut ours = get(app, &format!("{ROOT}/withdrawal/{sequence}"));
            assert_eq!(members(&ours), members(&theirs));
            if theirs["storage_root"].is_null() {
                ours["output_index"] = 0.into();
                for member in ["withdrawal_proofs", "storage_root", "last_block_hash"] {
                    ours[member] = Value::Null;
                }
            }
            if ours == theirs {
                equal += 1;
            } else {
                assert_ne!(
                    ours["storage_root"], theirs["storage_root"],
                    "{pair} {sequence}: {ours} {theirs}"
                );
                other.push(sequence);
            }
        }
    }
    (equal, other)
}

#[tokio::test(flavor = "multi_thread")]
async fn withdrawals_have_the_proofs_that_executors_gave() {
    for (name, l1_height) in [("l1-l2", Some(1028)), ("l1-l2-swaps", None), ("bridge-cases", None)] {
        let pair = Pair::open(name);
        pair.index(l1_height.unwrap_or(pair.l1.last()), pair.l2.last()).await;
        let app = pair.app();
        let (equal, other) = compare(&app, name);
        println!("{name}: {equal} equal, other outputs of {other:?}");
        assert!(equal >= 5, "{name}");
        // Withdrawal 17 has an output that was deleted and proposed again, which only an executor with an empty database saw.
        assert!(other.iter().all(|sequence| name == "bridge-cases" && *sequence == 17), "{name}: {other:?}");
        let info = get(&app, &format!("{ROOT}/info"));
        assert_eq!((&info["bridge_id"], &info["mismatch"]), (&1.into(), &0.into()), "{name}");
    }
}

/// The withdrawals of a list, and the next one.
fn shape(page: &Value) -> (Vec<u64>, Option<u64>) {
    let sequence = |record: &Value| record["sequence"].as_u64().unwrap();
    (page["withdrawals"].as_array().unwrap().iter().map(sequence).collect(), page["next"].as_u64())
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_errors_of_the_executor_are_the_recorded_ones() {
    for name in ["l1-l2", "bridge-cases"] {
        let pair = Pair::open(name);
        let mut initiated = Vec::new();
        for block in pair.l2.heights() {
            let time = parse_block(&block.block).unwrap().header.time.unix_nanos();
            for (_, event) in order::in_order(&parse_results(&block.block_results).unwrap()) {
                if let Some(BridgeEvent::Withdrawal(_)) = BridgeEvent::read(event) {
                    initiated.push((time, block.height));
                }
            }
        }
        // How many withdrawals there were at a time.
        let seen = |at: i64| initiated.iter().filter(|(time, _)| *time < at).count();
        let replies = bot(name);
        let mut by_count: BTreeMap<usize, Vec<&BotReply>> = BTreeMap::new();
        for reply in &replies {
            let at = Timestamp::parse(reply.at.as_ref().unwrap()).unwrap().unix_nanos();
            // It takes the executor some time to see one.
            if seen(at) == seen(at - 5_000_000_000) {
                by_count.entry(seen(at)).or_default().push(reply);
            }
        }
        let mut compared = 0;
        for (count, replies) in by_count {
            let next = initiated.get(count).map_or(pair.l2.last(), |(_, height)| height - 1);
            pair.index(pair.l1.last(), next).await;
            let app = pair.app();
            for reply in replies {
                let target = format!("{ROOT}{}", reply.path);
                match reply.status {
                    200 if reply.path.starts_with("/withdrawals/") => {
                        let theirs: Value = serde_json::from_str(reply.answer.get()).unwrap();
                        assert_eq!(shape(&get(&app, &target)), shape(&theirs), "{name} {count} {target}");
                        compared += 1;
                    }
                    500 => {
                        let theirs: String = serde_json::from_str(reply.answer.get()).unwrap();
                        // The executor was stopped then.
                        let sequence = reply.path.rsplit('/').next().unwrap().parse::<usize>();
                        if sequence.is_ok_and(|sequence| sequence <= count) {
                            continue;
                        }
                        let ours = app.read(&target).unwrap();
                        assert_eq!(
                            (ours.status.as_u16(), ours.content_type),
                            (500, "text/plain; charset=utf-8")
                        );
                        assert_eq!(std::str::from_utf8(&ours.body).unwrap(), theirs, "{name} {target}");
                        compared += 1;
                    }
                    _ => {}
                }
            }
        }
        println!("{name}: {compared} lists and errors");
        assert!(compared > 10, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_withdrawal_loses_its_proof_when_its_output_is_deleted() {
    let pair = Pair::open("l1-l2");
    let path = format!("{ROOT}/withdrawal/10");
    pair.index(1028, pair.l2.last()).await;
    let before = get(&pair.app(), &path);
    assert_eq!(before["output_index"], 65);
    assert!(before["withdrawal_proofs"].is_array());
    let live = get(&pair.app(), &format!("{ROOT}/outputs/65"));
    assert_eq!((&live["output"]["verified"], &live["output"]["deleted"]), (&true.into(), &false.into()));

    pair.index(1029, pair.l2.last()).await;
    let after = get(&pair.app(), &path);
    assert_eq!(after["output_index"], 0);
    assert!(
        ["withdrawal_proofs", "storage_root", "last_block_hash"]
            .iter()
            .all(|member| after[*member].is_null())
    );
    let list = get(&pair.app(), &format!("{ROOT}/withdrawals?state=waiting"));
    assert!(list["withdrawals"].as_array().unwrap().iter().any(|record| record["sequence"] == 10));
    let deleted = get(&pair.app(), &format!("{ROOT}/outputs/65"));
    assert_eq!((&deleted["output"]["verified"], &deleted["output"]["deleted"]), (&Value::Null, &true.into()));

    // Proposed again, as in the other pair: the new root counts.
    let pair = Pair::open("bridge-cases");
    pair.index(pair.l1.last(), pair.l2.last()).await;
    let app = pair.app();
    let claimed = get(&app, &format!("{ROOT}/withdrawals?state=claimed&pagination.limit=1000"));
    let claimed = claimed["withdrawals"].as_array().unwrap();
    let of_17 = claimed.iter().find(|record| record["sequence"] == 17).unwrap();
    assert_eq!((&of_17["output_index"], &of_17["state"]), (&19.into(), &"claimed".into()));
    for sequence in pair.l1_at(pair.l1.last()).claimed {
        assert!(claimed.iter().any(|record| record["sequence"] == sequence), "{sequence}");
    }
    // Of the block itself, when the bridge was shut down.
    let last = get(&app, &format!("{ROOT}/withdrawal/142"));
    assert_eq!(last["tx_hash"], "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855");
    assert_eq!(last["output_index"], 86);
    assert_eq!(get(&app, &format!("{ROOT}/info"))["disabled"], true);
    let coverage = get(&app, &format!("{ROOT}/coverage/{}", last["tx_height"]));
    assert_eq!(coverage["output"]["output_index"], 86);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_output_with_a_false_root_is_reported_and_proves_nothing() {
    let pair = Pair::open("l1-l2");
    pair.index(1028, pair.l2.last()).await;
    let number = 25;
    let stored = bridge_output::output(&*pair.store.snapshot().unwrap(), number).unwrap().unwrap();
    let proposal = L1Proposal { root: vec![7; 32], ..stored.proposal.unwrap() };
    let replies = L1Replies {
        bridge: 1,
        finalization_seconds: 20,
        outputs: vec![(number, proposal)],
        ..L1Replies::default()
    };
    let mut writer = Writer::new(&*pair.store, &INDEX, Horizon::DEFAULT).unwrap();
    let mut applied = Applied::default();
    let amended = writer.amend(&*pair.store, |txn| {
        applied = bridge_output::apply(txn, &replies)?;
        Ok(())
    });
    amended.unwrap();
    assert_eq!((applied.deleted, applied.differing), (vec![number], vec![number]));
    let app = pair.app();
    let output = get(&app, &format!("{ROOT}/outputs/{number}"));
    assert_eq!(output["output"]["verified"], false);
    assert_eq!(get(&app, &format!("{ROOT}/info"))["mismatch"], number);
    let withdrawal = get(&app, &format!("{ROOT}/withdrawal/1"));
    assert_eq!((&withdrawal["output_index"], &withdrawal["withdrawal_proofs"]), (&0.into(), &Value::Null));
    // Nothing of its tree is left.
    let snapshot = pair.store.snapshot().unwrap();
    let rows =
        store::table::rows::<bridge_output::WithdrawalTrees>(&*snapshot, &number, Order::Asc, 1).unwrap();
    assert!(rows.is_empty(), "{}", bridge_output::WithdrawalTrees::SPEC.name);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_one_lists_its_bridges_outputs_claims_and_batches() {
    let pair = Pair::open("l1-l2");
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config { indexes: vec![&INDEX], ..indexed::config(&pair.l1).unwrap() };
    let (last, options) = (pair.l1.last(), Options::default());
    let played = ReplayNode::start(Arc::clone(&pair.l1), Addresses::default(), options).await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await.unwrap();
    indexed::run_to(&ingest, last).await.unwrap();
    let app = App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let all =
        |path: &str| get(&app, &format!("{ROOT}/{path}&pagination.limit=1000&pagination.reverse=false"));

    let expected = pair.l1_at(last);
    let outputs = all("outputs?bridge_id=1");
    let live = outputs["outputs"].as_array().unwrap().iter().filter(|output| output["deleted"] == false);
    let live: BTreeMap<u64, u64> = live
        .map(|output| (output["output_index"].as_u64().unwrap(), output["l2_block_number"].as_u64().unwrap()))
        .collect();
    assert_eq!(live, expected.outputs);
    let claims = all("claims?bridge_id=1");
    let claimed: BTreeSet<u64> = claims["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| claim["l2_sequence"].as_u64().unwrap())
        .collect();
    assert_eq!(claimed, expected.claimed);
    let bridges = get(&app, &format!("{ROOT}/bridges"));
    assert_eq!(bridges["bridges"].as_array().unwrap().len(), 2, "{bridges}");
    assert_eq!(all("deposits?bridge_id=1")["deposits"][0]["result"], "initiated");
    assert_eq!(get(&app, &format!("{ROOT}/deposits/1?bridge_id=2"))["deposit"]["amount"], "4040");
    assert!(!all("batches?bridge_id=1")["txs"].as_array().unwrap().is_empty());
}
