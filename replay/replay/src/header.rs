//! The hash of a `CometBFT` header: the Merkle root over its 14 fields (`types.Header.Hash`).
//!
//! Independent of the indexer's own header check, because forged chains test that check.

use chain::time::Timestamp;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::edit::{hex, number, text};

/// The hash of a header in the JSON of `/block`; the error names the invalid member.
pub fn header_hash(header: &Value) -> Result<[u8; 32], String> {
    let bytes = |path| hex(header, path).map(|bytes| field_of_bytes(1, &bytes));
    let leaves = [
        version(header)?,
        field_of_bytes(1, text(header, "/chain_id")?.as_bytes()),
        field_of_number(1, number(header, "/height")?),
        time(text(header, "/time")?)?,
        block_id(header)?,
        bytes("/last_commit_hash")?,
        bytes("/data_hash")?,
        bytes("/validators_hash")?,
        bytes("/next_validators_hash")?,
        bytes("/consensus_hash")?,
        bytes("/app_hash")?,
        bytes("/last_results_hash")?,
        bytes("/evidence_hash")?,
        bytes("/proposer_address")?,
    ];
    Ok(root(&leaves))
}

/// RFC 6962: the left side is the largest power of two below the length.
fn root(leaves: &[Vec<u8>]) -> [u8; 32] {
    match leaves {
        [] => Sha256::digest([]).into(),
        [one] => Sha256::new().chain_update([0]).chain_update(one).finalize().into(),
        many => {
            let (left, right) = many.split_at(many.len().next_power_of_two() / 2);
            Sha256::new()
                .chain_update([1])
                .chain_update(root(left))
                .chain_update(root(right))
                .finalize()
                .into()
        }
    }
}

/// `tendermint.version.Consensus`; a node omits an application version of 0.
fn version(header: &Value) -> Result<Vec<u8>, String> {
    let app = if header.pointer("/version/app").is_some() { number(header, "/version/app")? } else { 0 };
    Ok([field_of_number(1, number(header, "/version/block")?), field_of_number(2, app)].concat())
}

/// `google.protobuf.Timestamp`.
fn time(text: &str) -> Result<Vec<u8>, String> {
    const NANOS: i64 = 1_000_000_000;
    let nanos = Timestamp::parse(text).map_err(|e| format!("/time: {e}"))?.unix_nanos();
    let (seconds, rest) = (nanos.div_euclid(NANOS), nanos.rem_euclid(NANOS));
    // Protobuf writes an int64 as the varint of its two's complement.
    Ok([field_of_number(1, seconds.cast_unsigned()), field_of_number(2, rest.cast_unsigned())].concat())
}

/// `tendermint.types.BlockID`; its part set is written even if it is empty.
fn block_id(header: &Value) -> Result<Vec<u8>, String> {
    let parts = [
        field_of_number(1, number(header, "/last_block_id/parts/total")?),
        field_of_bytes(2, &hex(header, "/last_block_id/parts/hash")?),
    ]
    .concat();
    Ok([field_of_bytes(1, &hex(header, "/last_block_id/hash")?), length_delimited(2, &parts)].concat())
}

/// A varint field; no bytes for 0.
fn field_of_number(field: u8, number: u64) -> Vec<u8> {
    if number == 0 {
        return Vec::new();
    }
    let mut out = vec![field << 3];
    push_varint(&mut out, number);
    out
}

/// A length-delimited field; no bytes if it is empty.
fn field_of_bytes(field: u8, bytes: &[u8]) -> Vec<u8> {
    if bytes.is_empty() { Vec::new() } else { length_delimited(field, bytes) }
}

fn length_delimited(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    push_varint(&mut out, bytes.len() as u64);
    out.extend_from_slice(bytes);
    out
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}
