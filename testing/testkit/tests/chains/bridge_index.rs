//! The index of bridges over recorded pairs of chains: its proofs against what executors replied and layer ones accepted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead as _;
use std::sync::Arc;

use chain::Timestamp;
use chain::bridge::BridgeEvent;
use chain::comet::{order, parse_block, parse_results};
use http::Request;
use http::header::CONTENT_TYPE;
use ingest::{Config, Ingest};
use query::Indexer;
use replay::{Addresses, Options, ReplayNode};
use schema::bridge_output::{self, Applied, L1Proposal, L1Replies};
use schema::index_writer::Writer;
use schema::undo::Horizon;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use store::{MemStore, Order, Store, Table as _};
use testkit::{indexed, recording};
use web::app::App;

use crate::bridge_pair::{INDEX, Pair};
use crate::examples;
use crate::transfers::get;

const ROOT: &str = "/indexer/bridge/v1";

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
                        let request = Request::get(&target).body(()).unwrap().into_parts().0;
                        let ours = app.respond(&request, b"");
                        assert_eq!(
                            (ours.status().as_u16(), &ours.headers()[CONTENT_TYPE]),
                            (500, &"text/plain; charset=utf-8".parse().unwrap())
                        );
                        assert_eq!(std::str::from_utf8(ours.body()).unwrap(), theirs, "{name} {target}");
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
    for (sequence, tx) in pair.l1_at(pair.l1.last()).claimed {
        let record = claimed.iter().find(|record| record["sequence"] == sequence);
        assert_eq!(record.unwrap()["claimed_tx"], tx, "{sequence}");
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

/// The whole layer one of a pair.
async fn layer_one(pair: &Pair) -> App<Indexer> {
    let store: Arc<dyn Store> = Arc::new(MemStore::new());
    let config = Config { indexes: vec![&INDEX], ..indexed::config(&pair.l1).unwrap() };
    let options = Options::default();
    let played = ReplayNode::start(Arc::clone(&pair.l1), Addresses::default(), options).await.unwrap();
    let node = Arc::new(indexed::clients(&played).unwrap());
    let ingest = Ingest::prepare(config, node, Arc::clone(&store)).await.unwrap();
    indexed::run_to(&ingest, pair.l1.last()).await.unwrap();
    App::new(indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap()
}

/// The chain of the other examples has no bridge.
#[tokio::test(flavor = "multi_thread")]
async fn examples_of_the_document_are_replies_of_a_recorded_pair() {
    let pair = Pair::open("l1-l2");
    pair.index(1028, pair.l2.last()).await;
    let (rollup, layer_one) = (pair.app(), layer_one(&pair).await);
    let withdrawal = get(&rollup, &format!("{ROOT}/withdrawal/10"));
    let deposit = get(&rollup, &format!("{ROOT}/deposits/1"))["deposit"].clone();
    let (receiver, height) = (withdrawal["to"].as_str().unwrap(), withdrawal["tx_height"].as_u64().unwrap());
    let depositor = deposit["to"].as_str().unwrap();
    let of_layer_one = ["batches", "bridges", "claims"].map(|path| {
        let parameters =
            if path == "bridges" { "pagination.limit=1" } else { "bridge_id=1&pagination.limit=1" };
        examples::of(&layer_one, &format!("{ROOT}/{path}"), parameters)
    });
    let of_rollup = [
        ("coverage/{block}", &*format!("block={height}")),
        ("deposits", "pagination.limit=1"),
        ("deposits/by_account/{account}", &*format!("account={depositor}&pagination.limit=1")),
        ("deposits/{l1_sequence}", "l1_sequence=1"),
        ("outputs", "pagination.limit=1"),
        ("outputs/{output_index}", "output_index=65"),
        ("withdrawal/{sequence}", "sequence=10"),
        ("withdrawals", "state=claimed&pagination.limit=1"),
        ("withdrawals/by_account/{account}", &*format!("account={receiver}&pagination.limit=1")),
        ("withdrawals/{address}", &*format!("address={receiver}&limit=1")),
    ]
    .map(|(path, parameters)| examples::of(&rollup, &format!("{ROOT}/{path}"), parameters));
    examples::compare("bridge_examples.json", &[&of_layer_one[..], &of_rollup].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_layer_one_lists_its_bridges_outputs_claims_and_batches() {
    let pair = Pair::open("l1-l2");
    let app = layer_one(&pair).await;
    let last = pair.l1.last();
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
    assert_eq!(claimed, expected.claimed.keys().copied().collect());
    for (sequence, tx) in &expected.claimed {
        let claims = all(&format!("claims?bridge_id=1&l2_sequence={sequence}"));
        assert_eq!((&claims["claims"][0]["txhash"], &claims["claims"][1]), (&json!(tx), &Value::Null));
    }
    assert_eq!(all("claims?bridge_id=2&l2_sequence=1")["claims"], json!([]));
    let bridges = get(&app, &format!("{ROOT}/bridges"));
    assert_eq!(bridges["bridges"].as_array().unwrap().len(), 2, "{bridges}");
    assert_eq!(all("deposits?bridge_id=1")["deposits"][0]["result"], "initiated");
    assert_eq!(get(&app, &format!("{ROOT}/deposits/1?bridge_id=2"))["deposit"]["amount"], "4040");
    assert!(!all("batches?bridge_id=1")["txs"].as_array().unwrap().is_empty());
}

/// The wallet widget (InterwovenKit) lists the withdrawals to an account by pages of 20, newest first. It takes the last sequence less
/// one for the offset of the next page, not `next`, and stops at a page with fewer. Then it asks for each withdrawal.
#[tokio::test(flavor = "multi_thread")]
async fn the_wallet_widget_walks_the_withdrawals_of_an_account() {
    const LIMIT: usize = 20;
    let pair = Pair::open("bridge-cases");
    pair.index(pair.l1.last(), pair.l2.last()).await;
    let app = pair.app();
    let mut expected: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for block in pair.l2.heights() {
        for (_, event) in order::in_order(&parse_results(&block.block_results).unwrap()) {
            if let Some(BridgeEvent::Withdrawal(withdrawal)) = BridgeEvent::read(event) {
                expected.entry(withdrawal.to).or_default().insert(0, withdrawal.sequence);
            }
        }
    }
    let mut pages = 0;
    for (address, sequences) in expected {
        // A receiver may be any text; wallets ask for addresses.
        if !address.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            continue;
        }
        let (mut found, mut offset) = (Vec::new(), Some(0));
        while let Some(from) = offset {
            let page =
                get(&app, &format!("{ROOT}/withdrawals/{address}?limit={LIMIT}&offset={from}&order=desc"));
            let (page, _) = shape(&page);
            let last = page.last().copied().unwrap_or_default();
            offset = (page.len() == LIMIT && last > 1).then(|| last - 1);
            found.extend(page);
            pages += 1;
        }
        assert_eq!(found, sequences, "{address}");
        for sequence in found {
            let record = get(&app, &format!("{ROOT}/withdrawal/{sequence}"));
            assert_eq!((&record["to"], &record["sequence"]), (&json!(address), &json!(sequence)));
            let amount = record["amount"]["amount"].as_str().unwrap().parse::<u64>();
            assert!(amount.is_ok() && record["bridge_id"] == 1, "{record}");
        }
    }
    assert!(pages > 5, "{pages}");
}
