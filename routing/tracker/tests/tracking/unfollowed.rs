//! Transactions whose step to another chain cannot be followed: they are pending with the reason, never done.

use std::sync::Arc;

use chain::Vm;
use node::{FoundEvent, TxSearchHit};
use registry::{ChainKind, Endpoints, Registry};
use serde_json::{Value, json};
use tracker::evidence::hop::{ObservedHop, Obstacle, TxRef};
use tracker::evidence::transfer::Transfer;
use tracker::record::{Record, Source};
use tracker::{Options, detect_hops, status};

use crate::world::{L1, chain, chains};

const SENDER: &str = "init1pyq6amga29zfsldw8k26kgvl7a0fhf3kftflmr";

fn registry() -> Registry {
    chains(Endpoints::default(), Endpoints::default()).finish("test".to_owned())
}

fn event(kind: &str, attributes: &[(&str, &str)]) -> FoundEvent {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    FoundEvent { kind: kind.to_owned(), attributes: attributes.iter().map(owned).collect() }
}

/// A `send_packet` of ICS-20 with some attributes replaced, or left out by a null.
fn packet(changes: &Value) -> FoundEvent {
    let data = json!({"denom": "uinit", "amount": "5", "sender": SENDER, "receiver": "x"}).to_string();
    let mut all = json!({
        "packet_data_hex": hex::encode(data),
        "packet_timeout_height": "0-0",
        "packet_timeout_timestamp": "1895300000000000000",
        "packet_sequence": "7",
        "packet_src_port": "transfer",
        "packet_src_channel": "channel-0",
        "packet_dst_port": "transfer",
        "packet_dst_channel": "channel-0",
        "msg_index": "0",
    });
    for (key, value) in changes.as_object().unwrap() {
        all[key] = value.clone();
    }
    let given =
        all.as_object().unwrap().iter().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)));
    event("send_packet", &given.collect::<Vec<_>>())
}

fn data(json: &str) -> FoundEvent {
    packet(&json!({ "packet_data_hex": hex::encode(json) }))
}

fn hops(events: Vec<FoundEvent>, messages: &[&str]) -> Vec<ObservedHop> {
    let registry = registry();
    let messages = messages.iter().map(|name| (*name).to_owned()).collect();
    let (codespace, log) = (String::new(), String::new());
    let tx = TxSearchHit { hash: [1; 32], height: 7, index: 0, code: 0, codespace, log, events, messages };
    detect_hops(&registry, &tx, &sent()).concat()
}

fn sent() -> TxRef {
    TxRef { chain: L1.to_owned(), hash: Some("01".repeat(32)), height: 7, time: Some(1) }
}

/// The response about a transaction with these first hops, after so many seconds.
fn response(hops: Vec<ObservedHop>, seconds: i64) -> Value {
    let now = seconds * 1_000_000_000;
    let mut record = Record::new(L1, &"01".repeat(32), 0);
    record.source = Source::Executed { tx: sent(), is_final: true };
    record.transfers = if hops.is_empty() {
        vec![Transfer::new(None, 0)]
    } else {
        hops.into_iter().map(|hop| Transfer::new(Some(hop), 0)).collect()
    };
    record.schedule(now, true, &Options::default());
    serde_json::from_slice(&status::json(&record, &registry(), now).unwrap()).unwrap()
}

#[test]
fn a_step_that_is_not_understood_is_pending_with_the_reason_and_never_done() {
    const MSG_TRANSFER: &str = "/ibc.applications.transfer.v1.MsgTransfer";
    let v2 = event(
        "send_packet",
        &[
            ("packet_source_client", "08-wasm-1369"),
            ("packet_dest_client", "client-0"),
            ("packet_sequence", "7"),
            ("packet_timeout_timestamp", "1795300000"),
            ("encoded_packet_hex", "0801"),
        ],
    );
    let wormhole = [("message.sequence", "1"), ("message.nonce", "2"), ("_contract_address", "x")];
    let burn = event("circle.cctp.v1.DepositForBurn", &[("nonce", "\"52741\"")]);
    let dispatch = json!({
        "address": "0x0000000000000000000000000000000000000001",
        "topics": ["0x769f711d20c679153d382254f59892613b58a97cc876b249134ac25c80f9c814"],
        "data": "0x",
    })
    .to_string();
    let cases: Vec<(&str, Vec<FoundEvent>, &[&str], Obstacle)> = vec![
        ("IBC v2", vec![v2], &["/ibc.core.channel.v2.MsgSendPacket"], Obstacle::IbcV2),
        ("IBC v2, no event", vec![], &["/ibc.core.channel.v2.MsgSendPacket"], Obstacle::Malformed),
        (
            "a client as channel",
            vec![packet(&json!({"packet_src_channel": "07-tendermint-3"}))],
            &[],
            Obstacle::IbcV2,
        ),
        (
            "ICS-20 v2",
            vec![packet(&json!({"packet_data_hex": "0a0c0a070a057561746f6d120135"}))],
            &[],
            Obstacle::Malformed,
        ),
        (
            "ICS-20 v2 in JSON",
            vec![data(r#"{"tokens":[{"amount":"5"}],"sender":"a","receiver":"b"}"#)],
            &[],
            Obstacle::Malformed,
        ),
        ("no data", vec![packet(&json!({"packet_data_hex": null}))], &[], Obstacle::Malformed),
        ("data that is no hex", vec![packet(&json!({"packet_data_hex": "xy"}))], &[], Obstacle::Malformed),
        (
            "a number as amount",
            vec![data(r#"{"denom":"u","amount":5,"sender":"a","receiver":"b"}"#)],
            &[],
            Obstacle::Malformed,
        ),
        (
            "no amount",
            vec![data(r#"{"denom":"u","amount":"","sender":"a","receiver":"b"}"#)],
            &[],
            Obstacle::Malformed,
        ),
        (
            "a negative amount",
            vec![data(r#"{"denom":"u","amount":"-5","sender":"a","receiver":"b"}"#)],
            &[],
            Obstacle::Malformed,
        ),
        (
            "an exponent",
            vec![data(r#"{"denom":"u","amount":"1e3","sender":"a","receiver":"b"}"#)],
            &[],
            Obstacle::Malformed,
        ),
        ("no NFTs", vec![data(r#"{"classId":"c","sender":"a","receiver":"b"}"#)], &[], Obstacle::Malformed),
        ("no sequence", vec![packet(&json!({"packet_sequence": null}))], &[], Obstacle::Malformed),
        ("no destination", vec![packet(&json!({"packet_dst_channel": null}))], &[], Obstacle::Malformed),
        ("no port", vec![packet(&json!({"packet_src_port": null}))], &[], Obstacle::Malformed),
        ("ICS-27", vec![packet(&json!({"packet_src_port": "icacontroller-0"}))], &[], Obstacle::Port),
        ("an oracle's port", vec![packet(&json!({"packet_src_port": "oracle"}))], &[], Obstacle::Port),
        ("CCTP", vec![burn.clone()], &["/circle.cctp.v1.MsgDepositForBurn"], Obstacle::Bridge),
        (
            "CCTP within authz",
            vec![],
            &["/cosmos.authz.v1beta1.MsgExec", "/circle.cctp.v1.MsgDepositForBurn"],
            Obstacle::Bridge,
        ),
        ("CCTP by a contract", vec![burn], &["/cosmwasm.wasm.v1.MsgExecuteContract"], Obstacle::Bridge),
        ("Hyperlane", vec![], &["/hyperlane.warp.v1.MsgRemoteTransfer"], Obstacle::Bridge),
        (
            "Hyperlane by a contract",
            vec![event("wasm-mailbox_dispatch", &[("message", "00")])],
            &[],
            Obstacle::Bridge,
        ),
        ("Hyperlane by an EVM", vec![event("evm", &[("log", dispatch.as_str())])], &[], Obstacle::Bridge),
        (
            "Hyperlane by an EVM of ethermint",
            vec![event("tx_log", &[("txLog", "{}"), ("txLog", &dispatch.replace("\"0x\"", "\"AAE=\""))])],
            &["/ethermint.evm.v1.MsgEthereumTx"],
            Obstacle::Bridge,
        ),
        ("Axelar", vec![], &["/axelar.axelarnet.v1beta1.CallContractRequest"], Obstacle::Bridge),
        ("Wormhole", vec![event("wasm", &wormhole)], &[], Obstacle::Bridge),
        (
            "LayerZero without tokens",
            vec![event("move", &[("type_tag", "0xa::channels::PacketSent"), ("data", "{}")])],
            &[],
            Obstacle::Bridge,
        ),
        (
            "a malformed OFT",
            vec![event("move", &[("type_tag", "0xa::oft_core::OftSent"), ("data", "{")])],
            &[],
            Obstacle::Malformed,
        ),
        ("no events at all", vec![], &["/cosmwasm.wasm.v1.MsgExecuteContract"], Obstacle::NoLogs),
        ("a transfer without an event", vec![], &[MSG_TRANSFER], Obstacle::Malformed),
        (
            "two transfers with one event",
            vec![packet(&json!({}))],
            &[MSG_TRANSFER, MSG_TRANSFER],
            Obstacle::Malformed,
        ),
        (
            "a malformed deposit",
            vec![event("initiate_token_deposit", &[("bridge_id", "1")])],
            &[],
            Obstacle::Malformed,
        ),
        (
            "a malformed withdrawal",
            vec![event("initiate_token_withdrawal", &[("l2_sequence", "x")])],
            &[],
            Obstacle::Malformed,
        ),
    ];
    for (name, events, messages, obstacle) in cases {
        let hops = hops(events, messages);
        let found = hops.iter().find_map(|hop| match hop {
            ObservedHop::Unfollowed(hop) => Some(hop.obstacle),
            _ => None,
        });
        assert_eq!(found, Some(obstacle), "{name}");
        for (seconds, state) in [(1, "STATE_PENDING"), (100_000, "STATE_ABANDONED")] {
            let response = response(hops.clone(), seconds);
            assert_eq!(response["state"], state, "{name}: {response}");
            let transfers = response["transfers"].as_array().unwrap().iter();
            let mut messages = transfers.filter_map(|transfer| transfer["error"]["message"].as_str());
            assert!(
                messages.any(|message| message.starts_with("cannot be followed: ")),
                "{name}: {response}"
            );
            assert!(response["transfer_sequence"].as_array().unwrap().len() < 2);
        }
    }
}

#[test]
fn a_transaction_that_stayed_on_its_chain_is_done() {
    let own = event("move", &[("type_tag", "0x1::coin::WithdrawEvent"), ("data", "{}")]);
    let messages =
        ["/initia.move.v1.MsgExecute", "/cosmos.bank.v1beta1.MsgSend", "/opinit.ophost.v1.MsgCreateBridge"];
    let hops = hops(vec![own, event("create_bridge", &[("bridge_id", "1")])], &messages);
    assert_eq!(hops, []);
    assert_eq!(response(hops, 1)["state"], "STATE_COMPLETED_SUCCESS");
}

#[test]
fn packets_with_data_in_hex_or_as_text_are_followed() {
    let text = json!({"denom": "uinit", "amount": "5", "sender": SENDER, "receiver": "x"}).to_string();
    for event in [
        packet(&json!({})),
        packet(&json!({"packet_data_hex": null, "packet_data": text})),
        packet(&json!({"packet_data": "\u{fffd}"})),
    ] {
        assert!(matches!(&hops(vec![event], &[])[..], [ObservedHop::Ibc(_)]));
    }
}

#[test]
fn a_packet_of_another_account_in_a_move_call_is_not_the_users() {
    let caller = "0x901aeed1d5144987dae3d95ab219ff75e9ba636";
    let call = |sender| event("execute", &[("sender", sender), ("msg_index", "0")]);
    // The same account in bech32, and the chain's own call for its fee.
    let own = vec![call(caller), call("0x1,0x27f576"), packet(&json!({}))];
    assert_eq!(hops(own, &[]).len(), 1);
    let data = json!({"denom": "uinit", "amount": "5", "receiver": "x",
        "sender": "init1kfc3mau3znsnwtzyce8hnwch43hpz8v32e56y4ata66jpkyjetws87rp74"});
    let pool = packet(&json!({ "packet_data_hex": hex::encode(data.to_string()), "packet_sequence": "8" }));
    let hops = hops(vec![call(caller), pool, packet(&json!({}))], &[]);
    let [ObservedHop::Ibc(hop)] = &hops[..] else { panic!("{hops:?}") };
    assert_eq!(hop.packet.id.sequence, 7);
}

#[test]
fn an_oft_that_a_rollup_with_an_evm_sends_is_followed() {
    let mut builder = chains(Endpoints::default(), Endpoints::default());
    builder.chain(chain("oft-1", ChainKind::Cosmos, Vm::Evm, Endpoints::default())).unwrap();
    let registry = Arc::new(builder.finish("test".to_owned()));
    let guid = "11".repeat(32);
    let log = json!({
        "address": "0x0000000000000000000000000000000000000001",
        "topics": [
            "0x85496b760a4b7f8d66384b9df21b381f5d1b1e79f229a47aaf4c232edc2fe59a",
            format!("0x{guid}"),
            format!("0x{:064x}", 1),
        ],
        "data": format!("0x{:064x}{:064x}{:064x}", 40_101, 5, 5),
    });
    let events = vec![event("evm", &[("log", &log.to_string())])];
    let (codespace, messages) = (String::new(), Vec::new());
    let tx = TxSearchHit {
        hash: [1; 32],
        height: 7,
        index: 0,
        code: 0,
        codespace,
        log: String::new(),
        events,
        messages,
    };
    let hops = detect_hops(&registry, &tx, &TxRef { chain: "oft-1".to_owned(), ..sent() }).concat();
    let [ObservedHop::LayerZero(hop)] = &hops[..] else { panic!("{hops:?}") };
    assert_eq!((hop.guid.as_str(), hop.amount.as_str(), hop.dst_eid), (guid.as_str(), "5", 40_101));
}
