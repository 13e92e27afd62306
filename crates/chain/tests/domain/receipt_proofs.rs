//! Receipts against their transactions and results: all recorded receipts fit, and none fits after a change.

use crate::recorded::{Line, heights};
use base64::Engine as _;
use chain::comet::proof::{Bound, EvmChain, Executed, NamedReceipts, check_receipts, derive_receipts};
use chain::comet::{Attribute, Event, TxResult, parse_block, parse_results};
use chain::evm::{self, Receipt, parse_receipts, write_evm_tx};
use chain::tx::{Coin, DecodedTx, SignMode, SignerInfo, TypedBytes, tx_hash};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Checks a recorded block as ingest does; returns the receipts as they are stored.
fn checked(
    line: &Line,
    fee_denom: Option<&str>,
    results: &str,
    receipts: &str,
) -> Result<(Bound, Vec<Value>), String> {
    let receipts = parse_receipts(receipts.as_bytes()).map_err(|error| error.to_string())?;
    with_txs(line, fee_denom, results, |chain, txs| {
        let checked =
            check_receipts(chain, line.height, txs, &receipts).map_err(|error| error.to_string())?;
        Ok((checked.bound, checked.receipts.iter().map(stored).collect()))
    })
}

fn check(line: &Line, fee_denom: Option<&str>, results: &str, receipts: &str) -> Result<Bound, String> {
    checked(line, fee_denom, results, receipts).map(|(bound, _)| bound)
}

/// The receipts that follow from the results and from the EVM block, which has only hashes.
fn derived(line: &Line, results: &str) -> Vec<Value> {
    let block = evm::parse_block(line.eth_block.as_ref().unwrap().get().as_bytes(), line.height).unwrap();
    let hashes: Vec<&str> = block.transactions.iter().map(AsRef::as_ref).collect();
    let names = NamedReceipts { block_hash: &block.hash, hashes: &hashes };
    with_txs(line, None, results, |chain, txs| {
        derive_receipts(chain, line.height, txs, &names).unwrap().receipts.iter().map(stored).collect()
    })
}

fn with_txs<T>(
    line: &Line,
    fee_denom: Option<&str>,
    results: &str,
    work: impl FnOnce(&EvmChain<'_>, Vec<Executed<'_>>) -> T,
) -> T {
    let block = parse_block(line.block.get().as_bytes()).unwrap();
    let results = parse_results(results.as_bytes()).unwrap();
    let raw = block.raw_txs().unwrap();
    let txs: Vec<_> = raw.iter().map(|raw| (tx_hash(raw), DecodedTx::decode(raw).ok())).collect();
    let executed = txs.iter().zip(&results.txs_results);
    let executed = executed.map(|((hash, tx), result)| Executed { hash: *hash, tx: tx.as_ref(), result });
    let chain = EvmChain { chain_id: &block.header.chain_id, prefix: "init", fee_denom };
    work(&chain, executed.collect())
}

fn stored(receipt: &Receipt<'_>) -> Value {
    let mut out = Vec::new();
    write_evm_tx(&mut out, receipt);
    serde_json::from_slice(&out).unwrap()
}

/// The node's own receipts as they are to be stored: `to` is empty for a creation, and logs are numbered in the block.
fn expected(receipts: &[u8]) -> Vec<Value> {
    let mut receipts: Vec<Value> = serde_json::from_slice(receipts).unwrap();
    let mut logs = 0;
    for receipt in &mut receipts {
        if receipt["to"].is_null() {
            receipt["to"] = "".into();
        }
        for log in receipt["logs"].as_array_mut().unwrap() {
            log["logIndex"] = format!("{logs:#x}").into();
            logs += 1;
        }
    }
    receipts
}

#[test]
fn every_recorded_receipt_belongs_to_its_transaction() {
    for (chain, expected) in [
        ("evm-scenario", Bound { receipts: 642, logs: 671, proven_logs: 659, proven_receipts: 469 }),
        ("l1-l2/l2", Bound { receipts: 83, logs: 149, proven_logs: 33, proven_receipts: 22 }),
        ("evm-load", Bound { receipts: 34_183, logs: 30_824, proven_logs: 30_219, proven_receipts: 24_238 }),
        ("evm-fees", Bound { receipts: 1_104, logs: 3_149, proven_logs: 1_210, proven_receipts: 3 }),
    ] {
        let mut all = Bound::default();
        for line in heights(chain) {
            let receipts = std::str::from_utf8(line.receipts()).unwrap();
            let bound = check(&line, Some("GAS"), line.block_results.get(), receipts).unwrap();
            // If the fee token is unknown, fewer receipts are required, with the same result.
            if chain != "evm-load" {
                assert_eq!(check(&line, None, line.block_results.get(), receipts), Ok(bound));
            }
            all.receipts += bound.receipts;
            all.logs += bound.logs;
            all.proven_logs += bound.proven_logs;
            all.proven_receipts += bound.proven_receipts;
        }
        assert_eq!(all, expected, "{chain}");
    }
}

#[test]
fn receipts_follow_from_results_and_hashes_in_every_member_of_every_recorded_block() {
    for (chain, expected_receipts) in [
        ("evm-scenario", 642),
        ("l1-l2/l2", 83),
        ("evm-load", 34_183),
        ("evm-fees", 1_104),
        // Block 587 follows below.
        ("evm-log0", 5),
    ] {
        let mut receipts = 0;
        for line in heights(chain).filter(|line| line.eth_receipts.is_some()) {
            let results = line.block_results.get();
            let expected = expected(line.receipts());
            assert_eq!(derived(&line, results), expected, "{chain} {}", line.height);
            let given = std::str::from_utf8(line.receipts()).unwrap();
            assert_eq!(checked(&line, None, results, given).unwrap().1, expected, "{chain} {}", line.height);
            receipts += expected.len();
        }
        assert_eq!(receipts, expected_receipts, "{chain}");
    }
}

/// The node of this recording cannot read the receipt of the log without topics.
#[test]
fn the_receipt_of_a_log_without_topics_follows_from_the_results() {
    let line = heights("evm-log0").find(|line| line.height == 587).unwrap();
    assert!(line.eth_receipts.is_none());
    let receipts = derived(&line, line.block_results.get());
    let [receipt] = &receipts[..] else { panic!("{receipts:?}") };
    // As the node has them in its transaction and its block.
    let block: Value = serde_json::from_str(line.eth_block.as_ref().unwrap().get()).unwrap();
    assert_eq!(receipt["blockHash"], block["hash"]);
    assert_eq!(receipt["logsBloom"], block["logsBloom"], "the only transaction of its block");
    assert_eq!(receipt["gasUsed"], block["gasUsed"]);
    assert_eq!(receipt["from"], "0xd5532f66d98ffcbda39ddad27c35304827f99461");
    assert_eq!(receipt["to"], "0x258f97266765d295d175ee1d300cf5c2461e29a5");
    let logs = receipt["logs"].as_array().unwrap();
    let topics = |log: &Value| log["topics"].as_array().unwrap().len();
    assert_eq!(logs.iter().map(topics).collect::<Vec<_>>(), [3, 0, 3]);
    assert_eq!(logs[1]["data"], "0xaa");
    assert_eq!(logs[1]["logIndex"], "0x1");
}

/// Versions of the node number logs within the transaction or the block, count transactions from 1 or from 0, and could
/// write hex in other ways.
#[test]
fn what_is_stored_does_not_depend_on_how_the_node_numbers_and_writes() {
    for line in heights("evm-scenario").filter(|line| line.receipts().len() > 2) {
        let results = line.block_results.get();
        let mut receipts: Vec<Value> = serde_json::from_slice(line.receipts()).unwrap();
        let mut logs = 0;
        let wider = |value: &Value| value.as_str().unwrap().replacen("0x", "0x000", 1);
        let upper = |value: &Value| value.as_str().unwrap().to_uppercase().replacen("0X", "0x", 1);
        for (index, receipt) in receipts.iter_mut().enumerate() {
            let index = format!("{index:#x}");
            receipt["transactionIndex"] = index.clone().into();
            for member in ["gasUsed", "status", "type", "cumulativeGasUsed", "effectiveGasPrice"] {
                receipt[member] = wider(&receipt[member]).into();
            }
            for member in ["from", "logsBloom", "blockHash", "transactionHash"] {
                receipt[member] = upper(&receipt[member]).into();
            }
            receipt["blockTimestamp"] = "0x1".into();
            let (block_hash, hash) = (receipt["blockHash"].clone(), receipt["transactionHash"].clone());
            for log in receipt["logs"].as_array_mut().unwrap() {
                log["logIndex"] = format!("{logs:#x}").into();
                log["transactionIndex"] = index.clone().into();
                log["blockTimestamp"] = "0x1".into();
                log["address"] = upper(&log["address"]).into();
                log["data"] = upper(&log["data"]).into();
                (log["blockHash"], log["transactionHash"]) = (block_hash.clone(), hash.clone());
                logs += 1;
            }
        }
        let (_, stored) = checked(&line, None, results, &json!(receipts).to_string()).unwrap();
        assert_eq!(stored, expected(line.receipts()), "{}", line.height);
    }
}

#[test]
fn unproven_receipts_are_stored_in_the_same_form_but_for_what_only_results_show() {
    for line in heights("evm-scenario") {
        let mut receipts = parse_receipts(line.receipts()).unwrap();
        evm::normalise(&mut receipts);
        let stored: Vec<Value> = receipts.iter().map(stored).collect();
        assert_eq!(stored, expected(line.receipts()), "{}", line.height);
    }
    let none = r#"[{"blockNumber":"0x05","contractAddress":"0x0000000000000000000000000000000000000000","status":"0x00"}]"#;
    let mut receipts = parse_receipts(none.as_bytes()).unwrap();
    evm::normalise(&mut receipts);
    let stored = stored(&receipts[0]);
    assert_eq!((&stored["blockNumber"], &stored["status"]), (&json!("0x5"), &json!("0x0")));
    assert!(stored["contractAddress"].is_null());
}

/// A wrong signature leaves no sender; all recorded ones are right, so the key that is recovered is the sender's.
#[test]
fn the_sender_of_a_wrong_signature_is_the_address_that_is_recovered_from_it() {
    let mut senders = 0;
    for chain in ["evm-scenario", "evm-fees"] {
        for line in heights(chain).filter(|line| line.receipts().len() > 2) {
            let mut results: Value = serde_json::from_str(line.block_results.get()).unwrap();
            for result in results["txs_results"].as_array_mut().unwrap() {
                (result["code"], result["codespace"]) = (json!(4), json!("sdk"));
            }
            let node: Vec<Value> = serde_json::from_slice(line.receipts()).unwrap();
            // Failed Cosmos transactions have no stand-in, and then the hashes of the block do not match.
            if node.iter().any(|receipt| receipt["from"] == format!("0x{}", "0".repeat(40))) {
                continue;
            }
            for (receipt, node) in derived(&line, &results.to_string()).iter().zip(node) {
                assert_eq!(receipt["from"], node["from"], "{chain} {}", line.height);
                senders += 1;
            }
        }
    }
    assert!(senders > 1_000, "{senders}");
}

/// The first block with a receipt for which `wanted` is true, and the receipt's position.
fn find(chain: &str, wanted: impl Fn(&Value) -> bool) -> (Line, usize) {
    let found = heights(chain).find_map(|line| {
        let receipts: Vec<Value> = serde_json::from_slice(line.receipts()).unwrap();
        receipts.iter().position(&wanted).map(|place| (line, place))
    });
    found.unwrap()
}

fn edited(answer: &str, pointer: &str, value: &Value) -> String {
    let mut answer: Value = serde_json::from_str(answer).unwrap();
    let place = answer.pointer_mut(pointer).unwrap_or_else(|| panic!("nothing at {pointer}"));
    assert_ne!(place, value, "{pointer} is changed to what it is");
    *place = value.clone();
    answer.to_string()
}

/// Changes members of one receipt, one at a time.
fn refuse_all(line: &Line, place: usize, edits: &[(&str, Value)]) {
    let receipts = std::str::from_utf8(line.receipts()).unwrap();
    check(line, None, line.block_results.get(), receipts).unwrap();
    for (pointer, value) in edits {
        let receipts = edited(receipts, &format!("/{place}/{pointer}"), value);
        let error = check(line, None, line.block_results.get(), &receipts).unwrap_err();
        let member = pointer.split('/').next().unwrap();
        let named =
            error.starts_with(&format!("block {}: ", line.height)) && error.ends_with("ask another endpoint");
        let says = if member == "transactionHash" { "has no receipt at its place" } else { member };
        assert!(named && error.contains(says), "{pointer}: {error}");
    }
}

#[test]
fn a_sender_is_arbitrary_only_if_the_sdk_reports_a_wrong_signature() {
    let (line, place) = find("evm-scenario", |receipt| receipt["status"] == "0x0");
    let results: Value = serde_json::from_str(line.block_results.get()).unwrap();
    assert_eq!((place, results["txs_results"].as_array().unwrap().len()), (0, 1), "a receipt and its result");
    let receipts = std::str::from_utf8(line.receipts()).unwrap();
    let other = edited(receipts, "/0/from", &json!(format!("0x{}", "ab".repeat(20))));
    let failed = |codespace: &str| {
        let mut results = results.clone();
        results["txs_results"][0]["code"] = json!(4);
        results["txs_results"][0]["codespace"] = json!(codespace);
        check(&line, None, &results.to_string(), &other)
    };
    assert!(failed("sdk").is_ok());
    assert!(failed("evm").unwrap_err().contains("from"));
}

#[test]
fn every_change_to_the_receipt_of_a_call_is_refused_with_the_member() {
    let (line, place) = find("evm-scenario", |receipt| {
        receipt["logs"].as_array().is_some_and(|logs| logs.len() > 1) && receipt["to"].is_string()
    });
    let (hash, address) = (json!(format!("0x{}", "ab".repeat(32))), json!(format!("0x{}", "ab".repeat(20))));
    let receipts: Value = serde_json::from_slice(line.receipts()).unwrap();
    let log = receipts[place]["logs"][0].clone();
    refuse_all(
        &line,
        place,
        &[
            ("blockNumber", json!("0x1")),
            ("contractAddress", address.clone()),
            ("cumulativeGasUsed", json!("0x1")),
            ("effectiveGasPrice", json!("0x1")),
            ("from", address.clone()),
            ("from", json!("0x0000000000000000000000000000000000000000")),
            ("gasUsed", json!("0x1")),
            ("gasUsed", json!("1")),
            ("status", json!("0x0")),
            ("status", json!("")),
            ("to", address.clone()),
            ("to", Value::Null),
            ("transactionHash", hash.clone()),
            ("transactionHash", json!("0x1")),
            ("transactionIndex", json!("0x7")),
            ("type", json!("0x2")),
            ("logsBloom", json!(format!("0x{}", "00".repeat(256)))),
            ("logs", json!([])),
            ("logs", json!([log, log])),
            ("logs", json!([log, log, log])),
            ("logs/0/address", address),
            ("logs/0/data", json!("0x1234")),
            ("logs/0/topics/0", hash.clone()),
            ("logs/0/topics", json!([])),
            ("logs/0/topics/1", json!("")),
            ("logs/1/logIndex", json!("0x0")),
            ("logs/0/removed", json!(true)),
            ("logs/0/blockHash", hash.clone()),
            ("logs/0/blockNumber", json!("0x1")),
            ("logs/0/transactionHash", hash),
            ("logs/0/transactionIndex", json!("0x7")),
        ],
    );
}

#[test]
fn every_change_to_the_receipt_of_a_creation_a_failure_or_a_stand_in_is_refused_with_the_member() {
    let address = json!(format!("0x{}", "ab".repeat(20)));
    let (line, place) = find("evm-scenario", |receipt| receipt["contractAddress"].is_string());
    refuse_all(
        &line,
        place,
        &[("contractAddress", address.clone()), ("contractAddress", Value::Null), ("to", address.clone())],
    );
    let (line, place) = find("evm-scenario", |receipt| receipt["status"] == "0x0");
    refuse_all(&line, place, &[("status", json!("0x1")), ("from", address.clone()), ("to", address.clone())]);
    let nobody = json!("0x0000000000000000000000000000000000000000");
    let (line, place) = find("l1-l2/l2", |receipt| receipt["from"] == nobody);
    refuse_all(
        &line,
        place,
        &[
            ("from", address.clone()),
            ("to", address.clone()),
            ("contractAddress", address),
            ("effectiveGasPrice", json!("0x1")),
            ("logs", json!([])),
            ("type", json!("0x1")),
            ("gasUsed", json!("0x1")),
        ],
    );
}

#[test]
fn receipts_left_out_added_twice_or_out_of_order_are_refused() {
    let many = |line: &Line| serde_json::from_slice::<Vec<Value>>(line.receipts()).unwrap().len() > 2;
    let line = heights("evm-scenario").find(many).unwrap();
    let all: Vec<Value> = serde_json::from_slice(line.receipts()).unwrap();
    let refusal = |receipts: &[Value]| {
        check(&line, None, line.block_results.get(), &json!(receipts).to_string()).unwrap_err()
    };
    for without in 0..all.len() {
        let mut fewer = all.clone();
        fewer.remove(without);
        assert!(refusal(&fewer).contains("has no receipt at its place"));
    }
    let mut swapped = all.clone();
    swapped.swap(0, 1);
    assert!(refusal(&swapped).contains("has no receipt at its place"));
    let twice = [&all[..], &all[..1]].concat();
    assert!(refusal(&twice).contains("belongs to no transaction there"));
    assert!(refusal(&[]).contains("there is none"));
}

#[test]
fn false_events_about_proven_logs_are_refused_even_if_the_receipt_agrees() {
    let (line, place) =
        find("evm-scenario", |receipt| receipt["logs"].as_array().is_some_and(|logs| logs.len() == 1));
    let mut results: Value = serde_json::from_str(line.block_results.get()).unwrap();
    let mut receipts: Value = serde_json::from_slice(line.receipts()).unwrap();
    let topic = receipts[place]["logs"][0]["topics"][0].as_str().unwrap().to_owned();
    let other = format!("0x{}", "ab".repeat(32));
    for event in results["txs_results"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .flat_map(|tx| tx["events"].as_array_mut().unwrap())
    {
        for attribute in event["attributes"].as_array_mut().unwrap() {
            attribute["value"] = attribute["value"].as_str().unwrap().replace(&topic, &other).into();
        }
    }
    receipts[place]["logs"][0]["topics"][0] = other.into();
    let error = check(&line, None, &results.to_string(), &receipts.to_string()).unwrap_err();
    assert!(
        error.contains("log 0 in the result data of transaction") && error.contains("is not in its events"),
        "{error}"
    );

    for value in ["{", "", "7", "{\"topics\":7}"] {
        let mut results: Value = serde_json::from_str(line.block_results.get()).unwrap();
        let events = results["txs_results"][0]["events"].as_array_mut().unwrap();
        events.push(json!({"type": "evm", "attributes": [{"key": "log", "value": value}]}));
        let error = check(&line, None, &results.to_string(), &receipts.to_string()).unwrap_err();
        assert!(
            error.contains("a log in the events of transaction") && error.contains("is none"),
            "{value}: {error}"
        );
    }
}

proptest! {
    #[test]
    fn no_transaction_data_event_or_receipt_makes_the_check_panic(
        input in any::<Vec<u8>>(), memo in ".*", text in ".*", data in any::<Vec<u8>>(), code in 0..2_u32,
        sequence in any::<u64>(), cap in any::<u64>(), kind in 0..5_u8, signature in prop::collection::vec(any::<u8>(), 60..70),
    ) {
        let proper = json!({"type": kind, "gas_fee_cap": cap, "gas_tip_cap": cap, "gas_limit": cap}).to_string();
        let sender = "0x1b9f30d48692d9f043a72ca7427cbdacec3788cf";
        let mut message = vec![0x0a, 42];
        message.extend_from_slice(sender.as_bytes());
        for field in 2..7_u8 {
            message.extend_from_slice(&[field << 3 | 2, 2]);
            message.extend_from_slice(if field == 3 { b"0x" } else { b"10" });
        }
        message.extend_from_slice(&input);
        let value = TypedBytes { type_url: "/minievm.evm.v1.MsgCall".to_owned(), value: message };
        let tx = |memo: &str| DecodedTx {
            messages: vec![value.clone()],
            memo: memo.to_owned(),
            signer_infos: vec![SignerInfo { public_key: None, mode: SignMode::Single(9999), sequence }],
            signatures: vec![signature.clone()],
            fee: vec![Coin { denom: "GAS".to_owned(), amount: text.clone() }],
            ..DecodedTx::default()
        };
        let log = Attribute { key: "log".into(), value: text.clone().into(), index: true };
        let event = Event { kind: "evm".into(), attributes: vec![log] };
        let data = base64::engine::general_purpose::STANDARD.encode(&data);
        let result = TxResult { code, data: Some(data.into()), events: vec![event], ..TxResult::default() };
        let chain = EvmChain { chain_id: &text, prefix: "init", fee_denom: Some("GAS") };
        let receipt = Receipt { transaction_hash: format!("0x{}", "ab".repeat(32)).into(), ..Receipt::default() };
        for tx in [Some(tx(&memo)), Some(tx(&proper)), None] {
            let executed = Executed { hash: [1; 32], tx: tx.as_ref(), result: &result };
            prop_assert!(check_receipts(&chain, 5, [executed], std::slice::from_ref(&receipt)).is_err());
        }
    }
}
