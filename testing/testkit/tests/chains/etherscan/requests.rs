//! Requests, their texts, and the other modules.

use std::sync::Arc;

use evm_rpc::{Dialect, EvmRpc, Forward, Group};
use http::Request;
use serde_json::{Value, json};

use super::naive::{chain, number, objects, text};
use super::{fees, reply, response, result, rows};

/// True for a log.
type Matches<'a> = Box<dyn Fn(&Value) -> bool + 'a>;

/// The texts of errors and of empty lists, which clients compare.
#[tokio::test(flavor = "multi_thread")]
async fn errors_and_empty_lists_have_the_texts_of_etherscan() {
    let nobody = format!("0x{}", "5a".repeat(20));
    let not_ok = |text: &str| json!({ "status": "0", "message": "NOTOK", "result": text });
    let none = |text: &str| json!({ "status": "0", "message": text, "result": [] });
    let of = |query: &str| query.replace("NOBODY", &nobody);
    let cases = [
        ("module=account&action=txlist&address=NOBODY", none("No transactions found")),
        ("module=account&action=txlistinternal&address=NOBODY", none("No transactions found")),
        ("module=account&action=tokentx&address=NOBODY", none("No transactions found")),
        ("module=account&action=tokennfttx&address=NOBODY", none("No transactions found")),
        ("module=account&action=token1155tx&address=NOBODY", none("No transactions found")),
        ("module=account&action=getminedblocks&address=NOBODY", none("No blocks found")),
        ("module=logs&action=getLogs&address=NOBODY", none("No records found")),
        ("module=contract&action=getabi&address=NOBODY", not_ok("Contract source code not verified")),
        (
            "module=contract&action=getcontractcreation&contractaddresses=NOBODY",
            json!({ "status": "0", "message": "No data found", "result": null }),
        ),
        (
            "module=account&action=txlist&address=NOBODY&page=11&offset=1000",
            not_ok("Result window is too large, PageNo x Offset size must be less than or equal to 10000"),
        ),
        (
            "module=account&action=txlist&address=NOBODY&page=99999999999999999999&offset=2",
            not_ok("Result window is too large, PageNo x Offset size must be less than or equal to 10000"),
        ),
        // Any block above the last one is none, of whatever number.
        (
            "module=account&action=txlist&address=NOBODY&startblock=99999999999999999999",
            none("No transactions found"),
        ),
        (
            "module=account&action=txlist&address=NOBODY&endblock=9e9",
            not_ok("Error! Invalid endblock: a decimal number is expected"),
        ),
        ("module=account&action=txlist&address=0x12", not_ok("Error! Invalid address format")),
        ("module=account&action=txlist&address=NOBODYff", not_ok("Error! Invalid address format")),
        ("module=transaction&action=getstatus&txhash=0x12", not_ok("Error! Invalid transaction hash")),
        ("module=bank&action=txlist", not_ok("Error! Missing Or invalid Module name")),
        ("action=txlist", not_ok("Error! Missing Or invalid Module name")),
        ("module=account&action=none", not_ok("Error! Missing Or invalid Action name")),
        (
            "module=block&action=getblocknobytime&timestamp=1&closest=before",
            not_ok("Error! No closest block found"),
        ),
        (
            "module=account&action=txlist&address=NOBODY&chainid=1",
            not_ok(
                "Missing or unsupported chainid parameter (required for v2 api), please see /v2/chainlist for the list of \
                 supported chainids",
            ),
        ),
    ];
    for (query, expected) in cases {
        assert_eq!(reply(fees().await, &of(query)).await, expected, "{query}");
    }
    // Safe's client asks for the chains of Sourcify before anything else, below the path of sourcify.dev.
    for path in ["/sourcify/chains", "/server/chains"] {
        let chains = response(fees().await, path).await;
        let chains: Value = serde_json::from_slice(chains.body()).unwrap();
        assert_eq!(
            (&chains[0]["chainId"], &chains[0]["supported"]),
            (&json!(1_990_259_959_267_959_u64), &json!(true))
        );
    }
    for path in ["/sourcify", "/server"] {
        let contract = response(fees().await, &format!("{path}/v2/contract/1990259959267959/{nobody}")).await;
        assert_eq!(contract.status(), 404);
        let contract: Value = serde_json::from_slice(contract.body()).unwrap();
        assert!(contract["match"].is_null() && contract["address"] == nobody.as_str(), "{contract}");
    }
    // One process has one chain here, which needs no name; another one is refused in both versions.
    let action = "module=block&action=getblocknobytime&timestamp=1";
    let of_one = response(fees().await, &format!("/api?{action}")).await;
    assert_eq!(response(fees().await, &format!("/v2/api?{action}")).await.body(), of_one.body());
    let other = response(fees().await, &format!("/v2/api?chainid=1&{action}")).await;
    assert!(String::from_utf8_lossy(other.body()).contains("Missing or unsupported chainid"));
}

#[tokio::test(flavor = "multi_thread")]
async fn names_are_read_in_any_case_from_the_query_and_from_a_form() {
    let app = fees().await;
    let sender = text(&chain("evm-fees")[5].receipt["from"]).to_owned();
    let plain =
        rows(app, &format!("module=account&action=txlist&address={sender}&startblock=20&endblock=90")).await;
    assert!(!plain.is_empty());
    // foundry's spelling, with its page for the first one.
    let foundry =
        format!("Module=account&Action=TXLIST&Address={sender}&startBlock=20&endBlock=90&page=0&apikey=x");
    assert_eq!(rows(app, &foundry).await, plain);
    let body = format!("module=account&action=txlist&address={sender}&startblock=20&endblock=90");
    let request = Request::builder().method("POST").uri("/v2/api?chainid=1990259959267959&address=0x0");
    let request = request.header("content-type", "application/x-www-form-urlencoded").body(()).unwrap();
    let response = app.respond_later(&request.into_parts().0, body.as_bytes()).await;
    let posted: Value = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(posted["result"], Value::from(plain), "{posted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_by_window_and_by_start_block_lose_no_transaction() {
    let app = fees().await;
    let txs = chain("evm-fees");
    let mut by_sender = std::collections::BTreeMap::<&str, usize>::new();
    for tx in &txs {
        *by_sender.entry(text(&tx.receipt["from"])).or_default() += 1;
    }
    let (sender, _) = by_sender.iter().max_by_key(|(_, count)| **count).unwrap();
    let query = format!("module=account&action=txlist&address={sender}");
    let whole = rows(app, &query).await;
    assert!(whole.len() > 100);
    let mut paged = Vec::new();
    for page in 1.. {
        let some = rows(app, &format!("{query}&page={page}&offset=37")).await;
        if some.is_empty() {
            break;
        }
        paged.extend(some);
    }
    assert_eq!(paged, whole);
    let mut newest = rows(app, &format!("{query}&sort=desc")).await;
    newest.reverse();
    assert_eq!(newest, whole);
    // rotki asks again from the block of the last row.
    let (mut from, mut seen) = (0, Vec::<Value>::new());
    loop {
        let some = rows(app, &format!("{query}&startblock={from}&page=1&offset=60")).await;
        let fresh: Vec<_> = some.iter().filter(|row| !seen.contains(row)).cloned().collect();
        if fresh.is_empty() {
            break;
        }
        from = text(&some.last().unwrap()["blockNumber"]).parse().unwrap();
        seen.extend(fresh);
    }
    assert_eq!(seen, whole);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_those_of_a_scan_with_any_join_of_their_topics() {
    let (app, txs) = (fees().await, chain("evm-fees"));
    let logs: Vec<Value> = txs.iter().flat_map(|tx| tx.receipt["logs"].as_array().unwrap().clone()).collect();
    let some: Vec<&Value> =
        logs.iter().filter(|log| log["topics"].as_array().unwrap().len() > 2).step_by(97).collect();
    let has = |log: &Value, place: usize, topic: &Value| log["topics"].get(place) == Some(topic);
    let mut counts = Vec::new();
    for log in some {
        let (a, b, c) = (&log["topics"][0], &log["topics"][1], &log["topics"][2]);
        let [t0, t1, t2] = [a, b, c].map(text);
        let queries: Vec<(String, Matches<'_>)> = vec![
            (format!("topic0={t0}"), Box::new(|log| has(log, 0, a))),
            (format!("topic0={t0}&topic1={t1}"), Box::new(|log| has(log, 0, a) && has(log, 1, b))),
            (
                format!("topic1={t1}&topic2={t2}&topic1_2_opr=or"),
                Box::new(|log| has(log, 1, b) || has(log, 2, c)),
            ),
            (
                format!("topic0={t0}&topic1={t1}&topic2={t2}&topic0_1_opr=and&topic1_2_opr=OR"),
                Box::new(|log| (has(log, 0, a) && has(log, 1, b)) || has(log, 2, c)),
            ),
            (
                format!("address={}&topic0={t0}&fromBlock=0x64&toBlock=latest", text(&log["address"])),
                Box::new(|other| {
                    other["address"] == log["address"]
                        && has(other, 0, a)
                        && number(&other["blockNumber"]) >= number(&json!("0x64"))
                }),
            ),
        ];
        for (query, matches) in queries {
            let expected: Vec<_> = logs.iter().filter(|log| matches(log)).take(1000).collect();
            let found = rows(app, &format!("module=logs&action=getLogs&{query}")).await;
            let key =
                |log: &Value| (log["transactionHash"].clone(), log["data"].clone(), log["topics"].clone());
            let keys = |logs: &[&Value]| logs.iter().map(|log| key(log)).collect::<Vec<_>>();
            assert_eq!(keys(&found.iter().collect::<Vec<_>>()), keys(&expected), "{query}");
            counts.push(found.len());
        }
    }
    assert!(counts.iter().any(|count| *count > 500) && counts.len() > 50, "{counts:?}");
    let head = rows(app, "module=logs&action=getLogs&fromBlock=latest&toBlock=latest").await;
    let in_head = rows(app, "module=logs&action=getLogs&fromBlock=584&toBlock=584").await;
    assert_eq!(head, in_head, "latest is the last block, not all of them");
    let third = rows(app, "module=logs&action=getLogs&fromBlock=1&toBlock=584&page=3&offset=100").await;
    assert_eq!(third[0]["data"], logs[200]["data"]);
    assert_eq!(third[0]["transactionHash"], logs[200]["transactionHash"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_found_by_a_time_before_it_and_after_it() {
    let app = fees().await;
    let blocks: Vec<(u64, u64)> = super::naive::lines("evm-fees", "blocks.ndjson.zst")
        .map(|line| (line["height"].as_u64().unwrap(), number(&line["eth_block"]["timestamp"]).to()))
        .collect();
    let (first, last) = (blocks[0].1, blocks[blocks.len() - 1].1);
    for time in (first - 1..=last + 1).step_by(7) {
        let query = |side| format!("module=block&action=getblocknobytime&timestamp={time}&closest={side}");
        let before = blocks.iter().rev().find(|(_, at)| *at <= time);
        let after = blocks.iter().find(|(_, at)| *at >= time);
        for (side, expected) in [("before", before), ("after", after)] {
            let found = reply(app, &query(side)).await;
            match expected {
                Some((height, _)) => assert_eq!(found["result"], height.to_string(), "{time} {side}"),
                None => assert_eq!(found["result"], "Error! No closest block found", "{time} {side}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_of_a_transaction_is_that_of_its_receipt_with_the_reason_of_the_chain() {
    let app = fees().await;
    let mut failed = 0;
    for tx in chain("evm-fees").iter().step_by(3) {
        let (hash, status) = (text(&tx.receipt["transactionHash"]), text(&tx.receipt["status"]));
        let query = |action| format!("module=transaction&action={action}&txhash={hash}");
        assert_eq!(result(app, &query("gettxreceiptstatus")).await, json!({ "status": &status[2..] }));
        let status_of = result(app, &query("getstatus")).await;
        let is_error = status == "0x0";
        assert_eq!(status_of["isError"], if is_error { "1" } else { "0" });
        assert_eq!(text(&status_of["errDescription"]).is_empty(), !is_error, "{status_of}");
        failed += usize::from(is_error);
    }
    assert!(failed > 10, "{failed}");
    let unknown = format!("0x{}", "77".repeat(32));
    let query = format!("module=transaction&action=gettxreceiptstatus&txhash={unknown}");
    assert_eq!(result(app, &query).await, json!({ "status": "" }));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_creation_of_a_contract_names_its_creator_and_its_factory() {
    let (app, txs, objects) = (fees().await, chain("evm-fees"), objects("evm-fees"));
    let creations = txs.iter().filter(|tx| tx.receipt["contractAddress"].is_string());
    let mut seen = 0;
    for tx in creations {
        let contract = text(&tx.receipt["contractAddress"]);
        let query = format!("module=contract&action=getcontractcreation&contractaddresses={contract}");
        let found = result(app, &query).await;
        let row = &found[0];
        assert_eq!(row["contractAddress"], contract);
        assert_eq!(row["contractCreator"], tx.receipt["from"], "{row}");
        assert_eq!(row["txHash"], tx.receipt["transactionHash"]);
        assert_eq!(row["contractFactory"], "");
        assert_eq!(row["creationBytecode"], objects[text(&row["txHash"])]["input"]);
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_needs_the_state_of_the_chain_is_refused_without_a_node_and_forwarded_with_one() {
    let app = fees().await;
    let account = text(&chain("evm-fees")[5].receipt["from"]).to_owned();
    let balance = format!("module=account&action=balance&address={account}");
    let refused = reply(app, &balance).await;
    assert_eq!(refused["message"], "NOTOK");
    assert!(text(&refused["result"]).contains("evm_forward"), "{refused}");
    let head = reply(app, "module=proxy&action=eth_blockNumber").await;
    assert_eq!(head, json!({ "jsonrpc": "2.0", "id": 1, "result": "0x248" }));
    let down = Forward::new(vec![Group::State], vec!["http://127.0.0.1:1".parse().unwrap()]).unwrap();
    let index = app.state().rpc().index().unwrap();
    let index = Arc::new(std::sync::OnceLock::from(Arc::clone(index)));
    let rpc = EvmRpc::new(index, Arc::new(|| Ok(())), Dialect::Fixed, "0").with_forward(Some(down));
    let app = etherscan::Etherscan::new(rpc).app().unwrap();
    let unavailable = reply(&app, &balance).await;
    assert_eq!(unavailable["result"], "Error! upstream unavailable", "a node that is asked is no setting");
}
