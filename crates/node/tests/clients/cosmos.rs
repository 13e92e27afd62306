//! The gateway's codes and texts, and the pages of validators.

use node::{Error, Kind, Rest};

use crate::scripted::{Play, Server, fault, json, limits};

fn rest(server: &Server) -> Rest {
    Rest::new(vec![server.url.clone()], limits()).unwrap()
}

#[tokio::test]
async fn every_code_and_text_has_its_meaning() {
    let table = [
        (
            500,
            2,
            "rpc error: codespace sdk code 26: invalid height: cannot query with height in the future; please provide a valid height",
            Kind::NotYet,
        ),
        (400, 3, "requested height 9: invalid height", Kind::NotYet),
        (
            500,
            2,
            "failed to load state at height 5; version does not exist (latest height: 100)",
            Kind::Permanent,
        ),
        (
            500,
            2,
            "failed to load state at height 100; version does not exist (latest height: 100)",
            Kind::Permanent,
        ),
        (
            500,
            2,
            "failed to load state at height 101; version does not exist (latest height: 100)",
            Kind::NotYet,
        ),
        (500, 2, "VMError: execution reverted: query wasm contract failed", Kind::Permanent),
        // A contract's reason is never treated as the node's own text.
        (500, 2, "invalid height: query wasm contract failed", Kind::Permanent),
        (500, 2, "unexpected EOF: query wasm contract failed", Kind::Permanent),
        (500, 2, "post failed: dial tcp 127.0.0.1:26657: connect: connection refused", Kind::Transient),
        (500, 2, "context deadline exceeded", Kind::Transient),
        (400, 3, "illegal base64 data", Kind::Permanent),
        (504, 4, "timed out", Kind::Transient),
        (404, 5, "bridge info not found", Kind::Permanent),
        (501, 12, "Not Implemented", Kind::Permanent),
        (404, 5, "Not Found", Kind::Permanent),
        (500, 13, "collections: not found", Kind::Permanent),
        (503, 14, "unavailable", Kind::Transient),
        (500, 14, "unavailable", Kind::Transient),
    ];
    for (status, code, message, kind) in table {
        let body = format!(r#"{{"code":{code},"message":"{message}","details":[]}}"#);
        let server = Server::always(fault(status, &body)).await;
        let error = rest(&server).get("/some/path?x=1", Some(9)).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        let place = format!("rest {}, /some/path?x=1 at height 9: ", server.url.host());
        assert!(error.to_string().starts_with(&place), "{error}");
    }
}

#[tokio::test]
async fn pruned_and_future_states_are_distinguished_with_the_tip() {
    let say = |text: &str| fault(500, &format!(r#"{{"code":2,"message":"{text}"}}"#));
    let pruned = Server::always(say("failed to load state at height 5; x (latest height: 100)")).await;
    let error = rest(&pruned).get("/x", Some(5)).await.unwrap_err();
    assert!(matches!(error, Error::Pruned { .. }), "{error:?}");
    let lagging = Server::always(say("failed to load state at height 101; x (latest height: 100)")).await;
    assert_eq!(rest(&lagging).get("/x", Some(101)).await.unwrap_err().tip(), Some(100));
}

#[tokio::test]
async fn a_contracts_error_about_lost_state_is_a_refusal() {
    let text = "failed to load state at height 5; (latest height: 9): query wasm contract failed";
    let server = Server::always(fault(500, &format!(r#"{{"code":2,"message":"{text}"}}"#))).await;
    let error = rest(&server).get("/x", Some(5)).await.unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
}

#[tokio::test]
async fn a_path_that_the_chain_does_not_have_is_a_missing_method() {
    for (status, code, text) in [(501, 12, "Not Implemented"), (404, 5, "Not Found")] {
        let server = Server::always(fault(status, &format!(r#"{{"code":{code},"message":"{text}"}}"#))).await;
        let error = rest(&server).get("/x", None).await.unwrap_err();
        assert!(matches!(error, Error::MethodMissing { .. }), "{error:?}");
    }
    let server = Server::always(fault(404, r#"{"code":5,"message":"account not found"}"#)).await;
    let error = rest(&server).get("/x", None).await.unwrap_err();
    assert!(matches!(error, Error::Refused { code: 5, .. }), "{error:?}");
}

#[tokio::test]
async fn a_page_of_a_proxy_is_a_failure_whatever_its_status() {
    for status in [200, 401, 404, 500, 502] {
        let server = Server::always(Play::Answer(status, "", b"<html>no</html>".into())).await;
        let error = rest(&server).get("/x", None).await.unwrap_err();
        assert!(
            matches!(&error, Error::Unreadable { message, .. } if message == "<html>no</html>"),
            "{error:?}"
        );
        assert_eq!(error.kind(), Kind::Transient);
    }
}

#[tokio::test]
async fn the_height_goes_into_the_header_and_the_body_into_a_post() {
    let server = Server::always(json(r#"{"a": 1}"#)).await;
    let rest = rest(&server);
    assert_eq!(rest.get("/a?b=c", Some(77)).await.unwrap(), r#"{"a": 1}"#);
    rest.get("/a", None).await.unwrap();
    rest.post("/p", r#"{"q":1}"#, Some(5)).await.unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].line, "GET /a?b=c");
    assert!(asked[0].headers.contains("x-cosmos-block-height: 77\r\n"));
    assert!(!asked[1].headers.contains("x-cosmos-block-height"));
    assert_eq!((asked[2].line.as_str(), asked[2].body.as_str()), ("POST /p", r#"{"q":1}"#));
    assert!(asked[2].headers.contains("x-cosmos-block-height: 5\r\n"));
    assert!(asked[2].headers.contains("content-type: application/json\r\n"));
}

#[tokio::test]
async fn the_newest_outputs_have_the_height_of_their_state_if_the_server_says_it() {
    let body = br#"{"output_proposals":[]}"#;
    for (headers, height) in [
        ("x-cosmos-block-height: 77\r\n", Some(77)),
        ("Grpc-Metadata-X-Cosmos-Block-Height: 78\r\n", Some(78)),
        ("x-cosmos-block-height: x\r\n", None),
        ("", None),
    ] {
        let server = Server::always(Play::Answer(200, headers, body.to_vec())).await;
        assert_eq!(rest(&server).newest_bridge_outputs(1, 10).await.unwrap(), (Vec::new(), height));
    }
}

#[tokio::test]
async fn a_path_that_no_request_can_hold_is_refused_without_a_request() {
    let server = Server::always(json("{}")).await;
    let error = rest(&server).get("/a b\r\nx: y", None).await.unwrap_err();
    assert!(matches!(error, Error::InvalidRequest { .. }), "{error:?}");
    assert_eq!((error.kind(), server.count()), (Kind::Permanent, 0));
}

#[tokio::test]
async fn a_transaction_is_decoded_by_the_node_and_its_text_kept() {
    let server = Server::always(json(r#"{"tx": {"body":{"memo":"\u003c"}} }"#)).await;
    assert_eq!(rest(&server).decode_tx(&[1, 2, 3]).await.unwrap(), r#"{"body":{"memo":"\u003c"}}"#);
    assert_eq!(server.asked()[0].line, "POST /cosmos/tx/v1beta1/decode");
    assert_eq!(server.asked()[0].body, r#"{"tx_bytes":"AQID"}"#);
    let server = Server::always(fault(500, r#"{"code":2,"message":"tx parse error"}"#)).await;
    assert!(matches!(rest(&server).decode_tx(&[1]).await.unwrap_err(), Error::Refused { .. }));
}

const VALIDATOR: &str = r#"{"operator_address":"OP","consensus_pubkey":{"@type":"TYPE","key":"ht5XiP8ygRHAEMFaBxUTBIcqc63ur4XqV94GCLWsNDg="},"description":{"moniker":"MONIKER"}}"#;
const ED25519: &str = "/cosmos.crypto.ed25519.PubKey";

fn page(operator: &str, kind: &str, next: &str) -> Play {
    let validator = VALIDATOR.replace("OP", operator).replace("TYPE", kind).replace("MONIKER", operator);
    json(&format!(r#"{{"validators":[{validator}],"pagination":{{"next_key":{next},"total":"0"}}}}"#))
}

#[tokio::test]
async fn validators_come_from_the_module_that_the_chain_has_page_by_page() {
    let server = Server::play(|_, asked| match asked.line.as_str() {
        "GET /cosmos/staking/v1beta1/validators?pagination.limit=1000" => page("one", ED25519, r#""a+/=""#),
        "GET /cosmos/staking/v1beta1/validators?pagination.limit=1000&pagination.key=a%2B%2F%3D" => {
            page("two", ED25519, r#""""#)
        }
        _ => fault(501, r#"{"code":12,"message":"Not Implemented","details":[]}"#),
    })
    .await;
    let validators = rest(&server).validators().await.unwrap();
    let names: Vec<_> =
        validators.iter().map(|v| (v.moniker.as_str(), v.operator_address.as_str())).collect();
    assert_eq!(names, [("one", "one"), ("two", "two")]);
    // The L1's validator in the recording `l1-l2`: CometBFT's /validators has this address for this key.
    assert_eq!(
        hex::encode_upper(validators[0].consensus_address),
        "F229F741D6027732AF3D2D875C44FFE9AACCA6DF"
    );
    assert_eq!(server.count(), 4);
}

#[tokio::test]
async fn a_validator_with_another_kind_of_key_is_left_out() {
    let server = Server::always(page("other", "/cosmos.crypto.secp256k1.PubKey", "null")).await;
    assert_eq!(rest(&server).validators().await.unwrap(), []);
}

#[tokio::test]
async fn pages_that_never_end_are_an_error() {
    let server = Server::always(page("same", ED25519, r#""AA==""#)).await;
    let error = rest(&server).validators().await.unwrap_err();
    assert!(error.to_string().contains("more than 100 pages"), "{error}");
    assert_eq!(server.count(), 100);
}

#[tokio::test]
async fn a_failing_module_does_not_count_as_missing() {
    let server = Server::play(|_, asked| {
        if asked.line.contains("opinit") {
            Play::Answer(502, "", b"<html>".into())
        } else {
            page("x", ED25519, "null")
        }
    })
    .await;
    assert_eq!(rest(&server).validators().await.unwrap_err().kind(), Kind::Transient);
}
