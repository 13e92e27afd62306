//! Transaction and block hashes as text.
//!
//! One rule for both kinds of hash on every route: hex of any length is well-formed.

use alloy::primitives::{hex, keccak256};
use sha2::{Digest, Sha256};
use thiserror::Error;

/// A transaction or block hash.
pub type Hash = [u8; 32];

/// The text is not hex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("invalid hash format")]
pub struct NotHex;

/// Reads a hash that a client wrote: with or without `0x`, any case; with an uneven number of digits, a zero is
/// prepended.
///
/// `Ok(None)` is hex of another length than 32 bytes: well-formed, but not the hash of any transaction or block.
pub fn parse_hash(text: &str) -> Result<Option<Hash>, NotHex> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text).as_bytes();
    // An uneven number of digits is padded with one zero on the left, so 63 digits are a whole hash.
    let mut padded = [b'0'; 64];
    match digits.len() {
        64 => padded.copy_from_slice(digits),
        63 => padded[1..].copy_from_slice(digits),
        _ if digits.iter().all(u8::is_ascii_hexdigit) => return Ok(None),
        _ => return Err(NotHex),
    }
    let mut hash = [0; 32];
    hex::decode_to_slice(padded, &mut hash).map_err(|_| NotHex)?;
    Ok(Some(hash))
}

/// The 64 lower-case digits of a hash, without `0x`.
pub fn to_hex(hash: &Hash) -> String {
    hex::encode(hash)
}

/// The hash of the code of a contract of the EVM: keccak-256.
pub fn code_hash(code: &[u8]) -> Hash {
    keccak256(code).0
}

/// The hash of a transaction: SHA-256 of its raw bytes (`CometBFT` `types.Tx.Hash`).
pub fn tx_hash(raw: &[u8]) -> Hash {
    Sha256::digest(raw).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_in_every_accepted_spelling() {
        let lower = "ab".repeat(32);
        for text in [lower.clone(), lower.to_uppercase(), format!("0x{lower}"), format!("0X{lower}")] {
            assert_eq!(parse_hash(&text), Ok(Some([0xab; 32])), "{text}");
        }
        let mut short = [0xab; 32];
        short[0] = 0x0b;
        assert_eq!(parse_hash(&lower[1..]), Ok(Some(short)));
    }

    #[test]
    fn hex_of_another_length_is_the_hash_of_nothing_and_other_text_is_refused() {
        for text in ["", "0x", "abc", "0xabcd", &"a".repeat(65), &"a".repeat(66), &"a".repeat(62)] {
            assert_eq!(parse_hash(text), Ok(None), "{text}");
        }
        for text in ["xyz", "0x0x12", "ä", " ab", &"g".repeat(64)] {
            assert_eq!(parse_hash(text), Err(NotHex), "{text}");
        }
        // As long as a hash, and with a prefix that is not to be taken for one of hex.
        for text in [format!("x{}", "a".repeat(62)), format!("0x0x{}", "a".repeat(62))] {
            assert_eq!(parse_hash(&text), Err(NotHex), "{text}");
        }
    }
}
