//! Replies of `CometBFT` that are not ready, incomplete, or hostile.

use chain::comet::{Error, check_pair, parse_block, parse_results};

const HASH: &str = "F052018A264A0945B1785B346ECB3AF58EA335912358D3D18C1818B4FB4EF6F1";

fn block(txs: &str) -> String {
    format!(
        r#"{{"block_id":{{"hash":"{HASH}"}},"block":{{"header":{{"version":{{"block":"11"}},"chain_id":"c",
        "height":"5","time":"2026-11-21T07:07:32.504854311Z","last_block_id":{{"hash":""}},
        "last_commit_hash":"","data_hash":"","validators_hash":"","next_validators_hash":"","consensus_hash":"",
        "app_hash":"","last_results_hash":"","evidence_hash":"",
        "proposer_address":"1EE89CF575071411054630257C1961840657C338"}},"data":{{"txs":{txs}}}}}}}"#
    )
}

#[test]
fn a_node_without_the_block_is_queried_again() {
    for answer in [
        r#"{"block_id":{"hash":"","parts":{"total":0,"hash":""}},"block":null}"#,
        r#"{"block_id":null,"block":null}"#,
        r"{}",
    ] {
        let error = parse_block(answer.as_bytes()).unwrap_err();
        assert!(matches!(error, Error::BlockMissing), "{answer}: {error}");
        assert!(error.is_not_ready());
    }
}

#[test]
fn missing_short_or_mismatching_results_are_requested_again() {
    let text = block(r#"["AA==","AQ=="]"#);
    let block = parse_block(text.as_bytes()).unwrap();
    for (answer, expected) in [
        (r#"{"height":"5","txs_results":null}"#, "has no results"),
        (r#"{"height":"5"}"#, "has no results"),
        (r#"{"height":"5","txs_results":[{}]}"#, "2 transactions and 1 results"),
        (r#"{"height":"5","txs_results":[{},{},{}]}"#, "2 transactions and 3 results"),
        (r#"{"height":"6","txs_results":[{},{}]}"#, "results of height 6 came for block 5"),
    ] {
        let error = check_pair(&block, &parse_results(answer.as_bytes()).unwrap()).unwrap_err();
        assert!(error.is_not_ready(), "{answer}");
        assert!(error.to_string().contains(expected), "{answer}: {error}");
    }
    let good = parse_results(br#"{"height":5,"txs_results":[{},{}]}"#).unwrap();
    check_pair(&block, &good).unwrap();
    assert_eq!(block.raw_txs().unwrap(), [[0], [1]]);
}

#[test]
fn a_block_is_empty_only_if_the_answer_is_explicit() {
    let text = block("null");
    let block = parse_block(text.as_bytes()).unwrap();
    check_pair(&block, &parse_results(br#"{"height":"5","txs_results":null}"#).unwrap()).unwrap();
    assert_eq!(block.header.last_block_hash, None);
}

#[test]
fn members_left_out_or_null_are_their_defaults() {
    let answer = br#"{"height":"1","txs_results":[{"code":5,"data":null,"events":[
        {"type":"a","attributes":[{"key":"k"},{"value":null,"index":true},{}]},{"attributes":null},{}]}],
        "finalize_block_events":[{"type":"b","attributes":[{"key":"mode","value":"BeginBlock"}]}]}"#;
    let results = parse_results(answer).unwrap();
    let result = &results.txs_results[0];
    assert_eq!((result.code, result.gas_used, result.log.as_ref()), (5, 0, ""));
    assert_eq!(result.data_bytes().unwrap(), [0; 0]);
    assert_eq!(result.events.len(), 3);
    let attributes: Vec<_> =
        result.events[0].attributes.iter().map(|a| (&*a.key, &*a.value, a.index)).collect();
    assert_eq!(attributes, [("k", "", false), ("", "", true), ("", "", false)]);
    assert_eq!(results.finalize_block_events[0].value("mode").unwrap(), "BeginBlock");
}

#[test]
fn old_begin_and_end_events_are_merged_unless_there_are_finalize_events() {
    let kinds = |answer: &str| -> Vec<String> {
        let results = parse_results(answer.as_bytes()).unwrap();
        results.finalize_block_events.iter().map(|event| event.kind.to_string()).collect()
    };
    let old = r#""begin_block_events":[{"type":"b"}],"end_block_events":[{"type":"e"}]"#;
    assert_eq!(kinds(&format!(r#"{{"height":"1",{old}}}"#)), ["b", "e"]);
    assert_eq!(kinds(&format!(r#"{{"height":"1","finalize_block_events":null,{old}}}"#)), ["b", "e"]);
    assert_eq!(kinds(&format!(r#"{{"height":"1","finalize_block_events":[{{"type":"f"}}],{old}}}"#)), ["f"]);
}

#[test]
fn malformed_answers_are_errors_with_the_place() {
    for (answer, expected) in [
        (block("[]").replace(HASH, "F0"), "block_id.hash is \"F0\", expected 32 bytes"),
        (block("[]").replace("2026-11-21T", "today "), "the answer of /block"),
        (block("[]").replace("2026-11-21T", "0001-11-21T"), "block.header.time"),
        (block("[]").replace("1EE89C", ""), "block.header.proposer_address"),
        (block("[]").replace("1EE89C", "zzE89C"), "the answer of /block"),
        (block("{}"), "the answer of /block"),
        (String::new(), "the answer of /block"),
    ] {
        let error = parse_block(answer.as_bytes()).unwrap_err();
        assert!(error.to_string().contains(expected) && !error.is_not_ready(), "{error}");
    }
    let text = block(r#"["AA==","@"]"#);
    let error = parse_block(text.as_bytes()).unwrap().raw_txs().unwrap_err();
    assert!(error.to_string().starts_with("block.data.txs[1] is not base64"), "{error}");
    let error = parse_results(b"{\"height\":\"1\xff\"}").unwrap_err();
    assert!(error.to_string().contains("not utf-8"), "{error}");
    assert!(parse_results(br#"{"height":"1","txs_results":[{"gas_used":"many"}]}"#).is_err());
}

/// Tendermint 0.34 to 0.36 write bytes; CometBFT 0.37 writes text into the same members.
#[test]
fn attributes_in_base64_are_decoded_and_text_is_left_as_it_is() {
    let results = |attributes: &str| {
        format!(
            r#"{{"height":"5","txs_results":[{{"events":[{{"type":"transfer","attributes":[{attributes}]}}]}}],"begin_block_events":[{{"type":"mint","attributes":[{attributes}]}}],"end_block_events":null}}"#
        )
    };
    let read = |answer: &str| -> Vec<(String, String)> {
        let results = parse_results(answer.as_bytes()).unwrap();
        let events = results.txs_results.iter().flat_map(|result| &result.events);
        let attributes = events.chain(&results.finalize_block_events).flat_map(|event| &event.attributes);
        attributes.map(|one| (one.key.to_string(), one.value.to_string())).collect()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let old =
        results(r#"{"key":"c2VuZGVy","value":"aW5pdDE=","index":true},{"key":"YW1vdW50","value":null}"#);
    let expected = [pair("sender", "init1"), pair("amount", "")];
    assert_eq!(read(&old), [&expected[..], &expected[..]].concat());
    // One key is not base64 of text, so none is decoded; and CometBFT 0.38 never writes base64.
    let text = results(r#"{"key":"code","value":"aW5pdDE="},{"key":"c2VuZGVy","value":"eA=="}"#);
    assert_eq!(read(&text)[..2], [pair("code", "aW5pdDE="), pair("c2VuZGVy", "eA==")]);
    let new = old.replace(r#""height""#, r#""app_hash":"AA==","height""#);
    assert_eq!(read(&new)[0], pair("c2VuZGVy", "aW5pdDE="));
}
