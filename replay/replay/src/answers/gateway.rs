//! A block in the REST gateway's JSON, derived from the same block in `CometBFT`'s JSON.
//!
//! The two differ in names (`parts`, `part_set_header`), encoding of bytes (hex, base64), flags (number, name) and
//! defaults (omitted, written); the values are the same, so the derivation is exact.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The members of the gateway's answers about a block.
#[derive(Debug)]
pub(super) struct GatewayBlock {
    pub(super) block_id: String,
    pub(super) block: String,
    /// Like `block`, with the proposer as a bech32 consensus address.
    pub(super) sdk_block: String,
}

/// Converts a `/block` result into the gateway's members; the error names the invalid member.
pub(super) fn gateway_block(block: &[u8], bech32_prefix: &str) -> Result<GatewayBlock, String> {
    let read: Outer<'_> = serde_json::from_slice(block).map_err(|e| e.to_string())?;
    if !read.block.evidence.evidence.is_empty() {
        return Err("a block with evidence has no known gateway form".to_owned());
    }
    let json = |e: serde_json::Error| e.to_string();
    let block_id = serde_json::to_string(&read.block_id).map_err(json)?;
    let block = serde_json::to_string(&read.block).map_err(json)?;
    let mut sdk = read.block;
    if let Proposer::Bytes(hex) = &sdk.header.proposer_address {
        sdk.header.proposer_address = Proposer::Bech32(consensus_address(bech32_prefix, &hex.0)?);
    }
    let sdk_block = serde_json::to_string(&sdk).map_err(json)?;
    Ok(GatewayBlock { block_id, block, sdk_block })
}

fn consensus_address(prefix: &str, address: &[u8]) -> Result<String, String> {
    let prefix = bech32::Hrp::parse(&format!("{prefix}valcons")).map_err(|e| e.to_string())?;
    bech32::encode::<bech32::Bech32>(prefix, address).map_err(|e| e.to_string())
}

/// Bytes: hex in, base64 out; empty bytes are `null`, like an unset field in the gateway's JSON.
#[derive(Debug)]
struct Hex(Vec<u8>);

impl<'de> Deserialize<'de> for Hex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        hex::decode(text).map(Self).map_err(D::Error::custom)
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_empty() {
            return serializer.serialize_none();
        }
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}

#[derive(Deserialize)]
struct Outer<'a> {
    block_id: BlockId,
    #[serde(borrow)]
    block: Block<'a>,
}

#[derive(Deserialize, Serialize)]
struct Block<'a> {
    #[serde(borrow)]
    header: Header<'a>,
    #[serde(borrow)]
    data: Data<'a>,
    #[serde(borrow)]
    evidence: Evidence<'a>,
    #[serde(borrow)]
    last_commit: Commit<'a>,
}

#[derive(Deserialize, Serialize)]
struct BlockId {
    hash: Hex,
    #[serde(rename(deserialize = "parts", serialize = "part_set_header"))]
    parts: Parts,
}

#[derive(Deserialize, Serialize)]
struct Parts {
    total: u64,
    hash: Hex,
}

#[derive(Deserialize, Serialize)]
struct Header<'a> {
    #[serde(borrow)]
    version: Version<'a>,
    chain_id: &'a str,
    height: &'a str,
    time: &'a str,
    last_block_id: BlockId,
    last_commit_hash: Hex,
    data_hash: Hex,
    validators_hash: Hex,
    next_validators_hash: Hex,
    consensus_hash: Hex,
    app_hash: Hex,
    last_results_hash: Hex,
    evidence_hash: Hex,
    proposer_address: Proposer,
}

#[derive(Deserialize, Serialize)]
struct Version<'a> {
    block: &'a str,
    #[serde(default = "zero")]
    app: &'a str,
}

fn zero() -> &'static str {
    "0"
}

#[derive(Deserialize, Serialize)]
#[serde(untagged)]
enum Proposer {
    Bytes(Hex),
    #[serde(skip_deserializing)]
    Bech32(String),
}

#[derive(Deserialize, Serialize)]
struct Data<'a> {
    #[serde(borrow)]
    txs: Vec<&'a RawValue>,
}

#[derive(Deserialize, Serialize)]
struct Evidence<'a> {
    #[serde(borrow)]
    evidence: Vec<&'a RawValue>,
}

#[derive(Deserialize, Serialize)]
struct Commit<'a> {
    height: &'a str,
    round: i32,
    block_id: BlockId,
    #[serde(borrow)]
    signatures: Vec<Vote<'a>>,
}

#[derive(Deserialize, Serialize)]
struct Vote<'a> {
    #[serde(serialize_with = "flag_name")]
    block_id_flag: u8,
    validator_address: Hex,
    timestamp: &'a str,
    signature: Option<&'a str>,
}

// serde's `serialize_with` passes a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn flag_name<S: Serializer>(flag: &u8, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match flag {
        0 => "BLOCK_ID_FLAG_UNKNOWN",
        1 => "BLOCK_ID_FLAG_ABSENT",
        2 => "BLOCK_ID_FLAG_COMMIT",
        3 => "BLOCK_ID_FLAG_NIL",
        other => return Err(serde::ser::Error::custom(format!("block_id_flag {other} has no name"))),
    })
}
