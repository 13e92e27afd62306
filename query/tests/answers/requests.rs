//! Requests that are invalid, that ask for missing records, or that reach a damaged row.

use std::collections::BTreeSet;

use crate::hand_made::{BlockPlan, EvmTxPlan, HandMade, TxPlan, account};
use http::header::ALLOW;
use http::{Method, Request};
use schema::block::Blocks;
use schema::evm_tx::EvmTxs;
use schema::index::Index;
use schema::index_writer::{Rest, Writer};
use schema::internal_tx::Calls;
use schema::keys::hash_prefix;
use schema::parties::PARTIES;
use schema::payload::{Chunk, Payload};
use schema::postings::Postings;
use schema::tx::{TxByHash, Txs};
use schema::undo::Horizon;
use store::Table;

/// Three blocks with two transactions of each kind.
fn small() -> HandMade {
    let mut made = HandMade::new("evm", 1);
    let accounts = BTreeSet::from([0, 1]);
    let tx = TxPlan { involved: accounts.clone(), signers: accounts.clone(), types: BTreeSet::from([0]) };
    let evm_tx = EvmTxPlan { involved: accounts, from: 0, frames: vec![(0, 1); 3] };
    for _ in 0..3 {
        made.add(&BlockPlan { txs: vec![tx.clone(); 2], evm_txs: vec![evm_tx.clone(); 2] });
    }
    made
}

/// Every list of the API, without its parameters.
fn lists(made: &HandMade) -> Vec<String> {
    let hash = chain::hash::to_hex(&made.evm_txs[0].hash);
    let of_account = account(0).to_hex();
    let mut lists =
        vec!["/indexer/block/v1/blocks".to_owned(), format!("/indexer/tx/v1/evm-internal-txs/{hash}")];
    for kind in ["txs", "evm-txs", "evm-internal-txs"] {
        lists.push(format!("/indexer/tx/v1/{kind}"));
        lists.push(format!("/indexer/tx/v1/{kind}/by_account/{of_account}"));
        lists.push(format!("/indexer/tx/v1/{kind}/by_height/2"));
    }
    lists
}

/// Status and message of a refusal, whose shape is checked.
fn refusal(made: &HandMade, target: &str) -> (u16, String) {
    let response = made.app.get(target);
    assert_eq!(response.headers()["content-type"], "application/json", "{target}");
    let (status, body) = made.get(target);
    assert!(body["code"].is_u64() && body["details"] == serde_json::json!([]), "{target}: {body}");
    (status, body["message"].as_str().unwrap().to_owned())
}

#[test]
fn transactions_by_recipient_are_listed_once_their_index_is_complete() {
    static INDEX: Index = PARTIES;
    let mut made = small();
    let sent_back = EvmTxPlan { involved: BTreeSet::from([0, 1]), from: 1, frames: Vec::new() };
    made.add(&BlockPlan { txs: Vec::new(), evm_txs: vec![sent_back] });
    let list = |n: u8| format!("/indexer/tx/v1/evm-txs/by_account/{}?is_recipient=true", account(n).to_hex());
    let (status, message) = refusal(&made, &list(1));
    assert!(status == 404 && message.contains(r#"set `index = ["parties"]`"#), "{status} {message}");

    let mut writer = Writer::new(&*made.store, &INDEX, Horizon::DEFAULT).unwrap();
    assert_eq!(writer.advance(&*made.store, 2).unwrap(), Rest::Completed);
    let (status, message) = refusal(&made, &list(1));
    assert!(
        status == 503 && message.contains("1 to 2 of 4") && message.contains("parties"),
        "{status} {message}"
    );
    let (_, progress) = made.get("/status");
    assert_eq!(progress["indexes"], serde_json::json!([{ "name": "parties", "from": 1, "height": 2 }]));

    writer.advance(&*made.store, 4).unwrap();
    for (n, expected) in [(0, &[7][..]), (1, &[6, 5, 4, 3, 2, 1]), (9, &[])] {
        let (status, body) = made.get(&list(n));
        let seqs: Vec<u64> =
            body["txs"].as_array().unwrap().iter().map(|tx| tx["n"].as_u64().unwrap()).collect();
        assert_eq!((status, &seqs[..]), (200, expected), "{n}");
        assert_eq!(body["pagination"]["total"], expected.len().to_string(), "{body}");
    }
    let (_, second) = made.get(&format!("{}&pagination.limit=2&pagination.offset=2", list(1)));
    assert_eq!(second["txs"][0]["n"], 4, "{second}");
    let (status, both) = made.get(&format!("{}&is_signer=true", list(1)));
    assert_eq!((status, &both["txs"]), (200, &serde_json::json!([])), "{both}");
    // The next block is without the index.
    made.add(&BlockPlan { txs: Vec::new(), evm_txs: Vec::new() });
    assert_eq!(refusal(&made, &list(1)).0, 503);
}

#[test]
fn bad_paging_is_refused_on_every_list_with_the_parameter_and_the_value() {
    let made = small();
    for list in lists(&made) {
        for (parameter, value, allowed) in [
            ("pagination.limit", "0", "between 1 and 1000"),
            ("pagination.limit", "1001", "between 1 and 1000"),
            ("pagination.limit", "-1", "between 1 and 1000"),
            ("pagination.offset", "-1", "cannot be negative"),
            ("pagination.key", "!!", "base64"),
            ("pagination.key", "YWJj", "nonnegative integer"),
            ("pagination.key", "LTU=", "nonnegative integer"),
            ("pagination.key", "e2E=", "format"),
            // A truncated cursor of this server.
            ("pagination.key", "AQIA", "format"),
            ("pagination.limit", "%ff", "percent-encoded"),
        ] {
            let (status, message) = refusal(&made, &format!("{list}?{parameter}={value}"));
            assert_eq!(status, 400, "{list} {parameter}={value}");
            for part in [parameter, value, allowed] {
                assert!(message.contains(part), "{list}: `{part}` is not in `{message}`");
            }
        }
    }
}

#[test]
fn a_cursor_of_another_kind_of_list_is_refused() {
    let made = small();
    let lists = lists(&made);
    for list in &lists {
        let (_, body) = made.get(&format!("{list}?pagination.limit=1"));
        let key = body["pagination"]["next_key"].as_str().unwrap().to_owned();
        let refused = lists.iter().filter(|other| {
            let (status, _) = made.get(&format!("{other}?pagination.key={key}"));
            assert!(status == 200 || status == 400);
            status == 400
        });
        // Four kinds: the block list, and three each of transactions and EVM transactions, four of call frames.
        let same = if list.contains("block/v1") {
            1
        } else if list.contains("internal") {
            4
        } else {
            3
        };
        assert_eq!(refused.count(), lists.len() - same, "{list}");
    }
}

#[test]
fn bad_heights_hashes_and_addresses_are_refused_with_the_parameter_and_the_value() {
    let made = small();
    let long = "f".repeat(65);
    for (prefix, parameter, values) in [
        ("/indexer/block/v1/blocks/", "height", &["0", "-3", "abc", "9223372036854775808", "1.5", "0x1"][..]),
        ("/indexer/tx/v1/txs/by_height/", "height", &["0", "-3", "abc"]),
        ("/indexer/tx/v1/evm-txs/by_height/", "height", &["0", "x"]),
        ("/indexer/tx/v1/evm-internal-txs/by_height/", "height", &["0", "x"]),
        ("/indexer/tx/v1/txs/by_account/", "account", &["notanaddress", "0xzz", &long, "init1qqqq"]),
        ("/indexer/tx/v1/evm-txs/by_account/", "account", &["notanaddress", "cosmos1qqqq"]),
        ("/indexer/tx/v1/evm-internal-txs/by_account/", "account", &["notanaddress"]),
        ("/indexer/tx/v1/txs/", "hash", &["zz", "0xgg", "by_height"]),
        ("/indexer/tx/v1/evm-txs/", "hash", &["zz"]),
        ("/indexer/tx/v1/evm-internal-txs/", "hash", &["zz"]),
    ] {
        for value in values {
            let (status, message) = refusal(&made, &format!("{prefix}{value}"));
            assert_eq!(status, 400, "{prefix}{value}: {message}");
            assert!(message.contains(parameter) && message.contains(*value), "{prefix}{value}: {message}");
        }
    }
}

#[test]
fn a_bad_value_that_is_long_is_not_repeated_whole() {
    let (status, message) = refusal(&small(), &format!("/indexer/tx/v1/txs/by_account/{}", "z".repeat(5000)));
    assert_eq!(status, 400);
    assert!(message.len() < 400, "{}", message.len());
}

#[test]
fn more_message_types_than_a_filter_may_have_are_refused() {
    let names: Vec<String> = (0..65).map(|n| format!("a.v1.Msg{n}")).collect();
    let (status, message) = refusal(&small(), &format!("/indexer/tx/v1/txs?msgs={}", names.join(",")));
    assert_eq!(status, 400);
    assert!(message.contains("msgs") && message.contains("65") && message.contains("64"), "{message}");
}

#[test]
fn a_message_type_without_a_package_is_refused_everywhere() {
    let made = small();
    for path in ["", "/by_height/1", "/by_account/0x01"] {
        for (msgs, named) in [("MsgSend", "MsgSend"), ("a.v1.MsgOne,/MsgTwo", "MsgTwo")] {
            let (status, message) = refusal(&made, &format!("/indexer/tx/v1/txs{path}?msgs={msgs}"));
            assert_eq!(status, 400, "{path} {msgs}");
            for part in ["msgs", named, "cosmos.bank.v1beta1.MsgSend"] {
                assert!(message.contains(part), "{message}");
            }
        }
    }
    assert!(made.app.open("/indexer/stream/v1/txs?msgs=MsgSend").is_err_and(|error| error.status() == 400));
    for absent in ["", ",", "%20,%20"] {
        assert_eq!(made.get(&format!("/indexer/tx/v1/txs?msgs={absent}")).1["pagination"]["total"], "6");
    }
}

#[test]
fn a_missing_record_is_404_and_an_unknown_account_or_height_is_an_empty_list() {
    let made = small();
    let unknown = "ab".repeat(32);
    for (target, named) in [
        ("/indexer/block/v1/blocks/99999999".to_owned(), "99999999"),
        (format!("/indexer/tx/v1/txs/{unknown}"), unknown.as_str()),
        // Hex, but not of a hash's length.
        ("/indexer/tx/v1/txs/ab".to_owned(), "ab"),
        (format!("/indexer/tx/v1/evm-txs/0x{unknown}"), &unknown),
        (format!("/indexer/tx/v1/evm-internal-txs/{unknown}"), &unknown),
        ("/nope".to_owned(), "/nope"),
        ("/indexer/tx/v1/txs/by_height/1/2".to_owned(), "by_height/1/2"),
    ] {
        let (status, message) = refusal(&made, &target);
        assert_eq!(status, 404, "{target}: {message}");
        assert!(message.contains(named), "{target}: {message}");
    }
    let stranger = account(9).to_bech32("init");
    for list in
        [format!("/indexer/tx/v1/txs/by_account/{stranger}"), "/indexer/tx/v1/txs/by_height/99".to_owned()]
    {
        let (status, body) = made.get(&list);
        assert_eq!((status, body["pagination"]["total"].as_str()), (200, Some("0")), "{list}");
        assert_eq!(body["txs"], serde_json::json!([]));
    }
}

#[test]
fn a_record_is_found_by_its_hash_in_every_spelling() {
    let made = small();
    // Each hash shares its first bytes with another one.
    for (kind, hashes) in [
        ("txs", made.txs.iter().map(|tx| tx.hash).collect::<Vec<_>>()),
        ("evm-txs", made.evm_txs.iter().map(|tx| tx.hash).collect()),
    ] {
        for (seq, hash) in (1_u64..).zip(hashes) {
            let hex = chain::hash::to_hex(&hash);
            for text in
                [hex.clone(), format!("0x{hex}"), format!("0X{}", hex.to_uppercase()), hex.to_uppercase()]
            {
                let (status, body) = made.get(&format!("/indexer/tx/v1/{kind}/{text}"));
                assert_eq!((status, body["tx"]["n"].as_u64()), (200, Some(seq)), "{kind} {text}");
            }
        }
    }
}

#[test]
fn of_the_same_transaction_in_several_blocks_the_successful_or_else_the_last_is_returned() {
    for (codes, found) in [([5, 0, 5], 2), ([0, 5, 5], 1), ([5, 5, 5], 3)] {
        let made = small();
        let hash = made.txs[0].hash;
        let hex = chain::hash::to_hex(&hash).to_uppercase();
        made.write(|txn| txn.delete::<TxByHash>(&hash_prefix(&hash)));
        made.write(|txn| {
            for (seq, code) in (1_u64..).zip(codes) {
                let record = format!(r#"{{"txhash":"{hex}","height":"1","code":{code},"n":{seq}}}"#);
                txn.put::<Txs>(&seq, &Payload([&[0], &Chunk::single(record.as_bytes()).take()[..]].concat()));
                txn.append_unread::<TxByHash>(&hash_prefix(&hash), &Postings::one(seq, 0));
            }
        });
        let (status, body) = made.get(&format!("/indexer/tx/v1/txs/{hex}"));
        assert_eq!((status, body["tx"]["n"].as_u64()), (200, Some(found)), "{codes:?}");
    }
}

#[test]
fn a_wrong_method_is_405_with_the_allowed_methods() {
    let made = small();
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH] {
        for path in
            lists(&made).iter().map(String::as_str).chain(["/status", "/indexer/block/v1/avg_blocktime"])
        {
            let request = Request::builder().method(&method).uri(path).body(()).unwrap();
            let response = made.app.respond(&request.into_parts().0, b"");
            assert_eq!(response.status(), 405, "{method} {path}");
            assert_eq!(response.headers()[ALLOW], "GET, HEAD, OPTIONS", "{method} {path}");
        }
    }
}

#[test]
fn a_chain_without_an_evm_has_no_evm_routes() {
    let mut made = HandMade::new("move", 1);
    made.add(&BlockPlan { txs: Vec::new(), evm_txs: Vec::new() });
    let evm = small();
    for list in lists(&evm).iter().filter(|list| list.contains("/evm-")) {
        let (status, message) = refusal(&made, list);
        assert_eq!((status, message.as_str()), (404, "evm routes are not available on this chain"), "{list}");
    }
    let (status, body) = made.get("/status");
    assert_eq!((status, body.get("internal_tx_height"), body.get("rich_list_height")), (200, None, None));
}

#[test]
fn an_empty_database_answers() {
    let made = HandMade::new("evm", 5);
    let (status, body) = made.get("/status");
    assert_eq!(
        (status, body["height"].as_u64(), body["internal_tx_height"].as_u64()),
        (200, Some(0), Some(0))
    );
    assert_eq!((body["version"].as_str(), body["chain_id"].as_str()), (Some("1.2.3"), Some("test-1")));
    for (list, member) in [
        ("/indexer/block/v1/blocks", "blocks"),
        ("/indexer/tx/v1/txs", "txs"),
        ("/indexer/tx/v1/evm-internal-txs", "internal_txs"),
    ] {
        let (status, body) = made.get(list);
        let none = serde_json::json!({"previous_key": null, "next_key": null, "total": "0"});
        assert_eq!(
            (status, &body[member], &body["pagination"]),
            (200, &serde_json::json!([]), &none),
            "{list}"
        );
    }
    assert_eq!(made.get("/indexer/tx/v1/txs/count").1["count"], "0");
    assert_eq!(made.get("/indexer/block/v1/avg_blocktime").1["avg_block_time"], 0);
}

#[test]
fn an_evm_transaction_without_frames_has_an_empty_list_of_them() {
    let mut made = small();
    let bare = EvmTxPlan { involved: BTreeSet::new(), from: 0, frames: Vec::new() };
    made.add(&BlockPlan { txs: Vec::new(), evm_txs: vec![bare] });
    let hash = chain::hash::to_hex(&made.evm_txs[made.evm_txs.len() - 1].hash);
    let (status, body) = made.get(&format!("/indexer/tx/v1/evm-internal-txs/{hash}"));
    assert_eq!((status, &body["internal_txs"]), (200, &serde_json::json!([])));
}

/// Replaces or deletes the row `key` of `T`.
fn damage<T: Table<Key = u64, Value = Payload>>(made: &HandMade, key: u64, row: Option<&[u8]>) {
    made.write(|txn| match row {
        Some(row) => txn.put::<T>(&key, &Payload(row.to_vec())),
        None => txn.delete::<T>(&key),
    });
}

#[test]
fn a_missing_block_is_500_and_never_skipped() {
    let made = small();
    made.write(|txn| txn.delete::<Blocks>(&2));
    for path in
        ["/indexer/block/v1/blocks", "/indexer/block/v1/blocks?pagination.reverse=false&pagination.limit=2"]
    {
        assert_eq!(refusal(&made, path).0, 500, "{path}");
    }
    assert_eq!(made.get("/indexer/block/v1/blocks?pagination.limit=1").0, 200);
}

#[test]
fn a_damaged_or_missing_record_is_500_and_never_skipped() {
    let rows: [Option<&[u8]>; 5] = [
        None,
        Some(&[]),
        // An unknown form, an unknown dictionary, an invalid zstd frame.
        Some(&[7, 1, 2]),
        Some(&[1, 99, 1, 2, 3]),
        Some(&[1, 1, 0xff, 0xff, 0xff, 0xff]),
    ];
    for row in rows {
        let made = small();
        damage::<Txs>(&made, 3, row);
        damage::<EvmTxs>(&made, 3, row);
        damage::<Calls>(&made, 4, row);
        for kind in ["txs", "evm-txs", "evm-internal-txs"] {
            for list in [
                format!("/indexer/tx/v1/{kind}"),
                format!("/indexer/tx/v1/{kind}?pagination.reverse=false"),
                format!("/indexer/tx/v1/{kind}/by_account/{}", account(0).to_hex()),
            ] {
                let (status, message) = refusal(&made, &list);
                assert_eq!((status, message.as_str()), (500, "internal server error"), "{list} {row:?}");
            }
            // A page without that record is still correct.
            let (status, _) = made.get(&format!("/indexer/tx/v1/{kind}?pagination.limit=1"));
            assert_eq!(status, 200, "{kind}");
        }
        let hash = chain::hash::to_hex(&made.txs[2].hash);
        assert_eq!(refusal(&made, &format!("/indexer/tx/v1/txs/{hash}")).0, 500);
    }
}

/// A transaction that failed may be repeated in another block: its bytes are the same, and so is its hash.
#[test]
fn of_several_transactions_with_a_hash_the_newest_is_found() {
    let mut made = small();
    made.repeat_first();
    for (kind, member, hash, last) in
        [("txs", "height", made.txs[0].hash, "3"), ("evm-txs", "blockNumber", made.evm_txs[0].hash, "0x3")]
    {
        let target = format!("/indexer/tx/v1/{kind}/{}", chain::hash::to_hex(&hash));
        let (status, found) = made.get(&target);
        let record = if found["tx"]["n"].is_u64() { &found["tx"] } else { &found };
        assert_eq!((status, &record["n"], &record[member]), (200, &6.into(), &last.into()), "{found}");
    }
}
