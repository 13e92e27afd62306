//! The classification of CometBFT's error texts.

use node::{Comet, Error, Kind};

use crate::scripted::{Play, Server, fault, json, limits, result};

const STATUS: &str = r#"{"node_info":{"network":"c-1","version":"0.38.19"},"sync_info":{"latest_block_height":"1000","earliest_block_height":"90","catching_up":false}}"#;

fn comet(servers: &[&Server]) -> Comet {
    Comet::new(servers.iter().map(|server| server.url.clone()).collect(), limits()).unwrap()
}

fn envelope(data: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":-1,"error":{{"code":-32603,"message":"Internal error","data":"{data}"}}}}"#
    )
}

/// A node with tip 1000 that answers `data` for every block.
async fn says(status: u16, data: &str) -> Server {
    let play = fault(status, &envelope(data));
    Server::play(move |_, asked| if asked.line == "GET /status" { result(STATUS) } else { play.clone() })
        .await
}

#[tokio::test]
async fn a_future_height_is_a_wait_with_the_endpoints_tip() {
    // GET answers errors with 500, POST and some proxies with 200.
    for status in [500, 200] {
        let text = "height 1001 must be less than or equal to the current blockchain height 1000";
        let server = says(status, text).await;
        let error = comet(&[&server]).block(1001).await.unwrap_err();
        assert_eq!((error.kind(), error.tip()), (Kind::NotYet, Some(1000)), "{error}");
        let error = comet(&[&server]).block_results(1001).await.unwrap_err();
        assert_eq!((error.kind(), error.tip()), (Kind::NotYet, Some(1000)), "{error}");
    }
}

#[tokio::test]
async fn the_error_of_a_pruned_height_contains_the_lowest_available_one() {
    let server = says(500, "height 5 is not available, lowest height is 90").await;
    let error = comet(&[&server]).block(5).await.unwrap_err();
    assert!(matches!(error, Error::Pruned { lowest: Some(90), .. }), "{error:?}");
}

#[tokio::test]
async fn missing_results_are_a_wait_at_the_tip_and_permanent_below_it() {
    for (height, kind) in
        [(1000, Kind::NotYet), (999, Kind::NotYet), (998, Kind::Permanent), (500, Kind::Permanent)]
    {
        let server = says(500, &format!("could not find results for height #{height}")).await;
        let error = comet(&[&server]).block_results(height).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}

#[tokio::test]
async fn results_that_appear_while_the_chain_grows_are_not_lost() {
    let missing = fault(500, &envelope("could not find results for height #990"));
    let server = Server::play(move |nth, asked| match (nth, asked.line.as_str()) {
        (_, "GET /status") => result(STATUS),
        (0, _) => missing.clone(),
        _ => result(r#"{"height":"990"}"#),
    })
    .await;
    let results = comet(&[&server]).block_results(990).await.unwrap();
    assert_eq!(results.bytes, r#"{"height":"990"}"#);
}

#[tokio::test]
async fn missing_results_far_below_the_tip_are_requested_elsewhere() {
    let without = says(500, "could not find results for height #500").await;
    let with = Server::always(result(r#"{"height":"500"}"#)).await;
    let results = comet(&[&without, &with]).block_results(500).await.unwrap();
    assert_eq!(results.bytes, r#"{"height":"500"}"#);
}

#[tokio::test]
async fn missing_results_are_a_failure_while_the_tip_is_unknown() {
    let play = fault(500, &envelope("could not find results for height #500"));
    let down = Play::Answer(502, "", b"<html>".into());
    let server =
        Server::play(move |_, asked| if asked.line == "GET /status" { down.clone() } else { play.clone() })
            .await;
    let error = comet(&[&server]).block_results(500).await.unwrap_err();
    assert_eq!(error.kind(), Kind::Transient, "{error}");
}

#[tokio::test]
async fn a_node_without_results_is_an_error_with_the_setting() {
    let server = says(500, "node is not persisting finalize block responses").await;
    let error = comet(&[&server]).block_results(5).await.unwrap_err();
    assert!(matches!(error, Error::ResultsDiscarded { .. }), "{error:?}");
    assert!(error.to_string().contains("discard_abci_responses = false"), "{error}");
    assert_eq!(error.kind(), Kind::Permanent);
}

#[tokio::test]
async fn a_damaged_store_is_permanent() {
    let server = says(500, "failed to unmarshall FinalizeBlockResponse: unexpected EOF").await;
    let error = comet(&[&server]).block_results(5).await.unwrap_err();
    assert!(matches!(error, Error::Corrupt { .. }), "{error:?}");
    assert_eq!(error.kind(), Kind::Permanent);
}

#[tokio::test]
async fn the_wrong_service_and_an_invalid_height_are_permanent_errors() {
    for (body, missing) in [
        (r#"{"error":{"code":-32601,"message":"Method not found"}}"#.to_owned(), true),
        (r#"{"error":{"code":-32602,"message":"Invalid params","data":"height"}}"#.to_owned(), false),
        (envelope("height must be greater than 0, but got 0"), false),
    ] {
        let server = Server::always(fault(500, &body)).await;
        let error = comet(&[&server]).block(0).await.unwrap_err();
        assert_eq!(error.kind(), Kind::Permanent, "{error}");
        assert_eq!(matches!(error, Error::MethodMissing { .. }), missing, "{error}");
    }
}

#[tokio::test]
async fn the_bytes_of_a_result_are_returned_unchanged() {
    let text = format!(r#"{{ "block" : {{"é":"\u003c","pad":"{}"}} }}"#, "x".repeat(2000));
    let server = Server::always(result(&text)).await;
    assert_eq!(comet(&[&server]).block(7).await.unwrap().bytes, text);
    assert_eq!(comet(&[&server]).block_results(7).await.unwrap().bytes, text);
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(lines, ["GET /block?height=7", "GET /block_results?height=7"]);
}

#[tokio::test]
async fn a_status_with_an_invalid_height_is_a_failure() {
    let server = Server::always(result(&STATUS.replace("\"1000\"", "\"-1\""))).await;
    let error = comet(&[&server]).status().await.unwrap_err();
    assert!(error.to_string().contains("`-1` at /sync_info/latest_block_height"), "{error}");
    assert_eq!(error.kind(), Kind::Transient);
}

#[tokio::test]
async fn an_endpoint_of_another_chain_is_found_among_good_ones() {
    let good = Server::always(result(STATUS)).await;
    let higher = Server::always(result(&STATUS.replace("\"1000\"", "\"1001\""))).await;
    let wrong = Server::always(result(&STATUS.replace("c-1", "c-2"))).await;
    assert_eq!(comet(&[&good, &higher]).verify_chain("c-1").await.unwrap().latest_height, 1001);
    assert_eq!(comet(&[&good, &wrong]).verify_chain("c-1").await.unwrap().latest_height, 1000);
    let error = comet(&[&wrong]).verify_chain("c-1").await.unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains(&format!("{}, status: this is chain `c-2`, not `c-1`", wrong.url.host())),
        "{text}"
    );
    assert_eq!(error.kind(), Kind::Permanent);
}

/// The reply with `count` validators of `total`.
fn validators(count: usize, total: usize) -> Play {
    result(&format!(r#"{{"block_height":"5","validators":[],"count":"{count}","total":"{total}"}}"#))
}

#[tokio::test]
async fn a_validator_set_is_fetched_page_by_page_from_one_endpoint() {
    let plays = vec![validators(100, 230), validators(100, 230), validators(30, 230)];
    let (server, other) = (Server::in_turn(plays).await, Server::always(Play::Close).await);
    let pages = comet(&[&server, &other]).validators(5).await.unwrap();
    assert_eq!(pages.len(), 3);
    assert!(pages.iter().all(|page| page.origin.host() == &**server.url.host()));
    let asked: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(asked[2], "GET /validators?height=5&page=3&per_page=100");
    assert_eq!((asked.len(), other.count()), (3, 0));
}

#[tokio::test]
async fn a_validator_set_that_never_ends_is_an_error() {
    for (play, questions) in [(validators(1, 1_000_000), 100), (validators(0, 5), 1)] {
        let server = Server::always(play).await;
        let error = comet(&[&server]).validators(5).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
        assert_eq!(server.count(), questions);
    }
}

#[tokio::test]
async fn a_chain_is_verified_by_the_endpoints_that_answer() {
    let (good, down) = (Server::always(result(STATUS)).await, Server::always(Play::Close).await);
    assert_eq!(comet(&[&down, &good]).verify_chain("c-1").await.unwrap().earliest_height, 90);
    assert_eq!(comet(&[&down]).verify_chain("c-1").await.unwrap_err().kind(), Kind::Transient);
}

#[tokio::test]
async fn a_query_is_quoted_and_its_value_decoded() {
    let answer = r#"{"response":{"code":0,"log":"","value":"AQID","height":"5"}}"#;
    let server = Server::always(result(answer)).await;
    let comet = comet(&[&server]);
    assert_eq!(comet.abci_query("/a.b.v1.Query/C d", "0a01").await.unwrap(), [1, 2, 3]);
    comet.abci_query("/x", "").await.unwrap();
    let lines: Vec<_> = server.asked().into_iter().map(|asked| asked.line).collect();
    assert_eq!(
        lines,
        ["GET /abci_query?path=%22/a.b.v1.Query/C%20d%22&data=0x0a01", "GET /abci_query?path=%22/x%22"]
    );
}

#[tokio::test]
async fn a_query_without_value_is_empty_and_one_with_a_code_is_refused() {
    let server = Server::always(result(r#"{"response":{"code":0,"value":null}}"#)).await;
    assert_eq!(comet(&[&server]).abci_query("/x", "").await.unwrap(), b"");
    let answer = r#"{"response":{"code":6,"log":"unknown query path: unknown request","value":null}}"#;
    let server = Server::always(result(answer)).await;
    let error = comet(&[&server]).abci_query("/x", "").await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused { code: 6, message, .. } if message.starts_with("unknown query")),
        "{error}"
    );
    let server = Server::always(json(r#"{"result":{"response":{"value":"*"}}}"#)).await;
    assert_eq!(comet(&[&server]).abci_query("/x", "").await.unwrap_err().kind(), Kind::Transient);
}
