//! Registries for plans, protobuf forms of our messages, and the recorded chains.

#![allow(dead_code, reason = "each test takes what it needs of it")]

pub(crate) mod proto_form;
pub(crate) mod recorded;
pub(crate) mod world;

use chain::U256;
use messages::{BuildError, BuildRequest, BuiltTxs, Msg, SignedHook, Tx, transactions};
use planner::{Hop, Plan, Step};
use registry::{AssetRef, ChainRef, Facts, Registry};
use serde_json::Value;

/// The user of the worked examples, on the chains where the user has an address.
pub(crate) const USER: &str = "init1pyq6amga29zfsldw8k26kgvl7a0fhf3kftflmr";
pub(crate) const USER_HEX: &str = "0x0901aeeD1d5144987DaE3D95AB219ff75e9bA636";
/// Another user.
pub(crate) const OTHER: &str = "init1fvl35tzadelcpydzk0zdtehhpqgjyv6y7wrwu0";
pub(crate) const OTHER_HEX: &str = "0x4b3f1a2c5d6e7f8091a2b3c4d5e6f70811223344";
/// The user on the chain of origin of its dollars.
pub(crate) const NOBLE: &str = "noble1pyq6amga29zfsldw8k26kgvl7a0fhf3k07uyg0";

/// 2026-01-01T00:05:00Z, five minutes before the timeout of the packets of the worked examples.
pub(crate) const NOW: u64 = 1_767_225_900_000_000_000;

/// A request with default members.
pub(crate) struct Scenario {
    pub(crate) registry: Registry,
    pub(crate) facts: Facts,
    pub(crate) now: u64,
    pub(crate) timeout: u64,
    pub(crate) slippage: &'static str,
    pub(crate) hook: Option<SignedHook>,
}

impl Scenario {
    pub(crate) fn new(registry: Registry, facts: Facts) -> Self {
        Self { registry, facts, now: NOW, timeout: 300, slippage: "0.5", hook: None }
    }

    pub(crate) fn chain(&self, id: &str) -> ChainRef {
        self.registry.chain(id).unwrap_or_else(|| panic!("no chain {id}"))
    }

    pub(crate) fn asset(&self, chain: &str, denom: &str) -> AssetRef {
        let found = self.registry.asset(self.chain(chain), denom);
        found.unwrap_or_else(|| panic!("no {denom} on {chain}"))
    }

    /// A hop between two assets given as `(chain id, denom)`.
    pub(crate) fn hop(
        &self,
        step: Step,
        from: (&str, &str),
        to: (&str, &str),
        amount: u128,
        out: u128,
    ) -> Hop {
        Hop {
            step,
            from: self.asset(from.0, from.1),
            to: self.asset(to.0, to.1),
            amount_in: U256::from(amount),
            amount_out: U256::from(out),
            tx: 0,
            seconds: 1,
        }
    }

    pub(crate) fn make(&self, hops: Vec<Hop>, addresses: &[&str]) -> Result<BuiltTxs, BuildError> {
        let addresses: Vec<String> = addresses.iter().map(|&address| address.to_owned()).collect();
        transactions(&BuildRequest {
            registry: &self.registry,
            facts: &self.facts,
            plan: &Plan { hops, swap: None },
            addresses: &addresses,
            now_nanos: self.now,
            timeout_seconds: self.timeout,
            slippage_percent: self.slippage,
            signed_hook: self.hook.as_ref(),
        })
    }

    /// The messages of the only transaction.
    pub(crate) fn msgs(&self, hops: Vec<Hop>, addresses: &[&str]) -> Vec<Msg> {
        let made = self.make(hops, addresses).unwrap_or_else(|refused| panic!("{refused}"));
        let [Tx::Cosmos { msgs, .. }] = made.txs.as_slice() else { panic!("{:?}", made.txs) };
        msgs.clone()
    }

    /// The text of the error.
    pub(crate) fn refusal(&self, hops: Vec<Hop>, addresses: &[&str]) -> String {
        match self.make(hops, addresses) {
            Ok(made) => panic!("{made:?}"),
            Err(refused) => refused.to_string(),
        }
    }
}

/// The hop as part of another transaction.
pub(crate) fn in_tx(hop: Hop, tx: usize) -> Hop {
    Hop { tx, ..hop }
}

/// The JSON of a message.
pub(crate) fn json(msg: &Msg) -> Value {
    serde_json::from_str(&msg.msg).unwrap_or_else(|error| panic!("{error}: {}", msg.msg))
}

/// A member that is text.
pub(crate) fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_else(|| panic!("no {pointer} in {value}"))
}

/// Hex of one word of calldata: `text` with leading zeros.
pub(crate) fn word(text: &str) -> String {
    format!("{:0>64}", text.trim_start_matches("0x").to_ascii_lowercase())
}

/// A text in calldata: length, then bytes padded to whole words.
pub(crate) fn string_words(text: &str) -> String {
    let digits = alloy::hex::encode(text);
    let padded = digits.len().div_ceil(64) * 64;
    format!("{}{digits:0<padded$}", word(&format!("{:x}", text.len())))
}
