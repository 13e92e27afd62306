//! Names in packets of ICS-721, in every form of packet and acknowledgement.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chain::Vm;
use chain::comet::parse_results;
use chain::nft::{NftEvent, events};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const DONE: &str = r#"{"result":"AQ=="}"#;
const REFUSED: &str = r#"{"error":"ABCI code: 1"}"#;

fn event(kind: &str, attributes: &[(&str, &str)]) -> Value {
    let attributes: Vec<_> = attributes.iter().map(|(k, v)| json!({ "key": k, "value": v })).collect();
    json!({ "type": kind, "attributes": attributes })
}

/// Names in a transaction with this code and these events.
fn names_in(vm: Vm, code: u32, of_tx: &[&Value]) -> Vec<(String, String)> {
    let answer = json!({ "txs_results": [{ "code": code, "events": of_tx }] }).to_string();
    let found = events(vm, "init", &parse_results(answer.as_bytes()).unwrap());
    let name = |(_, event)| match event {
        NftEvent::ClassName { local, origin } => (local, origin),
        other => panic!("{other:?}"),
    };
    found.into_iter().map(name).collect()
}

const PLACE: [(&str, &str); 5] = [
    ("packet_src_port", "nft-transfer"),
    ("packet_src_channel", "channel-12"),
    ("packet_dst_port", "nft-transfer"),
    ("packet_dst_channel", "channel-1"),
    ("msg_index", "1"),
];

fn packet(sequence: &str, data: (&str, &str)) -> Value {
    event("recv_packet", &[&PLACE[..], &[("packet_sequence", sequence), data]].concat())
}

fn acknowledged(sequence: &str, ack: (&str, &str)) -> Value {
    event("write_acknowledgement", &[&PLACE[..], &[("packet_sequence", sequence), ack]].concat())
}

fn data(class_id: &str, name: &str) -> String {
    let class = BASE64.encode(json!({ "description": "d", "name": name }).to_string());
    json!({ "classData": class, "classId": class_id, "tokenIds": ["7"] }).to_string()
}

fn hash(trace: &str) -> String {
    format!("ibc/{}", hex::encode_upper(Sha256::digest(trace)))
}

#[test]
fn both_spellings_in_text_and_in_hex_give_the_same_name() {
    let camel = data("move/5f0c", "Marbles");
    let snake = camel.replace("classData", "class_data").replace("classId", "class_id");
    let local = hash("nft-transfer/channel-1/move/5f0c");
    let expected = [(local, "Marbles".to_owned())];
    let ack = acknowledged("4", ("packet_ack", DONE));
    for text in [&camel, &snake] {
        let in_hex = hex::encode(text);
        let plain = packet("4", ("packet_data", text));
        assert_eq!(names_in(Vm::Evm, 0, &[&plain, &ack]), expected);
        let only_hex = packet("4", ("packet_data_hex", &in_hex));
        assert_eq!(names_in(Vm::Move, 0, &[&only_hex, &ack]), expected);
    }
}

#[test]
fn a_name_counts_only_with_the_success_of_its_own_packet() {
    let text = data("a", "A");
    let packet = packet("4", ("packet_data", &text));
    let wrap = |app: &str, success| {
        let app = BASE64.encode(app);
        json!({ "app_acknowledgement": app, "forward_relayer_address": "", "underlying_app_success": success }).to_string()
    };
    let good = [DONE.to_owned(), wrap(DONE, true)];
    let bad = [
        REFUSED.to_owned(),
        wrap(DONE, false),
        wrap(REFUSED, true),
        json!({ "app_acknowledgement": DONE, "underlying_app_success": true }).to_string(),
        r#"{"result":null}"#.into(),
        "{".into(),
        String::new(),
    ];
    let count = |ack: &Value| names_in(Vm::Evm, 0, &[&packet, ack]).len();
    for ack in &good {
        assert_eq!(count(&acknowledged("4", ("packet_ack", ack))), 1, "{ack}");
        assert_eq!(count(&acknowledged("4", ("packet_ack_hex", &hex::encode(ack)))), 1, "{ack}");
        assert_eq!(names_in(Vm::Evm, 5, &[&packet, &acknowledged("4", ("packet_ack", ack))]), []);
    }
    for ack in &bad {
        assert_eq!(count(&acknowledged("4", ("packet_ack", ack))), 0, "{ack}");
    }
    assert_eq!(count(&acknowledged("5", ("packet_ack", DONE))), 0);
    assert_eq!(count(&event("x", &[])), 0);
    // Two packets in a transaction, the first refused: each has its own reply.
    let other = data("b", "B");
    let other = packet_of("5", &other);
    let acks = [acknowledged("4", ("packet_ack", REFUSED)), acknowledged("5", ("packet_ack", DONE))];
    let names = names_in(Vm::Evm, 0, &[&packet, &acks[0], &other, &acks[1]]);
    assert_eq!(names, [(hash("nft-transfer/channel-1/b"), "B".to_owned())]);
}

fn packet_of(sequence: &str, text: &str) -> Value {
    packet(sequence, ("packet_data", text))
}

#[test]
fn without_an_acknowledgement_the_event_of_the_module_decides() {
    let text = data("a", "A");
    let packet = packet_of("4", &text);
    let extracted = |success: &str, class: &str, message: &str| {
        let attributes = [("class_id", class), ("success", success), ("msg_index", message)];
        event("non_fungible_token_packet", &attributes)
    };
    let count = |events: &[&Value]| names_in(Vm::Evm, 0, &[&[&packet], events].concat()).len();
    assert_eq!(count(&[&extracted("true", "a", "1")]), 1);
    for event in [extracted("false", "a", "1"), extracted("true", "b", "1"), extracted("true", "a", "2")] {
        assert_eq!(count(&[&event]), 0, "{event}");
    }
    assert_eq!(count(&[&extracted("true", "a", "1"), &acknowledged("4", ("packet_ack", REFUSED))]), 0);
}

#[test]
fn the_local_name_is_a_hash_of_the_trace_and_on_wasm_the_trace() {
    let ack = acknowledged("4", ("packet_ack", DONE));
    let local = |vm, class| {
        let text = data(class, "A");
        names_in(vm, 0, &[&packet_of("4", &text), &ack])[0].0.clone()
    };
    let one_hop = "nft-transfer/channel-1/move/5f0c";
    assert_eq!(local(Vm::Wasm, "move/5f0c"), one_hop);
    assert_eq!(local(Vm::Evm, "move/5f0c"), hash(one_hop));
    let two_hops = "nft-transfer/channel-1/nft-transfer/channel-3/cats";
    assert_eq!(local(Vm::Move, "nft-transfer/channel-3/cats"), hash(two_hops));
    // ibc-go joins path and base with a slash even if hops leave no base.
    assert_eq!(
        local(Vm::Move, "nft-transfer/channel-3"),
        hash("nft-transfer/channel-1/nft-transfer/channel-3/")
    );
    let mut wasm = packet_of("4", &data("cats", "A"));
    wasm["attributes"][2]["value"] = json!("wasm.init1abc");
    let mut wasm_ack = ack.clone();
    wasm_ack["attributes"][2]["value"] = json!("wasm.init1abc");
    assert_eq!(names_in(Vm::Wasm, 0, &[&wasm, &wasm_ack])[0].0, "wasm.init1abc/channel-1/cats");
    assert_eq!(names_in(Vm::Wasm, 0, &[&wasm, &ack]), []);
}

#[test]
fn returning_other_and_malformed_packets_give_no_name() {
    let ack = acknowledged("4", ("packet_ack", DONE));
    let class = |class: &str| json!({ "classId": "a", "classData": class }).to_string();
    let invalid = [
        data("nft-transfer/channel-12/cats", "Home"),
        data("a", ""),
        data("a", "\0"),
        class("%%%"),
        class(&BASE64.encode("no json")),
        class(&BASE64.encode(r#"{"name":5}"#)),
        class(""),
        r#"{"classId":"a"}"#.into(),
        "{".into(),
        String::new(),
    ];
    for text in &invalid {
        assert_eq!(names_in(Vm::Evm, 0, &[&packet_of("4", text), &ack]), [], "{text}");
    }
    assert_eq!(names_in(Vm::Evm, 0, &[&packet("4", ("packet_data_hex", "7b2")), &ack]), []);
    let good = data("nft-transfer/channel-120/cats", "Other");
    let mut token = packet_of("4", &good);
    assert_eq!(names_in(Vm::Evm, 0, &[&token, &ack]).len(), 1);
    token["attributes"][0]["value"] = json!("transfer");
    assert_eq!(names_in(Vm::Evm, 0, &[&token, &ack]), []);
    let mut undone = packet_of("4", &good);
    undone["type"] = json!("ibccallbackerror-recv_packet");
    assert_eq!(names_in(Vm::Evm, 0, &[&undone, &ack]), []);
}
