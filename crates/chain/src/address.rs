//! Account addresses: one canonical value for all spellings of an address.
//!
//! Ingest and queries must both use this module, so that a value indexed under one spelling is found by any other.
//! An [`Account`] is always exactly 20 or 32 bytes.

use std::fmt;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32, Hrp};
use sha2::{Digest, Sha256};

use crate::json::push_hex_lower;

/// Accounts, each once, in order of insertion: a function of the input, so two indexers of one chain write the same
/// rows.
pub type AccountSet = indexmap::IndexSet<Account, rustc_hash::FxBuildHasher>;

/// Bytes of an ordinary account or EVM address.
const SHORT: usize = 20;
/// Bytes of a module, contract or Move object address.
const LONG_LEN: usize = 32;

/// The address of an account, contract, object or module: 20 or 32 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account {
    bytes: [u8; LONG_LEN],
    len: u8,
}

impl Account {
    /// The 20-byte zero address: sender of every EVM mint, receiver of every burn, `from` of the receipts of Cosmos
    /// transactions.
    pub const ZERO: Self = Self { bytes: [0; LONG_LEN], len: 20 };
    /// The 32-byte zero address. Only bech32 can express it: hex drops leading zeros, so hex zero is [`Self::ZERO`].
    pub const ZERO_LONG: Self = Self { bytes: [0; LONG_LEN], len: 32 };

    /// An address from its bytes; `None` unless there are 20 or 32.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let len = match bytes.len() {
            SHORT => 20,
            LONG_LEN => 32,
            _ => return None,
        };
        let mut all = [0; LONG_LEN];
        all[..bytes.len()].copy_from_slice(bytes);
        Some(Self { bytes: all, len })
    }

    /// The 20 or 32 bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Reads an address in any spelling that the deployed server accepts, and `0X`: bech32 with this
    /// `prefix`, else hex of any case with or without `0x`, leading zeros not counted.
    pub fn parse(text: &str, prefix: &str) -> Option<Self> {
        if let Some(digits) = strip_0x(text) {
            return Self::from_digits(digits);
        }
        Self::from_bech32(text, prefix).or_else(|| Self::from_digits(text))
    }

    /// Reads `0x…` (or `0X…`): leading zeros are dropped, then up to 40 digits are a 20-byte address and up to 64 a
    /// 32-byte one. `0x` alone is the zero address.
    pub fn from_hex_literal(text: &str) -> Option<Self> {
        Self::from_digits(strip_0x(text)?)
    }

    /// Reads bech32 (not bech32m), all lower or all upper case, with this `prefix`; checksum and padding are verified.
    pub fn from_bech32(text: &str, prefix: &str) -> Option<Self> {
        let (head, rest) = text.split_at_checked(prefix.len())?;
        // Nearly every attribute value of a block is not an address: return before the checksum is computed.
        if !head.eq_ignore_ascii_case(prefix) || !rest.starts_with('1') || rest[1..].contains('1') {
            return None;
        }
        let parsed = CheckedHrpstring::new::<Bech32>(text).ok()?;
        parsed.validate_segwit_padding().ok()?;
        let mut bytes = [0; LONG_LEN];
        let mut len = 0;
        for byte in parsed.byte_iter() {
            *bytes.get_mut(len)? = byte;
            len += 1;
        }
        Self::from_bytes(&bytes[..len])
    }

    /// Bech32 with this prefix. A prefix that bech32 does not allow (see [`is_prefix`]) gives the `0x` form.
    pub fn to_bech32(&self, prefix: &str) -> String {
        bech32_text(prefix, self.as_bytes())
    }

    /// Lower-case hex of all bytes with `0x`.
    pub fn to_hex(&self) -> String {
        hex_text(self.as_bytes())
    }

    fn from_digits(digits: &str) -> Option<Self> {
        let digits = digits.trim_start_matches('0').as_bytes();
        let len = match digits.len() {
            0..=40 => SHORT,
            41..=64 => LONG_LEN,
            _ => return None,
        };
        let mut padded = [b'0'; 2 * LONG_LEN];
        padded[2 * len - digits.len()..2 * len].copy_from_slice(digits);
        let mut bytes = [0; LONG_LEN];
        hex::decode_to_slice(&padded[..2 * len], &mut bytes[..len]).ok()?;
        Self::from_bytes(&bytes[..len])
    }
}

impl From<[u8; SHORT]> for Account {
    fn from(bytes: [u8; SHORT]) -> Self {
        let mut all = [0; LONG_LEN];
        all[..SHORT].copy_from_slice(&bytes);
        Self { bytes: all, len: 20 }
    }
}

impl From<[u8; LONG_LEN]> for Account {
    fn from(bytes: [u8; LONG_LEN]) -> Self {
        Self { bytes, len: 32 }
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

/// True if bech32 addresses can have this prefix. To be checked once, when the configuration is read.
pub fn is_prefix(prefix: &str) -> bool {
    Hrp::parse(prefix).is_ok()
}

/// The operator address of a validator: bech32 with `<prefix>valoper`.
pub fn valoper(prefix: &str, bytes: &[u8]) -> String {
    bech32_text(&format!("{prefix}valoper"), bytes)
}

/// The consensus address of an ed25519 validator key: the first 20 bytes of its SHA-256 (`CometBFT` `crypto/ed25519`).
pub fn consensus_address(ed25519_key: &[u8]) -> [u8; SHORT] {
    let mut address = [0; SHORT];
    address.copy_from_slice(&Sha256::digest(ed25519_key)[..SHORT]);
    address
}

fn strip_0x(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

fn bech32_text(prefix: &str, bytes: &[u8]) -> String {
    Hrp::parse(prefix)
        .ok()
        .and_then(|hrp| bech32::encode_lower::<Bech32>(hrp, bytes).ok())
        .unwrap_or_else(|| hex_text(bytes))
}

fn hex_text(bytes: &[u8]) -> String {
    let mut out = b"0x".to_vec();
    push_hex_lower(&mut out, bytes);
    out.into_iter().map(char::from).collect()
}
