//! Addresses and keys of the accounts of the law, and the account of an address.
//!
//! An account that signs has a key of secp256k1, whose address is the chain's rule. There are at most some 17,000 of
//! them, each computed once. The address of any other account is a code of its number, so that the number follows from
//! the address: no table of them is needed.

use std::collections::HashMap;
use std::sync::OnceLock;

use alloy::primitives::keccak256;
use k256::SecretKey;
use k256::elliptic_curve::sec1::ToEncodedPoint as _;
use sha2::{Digest as _, Sha256};

use crate::law::{Member, pool_size, signers};

/// The key type of all signers.
pub(crate) const KEY_TYPE: &str = "/initia.crypto.v1beta1.ethsecp256k1.PubKey";
/// The start of all hashes, so that no key of a generated account is one of a recorded account.
const SEED: &[u8] = b"synthesized chain 1";
/// The pool number of created contracts, whose index is the number of the transaction.
const CONTRACTS: u32 = 63;

/// An address in the forms in which answers have it.
#[derive(Debug, Clone)]
pub(crate) struct Account {
    pub(crate) address: [u8; 20],
    /// Lower case, without `0x`.
    pub(crate) hex: String,
    pub(crate) bech32: String,
    /// The compressed public key; none for an account that never signs.
    pub(crate) key: Option<[u8; 33]>,
}

impl Account {
    pub(crate) fn new(address: [u8; 20], key: Option<[u8; 33]>, prefix: &str) -> Self {
        let text = chain::Account::from_bytes(&address).map(|account| account.to_bech32(prefix));
        Self { address, hex: hex::encode(address), bech32: text.unwrap_or_default(), key }
    }

    /// The address with the checksum of EIP-55 in the case of its letters, without `0x`.
    pub(crate) fn checksum(&self) -> String {
        let hash = keccak256(self.hex.as_bytes());
        let nibble = |at: usize| hash[at / 2] >> (4 * (1 - at % 2)) & 15;
        let cased = |(at, c): (usize, char)| if nibble(at) >= 8 { c.to_ascii_uppercase() } else { c };
        self.hex.chars().enumerate().map(cased).collect()
    }
}

/// All accounts of a chain.
#[derive(Debug)]
pub(crate) struct Accounts {
    prefix: String,
    /// Of each pool with keys.
    signers: Vec<Box<[OnceLock<Account>]>>,
    /// Draws of the chain, which bound the signers.
    draws: u64,
    by_address: OnceLock<HashMap<[u8; 20], Member>>,
}

impl Accounts {
    pub(crate) fn new(prefix: &str, draws: u64) -> Self {
        let pool = |pool| (0..pool_size(pool)).map(|_| OnceLock::new()).collect();
        Self {
            prefix: prefix.to_owned(),
            signers: (0..3).map(pool).collect(),
            draws,
            by_address: OnceLock::new(),
        }
    }

    pub(crate) fn account(&self, member: Member) -> Account {
        if !member.signs {
            return Account::new(encoded(member.pool, member.index), None, &self.prefix);
        }
        let (pool, index) = (member.pool as usize, usize::try_from(member.index).unwrap_or_default());
        self.signers[pool][index].get_or_init(|| self.signer(member)).clone()
    }

    /// The contract that a transaction creates.
    pub(crate) fn contract(&self, tx: u64) -> Account {
        Account::new(encoded(CONTRACTS, tx), None, &self.prefix)
    }

    /// The account of an address.
    pub(crate) fn member(&self, address: [u8; 20]) -> Option<Member> {
        if let Some((pool, index)) = decoded(address) {
            return (pool != CONTRACTS).then_some(Member { pool, index, signs: false });
        }
        let all = || signers(self.draws).map(|member| (self.account(member).address, member)).collect();
        self.by_address.get_or_init(all).get(&address).copied()
    }

    /// The transaction that created a contract.
    pub(crate) fn created_by(address: [u8; 20]) -> Option<u64> {
        decoded(address).and_then(|(pool, index)| (pool == CONTRACTS).then_some(index))
    }

    fn signer(&self, member: Member) -> Account {
        let mut secret = digest("key", member.pool, member.index);
        // One of 2^128 hashes is not a key.
        let secret = loop {
            match SecretKey::from_slice(&secret) {
                Ok(key) => break key,
                Err(_) => secret = Sha256::digest(secret).into(),
            }
        };
        let mut key = [0; 33];
        key.copy_from_slice(secret.public_key().to_encoded_point(true).as_bytes());
        let address = chain::key::key_address(KEY_TYPE, &[&[0x0a, 33][..], &key].concat());
        let bytes = address.and_then(|address| address.as_bytes().try_into().ok()).unwrap_or_default();
        Account::new(bytes, Some(key), &self.prefix)
    }
}

/// A hash of a number, for a purpose.
pub(crate) fn digest(purpose: &str, pool: u32, index: u64) -> [u8; 32] {
    Sha256::new()
        .chain_update(SEED)
        .chain_update(purpose)
        .chain_update(pool.to_be_bytes())
        .chain_update(index.to_be_bytes())
        .finalize()
        .into()
}

/// An address that is a code of a number: 8 bytes of the number, mixed, and 12 of its hash.
fn encoded(pool: u32, index: u64) -> [u8; 20] {
    let mut address = [0; 20];
    address[..8].copy_from_slice(&mix(u64::from(pool) << 48 | index).to_be_bytes());
    address[8..].copy_from_slice(&digest("address", pool, index)[..12]);
    address
}

fn decoded(address: [u8; 20]) -> Option<(u32, u64)> {
    let mut first = [0; 8];
    first.copy_from_slice(&address[..8]);
    let number = unmix(u64::from_be_bytes(first));
    let (pool, index) = (u32::try_from(number >> 48).ok()?, number & ((1 << 48) - 1));
    (encoded(pool, index) == address).then_some((pool, index))
}

const FACTORS: [u64; 2] = [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb];

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014), a bijection.
pub(crate) fn mix(number: u64) -> u64 {
    let number = (number ^ (number >> 30)).wrapping_mul(FACTORS[0]);
    let number = (number ^ (number >> 27)).wrapping_mul(FACTORS[1]);
    number ^ (number >> 31)
}

/// The inverse of [`mix`].
fn unmix(number: u64) -> u64 {
    let number = unshift(number, 31).wrapping_mul(inverse(FACTORS[1]));
    let number = unshift(number, 27).wrapping_mul(inverse(FACTORS[0]));
    unshift(number, 30)
}

/// The inverse of `x ^ (x >> bits)` for a shift over 21 bits.
fn unshift(number: u64, bits: u32) -> u64 {
    number ^ (number >> bits) ^ (number >> (2 * bits))
}

/// The inverse of an uneven number modulo 2^64: each step of Newton's method doubles the correct bits.
fn inverse(number: u64) -> u64 {
    (0..6).fold(number, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(number.wrapping_mul(inverse))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_account_follows_from_the_address() {
        let accounts = Accounts::new("init", 5_000);
        for (pool, index, signs) in
            [(0, 3, true), (1, 255, true), (2, 1_000, true), (2, 7, false), (9, 1 << 40, false)]
        {
            let member = Member { pool, index, signs };
            let account = accounts.account(member);
            assert_eq!(accounts.member(account.address), Some(member));
            assert_eq!(account.key.is_some(), signs);
        }
        let contract = accounts.contract(77);
        assert_eq!(
            (accounts.member(contract.address), Accounts::created_by(contract.address)),
            (None, Some(77))
        );
        assert_eq!((accounts.member([7; 20]), Accounts::created_by([7; 20])), (None, None));
    }

    #[test]
    fn a_checksum_is_that_of_the_examples_of_eip_55() {
        for text in ["5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "fB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"] {
            let address = hex::decode(text).unwrap().try_into().unwrap();
            assert_eq!(Account::new(address, None, "init").checksum(), text);
        }
    }
}
