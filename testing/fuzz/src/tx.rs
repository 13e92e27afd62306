//! Mutated transactions: the output is JSON and deterministic; an error leaves the output unchanged; both of our
//! decoders agree.

use std::sync::LazyLock;

use chain::tx::DecodedTx;
use proto::json::{signers_named_by_message, write_message, write_opaque_tx, write_tx};
use serde_json::Value;

use crate::input::Input;
use crate::recorded::{Chain, chains};

/// Names of types within transactions.
pub const WORDS: &[&str] = &[
    "/cosmos.bank.v1beta1.MsgSend",
    "/cosmos.authz.v1beta1.MsgExec",
    "/cosmos.tx.v1beta1.ExtensionOptionsEthereumTx",
    "/google.protobuf.Any",
    "/google.protobuf.Struct",
    "/cosmos.crypto.multisig.LegacyAminoPubKey",
    "/minievm.evm.v1.MsgCall",
    "/initia.move.v1.MsgExecute",
    "/cosmwasm.wasm.v1.MsgExecuteContract",
];

/// Types with maps, oneofs, times, numbers of the SDK, wrappers and values of any shape.
const NAMES: [&str; 16] = [
    "cosmos.tx.v1beta1.Tx",
    "cosmos.tx.v1beta1.TxBody",
    "cosmos.tx.v1beta1.AuthInfo",
    "cosmos.authz.v1beta1.Grant",
    "cosmos.bank.v1beta1.MsgMultiSend",
    "cosmos.feegrant.v1beta1.PeriodicAllowance",
    "connect.marketmap.v2.MarketMap",
    "ibc.lightclients.tendermint.v1.Header",
    "ibc.lightclients.tendermint.v1.ClientState",
    "google.protobuf.Struct",
    "google.protobuf.Value",
    "google.protobuf.Any",
    "google.protobuf.DoubleValue",
    "google.protobuf.Timestamp",
    "google.protobuf.Duration",
    "google.protobuf.FieldMask",
];

/// Maximum length of a transaction in a seed.
const MAX_BYTES: usize = 3_000;

/// Input: a byte for the chain, a byte for a transaction or a type, and its bytes.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let chain = &chains()[usize::from(input.byte()) % chains().len()];
    let which = usize::from(input.byte());
    match NAMES.get(which.wrapping_sub(1)) {
        None => transaction(chain, input.rest()),
        Some(name) => message(chain, name, input.rest()),
    }
}

fn transaction(chain: &Chain, raw: &[u8]) -> bool {
    let registry = &chain.rules.registry;
    let strict = twice(|out| write_tx(registry, raw, out));
    let opaque = twice(|out| {
        write_opaque_tx(registry, raw, out);
        Ok::<(), proto::json::Error>(())
    });
    let decoded = DecodedTx::decode(raw);
    let opaque = opaque.expect("the last resort never fails");
    let Some(json) = strict else { return false };
    assert_eq!(json, opaque, "a transaction that can be printed has no opaque parts");
    let Ok(tx) = decoded else { return true };
    let Some(messages) = json["body"]["messages"].as_array() else { panic!("{json}") };
    assert_eq!(messages.len(), tx.messages.len());
    for (json, message) in messages.iter().zip(&tx.messages) {
        assert_eq!(json["@type"].as_str(), Some(message.type_url.as_str()));
        signers_named_by_message(registry, &message.type_url, &message.value);
    }
    assert_eq!(json["body"]["memo"].as_str(), Some(tx.memo.as_str()));
    assert_eq!(json["signatures"].as_array().map(Vec::len), Some(tx.signatures.len()));
    true
}

fn message(chain: &Chain, name: &str, bytes: &[u8]) -> bool {
    let registry = &chain.rules.registry;
    signers_named_by_message(registry, &format!("/{name}"), bytes);
    twice(|out| write_message(registry, name, bytes, out)).is_some()
}

/// Writes twice, after other bytes: both times the same JSON within the limit, or no output.
fn twice<E>(write: impl Fn(&mut Vec<u8>) -> Result<(), E>) -> Option<Value> {
    let (mut out, mut again) = (b"#".to_vec(), b"#".to_vec());
    let outcome = write(&mut out);
    assert_eq!(write(&mut again).is_ok(), outcome.is_ok());
    assert_eq!(out, again, "the output is deterministic");
    assert!(out.len() <= 1 + proto::json::MAX_JSON, "{} bytes", out.len());
    if outcome.is_err() {
        assert_eq!(out, b"#", "an error leaves the output unchanged");
        return None;
    }
    let json = serde_json::from_slice(&out[1..]);
    Some(json.unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&out))))
}

/// Recorded transactions of every type.
pub fn seeds() -> Vec<Vec<u8>> {
    static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
        let mut seeds = Vec::new();
        for (number, chain) in (0_u8..).zip(chains()) {
            let mut seen = Vec::new();
            for raw in chain.txs().filter(|raw| raw.len() <= MAX_BYTES) {
                let types = DecodedTx::decode(&raw).map(|tx| tx.message_types).unwrap_or_default();
                if !seen.contains(&types) {
                    seen.push(types);
                    seeds.push([&[number, 0], raw.as_slice()].concat());
                }
            }
        }
        seeds.extend((1_u8..=16).map(|name| vec![0, name, 0x0a, 2, 8, 1]));
        seeds
    });
    SEEDS.clone()
}
