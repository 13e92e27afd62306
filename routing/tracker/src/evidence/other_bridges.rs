//! Messages, events and logs by which tokens leave a chain over a bridge that is not tracked. Pure.
//!
//! # Invariants
//!
//! A word here is one that no module of a chain's own has in its name.

use std::sync::LazyLock;

use node::{FoundEvent, TxSearchHit};
use sha3::{Digest as _, Keccak256};

use crate::evidence::layer_zero::{Log, PACKET_SENT};

/// Words in the names of modules and contracts of bridges: BEP3, CCTP, Hyperlane, Axelar, Gravity Bridge, Peggy, Wormhole and
/// its portals, LayerZero, and any that calls itself a bridge.
const WORDS: [&str; 11] = [
    "bridge",
    "bep3",
    "crosschain",
    "cctp",
    "hyperlane",
    "axelar",
    "gravity",
    "peggy",
    "wormhole",
    "portal",
    "layerzero",
];

/// THORChain's only message for a step to another chain, of a package without a name of its own.
const THORCHAIN: &str = "/types.MsgDeposit";

/// Events of bridge contracts: CCTP 1 and 2, Hyperlane, Axelar, Wormhole, IBC v2, the OP stack, Across, Go Fast, LayerZero 1,
/// Chainlink CCIP, Arbitrum, Polygon, Gravity Bridge, Peggy, Hop, cBridge, Synapse.
const LOGS: [&str; 25] = [
    "DepositForBurn(uint64,address,uint256,address,bytes32,uint32,bytes32,bytes32)",
    "DepositForBurn(address,uint256,address,bytes32,uint32,bytes32,bytes32,uint256,uint32,bytes)",
    "MessageSent(bytes)",
    "Dispatch(address,uint32,bytes32,bytes)",
    "ContractCall(address,string,string,bytes32,bytes)",
    "ContractCallWithToken(address,string,string,bytes32,bytes,string,uint256)",
    "TokenSent(address,string,string,string,uint256)",
    "LogMessagePublished(address,uint64,uint32,bytes,uint8)",
    "SendPacket(string,uint256,(uint64,string,string,uint64,(string,string,string,string,bytes)[]))",
    "TransactionDeposited(address,address,uint256,bytes)",
    "MessagePassed(uint256,address,address,uint256,uint256,bytes,bytes32)",
    "FundsDeposited(bytes32,bytes32,uint256,uint256,uint256,uint256,uint32,uint32,uint32,bytes32,bytes32,bytes32,bytes)",
    "V3FundsDeposited(address,address,uint256,uint256,uint256,uint32,uint32,uint32,uint32,address,address,address,bytes)",
    "OrderSubmitted(bytes32,bytes)",
    "Packet(bytes)",
    "CCIPSendRequested((uint64,address,address,uint64,uint256,bool,uint64,address,uint256,bytes,(address,uint256)[],bytes[],bytes32))",
    "InboxMessageDelivered(uint256,bytes)",
    "L2ToL1Tx(address,address,uint256,uint256,uint256,uint256,uint256,uint256,bytes)",
    "StateSynced(uint256,address,bytes)",
    "SendToCosmosEvent(address,address,string,uint256,uint256)",
    "SendToInjectiveEvent(address,address,bytes32,uint256,uint256,string)",
    "TransferSent(bytes32,uint256,address,uint256,bytes32,uint256,uint256,uint256,uint256)",
    "TransferSentToL2(uint256,address,uint256,uint256,uint256,address,uint256)",
    "Send(bytes32,address,address,address,uint256,uint64,uint64,uint32)",
    "TokenDeposit(address,uint256,address,uint256)",
];

static TOPICS: LazyLock<Vec<(String, &str)>> = LazyLock::new(|| {
    let topic = |event: &&'static str| (format!("0x{}", hex::encode(Keccak256::digest(event))), *event);
    LOGS.iter().map(topic).collect()
});

/// The first message of a bridge among those of a transaction.
pub(crate) fn message(tx: &TxSearchHit) -> Option<&str> {
    let actions = tx.events.iter().filter(|event| event.kind == "message");
    let actions = actions.filter_map(|event| event.get("action"));
    let mut names =
        tx.messages.iter().map(String::as_str).chain(actions).filter(|name| name.starts_with('/'));
    names.find(|name| is_of_bridge(package(name)) || *name == THORCHAIN)
}

/// The name of an event of a bridge. LayerZero's messages do not count: those that move tokens are tracked.
pub(crate) fn event(event: &FoundEvent) -> Option<String> {
    match event.kind.as_str() {
        "move" => event.get("type_tag").filter(|tag| is_of_bridge(tag)).map(str::to_owned),
        "evm" | "tx_log" => event_logs(event).find_map(|of_event| log(&of_event)).map(str::to_owned),
        // Wormhole's core contract.
        "wasm" if event.get("message.sequence").is_some() && event.get("message.nonce").is_some() => {
            Some("a message of Wormhole".to_owned())
        }
        kind if kind.starts_with("wasm-") => {
            (is_of_bridge(kind) || kind.contains("dispatch")).then(|| kind.to_owned())
        }
        kind => is_of_bridge(package(kind)).then(|| kind.to_owned()),
    }
}

/// Whether an event is LayerZero's for a message of any contents.
pub(crate) fn is_layer_zero_packet(event: &FoundEvent) -> bool {
    let is_it = |tag: &str| tag.rsplit("::").next() == Some("PacketSent");
    event_logs(event).any(|log| log.is(PACKET_SENT))
        || (event.kind == "move" && event.get("type_tag").is_some_and(is_it))
}

/// The logs in an event of a chain with an EVM: one in minievm's, those of a call in ethermint's.
pub(crate) fn event_logs(event: &FoundEvent) -> impl Iterator<Item = Log> {
    let is_log = move |key: &str| matches!((event.kind.as_str(), key), ("evm", "log") | ("tx_log", "txLog"));
    let texts = event.attributes.iter().filter(move |(key, _)| is_log(key));
    texts.filter_map(|(_, text)| Log::of_event(text))
}

/// The event of a bridge contract that a log is.
pub(crate) fn log(log: &Log) -> Option<&'static str> {
    TOPICS.iter().find(|(topic, _)| log.is(topic)).map(|(_, event)| *event)
}

/// `circle.cctp.v1` of `circle.cctp.v1.DepositForBurn`; nothing for a name without a package.
fn package(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(package, _)| package)
}

fn is_of_bridge(package: &str) -> bool {
    let package = package.to_ascii_lowercase();
    WORDS.iter().any(|word| package.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kind: &str, key: &str, value: &str) -> FoundEvent {
        FoundEvent { kind: kind.to_owned(), attributes: vec![(key.to_owned(), value.to_owned())] }
    }

    #[test]
    fn the_modules_of_bridges_are_told_from_those_of_a_chain() {
        let tx = |events: Vec<FoundEvent>, messages: &[&str]| {
            let messages = messages.iter().map(|name| (*name).to_owned()).collect();
            let (codespace, log) = (String::new(), String::new());
            TxSearchHit { hash: [0; 32], height: 1, index: 0, code: 0, codespace, log, events, messages }
        };
        for name in [
            "/circle.cctp.v1.MsgDepositForBurn",
            "/hyperlane.warp.v1.MsgRemoteTransfer",
            "/axelar.axelarnet.v1beta1.CallContractRequest",
            "/gravity.v1.MsgSendToEth",
            "/injective.peggy.v1.MsgSendToEth",
            "/noble.dollar.portal.v1.MsgTransfer",
            "/sifnode.ethbridge.v1.MsgBurn",
            "/kava.bep3.v1beta1.MsgCreateAtomicSwap",
            "/types.MsgDeposit",
        ] {
            assert_eq!(message(&tx(Vec::new(), &["/cosmos.authz.v1beta1.MsgExec", name])), Some(name));
            assert_eq!(message(&tx(vec![of("message", "action", name)], &[])), Some(name));
        }
        let own =
            ["/opinit.ophost.v1.MsgCreateBridge", "/ibc.core.channel.v1.MsgRecvPacket", "/types.MsgSend"];
        assert_eq!(message(&tx(vec![of("message", "action", "wormhole.x")], &own)), None);
        for (kind, key, value) in [
            ("circle.cctp.v1.DepositForBurn", "nonce", "1"),
            ("hyperlane.core.v1.EventDispatch", "nonce", "1"),
            ("wasm-mailbox_dispatch", "message", "00"),
            ("move", "type_tag", "0xa::hyperlane_mailbox::DispatchEvent"),
        ] {
            assert!(event(&of(kind, key, value)).is_some(), "{kind}");
        }
        for (kind, key, value) in
            [("create_bridge", "bridge_id", "1"), ("move", "type_tag", "0x1::coin::E"), ("wasm", "a", "b")]
        {
            assert_eq!(event(&of(kind, key, value)), None, "{kind}");
        }
    }

    #[test]
    fn the_logs_of_bridge_contracts_have_their_published_topics() {
        let topics =
            |event: &str| TOPICS.iter().find(|(_, known)| known.starts_with(event)).unwrap().0.clone();
        // As in the ABIs that their makers publish.
        let layer_zero = "0xe9bded5f24a4168e4f3bf44e00298c993b22376aad8c58c7dda9718a54cbea82";
        assert_eq!(topics("Packet("), layer_zero);
        let arbitrum = "0xff64905f73a67fb594e0f940a8075a860db489ad991e032f48c81123eb52d60b";
        assert_eq!(topics("InboxMessageDelivered("), arbitrum);
        assert_eq!(
            topics("DepositForBurn(uint64"),
            "0x2fa9ca894982930190727e75500a97d8dc500233a5065e0f3126c48fbe0343c0"
        );
        assert_eq!(topics("Dispatch("), "0x769f711d20c679153d382254f59892613b58a97cc876b249134ac25c80f9c814");
    }
}
