//! Searches for transactions, EVM lookups and the bridge's executor: answers and their meanings.

use node::{Comet, Error, Evm, Kind, OpinitExecutor, Rest};

use crate::scripted::{Play, Server, fault, json, limits, result};

const TX: &str = r#"{"hash":"ABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABABAB","height":"7","index":2,"tx_result":{"code":0,"data":null,"log":"","info":"","events":[{"type":"t","attributes":[{"key":"a","value":"b","index":true}]}],"codespace":""},"tx":"AA=="}"#;

fn comet(server: &Server) -> Comet {
    Comet::new(vec![server.url.clone()], limits()).unwrap()
}

fn rest(server: &Server) -> Rest {
    Rest::new(vec![server.url.clone()], limits()).unwrap()
}

fn evm(server: &Server) -> Evm {
    Evm::new(vec![server.url.clone()], limits()).unwrap()
}

fn says(data: &str) -> Play {
    fault(
        500,
        &format!(
            r#"{{"jsonrpc":"2.0","id":-1,"error":{{"code":-32603,"message":"Internal error","data":"{data}"}}}}"#
        ),
    )
}

fn rpc_fault(code: i64, message: &str) -> Play {
    json(&format!(r#"{{"jsonrpc":"2.0","id":%ID%,"error":{{"code":{code},"message":"{message}"}}}}"#))
}

#[tokio::test]
async fn a_node_without_an_index_is_an_error_with_the_remedy() {
    let server = Server::always(says("transaction indexing is disabled")).await;
    let gateway = fault(500, r#"{"code":13,"message":"transaction indexing is disabled","details":[]}"#);
    let gateway = Server::always(gateway).await;
    for error in [
        comet(&server).tx_search("a.b='1'", 1, 30, false).await.unwrap_err(),
        comet(&server).tx([1; 32]).await.unwrap_err(),
        rest(&gateway).find_txs("a.b='1'", 1, 30, false).await.unwrap_err(),
        rest(&gateway).find_tx([1; 32]).await.unwrap_err(),
    ] {
        assert!(matches!(error, Error::NotIndexed { .. }), "{error:?}");
        assert_eq!(error.kind(), Kind::Permanent);
        let text = error.to_string();
        assert!(text.contains(r#"indexer = "kv" under [tx_index] in its config.toml"#), "{text}");
    }
}

#[tokio::test]
async fn a_transaction_is_absent_only_if_every_address_reports_so() {
    let without = Server::always(says("tx (AB) not found")).await;
    let with = Server::always(result(TX)).await;
    let urls = vec![without.url.clone(), with.url.clone()];
    let both = Comet::new(urls, limits()).unwrap();
    for _ in 0..2 {
        let found = both.tx([0xab; 32]).await.unwrap().unwrap();
        assert_eq!((found.hash, found.height, found.index), ([0xab; 32], 7, 2));
    }
    assert_eq!(comet(&without).tx([0xab; 32]).await.unwrap(), None);
    let broken = Server::always(Play::Close).await;
    let urls = vec![without.url.clone(), broken.url.clone()];
    let half = Comet::new(urls, limits()).unwrap();
    assert_eq!(half.tx([0xab; 32]).await.unwrap_err().kind(), Kind::Transient);
}

#[tokio::test]
async fn a_search_request_has_its_query_encoded_page_and_order() {
    let server = Server::always(result(&format!(r#"{{"txs":[{TX}],"total_count":"31"}}"#))).await;
    let (found, total) = comet(&server).tx_search(r#"a.b='x "y" \ &'"#, 2, 30, true).await.unwrap();
    assert_eq!((found.len(), total), (1, 31));
    assert_eq!(
        server.asked()[0].line,
        "GET /tx_search?query=%22a%2Eb%3D%27x%20%5C%22y%5C%22%20%5C%5C%20%26%27%22&page=2&per_page=30&order_by=%22desc%22"
    );
}

#[tokio::test]
async fn malformed_hits_are_errors() {
    for answer in [r#"{"txs":[{}],"total_count":"1"}"#, r#"{"txs":[],"total_count":"x"}"#, r#"{"txs":null}"#]
    {
        let server = Server::always(result(answer)).await;
        let error = comet(&server).tx_search("a.b='1'", 1, 30, false).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{answer}: {error}");
    }
    let short = TX.replace("ABAB", "AB");
    let server = Server::always(result(&short)).await;
    assert!(matches!(comet(&server).tx([1; 32]).await.unwrap_err(), Error::Malformed { .. }));
}

#[tokio::test]
async fn invalid_queries_are_permanent_and_failures_are_not() {
    for (reply, kind) in [
        ("page should be within [1, 1] range, given 2", Kind::Permanent),
        ("offset 3: EOF", Kind::Permanent),
        ("maximum query length exceeded", Kind::Permanent),
        ("context deadline exceeded", Kind::Transient),
        ("leveldb: closed", Kind::Transient),
    ] {
        let server = Server::always(says(reply)).await;
        let error = comet(&server).tx_search("a.b='1'", 1, 30, false).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{reply}");
    }
}

#[tokio::test]
async fn a_block_time_comes_from_the_header_or_on_old_nodes_from_the_block() {
    let header = r#"{"header":{"time":"2026-11-21T08:04:30.25Z"}}"#;
    let server = Server::always(result(header)).await;
    assert_eq!(comet(&server).block_time(7).await.unwrap().nanos(), "2026-11-21T08:04:30.25Z");
    let old = Server::play(|_, asked| {
        if asked.line.starts_with("POST") {
            return rpc_fault(-32601, "Method not found");
        }
        result(r#"{"block_id":{},"block":{"header":{"time":"2026-11-21T08:04:31Z"}}}"#)
    })
    .await;
    assert_eq!(comet(&old).block_time(7).await.unwrap().nanos(), "2026-11-21T08:04:31Z");
    assert_eq!(old.asked()[1].line, "GET /block?height=7");
    let none = Server::always(result(r#"{"header":null}"#)).await;
    assert!(matches!(comet(&none).block_time(7).await.unwrap_err(), Error::Malformed { .. }));
}

#[tokio::test]
async fn an_older_sdk_gets_its_own_parameters() {
    let server = Server::play(|_, asked| {
        if asked.line.contains("query=") {
            let body = r#"{"code":3,"message":"must declare at least one event to search","details":[]}"#;
            return fault(400, body);
        }
        // SDK 0.45: the total is in the pagination; CometBFT 0.34: attributes are base64.
        json(r#"{"txs":[],"tx_responses":[{"height":"9","txhash":"CDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCDCD","codespace":"","code":0,"raw_log":"[]","timestamp":"2024-01-01T00:00:00Z","events":[{"type":"t","attributes":[{"key":"c2VuZGVy","value":"eA==","index":true}]}]}],"pagination":{"next_key":null,"total":"12"}}"#)
    })
    .await;
    let (found, total) = rest(&server).find_txs("a.b='x AND y' AND c.d='2'", 3, 5, true).await.unwrap();
    assert_eq!((total, found[0].0.height, found[0].0.hash), (12, 9, [0xcd; 32]));
    assert_eq!(found[0].0.events[0].get("sender"), Some("x"));
    assert_eq!(found[0].1.seconds(), "2024-01-01T00:00:00Z");
    assert_eq!(
        server.asked()[1].line,
        "GET /cosmos/tx/v1beta1/txs?events=a%2Eb%3D%27x%20AND%20y%27&events=c%2Ed%3D%272%27&page=3&limit=5&order_by=ORDER_BY_DESC&pagination.offset=10&pagination.limit=5"
    );
}

#[tokio::test]
async fn ranges_and_tags_that_a_server_does_not_support_are_permanent_errors() {
    for (reply, kind) in [
        ("block range exceeded 500", Kind::Permanent),
        ("query returned more than 10000 results", Kind::Permanent),
        ("rate limit exceeded", Kind::Transient),
    ] {
        let server = Server::always(rpc_fault(-32000, reply)).await;
        assert_eq!(evm(&server).logs("{}").await.unwrap_err().kind(), kind, "{reply}");
    }
    let server = Server::always(result("null")).await;
    assert!(matches!(evm(&server).logs("{}").await.unwrap_err(), Error::Malformed { .. }));
    assert_eq!(evm(&server).finalized().await.unwrap(), None);
    assert!(matches!(evm(&server).logs("{").await.unwrap_err(), Error::InvalidRequest { .. }));
    for (code, reply) in
        [(-32602, "invalid argument 0: hex string without 0x prefix"), (-32000, "finalized block not found")]
    {
        let server = Server::always(rpc_fault(code, reply)).await;
        assert_eq!(evm(&server).finalized().await.unwrap(), None, "{reply}");
    }
    let failing = Server::always(rpc_fault(-32000, "database closed")).await;
    assert_eq!(evm(&failing).finalized().await.unwrap_err().kind(), Kind::Transient);
}

#[tokio::test]
async fn amounts_and_hashes_are_read_or_refused() {
    let most = format!("\"0x{}\"", "f".repeat(64));
    let server = Server::always(result(&most)).await;
    assert_eq!(evm(&server).balance([1; 20]).await.unwrap(), chain::U256::MAX);
    for text in ["null", "\"0x\"", "\"5\"", "5"] {
        let server = Server::always(result(text)).await;
        assert!(matches!(evm(&server).balance([1; 20]).await, Err(Error::Malformed { .. })), "{text}");
    }
    let zero = format!("\"{}\"", "0".repeat(64));
    for text in ["null", zero.as_str()] {
        let server = Server::always(result(text)).await;
        assert_eq!(evm(&server).cosmos_hash([1; 32]).await.unwrap(), None, "{text}");
    }
    let server = Server::always(result("\"0x12\"")).await;
    assert!(matches!(evm(&server).eth_hashes([1; 32]).await, Err(Error::Malformed { .. })));
}

#[tokio::test]
async fn a_failing_executor_is_distinguished_from_an_unknown_withdrawal() {
    let executor = |server: &Server| OpinitExecutor::new(vec![server.url.clone()], limits()).unwrap();
    let text = "content-type: text/plain; charset=utf-8\r\n";
    let unseen = Server::always(Play::Answer(500, text, b"failed to query withdrawal".to_vec())).await;
    assert_eq!(executor(&unseen).withdrawal(5).await.unwrap(), None);
    assert_eq!(unseen.asked()[0].line, "GET /withdrawal/5");
    for play in [
        Play::Answer(500, text, b"out of memory".to_vec()),
        Play::Answer(502, text, b"failed to query withdrawal".to_vec()),
        Play::Close,
        json("{}"),
        json("false"),
    ] {
        let server = Server::always(play).await;
        let error = executor(&server).withdrawal(5).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Transient, "{error}");
    }
}

#[tokio::test]
async fn a_closed_tree_of_one_withdrawal_has_an_output_and_no_proofs() {
    let body = r#"{"sequence":5,"to":"b","from":"a","amount":{"denom":"uinit","amount":"7"},"output_index":3,"bridge_id":1,"withdrawal_proofs":null,"version":"AQ==","storage_root":"AA==","last_block_hash":"AB==","tx_time":"2026-01-01T00:00:00Z","tx_height":9,"tx_hash":"HASH"}"#;
    let body = body.replace("HASH", &"0A".repeat(32));
    let body = &body;
    let server = Server::always(json(body)).await;
    let executor = OpinitExecutor::new(vec![server.url.clone()], limits()).unwrap();
    let withdrawal = executor.withdrawal(5).await.unwrap().unwrap();
    assert_eq!((withdrawal.output_index, withdrawal.proofs.len()), (Some(3), 0));
    assert_eq!(withdrawal.tx, Some(([10; 32], 9)));
    assert_eq!((withdrawal.amount.as_str(), withdrawal.storage_root.as_str()), ("7", "AA=="));
}
