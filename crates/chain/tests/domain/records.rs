//! The JSON of blocks and Cosmos transactions: order and form of the members, old logs, hostile text.

use chain::Timestamp;
use chain::comet::{TxResult, parse_results};
use chain::record::{BlockRecord, Proposer, hash_and_code, write_block_record, write_tx_record};
use proptest::prelude::*;
use serde_json::Value;

fn written(result: &TxResult<'_>) -> String {
    let time = Timestamp::parse("2026-03-14T09:26:53.589793230Z").unwrap();
    let mut out = Vec::new();
    write_tx_record(&mut out, &[0xab; 32], 7, result, br#"{"body":1}"#, time).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_transaction_has_its_members_in_the_order_of_the_contract() {
    let answer =
        br#"{"height":"7","txs_results":[{"code":5,"data":"EiY=","log":"out of \u003cgas\u003e","info":"i",
        "gas_wanted":"240000","gas_used":"163021","codespace":"sdk","events":[{"type":"tx","attributes":[
        {"key":"fee","value":"4500ugas","index":true},{"key":"x","value":null}]}]}]}"#;
    let results = parse_results(answer).unwrap();
    let hash = "AB".repeat(32);
    let expected = [
        &format!(r#"{{"txhash":"{hash}","height":"7","codespace":"sdk","code":5,"data":"1226","#),
        r#""raw_log":"out of <gas>","logs":[],"info":"i","gas_wanted":"240000","gas_used":"163021","#,
        r#""tx":{"body":1},"timestamp":"2026-03-14T09:26:53.58979323Z","events":[{"type":"tx","attributes":["#,
        r#"{"key":"fee","value":"4500ugas","index":true},{"key":"x","value":"","index":true}]}]}"#,
    ];
    assert_eq!(written(&results.txs_results[0]), expected.concat());
}

proptest! {
    #[test]
    fn hash_and_code_are_read_from_the_first_bytes(codespace: String, code: u32, log: String, cut in 0..200_usize) {
        let result = TxResult { code, codespace: codespace.into(), log: log.into(), ..TxResult::default() };
        let record = written(&result);
        let hash = "AB".repeat(32);
        prop_assert_eq!(hash_and_code(record.as_bytes()), Some((&*hash, code)));
        // A shorter one is none, or ends within the code.
        let cut = cut.min(record.len());
        let short = hash_and_code(&record.as_bytes()[..cut]);
        prop_assert!(short.is_none_or(|(_, short)| code.to_string().starts_with(&short.to_string())));
    }
}

#[test]
fn logs_are_parsed_from_the_old_form_and_empty_for_any_other() {
    let old = r#"[{"msg_index":1,"log":"","events":[{"type":"a","attributes":[{"key":"k","value":"v\""},{"key":"n","value":null}]}]},{"events":null}]"#;
    let expected = r#""logs":[{"msg_index":1,"log":"","events":[{"type":"a","attributes":[{"key":"k","value":"v\""},{"key":"n","value":""}]}]},{"msg_index":0,"log":"","events":[]}],"#;
    let of = |log: &'static str| written(&TxResult { log: log.into(), ..TxResult::default() });
    assert!(of(old).contains(expected), "{}", of(old));
    for other in ["", "[]", "[1]", "[", "null", "{}", "out of gas", "[{\"events\":7}]"] {
        assert!(of(other).contains(r#""logs":[],"#), "{other}");
    }
}

#[test]
fn data_that_is_not_base64_is_an_error_and_leaves_no_output() {
    let mut out = b"before".to_vec();
    let result = TxResult { data: Some("@".into()), ..TxResult::default() };
    let time = Timestamp::from_unix_nanos(0);
    assert!(write_tx_record(&mut out, &[0; 32], 1, &result, b"{}", time).is_err());
    assert_eq!(out, b"before");
}

#[test]
fn a_block_has_its_members_in_the_order_of_the_contract() {
    let fees = [("GAS".to_owned(), "7".to_owned()), ("umin".to_owned(), "1".repeat(70))];
    let mut block = BlockRecord {
        chain_id: "demo-evm-1",
        height: 48_210,
        hash: &[0x9a; 32],
        block_time_ms: 1998,
        timestamp: Timestamp::parse("2026-03-14T09:26:53.999Z").unwrap(),
        gas_used: 163_021,
        gas_wanted: 240_000,
        tx_count: 1,
        total_fee: &fees,
        proposer: &Proposer {
            moniker: "seq \"1\"".to_owned(),
            identity: String::new(),
            operator_address: "initvaloper1".to_owned(),
        },
    };
    let hash = "9A".repeat(32);
    let (ones, written) = ("1".repeat(70), |block: &BlockRecord<'_>| {
        let mut out = Vec::new();
        write_block_record(&mut out, block);
        String::from_utf8(out).unwrap()
    });
    let expected = [
        &format!(r#"{{"chain_id":"demo-evm-1","height":"48210","hash":"{hash}","block_time":"1998","#),
        r#""timestamp":"2026-03-14T09:26:53Z","gas_used":"163021","gas_wanted":"240000","tx_count":"1","#,
        &format!(r#""total_fee":[{{"denom":"GAS","amount":"7"}},{{"denom":"umin","amount":"{ones}"}}],"#),
        r#""proposer":{"moniker":"seq \"1\"","identity":"","operator_address":"initvaloper1"}}"#,
    ];
    assert_eq!(written(&block), expected.concat());
    block.total_fee = &[];
    assert!(written(&block).contains(r#""total_fee":[],"#));
}

proptest! {
    #[test]
    fn for_any_answer_the_record_is_valid_json_with_the_same_texts(
        log in any::<String>(), info in any::<String>(), value in "[\\x00-\\x7fä\u{2028}]*"
    ) {
        let answer = serde_json::json!({"height": "1", "txs_results": [{"log": log, "info": info,
            "events": [{"type": info, "attributes": [{"key": log, "value": value, "index": true}]}]}]});
        let answer = serde_json::to_vec(&answer).unwrap();
        let record: Value = serde_json::from_str(&written(&parse_results(&answer).unwrap().txs_results[0])).unwrap();
        prop_assert_eq!(&record["raw_log"], &log);
        prop_assert_eq!(&record["events"][0]["type"], &info);
        prop_assert_eq!(&record["events"][0]["attributes"][0]["value"], &value);
    }
}
