//! Key components shared by several tables.

use chain::Account;
use serde::Deserialize;
use serde_json::Value as Json;
use store::Key;

/// An upper bound of every key of every table: numbers take at most 8 bytes, the first byte of an account is its
/// length, and UTF-8 never contains `ff`.
pub(crate) const KEY_END: [u8; 64] = [0xff; 64];

/// An account as a key: one length byte (20 or 32), then the address bytes. The order of accounts has no meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AccountKey(pub Account);

impl Key for AccountKey {
    fn put(&self, out: &mut Vec<u8>) {
        let bytes = self.0.as_bytes();
        // An account has 20 or 32 bytes, so its length is one byte.
        out.push(if bytes.len() == 20 { 20 } else { 32 });
        out.extend_from_slice(bytes);
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(hex::encode(self.0.as_bytes()).into());
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        let (&len, rest) = input.split_first()?;
        let (bytes, rest) = rest.split_at_checked(usize::from(len))?;
        let account = Account::from_bytes(bytes)?;
        *input = rest;
        Some(Self(account))
    }
}

/// The role of an account in a transaction; one byte of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The transaction involves the account (its signers included).
    Involved,
    /// The account signed the transaction.
    Signer,
}

impl Key for Role {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(match self {
            Self::Involved => 0,
            Self::Signer => 1,
        });
    }

    fn put_json(&self, out: &mut Vec<Json>) {
        out.push(match self {
            Self::Involved => "involved".into(),
            Self::Signer => "signer".into(),
        });
    }

    fn take(input: &mut &[u8]) -> Option<Self> {
        match u8::take(input)? {
            0 => Some(Self::Involved),
            1 => Some(Self::Signer),
            _ => None,
        }
    }
}

/// The first 8 bytes of a 32-byte hash. Readers compare the full hash in the record, because prefixes may collide.
pub type HashPrefix = [u8; 8];

/// The prefix of `hash` that is stored.
pub fn hash_prefix(hash: &[u8; 32]) -> HashPrefix {
    let mut prefix = HashPrefix::default();
    prefix.copy_from_slice(&hash[..8]);
    prefix
}

/// The hash prefix of the transaction in a record's JSON.
pub(crate) fn record_hash(json: &[u8]) -> Result<HashPrefix, String> {
    let record: Record = serde_json::from_slice(json).map_err(|error| format!("a record: {error}"))?;
    let digits = record.txhash.strip_prefix("0x").unwrap_or(&record.txhash);
    let hash = hex::decode(digits).ok().and_then(|hash| <[u8; 32]>::try_from(hash).ok());
    hash.map(|hash| hash_prefix(&hash)).ok_or_else(|| "a record that begins with its hash".to_owned())
}

/// The member of a record that contains its hash.
#[derive(Deserialize)]
struct Record {
    #[serde(alias = "transactionHash")]
    txhash: String,
}
