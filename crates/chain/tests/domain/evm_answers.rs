//! Receipts and call trees that recordings lack: creations, missing members, hostile nesting.

use chain::evm::trace::{self, parse_frames, parse_traces, write_internal_tx};
use chain::evm::{self, check_receipts, parse_receipts, write_evm_tx};
use chain::{Account, AccountSet};

const FROM: &str = "0x1b9f30d48692d9f043a72ca7427cbdacec3788cf";

fn receipt(more: &str) -> String {
    let hash = "ab".repeat(32);
    format!(r#"[{{"blockNumber":"0x5","transactionHash":"0x{hash}","from":"{FROM}"{more}}}]"#)
}

#[test]
fn null_is_never_an_empty_block() {
    assert!(matches!(parse_receipts(b"null"), Err(evm::Error::NotReady)));
    assert!(matches!(parse_traces(b"null"), Err(trace::Error::NotReady)));
    assert!(parse_receipts(b"[]").unwrap().is_empty());
    assert!(parse_receipts(b"{}").is_err());
    assert!(matches!(check_receipts(&[], 5, 1), Err(evm::Error::TooFew { expected: 1, .. })));
    let answer = receipt("");
    let receipts = parse_receipts(answer.as_bytes()).unwrap();
    check_receipts(&receipts, 5, 1).unwrap();
    assert!(matches!(check_receipts(&receipts, 6, 1), Err(evm::Error::OtherBlock { .. })));
}

#[test]
fn a_creation_has_an_empty_to_and_members_left_out_are_empty() {
    let answer = receipt(r#","to":null,"contractAddress":"0xc0","logs":null,"blockTimestamp":"0x1""#);
    let receipts = parse_receipts(answer.as_bytes()).unwrap();
    let mut out = Vec::new();
    write_evm_tx(&mut out, &receipts[0]);
    let text = String::from_utf8(out).unwrap();
    let hash = "ab".repeat(32);
    let expected = [
        r#"{"blockHash":"","blockNumber":"0x5","contractAddress":"0xc0","cumulativeGasUsed":"","#,
        &format!(
            r#""effectiveGasPrice":"","from":"{FROM}","gasUsed":"","logs":[],"logsBloom":"","status":"","#
        ),
        &format!(r#""to":"","transactionHash":"0x{hash}","transactionIndex":"","type":""}}"#),
    ];
    assert_eq!(text, expected.concat());
    assert_eq!(receipts[0].hash().unwrap(), [0xab; 32]);
}

#[test]
fn accounts_of_a_receipt_are_from_to_contract_and_those_of_its_logs() {
    let zeros = "0".repeat(24);
    let of = |more: &str| -> Result<Vec<String>, String> {
        let answer = receipt(more);
        let (receipts, mut set) = (parse_receipts(answer.as_bytes()).unwrap(), AccountSet::default());
        receipts[0].accounts(&mut set).map_err(|e| e.to_string())?;
        assert_eq!(receipts[0].signer().unwrap().to_hex(), FROM);
        Ok(set.as_slice()[1..]
            .iter()
            .map(|a| a.to_hex().trim_start_matches("0x").trim_start_matches('0').to_owned())
            .collect())
    };
    let logs = |topics: &str| format!(r#","logs":[{{"address":"0xaa","topics":[{topics}]}}]"#);
    let five = format!(r#""0x{zeros}{:040x}""#, 5);
    assert_eq!(of(r#","to":"0x2","contractAddress":"0x3""#).unwrap(), ["2", "3"]);
    assert_eq!(of(&logs(&format!("{five},{five},\"0x{}\"", "b".repeat(64)))).unwrap(), ["aa", "5"]);
    for (more, member) in [
        (r#","to":"nowhere""#.to_owned(), "to of ethereum transaction"),
        (r#","contractAddress":"0xg""#.to_owned(), "contractAddress of"),
        (logs(&format!(r#""0x1","0x{zeros}zz""#)), "logs[].topics[] of"),
        (r#","logs":[{}]"#.to_owned(), "logs[].address of"),
    ] {
        let error = of(&more).unwrap_err();
        assert!(error.starts_with(member) && error.contains("abab"), "{error}");
    }
}

#[test]
fn the_receipt_of_a_cosmos_transaction_is_signed_by_the_zero_address() {
    let answer = receipt("").replace(FROM, "0x0000000000000000000000000000000000000000");
    let receipts = parse_receipts(answer.as_bytes()).unwrap();
    assert_eq!(receipts[0].signer().unwrap(), Account::ZERO);
    let answer = receipt("").replace(FROM, "");
    assert!(parse_receipts(answer.as_bytes()).unwrap()[0].signer().is_err());
}

#[test]
fn frames_are_numbered_in_pre_order_whatever_the_order_of_members() {
    let tree = r#" { "calls" : [ {"type":"CALL","calls":[{"type":"STATICCALL"},{"calls":[],"type":"CREATE"}]},
        {"type":"DELEGATECALL","calls":null,"x":{"calls":[{"y":1}]},"error":"e"} ] , "type":"CALL" } "#;
    let frames = parse_frames(&[0; 32], tree).unwrap();
    let shape: Vec<_> = frames.iter().map(|f| (f.index, f.parent_index, &*f.kind)).collect();
    assert_eq!(
        shape,
        [(0, -1, "CALL"), (1, 0, "CALL"), (2, 1, "STATICCALL"), (3, 1, "CREATE"), (4, 0, "DELEGATECALL")]
    );
}

#[test]
fn an_internal_transaction_shows_bytes_and_never_the_output_of_frame_0() {
    let tree = r#"{"type":"CALL","from":"0xAB","to":null,"input":"0x","output":"0x12","gas":"0x30d40","gasUsed":"0x0",
        "calls":[{"type":"CALL","from":"0xab","to":"0xcd","input":"0xABCD","output":"0x12","value":"0x0","gas":"0xfff"}]}"#;
    let frames = parse_frames(&[0; 32], tree).unwrap();
    let text = |at: usize| {
        let mut out = Vec::new();
        write_internal_tx(&mut out, 7, &[0xab; 32], &frames[at]);
        String::from_utf8(out).unwrap()
    };
    let hash = "ab".repeat(32);
    assert_eq!(
        text(0),
        format!(
            r#"{{"height":7,"hash":"0x{hash}","parent_index":-1,"index":0,"type":"CALL","from":"0xab","to":"","#
        ) + r#""input":"0x","output":"0x","value":"0x","gas":"0x030d40","gasUsed":"0x00"}"#
    );
    assert_eq!(
        text(1),
        format!(
            r#"{{"height":7,"hash":"0x{hash}","parent_index":0,"index":1,"type":"CALL","from":"0xab","to":"0xcd","#
        ) + r#""input":"0xabcd","output":"0x12","value":"0x00","gas":"0x0fff","gasUsed":"0x"}"#
    );
    let mut set = AccountSet::default();
    frames[1].accounts(&mut set).unwrap();
    assert_eq!(set.len(), 2);
}

#[test]
fn calls_nest_deeper_than_the_evm_allows_without_recursion_and_are_bounded() {
    let nested = |depth: usize| {
        let tree = r#"{"type":"CALL","calls":["#.repeat(depth) + r#"{"type":"CALL"}"# + &"]}".repeat(depth);
        format!(r#"[{{"txHash":"0x{}","result":{tree}}}]"#, "ab".repeat(32))
    };
    for depth in [1_100, trace::MAX_DEPTH - 1] {
        let answer = nested(depth);
        let traces = parse_traces(answer.as_bytes()).unwrap();
        assert_eq!(traces[0].frames.len(), depth + 1);
        let last = traces[0].frames.last().unwrap();
        assert_eq!(last.parent_index, i64::try_from(depth).unwrap() - 1);
    }
    let answer = nested(trace::MAX_DEPTH);
    assert!(matches!(parse_traces(answer.as_bytes()), Err(trace::Error::TooDeep { .. })));
}

#[test]
fn a_transaction_that_could_not_be_traced_leaves_the_others_alone() {
    let (a, b) = ("aa".repeat(32), "bb".repeat(32));
    let answer = format!(
        r#"[{{"txHash":"0x{a}","error":"execution timeout"}},{{"txHash":"0x{b}","result":{{"type":"CALL"}},"error":""}}]"#
    );
    let traces = parse_traces(answer.as_bytes()).unwrap();
    assert_eq!(traces[0].error.as_deref(), Some("execution timeout"));
    assert!(traces[0].frames.is_empty());
    assert_eq!((traces[1].hash, traces[1].frames.len()), ([0xbb; 32], 1));
}

#[test]
fn malformed_trees_are_errors_with_the_transaction_and_the_place() {
    for (tree, expected) in [
        ("7", "expected a frame"),
        (r#"{"type":"CALL""#, "expected a member of a frame"),
        (r#"{"type":5}"#, "expected a string"),
        (r#"{"gas":"5"}"#, "expected 0x and hex digits"),
        (r#"{"to":"0xzz"}"#, "expected 0x and hex digits"),
        (r#"{"calls":[5]}"#, "expected a frame"),
        (r#"{"calls":[{}"#, "expected the end of calls"),
        (r#"{"calls":{}"#, "expected a member"),
        ("{}{}", "expected the end"),
        (r#"{"a":nope}"#, "expected a value"),
    ] {
        let error = parse_frames(&[0xab; 32], tree).unwrap_err().to_string();
        assert!(error.starts_with("the trace of 0xabab") && error.contains(expected), "{tree}: {error}");
    }
    assert!(parse_traces(br#"[{"txHash":"0x1","result":{}}]"#).is_err());
    let none = format!(r#"[{{"txHash":"0x{}"}}]"#, "ab".repeat(32));
    assert!(matches!(parse_traces(none.as_bytes()), Err(trace::Error::Empty { .. })));
    let frames = parse_frames(&[0; 32], r#"{"from":"0x"}"#).unwrap();
    frames[0].accounts(&mut AccountSet::default()).unwrap();
}
