//! Real transactions, damaged: no panic, an error leaves the output unchanged, and all output is JSON.

use std::sync::LazyLock;

use crate::recorded::{blocks, registry};
use proptest::prelude::*;
use proto::json::{
    Empty, Registry, signers_named_by_message, tx_bytes, write_message, write_opaque_tx, write_tx,
};
use serde::de::IgnoredAny;

/// Types and transactions of each kind of chain.
static CHAINS: LazyLock<Vec<(Registry, Vec<Vec<u8>>)>> = LazyLock::new(|| {
    ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l2"]
        .iter()
        .map(|chain| {
            let txs: Vec<Vec<u8>> = blocks(chain).flat_map(|block| block.raw).collect();
            assert!(!txs.is_empty());
            (registry(chain), txs)
        })
        .collect()
});

#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.is_empty() {
            return;
        }
        let length = bytes.len();
        match self {
            Self::Flip(at, mask) => bytes[at.index(length)] ^= mask,
            Self::Cut(at) => bytes.truncate(at.index(length)),
            Self::Insert(at, more) => {
                let at = at.index(length);
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Remove(at) => {
                bytes.remove(at.index(length));
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        8 => (at(), 1u8..).prop_map(|(at, mask)| Damage::Flip(at, mask)),
        1 => at().prop_map(Damage::Cut),
        2 => (at(), prop::collection::vec(any::<u8>(), 1..9)).prop_map(|(at, more)| Damage::Insert(at, more)),
        1 => at().prop_map(Damage::Remove),
    ]
}

/// Checks the output after the first byte.
fn check(result: &Result<(), proto::json::Error>, out: &[u8]) -> Result<(), TestCaseError> {
    prop_assert_eq!(out[0], b'#');
    if result.is_err() {
        prop_assert_eq!(out.len(), 1);
        return Ok(());
    }
    let read = serde_json::from_slice::<IgnoredAny>(&out[1..]);
    prop_assert!(read.is_ok(), "{:?}: {}", read, String::from_utf8_lossy(out));
    prop_assert!(std::str::from_utf8(out).is_ok());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_damaged_transaction_is_printed_as_json_or_refused_without_a_trace(
        chain in any::<prop::sample::Index>(),
        tx in any::<prop::sample::Index>(),
        damages in prop::collection::vec(damage(), 0..4),
    ) {
        let (registry, txs) = chain.get(&CHAINS);
        let mut raw = tx.get(txs).clone();
        for damage in &damages {
            damage.apply(&mut raw);
        }
        let mut out = b"#".to_vec();
        let result = write_tx(registry, &raw, &mut out);
        prop_assert!(result.is_ok() || !damages.is_empty());
        check(&result, &out)?;
        out.truncate(1);
        write_opaque_tx(registry, &raw, &mut out);
        check(&Ok(()), &out)?;
        // The way back may fail, and not panic.
        let json = std::str::from_utf8(&out[1..]).unwrap();
        for empty in [Empty::LeftOut, Empty::Written] {
            drop(tx_bytes(registry, json, empty));
        }
    }

    #[test]
    fn arbitrary_bytes_as_any_type_are_printed_as_json_or_refused_without_a_trace(
        chain in any::<prop::sample::Index>(),
        name in prop::sample::select(NAMES.to_vec()),
        bytes in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let (registry, _) = chain.get(&CHAINS);
        let mut out = b"#".to_vec();
        let result = write_message(registry, name, &bytes, &mut out);
        check(&result, &out)?;
        signers_named_by_message(registry, &format!("/{name}"), &bytes);
    }
}

/// Types with maps, oneofs, times, numbers of the SDK, wrappers and values of any shape.
const NAMES: [&str; 12] = [
    "cosmos.tx.v1beta1.Tx",
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
];
