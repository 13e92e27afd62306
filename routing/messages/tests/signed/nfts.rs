//! Messages for NFTs: those of the recorded chains byte for byte, and those of contracts on a Wasm chain.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Vm;
use messages::{BuildError, NftMsg, NftRequest, nft};
use prost::Message as _;
use registry::{Channel, End, Facts, Registry};
use serde_json::{Value, json};

use crate::support::proto_form::{Height, NftTransfer};
use crate::support::world::{L1, L2, WorldBuilder};
use crate::support::{OTHER, USER, recorded};

fn recorded_chains() -> Registry {
    registry::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../registry/example")).unwrap().registry
}

/// Path of the class of the vouchers that come over the recorded channel.
const PATH: &str = "nft-transfer/channel-1";

fn ours(
    registry: &Registry,
    from: &str,
    to: &str,
    sent: &NftTransfer,
    path: Option<&str>,
) -> Result<Vec<NftMsg>, BuildError> {
    nft(&NftRequest {
        registry,
        facts: &Facts::default(),
        from: registry.chain(from).unwrap(),
        to: registry.chain(to).unwrap(),
        from_address: &sent.sender,
        to_address: &sent.receiver,
        collection: "",
        token_ids: &sent.token_ids,
        objects: &[],
        class_id: Some(&sent.class_id),
        class_path: path,
        outgoing_proxy: None,
        timeout: sent.timeout_timestamp,
    })
}

#[test]
fn recorded_transfers_equal_ours_byte_for_byte() {
    let registry = recorded_chains();
    let (mut same, mut refused) = (0, Vec::new());
    for (chain, from, to) in [("l1", L1, L2), ("l2", L2, L1)] {
        for message in recorded::messages(chain) {
            if message.type_url != "/ibc.applications.nft_transfer.v1.MsgTransfer" {
                continue;
            }
            let sent = NftTransfer::decode(message.value.as_slice()).unwrap();
            let path = sent.class_id.starts_with("ibc/").then_some(PATH);
            match ours(&registry, from, to, &sent, path) {
                Ok(msgs) => {
                    let [msg] = msgs.as_slice() else { panic!("{msgs:?}") };
                    assert_eq!(msg.kind, "nft-transfer/MsgTransfer");
                    let mut made: NftTransfer = serde_json::from_str(msg.value.get()).unwrap();
                    assert_eq!(made.timeout_height, Some(Height::default()));
                    made.timeout_height = sent.timeout_height;
                    assert_eq!(made.encode_to_vec(), message.value, "{}", msg.value);
                    same += 1;
                }
                Err(BuildError::Address { address, .. }) => refused.push(address),
                Err(other) => panic!("{other}"),
            }
        }
    }
    // The chains refunded those that are refused here.
    assert_eq!((same, refused), (4, vec!["not-an-address".to_owned(); 2]));
}

#[test]
fn a_voucher_goes_back_over_its_own_channel_or_not_at_all() {
    let mut world = WorldBuilder::new();
    let (a, b) = (world.cosmos("a-1", "init", Vm::Move, true), world.cosmos("b-1", "init", Vm::Evm, false));
    for number in [1, 2] {
        let end =
            |chain| End { chain, port: "nft-transfer".to_owned(), channel: format!("channel-{number}") };
        let paused = (number == 2).then(|| "closed".to_owned());
        world.builder.channel(Channel { a: end(a), b: end(b), paused, seconds: None }).unwrap();
    }
    let registry = world.finish();
    let sent = NftTransfer {
        class_id: "ibc/AA".to_owned(),
        token_ids: vec!["1".to_owned()],
        sender: USER.to_owned(),
        receiver: OTHER.to_owned(),
        timeout_timestamp: 1,
        ..NftTransfer::default()
    };
    let channel = |path: &str| {
        let msgs = ours(&registry, "a-1", "b-1", &sent, Some(path)).map_err(|error| error.to_string())?;
        let value: Value = serde_json::from_str(msgs[0].value.get()).unwrap();
        Ok::<_, String>(value["source_channel"].as_str().unwrap().to_owned())
    };
    assert_eq!(channel("nft-transfer/channel-1"), Ok("channel-1".to_owned()));
    assert_eq!(channel("nft-transfer/channel-1/nft-transfer/channel-9"), Ok("channel-1".to_owned()));
    // The path of another chain, and of a channel whose name begins alike.
    assert_eq!(channel("nft-transfer/channel-20"), Ok("channel-1".to_owned()));
    let refused = channel("nft-transfer/channel-2").unwrap_err();
    assert_eq!(refused, "the channel nft-transfer/channel-2 of a-1 is paused: closed");
}

#[test]
fn a_wasm_collection_sends_to_the_contract_of_the_channel_or_its_proxy() {
    let mut world = WorldBuilder::new();
    let (l1, wasm) =
        (world.cosmos(L1, "init", Vm::Move, true), world.cosmos("wasm-1", "init", Vm::Wasm, false));
    let contract = "init1fvl35tzadelcpydzk0zdtehhpqgjyv6y7wrwu0";
    let end =
        |chain, port: &str, channel: &str| End { chain, port: port.to_owned(), channel: channel.to_owned() };
    let channel = Channel {
        a: end(l1, "nft-transfer", "channel-5"),
        b: end(wasm, &format!("wasm.{contract}"), "channel-3"),
        paused: None,
        seconds: None,
    };
    world.builder.channel(channel).unwrap();
    let registry = world.finish();
    let ids = ["1".to_owned(), "a".to_owned()];
    let mut request = NftRequest {
        registry: &registry,
        facts: &Facts::default(),
        from: wasm,
        to: l1,
        from_address: USER,
        to_address: OTHER,
        collection: "0x4b3f1a2c5d6e7f8091a2b3c4d5e6f70811223344",
        token_ids: &ids,
        objects: &[],
        class_id: None,
        class_path: None,
        outgoing_proxy: None,
        timeout: 7,
    };
    let values = |request: &NftRequest<'_>| -> Vec<Value> {
        let msgs = nft(request).unwrap();
        assert!(msgs.iter().all(|msg| msg.kind == "wasm/MsgExecuteContract"));
        msgs.iter().map(|msg| serde_json::from_str(msg.value.get()).unwrap()).collect()
    };
    let sent = values(&request);
    assert_eq!((sent.len(), &sent[0]["contract"], &sent[0]["funds"]), (2, &json!(contract), &json!([])));
    let send = &sent[1]["msg"]["send_nft"];
    assert_eq!((&send["contract"], &send["token_id"]), (&json!(contract), &json!("a")));
    let packet = STANDARD.decode(send["msg"].as_str().unwrap()).unwrap();
    let packet: Value = serde_json::from_slice(&packet).unwrap();
    let timeout = json!({ "block": null, "timestamp": "7" });
    assert_eq!(
        packet,
        json!({ "receiver": OTHER, "channel_id": "channel-3", "timeout": timeout, "memo": null })
    );

    request.outgoing_proxy = Some(OTHER);
    assert_eq!(values(&request)[0]["msg"]["send_nft"]["contract"], OTHER);

    request.to = wasm;
    let within = values(&request);
    assert_eq!(within[0]["msg"], json!({ "transfer_nft": { "recipient": OTHER, "token_id": "1" } }));
}
