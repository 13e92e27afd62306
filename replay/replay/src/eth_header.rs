//! The hash of the header of an EVM block of minievm: Keccak-256 of the RLP of its 17 fields (go-ethereum `types.Header`).
//!
//! Independent of the indexer's own header check, because forged and computed chains test that check.

use serde_json::Value;
use sha3::{Digest as _, Keccak256};

use crate::edit::text;

/// A field of the header.
enum Field {
    /// Bytes of a fixed length.
    Bytes(&'static str),
    /// A number, without leading zeros.
    Number(&'static str),
}

use Field::{Bytes, Number};

/// In the order of the hash.
const FIELDS: [Field; 17] = [
    Bytes("/parentHash"),
    Bytes("/sha3Uncles"),
    Bytes("/miner"),
    Bytes("/stateRoot"),
    Bytes("/transactionsRoot"),
    Bytes("/receiptsRoot"),
    Bytes("/logsBloom"),
    Number("/difficulty"),
    Number("/number"),
    Number("/gasLimit"),
    Number("/gasUsed"),
    Number("/timestamp"),
    Bytes("/extraData"),
    Bytes("/mixHash"),
    Bytes("/nonce"),
    Number("/baseFeePerGas"),
    Bytes("/withdrawalsRoot"),
];

/// The root of an empty trie.
pub const EMPTY_ROOT: &str = "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421";

/// The hash of the header of a block in the JSON of `eth_getBlockByNumber`; the error names the invalid member.
pub fn eth_header_hash(block: &Value) -> Result<[u8; 32], String> {
    let mut items = Vec::with_capacity(700);
    for field in &FIELDS {
        let (Bytes(path) | Number(path)) = *field;
        let digits = text(block, path)?.strip_prefix("0x").ok_or_else(|| format!("{path} is not hex"))?;
        let digits = match field {
            Bytes(_) => digits,
            Number(_) => digits.trim_start_matches('0'),
        };
        let padded = format!("{}{digits}", if digits.len().is_multiple_of(2) { "" } else { "0" });
        let bytes = hex::decode(padded).map_err(|e| format!("{path}: {e}"))?;
        match bytes[..] {
            [byte] if byte < 0x80 => items.push(byte),
            _ => {
                push_prefix(&mut items, 0x80, bytes.len());
                items.extend_from_slice(&bytes);
            }
        }
    }
    let mut list = Vec::with_capacity(items.len() + 3);
    push_prefix(&mut list, 0xc0, items.len());
    list.extend_from_slice(&items);
    Ok(Keccak256::digest(&list).into())
}

/// The prefix of RLP for so many bytes of text (from 0x80 on) or list (from 0xc0 on).
fn push_prefix(out: &mut Vec<u8>, kind: u8, len: usize) {
    if let Ok(short @ 0..=55) = u8::try_from(len) {
        out.push(kind + short);
        return;
    }
    let bytes = len.to_be_bytes();
    let bytes = &bytes[bytes.iter().take_while(|byte| **byte == 0).count()..];
    // A length has 8 bytes at most.
    out.push(kind + 55 + u8::try_from(bytes.len()).unwrap_or(8));
    out.extend_from_slice(bytes);
}
