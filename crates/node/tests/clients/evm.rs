//! The classification of the EVM server's replies.

use node::{Error, Evm, EvmBlock, Kind, Limits, ReceiptFailures};

use crate::scripted::{Play, Server, json, limits, result};

fn evm(server: &Server) -> Evm {
    Evm::new(vec![server.url.clone()], limits()).unwrap()
}

fn fault(code: i64, message: &str) -> Play {
    json(&format!(r#"{{"jsonrpc":"2.0","id":%ID%,"error":{{"code":{code},"message":"{message}"}}}}"#))
}

#[tokio::test]
async fn a_null_for_a_block_is_a_wait_and_never_an_empty_block() {
    let server = Server::always(result("null")).await;
    let evm = evm(&server);
    assert_eq!(evm.block_receipts(9).await.unwrap_err().kind(), Kind::NotYet);
    assert_eq!(evm.trace_block(9).await.unwrap_err().kind(), Kind::NotYet);
    assert_eq!(evm.trace_tx([7; 32]).await.unwrap_err().kind(), Kind::NotYet);
    assert!(!evm.block_exists(9).await.unwrap());
}

#[tokio::test]
async fn an_empty_list_is_returned_and_the_block_can_be_queried() {
    let server = Server::in_turn(vec![result("[]"), result(r#"{"number":"0x9"}"#)]).await;
    let evm = evm(&server);
    assert_eq!(evm.block_receipts(9).await.unwrap().bytes, "[]");
    assert!(evm.block_exists(9).await.unwrap());
}

#[tokio::test]
async fn requests_have_explicit_hex_heights_and_growing_ids() {
    let server = Server::always(result(r#""0xe2""#)).await;
    let evm = evm(&server);
    assert_eq!(evm.block_number().await.unwrap(), 226);
    evm.block_receipts(226).await.unwrap();
    evm.block_exists(226).await.unwrap();
    evm.trace_block(226).await.unwrap();
    evm.trace_tx([0xab; 32]).await.unwrap();
    let bodies: Vec<_> = server.asked().into_iter().map(|asked| asked.body).collect();
    let hash = "ab".repeat(32);
    assert_eq!(
        bodies,
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":2,"method":"eth_getBlockReceipts","params":["0xe2"]}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":3,"method":"eth_getBlockByNumber","params":["0xe2",false]}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":4,"method":"debug_traceBlockByNumber","params":["0xe2",{"tracer":"callTracer"}]}"#
                .to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","id":5,"method":"debug_traceTransaction","params":["0x{hash}",{{"tracer":"callTracer"}}]}}"#
            ),
        ]
    );
}

#[tokio::test]
async fn a_missing_debug_namespace_is_permanent_with_the_setting() {
    let text = "the method debug_traceBlockByNumber does not exist/is not available";
    let server = Server::always(fault(-32601, text)).await;
    let error = evm(&server).trace_block(9).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Permanent);
    assert!(error.to_string().contains("add `debug` to json-rpc.apis in app.toml"), "{error}");
    let error = evm(&server).block_receipts(9).await.unwrap_err();
    assert!(error.to_string().ends_with("is this the address of the EVM's JSON-RPC?"), "{error}");
}

#[tokio::test]
async fn every_error_has_its_meaning() {
    let table = [
        (-32000, "block #9 not found", Kind::NotYet),
        (-32603, "block #9 not found", Kind::NotYet),
        (
            -32603,
            "failed to load state at height 8; version does not exist (latest height: 100)",
            Kind::Permanent,
        ),
        (-32603, "internal error", Kind::Transient),
        (-32000, "some other failure", Kind::Transient),
        (-32005, "limit exceeded", Kind::Transient),
        (4, "timeout", Kind::Transient),
        (5, "not ready", Kind::Transient),
        (3, "execution reverted", Kind::Permanent),
        (-32602, "invalid argument 0: hex number > 64 bits", Kind::Permanent),
    ];
    for (code, message, kind) in table {
        let server = Server::always(fault(code, message)).await;
        let error = evm(&server).trace_block(9).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let place = format!("json-rpc {}, debug_traceBlockByNumber at height 9: ", server.url.host());
        assert!(error.to_string().starts_with(&place), "{error}");
    }
}

#[tokio::test]
async fn the_missing_trace_of_the_first_block_is_not_pruning() {
    let server = Server::always(fault(-32000, "genesis is not traceable")).await;
    let error = evm(&server).trace_block(1).await.unwrap_err();
    assert!(matches!(error, Error::Untraceable { .. }), "{error:?}");
    assert_eq!(error.kind(), Kind::Permanent);
}

#[tokio::test]
async fn pruned_state_is_distinguished() {
    let server =
        Server::always(fault(-32603, "failed to load state at height 8; x (latest height: 100)")).await;
    let error = evm(&server).trace_block(9).await.unwrap_err();
    assert!(matches!(error, Error::Pruned { .. }), "{error:?}");
}

#[tokio::test]
async fn the_answer_to_another_request_is_a_failure() {
    let server = Server::always(json(r#"{"jsonrpc":"2.0","id":4711,"result":[]}"#)).await;
    let error = evm(&server).block_receipts(9).await.unwrap_err();
    assert!(matches!(&error, Error::Malformed { reason, .. } if reason == "id 4711, not 1"), "{error:?}");
}

#[tokio::test]
async fn an_invalid_block_number_is_a_failure() {
    for text in ["null", "226", r#""226""#, r#""0x""#, r#""0x+1""#, r#""0x10000000000000000""#, "[]"] {
        let server = Server::always(result(text)).await;
        let error = evm(&server).block_number().await.unwrap_err();
        assert_eq!(error.kind(), Kind::Transient, "{text}: {error}");
    }
}

#[tokio::test]
async fn late_receipts_are_requested_until_they_are_available() {
    let server = Server::in_turn(vec![
        result("null"),
        result("null"),
        fault(-32603, "busy"),
        result(r#"[{"status":"0x1"}]"#),
    ])
    .await;
    let evm = evm(&server);
    let fast = node::retry::Backoff { initial: std::time::Duration::from_millis(1), ..Default::default() };
    let receipts = node::retry::until(fast, "receipts of block 9", || evm.block_receipts(9)).await.unwrap();
    assert_eq!((&receipts.bytes[..], server.count()), (&br#"[{"status":"0x1"}]"#[..], 4));
}

#[tokio::test]
async fn a_call_has_exactly_its_contract_data_and_height() {
    let server = Server::always(result(r#""0x00ff""#)).await;
    let evm = evm(&server);
    assert_eq!(evm.call([0xab; 20], &[1, 2], Some(17)).await.unwrap(), [0, 255]);
    evm.call([0xab; 20], &[], None).await.unwrap();
    let bodies: Vec<_> = server.asked().into_iter().map(|asked| asked.body).collect();
    let to = "ab".repeat(20);
    let body = |id, data, block| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"eth_call","params":[{{"to":"0x{to}","data":"0x{data}"}},"{block}"]}}"#
        )
    };
    assert_eq!(bodies, [body(1, "0102", "0x11"), body(2, "", "latest")]);
}

#[tokio::test]
async fn a_contracts_error_is_a_refusal_and_a_failure_of_the_server_is_not() {
    let table = [
        (-32000, "Reverted", Kind::Permanent),
        (-32000, "revert: ERC721: invalid token ID: Reverted", Kind::Permanent),
        (-32603, "out of gas: EVMCall failed", Kind::Permanent),
        (-32000, "out of gas", Kind::Permanent),
        (-32015, "invalid opcode: INVALID", Kind::Permanent),
        (3, "execution reverted", Kind::Permanent),
        (-32000, "execution reverted: no", Kind::Permanent),
        // A contract's reason is never treated as the server's own text.
        (-32000, "revert: block #9 not found: Reverted", Kind::Permanent),
        (-32000, "revert: failed to load state at height 9; (latest height: 5): Reverted", Kind::Permanent),
        (3, "execution reverted: failed to load state at height 9; (latest height: 5)", Kind::Permanent),
        (-32000, "revert: i/o timeout: Reverted: EVMCall failed", Kind::Permanent),
        (-32000, "context deadline exceeded: EVMCall failed", Kind::Transient),
        (-32000, "some other failure", Kind::Transient),
        (-32603, "internal error", Kind::Transient),
        (4, "timeout", Kind::Transient),
        (-32000, "block #9 not found", Kind::NotYet),
    ];
    for (code, message, kind) in table {
        let server = Server::always(fault(code, message)).await;
        let error = evm(&server).call([1; 20], &[], Some(9)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert_eq!(matches!(error, Error::Refused { .. }), kind == Kind::Permanent, "{error:?}");
        assert!(error.to_string().contains(", eth_call at height 9: "), "{error}");
    }
    // For another method the same text keeps its meaning.
    let server = Server::always(fault(-32000, "out of gas")).await;
    assert_eq!(evm(&server).trace_block(9).await.unwrap_err().kind(), Kind::Transient);
}

#[tokio::test]
async fn a_call_in_pruned_state_is_an_error_and_can_be_sent_at_the_latest() {
    let gone = "failed to load state at height 8; version does not exist (latest height: 100)";
    let server = Server::in_turn(vec![fault(-32603, gone), result(r#""0x""#)]).await;
    let evm = evm(&server);
    let error = evm.call([1; 20], &[], Some(8)).await.unwrap_err();
    assert!(error.is_pruned(), "{error:?}");
    assert!(evm.call([1; 20], &[], None).await.unwrap().is_empty());
}

#[tokio::test]
async fn the_result_of_a_call_must_be_bytes() {
    for text in ["null", r#""""#, r#""0x1""#, r#""1234""#, r#""0xzz""#, "5", "{}"] {
        let server = Server::always(result(text)).await;
        let error = evm(&server).call([1; 20], &[], Some(9)).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{text}: {error:?}");
    }
}

/// The classification of large replies; that one is held at a time is a unit test of the lock.
#[tokio::test]
async fn a_reply_of_unusual_size_is_requested_again_when_its_turn_comes_unless_it_was_expected() {
    let large = "a".repeat(9 << 20);
    let server = Server::always(result(&format!("[\"{large}\"]"))).await;
    let limits = Limits { body: 64 << 20, ..limits() };
    let evm = Evm::new(vec![server.url.clone()], limits).unwrap();
    let first = evm.block_receipts(7).await.unwrap();
    assert_eq!((first.bytes.len(), server.asked().len()), ((9 << 20) + 4, 2));
    let same_height = evm.trace_block(7).await.unwrap();
    assert_eq!(server.asked().len(), 4);
    drop((first, same_height));
    evm.block_receipts(8).await.unwrap();
    assert_eq!(server.asked().len(), 6);
    let failures = ReceiptFailures::default();
    evm.receipts_or_block(9, 10 << 20, &failures).await.unwrap();
    assert_eq!(server.asked().len(), 7);

    let small = Evm::new(vec![server.url.clone()], Limits { body: 8 << 20, ..limits }).unwrap();
    assert!(matches!(small.block_receipts(7).await, Err(Error::TooLarge { .. })));
}

#[tokio::test]
async fn a_block_whose_receipts_cannot_be_read_is_returned_in_their_place_after_some_failures() {
    let unreadable = || fault(-32603, "internal jsonrpc error: failed to get block receipts");
    let block = || result(r#"{"number":"0x9"}"#);
    let script = (0..6).map(|_| unreadable()).chain([block()]);
    let server = Server::in_turn(script.collect()).await;
    let (evm, failures) = (evm(&server), ReceiptFailures::default());
    for _ in 0..5 {
        let error = evm.receipts_or_block(9, 0, &failures).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Transient);
    }
    let EvmBlock::Hashes { block, reason } = evm.receipts_or_block(9, 0, &failures).await.unwrap() else {
        panic!()
    };
    assert_eq!(block.bytes, r#"{"number":"0x9"}"#);
    assert!(reason.contains("failed to get block receipts"), "{reason}");

    // A node whose EVM index has not got there has no block either, and is waited for.
    let server = Server::always(result("null")).await;
    let (evm, failures) = (Evm::new(vec![server.url.clone()], limits()).unwrap(), ReceiptFailures::default());
    for _ in 0..60 {
        let error = evm.receipts_or_block(9, 0, &failures).await.unwrap_err();
        assert_eq!(error.kind(), Kind::NotYet);
    }
}
